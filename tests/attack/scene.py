"""A broker, a monitor as its users run it, and what is looked at before, during and after an attack."""

import http.client
import json
import socket
import ssl
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self
from urllib.parse import quote, urlsplit

from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from lab.monitor_process import READY_SECONDS, MonitorProcess, marked_processes, until
from streaming.base import kafka_frames
from streaming.demo.embedded_broker import HOST
from tests.certificates import Authority
from tests.faults import victim

TOPIC: Final = "orders"
TOKEN: Final = "a-token-of-the-attacked-monitor"  # noqa: S105 - of a monitor on loopback that ends with the test

OPEN: Final = "open"
"""A monitor without credentials or TLS, on loopback: the default."""
GUARDED: Final = "guarded"
"""A monitor behind TLS and a token."""
IMPATIENT: Final = "impatient"
"""As the open one, but a stream that stands still is started again after some seconds, not after five minutes."""
PATIENCE_SECONDS: Final = 20.0

PROBES: Final = ("/healthz", "/ready")
PROBE_EVERY_SECONDS: Final = 0.25
START_SECONDS: Final = 4 * READY_SECONDS
"""A machine that does much else takes minutes."""
SHOWN_SECONDS: Final = 60.0
"""How long a commit may take to be shown; machines are busy, and the page is asked once a second."""

_OFFSET_COMMIT: Final = 8
_DELETE_GROUPS: Final = 42
_MIB: Final = 2**20


class _Impatient(MonitorProcess):
    program = (sys.executable, "-P", "-m", "tests.faults.victim")


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What a monitor holds: memory in MiB, shared pages by their share; descriptors of Python's process."""

    python_mib: float
    jvm_mib: float
    workers_mib: float
    descriptors: int

    def most(self, other: "Figures") -> "Figures":
        """The larger of each."""
        return Figures(
            python_mib=max(self.python_mib, other.python_mib),
            jvm_mib=max(self.jvm_mib, other.jvm_mib),
            workers_mib=max(self.workers_mib, other.workers_mib),
            descriptors=max(self.descriptors, other.descriptors),
        )


@dataclass(slots=True)
class Probes:
    """What `/healthz` and `/ready` answered during an attack.

    Attributes:
        asked: how often each was asked.
        refused: answers that were not 200, by path. `/ready` may: records wait, and a machine is slow.
        unanswered: times without an answer, by path.
        slowest_seconds: the longest wait for an answer.
        most: the most that was held meanwhile.
    """

    asked: int = 0
    refused: dict[str, int] = field(default_factory=lambda: dict.fromkeys(PROBES, 0))
    unanswered: dict[str, int] = field(default_factory=lambda: dict.fromkeys(PROBES, 0))
    slowest_seconds: float = 0.0
    most: Figures | None = None


