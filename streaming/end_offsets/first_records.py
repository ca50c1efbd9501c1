"""Whether a record waits at an offset, for a consumer of committed records: by the headers of batches alone.

Transactions leave offsets that are never delivered: a marker at the end of each, and all of those that were aborted.
Their number is part of lag, and no request of brokers tells them from records (ListOffsets by time answers with a
marker as with a record): only what a consumer is sent does. Nothing is unpacked of it, since who may write to a
topic may write a megabyte that unpacks to a thousand. READ on the topic is what it takes.

    a batch                                             holds a record
    a marker; one of a transaction that was aborted     no
    one from which the cleaner has taken all            no
    any other                                           yes; where it has taken some, and the offset is within it,
                                                        that is not known
"""

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from kafka.errors import KafkaError, TopicAuthorizationFailedError

from streaming.end_offsets.store import TopicPartition
from streaming.kafka.batch_bounds import AT_ONCE_BYTES, READ_COMMITTED, batches, fetched
from streaming.kafka.lazy_admin import AdminConnection

_PATIENCE_SECONDS: Final = 3.0


@dataclass(slots=True)
class FirstRecords:
    """What came of one look.

    Attributes:
        gaps: partition → offset it was looked at from, the first one after it that holds a record or lies beyond what
            can be read, and whether it holds a record. What gave no answer in time, or is not known, is missing.
        refused: topics that may not be read.
    """

    gaps: dict[TopicPartition, tuple[int, int, bool]] = field(default_factory=dict)
    refused: set[str] = field(default_factory=set)


class RecordLooks(AdminConnection):
    """Looks for the first committed record at some offset or after it."""

    def first_at(self, places: Mapping[TopicPartition, int], leaders: Mapping[TopicPartition, int]) -> FirstRecords:
        """The first records at these offsets or after them. Raises KafkaError where no leader answers."""
        found, away = FirstRecords(), dict[int, KafkaError]()
        deadline = time.monotonic() + _PATIENCE_SECONDS
        for place, offset in places.items():
            leader = leaders[place]
            if leader in away or place[0] in found.refused:
                continue
            try:
                with self._admin.asking("Fetch"):
                    self._look(found, place, offset, leader, deadline)
            except KafkaError as error:
                away[leader] = error
        if away and {*leaders.values()} <= away.keys():
            raise next(iter(away.values()))
        return found

    def _look(self, found: FirstRecords, place: TopicPartition, offset: int, leader: int, deadline: float) -> None:
        at, holds = offset, False
        while time.monotonic() < deadline:
            of = fetched(self._admin, leader, *place, at, most_bytes=AT_ONCE_BYTES, isolation=READ_COMMITTED)
            if of.error_code == TopicAuthorizationFailedError.errno:
                found.refused.add(place[0])
            if of.error_code:
                return
            aborted = [(each.first_offset, each.producer_id) for each in of.aborted_transactions or ()]
            at, known = first_record(at, bytes(of.records or b""), aborted, of.last_stable_offset)
            if known is None:
                return
            holds = known
            if holds or at >= of.last_stable_offset:
                break
        else:
            return
        if holds or at > offset:
            found.gaps[place] = offset, at, holds


def first_record(
    offset: int, records: bytes, aborted: Iterable[tuple[int, int]], stable: int
) -> tuple[int, bool | None]:
    """Where the first committed record at an offset or after it is, in what a leader sent.

    Args:
        offset: to look from.
        records: batches, one behind the other.
        aborted: first offset and producer of each transaction in them that was aborted.
        stable: the last stable offset, beyond which nothing was sent.

    Returns:
        Its offset and True; the offset up to which there is none, and False; an offset and None where it is not known.
    """
    at, ended, waiting = offset, set[int](), sorted(aborted)
    for batch in batches(records):
        while waiting and waiting[0][0] <= batch.last:
            ended.add(waiting.pop(0)[1])
        if batch.is_control:
            ended.discard(batch.producer_id)
        is_aborted = batch.is_transactional and batch.producer_id in ended
        if batch.last < at or batch.is_control or is_aborted or not batch.records:
            at = max(at, batch.last + 1)
        elif batch.first >= at:
            return batch.first, True
        else:
            return at, True if batch.is_dense else None
    return at if records else max(at, stable), False
