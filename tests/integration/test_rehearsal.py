"""Rehearsals on a real coordinator: what it takes, what it refuses, and that the gate says the same beforehand."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest
from kafka import KafkaAdminClient
from kafka.admin import ConfigResource, ConfigResourceType

from coordinator_model.gates.upgrade import upgrade_gate
from coordinator_model.gates.verdict import NOTE, STOP, BrokerSettings, Cluster
from coordinator_model.replica import Replica
from coordinator_model.state.findings import Position
from coordinator_model.views.roll_cost import cost_view
from lab.builders import assignment, subscription
from streaming.__main__ import main
from streaming.base.errors import CannotTellError
from streaming.config.kafka_sections import KafkaSection
from streaming.demo.embedded_broker import EmbeddedBroker
from streaming.demo.verifiable_consumer import Protocol, VerifiableConsumer, create_topics
from streaming.recording.file_format import open_recording
from streaming.recording.recorder import header_of
from streaming.rehearsal.follow import Follower
from streaming.rehearsal.roll import RollEnding, RollOptions
from streaming.rehearsal.run import OFFSETS_PARTITIONS, RESTARTS, compared, rehearse_on
from streaming.rehearsal.shape import MemberShape, Shape, distinct, renamed
from tests.left_out import asked_for

pytestmark = pytest.mark.broker

ROOT: Final = Path(__file__).resolve().parents[2]
QUICK: Final = {
    "group.consumer.heartbeat.interval.ms": "500",
    "group.consumer.min.heartbeat.interval.ms": "500",
    "group.consumer.session.timeout.ms": "5000",
    "group.consumer.min.session.timeout.ms": "5000",
}
OPTIONS: Final = RollOptions(pace_seconds=0.2, patience_seconds=120)
MEMBERS: Final = {"heartbeat.interval.ms": "500"}
JVM_START_SECONDS: Final = 1.2
"""How long Kafka's own consumer takes longer to be there than librdkafka."""

LONG: Final = "REHEARSAL_SHAPES"
"""Environment variable: `all` rehearses all shapes, else those that the rest of the tests has time for."""


def shape(
    name: str,
    members: int,
    *,
    assignor: str | None = "range",
    static: bool = False,
    topics: Mapping[str, int] | None = None,
    user_data: bytes | None = None,
    logged: bool = False,
    protocol_type: str = "consumer",
    kind: str = "classic",
    expression: bool = False,
) -> Shape:
    """A group whose members all subscribe to all topics, by an expression if one is asked for."""
    topics = {f"{name}-{topic}": count for topic, count in (topics or {"t": 6}).items()}
    every = [(topic, number) for topic, count in topics.items() for number in range(count)]
    found = []
    for number in range(members):
        held: dict[str, list[int]] = {}
        for topic, partition in every[number::members]:
            held.setdefault(topic, []).append(partition)
        found.append(
            MemberShape(
                name=f"{name}-{number}",
                topics=(f"^{name}-.*",) if expression else tuple(topics),
                instance_id=f"{name}-i{number}" if static else None,
                session_timeout_ms=6_000,
                rebalance_timeout_ms=10_000,
                subscription=subscription(topics, user_data=b"weight=3") if logged else None,
                assignment=assignment(held, user_data=user_data) if logged else None,
            )
        )
    return Shape(
        group=name,
        type=kind,
        protocol_type=protocol_type,
        assignor=assignor,
        topics=topics,
        members=tuple(found),
    )


def of_librdkafka(group: Shape, *numbers: int, leader: int = 0) -> Shape:
    """The group with members of these numbers that are librdkafka's, and this one that led it."""
    members = [
        replace(member, librdkafka=number in numbers, leads=number == leader)
        for number, member in enumerate(group.members)
    ]
    return replace(group, members=tuple(members))


def of_one_client_id(group: Shape) -> Shape:
    """The group with one client id for all of its members, as a rehearsal that keeps names sets it up."""
    return distinct(replace(group, members=tuple(replace(member, name="app") for member in group.members)))


SHORT_MATRIX: Final = (
    (shape("static", 3, static=True), False),
    (shape("custom-with-user-data", 3, assignor="ours", logged=True, user_data=b"plan-7"), True),
    (of_one_client_id(shape("custom-without-user-data", 2, assignor="ours", logged=True)), False),
    (shape("workers", 2, assignor="sessioned", protocol_type="connect", topics={"t": 1}), True),
    (shape("expression", 2, topics={"t": 4, "u": 2}, expression=True), False),
    (of_librdkafka(shape("librdkafka", 2, assignor="cooperative-sticky"), 0, 1), True),
)
"""Shape → whether the coordinator refuses it."""

