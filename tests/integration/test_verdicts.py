"""What real members do to real groups, from the coordinator's log to the person who is woken, or is not.

One broker, one monitor and one Prometheus for all: a member that flaps, two processes of one instance id, an upgrade
in which an upgraded member crashes while a classic one restarts, an assignor that shares partitions where that is
expected, and a classic rebalance that hangs. How long an alert waits is left out (`tests/dashboards/alerts`), and ten
minutes without rest are one.

Two owners of a partition are followed all the way, with nothing that stands in between: Prometheus judges by the
committed rules, a real Alertmanager notifies a webhook, and one of the two is stopped, as the runbook says. Only the
clocks of Prometheus and Alertmanager are set to be quick.
"""

import json
import re
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest
from confluent_kafka import Producer
from playwright.sync_api import expect, sync_playwright

from dashboards.alert import rule
from dashboards.alerts import ALERTS
from dashboards.build import RULES, files
from dashboards.settings import DEFAULTS
from lab.monitor_process import MonitorProcess, until
from streaming.demo.embedded_broker import EmbeddedBroker
from streaming.demo.verifiable_consumer import VerifiableConsumer, create_topics
from tests.dashboards.prometheus_tools import (
    answer,
    needs_alertmanager,
    needs_prometheus,
    running_alertmanager,
    running_prometheus,
)
from tests.dashboards.webhook import Webhook, running_webhook
from tests.in_process_members import DoublingMember, InProcessMember
from tests.integration.raw_member import RawMember
from tests.left_out import needs
from tests.page.browser import CHROMIUM, Watched

pytestmark = [
    pytest.mark.broker,
    pytest.mark.spark,
    pytest.mark.timeout(600),
    needs_prometheus,
    needs_alertmanager,
]

TOPIC: Final = "orders"
HUNG: Final = "returns"
"""A topic of the group alone whose rebalance hangs."""
UNSETTLED_SECONDS: Final = 60
SETTINGS: Final = f"""
alarms:
  unsettled_after_ms: {UNSETTLED_SECONDS}000
  expectations:
    shared*: {{shares_partitions: true, reason: every instance reads everything}}
"""
SESSIONS: Final = {
    "group.consumer.min.session.timeout.ms": "6000",
    "group.consumer.session.timeout.ms": "6000",
    "group.consumer.min.heartbeat.interval.ms": "1000",
    "group.consumer.heartbeat.interval.ms": "1000",
}
SHOWN_SECONDS: Final = 300.0
PAGE_MS: Final = 90_000

DOUBLED: Final = "orders-service"
SOUND: Final = "audit-trail"
ALERT: Final = "KafkaGroupDuplicateOwner"
GRAFANA: Final = "https://grafana.example/graphs"
PARTITIONS: Final = 4
AFTERWARDS_SCRAPES: Final = 5
"""So many more scrapes, a second each, nothing further may arrive."""


@dataclass
class Woken:
    """What arrived at the webhook until all was over, and what Prometheus had been asked meanwhile."""

    notifications: list[dict[str, Any]]
    alerts: list[tuple[str, str, str]]
    owned_twice: float
    reported_of_sound_group: list[Any]


