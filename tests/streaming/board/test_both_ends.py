"""Lag to both ends, and of logs that were cut off: the same in the API, in columns for metrics, on the page."""

import random
from typing import Any

import pytest

from lab import builders
from lab.coordinator_events import share_join
from streaming.board import group_answer
from streaming.board.board import Board
from streaming.end_offsets.store import EndOffsets, Topic
from streaming.web.overview import Overview
from tests.streaming.board_rows import Shard
from tests.streaming.boards import NOW_MS, THEN_MS, board_of, lags_of, log_ends, sample


def with_commits(ends: EndOffsets, *offsets: int, leader_epoch: int = -1, timestamp: int = THEN_MS) -> Board:
    """A group that committed these offsets, by partition."""
    shard = Shard()
    for partition, offset in enumerate(offsets):
        record = builders.offset_commit("g", "t", partition, offset, leader_epoch=leader_epoch, timestamp=timestamp)
        shard.pending.append((THEN_MS, *record))
    return board_of(shard, ends)


def shown(board: Board, now_ms: int = NOW_MS) -> dict[str, Any]:
    view = group_answer.view(board, "g", now_ms)
    assert view is not None
    return view


@pytest.mark.parametrize("seed", range(20))
def test_api_columns_and_rows_say_the_same_of_both_ends(seed: int) -> None:
    """With transactions open on some partitions, and on none."""
    chance = random.Random(seed)
    ends = log_ends(t=4)
    high = [chance.randint(50, 100) for _ in range(4)]
    stable = {number: chance.randint(20, high[number]) for number in chance.sample(range(4), chance.randint(0, 4))}
    sample(ends, NOW_MS - 9_000, "t", 0, 0, 0, 0)
    sample(ends, NOW_MS, "t", *high, stable=stable)
    board = with_commits(ends, *(chance.randint(0, 50) for _ in range(4)))
    view = shown(board)
    columns = lags_of(board.shown.groups["g"], ends, NOW_MS)
    (row,) = Overview(board, lambda: NOW_MS).rows()[1]

    assert columns.records.tolist() == [of["lag"] for of in view["offsets"]]
    assert columns.stable.tolist() == [of["stable_lag"] for of in view["offsets"]]
    assert [high[of["partition"]] - of["offset"] for of in view["offsets"]] == columns.records.tolist()
    for of in view["offsets"]:
        assert max(0, stable.get(of["partition"], high[of["partition"]]) - of["offset"]) == of["stable_lag"]
    assert (view["lag"], view["max_lag_seconds_at_least"]) == (row["lag"], row["max_lag_seconds_at_least"])


def test_reader_that_got_as_far_as_it_can_is_not_caught_up_while_a_transaction_is_open() -> None:
    """Its lag is what the transaction holds back, its stable lag nothing; the two ends stand beside each other."""
    ends = log_ends(t=1)
    sample(ends, NOW_MS - 2_000, "t", 100)
    sample(ends, NOW_MS, "t", 130, stable={0: 100})
    (of,) = shown(with_commits(ends, 100))["offsets"]

    assert (30, 0, "interpolated") == (of["lag"], of["stable_lag"], of["lag_method"])
    assert (130, 100, 2.0) == (of["log_end_offset"], of["last_stable_offset"], of["lag_seconds"])


def cut(*after: int) -> EndOffsets:
    """A log of 100 records, cut off at 50 by a new leader, which then had these ends."""
    ends = EndOffsets()

    def describe(epoch: int) -> None:
        ends.set_topics([Topic(builders.topic_id("t"), "t", 1, {0: 1}, {0: epoch})], ["t"], NOW_MS)

    describe(3)
    sample(ends, NOW_MS - 8_000, "t", 90)
    sample(ends, NOW_MS - 7_000, "t", 100)
    sample(ends, NOW_MS - 6_000, "t", 50)
    describe(4)
    for number, end in enumerate(after):
        sample(ends, NOW_MS - 5_000 + number * 1_000, "t", end)
    return ends


@pytest.mark.parametrize("after", [(), (60,), (100,), (130,), (100, 200)])
@pytest.mark.parametrize("offset", [51, 80, 100])
def test_commit_above_a_cut_counts_from_it(after: tuple[int, ...], offset: int) -> None:
    """However far the log has grown again since: the consumer goes on where the logs part."""
    board = with_commits(cut(*after), offset, leader_epoch=3)
    (of,) = shown(board)["offsets"]
    columns = lags_of(board.shown.groups["g"], board.ends, NOW_MS)
    end = after[-1] if after else 50

    assert ("truncated", end - 50) == (of["lag_method"], of["lag"])
    assert [end - 50] == columns.records.tolist()


@pytest.mark.parametrize(("offset", "leader_epoch"), [(50, 3), (20, 3), (80, 4), (100, 5)])
def test_commit_below_a_cut_or_after_it_is_as_any_other(offset: int, leader_epoch: int) -> None:
    """Its records are the log's."""
    (of,) = shown(with_commits(cut(130), offset, leader_epoch=leader_epoch))["offsets"]

    assert 130 - offset == of["lag"]
    assert "truncated" != of["lag_method"]


def test_log_that_never_went_back_has_no_cut() -> None:
    """Leaders come and go."""
    ends = log_ends(t=1)
    for second, end in enumerate((10, 10, 20, 35)):
        sample(ends, NOW_MS - 9_000 + second * 1_000, "t", end)
    (of,) = shown(with_commits(ends, 15, leader_epoch=1))["offsets"]

    assert (20, "interpolated") == (of["lag"], of["lag_method"])


def test_lag_of_share_groups_is_left_out_by_name() -> None:
    """No figure, and why; of no other group is it said."""
    shard = Shard()
    shard.pending += [(THEN_MS, *record) for record in share_join("s", "m", epoch=2, targets={"m": {"t": [0]}})]
    shard.pending.append((THEN_MS, *builders.offset_commit("g", "t", 0, 5)))
    board = board_of(shard, log_ends(t=1))
    share = group_answer.view(board, "s", NOW_MS)

    assert share is not None
    assert share["lag"] is None
    assert "was not looked for yet" in share["lag_left_out"]
    assert "lag_left_out" not in shown(board)
