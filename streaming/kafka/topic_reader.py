"""Reading the topics of events and groups, without a group: nothing is committed, nothing rebalances."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from kafka import KafkaConsumer, TopicPartition
from kafka.errors import KafkaError

from streaming.base.errors import CannotTellError

_POLL_MS: Final = 200


class TopicReader:
    """A consumer of all partitions of some topics.

    Args:
        settings: of kafka-python.
        topics: topic → how many of the last offsets of each partition to read; None for all.

    Raises:
        CannotTellError: no broker answers, or there is no such topic.
    """

    def __init__(self, settings: Mapping[str, Any], topics: Mapping[str, int | None]) -> None:
        with _reported(", ".join(topics)):
            self._consumer = KafkaConsumer(
                **settings,
                group_id=None,
                enable_auto_commit=False,
                auto_offset_reset="earliest",
                allow_auto_create_topics=False,
                max_poll_records=5_000,
                fetch_max_wait_ms=20,
            )
            places = {topic: self._places(topic) for topic in topics}
            every = [place for of_topic in places.values() for place in of_topic]
            self._consumer.assign(every)
            self._ends: dict[Any, int] = self._consumer.end_offsets(every)
            starts = self._consumer.beginning_offsets(every)
            for topic, last in topics.items():
                for place in places[topic]:
                    start = starts[place] if last is None else max(starts[place], self._ends[place] - last)
                    self._consumer.seek(place, start)

    def poll(self) -> list[tuple[str, bytes | None, bytes | None]]:
        """(topic, key, value) of what is there, in the order of each partition; waits a moment if nothing is.

        Raises:
            CannotTellError: the brokers do not answer as they should.
        """
        with _reported("the topics"):
            found = self._consumer.poll(timeout_ms=_POLL_MS)
        return [(record.topic, record.key, record.value) for records in found.values() for record in records]

    @property
    def at_first_end(self) -> bool:
        """Whether all was read that was there when reading began."""
        return all(self._consumer.position(place) >= end for place, end in self._ends.items())

    def close(self) -> None:
        """Let go of the brokers."""
        self._consumer.close(autocommit=False)

    def _places(self, topic: str) -> list[Any]:
        partitions = self._consumer.partitions_for_topic(topic)
        if not partitions:
            raise CannotTellError(f"kafka_sink: found no topic {topic!r}, accepted: one that `check` finds")
        return [TopicPartition(topic, partition) for partition in sorted(partitions)]


@contextmanager
def _reported(what: str) -> Iterator[None]:
    try:
        yield
    except (KafkaError, OSError) as error:
        raise CannotTellError(f"kafka_sink: found {what} unreadable ({str(error) or type(error).__name__})") from error
