"""Memory goes back to the machine once a storm is over, and never during it."""

from typing import Any

import pytest

from streaming.base import gc_tuning
from streaming.base.batch_rows import Row
from streaming.base.resident_memory import GROWN_BYTES
from streaming.board.board import MANY_ROWS, Board
from streaming.monitor.memory_trim import CALM_SECONDS, CLEANED_SECONDS, FORGET_SECONDS, MemoryTrim
from streaming.spark import jvm_lifecycle, planners
from tests.streaming.boards import NOW_MS, log_ends, sample


class Rig:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        ends = log_ends(orders=1)
        sample(ends, NOW_MS, "orders", 1)
        self.board = Board(ends)
        self.now = 100.0
        self.trimmed: list[float] = []
        self.collected: list[float] = []
        spark: Any = None
        monkeypatch.setattr(gc_tuning, "thaw", lambda: self.trimmed.append(self.now))
        self.ended: list[float] = []
        """When planners that no query needs would be ended."""
        monkeypatch.setattr(planners, "end_unused", lambda _: self.ended.append(self.now))
        monkeypatch.setattr(jvm_lifecycle, "give_back", lambda _: self.collected.append(self.now))
        self.forgot: list[float] = []
        monkeypatch.setattr(jvm_lifecycle, "forget_sockets", lambda _: self.forgot.append(self.now))
        self.resident = 0
        self.trim = MemoryTrim(self.board, spark, lambda: self.now, lambda: self.resident)

    def has_read_the_log(self) -> None:
        self.board.load([])
        self.board.health.set_log_end_at_start({}, {})
        self.board.health.set_positions({}, {}, NOW_MS)

    def pass_seconds(self, seconds: float) -> None:
        self.now += seconds
        self.trim.check()


def test_memory_is_returned_once_after_the_last_large_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each large batch starts the wait again; small ones do not."""
    rig = Rig(monkeypatch)
    rig.has_read_the_log()
    rig.pass_seconds(0)
    rig.pass_seconds(CALM_SECONDS - 1)
    rig.board.apply(1, [Row(0, "unknown kind", "")] * MANY_ROWS, NOW_MS)
    rig.pass_seconds(0)
    rig.pass_seconds(CALM_SECONDS - 1)
    assert [] == rig.trimmed

    rig.pass_seconds(1)
    rig.board.apply(2, [], NOW_MS)
    rig.pass_seconds(CALM_SECONDS)
    rig.pass_seconds(CALM_SECONDS)

    assert [100.0 + 2 * CALM_SECONDS - 1] == rig.trimmed


def test_what_a_start_needed_is_returned_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A log of few groups has no large batch, Spark's planners are the same; a query may need them yet."""
    rig = Rig(monkeypatch)
    rig.pass_seconds(CALM_SECONDS)
    assert [] == rig.ended

    rig.has_read_the_log()
    for _ in range(4):
        rig.pass_seconds(CALM_SECONDS)

    assert [100.0 + 3 * CALM_SECONDS] == rig.trimmed
    assert [*rig.trimmed, 100.0 + 4 * CALM_SECONDS, 100.0 + 5 * CALM_SECONDS] == rig.ended


def test_what_was_needed_beside_large_batches_is_returned_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few groups may have names of many kilobytes, and thousands of connections come and go."""
    rig = Rig(monkeypatch)
    rig.has_read_the_log()
    rig.pass_seconds(0)
    rig.pass_seconds(CALM_SECONDS)
    of_start = [*rig.trimmed]

    rig.resident += 2 * GROWN_BYTES
    rig.pass_seconds(1)
    rig.pass_seconds(CALM_SECONDS)
    rig.pass_seconds(CALM_SECONDS)

    assert [*of_start, 100.0 + 2 * CALM_SECONDS + 1] == rig.trimmed


def test_the_jvm_collects_again_what_the_first_collection_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark's cleaner needs a moment to drop broadcasts that nothing refers to; its memory of batches is a minute's."""
    rig = Rig(monkeypatch)
    rig.has_read_the_log()
    rig.board.apply(1, [Row(0, "unknown kind", "")] * MANY_ROWS, NOW_MS)
    rig.pass_seconds(0)
    rig.pass_seconds(CALM_SECONDS)
    soon, later = CLEANED_SECONDS
    rig.pass_seconds(soon - 1)
    rig.pass_seconds(1)
    rig.pass_seconds(later - soon - 1)
    rig.pass_seconds(1)
    rig.pass_seconds(later)

    first = 100.0 + CALM_SECONDS
    assert [first] == rig.trimmed
    assert [first, first + soon, first + later] == rig.collected


def test_nothing_is_returned_while_the_log_is_caught_up_with(monkeypatch: pytest.MonkeyPatch) -> None:
    """The next large batch is about to come."""
    rig = Rig(monkeypatch)
    rig.board.load([])
    for _ in range(5):
        rig.pass_seconds(CALM_SECONDS)

    assert [] == rig.trimmed


def test_sockets_of_micro_batches_are_forgotten_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether the log is read to its end or not: their paths come with each micro-batch."""
    rig = Rig(monkeypatch)
    rig.pass_seconds(FORGET_SECONDS - 1)
    assert [] == rig.forgot

    for seconds in (1, 1, FORGET_SECONDS - 1):
        rig.pass_seconds(seconds)

    assert [100.0 + FORGET_SECONDS, 100.0 + 2 * FORGET_SECONDS] == rig.forgot