LONG_MATRIX: Final = (
    (shape("one-member", 1), False),
    (shape("five-members", 5), False),
    (shape("cooperative", 2, assignor="cooperative-sticky", topics={"t": 4, "u": 2}), False),
    (shape("two", 2), False),
    (shape("cooperative-of-three", 3, assignor="cooperative-sticky"), False),
    (shape("range-of-three", 3), False),
    (shape("roundrobin", 3, assignor="roundrobin"), False),
    (shape("sticky", 3, assignor="sticky", logged=True), False),
    (of_librdkafka(shape("librdkafka-alone", 1, assignor="cooperative-sticky"), 0), False),
    (of_librdkafka(shape("librdkafka-after-java", 3, assignor="cooperative-sticky"), 0, 1, leader=2), False),
    (of_librdkafka(shape("librdkafka-leads-java", 2, assignor="cooperative-sticky"), 1, leader=1), True),
    (shape("static-cooperative", 3, assignor="cooperative-sticky", static=True), False),
    (shape("one-static", 1, static=True), False),
    (shape("one-static-with-user-data", 1, static=True, assignor="ours", logged=True, user_data=b"x"), True),
    (shape("static-with-user-data", 2, static=True, assignor="ours", logged=True, user_data=b"x"), True),
    (shape("more-members-than-partitions", 4, topics={"t": 2}), False),
    (shape("many-topics", 2, topics={f"t{number}": 1 for number in range(12)}), False),
    (shape("many-partitions", 3, topics={"t": 60}), False),
    (shape("ten-members", 10, topics={"t": 20}), False),
    (shape("fifty-members", 50, topics={"t": 100}), False),
)


def matrix() -> list[Any]:
    chosen = (*SHORT_MATRIX, *(LONG_MATRIX if os.environ.get(LONG) == "all" else ()))
    return [pytest.param(found, refused, id=found.group) for found, refused in chosen]


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedBroker]:
    directory = tmp_path_factory.mktemp("broker")
    with EmbeddedBroker(directory, offsets_partitions=OFFSETS_PARTITIONS, properties=QUICK) as running:
        yield running


def gate_of(recording: Path, group: str, until_ms: int) -> set[str]:
    """Codes of the gate's reasons to stop, of the group as it was before the roll."""
    replica = Replica()
    with open_recording(recording) as records:
        for record in records:
            if record.timestamp_ms < until_ms:
                place = Position(record.partition, record.offset, record.timestamp_ms)
                replica.replay(place, record.key, record.value)
    replica.settle()
    settings = BrokerSettings(migration_policy="bidirectional", consumer_max_size=1_000, consumer_protocol=True)
    answer = upgrade_gate([replica.groups[group]], Cluster(settings=settings), [group])
    return {reason["code"] for reason in answer["reasons"] if reason["effect"] == STOP} - {NOTE}


@pytest.mark.parametrize(("group", "refused"), matrix())
def test_gate_and_coordinator_agree(broker: EmbeddedBroker, group: Shape, refused: bool, tmp_path: Path) -> None:
    """What the coordinator refuses the gate has stopped, with a reason; what it takes passed the gate."""
    log = tmp_path / "log.ndjson"

    report = rehearse_on(
        broker.bootstrap_servers, tmp_path, group, "upgrade", OPTIONS, member_settings=MEMBERS, record=log
    )

    begun_ms = report["steps"][0]["time"]
    assert refused == report["refused"], report["reasons"]
    assert refused == bool(report["reasons"])
    assert refused == bool(gate_of(log, group.group, begun_ms))
    assert refused or len(group.members) == len(report["steps"])
    assert [] == report["verdicts"]
    is_static = any(member.instance_id is not None for member in group.members)
    assert (is_static and not refused) == (report["killed"] is not None)


SESSION_MS: Final = 60_000
"""Longer than anything takes here, on the busiest machine."""


def test_killed_static_members_of_the_consumer_protocol_are_refused(broker: EmbeddedBroker, tmp_path: Path) -> None:
    """While the session of the first process lasts, in the coordinator's words; the roll itself went through."""
    group = shape("static-kill", 1, static=True)
    admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers)
    setting = {"consumer.session.timeout.ms": str(SESSION_MS)}
    admin.alter_configs([ConfigResource(ConfigResourceType.GROUP, group.group, setting)], raise_on_unknown=False)
    admin.close()

    report = rehearse_on(broker.bootstrap_servers, tmp_path, group, "upgrade", OPTIONS, member_settings=MEMBERS)

    killed = report["killed"]
    assert (False, "static-kill-0", False) == (report["refused"], killed["member"], killed["let_in"])
    assert "static-kill-i0" in killed["said"], killed
    assert [] == report["verdicts"]


