"""One group as the board holds it: its state as a snapshot, its offsets, and what is figured out from both.

Never changed once made: a batch that touches the group puts another one in its place, so a reader may keep what it
got. What needs neither a clock nor a log end is worked out once, when it is first asked for (`group_summary.py`).
"""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from coordinator_model.state.offsets import CommittedOffset
from coordinator_model.views import group_view
from coordinator_model.views.group_view import TopicNames
from streaming.board.group_summary import StateText
from streaming.board.offset_columns import OffsetColumns
from streaming.board.share_partitions import NO_SHARES, OfGroup, share_views
from streaming.end_offsets.store import Topic


class BoardGroup(StateText):
    """A group's name, its state, its offset buckets by topic and number, and its share partitions."""

    __slots__ = ("buckets", "name", "shares")

    def __init__(
        self, name: str, state: StateText, buckets: tuple[OffsetColumns, ...], shares: OfGroup = NO_SHARES
    ) -> None:
        self.block, self.at = state.block, state.at
        self.name = name
        self.buckets = buckets
        self.shares = shares

    @property
    def offsets(self) -> tuple[tuple[str, int, CommittedOffset], ...]:
        """(topic, partition, committed offset), by topic and partition; made when it is asked for."""
        return tuple((bucket.topic, *each) for bucket in self.buckets for each in bucket.offsets())

    @property
    def topic_names(self) -> frozenset[str]:
        """Names of the topics the group has to do with: commits, subscriptions, classic assignments."""
        return self.topics.names.union([bucket.topic for bucket in self.buckets if bucket.count])

    @property
    def offset_versions(self) -> Mapping[int, int]:
        """Value version → how many of the group's committed offsets were written in it."""
        versions: Counter[int] = Counter()
        for bucket in self.buckets:
            versions.update(bucket.versions)
        return dict(sorted(versions.items()))

    def group_view(self, topic_names: TopicNames, now_ms: int | None = None) -> dict[str, Any]:
        """GROUP at a moment; without one, at its last record's."""
        view = group_view.group_view(self.state, self.offsets, topic_names, now_ms)
        return {**view, "share_partitions": share_views(self.shares, topic_names)}

    def unassigned_partitions(self, topics: Mapping[str, Topic]) -> int | None:
        """How many partitions of subscribed topics no member holds; None where that is not known."""
        found = self.topics.unheld(topics)
        return None if found is None else sum(map(len, found.values()))

    @property
    def newest_commit_ms(self) -> int | None:
        """When any of its offsets was last committed; None where none was, or none says when."""
        newest = max((bucket.newest_commit_ms for bucket in self.buckets), default=-1)
        return newest if newest >= 0 else None
