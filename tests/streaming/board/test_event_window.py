"""The latest events: each once, in the order they came in, and there again after a restart."""

import json
import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from streaming.board.event_window import MOST_CHARACTERS, REMEMBERED_IDS, EventWindow
from streaming.board.event_window_file import RETRY_SECONDS, Event, EventWindowFile
from tests.full_disk import no_room_beyond


def event(offset: int, group: str = "a", kind: str = "member_joined") -> Event:
    """An event as far as the window looks at it; its time is its offset."""
    return {"id": f"0-{offset}-{kind}-0", "time": offset, "group": group, "kind": kind, "offset": offset}


def offsets(window: EventWindow) -> list[int]:
    return [found["offset"] for found in window.latest(1_000)]


def take(window: EventWindow, events: list[Event], batch_id: int) -> list[Event]:
    """Have a window take the events of a micro-batch."""
    return window.add_batch([(of["group"], of["kind"]) for of in events], batch_id, lambda most: events[-most:])


class Runs:
    """One run of a monitor after the other, each with the files as the one before left them."""

    def __init__(self, directory: Path) -> None:
        self.path = directory / "0" / "events.db"
        self.path.parent.mkdir()
        self.now = 0.0
        self.windows: list[EventWindow] = []

    def start(self, size: int = 5) -> EventWindow:
        """The window of another run; the one before was killed, so nothing was closed."""
        following = self.path.parent.parent / str(len(self.windows) + 1)
        shutil.copytree(self.path.parent, following)
        self.path = following / self.path.name
        window = EventWindow(size)
        window.keep(EventWindowFile(self.path, lambda: self.now))
        self.windows.append(window)
        return window

    def lines(self) -> list[Any]:
        """What the file holds."""
        copied = shutil.copytree(self.path.parent, self.path.parent.parent / "copied", dirs_exist_ok=True)
        with closing(sqlite3.connect(copied / self.path.name)) as database:
            return [json.loads(text) for (text,) in database.execute("SELECT text FROM line ORDER BY number")]


@pytest.fixture
def runs(tmp_path: Path) -> Iterator[Runs]:
    runs = Runs(tmp_path)
    yield runs
    for window in runs.windows:
        window.close()


def test_window_is_there_again(runs: Runs) -> None:
    """After a restart the window, its numbers and its counts go on where they were."""
    first = runs.start()
    take(first, [event(offset) for offset in range(7)], batch_id=0)
    take(first, [event(7, group="b")], batch_id=1)
    again = runs.start()

    assert [3, 4, 5, 6, 7] == offsets(again) == offsets(first)
    assert 8 == again.last
    assert {"member_joined": 7} == again.counts_by_group().get("a", {})
    assert 6 == again.number_of("0-5-member_joined-0")
    assert [(7, event(6)), (8, event(7, group="b"))] == again.after(6)
    again.add([event(8)])
    assert 9 == again.last


def test_repeated_batch_tells_and_counts_nothing_twice(runs: Runs) -> None:
    """Spark repeats the batch that a kill interrupted: in the next run too it changes nothing."""
    batch = [event(1), event(2)]
    take(runs.start(), batch, batch_id=4)
    again = runs.start()

    assert [] == take(again, batch, batch_id=4)
    assert [1, 2] == offsets(again)
    assert {"member_joined": 2} == again.counts_by_group().get("a", {})


def test_batch_larger_than_the_window_is_known_again(runs: Runs) -> None:
    """Most of it was counted alone, as the window would have let go of it; its number says that it was taken."""
    batch = [event(offset, kind="member_left" if offset == 1 else "member_joined") for offset in range(12)]
    first = runs.start()
    assert batch[-5:] == take(first, batch, batch_id=4)
    again = runs.start()

    for window in (first, again):
        assert [] == take(window, batch, batch_id=4)
        assert {"member_joined": 11, "member_left": 1} == window.counts_by_group().get("a", {})
        assert [7, 8, 9, 10, 11] == offsets(window)
        assert (12, [(12, batch[11])]) == (window.last, window.after(11))
    assert 5 == len(take(again, [event(offset) for offset in range(20, 32)], batch_id=5))
    assert 24 == again.last


