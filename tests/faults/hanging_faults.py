"""What makes a stream stand still with all processes there: no descriptors, workers or a JVM that do not answer."""

import os
import resource
import signal
import socket
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from lab.monitor_process import until
from tests.faults import victim
from tests.faults.processes_of import jvm, workers
from tests.faults.trial import Trial

ATTACK_SECONDS: Final = 45.0
MORE_THAN_OPEN: Final = 20
"""So many descriptors more than it has may a monitor have open: far fewer than its limits on connections."""
CONNECTIONS: Final = 250
MOST_LINES: Final = 500
"""In the log of the attack and what comes after it; each kind has sixty a minute."""

PATIENCE_SECONDS: Final = 20.0
"""How long nothing may finish here, instead of five minutes."""


def descriptors_used_up(trial: Trial) -> None:
    """Connections take all descriptors that a monitor may have for 45 s, records arriving; then they are let go of."""
    monitor = trial.monitor
    with trial.writing(0.1):
        pass
    trial.disturbed.await_reported()
    for _ in range(trial.rounds):
        pid, before = monitor.pid, monitor.errors.stat().st_size
        was = resource.prlimit(pid, resource.RLIMIT_NOFILE)
        assert was[0] >= min(65_536, was[1]), was
        open_files = len(list(Path(f"/proc/{pid}/fd").iterdir()))
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (open_files + MORE_THAN_OPEN, was[1]))
        where = urlsplit(monitor.url)
        with ExitStack() as held, trial.writing(0.6 / trial.rounds):
            for _ in range(CONNECTIONS):
                held.enter_context(socket.create_connection((str(where.hostname), where.port or 80), timeout=10))
            time.sleep(ATTACK_SECONDS)
        begun = time.monotonic()
        trial.disturbed.await_reported()
        trial.worst("longest time from the attack's end to all being reported, s", time.monotonic() - begun)
        until(lambda: monitor.get("/healthz")[0] == 200, 60, "it is not alive")
        with monitor.errors.open("rb") as log:
            log.seek(before)
            lines = log.read().count(b"\n")
        assert lines <= MOST_LINES, f"{lines} lines"
        trial.worst("most lines in the log", lines)
        resource.prlimit(pid, resource.RLIMIT_NOFILE, was)
        trial.times += 1


def workers_hang(trial: Trial) -> None:
    """All Python workers of Spark and their daemon are stopped (SIGSTOP), records arriving: killed, and gone on."""
    impatient(trial)
    for _ in range(trial.rounds):
        with trial.writing(0.4 / trial.rounds):
            until(lambda: bool(workers(trial.monitor)), 60, "no worker is there")
            hung = workers(trial.monitor)
            for pid in hung:
                os.kill(pid, signal.SIGSTOP)
            begun = time.monotonic()
            said = said_of(trial, "stream_restarted")
            until(lambda: said_of(trial, "stream_restarted") > said, 300, "it is not started again")  # noqa: B023 - ends in this round
        trial.disturbed.await_reported()
        trial.worst("longest time from the hang to all being reported, s", time.monotonic() - begun)
        for pid in hung:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
        assert trial.monitor.exit_status is None
        trial.times += 1


def jvm_hangs(trial: Trial) -> None:
    """Spark's JVM is stopped (SIGSTOP), records arriving: the monitor says why it ends, and is started again."""
    impatient(trial)
    for _ in range(trial.rounds):
        with trial.writing(0.4 / trial.rounds):
            os.kill(jvm(trial.monitor), signal.SIGSTOP)
            begun = time.monotonic()
            status = trial.monitor.await_end(400)
            line = trial.monitor.error_lines()[-1]
            assert status == 1, (status, line)
            assert "does not answer" in line, line
            trial.worst("longest time until it ended, s", time.monotonic() - begun)
            until(lambda: not trial.monitor.left_over(), 60, "processes of a monitor that ended are still there")
            trial.times += 1
            trial.restart()


def impatient(trial: Trial) -> None:
    """Go on with a monitor that waits for less than five minutes."""
    trial.disturbed.end(trial.monitor)
    trial.disturbed.set_environment({victim.PATIENCE: str(PATIENCE_SECONDS)})
    trial.restart()
    with trial.writing(0.1):
        pass
    trial.disturbed.await_reported()


def said_of(trial: Trial, event: str) -> int:
    """How often the monitor has logged something."""
    return sum(f"event={event}" in line for line in trial.monitor.error_lines())
