"""One monitor at a time has a state directory; who waits gets it when the other ends, however it ends."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from streaming.base.errors import UsageError
from streaming.checkpoint.lock import StateLock

PATIENCE_SECONDS = 20


def holder(directory: Path) -> "subprocess.Popen[str]":
    """A process that has the directory until it is ended."""
    program = (
        "import sys, time; from pathlib import Path; from streaming.checkpoint.lock import StateLock\n"
        "lock = StateLock(Path(sys.argv[1])); lock.take(); lock.keep(); print('taken', flush=True); time.sleep(600)"
    )
    process = subprocess.Popen(  # noqa: S603 - our own interpreter
        [sys.executable, "-c", program, str(directory)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert "taken\n" == process.stdout.readline()
    return process


def test_a_second_one_is_refused_and_shown_who_has_it(tmp_path: Path) -> None:
    """The error names the option, the process, and what to do."""
    with holder(tmp_path / "state") as first:
        with pytest.raises(UsageError) as error:
            StateLock(tmp_path / "state").take()
        first.kill()

    assert all(part in str(error.value) for part in ("state.dir", f"process {first.pid} on ", "--standby"))


def test_who_waits_has_it_when_the_other_is_killed(tmp_path: Path) -> None:
    """By the operating system's word: there is nothing to clean up, and no time to wait out."""
    waiting = StateLock(tmp_path)
    with holder(tmp_path) as first:
        thread = threading.Thread(target=waiting.wait, daemon=True)
        thread.start()
        first.kill()
        thread.join(PATIENCE_SECONDS)

    assert not thread.is_alive()
    waiting.keep()
    assert f"process {os.getpid()} on " in waiting.holder()
    with pytest.raises(UsageError):
        StateLock(tmp_path).take()
    waiting.release()
    StateLock(tmp_path).take()


def test_who_does_not_keep_it_leaves_nothing_behind(tmp_path: Path) -> None:
    """A start that is refused for another reason: a file that it made is gone, one that was there is as it was."""
    lock = StateLock(tmp_path)
    lock.take()
    lock.release()
    assert [] == list(tmp_path.iterdir())
    lock.take()
    lock.keep()
    lock.release()
    (file,) = tmp_path.iterdir()
    said = file.read_bytes()
    lock.take()
    lock.release()

    assert said == file.read_bytes()


def test_a_file_that_was_taken_back_is_no_lock(tmp_path: Path) -> None:
    """Who had opened it before takes the one that is there now."""
    first, second, third = StateLock(tmp_path), StateLock(tmp_path), StateLock(tmp_path)
    first.take()
    with pytest.raises(UsageError):
        second.take()
    first.release()
    second.take()

    with pytest.raises(UsageError):
        third.take()


def test_waiting_can_be_ended(tmp_path: Path) -> None:
    """What is looked at meanwhile may say that no one waits any more."""
    held, looks = StateLock(tmp_path), []
    held.take()

    def look() -> None:
        looks.append(1)
        raise InterruptedError

    with pytest.raises(InterruptedError):
        StateLock(tmp_path).wait(look)
    assert [1] == looks


def test_a_directory_that_cannot_be_made_is_reported(tmp_path: Path) -> None:
    """Before anything else is done."""
    (tmp_path / "file").write_text("")

    with pytest.raises(UsageError, match=r"state\.dir: found .*accepted: a writable directory"):
        StateLock(tmp_path / "file" / "state").take()
