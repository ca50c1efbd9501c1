"""Batches of a log by their headers alone: one that cannot be read is stepped over by that, and none is unpacked.

A leader sends at least one batch whole, however little is asked for (KIP-74): the one that an offset is in.
"""

import struct
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from kafka.errors import KafkaError
from kafka.protocol.consumer import FetchRequest

from streaming.kafka.lazy_admin import AdminConnection, LazyAdmin

_NEWEST: Final = 12
"""Version of Fetch up to which topics are named; later ones have their ids."""

_FRAME: Final = struct.Struct(">qi")
"""Base offset, and how many bytes follow."""
_MAGIC_AT: Final = 16
_BY_BATCH: Final = 2
"""Magic from which on there are batches; before that, messages, of which one may hold others and has the offset of the
last."""
_HEADER: Final = struct.Struct(">hiqqq6xi")
"""From the attributes on: these, the last offset's distance, the time of the first record and the latest one, the
producer's id, and how many records there are."""
_HEADER_AT: Final = 21
_BY_THE_LOG: Final = 0x08
"""Times are the broker's: the latest is that of all records."""
_TRANSACTIONAL: Final = 0x10
_CONTROL: Final = 0x20

READ_COMMITTED: Final = 1

AT_ONCE_BYTES: Final = 64 * 1024
"""Of a thousand markers; a batch that is larger is sent whole."""


class SentBatch(NamedTuple):
    """What a header says: offsets, who wrote it, how many records it has, when the first was written; -1: unknown."""

    first: int
    last: int
    producer_id: int = -1
    records: int = 1
    time_ms: int = -1
    is_transactional: bool = False
    is_control: bool = False

    @property
    def is_dense(self) -> bool:
        """Whether each of its offsets has a record: the cleaner has taken none."""
        return self.records == self.last - self.first + 1


class BatchBounds(AdminConnection):
    """kafka-python's connections. Used by one thread.

    Args:
        settings: of `KafkaAdminClient`.
        topic: the log.
    """

    def __init__(self, settings: Mapping[str, Any], topic: str) -> None:
        super().__init__(settings)
        self._topic = topic

    def after(self, partition: int, offset: int, leader: int) -> int | None:
        """The offset after the batch that this one is in; None where the leader does not say."""
        try:
            with self._admin.asking("Fetch"):
                of = fetched(self._admin, leader, self._topic, partition, offset)
                return None if of.error_code else end_of_batch(bytes(of.records or b""), offset)
        except (KafkaError, OSError, RuntimeError):
            self._renew()
            return None


def end_of_batch(records: bytes, offset: int) -> int | None:
    """The offset after the batch that this one is in, among batches one behind the other; None where none has it."""
    return next((of.last + 1 for of in batches(records) if of.last >= offset), None)


def batches(records: bytes) -> Iterator[SentBatch]:
    """What the headers say of batches one behind the other; the last may be there in part, as far as it was sent."""
    at = 0
    while at + _MAGIC_AT < len(records):
        base, length = _FRAME.unpack_from(records, at)
        if records[at + _MAGIC_AT] < _BY_BATCH:
            yield SentBatch(base, base)
        elif at + _HEADER_AT + _HEADER.size > len(records):
            return
        else:
            attributes, distance, first_ms, latest_ms, producer_id, count = _HEADER.unpack_from(
                records, at + _HEADER_AT
            )
            time_ms = latest_ms if attributes & _BY_THE_LOG else first_ms
            kind = bool(attributes & _TRANSACTIONAL), bool(attributes & _CONTROL)
            yield SentBatch(base, base + distance, producer_id, count, time_ms, *kind)
        at += _FRAME.size + max(0, length)


def fetched(  # noqa: PLR0913 - who is asked, and what for
    admin: LazyAdmin, leader: int, topic: str, partition: int, offset: int, *, most_bytes: int = 1, isolation: int = 0
) -> Any:  # noqa: ANN401 - kafka-python has no types
    """What a leader answers of a partition, asked for batches from an offset on: so many bytes, or one larger batch."""
    named = FetchRequest.FetchTopic
    asked = named.FetchPartition(
        partition=partition,
        current_leader_epoch=-1,
        fetch_offset=offset,
        last_fetched_epoch=-1,
        log_start_offset=-1,
        partition_max_bytes=most_bytes,
    )
    request = FetchRequest(
        replica_id=-1,
        max_wait_ms=100,
        min_bytes=1,
        max_bytes=most_bytes,
        isolation_level=isolation,
        session_id=0,
        session_epoch=-1,
        topics=[named(topic=topic, partitions=[asked])],
        forgotten_topics_data=[],
        rack_id="",
        max_version=_NEWEST,
    )
    ((of,),) = ([*each.partitions] for each in admin.send(request, leader).responses)
    return of
