"""The spool: what is appended is there, once, until everybody has taken it, whatever happens meanwhile."""

import json
import math
import os
import resource
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from streaming.base.errors import UsageError
from streaming.sinks import queue as spool_module
from streaming.sinks.queue import REMEMBERED_IDS, Spool, SpoolError

ONE, TWO = "one", "two"


def event(number: int, **more: Any) -> dict[str, Any]:
    return {"kind": "event", "event": {"id": f"id-{number}", **more}}


def spool(directory: Path, *readers: str, max_bytes: int = 1_000_000, now_ms: int = 1_000) -> Spool:
    return Spool(directory, readers or (ONE,), max_bytes=max_bytes, clock_ms=lambda: now_ms)


def reported(of: Spool, reader: str = ONE, limit: int = 1_000) -> list[str]:
    """Ids of the events that a reader has yet to take."""
    return [entry["event"]["id"] for _, entry in of.read(reader, limit)]


@contextmanager
def no_room_beyond(size: int) -> Iterator[None]:
    """Have no file of this process grow beyond so many bytes: to a writer it is a full disk."""
    former = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, former[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, former)
        signal.signal(signal.SIGXFSZ, handler)


def test_entries_come_in_order_with_positions_until_they_are_acknowledged(tmp_path: Path) -> None:
    """Reading again gives the same again; acknowledging goes on from there."""
    of = spool(tmp_path)
    of.append("query", 0, [event(0), event(1, name="naïve \N{SNOWMAN} \ud800")])
    of.append("query", 1, [event(2)])

    first = of.read(ONE, 2)
    assert [(0, event(0)), (1, event(1, name="naïve \N{SNOWMAN} \ud800"))] == first
    assert first == of.read(ONE, 2)
    of.acknowledge(ONE, 0)
    assert ["id-1", "id-2"] == reported(of)
    of.acknowledge(ONE, 2)
    of.acknowledge(ONE, 1)
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


def test_the_last_batch_is_known_when_its_segment_is_gone(tmp_path: Path) -> None:
    """What was taken goes from the disk; which batches and events it held does not."""
    of = spool(tmp_path, max_bytes=16_000)
    of.append("watch", None, [event(-1)])
    for number in range(100):
        of.append("query", number, [event(number)])
    of.acknowledge(ONE, 100)

    assert 1 == len(list(tmp_path.glob("*.ndjson")))
    of = spool(tmp_path, max_bytes=16_000)
    assert (0, 0) == (of.append("query", 99, [event(99)]), of.append("watch", None, [event(-1)]))
    assert 1 == of.append("query", 100, [event(100)])


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


@pytest.mark.parametrize("kept", [0, 0.01, 0.5, 0.8, 0.99])
def test_a_frame_that_a_crash_cut_off_is_repeated(tmp_path: Path, kept: float) -> None:
    """It counts as never written, so the batch that Spark repeats is taken; what was whole stays."""
    of = spool(tmp_path)
    of.append("query", 0, [event(0)])
    (path,) = tmp_path.glob("*.ndjson")
    whole = path.stat().st_size
    of.append("query", 1, [event(1), event(2)])
    os.truncate(path, whole + math.floor(kept * (path.stat().st_size - whole)))

    with capture_logs() as logs:
        of = spool(tmp_path)
    assert ["id-0"] == reported(of)
    assert (["spool_cut_off"] if kept else []) == [line["event"] for line in logs]
    assert 2 == of.append("query", 1, [event(1), event(2)])
    assert ["id-0", "id-1", "id-2"] == reported(spool(tmp_path))


def test_a_segment_begun_by_a_crash_is_begun_again(tmp_path: Path) -> None:
    """A file without a whole head held nothing yet."""
    spool(tmp_path).append("query", 0, [event(0)])
    (tmp_path / f"{1:020d}.ndjson").write_bytes(b'{"form')

    of = spool(tmp_path)
    assert (0, 1) == (of.append("query", 0, [event(0)]), of.append("query", 1, [event(1)]))
    assert ["id-0", "id-1"] == reported(spool(tmp_path))


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
    (path,) = tmp_path.glob("*.ndjson")
    batch = [event(number) for number in range(1, 100)]

    with no_room_beyond(path.stat().st_size + 300), pytest.raises(SpoolError) as error:
        of.append("query", 1, batch)

    assert all(part in str(error.value) for part in ("state.dir", str(tmp_path), "File too large", "accepted:"))
    assert ["id-0"] == reported(of)
    assert 99 == of.append("query", 1, batch)
    assert [f"id-{number}" for number in range(100)] == reported(of) == reported(spool(tmp_path))


