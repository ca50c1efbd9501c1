"""Groups with records in two partitions of the offsets topic: which copy is the group, and what is reported of it.

A group's records are where its name hashes to, so a topic that is grown has other homes for its groups. What was
written before stays behind as a copy. Only the coordinator of its partition still writes to it, and expires it.

    there is a copy in                          the group is
    one partition                               that one, wherever it is
    several, one of them where it hashes to     that one
    several, none of them there                 the one written last

A copy that is not the group changes nothing of it, and nothing is reported of it but that it is there. Whether a copy
was the group is asked for each event at its own time, as partitions are read in any order.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from coordinator_model.state.events import SEVERITIES, Event
from coordinator_model.state.shards import offsets_partition

CREATED: Final = "group_created"
DELETED: Final = "group_deleted"
IN_TWO_PARTITIONS: Final = "group_in_two_partitions"
OF_THE_LOG: Final = frozenset({"unknown_record"})
"""Kinds of events that are of the log more than of the group: only the first is reported, whichever copy shows it."""


def lives_in(group: str, copies: Mapping[int, int], partitions: int | None) -> int:
    """The partition of the copy that is the group.

    Args:
        group: its name.
        copies: partition → when something was last written to the copy there, in milliseconds; not empty.
        partitions: how many the offsets topic has; None where that is not known.
    """
    if len(copies) > 1 and partitions is not None:
        home = offsets_partition(group, partitions)
        if home in copies:
            return home
    return max(copies, key=lambda partition: (copies[partition], partition))


class CopyEvent(NamedTuple):
    """An event of one of a group's copies."""

    time_ms: int
    partition: int
    offset: int
    kind: str


@dataclass(frozen=True, slots=True)
class Doubled:
    """That a group came to be in two partitions, or in one more.

    Attributes:
        shown_by: which of the events showed it.
        partitions: where copies are, ascending.
        lives_in: which of them is the group.
    """

    shown_by: int
    partitions: tuple[int, ...]
    lives_in: int

    @property
    def detail(self) -> dict[str, Any]:
        """Of the event that names it."""
        return {"partitions": list(self.partitions), "lives_in": self.lives_in}


def doubled_event(group: str, shown_by: CopyEvent, doubled: Doubled, ordinal: int = 0) -> Event:
    """The event that names a group in several partitions; the record that shows it is that of another event."""
    return Event(
        time_ms=shown_by.time_ms,
        group=group,
        kind=IN_TWO_PARTITIONS,
        severity=SEVERITIES[IN_TWO_PARTITIONS],
        partition=shown_by.partition,
        offset=shown_by.offset,
        detail=doubled.detail,
        ordinal=ordinal,
    )


def of_the_group(
    events: Sequence[CopyEvent], there: Collection[int], living: Callable[[Collection[int]], int]
) -> tuple[set[int], list[Doubled]]:
    """Which events of a group's copies are the group's own, whatever their order; and when there were copies.

    Args:
        events: of all copies.
        there: partitions of the copies that were there before.
        living: says of copies that are there at once which is the group.
    """
    alive, own, doubled = set(there), set[int](), list[Doubled]()
    for number in sorted(range(len(events)), key=lambda each: events[each][:3]):
        of = events[number]
        if of.kind == CREATED and of.partition not in alive:
            alive.add(of.partition)
            if len(alive) > 1:
                doubled.append(Doubled(number, tuple(sorted(alive)), living(alive)))
        if of.kind in OF_THE_LOG or of.partition == living(alive | {of.partition}):
            own.add(number)
        if of.kind == DELETED:
            alive.discard(of.partition)
    return own, doubled
