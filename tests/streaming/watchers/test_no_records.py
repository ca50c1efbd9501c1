"""Rests of idle logs that hold no record: looked at once, kept while nothing is appended, not known without READ."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from kafka.errors import KafkaConnectionError
from structlog.testing import capture_logs

from lab import builders
from streaming.board import group_answer
from streaming.board.board import Board
from streaming.board.lag_columns import LONGEST_REST, STANDS_MS
from streaming.board.lag_history import LagHistory
from streaming.end_offsets.first_records import FirstRecords
from streaming.end_offsets.store import EndOffsets, TopicPartition
from streaming.watchers.no_records import AGAIN_SECONDS, AT_ONCE, REFUSED_SECONDS, RETRY_SECONDS, NoRecords
from tests.streaming.board_rows import Shard
from tests.streaming.boards import NOW_MS, THEN_MS, board_of, log_ends, sample
from tests.streaming.fake_cluster import FakeCluster

END = 100


@dataclass
class FakeRecords(FakeCluster[dict[TopicPartition, int]]):
    """Partitions of topic `t` in which all offsets are markers but those in `records`."""

    records: set[int] = field(default_factory=set)
    stable: int = END
    refuses: bool = False
    silent: set[TopicPartition] = field(default_factory=set)

    def first_at(self, places: Mapping[TopicPartition, int], leaders: Mapping[TopicPartition, int]) -> FirstRecords:
        assert places.keys() == leaders.keys()
        self.note(dict(places))
        if self.refuses:
            return FirstRecords(refused={topic for topic, _ in places})
        first = {of: min((at for at in self.records if at >= offset), default=None) for of, offset in places.items()}
        return FirstRecords(
            {
                of: (places[of], self.stable if at is None else at, at is not None)
                for of, at in first.items()
                if of not in self.silent
            }
        )


class Rig:
    """A board with a group that committed these offsets of a log that has been idle for a minute."""

    def __init__(self, *committed: int, end: int = END, stable: int | None = None) -> None:
        self.cluster = FakeRecords()
        self.ends: EndOffsets = log_ends(t=len(committed))
        self.now_ms = NOW_MS
        self.clock = 0.0
        self.end, self.stable = end, stable
        shard = Shard()
        for partition, offset in enumerate(committed):
            shard.pending.append((THEN_MS, *builders.offset_commit("g", "t", partition, offset)))
        self.partitions = len(committed)
        self.sample(NOW_MS - 60_000)
        self.board: Board = board_of(shard, self.ends)
        self.history = LagHistory()
        self.watch = NoRecords(
            self.ends, lambda: self.cluster, self.history.may_hold_no_record, lambda: self.now_ms, lambda: self.clock
        )
        self.ends.record_earliest({("t", partition): 0 for partition in range(self.partitions)})

    def sample(self, time_ms: int) -> None:
        stable = {} if self.stable is None else dict.fromkeys(range(self.partitions), self.stable)
        sample(self.ends, time_ms, "t", *[self.end] * self.partitions, stable=stable)

    def look(self, seconds: float = 1.0) -> list[dict[TopicPartition, int]]:
        """A second later; returns what was asked so far."""
        self.now_ms += int(seconds * 1_000)
        self.clock += seconds
        self.sample(self.now_ms)
        self.history.sample(self.board.shown.groups, self.ends, self.now_ms)
        self.watch.look()
        return self.cluster.asked

    def offset(self) -> tuple[object, object, object, object]:
        """(lag, seconds, method, whether records were lost) of partition 0."""
        view = group_answer.view(self.board, "g", self.now_ms)
        assert view is not None
        of = view["offsets"][0]
        return of["lag"], of["lag_seconds"], of["lag_method"], of["records_lost"]


def test_a_commit_one_short_of_a_marker_lags_by_one_and_by_no_time() -> None:
    """As sarama's, kafkajs's and franz-go's with auto-commit; asked once, and no connection is kept."""
    rig = Rig(END - 1)
    rig.look()
    rig.look(3_600)

    assert (1, 0.0, "no_record", False) == rig.offset()
    assert [{("t", 0): END - 1}] == rig.cluster.asked
    assert 1 == rig.cluster.closed


def test_a_record_that_waits_ages_though_a_marker_is_before_it() -> None:
    """It is asked for once; its age is that of the record, not of the marker."""
    rig = Rig(90)
    rig.cluster.records = {95}
    rig.look()
    first = rig.offset()
    rig.look(60)

    assert (10, 61.0, "at_least", False) == first
    assert (10, 121.0, "at_least", False) == rig.offset()
    assert 1 == len(rig.cluster.asked)


def test_a_record_that_its_producer_dates_before_the_commit_waits() -> None:
    """A time proves nothing: no record is as late as the commit, and one after it is unread all the same."""
    rig = Rig(90)
    rig.cluster.records = {95}
    rig.look()
    rig.ends.record_found({("t", 0): dict.fromkeys((90, 95), THEN_MS - 3_600_000)})
    waits = rig.offset()
    rig.ends.record_earliest({("t", 0): END})

    assert (10, (rig.now_ms - THEN_MS) / 1_000 + 3_600, "list_offsets", False) == waits
    assert rig.offset()[3], "once the log begins after it, it is lost"


