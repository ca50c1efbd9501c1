"""Records and batches that cannot be read, by a real client of a broker that librdkafka itself plays.

That one takes whatever it is given, as a broker whose disk is damaged has it.
"""

import time
from collections.abc import Callable, Iterator
from typing import Any, Final

import pytest
from confluent_kafka import KafkaException, Message, Producer

from coordinator_model.records.serde import UndecodableRecord, decode_record
from lab import builders
from streaming.base.resident_memory import resident_bytes
from streaming.kafka import range_reader
from streaming.kafka.batch_bounds import BatchBounds, end_of_batch
from streaming.kafka.range_reader import Columns, RangeReader, SteppedOver
from tests import hostile_batches
from tests.admin_of_mock import FLEXIBLE, AdminOfMock
from tests.hostile_batches import Pair, batch

TOPIC: Final = "log"
BEFORE: Final[list[Pair]] = [(b"a", b"1"), (b"b", b"2")]
LOST: Final[list[Pair]] = [(b"x", b"1"), (b"y", b"2"), (b"z", b"3")]
AFTER: Final[list[Pair]] = [(b"c", b"3")]
END: Final = 6
_LARGEST: Final = 4_096


@pytest.fixture(scope="module")
def broker() -> tuple[str, Producer]:
    client = Producer({"test.mock.num.brokers": 1, "log_level": 0})
    (found,) = client.list_topics(timeout=10).brokers.values()
    return f"{found.host}:{found.port}", client


class Log:
    """A topic of its own, and a reader of it; the batches that it steps over end where this says."""

    def __init__(self, broker: tuple[str, Producer], name: str, ends: dict[int, int | None]) -> None:
        self.servers, self.name, self._ends = broker[0], name, ends
        broker[1].list_topics(name, timeout=10)
        self.asked: list[int] = []
        settings = {"bootstrap.servers": broker[0], "fetch.wait.max.ms": 20, "log_level": 0}
        self.reader = RangeReader(
            settings, name, committed=True, timeout_seconds=30, batch_end=self._end, largest_value_bytes=_LARGEST
        )

    def write(self, *batches: bytes) -> None:
        for each in batches:
            hostile_batches.write(self.servers, self.name, 0, each)

    def read(self, left_out: set[int] | None = None) -> tuple[list[tuple[int, bytes | None]], list[SteppedOver]]:
        """(offset, value) of what is read, and what was stepped over."""
        stepped_over: dict[int, list[SteppedOver]] = {}
        parts: list[Columns] = [*self.reader.read({0: (0, END)}, left_out, stepped_over)]
        found = [pair for part in parts for pair in zip(part.offsets, part.values, strict=True)]
        return found, stepped_over.get(0, [])

    def _end(self, partition: int, offset: int, leader: int) -> int | None:
        assert (0, 1) == (partition, leader)
        self.asked.append(offset)
        return self._ends[offset]


@pytest.fixture
def log(broker: tuple[str, Producer], request: pytest.FixtureRequest) -> Iterator[Log]:
    made = Log(broker, f"log-{abs(hash(request.node.name))}", {2: 5})
    yield made
    made.reader.close()


@pytest.mark.parametrize(
    ("unreadable", "why"),
    [
        pytest.param(batch(LOST, checksum=1), "CRC32C", id="damaged on disk"),
        pytest.param(batch(LOST, codec=hostile_batches.UNKNOWN_CODEC), "codec 0x5", id="a codec to come"),
        pytest.param(batch(LOST, codec=hostile_batches.GZIP, packed=b"none"), "Decompression", id="not of its codec"),
        pytest.param(
            batch(LOST, codec=hostile_batches.GZIP, packed=b"\x1f\x8b\x08\x00", checksum=7), "CRC32C", id="cut short"
        ),
    ],
)
def test_a_batch_that_cannot_be_read_is_stepped_over_once(log: Log, unreadable: bytes, why: str) -> None:
    """What is before and behind it is read; librdkafka, left alone, would ask for it again and again."""
    log.write(batch(BEFORE), unreadable, batch(AFTER))

    found, (stepped_over,) = log.read()

    assert [(0, b"1"), (1, b"2"), (5, b"3")] == found
    assert (2, 5) == (stepped_over.first, stepped_over.end)
    assert why in stepped_over.reason
    assert [2] == log.asked


def test_a_batch_beyond_the_limit_of_zstd_is_stepped_over(broker: tuple[str, Producer]) -> None:
    """Four kilobytes on the wire; where it is the last of what is read, nothing is waited for."""
    log = Log(broker, "zstd", {2: 3})
    log.write(batch(BEFORE), bomb := hostile_batches.zstd_bomb(b"x", 120_000_000))
    assert len(bomb) < 4_096

    stepped_over: dict[int, list[SteppedOver]] = {}
    parts = [*log.reader.read({0: (0, 3)}, None, stepped_over)]
    log.reader.close()

    assert [0, 1] == [offset for part in parts for offset in part.offsets]
    assert [(2, 3)] == [(of.first, of.end) for of in stepped_over[0]]


def test_what_is_on_its_way_goes_with_a_read_that_fails(broker: tuple[str, Producer]) -> None:
    """It would come once the error was raised, and stay for as long as nothing of its partition is read."""
    log, size = Log(broker, "on-its-way", {}), 200_000_000
    hostile_batches.write(broker[0], "on-its-way", 0, hostile_batches.zstd_bomb(b"x", 120_000_000))
    hostile_batches.write(broker[0], "on-its-way", 1, hostile_batches.gzip_bomb(b"x", size))
    before = resident_bytes()

    with pytest.raises(KafkaException, match="codec 0x4"):
        list(log.reader.read({0: (0, 1), 1: (0, 1)}))

    end, most = time.monotonic() + 3, 0
    while time.monotonic() < end and most < before + size // 2:
        time.sleep(0.1)
        most = max(most, resident_bytes())
    assert most < before + size // 2
    assert [(0, b"1")] == _after(log)
    log.reader.close()


