"""Share groups on a real broker: what the monitor says of them is what Kafka's own tool says, and what members did.

One story is played once, in `reported`; the tests below judge what was seen meanwhile. A monitor runs before there is
any share group. Members accept, reject, and release a record until it is given up; the monitor is restarted while they
go on.
"""

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest
from confluent_kafka import AcknowledgeType, Message, Producer

from lab.monitor_process import READY_SECONDS, MonitorProcess, parse_metrics, until
from streaming.demo.embedded_broker import EmbeddedBroker
from streaming.demo.verifiable_consumer import create_topics
from streaming.metrics.catalogue import CATALOGUE
from tests.group_tool import GroupTool
from tests.integration.test_job import OF_SHARE_GROUPS
from tests.share_members import ShareMember

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.timeout(600)]

GROUP: Final = "jobs-workers"
TOPIC: Final = "jobs"
PARTITIONS: Final = 2
_TOOL: Final = "org.apache.kafka.tools.consumer.group.ShareGroupCommand"
_AGREE_SECONDS: Final = 150.0
"""The topic is looked for once a minute, by who reads it and who says so."""

Offsets = dict[int, tuple[int | None, int | None]]
"""Partition → start offset, lag."""


@dataclass
class Reported:
    """What was seen while the story was played."""

    ready_without: dict[str, Any] = field(default_factory=dict)
    stages: dict[str, tuple[Offsets, Offsets]] = field(default_factory=dict)
    groups: dict[str, dict[str, Any]] = field(default_factory=dict)
    events: list[dict[str, Any]] = field(default_factory=list)
    metrics: str = ""
    rejected: set[tuple[int, int]] = field(default_factory=set)
    released: set[tuple[int, int]] = field(default_factory=set)
    error_lines: list[str] = field(default_factory=list)

    def lags(self, stage: str) -> list[int]:
        """By partition, as Kafka's tool said."""
        return [lag or 0 for _, (_, lag) in sorted(self.stages[stage][0].items())]


class Story:
    """The cluster, its members, and the monitor that watches them."""

    def __init__(self, stack: ExitStack, directory: Path) -> None:
        self.reported = Reported()
        self._stack = stack
        self._directory = directory
        self._broker = stack.enter_context(EmbeddedBroker(directory / "broker", offsets_partitions=4))
        self._servers = self._broker.bootstrap_servers
        create_topics(self._servers, {TOPIC: PARTITIONS})
        self._tool = stack.enter_context(GroupTool(self._servers, log=directory / "tool.log"))
        self._producer = Producer({"bootstrap.servers": self._servers, "log_level": 2})
        self._runs = self._produced = 0

    def tell(self) -> Reported:
        """From a cluster without share groups to the last look."""
        monitor = self._run_monitor()
        member = self._stack.enter_context(ShareMember(self._servers, GROUP, TOPIC, self._decide))
        # Without a configuration of its own a share group begins where the partition ends when it comes.
        until(lambda: self._delivers(member), 60, "nothing is delivered")
        self._produce("good", 60)
        self._agree("all is accepted", monitor)
        self._produce("poison", 4)
        self._produce("bad", 2)
        self._transaction(2)
        self._produce("good", 20)
        self._agree("some is given up", monitor)
        self.reported.groups["some is given up"] = monitor.groups()[GROUP]
        monitor.terminate()
        monitor.await_end(60)
        self._produce("poison", 2)
        self._produce("good", 10)
        until(lambda: len(member.seen) == self._produced, 60, lambda: f"delivered: {member.seen}")
        monitor = self._run_monitor()
        self._agree("restarted", monitor)
        member.close()
        self._produce("good", 30)
        self._agree("no member", monitor)
        self.reported.groups["no member"] = monitor.groups()[GROUP]
        self.reported.rejected = member.rejected
        self.reported.events = monitor.events(limit="10000")
        self.reported.metrics = monitor.get("/metrics")[1]
        self.reported.error_lines = monitor.error_lines()
        return self.reported

    def _delivers(self, member: ShareMember) -> bool:
        """Whether records of each partition are delivered; what was written before that is not counted."""
        self._produce("good", PARTITIONS)
        time.sleep(0.5)
        self._produced = len(member.seen)
        return {partition for partition, _ in member.seen} == set(range(PARTITIONS))

    def _run_monitor(self) -> MonitorProcess:
        self._runs += 1
        monitor = self._stack.enter_context(
            MonitorProcess(self._directory / f"monitor-{self._runs}", self._servers, state=self._directory / "state")
        )
        monitor.await_ready(READY_SECONDS)
        return monitor

    def _decide(self, message: Message) -> AcknowledgeType:
        value = (message.value() or b"").decode()
        if value.startswith("poison"):
            return AcknowledgeType.REJECT
        if value.startswith("bad"):
            self.reported.released.add((message.partition() or 0, message.offset() or 0))
            return AcknowledgeType.RELEASE
        return AcknowledgeType.ACCEPT

    def _produce(self, what: str, count: int) -> None:
        for number in range(count):
            self._producer.produce(TOPIC, f"{what} {number}", partition=number % PARTITIONS)
        assert 0 == self._producer.flush(30)
        self._produced += count

    def _transaction(self, count: int) -> None:
        """Records and a marker, which a client archives as it archives what it rejects."""
        producer = Producer({"bootstrap.servers": self._servers, "transactional.id": "jobs", "log_level": 0})
        producer.init_transactions(30)
        producer.begin_transaction()
        for number in range(count):
            producer.produce(TOPIC, f"good {number}", partition=0)
        producer.commit_transaction(30)
        self._produced += count

    def _of_tool(self) -> Offsets:
        """What `kafka-share-groups --describe --offsets` prints."""
        lines = self._tool.run("--describe", "--group", GROUP, "--offsets", main_class=_TOOL).splitlines()
        rows = [line.split() for line in lines if line.startswith(GROUP)]
        return {int(row[2]): (_number(row[3]), _number(row[4])) for row in rows}

    def _agree(self, stage: str, monitor: MonitorProcess) -> None:
        """Wait until both say the same at a quiet moment; keep what they said."""
        deadline = time.monotonic() + _AGREE_SECONDS
        while True:
            before, found, expected = self._of_tool(), self._of_monitor(monitor), self._of_tool()
            time.sleep(1.0)
            if before == expected == found == self._of_monitor(monitor) or time.monotonic() > deadline:
                self.reported.stages[stage] = expected, found
                return

    def _of_monitor(self, monitor: MonitorProcess) -> Offsets:
        group = monitor.groups().get(GROUP, {"share_partitions": ()})
        return {of["partition"]: (of["start_offset"], of["lag"]) for of in group["share_partitions"]}


