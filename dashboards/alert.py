"""What an alert rule is, and Prometheus's rule made of it.

Two things hold for all rules. What a group does is believed only of a monitor that is ready (`gated`): while it
catches up, it counts what happened days ago. And every rule waits at least a minute, so that a single scrape never
wakes anybody. Links to the runbook and to the boards are added in one place (`_links`).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from dashboards import thresholds as at
from dashboards.promql import expanded, used
from dashboards.signals import SIGNALS
from dashboards.thresholds import duration

CRITICAL: Final = "critical"
WARNING: Final = "warning"
INFO: Final = "info"
SEVERITIES: Final[Mapping[str, str]] = {
    CRITICAL: "wakes somebody",
    WARNING: "is looked at the same day",
    INFO: "is looked at if it was not intended",
}

PREFIX: Final = "KafkaGroup"
MOST_NAMED: Final = 5
"""Members in one sentence: enough to begin with, and a telephone shows them all."""


def _shown(name: str) -> str:
    """Prometheus's template for a name, a client's own: no receiver takes a part of it for markup or a line's end."""
    return f"{{{{ reReplaceAll `[<>\\pC\\p{{Zl}}\\p{{Zp}}]` `?` {name} }}}}"


GROUP: Final = f"Group {_shown('$labels.group')} of cluster {{{{ $labels.cluster }}}}"
MONITOR: Final = "The monitor of cluster {{ $labels.cluster }}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """One alert rule.

    Attributes:
        name: CamelCase, with the prefix of all.
        condition: PromQL with signals by name.
        limits: what it compares with; their reasons go with the alert.
        wait: how long the condition has to hold.
        severity: of `SEVERITIES`; the monitor's event's where there is one.
        summary: a sentence that names the group, with Prometheus's placeholders.
        first_look: board and panel to open first, as `Board: Panel`.
        nearest: the lawful history that comes nearest to firing it, and why it does not; for the page of alerts.
        event: kind of the monitor's event that says the same, if there is one.
        names: finding whose members are named after the sentence, if the monitor knows them.
    """

    name: str
    condition: str
    limits: tuple[at.Limit, ...]
    wait: at.Limit
    severity: str
    summary: str
    first_look: str
    nearest: str
    event: str | None = None
    names: str | None = None

    @property
    def signals(self) -> list[str]:
        """Names of the signals it reads."""
        return used(self.condition)

    @property
    def by_group(self) -> bool:
        """Whether it is about one group, rather than about the cluster or the monitor."""
        return GROUP in self.summary


def gated(condition: str, window_seconds: int | None = None) -> str:
    """The condition, of a monitor that is ready and was so all the time looked back over."""
    ready = "$ready" if window_seconds is None else f"$ready_throughout[{duration(window_seconds)}]"
    return f"({condition}) and on (cluster) {ready} == 1"


def within(limit: at.Limit) -> str:
    """PromQL's word for looking back so far."""
    return f"[{duration(limit.value)}]"


def rule(alert: Alert, runbook_url: str | None, grafana_url: str | None) -> dict[str, Any]:
    """The rule as Prometheus reads it, with the links that are known: see `alerts.rules`."""
    return {
        "alert": alert.name,
        "expr": expanded(alert.condition, SIGNALS),
        "for": duration(alert.wait.value),
        "labels": {"severity": alert.severity},
        "annotations": _annotations(alert, runbook_url, grafana_url),
    }


def _members(finding: str) -> str:
    """Prometheus's template for a sentence that names members; nothing where none are known.

    A label per member would make an alert per member; asked when the alert is written, they are part of its text.
    """
    query = SIGNALS["involved_members"].promql(cluster="cluster=%q", group=f'group=%q, finding="{finding}"')
    asked = f'printf `{query}` $labels.cluster $labels.group | query | sortByLabel "member_id"'
    separator = "{{ if eq $i 0 }} Members: {{ else }}, {{ end }}"
    named = f"{_shown('$m.Labels.member_id')} on {_shown('$m.Labels.client_host')}"
    return (
        f"{{{{ range $i, $m := {asked} }}}}{{{{ if lt $i {MOST_NAMED} }}}}{separator}{named}"
        f"{{{{ else if eq $i {MOST_NAMED} }}}} and more{{{{ end }}}}{{{{ end }}}}"
    )


def _annotations(alert: Alert, runbook_url: str | None, grafana_url: str | None) -> dict[str, str]:
    board, _, panel = alert.first_look.partition(": ")
    return {
        "summary": alert.summary + ("" if alert.names is None else _members(alert.names)),
        "reason": "; ".join(dict.fromkeys(limit.reason for limit in (*alert.limits, alert.wait))),
        "first_look": f"Board {board}, panel {panel}",
        **_links(alert, runbook_url, grafana_url),
    }


def _links(alert: Alert, runbook_url: str | None, grafana_url: str | None) -> dict[str, str]:
    """Addresses, and none that would have to be completed: a mail or a pager has no page to complete it from."""
    links = {}
    if grafana_url is not None:
        grafana_url = grafana_url.rstrip("/")
        board = alert.first_look.partition(": ")[0]
        variables = "var-cluster={{ $labels.cluster | urlquery }}"
        if alert.by_group:
            # The board of one group has the variable `group`, those of many have `groups`.
            variables += f"&var-{'group' if board == 'Group' else 'groups'}={{{{ $labels.group | urlquery }}}}"
        uid = "group-monitor-" + board.lower().replace(" ", "-")
        links["dashboard_url"] = f"{grafana_url}/d/{uid}?{variables}"
        links["runbook_url"] = f"{grafana_url}/d/group-monitor-runbook"
    if runbook_url is not None:
        links["runbook_url"] = f"{runbook_url}#{alert.name.lower()}"
    return links