def test_what_lasts_is_reported_once(runs: Runs) -> None:
    """An overdue rebalance is found again after a restart; it was reported, although the window has let go of it."""
    first = runs.start()
    first.add([event(0, kind="rebalance_stuck")])
    take(first, [event(offset) for offset in range(1, 10)], batch_id=1)
    again = runs.start()

    for window in (first, again):
        assert [] == window.add([event(0, kind="rebalance_stuck")])
        assert 1 == window.counts_by_group()["a"]["rebalance_stuck"]


def test_ids_of_what_lasts_are_bounded(runs: Runs) -> None:
    """The latest thousand are known again, in memory and in the file."""
    first = runs.start()
    first.add([event(offset) for offset in range(REMEMBERED_IDS + 1)])
    again = runs.start()

    for window in (first, again):
        assert [event(0)] == window.add([event(0), event(2)])


def test_group_that_went_counts_again(runs: Runs) -> None:
    """What was counted of a group goes with it, in the next run too."""
    first = runs.start()
    take(first, [event(1), event(2, group="b")], batch_id=1)
    first.forget("a")

    assert {} == runs.start().counts_by_group().get("a", {})
    assert {"member_joined": 1} == runs.start().counts_by_group().get("b", {})


def test_file_stays_small(runs: Runs) -> None:
    """However much happens, the file holds about two windows."""
    window = runs.start()
    sizes = []
    for offset in range(200):
        take(window, [event(offset)], batch_id=offset)
        sizes.append((len(runs.lines()), sum(path.stat().st_size for path in runs.path.parent.iterdir())))

    assert max(lines for lines, _ in sizes) <= 1 + 2 * 5
    assert sizes[-1][1] < 8_000_000
    assert [195, 196, 197, 198, 199] == offsets(runs.start())
    assert {"member_joined": 200} == runs.start().counts_by_group().get("a", {})


