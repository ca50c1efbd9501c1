"""A broker of one release: KRaft in one node, or with a ZooKeeper of its own, in Java 11 where it needs that."""

import socket
import subprocess
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from streaming.base.errors import CannotTellError
from streaming.demo import child_processes
from streaming.demo.embedded_broker import _CLUSTER_ID, HOST, EmbeddedBroker, _coordinates_groups, _free_ports
from streaming.spark import java
from tests.brokers.java import java_11
from tests.brokers.releases import Release

# As the release has it, but for what makes a small log quick to write and a group quick to assemble.
_PROPERTIES: Final[Mapping[str, str]] = {
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "3",
    "group.initial.rebalance.delay.ms": "500",
    "group.min.session.timeout.ms": "1000",
    "auto.create.topics.enable": "false",
    "num.network.threads": "2",
    "num.io.threads": "4",
    "log.cleaner.dedupe.buffer.size": "16777216",
}
# Of the new protocol brokers set the intervals.
_CONSUMER_PROPERTIES: Final[Mapping[str, str]] = {
    "group.consumer.min.heartbeat.interval.ms": "500",
    "group.consumer.heartbeat.interval.ms": "1000",
    "group.consumer.min.session.timeout.ms": "10000",
    "group.consumer.session.timeout.ms": "10000",
}
OFFSETS_PARTITIONS: Final = 5
_START_SECONDS: Final = 180.0
"""Long, as a trial is not to fail over a busy machine."""


class Node(EmbeddedBroker):
    """As `EmbeddedBroker`, of any release."""

    def __init__(self, release: Release, data_dir: Path) -> None:
        """Choose ports and properties; nothing runs yet.

        Args:
            release: what it is.
            data_dir: an empty directory.

        Raises:
            RuntimeError: its jars or its Java cannot be had.
        """
        super().__init__(data_dir, jars_dir=release.jars())
        self._release = release
        self._java = java_11() if release.needs_java_11 else java.find_java()
        self._zookeeper = Zookeeper(self, data_dir / "zookeeper") if release.needs_zookeeper else None
        common = {
            **_PROPERTIES,
            "log.dirs": self._properties["log.dirs"],
            "offsets.topic.num.partitions": str(OFFSETS_PARTITIONS),
        }
        if self._zookeeper is not None:
            own = {
                "broker.id": "1",
                "zookeeper.connect": self._zookeeper.address,
                "listeners": f"PLAINTEXT://{self.bootstrap_servers}",
            }
            common.pop("listener.security.protocol.map")
        else:
            controller = self._properties["controller.quorum.bootstrap.servers"]
            own = {
                "process.roles": "broker,controller",
                "node.id": "1",
                "controller.listener.names": "CONTROLLER",
                # Known to all releases that have KRaft.
                "controller.quorum.voters": f"1@{controller}",
                "listeners": self._properties["listeners"],
                # Before 3.9 a controller has none.
                "advertised.listeners": f"PLAINTEXT://{self.bootstrap_servers}",
            }
        modern = _CONSUMER_PROPERTIES if release.speaks_consumer else {}
        self._properties = {**common, **own, **modern, **release.with_consumer}

    def start(self) -> None:
        """As `EmbeddedBroker.start`."""
        self.data_dir.mkdir(parents=True, exist_ok=True)
        self.log_file.touch()
        settings = self.data_dir / "server.properties"
        settings.write_text("".join(f"{name}={value}\n" for name, value in self._properties.items()), encoding="utf-8")
        if self._zookeeper is not None:
            self._zookeeper.start()
        elif not (self.data_dir / "log" / "meta.properties").exists():
            self._format(settings)
        self._process = child_processes.start(self.java("kafka.Kafka", str(settings), heap="512m"), log=self.log_file)
        try:
            self._await_coordinator()
        except BaseException:
            self.close()
            raise

    def java(self, main_class: str, *arguments: str, heap: str) -> list[str]:
        """The command line of a class of the release, in the Java it needs."""
        _, *rest = java.command(self._jars_dir, main_class, arguments, heap=heap)
        return [str(self._java), *rest]

    def close(self) -> None:
        """End it, and its ZooKeeper."""
        self.stop()
        if self._zookeeper is not None:
            self._zookeeper.stop()

    def __exit__(self, *_: object) -> None:
        """Close."""
        self.close()

    def _await_coordinator(self) -> None:
        deadline = time.monotonic() + _START_SECONDS
        while time.monotonic() < deadline and self._process is not None and self._process.poll() is None:
            with suppress(OSError):
                if _coordinates_groups(self._port):
                    return
            time.sleep(0.1)
        raise CannotTellError(f"Kafka {self._release.name}: no coordinator: {self.last_words()}")

    def _format(self, settings: Path) -> None:
        command = self.java("kafka.tools.StorageTool", "format", "-t", _CLUSTER_ID, "-c", str(settings), heap="128m")
        if child_processes.reap(child_processes.start(command, log=self.log_file)) != 0:
            raise CannotTellError(f"Kafka {self._release.name}: its data directory cannot be formatted")


class Zookeeper:
    """The ZooKeeper of one broker, which outlives it when it is started again.

    Attributes:
        address: where it is, HOST:PORT.
    """

    def __init__(self, node: Node, directory: Path) -> None:
        (self._port,) = _free_ports(1)
        self.address = f"{HOST}:{self._port}"
        self._node, self._directory = node, directory
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        """Start it unless it runs. Raises CannotTellError."""
        if self._process is not None:
            return
        self._directory.mkdir(parents=True)
        settings = self._directory / "zoo.cfg"
        lines = (
            f"dataDir={self._directory.resolve()}",
            f"clientPort={self._port}",
            f"clientPortAddress={HOST}",
            "admin.enableServer=false",
            "jmx.log4j.disable=true",
            "tickTime=2000",
        )
        settings.write_text("\n".join(lines) + "\n", encoding="utf-8")
        server = self._node.java("org.apache.zookeeper.server.ZooKeeperServerMain", str(settings), heap="96m")
        self._process = child_processes.start(server, log=self._directory / "zookeeper.log")
        deadline = time.monotonic() + _START_SECONDS
        while time.monotonic() < deadline and self._process.poll() is None:
            with suppress(OSError), socket.create_connection((HOST, self._port), timeout=1):
                return
            time.sleep(0.1)
        raise CannotTellError(f"ZooKeeper: does not answer at {self.address}")

    def stop(self) -> None:
        """End it."""
        if self._process is not None:
            child_processes.stop(self._process)
            self._process = None
