"""On a healthy cluster no alert fires, whatever the series are that it has: all of them, and all at zero."""

from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from dashboards.alerts import ALERTS
from dashboards.build import GENERATED, RULES
from streaming.metrics.catalogue import CATALOGUE, Metric
from tests.dashboards.prometheus_tools import needs_promtool, promtool

MINUTES: Final = 400
"""Longer than any alert waits and looks back."""

HEALTHY: Final = {"group_monitor_ready": 1}
"""Metrics whose value is not zero while all is well."""


def series(metric: Metric) -> list[dict[str, str]]:
    """One series of a metric, three of a histogram, of one healthy cluster."""
    labels = {"cluster": "east", **dict.fromkeys(metric.labels, "a")}
    suffixes = {"histogram": ("_bucket", "_count", "_sum")}.get(metric.kind, ("",))
    made = []
    for suffix in suffixes:
        own = {**labels, **({"le": "+Inf"} if suffix == "_bucket" else {})}
        text = ", ".join(f'{name}="{value}"' for name, value in own.items())
        value = HEALTHY.get(metric.name, 0)
        made.append({"series": f"{metric.name}{suffix}{{{text}}}", "values": f"{value}x{MINUTES}"})
    return made


def silent(given: list[dict[str, str]]) -> dict[str, Any]:
    """A promtool case in which no alert may fire at any of three moments."""
    checks = [
        {"eval_time": f"{minute}m", "alertname": alert.name, "exp_alerts": []}
        for minute in (5, 60, MINUTES - 1)
        for alert in ALERTS
    ]
    return {"interval": "1m", "input_series": given, "alert_rule_test": checks}


@needs_promtool
@pytest.mark.parametrize("group_types", [(), ("classic",)], ids=["no group", "classic groups alone"])
def test_no_alert_fires_on_series_that_are_zero(group_types: tuple[str, ...], tmp_path: Path) -> None:
    """Every metric of the catalogue at zero is a healthy cluster: a zero is no finding.

    A cluster without share or streams groups has no `kafka_cluster_groups` of these types.
    """
    given = [each for metric in CATALOGUE.values() if metric.name != "kafka_cluster_groups" for each in series(metric)]
    for record_type in ("3", "10", "17"):
        left = f'kafka_cluster_leftover_records{{cluster="east", record_type="{record_type}"}}'
        given.append({"series": left, "values": f"0x{MINUTES}"})
    for type_ in group_types:
        groups = f'kafka_cluster_groups{{cluster="east", type="{type_}", state="Stable"}}'
        given.append({"series": groups, "values": f"3x{MINUTES}"})
    test = {"rule_files": [str(GENERATED / RULES)], "evaluation_interval": "1m", "tests": [silent(given)]}
    (tmp_path / "test.yaml").write_text(yaml.safe_dump(test), encoding="utf-8")

    assert "" == promtool("test", "rules", "test.yaml", cwd=tmp_path)
