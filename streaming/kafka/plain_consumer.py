"""What every reader of a topic is made of: a consumer of librdkafka to which partitions are assigned.

It joins no group and commits nothing. Only librdkafka reads records here: it knows every codec that brokers write in,
and passes over what the cleaner leaves of transactions (batches that have a header and no record). Where a header says
all that is asked, none reads (`batch_bounds.py`).
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, Literal

from confluent_kafka import KafkaError, KafkaException, Message, TopicPartition

from streaming.kafka.librdkafka import Consumer
from streaming.kafka.msk_iam import connectable

PARTITION_EOF: Final = KafkaError._PARTITION_EOF  # noqa: SLF001 - its public name
"""No error: the offset at which a partition ends for this reader. Control batches and cleaned records lie before it."""

QUIET: Final[Mapping[str, Any]] = {"log_level": 2}
"""librdkafka writes to standard error itself; what goes wrong we tell."""

GROUP_ERRORS: Final = frozenset(
    {KafkaError.GROUP_AUTHORIZATION_FAILED, KafkaError.COORDINATOR_NOT_AVAILABLE, KafkaError.NOT_COORDINATOR}
)
"""What the group of the consumer's name meets, which is none."""

ReadPartition = tuple[str, int]
"""Topic and partition."""

_ASK_SECONDS: Final = 10.0


class ReadError(RuntimeError):
    """Brokers refuse what is to be read, or do not answer.

    Attributes:
        code: librdkafka's.
        place: the partition it is about; of no topic where it is about none.
    """

    def __init__(self, error: KafkaError, place: ReadPartition = ("", -1)) -> None:
        super().__init__(error.str() or error.name())
        self.code = error.code()
        self.place = place


def plain_consumer(
    settings: Mapping[str, Any],
    *,
    committed: bool,
    gone: Literal["error", "earliest"],
    on_error: Callable[[KafkaError], object] | None = None,
) -> Consumer:
    """A consumer to which partitions are to be assigned.

    Args:
        settings: of librdkafka: where and how to connect.
        committed: whether records of open and aborted transactions are left out.
        gone: what is to happen where an offset to be read is not there: an error, or to go on with the first that is.
        on_error: gets errors of connections, which the client tries again.
    """
    own: dict[str, Any] = {
        # Must be there, and is used for nothing.
        "group.id": f"{settings.get('client.id', 'group-monitor')}-reader",
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "auto.offset.reset": gone,
        "enable.partition.eof": True,
        "isolation.level": "read_committed" if committed else "read_uncommitted",
        "allow.auto.create.topics": False,
    }
    if on_error is not None:
        own["error_cb"] = on_error
    return Consumer(connectable(settings) | own)


class PartitionReader:
    """Reads partitions of any topics from given offsets on, without an end. To be used from one thread at a time.

    Args:
        settings: of librdkafka.

    Attributes:
        positions: place → the offset before which all was read, of what `begin` was given.
    """

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._consumer = plain_consumer({**QUIET, **settings}, committed=False, gone="earliest")
        self.positions: dict[ReadPartition, int] = {}

    def bounds(self, topic: str) -> dict[ReadPartition, tuple[int, int]]:
        """First offset and high watermark of each partition of a topic. Raises ReadError."""
        with _as_read_error():
            described = self._consumer.list_topics(topic, timeout=_ASK_SECONDS).topics[topic]
            if described.error is not None:
                raise KafkaException(described.error)
            places = [TopicPartition(topic, partition) for partition in sorted(described.partitions)]
            bounds = [self._consumer.get_watermark_offsets(of, timeout=_ASK_SECONDS) for of in places]
        return {(topic, of.partition): bound for of, bound in zip(places, bounds, strict=True)}

    def begin(self, places: Mapping[ReadPartition, int]) -> None:
        """Read these, each from its offset on, and no others."""
        self.positions = dict(places)
        self._consumer.assign([TopicPartition(*place, offset) for place, offset in places.items()])

    def leave(self, places: Collection[ReadPartition]) -> None:
        """Read no more of these."""
        if places:
            self._consumer.incremental_unassign([TopicPartition(*place) for place in places])
            self.positions = {place: at for place, at in self.positions.items() if place not in places}

    def poll(self, most: int, seconds: float) -> list[Message]:
        """Records that are there, or the first that come within some seconds. Raises ReadError."""
        with _as_read_error():
            # Asked for many at once, a consumer waits until there are as many.
            found = self._consumer.consume(1, seconds)
            if found:
                found += self._consumer.consume(most - 1, 0)
        records = []
        for message in found:
            error, place = message.error(), (message.topic() or "", message.partition() or 0)
            if place not in self.positions:
                # Left since it was fetched.
                continue
            if error is None:
                records.append(message)
                self.positions[place] = (message.offset() or 0) + 1
            elif error.code() == PARTITION_EOF:
                self.positions[place] = message.offset() or 0
            elif error.code() not in GROUP_ERRORS:
                raise ReadError(error, place)
        return records

    def close(self) -> None:
        """Let the brokers go."""
        self._consumer.close()


@contextmanager
def _as_read_error() -> Iterator[None]:
    try:
        yield
    except KafkaException as error:
        raise ReadError(error.args[0]) from error
