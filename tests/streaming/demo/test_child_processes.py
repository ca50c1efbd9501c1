"""Children end when asked, when they do not listen, and when we are gone without a word."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

import pytest

from streaming.demo import child_processes

ROOT: Final = Path(__file__).resolve().parents[3]

# Ends at SIGTERM with a status of its own.
POLITE: Final = (
    "import signal, sys, time; signal.signal(signal.SIGTERM, lambda *_: sys.exit(7)); {ready}; time.sleep(60)"
)
# Does not end at SIGTERM.
DEAF: Final = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); {ready}; time.sleep(60)"
READY: Final = "print('ready', flush=True)"


def child(code: str, log: Path) -> subprocess.Popen[str]:
    """A child that has set up what its code says."""
    process = child_processes.start([sys.executable, "-c", code.format(ready=READY)], log=log, piped=True)
    assert process.stdout is not None
    assert "ready\n" == process.stdout.readline()
    return process


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{pid}/stat")
    # What no one has waited for yet is dead all the same.
    return not (stat.exists() and stat.read_text().rpartition(")")[2].split()[0] == "Z")


def test_a_child_is_asked_first(tmp_path: Path) -> None:
    """A child that ends at SIGTERM ends with its own status."""
    assert 7 == child_processes.stop(child(POLITE, tmp_path / "log"))


def test_a_deaf_child_is_killed_after_the_grace(tmp_path: Path) -> None:
    """A child that does not end when asked is killed when its grace is over."""
    assert -signal.SIGKILL == child_processes.stop(child(DEAF, tmp_path / "log"), grace_seconds=0.2)


def test_stopping_twice_is_stopping_once(tmp_path: Path) -> None:
    """The second stop of a child finds it ended and says how."""
    process = child(POLITE, tmp_path / "log")

    assert [7, 7] == [child_processes.stop(process), child_processes.stop(process)]


def test_a_child_is_out_of_reach_of_the_terminal(tmp_path: Path) -> None:
    """A child has a process group of its own, so Ctrl-C does not reach it before we decide."""
    process = child(POLITE, tmp_path / "log")

    assert os.getpgid(process.pid) == process.pid
    child_processes.stop(process)


def test_what_a_child_says_is_in_its_log(tmp_path: Path) -> None:
    """Without pipes both outputs of a child are appended to its log."""
    log = tmp_path / "log"
    log.write_text("before\n")
    code = "import sys; print('out', flush=True); print('error', file=sys.stderr)"

    assert 0 == child_processes.reap(child_processes.start([sys.executable, "-c", code], log=log))
    assert "before\nout\nerror\n" == log.read_text()


PARENT: Final = """
import os, signal, sys
from pathlib import Path
from streaming.demo import child_processes
child_processes.GRACE_SECONDS = 0.5
process = child_processes.start([sys.executable, "-c", {code!r}], log=Path({log!r}), piped=True)
process.stdout.readline()
print(process.pid, flush=True)
{end}
"""


def run_parent(code: str, log: Path, end: str) -> subprocess.CompletedProcess[str]:
    """A process that starts a child, prints its id, and comes to its end."""
    script = PARENT.format(code=code.format(ready=READY), log=str(log), end=end)
    return subprocess.run(  # noqa: S603 - our own script
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("code", [POLITE, DEAF], ids=["polite", "deaf"])
def test_a_child_does_not_outlive_us(code: str, tmp_path: Path) -> None:
    """When its parent is killed and can stop nothing, a child is ended, the deaf one after the grace."""
    ended = run_parent(code, tmp_path / "log", "os.kill(os.getpid(), signal.SIGKILL)")
    pid = int(ended.stdout)
    deadline = time.monotonic() + 5
    while is_alive(pid) and time.monotonic() < deadline:
        time.sleep(0.05)

    assert -signal.SIGKILL == ended.returncode
    assert not is_alive(pid)


def test_a_child_that_was_forgotten_ends_with_us(tmp_path: Path) -> None:
    """A process that ends without stopping its children does so on its way out."""
    ended = run_parent(POLITE, tmp_path / "log", "")

    assert (0, "") == (ended.returncode, ended.stderr)
    assert not is_alive(int(ended.stdout))
