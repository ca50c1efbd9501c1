"""A real log, the real exporter, a real Prometheus: every signal has an answer, so no panel is empty by mistake."""

import re
import time
from collections.abc import Iterator
from typing import Final

import pytest

from dashboards import build
from dashboards.board import panels
from dashboards.signals import SIGNALS
from tests.dashboards.prometheus_tools import answer, needs_prometheus
from tests.dashboards.recorded import CLUSTER, scraped_recording

JUST_NOW: Final = "2s"
"""For what is compared with a time ago: Prometheus has scraped for as long."""

# Signal → why a healthy monitor of the recorded log has no answer to it.
SILENT: Final[dict[str, str]] = {
    "downgrading": "no group is on its way back at the end of the recording",
    "firing_alerts": "no rules are loaded",
    "held_growing": "no rules are loaded",
    "held_stopped": "no rules are loaded",
    "unknown_lag_partitions": "the end of every partition of the recording is known",
    "monitor_gone": "the monitor is there",
    "polled": "the monitor reads the log",
    "rounds_lost": "a counter begins with its first count, and no round was lost",
    "stable_lag": "no transaction is open in the topics of the recording",
    "stale_claims": "a counter begins with its first count, and none was made",
    "static_member_returns": "a counter begins with its first count, and a classic group does not show who was away",
    "unreadable_batches": "a counter begins with its first count, and every batch was read",
    "upgrade_blockers": "no group of the recording is one that a broker refuses",
    "contended_members": "no two processes take an instance id from each other there",
    "slow_pollers": "no process exceeds its poll interval there",
    "open_storm": "no rules are loaded",
    "restarting_members": "none restarts in a loop there",
    "unsettled_seconds": "all groups came to rest long ago",
    "unsettled_epochs": "likewise",
    "members_not_back": "every roll brought its members back",
    "fewer_expected": "nothing is expected of the recorded groups",
    "silenced": "nothing is expected of the recorded groups",
    "sharing_expected": "nothing is expected of the recorded groups",
    "rewinds_expected": "nothing is expected of the recorded groups",
    "restarts_expected": "nothing is expected of the recorded groups",
    "unclean_upgrades": "what real brokers recorded is clean",
    **dict.fromkeys(
        (
            *("share_start_offset", "share_redelivered", "share_max_deliveries", "share_partition_stalled"),
            *("share_group_redelivered", "share_group_stalled", "share_archived", "share_orphans"),
            *("share_stalls", "share_given_up"),
        ),
        "the recording has no share coordinator's log",
    ),
}


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A Prometheus that has scraped the monitor a few times."""
    with scraped_recording(tmp_path_factory.mktemp("prometheus")) as address:
        yield address


@needs_prometheus
@pytest.mark.parametrize("name", SIGNALS)
def test_signal_has_an_answer(name: str, prometheus: str) -> None:
    """What a signal asks of the recorded log is answered, with the labels it names and no others."""
    signal = SIGNALS[name]
    window = "1m" if "[WINDOW" in signal.expr else JUST_NOW
    asked = signal.promql(window=window if signal.windowed else None)
    found = answer(prometheus, asked)
    # A subquery has its steps at round times, of which the few seconds that were scraped may have none yet.
    deadline = time.monotonic() + 30 * (":15s]" in signal.expr)
    while not found and time.monotonic() < deadline:
        time.sleep(0.5)
        found = answer(prometheus, asked)

    assert (name in SILENT) == (not found), SILENT.get(name)
    for series in found:
        assert series["metric"].keys() <= set(signal.labels)
        assert CLUSTER == series["metric"].get("cluster")


@needs_prometheus
@pytest.mark.parametrize("board", [name for name in build.boards() if name != "runbook.json"])
def test_panels_name_labels_there_are(board: str, prometheus: str) -> None:
    """A legend is made of labels of the answer, none of which is misspelt or lost in a sum.

    And a table places or leaves out each label of the answer: one it does not know stands as a column in front.
    """
    asked = 0
    for panel in panels(build.boards()[board]):
        labels: set[str] = set()
        for target in panel["targets"]:
            # A label that is empty in one series, as the assignor of the broker's choice, is one of the others.
            found = {label for each in answer(prometheus, _of_any_group(target["expr"])) for label in each["metric"]}
            asked += bool(found)
            labels |= found
            named = set(re.findall(r"\{\{(\w+)\}\}", target.get("legendFormat", "")))
            assert not found or named <= found, panel["title"]
        if labels and panel["type"] == "table":
            (organized,) = (each["options"] for each in panel["transformations"] if each["id"] == "organize")
            known = {*organized["indexByName"], *organized["excludeByName"]}
            assert labels <= known, panel["title"]
    assert asked


def _of_any_group(expr: str) -> str:
    for word, value in (
        ("$__rate_interval", JUST_NOW),
        ("$__interval", JUST_NOW),
        ("$__range", JUST_NOW),
        ("${cluster:regex}", ".*"),
        ("${groups:regex}", ".*"),
        ("${topic:regex}", ".*"),
        ("=`${group:raw}`", "=~`.*`"),
    ):
        expr = expr.replace(word, value)
    return expr
