"""A member that costs no JVM: librdkafka on a thread, for groups whose members need not be Kafka's own."""

import threading
from types import TracebackType
from typing import Final, Self

from confluent_kafka import Consumer

from streaming.demo.verifiable_consumer import Protocol

_POLL_SECONDS: Final = 0.2


class InProcessMember:
    """Reads a topic and commits what it read twice a second; use as a context manager."""

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

        The assignor is that of a classic member, librdkafka's default without one.
        """
        settings = {
            "bootstrap.servers": bootstrap_servers,
            "group.id": group,
            "client.id": client_id or instance_id or group,
            "group.protocol": protocol,
            "auto.offset.reset": "earliest",
            "auto.commit.interval.ms": 500,
            "log_level": 2,
        }
        if instance_id is not None:
            settings["group.instance.id"] = instance_id
        if assignor is not None:
            settings["partition.assignment.strategy"] = assignor
        self._consumer = Consumer(settings)
        self._consumer.subscribe([topic])
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"member-{group}", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Leave as an application does that is shut down; a second call does nothing."""
        self._stopping.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stopping.is_set():
            self._consumer.consume(500, _POLL_SECONDS)
        self._consumer.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
