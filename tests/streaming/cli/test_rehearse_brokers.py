"""`rehearse brokers`: what is refused before anything starts, and how it ends; brokers take part in none of it."""

import io
import json
import sys
from pathlib import Path
from typing import Any, Final

import pytest

from streaming.__main__ import main
from streaming.base.errors import UsageError
from streaming.loading import compared, run
from streaming.spark import java, kafka_jars, release_jars

LOG: Final = str(Path(__file__).parents[2] / "recordings" / "4.3.1" / "offsets.ndjson.gz")
COMMAND: Final = ("rehearse", "brokers")

WELL: Final[dict[str, Any]] = {
    "loads": True,
    "partitions": [],
    "groups": 3,
    "groups_missing": [],
    "groups_changed": [],
    "offsets_missing": 0,
    "offsets_different": 0,
    "groups_more": [],
    "offsets_more": 0,
    "seconds": 1.0,
}
LOST: Final = {**WELL, "groups_missing": ["g"]}
UNTOLD: Final[dict[str, Any]] = {
    "loads": None,
    "partitions": [],
    "cannot_tell": "its broker did not start: Address already in use",
}
REPORT: Final[dict[str, Any]] = {
    "format": compared.FORMAT,
    "cluster_id": None,
    "time": 1_795_000_000_000,
    "not_rehearsed": [],
    "not_compared": [],
}


