"""Whether a record waits for a consumer of committed records, by what the headers of batches say."""

import struct
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any, cast

import pytest
from confluent_kafka import Producer
from kafka.errors import NodeNotReadyError
from kafka.protocol.consumer import FetchRequest, FetchResponse

from streaming.end_offsets.first_records import FirstRecords, RecordLooks, first_record
from streaming.end_offsets.open_transactions import written_ms
from streaming.end_offsets.store import TopicPartition
from streaming.kafka.batch_bounds import SentBatch, batches
from streaming.kafka.lazy_admin import LazyAdmin
from tests import hostile_batches
from tests.admin_of_mock import FLEXIBLE, AdminOfMock

TRANSACTIONAL, CONTROL = 0x10, 0x30
BY_THE_LOG = 0x08
FIRST_MS, LATEST_MS = 40, 50
STABLE = 100
BOMB = hostile_batches.gzip_bomb(b"k", 400_000_000)


def made(
    first: int, last: int, *, records: int | None = None, kind: int = 0, producer: int = -1, content: bytes = b""
) -> bytes:
    """A batch of these offsets."""
    count = last - first + 1 if records is None else records
    covered = struct.pack(">hiqqqhii", kind, last - first, FIRST_MS, LATEST_MS, producer, 0, 0, count) + content
    return struct.pack(">qi", first, 9 + len(covered)) + struct.pack(">ibI", -1, 2, 0) + covered


def at(first: int, batch: bytes) -> bytes:
    """A batch elsewhere."""
    return struct.pack(">q", first) + batch[8:]


def marker(offset: int, producer: int) -> bytes:
    """The end of a transaction."""
    return made(offset, offset, kind=CONTROL, producer=producer)


of_7 = partial(made, kind=TRANSACTIONAL, producer=7)
"""A batch in a transaction of this producer."""
OLD = struct.pack(">qi", 12, 14) + b"crc_" + b"\x01" + b"\x00" * 9
"""A message from before there were batches."""

CASES: Mapping[str, tuple[bytes, list[tuple[int, int]], tuple[int, bool | None]]] = {
    "nothing": (b"", [], (STABLE, False)),
    "a record": (made(10, 10), [], (10, True)),
    "a record further on": (made(15, 19), [], (15, True)),
    "within a batch": (made(8, 12), [], (10, True)),
    "within a batch that the cleaner was at": (made(8, 12, records=3), [], (10, None)),
    "behind one that the cleaner was at": (made(8, 9, records=1) + made(10, 14, records=2), [], (10, True)),
    "a batch that has none left": (made(10, 14, records=0), [], (15, False)),
    "a marker": (of_7(8, 9) + marker(10, 7), [], (11, False)),
    "of a transaction that was committed": (of_7(10, 12) + marker(13, 7), [], (10, True)),
    "of one that was aborted": (of_7(10, 12) + marker(13, 7), [(10, 7)], (14, False)),
    "of one that was aborted, begun before": (of_7(8, 12) + marker(13, 7), [(2, 7)], (14, False)),
    "of another than was aborted": (of_7(10, 12), [(10, 8)], (10, True)),
    "of the same producer, afterwards": (
        of_7(10, 10) + marker(11, 7) + of_7(12, 12),
        [(10, 7)],
        (12, True),
    ),
    "of the same producer, aborted again": (
        of_7(10, 10) + marker(11, 7) + of_7(12, 12) + marker(13, 7),
        [(10, 7), (12, 7)],
        (14, False),
    ),
    "outside of all transactions, between": (of_7(10, 10) + made(11, 11), [(10, 7)], (11, True)),
    "in part, behind a marker": (marker(10, 7) + made(11, 20)[:40], [], (11, False)),
    "a message of old": (OLD, [], (12, True)),
    "what no one would unpack": (at(10, BOMB), [], (10, True)),
}


@pytest.mark.parametrize("case", CASES)
def test_where_the_first_committed_record_is(case: str) -> None:
    """From offset 10 on."""
    records, aborted, expected = CASES[case]

    assert expected == first_record(10, records, aborted, STABLE)


def test_a_header_says_what_its_batch_is() -> None:
    """Whatever is in it; the last one may lack all but its header."""
    sent = of_7(3, 5, records=2) + marker(6, 7) + made(7, 9, content=b"x" * 50)[:61]

    assert [SentBatch(3, 5, 7, 2, 40, True), SentBatch(6, 6, 7, 1, 40, True, True), SentBatch(7, 9, -1, 3, 40)] == [
        *batches(sent)
    ]


class Leaders:
    """What stands in the place of kafka-python's connections: a partition's log, its leader, and what it refuses."""

    def __init__(self, logs: Mapping[TopicPartition, list[bytes]], *, away: int = -1, refused: str = "") -> None:
        self.logs, self.away, self.refused = logs, away, refused
        self.asked: list[tuple[str, int, int]] = []

    def asking(self, request: str) -> AbstractContextManager[None]:
        return nullcontext()

    def send(self, request: FetchRequest, broker: int) -> Any:
        if broker == self.away:
            raise NodeNotReadyError
        (topic,) = request.topics
        (of,) = topic.partitions
        self.asked.append((topic.topic, of.partition, of.fetch_offset))
        named = FetchResponse.FetchableTopicResponse
        log = self.logs.get((topic.topic, of.partition), [])
        sent = next((each for each in log if next(batches(each)).last >= of.fetch_offset), b"")
        code = 29 if topic.topic == self.refused else 0 if log else 1
        partition = named.PartitionData(
            partition_index=of.partition,
            error_code=code,
            high_watermark=STABLE,
            last_stable_offset=STABLE,
            aborted_transactions=None,
            records=sent,
        )
        return FetchResponse(responses=[named(topic=topic.topic, partitions=[partition])])


