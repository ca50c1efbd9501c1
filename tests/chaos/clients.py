"""Clients that go on whatever happens to brokers: members of groups, and groups that only commit.

All are librdkafka's, on threads. What a client cannot do now it does again a second later, and a member that brokers
refuse for good is made again, as a service manager would.
"""

import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from random import Random
from typing import Final, NamedTuple

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from coordinator_model.state.shards import offsets_partition
from streaming.demo.verifiable_consumer import Protocol
from tests.in_process_members import librdkafka_settings

PARTITIONS: Final = 6
"""Of each topic that is read."""
AGAIN_SECONDS: Final = 1.0
QUIET: Final = {
    "log_level": 0,
    "coordinator.query.interval.ms": 2_000,
    "socket.timeout.ms": 6_000,
    "reconnect.backoff.max.ms": 1_000,
}
NO_ANSWER_SECONDS: Final = 10.0
REMEMBERED: Final = 300


def name_in(partition: int, partitions: int, stem: str) -> str:
    """A name that hashes to a partition of the offsets topic."""
    return next(name for name in (f"{stem}-{n}" for n in count()) if partition == offsets_partition(name, partitions))


class Load:
    """Whether there is any: what is written and committed stops when it is to be quiet."""

    def __init__(self) -> None:
        self.is_on = threading.Event()
        self.is_on.set()
        self.ending = threading.Event()


class Working:
    """A thread that does something again and again while there is load.

    Attributes:
        name: of the thread.
        idle: set while there is nothing that it does.
    """

    def __init__(self, load: Load, name: str, every_seconds: float) -> None:
        self.name, self._load, self._every = name, load, every_seconds
        self.idle = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """Wait until it has ended, which `Load.ending` makes it do."""
        self._thread.join(30)

    def work(self) -> None:
        """Once more; raises KafkaException where it cannot be done now."""
        raise NotImplementedError

    def _run(self) -> None:
        while not self._load.ending.is_set():
            if not self._load.is_on.is_set():
                self.idle.set()
                time.sleep(0.1)
                continue
            self.idle.clear()
            try:
                self.work()
                self._load.ending.wait(self._every)
            except KafkaException:
                self._load.ending.wait(AGAIN_SECONDS)


class Member:
    """A member of a group: it reads a topic and commits what it read twice a second."""

    def __init__(
        self,
        servers: str,
        group: str,
        topic: str,
        *,
        client_id: str,
        protocol: Protocol,
        assignor: str | None = None,
        static: bool = False,
    ) -> None:
        instance_id = client_id if static else None
        self._settings = librdkafka_settings(
            servers, group, client_id, protocol=protocol, assignor=assignor, instance_id=instance_id
        )
        self._settings |= {"topic.metadata.refresh.interval.ms": 5_000, **QUIET}
        if protocol == "classic":
            self._settings |= {"session.timeout.ms": 8_000, "heartbeat.interval.ms": 1_000}
        self._topic = topic
        self._leaving, self._again = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name=client_id, daemon=True)
        self._thread.start()

    def restart(self) -> None:
        """Be closed and start again; returns at once."""
        self._again.set()

    def close(self) -> None:
        """Be closed for good; a static member stays a member."""
        self._leaving.set()
        self._thread.join(30)

    def _run(self) -> None:
        while not self._leaving.is_set():
            consumer = Consumer(self._settings)
            consumer.subscribe([self._topic])
            self._again.clear()
            with suppress(KafkaException, RuntimeError):
                self._read(consumer)
            with suppress(KafkaException, RuntimeError):
                consumer.close()
            self._leaving.wait(AGAIN_SECONDS)

    def _read(self, consumer: Consumer) -> None:
        while not self._leaving.is_set() and not self._again.is_set():
            for message in consumer.consume(500, 0.3):
                error = message.error()
                if error is not None and error.fatal():
                    return


