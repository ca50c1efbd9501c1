"""Questions to the history: what happened to a group, and how it was at a time.

A question reads days from the newest to the oldest until it is answered, and of a day's files the row groups whose
statistics admit the group and the time. The process that writes may put files together meanwhile: a file that is gone
is in another one, so the question is put again.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from streaming.base.answers import BurnDownAnswer
from streaming.base.errors import CannotTellError, NoSuchGroupError
from streaming.base.times import time_text
from streaming.history.burn_down import STALLED, BurnDown
from streaming.history.store import HistoryStore
from streaming.history.tables import DAY_MS, EVENTS, GROUPS, RECORDS, Table, day_text, event_of
from streaming.recording.file_format import RecordedRecord

T = TypeVar("T")

DEFAULT_EVENTS: Final = 1_000
MOST_EVENTS: Final = 10_000
POINTS: Final = 61
"""Of a burn-down."""
STALLED_BEFORE_MS: Final = 7 * DAY_MS
"""A roll that stalled longer ago, and still is, is not known to be."""
COMPLETED: Final = "rebalance_completed"
_ATTEMPTS: Final = 5
_APART_MS: Final = 3_600_000
"""So much later than its time nothing is written any more, but while the monitor catches up."""
_EARLIER_STATES: Final = 8
"""States in which a commit is looked for that a later one replaced; the one before nearly always has it."""


class Was(NamedTuple):
    """How a group was: since when, and its GROUP; None where it had been deleted, or never been."""

    time_ms: int | None
    state: dict[str, Any] | None


class _Reported(NamedTuple):
    sequence: int
    time_ms: int
    state: str | None

    @property
    def is_early(self) -> bool:
        """Whether what follows it may stand on the day before."""
        return self.time_ms % DAY_MS < _APART_MS

    def was(self) -> Was:
        return Was(self.time_ms, None if self.state is None else json.loads(self.state))


class _Wanted(NamedTuple):
    """Rows of one group, or of all (None), from a time up to and including another one."""

    group: str | None
    since_ms: int | None = None
    until_ms: int | None = None

    def may_be_in(self, group: pq.Statistics | None, time: pq.Statistics | None) -> bool:
        """Whether a row group with these statistics may hold such rows; it may where there are none."""
        known = group is not None and group.has_min_max
        if known and self.group is not None and group is not None and not group.min <= self.group <= group.max:
            return False
        # As numbers: a log may hold times that no calendar has.
        if time is None or not time.has_min_max:
            return True
        return (self.since_ms is None or time.max_raw >= self.since_ms) and (
            self.until_ms is None or time.min_raw <= self.until_ms
        )

    def has_commit(self, offset: Mapping[str, Any]) -> bool:
        """Whether a committed offset was committed by then; one without a time may have been."""
        committed_ms = offset["commit_timestamp"]
        return self.until_ms is None or committed_ms is None or committed_ms <= self.until_ms


def _place(offset: Mapping[str, Any]) -> tuple[str, int]:
    return offset["topic"], offset["partition"]


@dataclass(frozen=True, slots=True)
class _Part:
    """One row group of a file."""

    file: pq.ParquetFile
    number: int
    wanted: _Wanted

    def read(self, columns: list[str]) -> pa.Table:
        """Some columns of the rows that are wanted; times as numbers."""
        read = self.file.read_row_group(self.number, columns=[*dict.fromkeys([*columns, "group", "time"])])
        times = read.column("time").cast(pa.int64())
        keep = pc.is_valid(times) if self.wanted.group is None else pc.equal(read.column("group"), self.wanted.group)
        if self.wanted.since_ms is not None:
            keep = pc.and_(keep, pc.greater_equal(times, self.wanted.since_ms))
        if self.wanted.until_ms is not None:
            keep = pc.and_(keep, pc.less_equal(times, self.wanted.until_ms))
        return read.set_column(read.schema.get_field_index("time"), "time", times).filter(keep).select(columns)


class History:
    """A history to be asked, in a directory that a monitor writes or wrote.

    Raises:
        CannotTellError: from every question: a file cannot be read.
    """

    def __init__(self, directory: Path) -> None:
        self._store = HistoryStore(directory)

    def timeline(
        self, group: str, *, since_ms: int | None = None, until_ms: int | None = None, limit: int = DEFAULT_EVENTS
    ) -> list[dict[str, Any]]:
        """The latest `limit` EVENTs of a group from `since_ms` up to and including `until_ms`, the oldest first."""
        return self._again(lambda: self._timeline(_Wanted(group, since_ms, until_ms), limit))

    def state_at(self, group: str, at_ms: int) -> Was:
        """How a group was at a time: as it was last written, then or before.

        Raises:
            CannotTellError: the history does not go back so far; the message says how far.
        """
        was = self._again(lambda: self._state_at(_Wanted(group, None, at_ms)))
        if was is not None:
            return was
        complete = self._store.complete_times_ms()
        if complete and complete[0] <= at_ms:
            return Was(None, None)
        reaches = f"from {time_text(complete[0])} on" if complete else "that has begun"
        raise CannotTellError(
            f"--at: found {time_text(at_ms)}, before the history of all groups, accepted: a time {reaches}"
        )

    def events(
        self, group: str, *, since_ms: int | None = None, until_ms: int | None = None, limit: int = DEFAULT_EVENTS
    ) -> list[dict[str, Any]]:
        """As `timeline`; raises NoSuchGroupError where nothing is kept of the group."""
        found = self.timeline(group, since_ms=since_ms, until_ms=until_ms, limit=limit)
        if not found and not self.knows(group):
            raise NoSuchGroupError(f"group: found no {group!r} in the history, accepted: a group it knows")
        return found

    def group_at(self, group: str, at_ms: int) -> dict[str, Any]:
        """The GROUP as it was at a time, with the time of which that is known, `as_of`.

        Raises:
            NoSuchGroupError: there was none then.
            CannotTellError: as `state_at`.
        """
        was = self.state_at(group, at_ms)
        if was.state is None:
            gone = "" if was.time_ms is None else f", deleted {time_text(was.time_ms)}"
            raise NoSuchGroupError(
                f"group: found no {group!r} at {time_text(at_ms)}{gone}, accepted: a group there was then"
            )
        return {**was.state, "as_of": was.time_ms}

    def records(self, group: str) -> list[RecordedRecord]:
        """Records of a group's keys, in the order of the log: the last ones of old keys, and all that followed."""
        return self._again(lambda: self._records(group))

    def burn_down(self, since_ms: int, until_ms: int, chosen: Callable[[str], bool]) -> BurnDownAnswer:
        """The migration of the chosen groups over a span, at `POINTS` times (`burn_down.BurnDown.view`)."""
        return self._again(lambda: self._burn_down(since_ms, until_ms, chosen))

    def rebalances(self, since_ms: int, until_ms: int) -> tuple[int, dict[str, int]]:
        """For how long a span is known (ms), and how many rebalances each group completed in it."""
        return self._again(lambda: self._rebalances(_Wanted(None, since_ms, until_ms)))

    @property
    def directory(self) -> Path:
        """Where its files are."""
        return self._store.directory

    def knows(self, group: str) -> bool:
        """Whether anything is kept of a group."""
        return self._again(
            lambda: any(
                part.read(["group"]).num_rows
                for table in (GROUPS, EVENTS)
                for day in reversed(self._store.days(table))
                for part in self._parts(table, day, _Wanted(group))
            )
        )

    def _timeline(self, wanted: "_Wanted", limit: int) -> list[dict[str, Any]]:
        found: dict[str, dict[str, Any]] = {}
        for day in reversed(self._days(EVENTS, wanted)):
            parts = self._parts(EVENTS, day, wanted)
            held = pa.concat_tables([part.read(["time", "id"]) for part in parts]) if parts else None
            if held is not None and held.num_rows > limit:
                # Of a million events only those that are shown are read whole; written twice, they are one.
                times = held.group_by("id").aggregate([("time", "max")]).column("time_max")
                newest = pc.partition_nth_indices(pc.negate(times), min(limit, len(times)) - 1)
                oldest_ms = pc.min(times.take(newest.slice(0, limit))).as_py()
                parts = self._parts(EVENTS, day, wanted._replace(since_ms=oldest_ms))
            for part in parts:
                found.update((row["id"], event_of(row)) for row in part.read(EVENTS.schema.names).to_pylist())
            if len(found) >= limit:
                break
        return sorted(found.values(), key=lambda event: (event["time"], event["partition"], event["offset"]))[-limit:]

    def _state_at(self, wanted: "_Wanted") -> Was | None:
        days = self._days(GROUPS, wanted)
        while days:
            found = self._latest(wanted, days.pop(), 1)
            if found:
                # Times are the log's, in which a later state may have an earlier time, beyond midnight too.
                before = self._latest(wanted, days.pop(), 1) if days and found[0].is_early else []
                return self._without_later_commits(wanted, max([*found, *before]))
        return None

    def _without_later_commits(self, wanted: "_Wanted", reported: "_Reported") -> Was:
        """The state without commits made after the time asked for; in their place those of earlier states.

        A state has the time of what changed it and the commits of its whole batch, and a slow batch has half a minute
        of them. A partition that no earlier state has an earlier commit of is left out.
        """
        was = reported.was()
        offsets = [] if was.state is None else was.state.get("offsets", [])
        earlier = {_place(of): None for of in offsets if not wanted.has_commit(of)}
        if was.state is None or not earlier:
            return was
        found: dict[tuple[str, int], dict[str, Any]] = {}
        for state in (former.was().state for former in self._before(wanted, reported.sequence)):
            if state is None:  # a group of this name ended: what it committed is not this one's
                break
            for of in state.get("offsets", []):
                if _place(of) in earlier and wanted.has_commit(of):
                    found.setdefault(_place(of), of)
            if found.keys() == earlier.keys():
                break
        kept = (
            of if _place(of) not in earlier else {**found[_place(of)], "subscribed": of.get("subscribed")}
            for of in offsets
            if _place(of) not in earlier or _place(of) in found
        )
        return was._replace(state={**was.state, "offsets": list(kept)})

    def _before(self, wanted: "_Wanted", sequence: int) -> Iterator["_Reported"]:
        """The states written before that one, the last first."""
        left = _EARLIER_STATES
        for day in reversed(self._days(GROUPS, wanted)):
            found = self._latest(wanted, day, left, before=sequence)
            yield from found
            left -= len(found)
            if left == 0:
                break

    def _latest(self, wanted: "_Wanted", day: str, most: int, *, before: int | None = None) -> list["_Reported"]:
        """The states of a day that were written last, and before that one; not of a later time; the last first."""
        parts = [
            (part, frozenset(part.read(["sequence"]).column("sequence").to_pylist()))
            for part in self._parts(GROUPS, day, wanted)
        ]
        written = {sequence for _, of in parts for sequence in of if before is None or sequence < before}
        latest = sorted(written)[-most:]
        found: dict[int, _Reported] = {}
        for part in (part for part, of in parts if not of.isdisjoint(latest)):
            rows = part.read(["sequence", "time", "state"])
            rows = rows.filter(pc.is_in(rows.column("sequence"), pa.array(latest, pa.int64())))
            found.update((row["sequence"], _Reported._make(row.values())) for row in rows.to_pylist())
        return [found[sequence] for sequence in reversed(latest)]

    def _burn_down(self, since_ms: int, until_ms: int, chosen: Callable[[str], bool]) -> BurnDownAnswer:
        step = max(1, (until_ms - since_ms) // (POINTS - 1))
        made = BurnDown([until_ms - step * number for number in range(POINTS - 1, -1, -1)], chosen)
        # Each day holds the states of all groups, the first one perhaps not from its beginning on.
        wanted = _Wanted(None, made.times_ms[0] - DAY_MS, until_ms)
        for day in self._days(GROUPS, wanted):
            for part in self._parts(GROUPS, day, wanted):
                keys = part.read(["group", "time", "sequence"])
                rows = made.wanted(*(keys.column(name).to_pylist() for name in ("group", "time", "sequence")))
                if rows:
                    made.take(part.read(["state"]).column("state").take(rows).to_pylist())
        wanted = _Wanted(None, made.times_ms[0] - STALLED_BEFORE_MS, until_ms)
        for day in self._days(EVENTS, wanted):
            for part in self._parts(EVENTS, day, wanted):
                kept = part.read(["group", "time", "kind", "detail"])
                for row in kept.filter(pc.equal(kept.column("kind"), STALLED)).to_pylist():
                    made.stalled(row["group"], row["time"], cleared=bool(json.loads(row["detail"]).get("cleared")))
        complete = self._store.complete_times_ms()
        return made.view(complete[0] if complete else None)

    def _rebalances(self, wanted: "_Wanted") -> tuple[int, dict[str, int]]:
        assert wanted.since_ms is not None  # noqa: S101 - the caller gives both
        assert wanted.until_ms is not None  # noqa: S101 - as above
        complete = self._store.complete_times_ms()
        if not complete:
            return 0, {}
        group_of: dict[str, str] = {}
        for day in self._days(EVENTS, wanted):
            for part in self._parts(EVENTS, day, wanted):
                kept = part.read(["id", "group", "kind"])
                kept = kept.filter(pc.equal(kept.column("kind"), COMPLETED))
                # Written twice, they are one.
                group_of.update(zip(kept.column("id").to_pylist(), kept.column("group").to_pylist(), strict=True))
        return max(0, wanted.until_ms - max(wanted.since_ms, complete[0])), Counter(group_of.values())

    def _records(self, group: str) -> list[RecordedRecord]:
        columns = ["partition", "offset", "time", "key", "value"]
        found = {
            (row["partition"], row["offset"]): RecordedRecord(*row.values())
            for day in self._store.days(RECORDS)
            for part in self._parts(RECORDS, day, _Wanted(group))
            for row in part.read(columns).to_pylist()
        }
        return [found[place] for place in sorted(found)]

    def _days(self, table: Table, wanted: "_Wanted") -> list[str]:
        first = "" if wanted.since_ms is None else day_text(wanted.since_ms)
        last = "~" if wanted.until_ms is None else day_text(wanted.until_ms)
        return [day for day in self._store.days(table) if first <= day <= last]

    def _parts(self, table: Table, day: str, wanted: "_Wanted") -> list["_Part"]:
        """The row groups of a day that may hold what is wanted."""
        found = []
        for stored in self._store.files(table, day):
            try:
                file = pq.ParquetFile(stored.path)
            except pa.ArrowInvalid as error:
                raise pa.ArrowInvalid(f"{stored.path}: {error}") from None
            places = [table.schema.names.index(name) for name in ("group", "time")]
            for number in range(file.metadata.num_row_groups):
                row_group = file.metadata.row_group(number)
                group, time = (row_group.column(place).statistics for place in places)
                if wanted.may_be_in(group, time):
                    found.append(_Part(file, number, wanted))
        return found

    def _again(self, ask: Callable[[], T]) -> T:
        for attempt in range(_ATTEMPTS):
            try:
                return ask()
            except (pa.ArrowInvalid, OSError) as error:
                if isinstance(error, FileNotFoundError) and attempt < _ATTEMPTS - 1:
                    continue
                reason = str(error).splitlines()[0]
                raise CannotTellError(f"history: found {reason}, accepted: files that a monitor wrote") from error
        raise AssertionError  # the last attempt returned or raised
