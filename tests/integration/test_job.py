"""The whole job beside a real cluster: what it says of every group is what Kafka's own tool says.

One story is played once, in `reported`; the tests below judge what was seen meanwhile. Three members are rolled from
the classic protocol to the consumer protocol and back, static members of both protocols are bounced, offsets are
committed without members and in transactions, a group is deleted, and the log gets a record of an unknown type.
"""

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from lab.monitor_process import READY_SECONDS, MonitorProcess, parse_metrics, until
from streaming.demo.embedded_broker import EmbeddedBroker
from streaming.demo.verifiable_consumer import Protocol, VerifiableConsumer, create_topics
from streaming.metrics.catalogue import CATALOGUE
from tests.group_tool import GroupTool
from tests.in_process_members import InProcessMember
from tests.integration.kafka_truth import Described, agreement
from tests.streaming.otlp.collector import Collector, plain

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.timeout(600)]

TOPICS: Final = {"orders": 6, "payments": 3, "returns": 2}
ROLLED: Final = "orders-service"
STATIC: Final = "payments-service"
STATIC_NEW: Final = "returns-service"
SIMPLE: Final = "nightly-export"
TRANSACTIONAL: Final = "billing"
DELETED: Final = "last-years-report"

STAGES: Final = (
    "before",
    "classic static member bounced",
    "static member of the new protocol away",
    "upgrading",
    "upgraded",
    "downgrading",
    "downgraded",
    "group deleted",
)

OF_SHARE_GROUPS: Final = [name for name in CATALOGUE if name.startswith(("kafka_share_", "group_monitor_share_"))]

NOT_FED: Final = {
    "kafka_group_upgrade_blockers": "no member here blocks an upgrade",
    "group_monitor_history_bytes": "no history is kept here",
    "kafka_group_silenced_total": "no expectation holds anything back here",
    "kafka_group_members_not_back": "every member of the demo's rolls comes back",
    "kafka_group_involved_members": "nothing here is wrong between members",
    "kafka_group_unknown_lag_partitions": "every partition here has a leader that answers",
    "kafka_consumergroup_group_stable_lag": "no transaction is open here: both ends are one",
    "group_monitor_unreadable_batches_total": "every batch here can be read",
    "group_monitor_newer_value_versions_total": "this broker writes no version that is not known",
    **dict.fromkeys(
        (
            "kafka_group_rebalance_rounds_lost_total",
            "kafka_group_rebalances_avoidable_total",
            "kafka_group_stale_claims_total",
            "kafka_group_static_member_replacements_total",
            "kafka_group_offset_resets_total",
            "kafka_group_offset_rewinds_total",
        ),
        "a counter begins with its first count, and nothing here is counted by it: test_exporter",
    ),
    "group_monitor_source_age_seconds": "of `serve` alone: test_sinks",
    **dict.fromkeys(OF_SHARE_GROUPS, "there is no share group here: test_share_groups"),
}


@dataclass
class Reported:
    """What was seen while the story was played."""

    stages: dict[str, tuple[Described, Described]] = field(default_factory=dict)
    phases: dict[str, str] = field(default_factory=dict)
    events: list[dict[str, Any]] = field(default_factory=list)
    answers: dict[str, tuple[int, str]] = field(default_factory=dict)
    error_lines: list[str] = field(default_factory=list)
    exported: Counter[str] = field(default_factory=Counter)
    """Ids of the events that the collector got."""
    exported_metrics: set[str] = field(default_factory=set)


