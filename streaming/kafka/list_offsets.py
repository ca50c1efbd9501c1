"""`ListOffsets` of many partitions, each asked of its leader: one request a broker, all brokers at the same time.

kafka-python's own method fails all partitions for the sake of one, and one broker's for another's.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from kafka.errors import KafkaError
from kafka.protocol.consumer import IsolationLevel, ListOffsetsRequest
from kafka.structs import OffsetAndTimestamp

from streaming.kafka.any_release import with_question
from streaming.kafka.lazy_admin import AWAY, LazyAdmin, error_of

LATEST: Final = -1
EARLIEST: Final = -2

_WITH_ISOLATION: Final = 2
"""Version of ListOffsets from which on there are isolation levels."""

AskedPartition = tuple[str, int]
"""Topic and partition."""


@dataclass(slots=True)
class Listed:
    """What brokers said.

    Attributes:
        found: place → offset, timestamp and leader epoch, of partitions that were answered.
        refused: place → why not, of the others: the leader's own error, or that of asking it.
    """

    found: dict[AskedPartition, OffsetAndTimestamp] = field(default_factory=dict)
    refused: dict[AskedPartition, KafkaError] = field(default_factory=dict)

    @property
    def away(self) -> list[AskedPartition]:
        """Those that may be answered by another broker, or by the same in a moment."""
        return [place for place, error in self.refused.items() if type(error) in AWAY]

    def raise_if_none(self) -> None:
        """Raise what was said of the first partition, if none of those that were asked about was answered."""
        if self.refused and not self.found:
            raise next(iter(self.refused.values()))


def list_offsets(
    admin: LazyAdmin,
    asked: Mapping[AskedPartition, int],
    leaders: Mapping[AskedPartition, int],
    *,
    committed: bool = False,
) -> Listed:
    """Offsets by time: `LATEST`, `EARLIEST`, or of the first record at or after a time in milliseconds.

    Args:
        admin: whose connections are used.
        asked: place → time.
        leaders: place → the broker that leads it, of all that are asked about.
        committed: whether the end is the last stable offset, and not the high watermark.

    Raises KafkaError where no connection was made at all.
    """
    with admin.asking("ListOffsets"):
        return _listed(admin, asked, leaders, committed=committed)


def _listed(
    admin: LazyAdmin, asked: Mapping[AskedPartition, int], leaders: Mapping[AskedPartition, int], *, committed: bool
) -> Listed:
    by_broker: dict[int, dict[str, dict[int, int]]] = {}
    for (topic, partition), time_ms in asked.items():
        by_broker.setdefault(leaders[topic, partition], {}).setdefault(topic, {})[partition] = time_ms
    said = admin.send_each({broker: _request(topics, committed=committed) for broker, topics in by_broker.items()})
    listed = Listed()
    for broker, topics in by_broker.items():
        if isinstance(said[broker], KafkaError):
            listed.refused |= {(topic, at): said[broker] for topic, partitions in topics.items() for at in partitions}
            continue
        of_broker = admin.asked_of("ListOffsets", broker)
        for topic in said[broker].topics:
            for of in topic.partitions:
                place, error = (topic.name, of.partition_index), error_of(of.error_code)
                if error is None:
                    listed.found[place] = OffsetAndTimestamp(of.offset, of.timestamp, of.leader_epoch)
                else:
                    listed.refused[place] = with_question(error(), of_broker)
    return listed


def _request(topics: Mapping[str, Mapping[int, int]], *, committed: bool) -> object:
    named = ListOffsetsRequest.ListOffsetsTopic
    return ListOffsetsRequest(
        isolation_level=IsolationLevel.READ_COMMITTED if committed else IsolationLevel.READ_UNCOMMITTED,
        topics=[
            named(
                name=topic,
                partitions=[
                    named.ListOffsetsPartition(partition_index=partition, timestamp=time_ms)
                    for partition, time_ms in partitions.items()
                ],
            )
            for topic, partitions in topics.items()
        ],
        min_version=_WITH_ISOLATION,
    )
