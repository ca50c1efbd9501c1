"""What leaves a monitor through Kafka, who serves from it, and who takes over: one story of three processes.

A monitor writes its topics; a second process serves from these alone; a third stands by with the same configuration.
The first is killed, members come and go while nobody watches, the standby takes over.
"""

import json
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest
from confluent_kafka import Consumer, TopicPartition

from streaming.config import load
from streaming.embedded_broker import EmbeddedBroker
from streaming.kafka_tools import create_topics
from streaming.sink_topics import sink_findings
from tests.integration.in_process_member import InProcessMember
from tests.integration.monitor_process import ROOT, CommandProcess, MonitorProcess, configuration, parse_metrics, until

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.timeout(600)]

SCHEMAS: Final = ROOT / "docs" / "schemas"
EVENTS, GROUPS = "monitor-events", "monitor-groups"
SINK: Final = f"kafka_sink: {{events_topic: {EVENTS}, groups_topic: {GROUPS}, groups_interval_ms: 300}}\n"
CLASSIC, CONSUMER, SIMPLE, DOOMED, UNSEEN = "classic-service", "consumer-service", "simple", "doomed", "made-unseen"
PATIENCE_SECONDS: Final = 60.0

# What is of the process that is asked, or of the moment, and what starts anew with a monitor.
OF_ONE_PROCESS: Final = (
    "group_monitor_batch_seconds",
    "group_monitor_record_to_metric_seconds",
    "group_monitor_end_offset_age_seconds",
    "group_monitor_source_age_seconds",
    "group_monitor_sink_",
    "group_monitor_replica_lag_records",
)
OF_A_MOMENT: Final = ("_age_seconds", "_lag_seconds", "rebalancing_seconds", "mixed_seconds")
Samples = dict[str, dict[tuple[tuple[str, str], ...], float]]


@dataclass
class Told:
    """What was seen while the story was told."""

    check: dict[str, str] = field(default_factory=dict)
    """Finding → status, of a `check` that made the topics."""
    unfit: list[str] = field(default_factory=list)
    """What `check` finds amiss with a compacted topic of events, and one of groups that is not there."""
    compared: dict[str, tuple[tuple[Any, Any], tuple[Any, Any]]] = field(default_factory=dict)
    """When → (GROUPs and figures of the monitor, the same of the one that serves)."""
    away: dict[str, Any] = field(default_factory=dict)
    refused: tuple[int, list[str]] = (0, [])
    errors: dict[str, list[str]] = field(default_factory=dict)


