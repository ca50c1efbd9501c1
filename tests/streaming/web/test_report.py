"""`/api/v1/report` and `/api/v1/burndown`: what a roll cost, and a migration over time, from a monitor."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode

import pytest

from streaming.history.log_archive import HEADER, rows_of
from streaming.history.queries import History
from streaming.history.store import HistoryStore
from streaming.history.tables import RECORDS, rows
from streaming.metrics.exporter import Exporter
from streaming.recording.file_format import open_recording
from streaming.web.api_answers import Api
from streaming.web.routes import Pages
from tests.streaming.asgi_client import AsgiClient
from tests.streaming.board_rows import Shard
from tests.streaming.boards import CLUSTER, NOW_MS, board_of, caught_up, classic_group
from tests.streaming.history.test_burn_down import kept

HOSTILE: Final = '<img src=x onerror="alert(1)">|`'
RECORDING: Final = Path(__file__).resolve().parents[2] / "recordings" / "4.3.1" / "conversions.ndjson.gz"
ROLLED: Final = "upgraded-and-downgraded-member-by-member"


def client_of(*names: str, history: History | None = None) -> AsgiClient:
    shard = Shard()
    for name in names:
        classic_group(shard, name, {"m": {"t": [0]}})
    board = caught_up(board_of(shard))
    api = Api(board, CLUSTER, history=history, clock_ms=lambda: NOW_MS)
    return AsgiClient(Pages(api, Exporter(board, CLUSTER)).app)


@pytest.fixture
def measured(tmp_path: Path) -> AsgiClient:
    """A monitor whose history keeps the records of a roll up and down again."""
    with open_recording(RECORDING) as recording:
        head, records = recording.header, list(recording)
    (tmp_path / RECORDS.name).mkdir()
    (tmp_path / RECORDS.name / HEADER).write_text(json.dumps(asdict(head)), "utf-8")
    HistoryStore(tmp_path).write(RECORDS, rows_of(records))
    return client_of(ROLLED, history=History(tmp_path))


def test_a_roll_is_measured_from_kept_records(measured: AsgiClient) -> None:
    """As `group-monitor report --dir` does: moved partitions and seconds without an owner."""
    found = measured.get(f"/api/v1/report/{ROLLED}?since=0&until={1 << 42}").json()

    assert {"downgrade": 1, "upgrade": 1} == found["conversions"]
    assert 0 < found["ownerless_seconds"]["max"] <= found["ownerless_seconds"]["total"]


def test_without_records_events_say_what_they_can() -> None:
    """What they do not is named, and not zero."""
    found = client_of("orders").get("/api/v1/report/orders?since=0").json()

    assert found["ownerless_seconds"] is None
    assert any("history.records" in unknown for unknown in found["unknown"])
    assert {"group_created", "member_joined"} <= {event["kind"] for event in found["events"]}


@pytest.mark.parametrize(
    ("form", "media_type", "file"),
    [("markdown", "text/markdown", "roll.md"), ("html", "text/html", "roll.html")],
)
def test_a_report_is_a_file_for_a_ticket(form: str, media_type: str, file: str) -> None:
    """It comes as an attachment, never as a page of ours; names in it are no markup."""
    query = urlencode({"name": HOSTILE, "since": 0, "format": form})
    answer = client_of(HOSTILE).get(f"/api/v1/report/?{query}")

    assert 200 == answer.status_code
    assert answer.headers["content-type"].startswith(media_type)
    assert f'attachment; filename="{file}"' == answer.headers["content-disposition"]
    assert "A classic group appeared" in answer.text
    assert "<img" not in answer.text.replace("\\<img", "")


@pytest.mark.parametrize(
    ("address", "status", "expected"),
    [
        ("/api/v1/report/orders", 400, "since: found nothing, accepted: when the roll began"),
        ("/api/v1/report/orders?since=soon", 400, "since: found 'soon'"),
        ("/api/v1/report/orders?since=2&until=1", 400, "until: found a time not after since"),
        ("/api/v1/report/orders?since=0&format=pdf", 400, "format: found 'pdf', accepted: json, markdown, html"),
        ("/api/v1/report/nobody?since=0", 404, "group: found 'nobody'"),
        ("/api/v1/burndown", 501, "history: found none kept"),
        (f"/api/v1/burndown?since={NOW_MS + 1}", 400, "since: found"),
    ],
)
def test_what_cannot_be_answered_says_why(address: str, status: int, expected: str) -> None:
    """The parameter, what was found and what is accepted."""
    answer = client_of("orders").get(address)

    assert (status, True) == (answer.status_code, answer.json()["error"].startswith(expected))


def test_a_burn_down_has_figures_of_the_chosen_groups(tmp_path: Path) -> None:
    """Of those that a pattern matches, until now."""
    store = HistoryStore(tmp_path)
    entries = [(0, kept("orders", NOW_MS - 60_000, "classic")), (1, kept("audit", NOW_MS - 60_000, "upgraded", 1, 1))]
    for table, ordered in rows(entries).items():
        store.write(table, ordered)
    store.set_complete(NOW_MS - 60_000)
    client = client_of("orders", "audit", history=History(tmp_path))

    def last(address: str) -> list[Any]:
        found = client.get(address).json()
        return [found["times"][-1], found["groups"]["classic"][-1], found["groups"]["consumer"][-1]]

    assert [NOW_MS, 1, 1] == last("/api/v1/burndown")
    assert [NOW_MS, 1, 0] == last("/api/v1/burndown?match=ord*")
    assert [NOW_MS, 1, 0] == last("/api/v1/burndown?group=orders")
    assert [NOW_MS, 0, 0] == last("/api/v1/burndown?group=ord*")
