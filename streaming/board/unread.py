"""Partitions of the coordinator's log that cannot be read, and which groups may be in them.

The others are read and shown, so a doubt is not the whole board's but that of a group. A known group may be in the
partition that it was read from and in the one that its name hashes to; of a name that is not known the latter is all
there is to say. A partition that has a leader again stays in doubt until what was written meanwhile is read.
"""

import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from coordinator_model.state.shards import offsets_partition
from streaming.base.persistent_map import GroupMap
from streaming.board.board_group import BoardGroup
from streaming.end_offsets.store import PartitionEnds

Doubt = Mapping[str, Any]
"""As `base.doubt` has it, with the `partition` it is about."""

_NO_LEADER: Final = "partition {} of the offsets topic has no leader"
_READ_ON: Final = "partition {} of the offsets topic had no leader, and is still being read on"


@dataclass(frozen=True, slots=True)
class Unread:
    """The partitions of one moment.

    Attributes:
        partitions: how many the log has; None while no partition was ever said to be unread.
        doubts: offsets partition → why what may be in it is in doubt; ascending.
        without_leader: those of them that have no leader.
    """

    partitions: int | None = None
    doubts: Mapping[int, Doubt] = field(default_factory=dict)
    without_leader: tuple[int, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.doubts)

    def joined(self, other: "Unread") -> "Unread":
        """With the partitions of another moment."""
        if not other:
            return self
        doubts = {**self.doubts, **other.doubts}
        return Unread(
            other.partitions,
            {number: doubts[number] for number in sorted(doubts)},
            tuple(sorted({*self.without_leader, *other.without_leader})),
        )

    def of(self, name: str, held: BoardGroup | None = None) -> Doubt | None:
        """Why what is known of a group may not be so; of a name that is not known, why there may be such a group.

        Args:
            name: of the group.
            held: the group as it is shown; None where there is none.
        """
        number = self.partition_of(name, held)
        return None if number is None else self.doubts[number]

    def partition_of(self, name: str, held: BoardGroup | None = None) -> int | None:
        """The unread partition that the group may be in; None where it is in none."""
        if not self.doubts or self.partitions is None:
            return None
        if held is not None and (read_from := held.summary.partition) in self.doubts:
            return read_from
        hashed = offsets_partition(name, self.partitions)
        return hashed if hashed in self.doubts else None

    def listed(self) -> list[Doubt]:
        """The doubts of all partitions, as lists of groups have them."""
        return [*self.doubts.values()]

    def missing(self) -> list[dict[str, Any]]:
        """The same, as what keeps a board from being ready (`base.doubt`): there is no moment that its rows are of."""
        return [{name: of[name] for name in ("reason", "since", "partition")} for of in self.doubts.values()]


EVERYTHING_IS_READ: Final = Unread()


class UnreadPartitions:
    """Follows which partitions cannot be read; safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._partitions: int | None = None
        self._without_leader: Mapping[int, int] = {}
        # Partition → since when (ms) it could not be read, and when its end was last sampled as its leader came back.
        self._reading_on: dict[int, tuple[int, int]] = {}
        self._now = Unread()

    @property
    def now(self) -> Unread:
        """The partitions as they were last said to be."""
        return self._now

    def set(self, without_leader: Mapping[int, int], partitions: int, ends: Mapping[int, PartitionEnds]) -> bool:
        """Take the partitions without a leader, all of them, each since when (ms); returns whether one came back.

        Args:
            without_leader: partition → since when (ms).
            partitions: how many the log has.
            ends: partition → where it ends, as sampled.
        """
        with self._lock:
            back = self._without_leader.keys() - without_leader.keys()
            for number in back:
                sampled_ms = ends[number].sampled_ms if number in ends else 0
                self._reading_on[number] = (self._without_leader[number], sampled_ms)
            for number in without_leader:
                self._reading_on.pop(number, None)
            self._without_leader, self._partitions = dict(without_leader), partitions
            self._put_together()
            return bool(back)

    def follow(
        self,
        membership: Mapping[int, int],
        commits: Mapping[int, int],
        ends: Mapping[int, PartitionEnds],
        *,
        one_reader: bool,
    ) -> None:
        """Take how far the two readers are: a partition is read on once they are at an end that was sampled since.

        Args:
            membership: partition → next offset to read.
            commits: the same of the other reader.
            ends: partition → where it ends, as sampled.
            one_reader: whether one reads both, and never gets past the last stable offset.
        """
        if not self._reading_on:
            return
        with self._lock:
            for number, (_, sampled_ms) in [*self._reading_on.items()]:
                known = ends.get(number)
                if known is None or known.high_watermark is None or known.sampled_ms <= sampled_ms:
                    continue
                stable = known.last_stable or 0
                end = stable if one_reader else known.high_watermark
                if membership.get(number, 0) >= end and commits.get(number, 0) >= stable:
                    del self._reading_on[number]
            self._put_together()

    def _put_together(self) -> None:
        doubts = {number: _doubt(_READ_ON, number, since_ms) for number, (since_ms, _) in self._reading_on.items()}
        doubts |= {number: _doubt(_NO_LEADER, number, since_ms) for number, since_ms in self._without_leader.items()}
        ascending = {number: doubts[number] for number in sorted(doubts)}
        self._now = Unread(self._partitions, ascending, tuple(sorted(self._without_leader)))


class DoubtedGroups:
    """Which of the groups that are shown may be in an unread partition; updated by what changed since it was asked."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._seen: GroupMap[BoardGroup] = GroupMap()
        self._asked: tuple[int | None, frozenset[int]] = (None, frozenset())
        self._found: dict[str, int] = {}

    def of(self, groups: GroupMap[BoardGroup], unread: Unread) -> Mapping[str, int]:
        """Group → the unread partition that it may be in."""
        if not unread:
            return {}
        with self._lock:
            asked = (unread.partitions, frozenset(unread.doubts))
            if self._asked != asked:
                self._seen, self._found, self._asked = GroupMap(), {}, asked
            for name, _, now in groups.since(self._seen):
                number = None if now is None else unread.partition_of(name, now)
                if number is None:
                    self._found.pop(name, None)
                else:
                    self._found[name] = number
            self._seen = groups
            return dict(self._found)


def numbers(doubts: Iterable[Doubt]) -> str:
    """The partitions of doubts in words: `partition 7`, `partitions 7, 9`."""
    found = [str(of["partition"]) for of in doubts]
    return f"partition{'s' if len(found) > 1 else ''} {', '.join(found)}"


def _doubt(reason: str, number: int, since_ms: int) -> Doubt:
    return {"reason": reason.format(number), "since": since_ms, "as_of": since_ms, "partition": number}
