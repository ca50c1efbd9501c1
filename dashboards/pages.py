"""Writes `docs/metrics.md` and `docs/alerts.md`: `python -m dashboards.pages`, or with `--check` compares.

The pages are committed, so that they can be read where the code is read; what they say is what is exported and judged.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from dashboards.alert import SEVERITIES, Alert
from dashboards.alerts import ALERTS, GROUPS
from dashboards.board import panels
from dashboards.build import boards
from dashboards.settings import DEFAULTS, listed
from dashboards.signals import SIGNALS
from dashboards.thresholds import duration
from streaming.metrics.catalogue import CATALOGUE, CLUSTER_NAME, LOG_ONLY, Metric

DOCS: Final = Path(__file__).resolve().parent.parent / "docs"
COMMAND: Final = "python -m dashboards.pages"

_METRICS_HEAD: Final = f"""\
# Metrics

<!-- Made by `{COMMAND}` from streaming/metrics/catalogue.py and dashboards/signals.py; change those instead. -->

Every metric at `/metrics`, in the order of the page. All carry the label `cluster` (`cluster.name`), which is not
repeated below. What is not known has no series: no -1, no NaN, no 0. A group's series end with the group, a topic's
when no group uses it any more. A counter of a group begins with its first count: where `kafka_group_info` is and the
counter is not, it is 0. A value of more than 256 bytes is cut, with a hash behind; the API has it whole.

