"""Reading the topics of events and groups, without a group: nothing is committed, nothing rebalances."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from confluent_kafka import KafkaError

from streaming.base.errors import CannotTellError
from streaming.kafka.plain_consumer import PartitionReader, ReadError, ReadPartition

_FETCH: Final[Mapping[str, Any]] = {
    # Brokers answer at once where there are records; the end of a partition is reported after so long.
    "fetch.wait.max.ms": 100,
}
_NO_TOPIC: Final = (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC)  # noqa: SLF001 - its public name
_POLL_SECONDS: Final = 0.2
_AT_ONCE: Final = 5_000


class TopicReader:
    """A consumer of all partitions of some topics.

    Args:
        settings: of librdkafka.
        topics: topic → how many of the last offsets of each partition to read; None for all.

    Raises:
        CannotTellError: no broker answers, or there is no such topic.
    """

    def __init__(self, settings: Mapping[str, Any], topics: Mapping[str, int | None]) -> None:
        self._reader = PartitionReader({**_FETCH, **settings})
        self._ends: dict[ReadPartition, int] = {}
        starts: dict[ReadPartition, int] = {}
        try:
            for topic, last in topics.items():
                with _reported(topic):
                    bounds = self._reader.bounds(topic)
                for place, (first, end) in bounds.items():
                    self._ends[place] = end
                    starts[place] = first if last is None else max(first, end - last)
            self._reader.begin(starts)
        except BaseException:
            self.close()
            raise

    def poll(self) -> list[tuple[str, bytes | None, bytes | None]]:
        """(topic, key, value) of what is there, in the order of each partition; waits a moment if nothing is.

        Raises:
            CannotTellError: the brokers do not answer as they should.
        """
        with _reported("the topics"):
            found = self._reader.poll(_AT_ONCE, _POLL_SECONDS)
        return [(record.topic() or "", record.key(), record.value()) for record in found]

    @property
    def at_first_end(self) -> bool:
        """Whether all was read that was there when reading began."""
        return all(self._reader.positions[place] >= end for place, end in self._ends.items())

    def close(self) -> None:
        """Let go of the brokers."""
        self._reader.close()


@contextmanager
def _reported(what: str) -> Iterator[None]:
    try:
        yield
    except ReadError as error:
        if error.code in _NO_TOPIC:
            raise CannotTellError(f"kafka_sink: found no topic {what!r}, accepted: one that `check` finds") from error
        raise CannotTellError(f"kafka_sink: found {what} unreadable ({error})") from error
