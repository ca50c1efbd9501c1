"""What lag was in the last hour, for charts: groups, and as many partitions as there is room for.

All series share one axis of time. A sample of all groups is taken every few seconds; when there are more moments than
`points`, every second one of the older half goes, so the picture is dense lately and sparser the older. A moment is a
column with a place for each series, kept compressed: where little moves, a group takes some bytes of it. Of more than
20,000 groups there are fewer moments. Charts have a gap where the lag of a group is unknown; whether it grew is judged
by the lag that was last known. Kept in memory only: what has to outlive a restart is Prometheus's.
"""

import threading
import zlib
from bisect import bisect_left, bisect_right
from collections.abc import Hashable, Iterable, Sequence
from typing import Final, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from coordinator_model import lag
from streaming.base.answers import LagAnswer
from streaming.base.persistent_map import GroupMap
from streaming.board.board_group import BoardGroup
from streaming.board.lag_columns import UNKNOWN, Lags, OffsetTable, begins_of, measure, or_none, table_of, unclear
from streaming.end_offsets.store import EndOffsets

POINTS: Final = 180
SPAN_MS: Final = 3_600_000
FEWEST_POINTS: Final = 60
MOST_VALUES: Final = 4_000_000
MOST_PARTITIONS: Final = 5_000
SHOWN_PARTITIONS: Final = 12
"""Most lines that a chart can show and a person can tell apart."""

_QUICK: Final = 1

LaggingPartition = tuple[str, str, int]
"""(group, topic, partition)"""

Key = TypeVar("Key", bound=Hashable)


