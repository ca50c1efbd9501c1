"""Ranges of a log on a real broker: exactly the records that are asked for, whatever stands between them."""

import json
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa
import pytest
from confluent_kafka import KafkaException, Producer
from kafka.admin import KafkaAdminClient
from kafka.structs import TopicPartition as KafkaTopicPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable

from streaming.base import machine_clock
from streaming.base.child_processes import answered_by_children
from streaming.config.kafka_sections import KafkaSection
from streaming.demo.embedded_broker import EmbeddedBroker
from streaming.demo.verifiable_consumer import create_topics
from streaming.kafka.client_settings import portable_section
from streaming.kafka.log_bounds import LogBounds
from streaming.kafka.range_reader import LogLostError, RangeReader, Ranges
from streaming.query import source
from streaming.query.log_continuity import Note
from streaming.query.row_codec import notes_of, unpacked, unpacked_table
from streaming.query.source import CoordinatorLogReader, Known
from tests.left_out import needs_kafka_jars

pytestmark = [
    pytest.mark.broker,
    needs_kafka_jars,
]

TOPIC: Final = "log"
KINDS: Final = "kinds"
COMMIT, MEMBERSHIP = b"\x00\x01", b"\x00\x02"
"""How keys of the two kinds of records begin."""
PARTITIONS: Final = 40
OPEN, MIXED, CUT = 0, 1, 2
PLAIN: Final = range(3, PARTITIONS)
_SECONDS: Final = 30


@dataclass
class Log:
    """The log, and what was written to it: partition → {offset: value}."""

    servers: str
    topic: str = TOPIC
    written: dict[int, dict[int, bytes]] = field(default_factory=dict)
    open_transactions: list[Producer] = field(default_factory=list)

    @property
    def client(self) -> dict[str, str | int]:
        return {"bootstrap.servers": self.servers, "client.id": "tested", "fetch.wait.max.ms": 20}

    def write(self, partition: int, *values: bytes, producer: Producer | None = None) -> None:
        """Write records, each with its value as its key."""
        held = self.written.setdefault(partition, {})

        def keep(error: object, message: object) -> None:
            assert error is None
            held[message.offset()] = message.value()  # type: ignore[attr-defined]  # a Message

        writer = producer or Producer({"bootstrap.servers": self.servers, "log_level": 0})
        for value in values:
            writer.produce(self.topic, value, value, partition=partition, on_delivery=keep)
        assert 0 == writer.flush(_SECONDS)

    def transaction(self, name: str, partition: int, *values: bytes) -> Producer:
        """An open transaction that has written records."""
        producer = Producer({"bootstrap.servers": self.servers, "transactional.id": name, "log_level": 0})
        producer.init_transactions(_SECONDS)
        producer.begin_transaction()
        self.write(partition, *values, producer=producer)
        return producer

    def ends(self) -> tuple[dict[int, int], dict[int, int]]:
        bounds = LogBounds(self.client, TOPIC, _SECONDS).ends()
        return bounds.stable, bounds.high


def read(reader: RangeReader, ranges: Ranges) -> dict[int, dict[int, bytes | None]]:
    """Partition → {offset: value}."""
    found: dict[int, dict[int, bytes | None]] = {}
    for columns in reader.read(ranges):
        for partition, offset, value in zip(columns.partitions, columns.offsets, columns.values, strict=True):
            assert offset not in found.setdefault(partition, {})
            found[partition][offset] = value
    return found


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Log]:
    with EmbeddedBroker(tmp_path_factory.mktemp("log") / "broker") as broker:
        create_topics(broker.bootstrap_servers, {TOPIC: PARTITIONS, KINDS: 1})
        log = Log(broker.bootstrap_servers)
        for partition in PLAIN:
            log.write(partition, *(b"%d-%d" % (partition, number) for number in range(partition)))
        log.write(MIXED, b"before")
        log.transaction("aborted", MIXED, b"never").abort_transaction()
        log.transaction("committed", MIXED, b"counts").commit_transaction()
        log.write(OPEN, b"stable")
        log.open_transactions.append(log.transaction("open", OPEN, b"held"))
        log.write(OPEN, b"after")
        log.write(CUT, *(b"%d" % number for number in range(9)))
        yield log


@pytest.fixture(scope="module")
def committed(log: Log) -> Iterator[RangeReader]:
    reader = RangeReader(log.client, TOPIC, committed=True, timeout_seconds=_SECONDS)
    yield reader
    reader.close()


