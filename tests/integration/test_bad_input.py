"""What is wrong is reported in one line, at once, and leaves nothing behind: no process, no change to the state.

Where brokers have a part in it they are real.
"""

import gzip
import os
import shutil
import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._acl import AclBinding, AclBindingFilter, AclOperation, AclPermissionType
from confluent_kafka.admin._resource import ResourcePatternType, ResourceType

from lab.monitor_process import ROOT, CommandProcess, configuration, contents, until
from streaming.demo.embedded_broker import HOST, EmbeddedBroker

pytestmark = pytest.mark.broker

SOON_SECONDS: Final = 30.0
"""A command that refuses takes two or three seconds; a machine may be busy."""

OFFSETS_TOPIC: Final = "__consumer_offsets"
RECORDING: Final = ROOT / "tests" / "recordings" / "scenarios.ndjson"


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A broker that lets everybody do everything, until a rule denies it."""
    rules = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "allow.everyone.if.no.acl.found": "true",
    }
    with EmbeddedBroker(tmp_path_factory.mktemp("broker"), offsets_partitions=1, properties=rules) as broker:
        yield broker.bootstrap_servers


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """A state directory with a checkpoint in it."""
    checkpoint = tmp_path / "state" / "checkpoint" / "commits"
    checkpoint.mkdir(parents=True)
    (checkpoint / "0").write_text("v1\n{}")
    return tmp_path / "state"


class Refusal:
    """How a command ended that could do nothing: `status`, and `line`, the only one on standard error."""

    def __init__(
        self, directory: Path, *arguments: str, environment: Mapping[str, str] | None = None, cwd: Path = ROOT
    ) -> None:
        begun = time.monotonic()
        with CommandProcess(directory / "command", *arguments, cwd=cwd, environment=environment) as command:
            self.status = command.await_end(2 * SOON_SECONDS)
            seconds, left, lines = time.monotonic() - begun, command.left_over(), command.error_lines()

        assert 1 == len(lines), lines
        assert [] == left
        assert seconds < SOON_SECONDS
        assert [] == command.output_lines()
        self.line = lines[0]


def refused(state: Path, servers: str, *settings: str, **environment: str) -> Refusal:
    """How `run` ended; that it left the state as it was is seen to."""
    config = state.parent / "monitor.yaml"
    config.write_text(configuration(servers, state))
    before = contents(state)
    chosen = [word for setting in settings for word in ("--set", setting)]
    refusal = Refusal(state.parent, "run", "--config", str(config), *chosen, environment=environment)

    assert before == contents(state)
    return refusal


class TestSetUp:
    """Java and the port are looked at before anything is started."""

    def test_no_java(self, servers: str, state: Path, tmp_path: Path) -> None:
        """Neither JAVA_HOME nor the path leads to one: the remedy is named."""
        refusal = refused(state, servers, PATH=str(tmp_path), JAVA_HOME="")

        assert 2 == refusal.status
        assert refusal.line.startswith("error: PATH: found no java, accepted: Java 17 or 21; install one")

    def test_java_home_without_java(self, servers: str, state: Path, tmp_path: Path) -> None:
        """JAVA_HOME is believed, as Spark does, even where the path would lead to a Java."""
        refusal = refused(state, servers, JAVA_HOME=str(tmp_path))

        assert 2 == refusal.status
        assert refusal.line.startswith(f"error: JAVA_HOME: found no bin/java in '{tmp_path}', accepted: Java 17 or 21")

    def test_wrong_java(self, servers: str, state: Path, tmp_path: Path) -> None:
        """The version that was found is named, and where."""
        java = tmp_path / "java"
        java.write_text("#!/bin/sh\necho 'openjdk version \"11.0.21\" 2023-10-17' >&2\n")
        java.chmod(0o755)
        refusal = refused(state, servers, PATH=f"{tmp_path}{os.pathsep}{os.environ['PATH']}", JAVA_HOME="")

        assert 2 == refusal.status
        assert refusal.line.startswith(f"error: PATH: found Java 11 ({java}), accepted: Java 17 or 21")

    def test_taken_port(self, servers: str, state: Path) -> None:
        """Somebody else listens there."""
        with socket.create_server((HOST, 0)) as taken:
            port = taken.getsockname()[1]
            refusal = refused(state, servers, f"http.port={port}")

        assert 2 == refusal.status
        assert refusal.line.startswith(f"error: http.port: found {port} on http.host '127.0.0.1' (Address already in")


class TestBrokers:
    """What brokers refuse is exit status 3: nothing is known about the groups."""

    def test_nobody_listens(self, state: Path) -> None:
        """The address and the cause are named."""
        with socket.create_server((HOST, 0)) as closed:
            servers = f"{HOST}:{closed.getsockname()[1]}"
        refusal = refused(state, servers)

        assert 3 == refusal.status
        assert refusal.line.startswith(f"error: kafka.bootstrap_servers: found '{servers}', none reachable (")

    def test_who_listens_is_no_broker(self, state: Path) -> None:
        """A port that accepts and keeps silent is given up on."""
        with socket.create_server((HOST, 0)) as silent:
            servers = f"{HOST}:{silent.getsockname()[1]}"
            refusal = refused(state, servers, "kafka.request_timeout_ms=2000")

        assert 3 == refusal.status
        assert refusal.line.startswith(f"error: kafka.bootstrap_servers: found '{servers}', which accepts connections")

    def test_no_permission_to_read(self, servers: str, state: Path) -> None:
        """A topic that may be seen and not read: what is allowed and what is needed are named."""
        with only_allowed(servers, "ANONYMOUS", AclOperation.DESCRIBE):
            refusal = refused(state, servers)

        assert 3 == refusal.status
        assert refusal.line.startswith("error: kafka.security: found the permission ")
        assert refusal.line.endswith(f" on {OFFSETS_TOPIC}, accepted: READ")

    def test_no_permission_to_see(self, servers: str, state: Path) -> None:
        """A topic that must not even be described is distinguished from one that is not there."""
        with only_allowed(servers, "somebody-else", AclOperation.READ):
            refusal = refused(state, servers)

        assert 3 == refusal.status
        assert f"found '{OFFSETS_TOPIC}', TopicAuthorizationFailed on this cluster" in refusal.line

    def test_no_offsets_topic(self, servers: str, state: Path) -> None:
        """A cluster without any group yet: how the topic comes to be is said."""
        admin = AdminClient({"bootstrap.servers": servers})
        admin.delete_topics([OFFSETS_TOPIC])[OFFSETS_TOPIC].result(30)
        until(lambda: OFFSETS_TOPIC not in admin.list_topics(timeout=10).topics, 90, "the topic is still there")
        refusal = refused(state, servers)

        assert 3 == refusal.status
        assert f"found '{OFFSETS_TOPIC}', UnknownTopicOrPartition on this cluster" in refusal.line
        assert refusal.line.endswith("when the first group joins or commits)")


class TestInput:
    """Files and options are judged before a broker is asked."""

    def test_misspelt_option_in_the_file(self, state: Path) -> None:
        """File, line, the name and what was probably meant."""
        config = state.parent / "monitor.yaml"
        config.write_text("cluster:\n  name: c\nkafka:\n  bootstrap_server: 127.0.0.1:1\n")
        refusal = Refusal(state.parent, "run", "--config", str(config))

        assert 2 == refusal.status
        assert refusal.line.startswith(f"error: {config}:4: kafka.bootstrap_server: ")
        assert "bootstrap_servers" in refusal.line

    def test_misspelt_option_on_the_command_line(self, state: Path) -> None:
        """Both a flag that is none and a setting that is none."""
        flag = Refusal(state.parent, "run", "--confg", "x")
        setting = refused(state, f"{HOST}:1", "http.prot=0")

        assert (2, 2) == (flag.status, setting.status)
        assert "--confg" in flag.line
        assert "http.prot" in setting.line
        assert "http.port" in setting.line

    def test_recording_with_a_broken_line(self, tmp_path: Path) -> None:
        """The line is named; what came before it is not shown as if it were all."""
        lines = RECORDING.read_text(encoding="utf-8").splitlines()
        broken = tmp_path / "broken.ndjson"
        broken.write_text("\n".join([*lines[:9], lines[9][:20], *lines[10:]]) + "\n")
        refusal = Refusal(tmp_path, "replay", str(broken))

        assert 2 == refusal.status
        assert refusal.line.startswith(f"error: {broken}:10: found ")

    def test_cut_recording(self, tmp_path: Path) -> None:
        """A gzipped recording whose end is missing is not taken for a whole one."""
        whole, cut = tmp_path / "whole.ndjson.gz", tmp_path / "cut.ndjson.gz"
        with RECORDING.open("rb") as plain, gzip.open(whole, "wb") as zipped:
            shutil.copyfileobj(plain, zipped)
        cut.write_bytes(whole.read_bytes()[:-2000])
        refusal = Refusal(tmp_path, "replay", str(cut))

        assert 2 == refusal.status
        assert refusal.line.startswith(f"error: {cut}:")


@contextmanager
def only_allowed(servers: str, user: str, operation: AclOperation) -> Iterator[None]:
    """A rule for the offsets topic; what no rule allows is refused from then on."""
    place = (ResourceType.TOPIC, OFFSETS_TOPIC, ResourcePatternType.LITERAL, f"User:{user}", "*", operation)
    admin = AdminClient({"bootstrap.servers": servers})
    rule = AclBinding(*place, AclPermissionType.ALLOW)
    admin.create_acls([rule])[rule].result(30)
    try:
        yield
    finally:
        same = AclBindingFilter(*place, AclPermissionType.ALLOW)
        admin.delete_acls([same])[same].result(30)
