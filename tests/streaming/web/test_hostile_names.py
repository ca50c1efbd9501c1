"""Names that mean harm, in every form the monitor gives them: they are shown, and steer nothing."""

import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text
from rich.console import Console, RenderableType

from lab import builders
from lab.builders import NOW_MS
from streaming.__main__ import main
from streaming.base.text import cut
from streaming.board import group_answer
from streaming.board.board import Board
from streaming.cli.client import MonitorClient
from streaming.cli.render import rich_view
from streaming.config.sections import HttpSection
from streaming.demo.terminal import Terminal
from streaming.end_offsets.store import EndOffsets
from streaming.metrics.exporter import Exporter
from streaming.recording.file_format import Header, RecordedRecord, open_new_recording
from streaming.web.server import Server
from tests import hostile
from tests.hostile import NAMES, STEERING
from tests.streaming.board_rows import Shard
from tests.streaming.boards import rendered

HEADER = Header(kafka_version=None, offsets_topic_partitions=50, topics=())
WIDTH = 160
SEQUENCES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
"""What rich itself writes: colours, the cursor, the alternate screen."""


@pytest.fixture(scope="module")
def board() -> Board:
    """A board that has all of them."""
    shard, board = Shard(), Board(EndOffsets())
    rows = [row for at, of in enumerate(hostile.records()) for row in shard.write(of, timestamp_ms=NOW_MS + 10 * at)]
    board.apply(1, rows, NOW_MS)
    return board


@pytest.fixture(scope="module")
def exporter(board: Board) -> Exporter:
    return Exporter(board, "test", clock_ms=lambda: NOW_MS)


@pytest.fixture(scope="module")
def url(board: Board, exporter: Exporter) -> Iterator[str]:
    server = Server.of(HttpSection(port=0), board, exporter)
    server.start()
    yield server.url
    server.stop()


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    """A recording that has all of them."""
    with open_new_recording(tmp_path / "r.ndjson", HEADER) as new:
        for offset, (key, value) in enumerate(hostile.records()):
            new.write(RecordedRecord(0, offset, NOW_MS + 10 * offset, key, value))
    return tmp_path / "r.ndjson"


def steering(text: str) -> frozenset[str]:
    """What of a text would steer a terminal, its line ends aside."""
    return STEERING & set(text) - {"\n"}


@pytest.mark.parametrize("accept", ["", "application/openmetrics-text; version=1.0.0"])
def test_metrics_are_valid_and_name_every_group(exporter: Exporter, accept: str) -> None:
    """A label value is any text: prometheus-client's own parser reads back each name as it is, but for its length."""
    page = rendered(exporter, accept)[0].decode()
    parse = parse_openmetrics if accept else parse_text
    names = {sample.labels["group"] for family in parse(page) for sample in family.samples if "group" in sample.labels}

    assert {*map(cut, NAMES)} <= names
    assert "\ufffd\ufffd" in names


def test_api_gives_names_as_they_are(board: Board) -> None:
    """JSON has a form for every character; a group's own address answers whatever its name."""
    views = json.loads(json.dumps(list(group_answer.views(board, NOW_MS))))

    assert {*NAMES} <= {view["group"] for view in views}


@pytest.mark.parametrize("json_too", [False, True])
def test_commands_on_a_recording_steer_no_terminal(
    recording: Path, capsys: pytest.CaptureFixture[str], json_too: bool
) -> None:
    """`replay` and `decode` in all their forms, what they warn of, and the error that names what is not there."""
    path, asked = str(recording), ["--json"] if json_too else []
    for arguments in (["replay", path], ["replay", path, "--events"], ["decode", path]):
        assert 0 == main([*arguments, *asked])
        said = capsys.readouterr()
        assert set() == steering(said.out + said.err), arguments
        if json_too:
            for line in said.out.splitlines():
                json.loads(line)
    for name in NAMES:
        assert 0 == main(["replay", path, "--group", name, *asked])
        assert 2 == main(["replay", path, "--group", f"{name}?", *asked])
        said = capsys.readouterr()
        assert set() == steering(said.out + said.err), name
        assert said.err.splitlines()[-1].startswith("error: --group: found ")