def _number(cell: str) -> int | None:
    return None if cell == "-" else int(cell)


@pytest.fixture(scope="module", name="reported")
def reported_of_story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reported]:
    with ExitStack() as stack:
        yield Story(stack, tmp_path_factory.mktemp("share")).tell()


@pytest.mark.parametrize("stage", ["all is accepted", "some is given up", "restarted", "no member"])
def test_start_offset_and_lag_are_the_tool_s(reported: Reported, stage: str) -> None:
    """Of each share partition, also of records that no member is there for."""
    expected, found = reported.stages[stage]

    assert expected == found
    assert all(start is not None and lag is not None for start, lag in found.values())


def test_lag_of_a_group_is_that_of_its_partitions(reported: Reported) -> None:
    """Records that no member takes wait, and all others are done; but for one that a member left as it closed."""
    group = reported.groups["no member"]
    lags = reported.lags("no member")

    assert sum(lags) == group["lag"] == sum(of["lag"] for of in group["share_partitions"])
    assert 30 <= group["lag"] <= 30 + PARTITIONS
    assert max(lags) == group["max_lag"]
    assert sum(reported.lags("some is given up")) == reported.groups["some is given up"]["lag"] <= PARTITIONS


def test_what_was_given_up_is_reported_once(reported: Reported) -> None:
    """By offset and cause, across a restart: what members rejected, and what they released to the limit.

    A transaction's marker is none of it.
    """
    given_up = Counter(
        (of["detail"]["topic_partition"], offset, of["detail"]["why"])
        for of in reported.events
        if of["kind"] == "share_records_archived"
        for offset in range(of["detail"]["first_offset"], of["detail"]["last_offset"] + 1)
    )
    expected = [(*place, "rejected") for place in reported.rejected] + [
        (*place, "limit") for place in reported.released
    ]

    assert Counter(expected) == given_up
    assert 6 + 2 == len(given_up)
    assert {TOPIC} == {of["detail"]["topic"] for of in reported.events if of["kind"] == "share_records_archived"}


def test_counts_are_those_of_all_runs(reported: Reported) -> None:
    """What was given up stays counted."""
    partitions = reported.groups["no member"]["share_partitions"]

    assert {"limit": 2, "rejected": 6} == {
        why: sum(of["archived_total"][why] for of in partitions) for why in ("limit", "rejected")
    }


@pytest.mark.parametrize("name", OF_SHARE_GROUPS)
def test_metric_has_samples(reported: Reported, name: str) -> None:
    """What the catalogue has of share groups is on the page, with the labels it says and the cluster's name."""
    samples = parse_metrics(reported.metrics)[name]

    assert samples
    for labels in samples:
        assert {"cluster", *CATALOGUE[name].labels} == dict(labels).keys()


def test_lag_has_the_series_that_lag_has(reported: Reported) -> None:
    """By partition, topic and group."""
    samples = parse_metrics(reported.metrics)
    of_group = {"cluster": "tested", "cluster_name": "tested", "group": GROUP}

    def of(name: str, **labels: str) -> float:
        return samples[f"kafka_consumergroup_group_{name}"][tuple(sorted({**of_group, **labels}.items()))]

    lags = reported.lags("no member")
    assert (sum(lags), max(lags), sum(lags)) == (of("sum_lag"), of("max_lag"), of("topic_sum_lag", topic=TOPIC))
    assert lags == [of("lag", topic=TOPIC, partition=str(number)) for number in range(PARTITIONS)]


def test_monitor_is_quiet(reported: Reported) -> None:
    """There was nothing to say on standard error."""
    assert [] == reported.error_lines
