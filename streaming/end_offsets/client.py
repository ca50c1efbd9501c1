"""What the sampler asks of a cluster, and kafka-python behind it."""

import uuid
from base64 import urlsafe_b64decode
from collections.abc import Collection, Mapping
from typing import Any, Protocol

from kafka.errors import TopicAuthorizationFailedError, UnknownTopicOrPartitionError

from streaming.base.logging_setup import get_logger
from streaming.end_offsets.open_transactions import written_ms
from streaming.end_offsets.store import Topic, TopicPartition
from streaming.kafka.broker_queries import topic_id
from streaming.kafka.lazy_admin import AdminConnection
from streaming.kafka.list_offsets import EARLIEST, LATEST, list_offsets

_log = get_logger("end_offsets")


class OffsetsClient(Protocol):
    """What the sampler asks of a cluster. Every method may raise KafkaError, OSError or RuntimeError.

    Attributes:
        untold: names of the last description of which brokers said neither what they are nor that they are not.
        outdated: whether a leader has answered since that it was elected after the topic was described.
    """

    @property
    def untold(self) -> frozenset[str]:
        """See above."""
        ...

    @property
    def outdated(self) -> bool:
        """See above."""
        ...

    def describe(self, names: Collection[str], ids: Collection[str]) -> list[Topic]:
        """Topics by name and by id (22-character text); those that do not exist are left out."""
        ...

    def ends(self, partitions: Mapping[TopicPartition, int], *, committed: bool) -> dict[TopicPartition, int]:
        """Last stable offsets if `committed`, else high watermarks, of partitions that answer.

        `partitions` maps each to the broker that leads it.
        """
        ...

    def earliest(self, partitions: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """First offsets that can be read, of partitions that answer."""
        ...

    def written_ms(self, places: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """Timestamps of the records at these offsets, in milliseconds; what does not come in time is left out."""
        ...

    def close(self) -> None:
        """Let go of all connections; a call under way in another thread ends with an error."""
        ...


class KafkaOffsetsClient(AdminConnection):
    """kafka-python behind the protocol.

    Args:
        settings: of `KafkaAdminClient`; time limits are tightened, because a sample that comes late is worth nothing.
    """

    def __init__(self, settings: Mapping[str, Any]) -> None:
        super().__init__(settings)
        self._leaders: dict[TopicPartition, int] = {}
        self._refused: set[str] = set()
        self._epochs: dict[TopicPartition, int] = {}
        self.untold: frozenset[str] = frozenset()
        self.outdated = False

    def describe(self, names: Collection[str], ids: Collection[str]) -> list[Topic]:
        """See `OffsetsClient`."""
        with self._admin.asking("Metadata"):
            return self._describe(names, ids)

    def _describe(self, names: Collection[str], ids: Collection[str]) -> list[Topic]:
        described = self._admin.ask(lambda client: client.describe_topics([*names, *(_uuid(id_) for id_ in ids)]))
        self._log_refused(described)
        gone = UnknownTopicOrPartitionError.errno
        if names:
            self.untold = frozenset(topic["name"] for topic in described if topic["error_code"] not in (0, gone))
        topics = [
            Topic(
                id=topic_id(topic["topic_id"]),
                name=topic["name"],
                partitions=len(topic["partitions"]),
                leaders={p["partition_index"]: p["leader_id"] for p in topic["partitions"] if p["leader_id"] >= 0},
                leader_epochs={p["partition_index"]: p.get("leader_epoch", -1) for p in topic["partitions"]},
            )
            for topic in described
            if topic["error_code"] == 0
        ]
        for topic in topics:
            self._epochs.update({(topic.name, partition): epoch for partition, epoch in topic.leader_epochs.items()})
        self.outdated = False
        return topics

    def ends(self, partitions: Mapping[TopicPartition, int], *, committed: bool) -> dict[TopicPartition, int]:
        """See `OffsetsClient`."""
        self._leaders.update(partitions)
        return self._list(partitions, LATEST, committed=committed)

    def earliest(self, partitions: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """See `OffsetsClient`."""
        return self._list(partitions, EARLIEST, committed=False)

    def written_ms(self, places: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """See `OffsetsClient`."""
        with self._admin.asking("Fetch"):
            return written_ms(self._admin, places, self._leaders)

    def _log_refused(self, described: list[dict[str, Any]]) -> None:
        """Say once of each topic that it is there, but not for us: it would be missing without a word."""
        code = TopicAuthorizationFailedError.errno
        refused = {topic["name"] or str(topic["topic_id"]) for topic in described if topic["error_code"] == code}
        for name in sorted(refused - self._refused):
            _log.warning("topic_not_described", topic=name, needs="the permission DESCRIBE")
        self._refused = refused

    def _list(
        self, partitions: Mapping[TopicPartition, int], time_ms: int, *, committed: bool
    ) -> dict[TopicPartition, int]:
        listed = list_offsets(self._admin, dict.fromkeys(partitions, time_ms), partitions, committed=committed)
        listed.raise_if_none()
        if time_ms == LATEST:
            # Leaders say their own epoch with the end of the log: an election is noticed without another question.
            epochs = self._epochs
            self.outdated = self.outdated or any(
                of.leader_epoch > epochs.get(place, of.leader_epoch) >= 0 for place, of in listed.found.items()
            )
        return {place: of.offset for place, of in listed.found.items()}


def _uuid(text: str) -> uuid.UUID:
    return uuid.UUID(bytes=urlsafe_b64decode(text + "=="))
