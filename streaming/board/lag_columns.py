"""Committed offsets of many groups in flat columns, and the lag of all of them at once, with sums by group and topic.

The rules are those of `coordinator_model.lag`, written for whole columns; a test compares them offset by offset. All
who ask for lag ask here: the page of metrics, the API, charts and alerts. Three hundred thousand offsets take some
hundredths of a second, so nothing is kept between two questions.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import Any, Final, NamedTuple, cast

import numpy as np
import numpy.typing as npt

from coordinator_model import lag
from coordinator_model.state.packed_offsets import ROW
from streaming.base.answers import LagFigures
from streaming.board.board_group import BoardGroup
from streaming.board.group_columns import Flags, GroupColumns, Integers, encoded
from streaming.board.share_partitions import ShareLag, ShareSums, share_lags, sums_of
from streaming.end_offsets.store import EndOffsets, PartitionEnds

Floats = npt.NDArray[np.float64]

UNKNOWN: Final = -1
"""In columns of integers, what is not known; in columns of seconds that is NaN."""

FIGURES: Final = ("lag", "at_least", "unknown_lags", "max_lag", "max_lag_seconds", "max_lag_seconds_at_least")
"""Of a group's offsets together, as the API has them.

While the lag of some offsets is unknown (`coordinator_model.lag.SUMS`), `lag` is None, and `at_least` is the sum of the
known; otherwise `at_least` is None. Maxima are of those that are known.
"""

STANDS_MS: Final = 10_000
"""How long a log has to be idle before the rest of it is looked at: consumers that are alive have read it by then."""

LONGEST_REST: Final = 10_000
"""Offsets of a rest that is looked at: so many hold a record, as a rule."""

_NO_ID: Final = -1
_OTHER_ID: Final = -2
_NO_CUT: Final = (1 << 63) - 1
_METHOD: Final = {method: number for number, method in enumerate(lag.METHODS)}
_UNKNOWN_METHODS: Final = [number for method, number in _METHOD.items() if lag.SUMS.get(method) == lag.UNKNOWN]


@dataclass(frozen=True, eq=False)
class OffsetTable:
    """Committed offsets of some groups: a row for each, by group, topic and partition.

    Attributes:
        groups: the groups, also those without offsets.
        topics: names of the topics.
        owners, topic_of: row → its group in `groups`, its topic in `topics`.
        partitions, offsets, times_ms, leader_epochs: as `packed_offsets.ROW` says.
        ids: topic id → its number; `id_of`: row → number of the id that the commit names, negative for none.
        counted: of each bucket of a topic that the group has to do with: group, topic, commits, rewinds.
    """

    groups: GroupColumns
    topics: Sequence[str]
    owners: Integers
    topic_of: Integers
    partitions: Integers
    offsets: Integers
    times_ms: Integers
    leader_epochs: Integers
    ids: Mapping[str, int]
    id_of: Integers
    counted: Integers

    @cached_property
    def runs(self) -> Integers:
        """The rows with which a group's offsets of another topic begin."""
        return begins_of(self.owners, self.topic_of)

    @cached_property
    def starts(self) -> Integers:
        """The rows with which another group begins."""
        return begins_of(self.owners)

    @cached_property
    def is_read(self) -> Flags:
        """Row → whether members of its group read its topic, as far as that is known."""
        groups, count = self.groups, max(1, len(self.topics))
        (topics, topics_of), owners = groups.topics, self.owners[self.runs]
        # It is the same for all groups of the same topics.
        pairs, of_pair = np.unique(topics_of[owners] * count + self.topic_of[self.runs], return_inverse=True)
        subscribed = [self.topics[pair % count] in topics[pair // count].subscribed for pair in pairs.tolist()]
        is_known = groups.by_words(lambda words: words.all_topics_known)[owners]
        by_run = np.array(subscribed, np.bool_)[of_pair] | ~is_known
        return np.repeat(by_run, np.diff(self.runs, append=len(self.owners)))

    @cached_property
    def _places(self) -> tuple[Integers, Integers]:
        return np.unique((self.topic_of << 32) | self.partitions, return_inverse=True)

    @property
    def place_of(self) -> Integers:
        """Row → its partition in `places`."""
        return self._places[1]

    @cached_property
    def places(self) -> list[tuple[str, int]]:
        """The partitions, each once: (topic, number)."""
        keys = self._places[0]
        topics, partitions = (keys >> 32).tolist(), (keys & 0xFFFFFFFF).tolist()
        return [(self.topics[topic], partition) for topic, partition in zip(topics, partitions, strict=True)]


class ReadLag(NamedTuple):
    """Of a group's offsets in topics that its members read: whether records wait, last commit, and how many are lost.

    The commit's time is negative where none is known. `unknown` is of how many the lag is not known.
    """

    waits: bool = False
    committed_ms: int = -1
    lost: int = 0
    unknown: int = 0


@dataclass(frozen=True, eq=False)
class Lags:
    """Lag of the offsets of a table at one moment, a row for each.

    Attributes:
        table: the offsets.
        records, stable: lag to the high watermark, and to the last stable offset; `UNKNOWN` where it is not known.
        seconds: lag in seconds; NaN where it is not known.
        methods: how that came about, as places in `coordinator_model.lag.METHODS`.
        truncated: whether the log was cut off since.
        lost: whether the records are deleted by now.
        waits_from: the first offset at which a record may wait (`coordinator_model.lag.waits_from`).
        readable: whether one may wait there that every consumer may read.
        of_shares: place of a share group in the table → lag of its share partitions, which is of no row.
    """

    table: OffsetTable
    records: Integers
    stable: Integers
    seconds: Floats
    methods: Integers
    truncated: Flags
    lost: Flags
    waits_from: Integers
    readable: Flags
    of_shares: Mapping[int, list[ShareLag]] = field(default_factory=dict)

    @cached_property
    def waiting(self) -> Flags:
        """Row → whether a record may wait: not each offset of its lag holds one."""
        waits: Flags = (self.records > 0) & (self.methods != _METHOD[lag.NO_RECORD])
        return waits

    @cached_property
    def max_records(self) -> Integers:
        """Group → its largest lag."""
        return self._with_shares(self._by_group(np.maximum, self.records, UNKNOWN), lambda of: of.max_records)

    @cached_property
    def unknown(self) -> Flags:
        """Row → whether its lag is a part of sums, and is not known."""
        return np.isin(self.methods, _UNKNOWN_METHODS)

    @cached_property
    def unknown_offsets(self) -> Integers:
        """Group → of how many of its offsets the lag is not known."""
        return self._with_shares(self._by_group(np.add, self.unknown.astype(np.int64), 0), lambda of: of.unknown)

    @cached_property
    def known_records(self) -> Integers:
        """Group → lag of all its offsets of which it is known."""
        return self._with_shares(self._by_group(np.add, np.maximum(self.records, 0), 0), lambda of: of.known_records)

    @cached_property
    def sum_records(self) -> Integers:
        """Group → lag of all its offsets; `UNKNOWN` while some part of it is, or where there is none."""
        return np.where((self.max_records < 0) | (self.unknown_offsets > 0), UNKNOWN, self.known_records)

    @cached_property
    def max_seconds(self) -> Floats:
        """Group → its largest lag in seconds."""
        return self._with_shares(self._by_group(np.fmax, self.seconds, np.nan), lambda of: of.max_seconds)

    @cached_property
    def at_least(self) -> Flags:
        """Group → whether those seconds are a lower bound: for one offset, or since others are not known."""
        of_known = self._by_group(np.logical_or, self.methods == _METHOD[lag.AT_LEAST], False)
        of_known = self._with_shares(of_known, lambda of: of.at_least)
        return of_known | ((self.max_records >= 0) & (self.unknown_offsets > 0))

    @cached_property
    def lost_offsets(self) -> Integers:
        """Group → how many of its offsets are of records that are deleted by now."""
        return self._by_group(np.add, self.lost.astype(np.int64), 0)

    @cached_property
    def unread_records(self) -> Integers:
        """Group → lag in topics that no member reads any more."""
        return self._by_group(np.add, np.where(self.table.is_read, 0, np.maximum(self.records, 0)), 0)

    @cached_property
    def read(self) -> tuple[Flags, Integers, Integers, Integers]:
        """Group → what `ReadLag` has."""
        is_read = self.table.is_read
        return (
            self._with_shares(self._by_group(np.logical_or, is_read & self.waiting, False), lambda of: of.waits),
            self._by_group(np.maximum, np.where(is_read, self.table.times_ms, -1), -1),
            self._by_group(np.add, (is_read & self.lost).astype(np.int64), 0),
            self._by_group(np.add, (is_read & self.unknown).astype(np.int64), 0),
        )

    @cached_property
    def waits(self) -> Flags:
        """Group → whether records wait that every consumer may read, in a topic that its members read."""
        return self._by_group(np.logical_or, self.table.is_read & self.readable, False)

    @cached_property
    def run_records(self) -> Integers:
        """Run (`OffsetTable.runs`) → lag of its offsets; `UNKNOWN` while some part of it is, or where there is none."""
        runs = self.table.runs
        if not len(runs):
            return runs
        is_known = (np.maximum.reduceat(self.records, runs) >= 0) & ~np.logical_or.reduceat(self.unknown, runs)
        return np.where(is_known, np.add.reduceat(np.maximum(self.records, 0), runs), UNKNOWN)

    def figures(self, number: int) -> LagFigures:
        """`FIGURES` of one group; None where it has no offsets."""
        unknown = self.unknown_offsets[number].item()
        columns = (self.sum_records, self.max_records, self.max_seconds, self.at_least)
        total, *largest = or_none([column[number].item() for column in columns])
        at_least = self.known_records[number].item() if unknown else None
        return cast(LagFigures, dict(zip(FIGURES, (total, at_least, unknown, *largest), strict=True)))

    def of_read(self, number: int) -> ReadLag:
        """What there is to say of one group's topics that its members read."""
        return ReadLag(*(column[number].item() for column in self.read))

    @cached_property
    def _share_sums(self) -> dict[int, ShareSums]:
        return {place: sums_of(lags) for place, lags in self.of_shares.items()}

    def _with_shares(self, of_groups: npt.NDArray[Any], of: Callable[[ShareSums], Any]) -> npt.NDArray[Any]:
        """A column of groups, with what share groups have there."""
        for place, sums in self._share_sums.items():
            of_groups[place] = of(sums)
        return of_groups

    def _by_group(self, reduce: np.ufunc, values: npt.NDArray[Any], of_none: float) -> npt.NDArray[Any]:
        table = self.table
        found = np.full(len(table.groups), of_none, values.dtype)
        if len(table.starts):
            found[table.owners[table.starts]] = reduce.reduceat(values, table.starts)
        return found


def begins_of(*columns: Integers) -> Integers:
    """The rows that differ from the one before in one of these columns, the first included."""
    differs = np.zeros(len(columns[0]), np.bool_)
    differs[:1] = True
    for column in columns:
        differs[1:] |= column[1:] != column[:-1]
    return np.flatnonzero(differs)


def known(values: npt.NDArray[Any]) -> tuple[Flags, npt.NDArray[Any]]:
    """Where a figure is known, and the figures."""
    return (values != UNKNOWN) & (values == values), values  # noqa: PLR0124 - NaN


def or_none(values: Iterable[Any]) -> list[Any]:
    """Figures, None where they are not known."""
    return [None if value == UNKNOWN or value != value else value for value in values]  # noqa: PLR0124 - NaN


def table_of(groups: Iterable[BoardGroup] | GroupColumns) -> OffsetTable:
    """The committed offsets of these groups."""
    columns = groups if isinstance(groups, GroupColumns) else GroupColumns(groups)
    held = columns.held
    each_of = [group.buckets for group in held]
    owners = np.repeat(np.arange(len(held)), np.fromiter(map(len, each_of), np.int64, len(held)))
    buckets = list(chain.from_iterable(each_of))
    words, words_of = encoded([bucket.words for bucket in buckets])
    topics, topic_at = encoded([of.topic for of in words])
    ids: dict[str | None, int] = {None: _NO_ID}
    ids_at = [[ids.setdefault(id_, len(ids)) for _, id_, _ in of.said] for of in words]
    packed = [bucket.numbers for bucket in buckets]
    rows = np.frombuffer(b"".join(packed), "<i8").reshape(-1, 4)
    lengths = np.fromiter(map(len, packed), np.int64, len(packed)) // ROW.size
    heads = np.cumsum(lengths) - lengths
    topic_of = topic_at[words_of]
    lengths -= 1
    id_of = np.repeat(np.array([of[0] if of else _NO_ID for of in ids_at], np.int64)[words_of], lengths)
    first = np.cumsum(lengths) - lengths
    differ = np.array([bool(of.which) for of in words], np.bool_)[words_of]
    for at in np.flatnonzero(differ).tolist():
        which = buckets[at].words.which
        id_of[first[at] : first[at] + len(which)] = np.array(ids_at[words_of[at]], np.int64)[list(which)]
    concerns = lengths > 0
    for at in np.flatnonzero(~concerns).tolist():
        concerns[at] = buckets[at].topic in held[owners[at]].topic_names
    partitions, offsets, times_ms, leader_epochs = np.delete(rows, heads, axis=0).T.copy()
    _, commits, rewinds, _ = rows[heads].T
    return OffsetTable(
        groups=columns,
        topics=topics,
        owners=np.repeat(owners, lengths),
        topic_of=np.repeat(topic_of, lengths),
        partitions=partitions,
        offsets=offsets,
        times_ms=times_ms,
        leader_epochs=leader_epochs,
        ids={id_: number for id_, number in ids.items() if id_ is not None},
        id_of=id_of,
        counted=np.array([owners, topic_of, commits, rewinds])[:, concerns],
    )


def measure(table: OffsetTable, ends: EndOffsets, now_ms: int) -> Lags:
    """Lag of all offsets of a table at this moment."""
    with ends.lock:
        return _measured(table, ends, now_ms)


def _measured(table: OffsetTable, ends: EndOffsets, now_ms: int) -> Lags:
    known = [ends.partition(*place) for place in table.places]
    at = table.place_of
    end, last_stable, earliest, sampled_ms = _ends(known)[:, at]
    described = [ends.topic(topic) for topic in table.topics]
    id_now = np.array(
        [_NO_ID if of is None or of.id is None else table.ids.get(of.id, _OTHER_ID) for of in described], np.int64
    )
    id_now = id_now[table.topic_of]
    gone = ends.gone
    is_gone = np.array([topic in gone for topic in table.topics], np.bool_)[table.topic_of]
    is_same = (table.id_of == _NO_ID) | (id_now == _NO_ID) | (id_now == table.id_of)
    is_committed = table.offsets >= 0
    gaps = [at for at, of in enumerate(known) if of is not None and of.gaps]
    has_gaps = np.isin(at, gaps) if gaps else np.zeros(len(at), np.bool_)
    lost = is_committed & (earliest >= 0) & (table.offsets < earliest)
    for row in np.flatnonzero(lost & has_gaps).tolist():
        lost[row] = lag.is_lost(int(table.offsets[row]), int(earliest[row]), _gaps(known[at[row]]))
    offsets, truncated = _cut(table, known, is_same & is_committed)
    is_beyond = (offsets > end) & (table.times_ms >= 0) & (table.times_ms <= sampled_ms - lag.FRESH_MS)
    is_measured = is_committed & is_same & (end >= 0) & ~is_beyond
    # As `lag.waits_from`.
    waits_from = np.where(earliest <= end, np.maximum(offsets, earliest), offsets)
    for row in np.flatnonzero(is_measured & has_gaps & (offsets < end)).tolist():
        start = int(earliest[row]) if earliest[row] >= 0 else None
        waits_from[row] = lag.waits_from(int(offsets[row]), int(end[row]), start, _gaps(known[at[row]]))
    methods = np.select(
        [
            *(~is_committed, ~is_same, (end < 0) & is_gone, end < 0),
            *(is_beyond, offsets == end, offsets > end, waits_from >= end),
        ],
        [
            _METHOD[method]
            for method in (
                lag.NO_COMMITTED_OFFSET,
                lag.TOPIC_RECREATED,
                lag.NO_SUCH_TOPIC,
                lag.NO_END_OFFSET,
                lag.BEYOND_END,
                lag.CAUGHT_UP,
                lag.AHEAD_OF_END,
                lag.NO_RECORD,
            )
        ],
        _METHOD[lag.AT_LEAST],
    )
    seconds = np.where(is_measured, 0.0, np.nan)
    behind = np.flatnonzero(is_measured & (waits_from < end))
    for place, rows in _by_place(at, behind):
        of = known[place]
        assert of is not None  # noqa: S101 - it has an end
        seconds[rows], methods[rows] = _ages(waits_from[rows], of, now_ms)
    stable = np.where(last_stable < 0, end, last_stable)
    return Lags(
        table,
        np.where(is_measured, np.maximum(end - offsets, 0), UNKNOWN),
        np.where(is_measured, np.maximum(stable - offsets, 0), UNKNOWN),
        seconds,
        methods,
        truncated & is_measured,
        lost,
        waits_from,
        is_measured & (waits_from < stable),
        {place: share_lags(of.shares, ends, now_ms) for place, of in enumerate(table.groups.held) if of.shares},
    )


def unclear(lags: Lags, ends: EndOffsets, now_ms: int) -> set[tuple[str, int, int]]:
    """(topic, partition, offset) from which on a log may hold no record: idle for a while, and not looked at yet."""
    found: set[tuple[str, int, int]] = set()
    table = lags.table
    rows = np.flatnonzero(lags.waiting & lags.readable & (lags.records <= LONGEST_REST))
    with ends.lock:
        for at, of_place in _by_place(table.place_of, rows):
            place = table.places[at]
            of = ends.partition(*place)
            since_ms = None if of is None else of.history.stands_since()
            if of is None or since_ms is None or now_ms - since_ms < STANDS_MS:
                continue
            offsets = {*lags.waits_from[of_place].tolist()}
            found |= {(*place, offset) for offset in offsets if of.gaps.get(offset) != offset}
    return found


def _gaps(known: PartitionEnds | None) -> Mapping[int, int]:
    return {} if known is None else known.gaps


def _ends(known: Sequence[PartitionEnds | None]) -> Integers:
    """High watermarks, last stable offsets, first offsets, and when they were sampled; negative where not known."""
    found = [
        (UNKNOWN,) * 4
        if of is None
        else (_known(of.high_watermark), _known(of.last_stable), _known(of.earliest), of.sampled_ms)
        for of in known
    ]
    return np.array(found, np.int64).reshape(-1, 4).T


def _known(offset: int | None) -> int:
    return UNKNOWN if offset is None else offset


def _cut(table: OffsetTable, known: Sequence[PartitionEnds | None], may_be: Flags) -> tuple[Integers, Flags]:
    """The offsets that lag counts from, and which of them are other than was committed: their log was cut off."""
    truncated = np.zeros(len(may_be), np.bool_)
    cuts = [_NO_CUT if of is None or not of.cuts else min(cut.offset for cut in of.cuts) for of in known]
    if all(cut == _NO_CUT for cut in cuts):
        return table.offsets, truncated
    offsets = table.offsets.copy()
    beyond = may_be & (offsets > np.array(cuts, np.int64)[table.place_of])
    for row in np.flatnonzero(beyond).tolist():
        of = known[table.place_of[row]]
        commit = int(table.leader_epochs[row]), int(table.times_ms[row])
        cut = None if of is None else lag.cut_of(of.cuts, int(offsets[row]), *commit)
        if cut is not None:
            offsets[row], truncated[row] = cut, True
    return offsets, truncated


def _by_place(at: Integers, rows: Integers) -> Iterable[tuple[int, Integers]]:
    """(partition, its rows), of these rows."""
    if not len(rows):
        return
    ordered = rows[np.argsort(at[rows], kind="stable")]
    places = at[ordered]
    begins = begins_of(places)
    yield from zip(places[begins].tolist(), np.split(ordered, begins[1:]), strict=True)


def _ages(offsets: Integers, known: PartitionEnds, now_ms: int) -> tuple[Floats, Integers]:
    """Seconds and methods of records that may wait in one partition (`coordinator_model.lag.behind`)."""
    times_ms, ends = map(np.array, known.history.columns())
    below = np.searchsorted(ends, offsets, side="right") - 1
    is_between = (below >= 0) & (below + 1 < len(ends))
    written_ms = np.full(len(offsets), np.inf)
    start = below[is_between]
    into = (times_ms[start + 1] - times_ms[start]) * (offsets[is_between] - ends[start]).astype(np.float64)
    written_ms[is_between] = times_ms[start] + into / (ends[start + 1] - ends[start])
    if len(ends):
        written_ms[offsets < ends[0]] = times_ms[0]
    methods = np.where(is_between, _METHOD[lag.INTERPOLATED], _METHOD[lag.AT_LEAST])
    ages = np.maximum(0.0, (now_ms - written_ms) / 1000)
    for row in np.flatnonzero(~is_between).tolist() if known.found else ():
        asked_ms = known.found.get(int(offsets[row]))
        if asked_ms is not None and (now_ms - asked_ms) / 1000 >= ages[row]:
            ages[row], methods[row] = (now_ms - asked_ms) / 1000, _METHOD[lag.LIST_OFFSETS]
    return ages, methods
