"""Writing logs to a broker: as fast as it takes them, or at an even rate."""

import threading
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from itertools import cycle
from typing import Any, Final, Self

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition

from bench.log import Commits, Expected, LogRecord

_FLUSH_SECONDS: Final = 120
_CLIENT: Final = "__admin_client"
"""A broker lets only a client of this id write to the coordinator's own log."""
_TICK_SECONDS: Final = 0.005
_IN_ORDER: Final = {"acks": "all", "max.in.flight.requests.per.connection": 1}
"""A batch that is sent once more must not come after the next one: the last commit would be another one. An idempotent
producer, as `Trickle` has, would see to that, too; but a coordinator that loads its log takes such a batch for a
transaction's."""
_BULK: Final = {
    "queue.buffering.max.messages": 500_000,
    "queue.buffering.max.kbytes": 1_000_000,
    "batch.size": 1_000_000,
}


class Writer:
    """A producer that stays connected; every call of `write` returns once all is acknowledged."""

    def __init__(self, bootstrap_servers: str, *, linger_ms: int = 1) -> None:
        """Connect, and keep a single record waiting for others for no longer than `linger_ms`."""
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap_servers,
                "client.id": _CLIENT,
                **_IN_ORDER,
                **_BULK,
                "linger.ms": linger_ms,
            }
        )

    def write(self, records: Iterable[tuple[str, LogRecord]]) -> int:
        """Write (topic, record) as fast as the broker takes them; returns how many.

        Raises:
            RuntimeError: some were not taken: a benchmark of half a log is none.
        """
        count = 0
        for topic, record in records:
            _produce(self._producer, topic, record)
            count += 1
        left = self._producer.flush(_FLUSH_SECONDS)
        if left:
            raise RuntimeError(f"{left} of {count} records were not delivered")
        return count


def write(bootstrap_servers: str, records: Iterable[tuple[str, LogRecord]]) -> int:
    """Write (topic, record) once, in large batches; returns how many. Raises RuntimeError as `Writer.write`."""
    return Writer(bootstrap_servers, linger_ms=20).write(records)


def _produce(producer: Producer, topic: str, record: LogRecord, **more: Any) -> None:  # noqa: ANN401 - the client's own
    while True:
        with suppress(BufferError):
            producer.produce(
                topic,
                record.value,
                record.key,
                partition=record.partition,
                timestamp=record.timestamp_ms,
                **more,
            )
            return
        producer.poll(0.05)


def read_all(bootstrap_servers: str, topic: str, partitions: int) -> int:
    """Read a topic to its end with a plain consumer that looks at nothing; returns how many records there were."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap_servers,
            "group.id": "bench-read",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "earliest",
            "fetch.message.max.bytes": 8 * 1024 * 1024,
            "queued.max.messages.kbytes": 256 * 1024,
        }
    )
    consumer.assign([TopicPartition(topic, partition, 0) for partition in range(partitions)])
    ended: set[int | None] = set()
    count = 0
    while len(ended) < partitions:
        for message in consumer.consume(10_000, timeout=1.0):
            error = message.error()
            if error is None:
                count += 1
            elif error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 - the client's public name for it
                ended.add(message.partition())
    consumer.close()
    return count


class Trickle:
    """Commits of some groups at an even rate, in a thread of its own; use as a context manager.

    Every commit moves its partition on by one. `sent` has, by (group, partition), the time of each commit by its
    offset: the first one's offset stands in `first`.

    Attributes:
        ack_seconds: from each commit to the producer's acknowledgement.
        paused: while set, nothing is committed.
    """

    def __init__(
        self, bootstrap_servers: str, topic: str, commits: Sequence[Commits], expected: Expected, rate: float
    ) -> None:
        """Commit `rate` times a second, the partitions in turn; `expected` is kept up."""
        self._producer = Producer({"bootstrap.servers": bootstrap_servers, "enable.idempotence": True, "linger.ms": 1})
        self._topic, self._expected, self._rate = topic, expected, rate
        self._commits = commits
        self.first = {(each.name, each.place[1]): self._committed(each) + 1 for each in commits}
        self.sent: dict[tuple[str, int], list[float]] = {place: [] for place in self.first}
        self.ack_seconds: list[float] = []
        self.paused = threading.Event()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="trickle", daemon=True)

    @property
    def count(self) -> int:
        """How many commits were sent."""
        return sum(len(times) for times in self.sent.values())

    def __enter__(self) -> Self:
        """Begin."""
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """End, all commits being acknowledged."""
        self._stopping.set()
        self._thread.join()
        self._producer.flush(_FLUSH_SECONDS)

    def _committed(self, each: Commits) -> int:
        return self._expected.groups[each.name].offsets.get(each.place, 0)

    def _run(self) -> None:
        turns = cycle(self._commits)
        begun, done = time.monotonic(), 0
        while not self._stopping.is_set():
            if self.paused.is_set():
                begun, done = time.monotonic(), 0
            due = int((time.monotonic() - begun) * self._rate)
            while done < due:
                self._commit(next(turns))
                done += 1
            self._producer.poll(0)
            time.sleep(_TICK_SECONDS)

    def _commit(self, each: Commits) -> None:
        group = self._expected.groups[each.name]
        offset = self._committed(each) + 1
        now = time.time()
        _produce(self._producer, self._topic, each.record(offset, int(now * 1000)), on_delivery=self._acknowledged(now))
        group.offsets[each.place] = offset
        group.commits += 1
        self._expected.records += 1
        self.sent[each.name, each.place[1]].append(now)

    def _acknowledged(self, sent: float) -> Any:  # noqa: ANN401 - the client's callback
        def taken(error: KafkaError | None, _message: Message) -> None:
            if error is None:
                self.ack_seconds.append(time.time() - sent)

        return taken
