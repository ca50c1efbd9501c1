"""When the board may be believed: all that was in the log at start is on it, with lag, and its stream moves."""

import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from coordinator_model.kinds.words import counted
from streaming.board.board_group import BoardGroup
from streaming.board.unread import EVERYTHING_IS_READ, Unread

DOUBT_SECONDS: Final = 15.0
"""So long records may wait without a finished micro-batch; one of a stream that moves takes a second or two."""

STANDSTILL_SECONDS: Final = 30.0
"""After so long the board is not ready any more."""

FIRST_BATCH_SECONDS: Final = 60.0
"""While the log is being read to its end for the first time both are so long: a micro-batch may bring much of it."""

SHORT_MS: Final = 30_000
"""So long a leader may say that the log ends before what is to be read: one that has just been made leader may not know
how far its own reaches. After that there is no more: the tail is lost, in an unclean election."""

Offsets = Mapping[int, int]
"""Offsets partition → offset."""


class Standing(NamedTuple):
    """Whether a board may be believed: `missing` keeps it from being ready, `doubt` from looking good.

    Only what may be in an `unread` partition is doubted for that, though it keeps a board from being ready at start.
    """

    missing: list[dict[str, Any]]
    doubt: dict[str, Any] | None
    unread: Unread = EVERYTHING_IS_READ

    @property
    def ready(self) -> bool:
        """Whether nothing is missing."""
        return not self.missing

    @property
    def stands_still(self) -> bool:
        """Whether what is shown is of an earlier moment."""
        return self.doubt is not None and "as_of" in self.doubt

    @property
    def missing_of_all(self) -> list[dict[str, Any]]:
        """What is missing of all groups alike."""
        return [each for each in self.missing if "partition" not in each]

    def doubt_of(self, name: str, held: BoardGroup | None) -> Mapping[str, Any] | None:
        """Why what is shown of a group may not be so; of a name that is not known, why there may be such a group."""
        return self.unread.of(name, held) if self.doubt is None else self.doubt


@dataclass(frozen=True, slots=True)
class Positions:
    """Next offset to read of each offsets partition, of the reader of membership and of the reader of commits."""

    membership: Offsets
    commits: Offsets

    def merged(self, membership: Offsets, commits: Offsets) -> "Positions":
        """These positions moved on; partitions not named stay where they are."""
        return Positions({**self.membership, **membership}, {**self.commits, **commits})


