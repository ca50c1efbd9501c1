"""One group as the board holds it: its state, its offsets, and what is figured out from both.

Never changed once made: a batch that touches the group puts another one in its place, so a reader may keep what it
got. What needs neither a clock nor a log end is worked out once.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from coordinator_model import holders, lag, subscriptions, unassigned, view
from coordinator_model.group_state import CLASSIC, CONSUMER, STREAMS, GroupState
from coordinator_model.groups.consumer import preferred_assignor
from coordinator_model.lag import Lag, TotalLag
from coordinator_model.leftovers import live_records
from coordinator_model.offsets import CommittedOffset, OffsetBucket
from coordinator_model.record_types import RecordType
from coordinator_model.unassigned import Unheld
from streaming.log_ends import LogEnds, Topic

BucketKey = tuple[str, int]
TopicNames = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class OffsetLag:
    """One committed offset with its lag; `log_end` and `log_start` are None where they are not known."""

    topic: str
    partition: int
    committed: CommittedOffset
    lag: Lag
    log_end: int | None
    log_start: int | None


class HeldGroup:
    """A group's state and its offset buckets by (topic, bucket number)."""

    def __init__(self, state: GroupState, buckets: Mapping[BucketKey, OffsetBucket]) -> None:
        self.state = state
        self.buckets = buckets
        self._unheld: tuple[Mapping[str, Topic] | None, Unheld | None] = (None, None)

    @cached_property
    def offsets(self) -> tuple[tuple[str, int, CommittedOffset], ...]:
        """(topic, partition, committed offset), by topic and partition."""
        return tuple(
            (topic, partition, committed)
            for (topic, _), bucket in sorted(self.buckets.items())
            for partition, committed in sorted(bucket.offsets.items())
        )

    @cached_property
    def group_state(self) -> str:
        """The state as Kafka's tools print it."""
        return view.group_state(self.state)

    @cached_property
    def subscribed_topics(self) -> frozenset[str]:
        """Names of the topics that members subscribe to, as far as the log tells."""
        return subscriptions.subscribed_topics(self.state.membership)

    @cached_property
    def assigned(self) -> Mapping[str, frozenset[int]]:
        """Topic (name in a classic group, id in any other) → partitions that some member holds; not of streams."""
        return holders.held(self.state.membership)

    @cached_property
    def topic_names(self) -> frozenset[str]:
        """Names of the topics the group has to do with: commits, subscriptions, classic assignments."""
        names = {topic for topic, _, _ in self.offsets} | self.subscribed_topics
        return frozenset(names if self.state.membership.modern_group is not None else names | self.assigned.keys())

    @cached_property
    def topic_ids(self) -> frozenset[str]:
        """Ids of the topics that stand in assignments and targets."""
        modern = self.state.membership.modern_group
        if modern is None or modern.family == STREAMS:
            return frozenset()
        return frozenset([*self.assigned, *(topic for target in modern.targets.values() for topic in target)])

    @cached_property
    def commits(self) -> Mapping[str, tuple[int, int]]:
        """Topic → (commits, rewinds), of topics the group still has to do with."""
        totals: dict[str, tuple[int, int]] = {}
        for (topic, _), bucket in sorted(self.buckets.items()):
            if topic in self.topic_names:
                commits, rewinds = totals.get(topic, (0, 0))
                totals[topic] = (commits + bucket.commits, rewinds + bucket.rewinds)
        return totals

    @cached_property
    def new_protocol_records(self) -> Mapping[RecordType, int]:
        """Live records of the new protocols the group has, by type; types it has none of are absent."""
        return live_records(self.state.membership)

    @cached_property
    def offset_versions(self) -> Mapping[int, int]:
        """Value version → how many of the group's committed offsets were written in it."""
        committed = (offset for bucket in self.buckets.values() for offset in bucket.offsets.values())
        return dict(sorted(Counter(offset.value_version for offset in committed).items()))

    @property
    def protocol(self) -> str | None:
        """The assignor: chosen by a classic group, preferred by another; None for the broker's default."""
        modern = self.state.membership.modern_group
        if modern is not None:
            return preferred_assignor(modern)
        return None if self.state.membership.classic is None else self.state.membership.classic.protocol

    def group_view(self, topic_names: TopicNames, now_ms: int | None = None) -> dict[str, Any]:
        """The contract's GROUP at a moment; without one, at that of its last record."""
        return view.group_view(self.state, self.offsets, topic_names, now_ms)

    def unheld(self, topics: Mapping[str, Topic]) -> Unheld | None:
        """Partitions of subscribed topics that no member holds; None where that cannot be told (`unassigned.py`).

        Asked with every scrape and every second, of a group and topics that rarely change.
        """
        of_topics, found = self._unheld
        if of_topics is not topics:
            found = unassigned.unheld(self.state.membership, topics, self.assigned)
            self._unheld = (topics, found)
        return found

    def unassigned_partitions(self, topics: Mapping[str, Topic]) -> int | None:
        """How many partitions of subscribed topics no member holds; None where that cannot be told."""
        found = self.unheld(topics)
        return None if found is None else sum(map(len, found.values()))

    @cached_property
    def newest_commit_ms(self) -> int | None:
        """When any of its offsets was last committed; None where none was, or none says when."""
        times = (committed.commit_timestamp_ms for _, _, committed in self.offsets)
        return max((ms for ms in times if ms >= 0), default=None)

    @cached_property
    def unsubscribed_topics(self) -> frozenset[str]:
        """Topics of committed offsets that no member reads any more, as far as that can be told."""
        reads = subscriptions.reader(self.state.membership)
        return frozenset(topic for topic in {topic for topic, _, _ in self.offsets} if reads(topic) is False)

    def lags_somewhere(self, ends: LogEnds) -> bool:
        """Whether records of a topic that members read wait for it; quicker to answer than how many."""
        with ends.lock:
            for topic, partition, committed in self.offsets:
                known = ends.partition(topic, partition)
                end = None if known is None else known.last_stable
                if end is not None and end > committed.offset and topic not in self.unsubscribed_topics:
                    return True
        return False

    def lags(self, ends: LogEnds, now_ms: int) -> list[OffsetLag]:
        """Lag of every committed offset at this moment."""
        with ends.lock:
            return [self._lag(ends, topic, partition, held, now_ms) for topic, partition, held in self.offsets]

    @staticmethod
    def _lag(ends: LogEnds, topic: str, partition: int, committed: CommittedOffset, now_ms: int) -> OffsetLag:
        known, described = ends.partition(topic, partition), ends.topic(topic)
        same = committed.topic_id is None or described is None or committed.topic_id == described.id
        if known is None:
            figure = lag.measure(committed.offset, None, None, now_ms, same_topic=same)
            return OffsetLag(topic, partition, committed, figure, None, None)
        figure = lag.measure(committed.offset, known.last_stable, known.history, now_ms, same_topic=same)
        return OffsetLag(topic, partition, committed, figure, known.last_stable, known.earliest)


def total(lags: list[OffsetLag]) -> TotalLag:
    """Sum and maxima of a group's or a topic's lag."""
    return lag.total(each.lag for each in lags)


def is_migrating_kind(state: GroupState) -> bool:
    """Whether the way from the classic to the consumer protocol concerns the group at all."""
    return state.type in (CLASSIC, CONSUMER)