class Story:
    """The cluster, its members, and the monitor that watches them."""

    def __init__(self, stack: ExitStack, directory: Path) -> None:
        self.reported = Reported()
        self._stack = stack
        self._directory = directory
        self._broker = stack.enter_context(EmbeddedBroker(directory / "broker", offsets_partitions=4))
        self._servers = self._broker.bootstrap_servers
        create_topics(self._servers, TOPICS)
        self._collector = stack.enter_context(Collector())
        otlp = f"otlp: {{endpoint: '{self._collector.url}', interval_ms: 5000}}\n"
        self._monitor = stack.enter_context(
            MonitorProcess(directory / "monitor", self._servers, state=directory / "state", settings=otlp)
        )
        self._tool = stack.enter_context(GroupTool(self._servers, log=directory / "tool.log"))
        self._producer = Producer({"bootstrap.servers": self._servers, "log_level": 2})
        self._members: dict[str, VerifiableConsumer] = {}
        self._started = 0

    def tell(self) -> Reported:
        """From the first member to the last look."""
        self._assemble()
        self._bounce_static_members()
        self._roll("consumer", "upgrading", "upgraded")
        self._roll("classic", "downgrading", "downgraded")
        self._delete_a_group()
        self._write_what_nobody_knows()
        self._look_around()
        return self.reported

    def _assemble(self) -> None:
        for number in range(3):
            self._join(f"{ROLLED}-{number}", "classic")
        for number in range(2):
            self._join_static(number)
        self._returns = self._static_consumer()
        for group in (SIMPLE, DELETED):
            simple = Consumer({"bootstrap.servers": self._servers, "group.id": group})
            simple.commit(offsets=[TopicPartition("payments", 0, 3), TopicPartition("payments", 2, 0)])
            simple.commit(offsets=[TopicPartition("payments", 1, 4)], asynchronous=False)
            simple.close()
        self._transaction("committed", 2).commit_transaction()
        self._transaction("aborted", 3).abort_transaction()
        for member in self._members.values():
            member.await_assigned()
        self._monitor.await_ready(READY_SECONDS)
        self._stage("before")

    def _bounce_static_members(self) -> None:
        self._members[f"{STATIC}-0"].stop()
        self._join_static(0)
        self._members[f"{STATIC}-0"].await_assigned()
        self._stage("classic static member bounced")
        self._returns.close()
        self._stage("static member of the new protocol away")
        self._returns = self._static_consumer()

    def _roll(self, protocol: Protocol, mixed: str, whole: str) -> None:
        for number, stage in enumerate((mixed, None, whole)):
            name = f"{ROLLED}-{number}"
            self._members[name].stop()
            self._join(name, protocol)
            self._members[name].await_assigned()
            if stage is not None:
                self._stage(stage)

    def _delete_a_group(self) -> None:
        self._tool.delete(DELETED)
        self._stage("group deleted")

    def _write_what_nobody_knows(self) -> None:
        """A record of a type that no release has, and an offset commit whose key is cut off."""
        # Brokers let no one write to their internal topics but a client of this name.
        writer = Producer({"bootstrap.servers": self._servers, "client.id": "__admin_client"})
        writer.produce("__consumer_offsets", key=b"\x03\xe7\x00\x06future", value=b"\x00\x00", partition=0)
        writer.produce("__consumer_offsets", key=b"\x00\x01\x00\x09cut", value=b"\x00\x00", partition=1)
        assert 0 == writer.flush(30)
        until(lambda: self._samples("group_monitor_undecodable_records_total"), 90, "the cut record is not counted")

    def _look_around(self) -> None:
        self.reported.events = self._monitor.events(limit="10000")
        addresses = ("/", "/metrics", "/healthz", "/ready", "/api/v1/groups", "/api/v1/groups/no-such-group")
        self.reported.answers = {address: self._monitor.get(address) for address in addresses}
        self.reported.answers["deleted"] = self._monitor.get(f"/api/v1/groups/{DELETED}")
        self.reported.error_lines = self._monitor.error_lines()
        until(lambda: len(self._exported()) >= len(self.reported.events), 90, "not all events were exported")
        self.reported.exported = Counter(self._exported())
        self.reported.exported_metrics = {metric.name for metric, _ in self._collector.points}

    def _exported(self) -> list[str]:
        return [plain(record.attributes)["id"] for record in self._collector.records]

    def _stage(self, name: str) -> None:
        """Let everybody commit something new, then see whether both say the same."""
        for topic, partitions in TOPICS.items():
            for number in range(partitions * 4):
                self._producer.produce(topic, f"{name} {number}", partition=number % partitions)
        assert 0 == self._producer.flush(30)
        self.reported.stages[name] = agreement(self._tool, self._monitor, holds=_at_rest)
        groups = self._monitor.groups()
        self.reported.phases[name] = groups[ROLLED]["migration"]["phase"] if ROLLED in groups else "none"

    def _samples(self, name: str) -> bool:
        return any(self._monitor.samples().get(name, {}).values())

    def _join(self, name: str, protocol: Protocol) -> None:
        self._members[name] = self._stack.enter_context(
            VerifiableConsumer(
                self._servers,
                group=ROLLED,
                topic="orders",
                name=name,
                directory=self._own_directory(),
                protocol=protocol,
                assignor="cooperative-sticky",
            )
        )

    def _join_static(self, number: int) -> None:
        name = f"{STATIC}-{number}"
        self._members[name] = self._stack.enter_context(
            VerifiableConsumer(
                self._servers,
                group=STATIC,
                topic="payments",
                name=name,
                directory=self._own_directory(),
                instance_id=f"{STATIC}-instance-{number}",
                session_timeout_ms=60_000,
            )
        )

    def _own_directory(self) -> Path:
        """A new member takes the name of the one it replaces, but not its log."""
        self._started += 1
        return self._directory / f"member-{self._started}"

    def _static_consumer(self) -> InProcessMember:
        return self._stack.enter_context(
            InProcessMember(self._servers, STATIC_NEW, "returns", instance_id="returns-instance")
        )

    def _transaction(self, name: str, offset: int) -> Producer:
        """A transaction that has committed an offset and is still open."""
        producer = Producer({"bootstrap.servers": self._servers, "transactional.id": name, "log_level": 0})
        producer.init_transactions(30)
        producer.begin_transaction()
        owner = Consumer({"bootstrap.servers": self._servers, "group.id": TRANSACTIONAL})
        producer.send_offsets_to_transaction([TopicPartition("orders", 0, offset)], owner.consumer_group_metadata(), 30)
        owner.close()
        return producer


