"""The scan of the log: what it counts, how far it says it got, and one scan for all who ask."""

import random
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer

from coordinator_model.gates.verdict import LogScan
from coordinator_model.records.serde import value_left_out
from lab import builders
from lab.builders import RecordBytes
from lab.coordinator_events import consumer_group_deleted, consumer_join
from streaming.kafka.log_bounds import Bounds
from streaming.kafka.log_scan import LogScanner, scan_with
from streaming.kafka.range_reader import Columns, RangeReader, Ranges, SteppedOver
from tests import hostile_batches
from tests.hostile_batches import UNKNOWN_CODEC, batch

TOPIC = "__consumer_offsets"
HARMLESS = (
    builders.offset_commit("g", "t", 0, 5, version=3),
    builders.new_group_metadata("g"),
    (builders.new_group_metadata("g")[0], None),
    builders.offset_commit_tombstone("g", "t", 0),
)
"""What a broker before 3.4.1 reads: commits up to version 3, classic groups, tombstones of both."""


@dataclass
class FakeLog:
    """A log that the cleaner has been at: offsets with gaps, the end of each partition beyond its last record.

    It is both the reader and where partitions end; `away` have no leader, the reader leaves `left_out`.
    """

    partitions: dict[int, list[tuple[int, RecordBytes]]]
    high: dict[int, int]
    pieces: int = 3
    fails_after: int | None = None
    left_out: tuple[int, ...] = ()
    away: tuple[int, ...] = ()

    def ends(self) -> Bounds:
        led = {of: end for of, end in self.high.items() if of not in self.away}
        return Bounds(stable=led, high=led, away=dict.fromkeys(self.away, "LEADER_NOT_AVAILABLE"))

    def first(self) -> dict[int, int]:
        return {of: log[0][0] if log else self.high[of] for of, log in self.partitions.items() if of not in self.away}

    def read(
        self, ranges: Ranges, left_out: set[int], _stepped_over: dict[int, list[SteppedOver]]
    ) -> Iterator[Columns]:
        left_out.update(self.left_out)
        found = [(of, at, record) for of in ranges if of not in left_out for at, record in self.partitions[of]]
        for number, begin in enumerate(range(0, len(found), self.pieces)):
            if number == self.fails_after:
                raise KafkaException(KafkaError(KafkaError._ALL_BROKERS_DOWN))
            piece = found[begin : begin + self.pieces]
            keys, values = ([record[at] for _, _, record in piece] for at in (0, 1))
            yield Columns([of for of, _, _ in piece], [at for _, at, _ in piece], [0] * len(piece), keys, values)


def log(records: list[RecordBytes], chance: random.Random) -> FakeLog:
    """The records on three partitions, with gaps."""
    partitions: dict[int, list[tuple[int, RecordBytes]]] = {number: [] for number in range(3)}
    for number, record in enumerate(records):
        partitions[chance.randrange(3)].append((10 + 3 * number, record))
    ends = {number: (of[-1][0] + chance.randint(1, 3) if of else 0) for number, of in partitions.items()}
    return FakeLog(partitions, ends, pieces=chance.randint(1, 9))


def last(fake: FakeLog, limit_seconds: float = 60.0) -> LogScan:
    """How the scan ended."""
    *_, found = scan_with(fake, fake, limit_seconds)  # type: ignore[arg-type]  # it has what is asked of both
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


def test_value_that_is_left_out_is_not_known() -> None:
    """It is larger than a reader takes, and its version is not read; live or not, no gate opens on it."""
    key, _ = builders.offset_commit("g", "t", 0, 5)
    found = last(log([(key, value_left_out(100, 10)), *HARMLESS], random.Random(1)))

    assert (1, 1.0, False) == (found.unreadable, found.share, found.complete)


def test_scan_that_is_cut_short_says_how_far_it_got() -> None:
    """By its time limit, or by brokers that go: nothing found is not clean, and a broker that goes is no crash."""
    records = list(HARMLESS) * 10
    of_time, of_brokers = log(records, random.Random(1)), log(records, random.Random(1))
    of_time.pieces = of_brokers.pieces = 4
    of_brokers.fails_after = 3
    found = [last(of_time, limit_seconds=0.0), last(of_brokers)]

    assert [False, False] == [of.complete for of in found]
    assert 0.0 < found[0].share < found[1].share < 1.0


@pytest.mark.parametrize("what", ["left_out", "away"])
def test_partition_that_is_not_read_makes_no_whole_scan(what: str) -> None:
    """It has no leader, from the beginning or in between; of the others all is read."""
    clean, other = (log(list(HARMLESS) * 10, random.Random(1)) for _ in range(2))
    other.partitions[1][0] = (other.partitions[1][0][0], consumer_group_deleted("g", ["n"])[0])
    for each in (clean, other):
        setattr(each, what, (2,))

    assert [(False, True), (False, False)] == [(of.complete, of.clean) for of in map(last, (clean, other))]
    assert 0.5 < last(clean).share < 1.0


def test_batch_that_cannot_be_read_is_stepped_over_and_counted() -> None:
    """As the stream reads: what is behind it is looked at, and what is in it is not known."""
    broker = Producer({"test.mock.num.brokers": 1, "log_level": 0})
    (found,) = broker.list_topics(timeout=10).brokers.values()
    servers = f"{found.host}:{found.port}"
    broker.list_topics(TOPIC, timeout=10)
    key, value = builders.offset_commit("g", "t", 0, 5)
    for each in (batch([(b"a", b"1")]), batch([(b"x", b"1")] * 3, codec=UNKNOWN_CODEC), batch([(key, value or b"")])):
        hostile_batches.write(servers, TOPIC, 0, each)
    settings = {"bootstrap.servers": servers, "fetch.wait.max.ms": 20, "log_level": 0}
    reader = RangeReader(settings, TOPIC, committed=False, timeout_seconds=30, batch_end=lambda *_: 4)
    with closing(reader):
        ends = FakeLog({0: [(0, (key, value))]}, {0: 5})
        *_, scan = scan_with(reader, ends, 60.0)  # type: ignore[arg-type]  # it has what is asked

    assert (1, {4: 1}, 1.0, False) == (scan.unreadable, scan.value_versions, scan.share, scan.complete)


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

    found = LogScanner(scan, answer_seconds=60.0)()

    assert (False, False, True) == (found.complete, found.under_way, found.clean)