def test_killed_static_members_of_the_classic_protocol_are_let_in_again(broker: EmbeddedBroker, tmp_path: Path) -> None:
    """At once: the second process takes the instance id from the first. None of it is in the roll's figures."""
    back = shape("static-back", 1, kind="consumer", assignor=None, static=True)
    group = replace(back, members=tuple(replace(of, session_timeout_ms=SESSION_MS) for of in back.members))

    report = rehearse_on(broker.bootstrap_servers, tmp_path, group, "downgrade", OPTIONS, member_settings=MEMBERS)

    killed = report["killed"]
    assert (False, True, None) == (report["refused"], killed["let_in"], killed["said"])
    assert killed["seconds"] * 1000 < SESSION_MS
    assert 1 == len(report["steps"])
    assert [] == report["verdicts"]


@asked_for(LONG)
def test_leader_of_java_that_goes_first_makes_way_for_librdkafka(broker: EmbeddedBroker, tmp_path: Path) -> None:
    """The gate had noted whom not to upgrade first; upgraded last, it goes through (`librdkafka-after-java`)."""
    group = of_librdkafka(shape("java-first", 3, assignor="cooperative-sticky"), 1, 2)

    report = rehearse_on(broker.bootstrap_servers, tmp_path, group, "upgrade", OPTIONS, member_settings=MEMBERS)

    assert report["refused"], report["steps"]


def test_cooperative_members_that_come_back_late_are_no_custom_assignor(broker: EmbeddedBroker, tmp_path: Path) -> None:
    """The round between puts nothing into the assignments that a coordinator would refuse."""
    group = shape("late", 2, assignor="cooperative-sticky")

    slow = replace(OPTIONS, restart_seconds=2.0)
    report = rehearse_on(broker.bootstrap_servers, tmp_path, group, "upgrade", slow, member_settings=MEMBERS)

    assert (False, []) == (report["refused"], report["reasons"])
    assert [] == report["verdicts"]


def test_a_downgrade_is_rolled_with_killed_members(broker: EmbeddedBroker, tmp_path: Path) -> None:
    """A killed member is an owner until its session expires, and the group is classic at the end."""
    group = shape("back", 1, kind="consumer", assignor=None)
    killed = replace(OPTIONS, ending=RollEnding.KILLED)

    report = rehearse_on(broker.bootstrap_servers, tmp_path, group, "downgrade", killed)

    assert (False, "classic", "killed") == (report["refused"], report["to"], report["options"]["ending"])
    assert {"downgrade": 1} == report["conversions"]
    assert report["rebalances"] >= 1
    assert report["partitions_moved"] >= 6
    assert min(step["settled_seconds"] for step in report["steps"]) > 4, "a session of five seconds has to expire"


def test_a_member_that_cannot_run_ends_the_rehearsal_at_once(broker: EmbeddedBroker, tmp_path: Path) -> None:
    """A setting that the client does not have is named; nothing waits for the group."""
    begun = time.monotonic()

    with pytest.raises(CannotTellError, match=r'member-1 cannot take part: .*"no\.such\.setting"'):
        rehearse_on(
            broker.bootstrap_servers,
            tmp_path,
            renamed(shape("misconfigured", 1)),
            "upgrade",
            OPTIONS,
            member_settings={"no.such.setting": "1"},
        )

    assert time.monotonic() - begun < OPTIONS.patience_seconds


@asked_for(LONG)
def test_a_restart_is_compared_between_protocols(broker: EmbeddedBroker, tmp_path: Path) -> None:
    """Eager members let go of all partitions in every round, the others of those that move."""
    said: list[str] = []

    eager, cooperative, consumer = compared(
        broker.bootstrap_servers, tmp_path, shape("compared", 2), OPTIONS, say=said.append
    )

    assert [name for name, _, _ in RESTARTS] == [each["members"] for each in (eager, cooperative, consumer)]
    assert min(each["rebalances"] for each in (eager, cooperative, consumer)) >= 2
    assert len(eager["ownerless_seconds"]["partitions"]) == 6
    assert min(each["partitions_moved"] for each in (eager, cooperative, consumer)) >= 6
    assert 3 == len(said)


