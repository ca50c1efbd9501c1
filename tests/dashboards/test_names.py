"""Nothing is half-plugged: metric, signal, panel or alert, and the runbook's heading are one chain, walked here."""

import re
from pathlib import Path
from typing import Any, Final

import pytest

from coordinator_model.groups import classic, consumer, share, streams
from coordinator_model.migration import phases
from coordinator_model.migration.leftover_records import NEW_PROTOCOL_TYPES
from coordinator_model.records import record_types
from dashboards import thresholds
from dashboards.alert import Alert
from dashboards.alerts import ALERTS
from dashboards.board import panels
from dashboards.build import boards
from dashboards.promql import Signal
from dashboards.runbook import FILE, asked_of_groups, sections
from dashboards.signals import BUILT_IN, LEFTOVER_TYPES, PHASE_CODES, SIGNALS, STATE_CODES
from streaming.metrics.catalogue import CATALOGUE
from tests.dashboards.alert_cases import TESTS, cases, fires, minutes

ROOT: Final = Path(__file__).resolve().parents[2]
WRITTEN: Final = sections(FILE.read_text("utf-8"))
BOARDS: Final[dict[str, dict[str, Any]]] = {
    board["title"].removeprefix("Kafka groups: "): board for board in boards().values()
}

# Metric → why no signal reads it. A metric that one reads after all has to go from here.
UNUSED_METRICS: Final[dict[str, str]] = {
    **dict.fromkeys(
        (
            "process_cpu_seconds_total",
            "process_resident_memory_bytes",
            "process_start_time_seconds",
            "process_open_fds",
            "process_max_fds",
        ),
        "boards of processes in general draw it, under the name that they all have",
    ),
    "group_monitor_build_info": "says which release runs: for queries across monitors, and no figure of its own",
}


def sources() -> str:
    """The sources of all boards: where panels name their signals."""
    return "".join(path.read_text("utf-8") for path in (ROOT / "dashboards").glob("*.py") if path.stem != "signals")


def test_every_metric_has_a_signal() -> None:
    """A metric no one looks at is fed for nothing; one that is left out says why."""
    read = frozenset[str]().union(*(signal.metrics for signal in SIGNALS.values()))

    assert CATALOGUE.keys() - UNUSED_METRICS.keys() == read - BUILT_IN
    assert UNUSED_METRICS.keys() <= CATALOGUE.keys()


@pytest.mark.parametrize("signal", SIGNALS.values(), ids=lambda signal: signal.name)
def test_signal_reads_what_there_is(signal: Signal) -> None:
    """Its metrics are in the catalogue, with the labels it asks for, and it explains itself in a sentence."""
    assert signal.metrics - BUILT_IN <= CATALOGUE.keys()
    assert signal.meaning.endswith(".")
    of_metrics = {label for name in signal.metrics - BUILT_IN for label in CATALOGUE[name].labels}
    made = set(re.findall(r'label_replace\(.*?, "(\w+)"', signal.expr)) | {"cluster", "alertname", "severity", "le"}
    asked = {label for labels in re.findall(r"(?:by|on) \(([\w, ]+)\)", signal.expr) for label in labels.split(", ")}
    built_in = {"group", "topic", "partition"} if signal.metrics & BUILT_IN else set()
    assert asked - made - built_in <= of_metrics
    assert set(signal.labels) <= asked | {"cluster"}


@pytest.mark.parametrize("signal", SIGNALS.values(), ids=lambda signal: signal.name)
def test_signal_is_shown_or_alerts(signal: Signal) -> None:
    """A signal stands on a board or in an alert."""
    in_alerts = {name for alert in ALERTS for name in alert.signals}
    on_boards = set(re.findall(r'signal="(\w+)"', sources()))

    assert signal.name in in_alerts | on_boards


def test_boards_name_signals_there_are() -> None:
    """What a board asks for is in the catalogue of signals."""
    assert set(re.findall(r'signal="(\w+)"', sources())) <= SIGNALS.keys()


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert.name)
def test_alert_reads_signals_only(alert: Alert) -> None:
    """No metric is named in a condition, so an alert cannot differ from its panel."""
    assert alert.signals
    assert set(alert.signals) <= SIGNALS.keys()
    assert set() == {name for name in CATALOGUE if name in alert.condition}


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert.name)
def test_first_look_is_a_panel(alert: Alert) -> None:
    """Who is woken finds the panel under the name the alert gives, showing something the alert reads."""
    board, _, title = alert.first_look.partition(": ")
    (panel,) = [panel for panel in panels(BOARDS[board]) if panel["title"] == title]
    shown = "".join(target["expr"] for target in panel["targets"])

    assert any(metric in shown for name in alert.signals for metric in SIGNALS[name].metrics)


