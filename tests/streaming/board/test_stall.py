"""When a stream that makes no progress is started again, and when that is of no use: each row is what was seen."""

from collections.abc import Callable
from typing import Final

import pytest

from streaming.board.board import Board
from streaming.board.stall import RESTARTS, Stall
from streaming.end_offsets.store import EndOffsets
from tests.streaming.boards import NOW_MS, OFFSETS_TOPIC, described, log_ends, sample

WAITING: Final = 5

Step = Callable[[Stall, float], object]


def looked(waiting: int = WAITING, *, caught_up: bool = True) -> Step:
    return lambda stall, at: stall.look(at, waiting=waiting, caught_up=caught_up)


def finished(seconds: float = 0.4) -> Step:
    return lambda stall, _: stall.finished(seconds)


def started() -> Step:
    return lambda stall, _: stall.started()


def ended() -> Step:
    return lambda stall, _: stall.ended()


# What happened, by second → the seconds at which the query was to be started again.
CASES: Final[dict[str, tuple[list[tuple[float, Step]], list[float]]]] = {
    "nothing finished for five minutes": (
        [(0, started()), (0, looked()), (299, looked()), (300, looked()), (301, looked())],
        [300],
    ),
    "a micro-batch finished in between": (
        [(0, started()), (0, looked()), (200, finished()), (201, looked()), (500, looked()), (501, looked())],
        [501],
    ),
    "ten times the longest so far is more": (
        [(0, started()), (0, finished(90)), (1, finished(1)), (1, looked()), (900, looked()), (901, looked())],
        [901],
    ),
    "ten times the longest so far is less": ([(0, started()), (0, finished(2)), (0, looked()), (300, looked())], [300]),
    "nothing waits": ([(0, started()), (0, looked(0)), (10_000, looked(0))], []),
    "what comes after an hour of silence has not waited for an hour": (
        [(0, started()), (0, looked(0)), (3_600, looked()), (3_899, looked()), (3_900, looked())],
        [3_900],
    ),
    "brokers away, for which nothing waits where leaders answer": (
        [(0, started()), (0, looked()), (200, looked(0)), (2_000, looked(0)), (2_001, looked()), (2_300, looked())],
        [],
    ),
    "brokers back, and still nothing finishes": (
        [(0, started()), (0, looked()), (200, looked(0)), (2_001, looked()), (2_301, looked())],
        [2_301],
    ),
    "a first catch-up": (
        [(0, started()), *((float(at), looked(caught_up=False)) for at in range(0, 20_000, 100))],
        [],
    ),
    "a first catch-up that ended": (
        [
            (0, started()),
            (0, looked(caught_up=False)),
            (900, looked(caught_up=False)),
            (901, looked()),
            (1_200, looked()),
        ],
        [],
    ),
    "the query has ended, and waits to be started again": (
        [(0, started()), (0, looked()), (10, ended()), (400, looked()), (5_000, looked())],
        [],
    ),
    "a start gives all the time again": (
        [
            (0, started()),
            (0, looked()),
            (299, ended()),
            (300, started()),
            (301, looked()),
            (600, looked()),
            (601, looked()),
        ],
        [601],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_when_a_stream_is_started_again(case: str) -> None:
    """Once for each start of the query."""
    steps, expected = CASES[case]
    stall = Stall()
    due = [at for at, step in steps if step(stall, at) is not None]

    assert expected == due
    assert not stall.is_stuck


def test_a_long_pause_between_micro_batches_is_no_standstill() -> None:
    """What is waited for at least is as long as the trigger makes it."""
    stall = Stall(1_200.0)
    stall.started()
    found = [stall.look(at, waiting=WAITING, caught_up=True) for at in (0.0, 1_199.0, 1_200.0)]

    assert [None, None, 1_200.0] == found


def stuck(stall: Stall, restarts: int) -> list[bool]:
    """Whether it is stuck after each of so many times that it was to be started again."""
    found = []
    for number in range(restarts):
        stall.started()
        stall.look(1_000.0 * number, waiting=WAITING, caught_up=True)
        assert stall.look(1_000.0 * number + 300, waiting=WAITING, caught_up=True) is not None
        found.append(stall.is_stuck)
    return found


def test_three_starts_in_a_row_that_change_nothing_are_enough() -> None:
    """The fourth time no micro-batch has finished, only another process may help."""
    assert [False, False, False, True, True] == stuck(Stall(), RESTARTS + 2)


@pytest.mark.parametrize(
    "step",
    [finished(), looked(0), looked(caught_up=False)],
    ids=["a micro-batch", "brokers that are away, or nothing to read", "reading from the beginning"],
)
def test_what_changes_something_ends_that(step: Step) -> None:
    """And begins a new row."""
    stall = Stall()
    stuck(stall, RESTARTS + 1)
    step(stall, 9_000.0)

    assert not stall.is_stuck
    assert [False, False, False, True] == stuck(stall, RESTARTS + 1)


def reading(*, one_reader: bool = False) -> tuple[Board, EndOffsets]:
    """A board that has read two partitions to offset 10, where 15 records came since."""
    board = Board(ends := log_ends(**{OFFSETS_TOPIC: 2}))
    board.load([])
    board.health.expect_batches(one_reader=one_reader)
    board.health.set_log_end_at_start({0: 10, 1: 10}, {0: 10, 1: 10})
    board.health.set_positions({0: 10, 1: 10}, {0: 10, 1: 10}, NOW_MS)
    sample(ends, NOW_MS, OFFSETS_TOPIC, 15, 20)
    return board, ends


@pytest.mark.parametrize("one_reader", [False, True])
def test_what_waits_counts_where_leaders_answer(*, one_reader: bool) -> None:
    """Until half a minute after the last answer: then the brokers are away."""
    board, ends = reading(one_reader=one_reader)

    assert (15, 15, 0) == tuple(board.health.waiting_where_answered(NOW_MS + after) for after in (0, 29_999, 30_000))

    ends.record(NOW_MS + 40_000, {(OFFSETS_TOPIC, 0): 15}, {(OFFSETS_TOPIC, 0): 15})
    assert 5 == board.health.waiting_where_answered(NOW_MS + 40_000)


@pytest.mark.parametrize("one_reader", [False, True])
def test_what_waits_in_a_partition_without_leader_does_not(*, one_reader: bool) -> None:
    """As the brokers describe the topic; nor in one of which it is known that it cannot be read."""
    board, ends = reading(one_reader=one_reader)
    topic = described(OFFSETS_TOPIC, 2)
    ends.set_topics([type(topic)(topic.id, topic.name, 2, {0: 1})], [])
    assert 5 == board.health.waiting_where_answered(NOW_MS)

    board.health.set_unread({0: NOW_MS}, 2)
    assert 0 == board.health.waiting_where_answered(NOW_MS)


def test_nothing_waits_before_the_topic_is_described() -> None:
    """It is not known who leads it."""
    assert 0 == Board(EndOffsets()).health.waiting_where_answered(NOW_MS)


def test_the_log_is_read_once_its_end_is_reached() -> None:
    """As it was at start; and not any more when it is read from the beginning again."""
    board, _ = reading()
    assert board.health.has_read

    board.start_over()
    assert not board.health.has_read
