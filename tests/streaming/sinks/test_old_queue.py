"""The queue's files of releases before 0.2: what waits in them is delivered, and they go."""

import json
import os
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest
from structlog.testing import capture_logs

from streaming.base.errors import UsageError
from streaming.sinks.queue import FILE, Spool

FIRST: Final = f"{5:020d}.ndjson"
LAST: Final = f"{8:020d}.ndjson"


def event(number: int) -> dict[str, Any]:
    return {"kind": "event", "event": {"id": f"id-{number}", "name": "naïve \N{SNOWMAN} \ud800"}}


def line(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode("ascii") + b"\n"


def frame(first: int, source: str, batch: int | None, *entries: dict[str, Any]) -> bytes:
    """A frame as release 0.1 wrote it; its time is its first position."""
    body = b"".join(map(line, entries))
    header = {"first": first, "entries": len(entries), "time": first, "source": source, "batch": batch}
    return line({**header, "bytes": len(body), "crc": zlib.crc32(body)}) + body


@pytest.fixture
def left(tmp_path: Path) -> Path:
    """Two segments, of a queue whose first five entries went; `one` has taken two more, `two` all but one."""
    first: dict[str, Any] = {"format": "spool/1", "batches": {"query": 3, "former": 9}, "told": ["id-0"]}
    frames = frame(5, "query", 4, event(5), event(6)) + frame(7, "watch", None, event(7))
    (tmp_path / FIRST).write_bytes(line(first) + frames)
    head = {"format": "spool/1", "batches": {"query": 4, "former": 9}, "told": ["id-0", "id-7"]}
    (tmp_path / LAST).write_bytes(line(head) + frame(8, "query", 5, event(8), event(9)))
    (tmp_path / "one.json").write_bytes(line({"next": 7}))
    (tmp_path / "two.json").write_bytes(line({"next": 9}))
    return tmp_path


def taken_over(directory: Path) -> dict[str, list[Mapping[str, Any]]]:
    """What each reader is given."""
    of = Spool(directory, ["one", "two", "new"])
    try:
        return {reader: [spooled.entry for spooled in of.read(reader, 100)] for reader in ("one", "two", "new")}
    finally:
        of.close()


def test_what_waits_is_delivered_and_the_files_go(left: Path) -> None:
    """To each reader from where it was, in the same order; a new one begins with the oldest there is."""
    expected = {
        "one": [event(7), event(8), event(9)],
        "two": [event(9)],
        "new": [event(number) for number in range(5, 10)],
    }
    with capture_logs() as logs:
        assert expected == taken_over(left) == taken_over(left)

    assert [] == logs
    assert [FILE] == [path.name for path in left.iterdir()]


def test_repeats_are_known(left: Path) -> None:
    """The batches and events that were in these files change nothing; ages go on from theirs."""
    of = Spool(left, ["one"])

    assert (0, 0) == (of.append("query", 5, [event(9)]), of.append("former", 9, [event(1)]))
    assert 0 == of.append("watch", None, [event(0), event(7)])
    assert (3, 7, 0) == of.waiting("one")
    assert 8 == of.last_ms
    assert (1, 1) == (of.append("query", 6, [event(10)]), of.append("watch", None, [event(11)]))
    of.close()


def test_queue_that_was_empty_goes_on(left: Path) -> None:
    """All was taken, and the last file held nothing yet: what comes is given to everybody."""
    (left / FIRST).unlink()
    (left / LAST).write_bytes((left / LAST).read_bytes().splitlines(keepends=True)[0])
    of = Spool(left, ["one"])

    assert (0, None, 0) == of.waiting("one")
    of.append("query", 6, [event(10)])
    assert [event(10)] == [spooled.entry for spooled in of.read("one", 10)]
    of.close()


def test_crash_before_the_files_went_repeats_no_batch(left: Path) -> None:
    """Both are there then, and what is in both is taken once."""
    files = {path: path.read_bytes() for path in left.iterdir()}
    expected = taken_over(left)
    for path, content in files.items():
        path.write_bytes(content)

    assert expected == taken_over(left)


@pytest.mark.parametrize("cut", [2, 60, 200])
def test_last_frame_that_a_crash_cut_off_is_repeated(left: Path, cut: int) -> None:
    """It was never confirmed: its batch is taken when Spark repeats it, whole."""
    os.truncate(left / LAST, (left / LAST).stat().st_size - cut)
    with capture_logs() as logs:
        of = Spool(left, ["one"])

    assert ["spool_cut_off"] == [entry["event"] for entry in logs]
    assert [event(7)] == [spooled.entry for spooled in of.read("one", 10)]
    assert 2 == of.append("query", 5, [event(8), event(9)])
    of.close()


def test_damage_in_the_middle_is_reported(left: Path) -> None:
    """What was confirmed and is not readable any more must not pass unnoticed; nothing is touched."""
    damaged = (left / FIRST).read_bytes()[:-10]
    (left / FIRST).write_bytes(damaged)

    with pytest.raises(UsageError, match=r"state\.dir: found .*accepted: .* moved away"):
        Spool(left, ["one"])
    assert damaged == (left / FIRST).read_bytes()
