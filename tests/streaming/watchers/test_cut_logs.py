"""Logs that were cut off before the monitor began: the leader epochs of commits tell, once the brokers were asked."""

import random
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace

import pytest
from kafka.errors import (
    FencedLeaderEpochError,
    KafkaConnectionError,
    KafkaError,
    NotLeaderForPartitionError,
    TopicAuthorizationFailedError,
)
from structlog.testing import capture_logs

from lab import builders
from streaming.board import group_answer
from streaming.board.board import Board
from streaming.end_offsets.store import EndOffsets, Topic, TopicPartition
from streaming.kafka.leader_epochs import NOT_KNOWN, LeaderEpochEnd, LeaderEpochs
from streaming.watchers.cut_logs import CutLogs, Epoch
from tests.streaming.board_rows import Shard
from tests.streaming.boards import NOW_MS, THEN_MS, board_of, sample
from tests.streaming.fake_cluster import FakeCluster
from tests.streaming.kafka.fake_brokers import FakeBrokers, brokers

__all__ = ["brokers"]

NOW_EPOCH = 9


@dataclass
class FakeEpochs(FakeCluster[Epoch]):
    """Epoch → where it ended, of those that a broker still knows."""

    ended: dict[int, int] = field(default_factory=dict)
    moved: bool = False

    def ends(self, asked: Collection[Epoch], leaders: Mapping[TopicPartition, int], /) -> dict[Epoch, LeaderEpochEnd]:
        self.note(*asked)
        if self.moved:
            return {}
        return {
            of: LeaderEpochEnd(of[2], self.ended[of[2]]) if of[2] in self.ended else NOT_KNOWN
            for of in asked
            if of[:2] in leaders
        }


class Rig:
    """One partition whose log ends at 200 under the ninth leader, and commits of (offset, leader epoch)."""

    def __init__(self, commits: Mapping[str, tuple[int, int]], ended: Mapping[int, int]) -> None:
        self.ends = EndOffsets()
        self.lead(NOW_EPOCH)
        sample(self.ends, NOW_MS - 5_000, "t", 10)
        sample(self.ends, NOW_MS, "t", 200)
        shard = Shard()
        for name, (offset, epoch) in commits.items():
            shard.pending.append((THEN_MS, *builders.offset_commit(name, "t", 0, offset, leader_epoch=epoch)))
        self.board: Board = board_of(shard, self.ends)
        self.cluster = FakeEpochs(ended=dict(ended))
        self.thread = CutLogs(
            self.ends, lambda: self.cluster, lambda: self.board.shown.groups, lambda: True, lambda: NOW_MS
        )

    def lead(self, epoch: int) -> None:
        topic = Topic(builders.topic_id("t"), "t", 1, {0: 1}, {0: epoch})
        self.ends.set_topics([topic], ["t"], NOW_MS)

    def lag(self, name: str) -> tuple[object, object]:
        view = group_answer.view(self.board, name, NOW_MS)
        assert view is not None
        return view["offsets"][0]["lag"], view["offsets"][0]["lag_method"]


@pytest.mark.parametrize("seed", range(20))
def test_commit_beyond_the_end_of_its_epoch_counts_from_there(seed: int) -> None:
    """The log has grown beyond it again: nothing else shows that what the group had read is gone."""
    chance = random.Random(seed)
    end = chance.randint(20, 100)
    offset, epoch = end + chance.randint(1, 90), chance.randint(0, NOW_EPOCH - 1)
    rig = Rig({"g": (offset, epoch)}, {epoch: end})
    before = rig.lag("g")
    rig.thread.check()

    assert (200 - offset, "interpolated") == before
    assert (200 - end, "truncated") == rig.lag("g")


