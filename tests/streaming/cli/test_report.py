"""`report` from recordings and from a monitor, in every form, and what `rehearse` refuses before it starts anything."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import pytest

from coordinator_model.records.serde import Record, decode_record
from coordinator_model.replica import Replica
from coordinator_model.state.findings import Position
from coordinator_model.views.group_view import group_view
from lab import builders
from streaming.__main__ import main
from streaming.base.times import time_ms
from streaming.board.board import Board
from streaming.config.sections import HttpSection
from streaming.end_offsets.store import EndOffsets
from streaming.history.log_archive import HEADER, READ, rows_of
from streaming.history.store import HistoryStore
from streaming.history.tables import RECORDS
from streaming.metrics.exporter import Exporter
from streaming.recording.file_format import open_recording
from streaming.rehearsal.shape import of_view
from streaming.reports import forms
from streaming.reports.measure import REHEARSAL_FORMAT
from streaming.reports.rolled import of_records
from streaming.web.server import Server
from tests.streaming.board_rows import Shard
from tests.streaming.boards import caught_up

RECORDINGS: Final = Path(__file__).resolve().parents[2] / "recordings"
CONVERSIONS: Final = str(RECORDINGS / "4.3.1" / "conversions.ndjson.gz")
GROUP: Final = "upgraded-and-downgraded-member-by-member"
NOWHERE: Final = "http://127.0.0.1:9"


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Exit status, standard output and standard error."""
    status = main([*arguments])
    said = capsys.readouterr()
    return status, said.out, said.err


def rehearsal(**changed: Any) -> dict[str, Any]:
    """A report that `rehearse --keep` writes."""
    report = {
        "format": REHEARSAL_FORMAT, "group": "group-1", "members": 2, "from": "classic", "to": "consumer",
        "refused": False, "reasons": [], "since": 0, "until": 9_000, "rebalances": 41, "partitions_moved": 42,
        "ownerless_seconds": {"max": 1.25, "total": 2.5, "partitions": {"topic-1/0": 1.25, "topic-1/1": 1.25}},
        "causes": {"join": 3}, "conversions": {"upgrade": 1}, "verdicts": [], "broker": "4.3.1", "assignor": "range",
        "topics": {"topic-1": 2}, "took_seconds": 9.0, "steps": [], "events": [], "options": {},
        "notes": ["50 of 60 members"],
    }  # fmt: skip
    return {**report, **changed}