class LagHistory:
    """Lag by group and partition over time; written by one thread, read by many.

    Args:
        points: most moments kept.
        span_ms: how far back.
        most_partitions: most partitions with a series of their own, the first that come.
    """

    def __init__(self, points: int = POINTS, span_ms: int = SPAN_MS, most_partitions: int = MOST_PARTITIONS) -> None:
        self._points = max(4, points)
        self._span_ms = span_ms
        self._most_partitions = most_partitions
        self._followed: list[str] = []
        self._without_time: set[tuple[str, int, int]] = set()
        self._may_hold_no_record: set[tuple[str, int, int]] = set()
        self._lock = threading.Lock()
        self._times: list[int] = []
        self._groups: _Lines[str] = _Lines()
        self._partitions: _Lines[LaggingPartition] = _Lines()

    def sample(self, groups: GroupMap[BoardGroup], ends: EndOffsets, now_ms: int) -> Lags:
        """Take the lag of all groups at this moment; groups and partitions that are gone take their series along.

        Returns what was measured.
        """
        table = table_of(groups.values())
        lags = measure(table, ends, now_ms)
        ends.hold(_earliest_behind(lags))
        self._without_time = _without_time(lags)
        self._may_hold_no_record = unclear(lags, ends, now_ms)
        rows, places = self._follow(table)
        with self._lock:
            while self._times and self._times[-1] >= now_ms:  # a clock set back
                self._cut(slice(len(self._times) - 1, None))
            self._times.append(now_ms)
            self._groups.append(now_ms, table.groups.names, self._carried(lags), lags.max_seconds)
            self._partitions.append(now_ms, places, lags.records[rows])
            self._forget(now_ms)
        return lags

    def group(self, name: str) -> LagAnswer:
        """`times` (ms), `lag`, `max_lag_seconds`, and `partitions` with the largest lag; null where not known."""
        with self._lock:
            records, seconds = self._groups.line(name, self._times)
            times = self._times[len(self._times) - len(records) :]
            places = [place for place in self._partitions.keys if place[0] == name]
            series = {place[1:]: self._partitions.line(place, self._times)[0] for place in places}
            largest = sorted(series, key=lambda place: (-max(series[place]), place))
            return {
                "times": times,
                "lag": _shown(records),
                "max_lag_seconds": or_none(round(value, 1) for value in seconds),
                "partition_count": len(series),
                "partitions": [
                    {"topic": topic, "partition": partition, "lag": _padded(series[topic, partition], len(times))}
                    for topic, partition in largest[:SHOWN_PARTITIONS]
                ],
            }

    def grew(self, name: str, since_ms: int) -> bool | None:
        """Whether a group's lag is larger than it was then, each as it was last known; None where it never was."""
        with self._lock:
            at = bisect_right(self._times, since_ms) - 1
            if at < 0:
                return None
            began_ms = self._times[at]
            was, now = (_last_known(self._groups.value(name, began_ms, moment)) for moment in (at, -1))
            return None if UNKNOWN in (was, now) else now > was

    def last_known(self, name: str) -> int | None:
        """A group's lag as it was last known, in the last hour; None where it never was."""
        with self._lock:
            if not self._times:
                return None
            found = _last_known(self._groups.value(name, self._times[-1], -1))
            return None if found == UNKNOWN else found

    def trends(self, points: int) -> LagAnswer:
        """Of every group that ever lagged the lag at the last `points` moments; a flat line is left out."""
        with self._lock:
            times = self._times[-points:]
            lines = self._groups.lines(times)
            return {"times": times, "groups": {name: _shown(line) for name, line in lines.items()}}

    def without_time(self) -> set[tuple[str, int, int]]:
        """(topic, partition, offset of the first record that may wait) of lag in seconds that is but a lower bound."""
        return self._without_time

    def may_hold_no_record(self) -> set[tuple[str, int, int]]:
        """`lag_columns.unclear` of the last sample."""
        return self._may_hold_no_record

    def _carried(self, lags: Lags) -> npt.NDArray[np.int64]:
        """Group → its lag; where that is not known, negative, the last that was (`_unknown_since`)."""
        found = lags.sum_records.copy()
        for number in np.flatnonzero(lags.unknown_offsets).tolist() if len(self._times) > 1 else ():
            former = self._groups.value(lags.table.groups.names[number], self._times[-2], -1)
            found[number] = _unknown_since(_last_known(former))
        return found

    def _follow(self, table: OffsetTable) -> tuple[list[int], list[LaggingPartition]]:
        """Rows of the partitions with series of their own: of groups that have room for all; the first ones stay."""
        names, numbers = table.groups.names, table.groups.places
        sizes = np.bincount(table.owners, minlength=len(table.groups))
        firsts = np.cumsum(sizes) - sizes
        room, followed = self._most_partitions, []
        rows: list[int] = []
        former = [numbers[name] for name in self._followed if name in numbers]
        others = np.flatnonzero((sizes > 0) & (sizes <= room - int(sizes[former].sum())))
        for number in dict.fromkeys([*former, *others.tolist()]):
            size, first = int(sizes[number]), int(firsts[number])
            if 0 < size <= room:
                room -= size
                followed.append(names[number])
                rows += range(first, first + size)
            if not room:
                break
        self._followed = followed
        of_rows = zip(table.owners[rows].tolist(), table.place_of[rows].tolist(), strict=True)
        return rows, [(names[owner], *table.places[place]) for owner, place in of_rows]

    def _forget(self, now_ms: int) -> None:
        gone = bisect_left(self._times, now_ms - self._span_ms)
        if gone:
            self._cut(slice(0, gone))
        times = self._times
        if len(times) > min(self._points, max(FEWEST_POINTS, MOST_VALUES // max(1, len(self._groups.keys)))):
            self._cut(slice(1, len(times) // 2, 2))

    def _cut(self, moments: slice) -> None:
        for of in (self._times, self._groups.columns, self._partitions.columns):
            del of[moments]


class _Lines(Generic[Key]):
    """Values of many keys over time: a column for each moment, in which a key has its place as long as it is there.

    Attributes:
        keys: key → its place.
        columns: of each moment the values, integers and seconds, compressed.
    """

    def __init__(self) -> None:
        self.keys: dict[Key, int] = {}
        self.columns: list[tuple[bytes, bytes]] = []
        self._order: Sequence[Key] = ()
        self._at = np.empty(0, np.int64)
        self._free: list[int] = []
        # When a key came to its place: what stands there in older columns is of another.
        self._began_ms = np.empty(0, np.int64)
        self._read: dict[bytes, npt.NDArray[np.int64]] = {}

    def append(
        self,
        now_ms: int,
        keys: Sequence[Key],
        values: npt.NDArray[np.int64],
        seconds: npt.NDArray[np.float64] | None = None,
    ) -> None:
        """Take a moment; keys that are not among these are gone."""
        if keys != self._order:
            self._place(now_ms, keys)
        column = np.full(len(self._began_ms), UNKNOWN, np.int64)
        column[self._at] = values
        ages = np.full(0 if seconds is None else len(column), np.nan, np.float32)
        if seconds is not None:
            ages[self._at] = seconds
        self.columns.append((zlib.compress(column.tobytes(), _QUICK), zlib.compress(ages.tobytes(), _QUICK)))

    def line(self, key: Key, times: Sequence[int]) -> tuple[list[int], list[float]]:
        """The values of a key and its seconds, from the moment on at which it came; none for none."""
        at = self.keys.get(key)
        if at is None:
            return [], []
        columns = self.columns[bisect_left(times, int(self._began_ms[at])) :]
        ages = (np.frombuffer(zlib.decompress(packed), np.float32) for _, packed in columns)
        return [int(_unpacked(packed)[at]) for packed, _ in columns], [float(of[at]) for of in ages if len(of)]

    def value(self, key: Key, since_ms: int, moment: int) -> int:
        """The value of a key at a moment, if it was there since then; `UNKNOWN` if not."""
        at = self.keys.get(key)
        if at is None or self._began_ms[at] > since_ms:
            return UNKNOWN
        packed = self.columns[moment][0]
        column = self._read.get(packed)
        if column is None:
            # Callers ask about all groups, at the same two moments.
            self._read = {**dict(list(self._read.items())[-1:]), packed: (column := _unpacked(packed))}
        return int(column[at])

    def lines(self, times: Sequence[int]) -> dict[Key, list[int]]:
        """The values at the last moments, which were at these times, of keys of which one is not 0."""
        columns = [_unpacked(packed) for packed, _ in self.columns[len(self.columns) - len(times) :]]
        values = np.full((len(columns), len(self._began_ms)), UNKNOWN, np.int64)
        for row, column in zip(values, columns, strict=True):
            row[: len(column)] = column
        is_there = np.array(times, np.int64)[:, None] >= self._began_ms
        moves = ((values != 0) & is_there).any(axis=0)
        firsts = np.searchsorted(times, self._began_ms)
        return {key: values[firsts[at] :, at].tolist() for key, at in self.keys.items() if moves[at]}

    def _place(self, now_ms: int, keys: Sequence[Key]) -> None:
        for gone in self.keys.keys() - set(keys):
            self._free.append(self.keys.pop(gone))
        began_ms = self._began_ms.tolist()
        for key in keys:
            if key not in self.keys:
                if not self._free:
                    self._free.append(len(began_ms))
                    began_ms.append(now_ms)
                at = self.keys[key] = self._free.pop()
                began_ms[at] = now_ms
        self._began_ms = np.array(began_ms, np.int64)
        self._at = np.array([self.keys[key] for key in keys], np.int64)
        self._order = keys


def _unknown_since(value: int) -> int:
    """What stands for a lag that is not known, and was this when it was last known."""
    return value if value == UNKNOWN else UNKNOWN - 1 - value


def _last_known(value: int) -> int:
    """Inverse of it; what is known is itself."""
    return value if value >= UNKNOWN else UNKNOWN - 1 - value


def _shown(values: Iterable[int]) -> list[int | None]:
    return [None if value < 0 else value for value in values]


def _unpacked(column: bytes) -> npt.NDArray[np.int64]:
    return np.frombuffer(zlib.decompress(column), np.int64)


def _earliest_behind(lags: Lags) -> dict[tuple[str, int], int]:
    """Partition → the earliest offset that a group is behind at."""
    table = lags.table
    rows = np.flatnonzero(lags.records > 0)
    rows = rows[np.lexsort((table.offsets[rows], table.place_of[rows]))]
    places = table.place_of[rows]
    first = begins_of(places)
    offsets = table.offsets[rows[first]].tolist()
    return {table.places[place]: offset for place, offset in zip(places[first].tolist(), offsets, strict=True)}


def _without_time(lags: Lags) -> set[tuple[str, int, int]]:
    table = lags.table
    rows = np.flatnonzero(lags.methods == lag.METHODS.index(lag.AT_LEAST))
    asked = zip(table.place_of[rows].tolist(), lags.waits_from[rows].tolist(), strict=True)
    return {(*table.places[place], offset) for place, offset in set(asked)}


def _padded(values: Sequence[int], length: int) -> list[int | None]:
    return [None] * (length - len(values)) + or_none(values)
