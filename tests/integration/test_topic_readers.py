"""Every reader reads every codec that brokers write the log in, and what the cleaner leaves of transactions."""

import struct
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import AlterConfigOpType, ConfigEntry, ConfigResource
from confluent_kafka.admin._resource import ResourceType

from coordinator_model.replica import Replica
from coordinator_model.state.findings import Position
from coordinator_model.views.group_view import group_view
from lab.monitor_process import until
from streaming.config.kafka_sections import KafkaSection
from streaming.demo.embedded_broker import EmbeddedBroker
from streaming.demo.verifiable_consumer import create_topics
from streaming.end_offsets.open_transactions import written_ms
from streaming.history.log_archive import RecordKeeper
from streaming.history.queries import History
from streaming.history.store import HistoryStore
from streaming.kafka.client_settings import confluent_settings, python_settings
from streaming.kafka.lazy_admin import LazyAdmin
from streaming.kafka.log_scan import scanned
from streaming.kafka.topic_reader import TopicReader
from streaming.recording.file_format import RecordedRecord
from streaming.recording.recorder import LogRecorder
from tests.faults.compaction import COMPACTED, EAGER_CLEANER
from tests.left_out import needs_kafka_jars

pytestmark = [
    pytest.mark.broker,
    # kafka-python reads its message schemas by a function that Python 3.11 calls deprecated (and 3.13 no longer).
    pytest.mark.filterwarnings("ignore:(read|open)_text is deprecated:DeprecationWarning"),
    needs_kafka_jars,
]

OFFSETS_TOPIC: Final = "__consumer_offsets"
CODEC: Final = "offsets.topic.compression.codec"
CODECS: Final = {0: "none", 1: "gzip", 2: "snappy", 3: "lz4", 4: "zstd"}
"""As brokers number them, in their configuration and in each batch."""
TRANSACTIONAL: Final = "transactional"
_SECONDS: Final = 30
_HEADER: Final = struct.Struct(">qiibihiqqqhii")
"""Of a batch, in format 2."""
_IS_CONTROL: Final = 0x20


class Batch(NamedTuple):
    """What the header of a batch says."""

    offset: int
    codec: int
    is_control: bool
    records: int


@dataclass
class Log:
    """The coordinator's log of one partition."""

    servers: str
    files: Path

    @property
    def kafka(self) -> KafkaSection:
        return KafkaSection(bootstrap_servers=self.servers)

    @property
    def client(self) -> dict[str, str]:
        return confluent_settings(self.kafka, "test")

    def batches(self) -> list[Batch]:
        """Those on the broker's disk, in the order of their offsets."""
        found = []
        for file in sorted(self.files.glob("*.log")):
            held, at = file.read_bytes(), 0
            while at + _HEADER.size <= len(held):
                offset, length, _, _, _, attributes, *_, records = _HEADER.unpack_from(held, at)
                found.append(Batch(offset, attributes & 7, bool(attributes & _IS_CONTROL), records))
                at += 12 + length
        return found

    def empty_control_batches(self) -> list[Batch]:
        """What the cleaner leaves of a transaction whose producer may come again."""
        try:
            return [of for of in self.batches() if of.is_control and not of.records]
        except (OSError, struct.error):
            return []  # the cleaner is at work

    def commit(self, group: str, *offsets: int) -> None:
        """Commit offsets, each of a partition of its own."""
        with closing(Consumer({**self.client, "group.id": group})) as consumer:
            places = [TopicPartition("orders", at, offset) for at, offset in enumerate(offsets)]
            consumer.commit(offsets=places, asynchronous=False)

    def abort_by_restart(self, group: str, offset: int) -> None:
        """Commit an offset in a transaction whose producer dies; when it is there again, its coordinator aborts it."""
        producers = [Producer({**self.client, "transactional.id": "payments", "log_level": 0}) for _ in range(2)]
        producers[0].init_transactions(_SECONDS)
        producers[0].begin_transaction()
        with closing(Consumer({**self.client, "group.id": group})) as owner:
            places = [TopicPartition("orders", 0, offset)]
            producers[0].send_offsets_to_transaction(places, owner.consumer_group_metadata(), _SECONDS)
        producers[1].init_transactions(_SECONDS)

    def clean_away_transaction(self) -> None:
        """A transaction is aborted, and the cleaner does its work: of its marker the header is left, and no record."""
        admin = AdminClient({**self.client})
        entries = [
            ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET) for name, value in COMPACTED.items()
        ]
        resource = ConfigResource(ResourceType.TOPIC, OFFSETS_TOPIC, incremental_configs=entries)
        for altered in admin.incremental_alter_configs([resource]).values():
            altered.result(_SECONDS)
        self.abort_by_restart(TRANSACTIONAL, 99)
        written = 0

        def is_left() -> bool:
            nonlocal written
            written += 1
            self.commit(TRANSACTIONAL, written)
            time.sleep(0.6)
            return bool(self.empty_control_batches())

        until(is_left, 120, "the cleaner leaves no control batch without records")

    def recorded(self) -> list[RecordedRecord]:
        """What a recording holds."""
        with closing(LogRecorder(self.kafka, [0])) as recorder:
            return list(recorder.records())


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Log]:
    """A log of which each stretch was written in another codec; then a transaction came and went."""
    directory = tmp_path_factory.mktemp("codecs")
    broker = EmbeddedBroker(directory, offsets_partitions=1, properties=EAGER_CLEANER, heap="384m")
    log = Log(broker.bootstrap_servers, directory / "log" / f"{OFFSETS_TOPIC}-0")
    for codec, name in CODECS.items():
        broker._properties[CODEC] = str(codec)
        broker.start()
        try:
            if not codec:
                create_topics(log.servers, {"orders": 3})
            log.commit(name, 1, 2, 3)
            if name == "zstd":
                log.clean_away_transaction()
                yield log
        finally:
            broker.stop()


