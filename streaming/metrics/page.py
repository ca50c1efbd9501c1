"""The text of /metrics, written when it is asked for: columns put together to lines by Arrow's kernels.

A line is what its metric's lines begin with, the labels, and the value. All parts of all lines are taken from their
columns at once, side by side, and then are the text: that costs a quarter of Arrow's joining of columns, row by row.
Labels of groups and offsets are made once for a page; three hundred thousand lines take some hundredths of a second, so
no text is kept. It comes in pieces, so that a page of millions of lines is never in memory as a whole.
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

Texts = Any
"""An array of strings of Arrow, which has no types."""

Column = tuple[Texts, Integers]
"""Texts, and of each row the place of its own among them."""


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
                labels = self._groups.take(pa.array(places[rows]))
                yield self._histogram(name, DURATION_BOUNDS, labels, counts[rows], sums[rows])
        elif name in TOPIC_FIGURES:
            yield from self._of_topics(begin, name)
        elif name in HISTOGRAMS:
            distribution = HISTOGRAMS[name](self._moment.board)
            counted, sum_seconds = distribution.read()
            yield self._histogram(name, distribution.bounds, _texts([""]), np.array([counted]), np.array([sum_seconds]))
        else:
            yield lines(begin, MONITOR_SAMPLES[name](self._moment)).encode()

    @cached_property
    def _groups(self) -> Texts:
        """The labels of all groups."""
        return pc.binary_join_element_wise(',group="', _texts(escaped_all(self._moment.groups.names)), '"', "")

    @cached_property
    def _offsets(self) -> list[tuple[Integers, Texts]]:
        """Rows of offsets that have series, and their labels, in pieces."""
        table, found = self._moment.lags.table, []
        topics = _texts([f'{label(topic=topic)},partition="' for topic in table.topics])
        for rows in _pieces(rows_in_scope(self._moment)):
            parts = _side_by_side(
                _taken(self._groups, table.owners[rows]),
                (topics, table.topic_of[rows]),
                _numbers(table.partitions[rows], "", '"'),
            )
            _, ends, text = parts.buffers()
            ends = np.frombuffer(ends, np.int32)[: len(parts) + 1 : 3].copy()
            found.append((rows, pa.StringArray.from_buffers(len(rows), pa.py_buffer(ends), text)))
        return found

    def _of_groups(self, begin: str, samples: Samples) -> Iterator[bytes | memoryview]:
        for rows in _pieces(np.arange(len(samples.groups))):
            labels, of_all = [_taken(self._groups, samples.groups[rows])], ""
            if isinstance(samples.labels, str):
                of_all = samples.labels
            else:
                texts, places = samples.labels
                labels.append((_texts(texts), places[rows]))
            yield from _lines(begin, labels, samples.values[rows], of_all)

    def _of_offsets(self, begin: str, where: Figures, values: Figures) -> Iterator[bytes | memoryview]:
        for rows, labels in self._offsets:
            there = np.flatnonzero(where[rows])
            if len(there):
                yield from _lines(begin, [(labels, there)], values[rows[there]])

    def _histogram(
        self, name: str, bounds: Sequence[float], labels: Texts, counts: Integers, sums: Figures
    ) -> memoryview:
        """Histograms with these labels: of each its counts by bound, the last one without bound, and its sum."""
        bucket, count, sum_ = (start(name, self._cluster, suffix) for suffix in ("_bucket", "_count", "_sum"))
        bounded = [f',le="{bound}"}} ' for bound in [*map(float, bounds), "+Inf"]]
        begins, middles = [*([bucket] * len(bounded)), count, sum_], [*bounded, "} ", "} "]
        lines_of = np.arange(len(begins))
        numbers, number_of = _numbers(np.cumsum(counts, axis=1).ravel(), "", "\n")
        by_bound = number_of.reshape(counts.shape)
        seconds, which = np.unique(sums, return_inverse=True)
        sum_of = len(numbers) + which
        return _text(
            _side_by_side(
                (_texts(begins), np.tile(lines_of, len(labels))),
                (labels, np.repeat(np.arange(len(labels)), len(begins))),
                (_texts(middles), np.tile(lines_of, len(labels))),
                (
                    pa.concat_arrays([numbers, _texts([f"{of}\n" for of in seconds.tolist()])]),
                    np.column_stack([by_bound, by_bound[:, -1], sum_of]).ravel(),
                ),
            )
        )

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


def _texts(texts: Sequence[str]) -> Texts:
    return pa.array(texts, pa.string())


def _taken(texts: Texts, places: Integers) -> Column:
    """Texts in these places, as a column without the others."""
    rows = np.arange(len(places))
    is_run = np.array_equal(places, rows + places[0])
    return texts.slice(int(places[0]), len(places)) if is_run else texts.take(pa.array(places)), rows


def _numbers(values: Figures, before: str, after: str) -> Column:
    """Numbers with what stands before and after each: of most metrics there are few that differ."""
    encoded = pa.array(values).dictionary_encode()
    texts = pc.binary_join_element_wise(before, pc.cast(encoded.dictionary, pa.string()), after, "")
    return texts, encoded.indices.to_numpy()


def _lines(begin: str, labels: Sequence[Column], values: Figures, of_all: str = "") -> Iterator[bytes | memoryview]:
    """Lines that begin like this, with labels besides that all have; what follows a number begins the next line."""
    first = begin.encode()
    yield first
    yield _text(_side_by_side(*labels, _numbers(values, f"{of_all}}} ", f"\n{begin}")))[: -len(first)]


def _side_by_side(*columns: Column) -> Texts:
    """The texts of the first row, one from each column, then those of the next."""
    places = np.empty((len(columns[0][1]), len(columns)), np.int64)
    first = 0
    for number, (texts, of_rows) in enumerate(columns):
        places[:, number] = of_rows + first
        first += len(texts)
    return pa.concat_arrays([texts for texts, _ in columns]).take(pa.array(places.ravel()))


def _text(parts: Texts) -> memoryview:
    """The texts of an array, one after the other."""
    _, ends, text = parts.buffers()
    return memoryview(text)[: np.frombuffer(ends, np.int32)[len(parts)]]


def release_memory() -> None:
    """Return what a page took to the machine, all of it: with this pool Arrow asks the C library to."""
    pa.default_memory_pool().release_unused()
