"""`group-monitor dashboards`: what it writes, what it says to Grafana, and what it says when it cannot."""

import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
import typer.main

from dashboards.build import boards, files
from streaming.__main__ import app, main
from tests.dashboards.grafana_stub import TOKEN, GrafanaStub, running_grafana

ROOT: Final = Path(__file__).resolve().parents[2]
PUSH: Final = ["dashboards", "push", "--url"]


@pytest.fixture(autouse=True)
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    """The stub's token is in the environment, and nothing else is."""
    for name in ("GRAFANA_URL", "GRAFANA_USERNAME", "GRAFANA_PASSWORD"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("GRAFANA_TOKEN", TOKEN)


@pytest.fixture
def grafana() -> Iterator[GrafanaStub]:
    with running_grafana() as stub:
        yield stub


def actions(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[str]:
    """What `push --json` did, step by step."""
    assert 0 == main([*PUSH, *arguments, "--json"])
    return [step["action"] for step in json.loads(capsys.readouterr().out)["steps"]]


def refusal(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    """Exit status and the one line on standard error."""
    status = main([*PUSH, *arguments])
    captured = capsys.readouterr()
    assert ("", 1) == (captured.out, len(captured.err.splitlines()))
    return status, captured.err


class TestHelp:
    """Everything is explained where it is used."""

    @pytest.mark.parametrize("name", ["build", "push", "settings"])
    def test_every_option_has_help(self, name: str) -> None:
        """The command and each of its options say what they are for, and the README names it."""
        group = typer.main.get_command(app).commands["dashboards"]  # type: ignore[attr-defined]  # a group
        command = group.commands[name]

        assert command.help
        assert [] == [parameter.name for parameter in command.params if not getattr(parameter, "help", None)]
        assert f"group-monitor dashboards {name}" in (ROOT / "README.md").read_text("utf-8")

    def test_without_a_command(self, capsys: pytest.CaptureFixture[str]) -> None:
        """Neither built nor pushed: a usage error in one line."""
        assert 2 == main(["dashboards"])
        assert "error: Missing command." in capsys.readouterr().err


class TestBuild:
    """`build` writes what is committed, elsewhere and with other links."""

    def test_writes_all(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        """Boards and rules are in the directory, and alerts lead where one says."""
        assert 0 == main(["dashboards", "build", "--out", str(tmp_path), "--runbook-url", "https://docs.example/r"])

        assert f"7 of 7 files written in {tmp_path}\n" == capsys.readouterr().err
        assert sorted(files()) == sorted(path.name for path in tmp_path.iterdir())
        assert "https://docs.example/r#kafkagroupduplicateowner" in (tmp_path / "rules.yaml").read_text("utf-8")

    @pytest.mark.parametrize("option", ["--runbook-url", "--grafana-url"])
    def test_half_an_address_is_refused(self, option: str, capsys: pytest.CaptureFixture[str]) -> None:
        """A link in an alert is read in mails and on telephones, where nothing completes it."""
        assert 2 == main(["dashboards", "build", option, "/runbook"])
        assert f"error: {option}: found '/runbook', accepted: a whole address" in capsys.readouterr().err

    def test_check(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        """What is committed is current: 0. What is not there is stale: 1, and nothing is written."""
        assert 0 == main(["dashboards", "build", "--check"])
        assert 1 == main(["dashboards", "build", "--check", "--out", str(tmp_path)])

        assert "run python -m dashboards.build" in capsys.readouterr().err
        assert [] == list(tmp_path.iterdir())

    def test_a_file_is_no_directory(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        """Where nothing can be written, the option is named."""
        (tmp_path / "file").touch()

        assert 2 == main(["dashboards", "build", "--out", str(tmp_path / "file")])
        assert "error: --out: found" in capsys.readouterr().err


class TestPush:
    """`push` leaves the boards in a folder, once."""

    def test_first_push(self, grafana: GrafanaStub, capsys: pytest.CaptureFixture[str]) -> None:
        """All boards are put into a folder that is made for them, as they are built."""
        assert ["created"] * 6 == actions(capsys, grafana.url)

        assert ["Kafka groups"] == [folder["title"] for folder in grafana.folders]
        for board in boards().values():
            held = grafana.dashboards[board["uid"]]
            assert "folder-0" == held["meta"]["folderUid"]
            assert board == {name: value for name, value in held["dashboard"].items() if name not in {"id", "version"}}

    def test_second_push_changes_nothing(self, grafana: GrafanaStub, capsys: pytest.CaptureFixture[str]) -> None:
        """What is there and equal is left alone: not one request but GET."""
        actions(capsys, grafana.url, "--prometheus-url", "http://prometheus:9090")
        grafana.requests.clear()

        assert ["unchanged"] * 7 == actions(capsys, grafana.url, "--prometheus-url", "http://prometheus:9090")
        assert [] == grafana.changes

    def test_what_was_changed_is_put_right(self, grafana: GrafanaStub, capsys: pytest.CaptureFixture[str]) -> None:
        """A board edited in place is as it is built again, and the others are not touched."""
        actions(capsys, grafana.url)
        grafana.dashboards["group-monitor-group"]["dashboard"]["title"] = "mine"

        assert {"unchanged": 5, "updated": 1} == counted(actions(capsys, grafana.url))
        assert "Kafka groups: Group" == grafana.dashboards["group-monitor-group"]["dashboard"]["title"]

    def test_data_source(self, grafana: GrafanaStub, capsys: pytest.CaptureFixture[str]) -> None:
        """A data source is made where an address is given, and follows it when it changes."""
        actions(capsys, grafana.url, "--prometheus-url", "http://old:9090")

        assert "updated" == actions(capsys, grafana.url, "--prometheus-url", "http://new:9090")[0]
        assert "http://new:9090" == grafana.data_sources["group-monitor"]["url"]
        assert "prometheus" == grafana.data_sources["group-monitor"]["type"]

    def test_boards_show_the_data_source_that_was_pushed(
        self, grafana: GrafanaStub, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """Of several, Grafana's default may be any; a push without an address keeps what an earlier one made."""
        actions(capsys, grafana.url)
        before = chosen(grafana)
        actions(capsys, grafana.url, "--prometheus-url", "http://prometheus:9090")
        bound = chosen(grafana)

        assert [None] * 4 == before
        assert ["group-monitor"] * 4 == bound
        assert {"unchanged": 6} == counted(actions(capsys, grafana.url))

    def test_limits_and_matchers_are_the_users(
        self, grafana: GrafanaStub, capsys: pytest.CaptureFixture[str], tmp_path: Path
    ) -> None:
        """Boards in Grafana have what was said, as those in a directory; a single option counts before the file."""
        values = tmp_path / "values.yaml"
        values.write_text("""lag_seconds: 4321\nselector: job="of-the-file"\n""", "utf-8")
        actions(capsys, grafana.url, "--values", str(values), "--set", 'selector=job="own"')
        pushed = json.dumps(grafana.dashboards)

        assert '"value": 4321' in pushed
        assert r"job=\"own\", cluster" in pushed
        assert "of-the-file" not in pushed

    def test_addresses_are_printed(self, grafana: GrafanaStub, capsys: pytest.CaptureFixture[str]) -> None:
        """Of each board, under the path that Grafana is served under; a folder has none."""
        assert 0 == main([*PUSH, grafana.url, "--json"])
        steps = json.loads(capsys.readouterr().out)["steps"]
        assert 0 == main([*PUSH, grafana.url])

        assert [None, *(f"{grafana.url}/d/{board['uid']}" for board in boards().values())] == [
            of["url"] for of in steps
        ]
        assert f"{grafana.url}/d/group-monitor-overview" in capsys.readouterr().out

    def test_dry_run(self, grafana: GrafanaStub, capsys: pytest.CaptureFixture[str]) -> None:
        """Everything is reported that would be done, and nothing is."""
        options = (grafana.url, "--dry-run", "--prometheus-url", "http://prometheus:9090", "--folder", "Ours")

        assert ["created"] * 7 == actions(capsys, *options)
        assert 0 == main([*PUSH, *options])
        assert "WOULD BE" in capsys.readouterr().out
        assert [] == grafana.changes


class TestRefusals:
    """A wrong address or token is one line that says which."""

    def test_wrong_token(
        self, grafana: GrafanaStub, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The variable is named, the token is not shown."""
        monkeypatch.setenv("GRAFANA_TOKEN", "glsa_wrong")
        status, line = refusal(capsys, grafana.url)

        assert 3 == status
        assert line.startswith(f"error: GRAFANA_TOKEN: found credentials that {grafana.url} refuses (Unauthorized)")
        assert "glsa_wrong" not in line

    @pytest.mark.parametrize(
        ("given", "named"),
        [
            ({}, "GRAFANA_TOKEN: found no credentials"),
            ({"GRAFANA_USERNAME": "admin", "GRAFANA_PASSWORD": "wrong"}, "GRAFANA_USERNAME, GRAFANA_PASSWORD: found "),
        ],
    )
    def test_what_was_used_is_named(
        self,
        grafana: GrafanaStub,
        capsys: pytest.CaptureFixture[str],
        monkeypatch: pytest.MonkeyPatch,
        given: dict[str, str],
        named: str,
    ) -> None:
        """Not the token where a password was given, nor a token that is not there."""
        monkeypatch.delenv("GRAFANA_TOKEN")
        for name, value in given.items():
            monkeypatch.setenv(name, value)
        status, line = refusal(capsys, grafana.url)

        assert (3, True, False) == (status, line.startswith(f"error: {named}"), "wrong" in line)

    def test_nobody_there(self, capsys: pytest.CaptureFixture[str]) -> None:
        """An address without a listener is named with the reason."""
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            url = f"http://127.0.0.1:{listener.getsockname()[1]}"

        assert (3, f"error: --url: found {url} (Connection refused), accepted: the address of a Grafana\n") == refusal(
            capsys, url
        )

    def test_somebody_else_there(self, grafana: GrafanaStub, capsys: pytest.CaptureFixture[str]) -> None:
        """A server without Grafana's API under that path is none."""
        status, line = refusal(capsys, grafana.url + "/elsewhere")

        assert 3 == status
        assert line.startswith(f"error: --url: found {grafana.url}/elsewhere (Client Error 404")

    def test_too_old(self, grafana: GrafanaStub, capsys: pytest.CaptureFixture[str]) -> None:
        """A Grafana that does not show these boards is distinguished from one that does, before anything is written."""
        grafana.release = "9.5.2"

        assert (1, f"error: --url: found Grafana 9.5.2 at {grafana.url}, accepted: 10 or newer\n") == refusal(
            capsys, grafana.url
        )
        assert [] == grafana.changes

    @pytest.mark.parametrize("url", ["grafana:3000", "ftp://grafana", "http://", "http://grafana:port"])
    def test_no_address(self, capsys: pytest.CaptureFixture[str], url: str) -> None:
        """What is no address is a usage error."""
        status, line = refusal(capsys, url)

        assert (2, True) == (status, line.startswith(f"error: --url: found {url!r}, accepted: http://HOST:PORT"))

    def test_credentials_in_the_address(self, capsys: pytest.CaptureFixture[str]) -> None:
        """A password on the command line is not taken, and not repeated."""
        status, line = refusal(capsys, "http://admin:secret@grafana:3000")

        assert (2, False) == (status, "secret" in line)


def chosen(grafana: GrafanaStub) -> list[str | None]:
    """The data source each board that has the choice shows at first."""
    boards = (held["dashboard"] for held in grafana.dashboards.values())
    variables = (of for board in boards for of in board.get("templating", {}).get("list", ()))
    return [of.get("current", {}).get("value") for of in variables if of["type"] == "datasource"]


def counted(values: list[str]) -> dict[str, int]:
    return {value: values.count(value) for value in sorted(set(values))}
