"""The spool: what is appended is there, once, until everybody has taken it, whatever happens meanwhile."""

import sqlite3
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from streaming.base.errors import UsageError
from streaming.sinks import queue as spool_module
from streaming.sinks.queue import FILE, REMEMBERED_IDS, Spool, SpoolError
from tests.full_disk import no_room_beyond

ONE, TWO = "one", "two"


def event(number: int, **more: Any) -> dict[str, Any]:
    return {"kind": "event", "event": {"id": f"id-{number}", **more}}


OPEN: dict[Path, Spool] = {}


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    yield
    while OPEN:
        OPEN.popitem()[1].close()


def spool(directory: Path, *readers: str, max_bytes: int = 1_000_000, now_ms: int = 1_000) -> Spool:
    """The spool of another run: the one before lets go of its file, as it does when its process ends."""
    if directory in OPEN:
        OPEN.pop(directory).close()
    OPEN[directory] = Spool(directory, readers or (ONE,), max_bytes=max_bytes, clock_ms=lambda: now_ms)
    return OPEN[directory]


def size_of(directory: Path) -> int:
    return (directory / FILE).stat().st_size


def reported(of: Spool, reader: str = ONE, limit: int = 1_000) -> list[str]:
    """Ids of the events that a reader has yet to take."""
    return [entry["event"]["id"] for _, entry in of.read(reader, limit)]


def test_entries_come_in_order_with_positions_until_they_are_acknowledged(tmp_path: Path) -> None:
    """Reading again gives the same again; acknowledging goes on from there."""
    of = spool(tmp_path)
    of.append("query", 0, [event(0), event(1, name="naïve \N{SNOWMAN} \ud800")])
    of.append("query", 1, [event(2)])

    first = of.read(ONE, 2)
    assert [(1, event(0)), (2, event(1, name="naïve \N{SNOWMAN} \ud800"))] == first
    assert first == of.read(ONE, 2)
    of.acknowledge(ONE, 1)
    assert ["id-1", "id-2"] == reported(of)
    of.acknowledge(ONE, 3)
    of.acknowledge(ONE, 2)
    assert [] == reported(of)


