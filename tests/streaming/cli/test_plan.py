"""`plan`, from a recording and from a running monitor: the same groups, in every form it is asked for."""

import csv
import html
import io
import json
import re
from pathlib import Path
from typing import Any, Final
from urllib.request import urlopen

import pytest
from rich.console import Console

from lab import builders
from streaming.__main__ import main
from streaming.board.board import Board
from streaming.cli.plan import COLUMNS, picture
from streaming.config.sections import HttpSection
from streaming.end_offsets.store import EndOffsets
from streaming.metrics.exporter import Exporter
from streaming.recording.file_format import open_recording
from streaming.web.server import Server
from tests.streaming.board_rows import KeyValue, Shard

RECORDINGS: Final = Path(__file__).resolve().parents[2] / "recordings"
CONVERSIONS: Final = str(RECORDINGS / "4.3.1" / "conversions.ndjson.gz")


def caught_up() -> Board:
    """A board of a monitor that is ready."""
    ends = EndOffsets()
    board = Board(ends)
    board.load([])
    board.health.set_log_end_at_start({}, {})
    board.health.set_positions({}, {}, builders.NOW_MS)
    ends.record(builders.NOW_MS + 1, {}, {})
    return board


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    """Exit status and what was printed."""
    status = main(["plan", *arguments])
    return status, capsys.readouterr().out


