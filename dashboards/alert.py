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
from dashboards.settings import CRITICAL, DEFAULTS, INFO, WARNING, Settings
from dashboards.signals import SIGNALS

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


def gated(condition: str, window: at.Limit | None = None) -> str:
    """The condition, of a monitor that is ready and was so all the time looked back over."""
    ready = "$ready" if window is None else f"$ready_throughout{within(window)}"
    return f"({condition}) and on (cluster) {ready} == 1"


def within(limit: at.Limit) -> str:
    """PromQL's word for looking back so far."""
    return f"[{limit.duration}]"


def rule(alert: Alert, settings: Settings | None) -> dict[str, Any]:
    """The rule as Prometheus reads it: see `alerts.rules`."""
    known = settings or DEFAULTS
    made = {
        "alert": alert.name,
        "expr": known.without_selector_of_alerts(
            expanded(alert.condition, SIGNALS, cluster=known.selector, group=known.of_groups)
        ),
        "for": alert.wait.duration,
        "labels": {"severity": known.severities[alert.severity]},
        "annotations": _annotations(alert, known),
    }
    filled: dict[str, Any] = made if settings is None else settings.filled(made)
    return filled


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


def _annotations(alert: Alert, settings: Settings) -> dict[str, str]:
    board, _, panel = alert.first_look.partition(": ")
    return {
        "summary": alert.summary + ("" if alert.names is None else _members(alert.names)),
        "reason": "; ".join({limit.reason: limit.why for limit in (*alert.limits, alert.wait)}.values()),
        "first_look": f"Board {board}, panel {panel}",
        **_links(alert, settings.runbook_url, settings.grafana_url),
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
