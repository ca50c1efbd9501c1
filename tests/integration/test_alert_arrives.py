"""From two owners of a partition to the person who is woken: nothing in between is a stand-in.

Real members of a real broker own the same partitions; the job reads it off the coordinator's log; a real Prometheus
scrapes it and judges by the committed rules; a real Alertmanager notifies a webhook. Then one of the two is stopped, as
the runbook says. Only the clocks of Prometheus and Alertmanager are set to be quick; the rules are as committed.
"""

import json
import re
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from dashboards.build import RULES, files
from streaming.demo.embedded_broker import EmbeddedBroker
from streaming.demo.verifiable_consumer import create_topics
from tests.dashboards.prometheus_tools import (
    answer,
    needs_alertmanager,
    needs_prometheus,
    running_alertmanager,
    running_prometheus,
)
from tests.dashboards.webhook import running_webhook
from tests.integration.doubling_member import DoublingMember
from tests.integration.in_process_member import InProcessMember
from tests.integration.monitor_process import MonitorProcess, until

pytestmark = [
    pytest.mark.broker,
    pytest.mark.spark,
    pytest.mark.timeout(600),
    needs_prometheus,
    needs_alertmanager,
]

GROUP: Final = "orders-service"
SOUND: Final = "audit-trail"
ALERT: Final = "KafkaGroupDuplicateOwner"
GRAFANA: Final = "https://grafana.example/graphs"
TOPICS: Final = {"orders": 4}

FIRES_SECONDS: Final = 150.0
"""The rule waits for a minute, and the machine may be slow."""

RESOLVED_SECONDS: Final = 60.0
AFTERWARDS_SCRAPES: Final = 5
"""So many more scrapes, a second each, nothing further may arrive."""


@dataclass
class Woken:
    """What arrived at the webhook until all was over, and what Prometheus had been asked meanwhile."""

    notifications: list[dict[str, Any]]
    alerts: list[tuple[str, str, str]]
    owned_twice: float
    reported_of_sound_group: list[Any]


@pytest.fixture(scope="module")
def woken(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Woken]:
    directory = tmp_path_factory.mktemp("alert")
    with ExitStack() as stack:
        broker = stack.enter_context(EmbeddedBroker(directory / "broker", offsets_partitions=4))
        create_topics(broker.bootstrap_servers, TOPICS)
        monitor = stack.enter_context(
            MonitorProcess(directory / "monitor", broker.bootstrap_servers, state=directory / "state")
        )
        stack.enter_context(InProcessMember(broker.bootstrap_servers, SOUND, "orders"))
        stack.enter_context(DoublingMember(broker.bootstrap_servers, GROUP, "orders", "first"))
        webhook = stack.enter_context(running_webhook())
        alertmanager = stack.enter_context(running_alertmanager(directory, notifying(webhook.url)))
        monitor.await_ready()
        prometheus = stack.enter_context(running_prometheus(directory, scraping(directory, monitor.url, alertmanager)))
        second = stack.enter_context(DoublingMember(broker.bootstrap_servers, GROUP, "orders", "second"))
        until(lambda: bool(webhook.alerts), FIRES_SECONDS, lambda: f"no notification: {state_of(prometheus, monitor)}")
        found = answer(prometheus, f'kafka_group_duplicate_partitions{{group="{GROUP}"}}')
        second.close()
        until(lambda: len(webhook.alerts) > 1, RESOLVED_SECONDS, lambda: f"not over: {state_of(prometheus, monitor)}")
        over = f"count_over_time(ALERTS{{alertname='{ALERT}'}}[{AFTERWARDS_SCRAPES}s])"
        until(lambda: not answer(prometheus, over), RESOLVED_SECONDS, "the alert is still there")
        yield Woken(
            notifications=webhook.notifications,
            alerts=webhook.alerts,
            owned_twice=float(found[0]["value"][1]),
            reported_of_sound_group=answer(prometheus, f'ALERTS{{group="{SOUND}"}}'),
        )


def test_the_alert_arrives_once_and_resolves_once(woken: Woken) -> None:
    """One notification that it fires, one that it is over, and none of anything else."""
    assert [("firing", ALERT, GROUP), ("resolved", ALERT, GROUP)] == woken.alerts


def test_the_notification_says_what_is_wrong(woken: Woken) -> None:
    """Who is woken reads how severe it is, which group and members it is about, where to look and read on."""
    (alert,) = woken.notifications[0]["alerts"]

    assert TOPICS["orders"] == woken.owned_twice
    assert ("critical", "tested") == (alert["labels"]["severity"], alert["labels"]["cluster"])
    assert f"Group {GROUP} of cluster tested: 4 partitions have two owners at once" in alert["annotations"]["summary"]
    assert re.search(
        r" Members: first-\S+ on /127\.0\.0\.1, second-\S+ on /127\.0\.0\.1$", alert["annotations"]["summary"]
    )
    assert "Board Group, panel Ownership" == alert["annotations"]["first_look"]
    assert (
        f"{GRAFANA}/d/group-monitor-group?var-cluster=tested&var-group={GROUP}" == alert["annotations"]["dashboard_url"]
    )
    assert f"{GRAFANA}/d/group-monitor-runbook" == alert["annotations"]["runbook_url"]


def test_a_sound_group_on_the_same_topic_stays_quiet(woken: Woken) -> None:
    """Another group that reads the same partitions is no one's duplicate."""
    assert [] == woken.reported_of_sound_group


def scraping(directory: Path, monitor: str, alertmanager: str) -> str:
    """Prometheus's configuration: the committed rules with links to a Grafana, judged every second."""
    rules = directory / RULES
    rules.write_text(files(grafana_url=GRAFANA)[RULES], encoding="utf-8")
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
    """Alertmanager's configuration: a notification a group and alert, without waiting for others to join it."""
    return json.dumps(
        {
            "route": {
                "receiver": "webhook",
                "group_by": ["alertname", "cluster", "group"],
                "group_wait": "1s",
                "group_interval": "1s",
                "repeat_interval": "4h",
            },
            "receivers": [{"name": "webhook", "webhook_configs": [{"url": url, "send_resolved": True}]}],
        }
    )


def state_of(prometheus: str, monitor: MonitorProcess) -> object:
    """What is known of the group, for a message."""
    return answer(prometheus, "ALERTS"), answer(prometheus, "kafka_group_duplicate_partitions"), monitor.error_lines()
