"""Real members, each in a process of its own, which can be killed."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

from streaming.demo import child_processes
from streaming.demo.verifiable_consumer import ASSIGNORS, Assignor, Protocol
from streaming.spark import java
from tests.brokers.releases import Release

SESSION_MS: Final = 10_000
_CLASS: Final = "org.apache.kafka.tools.VerifiableConsumer"


class Member:
    """A process that consumes; what it prints goes to a file.

    Attributes:
        name: its client id.
    """

    def __init__(self, name: str, command: list[str], directory: Path) -> None:
        self.name = name
        self._file = directory / f"{name}.out"
        self._process: subprocess.Popen[str] = child_processes.start(command, log=self._file)

    @property
    def exit_status(self) -> int | None:
        """None while it runs."""
        return self._process.poll()

    def said(self) -> list[dict[str, Any]]:
        """The JSON objects it printed."""
        lines = self._file.read_text(encoding="utf-8", errors="replace").splitlines()
        return [json.loads(line) for line in lines if line.startswith("{") and line.endswith("}")]

    def stop(self) -> None:
        """Let it leave, as an application that is shut down."""
        child_processes.stop(self._process)

    def kill(self) -> None:
        """End it without a word to the group: `kill -9`."""
        child_processes.kill(self._process)


def librdkafka(
    servers: str,
    group: str,
    name: str,
    topic: str,
    directory: Path,
    *,
    protocol: Protocol = "classic",
    assignor: str = "range",
    instance_id: str | None = None,
) -> Member:
    """A member of librdkafka."""
    settings = {
        "bootstrap.servers": servers,
        "group.id": group,
        "client.id": name,
        "group.protocol": protocol,
        "auto.offset.reset": "earliest",
        "auto.commit.interval.ms": 500,
        "log_level": 0,
    }
    if protocol == "classic":
        settings |= {"partition.assignment.strategy": assignor, "session.timeout.ms": SESSION_MS}
        settings |= {"heartbeat.interval.ms": 500}
    if instance_id is not None:
        settings["group.instance.id"] = instance_id
    command = [sys.executable, "-m", "tests.brokers.member_process", json.dumps(settings), topic]
    return Member(name, command, directory)


def of_release(
    release: Release, servers: str, group: str, name: str, topic: str, directory: Path, *, assignor: Assignor = "range"
) -> Member:
    """The release's own Java consumer, Kafka's `VerifiableConsumer`, on the classic protocol."""
    settings = directory / f"{name}.properties"
    settings.write_text(f"client.id={name}\nheartbeat.interval.ms=500\n", encoding="utf-8")
    arguments = ["--bootstrap-server" if release.number >= (3, 0) else "--broker-list", servers]
    arguments += ["--command-config" if release.number >= (4, 2) else "--consumer.config", str(settings)]
    arguments += ["--topic", topic, "--group-id", group, "--session-timeout", str(SESSION_MS)]
    arguments += ["--assignment-strategy", ASSIGNORS[assignor]]
    return Member(name, java.command(release.jars(), _CLASS, arguments, heap="96m"), directory)
