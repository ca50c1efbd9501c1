"""One group as the board holds it: its state as a snapshot, its offsets, and what is figured out from both.

Never changed once made: a batch that touches the group puts another one in its place, so a reader may keep what it
got. What needs neither a clock nor a log end is worked out once, when it is first asked for (`group_summary.py`).
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from coordinator_model import lag, unassigned, view
from coordinator_model.group_state import CLASSIC, CONSUMER, GroupState
from coordinator_model.lag import Lag, TotalLag, behind
from coordinator_model.offsets import CommittedOffset
from coordinator_model.unassigned import Unheld
from streaming.group_summary import GroupSummary, state_of, summary
from streaming.held_offsets import HeldBucket
from streaming.log_ends import LogEnds, PartitionEnds, Topic

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


@dataclass(slots=True)
class TopicLag:
    """Lag of a group's committed offsets in one topic, in columns: much quicker to make than an `OffsetLag` for each.

    `records` and `seconds` are None where they are not known; `lost` counts offsets whose records are deleted by now,
    `ahead` those beyond the sampled end, of which time tells whether they are fresher or of another log. `fleeting`
    says whether a figure may be another later though neither commit nor topic change.
    """

    topic: str
    partitions: list[int] = field(default_factory=list)
    committed: list[int] = field(default_factory=list)
    commit_times_ms: list[int] = field(default_factory=list)
    records: list[int | None] = field(default_factory=list)
    seconds: list[float | None] = field(default_factory=list)
    lost: int = 0
    ahead: int = 0
    fleeting: bool = False


class HeldState:
    """A group's state but for its offsets, as long as it stays as it is."""

    __slots__ = ("_summary", "_unheld", "text")

    def __init__(self, text: str) -> None:
        """From the text of `snapshot.dump_group`."""
        self.text = text
        self._summary: GroupSummary | None = None
        self._unheld: tuple[Mapping[str, Topic] | None, Unheld | None] = (None, None)

    @property
    def summary(self) -> GroupSummary:
        """What is asked of every group."""
        found = self._summary
        if found is None:
            found = self._summary = summary(state_of(self.text))
        return found

    def unheld(self, topics: Mapping[str, Topic]) -> Unheld | None:
        """See `HeldGroup.unheld`."""
        of_topics, found = self._unheld
        if of_topics is not topics:
            of = self.summary
            found = (
                unassigned.unheld_of(of.subscribed_topics, of.assigned, topics, by_id=of.is_modern)
                if of.assignment_can_be_told
                else None
            )
            self._unheld = (topics, found)
        return found


