"""The text of /metrics, written when it is asked for: columns put together to lines by Arrow's kernels.

A line is four texts: what its metric's lines begin with, labels, the end of the labels, and the value. Lines of all
metrics are held until they are many; then all their texts are taken from their columns at once, side by side, and so
are the text. That costs a quarter of Arrow's joining of columns, row by row, and of few groups it is one call for all
metrics. Labels of groups and offsets are made once for a page; three hundred thousand lines take some
hundredths of a second, so no text is kept. It comes in pieces, so that a page of millions of lines is never in memory
as a whole.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Final, NamedTuple

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
from streaming.metrics.share_metrics import SHARE_LAG, SHARE_METRICS
from streaming.metrics.text_format import escaped_all, label, lines, start

# The C library's allocator, which was as quick as Arrow's own, and also has what NumPy and Python take for a page.
pa.set_memory_pool(pa.system_memory_pool())

LINES_A_PIECE: Final = 50_000

BYTES_A_PIECE: Final = 16 * 1024 * 1024
"""Of labels, about: names may be long, and those of one metric are all put together at once."""

FEW_TEXTS: Final = 100
"""An array of more costs less than to look for each of them among those that stand alone."""

_READY_BYTES_A_PIECE: Final = 1024 * 1024

_TEXTS_A_LINE: Final = 4
_LINES_BESIDE_BOUNDS: Final = 3
"""Of a histogram: the one without bound, count and sum."""

_END: Final = "} "
"""Of labels."""

GROUP_SOURCES: Final = {**GROUP_METRICS, **OFFSET_METRICS, **SHARE_METRICS}

Texts = Any
"""An array of strings of Arrow, which has no types."""

Column = tuple[Texts, Integers]
"""Texts, and of each row the place of its own among them."""

LabelEnds = tuple[Sequence[str], Integers | int]
"""Texts of Python, and of each row, or of all, the place of its own among them."""

Ready = bytes | memoryview
"""Text that needs nothing done to it."""


class Block(NamedTuple):
    """Lines of one metric: of each its labels, how these end, and its value."""

    begin: str
    labels: Column
    label_ends: LabelEnds
    values: Figures


class Page:
    """A page of one moment.

    Args:
        cluster: value of the labels `cluster` and `cluster_name`.
        moment: what it is of.
    """

    def __init__(self, cluster: str, moment: Moment) -> None:
        self._cluster = cluster
        self._moment = moment

    def text(self, heads: Mapping[str, str]) -> Iterator[Ready]:
        """Metrics by name with what stands before their samples, in pieces; a metric without samples has nothing."""
        held = _Held()
        for name, head in heads.items():
            is_first = True
            for part in self._parts(name):
                if is_first:
                    held.add_ready(head.encode())
                    is_first = False
                if isinstance(part, Block):
                    held.add(part)
                else:
                    held.add_ready(part)
                if held.is_much:
                    yield from held.taken()
                    held = _Held()
        yield from held.taken()

    def _parts(self, name: str) -> Iterator[Block | Ready]:
        """The samples of a metric, none of the parts empty."""
        begin = start(name, self._cluster)
        if name in GROUP_SOURCES:
            for samples in GROUP_SOURCES[name](self._moment):
                yield from self._of_groups(begin, samples)
        elif name in PARTITION_METRICS:
            yield from self._of_offsets(begin, *PARTITION_METRICS[name](self._moment))
            for samples in SHARE_LAG[name](self._moment) if name in SHARE_LAG else ():
                yield from self._of_groups(begin, samples)
        elif name == DURATION:
            places, counts, sums = durations(self._moment)
            of_places = self._group_bytes[places] * (len(DURATION_BOUNDS) + _LINES_BESIDE_BOUNDS)
            for rows in _pieces(np.arange(len(places)), of_places):
                labels = self._groups.take(pa.array(places[rows]))
                yield self._histogram(name, DURATION_BOUNDS, labels, counts[rows], sums[rows])
        elif name in TOPIC_FIGURES:
            yield from filter(None, self._of_topics(begin, name))
        elif name in HISTOGRAMS:
            distribution = HISTOGRAMS[name](self._moment.board)
            counted, sum_seconds = distribution.read()
            yield self._histogram(name, distribution.bounds, _texts([""]), np.array([counted]), np.array([sum_seconds]))
        elif ready := lines(begin, MONITOR_SAMPLES[name](self._moment)):
            yield ready.encode()

    @cached_property
    def _groups(self) -> Texts:
        """The labels of all groups."""
        return pc.binary_join_element_wise(',group="', _texts(escaped_all(self._moment.groups.names)), '"', "")

    @cached_property
    def _group_bytes(self) -> Integers:
        """Of the labels of each group."""
        return _lengths(self._groups)

    @cached_property
    def _offsets(self) -> list[tuple[Integers, Texts]]:
        """Rows of offsets that have series, and their labels, in pieces."""
        table, found = self._moment.lags.table, []
        topics = _texts([f'{label(topic=topic)},partition="' for topic in table.topics])
        chosen = rows_in_scope(self._moment)
        of_rows = self._group_bytes[table.owners[chosen]] + _lengths(topics)[table.topic_of[chosen]]
        for rows in _pieces(chosen, of_rows):
            parts = _side_by_side(
                _taken(self._groups, table.owners[rows]),
                (topics, table.topic_of[rows]),
                _numbers(table.partitions[rows], "", '"'),
            )
            _, ends, text = parts.buffers()
            ends = np.frombuffer(ends, np.int32)[: len(parts) + 1 : 3].copy()
            found.append((rows, pa.StringArray.from_buffers(len(rows), pa.py_buffer(ends), text)))
        return found

    def _of_groups(self, begin: str, samples: Samples) -> Iterator[Block]:
        labels, places = ((samples.labels,), None) if isinstance(samples.labels, str) else samples.labels
        ends = [text + _END for text in labels]
        for rows in _pieces(np.arange(len(samples.groups)), self._group_bytes[samples.groups]):
            end_of = 0 if places is None else places[rows]
            yield Block(begin, _taken(self._groups, samples.groups[rows]), (ends, end_of), samples.values[rows])

    def _of_offsets(self, begin: str, where: Figures, values: Figures) -> Iterator[Block]:
        for rows, labels in self._offsets:
            there = np.flatnonzero(where[rows])
            if len(there):
                yield Block(begin, (labels, there), ((_END,), 0), values[rows[there]])

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


class _Held:
    """Lines that are yet to be put together, with ready text between them."""

    def __init__(self) -> None:
        self._lines = 0
        self._label_bytes = 0
        self._ready_bytes = 0
        self._arrays: list[Texts] = []
        self._count = 0
        self._first_of: dict[int, int] = {}
        """Where the texts of an array begin among those of all, by its identity."""
        self._single: dict[str, int] = {}
        """Texts that stand before all arrays, each with its place from there back: of few lines, an array for each was
        most of what a page took."""
        self._places: list[Integers] = []
        """Of lines of each block, in columns: the places of their texts but the last."""
        self._values: list[Figures] = []
        self._ready: list[tuple[int, Ready]] = []
        """Text, and how many lines are before it."""

    @property
    def is_much(self) -> bool:
        """Whether it is time to write it."""
        return (
            self._lines >= LINES_A_PIECE
            or self._label_bytes >= BYTES_A_PIECE
            or self._ready_bytes >= _READY_BYTES_A_PIECE
        )

    def add(self, block: Block) -> None:
        """Lines after what is held."""
        places = np.empty((len(block.values), _TEXTS_A_LINE), np.int64)
        texts, of_rows = block.labels
        ends, end_of = block.label_ends
        places[:, 0] = self._of_single(block.begin)
        places[:, 1] = of_rows + self._first(texts)
        if len(ends) > FEW_TEXTS:
            places[:, 2] = end_of + self._first(_texts(ends))
        else:
            places[:, 2] = np.array(list(map(self._of_single, ends)))[end_of]
        self._places.append(places)
        self._values.append(block.values)
        self._lines += len(places)
        self._label_bytes += int(_lengths(texts)[of_rows].sum())

    def add_ready(self, text: Ready) -> None:
        """Text after what is held."""
        self._ready.append((self._lines, text))
        self._ready_bytes += len(text)

    def taken(self) -> Iterator[Ready]:
        """The text of all that is held."""
        text, ends = self._put_together()
        at = 0
        for lines_before, ready in self._ready:
            if at < ends[lines_before]:
                yield text[at : ends[lines_before]]
                at = ends[lines_before]
            yield ready
        if at < len(text):
            yield text[at:]

    def _of_single(self, text: str) -> int:
        return self._single.setdefault(text, -1 - len(self._single))

    def _first(self, texts: Texts) -> int:
        if id(texts) not in self._first_of:
            self._first_of[id(texts)] = self._count
            self._arrays.append(texts)
            self._count += len(texts)
        return self._first_of[id(texts)]

    def _put_together(self) -> tuple[memoryview, Figures]:
        """The text of all lines, and where each of them begins, with the end of the last."""
        if not self._lines:
            return memoryview(b""), np.zeros(1, np.int32)
        places = np.concatenate(self._places)
        is_whole = [values.dtype.kind != "f" for values in self._values]
        rows_whole = np.repeat(is_whole, list(map(len, self._values)))
        for kind in {*is_whole}:
            values = [values for values, whole in zip(self._values, is_whole, strict=True) if whole == kind]
            numbers, of_rows = _numbers(np.concatenate(values), "", "\n")
            places[rows_whole == kind, -1] = of_rows + self._first(numbers)
        places += len(self._single)
        texts = pa.concat_arrays([_texts([*self._single][::-1]), *self._arrays])
        parts = texts.take(pa.array(places.ravel()))
        ends = np.frombuffer(parts.buffers()[1], np.int32)[: len(parts) + 1 : _TEXTS_A_LINE]
        return _text(parts), ends


def _pieces(rows: Integers, sizes: Integers) -> list[Integers]:
    """Rows in pieces of so many lines, and of so many bytes where each has one of these sizes."""
    ends = range(LINES_A_PIECE, len(rows) + LINES_A_PIECE, LINES_A_PIECE)
    return [piece for end in ends for piece in _by_bytes(*(of[end - LINES_A_PIECE : end] for of in (rows, sizes)))]


def _by_bytes(rows: Integers, sizes: Integers) -> list[Integers]:
    before = np.cumsum(sizes, dtype=np.int64) - sizes
    if before[-1] + sizes[-1] <= BYTES_A_PIECE:
        return [rows]
    return [*np.split(rows, 1 + np.flatnonzero(np.diff(before // BYTES_A_PIECE)))]


def _lengths(texts: Texts) -> Integers:
    """Bytes of each text of an array."""
    if not len(texts):
        return np.zeros(0, np.int32)
    ends = np.frombuffer(texts.buffers()[1], np.int32)[texts.offset : texts.offset + len(texts) + 1]
    return np.diff(ends)


def _texts(texts: Sequence[str]) -> Texts:
    return pa.array(texts, pa.string())


def _taken(texts: Texts, places: Integers) -> Column:
    """Texts in these places, as a column without the others where these are many."""
    if len(texts) <= LINES_A_PIECE:
        return texts, places
    rows = np.arange(len(places))
    is_run = np.array_equal(places, rows + places[0])
    return texts.slice(int(places[0]), len(places)) if is_run else texts.take(pa.array(places)), rows


def _numbers(values: Figures, before: str, after: str) -> Column:
    """Numbers with what stands before and after each: of most metrics there are few that differ."""
    encoded = pa.array(values).dictionary_encode()
    texts = pc.binary_join_element_wise(before, pc.cast(encoded.dictionary, pa.string()), after, "")
    return texts, encoded.indices.to_numpy()


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
