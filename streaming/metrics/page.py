"""The text of /metrics, written when it is asked for: columns put together to lines by Arrow's kernels.

A line is what its metric's lines begin with, the labels, and the value. Labels of groups and offsets are columns made
once for a page; three hundred thousand lines take some hundredths of a second, so no text is kept. It comes in pieces,
so that a page of millions of lines is never in memory as a whole.
"""

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streaming.board.group_columns import Integers
from streaming.metrics.group_metrics import (
    DURATION,
    DURATION_BOUNDS,
    GROUP_METRICS,
    Figures,
    Moment,
    Samples,
    durations,
)
from streaming.metrics.monitor_metrics import HISTOGRAMS, MONITOR_SAMPLES, TOPIC_FIGURES
from streaming.metrics.offset_metrics import OFFSET_METRICS, PARTITION_METRICS, rows_in_scope
from streaming.metrics.text_format import escaped_all, label, lines, start

# The C library's allocator, which was as quick as Arrow's own, and also has what NumPy and Python take for a page.
pa.set_memory_pool(pa.system_memory_pool())

LINES_A_PIECE: Final = 50_000

GROUP_SOURCES: Final = {**GROUP_METRICS, **OFFSET_METRICS}

Column = Any
"""An array of Arrow, which has no types."""


class Page:
    """A page of one moment.

    Args:
        cluster: value of the labels `cluster` and `cluster_name`.
        moment: what it is of.
    """

    def __init__(self, cluster: str, moment: Moment) -> None:
        self._cluster = cluster
        self._moment = moment

    def text(self, name: str) -> Iterator[bytes | memoryview]:
        """The samples of a metric, in pieces; none where it has none."""
        begin = start(name, self._cluster)
        if name in GROUP_SOURCES:
            for samples in GROUP_SOURCES[name](self._moment):
                yield from self._of_groups(begin, samples)
        elif name in PARTITION_METRICS:
            yield from self._of_offsets(begin, *PARTITION_METRICS[name](self._moment))
        elif name == DURATION:
            places, counts, sums = durations(self._moment)
            for rows in _pieces(np.arange(len(places))):
                of = self._groups.take(pa.array(places[rows]))
                yield self._histogram(name, DURATION_BOUNDS, of, counts[rows], sums[rows].tolist())
        elif name in TOPIC_FIGURES:
            yield from self._of_topics(begin, name)
        elif name in HISTOGRAMS:
            distribution = HISTOGRAMS[name](self._moment.board)
            counted, sum_seconds = distribution.read()
            yield self._histogram(name, distribution.bounds, _strings([""]), np.array([counted]), [sum_seconds])
        else:
            yield lines(begin, MONITOR_SAMPLES[name](self._moment)).encode()

    @cached_property
    def _groups(self) -> Column:
        """The labels of all groups."""
        return pc.binary_join_element_wise(',group="', _strings(escaped_all(self._moment.groups.names)), '"', "")

    @cached_property
    def _offsets(self) -> list[tuple[Integers, Column]]:
        """Rows of offsets that have series, and their labels, in pieces."""
        table, found = self._moment.lags.table, []
        topics = _strings([f'{label(topic=topic)},partition="' for topic in table.topics])
        for rows in _pieces(rows_in_scope(self._moment)):
            of = (
                self._groups.take(pa.array(table.owners[rows])),
                topics.take(pa.array(table.topic_of[rows])),
                _numbers(table.partitions[rows]),
            )
            found.append((rows, pc.binary_join_element_wise(*of, '"', "")))
        return found

    def _of_groups(self, begin: str, samples: Samples) -> Iterator[memoryview]:
        for rows in _pieces(np.arange(len(samples.groups))):
            labels = [self._groups.take(pa.array(samples.groups[rows]))]
            if isinstance(samples.labels, str):
                labels += [samples.labels] if samples.labels else []
            else:
                texts, places = samples.labels
                labels.append(_strings(texts).take(pa.array(places[rows])))
            yield _lines(begin, labels, samples.values[rows])

    def _of_offsets(self, begin: str, where: Figures, values: Figures) -> Iterator[memoryview]:
        for rows, labels in self._offsets:
            there = where[rows]
            if there.all():
                yield _lines(begin, [labels], values[rows])
            elif there.any():
                yield _lines(begin, [labels.filter(pa.array(there))], values[rows[there]])

    def _histogram(
        self, name: str, bounds: Sequence[float], labels: Column, counts: Integers, sums: Sequence[float]
    ) -> memoryview:
        """Histograms with these labels: of each its counts by bound, the last one without bound, and its sum."""
        bucket, count, sum_ = (start(name, self._cluster, suffix) for suffix in ("_bucket", "_count", "_sum"))
        columns = [_numbers(column) for column in np.cumsum(counts, axis=1).T]
        written: list[Column | str] = []
        for bound, column in zip([*map(float, bounds), "+Inf"], columns, strict=True):
            written += [bucket, labels, f',le="{bound}"}} ', column, "\n"]
        written += [count, labels, "} ", columns[-1], "\n", sum_, labels, "} ", _strings(list(map(str, sums)))]
        return _joined(*written, "\n")

    def _of_topics(self, begin: str, name: str) -> Iterator[bytes]:
        """A figure of all partitions of topics in scope."""
        moment, figure = self._moment, TOPIC_FIGURES[name]
        ends = moment.board.ends
        for topic in sorted(filter(moment.topics, moment.sums.topic_names)):
            with ends.lock:
                figures = [(partition, figure(known)) for partition, known in ends.of_topic(topic).items()]
            common = f'{begin}{label(topic=topic)},partition="'
            yield "".join([f'{common}{partition}"}} {of}\n' for partition, of in figures if of is not None]).encode()


def _pieces(rows: Integers) -> list[Integers]:
    return [rows[at : at + LINES_A_PIECE] for at in range(0, len(rows), LINES_A_PIECE)]


def _strings(texts: Sequence[str]) -> Column:
    return pa.array(texts, pa.string())


def _numbers(values: Figures) -> Column:
    return pc.cast(pa.array(values), pa.string())


def _lines(begin: str, labels: Sequence[Column | str], values: Figures) -> memoryview:
    return _joined(begin, *labels, "} ", _numbers(values), "\n")


def _joined(*columns: Column | str) -> memoryview:
    """The text of these columns, row by row."""
    written = pc.binary_join_element_wise(*columns, "")
    _, offsets, text = written.buffers()
    return memoryview(text)[: np.frombuffer(offsets, np.int32)[len(written)]]


def release_memory() -> None:
    """Return what a page took to the machine, all of it: with this pool Arrow asks the C library to."""
    pa.default_memory_pool().release_unused()
