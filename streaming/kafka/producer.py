"""Writing to topics of Kafka: each record once and in order as long as this process lives, and acknowledged by all.

The client sends again what brokers do not acknowledge, without making it twice (idempotent producer). What
it gives up is the caller's to write again, with a new client: from there on a record may be there twice.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple

from confluent_kafka import KafkaError, KafkaException, Message

from streaming.base.logging_setup import get_logger
from streaming.kafka.librdkafka import Producer
from streaming.kafka.msk_iam import connectable

SETTINGS: Final[Mapping[str, Any]] = {
    "enable.idempotence": True,
    "acks": "all",
    "linger.ms": 5,
    # States of big groups are long, and say much the same again and again; every client reads it.
    "compression.type": "gzip",
    # Counted before compression, by this client; brokers judge for themselves, after it.
    "message.max.bytes": 64 * 1024 * 1024,
    # The client's own retries; then the caller gets the error, and shows it.
    "message.timeout.ms": 10_000,
    # librdkafka writes to standard error itself; what goes wrong we tell.
    "log_level": 2,
}
_FLUSH_SECONDS: Final = 15.0
_REFUSED: Final = (KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.INVALID_RECORD)
"""What no further attempt will change."""

_log = get_logger("kafka_writer")


class WriteError(Exception):
    """Not everything was acknowledged; the text says why."""


class TopicRecord(NamedTuple):
    """What is written; a value of None is a tombstone."""

    topic: str
    key: bytes
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...] = ()


class KafkaWriter:
    """Writes records and waits until brokers have them. To be used from one thread.

    Args:
        settings: of confluent-kafka: where and how to connect; `SETTINGS` come on top.
        look_first: called before the first record of a client; raises what keeps from writing.
    """

    def __init__(self, settings: Mapping[str, Any], look_first: Callable[[], object] = lambda: None) -> None:
        self._settings = {**settings, **SETTINGS}
        self._look_first = look_first
        self._producer: Producer | None = None
        self._last_error: str | None = None

    def write(self, records: Iterable[TopicRecord]) -> int:
        """Write, and return when all are acknowledged, how many brokers refused for good: too long, as a rule.

        Raises:
            WriteError: they are not, and some may be; the caller may write them again.
        """
        if self._producer is None:
            self._look_first()
            self._producer = Producer(connectable({**self._settings, "error_cb": self._note}))
        producer, errors, refused = self._producer, [], 0

        def reported(error: KafkaError | None, message: Message) -> None:
            nonlocal refused
            if error is None:
                return
            if error.code() in _REFUSED:
                refused += 1
                _log.error("record_refused", topic=message.topic(), key=str(message.key()), reason=error.str())
            else:
                errors.append(error.str())

        for record in records:
            refused += _produce(producer, record, reported)
        left = producer.flush(_FLUSH_SECONDS)
        if errors or left:
            self.close()
            raise WriteError(f"{errors[0] if errors else 'no acknowledgement'}{self._cause()}")
        self._last_error = None
        return refused

    def close(self) -> None:
        """Let go of the client, and of what it has not written."""
        producer, self._producer = self._producer, None
        if producer is not None:
            producer.purge()

    def _note(self, error: KafkaError) -> None:
        self._last_error = error.str()

    def _cause(self) -> str:
        return f" ({self._last_error})" if self._last_error is not None else ""


def _produce(producer: Producer, record: TopicRecord, reported: Callable[[Any, Any], None]) -> int:
    """Hand a record to the client; 1 if it does not take it for good, else 0."""
    while True:
        try:
            producer.produce(
                record.topic, key=record.key, value=record.value, headers=list(record.headers), on_delivery=reported
            )
        except BufferError:
            producer.poll(0.1)
        except KafkaException as error:
            if error.args[0].code() not in _REFUSED:
                raise WriteError(error.args[0].str()) from error
            _log.error("record_refused", topic=record.topic, key=str(record.key), reason=error.args[0].str())
            return 1
        else:
            producer.poll(0)
            return 0