@pytest.fixture(scope="module")
def uncommitted(log: Log) -> Iterator[RangeReader]:
    reader = RangeReader(log.client, TOPIC, committed=False, timeout_seconds=_SECONDS)
    yield reader
    reader.close()


def test_ends_tell_what_is_stable(log: Log) -> None:
    """The last stable offset stands before the open transaction; everywhere else it is the high watermark."""
    stable, high = log.ends()

    assert {OPEN: (1, 3)} == {p: (stable[p], high[p]) for p in stable if stable[p] != high[p]}
    # Two transactions, each with a record and a marker, and a record before.
    assert 5 == high[MIXED]


def test_what_is_written_while_the_ends_are_asked_for_is_no_open_transaction(log: Log) -> None:
    """Commits and membership up to one offset: else commits would be read after membership that follows them."""
    create_topics(log.servers, {"busy": 1})
    bounds, seen = LogBounds(log.client, "busy", _SECONDS), []
    producer = Producer({"bootstrap.servers": log.servers, "linger.ms": 0, "batch.num.messages": 5})
    for _ in range(20_000):
        producer.produce("busy", b"")
    while producer.flush(0):
        seen.append(bounds.ends())

    assert [] == [(of.stable, of.high) for of in seen if of.stable != of.high]
    assert len({of.high[0] for of in seen}) > 1


def test_all_partitions_are_read_whole(log: Log, committed: RangeReader) -> None:
    """Every record once; those of the aborted transaction, and of the open one, are not there."""
    stable, _ = log.ends()

    found = read(committed, {p: (0, end) for p, end in stable.items()})

    assert {p: log.written[p] for p in PLAIN} == {p: found[p] for p in PLAIN}
    assert {0: b"stable"} == found[OPEN]
    assert {0: b"before", 3: b"counts"} == found[MIXED]


def test_the_other_reader_sees_what_is_open(log: Log, uncommitted: RangeReader) -> None:
    """From the last stable offset on."""
    assert {OPEN: {1: b"held", 2: b"after"}} == read(uncommitted, {OPEN: (1, 3)})


@pytest.mark.parametrize("again", range(3))
def test_stretches_are_read_again_and_again(log: Log, committed: RangeReader, again: int) -> None:
    """A reader goes where it is sent, back as well as on, and takes nothing beyond the stretch."""
    ranges = {p: (again, p - 1) for p in PLAIN}

    assert {p: {at: log.written[p][at] for at in range(again, p - 1)} for p in PLAIN if again < p - 1} == read(
        committed, ranges
    )


def test_a_stretch_without_records_ends(committed: RangeReader) -> None:
    """Markers of transactions are all there is in it: nothing comes, and no one waits for it."""
    assert {} == read(committed, {MIXED: (4, 5)})
    assert {} == read(committed, {MIXED: (1, 3)})
    assert {} == read(committed, {})


def test_records_that_are_gone_are_an_error(log: Log, committed: RangeReader) -> None:
    """A log that was cut off before what is to be read is reported as such, with the partition."""
    admin = KafkaAdminClient(bootstrap_servers=log.servers)
    admin.delete_records({KafkaTopicPartition(TOPIC, CUT): 5})
    admin.close()

    with pytest.raises(LogLostError, match=f"partition {CUT}"):
        read(committed, {CUT: (2, 9)})

    assert [5, 6, 7, 8] == list(read(committed, {CUT: (5, 9)})[CUT])


def test_a_partition_whose_records_are_gone_is_left_out(log: Log, committed: RangeReader) -> None:
    """Where that is asked for: the others are read whole."""
    left_out: set[int] = set()
    other = PLAIN[5]

    columns = list(committed.read({CUT: (2, 9), other: (0, other)}, left_out))

    assert {CUT} == left_out
    assert list(log.written[other]) == [
        offset for of in columns for at, offset in zip(of.partitions, of.offsets, strict=True) if at == other
    ]


def test_a_log_that_ends_before_what_is_to_be_read_is_left_out(log: Log) -> None:
    """It was cut off after it was planned: what will not come is not waited for."""
    reader = RangeReader(log.client, TOPIC, committed=True, timeout_seconds=_SECONDS)
    left_out: set[int] = set()
    begun = time.monotonic()

    for _ in reader.read({PLAIN[0]: (0, 1_000), PLAIN[5]: (0, PLAIN[5])}, left_out):
        pass

    reader.close()
    assert {PLAIN[0]} == left_out
    assert time.monotonic() - begun < _SECONDS


