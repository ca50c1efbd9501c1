"""Groups where the log may not be read: a real broker with an authorizer, and a monitor that may describe some of them.

One story: three groups of members and one that only commits are polled; one group may not be described, another reads a
topic that may not be; then a commit, a group's end, an outage and its end.
"""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any, Final

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from lab.monitor_process import until
from streaming.config.loading import load
from streaming.demo.verifiable_consumer import create_topics
from streaming.kafka import permissions
from streaming.kafka.permissions import LIST_GROUPS, POLL_GROUPS, POLL_TOPICS, READ_LOG
from streaming.kafka.preflight import Finding, broker_findings, instead
from streaming.metrics.catalogue import LOG_ONLY
from streaming.polling.client import REFUSALS
from streaming.polling.missing import GROUP_REFUSED, TOPIC_REFUSED
from tests.in_process_members import InProcessMember
from tests.integration.guarded_broker import SECURITY, Started, allow, guarded_broker
from tests.integration.streams_member import SUBTOPOLOGY, StreamsMember

pytestmark = [pytest.mark.broker, pytest.mark.timeout(200)]

WRITTEN: Final = 10
SHOWN: Final = ("app", "exporter", "new", "old")
"""Groups that may be described, and read what may be."""


@dataclass(frozen=True)
class Seen:
    """What was seen in the story."""

    check: dict[str, Finding]
    polled_check: dict[str, Finding]
    lags: tuple[int, int]
    groups: dict[str, dict[str, Any]]
    ready: dict[str, Any]
    samples: dict[str, dict[tuple[tuple[str, str], ...], float]]
    gates: dict[str, dict[str, Any]]
    without: list[str]
    away: dict[str, Any]
    away_groups: list[str]
    back: dict[str, Any]
    state: list[str]
    error_lines: list[str]


@pytest.fixture(scope="module", name="seen")
def seen_by_the_monitor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Seen]:
    directory = tmp_path_factory.mktemp("polled")
    with ExitStack() as stack:
        broker, guarded = guarded_broker(directory / "broker")
        stack.enter_context(broker)
        servers = broker.bootstrap_servers
        create_topics(servers, {"orders": 2, "secrets": 1})
        write(servers)
        named = [replace(POLL_GROUPS, name=name) for name in (*SHOWN, "spy", "tail")]
        allow(servers, [*named, LIST_GROUPS, replace(POLL_TOPICS, name="orders")])
        commit(servers, "exporter", 3)
        commit(servers, "hidden", 3)
        stack.enter_context(InProcessMember(servers, "old", "orders", protocol="classic"))
        streams = [stack.enter_context(StreamsMember(servers, *of)) for of in (("app", "orders"), ("tail", "secrets"))]
        for name, topic in (("new", "orders"), ("spy", "secrets")):
            stack.enter_context(InProcessMember(servers, name, topic))
        config = directory / "monitor.yaml"
        config.write_text(
            f"cluster: {{name: tested}}\nkafka:\n  bootstrap_servers: '{guarded}'\n{SECURITY}"
            f"source: {{kind: admin, poll_interval_ms: 500}}\n"
            f"state: {{dir: '{directory / 'state'}'}}\nhttp: {{port: 0}}\n"
        )
        kafka = load(config, {"MONITOR_PASSWORD": "secret"}).kafka
        check, polled_check = ({of.name: of for of in broker_findings(kafka, polled=each)} for each in (False, True))
        monitor = stack.enter_context(Started(directory / "monitor", config))
        monitor.await_ready()
        until(lambda: settled(monitor), 90, lambda: f"{monitor.groups()} {monitor.get('/ready')}")
        groups, ready, samples = monitor.groups(), monitor.json("/ready"), monitor.samples()
        gates = {name: monitor.json(f"/api/v1/gate/{name}") for name in ("upgrade", "downgrade")}
        before = lag_of(monitor, "exporter")
        commit(servers, "exporter", 8)
        until(lambda: lag_of(monitor, "exporter") == WRITTEN - 8, 90, lambda: f"{monitor.groups()}")
        after = lag_of(monitor, "exporter")
        admin = AdminClient({"bootstrap.servers": servers, "log_level": 2})
        (gone,) = admin.delete_consumer_groups(["exporter"]).values()
        gone.result(10)
        until(lambda: "exporter" not in monitor.groups(), 90, lambda: f"{monitor.groups()}")
        without = sorted(monitor.groups())
        for member in streams:
            member.close()
        broker.stop()
        until(lambda: monitor.json("/ready")["source"]["stale_since"] is not None, 90, lambda: monitor.get("/ready")[1])
        away, away_groups = monitor.json("/ready"), sorted(monitor.groups())
        broker.start()
        until(lambda: monitor.json("/ready")["source"]["stale_since"] is None, 90, lambda: monitor.get("/ready")[1])
        yield Seen(
            check=check,
            polled_check=polled_check,
            lags=(before or 0, after or 0),
            groups=groups,
            ready=ready,
            samples=samples,
            gates=gates,
            without=without,
            away=away,
            away_groups=away_groups,
            back=monitor.json("/ready"),
            state=sorted(path.name for path in (directory / "state").iterdir()),
            error_lines=monitor.error_lines(),
        )