@pytest.fixture(scope="module")
def reported(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reported]:
    with ExitStack() as stack:
        yield Story(stack, tmp_path_factory.mktemp("story")).tell()


@pytest.mark.parametrize("stage", STAGES)
def test_every_group_is_what_kafka_s_tool_says(reported: Reported, stage: str) -> None:
    """State, epochs, members, current and target assignments, committed offsets and lag are those of the tool."""
    expected, found = reported.stages[stage]

    assert expected == found


def test_stages_are_what_their_names_say(reported: Reported) -> None:
    """What was compared is what was meant, as the tool saw it: who spoke what, who was away, who was gone."""
    seen = {name: truth for name, (truth, _) in reported.stages.items()}
    speaking = {
        name: Counter(member["protocol"] for member in truth[ROLLED]["members"].values())
        for name, truth in seen.items()
    }

    assert {"classic": 3} == speaking["before"] == speaking["downgraded"]
    assert {"classic": 2, "consumer": 1} == speaking["upgrading"]
    assert {"consumer": 3} == speaking["upgraded"]
    assert {"classic": 1, "consumer": 2} == speaking["downgrading"]
    assert seen["before"][STATIC]["members"].keys() != seen["classic static member bounced"][STATIC]["members"].keys()
    assert [-2] == [
        member["epoch"] for member in seen["static member of the new protocol away"][STATIC_NEW]["members"].values()
    ]
    assert {ROLLED, STATIC, STATIC_NEW, SIMPLE, TRANSACTIONAL, DELETED} == seen["downgraded"].keys()
    assert {DELETED} == seen["downgraded"].keys() - seen["group deleted"].keys()


def test_migration_phases_follow_the_roll(reported: Reported) -> None:
    """At each stage the rolled group is in the phase that an operator would call it."""
    expected = {
        "before": "classic",
        "upgrading": "upgrading",
        "upgraded": "upgraded",
        "downgrading": "downgrading",
        "downgraded": "downgraded",
    }

    assert expected == {stage: reported.phases[stage] for stage in expected}


def test_migration_is_reported_once(reported: Reported) -> None:
    """There and back are two beginnings and two ends, of the rolled group and of no other."""
    kinds = ("upgrade_started", "upgrade_completed", "downgrade_started", "downgrade_completed")

    assert {(ROLLED, kind): 1 for kind in kinds} == Counter(
        (event["group"], event["kind"]) for event in reported.events if "grade_" in event["kind"]
    )


def test_only_what_is_wrong_is_a_warning(reported: Reported) -> None:
    """A downgrade, a static member that is away, and an unknown record: nothing else was out of order."""
    assert {
        (ROLLED, "downgrade_started"): 1,
        (STATIC_NEW, "static_member_absent"): 1,
        ("future", "unknown_record"): 1,
    } == Counter((event["group"], event["kind"]) for event in reported.events if _is_amiss(event))


