"""The history's files: rows are kept by day, merged while files are small, and removed when they are old."""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from streaming.base.errors import CannotTellError
from streaming.history import store as store_module
from streaming.history.queries import History, Was
from streaming.history.store import FAN_IN, FULL_LEVEL, HistoryStore, Retention
from streaming.history.tables import EVENTS, GROUPS, rows
from tests.streaming.history.entries import DAY_MS, NOON_MS, deleted, event, state

Entry = Mapping[str, Any]


class Kept:
    """A store with a clock that is set, and the questions put to it."""

    def __init__(self, directory: Path) -> None:
        self.now_ms = NOON_MS
        self.store = HistoryStore(directory, lambda: self.now_ms)
        self.history = History(directory)
        self._position = 0

    def write(self, entries: Iterable[Entry]) -> None:
        """One write of the given entries, with the positions that follow."""
        numbered = list(enumerate(entries, self._position))
        self._position += len(numbered)
        for table, ordered in rows(numbered).items():
            self.store.write(table, ordered)

    def offsets(self, group: str = "a", **asked: int) -> list[int]:
        """Offsets of a group's events, in the order they are reported."""
        return [found["offset"] for found in self.history.timeline(group, **asked)]

    def names(self) -> list[str]:
        """All files below the directory, by day and level."""
        return sorted(f"{file.day} {file.level}" for file in self.store.all_files())


@pytest.fixture
def kept(tmp_path: Path) -> Kept:
    return Kept(tmp_path / "history")


def test_event_comes_back_as_it_was_reported(kept: Kept) -> None:
    """What a timeline shows is the EVENT with its id, detail included."""
    reported = event(5, group='quo"te\n☃', kind="epoch_anomaly")
    kept.write([reported])

    assert [reported["event"]] == kept.history.timeline('quo"te\n☃')
    assert [] == kept.history.timeline("another")


