"""A partition with a batch that cannot be read: its groups are in doubt until their coordinator has spoken."""

import json

from streaming.base.batch_rows import Row
from streaming.board.board import Board
from tests.streaming.board.test_unread import (
    MISPLACED,
    PARTITIONS,
    READ,
    SINCE_MS,
    UNREAD,
    doubts,
    some_board,
    verdicts,
)
from tests.streaming.boards import NOW_MS, caught_up

FIRST, END = 90, 93


def met(*numbers: int, partition: int = 7) -> list[Row]:
    """The row in which a task says that a partition has these batches."""
    batches = [[number, FIRST + number, END + number, SINCE_MS + number] for number in numbers]
    totals = {"unreadable": batches, "unreadable_batches": max(numbers, default=0)}
    return [Row(partition, "shard", "", json.dumps(totals).encode())]


def a_board(*numbers: int) -> Board:
    board, _ = some_board()
    board.health.set_unread({}, PARTITIONS)
    board.apply(9, met(*numbers), NOW_MS)
    return board


def test_it_stays_ready_and_its_groups_are_doubted() -> None:
    """Also at a start: the log is read to its end, and what is in other partitions is as ever."""
    board = caught_up(a_board(1))

    standing = board.health.standing()

    assert (True, [], None) == (standing.ready, standing.missing, standing.doubt)
    assert ((7,), ()) == (standing.unread.unreadable, standing.unread.without_leader)
    assert {READ: None, UNREAD: 7, MISPLACED: 7} == doubts(board, READ, UNREAD, MISPLACED)
    assert {
        "reason": "partition 7 of the offsets topic has a batch that cannot be read (offsets 91 to 93)",
        "since": SINCE_MS + 1,
        "as_of": SINCE_MS + 1,
        "partition": 7,
    } == board.moment().doubt_of(UNREAD)
    assert {"cannot_tell"} == verdicts(board) == verdicts(board, UNREAD)
    assert {"open"} == verdicts(board, READ)


def test_a_new_commit_does_not_end_the_doubt() -> None:
    """Only a coordinator that has answered since; another batch that cannot be read is another doubt."""
    board = caught_up(a_board(1))
    board.apply(10, met(1), NOW_MS)
    assert {UNREAD: 7} == doubts(board, UNREAD)

    board.health.set_agreed({7: 1})
    assert ({UNREAD: None}, ()) == (doubts(board, UNREAD), board.health.standing().unread.unreadable)

    board.apply(11, met(1, 2), NOW_MS)
    assert {UNREAD: 7} == doubts(board, UNREAD)
    assert SINCE_MS + 2 == board.moment().doubt_of(UNREAD)["since"]  # type: ignore[index]  # asserted above


def test_the_doubt_survives_a_restart_and_not_a_rebuild() -> None:
    """It is in what the state holds of the partition; what is read from the beginning meets the batch, or does not."""
    board, _ = some_board()
    board.health.set_unread({}, PARTITIONS)
    board.load(met(1))
    assert {7} == {*board.health.standing().unread.doubts}

    board.health.set_agreed({7: 1})
    board.start_over()
    assert not board.health.standing().unread

    board.apply(1, met(1), NOW_MS)
    assert {7} == {*board.health.standing().unread.doubts}


def test_one_that_lost_its_leader_besides_is_not_read() -> None:
    """At a start that keeps the board from being ready; both are named."""
    board = a_board(1)
    board.health.set_unread({7: SINCE_MS}, PARTITIONS)
    board.health.set_log_end_at_start({}, {})
    board.health.set_positions({}, {}, NOW_MS)
    board.ends.record(NOW_MS, {}, {})

    assert [7] == [of["partition"] for of in board.health.standing().missing]
    unread = board.health.standing().unread

    assert ((7,), (7,)) == (unread.unreadable, unread.without_leader)
    assert "has no leader" in unread.doubts[7]["reason"]
    assert [7] == [of["partition"] for of in unread.missing()]


def test_two_moments_together_doubt_what_either_does() -> None:
    """A partition is read to its end if it is in both."""
    known = a_board(1).health.standing().unread
    lost = a_board(1)
    lost.health.set_unread({7: SINCE_MS, 9: SINCE_MS}, PARTITIONS)

    joined = known.joined(lost.health.standing().unread)

    assert ((7,), [7, 9], [7, 9]) == (joined.unreadable, [*joined.doubts], [of["partition"] for of in joined.missing()])
