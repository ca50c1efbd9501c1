"""`history`, asked of the files of a history and of the real server over them."""

import json
import os
import pty
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from streaming.__main__ import main
from streaming.base.times import time_text
from streaming.board import group_answer
from streaming.config.sections import HttpSection
from streaming.history.queries import History
from streaming.history.store import HistoryStore
from streaming.history.tables import rows
from streaming.metrics.exporter import Exporter
from streaming.web.history_api import MOST_QUESTIONS
from streaming.web.server import Server
from tests.streaming.board_rows import Shard
from tests.streaming.boards import CLUSTER, NOW_MS, board_of, caught_up, classic_group
from tests.streaming.history.entries import deleted, event

GROUP = 'quo"te/☃ \x1b[2J'
Ask = Callable[..., tuple[int, str, str]]


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A history of a group that joined members, as the board's view of it was; of another one that went."""
    directory = tmp_path / "history"
    shard = Shard()
    classic_group(shard, GROUP, {"m1": {"orders": [0, 1]}})
    state = group_answer.view(board_of(shard), GROUP, NOW_MS)
    store = HistoryStore(directory)
    entries: list[dict[str, Any]] = [
        {"kind": "group", "group": GROUP, "time": NOW_MS - 5_000, "state": state},
        {"kind": "group", "group": "gone", "time": NOW_MS - 5_000, "state": {**(state or {}), "group": "gone"}},
        deleted(group="gone", time_ms=NOW_MS - 1_000),
        *(event(offset, group=GROUP, time_ms=NOW_MS - 5_000 + offset * 1_000) for offset in range(5)),
    ]
    for table, ordered in rows(enumerate(entries)).items():
        store.write(table, ordered)
    store.set_complete(NOW_MS - 5_000)
    return directory


@pytest.fixture
def servers() -> Iterator[list[Server]]:
    started: list[Server] = []
    yield started
    for server in started:
        server.stop()


@pytest.fixture(params=["--dir", "--config", "--url"])
def ask(request: pytest.FixtureRequest, directory: Path, servers: list[Server], capsys: Any, monkeypatch: Any) -> Ask:
    """Run the command on the history in each of the ways it can be reached."""
    monkeypatch.delenv("GROUP_MONITOR_URL", raising=False)
    match request.param:
        case "--dir":
            source = str(directory)
        case "--config":
            config = directory.parent / "monitor.yaml"
            config.write_text(f"history: {{dir: '{directory}'}}\n", "utf-8")
            source = str(config)
        case _:
            source = serve(servers, History(directory))

    def asked(*words: str) -> tuple[int, str, str]:
        status = main(["history", *words, request.param, source])
        printed = capsys.readouterr()
        return status, printed.out, printed.err

    return asked


def serve(servers: list[Server], history: History | None, shard: Shard | None = None) -> str:
    """The address of a monitor with that history."""
    board = caught_up(board_of(shard or Shard()))
    server = Server.of(HttpSection(port=0), board, Exporter(board, CLUSTER), history=history)
    servers.append(server)
    server.start()
    return server.url


def test_tells_what_happened(ask: Ask) -> None:
    """One line an event, the oldest first; a name cannot steer the terminal."""
    status, out, err = ask(GROUP)

    assert (0, "") == (status, err)
    assert [f"m{number} joined" for number in range(5)] == [line[-len("m0 joined") :] for line in out.splitlines()]
    assert out.startswith(f"{time_text(NOW_MS - 5_000)} info     member_joined quo")
    assert "\x1b" not in out


def test_tells_it_as_json(ask: Ask) -> None:
    """The EVENTs, with their ids."""
    _, out, _ = ask(GROUP, "--json")

    expected = [event(offset, group=GROUP, time_ms=NOW_MS - 5_000 + offset * 1_000)["event"] for offset in range(5)]
    assert {"group": GROUP, "events": expected} == json.loads(out)