def test_files_stand_under_the_day_of_the_event(kept: Kept) -> None:
    """The log's time decides, not the clock; so a day can be asked for, or removed, by its directory."""
    kept.write([event(1, time_ms=NOON_MS - DAY_MS), event(2), event(3, time_ms=NOON_MS + DAY_MS // 2)])

    assert ["2024-10-03", "2024-10-04", "2024-10-05"] == kept.store.days(EVENTS)


def test_times_beyond_the_calendar_are_kept(kept: Kept) -> None:
    """A log may hold any number for a time: it comes back as it was."""
    times = [-1, 0, (1 << 62), -(1 << 62)]
    kept.write([event(offset, time_ms=time_ms) for offset, time_ms in enumerate(times)])

    assert sorted(times) == [found["time"] for found in kept.history.timeline("a")]
    assert ["0001-01-01", "1969-12-31", "1970-01-01", "9999-12-31"] == kept.store.days(EVENTS)


def test_event_written_twice_is_reported_once(kept: Kept) -> None:
    """What is delivered again after a crash changes nothing: not before files are merged, and not after."""
    for _ in range(FAN_IN):
        kept.write([event(1), event(2)])

    assert [1, 2] == kept.offsets()
    assert [2] == kept.offsets(limit=1)
    assert FAN_IN == kept.store.compact()
    assert [1, 2] == kept.offsets()
    (file,) = kept.store.files(EVENTS, "2024-10-04")
    assert 2 == pq.read_metadata(file.path).num_rows


def test_timeline_keeps_to_its_bounds(kept: Kept) -> None:
    """From `since` up to and including `until`; of those, the latest `limit`, however many days they are of."""
    kept.write([event(day, time_ms=NOON_MS + day * DAY_MS) for day in range(5)])

    assert [1, 2, 3] == kept.offsets(since_ms=NOON_MS + DAY_MS, until_ms=NOON_MS + 3 * DAY_MS)
    assert [3, 4] == kept.offsets(limit=2)
    assert [2, 3] == kept.offsets(limit=2, until_ms=NOON_MS + 4 * DAY_MS - 1)


def test_group_is_as_it_was_last_reported_to_be(kept: Kept) -> None:
    """The state at a time is the last one at or before it; of two of one moment, the one reported later."""
    kept.write([state(1), state(2, time_ms=NOON_MS + 10), state(3, time_ms=NOON_MS + 10)])
    kept.write([state(9, group="b", time_ms=NOON_MS + 5)])

    assert Was(NOON_MS, {"group": "a", "epoch": 1}) == kept.history.state_at("a", NOON_MS + 9)
    assert Was(NOON_MS + 10, {"group": "a", "epoch": 3}) == kept.history.state_at("a", NOON_MS + 10)
    assert Was(NOON_MS + 10, {"group": "a", "epoch": 3}) == kept.history.state_at("a", NOON_MS + 9 * DAY_MS)


def test_deleted_group_was_there_before(kept: Kept) -> None:
    """A deletion is an answer for what follows it, and hides nothing of what was."""
    kept.write([state(1), deleted(time_ms=NOON_MS + 10)])

    assert Was(NOON_MS, {"group": "a", "epoch": 1}) == kept.history.state_at("a", NOON_MS + 9)
    assert Was(NOON_MS + 10, None) == kept.history.state_at("a", NOON_MS + 10)


def test_time_before_the_history_cannot_be_known(kept: Kept) -> None:
    """Before all groups were written once, silence says nothing; the message says how far back it goes."""
    with pytest.raises(CannotTellError, match="accepted: a time that has begun"):
        kept.history.state_at("a", NOON_MS)
    kept.write([state(1)])
    kept.store.set_complete(NOON_MS)

    with pytest.raises(CannotTellError, match=r"found 2024-10-04T11:59:59.999Z.*from 2024-10-04T12:00:00.000Z on"):
        kept.history.state_at("a", NOON_MS - 1)
    assert Was(None, None) == kept.history.state_at("never", NOON_MS)


def test_small_files_become_one(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    """So many files of a level become one of the next, and as many of those one more: a row is written few times."""
    monkeypatch.setattr(store_module, "FAN_IN", 4)
    for number in range(16):
        kept.now_ms += 1_000
        kept.write([event(number), state(number, time_ms=NOON_MS + number)])
        kept.store.compact()

    assert ["2024-10-04 2", "2024-10-04 2"] == kept.names()
    assert list(range(16)) == kept.offsets()
    assert {"group": "a", "epoch": 11} == kept.history.state_at("a", NOON_MS + 11).state


def test_day_that_is_over_becomes_one_file(kept: Kept) -> None:
    """An hour after its end a day's files are merged, however few and of whatever level."""
    kept.write([event(1)])
    kept.write([event(2)])
    kept.now_ms = NOON_MS + DAY_MS // 2 + 3_600_000
    assert 0 == kept.store.compact()
    kept.now_ms += 1

    assert 2 == kept.store.compact()
    assert ["2024-10-04 1"] == kept.names()
    assert 0 == kept.store.compact()


def test_long_files_are_merged_no_more(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    """What fills half of the memory a merge may take is left alone from then on, and nothing is lost on the way."""
    monkeypatch.setattr(store_module, "MERGE_BYTES", 4_000)
    for number in range(3 * FAN_IN):
        kept.write([event(number * 10 + place, group=f"g{place}") for place in range(10)])
        kept.store.compact()
    kept.now_ms += 2 * DAY_MS
    while kept.store.compact():
        pass

    assert f"2024-10-04 {FULL_LEVEL}" in kept.names()
    assert [number * 10 + 7 for number in range(3 * FAN_IN)] == kept.offsets("g7")


def test_row_groups_are_of_few_groups(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    """Within a file one group's rows stand together, and statistics name the groups: a question reads little."""
    monkeypatch.setattr(store_module, "_ROW_GROUP_ROWS", 10)
    kept.write([event(number * 10 + place, group=f"g{place}") for number in range(10) for place in range(10)])
    (file,) = kept.store.files(EVENTS, "2024-10-04")
    metadata = pq.read_metadata(file.path)
    column = EVENTS.schema.names.index("group")
    bounds = [metadata.row_group(number).column(column).statistics for number in range(metadata.num_row_groups)]

    assert [(f"g{place}", f"g{place}") for place in range(10)] == [(each.min, each.max) for each in bounds]


def test_merge_that_is_cut_off_tells_nothing_twice(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed before the small files are gone, rows stand in two files; they are reported once and merged into one."""
    for number in range(FAN_IN):
        kept.write([event(number), state(number, time_ms=NOON_MS + number)])
    with monkeypatch.context() as patched:

        def killed(_path: Path, **_: object) -> None:
            raise KeyboardInterrupt

        patched.setattr(Path, "unlink", killed)
        with pytest.raises(KeyboardInterrupt):
            kept.store.compact()

    assert list(range(FAN_IN)) == kept.offsets()
    assert {"group": "a", "epoch": 3} == kept.history.state_at("a", NOON_MS + 3).state
    kept.now_ms += 2 * DAY_MS
    kept.store.compact()
    assert list(range(FAN_IN)) == kept.offsets()
    assert [FAN_IN, FAN_IN] == [pq.read_metadata(file.path).num_rows for file in kept.store.all_files()]


def test_file_that_could_not_be_finished_is_not_there(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that is full leaves no half of a file, and what a kill leaves is removed at the next start."""
    with monkeypatch.context() as patched:

        def full(_handle: int) -> None:
            raise OSError(28, "No space left on device")

        patched.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="No space"):
            kept.write([event(1)])
    assert [] == [path for path in kept.store.directory.rglob("*") if path.is_file()]
    kept.write([event(2)])
    (file,) = kept.store.all_files()
    left = file.path.with_name(f".{file.path.name}.new")
    left.write_bytes(b"PAR1")

    assert [2] == kept.offsets()
    kept.store.clean()
    assert not left.exists()


def test_files_of_others_are_neither_read_nor_removed(kept: Kept) -> None:
    """Whatever somebody lays into the directory: questions, merges and removal go on around it."""
    for number in range(FAN_IN):
        kept.now_ms += 1
        kept.write([event(number), state(number)])
    kept.store.set_complete(NOON_MS)
    day = kept.store.files(EVENTS, "2024-10-04")[0].path.parent
    foreign = [
        day / "1-foo.parquet",
        day / "part-0000.parquet",
        day / "notes.txt",
        day.parent / "day=today" / "0-1728043200000-5f3a91c2.parquet",
        kept.store.directory / "groups" / "day=2024-10-04" / "_complete-never",
    ]
    for path in foreign:
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"somebody's own")

    assert list(range(FAN_IN)) == kept.offsets()
    assert [NOON_MS] == kept.store.complete_times_ms()
    assert 2 * FAN_IN == kept.store.compact()
    assert list(range(FAN_IN)) == kept.offsets()
    kept.now_ms += 9 * DAY_MS
    assert 2 == len(kept.store.retain(Retention(1, 1 << 40)))
    assert [] == kept.offsets()
    assert foreign == [path for path in foreign if path.exists()]


def test_damaged_file_is_named_and_set_aside(kept: Kept) -> None:
    """A question says which file cannot be read; the next merge takes it out of the way and keeps its bytes."""
    for number in range(FAN_IN):
        kept.now_ms += 1
        kept.write([event(number)])
    damaged = kept.store.files(EVENTS, "2024-10-04")[3].path
    damaged.write_bytes(b"not parquet at all")

    with pytest.raises(CannotTellError, match=damaged.name):
        kept.history.timeline("a")
    kept.store.compact()
    assert [0, 1, 2, 4, 5, 6, 7] == kept.offsets()
    assert damaged.with_name(f"{damaged.name}.damaged").exists()


def test_question_is_put_again_when_files_were_merged(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that went between looking and reading is in another one."""
    for number in range(FAN_IN):
        kept.write([event(number)])
    listed = HistoryStore.files
    merged: list[int] = []

    def files(self: HistoryStore, *asked: Any) -> Any:
        found = listed(self, *asked)
        if not merged:
            merged.append(0)
            merged.append(kept.store.compact())
        return found

    monkeypatch.setattr(HistoryStore, "files", files)

    assert list(range(FAN_IN)) == kept.offsets()
    assert [0, FAN_IN] == merged


def test_old_days_go(kept: Kept) -> None:
    """Days before the oldest that is kept go whole, in both tables, with what says that they are complete."""
    for day in range(4):
        kept.write([event(day, time_ms=NOON_MS + day * DAY_MS), state(day, time_ms=NOON_MS + day * DAY_MS)])
        kept.store.set_complete(NOON_MS + day * DAY_MS)
    kept.now_ms = NOON_MS + 3 * DAY_MS

    assert 4 == len(kept.store.retain(Retention(days=1, max_bytes=1 << 40)))
    assert ["2024-10-06", "2024-10-07"] == kept.store.days(EVENTS) == kept.store.days(GROUPS)
    assert [NOON_MS + 2 * DAY_MS, NOON_MS + 3 * DAY_MS] == kept.store.complete_times_ms()
    with pytest.raises(CannotTellError, match=r"from 2024-10-06T12:00:00\.000Z on"):
        kept.history.state_at("a", NOON_MS + DAY_MS)


def test_bytes_win_over_days(kept: Kept) -> None:
    """Beyond the bytes that are kept the oldest days go first; of today, the files that were written first."""
    for day in range(3):
        kept.write([event(day, time_ms=NOON_MS + day * DAY_MS)])
    kept.now_ms = NOON_MS + 2 * DAY_MS
    for number in range(3):
        kept.now_ms += 1
        kept.write([event(10 + number, time_ms=kept.now_ms)])
    newest = kept.store.files(EVENTS, "2024-10-06")[-1]
    size = newest.path.stat().st_size

    kept.store.retain(Retention(days=30, max_bytes=int(4.5 * size)))
    assert [2, 10, 11, 12] == kept.offsets()
    kept.store.retain(Retention(days=30, max_bytes=int(1.5 * size)))
    assert [12] == kept.offsets()


def test_commits_of_a_former_group_of_the_name_are_not_shown(kept: Kept) -> None:
    """Between its end and the commits of the next one nothing is committed."""

    def committed(offset: int, *, of_ms: int, time_ms: int) -> Entry:
        place = {"topic": "orders", "partition": 0, "subscribed": None}
        reported = state(1, time_ms=time_ms)
        return {
            **reported,
            "state": {**reported["state"], "offsets": [{**place, "offset": offset, "commit_timestamp": of_ms}]},
        }

    kept.write([committed(1, of_ms=NOON_MS, time_ms=NOON_MS), deleted(time_ms=NOON_MS + 1)])
    kept.write([committed(2, of_ms=NOON_MS + 9, time_ms=NOON_MS + 5)])

    assert [1] == [of["offset"] for of in kept.history.group_at("a", NOON_MS)["offsets"]]
    assert [] == kept.history.group_at("a", NOON_MS + 8)["offsets"]
    assert [2] == [of["offset"] for of in kept.history.group_at("a", NOON_MS + 9)["offsets"]]
