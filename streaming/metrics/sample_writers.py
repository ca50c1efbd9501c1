"""The text of /metrics, metric by metric: of some groups, from the tables of `group_samples` and `offset_samples`."""

import zlib
from array import array
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from functools import partial

from streaming.board.group_lag import TopicLag
from streaming.end_offsets.store import EndOffsets, PartitionEnds
from streaming.metrics.group_metrics import (
    DURATION,
    DURATION_BOUNDS,
    FINDINGS_SAMPLES,
    FINDINGS_VALUES,
    STATE_SAMPLES,
    STATE_VALUES,
    FindingsRow,
    Moment,
    Samples,
    StateRow,
)
from streaming.metrics.gzip_pieces import QUICK
from streaming.metrics.offset_metrics import OFFSET_SAMPLES, OFFSET_VALUES, PARTITION_COLUMNS, OffsetRow, commit_age
from streaming.metrics.sample_cache import Dated, RowT
from streaming.metrics.text_format import HistogramText, label, start

Write = Callable[[list[RowT], Moment], str]
"""The text of some groups' samples of one metric."""


def state_writers(cluster: str) -> dict[str, Write[StateRow]]:
    """Metrics of a group's state."""
    written = HistogramText(DURATION, cluster, DURATION_BOUNDS)
    return {**_writers(cluster, STATE_VALUES, STATE_SAMPLES), DURATION: partial(_durations, written)}


def findings_writers(cluster: str) -> dict[str, Write[FindingsRow]]:
    """Metrics of what is found in it."""
    return _writers(cluster, FINDINGS_VALUES, FINDINGS_SAMPLES)


def offset_writers(cluster: str) -> dict[str, Write[OffsetRow]]:
    """Metrics of its offsets."""
    columns = {name: partial(_columns, start(name, cluster), column) for name, column in PARTITION_COLUMNS.items()}
    return {**_writers(cluster, OFFSET_VALUES, OFFSET_SAMPLES), **columns}


def _writers(
    cluster: str,
    values: Mapping[str, Callable[[RowT, Moment], float | None]],
    samples: Mapping[str, Callable[[RowT, Moment], Samples]],
) -> dict[str, Write[RowT]]:
    found: dict[str, Write[RowT]] = {name: partial(_values, start(name, cluster), of) for name, of in values.items()}
    return found | {name: partial(_samples, start(name, cluster), of) for name, of in samples.items()}


def _values(begin: str, value: Callable[[RowT, Moment], float | None], rows: list[RowT], moment: Moment) -> str:
    labels: defaultdict[float, list[str]] = defaultdict(list)
    for row in rows:
        of = value(row, moment)
        if of is not None:
            labels[of].append(row.label)
    return _by_value(begin, labels)


def _samples(begin: str, samples: Callable[[RowT, Moment], Samples], rows: list[RowT], moment: Moment) -> str:
    labels: defaultdict[float, list[str]] = defaultdict(list)
    for row in rows:
        for more, of in samples(row, moment):
            labels[of].append(row.label + more)
    return _by_value(begin, labels)


def _by_value(begin: str, labels: Mapping[float, list[str]]) -> str:
    """Samples by their value: most groups have the same, and what stands between their labels is the same then."""
    told = []
    for value, of in labels.items():
        end = f"}} {value}\n"
        told.append(begin + (end + begin).join(of) + end)
    return "".join(told)


def _columns(
    begin: str, column: Callable[[TopicLag, Moment], Iterable[float | None]], rows: list[OffsetRow], moment: Moment
) -> str:
    return "".join(
        [
            _by_partition(
                begin + row.label + label(topic=each.topic), zip(each.partitions, column(each, moment), strict=True)
            )
            for row in rows
            for each in row.exported
        ]
    )


def _durations(written: HistogramText, rows: list[StateRow], _: Moment) -> str:
    counted = [(row.label, row.of.counters) for row in rows]
    return "".join([written.text(label, of.duration_buckets, of.duration_sum_ms / 1000) for label, of in counted])


def kept_ages(begin: str, rows: list[OffsetRow]) -> Dated:
    """Ages of commits as they are kept: compressed lines without their ends, and when the commits were made.

    Commits of one request have the same time: their lines are a run.
    """
    runs: list[list[str]] = []
    times_ms = array("q")
    for row in rows:
        for each in row.exported:
            common = f'{begin}{row.label}{label(topic=each.topic)},partition="'
            for partition, ms in zip(each.partitions, each.commit_times_ms, strict=True):
                if ms < 0:
                    continue
                if not times_ms or times_ms[-1] != ms:
                    times_ms.append(ms)
                    runs.append([])
                runs[-1].append(f'{common}{partition}"}} \n')
    starts = ["".join(run).encode() for run in runs]
    return partial(_aged, zlib.compress(b"".join(starts), QUICK), array("q", map(len, starts)), times_ms)


def _aged(starts: bytes, sizes: "array[int]", times_ms: "array[int]", now_ms: int) -> bytes:
    if not times_ms:
        return b""
    told: list[bytes] = []
    text, begin = zlib.decompress(starts), 0
    for size, ms in zip(sizes, times_ms, strict=True):
        run = text[begin : begin + size]
        told.append(run.replace(b"\n", f"{commit_age(ms, now_ms)}\n".encode()))
        begin += size
    return b"".join(told)


def of_topics(
    begin: str, topics: list[str], figure: Callable[[PartitionEnds], float | None], ends: EndOffsets
) -> bytes:
    """A figure of all partitions of some topics."""
    told = []
    for topic in topics:
        with ends.lock:
            figures = [(partition, figure(known)) for partition, known in ends.of_topic(topic).items()]
        told.append(_by_partition(begin + label(topic=topic), figures))
    return "".join(told).encode()


def _by_partition(begin: str, figures: Iterable[tuple[int, float | None]]) -> str:
    """Samples of a topic's partitions: what they have in common is put in between all at once."""
    told = [f'{partition}"}} {of}\n' for partition, of in figures if of is not None]
    return f'{begin},partition="'.join(["", *told]) if told else ""
