"""The topics of a group, by name and by id."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from coordinator_model.clocked import unassigned_partitions
from coordinator_model.clocked.unassigned_partitions import SizedTopic, Unheld
from coordinator_model.figures.workings import Workings
from coordinator_model.state.membership import STREAMS

_NO_PARTITIONS: Final[Mapping[str, frozenset[int]]] = {}


class GroupTopics:
    """The topics of a group, by name and by id: groups of one topic, held alike, share one object.

    Attributes:
        subscribed: names of the topics that members subscribe to, as far as the log shows.
        assigned: topic (name in a classic group, id in any other) → partitions that some member holds; not of streams.
        ids: ids of the topics that stand in assignments and targets.
        by_id: whether `assigned` is by id.
        assignments_known: whether it can be said which partitions members should hold.
        names: names of the topics of subscriptions and classic assignments.
    """

    __slots__ = ("_unheld", "assigned", "assignments_known", "by_id", "ids", "names", "subscribed")

    def __init__(
        self,
        subscribed: frozenset[str],
        assigned: tuple[tuple[str, frozenset[int]], ...],
        ids: frozenset[str],
        *,
        by_id: bool,
        assignments_known: bool,
    ) -> None:
        self.subscribed = subscribed
        self.assigned: Mapping[str, frozenset[int]] = dict(assigned) if assigned else _NO_PARTITIONS
        self.ids = ids
        self.by_id = by_id
        self.assignments_known = assignments_known
        self.names = subscribed if by_id else subscribed.union(self.assigned)
        self._unheld: tuple[Mapping[str, SizedTopic] | None, Unheld | None] = (None, None)

    def unheld(self, topics: Mapping[str, SizedTopic]) -> Unheld | None:
        """Partitions of subscribed topics that no member holds; None where not known (`unassigned_partitions.py`)."""
        of_topics, found = self._unheld
        if of_topics is not topics:
            found = None
            if self.assignments_known:
                found = unassigned_partitions.unheld_of(self.subscribed, self.assigned, topics, by_id=self.by_id)
            self._unheld = (topics, found)
        return found


shared_topics: Final = lru_cache(1_024)(GroupTopics)
"""The same object for the same topics."""


def topics_of(of: Workings) -> GroupTopics:
    """The topics, worked out."""
    return shared_topics(
        of.subscribed,
        tuple(of.assigned.items()),
        _ids(of),
        by_id=of.modern is not None,
        assignments_known=unassigned_partitions.assignments_known(of.membership),
    )


def _ids(of: Workings) -> frozenset[str]:
    modern = of.modern
    if modern is None or modern.family == STREAMS:
        return frozenset()
    return frozenset([*of.assigned, *(topic for target in modern.targets.values() for topic in target)])
