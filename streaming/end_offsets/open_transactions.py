"""How old the oldest open transaction of a partition is: the age of the record at its last stable offset.

The last stable offset is by definition the first record of the first transaction that is open, so that record's
timestamp is when the transaction wrote there first. It is asked for only where the same offset has stood for some
seconds: applications that commit every 100 ms always have a transaction open, and another one every time. Until it is
known, and where it cannot be had, the age is counted from the first sample that showed the transaction.
"""

import time
from collections.abc import Mapping
from typing import Any, Final

from kafka import KafkaConsumer
from kafka import TopicPartition as KafkaTopicPartition

from streaming.end_offsets.store import TopicPartition

STANDS_MS: Final = 5_000
"""How long a last stable offset has to stand before the record at it is asked for."""

_POLL_MS: Final = 200
_PATIENCE_SECONDS: Final = 3.0


class RecordTimes:
    """Reads single records of the log, uncommitted ones too; connects with the first question.

    Args:
        settings: of `KafkaConsumer`. No group is joined and nothing is committed.
    """

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._settings = settings
        self._consumer: Any = None

    def written_ms(self, places: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """Timestamps of the records at these offsets; what does not come in time is left out.

        Raises KafkaError, OSError or RuntimeError.
        """
        if self._consumer is None:
            self._consumer = KafkaConsumer(
                **self._settings,
                isolation_level="read_uncommitted",
                group_id=None,
                enable_auto_commit=False,
                auto_offset_reset="latest",
                allow_auto_create_topics=False,
                max_poll_records=100,
                max_partition_fetch_bytes=1024,
                fetch_max_wait_ms=_POLL_MS,
            )
        try:
            found = _first_of(self._consumer, places)
        except BaseException:
            self.close()
            raise
        if len(found) < len(places):
            # Who leads those may be another broker by now: the next question begins with another look.
            self.close()
        return found

    def close(self) -> None:
        """Let go of all connections."""
        consumer, self._consumer = self._consumer, None
        if consumer is not None:
            consumer.close()


def _first_of(consumer: Any, places: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:  # noqa: ANN401 - kafka-python has no types
    consumer.assign([KafkaTopicPartition(*place) for place in places])
    for place, offset in places.items():
        consumer.seek(KafkaTopicPartition(*place), offset)
    found: dict[TopicPartition, int] = {}
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while len(found) < len(places) and time.monotonic() < deadline:
        for place, records in consumer.poll(_POLL_MS).items():
            if records:
                found.setdefault((place.topic, place.partition), records[0].timestamp)
                consumer.pause(place)
    return found
