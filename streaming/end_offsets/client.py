"""What the sampler asks of a cluster, and kafka-python behind it."""

import uuid
from base64 import urlsafe_b64decode
from collections.abc import Collection, Mapping
from itertools import groupby
from typing import Any, Final, Protocol

from kafka import TopicPartition as KafkaTopicPartition
from kafka.admin import OffsetSpec
from kafka.errors import BrokerResponseError, KafkaError, TopicAuthorizationFailedError
from kafka.protocol.consumer import IsolationLevel

from coordinator_model.wire.primitives import uuid_text
from streaming.base.logging_setup import get_logger
from streaming.end_offsets.open_transactions import RecordTimes
from streaming.end_offsets.store import Topic, TopicPartition
from streaming.kafka.lazy_admin import LazyAdmin

_MOST_QUESTIONS: Final = 64

_log = get_logger("end_offsets")


class OffsetsClient(Protocol):
    """What the sampler asks of a cluster. Every method may raise KafkaError, OSError or RuntimeError."""

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


class KafkaOffsetsClient:
    """kafka-python behind the protocol. It connects with the first question, so that `close` can end that, too.

    Args:
        settings: of `KafkaAdminClient`; time limits are tightened, because a sample that comes late is worth nothing.
    """

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._admin = LazyAdmin(settings)
        self._record_times = RecordTimes(settings)
        self._silent: set[TopicPartition] = set()
        self._refused: set[str] = set()

    def describe(self, names: Collection[str], ids: Collection[str]) -> list[Topic]:
        """See `OffsetsClient`. Partitions that did not answer before are asked again from here on."""
        self._silent.clear()
        described = self._admin.client.describe_topics([*names, *(_uuid(id_) for id_ in ids)])
        self._log_refused(described)
        return [
            Topic(
                id=uuid_text(uuid.UUID(str(topic["topic_id"])).bytes),
                name=topic["name"],
                partitions=len(topic["partitions"]),
                leaders={p["partition_index"]: p["leader_id"] for p in topic["partitions"] if p["leader_id"] >= 0},
                leader_epochs={p["partition_index"]: p.get("leader_epoch", -1) for p in topic["partitions"]},
            )
            for topic in described
            if topic["error_code"] == 0
        ]

    def ends(self, partitions: Mapping[TopicPartition, int], *, committed: bool) -> dict[TopicPartition, int]:
        """See `OffsetsClient`."""
        isolation = IsolationLevel.READ_COMMITTED if committed else IsolationLevel.READ_UNCOMMITTED
        return self._list(partitions, OffsetSpec.LATEST, isolation)

    def earliest(self, partitions: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """See `OffsetsClient`."""
        return self._list(partitions, OffsetSpec.EARLIEST, IsolationLevel.READ_UNCOMMITTED)

    def written_ms(self, places: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """See `OffsetsClient`."""
        return self._record_times.written_ms(places)

    def close(self) -> None:
        """See `OffsetsClient`."""
        self._record_times.close()
        self._admin.close()

    def _log_refused(self, described: list[dict[str, Any]]) -> None:
        """Say once of each topic that it is there, but not for us: it would be missing without a word."""
        code = TopicAuthorizationFailedError.errno
        refused = {topic["name"] or str(topic["topic_id"]) for topic in described if topic["error_code"] == code}
        for name in sorted(refused - self._refused):
            _log.warning("topic_not_described", topic=name, needs="the permission DESCRIBE")
        self._refused = refused

    def _list(
        self, partitions: Mapping[TopicPartition, int], spec: object, isolation: object
    ) -> dict[TopicPartition, int]:
        """All in one question; where kafka-python fails it for the sake of a part, in smaller ones."""
        found: dict[TopicPartition, int] = {}
        asked = sorted(partitions.keys() - self._silent, key=lambda place: (partitions[place], place))
        pending, first_error = [asked] if asked else [], None
        for _ in range(_MOST_QUESTIONS):
            if not pending:
                break
            part = pending.pop()
            specs = {KafkaTopicPartition(topic, partition): spec for topic, partition in part}
            try:
                answer = self._admin.client.list_partition_offsets(specs, isolation)
            except KafkaError as error:
                first_error = first_error or error
                pending += self._smaller(part, partitions, error)
                continue
            found.update({(place.topic, place.partition): held.offset for place, held in answer.items()})
        if first_error is not None and not found:
            raise first_error
        return found

    def _smaller(
        self, part: list[TopicPartition], brokers: Mapping[TopicPartition, int], error: KafkaError
    ) -> list[list[TopicPartition]]:
        """What to ask instead: broker by broker, then by halves until the partition that the broker means is alone."""
        by_broker = [list(places) for _, places in groupby(part, key=brokers.__getitem__)]
        if len(by_broker) > 1:
            return by_broker
        if not isinstance(error, BrokerResponseError):
            return []  # the broker does not answer at all
        if len(part) == 1:
            self._silent.update(part)
            return []
        return [part[len(part) // 2 :], part[: len(part) // 2]]


def _uuid(text: str) -> uuid.UUID:
    return uuid.UUID(bytes=urlsafe_b64decode(text + "=="))
