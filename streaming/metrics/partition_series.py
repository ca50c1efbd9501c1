"""Whether /metrics has series per partition, where it is left to the monitor: by how many they would be.

A switch is a gap in all of them at once, so it is rare: off above the limit, on again below four fifths of it, and not
within a quarter of an hour of the last change. Until the monitor has caught up, while groups come in by thousands, and
of polled groups but for the first time, nothing is held: there is no change yet that could be seen.
"""

import threading
from collections.abc import Iterable, Mapping
from typing import Final, Literal

from streaming.base.name_filter import Scope
from streaming.base.persistent_map import GroupMap
from streaming.board.board_group import BoardGroup
from streaming.end_offsets.store import Topic

Switch = bool | Literal["auto"]
"""On, off, or by how many series they would be."""

OF_AN_OFFSET: Final = 4
"""Offset, its age, lag, lag in time."""
OF_A_PARTITION: Final = 2
"""Where it begins and ends."""

ON_AGAIN_PERCENT: Final = 80
HELD_MS: Final = 15 * 60_000


class PartitionSeries:
    """The switch of one monitor; safe to use from several threads.

    Args:
        said: on, off, or `auto`: as many series as the limit says.
        limit: how many.
        scope: what has series at all.
    """

    def __init__(self, said: Switch, limit: int, scope: Scope) -> None:
        self._said = said
        self._limit = limit
        self._scope = scope
        self._lock = threading.Lock()
        self._seen: GroupMap[BoardGroup] = GroupMap()
        self._offsets = 0
        self._is_on = said is not False
        self._since_ms: int | None = None
        """When it was decided; None before the monitor has caught up."""

    def is_on(
        self,
        groups: GroupMap[BoardGroup],
        topics: Iterable[Topic],
        now_ms: int,
        *,
        is_ready: bool,
        is_polled: bool,
    ) -> bool:
        """Whether series per partition are shown.

        Args:
            groups: all that the board shows, also where a page is of one share of them.
            topics: that groups have to do with and that have series.
            now_ms: the wall clock.
            is_ready: whether the monitor has caught up.
            is_polled: whether groups are polled: there a rule takes offsets for a sign of life, so the first decision
                stays.
        """
        if isinstance(self._said, bool):
            return self._said
        with self._lock:
            self._count(groups)
            series = OF_AN_OFFSET * self._offsets + OF_A_PARTITION * sum(topic.partitions for topic in topics)
            if self._since_ms is None:
                self._is_on = series <= self._limit
                self._since_ms = now_ms if is_ready else None
            elif not is_polled and now_ms - self._since_ms >= HELD_MS and self._is_on != self._wanted(series):
                self._is_on, self._since_ms = not self._is_on, now_ms
            return self._is_on

    def _wanted(self, series: int) -> bool:
        if self._is_on:
            return series <= self._limit
        return series * 100 < self._limit * ON_AGAIN_PERCENT

    def _count(self, groups: GroupMap[BoardGroup]) -> None:
        for name, was, now in groups.since(self._seen):
            if self._scope.groups(name):
                self._offsets += self._of(now) - self._of(was)
        self._seen = groups

    def _of(self, group: BoardGroup | None) -> int:
        """Committed offsets of a group that have series."""
        return 0 if group is None else sum(of.count for of in group.buckets if self._scope.topics(of.topic))


def chosen(topics: Mapping[str, Topic], names: Iterable[str], scope: Scope) -> list[Topic]:
    """Of these names, the topics that are there and have series."""
    return [topics[name] for name in names if name in topics and scope.topics(name)]