class HeldGroup:
    """A group's name, its state, and its offset buckets by topic and number."""

    __slots__ = ("buckets", "kept", "name")

    def __init__(self, name: str, kept: HeldState, buckets: tuple[HeldBucket, ...]) -> None:
        self.name = name
        self.kept = kept
        self.buckets = buckets

    @property
    def state(self) -> GroupState:
        """The whole state, made when it is asked for; not to be changed."""
        return state_of(self.kept.text)

    @property
    def summary(self) -> GroupSummary:
        """What is asked of every group."""
        return self.kept.summary

    @property
    def offsets(self) -> tuple[tuple[str, int, CommittedOffset], ...]:
        """(topic, partition, committed offset), by topic and partition; made when it is asked for."""
        return tuple((bucket.topic, *each) for bucket in self.buckets for each in bucket.offsets())

    @property
    def group_state(self) -> str:
        """The state as Kafka's tools print it."""
        return self.summary.group_state

    @property
    def committed_topics(self) -> frozenset[str]:
        """Names of the topics it has committed offsets in."""
        return frozenset(bucket.topic for bucket in self.buckets if bucket.count)

    @property
    def topic_names(self) -> frozenset[str]:
        """Names of the topics the group has to do with: commits, subscriptions, classic assignments."""
        of = self.summary
        names = self.committed_topics | of.subscribed_topics
        return names if of.is_modern else names | of.assigned.keys()

    @property
    def commits(self) -> Mapping[str, tuple[int, int]]:
        """Topic → (commits, rewinds), of topics the group still has to do with."""
        totals: dict[str, tuple[int, int]] = {}
        for bucket in self.buckets:
            if bucket.count or bucket.topic in self.topic_names:
                commits, rewinds = totals.get(bucket.topic, (0, 0))
                totals[bucket.topic] = (commits + bucket.commits, rewinds + bucket.rewinds)
        return totals

    @property
    def offset_versions(self) -> Mapping[int, int]:
        """Value version → how many of the group's committed offsets were written in it."""
        versions: Counter[int] = Counter()
        for bucket in self.buckets:
            versions.update(bucket.versions)
        return dict(sorted(versions.items()))

    def group_view(self, topic_names: TopicNames, now_ms: int | None = None) -> dict[str, Any]:
        """The contract's GROUP at a moment; without one, at that of its last record."""
        return view.group_view(self.state, self.offsets, topic_names, now_ms)

    def unheld(self, topics: Mapping[str, Topic]) -> Unheld | None:
        """Partitions of subscribed topics that no member holds; None where that cannot be told (`unassigned.py`).

        Asked with every scrape and every second, of a group and topics that rarely change.
        """
        return self.kept.unheld(topics)

    def unassigned_partitions(self, topics: Mapping[str, Topic]) -> int | None:
        """How many partitions of subscribed topics no member holds; None where that cannot be told."""
        found = self.unheld(topics)
        return None if found is None else sum(map(len, found.values()))

    @property
    def newest_commit_ms(self) -> int | None:
        """When any of its offsets was last committed; None where none was, or none says when."""
        newest = max((bucket.newest_commit_ms for bucket in self.buckets), default=-1)
        return newest if newest >= 0 else None

    def is_unsubscribed(self, topic: str) -> bool:
        """Whether no member reads this topic of committed offsets any more, as far as that can be told."""
        of = self.summary
        return of.all_topics_known and topic not in of.subscribed_topics

    def lags_somewhere(self, ends: LogEnds) -> bool:
        """Whether records of a topic that members read wait for it; quicker to answer than how many."""
        with ends.lock:
            for bucket in self.buckets:
                topic = bucket.topic
                partitions, committed, _ = bucket.columns
                for partition, offset in zip(partitions, committed, strict=True):
                    known = ends.partition(topic, partition)
                    end = None if known is None else known.last_stable
                    if end is not None and end > offset and not self.is_unsubscribed(topic):
                        return True
        return False

    def lags(self, ends: LogEnds, now_ms: int) -> list[OffsetLag]:
        """Lag of every committed offset at this moment, with all there is to say of it."""
        with ends.lock:
            return [self._lag(ends, topic, partition, held, now_ms) for topic, partition, held in self.offsets]

    def topic_lags(self, ends: LogEnds, now_ms: int) -> list[TopicLag]:
        """The figures of the same, by topic."""
        found: list[TopicLag] = []
        with ends.lock:
            for bucket in self.buckets:
                if not found or found[-1].topic != bucket.topic:
                    found.append(TopicLag(bucket.topic))
                _measure(found[-1], bucket, ends, now_ms)
        return [each for each in found if each.partitions]

    @staticmethod
    def _lag(ends: LogEnds, topic: str, partition: int, committed: CommittedOffset, now_ms: int) -> OffsetLag:
        known, described = ends.partition(topic, partition), ends.topic(topic)
        same = committed.topic_id is None or described is None or committed.topic_id == described.id
        if known is None:
            figure = lag.measure(committed.offset, None, None, now_ms, same_topic=same)
            return OffsetLag(topic, partition, committed, figure, None, None)
        figure = lag.measure(committed.offset, known.last_stable, known.history, now_ms, same_topic=same)
        if figure.method == lag.AHEAD_OF_END and _is_beyond(known, committed.offset, committed.commit_timestamp_ms):
            figure = lag.BEYOND
        return OffsetLag(topic, partition, committed, figure, known.last_stable, known.earliest)


def _measure(found: TopicLag, bucket: HeldBucket, ends: LogEnds, now_ms: int) -> None:
    """Add the lag of a bucket's offsets; the lock of `ends` is held."""
    topic, described, ids = bucket.topic, ends.topic(bucket.topic), bucket.topic_ids
    known_id = None if described is None else described.id
    partitions, committed, times_ms = bucket.columns
    count = len(partitions)
    same = [id_ is None or known_id in (None, id_) for id_ in (ids if isinstance(ids, tuple) else (ids,) * count)]
    known_of, records, seconds = ends.known_of(topic).get, found.records.append, found.seconds.append
    for partition, offset, is_same, time_ms in zip(partitions, committed, same, times_ms, strict=True):
        known = known_of(partition)
        if known is None or offset < 0:
            records(None)
            seconds(None)
            continue
        found.lost += known.earliest is not None and offset < known.earliest
        end = known.last_stable
        if end is None or not is_same or (offset > end and _is_beyond(known, offset, time_ms)):
            records(None)
            seconds(None)
            # It is beyond the end until there is more of the log.
            found.fleeting |= end is not None and is_same
            continue
        is_ahead = offset > end
        found.ahead += is_ahead
        waiting, age = behind(offset, end, known.history, now_ms)
        # What was not sampled in time will not be known later either.
        found.fleeting |= is_ahead or (waiting > 0 and age is not None)
        records(waiting)
        seconds(age)
    found.partitions.extend(partitions)
    found.committed.extend(committed)
    found.commit_times_ms.extend(times_ms)


def _is_beyond(known: PartitionEnds, offset: int, committed_ms: int) -> bool:
    return lag.is_beyond(offset, known.high_watermark, committed_ms, known.sampled_ms)


def total(lags: list[TopicLag]) -> TotalLag:
    """Sum and maxima of the lag of some topics."""
    return lag.total_of(_joined(each.records for each in lags), _joined(each.seconds for each in lags))


def is_migrating_kind(type_: str) -> bool:
    """Whether the way from the classic to the consumer protocol concerns groups of this type at all."""
    return type_ in (CLASSIC, CONSUMER)


def _joined(columns: "Iterator[list[Any]]") -> list[Any]:
    return [figure for column in columns for figure in column]
