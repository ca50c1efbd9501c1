"""Commands that ask a running monitor, against the real server over a board with real records."""

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import shellingham
from pydantic import SecretStr

from coordinator_model.gates.verdict import BrokerSettings
from coordinator_model.state.shards import offsets_partition
from lab import builders
from streaming.__main__ import main
from streaming.base import times
from streaming.base.text import cut
from streaming.board.board import Board
from streaming.cli.completion import SHELLS
from streaming.config.sections import HttpSection
from streaming.end_offsets.store import EndOffsets
from streaming.metrics.exporter import Exporter
from streaming.web.api_answers import BrokerAnswers
from streaming.web.server import Server
from tests.brokers_by_release import ALLOWING
from tests.left_out import needs
from tests.streaming.board_rows import Shard
from tests.streaming.cli.shells import completes

ROOT = Path(__file__).resolve().parents[3]
NOW_MS = builders.NOW_MS
SINCE_MS = 1_795_342_106_093
READING = (
    r"cannot tell[\s\S]*\bthe monitor is still reading the log, since 20\d\d-\d\d-\d\d \d\d:\d\d:\d\d UTC: "
    "42 % read, 58 records to go"
)
SINCE = "since 2026-11-22 10:08:26 UTC"
TOKEN = "open-sesame"  # noqa: S105 - of a server that lives as long as the test
PARTITIONS = 50
NO_LEADER = f"partition {{}} of the offsets topic has no leader, {SINCE}"
NAMES = ("orders", "a/b c?&#", "..", "группа")
Start = Callable[..., str]


@pytest.fixture
def servers() -> Iterator[list[Server]]:
    """Servers that were started; those that are left are stopped."""
    started: list[Server] = []
    yield started
    for server in started:
        server.stop()


@pytest.fixture
def stop_servers(servers: list[Server]) -> Callable[[], None]:
    """The monitor goes away."""

    def stop() -> None:
        while servers:
            servers.pop().stop()

    return stop


@pytest.fixture
def start(monkeypatch: pytest.MonkeyPatch, servers: list[Server]) -> Start:
    """Start a monitor's server, return its address; no credentials are in the environment."""
    for name in ("URL", "TOKEN", "USERNAME", "PASSWORD"):
        monkeypatch.delenv(f"GROUP_MONITOR_{name}", raising=False)

    def started(
        records: Iterable[builders.RecordBytes] = (),
        behind: int = 0,
        stale: bool = False,
        unread: int | None = None,
        settings: BrokerSettings = ALLOWING,
        **options: Any,
    ) -> str:
        shard = Shard()
        board = Board(EndOffsets())
        board.load([])
        board.health.set_log_end_at_start({0: 100}, {0: 100})
        board.health.set_positions({0: 0}, {0: 0}, NOW_MS)
        board.health.ready()  # how far there was to go
        board.health.set_positions({0: 100 - behind}, {0: 100 - behind}, NOW_MS)
        board.ends.record(NOW_MS + 1, {}, {})
        if stale:
            board.health.show_start(lambda: [{"reason": "records wait", "since": SINCE_MS, "as_of": SINCE_MS}])
        rows = shard.write(*(builders.offset_commit(name, "t", 0, 7) for name in NAMES), timestamp_ms=NOW_MS)
        rows += shard.write(builders.consumer_group_epoch("modern", 2), timestamp_ms=NOW_MS + 1)
        rows += [row for record in records for row in shard.write(record, timestamp_ms=NOW_MS + 2)]
        board.apply(1, rows, NOW_MS)
        if unread is not None:
            assert board.health.ready()[0]
            board.health.set_unread({unread: SINCE_MS}, PARTITIONS)
        brokers = BrokerAnswers(settings=lambda: settings)
        server = Server.of(HttpSection(port=0, **options), board, Exporter(board, "test"), brokers)
        servers.append(server)
        server.start()
        return server.url

    return started


