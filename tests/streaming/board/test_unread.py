"""Partitions of the offsets topic that cannot be read: groups that may be in them are doubted, and no others."""

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from coordinator_model.gates.verdict import BrokerSettings, Cluster
from coordinator_model.state.shards import offsets_partition
from streaming.base.batch_rows import Row
from streaming.base.name_filter import one_of
from streaming.board import gates
from streaming.board.board import Board
from streaming.board.plan import plan
from streaming.end_offsets.store import EndOffsets
from tests.streaming.board_rows import Shard
from tests.streaming.boards import NOW_MS, OFFSETS_TOPIC, board_of, caught_up, classic_group, described, log_ends

PARTITIONS = 50
SINCE_MS = NOW_MS - 3_000
MAY_UPGRADE = BrokerSettings(consumer_protocol=True, migration_policy="bidirectional", consumer_max_size=100)


def a_name(partition: int, *, but: str = "") -> str:
    """A name that hashes to a partition."""
    names = (f"g-{number}" for number in range(100_000))
    return next(name for name in names if offsets_partition(name, PARTITIONS) == partition and name != but)


READ, UNREAD, MISPLACED = a_name(3), a_name(7), a_name(9)


def some_board() -> tuple[Board, EndOffsets]:
    """A group where its name hashes to in partition 3, likewise in 7, and one in 7 whose name hashes to 9.

    None of these partitions has a leader; they are read as long as nobody says otherwise.
    """
    board = board_of(Shard(3), ends := log_ends(orders=2))
    topic = described(OFFSETS_TOPIC, PARTITIONS)
    leaders = {partition: 1 for partition in range(PARTITIONS) if partition not in (3, 7, 9)}
    ends.set_topics([*ends.topics.values(), replace(topic, leaders=leaders)], [])
    for number, (name, partition) in enumerate([(READ, 3), (UNREAD, 7), (MISPLACED, 7)]):
        shard = Shard(partition)
        classic_group(shard, name, {"m-1": {"orders": [0, 1]}})
        board.apply(number + 1, shard.flush(), NOW_MS)
    return board, ends


def sampled(ends: EndOffsets, at_ms: int, **offsets: int) -> None:
    """Where partitions of the offsets topic end, as `p7=10`."""
    high = {(OFFSETS_TOPIC, int(name[1:])): offset for name, offset in offsets.items()}
    ends.record(at_ms, high, high)


def doubts(board: Board, *names: str) -> dict[str, Any]:
    moment = board.moment()
    found = {name: moment.doubt_of(name) for name in names}
    return {name: None if doubt is None else doubt["partition"] for name, doubt in found.items()}


def verdicts(board: Board, *groups: str) -> set[str]:
    """What both gates say, asked by name or of all groups."""
    asked, moment = Cluster(settings=MAY_UPGRADE, group_configs=(), now_ms=NOW_MS), board.moment()
    upgrade = gates.upgrade(board, groups, asked, moment)
    return {upgrade["verdict"], gates.downgrade(board, groups, asked, moment)["verdict"]}


def readiness(board: Board) -> Mapping[str, str]:
    return {of["group"]: of["readiness"] for of in plan(board, MAY_UPGRADE, one_of((), None), NOW_MS)["groups"]}


def test_a_group_is_doubted_where_it_was_read_from_and_where_it_hashes_to() -> None:
    """Since when is the partition's; of a name that is not known the hash decides; all others are as ever."""
    board, _ = some_board()
    caught_up(board).health.set_unread({7: SINCE_MS}, PARTITIONS)
    other, new = a_name(3, but=READ), a_name(7, but=UNREAD)

    assert {READ: None, UNREAD: 7, MISPLACED: 7, other: None, new: 7} == doubts(
        board, READ, UNREAD, MISPLACED, other, new
    )
    reason = "partition 7 of the offsets topic has no leader"
    expected = {"reason": reason, "since": SINCE_MS, "as_of": SINCE_MS, "partition": 7}
    assert expected == board.moment().doubt_of(UNREAD)

    board, _ = some_board()
    caught_up(board).health.set_unread({9: SINCE_MS}, PARTITIONS)
    assert {READ: None, UNREAD: None, MISPLACED: 9} == doubts(board, READ, UNREAD, MISPLACED)