def test_a_broker_that_does_not_answer_is_an_error_in_time(log: Log) -> None:
    """Waiting for records that do not come ends with an error after the time that was given."""
    reader = RangeReader(log.client, TOPIC, committed=True, timeout_seconds=0.5)

    with pytest.raises(KafkaException, match=r"no record for 0\.5 s"):
        read(reader, {PLAIN[0]: (0, 1_000)})

    reader.close()


def test_no_group_is_joined(log: Log, committed: RangeReader) -> None:
    """The name of a group that a consumer must have leaves no trace."""
    read(committed, {PLAIN[0]: (0, 1)})
    admin = KafkaAdminClient(bootstrap_servers=log.servers)
    try:
        assert [] == admin.list_groups()
    finally:
        admin.close()


def test_brokers_that_are_away_have_nothing_new(log: Log) -> None:
    """Asking them for the end of the log leaves the position as it is; who is back is asked again."""
    settings = {"client": {**log.client, "bootstrap.servers": "127.0.0.1:1"}, "topic": TOPIC, "known": {}}
    reader = CoordinatorLogReader(json.dumps({**settings, "committed_only": False}))
    start = {"commits": {"0": 1}, "membership": {"0": 2}}

    assert start == reader.latestOffset(start, ReadAllAvailable())


@pytest.fixture
def _closed_readers(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The readers that a worker process keeps are closed while the broker is there."""
    readers: dict[tuple[int, str, bool, float], RangeReader] = {}
    monkeypatch.setattr(source, "_readers", readers)
    yield
    for reader in readers.values():
        reader.close()


def reader_of(log: Log, topic: str, **settings: Any) -> CoordinatorLogReader:
    """The source's reader of a topic, as the monitor configures it."""
    of_log = {
        "client": log.client,
        "fetch": {},
        "kafka": portable_section(KafkaSection(bootstrap_servers=log.servers)),
        "topic": topic,
        "timeout_seconds": _SECONDS,
        "committed_only": False,
        "max_record_bytes": 2**26,
        "share_groups": False,
        "processes": 2,
        "keys": [7],
        "known": Known()._asdict(),
    }
    return CoordinatorLogReader(json.dumps(of_log | settings))


def offsets_in(packs: Iterable[pa.RecordBatch]) -> list[tuple[int, int]]:
    """(partition, offset) of each record."""
    return [
        (row.partition, row.offset) for row in unpacked(blob for pack in packs for blob in pack["rows"].to_pylist())
    ]


def whole_log(reader: CoordinatorLogReader) -> tuple[dict[str, Any], dict[str, Any]]:
    """The positions that a first micro-batch is between."""
    start = reader.initialOffset()
    return start, reader.latestOffset(start, ReadAllAvailable())


@pytest.mark.usefixtures("_closed_readers")
def test_a_small_batch_is_read_as_it_is_planned(log: Log) -> None:
    """What goes along with the plan is what its task would read; the next plan has nothing of it."""
    reader = reader_of(log, TOPIC)
    start, end = whole_log(reader)

    (task,) = reader.partitions(start, end)

    planned = reader.getCache(start, end)
    assert planned is not None
    assert offsets_in(reader.read(task)) == offsets_in(planned) != []
    assert [] == reader.partitions(end, end)
    assert reader.getCache(end, end) is None


@pytest.mark.usefixtures("_closed_readers")
def test_what_cannot_be_read_as_it_is_planned_is_left_to_the_task(log: Log) -> None:
    """That one is tried again, and its failure is the query's."""
    reader = reader_of(log, TOPIC)
    start, end = whole_log(reader)
    away = reader_of(Log("127.0.0.1:1", TOPIC), TOPIC, timeout_seconds=0.5)

    (task,) = away.partitions(start, end)

    assert away.getCache(start, end) is None
    with pytest.raises(KafkaException):
        list(away.read(task))


@pytest.mark.usefixtures("_closed_readers")
def test_what_is_read_again_is_said_with_its_records(log: Log) -> None:
    """They come from the log's beginning."""
    reader = reader_of(log, TOPIC)
    _, end = whole_log(reader)
    place, why = PLAIN[5], {"from": 3, "to": 9}
    again = {**end, "begins": {str(place): [0, 0]}, "again": {str(place): why}}
    (task,) = reader.partitions(end, again)

    table = unpacked_table(blob for pack in reader.read(task) for blob in pack["rows"].to_pylist())

    assert {place: Note((0, 0), again=why)} == notes_of(table)
    assert [place] * place == table["partition"].to_pylist()


@pytest.mark.usefixtures("_closed_readers")
def test_what_a_task_cannot_read_is_said_with_the_rest(log: Log) -> None:
    """The micro-batch goes on without the partition; from where on it is owed comes with the records."""
    reader = reader_of(log, TOPIC)
    _, end = whole_log(reader)
    start = {kind: {**end[kind], str(CUT): 2, str(PLAIN[5]): 0} for kind in ("commits", "membership")}
    (task,) = reader.partitions(start, end)

    blobs = [blob for pack in reader.read(task) for blob in pack["rows"].to_pylist()]

    table = unpacked_table(blobs)
    assert {CUT: Note((2, 2), unread=True)} == notes_of(table)
    assert {PLAIN[5]} == set(table["partition"].to_pylist())


@pytest.mark.usefixtures("_closed_readers")
def test_what_is_read_long_after_its_plan_is_said_with_the_records(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    """The machine slept between the two: records may have been cleaned away meanwhile."""
    reader = reader_of(log, TOPIC)
    start, end = whole_log(reader)
    (task,) = reader.partitions(start, end)
    before, seconds = reader.read(task), machine_clock.seconds
    at_once = notes_of(unpacked_table(blob for pack in before for blob in pack["rows"].to_pylist()))
    monkeypatch.setattr(machine_clock, "seconds", lambda: seconds() + 400)

    table = unpacked_table(blob for pack in reader.read(task) for blob in pack["rows"].to_pylist())

    assert {} == at_once
    assert {
        of.partition: Note((of.commits, of.membership), gap=(of.membership_end, of.membership_end))
        for of in task.value[1]
    } == notes_of(table)


@pytest.mark.usefixtures("_closed_readers")
def test_below_the_live_tail_the_task_reads(log: Log) -> None:
    """A first catch-up is no work for the process that plans."""
    reader = reader_of(log, TOPIC, known=Known(built_until={0: 1})._asdict())
    start, end = whole_log(reader)

    reader.partitions(start, end)

    assert reader.getCache(start, end) is None


@pytest.mark.usefixtures("_closed_readers")
def test_a_large_batch_is_read_by_several_processes(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each has a client of its own, and together they read every record once."""
    reader = reader_of(log, TOPIC)
    start, end = whole_log(reader)
    (task,) = reader.partitions(start, end)
    by_one = offsets_in(reader.read(task))
    monkeypatch.setattr(source, "RECORDS_A_PROCESS", 1)
    forked: list[Any] = []

    def answered(answer: Any, shares: list[Any]) -> Any:
        forked.extend(shares)
        return answered_by_children(answer, shares)

    monkeypatch.setattr(source, "answered_by_children", answered)

    assert by_one == sorted(offsets_in(reader.read(task)))
    assert 1 == len(forked)


@pytest.mark.usefixtures("_closed_readers")
def test_each_kind_is_read_once_around_an_open_transaction(log: Log) -> None:
    """Membership is not held back by it and does not come again; commits wait for its end, and then all are there."""
    kinds = Log(log.servers, KINDS)
    kinds.write(0, COMMIT + b"a", MEMBERSHIP + b"b")
    held = kinds.transaction("kinds", 0, COMMIT + b"c")
    kinds.write(0, MEMBERSHIP + b"d", COMMIT + b"e")
    reader = reader_of(log, KINDS)

    def batch(start: dict[str, Any]) -> tuple[list[int], dict[str, Any]]:
        end = reader.latestOffset(start, ReadAllAvailable())
        read = offsets_in(pack for task in reader.partitions(start, end) for pack in reader.read(task))
        return [offset for _, offset in read], end

    first, position = batch(reader.initialOffset())
    held.commit_transaction()
    deadline = time.monotonic() + _SECONDS
    while reader.latestOffset(position, ReadAllAvailable())["commits"] != {"0": 6}:
        assert time.monotonic() < deadline, "the transaction's marker is not written"
        time.sleep(0.05)
    second, position = batch(position)

    assert ([0, 1, 3], [2, 4]) == (first, second)
    assert position == reader.latestOffset(position, ReadAllAvailable())
    assert [] == reader.partitions(position, position)
