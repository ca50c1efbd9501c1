"""What /metrics says of each group's committed offsets and their lag: tables like those of `group_samples.py`."""

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from streaming.board.board_group import BoardGroup
from streaming.board.group_lag import TopicLag, total
from streaming.metrics.group_metrics import Moment, Samples
from streaming.metrics.text_format import label, of_group

COMMIT_AGE: Final = "kafka_group_commit_age_seconds"


class OffsetRow:
    """The offsets of one group at that moment, `exported` those of topics with series; `weight` is how many lines."""

    __slots__ = ("commits", "exported", "held", "label", "lags", "sums", "weight")

    def __init__(self, held: BoardGroup, moment: Moment) -> None:
        self.held = held
        self.label = of_group(held.name)
        self.lags = held.topic_lags(moment.board.ends, moment.now_ms)
        self.exported = [each for each in self.lags if moment.topics(each.topic)]
        self.sums = total(self.lags)
        self.commits = held.commits
        self.weight = 1 + sum(len(each.partitions) for each in self.exported)

    def good_until_ms(self, moment: Moment) -> float:
        """When time alone changes what is said of them, but for how old commits are; now for what changes at once."""
        return moment.now_ms if any(each.fleeting for each in self.lags) else math.inf


def _unsubscribed_lag(row: OffsetRow, _: Moment) -> float | None:
    if row.sums.records is None:
        return None
    unread = [each for each in row.lags if row.held.is_unsubscribed(each.topic)]
    return (total(unread).records or 0) if unread else 0


OFFSET_VALUES: Final[Mapping[str, Callable[[OffsetRow, Moment], float | None]]] = {
    "kafka_group_unsubscribed_lag": _unsubscribed_lag,
    "kafka_consumergroup_group_sum_lag": lambda row, _: row.sums.records,
    "kafka_consumergroup_group_max_lag": lambda row, _: row.sums.max_records,
    "kafka_consumergroup_group_max_lag_seconds": lambda row, _: row.sums.max_seconds,
}
"""Metrics with one sample a group; None for none."""


def _by_topic(figures: Mapping[str, float | None], moment: Moment) -> Samples:
    chosen = moment.topics
    return [(label(topic=topic), of) for topic, of in figures.items() if of is not None and chosen(topic)]


def _topic_sum_lag(row: OffsetRow, moment: Moment) -> Samples:
    if len(row.lags) == 1:
        return _by_topic({row.lags[0].topic: row.sums.records}, moment)
    return _by_topic({each.topic: total([each]).records for each in row.lags}, moment)


OFFSET_SAMPLES: Final[Mapping[str, Callable[[OffsetRow, Moment], Samples]]] = {
    "kafka_group_commits_total": lambda row, moment: _by_topic(
        {of: commits for of, (commits, _) in row.commits.items()}, moment
    ),
    "kafka_group_offset_rewinds_total": lambda row, moment: _by_topic(
        {of: back or None for of, (_, back) in row.commits.items()}, moment
    ),
    "kafka_consumergroup_group_topic_sum_lag": _topic_sum_lag,
}
"""Metrics with samples by topic."""


def _commit_ages(each: TopicLag, moment: Moment) -> Iterable[float | None]:
    return [None if ms < 0 else commit_age(ms, moment.now_ms) for ms in each.commit_times_ms]


def _stable_lags(each: TopicLag, _: Moment) -> Iterable[float | None]:
    """Where a transaction is open: elsewhere both ends are one, and the series would be the same twice."""
    return [stable if stable != records else None for stable, records in zip(each.stable, each.records, strict=True)]


PARTITION_COLUMNS: Final[Mapping[str, Callable[[TopicLag, Moment], Iterable[float | None]]]] = {
    COMMIT_AGE: _commit_ages,
    "kafka_consumergroup_group_offset": lambda each, _: each.committed,
    "kafka_consumergroup_group_lag": lambda each, _: each.records,
    "kafka_consumergroup_group_stable_lag": _stable_lags,
    "kafka_consumergroup_group_lag_seconds": lambda each, _: each.seconds,
}
"""Metrics with a sample for each committed offset."""


def commit_age(committed_ms: int, now_ms: int) -> float:
    """Seconds since a commit; 0 for one that the brokers' clocks say is yet to come."""
    return (now_ms - committed_ms) / 1000 if committed_ms < now_ms else 0.0
