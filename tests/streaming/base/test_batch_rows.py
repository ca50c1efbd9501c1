"""The events of a batch: parsed once, whoever of the sinks asks first."""

import json
from pathlib import Path
from typing import Any

import pytest

from streaming.base.batch_rows import BatchRows, events_of
from streaming.board.board import Board
from streaming.query.schemas import OutputRow
from streaming.sinks.queue import Spool
from streaming.sinks.queue_sink import QueueSink
from tests.streaming.boards import NOW_MS, log_ends

EVENT = {"id": "0-7", "kind": "group_created", "group": "g", "time": NOW_MS, "detail": {}}
ROWS = [OutputRow(0, "event", "g", json.dumps(EVENT)), OutputRow(0, "shard", "", '{"records":1}')]


def test_events_of_any_rows() -> None:
    """Those alone, in their order; rows that are no batch have theirs too."""
    assert [EVENT] == events_of(ROWS) == events_of(BatchRows(ROWS))
    assert [] == events_of(BatchRows(ROWS[1:]))


def test_board_and_queue_share_what_is_parsed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """One batch, two sinks that need its events, one look into their text."""
    parsed: list[str] = []
    loads = json.loads

    def noted(text: str) -> Any:
        parsed.append(text)
        return loads(text)

    monkeypatch.setattr(json, "loads", noted)
    board = Board(log_ends(orders=1))
    spool = Spool(tmp_path, ["one"], max_bytes=1_000_000)
    queue = QueueSink(spool, board, lambda: "query", interval_ms=None, clock_ms=lambda: NOW_MS)
    rows = BatchRows(ROWS[:1])
    for sink in (board, queue):
        sink.apply(0, rows, NOW_MS)

    assert [EVENT] == board.latest_events(9)
    assert 1 == sum("group_created" in text for text in parsed)
