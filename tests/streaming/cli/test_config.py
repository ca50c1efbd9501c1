"""`config`: a file to begin with, which the program takes, and the schema of it."""

import json
from pathlib import Path

import pytest

from streaming.__main__ import main
from streaming.config.loading import load
from streaming.config.schema import json_schema


def test_init_writes_what_the_program_takes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Seven short lines, one of them a comment: cluster, brokers and state; and it says how to go on."""
    file = tmp_path / "monitor.yaml"

    assert 0 == main(["config", "init", str(file), "--bootstrap-server", "a:9092,b:9092", "--cluster", "2024"])
    loaded = load(file, {})
    assert ("2024", "a:9092,b:9092") == (loaded.cluster.name, loaded.kafka.bootstrap_servers)
    assert load(None, {}).state.dir == loaded.state.dir
    assert 7 == len(file.read_text("utf-8").splitlines())
    assert f"{file} written; now: group-monitor check --config {file}\n" == capsys.readouterr().err


def test_init_without_options_is_of_a_broker_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the current directory, under the name that the pages use."""
    monkeypatch.chdir(tmp_path)

    assert 0 == main(["config", "init"])
    assert "127.0.0.1:9092" == load(Path("monitor.yaml"), {}).kafka.bootstrap_servers


def test_init_overwrites_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file that is there stays as it is, and is named."""
    file = tmp_path / "monitor.yaml"
    file.write_text("precious\n", "utf-8")

    assert 2 == main(["config", "init", str(file)])
    assert "precious\n" == file.read_text("utf-8")
    assert f"error: FILE: found {str(file)!r}, accepted: a file that is not there yet\n" == capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--bootstrap-server", "nowhere"], "kafka.bootstrap_servers: found 'nowhere', accepted: HOST:PORT"),
        (["--cluster", ""], "cluster.name: found ''"),
    ],
)
def test_init_refuses_what_the_program_would(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    """Before anything is written."""
    file = tmp_path / "monitor.yaml"

    assert 2 == main(["config", "init", str(file), *arguments])
    assert said in capsys.readouterr().err
    assert not file.exists()


def test_init_where_nothing_can_be_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One line with the reason."""
    file = tmp_path / "none" / "monitor.yaml"

    assert 2 == main(["config", "init", str(file)])
    assert (
        f"error: FILE: found {str(file)!r} (No such file or directory), accepted: a file that can be written\n"
        == capsys.readouterr().err
    )


def test_schema_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    """As one JSON document."""
    assert 0 == main(["config", "schema"])
    assert json_schema() == json.loads(capsys.readouterr().out)