def _after(log: Log) -> list[tuple[int, bytes | None]]:
    """What the same reader reads of a partition with one record."""
    hostile_batches.write(log.servers, log.name, 2, batch(BEFORE[:1]))
    return [pair for part in log.reader.read({2: (0, 1)}) for pair in zip(part.offsets, part.values, strict=True)]


def test_two_in_a_row_are_two(broker: tuple[str, Producer]) -> None:
    """Each is stepped over alone."""
    log = Log(broker, "two", {2: 4, 4: 5})
    log.write(batch(BEFORE), batch(LOST[:2], codec=5), batch(LOST[2:], codec=5), batch(AFTER))

    found, stepped_over = log.read()
    log.reader.close()

    assert [0, 1, 5] == [offset for offset, _ in found]
    assert [(2, 4), (4, 5)] == [(of.first, of.end) for of in stepped_over]


def test_where_its_end_is_not_known_the_partition_is_left(broker: tuple[str, Producer]) -> None:
    """It is owed then, as one without a leader is; who may leave none gets the error."""
    log = Log(broker, "not-known", {2: None})
    log.write(batch(BEFORE), batch(LOST, codec=5), batch(AFTER))
    left_out: set[int] = set()

    _, stepped_over = log.read(left_out)

    assert ({0}, []) == (left_out, stepped_over)
    with pytest.raises(KafkaException, match="codec 0x5"):
        log.read()
    log.reader.close()


def test_who_does_not_step_over_gets_the_error(log: Log) -> None:
    """As a micro-batch that is only planned: its task goes on."""
    log.write(batch(BEFORE), batch(LOST, codec=5), batch(AFTER))

    with pytest.raises(KafkaException, match="codec 0x5"):
        list(log.reader.read({0: (0, END)}))


def test_a_value_above_the_largest_leaves_its_record_without_one(log: Log) -> None:
    """The key stays; the record is one that does not decode, and says why. A value just as large is read."""
    key, _ = builders.group_metadata("g", generation=1, members=[])
    log.write(batch([(key, bytes(_LARGEST)), (key, bytes(_LARGEST + 1)), *BEFORE]), batch([*AFTER, *AFTER]))

    found, _ = log.read()

    values = [value for _, value in found]
    assert [bytes(_LARGEST), b"1", b"2", b"3", b"3"] == [value for number, value in enumerate(values) if number != 1]
    assert UndecodableRecord(2, "value: 4,097 bytes, of at most 4,096") == decode_record(key, values[1])


@pytest.mark.parametrize("version", [4, 8, 11, FLEXIBLE])
def test_a_leader_says_where_a_batch_ends(broker: tuple[str, Producer], version: int) -> None:
    """Whatever can be read of it; of what is not there, and where it is no leader, it is not known."""
    log = Log(broker, f"asked-{version}", {})
    log.write(batch(BEFORE), batch(LOST, codec=5), batch(AFTER))
    log.reader.close()
    bounds = BatchBounds({}, f"asked-{version}")
    admin = bounds._admin = AdminOfMock(broker[0], version)  # type: ignore[assignment]  # stands in its place

    assert [2, 2, 5, 5, 5, 6, None] == [bounds.after(0, offset, 1) for offset in range(7)]
    assert None is bounds.after(0, 3, 2)
    assert 1 == admin.closed


class OneAnswers:
    """A consumer of two partitions, of which only the first is ever answered."""

    def __init__(self) -> None:
        self._found = [Message(topic="t", partition=0, offset=0, key=b"k", value=b"v", timestamp=(1, 5))]

    def consume(self, _most: int, _seconds: float) -> list[Message]:
        found, self._found = self._found, []
        return found

    def __getattr__(self, name: str) -> Callable[..., list[Any]]:
        return lambda *_, **__: []


def test_a_partition_of_which_nothing_comes_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is named to who asked, as one that was not read: the others were."""
    monkeypatch.setattr(range_reader, "plain_consumer", lambda *_, **__: OneAnswers())
    left_out: set[int] = set()
    reader = RangeReader({}, "t", committed=False, timeout_seconds=0.0)
    (columns,) = reader.read({0: (0, 1), 1: (0, 1)}, left_out)

    assert ([0], {1}) == (columns.partitions, left_out)


class TestEndOfBatch:
    """Where a batch ends, by what a leader sent."""

    def test_of_several_it_is_the_one_that_the_offset_is_in(self) -> None:
        """A leader may send more than one."""
        first, second = batch(BEFORE), b"\x00" * 7 + b"\x02" + batch(LOST)[8:]

        assert [2, 2, 5, 5, 5, None] == [end_of_batch(first + second, offset) for offset in range(6)]

    def test_a_message_of_old_is_one_offset(self) -> None:
        """Of one that holds others it is the last."""
        assert 8 == end_of_batch(b"\x00" * 7 + b"\x07" + b"\x00\x00\x00\x0e" + b"crc_" + b"\x01" + b"\x00" * 9, 5)

    @pytest.mark.parametrize("length", [0, 8, 16, 26])
    def test_less_than_a_header_says_nothing(self, length: int) -> None:
        """And does no harm."""
        assert end_of_batch(batch(LOST)[:length], 0) is None