@pytest.fixture(autouse=True)
def no_broker(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Java is there, jars are not, and nothing is fetched."""

    def fetched(releases: list[str], *_: object) -> dict[str, str]:
        return dict.fromkeys(releases, "jars: not fetched in a test")

    monkeypatch.setattr(java, "find_java", lambda: Path("java"))
    monkeypatch.setattr(release_jars, "DIRECTORY", tmp_path / "jars")
    monkeypatch.setattr(release_jars, "fetch", fetched)


def rehearsed(monkeypatch: pytest.MonkeyPatch, *views: dict[str, Any]) -> list[Any]:
    """Have a rehearsal that ends with these releases; returns what it is called with."""
    called: list[Any] = []

    def made(source: Any, releases: list[str], **_: object) -> dict[str, Any]:
        called.append((source, releases))
        found = [{"release": release, **view} for release, view in zip(releases, views, strict=True)]
        return {**REPORT, "records": sum(source.records.values()), "releases": found}

    monkeypatch.setattr(run, "rehearse", made)
    monkeypatch.setattr(release_jars, "missing", lambda *_: [])
    return called


@pytest.mark.parametrize(
    ("arguments", "status", "expected"),
    [
        ([], 2, "--from: found none, accepted: a recording, or --config or --bootstrap-server"),
        (["--from", LOG, "--config", "c"], 2, "--from: found with --config"),
        (["--from", "none", "--release", "4.3.1"], 2, "--from: found 'none'"),
        (["--from", LOG, "--release", "4.3"], 2, "--release: found '4.3', accepted: a release with its patch number"),
        (["--from", LOG, "--release", "2.8.2"], 2, "--release: found '2.8.2', accepted: a release"),
        (["--from", LOG, "--broker-config", "x"], 2, "--broker-config: found 'x', accepted: NAME=VALUE"),
        (["--from", LOG, "--json", "--markdown"], 2, "--markdown: found with --json"),
        (["--from", LOG, "--html", "no/h"], 2, "--html: found 'no/h', accepted: a file"),
        (["--from", LOG, "--jars", "none"], 2, "--jars: found 'none', accepted: a directory"),
        (["--from", LOG, "--keep", LOG], 2, "accepted: a directory that can be written"),
        (["--from", LOG, "--release", "4.1.9"], 3, "jars: found none of Kafka 4.1.9, accepted: --yes, which fetches"),
        (["--from", LOG, "--release", "4.1.9", "--yes"], 3, "jars: not fetched in a test"),
        (["--from", LOG, "--release", "4.1.9", "--jars", "."], 3, "--jars: found none of Kafka 4.1.9 in '.', accepted"),
        (["--bootstrap-server", "127.0.0.1:9", "--release", "4.3.1"], 3, "127.0.0.1:9"),
    ],
)
def test_what_cannot_be_done_is_reported_in_one_line(
    arguments: list[str], status: int, expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Option, what was found, what is accepted; no broker is started."""
    assert status == main([*COMMAND, *arguments])

    captured = capsys.readouterr()
    assert "" == captured.out
    assert expected in captured.err.splitlines()[-1]


class Terminal(io.StringIO):
    """A stream that says it is one."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("answer", "fetched"), [("y\n", ["4.1.9", "4.1.8"]), ("\n", ["4.1.9", "4.1.8"]), ("n\n", [])])
def test_a_terminal_is_asked_once_for_the_jars(
    answer: str, fetched: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With the releases that lack them; after a no nothing is fetched, and it cannot tell."""
    asked: list[str] = []
    said = Terminal()

    def fetch(releases: list[str], _say: object) -> dict[str, str]:
        asked.extend(releases)
        return {}

    monkeypatch.setattr(release_jars, "fetch", fetch)
    monkeypatch.setattr(sys, "stdin", Terminal(answer))
    monkeypatch.setattr(sys, "stderr", said)
    monkeypatch.setattr(
        run, "rehearse", lambda *_, **__: {**REPORT, "records": 0, "releases": [{"release": "4.1.9", **WELL}]}
    )

    status = main([*COMMAND, "--from", LOG, "--release", "4.1.9", "--release", "4.1.8", "--json"])

    assert (0 if fetched else 3, fetched) == (status, asked)
    question = "Fetch the jars of Kafka 4.1.9, 4.1.8 (90 MB each, from Maven's central registry) into "
    assert 1 == said.getvalue().count(question)


def test_without_java_it_cannot_tell(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """That is no mistake of the command."""

    def none() -> Path:
        raise UsageError("PATH: found no java, accepted: Java 17 or 21")

    monkeypatch.setattr(java, "find_java", none)

    assert 3 == main([*COMMAND, "--from", LOG, "--release", "4.3.1"])
    assert "PATH: found no java" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("views", "status"),
    [
        ([WELL, WELL], 0),
        ([WELL, LOST], 1),
        ([WELL, UNTOLD], 3),
        ([UNTOLD, LOST], 1),
        ([LOST, UNTOLD], 1),
        ([WELL, {**WELL, "loads": False}], 1),
    ],
)
def test_exit_status(
    views: list[dict[str, Any]], status: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of several releases 1 goes before 3; the report is printed all the same."""
    rehearsed(monkeypatch, *views)

    assert status == main([*COMMAND, "--from", LOG, "--json", "--release", "4.3.1", "--release", "4.3.0"])
    captured = capsys.readouterr()
    assert ["4.3.1", "4.3.0"] == [of["release"] for of in json.loads(captured.out)["releases"]]
    assert ("Address already in use" in captured.err) == (status == 3)


@pytest.mark.parametrize("options", [["--yes"], ["--jars", "."]])
def test_a_release_without_jars_keeps_no_other_from_being_rehearsed(
    options: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A registry may lack one of all patch releases: it cannot be told of that one, with the reason; 1 goes before."""
    jars = tmp_path / "jars" / "4.3.1"
    jars.mkdir(parents=True)
    (jars / "kafka_2.13-4.3.1.jar").touch()
    monkeypatch.chdir(tmp_path / "jars")
    monkeypatch.setattr(kafka_jars, "DIRECTORY", tmp_path / "none")
    found = [WELL, LOST]
    monkeypatch.setattr(run, "_loaded", lambda _source, release, *_: {"release": release, **found.pop(0)})
    command = [*COMMAND, "--from", LOG, "--release", "4.1.9", "--release", "4.3.1", *options]

    assert 3 == main(command)
    assert "error: Kafka 4.1.9: " in capsys.readouterr().err
    assert 1 == main([*command, "--json"])
    lacking, there = json.loads(capsys.readouterr().out)["releases"]
    assert (None, True) == (lacking["loads"], there["loads"])
    assert ("not fetched in a test" if options == ["--yes"] else "--jars: found none of Kafka 4.1.9") in lacking[
        "cannot_tell"
    ]


def test_releases_default_to_those_of_the_brokers(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every patch release of the minor release that the recording names; the list is printed."""
    called = rehearsed(monkeypatch, WELL, WELL)

    assert 0 == main([*COMMAND, "--from", LOG])

    assert ["4.3.0", "4.3.1"] == called[0][1]
    captured = capsys.readouterr()
    assert "rehearsing 4.3.0, 4.3.1, on this machine alone" in captured.err
    assert "yes, and all is there" in captured.out


def test_what_is_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The report, and one HTML file without a link."""
    rehearsed(monkeypatch, LOST)
    keep, html = tmp_path / "kept", tmp_path / "report.html"
    keep.mkdir()

    assert 1 == main(
        [*COMMAND, "--from", LOG, "--release", "4.3.1", "--keep", str(keep), "--html", str(html), "--markdown"]
    )

    assert compared.FORMAT == json.loads((keep / "report.json").read_text("utf-8"))["format"]
    assert "http" not in html.read_text("utf-8")
    assert capsys.readouterr().out.startswith("# Rehearsal of brokers: ")


def test_what_was_kept_before_is_not_written_to(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A broker of another cluster id does not start on it."""
    rehearsed(monkeypatch, WELL)
    (tmp_path / "4.3.1").mkdir()

    assert 2 == main([*COMMAND, "--from", LOG, "--release", "4.3.1", "--keep", str(tmp_path)])
    assert "accepted: a directory without it" in capsys.readouterr().err


def test_jars_are_looked_for_where_they_are_given(tmp_path: Path) -> None:
    """A folder of one release, of several, or of distributions."""
    (tmp_path / "4.0.2").mkdir()
    (tmp_path / "4.0.2" / "kafka_2.13-4.0.2.jar").touch()
    (tmp_path / "3.9.2" / "libs").mkdir(parents=True)
    (tmp_path / "3.9.2" / "libs" / "kafka_2.13-3.9.2.jar").touch()
    (tmp_path / "kafka_2.13-4.3.1.jar").touch()
    releases = ["4.0.2", "3.9.2", "4.3.1", "4.3.0"]

    places = [release_jars.place(release, tmp_path) for release in releases]

    assert [tmp_path / "4.0.2", tmp_path / "3.9.2" / "libs", tmp_path, tmp_path] == places
    assert ["4.3.0"] == release_jars.missing(releases, tmp_path)
