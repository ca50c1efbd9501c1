"""A monitor as its users run it: a process of its own, started through the command line, asked over HTTP.

What it starts is found by a mark in the environment, which every process below it inherits, whatever session or
process group it makes itself; so a test can tell whether anything is left.
"""

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Self
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import urlopen

from prometheus_client.parser import text_string_to_metric_families

from streaming.demo import child_processes

ROOT: Final = Path(__file__).resolve().parent.parent
MARK: Final = "TEST_RUN"

READY_SECONDS: Final = 180.0
"""A cold Spark needs 15 s of two cores that are its own; two are started at once, and others may be at work."""

END_SECONDS: Final = 15.0
"""How long a monitor may take to end once it is asked to."""

_POLL_SECONDS: Final = 0.2


class CommandProcess:
    """A command of `group-monitor` in a session of its own; use as a context manager, which leaves nothing of it.

    Attributes:
        pid: of the command itself.
        output, errors: files with what it printed.
    """

    program: tuple[str, ...] = (sys.executable, "-P", "-m", "streaming")
    python_path: str = str(ROOT)

    def __init__(
        self, directory: Path, *arguments: str, environment: Mapping[str, str] | None = None, cwd: Path = ROOT
    ) -> None:
        """Start it; its output goes to files in `directory`."""
        directory.mkdir(parents=True, exist_ok=True)
        self._mark = uuid.uuid4().hex
        self.output, self.errors = directory / "output", directory / "errors"
        with self.output.open("wb") as output, self.errors.open("wb") as errors:
            self._process = subprocess.Popen(  # noqa: S603 - our own interpreter and module
                [*self.program, *arguments],
                cwd=cwd,
                env={
                    **os.environ,
                    **(environment or {}),
                    MARK: self._mark,
                    "PYTHONPATH": self.python_path,
                    "PYTHONFAULTHANDLER": "1",
                },
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=errors,
                start_new_session=True,
            )
        self.pid = self._process.pid
        # Should the tests be killed, what they run must not go on without them.
        child_processes._tell_keeper(f"+{self.pid}")

    @property
    def exit_status(self) -> int | None:
        """None while it runs."""
        return self._process.poll()

    def error_lines(self) -> list[str]:
        """What it wrote to standard error, but for the stages of its start."""
        lines = self.errors.read_text(encoding="utf-8", errors="replace").splitlines()
        return [line for line in lines if " logger=streaming.start " not in line]

    def start_lines(self) -> list[str]:
        """What it logged of its start."""
        lines = self.errors.read_text(encoding="utf-8", errors="replace").splitlines()
        return [line for line in lines if " logger=streaming.start " in line]

    def output_lines(self) -> list[str]:
        """What it wrote to standard output."""
        return self.output.read_text(encoding="utf-8", errors="replace").splitlines()

    def what_it_said(self) -> str:
        """The end of what it wrote to standard error."""
        return "\n".join(self.errors.read_text(encoding="utf-8", errors="replace").splitlines()[-20:])

    def what_it_does(self) -> str:
        """The stacks of its threads and of its JVM's, which tell where it hangs; ends it."""
        if self.exit_status is not None:
            return f"it ended with {self.exit_status}"
        stacks = []
        for pid, command in marked_processes(self._mark):
            with suppress(OSError):
                if Path(command.split(" ", 1)[0]).name == "java":
                    printed = Path(f"/proc/{pid}/fd/1").resolve()
                    before = printed.stat().st_size
                    os.kill(pid, signal.SIGQUIT)
                    time.sleep(2)
                    stacks.append(printed.read_bytes()[before:].decode(errors="replace"))
        before = self.errors.stat().st_size
        self._process.send_signal(signal.SIGABRT)  # Python's fault handler writes the stacks
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(END_SECONDS)
        return "\n".join([self.errors.read_bytes()[before:].decode(errors="replace"), *stacks])

    def interrupt(self) -> None:
        """Ctrl-C: a terminal sends the signal to the whole process group."""
        os.killpg(self.pid, signal.SIGINT)

    def terminate(self) -> None:
        """What a service manager sends, and to the main process only."""
        self._process.terminate()

    def kill(self) -> None:
        """End it as a machine does that fails, and wait until all it had started has noticed."""
        self._process.kill()
        self._process.wait()
        until(lambda: not self.left_over(), 90, "processes of a killed command are still there")

    def kill_alone(self) -> None:
        """End the process itself as a machine does that fails, and leave what it had started to notice."""
        self._process.kill()
        self._process.wait()

    def await_end(self, seconds: float) -> int:
        """Wait until it has ended, and return its exit status."""
        return self._process.wait(seconds)

    def left_over(self) -> list[str]:
        """Command lines of the processes that it or its children started and that are still there."""
        return [command for pid, command in marked_processes(self._mark) if pid != self.pid]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.exit_status is None:
            self._process.terminate()
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(END_SECONDS)
        for pid, _command in marked_processes(self._mark):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._process.wait()
        child_processes._tell_keeper(f"-{self.pid}")