def test_span_and_number_of_events(ask: Ask) -> None:
    """--since, --until and --limit bound what is reported; that there may be more is said."""
    _, out, err = ask(GROUP, "--since", str(NOW_MS - 4_000), "--until", time_text(NOW_MS - 2_000), "--limit", "2")

    assert ["m2 joined", "m3 joined"] == [line[-len("m0 joined") :] for line in out.splitlines()]
    assert "the latest 2 events" in err
    status, out, err = ask(GROUP, "--since", "1 minute ago")
    assert (0, "", "no events in that time\n") == (status, out, err)


def test_group_as_it_was(ask: Ask) -> None:
    """In the words of describe, and as the GROUP; both say of when it is."""
    _, out, err = ask(GROUP, "--at", str(NOW_MS - 3_000))
    assert "orders:0,1" in out
    assert f"as of {time_text(NOW_MS - 5_000)}, asked for {time_text(NOW_MS - 3_000)}" in err

    _, out, _ = ask(GROUP, "--at", str(NOW_MS - 3_000), "--json")
    found = json.loads(out)
    assert (GROUP, "Stable", NOW_MS - 5_000) == (found["group"], found["state"], found["as_of"])
    assert [{"orders": [0, 1]}] == [member["assigned"] for member in found["members"]]


@pytest.mark.parametrize(
    ("words", "status", "expected"),
    [
        (["never"], 2, "error: group: found no 'never' in the history, accepted: a group it knows"),
        (["never", "--at", str(NOW_MS)], 2, "error: group: found no 'never' at 2023-11-14T22:15:00.000Z, accepted:"),
        (["gone", "--at", str(NOW_MS)], 2, "found no 'gone' at 2023-11-14T22:15:00.000Z, deleted 2023-11-14T22:14:59"),
        ([GROUP, "--at", str(NOW_MS - 9_000)], 3, "accepted: a time from 2023-11-14T22:14:55.000Z on"),
        ([GROUP, "--at", "yesterday"], 2, "error: --at: found 'yesterday', accepted: ISO-8601"),
        ([GROUP, "--since", "1.5"], 2, "error: --since: found '1.5', accepted: ISO-8601"),
        ([GROUP, "--at", "2999-01-01"], 2, "which is yet to come, accepted: a time of the past"),
        ([GROUP, "--at", "1", "--since", "1"], 2, "accepted: either a moment or a span of time"),
        ([GROUP, "--limit", "0"], 2, "--limit"),
    ],
)
def test_what_cannot_be_known(ask: Ask, words: list[str], status: int, expected: str) -> None:
    """1 for a group there is not, or was not then; 2 for a mistake; 3 where the history does not go back so far."""
    found, out, err = ask(*words)

    assert (status, "") == (found, out)
    assert expected in err
    assert 1 == len(err.splitlines())


def test_monitor_without_a_history(servers: list[Server], capsys: pytest.CaptureFixture[str]) -> None:
    """Cannot tell, and says which option keeps one."""
    assert 3 == main(["history", "a", "--url", serve(servers, None)])
    assert "error: history: found none kept, accepted: a monitor with history.enabled\n" == capsys.readouterr().err


