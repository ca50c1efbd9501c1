"""Where a recording of a log ends that is written to meanwhile, and what it says of what it cannot read."""

from collections.abc import Collection, Generator
from typing import Any

import pytest

from streaming.base.errors import CannotTellError
from streaming.config.kafka_sections import KafkaSection
from streaming.kafka.log_bounds import Bounds
from streaming.kafka.range_reader import Columns, Ranges
from streaming.recording import recorder

COMMIT, MEMBERSHIP = b"\x00\x01", b"\x00\x02"
KINDS = (COMMIT, MEMBERSHIP)


class Log:
    """A log of partitions in which commits and membership take turns; a `LogBounds` and a `RangeReader` of it.

    Attributes:
        stable: partition → last stable offset.
        high: partition → high watermark.
        away: partition → why it has no end.
        dead: partitions of which no record comes.
        reads: what was read: (committed, ranges).
    """

    def __init__(self) -> None:
        self.stable, self.high = {0: 4}, {0: 10}
        self.away: dict[int, str] = {}
        self.dead: set[int] = set()
        self.reads: list[tuple[bool, dict[int, tuple[int, int]]]] = []
        self.closed = 0

    def bounds(self, *_: object) -> "Log":
        return self

    def ends(self) -> Bounds:
        return Bounds(dict(self.stable), dict(self.high), away=self.away)

    def first(self, partitions: Collection[int]) -> dict[int, int]:
        return dict.fromkeys(partitions, 1)

    def reader(self, *_: object, committed: bool, **_settings: object) -> Any:
        return Reader(self, committed=committed)


class Reader:
    """A `RangeReader`, a record at a time."""

    def __init__(self, log: Log, *, committed: bool) -> None:
        self._log, self._committed = log, committed

    def read(self, ranges: Ranges, left_out: set[int] | None, _stepped_over: object) -> Generator[Columns]:
        self._log.reads.append((self._committed, dict(ranges)))
        for partition, (start, end) in ranges.items():
            if partition in self._log.dead:
                assert left_out is not None
                left_out.add(partition)
                continue
            for offset in range(start, end):
                yield Columns([partition], [offset], [0], [KINDS[offset % 2]], [b""])

    def close(self) -> None:
        self._log.closed += 1


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> Log:
    log = Log()
    monkeypatch.setattr(recorder, "LogBounds", log.bounds)
    monkeypatch.setattr(recorder, "RangeReader", log.reader)
    monkeypatch.setattr(recorder, "_PATIENCE_SECONDS", 0.0)
    return log


def offsets(of: recorder.LogRecorder) -> list[int]:
    """What a recorder delivers."""
    return [record.offset for record in of.records()]


def test_an_open_transaction_is_said(log: Log) -> None:
    """The commits that it holds back are not in the recording, and that is reported; membership is there."""
    of = recorder.LogRecorder(KafkaSection(), [0])

    assert ({0: 10}, {0: 6}) == (of.ends, of.open_transactions)
    assert [1, 2, 3, 5, 7, 9] == offsets(of)
    assert {"commits": {0: 4}, "membership": {0: 10}} == of.positions


def test_a_log_without_transactions_is_read_once(log: Log) -> None:
    """What is read committed is all there is, so no second reader is made."""
    log.stable = log.high
    of = recorder.LogRecorder(KafkaSection(), [0])

    assert ({0: 10}, {}) == (of.ends, of.open_transactions)
    assert list(range(1, 10)) == offsets(of)
    of.close()
    assert ([(True, {0: (1, 10)})], 1) == (log.reads, log.closed)


def test_reading_goes_on_where_it_ended(log: Log) -> None:
    """Each record once: commits from behind the transaction, and membership from where it was read to."""
    before = recorder.LogRecorder(KafkaSection(), [0])
    first = offsets(before)
    log.stable, log.high = {0: 11}, {0: 12}
    of = recorder.LogRecorder(KafkaSection(), [0], begin=before.positions)

    assert [4, 6, 8, 10, 11] == offsets(of)
    assert list(range(1, 12)) == sorted([*first, 4, 6, 8, 10, 11])


@pytest.mark.parametrize("position", [0, 11])
def test_a_position_of_another_log_is_none(log: Log, position: int) -> None:
    """The topic was made again, or cut off: it is read from its beginning."""
    begin = {"commits": {0: position}, "membership": {0: position}}
    of = recorder.LogRecorder(KafkaSection(), [0], begin=begin)

    assert {"commits": {0: 1}, "membership": {0: 1}} == of.positions


def test_a_partition_without_a_leader_is_named(log: Log) -> None:
    """A recording has all partitions, or there is none."""
    log.away = {1: "LEADER_NOT_AVAILABLE"}
    with pytest.raises(CannotTellError, match="partition 1: found LEADER_NOT_AVAILABLE, accepted: a leader"):
        recorder.LogRecorder(KafkaSection(), [0, 1])


def test_others_are_read_where_that_is_asked_for(log: Log) -> None:
    """What cannot be read stays where it is, for the run that goes on from there."""
    log.stable, log.high = {0: 4, 2: 4}, {0: 4, 2: 4}
    log.away, log.dead = {1: "LEADER_NOT_AVAILABLE"}, {2}
    begin = {"commits": {1: 77, 2: 2}, "membership": {1: 77, 2: 2}}
    of = recorder.LogRecorder(KafkaSection(), [0, 1, 2], whole=False, begin=begin)

    assert [1, 2, 3] == offsets(of)
    assert {1: "LEADER_NOT_AVAILABLE", 2: "no records"} == of.unread
    assert {"commits": {0: 4, 1: 77, 2: 2}, "membership": {0: 4, 1: 77, 2: 2}} == of.positions


def test_while_following_membership_waits_for_commits(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that offsets stay in order; Ctrl-C reads what is behind the transaction that is open then."""

    def look(_: float) -> None:
        if log.high[0] == 20:
            raise KeyboardInterrupt
        log.stable, log.high = {0: 8}, {0: 20}

    monkeypatch.setattr("streaming.recording.recorder.time.sleep", look)
    of = recorder.LogRecorder(KafkaSection(), [0], follow=True)

    assert [1, 2, 3, 4, 5, 6, 7, 9, 11, 13, 15, 17, 19] == offsets(of)
