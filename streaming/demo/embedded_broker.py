"""A real Kafka of one node, broker and controller in one JVM, for the demo and for tests.

`kafka.tools.StorageTool` formats the data directory, `kafka.Kafka` runs; no ZooKeeper, no container. The node listens
on loopback only, knows all four group protocols, and keeps everything it writes in the directory it is given.
"""

import random
import socket
import struct
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import ClassVar, Final, Self

from streaming.base import kafka_frames
from streaming.base.errors import CannotTellError
from streaming.demo import child_processes
from streaming.spark import java, kafka_jars

DEFAULT_JARS_DIR: Final = kafka_jars.DIRECTORY
HOST: Final = "127.0.0.1"

# One node holds every replica. The rest makes a small log quick to write and a group quick to assemble.
PROPERTIES: Final[Mapping[str, str]] = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "3",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "share.coordinator.state.topic.num.partitions": "3",
    "group.coordinator.rebalance.protocols": "classic,consumer,share,streams",
    "group.consumer.migration.policy": "bidirectional",
    "group.min.session.timeout.ms": "1000",
    # A member of the new protocol learns of a change with its next heartbeat, by default every 5 s.
    "group.consumer.min.heartbeat.interval.ms": "500",
    "group.consumer.heartbeat.interval.ms": "1000",
    "auto.create.topics.enable": "false",
    "num.network.threads": "2",
    "num.io.threads": "4",
    "log.cleaner.threads": "1",
    "log.cleaner.dedupe.buffer.size": "16777216",
    "num.recovery.threads.per.data.dir": "2",
}

# A cluster id is any uuid; one that never changes lets a data directory be used again.
_CLUSTER_ID: Final = "ZW1iZWRkZWQtYnJva2VyMQ"

PORTS: Final = range(20_000, 32_000)
"""Below those that systems give to connections: none takes the port of a node that is yet to start, or starts again."""

_POLL_SECONDS: Final = 0.05

# Requests of the two calls that tell whether the node answers, in their first versions (KIP-35; FindCoordinator v0).
_API_VERSIONS: Final = 18
_FIND_COORDINATOR: Final = 10


