"""Members of groups that cost no JVM: real clients on threads, for groups whose members need not be Kafka's own."""

import threading
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, Final, Self

from confluent_kafka import Consumer
from kafka import KafkaConsumer
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor

from streaming.demo.verifiable_consumer import Protocol

_POLL_SECONDS: Final = 0.2


def librdkafka_settings(
    servers: str,
    group: str,
    client_id: str,
    *,
    protocol: Protocol,
    assignor: str | None = None,
    instance_id: str | None = None,
) -> dict[str, str | int]:
    """Of a member that commits what it read twice a second; without an assignor with librdkafka's default."""
    settings: dict[str, str | int] = {
        "bootstrap.servers": servers,
        "group.id": group,
        "client.id": client_id,
        "group.protocol": protocol,
        "auto.offset.reset": "earliest",
        "auto.commit.interval.ms": 500,
    }
    if instance_id is not None:
        settings["group.instance.id"] = instance_id
    if assignor is not None:
        settings["partition.assignment.strategy"] = assignor
    return settings


class _PollingMember:
    """A client that polls on a thread until it is closed; use as a context manager."""

    def __init__(self, name: str, poll: Callable[[], object], leave: Callable[[], object]) -> None:
        self._poll, self._leave = poll, leave
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"member-{name}", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Leave as an application does that is shut down; a second call does nothing."""
        self._stopping.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stopping.is_set():
            self._poll()
        self._leave()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class InProcessMember(_PollingMember):
    """librdkafka's: reads a topic and commits what it read twice a second."""

    def __init__(
        self,
        bootstrap_servers: str,
        group: str,
        topic: str,
        *,
        protocol: Protocol = "consumer",
        instance_id: str | None = None,
        client_id: str | None = None,
        assignor: str | None = None,
    ) -> None:
        """Join; with an instance id as a static member, which stays a member when it is closed.

        The assignor is that of a classic member.
        """
        name = client_id or instance_id or group
        settings = librdkafka_settings(
            bootstrap_servers, group, name, protocol=protocol, assignor=assignor, instance_id=instance_id
        )
        consumer = Consumer({**settings, "log_level": 2})
        consumer.subscribe([topic])
        super().__init__(group, lambda: consumer.consume(500, _POLL_SECONDS), consumer.close)


class PythonMember(_PollingMember):
    """kafka-python's, which speaks the classic protocol in its own way: reads a topic and commits nothing."""

    assignors: Sequence[type] | None = None
    """Its own, where there is none."""

    def __init__(self, bootstrap_servers: str, group: str, topic: str, client_id: str) -> None:
        """Join."""
        given = {} if self.assignors is None else {"partition_assignment_strategy": list(self.assignors)}
        consumer = KafkaConsumer(
            topic,
            bootstrap_servers=bootstrap_servers,
            group_id=group,
            client_id=client_id,
            enable_auto_commit=False,
            heartbeat_interval_ms=500,
            **given,
        )
        super().__init__(client_id, lambda: consumer.poll(int(_POLL_SECONDS * 1_000)), consumer.close)


class _EverythingToEverybody(RoundRobinPartitionAssignor):  # type: ignore[misc]  # kafka-python has no types
    """Assigns as if each member were alone."""

    name = "doubling"

    @classmethod
    def assign(cls, cluster: Any, members: Sequence[Any]) -> dict[str, Any]:
        """Member id → assignment."""
        return {member.member_id: super(cls, cls).assign(cluster, [member])[member.member_id] for member in members}


class DoublingMember(PythonMember):
    """A real member with a broken assignor: as leader it gives every partition to every member.

    Brokers pass on what a leader assigns without looking into it, so two such members own the same partitions in the
    coordinator's own log: the duplicate that a monitor has to find, with nothing simulated. Neither commits, for
    commits of two owners go back and forth.
    """

    assignors = (_EverythingToEverybody,)