@pytest.mark.parametrize("name", [alert.name for alert in ALERTS])
def test_alert_is_tested_from_three_sides(name: str) -> None:
    """There is a case that fires, in it a check one minute too early, and a case that only looks like it.

    A case that stays open goes on from there.
    """
    firing = [case for case in cases(name) if fires(case) and not case["name"].startswith("stays open ")]
    quiet = [case for case in cases(name) if not fires(case)]

    assert firing
    assert quiet
    for case in firing:
        early, late = case["alert_rule_test"]
        assert ([], minutes(late) - 1) == (early["exp_alerts"], minutes(early))
    assert {name} == {check["alertname"] for case in cases(name) for check in case["alert_rule_test"]}
    assert all(case["name"].split()[0] in {"fires", "stays", "leaves"} for case in cases(name))


def test_every_alert_has_a_file_and_every_file_an_alert() -> None:
    """An alert without a test does not pass, and a test of an alert that is gone goes too."""
    assert sorted(f"{alert.name}.test.yaml" for alert in ALERTS) == sorted(path.name for path in TESTS.iterdir())


def test_runbook_has_a_heading_for_each_alert() -> None:
    """One heading an alert, in the order of the rules, and none for an alert that is gone."""
    assert [alert.name for alert in ALERTS] == list(WRITTEN)


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert.name)
def test_runbook_says_what_is_needed(alert: Alert) -> None:
    """The signals of the rule, what it means, the same first look as the alert, and what helps."""
    section = WRITTEN[alert.name]

    assert ["Signals", "Meaning", "First look", "Remedy"] == re.findall(r"^\*\*([\w ]+)\.\*\*", section, re.MULTILINE)
    (signals,) = re.findall(r"^\*\*Signals\.\*\* (.*)$", section, re.MULTILINE)
    assert asked_of_groups(alert) == re.findall(r"`(\w+)`", signals)
    assert f"**First look.** {alert.first_look}" in section


def test_runbook_is_a_board() -> None:
    """Every alert has its panel in Grafana, with the words of the file."""
    shown = {panel["title"]: panel for panel in panels(BOARDS["Runbook"]) if panel["type"] == "text"}

    assert [alert.name for alert in ALERTS] == list(shown)
    for name, panel in shown.items():
        assert WRITTEN[name].split("**Remedy.**")[1] in panel["options"]["content"]


def test_runbook_leads_to_alerts_and_commands_there_are() -> None:
    """What the runbook points at exists: alerts, files, commands."""
    text = FILE.read_text("utf-8")

    assert set(re.findall(r"KafkaGroup\w+", text)) <= {alert.name for alert in ALERTS}
    assert all((ROOT / path).exists() for path in re.findall(r"`((?:dashboards|conf)/[\w./]+)`", text))


def test_every_limit_is_used() -> None:
    """A figure no one compares with says nothing."""
    limits = {name for name, value in vars(thresholds).items() if isinstance(value, thresholds.Limit)}

    assert limits == {name for name in limits if re.search(rf"\bat\.{name}\b", sources())}


def test_states_and_phases_have_a_colour_each() -> None:
    """Every state the log shows and every phase of a migration is drawn."""
    states = {
        *(classic.EMPTY, classic.STABLE, consumer.ASSIGNING, consumer.RECONCILING, consumer.EMPTY, consumer.STABLE),
        *(share.EMPTY, share.STABLE, streams.EMPTY, streams.NOT_READY, streams.ASSIGNING, streams.RECONCILING),
        streams.STABLE,
    }

    assert states == STATE_CODES.keys()
    assert set(phases.PHASES) == PHASE_CODES.keys()


def test_left_over_records_are_sorted_by_group_type() -> None:
    """Every record type of a new protocol belongs to the type of group its name says."""
    expected = {type_: record_types.RecordType(type_).name.split("_")[0].lower() for type_ in NEW_PROTOCOL_TYPES}
    found = {
        type_: [group for group, pattern in LEFTOVER_TYPES.items() if re.fullmatch(pattern, str(int(type_)))]
        for type_ in NEW_PROTOCOL_TYPES
    }

    assert {type_: [group] for type_, group in expected.items()} == found