@pytest.mark.parametrize("seed", range(20))
def test_commit_within_its_epoch_is_as_any_other(seed: int) -> None:
    """Leaders come and go; each epoch is asked about once."""
    chance = random.Random(seed)
    end = chance.randint(20, 150)
    offset, epoch = chance.randint(11, end), chance.randint(0, NOW_EPOCH - 1)
    rig = Rig({"g": (offset, epoch)}, {epoch: end})
    rig.thread.check()
    rig.thread.check()

    assert (200 - offset, "interpolated") == rig.lag("g")
    assert [("t", 0, epoch)] == rig.cluster.asked


@pytest.mark.parametrize("epoch", [NOW_EPOCH, NOW_EPOCH + 1, -1])
def test_nobody_is_asked_about_commits_of_the_leader_there_is_or_of_none(epoch: int) -> None:
    """Nothing can have been cut off since, and without an epoch there is nothing to ask."""
    rig = Rig({"g": (50, epoch)}, {})
    rig.thread.check()

    assert [] == rig.cluster.asked
    assert (150, "interpolated") == rig.lag("g")


def test_groups_of_one_epoch_share_the_answer_each_by_its_offset() -> None:
    """What is within stays, what is beyond counts from the end of the epoch."""
    rig = Rig({"within": (60, 4), "beyond": (90, 4), "later": (90, 6)}, {4: 80, 6: 120})
    rig.thread.check()

    assert (140, "interpolated") == rig.lag("within")
    assert (120, "truncated") == rig.lag("beyond")
    assert (110, "interpolated") == rig.lag("later")


def test_new_leader_is_asked_again() -> None:
    """The answers were the former one's."""
    rig = Rig({"g": (90, 4)}, {4: 120})
    rig.thread.check()
    rig.cluster.ended[4] = 70
    rig.lead(NOW_EPOCH + 1)
    rig.thread.check()

    assert (130, "truncated") == rig.lag("g")


def test_leader_that_moved_is_asked_where_it_is() -> None:
    """The topic is described, and the same epoch asked about once more."""
    rig = Rig({"g": (90, 4)}, {4: 70})
    rig.cluster.moved = True
    rig.thread.check()
    doubted = rig.ends.take_doubt()
    rig.cluster.moved = False
    rig.thread.check()

    assert (True, False) == (doubted, rig.ends.take_doubt())
    assert (130, "truncated") == rig.lag("g")


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (None, {("t", 0, 4): LeaderEpochEnd(4, 70)}),
        (FencedLeaderEpochError, {}),
        (NotLeaderForPartitionError, {}),
        (TopicAuthorizationFailedError, {("t", 0, 4): NOT_KNOWN}),
    ],
    ids=["answered", "fenced", "led elsewhere", "not permitted"],
)
def test_what_a_broker_answers(
    brokers: FakeBrokers,
    error: type[KafkaError] | None,
    said: Mapping[Epoch, LeaderEpochEnd],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Not here is no answer; a refusal is one."""
    of = SimpleNamespace(partition=0, error_code=0 if error is None else error.errno, leader_epoch=4, end_offset=70)

    async def answer(request: object, node_id: int) -> object:
        return SimpleNamespace(topics=[SimpleNamespace(topic="t", partitions=[of])])

    monkeypatch.setattr(brokers, "send", answer)

    assert said == LeaderEpochs({}).ends([("t", 0, 4)], {("t", 0): 1})


def test_brokers_that_are_away_or_do_not_say_change_nothing() -> None:
    """Away, they are asked again, which is logged once and when it is over; who does not say is let be."""
    rig = Rig({"g": (90, 4)}, {})
    with capture_logs() as lines:
        rig.cluster.down = KafkaConnectionError("nobody there")
        rig.thread.check()
        rig.thread.check()
        rig.cluster.down = None
        rig.thread.check()
        rig.thread.check()

    assert ["ends_of_epochs_unavailable", "ends_of_epochs_available_again"] == [line["event"] for line in lines]
    assert 3 == len(rig.cluster.asked)
    assert (110, "interpolated") == rig.lag("g")
