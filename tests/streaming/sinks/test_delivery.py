"""Entries leave the spool at least once, in order, however often a delivery fails; nothing waits for them."""

import errno
import itertools
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from structlog.testing import capture_logs

from lab.monitor_process import until
from streaming.base.output_status import SinkState
from streaming.board.board import Board
from streaming.config.sections import Config, StateSection
from streaming.end_offsets.store import EndOffsets
from streaming.sinks import delivery
from streaming.sinks.delivery import Delivery
from streaming.sinks.outputs import SPOOL, Outputs, SpoolReader
from streaming.sinks.queue import Spool, Spooled
from streaming.web.api_answers import Api
from tests.streaming.sinks.test_queue import event

PATIENCE_SECONDS = 20


class Taker:
    """Takes entries, or fails as long as it is set to."""

    def __init__(self) -> None:
        self.ids: list[str] = []
        self.fails = False
        self.closed = threading.Event()

    def __call__(self, entries: Sequence[Spooled]) -> None:
        if self.fails:
            raise OSError("nobody there\nand more of it")
        self.ids += [entry["event"]["id"] for _, entry in entries]


def append(spool: Spool, *numbers: int) -> None:
    spool.append("query", numbers[0], [event(number) for number in numbers])


def test_what_is_appended_arrives_and_what_failed_is_tried_again(tmp_path: Path, monkeypatch: Any) -> None:
    """The failure is logged once, shown while it lasts, and the end of it is logged."""
    monkeypatch.setattr(delivery, "RETRY_SECONDS", (0.01,))
    spool, taker = Spool(tmp_path, ["one"], clock_ms=lambda: 5_000), Taker()
    taker.fails = True
    append(spool, 0, 1)
    delivers = Delivery(spool, "one", taker)
    with capture_logs() as logs:
        delivers.start()
        until(lambda: delivers.state().failure is not None, PATIENCE_SECONDS, "it does not fail")
        state = delivers.state()
        assert (2, 5_000, 0, "nobody there") == (state.waiting, state.oldest_ms, state.delivered, state.failure)
        taker.fails = False
        until(lambda: delivers.state().failure is None, PATIENCE_SECONDS, "it does not get on")
        append(spool, 2)
        until(lambda: delivers.state().delivered == 3, PATIENCE_SECONDS, "nothing more arrives")
        delivers.stop()

    assert (["id-0", "id-1", "id-2"], 0) == (taker.ids, delivers.state().waiting)
    assert ["delivery_failed", "delivers_again"] == [line["event"] for line in logs]


def test_failure_at_another_file_each_time_is_logged_once(tmp_path: Path, monkeypatch: Any) -> None:
    """A disk that is full fails the file of every attempt, whatever it is called."""
    monkeypatch.setattr(delivery, "RETRY_SECONDS", (0.01,))
    spool, attempts = Spool(tmp_path, ["one"], clock_ms=lambda: 5_000), itertools.count()
    append(spool, 0)

    def fail(_: Sequence[Spooled]) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", f"file-{next(attempts)}")

    delivers = Delivery(spool, "one", fail)
    with capture_logs() as logs:
        delivers.start()
        until(lambda: next(attempts) > 5, PATIENCE_SECONDS, "it does not try again")
        delivers.stop()

    assert ["No space left on device"] == [line["reason"] for line in logs]


def outlets(directory: Path, *readers: SpoolReader) -> Outputs:
    config = Config(state=StateSection(dir=directory))
    return Outputs(config, readers, Board(EndOffsets()), source=lambda: "query", clock_ms=lambda: 1)


def test_without_a_reader_nothing_is_written(tmp_path: Path) -> None:
    """No spool, no sink in the batch, nowhere to tell events to."""
    of = outlets(tmp_path)
    of.start()
    of.add_events([{"id": "1", "group": "g"}])
    of.stop()

    assert ([], [], []) == (list(of.sinks), of.states(), list(tmp_path.iterdir()))


def test_ready_says_how_sinks_are_doing() -> None:
    """What waits, and why, without being a reason not to be ready; nothing where there is no sink."""
    board = Board(EndOffsets())
    assert "sinks" not in Api(board, "prod").ready()
    state = SinkState(name="one", waiting=2, oldest_ms=5, dropped=0, delivered=7, failure="gone")
    board.health.show_sinks(lambda: [state])

    assert [{"name": "one", "waiting": 2, "oldest_ms": 5, "dropped": 0, "delivered": 7, "failure": "gone"}] == Api(
        board, "prod"
    ).ready()["sinks"]


def test_readers_are_fed_each_for_itself_and_closed_at_the_end(tmp_path: Path) -> None:
    """One that is gone holds up no one; what it did not take waits for the next run."""
    here, gone = Taker(), Taker()
    gone.fails = True
    readers = [
        SpoolReader(name="here", deliver=here, close=here.closed.set),
        SpoolReader(name="gone", deliver=gone, close=gone.closed.set),
    ]
    of = outlets(tmp_path, *readers)
    of.start()
    of.add_events([{"id": "1", "group": "g"}])
    until(lambda: here.ids == ["1"], PATIENCE_SECONDS, "nothing arrives")
    until(lambda: of.states()[1].failure is not None, PATIENCE_SECONDS, "it does not fail")
    assert [("here", 0), ("gone", 1)] == [(state.name, state.waiting) for state in of.states()]
    of.stop()

    assert here.closed.is_set()
    assert gone.closed.is_set()
    assert (tmp_path / SPOOL).is_dir()
    gone.fails = False
    of = outlets(tmp_path, *readers)
    of.start()
    until(lambda: gone.ids == ["1"], PATIENCE_SECONDS, "what waited does not arrive")
    of.stop()
    assert ["1"] == here.ids
