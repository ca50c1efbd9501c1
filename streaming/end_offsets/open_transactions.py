"""How old the oldest open transaction of a partition is: the age of the record at its last stable offset.

The last stable offset is by definition the first record of the first transaction that is open, so that record's
timestamp is when the transaction wrote there first. It is asked for only where the same offset has stood for some
seconds: applications that commit every 100 ms always have a transaction open, and another one every time. Until it is
known, and where it cannot be had, the age is counted from the first sample that showed the transaction.
"""

from collections.abc import Mapping
from typing import Final

from kafka.errors import KafkaError

from streaming.end_offsets.store import TopicPartition
from streaming.kafka.batch_bounds import AT_ONCE_BYTES, batches, fetched
from streaming.kafka.lazy_admin import LazyAdmin

STANDS_MS: Final = 5_000
"""How long a last stable offset has to stand before the record at it is asked for."""


def written_ms(
    admin: LazyAdmin, places: Mapping[TopicPartition, int], leaders: Mapping[TopicPartition, int]
) -> dict[TopicPartition, int]:
    """When the records at these offsets were written, by the headers of their batches; what is not known is left out.

    Raises KafkaError where no leader answers.
    """
    found, errors = dict[TopicPartition, int](), list[KafkaError]()
    asked = {place: offset for place, offset in places.items() if place in leaders}
    for place, offset in asked.items():
        try:
            of = fetched(admin, leaders[place], *place, offset, most_bytes=AT_ONCE_BYTES)
        except KafkaError as error:
            errors.append(error)
            continue
        written = (
            batch.time_ms for batch in batches(bytes(of.records or b"")) if batch.last >= offset and batch.records
        )
        time_ms = next(written, -1)
        if time_ms >= 0:
            found[place] = time_ms
    if errors and len(errors) == len(asked):
        raise errors[0]
    return found
