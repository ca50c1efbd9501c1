"""A stream that stands still is in the log once, whatever its cause, and that it moves again once."""

from typing import Any

import pytest

from streaming.board.board import Board
from streaming.board.readiness import Standstill
from streaming.monitor import standstill_log
from streaming.monitor.standstill_log import StandstillLog
from tests.streaming.boards import NOW_MS, OFFSETS_TOPIC, log_ends, sample


class Said:
    """A logger that remembers."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, dict[str, Any]]] = []

    def warning(self, event: str, **fields: Any) -> None:
        self.lines.append((event, fields))

    info = warning


def test_it_is_said_once_and_its_end_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """After 15 s in which records wait, how many; not of a silent log, nor of a partition that has no leader."""
    monkeypatch.setattr(standstill_log, "_log", said := Said())
    seconds = [0.0]
    board = Board(ends := log_ends(**{OFFSETS_TOPIC: 2}))
    board.load([])
    board.health.expect_batches(one_reader=False, standstill=Standstill(lambda: seconds[0]))
    board.health.set_log_end_at_start({0: 10, 1: 10}, {0: 10, 1: 10})
    board.health.set_positions({0: 10, 1: 10}, {0: 10, 1: 10}, NOW_MS)
    watch = StandstillLog(board)

    def look(at: float) -> None:
        seconds[0] = at
        watch.check()

    sample(ends, NOW_MS, OFFSETS_TOPIC, 10, 10)
    look(100.0)
    board.health.set_unread({1: NOW_MS}, 2)
    sample(ends, NOW_MS, OFFSETS_TOPIC, 10, 99)
    look(200.0)
    assert [] == said.lines

    sample(ends, NOW_MS, OFFSETS_TOPIC, 15, 99)
    look(214.9)
    assert [] == said.lines

    for at in (215.0, 216.0, 260.0):
        look(at)
    assert [("stream_stands_still", {"records": 5, "seconds": 15})] == said.lines

    board.health.observe_batch(0.1)
    for at in (261.0, 262.0):
        look(at)
    assert [("stream_moves_again", {"stood_still_seconds": 60})] == said.lines[1:]