class MonitorProcess(CommandProcess):
    """`group-monitor run --config FILE`, or another command that serves, on any free port."""

    def __init__(
        self,
        directory: Path,
        bootstrap_servers: str,
        *,
        state: Path,
        settings: str = "",
        command: Sequence[str] = ("run",),
        environment: Mapping[str, str] | None = None,
        cwd: Path = ROOT,
        cluster: str = "tested",
    ) -> None:
        """Start it; `await_ready` waits until it may be believed.

        Args:
            directory: where its configuration and what it prints go.
            bootstrap_servers: the cluster.
            state: its state directory.
            settings: further sections of its configuration, as YAML.
            command: what is run with the configuration.
            environment: variables set beside our own.
            cwd: where it stands.
            cluster: its name.
        """
        directory.mkdir(parents=True, exist_ok=True)
        self.config = directory / "monitor.yaml"
        self.config.write_text(configuration(bootstrap_servers, state, cluster) + settings, encoding="utf-8")
        super().__init__(directory, *command, "--config", str(self.config), environment=environment, cwd=cwd)
        self._url: str | None = None

    @property
    def url(self) -> str:
        """Where it listens, as it says itself."""
        if self._url is None:
            until(self._has_said_where, READY_SECONDS, self._hangs)
            # `page URL/  metrics URL/metrics`
            self._url = self._where()[0].split()[1].rstrip("/")
        return self._url

    def get(self, path: str) -> tuple[int, str]:
        """Status and body of an answer.

        Raises:
            OSError: no answer.
        """
        try:
            with urlopen(self.url + path, timeout=10) as response:  # noqa: S310 - our own address
                return response.status, response.read().decode("utf-8")
        except HTTPError as error:
            return error.code, error.read().decode("utf-8")

    def json(self, path: str) -> Any:
        """What an address answers, from JSON."""
        return json.loads(self.get(path)[1])

    def is_ready(self) -> bool:
        """Whether /ready says yes; not if no one answers."""
        with suppress(OSError):
            return self.get("/ready")[0] == 200
        return False

    def await_ready(self, seconds: float = READY_SECONDS) -> None:
        """Wait until /ready says yes."""
        until(lambda: self._is_alive() and self.is_ready(), seconds, self._hangs)

    def groups(self) -> dict[str, dict[str, Any]]:
        """All groups by name, each as its own address answers."""
        names = [group["group"] for group in self.json("/api/v1/groups")["groups"]]
        answers = {name: self.get(f"/api/v1/groups/{quote(name, safe='')}") for name in names}
        return {name: json.loads(body) for name, (status, body) in answers.items() if status == 200}

    def events(self, **query: str) -> list[dict[str, Any]]:
        """The events it remembers."""
        given = "&".join(f"{name}={quote(value)}" for name, value in query.items())
        events: list[dict[str, Any]] = self.json(f"/api/v1/events?{given}")["events"]
        return events

    def samples(self) -> dict[str, dict[tuple[tuple[str, str], ...], float]]:
        """/metrics: sample name → sorted labels → value."""
        return parse_metrics(self.get("/metrics")[1])

    def _has_said_where(self) -> bool:
        return self._is_alive() and bool(self._where())

    def _where(self) -> list[str]:
        return [line for line in self.output_lines() if line.startswith("page ")]

    def _is_alive(self) -> bool:
        assert self.exit_status is None, f"it ended with {self.exit_status}: {self.what_it_said()}"
        return True

    def _hangs(self) -> str:
        return f"it is not ready, and said:\n{self.what_it_said()}\nIts threads:\n{self.what_it_does()}"


class OneOfSeveral(MonitorProcess):
    """One monitor of a process that has several, which ends with that one."""

    def __init__(self, process: CommandProcess, cluster: str) -> None:
        self.output, self.errors, self.pid = process.output, process.errors, process.pid
        self._process, self._mark = process._process, process._mark
        self._cluster = cluster
        self._url = None

    def error_lines(self) -> list[str]:
        """What was written to standard error about its cluster."""
        return [line for line in super().error_lines() if f" cluster={self._cluster}" in line]

    def _where(self) -> list[str]:
        return [line for line in super()._where() if line.endswith(f"  cluster {self._cluster}")]


def contents(directory: Path) -> dict[str, str]:
    """File below a directory → digest of what is in it."""
    return {
        str(path.relative_to(directory)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(directory.rglob("*"))
        if path.is_file()
    }


def configuration(bootstrap_servers: str, state: Path, cluster: str = "tested") -> str:
    """A configuration for a small machine, as YAML."""
    return (
        f"cluster: {{name: {cluster}}}\n"
        f"kafka: {{bootstrap_servers: '{bootstrap_servers}'}}\n"
        f"state: {{dir: '{state}'}}\n"
        "http: {port: 0}\n"
        "spark: {driver_memory: 1g}\n"
        "metrics: {partition_series: true, rebalance_histogram: true}\n"
    )


def parse_metrics(page: str) -> dict[str, dict[tuple[tuple[str, str], ...], float]]:
    """Prometheus' text format: sample name → sorted labels → value."""
    found: dict[str, dict[tuple[tuple[str, str], ...], float]] = {}
    for family in text_string_to_metric_families(page):
        for sample in family.samples:
            found.setdefault(sample.name, {})[tuple(sorted(sample.labels.items()))] = sample.value
    return found


def marked_processes(mark: str) -> list[tuple[int, str]]:
    """(process id, command line) of the processes that have the mark in their environment."""
    wanted = f"{MARK}={mark}".encode()
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        # A process may end while it is looked at; one that has ended and is not waited for has no environment.
        with suppress(OSError):
            if wanted in (entry / "environ").read_bytes().split(b"\0"):
                found.append((int(entry.name), (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode().strip()))
    return found


def until(holds: Callable[[], bool], seconds: float, otherwise: str | Callable[[], str]) -> None:
    """Wait until something holds; fails with what `otherwise` says."""
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            raise AssertionError(otherwise if isinstance(otherwise, str) else otherwise())
        time.sleep(_POLL_SECONDS)
