"""What is done about a stream that makes no progress, by whom, and what is said of it."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from structlog.testing import capture_logs

from streaming.board.board import Board
from streaming.board.stall import Stall
from streaming.end_offsets.store import STALE_AFTER_MS
from streaming.monitor.stall_watch import ANSWER_SECONDS, StallWatch
from tests.streaming.boards import NOW_MS, OFFSETS_TOPIC, described, log_ends, sample

Lines = list[Any]


class Watched:
    """A watch of a board on which records wait, in an hour that a test moves."""

    def __init__(self, *, can_kill: bool = True) -> None:
        self.ends = ends = log_ends(**{OFFSETS_TOPIC: 1})
        self.board = Board(ends)
        self.board.load([])
        self.board.health.expect_batches(one_reader=False)
        self.board.health.set_log_end_at_start({0: 10}, {0: 10})
        self.board.health.set_positions({0: 10}, {0: 10}, NOW_MS)
        sample(ends, NOW_MS, OFFSETS_TOPIC, 15)
        self.can_kill = can_kill
        self.killed: list[str] = []
        self.left: list[int] = []
        self.now, self.now_ms = 0.0, NOW_MS
        self.watch = StallWatch(
            self.board.health,
            Stall(),
            kill=self._kill,
            leave=self.left.append,
            clock=lambda: self.now,
            clock_ms=lambda: self.now_ms,
        )

    def _kill(self, why: str) -> bool:
        self.killed.append(why)
        return self.can_kill

    def asked_after(self, *after: float) -> list[bool]:
        """Whether the query is to be started again, after each of these further seconds."""
        found = []
        for seconds in after:
            self.look(seconds)
            found.append(self.watch.is_asked)
        return found

    def look(self, *after: float) -> None:
        for seconds in after:
            self.now += seconds
            self.watch.check()


@pytest.fixture
def lines() -> Iterator[Lines]:
    with capture_logs() as written:
        yield written


def test_who_runs_the_query_is_asked_to_start_it_again(lines: Lines) -> None:
    """Once, with a line that says why; until it is started, and then it has all the time again."""
    watched = Watched()
    watched.watch.started()

    assert [False, False, True, True, True] == watched.asked_after(0, 299, 1, 1, 1)
    assert [("stream_restarted", 5, 300, 1)] == [
        (line["event"], line["records"], line["seconds"], line["restarts_in_a_row"]) for line in lines
    ]

    watched.watch.ended()
    watched.watch.started()
    assert [False, False] == watched.asked_after(0, 299)
    assert ([], []) == (watched.killed, watched.left)


def test_alive_until_three_starts_changed_nothing(lines: Lines) -> None:
    """Then the board says so, for /healthz; a micro-batch that finishes ends it."""
    watched = Watched()
    reasons = []
    for _ in range(4):
        watched.watch.started()
        watched.look(0, 300)
        reasons.append(watched.board.health.stuck())

    said = "records wait in the log, and 3 starts of the query in a row changed nothing"
    assert [None, None, None, said] == reasons
    assert "stream_stuck" == lines[-1]["event"]

    watched.watch.finished(0.4)
    assert watched.board.health.stuck() is None


def brokers_away(watched: Watched) -> None:
    watched.now_ms += STALE_AFTER_MS


def without_leader(watched: Watched) -> None:
    topic = described(OFFSETS_TOPIC, 1)
    watched.ends.set_topics([replace(topic, leaders={})], [])


def first_catch_up(watched: Watched) -> None:
    watched.board.start_over()
    watched.board.health.set_log_end_at_start({0: 15}, {0: 15})
    watched.board.health.set_positions({0: 10}, {0: 10}, NOW_MS)


@pytest.mark.parametrize("happens", [brokers_away, without_leader, first_catch_up])
def test_alive_however_long_what_is_no_standstill_of_ours_lasts(happens: Callable[[Watched], None]) -> None:
    """Another process would change nothing about it: /healthz says so for hours, and the query is left alone."""
    watched = Watched()
    happens(watched)
    for _ in range(20):
        watched.watch.started()
        assert [False, False, False] == watched.asked_after(0, 300, 3_600)
        assert watched.board.health.stuck() is None

    assert ([], []) == (watched.killed, watched.left)


def test_a_start_that_nobody_makes_is_made_by_another_process(lines: Lines) -> None:
    """Who runs the query waits for the JVM: that is killed, and if it was not for that, the process ends."""
    watched = Watched()
    watched.watch.started()
    watched.look(0, 300, ANSWER_SECONDS - 1)
    assert [] == watched.killed

    watched.look(1)
    assert (1, []) == (len(watched.killed), watched.left)
    assert "stream_hangs" == lines[-1]["event"]

    watched.look(ANSWER_SECONDS - 1)
    assert [] == watched.left
    watched.look(1)
    assert (1, [1]) == (len(watched.killed), watched.left)


def test_a_jvm_that_is_not_ours_ends_with_the_process() -> None:
    """Under spark-submit it is the parent."""
    watched = Watched(can_kill=False)
    watched.watch.started()
    watched.look(0, 300, ANSWER_SECONDS)

    assert [1] == watched.left


def test_a_query_that_failed_is_the_retries_business() -> None:
    """Where the disk is full, say, it is tried again without end."""
    watched = Watched()
    watched.watch.started()
    watched.look(0, 200)
    watched.watch.ended()
    watched.look(10_000, 10_000)

    assert (False, None) == (watched.watch.is_asked, watched.board.health.stuck())
