"""Lag of one group's committed offsets as it is shown: by topic, and offset by offset, read off `lag_columns.py`."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from coordinator_model import lag
from coordinator_model.lag import Lag, TotalLag
from streaming.end_offsets.store import EndOffsets


@dataclass(slots=True)
class TopicLag:
    """Lag of a group's committed offsets in one topic, in columns.

    `records`, `stable` (lag to the last stable offset) and `seconds` are None where they are not known; `methods` says
    how the figures came about, in the words of `coordinator_model.lag`; `truncated` has the places in the columns of
    offsets whose log was cut off since; `lost` counts offsets whose records are deleted by now.
    """

    topic: str
    partitions: list[int] = field(default_factory=list)
    committed: list[int] = field(default_factory=list)
    commit_times_ms: list[int] = field(default_factory=list)
    records: list[int | None] = field(default_factory=list)
    seconds: list[float | None] = field(default_factory=list)
    stable: list[int | None] = field(default_factory=list)
    methods: list[str] = field(default_factory=list)
    truncated: set[int] = field(default_factory=set)
    lost: int = 0


def offset_rows(by_topic: Iterable[TopicLag], ends: EndOffsets) -> list[dict[str, Any]]:
    """`lag_view` of each of their offsets, in their order; hold the lock of `ends` since they were measured."""
    return [
        lag_view(ends, of.topic, partition, found)
        for of in by_topic
        for partition, found in zip(of.partitions, _each(of), strict=True)
    ]


def lag_view(ends: EndOffsets, topic: str, partition: int, found: Lag) -> dict[str, Any]:
    """Lag of an offset as the API has it, with the ends of its log: null where they are not known."""
    known = ends.partition(topic, partition)
    return {
        "log_end_offset": None if known is None else known.high_watermark,
        "log_start_offset": None if known is None else known.earliest,
        "last_stable_offset": None if known is None else known.last_stable,
        "lag": found.records,
        "stable_lag": found.stable_records,
        "lag_seconds": found.seconds,
        "lag_seconds_at_least": found.at_least,
        "lag_method": found.method,
    }


def _each(found: TopicLag) -> Iterator[Lag]:
    """The columns of one topic as the lags of its offsets."""
    columns = zip(found.records, found.seconds, found.stable, found.methods, strict=True)
    for at, (records, seconds, stable, method) in enumerate(columns):
        shown = lag.TRUNCATED if at in found.truncated else method
        yield Lag(records, seconds, shown, stable, method == lag.AT_LEAST)


def total(lags: list[TopicLag]) -> TotalLag:
    """Sum and maxima of the lag of some topics."""
    records, seconds = _joined(each.records for each in lags), _joined(each.seconds for each in lags)
    return lag.total_of(records, seconds, at_least=any(lag.AT_LEAST in each.methods for each in lags))


def _joined(columns: "Iterator[list[Any]]") -> list[Any]:
    return [figure for column in columns for figure in column]
