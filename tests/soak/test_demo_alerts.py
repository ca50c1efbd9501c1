"""The samples of half an hour of the healthy demo, through the rules as they are now: no alert but those expected."""

from pathlib import Path
from typing import Final

import pytest
import yaml

from dashboards.alert import Alert
from dashboards.alerts import ALERTS
from dashboards.signals import SIGNALS
from tests.dashboards.prometheus_tools import needs_promtool, promtool
from tests.soak.demo_alerts import EXPECTED, SAMPLES, encoded, replayed

# Metric → why a healthy demo has no series of it.
NO_SINK: Final = "the demo passes nothing on"
UNDERSTOOD: Final = "every record of the demo's broker is understood"
NOT_THERE: Final[dict[str, str]] = {
    "group_monitor_newer_value_versions_total": UNDERSTOOD,
    "group_monitor_sink_dropped_total": NO_SINK,
    "group_monitor_sink_waiting_seconds": NO_SINK,
    "group_monitor_source_age_seconds": "the monitor itself is scraped, not one that serves from topics",
    "group_monitor_undecodable_records_total": UNDERSTOOD,
    "group_monitor_unknown_records_total": UNDERSTOOD,
    "kafka_group_members_not_back": "every member of the demo's rolls comes back",
    "kafka_consumergroup_group_offset": "series of each partition are off, as by default",
    "kafka_group_involved_members": "no member is one to look at",
    "kafka_group_rebalance_rounds_lost_total": "no round was lost, and a counter begins with its first count",
    "kafka_group_silenced_total": "nothing is expected of the demo's groups",
    "kafka_group_stale_claims_total": "none was made, and a counter begins with its first count",
    "ALERTS": "a series of Prometheus's own while an alert fires, and none does",
    "kafka_group_unknown_lag_partitions": "a group has it while the lag of a partition is not known",
    "group_monitor_offsets_partitions_without_leader": "the samples are older than it",
    "group_monitor_offsets_partitions_not_loaded": "the samples are older than it",
    "group_monitor_offsets_partitions_unreadable": "the samples are older than it",
    "group_monitor_unreadable_batches_total": UNDERSTOOD,
    "kafka_share_group_stalled_seconds": "the demo has no share group",
    "kafka_share_records_archived_total": "the demo has no share group",
}


@needs_promtool
def test_half_an_hour_of_the_demo_fires_what_is_expected(tmp_path: Path) -> None:
    """Prometheus evaluates the generated rules on what it scraped then."""
    (tmp_path / "test.yaml").write_text(yaml.safe_dump(replayed(SAMPLES.read_text("utf-8"))), encoding="utf-8")

    assert "" == promtool("test", "rules", "test.yaml", cwd=tmp_path)


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert.name)
def test_samples_hold_what_an_alert_reads(alert: Alert) -> None:
    """An alert that reads a metric without samples would be quiet whatever it says: `make soak-alerts WRITE=1`."""
    held = {line.partition("{")[0] for line in SAMPLES.read_text("utf-8").splitlines()}
    read = {metric for name in alert.signals for metric in SIGNALS[name].metrics}

    assert read <= held | NOT_THERE.keys()
    assert set() == held & NOT_THERE.keys()


def test_what_is_expected_is_an_alert() -> None:
    """A reason given for an alert that is gone goes too."""
    assert {name for name, _ in EXPECTED} <= {alert.name for alert in ALERTS}


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["0", "0", "0"], "0x2"),
        (["1", "2", "2"], "1 2x1"),
        ([None, None, "1"], "_x2 1"),
        (["1", None, None, "3"], "1 stale _x1 3"),
        (["1", None], "1 stale"),
    ],
)
def test_equal_values_are_written_once(values: list[str | None], expected: str) -> None:
    """In promtool's notation, in which a series that is not scraped any more has to be said to be stale."""
    assert expected == encoded(values)
