"""What a scenario is, and what it has at hand to make a real group do it."""

import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions

from streaming.base.errors import CannotTellError
from streaming.demo.verifiable_consumer import Assignor, Protocol, create_topics
from streaming.spark import java
from tests.group_tables import StateRow
from tests.group_tool import GroupTool
from tests.in_process_members import InProcessMember, PythonMember
from tests.recorder.clients import PATIENCE_SECONDS, ClientJvm, Member, StreamsMember, consumer, share_consumer
from tests.recorder.old_client import OldClient
from tests.recorder.versions import KafkaVersion, jars_of

_RECORDS: Final = 20


@dataclass
class Cluster:
    """A broker of one release, with its clients and the tools that describe it."""

    version: KafkaVersion
    servers: str
    jvm: ClientJvm
    tool: GroupTool
    directory: Path
    new_jvm: Callable[[str], ClientJvm]
    """A further JVM of that name, for members that are to be killed."""

    def run_once(self, *arguments: str, main_class: str) -> str:
        """Run a tool in a JVM of its own; returns what it printed."""
        command = java.command(
            jars_of(self.version.tools), main_class, ["--bootstrap-server", self.servers, *arguments]
        )
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout  # noqa: S603 - no shell


@dataclass
class Scene:
    """One group, named after the scenario, and topics of its own."""

    cluster: Cluster
    group: str
    members: list[Member | StreamsMember | InProcessMember | PythonMember] = field(default_factory=list)
    """Everyone who ever joined; those that still live when the scenario ends do so until it is recorded."""

    def topic(self, partitions: int, suffix: str = "") -> str:
        """A new topic that holds a few records."""
        name = f"{self.group}-topic{suffix}"
        create_topics(self.cluster.servers, {name: partitions})
        self.produce(name, partitions)
        return name

    def produce(self, topic: str, partitions: int) -> None:
        """A few records to each partition."""
        producer = Producer({"bootstrap.servers": self.cluster.servers, "log_level": 2})
        for number in range(_RECORDS):
            producer.produce(topic, key=str(number), value="x", partition=number % partitions)
        assert 0 == producer.flush(PATIENCE_SECONDS)

    def add_partitions(self, topic: str, total: int) -> None:
        """Let a topic grow."""
        self.admin.create_partitions([NewPartitions(topic, total)])[topic].result(PATIENCE_SECONDS)

    def delete_topic(self, topic: str) -> None:
        """Delete a topic, and wait until it is gone."""
        self.admin.delete_topics([topic])[topic].result(PATIENCE_SECONDS)
        eventually(lambda: topic not in self.admin.list_topics(timeout=10).topics)

    @cached_property
    def admin(self) -> AdminClient:
        """librdkafka's; what it is asked is lost with it, so it is kept."""
        return AdminClient({"bootstrap.servers": self.cluster.servers, "log_level": 2})

    def configure(self, name: str, value: str) -> None:
        """Set a dynamic configuration of the group (KIP-848)."""
        self.cluster.jvm.configure_group(self.group, name, value)

    def join(
        self,
        name: str,
        *topics: str,
        protocol: Protocol = "classic",
        assignor: Assignor = "range",
        instance_id: str | None = None,
        pattern: str | None = None,
        settings: Mapping[str, str] | None = None,
        jvm: ClientJvm | None = None,
    ) -> Member:
        """A `KafkaConsumer` that joins the group, in the JVM of all unless another is given."""
        member = consumer(
            jvm or self.cluster.jvm,
            self.group,
            name,
            topics,
            protocol=protocol,
            assignor=assignor,
            instance_id=instance_id,
            pattern=pattern,
            settings=settings,
        )
        self.members.append(member)
        return member

    def join_share(self, name: str, topic: str) -> Member:
        """A `KafkaShareConsumer`."""
        member = share_consumer(self.cluster.jvm, self.group, name, topic)
        self.members.append(member)
        return member

    def join_streams(self, name: str, topic: str, *, protocol: str = "streams", standbys: int = 0) -> StreamsMember:
        """A Kafka Streams application."""
        member = StreamsMember(
            self.cluster.jvm,
            self.group,
            name,
            topic,
            self.cluster.directory / "streams",
            protocol=protocol,
            standbys=standbys,
        )
        self.members.append(member)
        return member

    def join_librdkafka(self, topic: str) -> None:
        """A classic member of another make; it commits on its own what there is to read."""
        self.members.append(InProcessMember(self.cluster.servers, self.group, topic, protocol="classic"))

    def join_kafka_python(self, name: str, topic: str) -> None:
        """And one of a third."""
        self.members.append(PythonMember(self.cluster.servers, self.group, topic, name))

    def doomed(self) -> ClientJvm:
        """A JVM for members that are to be killed."""
        return self.cluster.new_jvm(self.group)

    def commit(self, topic: str, offsets: Mapping[int, int]) -> None:
        """Commit partition → offset without being a member, as a simple consumer or an admin's reset does."""
        simple = Consumer({"bootstrap.servers": self.cluster.servers, "group.id": self.group, "log_level": 2})
        wanted = [TopicPartition(topic, number, offset) for number, offset in offsets.items()]
        simple.commit(offsets=wanted, asynchronous=False)
        simple.close()

    def tool(self, *arguments: str) -> str:
        """`kafka-consumer-groups` for this group."""
        return self.cluster.tool.run("--group", self.group, *arguments)

    def state(self) -> StateRow | None:
        """What the tool shows of the group, of whichever kind but share and streams; None while it does not exist."""
        try:
            (row,) = self.cluster.tool.states(self.group)
        except CannotTellError:
            return None
        return row

    def settled(self, members: int, state: str = "Stable") -> None:
        """Wait until the group is in a state, with so many members. Raises TimeoutError."""

        def holds() -> bool:
            row = self.state()
            return row is not None and (row["state"], row["members"]) == (state, members)

        eventually(holds, lambda: f"{self.group}: {self.state()}, expected {state} with {members} members")

    def old_client(self) -> OldClient:
        """One of long ago."""
        return OldClient(self.cluster.servers)

    def close(self) -> None:
        """End everyone who still lives."""
        for member in self.members:
            member.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """A row of the table.

    Attributes:
        play: makes it happen; its name is the group's, its docstring says what is to be seen.
        since: first (major, minor) that can do it.
        alarms: kinds of events beyond information that it is worth; of all others there must be none.
        told_since: first release whose records show what they are about.
    """

    play: Callable[[Scene], None]
    since: tuple[int, int] = (3, 9)
    alarms: frozenset[str] = frozenset()
    told_since: tuple[int, int] = (0, 0)

    @property
    def group(self) -> str:
        """The group's name."""
        return self.play.__name__.replace("_", "-")

    def is_for(self, version: KafkaVersion) -> bool:
        """Whether brokers of a release can do it."""
        return version.number >= self.since

    def alarms_of(self, version: KafkaVersion) -> frozenset[str]:
        """The kinds of alarms that a release's recording of it is worth."""
        return self.alarms if version.number >= self.told_since else frozenset()


def eventually(holds: Callable[[], Any], otherwise: Callable[[], str] = lambda: "it never came") -> None:
    """Wait until something holds. Raises TimeoutError with the sentence of `otherwise`."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not holds():
        if time.monotonic() > deadline:
            raise TimeoutError(otherwise())
        time.sleep(0.1)