def test_directory_there_is_not(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Named, with exit status 2; so are two sources at once."""
    assert 2 == main(["history", "a", "--dir", str(tmp_path / "no")])
    assert "--dir: found" in capsys.readouterr().err
    assert 2 == main(["history", "a", "--dir", str(tmp_path), "--config", str(tmp_path / "x.yaml")])
    assert "accepted: one of them" in capsys.readouterr().err


def test_monitor_tells_the_last_seconds_too(
    directory: Path, servers: list[Server], capsys: pytest.CaptureFixture[str]
) -> None:
    """What is not in the files yet is in the window of the latest events; reported once where it is in both."""
    url = serve(servers, History(directory))
    window = servers[0]._pages._api.board.events
    window.add([event(4, group=GROUP, time_ms=NOW_MS - 1_000)["event"], event(5, group=GROUP, time_ms=NOW_MS)["event"]])
    window.add([event(9, group="new", time_ms=NOW_MS)["event"]])

    assert 0 == main(["history", GROUP, "--url", url, "--limit", "3", "--json"])
    assert [3, 4, 5] == [found["offset"] for found in json.loads(capsys.readouterr().out)["events"]]
    assert 0 == main(["history", GROUP, "--url", url, "--until", str(NOW_MS - 1), "--json"])
    assert [0, 1, 2, 3, 4] == [found["offset"] for found in json.loads(capsys.readouterr().out)["events"]]
    assert 0 == main(["history", "new", "--url", url, "--json"])
    assert [9] == [found["offset"] for found in json.loads(capsys.readouterr().out)["events"]]


def test_on_a_terminal_days_head_the_events(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Events read from above to below under their day; a group is drawn as describe draws it."""
    drawn = on_terminal(monkeypatch, ["history", GROUP, "--dir", str(directory)])
    assert drawn.index("2023-11-14") < drawn.index("22:14:55") < drawn.index("22:14:59")

    drawn = on_terminal(monkeypatch, ["history", GROUP, "--dir", str(directory), "--at", str(NOW_MS)])
    assert "Stable" in drawn
    assert "orders" in drawn


def on_terminal(monkeypatch: pytest.MonkeyPatch, words: list[str]) -> str:
    """What a command prints on a terminal."""
    parent, child = pty.openpty()
    try:
        with os.fdopen(child, "w", encoding="utf-8") as terminal, monkeypatch.context() as patched:
            patched.setattr("sys.stdout", terminal)
            patched.setenv("COLUMNS", "120")
            assert 0 == main(words)
        drawn = b""
        # A terminal gives what it has piece by piece, and an error at its end.
        with suppress(OSError):
            while piece := os.read(parent, 100_000):
                drawn += piece
        return drawn.decode()
    finally:
        os.close(parent)


def answered(url: str) -> tuple[int, Any]:
    """Status of an answer, and what it says."""
    try:
        with urlopen(url, timeout=20) as answer:  # noqa: S310 - our own server
            return answer.status, json.load(answer)
    except HTTPError as error:
        return error.code, json.load(error)


def test_a_history_that_is_asked_much_says_so(directory: Path, servers: list[Server]) -> None:
    """Beyond so many questions at a time there is an answer at once, 503 with the reason; afterwards all is well."""
    url = serve(servers, History(directory))
    turns = servers[-1]._pages._api._past._turns
    taken = [turns.acquire(blocking=False) for _ in range(MOST_QUESTIONS)]
    assert all(taken)
    reason = "history: found 4 questions under way, accepted: fewer at a time"
    assert (503, {"error": reason}) == answered(f"{url}/api/v1/history/gone")
    for _ in taken:
        turns.release()

    assert (200, {"group": "gone", "events": []}) == answered(f"{url}/api/v1/history/gone")
    assert 404 == answered(f"{url}/api/v1/history/never")[0]
    assert all(turns.acquire(blocking=False) for _ in taken)


@pytest.mark.parametrize(
    "path",
    [
        "../elsewhere",
        "..%2felsewhere",
        "%2e%2e%2f%2e%2e%2fetc%2fpasswd",
        "?name=../elsewhere",
        "elsewhere?dir={outside}",
    ],
)
def test_no_question_leads_out_of_the_history(directory: Path, servers: list[Server], path: str) -> None:
    """A name is compared with what rows hold, and is part of no path; no one may name a directory."""
    outside = directory.parent / "elsewhere"
    for table, ordered in rows([(0, event(0, group="elsewhere"))]).items():
        HistoryStore(outside).write(table, ordered)
    url = serve(servers, History(directory))

    for query in ("", "at=1", f"at={NOW_MS}"):
        given = path.format(outside=outside)
        status, reported = answered(f"{url}/api/v1/history/{given}{'&' if '?' in given else '?'}{query}")
        assert status in ((400,) if "dir=" in path else (404, 410))
        assert ["error"] == list(reported)
