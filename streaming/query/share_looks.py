"""Whether there were records at offsets that a share group gave up below its limit: one fetch decides.

A client archives an offset without a record, such as a transaction's marker or what was compacted away, as it archives
one that it rejects. With READ on the topic it is looked, where few records came; of all else it is not known.
"""

import time
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from coordinator_model.records.share_state_types import ShareStateRecord, decode_share_state
from coordinator_model.state.share_partition import ARCHIVED, DEFAULT_DELIVERY_COUNT_LIMIT
from streaming.kafka.plain_consumer import PartitionReader, ReadError, ReadPartition

MOST_PLACES: Final = 20
"""Share partitions that are looked at in a micro-batch."""
MOST_OFFSETS: Final = 200
"""Of one of them, from the first on."""
MOST_SECONDS: Final = 2.0

Looked = dict[ReadPartition, dict[int, bool]]
"""Topic and partition → offset → whether it holds a record, of those that were looked at."""


class Doubtful(NamedTuple):
    """Offsets of one partition, by the id of its topic, from one to another."""

    first: int
    last: int


def doubtful(
    records: Iterable[tuple[bytes | None, bytes | None]], limits: Mapping[str, int]
) -> dict[ReadPartition, Doubtful]:
    """Topic id and partition → offsets that are archived below the limit by these records of the log."""
    found: dict[ReadPartition, Doubtful] = {}
    for key, value in records:
        record = decode_share_state(key, value)
        if not isinstance(record, ShareStateRecord) or record.value is None:
            continue
        limit = limits.get(record.key.group_id, limits.get("", DEFAULT_DELIVERY_COUNT_LIMIT))
        for batch in record.value.state_batches:
            if batch.delivery_state == ARCHIVED and batch.delivery_count < limit:
                place = record.key.topic_id, record.key.partition
                first, last = found.get(place, (batch.first_offset, batch.last_offset))
                found[place] = Doubtful(min(first, batch.first_offset), max(last, batch.last_offset))
    return found


class ShareLooks:
    """Looks, with a consumer that is kept.

    Args:
        settings: of librdkafka.
    """

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._reader = PartitionReader(settings)

    def look(self, asked: Mapping[ReadPartition, Doubtful], seconds: float = MOST_SECONDS) -> Looked:
        """What is at the first of these offsets of each partition; nothing of partitions that may not be read.

        Args:
            asked: by name of the topic.
            seconds: how long it may take in all.
        """
        places = dict(list(asked.items())[:MOST_PLACES])
        ends = {place: min(last, first + MOST_OFFSETS - 1) + 1 for place, (first, last) in places.items()}
        found: set[tuple[str, int, int]] = set()
        deadline = time.monotonic() + seconds
        while places and time.monotonic() < deadline:
            try:
                self._reader.begin({place: of.first for place, of in places.items()})
                found |= set(self._records(ends, deadline))
                break
            except ReadError as error:
                if error.place not in places:
                    return {}
                del places[error.place]
        read_to = self._reader.positions if places else {}
        looked = {
            place: {
                offset: (*place, offset) in found
                for offset in range(of.first, min(ends[place], read_to.get(place, of.first)))
            }
            for place, of in places.items()
        }
        self._reader.begin({})
        return looked

    def _records(self, ends: Mapping[ReadPartition, int], deadline: float) -> Iterable[tuple[str, int, int]]:
        """(topic, partition, offset) of records up to these ends."""
        while time.monotonic() < deadline:
            for message in self._reader.poll(MOST_OFFSETS, 0.1):
                yield message.topic() or "", message.partition() or 0, message.offset() or 0
            done = [place for place, at in self._reader.positions.items() if at >= ends[place]]
            if len(done) == len(self._reader.positions):
                return


def by_id(looked: Looked, ids: Mapping[str, str]) -> dict[str, dict[str, bool]]:
    """What was looked at as JSON has it: `topic id:partition` → offset → whether it holds a record."""
    return {
        f"{ids[topic]}:{partition}": {str(offset): there for offset, there in of.items()}
        for (topic, partition), of in looked.items()
        if of
    }


def of_json(held: Mapping[str, Mapping[str, bool]]) -> Mapping[ReadPartition, Mapping[int, bool]]:
    """Inverse, by topic id and partition."""
    found: dict[ReadPartition, Mapping[int, bool]] = {}
    for name, of in held.items():
        topic_id, _, partition = name.rpartition(":")
        found[topic_id, int(partition)] = {int(offset): there for offset, there in of.items()}
    return found
