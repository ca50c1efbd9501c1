"""The events of a batch: parsed once, whichever sink asks first."""

import json
from pathlib import Path
from typing import Any

import pytest

from streaming.base.batch_rows import BatchRows, Row
from streaming.board.board import Board
from streaming.sinks.queue import Spool
from streaming.sinks.queue_sink import QueueSink
from tests.streaming.boards import NOW_MS, log_ends

EVENT = {"id": "0-7", "kind": "group_created", "group": "g", "time": NOW_MS, "detail": {}}
ROWS = [Row(0, "event", "g", json.dumps(EVENT).encode(), "group_created"), Row(0, "shard", "", b'{"records":1}')]


def test_events_of_any_rows() -> None:
    """Those alone, in their order; rows that are no batch have theirs too."""
    assert [EVENT] == BatchRows.of(ROWS).events == BatchRows(ROWS).events
    assert [] == BatchRows(ROWS[1:]).events


def test_the_latest_events_are_parsed_without_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sink that needs the last two of three parses two; one that needs all adds the first, and applies as it does."""
    parsed: list[int] = []
    loads = json.loads

    def noted(text: bytes) -> Any:
        found = loads(text)
        parsed.append(len(found))
        return found

    monkeypatch.setattr(json, "loads", noted)
    texts = [json.dumps({**EVENT, "id": f"0-{number}"}).encode() for number in range(3)]
    rows = BatchRows(
        [Row(0, "event", "g", text, "group_created") for text in texts],
        lambda events: [{**event, "severity": "info"} for event in events],
    )

    assert [] == rows.latest_events(0)
    assert ["0-1", "0-2"] == [event["id"] for event in rows.latest_events(2)]
    assert ["0-0", "0-1", "0-2"] == [event["id"] for event in rows.events]
    assert ["0-2"] == [event["id"] for event in rows.latest_events(1)]
    assert {"info"} == {event["severity"] for event in rows.events}
    assert [2, 1] == parsed


def test_board_and_queue_share_what_is_parsed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """One batch, two sinks that need its events, one look into their text."""
    parsed: list[bytes] = []
    loads = json.loads

    def noted(text: bytes) -> Any:
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
    assert 1 == sum(b"group_created" in text for text in parsed)
