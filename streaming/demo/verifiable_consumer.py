"""Kafka's own `VerifiableConsumer` as a member: the consumer of its system tests, from the broker's jars.

It speaks both group protocols, commits what it reads, and prints as JSON what it was assigned and what was revoked.
"""

import json
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Literal, Self

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from streaming.base.errors import CannotTellError
from streaming.demo import child_processes
from streaming.demo.embedded_broker import DEFAULT_JARS_DIR
from streaming.spark import java

Protocol = Literal["classic", "consumer"]
Assignor = Literal["range", "roundrobin", "sticky", "cooperative-sticky"]

ASSIGNORS: Final[Mapping[Assignor, str]] = {
    "range": "org.apache.kafka.clients.consumer.RangeAssignor",
    "roundrobin": "org.apache.kafka.clients.consumer.RoundRobinAssignor",
    "sticky": "org.apache.kafka.clients.consumer.StickyAssignor",
    "cooperative-sticky": "org.apache.kafka.clients.consumer.CooperativeStickyAssignor",
}

# Members of a demo wait for a while's worth of records, so that they commit about once a second, not per record.
SETTINGS: Final[Mapping[str, str]] = {
    "fetch.min.bytes": "1000000",
    "fetch.max.wait.ms": "1000",
}
# Of the classic protocol only; a quick heartbeat learns quickly of a rebalance.
CLASSIC_SETTINGS: Final[Mapping[str, str]] = {"heartbeat.interval.ms": "500"}

ASSIGN_SECONDS: Final = 30.0
_LOOK_SECONDS: Final = 0.05
_CLASS: Final = "org.apache.kafka.tools.VerifiableConsumer"


