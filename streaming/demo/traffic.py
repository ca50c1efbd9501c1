"""The demo's traffic beside Kafka's own members: a producer, an uneven consumer, and a job that only commits.

Each runs on a thread of its own until the event it was given is set, and keeps quiet about a cluster that goes away.
"""

import math
import random
import threading
import time
from collections.abc import Callable, Mapping
from typing import Final

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

RECORDS_PER_SECOND: Final = 70
WAVE_SECONDS: Final = 60.0
SLOW_SECONDS: Final = 40.0
QUICK_SECONDS: Final = 15.0

_TICK_SECONDS: Final = 0.1
_COMMIT_SECONDS: Final = 3.0
# librdkafka writes to standard error itself; only what is critical shall reach the terminal.
_QUIET: Final = {"log_level": 2}


def start(work: Callable[[], None], name: str, stopping: threading.Event) -> threading.Thread:
    """Run one of the functions below on a thread, restarted after an error of the cluster until it shall stop."""

    def run() -> None:
        while not stopping.is_set():
            try:
                work()
            except KafkaException:
                stopping.wait(1.0)

    thread = threading.Thread(target=run, name=name, daemon=True)
    thread.start()
    return thread


def produce(bootstrap_servers: str, shares: Mapping[str, float], stopping: threading.Event) -> None:
    """Write about `RECORDS_PER_SECOND` records a second, more and less in waves.

    Args:
        bootstrap_servers: the cluster.
        shares: topic → its share of the records; they add up to 1.
        stopping: ends it.
    """
    producer = Producer({"bootstrap.servers": bootstrap_servers, "linger.ms": 50, **_QUIET})
    # Keys need no secrecy; the same demo twice is easier to talk about.
    chance = random.Random(848)  # noqa: S311 - no secret
    due = dict.fromkeys(shares, 0.0)
    started = time.monotonic()
    while not stopping.wait(_TICK_SECONDS):
        wave = 1 + 0.6 * math.sin(2 * math.pi * (time.monotonic() - started) / WAVE_SECONDS)
        for topic, share in shares.items():
            due[topic] += RECORDS_PER_SECOND * wave * share * _TICK_SECONDS
            for _ in range(int(due[topic])):
                producer.produce(topic, key=f"customer-{chance.randrange(500)}", value="x" * 80)
            due[topic] %= 1
        producer.poll(0)
    producer.flush(2)


def consume_unevenly(bootstrap_servers: str, group: str, topic: str, stopping: threading.Event) -> None:
    """Read a topic as a member of the new protocol, for a while slower than it grows, then as quickly as it can."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap_servers,
            "group.id": group,
            "client.id": f"{group}-1",
            "group.protocol": "consumer",
            "auto.offset.reset": "earliest",
            "auto.commit.interval.ms": 1000,
            **_QUIET,
        }
    )
    try:
        consumer.subscribe([topic])
        started = time.monotonic()
        while not stopping.is_set():
            is_slow = (time.monotonic() - started) % (SLOW_SECONDS + QUICK_SECONDS) < SLOW_SECONDS
            consumer.consume(1 if is_slow else 100, timeout=_TICK_SECONDS)
            if is_slow:
                stopping.wait(_TICK_SECONDS)
    finally:
        consumer.close()


def commit_only(
    bootstrap_servers: str, group: str, topic: str, rewind: threading.Event, stopping: threading.Event
) -> None:
    """Commit the end of each partition every few seconds without joining, as tools that divide work themselves.

    Args:
        bootstrap_servers: the cluster.
        group: whose offsets they are.
        topic: the topic.
        rewind: when set, the next commit starts over with offset 0; cleared then.
        stopping: ends it.
    """
    consumer = Consumer(
        {"bootstrap.servers": bootstrap_servers, "group.id": group, "enable.auto.commit": False, **_QUIET}
    )
    try:
        partitions = list(consumer.list_topics(topic, timeout=10).topics[topic].partitions)
        while not stopping.wait(_COMMIT_SECONDS):
            offsets = [_end(consumer, TopicPartition(topic, number)) for number in partitions]
            if rewind.is_set():
                offsets = [TopicPartition(topic, number, 0) for number in partitions]
                rewind.clear()
            consumer.commit(offsets=offsets, asynchronous=False)
    finally:
        consumer.close()


def _end(consumer: Consumer, partition: TopicPartition) -> TopicPartition:
    """The partition with its log end offset.

    Raises:
        KafkaException: the cluster does not say.
    """
    _, end = consumer.get_watermark_offsets(partition, timeout=5)
    return TopicPartition(partition.topic, partition.partition, end)
