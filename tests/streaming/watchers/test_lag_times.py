"""Lag in seconds of groups that had stopped before: sought once, a question a round, let be without an answer."""

import random
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

import pytest
from kafka.errors import KafkaConnectionError
from structlog.testing import capture_logs

from lab import builders
from streaming.board import group_answer
from streaming.board.board import Board
from streaming.board.lag_history import LagHistory
from streaming.end_offsets.store import EndOffsets, TopicPartition
from streaming.watchers.lag_times import AT_ONCE, LagTimes
from tests.streaming.board_rows import Shard
from tests.streaming.boards import NOW_MS, THEN_MS, board_of, log_ends, sample
from tests.streaming.fake_cluster import FakeCluster

DAY_MS = 86_400_000


@dataclass
class FakeTimes(FakeCluster[dict[TopicPartition, int]]):
    """Records of each partition by offset, a second apart, from a day before the first sample."""

    silent: set[TopicPartition] = field(default_factory=set)
    moved: set[TopicPartition] = field(default_factory=set)
    first_ms: int = NOW_MS - DAY_MS

    def first_since(
        self, times_ms: Mapping[TopicPartition, int], leaders: Mapping[TopicPartition, int]
    ) -> tuple[dict[TopicPartition, tuple[int, int]], Collection[TopicPartition]]:
        assert times_ms.keys() == leaders.keys()
        self.note(dict(times_ms))
        found = {}
        for place, time_ms in times_ms.items():
            if place not in self.silent | self.moved:
                offset = max(0, -(-(time_ms - self.first_ms) // 1_000))
                found[place] = (offset, self.first_ms + offset * 1_000) if offset <= 10_000 else (-1, -1)
        return found, self.moved & times_ms.keys()


class Rig:
    """A board whose groups stopped a day ago, sampled only now."""

    def __init__(self, commits: Mapping[str, int], partitions: int = 1) -> None:
        self.ends: EndOffsets = log_ends(t=partitions)
        sample(self.ends, NOW_MS - 5_000, "t", *[10_000] * partitions)
        sample(self.ends, NOW_MS, "t", *[10_001] * partitions)
        shard = Shard()
        for name, offset in commits.items():
            for partition in range(partitions):
                shard.pending.append((THEN_MS, *builders.offset_commit(name, "t", partition, offset)))
        self.board: Board = board_of(shard, self.ends)
        self.history = LagHistory()
        self.cluster = FakeTimes()
        self.times = LagTimes(self.ends, lambda: self.cluster, self.history.without_time, lambda: NOW_MS)

    def round(self) -> None:
        self.history.sample(self.board.shown.groups, self.ends, NOW_MS)
        self.times.look()

    def rounds(self, count: int = 45) -> None:
        for _ in range(count):
            self.round()

    def offset(self, name: str) -> dict[str, object]:
        view = group_answer.view(self.board, name, NOW_MS)
        assert view is not None
        return dict(view["offsets"][0])


@pytest.mark.parametrize("seed", range(20))
def test_age_of_what_waited_before_the_first_sample_is_found(seed: int) -> None:
    """A lower bound until then, the time the brokers said after, and no more questions."""
    committed = random.Random(seed).randint(0, 9_999)
    rig = Rig({"g": committed})
    before = rig.offset("g")
    rig.rounds()
    asked = len(rig.cluster.asked)
    rig.rounds(5)
    after = rig.offset("g")

    assert ("at_least", 5.0, True) == (before["lag_method"], before["lag_seconds"], before["lag_seconds_at_least"])
    assert ("list_offsets", False) == (after["lag_method"], after["lag_seconds_at_least"])
    assert after["lag_seconds"] == pytest.approx((DAY_MS - committed * 1_000) / 1_000, abs=1.0)
    assert asked == len(rig.cluster.asked) <= 43


def test_groups_of_one_partition_are_asked_about_one_after_another() -> None:
    """And each has its own answer."""
    rig = Rig({"a": 10, "b": 5_000, "c": 5_000, "d": 9_999})
    rig.rounds(150)

    assert {"list_offsets"} == {rig.offset(name)["lag_method"] for name in "abcd"}
    assert rig.offset("a")["lag_seconds"] > rig.offset("b")["lag_seconds"] > rig.offset("d")["lag_seconds"]  # type: ignore[operator]  # numbers


def test_nobody_is_asked_about_groups_whose_age_is_known() -> None:
    """Caught up, or behind by what was sampled."""
    rig = Rig({"caught-up": 10_001, "sampled": 10_000})
    rig.rounds(3)

    assert [] == rig.cluster.asked


def test_round_asks_about_so_many_partitions_and_no_more() -> None:
    """An answer is a look at the broker's disk."""
    rig = Rig({"g": 7}, partitions=AT_ONCE + 20)
    rig.round()

    assert AT_ONCE == len(rig.cluster.asked[0])


def test_brokers_that_are_away_end_nothing() -> None:
    """The lower bound stays, the search goes on when they are back, and both are logged once."""
    rig = Rig({"g": 7})
    with capture_logs() as lines:
        rig.cluster.down = KafkaConnectionError("nobody there")
        rig.rounds(3)
        away = rig.offset("g")["lag_method"]
        rig.cluster.down = None
        rig.rounds()

    assert ["times_of_records_unavailable", "times_of_records_available_again"] == [line["event"] for line in lines]
    assert ("at_least", "list_offsets") == (away, rig.offset("g")["lag_method"])


def test_partition_that_does_not_answer_is_let_be_for_a_while() -> None:
    """One without DESCRIBE, or of another topic by now; the others are answered."""
    rig = Rig({"g": 7}, partitions=2)
    rig.cluster.silent = {("t", 0)}
    rig.rounds()

    assert "at_least" == rig.offset("g")["lag_method"]
    assert 1 == sum(("t", 0) in asked for asked in rig.cluster.asked)
    assert {7} == rig.ends.partition("t", 1).found.keys()  # type: ignore[union-attr]  # it was sampled


def test_partition_that_was_moved_is_asked_again_and_described() -> None:
    """It is no refusal: the next leader may say it with the next round."""
    rig = Rig({"g": 7})
    rig.cluster.moved = {("t", 0)}
    rig.round()
    doubted = rig.ends.take_doubt()
    rig.cluster.moved = set()
    rig.rounds()

    assert doubted
    assert "list_offsets" == rig.offset("g")["lag_method"]


def test_partition_without_a_leader_is_asked_about_when_it_has_one() -> None:
    """It takes no room from the others meanwhile."""
    rig = Rig({"g": 7})
    topic = rig.ends.topics["t"]
    rig.ends.set_topics([replace(topic, leaders={})], [])
    rig.rounds(3)
    without = list(rig.cluster.asked)
    rig.ends.set_topics([topic], [])
    rig.rounds()

    assert [] == without
    assert "list_offsets" == rig.offset("g")["lag_method"]


def test_commit_that_moves_on_ends_its_search() -> None:
    """What it was asked for is of no one any more."""
    rig = Rig({"g": 7})
    rig.round()
    rig.history.sample(Rig({"g": 10_001}).board.shown.groups, rig.ends, NOW_MS)
    rig.times.look()

    assert 1 == len(rig.cluster.asked)


def test_answer_that_changes_nothing_is_not_sought_again() -> None:
    """A producer's clock was ahead: what was sampled goes on being the better lower bound."""
    rig = Rig({"g": 7})
    rig.cluster.first_ms = NOW_MS - 6_000
    rig.rounds()
    asked = len(rig.cluster.asked)
    rig.rounds()

    assert "at_least" == rig.offset("g")["lag_method"]
    assert asked == len(rig.cluster.asked)