Metrics marked ³ are of the log alone: where groups are polled (`group_monitor_source_info{{kind="admin"}}`,
[Permissions](permissions.md#where-the-log-may-not-be-read)) they are not there, and nothing is known of them.

*Shown on* names the dashboards that draw the metric, *alerts* the rules that read it; the PromQL is in
`dashboards/signals.py`. Two options decide on the number of series ([how many that is](scale.md#how-many-series)):
`metrics.partition_series` decides on the metrics marked ¹ (`auto`, the default: up to 50,000 series of them), and
`metrics.rebalance_histogram` switches on the one marked ², which is off by default. Names and
labels of `kafka_consumergroup_…` and `kafka_partition_…` are kafka-lag-exporter's
([Moving from other monitors](migrating-from.md)).
"""

_ALERTS_HEAD: Final = f"""\
# Alerts

<!-- Made by `{COMMAND}` from dashboards/alerts.py and dashboards/thresholds.py; change those instead. -->

The Prometheus rules in `dashboards/generated/rules.yaml`. Meaning, first look and remedy are in the
[runbook](../dashboards/runbook.md), which is a Grafana dashboard too. Every rule about groups waits until the monitor
has caught up with the log, and fires after a minute at the earliest. Each is tested in `tests/dashboards/alerts/`: it
fires, not a minute too early, and not for look-alikes.

Summaries name cluster and group, and the members involved where the monitor knows them. Annotations: `summary`,
`reason` (why its limits are those), `first_look`; `group-monitor dashboards build --grafana-url U --runbook-url U` adds
`dashboard_url` and `runbook_url`, whole addresses.
"""

_SETTINGS_HEAD: Final = """\
`group-monitor dashboards build` and `push` take `--set NAME=VALUE` and `--values FILE` (YAML); `group-monitor
dashboards settings` lists the names. Rules and boards then have these figures, sentences too. What the monitor's own
events judge by as well is not set here: alert and event would differ.
"""

_BOARDS: Final = tuple(boards().values())
_HISTOGRAM_SWITCHED: Final = "kafka_group_rebalance_duration_seconds"


def pages() -> dict[str, str]:
    """File name → text of each page."""
    return {"metrics.md": "\n".join(_metrics()) + "\n", "alerts.md": "\n".join(_alerts()) + "\n"}


def main(arguments: Sequence[str] | None = None) -> int:
    """Write, or with `--check` compare; the exit status is 1 where a page is not as it should be."""
    parser = argparse.ArgumentParser(prog=COMMAND, description="Write the pages on metrics and alerts.")
    parser.add_argument("--check", action="store_true", help="compare with what is written, and write nothing")
    parser.add_argument("--out", type=Path, default=DOCS, metavar="DIR", help="where the pages are")
    options = parser.parse_args(arguments)
    stale = []
    for name, text in pages().items():
        file = options.out / name
        if file.is_file() and file.read_text(encoding="utf-8") == text:
            continue
        stale.append(name)
        if not options.check:
            file.write_text(text, encoding="utf-8")
    if options.check and stale:
        sys.stderr.write(f"error: {options.out}: {', '.join(stale)} stale; run `{COMMAND}` and commit the result\n")
        return 1
    return 0


def _metrics() -> Iterator[str]:
    yield _METRICS_HEAD
    yield "| metric | type | labels | what it says | shown on | alerts |"
    yield "|---|---|---|---|---|---|"
    for metric in CATALOGUE.values():
        mark = "¹" if metric.per_partition else "²" if metric.name == _HISTOGRAM_SWITCHED else ""
        mark += "³" if metric.name in LOG_ONLY else ""
        labels = ", ".join(f"`{label}`" for label in metric.labels) or "-"
        shown = ", ".join(_boards(metric)) or "-"
        judging = ", ".join(map(_alert_link, _judging(metric))) or "-"
        yield f"| `{metric.name}`{mark} | {metric.kind} | {labels} | {metric.help}. | {shown} | {judging} |"
    yield ""
    yield f"`{CLUSTER_NAME}` has the same value as `cluster`. A histogram has the usual `_bucket`, `_sum` and `_count`."


def _alerts() -> Iterator[str]:
    yield _ALERTS_HEAD
    yield "| severity | response |"
    yield "|---|---|"
    yield from (f"| {severity} | {meaning} |" for severity, meaning in SEVERITIES.items())
    for name, group in GROUPS.items():
        yield f"\n## {name.removeprefix('kafka_group_').capitalize()}\n"
        yield "| alert | severity | condition | for | first look | the monitor's event |"
        yield "|---|---|---|---|---|---|"
        for alert in group:
            condition = DEFAULTS.filled(alert.condition).replace("$", "")
            event = f"`{alert.event}`" if alert.event else "-"
            yield (
                f"| {_alert_link(alert)} | {alert.severity} | `{condition}` | {duration(alert.wait.value)} "
                f"| {alert.first_look} | {event} |"
            )
    yield "\n## What comes nearest to a false alarm\n"
    yield "| alert | the lawful history that comes nearest, and why it does not fire |"
    yield "|---|---|"
    yield from (f"| {_alert_link(alert)} | {alert.nearest} |" for alert in ALERTS)
    yield "\n## Signals in conditions\n"
    yield "| signal | what it says |"
    yield "|---|---|"
    used = dict.fromkeys(name for alert in ALERTS for name in alert.signals)
    yield from (f"| `{name}` | {SIGNALS[name].meaning} |" for name in used)
    yield "\n## Limits of your own\n"
    yield _SETTINGS_HEAD
    yield "| setting | default | what it is, or why the default |"
    yield "|---|---|---|"
    yield from (f"| `{each.name}` | {_code(each.default)} | {_cell(each.meaning)} |" for each in listed())


def _code(default: int | str) -> str:
    return f"`{default}`" if default else "-"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _alert_link(alert: Alert) -> str:
    return f"[{alert.name}](../dashboards/runbook.md#{alert.name.lower()})"


def _judging(metric: Metric) -> list[Alert]:
    return [alert for alert in ALERTS if any(metric.name in SIGNALS[name].metrics for name in alert.signals)]


def _boards(metric: Metric) -> Iterator[str]:
    for board in _BOARDS:
        asked = [target["expr"] for panel in panels(board) for target in panel.get("targets", [])]
        if any(_asks(expr, metric) for expr in asked):
            yield board["title"].removeprefix("Kafka groups: ")


def _asks(expr: str, metric: Metric) -> bool:
    return f"{metric.name}{{" in expr or f"{metric.name}_bucket{{" in expr


if __name__ == "__main__":
    sys.exit(main())
