"""Events as a collector gets them: out of the durable queue, each once it answers, and found by their attributes."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from streaming.board.board import Board
from streaming.config.loading import Config, load
from streaming.end_offsets.store import EndOffsets
from streaming.otlp import events_export
from streaming.otlp.connection import ExportError
from streaming.sinks.outputs import Outputs
from streaming.sinks.queue import Spooled
from tests.streaming.otlp.collector import Collector, plain, value_of
from tests.streaming.sinks.test_topic_format import RECORDINGS, board_of

EVENT: Final = {
    "id": "0-17-1",
    "time": 1_700_000_000_250,
    "group": "g",
    "kind": "member_fenced",
    "severity": "warning",
    "partition": 3,
    "offset": 17,
    "inferred": False,
    "detail": {"member_id": "m"},
}


@pytest.fixture
def collector() -> Iterator[Collector]:
    with Collector() as collector:
        yield collector


def configured(collector: Collector, directory: Path) -> Config:
    return load(None, {}, {"otlp.endpoint": collector.url, "state.dir": str(directory), "cluster.name": "prod"})


def entries(*events: dict[str, Any]) -> list[Spooled]:
    return [Spooled(number, {"kind": "event", "event": event}) for number, event in enumerate(events)]


def test_an_event_is_a_record_that_is_found_by_its_attributes(collector: Collector, tmp_path: Path) -> None:
    """Its JSON, as on the topic, is the body; time, severity and kind are OTLP's own."""
    (reader,) = events_export.readers(configured(collector, tmp_path), Board(EndOffsets()))
    assert 0 == reader.deliver(entries(EVENT))
    reader.close()
    (record,) = collector.records

    assert {**EVENT, "cluster": "prod"} == json.loads(record.body.string_value)
    assert (1_700_000_000_250_000_000, 13, "warning") == (
        record.time_unix_nano,
        record.severity_number,
        record.severity_text,
    )
    assert "group-monitor.member_fenced" == record.event_name
    names = ("id", "group", "kind", "partition", "offset", "inferred")
    assert {"cluster": "prod", **{name: EVENT[name] for name in names}} == plain(record.attributes)


def test_every_kind_of_event_can_be_sent(collector: Collector, tmp_path: Path) -> None:
    """Of real logs; what they hold is in the bodies."""
    board = board_of(RECORDINGS[0])
    events = [dict(event) for event in board.latest_events(10_000)]
    (reader,) = events_export.readers(configured(collector, tmp_path), board)
    assert 0 == reader.deliver(entries(*events))
    reader.close()

    assert len(events) > 50
    assert [{**event, "cluster": "prod"} for event in events] == [
        json.loads(value_of(record.body)) for record in collector.records
    ]


def test_hostile_names_are_sent_as_far_as_text_can_have_them(collector: Collector, tmp_path: Path) -> None:
    """Half a surrogate pair is spelt out in an attribute; the body has it as the topic does."""
    (reader,) = events_export.readers(configured(collector, tmp_path), Board(EndOffsets()))
    reader.deliver(entries({**EVENT, "group": "a\udcff\x00<b>"}))
    reader.close()
    (record,) = collector.records

    assert "a\\udcff\x00<b>" == plain(record.attributes)["group"]
    assert "a\udcff\x00<b>" == json.loads(record.body.string_value)["group"]


def test_what_fails_is_raised_and_what_is_refused_for_good_is_counted(collector: Collector, tmp_path: Path) -> None:
    """The queue gives the first again; the others it counts."""
    (reader,) = events_export.readers(configured(collector, tmp_path), Board(EndOffsets()))
    collector.status = 401
    with pytest.raises(ExportError, match=r"^otlp\.headers: found .*HTTP 401"):
        reader.deliver(entries(EVENT))
    collector.status = 413
    assert 2 == reader.deliver(entries(EVENT, EVENT))
    collector.status, collector.rejects = 200, 1
    assert 1 == reader.deliver(entries(EVENT, EVENT))
    reader.close()

    assert 2 == len(collector.records)


def test_events_wait_for_a_collector_that_is_away(collector: Collector, tmp_path: Path) -> None:
    """On the disk, in order; each arrives, none twice where none was refused midway."""
    board = Board(EndOffsets())
    board.load([])
    config = configured(collector, tmp_path)
    outputs = Outputs(config, events_export.readers(config, board), board, source=lambda: "q", clock_ms=lambda: 0)
    collector.status = 404
    outputs.start()
    try:
        outputs.add_events([{**EVENT, "id": str(number)} for number in range(5)])
        _until(lambda: outputs.states()[0].failure is not None)
        (state,) = outputs.states()
        assert (5, 0, "otlp-events") == (state.waiting, state.delivered, state.name)
        collector.status = 200
        _until(lambda: outputs.states()[0].delivered == 5)
    finally:
        outputs.stop()

    assert [str(number) for number in range(5)] == [plain(of.attributes)["id"] for of in collector.records]


def test_nothing_is_exported_unless_it_is_asked_for(tmp_path: Path) -> None:
    """No endpoint, or no events: no reader, so no queue for them."""
    board = Board(EndOffsets())

    assert [] == events_export.readers(load(None, {}), board)
    assert [] == events_export.readers(load(None, {}, {"otlp.endpoint": "http://c", "otlp.events": False}), board)


def _until(holds: Any, seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)
