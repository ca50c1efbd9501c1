"""A Spark cluster of its own for a test: a master and a worker on loopback, from the classes that pyspark brings."""

import re
import socket
import subprocess
import uuid
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Final, Self
from urllib.request import urlopen

import pyspark

from lab.monitor_process import MARK, marked_processes, until
from streaming.demo import child_processes
from streaming.demo.embedded_broker import HOST

SPARK_HOME: Final = Path(pyspark.__file__).parent
_DEPLOY: Final = "org.apache.spark.deploy"
_EXECUTOR: Final = "CoarseGrainedExecutorBackend"
_START_SECONDS: Final = 60.0


class StandaloneCluster:
    """A master and one worker; use as a context manager.

    Args:
        directory: where executors work, and what master and worker say.
        cores: task slots of the worker; `memory` is what its executors may have in all.
    """

    def __init__(self, directory: Path, *, cores: int = 4, memory: str = "2g") -> None:
        self._directory = directory
        self._cores, self._memory = cores, memory
        self._port, self._page = _free_port(), _free_port()
        self._mark = uuid.uuid4().hex
        self.master = f"spark://{HOST}:{self._port}"

    def __enter__(self) -> Self:
        """Start both, and wait until the master knows its worker."""
        self._directory.mkdir(parents=True, exist_ok=True)
        ports = ["--host", HOST, "--port", str(self._port), "--webui-port", str(self._page)]
        worker = ["--host", HOST, "--webui-port", "0", "--cores", str(self._cores), "--memory", self._memory]
        self._processes = [self._start("master.Master", *ports)]
        # A worker that finds no master tries again after fifteen seconds.
        self._await(lambda: self._page_says(b"spark://"), "master.Master")
        self._processes.append(
            self._start("worker.Worker", *worker, "--work-dir", str(self._directory / "work"), self.master)
        )
        self._await(lambda: self._page_says(rb'"aliveworkers"\s*:\s*1'), "worker.Worker")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End both."""
        for process in reversed(self._processes):
            child_processes.stop(process)

    def executors(self) -> list[int]:
        """Process ids of the executors there are, first come first."""
        return sorted(pid for pid, command in marked_processes(self._mark) if _EXECUTOR in command)

    def _start(self, class_: str, *arguments: str) -> subprocess.Popen[str]:
        # Not the class alone: the script gives the worker what it needs to know to start executors.
        command: list[str | Path] = [SPARK_HOME / "bin" / "spark-class", f"{_DEPLOY}.{class_}", *arguments]
        environment = {
            "SPARK_HOME": str(SPARK_HOME),
            "SPARK_LOCAL_IP": HOST,
            "SPARK_DAEMON_MEMORY": "256m",
            "PYTHONPATH": "",
            MARK: self._mark,
        }
        return child_processes.start(command, log=self._directory / f"{class_}.log", environment=environment)

    def _page_says(self, wanted: bytes) -> bool:
        with suppress(OSError), urlopen(f"http://{HOST}:{self._page}/json/", timeout=5) as answer:
            return re.search(wanted, answer.read()) is not None
        return False

    def _await(self, holds: Callable[[], bool], class_: str) -> None:
        log = self._directory / f"{class_}.log"
        until(holds, _START_SECONDS, lambda: log.read_text(encoding="utf-8")[-2_000:])


def _free_port() -> int:
    with socket.create_server((HOST, 0)) as server:
        port: int = server.getsockname()[1]
    return port
