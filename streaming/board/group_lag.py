"""Lag of one group's committed offsets as it is shown: by topic, and offset by offset, read off `lag_columns.py`."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from coordinator_model import lag
from coordinator_model.lag import Lag, TotalLag
from coordinator_model.state.offsets import CommittedOffset
from streaming.end_offsets.store import EndOffsets


@dataclass(frozen=True, slots=True)
class OffsetLag:
    """One committed offset with its lag; `log_end`, `last_stable` and `log_start` are None where they are not known."""

    topic: str
    partition: int
    committed: CommittedOffset
    lag: Lag
    log_end: int | None
    log_start: int | None
    last_stable: int | None = None


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


def offset_lags(
    offsets: Iterable[tuple[str, int, CommittedOffset]], by_topic: Iterable[TopicLag], ends: EndOffsets
) -> list[OffsetLag]:
    """What there is to say of each of these offsets, whose lag by topic is in the same order."""
    lags = (lag_ for each in by_topic for lag_ in _each(each))
    return [
        OffsetLag(topic, partition, committed, found, *_ends_of(ends, topic, partition))
        for (topic, partition, committed), found in zip(offsets, lags, strict=True)
    ]


def _each(found: TopicLag) -> Iterator[Lag]:
    """The columns of one topic as the lags of its offsets."""
    columns = zip(found.records, found.seconds, found.stable, found.methods, strict=True)
    for at, (records, seconds, stable, method) in enumerate(columns):
        shown = lag.TRUNCATED if at in found.truncated else method
        yield Lag(records, seconds, shown, stable, method == lag.AT_LEAST)


def _ends_of(ends: EndOffsets, topic: str, partition: int) -> tuple[int | None, int | None, int | None]:
    """(high watermark, first offset, last stable offset) of a partition, as far as known."""
    known = ends.partition(topic, partition)
    return (None, None, None) if known is None else (known.high_watermark, known.earliest, known.last_stable)


def total(lags: list[TopicLag]) -> TotalLag:
    """Sum and maxima of the lag of some topics."""
    records, seconds = _joined(each.records for each in lags), _joined(each.seconds for each in lags)
    return lag.total_of(records, seconds, at_least=any(lag.AT_LEAST in each.methods for each in lags))


def _joined(columns: "Iterator[list[Any]]") -> list[Any]:
    return [figure for column in columns for figure in column]