class Scene:
    """One monitor with its broker; use as a context manager.

    Args:
        kind: OPEN, GUARDED or IMPATIENT.
        servers: the broker.
        directory: for what the monitor leaves.

    Attributes:
        answer_seconds: how long an answer is waited for.
    """

    answer_seconds: float = 10.0

    def __init__(self, kind: str, servers: str, directory: Path) -> None:
        self.servers = servers
        self._serve_over(tls=kind == GUARDED)
        self.probe_port = _free_port()
        environment = {"GROUP_MONITOR__HTTP__PROBE_PORT": str(self.probe_port)}
        if kind == IMPATIENT:
            environment[victim.PATIENCE] = str(PATIENCE_SECONDS)
        if self._tls:
            certificate, key = Authority(directory / "certificates").issue("server", "localhost", HOST)
            environment |= {
                "GROUP_MONITOR__HTTP__TOKEN": TOKEN,
                "GROUP_MONITOR__HTTP__TLS_CERTIFICATE_FILE": str(certificate),
                "GROUP_MONITOR__HTTP__TLS_KEY_FILE": str(key),
            }
        run = _Impatient if kind == IMPATIENT else MonitorProcess
        self.monitor = run(directory, servers, state=directory / "state", environment=environment)
        self.port = 0
        self._committed = 0

    def _serve_over(self, *, tls: bool) -> None:
        self._tls = tls
        self._context = ssl._create_unverified_context() if tls else None  # noqa: S323 - its name is not asked

    def __enter__(self) -> Self:
        """Wait until the monitor is ready, and has done what it does after a start."""
        self.monitor.__enter__()
        until(
            lambda: self._has_said_where() or self.monitor.exit_status is not None, START_SECONDS, "it does not start"
        )
        url = urlsplit(self.monitor.url)
        self.port = url.port or 0
        until(lambda: self.status("/ready") == 200, START_SECONDS, "the monitor is not ready")
        return self

    def _has_said_where(self) -> bool:
        return bool(self.monitor.output_lines())

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End it."""
        self.monitor.__exit__(kind, error, trace)

    @property
    def pid(self) -> int:
        """Of the process that is attacked."""
        return self.monitor.pid

    def logged(self) -> str:
        """All that it wrote to its log."""
        return self.monitor.errors.read_text("utf-8", "replace")

    # --- the page, asked lawfully ------------------------------------------------------------------------------------

    def get(
        self, path: str, headers: Mapping[str, str] | None = None, source: str = HOST, timeout: float | None = None
    ) -> tuple[int, bytes]:
        """Status and body of an answer, asked from an address of this machine. Raises OSError, HTTPException."""
        given = {"Authorization": f"Bearer {TOKEN}"} if self._tls else {}
        timeout = timeout or self.answer_seconds
        asking: http.client.HTTPConnection
        if self._context is None:
            asking = http.client.HTTPConnection(HOST, self.port, timeout=timeout, source_address=(source, 0))
        else:
            asking = http.client.HTTPSConnection(
                HOST, self.port, timeout=timeout, source_address=(source, 0), context=self._context
            )
        try:
            asking.request("GET", path, headers={**given, **(headers or {})})
            answer = asking.getresponse()
            return answer.status, answer.read()
        finally:
            asking.close()

    def status(self, path: str, headers: Mapping[str, str] | None = None, source: str = HOST) -> int:
        """Status of an answer; 0 for none."""
        with suppress(OSError, http.client.HTTPException):
            return self.get(path, headers, source)[0]
        return 0

    def probe(self, path: str, source: str = HOST) -> tuple[int, Any]:
        """Status and body of an answer of the port of probes, which has no TLS; 0 and nothing for none."""
        asking = http.client.HTTPConnection(
            HOST, self.probe_port, timeout=self.answer_seconds, source_address=(source, 0)
        )
        with closing(asking), suppress(OSError, ValueError, http.client.HTTPException):
            asking.request("GET", path)
            answer = asking.getresponse()
            return answer.status, json.loads(answer.read())
        return 0, None

    # --- the page, asked otherwise -----------------------------------------------------------------------------------

    def connect(self, source: str = HOST, receive_buffer: int | None = None, port: int | None = None) -> socket.socket:
        """A connection on which nothing was said yet, not even TLS; to the page, or this port."""
        connection = socket.socket()
        connection.settimeout(self.answer_seconds)
        if receive_buffer is not None:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        connection.bind((source, 0))
        connection.connect((HOST, port or self.port))
        return connection

    def say(self, said: bytes, source: str = HOST) -> int:
        """Status of what is answered to these bytes; 0 where the connection ends without an answer."""
        with suppress(OSError), self.connect(source) as bare:
            connection = bare if self._context is None else self._context.wrap_socket(bare)
            with connection, suppress(OSError):
                connection.sendall(said)
            with suppress(OSError):
                answer = connection.recv(64)
                return int(answer.split()[1]) if answer.startswith(b"HTTP/1.") else 0
        return 0

    # --- the broker --------------------------------------------------------------------------------------------------

    def commit(self, groups: Mapping[str, int]) -> None:
        """Commit an offset of each group, as any client may, each on one connection to the broker."""
        host, _, port = self.servers.rpartition(":")
        with socket.create_connection((host, int(port)), timeout=30) as connection:
            for group, offset in groups.items():
                body = _text(group) + struct.pack(">i", -1) + _text("") + struct.pack(">q", -1)
                body += struct.pack(">i", 1) + _text(TOPIC) + struct.pack(">iiq", 1, 0, offset) + _text("")
                answer = kafka_frames.ask(connection, struct.pack(">hhih", _OFFSET_COMMIT, 2, 1, -1) + body)
                (error,) = struct.unpack(">h", answer[-2:])
                assert error == 0, f"the commit of a group was refused with error {error}"

    def delete(self, groups: Iterable[str]) -> None:
        """Delete groups, so that all is as before."""
        host, _, port = self.servers.rpartition(":")
        with socket.create_connection((host, int(port)), timeout=30) as connection:
            for group in groups:
                body = struct.pack(">i", 1) + _text(group)
                kafka_frames.ask(connection, struct.pack(">hhih", _DELETE_GROUPS, 0, 1, -1) + body)

    def commit_one(self) -> Callable[[], bool]:
        """Commit an offset of a group of ours; returns whether the API shows it by now."""
        self._committed += 1
        group, offset = "of-ours", self._committed
        self.commit({group: offset})
        address = f"/api/v1/groups/{quote(group)}"

        def is_shown() -> bool:
            with suppress(OSError, ValueError, LookupError, http.client.HTTPException):
                shown = json.loads(self.get(address, source="127.0.0.99")[1])["offsets"]
                return any(of["topic"] == TOPIC and of["offset"] == offset for of in shown)
            return False

        return is_shown

    # --- what it holds -----------------------------------------------------------------------------------------------

    def figures(self) -> Figures:
        """What the monitor's processes hold now."""
        held = {"python": 0.0, "java": 0.0, "workers": 0.0}
        for pid, command in marked_processes(self.monitor._mark):
            kind = "python" if pid == self.monitor.pid else "java" if "/java" in command.split(" ")[0] else "workers"
            # A worker may end while it is looked at.
            with suppress(OSError, StopIteration):
                held[kind] += _pss_mib(pid)
        return Figures(
            python_mib=held["python"],
            jvm_mib=held["java"],
            workers_mib=held["workers"],
            descriptors=len(self.descriptors()),
        )

    def descriptors(self) -> list[int]:
        """Those that Python's process has open."""
        return [int(entry.name) for entry in Path(f"/proc/{self.pid}/fd").iterdir()]

    @contextmanager
    def probed(self) -> Iterator[Probes]:
        """Ask the probes as an orchestrator does, and look at what is held, until this is left."""
        with self.watched(self.figures) as probes:
            yield probes

    @contextmanager
    def watched(self, figures: Callable[[], Figures] | None = None) -> Iterator[Probes]:
        """The same, with this look at what is held, or none."""
        probes, end = Probes(most=figures and figures()), threading.Event()

        def probe() -> None:
            while not end.is_set():
                probes.asked += 1
                for path in PROBES:
                    begun = time.monotonic()
                    status = self.status(path, source="127.0.0.98")
                    probes.unanswered[path] += not status
                    probes.refused[path] += status not in (0, 200)
                    probes.slowest_seconds = max(probes.slowest_seconds, time.monotonic() - begun)
                if figures is not None and probes.most is not None:
                    probes.most = probes.most.most(figures())
                end.wait(PROBE_EVERY_SECONDS)

        thread = threading.Thread(target=probe, daemon=True)
        thread.start()
        try:
            yield probes
        finally:
            end.set()
            thread.join(2 * self.answer_seconds)


def make_topic(servers: str) -> None:
    """The topic whose offsets are committed."""
    admin = AdminClient({"bootstrap.servers": servers})  # kept: its end ends what it was asked
    admin.create_topics([NewTopic(TOPIC, 1, 1)])[TOPIC].result(30)


def _free_port() -> int:
    with socket.create_server((HOST, 0)) as found:
        return int(found.getsockname()[1])


def _pss_mib(pid: int) -> float:
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Pss:")) * 1024 / _MIB


def _text(text: str) -> bytes:
    encoded = text.encode()
    return struct.pack(">h", len(encoded)) + encoded
