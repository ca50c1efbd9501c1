"""The scan of the log: what it counts, how far it says it got, and one scan for all who ask."""

import random
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from coordinator_model.gates.verdict import LogScan
from lab import builders
from lab.builders import RecordBytes
from lab.coordinator_events import consumer_group_deleted, consumer_join
from streaming.kafka.log_scan import LogScanner, scan_with

TOPIC = "__consumer_offsets"
HARMLESS = (
    builders.offset_commit("g", "t", 0, 5, version=3),
    builders.new_group_metadata("g"),
    (builders.new_group_metadata("g")[0], None),
    builders.offset_commit_tombstone("g", "t", 0),
)
"""What a broker before 3.4.1 reads: commits up to version 3, classic groups, tombstones of both."""


@dataclass
class FakeMessage:
    """One record, or the end of a partition."""

    of: int
    at: int
    record: RecordBytes | None = None

    def partition(self) -> int:
        return self.of

    def offset(self) -> int:
        return self.at

    def key(self) -> bytes | None:
        return None if self.record is None else self.record[0]

    def value(self) -> bytes | None:
        return None if self.record is None else self.record[1]

    def error(self) -> KafkaError | None:
        return KafkaError(KafkaError._PARTITION_EOF) if self.record is None else None


@dataclass
class FakeConsumer:
    """A log that the cleaner has been at: offsets with gaps, the end of each partition beyond its last record."""

    partitions: dict[int, list[tuple[int, RecordBytes]]]
    ends: dict[int, int]
    pieces: int = 3
    fails_after: int | None = None
    queue: list[FakeMessage] = field(default_factory=list)

    def list_topics(self, topic: str, timeout: float) -> Any:
        described = SimpleNamespace(error=None, partitions=self.partitions)
        return SimpleNamespace(topics={topic: described})

    def get_watermark_offsets(self, place: Any, timeout: float) -> tuple[int, int]:
        log = self.partitions[place.partition]
        return (log[0][0] if log else self.ends[place.partition], self.ends[place.partition])

    def assign(self, places: list[Any]) -> None:
        for place in places:
            self.queue += [FakeMessage(place.partition, at, record) for at, record in self.partitions[place.partition]]
            self.queue.append(FakeMessage(place.partition, self.ends[place.partition]))

    def consume(self, most: int, timeout: float) -> list[FakeMessage]:
        if self.fails_after is not None:
            if self.fails_after == 0:
                raise KafkaException(KafkaError(KafkaError._ALL_BROKERS_DOWN))
            self.fails_after -= 1
        found, self.queue = self.queue[: self.pieces], self.queue[self.pieces :]
        return found


def log(records: list[RecordBytes], chance: random.Random) -> FakeConsumer:
    """The records on three partitions, with gaps."""
    partitions: dict[int, list[tuple[int, RecordBytes]]] = {number: [] for number in range(3)}
    for number, record in enumerate(records):
        partitions[chance.randrange(3)].append((10 + 3 * number, record))
    ends = {number: (of[-1][0] + chance.randint(1, 3) if of else 0) for number, of in partitions.items()}
    return FakeConsumer(partitions, ends, pieces=chance.randint(1, 9))


def last(consumer: FakeConsumer, limit_seconds: float = 60.0) -> LogScan:
    """How the scan ended."""
    *_, found = scan_with(consumer, TOPIC, threading.Event(), limit_seconds)
    return found


@pytest.mark.parametrize("seed", range(24))
def test_records_and_tombstones_of_new_protocols_are_counted_live_or_not(seed: int) -> None:
    """A group that joined and was deleted: all of it is still in the log."""
    chance = random.Random(seed)
    epochs = range(2, chance.randint(3, 6))
    joined = [list(consumer_join("g", "n", epoch=epoch, targets={"n": {"t": [0]}})) for epoch in epochs]
    deleted = consumer_group_deleted("g", ["n"])
    records = [*HARMLESS, *(record for each in joined for record in each), *deleted, *HARMLESS]
    found = last(log(records, chance))

    assert (True, False) == (found.complete, found.clean)
    assert sum(map(len, joined)) == sum(found.records.values())
    assert len(deleted) == sum(found.tombstones.values())
    assert {} == found.value_versions


@pytest.mark.parametrize("seed", range(24))
def test_log_of_classic_groups_is_clean(seed: int) -> None:
    """However much was committed and deleted."""
    chance = random.Random(seed)
    found = last(log(chance.choices(HARMLESS, k=chance.randint(0, 60)), chance))

    assert (True, True, 1.0) == (found.complete, found.clean, found.share)


def test_commits_in_version_4_are_counted() -> None:
    """A broker before 3.4.1 cannot read the value, superseded or not."""
    found = last(log([builders.offset_commit("g", "t", 0, 5)] * 3, random.Random(1)))

    assert {4: 3} == found.value_versions


def test_scan_that_is_cut_short_says_how_far_it_got() -> None:
    """By its time limit, or by brokers that go: nothing found is not clean, and a broker that goes is no crash."""
    records = list(HARMLESS) * 10
    of_time = last(log(records, random.Random(1)), limit_seconds=0.0)
    consumer = log(records, random.Random(1))
    consumer.pieces, consumer.fails_after = 4, 3
    of_brokers = last(consumer)

    assert (False, 0.0) == (of_time.complete, of_time.share)
    assert not of_brokers.complete
    assert 0.0 < of_brokers.share < 1.0


def test_one_scan_serves_all_who_ask() -> None:
    """While it is under way its share is the answer; finished, it is good for a while; then it is made again."""
    go, begun = threading.Event(), []

    def scan() -> Iterator[LogScan]:
        begun.append(1)
        yield LogScan(share=0.4, under_way=True)
        go.wait(10)
        yield LogScan(tombstones={3: 1})

    scanner = LogScanner(scan, answer_seconds=0.05, remembered_seconds=0.2)
    first, second = scanner(), scanner()
    go.set()
    time.sleep(0.05)
    third = scanner()
    time.sleep(0.25)
    scanner()

    assert ([True, True], 0.4) == ([first.under_way, second.under_way], first.share)
    assert ({3: 1}, True) == (third.tombstones, third.complete)
    assert 2 == len(begun)


def test_scan_that_throws_is_no_scan() -> None:
    """The answer is that the log was not read; the next one tries again."""

    def scan() -> Iterator[LogScan]:
        yield LogScan(share=0.5, under_way=True)
        raise OSError("no certificate")

    found = LogScanner(scan, answer_seconds=5.0)()

    assert (False, False, True) == (found.complete, found.under_way, found.clean)
