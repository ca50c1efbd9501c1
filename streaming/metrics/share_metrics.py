"""What /metrics says of share groups: tables from a metric's name to where its samples come from.

Lag of share partitions has the names lag has, so who watches lag by those watches it too.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, NamedTuple

import numpy as np

from coordinator_model.state.share_partition import LIMIT, REJECTED, UNCLEAR
from streaming.board.share_partitions import ShareLag, orphans
from streaming.metrics.group_metrics import Moment, Samples, Source
from streaming.metrics.text_format import label


class _Value(NamedTuple):
    place: int
    labels: str
    value: float


def _samples(values: Iterable[_Value]) -> Iterator[Samples]:
    """Samples of values that are whole, or that are not, in the order of groups."""
    held = list(values)
    if held:
        labels = [of.labels for of in held]
        places = np.array([of.place for of in held], np.int64)
        yield Samples(places, (labels, np.arange(len(held))), np.array([of.value for of in held]))


def _in_scope(moment: Moment) -> Iterator[tuple[int, list[ShareLag]]]:
    """(place, share partitions of topics with series) of groups that have series."""
    for place, lags in moment.shares.items():
        if moment.in_scope[place]:
            yield place, [of for of in lags if moment.topics(of.topic)]


def _of_partitions(value: Callable[[ShareLag, int], float | None]) -> Source:
    """A sample of each share partition that has the figure."""

    def found(moment: Moment) -> Iterator[Samples]:
        yield from _samples(
            _Value(place, label(topic=of.topic, partition=str(of.figures.partition)), figure)
            for place, lags in _in_scope(moment)
            for of in lags
            if (figure := value(of, moment.now_ms)) is not None
        )

    return found


def _of_groups(value: Callable[[list[ShareLag], int], float | None]) -> Source:
    """A sample of each share group that has the figure, of all its topics."""

    def found(moment: Moment) -> Iterator[Samples]:
        yield from _samples(
            _Value(place, "", figure)
            for place, lags in moment.shares.items()
            if moment.in_scope[place] and (figure := value(lags, moment.now_ms)) is not None
        )

    return found


def _stalled_seconds(of: ShareLag, now_ms: int) -> float | None:
    if of.seconds is None:
        return None
    return 0.0 if of.stalled_since_ms is None else max(0.0, (now_ms - of.stalled_since_ms) / 1000)


def _longest_stalled(lags: list[ShareLag], now_ms: int) -> float | None:
    return max((seconds for of in lags if (seconds := _stalled_seconds(of, now_ms)) is not None), default=None)


def _by_topic(lags: list[ShareLag]) -> Mapping[str, list[ShareLag]]:
    found: dict[str, list[ShareLag]] = {}
    for of in lags:
        found.setdefault(of.topic, []).append(of)
    return found


def topic_sum_lag(moment: Moment) -> Iterator[Samples]:
    """Lag of topics in share groups, as that of others."""
    yield from _samples(
        _Value(place, label(topic=topic), sum(of.records or 0 for of in of_topic))
        for place, lags in _in_scope(moment)
        for topic, of_topic in _by_topic(lags).items()
        if any(of.records is not None for of in of_topic) and not any(of.is_unknown for of in of_topic)
    )


def _archived(moment: Moment) -> Iterator[Samples]:
    """A counter begins with its first count."""
    yield from _samples(
        _Value(place, label(topic=topic, why=why), count)
        for place, lags in _in_scope(moment)
        for topic, of_topic in _by_topic(lags).items()
        for why in (LIMIT, REJECTED, UNCLEAR)
        if (count := sum(getattr(of.figures, why) for of in of_topic))
    )


SHARE_LAG: Final[Mapping[str, Source]] = {
    "kafka_consumergroup_group_lag": _of_partitions(lambda of, _: of.records),
    "kafka_consumergroup_group_lag_seconds": _of_partitions(lambda of, _: of.seconds),
}
"""Metrics that other groups have of each committed offset, with a sample for each share partition."""

SHARE_METRICS: Final[Mapping[str, Source]] = {
    "kafka_share_partition_start_offset": _of_partitions(lambda of, _: of.figures.start_offset),
    "kafka_share_partition_redelivered_records": _of_partitions(lambda of, _: of.figures.redelivered),
    "kafka_share_partition_max_delivery_count": _of_partitions(lambda of, _: of.figures.max_delivery_count),
    "kafka_share_partition_stalled_seconds": _of_partitions(_stalled_seconds),
    "kafka_share_records_archived_total": _archived,
    "kafka_share_group_redelivered_records": _of_groups(
        lambda lags, _: sum(of.figures.redelivered for of in lags) if lags else None
    ),
    "kafka_share_group_stalled_seconds": _of_groups(_longest_stalled),
}
"""Metrics of share groups alone."""


def share_orphans(moment: Moment) -> int | None:
    """Share partitions that are shown in no group; None where the share coordinator's log is not read."""
    return orphans(moment.shown.shares, moment.shown.groups, moment.board.ends)
