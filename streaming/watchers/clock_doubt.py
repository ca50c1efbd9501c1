"""When times may not be believed: the machine's clock was set, or a broker wrote records with a wrong one.

**This machine.** A wall clock that jumps makes everything look overdue at once, or nothing for a while; which of the
two readings was right is unknown. A machine that was suspended has jumped too, and has read nothing meanwhile. In both
cases the stream needs a moment to read on, so after a jump no clock-based event is reported for `SETTLE_SECONDS`; what
is overdue then is so by the clock as it is.

**A broker.** What hangs is found by the clock: now, minus the time of a record. A record that is read as soon as it is
written was written about now, whatever it says; so where that differs by more than `DOUBT_MS`, time runs from when it
was read, as long as the group is between two states. What was in the log already when this monitor became ready has the
time it says: this monitor did not see it being written.

**A coordinator that is away.** As long as the leader of an offsets partition does not answer, no coordinator
is known to work there: nothing of its groups becomes overdue, and when it answers again their times run from then
(`coordinator_model/clocked/silences.py`). So it is where the leader answers that it coordinates none of them
(`load_watch.py`). Where it answers all the time, and nothing is written, time passes as ever.
"""

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple

from coordinator_model.clocked import silences
from coordinator_model.state.events import Event
from coordinator_model.state.findings import Position
from coordinator_model.state.group_state import GroupState
from streaming.base.logging_setup import get_logger
from streaming.end_offsets.store import STALE_AFTER_MS, EndOffsets

JUMP_MS: Final = 10_000
"""More than two looks can be late by on a busy machine, whose other clock goes on as well."""

SETTLE_SECONDS: Final = 60.0

DOUBT_MS: Final = 120_000
"""More than a busy stream is late, and than a look is by `ClockJumps`."""

_log = get_logger("clock")


class ClockJumps:
    """Compares the wall clock with one that cannot be set; used by one thread.

    Args:
        elapsed_seconds: goes on while the machine runs, whatever is done to its wall clock.
    """

    def __init__(self, elapsed_seconds: Callable[[], float] = time.monotonic) -> None:
        self._elapsed_seconds = elapsed_seconds
        self._last: tuple[int, float] | None = None
        self._settled_at = -1.0

    def settling(self, now_ms: int) -> bool:
        """Take a reading of the wall clock; returns whether it jumped a short while ago."""
        elapsed = self._elapsed_seconds()
        if self._last is not None:
            last_ms, last_elapsed = self._last
            jumped_ms = now_ms - last_ms - 1000 * (elapsed - last_elapsed)
            if abs(jumped_ms) > JUMP_MS:
                _log.warning("clock_jumped", seconds=round(jumped_ms / 1000))
                self._settled_at = elapsed + SETTLE_SECONDS
        self._last = now_ms, elapsed
        return elapsed < self._settled_at


class _Seen(NamedTuple):
    step_offset: int
    read_ms: int | None


class RecordClocks:
    """Looks at the groups that are between two states; used by one thread."""

    def __init__(self) -> None:
        self._seen: dict[str, _Seen] | None = None

    def doubtful(self, groups: Iterable[GroupState], now_ms: int) -> Mapping[str, int]:
        """Group → since when its time runs, of those whose records say another one.

        Args:
            groups: all that are between two states now, of a log that has been read to its end.
            now_ms: the wall clock.
        """
        former, found = self._seen, {}
        for state in groups:
            known = (former or {}).get(state.name)
            if known is None or known.step_offset != state.last_step_offset:
                is_odd = former is not None and abs(now_ms - state.last_step_ms) > DOUBT_MS
                known = _Seen(state.last_step_offset, now_ms if is_odd else None if known is None else known.read_ms)
            found[state.name] = known
        self._seen = found
        return {name: of.read_ms for name, of in found.items() if of.read_ms is not None}


class AwayCoordinators:
    """Looks at when the leaders of offsets partitions answered; used by one thread.

    Args:
        ends: where their answers are.
        offsets_topic: the coordinator's log.
    """

    def __init__(self, ends: EndOffsets, offsets_topic: str) -> None:
        self._ends = ends
        self._offsets_topic = offsets_topic
        self._reported_ms: dict[int, int] = {}

    def is_away(self, partition: int, now_ms: int) -> bool:
        """Whether its leader has not answered for a while; not where it was never asked."""
        ends = self._ends.partition(self._offsets_topic, partition)
        return ends is not None and 0 < ends.sampled_ms < now_ms - STALE_AFTER_MS

    def back_ms(self, partition: int) -> int | None:
        """When its leader last answered again after it had not for a while; None for never."""
        ends = self._ends.partition(self._offsets_topic, partition)
        return None if ends is None or ends.unanswered is None else ends.unanswered[1]

    def returned(self, waiting: Iterable[GroupState]) -> list[Event]:
        """What is said of coordinators that are back since the last call, given the groups between two states."""
        by_partition: dict[int, list[GroupState]] = {}
        for state in waiting:
            by_partition.setdefault(state.partition, []).append(state)
        found = []
        for partition, states in sorted(by_partition.items()):
            ends = self._ends.partition(self._offsets_topic, partition)
            if ends is None or ends.unanswered is None or self._reported_ms.get(partition) == ends.unanswered[1]:
                continue
            since_ms, until_ms = ends.unanswered
            self._reported_ms[partition] = until_ms
            place = Position(partition, max(state.last_step_offset for state in states), since_ms)
            found.append(silences.no_coordinator(place, since_ms, until_ms, [state.name for state in states]))
        return found