def looked(leaders: Leaders, places: Mapping[TopicPartition, int], led_by: int = 1) -> FirstRecords:
    looks = RecordLooks({})
    looks._admin = cast(LazyAdmin, leaders)
    return looks.first_at(places, {place: led_by if place[0] == "t" else 2 for place in places})


def test_it_goes_on_from_answer_to_answer() -> None:
    """Up to a record, or to the end of what may be read."""
    logs = {("t", 0): [marker(10, 7), marker(11, 7), made(12, 12)], ("t", 1): [marker(98, 7), marker(99, 7)]}
    leaders = Leaders(logs)
    found = looked(leaders, {("t", 0): 10, ("t", 1): 98})

    assert {("t", 0): (10, 12, True), ("t", 1): (98, STABLE, False)} == found.gaps
    assert [("t", 0, 10), ("t", 0, 11), ("t", 0, 12), ("t", 1, 98), ("t", 1, 99)] == leaders.asked


def test_what_is_not_known_of_one_partition_is_known_of_another() -> None:
    """Its leader is away, its topic may not be read, its log ends before."""
    logs = {("t", 0): [made(10, 10)], ("secret", 0): [made(10, 10)], ("elsewhere", 0): [made(10, 10)]}
    places = {("elsewhere", 0): 10, ("secret", 0): 10, ("t", 0): 10, ("t", 1): 10}

    assert FirstRecords({("t", 0): (10, 10, True)}) == looked(Leaders(logs, away=2), places)
    expected = {("elsewhere", 0): (10, 10, True), ("t", 0): (10, 10, True)}
    assert FirstRecords(expected, {"secret"}) == looked(Leaders(logs, refused="secret"), places)
    with pytest.raises(NodeNotReadyError):
        looked(Leaders(logs, away=1), {("t", 0): 10})


@pytest.mark.parametrize(
    ("log", "expected"),
    [
        ([made(10, 12)], {("t", 0): FIRST_MS}),
        ([made(10, 12, kind=BY_THE_LOG)], {("t", 0): LATEST_MS}),
        ([made(10, 10, records=0) + made(11, 12)], {("t", 0): FIRST_MS}),
        ([at(10, BOMB)], None),
        ([OLD], {}),
        ([], {}),
    ],
)
def test_a_header_says_when_its_first_record_was_written(
    log: list[bytes], expected: dict[TopicPartition, int] | None
) -> None:
    """Which is when a transaction began that has its first record there; nothing is unpacked for it."""
    leaders = Leaders({("t", 0): log, ("t", 1): [made(10, 10)]}, away=2)
    admin = cast(LazyAdmin, leaders)
    found = written_ms(admin, {("t", 0): 10, ("t", 1): 10, ("t", 2): 10}, {("t", 0): 1, ("t", 1): 2})

    if expected is None:
        assert [("t", 0)] == [*found]
    else:
        assert expected == found


def test_where_no_leader_answers_that_is_said() -> None:
    """And not that nothing is there."""
    with pytest.raises(NodeNotReadyError):
        written_ms(cast(LazyAdmin, Leaders({}, away=1)), {("t", 0): 10}, {("t", 0): 1})


@pytest.mark.parametrize("version", [4, 8, 11, FLEXIBLE])
def test_a_broker_s_answer_is_read(version: int) -> None:
    """Of each version that has aborted transactions; what cannot be read there, and what unpacks to a gigabyte, too."""
    broker = Producer({"test.mock.num.brokers": 1, "log_level": 0})
    (node,) = broker.list_topics(timeout=10).brokers.values()
    servers, topic = f"{node.host}:{node.port}", f"looked-{version}"
    broker.list_topics(topic, timeout=10)
    unreadable = hostile_batches.batch([(b"k", b"v")] * 3, codec=hostile_batches.UNKNOWN_CODEC)
    for partition, batch in enumerate((unreadable, BOMB)):
        hostile_batches.write(servers, topic, partition, batch)
    looks = RecordLooks({})
    looks._admin = admin = cast(LazyAdmin, AdminOfMock(servers, version))
    places = {(topic, 0): 1, (topic, 1): 0, (topic, 2): 0}
    leaders = dict.fromkeys(places, 1)
    now_ms = time.time_ns() // 1_000_000

    assert {(topic, 0): (1, 1, True), (topic, 1): (0, 0, True)} == looks.first_at(places, leaders).gaps
    written = written_ms(admin, places, leaders)
    assert [(topic, 0), (topic, 1)] == [*written]
    # One of the batches is as old as the process of the tests.
    assert all(0 <= now_ms - of < 86_400_000 for of in written.values())
