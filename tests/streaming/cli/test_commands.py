"""The command line: what it prints, how it ends, and that it says what went wrong in one line."""

import json
import os
import pty
import signal
import socket
import subprocess
import sys
import tomllib
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest
import typer.main
from typer.testing import CliRunner

from lab import builders
from lab.coordinator_events import consumer_gone, consumer_group_deleted, consumer_join, consumer_moves
from streaming.__main__ import COMMANDS, app, common_options_first, main
from streaming.base.errors import UsageError
from streaming.base.times import time_ms, time_text
from streaming.cli.check import exit_status
from streaming.cli.render.plain import event_text, partitions_text
from streaming.cli.replay import until_time_ms
from streaming.kafka.preflight import Finding
from streaming.recording.file_format import Header, RecordedRecord, RecordedTopic, open_new_recording

ROOT = Path(__file__).resolve().parents[3]
SCENARIOS = ROOT / "tests" / "recordings" / "scenarios.ndjson"
EMPTY_CLASSIC_GROUP = ("00020009672d636c6173736963", "0003000000000000ffffffff000001a1fc6dce1a00000000")
UNKNOWN_KEY = "00120005672d6d6967"
HEADER = Header(kafka_version=None, offsets_topic_partitions=50, topics=())


def process(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the real thing, away from any terminal."""
    return subprocess.run(  # noqa: S603 - our own interpreter and module
        [sys.executable, "-m", "streaming", *arguments],
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.fixture
def closed_port() -> int:
    """A free port."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
    return port


class TestHelp:
    """Everything is explained where it is used."""

    @pytest.mark.parametrize("name", sorted(COMMANDS))
    def test_every_command_and_every_option_has_help(self, name: str) -> None:
        """A command, and each of its arguments and options, says what it is for."""
        command = typer.main.get_command(app).commands[name]  # type: ignore[attr-defined]  # a group, as there are several commands

        assert command.help
        assert [] == [parameter.name for parameter in command.params if not getattr(parameter, "help", None)]

    @pytest.mark.parametrize("name", sorted(COMMANDS))
    def test_help_ends_well(self, name: str) -> None:
        """`--help` prints and ends with 0."""
        result = CliRunner().invoke(app, [name, "--help"])

        assert (0, True) == (result.exit_code, f"group-monitor {name}" in result.output or name in result.output)

    @pytest.mark.parametrize("name", sorted(COMMANDS))
    def test_every_command_is_in_the_readme(self, name: str) -> None:
        """A command no one can find is not finished: the README names it."""
        assert f"group-monitor {name}" in (ROOT / "README.md").read_text(encoding="utf-8")

    def test_release_is_reported(self) -> None:
        """`--version` names the release of the project file."""
        reported = CliRunner().invoke(app, ["--version"])
        version = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]

        assert (0, f"group-monitor {version}\n") == (reported.exit_code, reported.output)

    def test_without_a_command(self) -> None:
        """Nothing asked for is a usage error that shows what there is."""
        result = process()

        assert 2 == result.returncode
        assert "Commands:" in result.stdout