def offsets(records: list[RecordedRecord], group: str) -> list[dict[str, Any]]:
    """A group's offsets after a replay of records, without the times of its commits."""
    replica = Replica()
    for of in records:
        replica.replay(Position(of.partition, of.offset, of.timestamp_ms), of.key, of.value)
    replica.settle()
    found: list[dict[str, Any]] = group_view(replica.groups[group], replica.offsets(group), {})["offsets"]
    return [{name: value for name, value in of.items() if name != "commit_timestamp"} for of in found]


def test_recordings_are_the_same_in_each_codec(log: Log) -> None:
    """The broker wrote all five, and of each the offsets are those of what is not compressed."""
    records = log.recorded()

    assert {*CODECS} == {of.codec for of in log.batches()}
    plain = offsets(records, "none")
    assert [1, 2, 3] == [of["offset"] for of in plain]
    assert dict.fromkeys(CODECS.values(), plain) == {name: offsets(records, name) for name in CODECS.values()}


def test_history_keeps_what_a_recording_holds(log: Log, tmp_path: Path) -> None:
    """Of each group the same records, past what is left of the transaction."""
    keeper = RecordKeeper(log.kafka, HistoryStore(tmp_path))
    keeper.look()
    records, history = log.recorded(), History(tmp_path)

    assert (None, 0) == (keeper.state().failure, keeper.state().waiting)
    for group in CODECS.values():
        assert [of for of in records if group.encode() in of.key] == history.records(group)
    # Of commits that others took the place of, the cleaner may have taken more in between.
    assert history.records(TRANSACTIONAL)[-1] == records[-1]


def test_what_is_left_of_a_transaction_holds_up_no_reader(log: Log) -> None:
    """Each comes to the end of the log, with the commits that are behind it."""
    empty = log.empty_control_batches()[0]
    last = log.recorded()[-1]
    admin, place = LazyAdmin(python_settings(log.kafka, "test")), (OFFSETS_TOPIC, 0)
    with closing(TopicReader(log.client, {OFFSETS_TOPIC: None})) as reader:
        found = []
        while not reader.at_first_end:
            found += reader.poll()
    *_, scan = scanned(log.kafka, _SECONDS)
    with closing(admin):
        at_it = written_ms(admin, {place: empty.offset}, {place: 1})

    assert empty.offset < last.offset
    assert last.key == found[-1][1]
    assert 99 not in {of["offset"] for of in offsets(log.recorded(), TRANSACTIONAL)}
    assert (True, {}) == (scan.complete, scan.records)
    assert [place] == [*at_it]