class VerifiableConsumer:
    """A member in a process of its own.

    Attributes:
        name: its client id.
        group, topic, protocol, instance_id: as given.
        events: everything it has printed, oldest first, as JSON objects.
    """

    def __init__(  # noqa: PLR0913 - a member has as many properties
        self,
        bootstrap_servers: str,
        *,
        group: str,
        topic: str,
        name: str,
        directory: Path,
        protocol: Protocol = "classic",
        instance_id: str | None = None,
        assignor: Assignor = "range",
        session_timeout_ms: int | None = None,
        settings: Mapping[str, str] | None = None,
        jars_dir: Path = DEFAULT_JARS_DIR,
    ) -> None:
        """Start it; `await_assigned` waits until it takes part.

        Args:
            bootstrap_servers: the cluster.
            group: the group it joins.
            topic: the topic it subscribes to.
            name: client id; also names its files.
            directory: where its settings and its log go.
            protocol: the group protocol it speaks.
            instance_id: makes it a static member.
            assignor: how a classic group it leads divides partitions.
            session_timeout_ms: how long a classic member may be silent; None is Kafka's default.
            settings: consumer settings that win over those set here.
            jars_dir: the jars of one Kafka version.
        """
        self.name, self.group, self.topic = name, group, topic
        self.protocol, self.instance_id = protocol, instance_id
        self.events: list[dict[str, Any]] = []
        self._changed = threading.Condition()
        self._owned: set[tuple[str, int]] = set()
        self._owned_since = time.monotonic()
        self._committed: dict[tuple[str, int], int] = {}
        directory.mkdir(parents=True, exist_ok=True)
        file = directory / f"{name}.properties"
        file.write_text(java.properties(self._settings(settings)), "ascii")
        arguments = ["--bootstrap-server", bootstrap_servers, "--command-config", str(file), "--topic", topic]
        arguments += ["--group-id", group, "--group-protocol", protocol]
        if protocol == "classic":
            arguments += ["--assignment-strategy", ASSIGNORS[assignor]]
            arguments += [] if session_timeout_ms is None else ["--session-timeout", str(session_timeout_ms)]
        arguments += [] if instance_id is None else ["--group-instance-id", instance_id]
        self.log_file = directory / f"{name}.log"
        command = java.command(jars_dir, _CLASS, arguments, heap="96m")
        self._process = child_processes.start(command, log=self.log_file, piped=True, environment=java.names_in_utf8())
        self._reader = threading.Thread(target=self._read, name=f"read-{name}", daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        """Process id."""
        return self._process.pid

    @property
    def is_running(self) -> bool:
        """Whether its process is alive."""
        return self._process.poll() is None

    @property
    def owned(self) -> set[tuple[str, int]]:
        """(topic, partition) it owns by its own account: assigned and not revoked since."""
        with self._changed:
            return set(self._owned)

    @property
    def owned_since(self) -> float:
        """When it was last assigned something, or revoked, or was started: seconds of `time.monotonic`."""
        with self._changed:
            return self._owned_since

    @property
    def committed(self) -> dict[tuple[str, int], int]:
        """(topic, partition) → the last offset it committed."""
        with self._changed:
            return dict(self._committed)

    def await_assigned(self, *, at_least: int = 1, timeout_seconds: float = ASSIGN_SECONDS) -> set[tuple[str, int]]:
        """Wait until it owns partitions, and return them.

        Raises:
            CannotTellError: it ended or did not get as many in time.
        """
        deadline = time.monotonic() + timeout_seconds
        with self._changed:
            while len(self._owned) < at_least:
                left = deadline - time.monotonic()
                if left <= 0 or not self._reader.is_alive():
                    what = "no assignment" if self.is_running else "its end"
                    raise CannotTellError(
                        f"member {self.name}: found {what}, expected at least {at_least} partitions "
                        f"(see {self.log_file})"
                    )
                self._changed.wait(min(left, 1.0))
            return set(self._owned)

    def ask_to_stop(self) -> None:
        """Let it begin to close; `stop` waits for it. Many end in the time of one."""
        self._process.terminate()

    def stop(self) -> None:
        """Close it as an application that is shut down: a dynamic member leaves, a static one times out."""
        child_processes.stop(self._process)
        self._reader.join()

    def kill(self) -> None:
        """End it without a word to the group, as a machine that fails."""
        child_processes.kill(self._process)
        self._reader.join()

    def __enter__(self) -> Self:
        """Nothing to do: it has been started."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop."""
        self.stop()

    def _settings(self, given: Mapping[str, str] | None) -> dict[str, str]:
        classic = CLASSIC_SETTINGS if self.protocol == "classic" else {}
        return {"client.id": self.name, **SETTINGS, **classic, **(given or {})}

    def _read(self) -> None:
        assert self._process.stdout is not None  # noqa: S101 - asked for at the start
        # The pipe is closed under us when the process is reaped.
        with suppress(ValueError), self.log_file.open("a", encoding="utf-8") as log:
            for line in self._process.stdout:
                if line.startswith("{"):
                    self._take(json.loads(line))
                else:
                    log.write(line)
        with self._changed:
            self._changed.notify_all()

    def _take(self, event: dict[str, Any]) -> None:
        with self._changed:
            self.events.append(event)
            if event["name"] in ("partitions_assigned", "partitions_revoked"):
                self._owned_since = time.monotonic()
            match event["name"]:
                case "partitions_assigned":
                    self._owned |= {(each["topic"], each["partition"]) for each in event["partitions"]}
                case "partitions_revoked":
                    self._owned -= {(each["topic"], each["partition"]) for each in event["partitions"]}
                case "offsets_committed" if event["success"]:
                    self._committed |= {(each["topic"], each["partition"]): each["offset"] for each in event["offsets"]}
            self._changed.notify_all()


def create_topics(bootstrap_servers: str, partitions: Mapping[str, int]) -> None:
    """Create topics of one replica that are not there yet, and wait until the broker that is asked can serve them.

    The controller has a topic before brokers know of it; a commit in between is refused as of an unknown partition.

    Args:
        bootstrap_servers: the cluster.
        partitions: how many each topic has.

    Raises:
        CannotTellError: the cluster does not answer or refuses.
    """
    admin = AdminClient({"bootstrap.servers": bootstrap_servers, "log_level": 2})
    wanted = [NewTopic(name, num_partitions=count, replication_factor=1) for name, count in partitions.items()]
    expected = dict(partitions)
    for name, created in admin.create_topics(wanted, operation_timeout=ASSIGN_SECONDS).items():
        try:
            created.result(ASSIGN_SECONDS)
        except KafkaException as error:
            if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise CannotTellError(f"topic {name}: cannot be created: {error.args[0].str()}") from error
            expected[name] = 1
    deadline = time.monotonic() + ASSIGN_SECONDS
    while unserved := _unserved(admin, expected):
        if time.monotonic() >= deadline:
            raise CannotTellError(f"topic {min(unserved)}: found without leaders, accepted: a leader of each partition")
        time.sleep(_LOOK_SECONDS)


def _unserved(admin: AdminClient, expected: Mapping[str, int]) -> list[str]:
    """Topics that a broker does not know yet with so many partitions at least, each with a leader."""
    try:
        known = admin.list_topics(timeout=ASSIGN_SECONDS).topics
    except KafkaException:
        return list(expected)
    return [
        name
        for name, count in expected.items()
        if (topic := known.get(name)) is None
        or topic.error is not None
        or len(topic.partitions) < count
        or any(partition.error is not None or partition.leader < 0 for partition in topic.partitions.values())
    ]
