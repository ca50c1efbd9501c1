"""What /metrics says of each group's committed offsets and their lag: tables as in `group_metrics.py`."""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

import numpy as np

from streaming.board.group_columns import Flags, Integers
from streaming.board.lag_columns import UNKNOWN, begins_of, known
from streaming.metrics import share_metrics
from streaming.metrics.group_metrics import Figures, Moment, Samples, Source, of_groups
from streaming.metrics.text_format import label


def _chosen(moment: Moment) -> Flags:
    """Whether a topic of the table has series."""
    return np.array([moment.topics(topic) for topic in moment.lags.table.topics], np.bool_)


def _by_topic(moment: Moment, owners: Integers, topics: Integers, values: Integers, where: Flags) -> Samples:
    """Samples of groups and topics in scope, where that holds."""
    rows = np.flatnonzero(where & moment.in_scope[owners] & _chosen(moment)[topics])
    labels = [label(topic=topic) for topic in moment.lags.table.topics]
    return Samples(owners[rows], (labels, topics[rows]), values[rows])


def _topic_sum_lag(moment: Moment) -> Iterator[Samples]:
    table, records = moment.lags.table, moment.lags.run_records
    yield _by_topic(moment, table.owners[table.runs], table.topic_of[table.runs], records, records != UNKNOWN)
    yield from share_metrics.topic_sum_lag(moment)


def _counts(column: int, fewest: int) -> Source:
    """Commits, or rewinds, where there are so many at least."""

    def found(moment: Moment) -> Iterator[Samples]:
        owners, topics, *counts = moment.lags.table.counted
        begins = begins_of(owners, topics)
        sums = np.add.reduceat(counts[column], begins) if len(begins) else begins
        yield _by_topic(moment, owners[begins], topics[begins], sums, sums >= fewest)

    return found


OFFSET_METRICS: Final[Mapping[str, Source]] = {
    "kafka_group_commits_total": _counts(0, 0),
    "kafka_group_offset_rewinds_total": _counts(1, 1),
    "kafka_group_unsubscribed_lag": lambda moment: [
        of_groups(moment, moment.lags.sum_records != UNKNOWN, moment.lags.unread_records)
    ],
    "kafka_consumergroup_group_sum_lag": lambda moment: [of_groups(moment, *known(moment.lags.sum_records))],
    "kafka_group_unknown_lag_partitions": lambda moment: [
        of_groups(moment, moment.lags.unknown_offsets > 0, moment.lags.unknown_offsets)
    ],
    "kafka_consumergroup_group_max_lag": lambda moment: [of_groups(moment, *known(moment.lags.max_records))],
    "kafka_consumergroup_group_max_lag_seconds": lambda moment: [of_groups(moment, *known(moment.lags.max_seconds))],
    "kafka_consumergroup_group_topic_sum_lag": _topic_sum_lag,
}
"""Metrics with a sample for each group, or for each of its topics."""


def rows_in_scope(moment: Moment) -> Integers:
    """The offsets that have series of their own."""
    table = moment.lags.table
    return np.flatnonzero(moment.in_scope[table.owners] & _chosen(moment)[table.topic_of])


def _commit_ages(moment: Moment) -> tuple[Flags, Figures]:
    times_ms = moment.lags.table.times_ms
    return times_ms >= 0, np.maximum(0, moment.now_ms - times_ms) / 1000


def _stable_lags(moment: Moment) -> tuple[Flags, Figures]:
    """Where a transaction is open: elsewhere both ends are one, and the series would be the same twice."""
    lags = moment.lags
    return lags.stable != lags.records, lags.stable


PARTITION_METRICS: Final[Mapping[str, Callable[[Moment], tuple[Flags, Figures]]]] = {
    "kafka_group_commit_age_seconds": _commit_ages,
    "kafka_consumergroup_group_offset": lambda moment: (
        # -1 and -2, which clients commit that have read nothing, are no offset.
        moment.lags.table.offsets >= 0,
        moment.lags.table.offsets,
    ),
    "kafka_consumergroup_group_lag": lambda moment: known(moment.lags.records),
    "kafka_consumergroup_group_stable_lag": _stable_lags,
    "kafka_consumergroup_group_lag_seconds": lambda moment: known(moment.lags.seconds),
}
"""Metrics with a sample for each committed offset: whether it is there, and its value."""