class Story:
    """The cluster, its members, and the processes that look at it."""

    def __init__(self, stack: ExitStack, directory: Path) -> None:
        self.told = Told()
        self._stack = stack
        self._directory = directory
        self._state = directory / "state"
        self._servers = stack.enter_context(
            EmbeddedBroker(directory / "broker", offsets_partitions=4)
        ).bootstrap_servers
        create_topics(self._servers, {"orders": 6})

    def tell(self) -> Told:
        """From the first start to the last end."""
        self._make_topics()
        monitor, served = self._process("monitor", "run"), self._process("served", "serve")
        monitor.await_ready()
        # Its own start is no part of the takeover, so it has all the time it needs.
        standby = self._process("standby", "run", "--standby")
        members = {name: self._join(group, protocol) for name, group, protocol in MEMBERS}
        for group in (SIMPLE, DOOMED):
            self._commit(group, 3)
        served.await_ready()
        self._refuse_second()
        until(lambda: {CLASSIC, CONSUMER, SIMPLE, DOOMED} <= served.groups().keys(), PATIENCE_SECONDS, "no groups")
        self._compare("at first", monitor, served, with_events=True)
        until(lambda: any("standing_by" in line for line in standby.error_lines()), 90, "nobody stands by")

        monitor.kill_alone()
        members["classic-2"].close()
        self._commit(SIMPLE, 5)
        self._commit(UNSEEN, 1)
        self.told.away = {"groups": served.groups().keys(), "age": _value(served, "group_monitor_source_age_seconds")}
        standby.await_ready()
        until(lambda: UNSEEN in standby.groups(), PATIENCE_SECONDS, "what nobody saw is not told")
        self.told.errors = {"standby": standby.error_lines(), "served": served.error_lines()}
        standby.terminate()
        assert 0 == standby.await_end(60)
        return self.told

    def _process(self, name: str, *command: str) -> MonitorProcess:
        return self._stack.enter_context(
            MonitorProcess(self._directory / name, self._servers, state=self._state, settings=SINK, command=command)
        )

    def _make_topics(self) -> None:
        config = self._directory / "check.yaml"
        config.write_text(configuration(self._servers, self._state) + SINK, "utf-8")
        arguments = ("check", "--config", str(config), "--create-topics", "--json")
        with CommandProcess(self._directory / "check", *arguments) as check:
            assert 0 == check.await_end(60), check.output_lines()
            found = json.loads("\n".join(check.output_lines()))["checks"]
        self.told.check = {each["check"]: f"{each['status']}: {each['detail']}" for each in found}
        swapped = {"kafka_sink.events_topic": GROUPS, "kafka_sink.groups_topic": "not-there"}
        self.told.unfit = [of.detail for of in sink_findings(load(config, overrides=swapped)) if of.status == "fail"]

    def _refuse_second(self) -> None:
        """One more on the same state directory, which is not told to wait."""
        with self._process("second", "run") as second:
            self.told.refused = second.await_end(60), second.error_lines()

    def _join(self, group: str, protocol: Any) -> InProcessMember:
        return self._stack.enter_context(InProcessMember(self._servers, group, "orders", protocol=protocol))

    def _commit(self, group: str, offset: int) -> None:
        consumer = Consumer({"bootstrap.servers": self._servers, "group.id": group, "log_level": 2})
        consumer.commit(offsets=[TopicPartition("orders", 0, offset)], asynchronous=False)
        consumer.close()

    def _compare(
        self, when: str, monitor: MonitorProcess, served: MonitorProcess, *, with_events: bool = False
    ) -> None:
        """Until both say the same, and the first says it before and after the second does."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            before, found, after = (_shown(each, with_events=with_events) for each in (monitor, served, monitor))
            if before == found == after or time.monotonic() > deadline:
                self.told.compared[when] = (after, found)
                return
            time.sleep(0.3)


MEMBERS: Final = (
    ("classic-1", CLASSIC, "classic"),
    ("classic-2", CLASSIC, "classic"),
    ("consumer-1", CONSUMER, "consumer"),
)


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Told]:
    with ExitStack() as stack:
        yield Story(stack, tmp_path_factory.mktemp("sinks")).tell()


def test_check_makes_the_topics_as_they_must_be(told: Told) -> None:
    """The one of groups is compacted, the one of events is not."""
    assert {
        "kafka_sink.events_topic": f"ok: {EVENTS} has 1 partitions, cleanup.policy delete, made now",
        "kafka_sink.groups_topic": f"ok: {GROUPS} has 1 partitions, cleanup.policy compact, made now",
    } == {name: said for name, said in told.check.items() if name.startswith("kafka_sink")}


def test_check_says_what_is_amiss_with_a_topic(told: Told) -> None:
    """By the option, with what was found, and the command that makes it right."""
    events, groups = told.unfit

    assert f"kafka_sink.events_topic: found {GROUPS!r} with cleanup.policy 'compact', accepted: 'delete'" == events
    assert "kafka_sink.groups_topic: found no 'not-there', accepted: " in groups
    assert "kafka-topics.sh --create --topic not-there --config cleanup.policy=compact" in groups


@pytest.mark.parametrize("when", ["at first"])
def test_who_serves_the_topics_shows_what_the_monitor_shows(told: Told, when: str) -> None:
    """Every GROUP with its lag, and every figure on /metrics that is not of the process itself."""
    (expected_groups, expected_figures), (groups, figures) = told.compared[when]

    assert {CLASSIC, CONSUMER, SIMPLE} <= expected_groups.keys()
    assert expected_groups == groups
    assert {"kafka_group_commits_total", "kafka_consumergroup_group_lag"} <= expected_figures.keys()
    assert expected_figures == figures


def test_who_serves_goes_on_while_the_monitor_is_away(told: Told) -> None:
    """The groups stay, and how long nothing was heard is told."""
    assert {CLASSIC, CONSUMER, SIMPLE, DOOMED} <= told.away["groups"]
    assert told.away["age"] > 0


def test_a_second_monitor_is_refused_a_state_directory_in_use(told: Told) -> None:
    """At once, by an error that says who has it and what helps."""
    status, errors = told.refused

    assert 2 == status
    assert any("in use by process" in line and "--standby" in line for line in errors)


def test_nothing_went_wrong(told: Told) -> None:
    """But for taking over there was nothing to say on standard error."""
    said = {name: [line for line in lines if "level=info" not in line] for name, lines in told.errors.items()}

    assert {"standby": [], "served": []} == said


def _shown(monitor: MonitorProcess, *, with_events: bool) -> tuple[dict[str, Any], Samples]:
    groups = monitor.groups()
    for group in groups.values():
        _without_moment(group)
    figures = {
        name: values
        for name, values in parse_metrics(monitor.get("/metrics")[1]).items()
        if not name.startswith(OF_ONE_PROCESS)
        and not name.endswith(OF_A_MOMENT)
        and (with_events or name != "kafka_group_events_total")
    }
    return groups, figures


def _without_moment(value: Any) -> None:
    """Leave out of a GROUP what grows while one looks."""
    if isinstance(value, dict):
        for name in [name for name in value if name.endswith(("lag_seconds", "lag_method", "_ms"))]:
            del value[name]
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        _without_moment(inner)


def _value(monitor: MonitorProcess, name: str) -> float:
    (value,) = monitor.samples()[name].values()
    return value