def test_each_event_is_reported_once(reported: Reported) -> None:
    """No id comes twice, and a group is created and deleted once."""
    assert 1 == max(Counter(event["id"] for event in reported.events).values())
    assert 1 == max(Counter(e["group"] for e in reported.events if e["kind"] == "group_created").values())
    assert [DELETED] == [event["group"] for event in reported.events if event["kind"] == "group_deleted"]


@pytest.mark.parametrize("name", [name for name in CATALOGUE if name not in NOT_FED])
def test_metric_has_samples(reported: Reported, name: str) -> None:
    """What stands in the catalogue is on the page, with the labels it says and the cluster's name."""
    metric = CATALOGUE[name]
    samples = parse_metrics(reported.answers["/metrics"][1]).get(
        f"{name}_count" if metric.kind == "histogram" else name
    )

    assert samples
    for labels in samples:
        assert {"cluster", *metric.labels} == dict(labels).keys()
        assert "tested" == dict(labels)["cluster"]


def test_a_collector_gets_events_and_metrics(reported: Reported) -> None:
    """Each event of the API once, and metrics of groups, of their lag and of the monitor, by the page's names."""
    assert Counter(str(event["id"]) for event in reported.events) == reported.exported
    assert {
        "kafka_group_epoch",
        "kafka_consumergroup_group_sum_lag",
        "group_monitor_ready",
    } <= reported.exported_metrics
    assert reported.exported_metrics <= CATALOGUE.keys()


def test_metrics_of_the_rolled_group(reported: Reported) -> None:
    """What was done is counted: two conversions, three classic members, nothing left to read; groups are the API's."""
    samples = parse_metrics(reported.answers["/metrics"][1])

    def of(name: str, **labels: str) -> float:
        return samples[name][tuple(sorted({"cluster": "tested", "group": ROLLED, **labels}.items()))]

    assert (1, 1) == tuple(of("kafka_group_conversions_total", direction=way) for way in ("upgrade", "downgrade"))
    assert (3, 0) == tuple(of("kafka_group_members", protocol=which) for which in ("classic", "consumer"))
    assert 0 == of("kafka_consumergroup_group_sum_lag", cluster_name="tested")
    assert 1 == of("kafka_group_migration_phase", phase="downgraded")
    assert {dict(labels)["group"] for labels in samples["kafka_group_info"]} == {
        group["group"] for group in json.loads(reported.answers["/api/v1/groups"][1])["groups"]
    }


def test_records_that_cannot_be_read_are_counted(reported: Reported) -> None:
    """A record of type 999 and a cut one of type 1 are counted as such, and the log says where the cut one is."""
    samples = parse_metrics(reported.answers["/metrics"][1])
    counts = [
        {dict(labels)["record_type"]: count for labels, count in samples[f"group_monitor_{kind}_records_total"].items()}
        for kind in ("unknown", "undecodable")
    ]

    assert [{"999": 1}, {"1": 1}] == counts
    assert 1 == len([line for line in reported.error_lines if "undecodable_record" in line and "partition=1" in line])


@pytest.mark.parametrize("address", ["/", "/metrics", "/healthz", "/ready", "/api/v1/groups"])
def test_address_answers(reported: Reported, address: str) -> None:
    """Page, metrics, health and API are there, with something in them."""
    status, body = reported.answers[address]

    assert 200 == status
    assert body


@pytest.mark.parametrize("address", ["/api/v1/groups/no-such-group", "deleted"])
def test_unknown_group_is_not_found(reported: Reported, address: str) -> None:
    """A group that never was, and one that is gone, are 404 with a reason in JSON."""
    status, body = reported.answers[address]

    assert 404 == status
    assert "accepted: a group of this cluster" in json.loads(body)["error"]


def test_monitor_is_quiet(reported: Reported) -> None:
    """But for the record that does not decode there was nothing to say on standard error."""
    assert [] == [line for line in reported.error_lines if "undecodable_record" not in line]


def _is_amiss(event: dict[str, Any]) -> bool:
    """How many rounds classic members need who all start at once is up to the machine they run on."""
    return bool(event["severity"] != "info" and event["kind"] != "rebalance_rounds_lost")


def _at_rest(truth: Described) -> bool:
    """No rebalance is under way, and all that was written is read, but for who is away or only committed."""
    return all(
        group["state"] in ("Stable", "Empty")
        and (name not in (ROLLED, STATIC) or all(lag == 0 for _, _, lag in group["offsets"].values()))
        for name, group in truth.items()
    )