class Readiness:
    """What is still missing. Once ready stays ready: what comes later is lag, which has figures of its own."""

    def __init__(self, *, loaded: bool = False) -> None:
        self._targets: Positions | None = None
        self._partitions = 0
        self._loaded = loaded
        self._caught_up_ms: int | None = None
        self._farthest = 0
        self._short_since_ms: dict[int, int] = {}
        self.was_ready = False
        """Whether nothing was missing once: partitions that cannot be read from then on are known as they were."""

    def set_loaded(self) -> None:
        """The state of the former run is on the board, or there was none."""
        self._loaded = True

    def set_targets(self, high_watermarks: Offsets, last_stable: Offsets, partitions: int | None = None) -> None:
        """Where the log ended when this run began, as far as its leaders said; and how many partitions it has."""
        self._targets = Positions(high_watermarks, last_stable)
        self._partitions = partitions or 0
        self._short_since_ms = {}

    def add_targets(
        self, high_watermarks: Offsets, last_stable: Offsets, sampled_ms: Mapping[int, int] | None = None
    ) -> None:
        """The same of partitions whose leaders did not answer then, and of those that lost their tail since.

        Args:
            high_watermarks: partition to its end.
            last_stable: partition to where its commits end.
            sampled_ms: of those that were asked since this run began, when.
        """
        if self._targets is None or self._caught_up_ms is not None:
            return
        of = self._targets
        cut = self._cut(high_watermarks, of.membership, sampled_ms or {})
        self._targets = Positions(
            {**high_watermarks, **of.membership, **{each: high_watermarks[each] for each in cut}},
            {**last_stable, **of.commits, **{each: last_stable[each] for each in cut}},
        )

    def _cut(self, ends: Offsets, targets: Offsets, sampled_ms: Mapping[int, int]) -> list[int]:
        """Partitions of which there is no more to read: for a while they have ended before where they did."""
        short = {of: at_ms for of, at_ms in sampled_ms.items() if of in targets and ends[of] < targets[of]}
        self._short_since_ms = {of: self._short_since_ms.get(of, at_ms) for of, at_ms in short.items()}
        return [of for of, at_ms in short.items() if at_ms - self._short_since_ms[of] >= SHORT_MS]

    def follow(self, positions: Positions, now_ms: int) -> bool:
        """Take note of how far the readers are; returns whether with that they have caught up."""
        if self._caught_up_ms is not None or self._targets is None:
            return False
        if self._unknown(self._targets) or self._behind(self._targets, positions):
            return False
        self._caught_up_ms = now_ms
        return True

    @property
    def caught_up(self) -> bool:
        """Whether the readers have passed the end of the log as it was at start."""
        return self._caught_up_ms is not None and self._loaded

    def missing(
        self, positions: Positions, sampled_ms: int | None, unread: Collection[int] = ()
    ) -> list[dict[str, Any]]:
        """What keeps this from being ready, as `base.doubt` has it; empty when it is. Without `since`: the start.

        Partitions that are `unread` are not counted: they are named by themselves (`unread.py`).
        """
        found: list[dict[str, Any]] = []
        if not self._loaded:
            found.append({"reason": "the state of the former run is not loaded"})
        if self._targets is None:
            found.append({"reason": "the end of the log at start is not known"})
        elif self._caught_up_ms is None and (
            behind := {of: left for of, left in self._behind(self._targets, positions).items() if of not in unread}
        ):
            records = sum(behind.values())
            self._farthest = max(self._farthest, records)
            read_percent = 100 * (self._farthest - records) // self._farthest if records else 100
            found.append(
                {
                    "reason": "the monitor is still reading the log",
                    "records": records,
                    "read_percent": read_percent,
                    "far": f"{read_percent} % read, {counted(records, 'record')} to go",
                    "partitions": {str(partition): records for partition, records in sorted(behind.items())},
                }
            )
        elif self._caught_up_ms is None and (unknown := self._unknown(self._targets, unread)):
            found.append({"reason": f"the end of {counted(unknown, 'partition')} of the log is not known"})
        elif sampled_ms is None or sampled_ms < (self._caught_up_ms or 0):
            found.append({"reason": "lag is not known, as log end offsets are not sampled yet"})
        return found

    def _unknown(self, targets: Positions, unread: Collection[int] = ()) -> int:
        """Of how many partitions, besides those unread, it is not known where they ended."""
        return len(set(range(self._partitions)) - targets.membership.keys() - set(unread))

    @staticmethod
    def _behind(targets: Positions, positions: Positions) -> dict[int, int]:
        """Partition → records still to read, of those that are not where they should be."""
        distances = {
            partition: max(
                target - positions.membership.get(partition, 0),
                targets.commits.get(partition, 0) - positions.commits.get(partition, 0),
            )
            for partition, target in targets.membership.items()
        }
        return {partition: distance for partition, distance in distances.items() if distance > 0}


class Standstill:
    """Whether a stream stands still: records wait, and no micro-batch has finished for a while.

    Args:
        clock: seconds that only grow.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._moved_at = clock()

    def moved(self) -> None:
        """A micro-batch is finished."""
        self._moved_at = self._clock()

    def seconds(self, waiting: int, *, caught_up: bool) -> float | None:
        """How long the stream has stood still; None while it moves, or has nothing to bring.

        Args:
            waiting: records in the log that no micro-batch has brought yet, as of the last sample of its end.
            caught_up: whether the end of the log as it was at start is reached.
        """
        if not waiting:
            # What comes next waits from now on.
            self.moved()
        seconds = self._clock() - self._moved_at
        return None if seconds < (DOUBT_SECONDS if caught_up else FIRST_BATCH_SECONDS) else seconds

    def found(self, waiting: int, now_ms: int, *, caught_up: bool) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        """What keeps the board from being ready, and what from looking good, each as `base.doubt` has it.

        Args:
            waiting: as above.
            now_ms: the wall clock.
            caught_up: as above.
        """
        seconds = self.seconds(waiting, caught_up=caught_up)
        if seconds is None:
            return [], []
        since_ms = round(now_ms - seconds * 1_000)
        reason = "records wait in the log, and no micro-batch has finished"
        stands = [{"reason": reason, "records": waiting, "since": since_ms, "as_of": since_ms}]
        return (stands if seconds >= STANDSTILL_SECONDS else []), stands
