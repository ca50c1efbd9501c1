"""The permissions the documentation asks for are enough, and needed: a real broker with an authorizer, its own tool.

The commands of docs/permissions.md are run as they stand there, but for the broker's address.
"""

import json
import re
import shlex
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from lab.monitor_process import CommandProcess, MonitorProcess, until
from streaming.demo.embedded_broker import DEFAULT_JARS_DIR
from streaming.demo.verifiable_consumer import create_topics
from streaming.kafka.permissions import EVENTS_TOPIC, GROUPS_TOPIC
from streaming.sinks.kafka_sinks import EVENTS_SINK, GROUPS_SINK
from streaming.spark import java
from tests.integration.guarded_broker import SECRET, SECURITY, Started, guarded_broker

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.timeout(400)]

PAGE: Final = Path(__file__).resolve().parents[2] / "docs" / "permissions.md"
MAIN_CLASSES: Final = {"kafka-acls.sh": "org.apache.kafka.tools.AclCommand"}
SHOWN_ADDRESS: Final = "localhost:9092"

GROUP: Final = "nightly-export"
COMMITTED: Final = 3
WRITTEN: Final = 10


@dataclass(frozen=True)
class Seen:
    """What `check` found before and after, and what the monitor reported that was started then."""

    before: tuple[int, dict[str, str]]
    after: tuple[int, dict[str, str]]
    group: dict[str, Any]
    gate: dict[str, Any]
    groups: list[str]
    error_lines: list[str]


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Seen]:
    directory = tmp_path_factory.mktemp("permissions")
    with ExitStack() as stack:
        broker, guarded = guarded_broker(directory / "broker")
        stack.enter_context(broker)
        somebody_s_group(broker.bootstrap_servers)
        config = directory / "monitor.yaml"
        config.write_text(
            f"cluster: {{name: tested}}\nkafka:\n  bootstrap_servers: '{guarded}'\n{SECURITY}"
            f"state: {{dir: '{directory / 'state'}'}}\nhttp: {{port: 0}}\nspark: {{driver_memory: 1g}}\n"
            f"kafka_sink: {{events_topic: {EVENTS_TOPIC}, groups_topic: {GROUPS_TOPIC}}}\n"
        )
        before = checked(directory / "before", config)
        for command in commands():
            run(command, broker.bootstrap_servers)
        after = checked(directory / "after", config, "--create-topics")
        monitor = stack.enter_context(Started(directory / "monitor", config))
        monitor.await_ready()
        until(lambda: lag_of(monitor) is not None, 90, lambda: f"no lag: {monitor.groups()}")
        until(lambda: delivered(monitor) == {EVENTS_SINK, GROUPS_SINK}, 60, lambda: f"{monitor.error_lines()}")
        yield Seen(
            before=before,
            after=after,
            group=monitor.groups()[GROUP],
            gate=monitor.json("/api/v1/gate/downgrade"),
            groups=sorted(monitor.groups()),
            error_lines=monitor.error_lines(),
        )


def test_nothing_is_seen_without_permissions(seen: Seen) -> None:
    """`check` does not pass for a principal without permissions, and says which it lacks."""
    status, findings = seen.before

    assert status in {1, 3}
    assert "fail" in findings.values() or "cannot tell" in findings.values()


def test_the_commands_shown_are_enough(seen: Seen) -> None:
    """With the permissions of the page `check` has nothing to say any more, and has made the topics of the sinks."""
    assert (0, {"ok"}) == (seen.after[0], set(seen.after[1].values()))


def test_the_monitor_sees_groups_and_lag(seen: Seen) -> None:
    """What was committed and how far behind it is, and the brokers tell whether there are GROUP configurations."""
    (offset,) = seen.group["offsets"]

    assert (COMMITTED, WRITTEN - COMMITTED) == (offset["offset"], offset["lag"])
    assert [] == [reason for reason in seen.gate["reasons"] if reason["code"] == "group_configs"]


def test_the_monitor_is_no_group_itself(seen: Seen) -> None:
    """It reads without joining: the log it reads has somebody's group in it and none of the monitor's.

    And it had nothing to complain of, though it writes what it knows to topics all the while.
    """
    assert [GROUP] == seen.groups
    assert [] == seen.error_lines


def commands() -> list[list[str]]:
    """Words of each command of Kafka's own tools on the page."""
    lines = re.findall(r"^\$ (.+)$", PAGE.read_text("utf-8"), re.MULTILINE)
    return [words for words in map(shlex.split, lines) if words[0] in MAIN_CLASSES]


def run(words: list[str], servers: str) -> None:
    """Do what a script of Kafka's distribution does: start its class with these arguments."""
    arguments = [servers if word == SHOWN_ADDRESS else word for word in words[1:]]
    command = java.command(DEFAULT_JARS_DIR, MAIN_CLASSES[words[0]], arguments)
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)  # noqa: S603 - Kafka's own tool
    assert 0 == done.returncode, done.stdout + done.stderr


def somebody_s_group(servers: str) -> None:
    """A topic with records, and a group that has read some of them."""
    create_topics(servers, {"orders": 1})
    producer = Producer({"bootstrap.servers": servers, "log_level": 2})
    for number in range(WRITTEN):
        producer.produce("orders", str(number), partition=0)
    assert 0 == producer.flush(30)
    consumer = Consumer({"bootstrap.servers": servers, "group.id": GROUP})
    consumer.commit(offsets=[TopicPartition("orders", 0, COMMITTED)], asynchronous=False)
    consumer.close()


def delivered(monitor: MonitorProcess) -> set[str]:
    """The sinks that have taken something."""
    samples = monitor.samples().get("group_monitor_sink_delivered_total", {})
    return {dict(labels)["sink"] for labels, value in samples.items() if value > 0}


def checked(directory: Path, config: Path, *more: str) -> tuple[int, dict[str, str]]:
    """Exit status of `check`, and what became of each thing it looked at."""
    with CommandProcess(
        directory, "check", "--no-spark", "--config", str(config), "--json", *more, environment=SECRET
    ) as check:
        status = check.await_end(90)
        reported = json.loads("\n".join(check.output_lines()))
    return status, {found["check"]: found["status"] for found in reported["checks"]}


def lag_of(monitor: MonitorProcess) -> int | None:
    offsets = monitor.groups().get(GROUP, {}).get("offsets", [])
    return offsets[0]["lag"] if offsets else None