def test_the_same_shape_costs_what_its_recording_is_measured_to_cost(
    broker: EmbeddedBroker, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`report` measures the log of a rehearsal as the rehearsal did."""
    group = shape("measured", 3, assignor="cooperative-sticky")
    log, kept = tmp_path / "log.ndjson.gz", tmp_path / "kept.json"
    rehearsed = rehearse_on(
        broker.bootstrap_servers, tmp_path, group, "upgrade", OPTIONS, member_settings=MEMBERS, record=log
    )
    kept.write_text(json.dumps(rehearsed), "utf-8")

    status = main(
        [
            "report",
            "measured",
            "--since",
            str(rehearsed["since"]),
            "--from",
            str(log),
            "--rehearsal",
            str(kept),
            "--json",
        ]
    )
    rolled = json.loads(capsys.readouterr().out)

    assert 0 == status
    # A report says besides whether the end of the span cut a time short; a rehearsal ends with all of it over.
    without = rolled["ownerless_seconds"]
    assert (False, []) == (without.pop("at_least"), without.pop("without_owner"))
    for figure in ("rebalances", "partitions_moved", "ownerless_seconds", "causes", "verdicts"):
        assert rehearsed[figure] == rolled[figure], figure


@asked_for(LONG)
def test_a_roll_of_kafka_s_own_members_costs_what_rehearsals_said(broker: EmbeddedBroker, tmp_path: Path) -> None:
    """Rebalances and moved partitions as in five rehearsals; time without an owner within theirs, half as much over."""
    create_topics(broker.bootstrap_servers, {"real": 6})
    group = shape("real", 3)
    header = header_of(KafkaSection(bootstrap_servers=broker.bootstrap_servers))

    def member(number: int, protocol: Protocol) -> VerifiableConsumer:
        name = f"real-{number}-{protocol}"
        servers = broker.bootstrap_servers
        return VerifiableConsumer(servers, group="real", topic="real", name=name, directory=tmp_path, protocol=protocol)

    with Follower(broker.bootstrap_servers, "real", header.topics, OFFSETS_PARTITIONS) as follower:
        members = [member(number, "classic") for number in range(3)]
        for each in members:
            each.await_assigned()
        time.sleep(4)
        follower.begin()
        for number in range(3):
            members[number].stop()
            members[number] = member(number, "consumer")
            members[number].await_assigned()
            time.sleep(OPTIONS.pace_seconds + 3)
        real = cost_view(follower.cost())
        for each in members:
            each.stop()
    options = replace(OPTIONS, pace_seconds=2.0, restart_seconds=JVM_START_SECONDS)
    rehearsals = []
    for number in range(5):
        copy = replace(group, group=f"copy-{number}")
        rehearsals.append(
            rehearse_on(
                broker.bootstrap_servers, tmp_path, copy, "upgrade", options,
                member_settings=MEMBERS,
            )
        )  # fmt: skip

    for figure in ("rebalances", "partitions_moved"):
        found = [each[figure] for each in rehearsals]
        assert min(found) <= real[figure] <= max(found), figure
    for figure in ("max", "total"):
        found = [each["ownerless_seconds"][figure] for each in rehearsals]
        assert min(found) / 1.5 <= real["ownerless_seconds"][figure] <= max(found) * 1.5, figure


def test_an_interrupted_rehearsal_leaves_no_process(tmp_path: Path) -> None:
    """Ctrl-C ends broker and members, and nothing of them stays behind."""
    recording = ROOT / "tests" / "recordings" / "4.3.1" / "conversions.ndjson.gz"
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    command = [
        "-P",
        "-m",
        "streaming",
        "rehearse",
        "upgrade",
        "--group",
        "upgraded-from-range",
        "--from",
        str(recording),
    ]
    process = subprocess.Popen(  # noqa: S603 - our own program
        [sys.executable, *command],
        env={**os.environ, "TMPDIR": str(scratch), "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stderr is not None
    first = process.stderr.readline()
    deadline = time.monotonic() + 60
    while not list(scratch.glob("*/members.log")) and time.monotonic() < deadline:
        time.sleep(0.1)

    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)

    assert "rehearsing the upgrade of upgraded-from-range" in first
    assert 130 == process.returncode
    assert [] == list(scratch.iterdir())
    assert [] == [pid for pid in Path("/proc").glob("[0-9]*") if str(scratch) in _command_of(pid)]


def _command_of(process: Path) -> str:
    try:
        return (process / "cmdline").read_text("utf-8", "replace")
    except OSError:
        return ""
