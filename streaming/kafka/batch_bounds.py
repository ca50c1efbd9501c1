"""Where a batch of a log begins and ends, by its header alone: one that cannot be read is stepped over by that.

A leader sends at least one batch whole, however little is asked for (KIP-74): the one that an offset is in.
"""

import struct
from collections.abc import Mapping
from typing import Any, Final

from kafka.errors import KafkaError
from kafka.protocol.consumer import FetchRequest

from streaming.kafka.lazy_admin import AdminConnection

_NEWEST: Final = 12
"""Version of Fetch up to which topics are named; later ones have their ids."""

_FRAME: Final = struct.Struct(">qi")
"""Base offset, and how many bytes follow."""
_MAGIC_AT: Final = 16
_BY_BATCH: Final = 2
"""Magic from which on there are batches; before that, messages, of which one may hold others and has the offset of the
last."""
_LAST_DELTA: Final = struct.Struct(">i")
_LAST_DELTA_AT: Final = 23


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
                answer = self._admin.send(_request(self._topic, partition, offset), leader)
                found = [of for topic in answer.responses for of in topic.partitions if not of.error_code]
                return end_of_batch(bytes(found[0].records or b""), offset) if found else None
        except (KafkaError, OSError, RuntimeError):
            self._renew()
            return None


def end_of_batch(records: bytes, offset: int) -> int | None:
    """The offset after the batch that this one is in, among batches one behind the other; None where none has it."""
    at = 0
    while at + _MAGIC_AT < len(records):
        base, length = _FRAME.unpack_from(records, at)
        end = base + 1
        if records[at + _MAGIC_AT] >= _BY_BATCH:
            if at + _LAST_DELTA_AT + _LAST_DELTA.size > len(records):
                return None
            end += _LAST_DELTA.unpack_from(records, at + _LAST_DELTA_AT)[0]
        if end > offset:
            return int(end)
        at += _FRAME.size + max(0, length)
    return None


def _request(topic: str, partition: int, offset: int) -> object:
    named = FetchRequest.FetchTopic
    asked = named.FetchPartition(
        partition=partition,
        current_leader_epoch=-1,
        fetch_offset=offset,
        last_fetched_epoch=-1,
        log_start_offset=-1,
        partition_max_bytes=1,
    )
    return FetchRequest(
        replica_id=-1,
        max_wait_ms=100,
        min_bytes=1,
        max_bytes=1,
        isolation_level=0,
        session_id=0,
        session_epoch=-1,
        topics=[named(topic=topic, partitions=[asked])],
        forgotten_topics_data=[],
        rack_id="",
        max_version=_NEWEST,
    )