def test_commands_on_a_monitor_steer_no_terminal(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    """`groups`, `describe` and the gates, as text and as JSON."""
    for asked in ([], ["--json"]):
        for arguments in (["groups"], ["gate", "upgrade"], ["gate", "downgrade"], *(["describe", of] for of in NAMES)):
            assert main([*arguments, *asked, "--url", url]) in (0, 1, 3)
            said = capsys.readouterr()
            assert set() == steering(said.out + said.err), arguments


FORGED: Final = "line\nERROR: forged\r\u2028ERROR: forged\u0085ERROR: forged"


@pytest.mark.parametrize("form", [[], ["--markdown"], ["--csv"], ["--html", "HTML"]])
@pytest.mark.parametrize(
    "command",
    [
        ["replay", "FILE"],
        ["replay", "FILE", "--events"],
        ["replay", "FILE", "--group", FORGED],
        ["decode", "FILE"],
        ["plan", "--from", "FILE"],
        ["gate", "upgrade", "--from", "FILE"],
        ["gate", "downgrade", "--from", "FILE"],
        ["gate", "upgrade", "--from", "FILE", "--group", FORGED],
        ["report", FORGED, "--from", "FILE", "--since", "2020-01-01T00:00:00Z"],
        ["groups", "--url", "URL"],
        ["describe", FORGED, "--url", "URL"],
        ["describe", f"no {FORGED}", "--url", "URL"],
        ["gate", "upgrade", "--url", "URL", "--group", FORGED],
        ["plan", "--url", "URL"],
        ["plan", "--url", "URL", "--group", FORGED],
        ["report", FORGED, "--url", "URL", "--since", "2020-01-01T00:00:00Z"],
        ["history", FORGED, "--url", "URL"],
    ],
    ids=ascii,
)
def test_no_name_begins_a_line(
    command: list[str], form: list[str], forging: tuple[Path, str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Of no command, in no form: a name of several lines stands on one of ours."""
    file, url = forging
    html = file.with_name("report.html")
    here = {"FILE": str(file), "URL": url, "HTML": str(html)}
    try:
        status = main([here.get(word, word) for word in (*command, *form)])
    except SystemExit as ended:
        status = int(str(ended.code))
    said = capsys.readouterr()
    said_in_all = said.out + said.err + (html.read_text("utf-8") if html.exists() else "")

    assert status in (0, 1, 2, 3)
    assert [] == [line for line in said_in_all.splitlines() if line.lstrip('| >-*"').startswith("ERROR")]


@pytest.fixture(scope="module")
def forging(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str]]:
    """A recording, and a monitor, of a group whose name, members, topics and metadata would each begin a line."""
    member = builders.member(FORGED, {FORGED: [0, 1]}, instance_id=FORGED, client_id=FORGED, client_host=FORGED)
    former = builders.member(f"b{FORGED}", {FORGED: [0]}, client_id=FORGED, client_host=FORGED)
    records = [
        builders.group_metadata(FORGED, generation=1, members=[member, former]),
        builders.group_metadata(FORGED, generation=2, members=[member, former], protocol=FORGED),
        builders.offset_commit(FORGED, FORGED, 0, 5, metadata=FORGED),
        builders.offset_commit(FORGED, FORGED, 0, 3, metadata=FORGED),
        builders.group_metadata(FORGED, generation=3, members=[member], protocol=FORGED),
        (b"\x00\x63" + FORGED.encode(), FORGED.encode()),
        (builders.offset_commit(FORGED, "t", 0, 1)[0], b"\x00\x03\x00"),
    ]
    file = tmp_path_factory.mktemp("forged") / "r.ndjson"
    shard, board = Shard(), Board(EndOffsets())
    with open_new_recording(file, HEADER) as new:
        for offset, (key, value) in enumerate(records):
            new.write(RecordedRecord(0, offset, NOW_MS + 10_000 * offset, key, value))
            shard.pending.append((NOW_MS + 10_000 * offset, key, value))
    board.apply(1, shard.flush(), NOW_MS)
    server = Server.of(HttpSection(port=0), board, Exporter(board, "test"))
    server.start()
    yield file, server.url
    server.stop()


def test_pictures_on_a_terminal_hold_no_sequence_of_a_client_s(url: str) -> None:
    """What `groups`, `describe` and `watch` draw has the escape sequences of the drawing alone."""
    client = MonitorClient(url, None)
    groups = client.groups()
    pictures = [rich_view.summary_line(groups), rich_view.groups_picture(groups, WIDTH)]
    pictures += rich_view.event_lines(client.events(limit=1_000), with_group=True)
    for name in NAMES:
        pictures.append(rich_view.group_picture(client.group(name), client.events(name), WIDTH, NOW_MS))

    screen = drawn(*pictures)
    assert "\\x1b[2J" in screen
    assert set() == steering(SEQUENCES.sub("", screen))


def test_the_demo_s_lines_and_picture_steer_no_terminal(board: Board) -> None:
    """One line an event where output is piped, and the table on a terminal."""
    piped, remarks = io.StringIO(), io.StringIO()
    terminal = Terminal(
        lambda: list(group_answer.views(board, NOW_MS)), address="page /", output=piped, remarks=remarks
    )
    events = board.events.latest(1_000)
    for event in events:
        terminal.event(event)
    terminal.step(f"rolling {NAMES[0]}")

    assert len(events) == piped.getvalue().count("\n")
    assert set() == steering(piped.getvalue() + remarks.getvalue())
    assert set() == steering(SEQUENCES.sub("", drawn(terminal.picture())))


def drawn(*pictures: RenderableType) -> str:
    """What a terminal gets."""
    screen = io.StringIO()
    Console(file=screen, force_terminal=True, width=WIDTH).print(*pictures)
    return screen.getvalue()