class Writer(Working):
    """Records for the members to read."""

    def __init__(self, load: Load, servers: str, topics: list[str], a_second: int) -> None:
        super().__init__(load, "writer", 0.5)
        self._topics, self._count = topics, a_second // 2
        self._producer = Producer({"bootstrap.servers": servers, "message.timeout.ms": 5_000, **QUIET})
        self._number = 0

    def work(self) -> None:
        for _ in range(self._count):
            self._number += 1
            topic = self._topics[self._number % len(self._topics)]
            with suppress(BufferError):
                self._producer.produce(topic, b"x", partition=self._number // len(self._topics) % PARTITIONS)
        self._producer.flush(1)


class Commit(NamedTuple):
    """One that brokers acknowledged: its number, and when (monotonic) it was sent and acknowledged."""

    number: int
    sent: float
    acknowledged: float


class Committer(Working):
    """A group that only commits, twice a second; each commit is numbered in its metadata."""

    def __init__(self, load: Load, servers: str, group: str, topic: str, chance: Random) -> None:
        super().__init__(load, f"committer-{group}", 0.5)
        self.group, self._topic, self._chance = group, topic, chance
        self._number = count(1)
        self._settings = {"bootstrap.servers": servers, "group.id": group, **QUIET}
        self._consumer, self._answers = self._made()
        self._commits = deque[Commit](maxlen=REMEMBERED)

    def first_sent_after(self, moment: float) -> Commit | None:
        """The first commit that was sent after a moment and acknowledged; None so far."""
        return next((commit for commit in tuple(self._commits) if commit.sent >= moment), None)

    def work(self) -> None:
        number, sent = next(self._number), time.monotonic()
        # Offset 0 is always there, so that a lag can be known; others go back now and then.
        offset = self._chance.randrange(3)
        place = TopicPartition(self._topic, self._chance.randrange(PARTITIONS), offset, metadata=str(number))
        self._answers.clear()
        self._consumer.commit(offsets=[place], asynchronous=True)
        while not self._answers and time.monotonic() - sent < NO_ANSWER_SECONDS:
            self._consumer.poll(0.05)
        if not self._answers:
            # It waits for a coordinator that another client would find.
            threading.Thread(target=self._consumer.close, daemon=True).start()
            self._consumer, self._answers = self._made()
        elif self._answers[0] is None:
            self._commits.append(Commit(number, sent, time.monotonic()))

    def close(self) -> None:
        super().close()
        with suppress(KafkaException, RuntimeError):
            self._consumer.close()

    def _made(self) -> tuple[Consumer, list[KafkaError | None]]:
        """A client, and what brokers answer to it: None where they took a commit."""
        answers: list[KafkaError | None] = []

        def done(error: KafkaError | None, places: list[TopicPartition]) -> None:
            errors = [of.error for of in places if of.error is not None]
            answers.append(error if error is not None else errors[0] if errors else None)

        return Consumer({**self._settings, "on_commit": done}), answers


class TransactionalCommitter(Working):
    """A group that only commits, in transactions of which every fifth is aborted."""

    def __init__(self, load: Load, servers: str, group: str, topic: str) -> None:
        super().__init__(load, f"transactional-{group}", 1.0)
        self.group, self._topic, self._servers = group, topic, servers
        self._consumer = Consumer({"bootstrap.servers": servers, "group.id": group, **QUIET})
        self._producer: Producer | None = None
        self._number = 0

    def work(self) -> None:
        if self._producer is None:
            self._producer = self._made()
        self._number += 1
        place = TopicPartition(self._topic, self._number % PARTITIONS, self._number % 3)
        try:
            self._producer.begin_transaction()
            self._producer.send_offsets_to_transaction([place], self._consumer.consumer_group_metadata(), 10)
            if self._number % 5:
                self._producer.commit_transaction(10)
            else:
                self._producer.abort_transaction(10)
        except KafkaException:
            # Another producer of the same id ends what this one has begun.
            self._producer = None
            raise

    def _made(self) -> Producer:
        settings = {
            "bootstrap.servers": self._servers,
            "transactional.id": self.group,
            "transaction.timeout.ms": 10_000,
            **QUIET,
        }
        producer = Producer(settings)
        producer.init_transactions(10)
        return producer


def in_background(work: Callable[[], None], name: str) -> threading.Thread:
    """Do something on a thread of its own."""
    thread = threading.Thread(target=work, name=name, daemon=True)
    thread.start()
    return thread
