"""Files in a state directory: those of release 0.1 are read, those of a later release refused and left as they are."""

import json
import shutil
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest
from structlog.testing import capture_logs

from lab.monitor_process import contents
from streaming.base.errors import UsageError
from streaming.board.event_window import EventWindow
from streaming.board.event_window_file import EventWindowFile
from streaming.checkpoint import resume_file
from streaming.checkpoint.identity import IDENTITY_FILE, STATE_LAYOUT, Identity
from streaming.checkpoint.resume_file import RESUME_FILE
from streaming.checkpoint.state_directory import StateDirectory
from streaming.end_offsets.store import EndOffsets
from streaming.monitor.state_formats import END_OFFSETS_FILE, EVENTS_FILE, refuse_others
from streaming.sinks.queue import FILE, Spool
from tests.faults.damage import left_by_former_release

SPOOL_FILE: Final = f"spool/{FILE}"
EVENTS_LEFT: Final = 367
FORMATS: Final = {
    RESUME_FILE: ("resume/1", "resume/2"),
    END_OFFSETS_FILE: ("end-offsets/1", "end-offsets/10"),
    EVENTS_FILE: ("event-window/2", "event-window/3"),
    SPOOL_FILE: ("spool/2", "spool/3"),
}


@pytest.fixture
def left(tmp_path: Path) -> Path:
    """What a monitor of release 0.1 left, with events that wait for a sink."""
    directory = tmp_path / "state"
    directory.mkdir()
    (directory / IDENTITY_FILE).write_text("{}")
    left_by_former_release(directory)
    entry = b'{"kind":"event","event":{"id":"1"}}\n'
    frame = {"first": 0, "entries": 1, "time": 1, "source": "query", "batch": 0}
    lines = [{"format": "spool/1", "batches": {}, "told": []}, {**frame, "bytes": len(entry), "crc": zlib.crc32(entry)}]
    (directory / "spool").mkdir()
    written = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines) + entry.decode("ascii")
    (directory / "spool" / f"{0:020d}.ndjson").write_text(written)
    return directory


@pytest.fixture
def gone_on(left: Path) -> Path:
    """The same, taken over by a monitor of this release."""
    window = EventWindow(1_000)
    window.keep(EventWindowFile(left / EVENTS_FILE))
    window.close()
    Spool(left / "spool", ["kafka"]).close()
    return left


def write_format(path: Path, accepted: str, later: str) -> None:
    """Have a file say another format."""
    if path.suffix == ".db":
        head = path.read_bytes()
        assert accepted.endswith(f"/{head[63]}")
        path.write_bytes(head[:63] + bytes([int(later.partition("/")[2])]) + head[64:])
        return
    text = path.read_text("utf-8")
    assert f'"format":"{accepted}"' in text.replace(": ", ":")
    path.write_text(text.replace(accepted, later, 1), "utf-8")


def test_what_release_0_1_left_is_read(left: Path) -> None:
    """All of it: whose it is, how far it was, histories of log ends, latest events, and what waits for a sink."""
    identity = Identity(**{**json.loads((left / IDENTITY_FILE).read_text()), "state_layout": STATE_LAYOUT})
    state = StateDirectory(left, None, reads_uncommitted=True, clock_ms=lambda: 0)
    ends = EndOffsets()
    with capture_logs() as logged:
        refuse_others(left, rebuild=False)
        state.claim(identity, rebuild=False)
        ends.load(left / END_OFFSETS_FILE)
        events = EventWindowFile(left / EVENTS_FILE).load()
        spool = Spool(left / "spool", ["kafka"])
        waiting = spool.read("kafka", 10)
        spool.close()
    resumed = resume_file.load(left)

    assert [] == logged
    assert state.holds_state()
    assert [{0: 330, 1: 321, 2: 322, 3: 278}] * 2 == [*state.positions()]
    assert EVENTS_LEFT == events.last
    assert resumed is not None
    assert resumed.has_batches
    assert [{"kind": "event", "event": {"id": "1"}}] == [spooled.entry for spooled in waiting]


@pytest.mark.parametrize("name", FORMATS)
def test_file_of_a_later_release_is_refused(gone_on: Path, name: str) -> None:
    """In one line with the file, what was found and what is accepted; nothing in the directory changes."""
    accepted, later = FORMATS[name]
    path = gone_on / name
    write_format(path, accepted, later)
    before = contents(gone_on)

    with pytest.raises(UsageError) as refused:
        refuse_others(gone_on, rebuild=False)

    line = str(refused.value)
    assert line.startswith(
        f"state.dir: found {str(path)!r} of format {later!r}, accepted: {accepted!r}; the release that "
    )
    assert "\n" not in line
    assert before == contents(gone_on)


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize(
    "damage",
    [lambda path: path.write_bytes(b""), lambda path: path.write_bytes(bytes(99)), lambda path: path.unlink()],
    ids=["empty", "zeros", "gone"],
)
def test_damage_is_no_other_format(gone_on: Path, name: str, damage: Callable[[Path], object]) -> None:
    """A file that says no format is left to its reader, which knows what to do without it."""
    damage(gone_on / name)

    refuse_others(gone_on, rebuild=False)


def test_rebuilding_asks_nothing_of_the_resume_file(gone_on: Path) -> None:
    """It is written again then; the files that stay are asked as ever."""
    for name in (RESUME_FILE, EVENTS_FILE):
        write_format(gone_on / name, *FORMATS[name])

    with pytest.raises(UsageError, match=EVENTS_FILE):
        refuse_others(gone_on, rebuild=True)
    shutil.move(gone_on / EVENTS_FILE, gone_on.parent)
    refuse_others(gone_on, rebuild=True)
    with pytest.raises(UsageError, match=RESUME_FILE):
        refuse_others(gone_on, rebuild=False)