def test_gates_cannot_tell_of_it_and_of_all_groups() -> None:
    """Asked of another group by name they answer as ever."""
    board, _ = some_board()
    assert {"open"} == verdicts(caught_up(board)) == verdicts(board, UNREAD)

    board.health.set_unread({7: SINCE_MS}, PARTITIONS)

    assert {"cannot_tell"} == verdicts(board) == verdicts(board, UNREAD) == verdicts(board, READ, MISPLACED)
    assert {"open"} == verdicts(board, READ)
    offline = gates.offline(board, board.sums(), NOW_MS, board.moment())
    assert {"cannot_tell"} == {verdict for verdict, _ in offline.values()}
    assert all(("unknown", "partition_unread") in reasons for _, reasons in offline.values())


def test_its_readiness_is_unknown() -> None:
    """And so it is no part of a wave."""
    board, _ = some_board()
    before = readiness(caught_up(board))

    board.health.set_unread({7: SINCE_MS}, PARTITIONS)

    assert {**before, UNREAD: "unknown", MISPLACED: "unknown"} == readiness(board)
    assert "unknown" != before[READ]
    planned = {of["group"]: of for of in plan(board, MAY_UPGRADE, one_of((), None), NOW_MS)["groups"]}
    assert (["partition_unread"], None) == (
        [reason["code"] for reason in planned[UNREAD]["reasons"]],
        planned[UNREAD]["wave"],
    )


def test_at_a_start_it_keeps_the_board_from_being_ready() -> None:
    """Until it is read, as the names in it are not known; the groups of the others are believed meanwhile."""
    board, ends = some_board()
    board.health.set_log_end_at_start({3: 1}, {3: 1}, 8)
    board.health.set_unread(dict.fromkeys((0, 1, 2, 4, 5, 6, 7), SINCE_MS), PARTITIONS)
    board.health.set_positions({3: 1}, {3: 1}, NOW_MS)
    sampled(ends, NOW_MS, p3=1)
    assert 7 == len(board.health.ready()[1])

    rest = dict.fromkeys((0, 1, 2, 4, 5, 6), 0)
    board.health.add_log_end_at_start(rest, rest)
    board.health.set_unread({7: SINCE_MS}, PARTITIONS)

    (missing,) = board.health.ready()[1]
    expected = {"reason": "partition 7 of the offsets topic has no leader", "since": SINCE_MS, "partition": 7}
    assert expected == missing
    assert board.health.standing().doubt is None
    assert {"open"} == verdicts(board, READ)

    board.health.set_unread({}, PARTITIONS)
    assert ["the end of 1 partition of the log is not known"] == [of["reason"] for of in board.health.ready()[1]]

    board.health.add_log_end_at_start({7: 20}, {7: 20})
    board.health.set_positions({7: 19}, {7: 19}, NOW_MS)
    assert ["the monitor is still reading the log"] == [of["reason"] for of in board.health.ready()[1]]

    board.health.set_positions({7: 20}, {7: 20}, NOW_MS)
    assert board.health.ready() == (True, [])
    assert {UNREAD: None} == doubts(board, UNREAD)


@pytest.mark.parametrize(
    ("seen", "ready"),
    [
        ([(1_000, 12), (30_999, 12)], False),
        ([(1_000, 12), (31_000, 12)], True),
        ([(1_000, 9), (16_000, 12), (31_000, 12)], True),
        ([(1_000, 12), (16_000, 20), (31_000, 12)], False),
        ([(1_000, 12), (31_000, 14)], False),
    ],
)
def test_what_a_partition_lost_while_it_was_to_be_read_is_not_waited_for(
    seen: list[tuple[int, int]], ready: bool
) -> None:
    """Once its leader has said for half a minute that it ends before; what is there still has to be read."""
    board, ends = some_board()
    board.health.set_log_end_at_start({3: 1, 7: 20}, {3: 1, 7: 20})
    sampled(ends, NOW_MS, p3=1)
    board.health.set_positions({3: 1, 7: 12}, {3: 1, 7: 12}, NOW_MS)

    for at_ms, end in seen:
        board.health.add_log_end_at_start({3: 1, 7: end}, {3: 1, 7: end}, {3: at_ms, 7: at_ms})
    sampled(ends, int(time.time() * 1_000) + 60_000, p3=1)

    assert ready == board.health.ready()[0]


