"""The latest events: each once, in the order they came in, and there again after a restart."""

import json
import os
from pathlib import Path

import pytest

from streaming.board.event_window import MOST_CHARACTERS, REMEMBERED_IDS, EventWindow
from streaming.board.event_window_file import RETRY_SECONDS, Event, EventWindowFile


def event(offset: int, group: str = "a", kind: str = "member_joined") -> Event:
    """An event as far as the window looks at it; its time is its offset."""
    return {"id": f"0-{offset}-{kind}-0", "time": offset, "group": group, "kind": kind, "offset": offset}


def offsets(window: EventWindow) -> list[int]:
    return [found["offset"] for found in window.latest(1_000)]


def take(window: EventWindow, events: list[Event], batch_id: int) -> list[Event]:
    """Have a window take the events of a micro-batch."""
    return window.add_batch([(of["group"], of["kind"]) for of in events], batch_id, lambda most: events[-most:])


class Runs:
    """One run of a monitor after the other on one file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.now = 0.0

    def start(self, size: int = 5) -> EventWindow:
        """The window of another run; the one before was killed, so nothing was closed."""
        window = EventWindow(size)
        window.keep(EventWindowFile(self.path, lambda: self.now))
        return window


@pytest.fixture
def runs(tmp_path: Path) -> Runs:
    return Runs(tmp_path / "events.ndjson")


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
        sizes.append(len(runs.path.read_bytes().splitlines()))

    assert max(sizes) <= 1 + 2 * 5
    assert [195, 196, 197, 198, 199] == offsets(runs.start())
    assert {"member_joined": 200} == runs.start().counts_by_group().get("a", {})


def test_line_that_was_cut_off_is_passed_over(runs: Runs) -> None:
    """A kill in the middle of a write leaves the line before it the last; its batch is repeated."""
    take(runs.start(), [event(1), event(2)], batch_id=1)
    whole = runs.path.read_bytes()
    runs.path.write_bytes(whole[: whole.index(b'"0-2-') + 3])
    again = runs.start()

    assert [1] == offsets(again)
    assert [event(2)] == take(again, [event(1), event(2)], batch_id=1)
    assert [1, 2] == offsets(runs.start())


@pytest.mark.parametrize("content", [b"", b"\n", b"{}\n", b"[1]\n", b"\xff\n", b'{"format":"event-window/9"}\n'])
def test_file_that_is_none_begins_again(runs: Runs, content: bytes, caplog: pytest.LogCaptureFixture) -> None:
    """A window is a view: a damaged file, or one of another release, does not keep a monitor from starting."""
    runs.path.write_bytes(content)

    assert [] == offsets(runs.start())
    runs.start().add([event(1)])
    assert [1] == offsets(runs.start())


def test_damaged_line_in_the_middle_begins_again(runs: Runs) -> None:
    """What cannot be read is not guessed at."""
    take(runs.start(), [event(1), event(2)], batch_id=1)
    runs.path.write_bytes(runs.path.read_bytes().replace(b'"offset":1', b'"offset":'))

    assert [] == offsets(runs.start())


def test_disk_that_is_full_does_not_stop_the_window(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    """It goes on in memory, tries again half a minute later, and then keeps what came in meanwhile as well."""
    window = runs.start()
    window.add([event(1)])
    with monkeypatch.context() as patched:
        attempts: list[int] = []

        def full(_handle: int, data: memoryview) -> int:
            attempts.append(len(data))
            if len(attempts) == 1:
                return write(_handle, data[:10])
            raise OSError(28, "No space left on device")

        write = os.write
        patched.setattr(os, "write", full)
        for offset in range(2, 5):
            window.add([event(offset)])
        assert 2 == len(attempts)
    assert [1, 2, 3, 4] == offsets(window)
    assert [1] == offsets(runs.start())
    runs.now += RETRY_SECONDS
    window.add([event(5)])

    assert [1, 2, 3, 4, 5] == offsets(runs.start())


def test_directory_that_cannot_be_written_does_not_stop_the_window(tmp_path: Path) -> None:
    """The window is there without a file."""
    window = EventWindow(5)
    window.keep(EventWindowFile(tmp_path / "missing" / "events.ndjson"))
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
