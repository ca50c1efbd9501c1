"""`demo` of an installed wheel fetches the jars of Kafka: after a yes on a terminal, or with --yes, and never else."""

import io
import sys
from pathlib import Path
from typing import Final

import pytest

from streaming.__main__ import main
from streaming.base.errors import CannotTellError
from streaming.spark import kafka_jars

DIRECTORY: Final = Path("/cache/jars/kafka-1")


class Terminal(io.StringIO):
    """A stream that says it is one."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def fetched(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was fetched: a wheel without jars, whose fetching ends the command."""
    calls: list[str] = []

    def fetch() -> None:
        calls.append("all")
        raise CannotTellError("jars: the registry is away")

    monkeypatch.setattr(kafka_jars, "must_be_fetched", lambda: True)
    monkeypatch.setattr(kafka_jars, "fetch", fetch)
    monkeypatch.setattr(kafka_jars, "DIRECTORY", DIRECTORY)
    return calls


def test_without_a_terminal_it_says_how(fetched: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing is fetched that was not asked for: one line names directory, option and size."""
    assert 2 == main(["demo"])
    assert [] == fetched
    assert (
        "error: jars: found none in '/cache/jars/kafka-1', accepted: --yes, which fetches the jars of Kafka (55 MB, "
        "from Maven's central registry)\n"
    ) == capsys.readouterr().err


def test_yes_asks_nothing(fetched: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """It says where to, and what came of it; the members alone need them as well."""
    assert 3 == main(["demo", "--yes"])
    assert 3 == main(["demo", "--yes", "--bootstrap-server", "127.0.0.1:9"])
    assert ["all", "all"] == fetched
    lines = capsys.readouterr().err.splitlines()
    assert "Fetching jars of Kafka (55 MB, from Maven's central registry) into /cache/jars/kafka-1 (once)" == lines[0]
    assert "error: jars: the registry is away" == lines[1]


@pytest.mark.parametrize(("answer", "expected"), [("y\n", ["all"]), ("\n", ["all"]), ("n\n", [])])
def test_a_terminal_is_asked_once(
    fetched: list[str], monkeypatch: pytest.MonkeyPatch, answer: str, expected: list[str]
) -> None:
    """Yes is the default; after a no nothing is fetched."""
    said = Terminal()
    monkeypatch.setattr(sys, "stdin", Terminal(answer))
    monkeypatch.setattr(sys, "stderr", said)

    assert (3 if expected else 2) == main(["demo"])
    assert expected == fetched
    assert 1 == said.getvalue().count(
        "Fetch jars of Kafka (55 MB, from Maven's central registry) into /cache/jars/kafka-1?"
    )


def test_jars_that_are_there_are_not_asked_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nor are those of a checkout, which `make setup` fetches."""
    monkeypatch.setattr(kafka_jars, "DIRECTORY", tmp_path)
    monkeypatch.setattr(kafka_jars, "IS_CHECKOUT", False)
    assert not kafka_jars.must_be_fetched()
    monkeypatch.setattr(kafka_jars, "DIRECTORY", tmp_path / "none")
    assert kafka_jars.must_be_fetched()
    monkeypatch.setattr(kafka_jars, "IS_CHECKOUT", True)
    assert not kafka_jars.must_be_fetched()


def test_what_cannot_be_fetched_leaves_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """With a registry that is not there Ivy's own reason is in the line, its whole answer in the log beside."""
    directory = tmp_path / "jars" / "kafka-1"
    settings = tmp_path / "ivysettings.xml"
    settings.write_text(
        '<ivysettings><settings defaultResolver="r"/><resolvers><ibiblio name="r" m2compatible="true" '
        'root="http://127.0.0.1:9/"/></resolvers></ivysettings>',
        "utf-8",
    )
    monkeypatch.setattr(kafka_jars, "DIRECTORY", directory)
    monkeypatch.setattr(kafka_jars, "_SETTINGS", settings)

    with pytest.raises(
        CannotTellError, match=r"^jars: not all of ivy\.xml could be fetched \(.+; see .+kafka-1\.log\)"
    ):
        kafka_jars.fetch()
    assert [directory.with_suffix(".log")] == [*directory.parent.iterdir()]