class Stage:
    """What plays, and what is asked."""

    def __init__(
        self, servers: str, directory: Path, monitor: MonitorProcess, prometheus: str, webhook: Webhook
    ) -> None:
        self.servers, self.directory, self.monitor = servers, directory, monitor
        self.prometheus, self.webhook = prometheus, webhook
        self.of_upgrade: list[str] = []
        self.stuck: list[float] = []
        """Values of the gauge of the rebalance that hung: while it did, and once it was over."""
        self.woken: Woken | None = None
        self.pages: dict[str, str] = {}

    def member(self, group: str, protocol: Any = "consumer", **named: str) -> InProcessMember:
        return InProcessMember(self.servers, group, TOPIC, protocol=protocol, **named)

    def group(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = self.monitor.json(f"/api/v1/groups/{name}")
        return found

    def kinds(self, name: str) -> list[str]:
        """Of the events beyond information."""
        return [event["kind"] for event in self.monitor.events(group=name) if event["severity"] != "info"]

    def look(self, group: str, *, warnings: bool = True) -> None:
        """Keep what the page of a group warns of now: who is woken looks there, while it lasts."""
        if CHROMIUM is None:
            return
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
            tab = Watched(browser, f"{self.monitor.url}/group/{group}")
            expect(tab.page.locator(".tile", has_text="Migration")).to_be_visible(timeout=PAGE_MS)
            if warnings:
                expect(tab.page.locator("#warnings li").first).to_be_visible(timeout=PAGE_MS)
            self.pages[group] = "\n".join([*tab.page.locator("#warnings li").all_inner_texts(), *tab.problems])
            browser.close()

    def alerts(self) -> object:
        """What is known of alerts, for a message."""
        return answer(self.prometheus, "ALERTS"), answer(self.prometheus, "kafka_group_duplicate_partitions")

    def fires(self, alert: str, group: str) -> bool:
        """Whether the committed condition holds of the group, but for how long it has to."""
        (of,) = (of for of in ALERTS if of.name == alert)
        expr = re.sub(r"> 600\b", f"> {UNSETTLED_SECONDS}", str(rule(of, DEFAULTS)["expr"]))
        return any(series["metric"].get("group") == group for series in answer(self.prometheus, expr))


def flap(stage: Stage) -> None:
    """One member stays, another joins and leaves again and again."""
    with stage.member("flapping"):

        def fires_after_another_flap() -> bool:
            flapping = stage.member("flapping", client_id="flapper")
            time.sleep(0.5)
            flapping.close()
            return stage.fires("KafkaGroupUnsettled", "flapping")

        until(fires_after_another_flap, SHOWN_SECONDS, lambda: f"no alert: {stage.group('flapping')}")
        stage.look("flapping")


def fight(stage: Stage) -> None:
    """Two processes on the classic protocol take one instance id from each other, in a mixed group."""
    with stage.member("contended"), ExitStack() as processes:
        # A classic group that is Stable keeps the first one's client id.
        until(lambda: stage.group("contended").get("type") == "consumer", 90, "no consumer group")
        for client_id in ("pod-a", "pod-b", "pod-a", "pod-b"):
            process = stage.member("contended", "classic", instance_id="payments-0", client_id=client_id)
            processes.callback(process.close)
            until(lambda now=client_id: holds(stage, "contended", now), 90, f"{client_id} is no member")  # type: ignore[misc]  # mypy has no type for a lambda with a default
        until(lambda: stage.fires("KafkaGroupStaticMemberContended", "contended"), 90, "no alert")
        stage.look("contended")


def holds(stage: Stage, group: str, client_id: str) -> bool:
    found = stage.group(group).get("members", [])
    return any(of["client_id"] == client_id and of["instance_id"] for of in found)


def upgrade(stage: Stage) -> None:
    """Two of four members are upgraded; one of these crashes while a classic one restarts, and comes back."""
    with ExitStack() as members:

        def there(count: int, upgraded: int) -> None:
            def shown() -> bool:
                migration = stage.group("rolled").get("migration", {})
                return (count, upgraded) == (migration.get("members"), migration.get("upgraded_members"))

            until(shown, 90, lambda: f"not {upgraded} of {count}: {stage.group('rolled').get('migration')}")

        classic = [stage.member("rolled", "classic", client_id=f"pod-{number}") for number in range(4)]
        for member in classic:
            members.callback(member.close)
        there(4, 0)
        classic[0].close()
        members.enter_context(stage.member("rolled", client_id="pod-0"))
        there(4, 1)
        classic[1].close()
        crashing = members.enter_context(
            VerifiableConsumer(
                stage.servers,
                group="rolled",
                topic=TOPIC,
                name="pod-1",
                directory=stage.directory,
                protocol="consumer",
            )
        )
        there(4, 2)
        crashing.kill()
        classic[2].close()
        members.enter_context(stage.member("rolled", "classic", client_id="pod-2"))
        there(3, 1)
        members.enter_context(stage.member("rolled", client_id="pod-1"))
        there(4, 2)
        assert "upgrading" == stage.group("rolled")["migration"]["phase"]
        assert not stage.fires("KafkaGroupUnexpectedDowngrade", "rolled")
        stage.look("rolled", warnings=False)
        stage.of_upgrade = stage.kinds("rolled")  # then all leave, the upgraded ones first


def share(stage: Stage) -> None:
    """Each of two members is given all partitions."""
    with (
        DoublingMember(stage.servers, "shared", TOPIC, "first"),
        DoublingMember(stage.servers, "shared", TOPIC, "second"),
    ):

        def held_back() -> bool:
            silenced = stage.monitor.samples().get("kafka_group_silenced_total", {})
            return any(("group", "shared") in labels and of > 0 for labels, of in silenced.items())

        until(held_back, SHOWN_SECONDS, "nothing is held back")

        def shown() -> bool:
            twice = answer(stage.prometheus, 'kafka_group_duplicate_partitions{group="shared"}')
            return ["4"] == [series["value"][1] for series in twice]

        until(shown, SHOWN_SECONDS, "the duplicates are not shown")
        assert not stage.fires("KafkaGroupDuplicateOwner", "shared")
        stage.look("shared")


def hang(stage: Stage) -> None:
    """A leader of the classic protocol joins again and gives no assignment, and at last does."""

    def gauge() -> float | None:
        series = stage.monitor.samples().get("kafka_group_rebalance_stuck", {})
        return next((value for labels, value in series.items() if ("group", "hanging") in labels), None)

    with RawMember(stage.servers, "hanging", HUNG) as member:
        member.join(rebalance_timeout_ms=1_000)
        member.sync(0)
        member.commit(0, 1)
        producer = Producer({"bootstrap.servers": stage.servers, "log_level": 2})
        for _ in range(5):
            producer.produce(HUNG, b"x", partition=0)
        assert 0 == producer.flush(30)
        longer_ms = round(2_000 * SHOWN_SECONDS)
        member.join(rebalance_timeout_ms=longer_ms, session_timeout_ms=longer_ms)
        until(lambda: "rebalance_stuck" in stage.kinds("hanging"), SHOWN_SECONDS, "it is not reported")
        stage.stuck.append(gauge() or 0.0)
        member.sync(0)
        until(lambda: gauge() == 0, SHOWN_SECONDS, "the gauge stays after the rebalance is completed")
        stage.stuck.append(gauge() or 0.0)


def wake(stage: Stage) -> None:
    """Two members own the same partitions until somebody is woken and stops one; another group reads them, too."""
    webhook = stage.webhook
    with stage.member(SOUND), DoublingMember(stage.servers, DOUBLED, TOPIC, "first"):
        second = DoublingMember(stage.servers, DOUBLED, TOPIC, "second")
        with second:
            until(lambda: bool(webhook.alerts), SHOWN_SECONDS, lambda: f"no notification: {stage.alerts()}")
            stage.look(DOUBLED)
            found = answer(stage.prometheus, f'kafka_group_duplicate_partitions{{group="{DOUBLED}"}}')
        until(lambda: len(webhook.alerts) > 1, SHOWN_SECONDS, lambda: f"not over: {stage.alerts()}")
        of_doubled = f"ALERTS{{alertname='{ALERT}',group='{DOUBLED}'}}[{AFTERWARDS_SCRAPES}s]"
        until(lambda: not answer(stage.prometheus, f"count_over_time({of_doubled})"), SHOWN_SECONDS, "still an alert")
        stage.woken = Woken(
            notifications=webhook.notifications,
            alerts=webhook.alerts,
            owned_twice=float(found[0]["value"][1]),
            reported_of_sound_group=answer(stage.prometheus, f'ALERTS{{group="{SOUND}"}}'),
        )


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    directory = tmp_path_factory.mktemp("verdicts")
    with ExitStack() as stack:
        broker = stack.enter_context(EmbeddedBroker(directory / "broker", offsets_partitions=4, properties=SESSIONS))
        create_topics(broker.bootstrap_servers, {TOPIC: PARTITIONS, HUNG: 1})
        monitor = stack.enter_context(
            MonitorProcess(
                directory / "monitor", broker.bootstrap_servers, state=directory / "state", settings=SETTINGS
            )
        )
        monitor.await_ready()
        webhook = stack.enter_context(running_webhook())
        alertmanager = stack.enter_context(running_alertmanager(directory, notifying(webhook.url)))
        prometheus = stack.enter_context(running_prometheus(directory, scraping(directory, monitor.url, alertmanager)))
        made = Stage(broker.bootstrap_servers, directory, monitor, prometheus, webhook)
        scripts: tuple[Callable[[Stage], None], ...] = (flap, fight, upgrade, share, hang, wake)
        with ThreadPoolExecutor() as pool:
            for played in [pool.submit(script, made) for script in scripts]:
                played.result()
        yield made


def test_member_that_flaps_is_reported_and_would_wake(stage: Stage) -> None:
    """Epochs go by and the group never rests; who comes and goes is named."""
    (event,) = (of for of in stage.monitor.events(group="flapping") if of["kind"] == "group_unsettled")

    assert "flapper" == event["detail"]["come_and_go"][0]["client_id"]


def test_two_processes_of_one_instance_id_are_reported_and_would_wake(stage: Stage) -> None:
    """Each client id has it again after the other had it; once was a warning."""
    doubted, event = (of for of in stage.monitor.events(group="contended") if of["kind"] == "static_member_contended")

    assert ("warning", "critical") == (doubted["severity"], event["severity"])
    assert ("payments-0", ["pod-a", "pod-b"]) == (event["detail"]["instance_id"], event["detail"]["client_ids"])


def test_upgrade_with_a_crash_and_a_restart_is_no_downgrade(stage: Stage) -> None:
    """Nor anything else that would wake; the crash itself has no record but the member's end."""
    assert [] == stage.of_upgrade


def test_partitions_that_are_shared_by_design_are_counted_and_wake_no_one(stage: Stage) -> None:
    """The duplicates are shown, and the alarm is not raised."""
    assert "duplicate_assignment" not in stage.kinds("shared")


def test_a_rebalance_that_hangs_is_told_while_it_lasts(stage: Stage) -> None:
    """Suspected by its silence, confirmed by its coordinator, with the clock as it is: one event, and a gauge."""
    (event,) = (of for of in stage.monitor.events(group="hanging") if of["kind"] == "rebalance_stuck")

    assert "CompletingRebalance" == event["detail"]["state"]
    assert [1.0, 0.0] == stage.stuck


@needs("chromium")
@pytest.mark.parametrize(
    ("group", "warnings"),
    [
        ("flapping", "does not settle · .+"),
        ("contended", ".*contended.*"),
        ("rolled", ""),
        ("shared", r"4 partitions owned twice \(expected: every instance reads everything\)"),
        (DOUBLED, "Owned twice: orders/0 by first · .{6} and second · .{6}; orders/1 by .+"),
    ],
)
def test_who_looks_at_the_page_is_warned_of_that_and_no_more(stage: Stage, group: str, warnings: str) -> None:
    """A line for each warning, and whatever went wrong in the browser."""
    assert re.fullmatch(warnings, stage.pages[group]), stage.pages[group]


@pytest.fixture
def woken(stage: Stage) -> Woken:
    assert stage.woken is not None
    return stage.woken


def test_the_alert_arrives_once_and_resolves_once(woken: Woken) -> None:
    """One notification that it fires, one that it is over, and none of anything else."""
    assert [("firing", ALERT, DOUBLED), ("resolved", ALERT, DOUBLED)] == woken.alerts


def test_the_notification_says_what_is_wrong(woken: Woken) -> None:
    """Who is woken reads how severe it is, which group and members it is about, where to look and read on."""
    (alert,) = woken.notifications[0]["alerts"]
    notes = alert["annotations"]

    assert PARTITIONS == woken.owned_twice
    assert ("critical", "tested") == (alert["labels"]["severity"], alert["labels"]["cluster"])
    assert f"Group {DOUBLED} of cluster tested: 4 partitions have two owners at once" in notes["summary"]
    assert re.search(r" Members: first-\S+ on /127\.0\.0\.1, second-\S+ on /127\.0\.0\.1$", notes["summary"])
    assert "Board Group, panel Ownership" == notes["first_look"]
    assert f"{GRAFANA}/d/group-monitor-group?var-cluster=tested&var-group={DOUBLED}" == notes["dashboard_url"]
    assert f"{GRAFANA}/d/group-monitor-runbook" == notes["runbook_url"]


def test_a_sound_group_on_the_same_topic_stays_quiet(woken: Woken) -> None:
    """Another group that reads the same partitions is no one's duplicate."""
    assert [] == woken.reported_of_sound_group


def scraping(directory: Path, monitor: str, alertmanager: str) -> str:
    """Prometheus's configuration: the committed rules with links to a Grafana, judged every second."""
    rules = directory / RULES
    rules.write_text(files(DEFAULTS.with_value("grafana_url", GRAFANA))[RULES], encoding="utf-8")
    return json.dumps(
        {
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
            "rule_files": [str(rules)],
            "alerting": {"alertmanagers": [{"static_configs": [{"targets": [alertmanager.removeprefix("http://")]}]}]},
            "scrape_configs": [
                {"job_name": "group-monitor", "static_configs": [{"targets": [monitor.removeprefix("http://")]}]}
            ],
        }
    )


def notifying(url: str) -> str:
    """Alertmanager's configuration: of two groups each alert is notified on its own, without waiting for others."""
    return json.dumps(
        {
            "route": {
                "receiver": "unread",
                "group_by": ["alertname", "cluster", "group"],
                "group_wait": "1s",
                "group_interval": "1s",
                "repeat_interval": "4h",
                "routes": [{"receiver": "webhook", "matchers": [f'group=~"{DOUBLED}|{SOUND}"']}],
            },
            "receivers": [
                {"name": "unread"},
                {"name": "webhook", "webhook_configs": [{"url": url, "send_resolved": True}]},
            ],
        }
    )
