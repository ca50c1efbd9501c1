"""Partitions of the coordinator's log that cannot be read, and which groups may be in them.

The others are read and shown, so a doubt is not the whole board's but that of a group. A known group may be in the
partition that it was read from and in the one that its name hashes to; of a name that is not known the latter is all
there is to say. A partition that has a leader again stays in doubt until what was written meanwhile is read.

A partition is read on behind a batch that cannot be read, and what that batch held is not known: it stays in doubt
until the coordinator itself says that its groups are as they are shown (`monitor/coordinator_check.py`), or the log is
read from its beginning without meeting the batch. What its groups do later proves nothing.
"""

import threading
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from coordinator_model.state.shards import offsets_partition
from streaming.base.answers import UnreadAnswer
from streaming.base.persistent_map import GroupMap
from streaming.board.board_group import BoardGroup

Doubt = UnreadAnswer
"""As `base.doubt` has it, with the `partition` it is about."""

_NO_LEADER: Final = "partition {} of the offsets topic has no leader"
_UNREADABLE: Final = "partition {} of the offsets topic has a batch that cannot be read (offsets {} to {})"
_NOT_READ: Final = "partition {} of the offsets topic is not read to its end"


class UnreadableBatch(NamedTuple):
    """A batch that could not be read: how many there were of its partition with it, its offsets, when it was met."""

    number: int
    first: int
    end: int
    met_ms: int


@dataclass(frozen=True, slots=True)
class Unread:
    """The partitions of one moment.

    Attributes:
        partitions: how many the log has; None while no partition was ever said to be unread.
        doubts: offsets partition → why what may be in it is in doubt; ascending.
        without_leader: those of them that have no leader.
        unreadable: those of them that have a batch that cannot be read.
        known: those of them that are read to their end.
    """

    partitions: int | None = None
    doubts: Mapping[int, Doubt] = field(default_factory=dict)
    without_leader: tuple[int, ...] = ()
    unreadable: tuple[int, ...] = ()
    known: frozenset[int] = frozenset()

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
            tuple(sorted({*self.unreadable, *other.unreadable})),
            frozenset(number for number in doubts if self.knows(number) and other.knows(number)),
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
        """Those not read, as what keeps a board from being ready (`base.doubt`): its rows are of no moment."""
        return [
            {"reason": of["reason"], "since": of["since"], "partition": number}
            for number, of in self.doubts.items()
            if number not in self.known
        ]

    def knows(self, number: int) -> bool:
        """Whether a partition is read to its end."""
        return number in self.known or number not in self.doubts


EVERYTHING_IS_READ: Final = Unread()


def unread_of(
    since_ms: Mapping[int, int],
    partitions: int,
    leaders: Collection[int],
    unreadable: Mapping[int, Sequence[UnreadableBatch]] | None = None,
) -> Unread:
    """The partitions that cannot be read, and those with a batch that cannot.

    Args:
        since_ms: partition → since when (ms) it cannot be, of those that cannot.
        partitions: how many the log has.
        leaders: those that have a leader.
        unreadable: partition → its batches that cannot be read, of those that have some.
    """
    doubts: dict[int, Doubt] = {}
    unreadable = unreadable or {}
    for number in sorted(since_ms.keys() | unreadable.keys()):
        if number in since_ms:
            reason, since = (_NOT_READ if number in leaders else _NO_LEADER).format(number), since_ms[number]
        else:
            last = unreadable[number][-1]
            reason, since = _UNREADABLE.format(number, last.first, last.end - 1), unreadable[number][0].met_ms
        doubts[number] = {"reason": reason, "since": since, "as_of": since, "partition": number}
    return Unread(
        partitions,
        doubts,
        without_leader=tuple(number for number in doubts if number in since_ms and number not in leaders),
        unreadable=tuple(sorted(unreadable)),
        known=frozenset(unreadable.keys() - since_ms.keys()),
    )


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