def test_a_directory_that_cannot_be_written_is_said_at_once(tmp_path: Path) -> None:
    """Before anything is started, with the option's name."""
    (tmp_path / "spool").write_text("a file")

    with pytest.raises(UsageError, match=r"state\.dir: found .*spool.*accepted:"):
        spool(tmp_path / "spool")


def test_damage_in_the_middle_is_reported(tmp_path: Path) -> None:
    """What was confirmed and is not readable any more must not pass unnoticed."""
    of = spool(tmp_path, max_bytes=16_000)
    for number in range(40):
        of.append("query", number, [event(number)])
    first, *others = sorted(tmp_path.glob("*.ndjson"))
    assert others
    held = bytearray(first.read_bytes())
    held[-10] ^= 1
    first.write_bytes(held)

    with pytest.raises(UsageError, match=rf"{first.name} is damaged at byte \d+"):
        spool(tmp_path)


def test_another_releases_files_are_refused(tmp_path: Path) -> None:
    """A format this release does not read is not cut off as if it were damage."""
    spool(tmp_path).append("query", 0, [event(0)])
    (path,) = tmp_path.glob("*.ndjson")
    path.write_text(path.read_text().replace("spool/1", "spool/2"))

    with pytest.raises(UsageError, match="format 'spool/2', this release reads 'spool/1'"):
        spool(tmp_path)


def test_readers_go_at_their_own_pace(tmp_path: Path) -> None:
    """What one has taken stays for the other, over a restart too, and goes when both have."""
    of = spool(tmp_path, ONE, TWO, max_bytes=16_000)
    for number in range(60):
        of.append("query", number, [event(number)])
    of.acknowledge(ONE, 59)
    of.acknowledge(TWO, 4)

    of = spool(tmp_path, ONE, TWO, max_bytes=16_000)
    assert [] == reported(of, ONE)
    assert [f"id-{number}" for number in range(5, 60)] == reported(of, TWO)
    assert (0, 55) == (of.waiting(ONE).entries, of.waiting(TWO).entries)
    files = len(list(tmp_path.glob("*.ndjson")))
    of.acknowledge(TWO, 59)
    assert 1 == len(list(tmp_path.glob("*.ndjson"))) < files


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
    of.acknowledge(ONE, 0)
    assert (2, 9_000, 0) == of.waiting(ONE)
    of.acknowledge(ONE, 2)
    assert (0, None, 0) == of.waiting(ONE)


def test_at_the_bound_states_wait_and_then_the_oldest_goes_and_is_counted(tmp_path: Path) -> None:
    """The stream goes on, the disk does not fill up, what a reader lost is reported; one that took it lost none."""
    bound = 16_000
    of = spool(tmp_path, ONE, TWO, max_bytes=bound)
    had_room, number = [], 0
    with capture_logs() as logs:
        while not of.waiting(ONE).dropped:
            had_room.append(of.has_room_for_states)
            of.append("query", number, [event(number)])
            of.acknowledge(TWO, number)
            assert sum(path.stat().st_size for path in tmp_path.glob("*.ndjson")) < bound + bound // 8
            number += 1

    assert (True, False) == (had_room[0], had_room[-1])
    dropped = of.waiting(ONE).dropped
    assert [f"id-{each}" for each in range(dropped, number)] == reported(of, ONE)
    assert (0, []) == (of.waiting(TWO).dropped, reported(of, TWO))
    assert [("spool_full", ONE, dropped)] == [(line["event"], line["reader"], line["lost"]) for line in logs]
    of.acknowledge(ONE, number - 1)
    assert of.has_room_for_states


def test_files_are_lines_of_json(tmp_path: Path) -> None:
    """As the module says, for those who have to look with their own eyes."""
    spool(tmp_path).append("query", 3, [event(0)])
    (path,) = tmp_path.glob("*.ndjson")
    head, header, entry = map(json.loads, path.read_text().splitlines())

    assert ("spool/1", {}, []) == (head["format"], head["batches"], head["told"])
    assert ("query", 3, 0, 1) == (header["source"], header["batch"], header["first"], header["entries"])
    assert event(0) == entry
