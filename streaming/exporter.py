"""The board as Prometheus samples, worked out when they are scraped.

What is not known has no sample: no -1, no NaN, no 0 in its place. What is gone has none either, because every scrape
starts from the groups there are, not from series made earlier.

A page may have a million lines, so it is written and sent piece by piece: it is nowhere as a whole, and no other thread
waits for more than a piece.
"""

import time
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Final, TypeVar

from prometheus_client.core import Metric
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.openmetrics.exposition import CONTENT_TYPE_LATEST as OPENMETRICS_CONTENT_TYPE
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector

from streaming import exposition
from streaming.board import Board
from streaming.exposition import END_OF_OPENMETRICS, HistogramText, labelled, lines
from streaming.group_samples import (
    DURATION_BOUNDS,
    GROUP_SAMPLES,
    GROUP_VALUES,
    PARTITION_COLUMNS,
    Moment,
    Row,
    Samples,
)
from streaming.held_group import TopicLag
from streaming.log_ends import LogEnds, PartitionEnds
from streaming.metrics import CATALOGUE
from streaming.monitor_samples import HISTOGRAMS, MONITOR_SAMPLES, TOPIC_FIGURES

T = TypeVar("T")

_DURATION: Final = "kafka_group_rebalance_duration_seconds"

ROWS_A_PIECE: Final = 1_000
_SENT_AT_ONCE: Final = 262_144


class Exporter(Collector):
    """A prometheus-client collector over a board.

    Args:
        board: what to show.
        cluster: value of the labels `cluster` and `cluster_name`.
        partition_series: whether there are series per partition; sums and maxima are there either way.
        rebalance_histogram: whether rebalance durations are a histogram per group.
        clock_ms: the wall clock, in milliseconds.
    """

    def __init__(
        self,
        board: Board,
        cluster: str,
        *,
        partition_series: bool = True,
        rebalance_histogram: bool = True,
        clock_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        self._board = board
        self.cluster = cluster
        self._partition_series = partition_series
        self._rebalance_histogram = rebalance_histogram
        self._clock_ms = clock_ms
        self._durations = HistogramText(_DURATION, cluster, DURATION_BOUNDS)

    def describe(self) -> Iterable[Metric]:
        """Nothing: prometheus-client would otherwise collect once to learn the names."""
        return []

    def collect(self) -> Iterable[Metric]:
        """All metrics that have a sample at this moment, for a registry that holds other collectors too."""
        return text_string_to_metric_families("".join(self._texts(openmetrics=False)))

    def render(self, accept: str = "") -> tuple[bytes, str]:
        """The page of /metrics, as OpenMetrics if the Accept header names it, and its content type."""
        pieces, content_type = self.pieces(accept)
        return b"".join(pieces), content_type

    def pieces(self, accept: str = "") -> tuple[Iterator[bytes], str]:
        """The same, to be sent piece by piece; no group changes between the first and the last."""
        openmetrics = "application/openmetrics-text" in accept
        content_type = OPENMETRICS_CONTENT_TYPE if openmetrics else CONTENT_TYPE_PLAIN_0_0_4
        return _gathered(self._texts(openmetrics=openmetrics)), content_type

    def _texts(self, *, openmetrics: bool) -> Iterator[str]:
        moment = Moment(self._board, self._clock_ms())
        rows: list[Row] = []
        for piece in _pieces(moment.shown.groups.values()):
            rows += [Row(held, moment) for held in piece]
            yield ""
        for name in CATALOGUE:
            before = exposition.head(name, openmetrics=openmetrics)
            for text in self._metric(name, rows, moment):
                yield before + text if text else ""
                before = "" if text else before
        if openmetrics:
            yield END_OF_OPENMETRICS

    def _metric(self, name: str, rows: list[Row], moment: Moment) -> Iterator[str]:
        """The samples of one metric, in pieces."""
        begin = exposition.start(name, self.cluster)
        if name in GROUP_VALUES:
            return _values(begin, rows, GROUP_VALUES[name], moment)
        if name in GROUP_SAMPLES:
            return _samples(begin, rows, GROUP_SAMPLES[name], moment)
        if CATALOGUE[name].per_partition:
            return self._per_partition(name, begin, rows, moment)
        if name == _DURATION:
            return self._durations_of(rows if self._rebalance_histogram else [])
        if name in HISTOGRAMS:
            distribution = HISTOGRAMS[name](self._board)
            return iter([HistogramText(name, self.cluster, distribution.bounds).text("", *distribution.read())])
        return iter([lines(begin, MONITOR_SAMPLES[name](moment))])

    def _per_partition(self, name: str, begin: str, rows: list[Row], moment: Moment) -> Iterator[str]:
        if not self._partition_series:
            return iter(())
        if name in PARTITION_COLUMNS:
            return _columns(begin, rows, PARTITION_COLUMNS[name], moment)
        return _topics(begin, sorted(moment.sums.topic_names), TOPIC_FIGURES[name], self._board.ends)

    def _durations_of(self, rows: list[Row]) -> Iterator[str]:
        for piece in _pieces(rows):
            counted = [(row.label, row.of.counters) for row in piece]
            yield "".join(
                [self._durations.text(label, of.duration_buckets, of.duration_sum_ms / 1000) for label, of in counted]
            )


def _values(begin: str, rows: list[Row], value: Callable[[Row, Moment], float | None], moment: Moment) -> Iterator[str]:
    for piece in _pieces(rows):
        yield lines(begin, [(row.label, of) for row in piece if (of := value(row, moment)) is not None])


def _samples(begin: str, rows: list[Row], samples: Callable[[Row, Moment], Samples], moment: Moment) -> Iterator[str]:
    for piece in _pieces(rows):
        yield lines(begin, [(row.label + more, of) for row in piece for more, of in samples(row, moment)])


def _columns(
    begin: str, rows: list[Row], column: Callable[[TopicLag, Moment], Iterable[float | None]], moment: Moment
) -> Iterator[str]:
    for row in rows:
        for each in row.lags:
            label = row.label + labelled(topic=each.topic)
            yield _by_partition(begin + label, zip(each.partitions, column(each, moment), strict=True))


def _topics(
    begin: str, topics: Iterable[str], figure: Callable[[PartitionEnds], float | None], ends: LogEnds
) -> Iterator[str]:
    for topic in topics:
        with ends.lock:
            figures = [(partition, figure(known)) for partition, known in ends.of_topic(topic).items()]
        yield _by_partition(begin + labelled(topic=topic), figures)


def _by_partition(begin: str, figures: Iterable[tuple[int, float | None]]) -> str:
    """Samples of a topic's partitions: what they have in common is put in between all at once."""
    told = [f'{partition}"}} {of}\n' for partition, of in figures if of is not None]
    return f'{begin},partition="'.join(["", *told]) if told else ""


def _pieces(items: Iterable[T]) -> Iterator[list[T]]:
    """Some of them at a time."""
    rest = iter(items)
    while piece := list(islice(rest, ROWS_A_PIECE)):
        yield piece


def _gathered(texts: Iterable[str]) -> Iterator[bytes]:
    """Texts in pieces that are worth sending."""
    held: list[str] = []
    size = 0
    for text in texts:
        if text:
            held.append(text)
            size += len(text)
        if size >= _SENT_AT_ONCE:
            yield "".join(held).encode()
            held, size = [], 0
    yield "".join(held).encode()
