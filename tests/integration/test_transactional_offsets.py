"""Offsets committed in transactions, by a real broker's word: what counts, what never does, how old an open one is."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import pytest
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from kafka import TopicPartition as KafkaTopicPartition
from kafka.admin import KafkaAdminClient

from coordinator_model.replica import Replica
from coordinator_model.state.findings import Position
from streaming.config.kafka_sections import KafkaSection
from streaming.demo.embedded_broker import EmbeddedBroker
from streaming.demo.verifiable_consumer import create_topics
from streaming.end_offsets.client import KafkaOffsetsClient
from streaming.end_offsets.first_records import RecordLooks
from streaming.end_offsets.open_transactions import STANDS_MS
from streaming.end_offsets.sampler import EndOffsetSampler
from streaming.end_offsets.store import EndOffsets, Wanted
from streaming.kafka.client_settings import python_settings
from streaming.recording.recorder import LogRecorder
from tests.left_out import needs_kafka_jars

pytestmark = [
    pytest.mark.broker,
    # kafka-python reads its message schemas by a function that Python 3.11 calls deprecated (and 3.13 no longer).
    pytest.mark.filterwarnings("ignore:(read|open)_text is deprecated:DeprecationWarning"),
    needs_kafka_jars,
]

GROUP: Final = "tx"
_SECONDS: Final = 20


@dataclass
class Rig:
    """A broker, and a group of it that only commits."""

    servers: str
    admin: AdminClient

    def begun(self, name: str, partition: int, offset: int) -> Producer:
        """A transaction that has committed an offset of the group and is open."""
        producer = Producer({"bootstrap.servers": self.servers, "transactional.id": name, "log_level": 0})
        producer.init_transactions(_SECONDS)
        producer.begin_transaction()
        owner = Consumer({"bootstrap.servers": self.servers, "group.id": GROUP})
        place = TopicPartition("orders", partition, offset)
        producer.send_offsets_to_transaction([place], owner.consumer_group_metadata(), _SECONDS)
        owner.close()
        return producer

    def settled(self) -> None:
        """Wait for the markers of ended transactions, which are written after their producers hear of the end."""
        deadline, open_ones = time.monotonic() + _SECONDS, {0: 1}
        while open_ones and time.monotonic() < deadline:
            recorder = LogRecorder(KafkaSection(bootstrap_servers=self.servers), [0])
            open_ones = recorder.open_transactions
            recorder.close()

    def commits(self, partition: int, offset: int) -> None:
        """Commit an offset outside of all transactions."""
        wanted = ConsumerGroupTopicPartitions(GROUP, [TopicPartition("orders", partition, offset)])
        (done,) = self.admin.alter_consumer_group_offsets([wanted]).values()
        done.result(_SECONDS)

    def deletes(self, partition: int) -> None:
        """Delete an offset, as kafka-consumer-groups --delete-offsets does."""
        admin = KafkaAdminClient(bootstrap_servers=[self.servers])
        try:
            admin.delete_group_offsets(GROUP, [KafkaTopicPartition("orders", partition)])
        finally:
            admin.close()

    def kafkas(self) -> dict[int, int]:
        """Partition → committed offset, as the broker answers."""
        asked = ConsumerGroupTopicPartitions(GROUP, [TopicPartition("orders", number) for number in (0, 1)])
        (answer,) = self.admin.list_consumer_group_offsets([asked]).values()
        return {each.partition: each.offset for each in answer.result(_SECONDS).topic_partitions if each.offset >= 0}

    def ours(self) -> dict[int, int]:
        """Partition → committed offset, as the two readers and the replica have it."""
        recorder, replica = LogRecorder(KafkaSection(bootstrap_servers=self.servers), [0]), Replica()
        try:
            for record in recorder.records():
                place = Position(record.partition, record.offset, record.timestamp_ms)
                replica.replay(place, record.key, record.value)
        finally:
            recorder.close()
        return {partition: committed.offset for _, partition, committed in replica.offsets(GROUP)}


@pytest.fixture(scope="module")
def rig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    directory = tmp_path_factory.mktemp("broker")
    with EmbeddedBroker(directory, offsets_partitions=1, initial_rebalance_delay_ms=0) as broker:
        create_topics(broker.bootstrap_servers, {"orders": 2})
        made = Rig(broker.bootstrap_servers, AdminClient({"bootstrap.servers": broker.bootstrap_servers}))
        made.commits(0, 1)
        made.commits(1, 1)
        yield made


def test_committed_transaction_counts(rig: Rig) -> None:
    """From its end on."""
    rig.begun("committed", 0, 10).commit_transaction(_SECONDS)
    rig.settled()

    assert {0: 10, 1: 1} == rig.kafkas() == rig.ours()


def test_aborted_transaction_never_counts(rig: Rig) -> None:
    """Its records are in the log like any other."""
    before = rig.kafkas()
    rig.begun("aborted", 0, 999).abort_transaction(_SECONDS)
    rig.settled()

    assert before == rig.kafkas() == rig.ours()


def test_open_transaction_does_not_count_yet(rig: Rig) -> None:
    """Nor does it hide what was before it."""
    before = rig.kafkas()
    transaction = rig.begun("open", 0, 20)
    try:
        assert before == rig.kafkas() == rig.ours()
    finally:
        transaction.commit_transaction(_SECONDS)
        rig.settled()
    assert {**before, 0: 20} == rig.kafkas() == rig.ours()


def test_commit_within_an_open_transaction_outlives_it(rig: Rig) -> None:
    """The one that stands later in the log counts, whichever was ended later."""
    transaction = rig.begun("overtaken", 1, 40)
    rig.commits(1, 45)
    transaction.commit_transaction(_SECONDS)
    rig.settled()

    assert 45 == rig.kafkas()[1]
    assert rig.kafkas() == rig.ours()


def test_tombstone_within_an_open_transaction_ends_it(rig: Rig) -> None:
    """What was deleted while the transaction was open does not come back with its end."""
    rig.commits(1, 50)
    transaction = rig.begun("deleted", 1, 60)
    rig.deletes(1)
    transaction.commit_transaction(_SECONDS)
    rig.settled()

    assert 1 not in rig.kafkas()
    assert rig.kafkas() == rig.ours()


def test_what_transactions_leave_is_told_from_records(rig: Rig) -> None:
    """Markers and what was aborted hold no record; one record among them does, however old it says it is."""
    old_ms = 1_000
    create_topics(rig.servers, {"marked": 6})
    producer = Producer({"bootstrap.servers": rig.servers, "transactional.id": "marks", "log_level": 0})
    producer.init_transactions(_SECONDS)

    def transaction(partition: int, records: int, *, commit: bool = True) -> None:
        producer.begin_transaction()
        for _ in range(records):
            producer.produce("marked", b"x", partition=partition)
        producer.flush(_SECONDS)
        (producer.commit_transaction if commit else producer.abort_transaction)(_SECONDS)

    for partition in (0, 2, 4):
        transaction(partition, 10)
    for partition in (1, 2):
        transaction(partition, 5, commit=False)
    plain = Producer({"bootstrap.servers": rig.servers, "log_level": 0})
    for partition in (2, 3):
        plain.produce("marked", b"x", partition=partition, timestamp=old_ms)
    plain.flush(_SECONDS)
    producer.begin_transaction()
    producer.produce("marked", b"x", partition=4)
    producer.flush(_SECONDS)
    looks = RecordLooks(python_settings(KafkaSection(bootstrap_servers=rig.servers), "looks"))
    try:
        found = looked(looks, {("marked", 0): 10, ("marked", 1): 0, ("marked", 2): 10, ("marked", 3): 0}, answers=4)
        again = looked(looks, {("marked", 0): 9, ("marked", 4): 10, ("marked", 5): 7, ("nowhere", 0): 0}, answers=2)
    finally:
        looks.close()
        producer.abort_transaction(_SECONDS)

    assert {
        ("marked", 0): (10, 11, False),
        ("marked", 1): (0, 6, False),
        ("marked", 2): (10, 17, True),
        ("marked", 3): (0, 0, True),
    } == found
    # Of the open transaction nothing is said, nor of what is not there.
    assert {("marked", 0): (9, 9, True), ("marked", 4): (10, 11, False)} == again


def looked(looks: RecordLooks, places: dict[tuple[str, int], int], *, answers: int) -> dict[tuple[str, int], Any]:
    """What comes of looking until so many partitions have answered."""
    # The embedded broker has one id.
    deadline, leaders, found = time.monotonic() + _SECONDS, dict.fromkeys(places, 1), dict[tuple[str, int], Any]()
    while len(found) < answers and time.monotonic() < deadline:
        found |= looks.first_at(places, leaders).gaps
    return found


def test_age_of_an_open_transaction_is_that_of_its_first_record(rig: Rig) -> None:
    """Also where the sampling began when it had long been open."""
    begun_ms = int(1000 * time.time())
    transaction = rig.begun("old", 0, 70)
    ends, now_ms = EndOffsets(), begun_ms + 60_000
    kafka = KafkaSection(bootstrap_servers=rig.servers)
    client = KafkaOffsetsClient(python_settings(kafka, "age"))
    sampler = EndOffsetSampler(ends, lambda: client, Wanted, clock_ms=lambda: now_ms)
    try:
        assert sampler.sample()
        assert begun_ms + 60_000 == open_since(ends)
        now_ms += STANDS_MS
        assert sampler.sample()
        since_ms = open_since(ends)
    finally:
        transaction.commit_transaction(_SECONDS)
        rig.settled()
    try:
        assert since_ms is not None
        assert begun_ms <= since_ms <= begun_ms + 10_000
        assert sampler.sample()
        assert open_since(ends) is None
    finally:
        client.close()


def open_since(ends: EndOffsets) -> int | None:
    known = ends.partition("__consumer_offsets", 0)
    assert known is not None
    return known.open_since_ms