def test_what_is_read_at_once_is_bounded_by_its_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As many as fit are read, across batches; one that is larger than that is read alone."""
    monkeypatch.setattr(spool_module, "READ_BYTES", 1_000)
    of = spool(tmp_path)
    of.append("query", 0, [event(number, padding="x" * 300) for number in range(2)])
    of.append("query", 1, [event(2, padding="x" * 300), event(3, padding="x" * 5_000), event(4)])

    for expected in (["id-0", "id-1"], ["id-2"], ["id-3"], ["id-4"], []):
        read = of.read(ONE, 1_000)
        assert expected == [entry["event"]["id"] for _, entry in read]
        if read:
            of.acknowledge(ONE, read[-1].position)


def test_a_batch_that_comes_again_changes_nothing(tmp_path: Path) -> None:
    """Neither in the same run nor after a restart; another source has numbers of its own."""
    of = spool(tmp_path)
    assert 1 == of.append("query", 7, [event(0)])
    assert 0 == of.append("query", 7, [event(0)])

    of = spool(tmp_path)
    assert (0, 0) == (of.append("query", 7, [event(0)]), of.append("query", 6, [event(9)]))
    assert (1, 1) == (of.append("query", 8, [event(1)]), of.append("another", 0, [event(2)]))
    assert ["id-0", "id-1", "id-2"] == reported(of)


def test_the_last_batch_is_known_when_its_entries_are_gone(tmp_path: Path) -> None:
    """What was taken goes from the disk; which batches and events it held does not, nor are positions given again."""
    of = spool(tmp_path)
    of.append("watch", None, [event(-1)])
    for number in range(100):
        of.append("query", number, [event(number)])
    of.acknowledge(ONE, 101)

    of = spool(tmp_path)
    assert (0, 0) == (of.append("query", 99, [event(99)]), of.append("watch", None, [event(-1)]))
    assert 1 == of.append("query", 100, [event(100)])
    assert [(102, event(100))] == of.read(ONE, 10)


def test_events_of_no_batch_are_known_by_their_ids(tmp_path: Path) -> None:
    """Appended again they are left out, after a restart too; the oldest ids are forgotten. States are never repeats."""
    of = spool(tmp_path)
    state = {"kind": "group", "group": "g", "time": 1, "state": {}}
    assert 2 == of.append("watch", None, [event(0), event(1)])
    assert 2 == of.append("watch", None, [event(1), event(2), state])
    of = spool(tmp_path)
    assert 1 == of.append("watch", None, [event(0), event(1), event(2), state])

    of.append("watch", None, [event(number) for number in range(10, 10 + REMEMBERED_IDS)])
    assert 1 == of.append("watch", None, [event(2)])


def test_a_process_killed_while_it_writes_leaves_whole_batches(tmp_path: Path) -> None:
    """In the middle of a stream of batches, by kill -9: those that were confirmed are there, each once and whole."""
    program = textwrap.dedent("""
        import sys
        from pathlib import Path
        from streaming.sinks.queue import Spool
        of = Spool(Path(sys.argv[1]), ["one"])
        for batch in range(1_000_000):
            of.append("query", batch, [{"kind": "event", "event": {"id": f"{batch}-{n}"}} for n in range(50)])
            print(batch, flush=True)
    """)
    with subprocess.Popen(  # noqa: S603 - our own interpreter
        [sys.executable, "-c", program, str(tmp_path)], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        confirmed = [int(next(process.stdout)) for _ in range(30)][-1]
        process.kill()

    ids = reported(spool(tmp_path), limit=1_000_000)
    batches = len(ids) // 50
    assert [f"{batch}-{number}" for batch in range(batches) for number in range(50)] == ids
    assert batches > confirmed


def test_a_full_disk_fails_the_append_and_leaves_what_was(tmp_path: Path) -> None:
    """The error says where and why; once there is room the same batch is taken, whole and once."""
    of = spool(tmp_path)
    of.append("query", 0, [event(0)])
    log = (tmp_path / f"{FILE}-wal").stat().st_size
    batch = [event(number) for number in range(1, 1_000)]

    with no_room_beyond(log + 10_000), pytest.raises(SpoolError) as error:
        of.append("query", 1, batch)

    assert all(part in str(error.value) for part in ("state.dir", str(tmp_path), "cannot be written (", "accepted:"))
    assert ["id-0"] == reported(of)
    assert 999 == of.append("query", 1, batch)
    assert [f"id-{number}" for number in range(1_000)] == reported(of) == reported(spool(tmp_path))


def test_a_position_that_cannot_be_noted_is_gone_on_from(tmp_path: Path) -> None:
    """A disk that is full keeps nobody from what follows; a restart gives the same again."""
    of = spool(tmp_path)
    of.append("query", 0, [event(0), event(1)])

    with no_room_beyond(1), pytest.raises(SpoolError, match=r"state\.dir"):
        of.acknowledge(ONE, 1)
    assert ["id-1"] == reported(of)
    assert ["id-0", "id-1"] == reported(spool(tmp_path))


def test_a_directory_that_cannot_be_written_is_said_at_once(tmp_path: Path) -> None:
    """Before anything is started, with the option's name."""
    (tmp_path / "spool").write_text("a file")

    with pytest.raises(UsageError, match=r"state\.dir: found .*spool.*accepted:"):
        spool(tmp_path / "spool")


@pytest.mark.parametrize("at", [0, 4_096], ids=["head", "table"])
def test_damage_is_reported(tmp_path: Path, at: int) -> None:
    """What was confirmed and is not readable any more must not pass unnoticed."""
    spool(tmp_path).append("query", 0, [event(0)])
    OPEN.pop(tmp_path).close()
    held = bytearray((tmp_path / FILE).read_bytes())
    held[at : at + 100] = b"x" * 100
    (tmp_path / FILE).write_bytes(held)

    with pytest.raises(UsageError, match=r"state\.dir: found .*(not a database|malformed), accepted: .* moved away"):
        spool(tmp_path)


@pytest.mark.parametrize("text", [b'{"kind":', b"{\xff}"])
def test_an_entry_that_the_disk_damaged_is_lost_and_counted_once(tmp_path: Path, text: bytes) -> None:
    """Of who has yet to take it; what comes after it is delivered."""
    of = spool(tmp_path, ONE, TWO)
    of.append("query", 0, [event(0), event(1), event(2)])
    of.acknowledge(TWO, 2)
    OPEN.pop(tmp_path).close()
    with sqlite3.connect(tmp_path / FILE) as database:
        database.execute("UPDATE entry SET text = CAST(? AS TEXT) WHERE position = 2", (text,))
    database.close()

    of = spool(tmp_path, ONE, TWO)
    with capture_logs() as logged:
        assert ["id-0", "id-2"] == reported(of) == reported(of)

    assert ["id-2"] == reported(of, TWO)
    assert [1, 0] == [of.waiting(reader).dropped for reader in (ONE, TWO)]
    assert [("spool_damaged", [ONE], 2)] == [(line["event"], line["readers"], line["position"]) for line in logged]


