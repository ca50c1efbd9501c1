"""A cluster of three real brokers on this machine, so that a leader can move: one of them is the controller, too."""

import os
import shutil
import signal
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Final, Self

from lab.monitor_process import until
from streaming.demo import child_processes, embedded_broker
from streaming.demo.embedded_broker import HOST, EmbeddedBroker
from streaming.spark import java

REPLICATED: Final = {
    "offsets.topic.replication.factor": "3",
    "default.replication.factor": "3",
    "transaction.state.log.replication.factor": "3",
    "share.coordinator.state.topic.replication.factor": "3",
    # A broker that is gone is to be noticed in seconds.
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "500",
}


class _Node(EmbeddedBroker):
    """One of three; with `first` given, a broker that is no controller."""

    def __init__(
        self,
        directory: Path,
        number: int,
        first: "_Node | None" = None,
        *,
        offsets_partitions: int = 1,
        properties: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(
            directory / str(number),
            offsets_partitions=offsets_partitions,
            heap="384m",
            properties={**REPLICATED, **(properties or {})},
        )
        self.number = number
        self._is_first = first is None
        if first is not None:
            mine = f"PLAINTEXT://{self.bootstrap_servers}"
            quorum = first._properties["controller.quorum.bootstrap.servers"]
            self._properties |= {
                "process.roles": "broker",
                "node.id": str(number),
                "listeners": mine,
                "advertised.listeners": mine,
                "controller.quorum.bootstrap.servers": quorum,
            }

    def kill(self) -> None:
        """End it as a machine does that fails."""
        assert self._process is not None
        child_processes.kill(self._process)
        self._process = None

    @property
    def is_alive(self) -> bool:
        """Whether its process runs, or stands still."""
        return self._process is not None and self._process.poll() is None

    def freeze(self) -> None:
        """Have it stand still, as a machine that swaps."""
        assert self.pid is not None
        os.kill(self.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        """Have it go on."""
        if self.pid is not None:
            os.kill(self.pid, signal.SIGCONT)

    def lose_everything(self) -> None:
        """Empty its disk, while it does not run: started again, it is an empty broker under the same id."""
        assert self._process is None
        shutil.rmtree(self.data_dir / "log")

    def coordinates(self) -> bool:
        """Whether it answers, and answers for groups."""
        with suppress(OSError):
            return embedded_broker._coordinates_groups(self._port)
        return False

    def _format(self, settings: Path) -> None:
        if self._is_first:
            super()._format(settings)
            return
        arguments = ["format", "-t", embedded_broker._CLUSTER_ID, "-c", str(settings)]
        command = java.command(self._jars_dir, "kafka.tools.StorageTool", arguments)
        assert 0 == child_processes.reap(child_processes.start(command, log=self.log_file)), self.last_words()

    def _await_coordinator(self) -> None:
        """Not yet: the offsets topic needs all three."""


class ThreeBrokers:
    """The cluster; use as a context manager.

    Args:
        directory: theirs.
        offsets_partitions: partitions of `__consumer_offsets`.
        properties: settings of all three that win over those here.

    Attributes:
        bootstrap_servers: all three.
        nodes: all three, by broker id.
        followers: the two that may be killed.
    """

    def __init__(
        self, directory: Path, *, offsets_partitions: int = 1, properties: Mapping[str, str] | None = None
    ) -> None:
        def node(number: int, first: _Node | None = None) -> _Node:
            return _Node(directory, number, first, offsets_partitions=offsets_partitions, properties=properties)

        first = node(1)
        self.followers = [node(number, first) for number in (2, 3)]
        self._nodes = [first, *self.followers]
        self.nodes = {node.number: node for node in self._nodes}
        self.bootstrap_servers = ",".join(node.bootstrap_servers for node in self._nodes)
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        assert all(node.bootstrap_servers.startswith(HOST) for node in self._nodes)
        with ExitStack() as stack:
            for node in self._nodes:
                stack.enter_context(node)
            until(lambda: all(node.coordinates() for node in self._nodes), 180, "three brokers do not come together")
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()