@pytest.mark.parametrize("release", ["4.0.2", "4.1.1", "4.2.1", "4.3.1"])
def test_a_recorded_roll_is_measured(release: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Up and down again on brokers of every release: both conversions, moved partitions, time without an owner."""
    recording = str(RECORDINGS / release / "conversions.ndjson.gz")

    status, text, _ = run(capsys, "report", GROUP, "--since", "0", "--from", recording, "--json")
    report = json.loads(text)

    assert 0 == status
    assert {"downgrade": 1, "upgrade": 1} == report["conversions"]
    assert report["rebalances"] > 2
    assert report["partitions_moved"] > 2
    ownerless = report["ownerless_seconds"]
    assert 0 < ownerless["max"] <= ownerless["total"]
    assert all(name.startswith(f"{GROUP}-topic/") for name in ownerless["partitions"]), "by name, never by id"
    assert report["lag_added"] is None, "end offsets are not in the log"
    assert report["unknown"]


def test_a_roll_ends_where_it_is_said_to_have(capsys: pytest.CaptureFixture[str]) -> None:
    """The upgrade alone, of a group that was downgraded afterwards."""
    times = ["--since", "2026-11-21T12:56:18.500Z", "--until", "2026-11-21T12:56:21.500Z"]

    status, text, _ = run(capsys, "report", GROUP, *times, "--from", CONVERSIONS, "--json")
    report = json.loads(text)

    assert 0 == status
    assert {"upgrade": 1} == report["conversions"]
    assert (3, 6) == (report["rebalances"], report["partitions_moved"])


def test_a_report_goes_on_under_its_last_column(capsys: pytest.CaptureFixture[str]) -> None:
    """No line is wider than eighty columns; a long event stays in its column, a long note under its first word."""
    _, text, _ = run(capsys, "report", GROUP, "--since", "0", "--from", CONVERSIONS)
    lines = text.splitlines()
    timeline = lines[lines.index("Timeline") + 1 :]
    column = timeline[0].index("event")
    events = timeline[: timeline.index("")]
    further = [line for line in events if not line[:column].strip()]

    assert max(map(len, lines)) <= 80
    assert further
    assert all(len(line) - len(line.lstrip()) == column for line in further)
    notes = [line for line in timeline[timeline.index("") :] if line]
    assert all(line.startswith(("note: ", "      ")) for line in notes), notes


def test_a_roll_stands_beside_its_rehearsal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Figures of both in one table, and what was said of the rehearsal; nothing is wider than eighty columns."""
    kept = tmp_path / "kept.json"
    kept.write_text(json.dumps(rehearsal()), "utf-8")

    status, text, _ = run(capsys, "report", GROUP, "--since", "0", "--from", CONVERSIONS, "--rehearsal", str(kept))

    assert 0 == status
    (row,) = [line.split() for line in text.splitlines() if line.startswith("rebalances")]
    assert "41" == row[2]
    assert "Causes (a rebalance may have several)" in text.splitlines()
    assert ["join", "5", "3"] in [line.split() for line in text.splitlines()]
    assert "rehearsal: 50 of 60 members" in text
    assert "rehearsal: 2 members on an embedded Kafka 4.3.1; it went through" in text
    assert max(map(len, text.splitlines())) <= 80


REFUSED: Final[dict[str, Any]] = {
    "member": "member-1", "let_in": False, "seconds": 0.412, "said": "instance id static-1 is owned by member x",
}  # fmt: skip
STATIC = "a static member that is killed keeps its instance id until its session is over"


@pytest.mark.parametrize(
    ("to", "killed", "row", "noted"),
    [
        ("consumer", REFUSED, "member-1 (static), refused: instance id static-1 is owned", True),
        ("classic", {**REFUSED, "let_in": True, "said": None}, "member-1 (static), let in after 0.4 s", False),
        ("consumer", {**REFUSED, "let_in": None, "said": None}, "member-1 (static), no answer after 0.4 s", False),
        ("consumer", None, "", False),
    ],
)
def test_what_a_killed_static_member_met_is_in_the_report(
    to: str, killed: dict[str, Any] | None, row: str, noted: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In the rehearsal's, and beside the roll's; what to do where it was refused. Without static members nothing."""
    report = rehearsal(to=to, killed=killed)
    text = " ".join(forms.text(report).split())

    assert (row != "") == ("killed, started again" in text)
    assert row in text
    assert noted == (STATIC in text)

    kept = tmp_path / "kept.json"
    kept.write_text(json.dumps(report), "utf-8")
    _, beside, _ = run(capsys, "report", GROUP, "--since", "0", "--from", CONVERSIONS, "--rehearsal", str(kept))
    assert (row != "") == ("rehearsal: killed, started again: member-1" in " ".join(beside.split()))


def test_the_html_file_needs_nothing_else(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """No link, no script, and names cannot become markup."""
    kept, page = tmp_path / "kept.json", tmp_path / "roll.html"
    kept.write_text(json.dumps(rehearsal(notes=["<script>alert(1)</script>"])), "utf-8")
    common = ["report", GROUP, "--since", "0", "--from", CONVERSIONS, "--rehearsal", str(kept)]

    status, markdown, _ = run(capsys, *common, "--html", str(page), "--markdown")

    text = page.read_text("utf-8")
    assert 0 == status
    assert "&lt;script&gt;" in text
    assert ("width=device-width" in text, "style='--part:1.000'" in text) == (True, True), "as wide as the screen"
    assert not any(part in text for part in ("<script", "src=", "href=", "http"))
    assert "\\<script\\>" in markdown
    assert markdown.startswith("# Roll of ")


@pytest.mark.parametrize(
    ("arguments", "status", "expected"),
    [
        (["report", GROUP, "--since", "noon", "--from", CONVERSIONS], 2, "--since: found 'noon', accepted: ISO-8601"),
        (
            ["report", GROUP, "--since", "9", "--until", "8", "--from", CONVERSIONS],
            2,
            "--until: found '8', accepted: a",
        ),
        (["report", GROUP, "--since", "0", "--from", CONVERSIONS, "--dir", "x"], 2, "--dir: found with --from"),
        (["report", GROUP, "--since", "0", "--from", "none"], 2, "--from: found 'none'"),
        (["report", GROUP, "--since", "0", "--dir", "none"], 2, "--dir: found 'none', accepted: a directory"),
        (["report", GROUP, "--since", "0", "--from", CONVERSIONS, "--rehearsal", CONVERSIONS], 2, "--rehearsal: found"),
        (["report", GROUP, "--since", "0", "--from", CONVERSIONS, "--json", "--markdown"], 2, "found with --json"),
        (["report", "no-such", "--since", "0", "--from", CONVERSIONS], 2, "G: found 'no-such', accepted: a group"),
        (["report", GROUP, "--since", "1 s ago", "--from", CONVERSIONS], 1, "before the last record of"),
        (["report", GROUP, "--since", "0", "--url", NOWHERE], 3, "--url: found http://127.0.0.1:9"),
        (["rehearse", "sideways", "--group", "g"], 2, "sideways"),
        (
            ["rehearse", "upgrade", "--group", "g", "--broker-config", "x"],
            2,
            "--broker-config: found 'x', accepted: NAME",
        ),
        (["rehearse", "upgrade", "--group", "g", "--json", "--markdown"], 2, "--markdown: found with --json"),
        (["rehearse", "upgrade", "--group", "g", "--surge", "--restart", "2"], 2, "--restart: found with --surge, acc"),
        (["rehearse", "upgrade", "--group", "no-such", "--from", CONVERSIONS], 2, "--group: found 'no-such', accepted"),
        (
            ["rehearse", "upgrade", "--group", "g", "--keep", "no/k"],
            2,
            "--keep: found 'no/k', accepted: a file",
        ),
        (["rehearse", "upgrade", "--group", "g", "--record", "/"], 2, "--record: found '/', accepted: a file"),
        (
            ["rehearse", "upgrade", "--group", "g", "--html", "no/h"],
            2,
            "--html: found 'no/h', accepted: a file",
        ),
        (["rehearse", "upgrade", "--group", "g", "--url", NOWHERE], 3, "--url: found http://127.0.0.1:9"),
    ],
)
def test_what_cannot_be_done_is_reported_in_one_line(
    arguments: list[str], status: int, expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Option, what was found, what is accepted; nothing is started."""
    found, printed, said = run(capsys, *arguments)

    assert (status, "") == (found, printed)
    assert expected in said.splitlines()[-1]


def test_a_monitor_without_records_tells_events_and_that_it_cannot_tell_the_rest(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """What is known is printed, what is not is null and named, and the exit status is 3."""
    groups = [
        builders.group_metadata("g", generation=1, members=[builders.member("a", {"t": [0, 1]})]),
        builders.group_metadata(
            "g", generation=2, members=[builders.member("a", {"t": [0]}), builders.member("b", {"t": [1]})]
        ),
    ]
    board, shard = Board(EndOffsets()), Shard()
    board.load([])
    rows = [
        row
        for number, record in enumerate(groups)
        for row in shard.write(record, timestamp_ms=builders.NOW_MS + 1_000 * number)
    ]
    board.apply(1, rows, builders.NOW_MS + 2_000)
    server = Server.of(HttpSection(port=0), caught_up(board), Exporter(board, "test"))
    server.start()
    try:
        status, text, said = run(capsys, "report", "g", "--since", str(builders.NOW_MS), "--url", server.url, "--json")
        shown, _, _ = run(capsys, "report", "g", "--since", str(builders.NOW_MS), "--url", server.url)
    finally:
        server.stop()
    report = json.loads(text)

    assert (3, 3) == (status, shown)
    assert (1, 1) == (report["rebalances"], report["partitions_moved"])
    assert (None, None) == (report["ownerless_seconds"], report["lag_added"])
    assert 2 == len(report["unknown"])
    assert "accepted: the log's records" in said


def test_shape_of_a_group_of_a_running_monitor_is_read_from_what_it_answers() -> None:
    """Every field that is asked for is in a GROUP as the model makes it."""
    replica = Replica()
    key, value = builders.group_metadata(
        "g", generation=1, members=[builders.member("a", {"t": [0, 1]}, topics=["t", "u"], instance_id="i")]
    )
    replica.replay(Position(0, 0, builders.NOW_MS), key, value)
    replica.settle()

    shape = of_view(group_view(replica.groups["g"], replica.offsets("g"), {}), "classic")

    (member,) = shape.members
    assert ("range", {"t": 2, "u": 1}) == (shape.assignor, shape.topics)
    assert ("client", "i", builders.SESSION_TIMEOUT_MS, builders.REBALANCE_TIMEOUT_MS) == (
        member.name,
        member.instance_id,
        member.session_timeout_ms,
        member.rebalance_timeout_ms,
    )


@pytest.fixture
def history(tmp_path: Path) -> Path:
    """A history that keeps the records of a roll up and down again, read to the end."""
    with open_recording(Path(CONVERSIONS)) as recording:
        head, records = recording.header, list(recording)
    (tmp_path / RECORDS.name).mkdir()
    (tmp_path / RECORDS.name / HEADER).write_text(json.dumps(asdict(head)), "utf-8")
    HistoryStore(tmp_path).write(RECORDS, rows_of(records))
    read = {"until": max(record.timestamp_ms for record in records)}
    (tmp_path / RECORDS.name / READ).write_text(json.dumps(read), "utf-8")
    return tmp_path


def test_a_history_that_keeps_records_is_measured_as_a_recording_is(
    history: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same records, the same figures; lag is not known, as no monitor runs."""
    asked = ["report", GROUP, "--since", "0", "--json", "--url", NOWHERE]

    status, of_history, _ = run(capsys, *asked, "--dir", str(history))
    _, of_recording, _ = run(capsys, *asked, "--from", CONVERSIONS)

    assert 0 == status
    assert json.loads(of_recording) == json.loads(of_history)


def test_a_history_that_is_behind_says_up_to_when_it_knows(history: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What comes after is neither measured nor called complete; it is once the history has been written so far."""
    until = "2026-11-21T12:56:21.500Z"
    asked = ["report", GROUP, "--since", "2026-11-21T12:56:18.500Z", "--dir", str(history), "--url", NOWHERE]
    read = history / RECORDS.name / READ

    read.write_text(json.dumps({"until": time_ms("2026-11-21T12:59:00Z")}), "utf-8")
    late = run(capsys, *asked, "--until", "2026-11-21T13:00:00Z")
    done = run(capsys, *asked, "--until", until)
    open_end = run(capsys, *asked)
    after = run(capsys, *asked, "--since", "2026-11-21T12:59:30Z")

    assert [3, 0, 0, 3] == [status for status, _, _ in (late, done, open_end, after)]
    assert "note: not complete: asked up to 2026-11-21T13:00:00.000Z, the log is known up" in late[1]
    assert "not complete: asked up to 2026-11-21T13:00:00.000Z, the log is known up to 2026-11-21T12:59" in late[2]
    assert "note: known up to 2026-11-21T12:59:00.000Z" in done[1]
    assert not any("not complete" in text for text in (*done, *open_end) if isinstance(text, str))
    assert "--since: found 2026-11-21T12:59:30.000Z, accepted: an earlier one: the log is known up to" in after[2]


def test_a_roll_that_is_not_over_is_no_whole_one(capsys: pytest.CaptureFixture[str]) -> None:
    """Of a group of both protocols at the log's end the figures go on, unless a time is given when it was over."""
    asked = ["report", "upgrade-half-way", "--since", "0", "--from", CONVERSIONS, "--json"]

    status, text, said = run(capsys, *asked)
    spanned, whole, _ = run(capsys, *asked, "--until", str(json.loads(text)["known_until"]))

    assert (3, False) == (status, json.loads(text)["complete"])
    assert "the group was being rolled, or rebalanced, when the log ended" in said
    assert (0, True) == (spanned, json.loads(whole)["complete"])


@pytest.mark.parametrize(("group", "said"), [("static-members-upgraded-in-place", True), (GROUP, False)])
def test_time_without_an_owner_but_no_rebalance_is_explained(
    group: str, said: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    """A static member of the consumer protocol that is back in time: said of groups that have such members alone."""
    _, text, _ = run(capsys, "report", group, "--since", "0", "--from", CONVERSIONS)

    assert said == ("note: a static member that is back in time causes no rebalance" in text)


@pytest.mark.parametrize("release", [path.parent.name for path in sorted(RECORDINGS.glob("*/conversions.ndjson.gz"))])
def test_moved_partitions_are_those_of_the_timeline(release: str) -> None:
    """In every recorded conversion, so there is nothing to explain; no change is lost where ids become names."""
    with open_recording(RECORDINGS / release / "conversions.ndjson.gz") as recording:
        head, records = recording.header, list(recording)
    names = {decoded.group_name for each in records if isinstance(decoded := decode_record(each.key, None), Record)}
    reports = [of_records(head, records, name, 0) for name in sorted(filter(None, names))]
    moved = {
        report["group"]: sum(event["detail"].get("partitions_moved", 0) for event in report["events"])
        for report in reports
    }

    assert {report["group"]: report["partitions_moved"] for report in reports} == moved
    assert 2 == moved["downgraded-while-empty"], "by another member than the one before"
    assert not any("of partitions moved" in note for report in reports for note in report["notes"])


def test_a_history_without_records_cannot_tell(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It says which setting keeps them."""
    status, _, said = run(capsys, "report", GROUP, "--since", "0", "--dir", str(tmp_path))

    assert 3 == status
    assert f"--dir: found no records in '{tmp_path}', accepted: a history kept with history.records" in said