@pytest.mark.parametrize(
    "recording", sorted(RECORDINGS.glob("*/*.ndjson.gz")), ids=lambda file: f"{file.parent.name}-{file.name}"
)
def test_every_release_s_groups_are_planned(recording: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each group of a recording of real brokers has a readiness and a remedy; those to be rolled have a wave."""
    status, text = run(capsys, "--from", str(recording), "--json")
    plan: dict[str, Any] = json.loads(text)

    assert plan["groups"]
    assert int(any(each["readiness"] == "blocked" for each in plan["groups"])) == status
    for each in plan["groups"]:
        assert all(reason["remedy"] for reason in each["reasons"]), each
        assert (each["readiness"] in {"ready", "care"}) == (each["wave"] is not None), each
        assert not {"librdkafka_cooperative_sticky", "librdkafka_members"} & {of["code"] for of in each["reasons"]}, (
            "its members on cooperative-sticky are Java's"
        )
    assert len(plan["groups"]) == sum(plan["counts"].values())


def test_converted_groups_are_done(capsys: pytest.CaptureFixture[str]) -> None:
    """What a recording says of its groups' protocol is what the plan says of them."""
    _, text = run(capsys, "--from", CONVERSIONS, "--json")
    readiness = {each["group"]: each["readiness"] for each in json.loads(text)["groups"]}

    assert "done" == readiness["upgraded-member-by-member"]
    assert "care" == readiness["upgrade-half-way"]
    assert "ready" == readiness["downgraded-by-leaving"]


def test_a_pattern_chooses_groups(capsys: pytest.CaptureFixture[str]) -> None:
    """`--match` takes a shell pattern; `--group` besides it names one group more."""
    _, text = run(capsys, "--from", CONVERSIONS, "--match", "upgraded-*", "--json")
    _, also = run(capsys, "--from", CONVERSIONS, "--match", "upgraded-*", "--group", "upgrade-half-way", "--json")

    matched = {each["group"] for each in json.loads(text)["groups"]}
    assert {"upgraded"} == {name.partition("-")[0] for name in matched}
    assert {*matched, "upgrade-half-way"} == {each["group"] for each in json.loads(also)["groups"]}


def test_a_name_is_no_pattern(capsys: pytest.CaptureFixture[str]) -> None:
    """A group may have a star in its name; one that no group has ends with 2, and points at `--match`."""
    starred = builders.group_metadata("orders-*", generation=1, members=[builders.member("m", {"t": [0]})])
    other = builders.group_metadata("orders-1", generation=1, members=[builders.member("m", {"t": [0]})])
    with _serving(caught_up(), starred, other) as url:
        _, text = run(capsys, "--url", url, "--group", "orders-*", "--json")
        _, both = run(capsys, "--url", url, "--match", "orders-*", "--json")
        assert 2 == main(["plan", "--url", url, "--group", "orders-*", "--group", "payments"])
        assert "found 'payments', accepted: a group of this cluster\n" in capsys.readouterr().err
        status = main(["plan", "--url", url, "--group", "audit-*"])
    said = capsys.readouterr().err

    assert ["orders-*"] == [each["group"] for each in json.loads(text)["groups"]]
    assert 2 == len(json.loads(both)["groups"])
    assert (
        2,
        "error: --group: found 'audit-*', accepted: a group of this cluster; for a pattern, --match 'audit-*'\n",
    ) == (
        status,
        said,
    )
    assert 2 == main(["plan", "--from", CONVERSIONS, "--group", "upgraded-*"])
    assert "accepted: a group of conversions.ndjson.gz; for a pattern, --match 'upgraded-*'" in capsys.readouterr().err
    assert 2 == main(["plan", "--from", CONVERSIONS, "--group", "no-such"])
    assert "--match" not in capsys.readouterr().err


def test_a_pattern_that_matches_nothing_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    """It may match tomorrow: exit status 0."""
    assert 0 == main(["plan", "--from", CONVERSIONS, "--match", "no-such-*"])
    assert "--match: found no group whose name matches 'no-such-*'" in capsys.readouterr().err


def test_one_group_is_one_group(capsys: pytest.CaptureFixture[str]) -> None:
    """The first line counts groups and waves, in the singular where there is one."""
    _, text = run(capsys, "--from", CONVERSIONS, "--group", "upgrade-half-way")

    assert "1 group: 1 care; 1 wave" == text.splitlines()[0]


@pytest.mark.parametrize("width", [60, 80, 120])
def test_a_terminal_gets_no_line_that_is_wider(width: int, capsys: pytest.CaptureFixture[str]) -> None:
    """Every name, reason and remedy is there whole, in as many lines as it takes; colours say nothing alone."""
    _, text = run(capsys, "--from", CONVERSIONS, "--json")
    plan: dict[str, Any] = json.loads(text)
    long_name = "team-payments.settlement-exporter-with-a-long-name-[bold].v2"
    plan["groups"][0]["group"] = long_name
    console = Console(file=io.StringIO(), width=width, force_terminal=False)
    console.print(picture(plan, width))
    assert isinstance(console.file, io.StringIO)
    shown = console.file.getvalue()

    assert max(map(len, shown.splitlines())) <= width
    for each in plan["groups"]:
        assert each["readiness"].replace("_", " ") in shown
        assert all(reason["code"] in shown for reason in each["reasons"]), each
        assert " ".join(shown.split()).count(each["reasons"][0]["remedy"]) == 1
    names = [line[6:].split("  ")[0].strip() for line in shown.splitlines()[3:]]
    assert long_name in "".join(names)
    changes = [(each["assignor"] or "-", each["assignor_after"] or "-") for each in plan["groups"]]
    assert ("range", "uniform") in changes
    assert all(of["rehearse"] in shown and of["kind"].split(", ")[0] in shown for of in plan["kinds"])
    for now, after in {change for change in changes if change != ("-", "-")}:
        assert f"{now} → {after}" in "".join(names) if width < 100 else now in shown, "none is left out"


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
    groups, kinds = (part.count("\n| ") for part in text.split("| kind |"))

    assert (11, 4) == (groups, kinds)
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
    with _serving(board, builders.group_metadata("half-read", generation=1, members=[builders.member("m")])) as url:
        status = main(["plan", "--url", url])
        main(["plan", "--url", url, "--match", "no-such"])
        page = urlopen(f"{url}/plan", timeout=5).read().decode()  # noqa: S310 - our own server

    assert 3 == status
    printed, said = capsys.readouterr()
    assert "the end of the log at start is not known, since" in said
    assert printed.endswith("no groups, as far as is known\n")
    assert re.search(r"Not known: the end of the log at start is not known, since [\d :-]{19} UTC\.", page)
    assert "No group matches." not in page
    assert "half-read" not in page


def test_every_form_says_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    """Of the groups of a real broker: page, JSON, CSV, Markdown and table have each figure, reason and remedy alike."""
    with open_recording(Path(CONVERSIONS)) as reader:
        records = [(record.key, record.value) for record in reader]
    custom = builders.member("m", assignment_bytes=builders.assignment({"t": [0]}, user_data=b"mine"))
    refused = builders.group_metadata("a|*<b>", generation=1, members=[custom])
    with _serving(caught_up(), *records, refused) as url:
        status, text = run(capsys, "--url", url, "--json")
        _, csv_text = run(capsys, "--url", url, "--csv")
        _, markdown = run(capsys, "--url", url, "--markdown")
        _, table = run(capsys, "--url", url)
        page = urlopen(f"{url}/plan", timeout=5).read().decode()  # noqa: S310 - our own server
    plan = json.loads(text)
    groups = plan["groups"]
    codes = [" ".join(reason["code"] for reason in each["reasons"]) for each in groups]
    remedies = {reason["code"]: reason["remedy"] for each in groups for reason in each["reasons"]}

    assert {"ready", "care", "blocked", "done"} <= {each["readiness"] for each in groups}
    assert 1 == status
    assert [
        {
            **{name: _text(each.get(name), "") for name in COLUMNS},
            "reasons": reasons,
            "remedies": "; ".join(reason["remedy"] for reason in each["reasons"]),
        }
        for each, reasons in zip(groups, codes, strict=True)
    ] == list(csv.DictReader(io.StringIO(csv_text)))
    shown = ("wave", "group", "readiness", "members", "assignor", "assignor_after")
    assert [
        {
            "Wave": _text(each["wave"], "\u2013"),
            "Group": each["group"],
            "Owner": _text(each["owner"], "\u2013"),
            "Readiness": each["readiness"].replace("_", " "),
            "Members": str(each["members"]),
            "Static ids": str(each["static_ids"]),
            "Assignor": _text(each["assignor"], "\u2013"),
            "After": _text(each["assignor_after"], "\u2013"),
            "Rebalances a day": _text(each["rebalances_a_day"], "\u2013"),
            "Lag": _text(each["lag"], "\u2013"),
            "Reasons": " , ".join(reason["code"].replace("_", " ") for reason in each["reasons"]),
        }
        for each in groups
    ] == _page_rows(page)
    (below,) = re.findall(r'<dl id="remedies">(.*?)</dl>', page)
    assert [(code.replace("_", " "), _sentence(remedy)) for code, remedy in remedies.items()] == [
        (name, html.unescape(remedy)) for name, remedy in re.findall(r"<dt id=[^>]*>(.*?)</dt><dd>(.*?)</dd>", below)
    ]
    rows, kinds = (
        [line.replace("\\", "").strip("| ").split(" | ") for line in part.splitlines() if line[:2] == "| "]
        for part in markdown.split("| kind |")
    )
    assert [[of["kind"], str(of["groups"]), of["rehearse"]] for of in plan["kinds"]] == kinds
    assert [f"{of['kind']} ({of['groups']}): {of['rehearse']}" for of in plan["kinds"]] == [
        html.unescape(re.sub(r"<[^>]+>", "", each)) for each in re.findall(r"<li>(.*?</bdi>)</li>", page)
    ]
    assert [
        [
            *(_text(each[name], "-") for name in shown[:3]),
            reasons,
            *(_text(each[name], "-") for name in (*shown[3:], "rebalances_a_day", "lag", "owner", "note")),
        ]
        for each, reasons in zip(groups, codes, strict=True)
    ] == rows[1:]
    assert [f"- `{code}`: {remedy}" for code, remedy in remedies.items()] == [
        line for line in markdown.splitlines() if line.startswith("- ")
    ]
    lines = table.splitlines()
    assert lines[0] == markdown.splitlines()[0]
    assert [
        [*(_text(each[name], "-") for name in shown), *reasons.split()]
        for each, reasons in zip(groups, codes, strict=True)
    ] == [line.split() for line in lines[3 : 3 + len(groups)]]
    assert [list(map(str, of.values())) for of in plan["kinds"]] == [
        re.split(r" {2,}", line) for line in lines[-len(plan["kinds"]) :]
    ]
    tiles = dict(re.findall(r"<dt>([^<]+)</dt><dd>([^<]+)</dd>", page))
    counts = {name.replace("_", " ").capitalize(): str(count) for name, count in plan["counts"].items()}
    assert {**counts, "Waves": str(plan["waves"])} == tiles


def _sentence(remedy: str) -> str:
    return f"{remedy[:1].upper()}{remedy[1:]}."


def _text(value: object, unknown: str) -> str:
    return unknown if value is None else str(value)


def _page_rows(page: str) -> list[dict[str, str]]:
    """The rows of the page's table: label of the column → text."""
    (body,) = re.findall(r"<tbody>(.*?)</tbody>", page, re.DOTALL)
    return [
        {
            label: " ".join(html.unescape(re.sub(r"<[^>]+>", " ", cell)).split())
            for label, cell in re.findall(r'<td data-label="([^"]+)"[^>]*>(.*?)</td>', row, re.DOTALL)
        }
        for row in body.split("</tr>")[:-1]
    ]


class _serving:  # noqa: N801 - reads as a word
    """A monitor's server over a board."""

    def __init__(self, board: Board, *records: KeyValue) -> None:
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


def test_owners_and_notes_of_a_recording_come_from_a_configuration(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`--config`, which a running monitor has itself."""
    file = tmp_path / "monitor.yaml"
    expectations = "{'upgraded-*': {owner: team-a}, '*by-member': {note: after the sale, owner: team-b}}"
    file.write_text(f"alarms: {{expectations: {expectations}}}", "utf-8")
    _, text = run(capsys, "--from", CONVERSIONS, "--config", str(file), "--json")
    of = {each["group"]: (each["owner"], each["note"]) for each in json.loads(text)["groups"]}

    assert ("team-a", "after the sale") == of["upgraded-member-by-member"]
    assert ("team-a", None) == of["upgraded-from-range"]
    assert (None, None) == of["upgrade-half-way"]
    assert 2 == main(["plan", "--config", str(file)])