class EmbeddedBroker:
    """A Kafka node in a child process; use as a context manager.

    Attributes:
        bootstrap_servers: where clients find it, HOST:PORT.
        data_dir: where it keeps its log.
        log_file: what it said.
        cluster_id: the id that it was given.
    """

    _START_SECONDS: ClassVar = 60.0
    _GRACE_SECONDS: ClassVar = child_processes.GRACE_SECONDS
    _QUORUM: ClassVar[Sequence[str]] = ("--standalone",)
    """What says to its directory that it is alone."""

    def __init__(  # noqa: PLR0913 - what tests and the demo set, each with its default
        self,
        data_dir: Path,
        *,
        jars_dir: Path = DEFAULT_JARS_DIR,
        offsets_partitions: int = 50,
        initial_rebalance_delay_ms: int = 500,
        heap: str = "512m",
        properties: Mapping[str, str] | None = None,
        also: Sequence[Path] = (),
        cluster_id: str = _CLUSTER_ID,
    ) -> None:
        """Choose ports and properties; nothing runs yet.

        Args:
            data_dir: an empty directory, or one that an earlier node of the same class has left.
            jars_dir: the jars of one Kafka version.
            offsets_partitions: partitions of `__consumer_offsets`, when it is created.
            initial_rebalance_delay_ms: how long a new classic group waits for further members.
            heap: largest Java heap.
            properties: broker settings that win over those set here.
            also: folders of classes that they name.
            cluster_id: what the cluster is called, a uuid in 22 characters.
        """
        self.cluster_id = cluster_id
        self._jars_dir = jars_dir
        self._heap = heap
        self._also = also
        self._port, controller_port = _free_ports(2)
        self.data_dir = data_dir
        self.log_file = data_dir / "broker.log"
        self.bootstrap_servers = f"{HOST}:{self._port}"
        listeners = f"PLAINTEXT://{HOST}:{self._port},CONTROLLER://{HOST}:{controller_port}"
        self._properties = {
            **PROPERTIES,
            "listeners": listeners,
            "advertised.listeners": listeners,
            "controller.quorum.bootstrap.servers": f"{HOST}:{controller_port}",
            "log.dirs": str((data_dir / "log").resolve()),
            "offsets.topic.num.partitions": str(offsets_partitions),
            "group.initial.rebalance.delay.ms": str(initial_rebalance_delay_ms),
            **(properties or {}),
        }
        self._process: subprocess.Popen[str] | None = None

    @property
    def pid(self) -> int | None:
        """The process id while it runs."""
        return self._process.pid if self._process is not None else None

    def start(self) -> None:
        """Format the data directory unless it is, start the node, and return once it coordinates groups.

        The group coordinator's log exists from then on, so that a reader finds it before the first group is there.

        Raises:
            UsageError: no usable Java, or no jars.
            CannotTellError: the node does not come up.
        """
        self.data_dir.mkdir(parents=True, exist_ok=True)
        self.log_file.write_bytes(b"")
        settings = self.data_dir / "server.properties"
        settings.write_text(java.properties(self._properties), encoding="ascii")
        if not (self.data_dir / "log" / "meta.properties").exists():
            self._format(settings)
        self._process = self._started(self._node(settings))
        try:
            self._await_coordinator()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End the node; a second call does nothing."""
        if self._process is not None:
            child_processes.stop(self._process, grace_seconds=self._GRACE_SECONDS)
            self._process = None

    def __enter__(self) -> Self:
        """Start."""
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop."""
        self.stop()

    def _node(self, settings: Path) -> list[str]:
        """The command line of the node."""
        return java.command(self._jars_dir, "kafka.Kafka", [str(settings)], heap=self._heap, also=self._also)

    def _format(self, settings: Path) -> None:
        arguments = ["format", *self._QUORUM, "-t", self.cluster_id, "-c", str(settings)]
        process = self._started(java.command(self._jars_dir, "kafka.tools.StorageTool", arguments))
        if child_processes.reap(process) != 0:
            raise CannotTellError(f"embedded broker: its data directory cannot be formatted: {self.last_words()}")

    def _started(self, command: Sequence[str]) -> subprocess.Popen[str]:
        return child_processes.start(command, log=self.log_file, environment=java.names_in_utf8())

    def _await_coordinator(self) -> None:
        deadline = time.monotonic() + self._START_SECONDS
        while time.monotonic() < deadline:
            if self.has_ended:
                raise CannotTellError(f"embedded broker: ended while it started: {self.last_words()}")
            with suppress(OSError):
                if _coordinates_groups(self._port):
                    return
            time.sleep(_POLL_SECONDS)
        raise CannotTellError(f"embedded broker: no answer within {self._START_SECONDS:g} s: {self.last_words()}")

    @property
    def has_ended(self) -> bool:
        """Whether it has ended, stopped or not."""
        return self._process is None or self._process.poll() is not None

    def last_words(self) -> str:
        """The cause of its end, or the last that it said.

        Not where the log is: its directory goes with the demo or the rehearsal.
        """
        lines = self.log_file.read_text(encoding="utf-8", errors="replace").splitlines()
        causes = [line for line in lines if line.startswith("Caused by: ") or "Exception: " in line]
        return (causes or lines or ["nothing"])[-1].removeprefix("Caused by: ").strip()


def _free_ports(count: int) -> list[int]:
    """Free ports, all different; held together until the last is chosen."""
    sockets: list[socket.socket] = []
    try:
        for port in random.sample(PORTS, len(PORTS)):
            with suppress(OSError):
                sockets.append(socket.create_server((HOST, port)))
            if len(sockets) == count:
                break
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()


def _coordinates_groups(port: int) -> bool:
    """Whether a node answers, and answers for groups; asking creates the coordinator's log (one broker: it is its own).

    Raises:
        OSError: no broker listens yet.
    """
    with socket.create_connection((HOST, port), timeout=5) as connection:
        # Response v0 starts with the error; versions v0 as well.
        if _error_code(_call(connection, _API_VERSIONS, b"")) != 0:
            return False
        group = b"embedded-broker"
        return _error_code(_call(connection, _FIND_COORDINATOR, struct.pack(">h", len(group)) + group)) == 0


def _call(connection: socket.socket, api_key: int, body: bytes) -> bytes:
    return kafka_frames.ask(connection, struct.pack(">hhih", api_key, 0, 1, -1) + body)


def _error_code(response: bytes) -> int:
    """Error of a response in version 0: behind the correlation id."""
    code: int = struct.unpack_from(">h", response, 4)[0]
    return code
