"""What lag was in the last hour, for charts: groups, and as many partitions as there is room for.

All series share one axis of time. A sample of all groups is taken every few seconds; when there are more moments than
`points`, every second one of the older half goes, from the axis and from every series alike, so the picture is dense
lately and sparser the older. A series takes 12 bytes a moment for a group and 8 for a partition: at 180 moments,
20,000 groups are 43 MB and the 5,000 partitions that are kept at most are 7 MB. Of more groups there are fewer moments.
Kept in memory only: what has to outlive a restart is Prometheus's.
"""

import math
import threading
from array import array
from bisect import bisect_right
from collections.abc import Callable, Mapping
from typing import Any, Final

from coordinator_model.lag import AT_LEAST
from streaming.base.persistent_map import GroupMap
from streaming.base.throttle import in_lots, no_pause
from streaming.board.board_group import BoardGroup
from streaming.board.group_lag import TopicLag, total
from streaming.board.lag_changes import Unrest
from streaming.end_offsets.store import EndOffsets

POINTS: Final = 180


SPAN_MS: Final = 3_600_000


FEWEST_POINTS: Final = 60


MOST_VALUES: Final = 4_000_000


MOST_PARTITIONS: Final = 5_000


SHOWN_PARTITIONS: Final = 12
"""Most lines that a chart can show and a person can tell apart."""


_UNKNOWN: Final = -1