class TestUsageErrors:
    """One line, exit status 2, no traceback."""

    @pytest.mark.parametrize(
        ("arguments", "expected"),
        [
            (["nonsense"], "error: No such command 'nonsense'."),
            (["replay"], "error: Missing argument 'FILE'."),
            (["replay", "--nonsense", "x"], "error: No such option: --nonsense"),
            (
                ["replay", "none.ndjson"],
                "error: FILE: found 'none.ndjson' (No such file or directory), accepted: a recording",
            ),
            (
                ["replay", str(ROOT / "pyproject.toml")],
                f"error: {ROOT / 'pyproject.toml'}:1: found [build-system], accepted:",
            ),
            (["replay", str(SCENARIOS), "--until", "noon"], "error: --until: found 'noon', accepted: ISO-8601"),
            (["replay", str(SCENARIOS), "--group", "rec-mixd"], "(did you mean rec-mixed?)"),
            (["decode", "zz", "00"], "error: KEY_HEX: found 'zz', accepted: an even number of hexadecimal digits"),
            (["decode", "0002", "0"], "error: VALUE_HEX: found '0'"),
            (["decode", EMPTY_CLASSIC_GROUP[0]], "error: VALUE_HEX: found nothing"),
            (
                ["decode", EMPTY_CLASSIC_GROUP[0], "0003"],
                "error: KEY_HEX VALUE_HEX: found a record that does not decode",
            ),
            (["record", "--bootstrap-server", "x"], "error: Missing option '--out'."),
            (
                ["record", "--bootstrap-server", "x", "--out", "y"],
                "kafka.bootstrap_servers: found 'x', accepted: HOST:PORT",
            ),
            (["run", "--config", "none.yaml"], "error: --config: found 'none.yaml' (No such file or directory)"),
            (["run", "--set", "http.prot=1"], "error: command line: http.prot: found an unknown option"),
            (["run", "--set", "http.port"], "error: --set: found 'http.port', accepted: OPTION=VALUE"),
            (["groups", "--url", "ftp://x"], "error: --url: found 'ftp://x', accepted: http://HOST:PORT"),
            (
                ["groups", "--log-level", "loud"],
                "error: --log-level: found 'loud', accepted: debug, info, warning, error",
            ),
            (["rehearse", "up", "--group", "g"], "error: upgrade|downgrade: found 'up', accepted: upgrade, downgrade"),
            (
                ["rehearse", "upgrade", "--group", "g", "--pace", "soon"],
                "--pace: found 'soon', accepted: a valid",
            ),
            (["watch", "--interval", "0"], "error: --interval: found '0', accepted: greater than or equal to 0.1"),
        ],
    )
    def test_refused(self, capsys: pytest.CaptureFixture[str], arguments: list[str], expected: str) -> None:
        """The line names the option, what was found and what is accepted."""
        assert 2 == main(arguments)
        captured = capsys.readouterr()
        assert "" == captured.out
        assert 1 == len(captured.err.splitlines())
        assert expected in captured.err

    def test_as_a_process(self) -> None:
        """The same from outside."""
        result = process("replay", "none.ndjson")

        assert (2, "", 1) == (result.returncode, result.stdout, len(result.stderr.splitlines()))

    def test_debug_adds_the_traceback(self) -> None:
        """With --debug, wherever it stands, the place in the code is shown; the line stays the last."""
        for arguments in (["--debug", "replay", "none"], ["replay", "none", "--debug"]):
            lines = process(*arguments).stderr.splitlines()

            assert "Traceback" in lines[0]
            assert lines[-1].startswith("error: FILE:")

    def test_an_error_without_words_is_told(
        self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Spark's errors ask a JVM what they say, which may have ended."""

        class Mute(Exception):
            def __str__(self) -> str:
                raise ConnectionError

        monkeypatch.setattr("streaming.__main__.app", MagicMock(side_effect=Mute))

        assert 3 == main(["groups"])
        assert (
            "error: unexpected Mute: its words went with Spark's JVM (--debug shows where)\n" == capsys.readouterr().err
        )

    def test_common_options_may_stand_anywhere(self) -> None:
        """Options of the program are moved in front of the command; what follows `--` is left alone."""
        assert ["--debug", "--log-level", "debug", "replay", "f"] == common_options_first(
            ["replay", "--debug", "f", "--log-level", "debug"]
        )
        assert ["--log-format=json", "run", "--", "--debug"] == common_options_first(
            ["run", "--log-format=json", "--", "--debug"]
        )

    def test_demo_members_take_no_configuration(self, capsys: pytest.CaptureFixture[str]) -> None:
        """Where only members run, there is no monitor to configure."""
        assert 2 == main(["demo", "--bootstrap-server", "127.0.0.1:9", "--set", "http.port=0"])
        assert "error: --bootstrap-server: found with --config or --set" in capsys.readouterr().err


class TestCannotTell:
    """What is out of reach ends with 3."""

    @pytest.mark.parametrize("command", [["groups"], ["describe", "g"], ["watch"], ["watch", "g", "--json"]])
    def test_no_monitor_there(self, capsys: pytest.CaptureFixture[str], closed_port: int, command: list[str]) -> None:
        """A monitor that does not answer is named by its address."""
        assert 3 == main([*command, "--url", f"http://127.0.0.1:{closed_port}"])
        expected = (
            f"error: --url: found http://127.0.0.1:{closed_port} (Connection refused), accepted: the address of a"
        )
        assert capsys.readouterr().err.startswith(expected)

    def test_no_broker_there(self, tmp_path: Path, closed_port: int) -> None:
        """A broker that does not answer is reported in one line, at once, and leaves no file behind."""
        server = f"127.0.0.1:{closed_port}"
        result = process("record", "--bootstrap-server", server, "--out", str(tmp_path / "r.ndjson"))

        assert 3 == result.returncode
        assert (
            f"error: kafka.bootstrap_servers: found '{server}', none reachable ({server}: Connection refused), "
            "accepted: HOST:PORT of a running broker\n" == result.stderr
        )
        assert [] == list(tmp_path.iterdir())

    def test_run_looks_before_it_starts_spark(self, closed_port: int) -> None:
        """The job is not started for a broker that is not there."""
        result = process("run", "--set", f"kafka.bootstrap_servers=127.0.0.1:{closed_port}")

        assert (3, 1) == (result.returncode, len(result.stderr.splitlines()))
        assert result.stderr.startswith("error: kafka.bootstrap_servers: found")

    def test_run_says_on_a_terminal_whom_it_asks(self, closed_port: int) -> None:
        """Before the seconds in which clients are loaded and brokers answer, or do not."""
        server = f"127.0.0.1:{closed_port}"
        shown, terminal = pty.openpty()
        command = [sys.executable, "-m", "streaming", "run", "--set", f"kafka.bootstrap_servers={server}"]
        status = subprocess.run(command, cwd=ROOT, stderr=terminal, timeout=60, check=False).returncode  # noqa: S603 - our own interpreter and module
        os.close(terminal)
        said = b""
        with suppress(OSError):  # a terminal that no one has open any more ends with an error
            while piece := os.read(shown, 10_000):
                said += piece
        os.close(shown)
        lines = said.decode().splitlines()

        assert (3, f"asking {server} …") == (status, lines[0])
        assert lines[1].startswith("error: kafka.bootstrap_servers: found")

    def test_listener_that_is_no_broker(self, tmp_path: Path) -> None:
        """Something that accepts connections but does not speak Kafka is distinguished from nothing at all."""
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            listener.listen()
            result = process(
                "record",
                "--bootstrap-server",
                f"127.0.0.1:{listener.getsockname()[1]}",
                "--out",
                str(tmp_path / "r.ndjson"),
                GROUP_MONITOR__KAFKA__REQUEST_TIMEOUT_MS="1500",
            )

        assert (3, 1) == (result.returncode, len(result.stderr.splitlines()))
        assert "accepts connections but does not answer as a broker" in result.stderr


class TestReplay:
    """A recording through the model."""

    def test_json_has_the_contract_s_shape(self, capsys: pytest.CaptureFixture[str]) -> None:
        """Groups by name, events, counters; a deleted group is not among the groups but its events are there."""
        assert 0 == main(["replay", str(SCENARIOS), "--json"])
        reported = json.loads(capsys.readouterr().out)

        assert {"groups", "events", "counters"} == set(reported)
        assert {"records": 164, "unknown_records": {}, "undecodable_records": {}} == reported["counters"]
        assert "rec-gone" not in reported["groups"]
        assert "group_deleted" in [event["kind"] for event in reported["events"] if event["group"] == "rec-gone"]

    def test_nothing_before_the_live_tail_is_an_alarm(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        """The header says where it begins; with --past what was there before is judged, too."""
        both = [builders.member(name, {"t": [0]}) for name in ("a", "b")]
        key, value = builders.group_metadata("g", generation=1, members=both)
        path = tmp_path / "r.ndjson"

        def kinds(*options: str, live_from: int) -> list[str]:
            with open_new_recording(path, replace(HEADER, live_from={1: live_from})) as new:
                new.write(RecordedRecord(1, 10, 1_700_000_000_000, key, value))
            assert 0 == main(["replay", str(path), "--json", *options])
            found = json.loads(capsys.readouterr().out)["events"]
            return [event["kind"] for event in found if event["severity"] != "info"]

        assert ["duplicate_assignment"] == kinds(live_from=10)
        assert [] == kinds(live_from=11)
        assert ["duplicate_assignment"] == kinds("--past", live_from=11)

    def test_group_narrows_groups_and_events(self, capsys: pytest.CaptureFixture[str]) -> None:
        """With --group only that group is shown, in every form."""
        assert 0 == main(["replay", str(SCENARIOS), "--json", "--group", "rec-mixed"])
        reported = json.loads(capsys.readouterr().out)
        assert 0 == main(["replay", str(SCENARIOS), "--group", "rec-mixed"])
        text = capsys.readouterr().out

        assert ["rec-mixed"] == list(reported["groups"])
        assert {"rec-mixed"} == {event["group"] for event in reported["events"]}
        assert "rec-orders:3-5" in text
        assert "rec-new" not in text

    def test_until_shows_the_state_at_a_time(self, capsys: pytest.CaptureFixture[str]) -> None:
        """The state follows from the records up to the time, given either way."""
        shown = []
        for until in ("1795238304724", "2026-11-21T05:18:24.724Z", "2026-11-21 06:18:24.724+01:00"):
            assert 0 == main(["replay", str(SCENARIOS), "--json", "--until", until])
            shown.append(json.loads(capsys.readouterr().out))

        assert ["rec-eager"] == list(shown[0]["groups"])
        assert (1, 1) == (shown[0]["groups"]["rec-eager"]["epoch"], len(shown[0]["groups"]["rec-eager"]["members"]))
        assert shown[0] == shown[1] == shown[2]

    def test_events_are_listed_in_the_order_of_time(self, capsys: pytest.CaptureFixture[str]) -> None:
        """One line an event, the earliest first, in the log's time."""
        assert 0 == main(["replay", str(SCENARIOS), "--events"])
        lines = capsys.readouterr().out.splitlines()

        assert lines == sorted(lines, key=lambda line: line[:24])
        assert "2026-11-21T05:18:24.704Z info     group_created rec-eager A classic group appeared" == lines[0]

    def test_partitions_that_nobody_holds_are_reported_by_the_headers_counts(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """The recording says how many a topic has, and how much time passed; up to a given time as well."""
        path = tmp_path / "lacking.ndjson"
        topic = RecordedTopic(id=builders.topic_id("t"), name="t", partitions=2)
        one_of_two = [builders.member("a", {"t": [0]})]
        with open_new_recording(path, replace(HEADER, topics=(topic,))) as writer:
            for offset, time_ms_ in enumerate((0, 3_600_000)):
                key, value = builders.group_metadata("g", generation=1, members=one_of_two, timestamp=time_ms_)
                writer.write(RecordedRecord(1, offset, time_ms_, key, value))

        assert 0 == main(["replay", str(path), "--json"])
        whole = json.loads(capsys.readouterr().out)["events"]
        assert 0 == main(["replay", str(path), "--json", "--until", "600000"])
        in_time = json.loads(capsys.readouterr().out)["events"]

        (event,) = [event for event in whole if event["kind"] == "partition_unassigned"]
        assert ("g", {"t": [1]}, "warning") == (event["group"], event["detail"]["partitions"], event["severity"])
        assert "partition_unassigned" not in {event["kind"] for event in in_time}

    def test_log_of_old_brokers_says_what_it_lacks(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        """In words where a group is named: returns of static members before 2.7, topic ids of commits before 4.1."""
        path = tmp_path / "old.ndjson"
        static = [builders.member("a", {"t": [0]}, instance_id="i")]
        written = [
            builders.group_metadata("g", generation=1, members=static),
            builders.offset_commit("g", "t", 0, 5, version=3),
        ]
        for version, number in (("2.0", 2), ("2.7", 1)):
            topic = RecordedTopic(id=None, name="t", partitions=1)
            with open_new_recording(path, replace(HEADER, kafka_version=version, topics=(topic,))) as writer:
                for offset, (key, value) in enumerate(written):
                    writer.write(RecordedRecord(1, offset, 1_000, key, value))
            assert 0 == main(["replay", str(path), "--group", "g"])
            text = capsys.readouterr().out
            assert [number == 2, True] == ["KAFKA-10284" in text, "name no topic id" in text]

    def test_time_in_which_no_coordinator_worked_is_of_no_group(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """All partitions were written to every five seconds, then not for twenty minutes: no member is blamed."""
        path = tmp_path / "gap.ndjson"
        both = {"a": {"t": [0]}, "b": {"t": [1]}}
        ms = 600_000
        of_group = [
            *((0, *of) for of in consumer_join("g", "a", epoch=2, targets={"a": {"t": [0, 1]}})),
            *((ms, *of) for of in consumer_join("g", "b", epoch=3, targets=both, assigned={})),
            *((ms, *of) for of in consumer_moves("g", "a", epoch=2, assigned={"t": [0]}, pending={"t": [1]}, state=1)),
            *((ms + 1_205_000, *of) for of in consumer_moves("g", "a", epoch=3, assigned={"t": [0]})),
        ]
        with open_new_recording(path, HEADER) as writer:
            for offset, (at_ms, key, value) in enumerate(of_group):
                writer.write(RecordedRecord(1, offset, at_ms, key, value))
            times = [*range(0, ms, 5_000), *range(ms + 1_200_000, ms + 1_300_000, 5_000)]
            for offset, at_ms in enumerate(times):
                key, value = builders.offset_commit("other", "t", 0, at_ms, timestamp=at_ms)
                writer.write(RecordedRecord(2, offset, at_ms, key, value))

        assert 0 == main(["replay", str(path), "--json"])
        events = json.loads(capsys.readouterr().out)["events"]
        assert [] == [event for event in events if event["severity"] != "info"]
        (said,) = (event for event in events if event["kind"] == "coordinator_not_loaded")
        assert (None, 1, ["g"]) == (said["group"], said["detail"]["partition"], said["detail"]["groups"])

    @pytest.mark.parametrize("first", [31, 51])
    def test_group_in_two_partitions_is_the_copy_where_it_hashes_to(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str], first: int
    ) -> None:
        """In groups, events, plan and gate, whichever partition stands first: the topic was grown from 50 to 60."""
        path = tmp_path / "grown.ndjson"
        old = [*consumer_join("orders", "a", epoch=2, targets={"a": {"t": [0]}})]
        old += [builders.offset_commit("orders", "t", 0, 5)]
        gone = [*consumer_gone("orders", "a"), builders.offset_commit_tombstone("orders", "t", 0)]
        gone += consumer_group_deleted("orders")
        new = [builders.group_metadata("orders", generation=1, members=[builders.member("b", {"t": [0]})])]
        written = {31: [*((0, *of) for of in old), *((90_000, *of) for of in gone)], 51: [(60_000, *of) for of in new]}
        with open_new_recording(path, replace(HEADER, offsets_topic_partitions=60)) as writer:
            for partition in (first, 82 - first):
                for offset, (at_ms, key, value) in enumerate(written[partition]):
                    writer.write(RecordedRecord(partition, offset, at_ms, key, value))

        assert 0 == main(["replay", str(path), "--json"])
        found = json.loads(capsys.readouterr().out)
        assert 0 == main(["plan", "--from", str(path), "--json"])
        (planned,) = json.loads(capsys.readouterr().out)["groups"]

        assert ["classic"] == [of["type"] for of in found["groups"].values()]
        assert ["b"] == [of["member_id"] for of in found["groups"]["orders"]["members"]]
        kinds = [of["kind"] for of in found["events"]]
        assert (1, 0) == (kinds.count("group_in_two_partitions"), kinds.count("group_deleted"))
        assert ("ready", 1) == (planned["readiness"], planned["members"])

    @pytest.mark.parametrize("others_write", [False, True])
    def test_clock_that_is_set_forward_makes_no_alarm(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str], others_write: bool
    ) -> None:
        """A member has five hours to let go by the records' time; that these passed, only other groups' records say."""
        path, hour_ms, both = tmp_path / "r.ndjson", 3_600_000, {"a": {"t": [0]}, "b": {"t": [1]}}
        moments = [
            (0, consumer_join("g", "a", epoch=2, targets={"a": {"t": [0, 1]}})),
            (1_000, consumer_join("g", "b", epoch=3, targets=both, assigned={})),
            (2_000, consumer_moves("g", "a", epoch=2, assigned=both["a"], pending=both["b"], state=1)),
            (5 * hour_ms, consumer_moves("g", "a", epoch=3, assigned=both["a"], previous_epoch=2)),
            (5 * hour_ms + 1_000, consumer_moves("g", "b", epoch=3, assigned=both["b"])),
        ]
        records = [(at_ms, *record) for at_ms, written in moments for record in written]
        with open_new_recording(path, HEADER) as new:
            for offset, (at_ms, key, value) in enumerate(records):
                new.write(RecordedRecord(1, offset, at_ms, key, value))
            for hour in range(5 if others_write else 0):
                new.write(replace(commit(2, hour, "h", "t", 0, hour), timestamp_ms=hour * hour_ms))

        assert 0 == main(["replay", str(path), "--json"])
        found = json.loads(capsys.readouterr().out)["events"]
        assert others_write == any(of["kind"] == "rebalance_stuck" for of in found)

    def test_undecodable_record_is_reported_counted_and_passed_over(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """A damaged record is reported by its place, and what follows it is still replayed."""
        path = tmp_path / "r.ndjson"
        with open_new_recording(path, HEADER) as new:
            new.write(RecordedRecord(4, 7, 1000, b"\x00\x01\x00\x05ab", b"\x00\x00"))
            new.write(RecordedRecord(4, 8, 1000, b"\x00\x63\x00\x01g", b"\x00\x00"))
            new.write(commit(4, 9, "g", "t", 0, 42))

        assert 0 == main(["replay", str(path), "--json"])
        captured = capsys.readouterr()
        reported = json.loads(captured.out)
        assert captured.err.startswith("warning: partition 4 offset 7: record of type 1 does not decode (key: ")
        assert {"records": 3, "unknown_records": {"99": 1}, "undecodable_records": {"1": 1}} == reported["counters"]
        assert 42 == reported["groups"]["g"]["offsets"][0]["offset"]

    def test_a_flood_of_undecodable_records_is_summed_up(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """Twenty are reported one by one, the rest by number."""
        path = tmp_path / "r.ndjson.gz"
        with open_new_recording(path, HEADER) as new:
            for offset in range(30):
                new.write(RecordedRecord(0, offset, 1000, b"\x00", None))

        assert 0 == main(["replay", str(path)])
        lines = capsys.readouterr().err.splitlines()
        assert "warning: 10 more records do not decode" == lines[20]
        assert "no groups" == lines[21]

    def test_names_cannot_steer_the_terminal(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        """Group names are the clients' own; control characters in them are shown, not obeyed."""
        path = tmp_path / "r.ndjson"
        with open_new_recording(path, HEADER) as new:
            new.write(commit(0, 0, "a\x1b[2Jb", "t", 0, 1))

        for arguments in (["replay", str(path)], ["replay", str(path), "--events"], ["decode", str(path)]):
            assert 0 == main(arguments)
            assert "\x1b" not in capsys.readouterr().out

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("0", 0),
            ("1795238304724", 1_795_238_304_724),
            ("1970-01-01T00:00:01Z", 1000),
            ("1970-01-01T01:00:01.5+01:00", 1500),
            ("1970-01-02", 86_400_000),
        ],
    )
    def test_times(self, text: str, expected: int) -> None:
        """Milliseconds or ISO-8601; without an offset it is UTC."""
        assert expected == time_ms(text)

    def test_time_that_is_none(self) -> None:
        """What is neither is refused with both forms."""
        with pytest.raises(UsageError, match=r"ISO-8601 .* or milliseconds since the epoch"):
            until_time_ms("1.5")


class TestDecode:
    """Records as text and as JSON."""

    def test_key_and_value(self, capsys: pytest.CaptureFixture[str]) -> None:
        """A record given in hexadecimal is shown in Kafka's words."""
        assert 0 == main(["decode", *EMPTY_CLASSIC_GROUP])
        assert (
            'GROUP_METADATA group=g-classic | v3 protocolType="" generation=0 protocol=null leader=null '
            "currentStateTimestamp=1795236417050 members=[]\n" == capsys.readouterr().out
        )

    def test_json_is_the_form_of_kafka_s_converters(self, capsys: pytest.CaptureFixture[str]) -> None:
        """The same object that Kafka's own decoder prints."""
        assert 0 == main(["decode", "--json", *EMPTY_CLASSIC_GROUP])
        assert {
            "key": {"type": 2, "data": {"group": "g-classic"}},
            "value": {
                "version": 3,
                "data": {
                    "protocolType": "",
                    "generation": 0,
                    "protocol": None,
                    "leader": None,
                    "currentStateTimestamp": 1795236417050,
                    "members": [],
                },
            },
        } == json.loads(capsys.readouterr().out)

    @pytest.mark.parametrize("value", ["null", "-", ""])
    def test_tombstone(self, capsys: pytest.CaptureFixture[str], value: str) -> None:
        """A value of null is a tombstone, written in three ways."""
        assert 0 == main(["decode", EMPTY_CLASSIC_GROUP[0], value])
        assert "GROUP_METADATA group=g-classic | tombstone\n" == capsys.readouterr().out

    def test_unknown_type_is_shown_as_such(self, capsys: pytest.CaptureFixture[str]) -> None:
        """A type of another release is shown by number, with its bytes."""
        assert 0 == main(["decode", UNKNOWN_KEY, "0000"])
        assert f"UNKNOWN type=18 group=g-mig key={UNKNOWN_KEY} value=0000\n" == capsys.readouterr().out
        assert 0 == main(["decode", "--json", UNKNOWN_KEY, "0000"])
        assert {
            "key": {"type": 18, "data": None, "group": "g-mig"},
            "value": None,
            "hex": {"key": UNKNOWN_KEY, "value": "0000"},
        } == json.loads(capsys.readouterr().out)

    def test_recording_with_what_consumers_embedded(self, capsys: pytest.CaptureFixture[str]) -> None:
        """Subscriptions and assignments inside the records are decoded in the text form, of both group types."""
        assert 0 == main(["decode", str(SCENARIOS)])
        lines = capsys.readouterr().out.splitlines()

        assert 164 == len(lines)
        assert lines[1].startswith("1/26671 2026-11-21T05:18:24.723Z GROUP_METADATA group=rec-eager | v3 ")
        assert '"subscription": {"version": 3, "topics": ["rec-orders"]' in lines[1]
        assert '"assignedPartitions": [{"topic": "rec-orders", "partitions": [0, 1, 2, 3, 4, 5]}]' in lines[1]
        assert any('"name": "cooperative-sticky", "metadata": {"version": 3' in line for line in lines)

    def test_recording_as_json_lines(self, capsys: pytest.CaptureFixture[str]) -> None:
        """One object a line, with the record's place in the log."""
        assert 0 == main(["decode", str(SCENARIOS), "--json"])
        first = json.loads(capsys.readouterr().out.splitlines()[0])

        assert ["partition", "offset", "timestamp", "key", "value"] == list(first)
        assert (1, 26670) == (first["partition"], first["offset"])

    def test_undecodable_record_of_a_recording_is_passed_over(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """Damage is shown in its place with its bytes, and the rest follows."""
        path = tmp_path / "r.ndjson"
        with open_new_recording(path, HEADER) as new:
            new.write(RecordedRecord(0, 0, 0, b"\x00", None))
            new.write(RecordedRecord(0, 1, 0, bytes.fromhex(EMPTY_CLASSIC_GROUP[0]), None))

        assert 0 == main(["decode", str(path)])
        first, second = capsys.readouterr().out.splitlines()
        assert first.startswith("0/0 1970-01-01T00:00:00.000Z UNDECODABLE (key: ")
        assert second.endswith("GROUP_METADATA group=g-classic | tombstone")


class TestProcess:
    """What only a process shows."""

    def test_commands_on_files_start_without_spark_or_pandas(self) -> None:
        """`replay` and `decode` import the model and little else, so they answer at once."""
        script = (
            "import sys; from streaming.__main__ import main; "
            f"main(['replay', {str(SCENARIOS)!r}, '--group', 'rec-new']); main(['decode', {str(SCENARIOS)!r}]); "
            "print(sorted({'pyspark', 'pandas', 'kafka', 'rich.table', 'structlog', 'yaml'} & set(sys.modules)))"
        )
        result = subprocess.run(  # noqa: S603 - our own interpreter
            [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=60, check=True
        )

        assert "[]" == result.stdout.splitlines()[-1]

    def test_reader_that_goes_away_ends_it_quietly(self) -> None:
        """`… | head` is no error."""
        command = [sys.executable, "-m", "streaming", "decode", str(SCENARIOS), "--json"]
        with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:  # noqa: S603 - as above
            assert running.stdout is not None
            assert running.stderr is not None
            running.stdout.readline()
            running.stdout.close()

            assert b"" == running.stderr.read()
            assert 0 == running.wait(timeout=60)

    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
    def test_interrupt_ends_it_quietly(self, tmp_path: Path, number: signal.Signals) -> None:
        """Ctrl-C, and the end a service manager sends, end a command with 130 and without a traceback."""
        pipe = tmp_path / "endless.ndjson"
        os.mkfifo(pipe)
        command = [sys.executable, "-m", "streaming", "replay", str(pipe)]
        with (
            subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running,  # noqa: S603 - as above
            pipe.open("w"),  # waits until the command has opened its end
        ):
            running.send_signal(number)
            _, errors = running.communicate(timeout=60)

        assert (130, b"") == (running.returncode, errors)

    def test_no_progress_when_piped(self) -> None:
        """Where standard error is no terminal nothing is drawn there."""
        assert "" == process("replay", str(SCENARIOS)).stderr


class TestText:
    """Small pieces of output."""

    @pytest.mark.parametrize(
        ("partitions", "expected"),
        [
            ({}, "-"),
            ({"t": []}, "-"),
            ({"t": [0]}, "t:0"),
            ({"t": [0, 1]}, "t:0,1"),
            ({"t": [5, 0, 1, 2]}, "t:0-2,5"),
            ({"b": [1], "a": [0, 2]}, "a:0,2 b:1"),
        ],
    )
    def test_partitions(self, partitions: dict[str, list[int]], expected: str) -> None:
        """Runs of three and more are drawn together."""
        assert expected == partitions_text(partitions)

    @pytest.mark.parametrize(
        ("milliseconds", "expected"),
        [(None, "-"), (-1, "-"), (0, "1970-01-01T00:00:00.000Z"), (2**62, str(2**62))],
    )
    def test_time(self, milliseconds: int | None, expected: str) -> None:
        """Times are UTC; those no calendar holds are shown as they are."""
        assert expected == time_text(milliseconds)

    def test_event(self) -> None:
        """An inferred event says so."""
        event: dict[str, Any] = {
            "time": 0,
            "kind": "rebalance_stuck",
            "group": "g",
            "severity": "critical",
            "detail": {"rebalancing_ms": 61_000},
            "inferred": True,
        }

        said = "The rebalance is stuck, under way for 1 m 1 s; since 00:00 UTC"
        assert f"1970-01-01T00:00:00.000Z critical rebalance_stuck g {said} (inferred)" == event_text(event)

    @pytest.mark.parametrize(
        ("statuses", "expected"),
        [
            (["ok"], 0),
            (["ok", "note"], 0),
            (["ok", "cannot tell"], 3),
            (["fail", "cannot tell"], 1),
            (["ok", "fail"], 1),
        ],
    )
    def test_check_ends_with_the_worst(self, statuses: list[Any], expected: int) -> None:
        """What does not hold outweighs what is not known."""
        assert expected == exit_status([Finding("x", status, "") for status in statuses])


def commit(partition: int, offset: int, group: str, topic: str, number: int, committed: int) -> RecordedRecord:
    """An offset commit as a line of a recording."""
    key, value = builders.offset_commit(group, topic, number, committed)
    return RecordedRecord(partition, offset, 1000, key, value)
