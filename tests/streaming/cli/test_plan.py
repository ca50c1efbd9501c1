"""`plan`, from a recording and from a running monitor: the same groups, in every form it is asked for."""

import csv
import io
import json
from pathlib import Path
from typing import Any, Final
from urllib.request import urlopen

import pytest

from streaming.__main__ import main
from streaming.board.board import Board
from streaming.cli.plan import COLUMNS
from streaming.config.sections import HttpSection
from streaming.end_offsets.store import EndOffsets
from streaming.metrics.exporter import Exporter
from streaming.web.server import Server
from tests import builders
from tests.streaming.board_rows import Shard

RECORDINGS: Final = Path(__file__).resolve().parents[2] / "recordings"
CONVERSIONS: Final = str(RECORDINGS / "4.3.1" / "conversions.ndjson.gz")


def caught_up() -> Board:
    """A board of a monitor that is ready."""
    ends = EndOffsets()
    board = Board(ends)
    board.load([])
    board.set_log_end_at_start({}, {})
    board.set_positions({}, {}, builders.NOW_MS)
    ends.record(builders.NOW_MS + 1, {}, {})
    return board


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    """Exit status and what was printed."""
    status = main(["plan", *arguments])
    return status, capsys.readouterr().out


@pytest.mark.parametrize("release", ["3.9.1", "4.0.2", "4.1.1", "4.2.1", "4.3.1"])
@pytest.mark.parametrize("recording", ["classic", "consumer", "conversions", "offsets"])
def test_every_release_s_groups_are_planned(release: str, recording: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Each group of a recording of real brokers has a readiness and a remedy; those to be rolled have a wave."""
    status, text = run(capsys, "--from", str(RECORDINGS / release / f"{recording}.ndjson.gz"), "--json")
    plan: dict[str, Any] = json.loads(text)

    assert plan["groups"]
    assert int(any(each["readiness"] == "blocked" for each in plan["groups"])) == status
    for each in plan["groups"]:
        assert all(reason["remedy"] for reason in each["reasons"]), each
        assert (each["readiness"] in {"ready", "care"}) == (each["wave"] is not None), each
    assert len(plan["groups"]) == sum(plan["counts"].values())


def test_converted_groups_are_done(capsys: pytest.CaptureFixture[str]) -> None:
    """What a recording says of its groups' protocol is what the plan says of them."""
    _, text = run(capsys, "--from", CONVERSIONS, "--json")
    readiness = {each["group"]: each["readiness"] for each in json.loads(text)["groups"]}

    assert "done" == readiness["upgraded-member-by-member"]
    assert "care" == readiness["upgrade-half-way"]
    assert "ready" == readiness["downgraded-by-leaving"]


def test_a_pattern_chooses_groups(capsys: pytest.CaptureFixture[str]) -> None:
    """`--group` takes a shell pattern."""
    _, text = run(capsys, "--from", CONVERSIONS, "--group", "upgraded-*", "--json")

    assert {"upgraded"} == {each["group"].partition("-")[0] for each in json.loads(text)["groups"]}


def test_one_group_is_one_group(capsys: pytest.CaptureFixture[str]) -> None:
    """The first line counts groups and waves, in the singular where there is one."""
    _, text = run(capsys, "--from", CONVERSIONS, "--group", "upgrade-half-way")

    assert "1 group: 1 care; 1 wave" == text.splitlines()[0]


def test_a_spreadsheet_gets_columns_and_no_formulas(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Names of groups are anybody's: one that begins like a formula is text."""
    board = caught_up()
    group = builders.group_metadata("=1+1", generation=1, members=[builders.member("m", {"t": [0]})])
    with _serving(board, group) as url:
        _, text = run(capsys, "--url", url, "--csv")
    (row,) = csv.DictReader(io.StringIO(text))

    assert list(COLUMNS) == list(row)
    assert "'=1+1" == row["group"]


def test_a_ticket_gets_a_table_that_names_cannot_break(capsys: pytest.CaptureFixture[str]) -> None:
    """Markdown has a row a group and each remedy once."""
    _, text = run(capsys, "--from", CONVERSIONS, "--markdown")
    rows = [line for line in text.splitlines() if line.startswith("| ")]

    assert 11 == len(rows)
    assert 1 == text.count("set group.remote.assignor=range") or "range_assignor" not in text


@pytest.mark.parametrize("wrong", [["--csv", "--json"], ["--from", "nowhere.ndjson"], ["--url", "ftp://x"]])
def test_wrong_options_are_named(wrong: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Two forms, a file that is not there, an address that is none: one line, exit status 2."""
    assert 2 == main(["plan", *wrong])
    assert 1 == len(capsys.readouterr().err.splitlines())


def test_a_monitor_that_catches_up_has_no_plan(capsys: pytest.CaptureFixture[str]) -> None:
    """What is not read yet may be anything: exit status 3, and the page says so."""
    board = Board(EndOffsets())
    board.load([])
    with _serving(board) as url:
        status = main(["plan", "--url", url])
        page = urlopen(f"{url}/plan", timeout=5).read().decode()  # noqa: S310 - our own server

    assert 3 == status
    assert "not caught up" in capsys.readouterr().err
    assert "No group is known yet." in page
    assert "No group matches." not in page


def test_a_running_monitor_and_its_page_say_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    """The command and the page have one source."""
    board = caught_up()
    group = builders.group_metadata("orders", generation=1, members=[builders.member("m", {"t": [0]})])
    with _serving(board, group) as url:
        status, text = run(capsys, "--url", url, "--json")
        page = urlopen(f"{url}/plan", timeout=5).read().decode()  # noqa: S310 - as above
    (planned,) = json.loads(text)["groups"]

    assert (0, "orders", 1) == (status, planned["group"], planned["wave"])
    assert f">{planned['readiness']}</span>" in page
    assert all(reason["code"] in page for reason in planned["reasons"])


class _serving:  # noqa: N801 - reads as a word
    """A monitor's server over a board."""

    def __init__(self, board: Board, *records: builders.RecordBytes) -> None:
        shard = Shard()
        rows = [row for record in records for row in shard.write(record, timestamp_ms=builders.NOW_MS)]
        if rows:
            board.apply(1, rows, builders.NOW_MS)
        self._server = Server.of(HttpSection(port=0), board, Exporter(board, "test"))

    def __enter__(self) -> str:
        self._server.start()
        return self._server.url

    def __exit__(self, *_: object) -> None:
        self._server.stop()


def test_owners_of_a_recording_come_from_a_configuration(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`--config`, which a running monitor has itself."""
    file = tmp_path / "monitor.yaml"
    file.write_text("alarms: {expectations: {'upgraded-*': {owner: team-a}}}", "utf-8")
    _, text = run(capsys, "--from", CONVERSIONS, "--config", str(file), "--json")
    owners = {each["group"]: each["owner"] for each in json.loads(text)["groups"]}

    assert ("team-a", None) == (owners["upgraded-member-by-member"], owners["upgrade-half-way"])
    assert 2 == main(["plan", "--config", str(file)])