def test_an_end_from_before_the_start_says_nothing_of_a_tail() -> None:
    """It may be what a former run left, and the leader does not answer."""
    board, _ = some_board()
    board.health.set_log_end_at_start({3: 1, 7: 20}, {3: 1, 7: 20})
    board.health.set_positions({3: 1, 7: 12}, {3: 1, 7: 12}, NOW_MS)

    for _ in range(2):
        board.health.add_log_end_at_start({3: 1, 7: 12}, {3: 1, 7: 12})

    assert ["the monitor is still reading the log"] == [of["reason"] for of in board.health.ready()[1]]


def test_a_leader_that_is_lost_while_the_log_is_read_holds_up_its_own_groups_alone() -> None:
    """What it has left to read is not counted among what the others have."""
    board, ends = some_board()
    board.health.set_log_end_at_start({3: 1, 7: 20}, {3: 1, 7: 20})
    board.health.set_positions({3: 1}, {3: 1}, NOW_MS)
    sampled(ends, NOW_MS, p3=1, p7=20)
    assert {"7": 20} == board.health.ready()[1][0]["partitions"]

    board.health.set_unread({7: SINCE_MS}, PARTITIONS)
    assert [7] == [of["partition"] for of in board.health.ready()[1]]
    assert ({"open"}, {"cannot_tell"}) == (verdicts(board, READ), verdicts(board, UNREAD))


def test_once_ready_it_stays_ready() -> None:
    """With the number; and a partition that has a leader, and is not read yet, is no partition without one."""
    board, ends = some_board()
    caught_up(board).health.set_unread({7: SINCE_MS}, PARTITIONS)
    assert (True, []) == board.health.ready()
    assert (7,) == board.health.standing().unread.without_leader

    ends.set_topics([described(OFFSETS_TOPIC, PARTITIONS)], [])
    assert ((), {UNREAD: 7}) == (board.health.standing().unread.without_leader, doubts(board, UNREAD))
    assert "is not read to its end" in str(board.moment().doubt_of(UNREAD))

    board.health.set_unread({}, PARTITIONS)
    assert {UNREAD: None} == doubts(board, UNREAD)
    assert {"open"} == verdicts(board)


def test_what_waits_there_is_no_standstill() -> None:
    """The other partitions move; records that wait in them still are one."""
    board, ends = some_board()
    board.health.expect_batches(one_reader=False)
    board.health.set_positions({3: 10, 7: 10}, {3: 10, 7: 10}, NOW_MS)
    sampled(ends, NOW_MS, p3=10, p7=99)
    assert 89 == board.health.waiting()

    board.health.set_unread({7: SINCE_MS}, PARTITIONS)
    assert 0 == board.health.waiting()

    sampled(ends, NOW_MS, p3=12, p7=99)
    assert 2 == board.health.waiting()


def test_doubted_groups_follow_what_changes() -> None:
    """Groups that come and go, and partitions that do."""
    board, _ = some_board()
    caught_up(board)
    new = a_name(7, but=UNREAD)
    assert {} == board.doubted(board.moment())

    board.health.set_unread({7: SINCE_MS}, PARTITIONS)
    assert {UNREAD: 7, MISPLACED: 7} == board.doubted(board.moment())

    shard = Shard(7)
    classic_group(shard, new, {"m-1": {"orders": [0, 1]}})
    board.apply(9, [*shard.flush(), Row(7, "group_deleted", UNREAD)], NOW_MS)
    assert {new: 7, MISPLACED: 7} == board.doubted(board.moment())

    board.health.set_unread({7: SINCE_MS, 9: SINCE_MS, 3: SINCE_MS}, PARTITIONS)
    assert {new: 7, MISPLACED: 7, READ: 3} == board.doubted(board.moment())
