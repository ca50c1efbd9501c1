"""Who leads the partitions of a topic, and how that is changed while all brokers are alive."""

from collections.abc import Mapping, Sequence
from typing import Final

from confluent_kafka import ElectionType, KafkaError
from confluent_kafka import TopicPartition as Place
from confluent_kafka.admin import AdminClient
from kafka import TopicPartition
from kafka.admin import KafkaAdminClient

from lab.monitor_process import until

NONE: Final = -1
"""In place of a broker id, where there is no leader."""
PATIENCE_SECONDS: Final = 60.0


class Leaders:
    """Of one topic."""

    def __init__(self, bootstrap_servers: str, topic: str) -> None:
        self._servers, self._topic = bootstrap_servers, topic
        self._admin = AdminClient({"bootstrap.servers": bootstrap_servers, "log_level": 2})

    def now(self) -> dict[int, int]:
        """By partition the id of the broker that leads it, or `NONE`, as brokers say at this moment."""
        found = self._admin.list_topics(self._topic, timeout=10).topics[self._topic]
        return {number: of.leader for number, of in found.partitions.items()}

    def without(self) -> set[int]:
        """Partitions that have none."""
        return {number for number, leader in self.now().items() if leader == NONE}

    def replicas(self) -> dict[int, list[int]]:
        """By partition the brokers that hold it, the preferred leader first."""
        found = self._admin.list_topics(self._topic, timeout=10).topics[self._topic]
        return {number: list(of.replicas) for number, of in found.partitions.items()}

    def in_sync(self) -> dict[int, set[int]]:
        """By partition the brokers that have all of it."""
        found = self._admin.list_topics(self._topic, timeout=10).topics[self._topic]
        return {number: set(of.isrs) for number, of in found.partitions.items()}

    def reassign(self, wanted: Mapping[int, Sequence[int]]) -> None:
        """Have partitions held by other brokers, or by the same in another order; returns once they are in sync."""
        admin = KafkaAdminClient(bootstrap_servers=self._servers)
        try:
            places = {TopicPartition(self._topic, number): list(nodes) for number, nodes in wanted.items()}
            refused = {place: error for place, error in admin.alter_partition_reassignments(places).items() if error}
            assert {} == refused, refused
        finally:
            admin.close()

        def is_done() -> bool:
            held, whole = self.replicas(), self.in_sync()
            return all(held[of] == list(nodes) and whole[of] == set(nodes) for of, nodes in wanted.items())

        until(is_done, PATIENCE_SECONDS, lambda: f"reassigned to {dict(wanted)}, held by {self.replicas()}")

    def elect_preferred(self, *partitions: int) -> None:
        """As `kafka-leader-election` and the controller's own balancing do."""
        places = [Place(self._topic, number) for number in partitions]
        for error in self._admin.elect_leaders(ElectionType.PREFERRED, places).result(PATIENCE_SECONDS).values():
            assert error is None or error.code() == KafkaError.ELECTION_NOT_NEEDED, error

    def await_led(self, wanted: Mapping[int, int]) -> None:
        """Wait until these partitions are led by these brokers."""
        until(
            lambda: wanted.items() <= self.now().items(),
            PATIENCE_SECONDS,
            lambda: f"led by {self.now()}, wanted {dict(wanted)}",
        )