def test_what_is_appended_is_looked_at_from_there_on() -> None:
    """Another transaction: its record waits, and is as old as it is; of one that was aborted none does."""
    rig = Rig(END - 1)
    rig.look()
    rig.end = rig.cluster.stable = END + 3
    rig.look()
    waits = rig.offset()
    rig.look(STANDS_MS / 1_000)

    assert (4, 1.0, "interpolated", False) == waits
    assert [{("t", 0): END - 1}, {("t", 0): END}] == rig.cluster.asked
    assert (4, 0.0, "no_record", False) == rig.offset()


def test_logs_that_are_written_to_are_not_read() -> None:
    """Somebody is at work there: what is new are records, and consumers that are alive commit past markers."""
    rig = Rig(END - 1)
    for _ in range(30):
        rig.end += 1
        rig.look()

    assert [] == rig.cluster.asked


@pytest.mark.parametrize("behind", [0, LONGEST_REST + 1])
def test_who_is_at_the_end_or_far_behind_is_not_looked_at(behind: int) -> None:
    """There is nothing, or there are records as a rule."""
    rig = Rig(20_000 - behind, end=20_000)

    assert [] == rig.look()


def test_an_open_transaction_is_not_looked_into() -> None:
    """Nobody can say yet whether its records will count: they wait."""
    rig = Rig(END - 20, stable=END - 10)
    rig.cluster.stable = END - 10
    rig.look()
    rig.look()

    assert [{("t", 0): END - 20}] == rig.cluster.asked
    assert (20, "at_least") == (rig.offset()[0], rig.offset()[2])


def test_only_a_marker_below_the_start_is_no_loss() -> None:
    """The log is cleaned up to its end, with the marker the commit stopped short of."""
    rig = Rig(END - 1)
    rig.look()
    rig.ends.record_earliest({("t", 0): END})

    assert (1, 0.0, "no_record", False) == rig.offset()


@pytest.mark.parametrize(("records", "looked"), [({END - 1}, True), (set(), False)], ids=["a record", "not looked at"])
def test_what_may_have_been_a_record_below_the_start_is_lost(records: set[int], looked: bool) -> None:
    """One real record was unread; and of what was not looked at while it was there, nothing is known."""
    rig = Rig(END - 1)
    rig.cluster.records = records
    rig.cluster.refuses = not looked
    rig.look()
    rig.ends.record_earliest({("t", 0): END})

    assert (1, 0.0, "no_record", True) == rig.offset()


def test_without_read_nothing_is_known_and_brokers_are_asked_seldom() -> None:
    """The lag ages; it is said once what is missing; the topic is tried again after an hour."""
    rig = Rig(END - 1, END - 1)
    rig.cluster.refuses = True
    with capture_logs() as lines:
        rig.look()
        rig.look()
        rig.look(REFUSED_SECONDS)

    assert [("records_not_looked_at", "t")] == [(of["event"], of["topic"]) for of in lines]
    assert 2 == len(rig.cluster.asked)
    assert (1, 3662.0, "at_least", False) == rig.offset()


def test_an_answer_that_does_not_come_is_asked_for_again_later() -> None:
    """Of that partition; others are not held up."""
    rig = Rig(END - 1, END - 1)
    rig.cluster.silent = {("t", 0)}
    rig.look()
    rig.look()
    asked = len(rig.cluster.asked)
    rig.cluster.silent.clear()
    rig.look(AGAIN_SECONDS)

    assert 1 == asked
    assert {("t", 0): END - 1} == rig.cluster.asked[-1]
    assert "no_record" == rig.offset()[2]


def test_brokers_that_are_away_are_said_once() -> None:
    """And nothing is known meanwhile."""
    rig = Rig(END - 1)
    rig.cluster.down = KafkaConnectionError("nobody there")
    with capture_logs() as lines:
        rig.look()

    assert 1 == len(lines)
    assert "at_least" == rig.offset()[2]


def test_brokers_that_are_back_are_asked_soon() -> None:
    """What they did not answer is not as good as answered: it was asked again after ten minutes."""
    rig = Rig(END - 1)
    rig.cluster.down = KafkaConnectionError("nobody there")
    rig.look()
    rig.cluster.down = None
    before = len(rig.cluster.asked)
    rig.look(RETRY_SECONDS - 1)
    assert before == len(rig.cluster.asked)

    rig.look(1)
    assert before + 1 == len(rig.cluster.asked)
    assert "no_record" == rig.offset()[2]


def test_some_partitions_at_once() -> None:
    """The others with the next looks; each once."""
    rig = Rig(*[END - 1] * (AT_ONCE + 5))
    rig.look()
    rig.look()

    assert [AT_ONCE, 5] == [len(asked) for asked in rig.cluster.asked]


def test_what_held_no_record_is_known_after_a_restart(tmp_path: Path) -> None:
    """It is kept with the samples; a log that was cut off since begins again from nothing."""
    rig = Rig(END - 1)
    rig.look()
    rig.ends.save(tmp_path / "ends.json")

    def loaded(end: int) -> dict[int, int]:
        ends = log_ends(t=1)
        ends.load(tmp_path / "ends.json")
        sample(ends, rig.now_ms, "t", end)
        known = ends.partition("t", 0)
        assert known is not None
        return known.gaps

    assert {END - 1: END} == loaded(END)
    assert {} == loaded(END - 1)