def test_check_names_what_is_missing_and_what_there_is_instead(seen: Seen) -> None:
    """READ on the log is denied: the finding says with what groups can be seen all the same."""
    (found,) = instead(seen.check.values())

    assert ("source", "note") == (found.name, found.status)
    assert "source.kind" in found.detail
    assert "fail" == seen.check["offsets topic"].status
    assert "cannot tell" == seen.check[READ_LOG.check].status


def test_check_of_polled_groups_asks_for_other_permissions(seen: Seen) -> None:
    """It passes with what there is, notes what is not to be seen, and asks nothing about the log."""
    statuses = {name: of.status for name, of in seen.polled_check.items()}

    assert {"broker": "ok", LIST_GROUPS.check: "ok"}.items() <= statuses.items()
    assert {"note"} == {statuses[of.check] for of in (POLL_GROUPS, POLL_TOPICS, permissions.READ_BROKER_CONFIGS)}
    assert statuses.keys() == {"broker", *(of.check for of in permissions.ADMIN_PERMISSIONS)}


def test_groups_have_members_assignments_and_lag(seen: Seen) -> None:
    """Of each protocol, and of one that only commits; a classic generation is not known."""
    kinds = {name: (of["type"], of["state"], of["simple"]) for name, of in seen.groups.items()}
    whole = {"orders": [0, 1]}

    assert ("classic", "Empty", True) == kinds.pop("exporter")
    members = dict.fromkeys(("app", "new", "old"), ("Stable", False))
    assert {"app": "streams", "new": "consumer", "old": "classic"} == {name: kind for name, (kind, *_) in kinds.items()}
    assert members == {name: (state, simple) for name, (_, state, simple) in kinds.items()}
    assert [whole] * 3 == [seen.groups[name]["members"][0]["assigned"] for name in members]
    assert [0, 0] == [seen.groups[name]["lag"] for name in ("old", "new")]
    assert None is seen.groups["old"]["epoch"]
    assert seen.groups["new"]["epoch"] == seen.groups["new"]["assignment_epoch"] > 0


def test_a_streams_group_has_its_tasks_and_topology(seen: Seen) -> None:
    """As its coordinator describes it; which topology was found valid is in the log alone."""
    group = seen.groups["app"]

    assert (
        {SUBTOPOLOGY: [0, 1]} == group["members"][0]["tasks"]["active"] == group["members"][0]["target_tasks"]["active"]
    )
    assert (0, None) == (group["topology"]["epoch"], group["topology"]["validated_epoch"])
    assert ["orders"] == group["topology"]["subtopologies"][SUBTOPOLOGY]["source_topics"]


def test_lag_follows_what_is_committed(seen: Seen) -> None:
    """Exactly, as far as a poll is of now."""
    assert (WRITTEN - 3, WRITTEN - 8) == seen.lags