class TestCompletion:
    """What shells ask for when the tab key is pressed."""

    @pytest.mark.parametrize(
        ("words", "expected"),
        [
            (["gr"], ["groups"]),
            (["describe", "or"], ["orders"]),
            (["watch", "\u0433"], ["группа"]),
            (["describe", "nothing"], []),
            (["gate", "up"], ["upgrade"]),
            (["groups", "--js"], ["--json"]),
        ],
    )
    def test_commands_options_and_groups_are_completed(
        self, start: Start, words: list[str], expected: list[str]
    ) -> None:
        """Group names come from the monitor that the environment names."""
        assert expected == completed(words, start())

    def test_a_monitor_that_is_not_there_completes_nothing(self) -> None:
        """No error in the middle of a command line."""
        assert [] == completed(["describe", "o"], "http://127.0.0.1:1")

    @pytest.mark.parametrize("shell", ["bash", *(pytest.param(of, marks=needs(of)) for of in ("zsh", "fish"))])
    @pytest.mark.parametrize(("line", "expected"), [("gro", "groups"), ("describe ord", "describe orders")])
    def test_a_shell_completes_by_its_script(
        self, start: Start, tmp_path: Path, shell: str, line: str, expected: str
    ) -> None:
        """What `--show-completion SHELL` prints is read by that shell, which then completes commands and groups."""
        printed = completion_of(shell)
        script = tmp_path / "script"
        script.write_text(printed.stdout, "utf-8")

        assert (0, "") == (printed.returncode, printed.stderr)
        completes(shell, script, f"group-monitor {line}", f"group-monitor {expected}", start())

    def test_a_shell_that_is_named_is_not_looked_for(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """Each has its own script, also where no shell has called this, as under cron; `=SHELL` says the same."""
        monkeypatch.setattr(shellingham, "detect_shell", None)
        printed = set()
        for shell in SHELLS:
            for words in (["--show-completion", shell], ["--debug", f"--show-completion={shell}"]):
                assert 0 == main(words)
                printed.add(capsys.readouterr().out)

        assert len(SHELLS) == len(printed)

    @pytest.mark.parametrize(
        ("shell", "written"),
        [
            ("bash", ".bash_completions/group-monitor.sh"),
            ("zsh", ".zfunc/_group-monitor"),
            ("fish", ".config/fish/completions/group-monitor.fish"),
        ],
    )
    def test_the_script_is_put_where_its_shell_looks(
        self,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
        tmp_path: Path,
        shell: str,
        written: str,
    ) -> None:
        """`--install-completion SHELL`, and it is said where that is."""
        monkeypatch.setenv("HOME", str(tmp_path))
        assert 0 == main(["--show-completion", shell])
        script = capsys.readouterr().out

        assert 0 == main(["--install-completion", shell])
        assert str(tmp_path / written) in capsys.readouterr().out
        assert script.strip() == (tmp_path / written).read_text("utf-8").strip()

    @pytest.mark.parametrize("words", [["tcsh"], ["zsh", "groups"]], ids=" ".join)
    def test_a_shell_without_a_script_is_refused(self, capsys: pytest.CaptureFixture[str], words: list[str]) -> None:
        """One line says which there are."""
        assert 2 == main(["--show-completion", *words])
        expected = f"error: --show-completion: found '{' '.join(words)}', accepted: bash, zsh, fish\n"
        assert ("", expected) == capsys.readouterr()


def run_command(arguments: list[str], environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # noqa: S603 - our own interpreter and module
        [sys.executable, "-P", "-m", "streaming", *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@cache
def completion_of(shell: str) -> subprocess.CompletedProcess[str]:
    """What `--show-completion` prints, which takes a second."""
    return run_command(["--show-completion", shell], {})


def completed(words: list[str], url: str) -> list[str]:
    """What bash offers after these words, the last of them unfinished."""
    environment = {
        "_GROUP_MONITOR_COMPLETE": "complete_bash",
        "COMP_WORDS": " ".join(["group-monitor", *words]),
        "COMP_CWORD": str(len(words)),
        "GROUP_MONITOR_URL": url,
    }
    printed = run_command([], environment)
    assert "" == printed.stderr
    return printed.stdout.split()


class TestOnATerminal:
    """The same commands where a person looks."""

    def test_groups_and_one_group_are_drawn(self, start: Start) -> None:
        """A summary, and nothing that wraps or steers; `--json` is JSON there too."""
        url = start()

        assert "nothing needs a look" in on_terminal("groups", "--url", url)
        described = on_terminal("describe", "orders", "--url", url)
        assert "commits only" in described
        assert "A group appeared" in described
        assert "orders" == json.loads(on_terminal("describe", "orders", "--json", "--url", url))["group"]

    def test_half_a_log_is_not_drawn(self, start: Start) -> None:
        """Since when it is read and how far stands in place of rows and counts; nothing is said to be well."""
        url = start(behind=58)
        for command in (["groups"], ["describe", "orders"], ["plan"]):
            shown = on_terminal(*command, "--url", url, status=3)
            words = " ".join(shown.split())
            assert re.search(READING, words), shown
            assert not re.search("nothing needs a look|commits only|ready;|MEMBERS", shown)
        with terminal("watch", "--interval", "0.1", "--url", url) as (_, seen):
            assert "MEMBERS" not in seen("42 % read, 58 records to go")

    def test_rows_of_a_stale_monitor_say_of_when_they_are(self, start: Start) -> None:
        """They stay, without the summary that says that all is well."""
        url = start(stale=True)
        for command, row in ((["groups"], "modern"), (["describe", "orders"], "commits only")):
            shown = on_terminal(*command, "--url", url, status=3)
            assert f"cannot tell: records wait, {SINCE}" in shown
            assert "as of 2026-11-22 10:08:26 UTC:" in shown
            assert row in shown
            assert "nothing needs a look" not in shown
        with terminal("watch", "--interval", "0.1", "--url", url) as (_, seen):
            assert "nothing needs a look" not in seen("modern")

    def test_watch_stays_when_the_monitor_goes(self, start: Start, stop_servers: Callable[[], None]) -> None:
        """What was seen is kept and said to be old; Ctrl-C ends it."""
        with terminal("watch", "--interval", "0.1", "--url", start()) as (process, seen):
            seen("nothing needs a look")
            stop_servers()
            seen("no word from the monitor")
            process.send_signal(signal.SIGINT)
            assert 130 == process.wait(60)


@contextmanager
def terminal(*arguments: str) -> Iterator[tuple[subprocess.Popen[bytes], Callable[[str], str]]]:
    """A command on a terminal of its own, and what waits until a text was shown there."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(  # noqa: S603 - our own interpreter and module
        [sys.executable, "-P", "-m", "streaming", *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "120", "TERM": "xterm", "NO_COLOR": "1"},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    shown = ""

    def seen(text: str) -> str:
        nonlocal shown
        deadline = time.monotonic() + 30
        while not text or text not in shown:
            assert time.monotonic() < deadline, f"{text!r} was not shown: {shown[-2000:]}"
            if not select.select([ours], [], [], 0.5)[0]:
                continue
            try:
                shown += os.read(ours, 65_536).decode("utf-8", "replace")
            except OSError:  # the other end is closed
                break
        return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown)

    try:
        yield process, seen
    finally:
        process.kill()
        process.wait()
        os.close(ours)


def on_terminal(*arguments: str, status: int = 0) -> str:
    """All that a command shows on a terminal, without what moves the cursor; it ends with this status."""
    with terminal(*arguments) as (process, seen):
        text = seen("")
        assert status == process.wait(30), text
        return text


class TestGroups:
    """`groups` and `describe`."""

    def test_lists_all(self, start: Start, capsys: pytest.CaptureFixture[str]) -> None:
        """One line a group, with lag."""
        assert 0 == main(["groups", "--url", start()])
        lines = capsys.readouterr().out.splitlines()

        assert ["GROUP", "TYPE", "STATE"] == lines[0].split()[:3]
        assert "MAX-LAG-SECONDS" in lines[0]
        assert sorted([*NAMES, "modern"]) == [line.split("  ")[0] for line in lines[1:]]

    def test_lists_all_as_json(self, start: Start, capsys: pytest.CaptureFixture[str]) -> None:
        """The objects of the API."""
        assert 0 == main(["groups", "--json", "--url", start()])
        reported = json.loads(capsys.readouterr().out)

        assert sorted([*NAMES, "modern"]) == [group["group"] for group in reported["groups"]]

    def test_json_has_names_whole_that_tables_cut(self, start: Start, capsys: pytest.CaptureFixture[str]) -> None:
        """Of `groups` and of `plan`, whose pattern is of the whole name."""
        names = [f"{'g' * 32_000}-{ends}" for ends in ("eu", "us")]
        url = start([builders.offset_commit(name, "t", 0, 7) for name in names])

        def said(*command: str) -> str:
            assert 0 == main([*command, "--url", url])
            return capsys.readouterr().out

        def named(*command: str) -> list[str]:
            return [group["group"] for group in json.loads(said(*command, "--json"))["groups"]]

        assert {*names} <= {*named("groups")}
        assert names[:1] == named("plan", "--match", "g*-eu")
        table = said("groups")
        assert all(cut(name) in table and name not in table for name in names)

    @pytest.mark.parametrize("name", NAMES)
    def test_describes_one_whatever_its_name(self, start: Start, capsys: pytest.CaptureFixture[str], name: str) -> None:
        """A group is found under its very name, slashes, dots and other alphabets included."""
        url = start()
        assert 0 == main(["describe", name, "--json", "--url", url])
        reported = json.loads(capsys.readouterr().out)
        assert 0 == main(["describe", name, "--url", url])
        text = capsys.readouterr().out

        assert (name, 7) == (reported["group"], reported["offsets"][0]["offset"])
        assert "LOG-END-OFFSET" in text
        assert text.splitlines()[1].startswith(f"{name} ")

    @pytest.mark.parametrize("command", [["groups"], ["describe", "orders"], ["gate", "upgrade"], ["plan"]])
    def test_half_a_log_is_no_answer(
        self, start: Start, capsys: pytest.CaptureFixture[str], command: list[str]
    ) -> None:
        """What is known so far is given with exit status 3, since when the log is read, and how far."""
        url = start(behind=58)
        assert 3 == main([*command, "--url", url])
        captured = capsys.readouterr()
        assert re.search(READING, captured.out + captured.err)

        assert 3 == main([*command, "--json", "--url", url])
        found = json.loads(capsys.readouterr().out)
        if command[0] != "gate":
            assert "42 % read, 58 records to go" == found["doubt"]["far"]
            assert "as_of" not in found["doubt"]

    def test_a_group_that_is_not_read_yet_may_be_there(self, start: Start, capsys: pytest.CaptureFixture[str]) -> None:
        """Of half a log it is not said that a group is not there."""
        url = start(behind=58)
        for command in (["describe", "later"], ["watch", "later"], ["gate", "upgrade", "--group", "later"]):
            assert 3 == main([*command, "--url", url])
            assert re.search(f"accepted: a group of this cluster; {READING}", capsys.readouterr().err)

    def test_unknown_group(self, start: Start, capsys: pytest.CaptureFixture[str]) -> None:
        """A group that is not there is a wrong name: 2, and one line."""
        url = start()
        for command in (
            ["describe", "nobody"],
            ["watch", "nobody"],
            ["gate", "upgrade", "--group", "nobody"],
            ["gate", "downgrade", "--group", "orders", "--group", "nobody"],
            ["plan", "--group", "nobody"],
            ["plan", "--group", "orders", "--group", "nobody", "--match", "*"],
            ["report", "nobody", "--since", "0"],
            ["rehearse", "upgrade", "--group", "nobody"],
        ):
            capsys.readouterr()
            assert 2 == main([*command, "--url", url]), command
            assert capsys.readouterr().err.endswith("error: group: found 'nobody', accepted: a group of this cluster\n")

    def test_a_group_that_may_be_in_a_partition_without_leader(
        self, start: Start, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """3 for what is known of it, for a name that hashes there, and for lists; others are answered as ever."""
        number, elsewhere = offsets_partition("orders", PARTITIONS), "modern"
        unknown = next(f"g-{at}" for at in count() if offsets_partition(f"g-{at}", PARTITIONS) == number)
        nobody = next(f"g-{at}" for at in count() if offsets_partition(f"g-{at}", PARTITIONS) != number)
        url, why = start(unread=number), NO_LEADER.format(number)
        for command in (
            ["describe", "orders"],
            ["describe", unknown],
            ["watch", unknown],
            ["report", "orders", "--since", "0"],
            ["report", unknown, "--since", "0"],
            ["gate", "upgrade", "--group", "orders"],
            ["gate", "downgrade", "--group", unknown],
            ["gate", "upgrade"],
            ["groups"],
            ["plan"],
            ["plan", "--group", unknown],
        ):
            assert 3 == main([*command, "--url", url]), command
            captured = capsys.readouterr()
            # A table is as wide as it has to be.
            assert why in " ".join((captured.out + captured.err).split()), command
        assert 0 == main(["describe", elsewhere, "--url", url])
        assert why not in "".join(capsys.readouterr())
        assert 0 == main(["gate", "upgrade", "--group", elsewhere, "--url", url])
        for command in (["describe", nobody], ["gate", "upgrade", "--group", nobody], ["plan", "--group", nobody]):
            assert 2 == main([*command, "--url", url])
            assert f"error: group: found '{nobody}', accepted: a group of this cluster\n" == capsys.readouterr().err

    def test_rows_of_groups_that_may_be_there_are_marked(
        self, start: Start, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """In tables, in JSON, and on a terminal, where nothing is said to be well."""
        number = offsets_partition("orders", PARTITIONS)
        url = start(unread=number)
        assert 3 == main(["groups", "--url", url])
        rows = {line.split("  ")[0]: line for line in capsys.readouterr().out.splitlines()}
        assert rows["GROUP"].rstrip().endswith("DOUBT")
        assert NO_LEADER.format(number) in rows["orders"]
        assert NO_LEADER.format(number) not in rows["modern"]

        assert 3 == main(["groups", "--json", "--url", url])
        found = json.loads(capsys.readouterr().out)
        assert ([number], None) == ([of["partition"] for of in found["unread"]], found["doubt"])
        doubts = {of["group"]: of.get("doubt") for of in found["groups"]}
        assert (number, None) == (doubts["orders"]["partition"], doubts["modern"])

        shown = on_terminal("groups", "--url", url, status=3)
        assert f"cannot tell: {NO_LEADER.format(number)}" in " ".join(shown.split())
        assert "nothing needs a look" not in shown

    def test_address_from_the_environment(
        self, start: Start, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Where no address is given the environment's is taken."""
        monkeypatch.setenv("GROUP_MONITOR_URL", start())

        assert 0 == main(["describe", "orders"])
        assert "orders" in capsys.readouterr().out

    def test_groups_are_searched_for(self, start: Start, capsys: pytest.CaptureFixture[str]) -> None:
        """By name or pattern; exit 3, with what was found, where a group's topics are not all known."""
        nameless = builders.consumer_group_current_assignment("modern", "m", epoch=2, assigned={"u": [0]})
        url = start([builders.consumer_group_member_subscription("modern", "m", topics=["v"]), nameless])

        assert 0 == main(["groups", "--client-id", "cli*", "--json", "--url", url])
        assert ["modern"] == [each["group"] for each in json.loads(capsys.readouterr().out)["groups"]]
        assert 3 == main(["groups", "--topic", "t", "--json", "--url", url])
        captured = capsys.readouterr()
        assert sorted(NAMES) == [each["group"] for each in json.loads(captured.out)["groups"]]
        assert "--topic: found 1 group" in captured.err
        assert 0 == main(["groups", "--owner", "nobody", "--client-id", "c*", "--url", url])
        assert "no groups with --owner 'nobody' --client-id 'c*'\n" == capsys.readouterr().err


class TestCredentials:
    """Token or user come from the environment."""

    def test_without_them(self, start: Start, capsys: pytest.CaptureFixture[str]) -> None:
        """Being refused is not knowing: 3, and what would be accepted."""
        url = start(token=SecretStr(TOKEN))

        assert 3 == main(["groups", "--url", url])
        assert (
            f"error: GROUP_MONITOR_TOKEN: found credentials that {url} refuses (Authorization: found no credentials, "
            "accepted: Bearer or Basic as configured), accepted: its bearer token, or GROUP_MONITOR_USERNAME and "
            "GROUP_MONITOR_PASSWORD\n" == capsys.readouterr().err
        )

    @pytest.mark.parametrize(
        ("options", "environment"),
        [
            ({"token": SecretStr(TOKEN)}, {"TOKEN": TOKEN}),
            ({"username": "me", "password": SecretStr(TOKEN)}, {"USERNAME": "me", "PASSWORD": TOKEN}),
        ],
    )
    def test_with_them(
        self, start: Start, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any], environment: dict[str, str]
    ) -> None:
        """The right ones open the door."""
        for name, value in environment.items():
            monkeypatch.setenv(f"GROUP_MONITOR_{name}", value)

        assert 0 == main(["groups", "--url", start(**options)])

    def test_wrong_ones(
        self, start: Start, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """The wrong ones do not, and are not repeated."""
        monkeypatch.setenv("GROUP_MONITOR_TOKEN", "close-sesame")

        assert 3 == main(["groups", "--url", start(token=SecretStr(TOKEN))])
        assert "sesame" not in capsys.readouterr().err


class TestGate:
    """`gate` ends with the verdict."""

    @pytest.mark.parametrize(
        ("arguments", "expected", "verdict"),
        [
            (["upgrade", "--group", "orders"], 3, "upgrade: cannot tell"),
            (["downgrade", "--group", "modern"], 1, "downgrade: closed"),
        ],
    )
    def test_verdict_is_the_exit_status(
        self, start: Start, capsys: pytest.CaptureFixture[str], arguments: list[str], expected: int, verdict: str
    ) -> None:
        """Closed is 1, not knowing, as before the log is read, is 3; every reason is listed."""
        url = start(behind=1)
        assert expected == main(["gate", *arguments, "--url", url])
        text = capsys.readouterr().out
        assert expected == main(["gate", *arguments, "--url", url, "--json"])
        reported = json.loads(capsys.readouterr().out)

        assert verdict == text.splitlines()[0]
        assert text.splitlines()[1].startswith("groups: 1 ")
        assert len(reported["reasons"]) == len(text.split("\n\n")[1].splitlines()) - 1
        assert verdict == f"{reported['gate']}: {reported['verdict'].replace('_', ' ')}"

    def test_counts_and_members_stand_with_the_verdict(self, start: Start, capsys: pytest.CaptureFixture[str]) -> None:
        """Groups by type, offsets by value version; of a reason's members the first five, JSON having all."""
        members = [
            builders.member(f"c{number}", subscription_bytes=builders.subscription(version=1)) for number in range(7)
        ]
        url = start(records=[builders.group_metadata("old", generation=1, members=members)])
        main(["gate", "upgrade", "--group", "old", "--url", url])
        text = capsys.readouterr().out
        main(["gate", "upgrade", "--group", "old", "--url", url, "--json"])
        reported = json.loads(capsys.readouterr().out)
        main(["gate", "downgrade", "--group", "orders", "--url", url])

        (reason,) = (of for of in reported["reasons"] if of["code"] == "embedded_version")
        assert [f"c{number}" for number in range(7)] == [of["member_id"] for of in reason["members"]]
        assert "c0 (client /127.0.0.1) version 1, c1 " in text
        assert "and 2 more" in text
        assert "committed offsets by value version: 1 4" in capsys.readouterr().out.splitlines()

    def test_size_and_release_may_be_given(self, start: Start, capsys: pytest.CaptureFixture[str]) -> None:
        """The size that a broker would allow; the release that brokers are rolled to."""
        members = [builders.member(name) for name in ("a", "b")]
        url = start(records=[builders.group_metadata("two", generation=1, members=members)])
        assert 1 == main(["gate", "upgrade", "--group", "two", "--max-size", "1", "--url", url])
        assert "group.consumer.max.size allows, 1" in capsys.readouterr().out
        assert 0 == main(["gate", "upgrade", "--group", "two", "--max-size", "2", "--url", url])
        assert 1 == main(["gate", "downgrade", "--target-version", "3.9", "--group", "modern", "--url", url])
        capsys.readouterr()
        assert 3 == main(["gate", "downgrade", "--target-version", "4.2", "--group", "modern", "--url", url])
        assert "group_configs" not in capsys.readouterr().out

    def test_rehearsal_of_the_brokers_counts(
        self, start: Start, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """Lost is 1, another release 2, another cluster or a day that is over 3; without one its command is named."""
        url = start(settings=replace(ALLOWING, cluster_id="own", features={}))
        gate = ["gate", "downgrade", "--target-version", "4.2.1", "--group", "orders", "--url", url]
        well = {
            **{name: [] for name in ("partitions", "groups_missing", "groups_changed")},
            "release": "4.2.1",
            "loads": True,
            "offsets_missing": 0,
            "offsets_different": 0,
        }
        report = {"format": "broker-rehearsal/1", "cluster_id": "own", "time": times.now_ms(), "releases": [well]}

        def status(**changed: object) -> int:
            (tmp_path / "f").write_text(json.dumps({**report, **changed}), "utf-8")
            return main([*gate, "--rehearsal", str(tmp_path / "f")])

        assert 0 == main(gate)
        (named,) = (line for line in capsys.readouterr().out.splitlines() if "rehearse brokers" in line)
        assert "group-monitor rehearse brokers --release 4.2.1 " in named
        assert 0 == status()
        assert 1 == status(releases=[{**well, "groups_missing": ["orders"]}])
        assert 2 == status(releases=[{**well, "release": "4.2.0"}])
        assert 3 == status(cluster_id="another")
        assert 3 == status(time=times.now_ms() - 25 * 60 * 60 * 1000)

    def test_recording_never_opens_a_gate(self, capsys: pytest.CaptureFixture[str]) -> None:
        """What is in it may close one; whether the log holds more now, it cannot tell."""
        classic = str(ROOT / "tests/recordings/3.9.1/classic.ndjson.gz")
        consumer = str(ROOT / "tests/recordings/4.1.1/consumer.ndjson.gz")

        assert 3 == main(["gate", "downgrade", "--target-version", "3.3", "--from", classic])
        assert "log_records" in capsys.readouterr().out
        assert 3 == main(["gate", "downgrade", "--from", classic])
        assert 1 == main(["gate", "downgrade", "--target-version", "3.9", "--from", consumer])
        assert 3 == main(["gate", "upgrade", "--from", classic])
        assert 2 == main(["gate", "upgrade", "--from", classic, "--group", "nobody"])
        assert "--group: found 'nobody'" in capsys.readouterr().err

    @pytest.mark.parametrize("release", ["9.9", "5.0", "4.4", "3.10"])
    def test_release_that_nothing_is_known_of_is_refused(
        self, capsys: pytest.CaptureFixture[str], release: str
    ) -> None:
        """Before anybody is asked: no gate opens for it."""
        assert 2 == main(["gate", "downgrade", "--target-version", release])
        assert f"found '{release}', accepted: a release from 2.3 to 4.3" in capsys.readouterr().err

    @pytest.mark.parametrize(
        ("arguments", "expected"),
        [
            (
                ["downgrade", "--target-version", "four"],
                "error: --target-version: found 'four', accepted: a release from 2.3 to 4.3",
            ),
            (
                ["upgrade", "--target-version", "4.0"],
                "error: --target-version: found with gate upgrade, accepted: with gate downgrade",
            ),
            (
                ["downgrade", "--max-size", "5"],
                "error: --max-size: found with gate downgrade, accepted: with gate upgrade",
            ),
            (["upgrade", "--max-size", "0"], "error: --max-size: found '0', accepted: greater than or equal to 1"),
        ],
    )
    def test_refused(self, capsys: pytest.CaptureFixture[str], arguments: list[str], expected: str) -> None:
        """What a gate does not take is a usage error, said before anyone is asked."""
        assert 2 == main(["gate", *arguments])
        assert expected in capsys.readouterr().err

    def test_gate_there_is_not(self, capsys: pytest.CaptureFixture[str]) -> None:
        """A third gate is a usage error."""
        assert 2 == main(["gate", "sideways"])
        assert "found 'sideways', accepted: upgrade, downgrade" in capsys.readouterr().err


def test_watch_prints_what_changed_until_it_is_interrupted(start: Start) -> None:
    """Piped, `watch` prints once what does not change, and Ctrl-C ends it quietly."""
    command = [sys.executable, "-m", "streaming", "watch", "--json", "--interval", "0.1", "--url", start()]
    with subprocess.Popen(  # noqa: S603 - our own interpreter and module
        command, cwd=ROOT, env={**os.environ}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as watching:
        assert watching.stdout is not None
        first = json.loads(watching.stdout.readline())
        watching.send_signal(signal.SIGINT)
        rest, errors = watching.communicate(timeout=30)

    assert len(NAMES) + 1 == len(first["groups"])
    assert (130, "", "") == (watching.returncode, rest, errors)
