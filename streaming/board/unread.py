"""Partitions of the coordinator's log that cannot be read, and which groups may be in them.

The others are read and shown, so a doubt is not the whole board's but that of a group. A known group may be in the
partition that it was read from and in the one that its name hashes to; of a name that is not known the latter is all
there is to say. A partition that has a leader again stays in doubt until what was written meanwhile is read.
"""

import threading
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from coordinator_model.state.shards import offsets_partition
from streaming.base.persistent_map import GroupMap
from streaming.board.board_group import BoardGroup

Doubt = Mapping[str, Any]
"""As `base.doubt` has it, with the `partition` it is about."""

_NO_LEADER: Final = "partition {} of the offsets topic has no leader"
_NOT_READ: Final = "partition {} of the offsets topic is not read to its end"


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


def unread_of(since_ms: Mapping[int, int], partitions: int, leaders: Collection[int]) -> Unread:
    """The partitions that cannot be read.

    Args:
        since_ms: partition → since when (ms) it cannot be, of those that cannot.
        partitions: how many the log has.
        leaders: those that have a leader.
    """
    doubts = {}
    for number, since in sorted(since_ms.items()):
        reason = (_NOT_READ if number in leaders else _NO_LEADER).format(number)
        doubts[number] = {"reason": reason, "since": since, "as_of": since, "partition": number}
    return Unread(partitions, doubts, tuple(number for number in doubts if number not in leaders))


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