def test_groups_that_may_not_be_described_are_counted_and_named(seen: Seen) -> None:
    """One for its own sake, a consumer and a streams group for their topic's."""
    source = seen.ready["source"]

    assert ("admin", 3, True) == (source["kind"], source["groups_not_described"], source["lists_all_groups"])
    hidden = {"hidden": GROUP_REFUSED, "spy": TOPIC_REFUSED, "tail": TOPIC_REFUSED}
    assert [(name, REFUSALS[of]) for name, of in hidden.items()] == [
        (of["group"], of["reason"]) for of in source["not_described"]
    ]
    assert {3} == set(seen.samples["group_monitor_groups_not_described"].values())


def test_metrics_of_the_log_are_absent(seen: Seen) -> None:
    """None is 0: what a poll cannot know has no series; and it is said that groups are polled."""
    names = {name.removesuffix("_bucket").removesuffix("_count").removesuffix("_sum") for name in seen.samples}

    assert set() == names & LOG_ONLY
    assert {"kafka_group_members", "kafka_consumergroup_group_sum_lag", "kafka_group_unassigned_partitions"} <= names
    assert [(("cluster", "tested"), ("kind", "admin"))] == [*seen.samples["group_monitor_source_info"]]
    assert set() == set(seen.samples).intersection(["kafka_group_duplicate_partitions"])


def test_gates_say_that_groups_are_polled(seen: Seen) -> None:
    """A note before consumers are rolled; the log decides about brokers, so that is not known.

    What brokers allow may not be read here, so an upgrade is not said to be allowed.
    """
    effects = {
        name: [of["effect"] for of in gate["reasons"] if of["code"] == "polled"] for name, gate in seen.gates.items()
    }

    assert {"upgrade": ["note"], "downgrade": ["unknown"]} == effects
    assert "cannot_tell" == seen.gates["upgrade"]["verdict"]
    assert "broker_configuration" in [of["code"] for of in seen.gates["upgrade"]["reasons"]]


def test_a_deleted_group_goes(seen: Seen) -> None:
    """With the poll that does not list it."""
    assert ["app", "new", "old"] == seen.without


def test_an_outage_leaves_what_was_marked_stale(seen: Seen) -> None:
    """Since the last answer, with the reason; with the brokers' return it is over."""
    source = seen.away["source"]

    assert ["app", "new", "old"] == seen.away_groups
    assert (source["polled"], True) == (source["stale_since"], bool(source["failure"]))
    assert seen.back["source"]["polled"] > source["polled"]
    assert None is seen.back["source"]["failure"]


def test_there_is_no_spark(seen: Seen) -> None:
    """No checkpoint and no JVM's log: only what every monitor keeps."""
    assert [] == [name for name in seen.state if "checkpoint" in name or "spark" in name]
    assert [] == [line for line in seen.error_lines if "Traceback" in line]


def write(servers: str) -> None:
    """Ten records in the first partition of orders."""
    producer = Producer({"bootstrap.servers": servers, "log_level": 2})
    for number in range(WRITTEN):
        producer.produce("orders", str(number), partition=0)
    assert 0 == producer.flush(30)


def commit(servers: str, group: str, offset: int) -> None:
    """As a consumer that is no member."""
    consumer = Consumer({"bootstrap.servers": servers, "group.id": group, "log_level": 2})
    consumer.commit(offsets=[TopicPartition("orders", 0, offset)], asynchronous=False)
    consumer.close()


def lag_of(monitor: Started, group: str) -> int | None:
    lag: int | None = monitor.groups().get(group, {}).get("lag")
    return lag


def settled(monitor: Started) -> bool:
    """Whether all that is to be seen is: members with partitions, commits, and three groups left out."""
    groups = monitor.groups()
    return (
        set(SHOWN) == groups.keys()
        and all(groups[name]["state"] == "Stable" and groups[name]["lag"] == 0 for name in ("old", "new"))
        and groups["app"]["state"] == "Stable"
        and groups["exporter"]["lag"] is not None
        and monitor.json("/ready")["source"]["groups_not_described"] == len(("hidden", "spy", "tail"))
    )