Place = tuple[str, str, int]
"""(group, topic, partition)"""


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
        self._room = most_partitions
        self._unrest = Unrest()
        # What was last worked out: a group of which nothing changed has the same figures at the next moment.
        self._figures: dict[str, tuple[int, float]] = {}
        self._places: dict[str, dict[Place, int]] = {}
        self._behind: dict[str, list[tuple[str, int, int, bool]]] = {}
        self._lock = threading.Lock()
        self._times = array("q")
        # A series is as long as the axis, or shorter: then it began later, and its end is the axis's end.
        self._records: dict[str, array[int]] = {}
        self._seconds: dict[str, array[float]] = {}
        self._partitions: dict[Place, array[int]] = {}

    def sample(
        self,
        groups: GroupMap[BoardGroup],
        ends: EndOffsets,
        now_ms: int,
        between: Callable[[], object] = no_pause,
    ) -> None:
        """Take the lag of all groups at this moment; groups and partitions that are gone take their series along.

        `between` is called between some groups and others: where it pauses, the later ones are measured against log
        ends that are as much later.
        """
        names, gone = self._unrest.look(groups, ends, between)
        for name in gone:
            self._figures.pop(name, None)
            self._behind.pop(name, None)
            self._keep_places(name, {})
        resting = []
        for name in in_lots(sorted(names), between):
            lags = groups[name].topic_lags(ends, now_ms)
            sums = total(lags)
            self._figures[name] = (_known(sums.records), math.nan if sums.max_seconds is None else sums.max_seconds)
            self._keep_behind(name, lags)
            self._keep_places(
                name,
                {
                    (name, each.topic, partition): _known(records)
                    for each in lags
                    for partition, records in zip(each.partitions, each.records, strict=True)
                },
            )
            if not any(each.fleeting for each in lags):
                resting.append(name)
        self._unrest.rest(resting)
        ends.hold(self._earliest_behind())
        with self._lock:
            while self._times and self._times[-1] >= now_ms:  # a clock set back
                self._cut(len(self._times) - 1, len(self._times))
            self._times.append(now_ms)
            _append(self._records, {name: records for name, (records, _) in self._figures.items()}, "q")
            _append(self._seconds, {name: seconds for name, (_, seconds) in self._figures.items()}, "f")
            _append(self._partitions, {place: at for of in self._places.values() for place, at in of.items()}, "q")
            self._forget(now_ms)

    def group(self, name: str) -> dict[str, Any]:
        """`times` (ms), `lag`, `max_lag_seconds`, and `partitions` with the largest lag; null where not known."""
        with self._lock:
            records = self._records.get(name, array("q"))
            times = self._times[len(self._times) - len(records) :]
            seconds = self._seconds.get(name, array("f"))
            series = {place[1:]: values for place, values in self._partitions.items() if place[0] == name}
            largest = sorted(series, key=lambda place: (-max(series[place]), place))
            return {
                "times": times.tolist(),
                "lag": [_shown(value) for value in records],
                "max_lag_seconds": [None if math.isnan(value) else round(value, 1) for value in seconds],
                "partition_count": len(series),
                "partitions": [
                    {"topic": topic, "partition": partition, "lag": _padded(series[topic, partition], len(times))}
                    for topic, partition in largest[:SHOWN_PARTITIONS]
                ],
            }

    def grew(self, name: str, since_ms: int) -> bool | None:
        """Whether a group's lag is larger than it was then; None where it was not sampled so long ago."""
        with self._lock:
            records = self._records.get(name)
            if not records or not self._times:
                return None
            at = bisect_right(self._times, since_ms) - 1 - (len(self._times) - len(records))
            if at < 0 or _UNKNOWN in (records[at], records[-1]):
                return None
            return records[-1] > records[at]

    def trends(self, points: int) -> dict[str, Any]:
        """Of every group that ever lagged the lag at the last `points` moments; a flat line is left out."""
        with self._lock:
            times = self._times[-points:]
            lines = ((name, values[-points:]) for name, values in self._records.items())
            shown = {name: [_shown(value) for value in line] for name, line in lines if any(line)}
            return {"times": times.tolist(), "groups": shown}

    def without_time(self) -> set[tuple[str, int, int]]:
        """(topic, partition, committed offset) where the last sample had but a lower bound of the lag in seconds."""
        behind = list(self._behind.values())
        return {place[:3] for places in behind for place in places if place[3]}

    def _keep_behind(self, name: str, lags: list[TopicLag]) -> None:
        """Remember where the group is behind, and whether since when is known."""
        places = [
            (each.topic, partition, offset, method == AT_LEAST)
            for each in lags
            for partition, offset, records, method in zip(
                each.partitions, each.committed, each.records, each.methods, strict=True
            )
            if records
        ]
        if places:
            self._behind[name] = places
        else:
            self._behind.pop(name, None)

    def _earliest_behind(self) -> dict[tuple[str, int], int]:
        """Partition → the earliest offset that a group is behind at."""
        found: dict[tuple[str, int], int] = {}
        for places in self._behind.values():
            for topic, partition, offset, _ in places:
                known = found.get((topic, partition))
                if known is None or offset < known:
                    found[topic, partition] = offset
        return found

    def _keep_places(self, name: str, places: dict[Place, int]) -> None:
        """Follow a group's partitions where there is room for all of them; those that came first stay."""
        self._room += len(self._places.pop(name, ()))
        if 0 < len(places) <= self._room:
            self._places[name] = places
            self._room -= len(places)

    def _forget(self, now_ms: int) -> None:
        times = self._times
        gone = sum(1 for moment in times if moment < now_ms - self._span_ms)
        if gone:
            self._cut(0, gone)
        if len(times) > min(self._points, max(FEWEST_POINTS, MOST_VALUES // max(1, len(self._records)))):
            self._cut(1, len(times) // 2, step=2)

    def _cut(self, start: int, stop: int, step: int = 1) -> None:
        moments = len(self._times)
        for series in (self._records, self._seconds, self._partitions):
            for values in series.values():
                missing = moments - len(values)
                first = start + step * max(0, -(-(missing - start) // step))
                if stop > missing:
                    del values[first - missing : stop - missing : step]
        del self._times[start:stop:step]


def _append(series: dict[Any, Any], values: Mapping[Any, float], typecode: str) -> None:
    for gone in series.keys() - values.keys():
        del series[gone]
    for key, value in values.items():
        line = series.get(key)
        if line is None:
            line = series[key] = array(typecode)
        line.append(value)


def _known(records: int | None) -> int:
    return _UNKNOWN if records is None else records


def _shown(value: int) -> int | None:
    return None if value == _UNKNOWN else value


def _padded(values: "array[int]", length: int) -> list[int | None]:
    return [None] * (length - len(values)) + [_shown(value) for value in values]
