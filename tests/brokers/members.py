"""Real members, each in a process of its own, which can be killed."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

from streaming.demo import child_processes
from streaming.demo.embedded_broker import DEFAULT_JARS_DIR
from streaming.demo.verifiable_consumer import ASSIGNORS, Assignor, Protocol
from streaming.spark import java
from tests.brokers.releases import Release
from tests.in_process_members import librdkafka_settings

NEWEST: Final = (4, 3)
"""Of the jars that demo and tests have."""
SESSION_MS: Final = 10_000
_EXCEPTION: Final = re.compile(
    r"^(?:Exception in thread \S+ |Caused by: )?(?:[\w$]+\.)+(\w+(?:Exception|Error)): ", re.MULTILINE
)
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

    def is_assigned(self) -> bool:
        """Whether it has ever been given partitions."""
        return any(_of(event) in _ASSIGNED and event["partitions"] for event in self.said())

    def refusal(self) -> str | None:
        """The fatal error that it met, in its client's words; None while there is none."""
        for event in self.said():
            if event.get("event") == "error" and (event["fatal"] or event["name"] == "_FATAL"):
                return str(event["text"])
        if self.exit_status is None:
            return None
        thrown = _EXCEPTION.findall(self._file.read_text(encoding="utf-8", errors="replace"))
        return str(thrown[-1]) if thrown else f"exit status {self.exit_status}"

    def stop(self) -> None:
        """Let it leave, as an application that is shut down."""
        child_processes.stop(self._process)

    def kill(self) -> None:
        """End it without a word to the group: `kill -9`."""
        child_processes.kill(self._process)


_ASSIGNED: Final = frozenset({"assigned", "partitions_assigned"})


def _of(event: dict[str, Any]) -> str:
    """What happened: librdkafka's process has other words than Kafka's."""
    return str(event.get("event") or event.get("name"))


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
    of_classic = assignor if protocol == "classic" else None
    settings = librdkafka_settings(
        servers, group, name, protocol=protocol, assignor=of_classic, instance_id=instance_id
    )
    settings["log_level"] = 0
    if protocol == "classic":
        settings |= {"session.timeout.ms": SESSION_MS, "heartbeat.interval.ms": 500}
    command = [sys.executable, "-m", "tests.brokers.member_process", json.dumps(settings), topic]
    return Member(name, command, directory)


def of_release(
    release: Release,
    servers: str,
    group: str,
    name: str,
    topic: str,
    directory: Path,
    *,
    protocol: Protocol = "classic",
    assignor: Assignor = "range",
) -> Member:
    """The release's own Java consumer, Kafka's `VerifiableConsumer`; that of the newest where it lacks the protocol."""
    newest = protocol == "consumer" and not release.has_consumer
    number, jars = (NEWEST, DEFAULT_JARS_DIR) if newest else (release.number, release.jars())
    classic = protocol == "classic"
    settings = directory / f"{name}.properties"
    settings.write_text(f"client.id={name}\n" + ("heartbeat.interval.ms=500\n" if classic else ""), encoding="utf-8")
    arguments = ["--bootstrap-server" if number >= (3, 0) else "--broker-list", servers]
    arguments += ["--command-config" if number >= (4, 2) else "--consumer.config", str(settings)]
    arguments += ["--topic", topic, "--group-id", group]
    if (2, 3) <= number < (2, 5):
        # Their tool insists on it.
        arguments += ["--group-instance-id", name]
    if classic:
        arguments += ["--session-timeout", str(SESSION_MS), "--assignment-strategy", ASSIGNORS[assignor]]
    else:
        arguments += ["--group-protocol", "consumer"]
        if number < (3, 8):
            # Their tool fails without one (NullPointerException).
            arguments += ["--group-remote-assignor", "uniform"]
    return Member(name, java.command(jars, _CLASS, arguments, heap="96m"), directory)