def test_commit_that_was_cut_off_is_passed_over(runs: Runs) -> None:
    """A kill in the middle of a write leaves what was there before it; its batch is repeated."""
    first = runs.start()
    take(first, [event(1)], batch_id=1)
    log = runs.path.with_name(f"{runs.path.name}-wal")
    whole = log.stat().st_size
    take(first, [event(2), event(3)], batch_id=2)
    os.truncate(log, whole + (log.stat().st_size - whole) // 2)
    again = runs.start()

    assert [1] == offsets(again)
    assert [event(2), event(3)] == take(again, [event(2), event(3)], batch_id=2)
    assert [1, 2, 3] == offsets(runs.start())


@pytest.mark.parametrize("content", [b"{}\n", b"\xff" * 5_000, b"SQLite format 3\0" + bytes(5_000)])
def test_file_that_is_none_begins_again(runs: Runs, content: bytes) -> None:
    """A window is a view: a damaged file does not keep a monitor from starting, and is written again."""
    runs.path.write_bytes(content)

    with capture_logs() as logs:
        assert [] == offsets(runs.start())
    assert ["event_window_lost"] == [line["event"] for line in logs]
    runs.start().add([event(1)])
    assert [1] == offsets(runs.start())


@pytest.mark.parametrize("text", ["{}", '[1,{"id":1}]', "", "{"])
@pytest.mark.parametrize("place", ["1", "max(number)"])
def test_damaged_line_begins_again(runs: Runs, text: str, place: str) -> None:
    """What cannot be read is not guessed at."""
    take(runs.start(), [event(1), event(2)], batch_id=1)
    runs.windows[0].close()
    with closing(sqlite3.connect(runs.path)) as database, database:
        database.execute(f"UPDATE line SET text = ? WHERE number = (SELECT {place} FROM line)", (text,))  # noqa: S608

    assert [] == offsets(runs.start())
    runs.start().add([event(1)])
    assert [1] == offsets(runs.start())


def test_disk_that_is_full_does_not_stop_the_window(runs: Runs) -> None:
    """It goes on in memory, tries again half a minute later, and then keeps what came in meanwhile as well."""
    window, path = runs.start(), runs.path
    window.add([event(1)])
    with capture_logs() as logs, no_room_beyond(path.with_name(f"{path.name}-wal").stat().st_size):
        for offset in range(2, 5):
            window.add([event(offset)])
    assert ["event_window_not_kept"] == [line["event"] for line in logs]
    assert [1, 2, 3, 4] == offsets(window)
    assert [1] == offsets(runs.start())
    runs.now, runs.path = RETRY_SECONDS, path
    window.add([event(5)])

    assert [1, 2, 3, 4, 5] == offsets(runs.start())


def former_lines(*lines: object) -> bytes:
    return b"".join(json.dumps(line).encode("ascii") + b"\n" for line in lines)


def test_file_of_a_former_release_is_read_once(runs: Runs) -> None:
    """The window, its counts, what was reported and the last batch go on; a line that a kill cut off is passed over."""
    former = runs.path.with_suffix(".ndjson")
    head = {"format": "event-window/1", "last": 2, "batch": 3, "counts": {"a": {"member_joined": 2}, "b": {"x": 1}}}
    head |= {"told": ["0-1-member_joined-0"], "events": [[2, event(2)]]}
    lines = [[3, event(3)], {"told": "0-3-member_joined-0"}, {"forget": "b"}, {"batch": 4}]
    former.write_bytes(former_lines(head, *lines) + b'[4,{"id":"0-4-')
    again = runs.start()

    assert [2, 3] == offsets(again)
    assert 3 == again.last
    assert {"a": {"member_joined": 3}} == again.counts_by_group()
    assert again.has_reported("0-1-member_joined-0")
    assert not runs.path.with_suffix(".ndjson").exists()
    again.add([event(4)])
    assert [2, 3, 4] == offsets(runs.start())


def test_damaged_file_of_a_former_release_begins_again(runs: Runs) -> None:
    """As a damaged one of this release does."""
    runs.path.with_suffix(".ndjson").write_bytes(b"[1]\n")

    assert [] == offsets(runs.start())
    runs.start().add([event(1)])
    assert [1] == offsets(runs.start())


def test_directory_that_cannot_be_written_does_not_stop_the_window(tmp_path: Path) -> None:
    """The window is there without a file."""
    window = EventWindow(5)
    window.keep(EventWindowFile(tmp_path / "missing" / "events.db"))
    window.add([event(1)])

    assert [1] == offsets(window)


def test_smaller_window_takes_the_latest(runs: Runs) -> None:
    """Where the configuration asks for fewer events than the file holds, the latest stay."""
    runs.start(size=5).add([event(offset) for offset in range(5)])

    assert [3, 4] == offsets(runs.start(size=2))


def test_any_name_is_kept(runs: Runs) -> None:
    """Names with quotes, line breaks and what no encoding has come back as they were."""
    name = 'quo"te\n\u2028\ud800'
    runs.start().add([event(1, group=name)])

    assert {"member_joined": 1} == runs.start().counts_by_group().get(name, {})
    assert [json.loads(json.dumps(event(1, group=name)))] == runs.start().latest(1)


def test_presumed_unclean_upgrade_is_no_count_of_the_alarm(runs: Runs) -> None:
    """The alert asks the counter: an upgrade whose dynamic members may have left just then must not raise it."""
    presumed = {**event(1, kind="upgrade_unclean"), "severity": "info", "inferred": True}
    certain = {**event(2, kind="upgrade_unclean"), "severity": "warning", "inferred": False}
    window = runs.start()

    window.add([presumed])
    assert {} == window.counts_by_group().get("a", {})
    window.add([certain])
    assert {"upgrade_unclean": 1} == window.counts_by_group().get("a", {})
    assert [1, 2] == offsets(window)


def test_long_names_leave_room_for_fewer_events(runs: Runs) -> None:
    """Ten thousand of groups with names of 32 KB would be a gigabyte; what they pushed out does not come back."""
    long = "x" * (MOST_CHARACTERS // 4)
    window = runs.start(size=100)
    take(window, [event(offset) for offset in range(10)], batch_id=0)
    take(window, [event(10 + number, group=f"{number}{long}") for number in range(3)], batch_id=1)
    assert [*range(13)] == offsets(window)

    take(window, [event(13, group=f"3{long}"), event(14)], batch_id=2)
    assert [11, 12, 13, 14] == offsets(window) == offsets(runs.start(size=100))
    assert 15 == window.last

    window.add([event(number) for number in range(15, 20)])
    assert [*range(11, 20)] == offsets(window)
