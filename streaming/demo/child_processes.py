"""Child processes that end with us, however we end.

Each child is a process group of its own, so Ctrl-C in a terminal reaches us alone and we decide in which order things
stop. Should we be killed without a chance to stop anything, the keeper does: a small process that knows the children's
ids and waits on a pipe from us. The pipe's end is our end; it then terminates what is left.
"""

import atexit
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Final

# A broker that shuts down cleanly takes a second or two, a consumer less.
GRACE_SECONDS: Final = 10.0

_POLL_SECONDS: Final = 0.05

_lock: Final = threading.Lock()
_running: Final[dict[int, subprocess.Popen[str]]] = {}
_keeper: subprocess.Popen[str] | None = None


def start(
    command: Sequence[str | Path],
    *,
    log: Path,
    piped: bool = False,
    environment: Mapping[str, str] | None = None,
) -> subprocess.Popen[str]:
    """Start a child that does not outlive this process.

    Args:
        command: the program and its arguments; no shell takes part.
        log: file that standard error is appended to, and standard output unless it is piped.
        piped: whether standard input and output are pipes to us.
        environment: variables set beside our own.
    """
    with log.open("ab") as file:
        process = subprocess.Popen(  # noqa: S603 - no shell takes part
            [str(part) for part in command],
            stdin=subprocess.PIPE if piped else subprocess.DEVNULL,
            stdout=subprocess.PIPE if piped else file,
            stderr=file,
            env={**os.environ, **(environment or {})},
            start_new_session=True,
            text=True,
            encoding="utf-8",
        )
    with _lock:
        _running[process.pid] = process
        _tell_keeper(f"+{process.pid}")
    return process


def stop(process: subprocess.Popen[str], *, grace_seconds: float = GRACE_SECONDS) -> int:
    """End a child: SIGTERM first, SIGKILL after the grace; returns its exit status (negative: the signal)."""
    process.terminate()
    try:
        process.wait(grace_seconds)
    except subprocess.TimeoutExpired:
        process.kill()
    return reap(process)


def kill(process: subprocess.Popen[str]) -> int:
    """End a child at once, as a machine does that fails."""
    process.kill()
    return reap(process)


def reap(process: subprocess.Popen[str]) -> int:
    """Wait for the end of a child that ends, and let go of its pipes; returns its exit status."""
    status = process.wait()
    with _lock:
        if _running.pop(process.pid, None) is not None:
            _tell_keeper(f"-{process.pid}")
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with suppress(OSError):
                pipe.close()
    return status


def _tell_keeper(line: str) -> None:
    global _keeper  # noqa: PLW0603 - one keeper for the whole process, started by the first child
    if _keeper is None:
        # -S -I: starts in 20 ms and sees nothing but the standard library.
        _keeper = subprocess.Popen(  # noqa: S603 - no shell takes part
            [sys.executable, "-S", "-I", __file__, str(GRACE_SECONDS)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            text=True,
        )
        atexit.register(_stop_all)
    assert _keeper.stdin is not None  # noqa: S101 - asked for above
    # A keeper that was killed can keep nothing; that is no reason to lose the children too.
    with suppress(OSError):
        _keeper.stdin.write(line + "\n")
        _keeper.stdin.flush()


def _stop_all() -> None:
    for process in list(_running.values()):
        process.terminate()
    for process in list(_running.values()):
        stop(process)
    if _keeper is not None and _keeper.stdin is not None:
        with suppress(OSError):
            _keeper.stdin.close()
        _keeper.wait()


# --- the keeper's side -----------------------------------------------------------------------------------------------


def keep(lines: IO[str], grace_seconds: float) -> None:
    """Follow `+pid` and `-pid` until there are no more lines, then end every process that is left."""
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    kept: set[int] = set()
    for line in lines:
        pid = int(line[1:])
        (kept.add if line[0] == "+" else kept.discard)(pid)
    deadline = time.monotonic() + grace_seconds
    left = {pid for pid in kept if _signalled(pid, signal.SIGTERM)}
    while left and time.monotonic() < deadline:
        time.sleep(_POLL_SECONDS)
        left = {pid for pid in left if _signalled(pid, 0)}
    for pid in left:
        _signalled(pid, signal.SIGKILL)


def _signalled(pid: int, number: int) -> bool:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return False
    return True


if __name__ == "__main__":
    keep(sys.stdin, float(sys.argv[1]))
