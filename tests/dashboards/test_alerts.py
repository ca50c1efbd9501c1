"""Every alert in Prometheus's own hands: when it fires, a minute before, and what only looks like it."""

from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from coordinator_model.clocked import stuck, unassigned_partitions
from coordinator_model.rules import rebalance_storm, rebalances
from coordinator_model.state import events
from dashboards import thresholds as at
from dashboards.alert import PREFIX, Alert
from dashboards.alerts import ALERTS, rules
from dashboards.build import GENERATED, RULES
from dashboards.settings import DEFAULTS
from streaming.config.sections import AlarmsSection
from tests.dashboards.alert_cases import cases, fires
from tests.dashboards.prometheus_tools import needs_promtool, promtool

BY_NAME: Final = {alert.name: alert for alert in ALERTS}
GATED: Final = [alert.name for alert in ALERTS if " and on (cluster) $ready" in alert.condition]


@cache
def generated() -> dict[str, dict[str, Any]]:
    """Alert → its generated rule, in the file's order."""
    groups = yaml.safe_load((GENERATED / RULES).read_text("utf-8"))["groups"]
    return {rule["alert"]: rule for group in groups for rule in group["rules"]}


def held_against(name: str, tests: list[dict[str, Any]], directory: Path) -> str:
    """What Prometheus has against the tests of one alert.

    It is given the alert's generated rule, and those of alerts that this one asks about: each rule more is evaluated at
    every minute of every test, and all of them take ten times as long.
    """
    asked_about = {other for other in generated() if f'"{other}"' in generated()[name]["expr"]}
    rules_there = [rule for other, rule in generated().items() if other in {name, *asked_about}]
    test = {"rule_files": ["rules.yaml"], "evaluation_interval": "1m", "tests": tests}
    written = {"rules.yaml": {"groups": [{"name": "tested", "rules": rules_there}]}, "test.yaml": test}
    for file, content in written.items():
        (directory / file).write_text(yaml.safe_dump(content), encoding="utf-8")
    return promtool("test", "rules", "test.yaml", cwd=directory)


@needs_promtool
@pytest.mark.parametrize("name", BY_NAME)
def test_alert_does_what_its_file_says(name: str, tmp_path: Path) -> None:
    """Prometheus evaluates the generated rule on made-up series and comes to the alerts that are written down."""
    assert "" == held_against(name, cases(name), tmp_path)


@needs_promtool
@pytest.mark.parametrize("name", GATED)
def test_alert_about_groups_waits_for_the_monitor(name: str, tmp_path: Path) -> None:
    """What makes an alert fire leaves it quiet while the monitor is catching up: that is history."""
    catching_up = []
    for case in filter(fires, cases(name)):
        for series in case["input_series"]:
            if series["series"].startswith("group_monitor_ready"):
                series["values"] = "0x400"
        for check in case["alert_rule_test"]:
            check["exp_alerts"] = []
        catching_up.append(case)

    assert "" == held_against(name, catching_up, tmp_path)


@needs_promtool
def test_rules_are_accepted() -> None:
    """Prometheus has nothing to say against the rule file."""
    assert "" == promtool("check", "rules", str(GENERATED / RULES))


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert.name)
def test_alert_is_well_made(alert: Alert) -> None:
    """It carries the prefix, waits at least a minute, and names in its sentence what it is about."""
    assert alert.name.startswith(PREFIX)
    assert alert.wait.value >= 60
    assert alert.summary.endswith(".")
    assert "$labels.cluster" in alert.summary
    assert ("group" in result_labels(alert)) == alert.by_group


def result_labels(alert: Alert) -> set[str]:
    """Labels of what the condition's first signal gives."""
    from dashboards.signals import SIGNALS

    return set(SIGNALS[alert.signals[0]].labels)


@pytest.mark.parametrize("alert", [alert for alert in ALERTS if alert.event], ids=lambda alert: alert.name)
def test_severity_is_that_of_the_event(alert: Alert) -> None:
    """An alert and the monitor's event of the same thing are equally severe."""
    assert alert.event is not None
    assert events.SEVERITIES[alert.event] == alert.severity


def test_limits_are_those_of_the_events() -> None:
    """What the model calls a storm or a stalled migration is what the alerts call so."""
    assert rebalance_storm.STORM_REBALANCES == at.STORM_REBALANCES.value
    assert rebalance_storm.STORM_REBALANCES_A_MEMBER == at.STORM_REBALANCES_A_MEMBER.value
    assert rebalance_storm.STORM_WINDOW_MS == at.STORM_WINDOW_SECONDS.value * 1000
    assert (
        unassigned_partitions.METADATA_MAX_AGE_MS + rebalances.DEFAULT_REBALANCE_TIMEOUT_MS
        == at.HANDED_OUT_SECONDS.value * 1000
    )
    assert stuck.STALLED_MS == at.MIGRATION_STALLED_SECONDS.value * 1000
    assert AlarmsSection().unsettled_after_ms == at.UNSETTLED_SECONDS.value * 1000


def test_links_lead_where_one_says() -> None:
    """Runbook and Grafana are where `build` is given them; without a runbook, it is its board in that Grafana."""
    for alert, links in annotations("https://docs.example/runbook", "https://grafana.example/graphs/"):
        assert f"https://docs.example/runbook#{alert.name.lower()}" == links["runbook_url"]
        assert links["dashboard_url"].startswith("https://grafana.example/graphs/d/group-monitor-")
        assert ("{{ $labels.group | urlquery }}" in links["dashboard_url"]) == alert.by_group
    for _, links in annotations(None, "https://grafana.example"):
        assert "https://grafana.example/d/group-monitor-runbook" == links["runbook_url"]


def test_no_link_is_half_an_address() -> None:
    """Where no address is known there is no link: no one could complete it who reads it in a mail."""
    for _, links in annotations(None, None):
        assert {"summary", "reason", "first_look"} == links.keys()


def annotations(runbook_url: str | None, grafana_url: str | None) -> list[tuple[Alert, dict[str, str]]]:
    """Of each alert, with these addresses."""
    settings = DEFAULTS
    for name, url in (("runbook_url", runbook_url), ("grafana_url", grafana_url)):
        settings = settings if url is None else settings.with_value(name, url)
    made = rules(settings)
    return [(BY_NAME[rule["alert"]], rule["annotations"]) for group in made["groups"] for rule in group["rules"]]


@pytest.mark.parametrize(
    ("seconds", "expected"), [(60, "1m"), (90, "90s"), (600, "10m"), (5400, "90m"), (21600, "6h"), (86400, "1d")]
)
def test_durations(seconds: int, expected: str) -> None:
    """A duration is written in the largest unit it is whole in."""
    assert expected == at.duration(seconds)
