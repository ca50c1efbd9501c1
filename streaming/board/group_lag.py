"""Lag of a group's committed offsets by the rules of `coordinator_model.lag`, computed in one place.

`topic_lags` has the figures in columns, for every use; what the API shows offset by offset is read off them.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from coordinator_model import lag
from coordinator_model.lag import Lag, TotalLag, behind
from coordinator_model.state.offsets import CommittedOffset
from streaming.board.offset_columns import OffsetColumns
from streaming.end_offsets.store import EndOffsets, PartitionEnds


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
    """Lag of a group's committed offsets in one topic, in columns: much quicker to make than an `OffsetLag` for each.

    `records`, `stable` (lag to the last stable offset) and `seconds` are None where they are not known; `methods` says
    how the figures came about, in the words of `coordinator_model.lag`; `truncated` has the places in the columns of
    offsets whose log was cut off since; `lost` counts offsets whose records are deleted by now,
    `ahead` those beyond the sampled end, of which time tells whether they are fresher or of another log. `fleeting`
    says whether a figure may be another later though neither commit nor topic change.
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
    ahead: int = 0
    fleeting: bool = False


def topic_lags(buckets: Iterable[OffsetColumns], ends: EndOffsets, now_ms: int) -> list[TopicLag]:
    """Lag of the offsets in these buckets, by topic; topics without offsets are left out."""
    found: list[TopicLag] = []
    with ends.lock:
        for bucket in buckets:
            if not found or found[-1].topic != bucket.topic:
                found.append(TopicLag(bucket.topic))
            _measure(found[-1], bucket, ends, now_ms)
    return [each for each in found if each.partitions]


def offset_lags(
    offsets: Iterable[tuple[str, int, CommittedOffset]], by_topic: Iterable[TopicLag], ends: EndOffsets
) -> list[OffsetLag]:
    """What there is to say of each of these offsets, whose lag `topic_lags` has computed in the same order."""
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


def _measure(found: TopicLag, bucket: OffsetColumns, ends: EndOffsets, now_ms: int) -> None:
    """Add the lag of a bucket's offsets; the lock of `ends` is held."""
    topic, described, ids = bucket.topic, ends.topic(bucket.topic), bucket.topic_ids
    known_id = None if described is None else described.id
    partitions, committed, times_ms = bucket.columns
    count = len(partitions)
    same = [id_ is None or known_id in (None, id_) for id_ in (ids if isinstance(ids, tuple) else (ids,) * count)]
    known_of, records, seconds = ends.known_of(topic).get, found.records.append, found.seconds.append
    stable, methods = found.stable.append, found.methods.append
    first = len(found.records)
    for at, (partition, offset, is_same, time_ms) in enumerate(zip(partitions, committed, same, times_ms, strict=True)):
        known = known_of(partition)
        end = None if known is None else known.high_watermark
        is_cut = False
        if known is not None and offset >= 0:
            found.lost += known.earliest is not None and offset < known.earliest
            if known.cuts and is_same:
                cut = lag.cut_of(known.cuts, offset, bucket.leader_epochs[at], time_ms)
                is_cut = cut is not None
                offset = offset if cut is None else cut  # noqa: PLW2901 - lag counts from there
        if (
            known is None
            or end is None
            or offset < 0
            or not is_same
            or (offset > end and _is_beyond(known, offset, time_ms))
        ):
            records(None)
            seconds(None)
            stable(None)
            methods(_unknown(offset, end, is_same=is_same))
            # It is beyond the end until there is more of the log.
            found.fleeting |= end is not None and offset >= 0 and is_same
            continue
        is_ahead = offset > end
        found.ahead += is_ahead
        waiting, age, method = behind(offset, end, known.history, now_ms, known.found)
        found.fleeting |= is_ahead or waiting > 0
        if is_cut:
            found.truncated.add(first + at)
        records(waiting)
        seconds(age)
        stable(max(0, (end if known.last_stable is None else known.last_stable) - offset))
        methods(method)
    found.partitions.extend(partitions)
    found.committed.extend(committed)
    found.commit_times_ms.extend(times_ms)


def _unknown(offset: int, end: int | None, *, is_same: bool) -> str:
    """Why an offset has no lag."""
    if offset < 0:
        return lag.NO_COMMITTED_OFFSET
    if not is_same:
        return lag.TOPIC_RECREATED
    return lag.NO_END_OFFSET if end is None else lag.BEYOND_END


def _is_beyond(known: PartitionEnds, offset: int, committed_ms: int) -> bool:
    return lag.is_beyond(offset, known.high_watermark, committed_ms, known.sampled_ms)


def total(lags: list[TopicLag]) -> TotalLag:
    """Sum and maxima of the lag of some topics."""
    records, seconds = _joined(each.records for each in lags), _joined(each.seconds for each in lags)
    return lag.total_of(records, seconds, at_least=any(lag.AT_LEAST in each.methods for each in lags))


def _joined(columns: "Iterator[list[Any]]") -> list[Any]:
    return [figure for column in columns for figure in column]
