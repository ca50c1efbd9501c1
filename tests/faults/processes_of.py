"""The processes below a monitor, and their ends."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from lab.monitor_process import MonitorProcess, marked_processes, until

DAEMON = "streaming.spark.worker_daemon"


def _parent(pid: int) -> int:
    # `pid (name) state ppid …`; a name may hold anything but is the last in brackets.
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def workers(monitor: MonitorProcess) -> list[int]:
    """Python workers of Spark and the daemon that forks them, which is a child of the JVM, whose options name it."""
    daemons = {pid for pid, command in marked_processes(monitor._mark) if DAEMON in command}
    found = []
    for pid in daemons:
        with suppress(OSError):
            if _parent(pid) in daemons:
                found.append(pid)
    return found


def peak_mib(pid: int) -> float:
    """The most memory that a process has had; 0 for one that has ended."""
    with suppress(OSError):
        status = Path(f"/proc/{pid}/status").read_text()
        return int(status.partition("VmHWM:")[2].split()[0]) / 1_024
    return 0.0


def kill_workers(monitor: MonitorProcess) -> int:
    """Kill all of them at once, and wait until others do their work; returns how many."""
    until(lambda: bool(workers(monitor)), 60, "no worker is there to be killed")
    killed = workers(monitor)
    for pid in killed:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    until(lambda: bool(set(workers(monitor)) - set(killed)), 60, "no other worker took over")
    return len(killed)


@contextmanager
def stopped(monitor: MonitorProcess) -> Iterator[None]:
    """All of its processes stand still, as on a machine that sleeps, until this is left."""
    pids = [pid for pid, _ in marked_processes(monitor._mark)]
    try:
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        yield
    finally:
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)


EXECUTOR = "CoarseGrainedExecutorBackend"


def kill_executor(monitor: MonitorProcess) -> None:
    """Kill one of Spark's executors with the workers below it, and wait until there are as many again."""
    before = executors(monitor)
    os.kill(before[0], signal.SIGKILL)
    until(
        lambda: len(executors(monitor)) >= len(before) and before[0] not in executors(monitor),
        120,
        "no other executor took over",
    )


def executors(monitor: MonitorProcess) -> list[int]:
    """JVMs of Spark's executors, where they are processes of their own."""
    return sorted(pid for pid, command in marked_processes(monitor._mark) if EXECUTOR in command)


def jvm(monitor: MonitorProcess) -> int:
    """Spark's JVM."""
    (found,) = (pid for pid, command in marked_processes(monitor._mark) if "SparkSubmit" in command)
    return found