def test_a_spool_that_another_has_is_refused(tmp_path: Path) -> None:
    """Two that write to one file would each take what the other has."""
    spool(tmp_path)

    with pytest.raises(UsageError, match=r"state\.dir: found .*locked"):
        Spool(tmp_path, [ONE])


def test_readers_go_at_their_own_pace(tmp_path: Path) -> None:
    """What one has taken stays for the other, over a restart too, and goes when both have: its room is used again."""
    of = spool(tmp_path, ONE, TWO)
    sizes = []
    for batch in range(5):
        of.append("query", batch, [event(number, padding="x" * 1_000) for number in range(60)])
        last = of.read(ONE, 1_000)[-1].position
        of.acknowledge(ONE, last)
        of.acknowledge(TWO, last - 55)

        of = spool(tmp_path, ONE, TWO)
        assert [] == reported(of, ONE)
        assert [f"id-{number}" for number in range(5, 60)] == reported(of, TWO)
        assert (0, 55) == (of.waiting(ONE).entries, of.waiting(TWO).entries)
        of.acknowledge(TWO, last)
        assert [] == reported(of, TWO)
        sizes.append(size_of(tmp_path))
    assert sizes[0] * 1.2 > sizes[-1]


def test_a_new_reader_begins_with_the_oldest_there_is(tmp_path: Path) -> None:
    """It is given what others have not taken yet."""
    of = spool(tmp_path, ONE)
    of.append("query", 0, [event(0), event(1)])

    assert ["id-0", "id-1"] == reported(spool(tmp_path, ONE, TWO), TWO)


def test_what_waits_has_a_count_and_an_age(tmp_path: Path) -> None:
    """Of the oldest entry that is not acknowledged; nothing waiting has no age."""
    assert (0, None, 0) == spool(tmp_path).waiting(ONE)
    spool(tmp_path, now_ms=5_000).append("query", 0, [event(0)])
    of = spool(tmp_path, now_ms=9_000)
    of.append("query", 1, [event(1), event(2)])

    assert (3, 5_000, 0) == of.waiting(ONE)
    of.acknowledge(ONE, 1)
    assert (2, 9_000, 0) == of.waiting(ONE)
    of.acknowledge(ONE, 3)
    assert (0, None, 0) == of.waiting(ONE)
    assert 9_000 == of.last_ms == spool(tmp_path).last_ms


def test_at_the_bound_states_wait_and_then_the_oldest_goes_and_is_counted(tmp_path: Path) -> None:
    """The stream goes on, the disk does not fill up, what a reader lost is reported; one that took it lost none."""
    bound = 200_000
    of = spool(tmp_path, ONE, TWO, max_bytes=bound)
    had_room, number = [], 0
    with capture_logs() as logs:
        while not of.waiting(ONE).dropped:
            had_room.append(of.has_room_for_states)
            of.append("query", number, [event(number, padding="x" * 1_000)])
            of.acknowledge(TWO, number + 1)
            number += 1

    assert (True, False) == (had_room[0], had_room[-1])
    dropped = of.waiting(ONE).dropped
    assert number / 20 < dropped < number / 12
    assert [f"id-{each}" for each in range(dropped, number)] == reported(of, ONE)
    assert (0, []) == (of.waiting(TWO).dropped, reported(of, TWO))
    assert [("spool_full", ONE, dropped)] == [(line["event"], line["reader"], line["lost"]) for line in logs]
    last = 3 * number
    for each in range(number, last):
        of.append("query", each, [event(each, padding="x" * 1_000)])
    one, two = of.waiting(ONE), of.waiting(TWO)
    assert (last, last) == (one.dropped + one.entries, number + two.dropped + two.entries)
    assert one.dropped > two.dropped > 0
    of.acknowledge(ONE, last)
    of.acknowledge(TWO, last)
    assert of.has_room_for_states
    of.close()
    assert size_of(tmp_path) < bound + bound // 8
