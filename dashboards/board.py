"""A board: rows of panels with ids and places, variables, and links to the other boards."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from dashboards.panels import DATASOURCE, Colour, Panel, Query, Scope
from dashboards.sdk import JSONEncoder, dashboard, dashboard_model
from dashboards.signals import SIGNALS
from dashboards.thresholds import duration

TAG: Final = "group-monitor"

EPISODE_STEP_SECONDS: Final = 60
"""How finely episodes are looked for: each is seen, and a week on the screen is under the 11,000 steps of a query."""

EPISODE_WINDOW_SECONDS: Final = 2 * EPISODE_STEP_SECONDS
"""What an episode that is counted is looked for in: two scrapes of a minute, without which nothing has increased."""

CLUSTERS: Final = Scope("cluster=~`${cluster:regex}`")
GROUPS: Final = Scope(CLUSTERS.cluster, "group=~`${groups:regex}`")
ONE_GROUP: Final = Scope(CLUSTERS.cluster, "group=`${group:raw}`")
TOPICS: Final = Scope(CLUSTERS.cluster, f"{ONE_GROUP.group}, topic=~`${{topic:regex}}`")
"""What the variables below choose, as matchers.

Names are clients' own. Between backticks PromQL takes every character as it is, quotes and line breaks too. Grafana's
own escaping, for double quotes, lets those through, and makes another name of one with an apostrophe.
"""

NAMES: Final = "/^[^`]*$/"
"""Values that are offered: a name with a backtick would end the text that it stands in."""


@dataclass(frozen=True, slots=True)
class Row:
    """Panels under one heading; of a collapsed one only that is seen, and nothing is asked, until it is opened."""

    title: str
    panels: Sequence[Panel]
    collapsed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Episodes:
    """What is marked over graphs of a board while a query has an answer: an episode is a shaded time.

    Attributes:
        name: of the switch above the board.
        scope: what the board's variables choose.
        over: titles of the panels it is marked over, those that it explains.
        query: a signal that has a value only while it lasts.
        colour: of the mark.
        title: Grafana's format of what is read when the pointer is over it.
        shown: whether the switch is on at first.
    """

    name: str
    scope: Scope
    over: Sequence[str]
    query: Query
    colour: Colour
    title: str
    shown: bool = True

    def build(self, ids: Mapping[str, int]) -> dashboard.AnnotationQuery:
        """The annotation in Grafana's classic schema.

        Args:
            ids: of the board's panels, by title.
        """
        window = duration(EPISODE_WINDOW_SECONDS)
        return (
            dashboard.AnnotationQuery()
            .name(self.name)
            .datasource(DATASOURCE)
            .enable(self.shown)
            .icon_color(self.colour)
            .expr(self.query.promql(self.scope, window))
            .step(duration(EPISODE_STEP_SECONDS))
            .title_format(self.title)
            .text_format(SIGNALS[self.query.signal].meaning)
            .tag_keys("group,alertname")
            .filter(dashboard.AnnotationPanelFilter().exclude(False).ids([ids[title] for title in self.over]))
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Board:
    """A dashboard as it is written down; `to_json` makes Grafana's of it.

    Attributes:
        uid: what links and addresses know it by.
        title: under which it is listed.
        description: what it answers, in a sentence or two.
        rows: its panels.
        episodes: what is marked over its graphs.
        variables: besides the data source, which every board has.
        since: beginning of the time shown first, e.g. `now-1h`.
        queries: whether it asks Prometheus anything.
    """

    uid: str
    title: str
    description: str
    rows: Sequence[Row]
    variables: Sequence[dashboard.QueryVariable] = field(default_factory=tuple)
    episodes: Sequence[Episodes] = ()
    since: str = "now-1h"
    queries: bool = True

    def to_json(self) -> dict[str, Any]:
        """The dashboard in Grafana's classic schema, which Grafana 10 and later load."""
        board = (
            dashboard.Dashboard(self.title)
            .uid(self.uid)
            .description(self.description)
            .tags([TAG])
            .editable()
            .timezone("browser")
            .tooltip(dashboard_model.DashboardCursorSync.CROSSHAIR)
            .time(self.since, "now")
            .refresh("10s" if self.queries else "")
            .link(_links())
        )
        if self.queries:
            board.with_variable(_datasource())
        for variable in self.variables:
            board.with_variable(variable)
        numbers = iter(range(1, 1000))
        ids: dict[str, int] = {}
        for row in self.rows:
            heading = dashboard.Row(row.title).id(next(numbers))
            for panel in row.panels:
                panel.id(next(numbers))
                ids[panel.build().title or ""] = panel.build().id_val or 0
                if row.collapsed:
                    heading.with_panel(panel)
            board.with_row(heading)
            if not row.collapsed:
                for panel in row.panels:
                    board.with_panel(panel)
        for episodes in self.episodes:
            board.annotation(episodes.build(ids))
        written: dict[str, Any] = _without_placement(json.loads(json.dumps(board.build(), cls=JSONEncoder)))
        return written


def panels(board: Mapping[str, Any]) -> list[dict[str, Any]]:
    """All panels of a board in Grafana's classic schema, those in collapsed rows too, without the rows."""
    within = [held for panel in board["panels"] for held in (panel, *(panel.get("panels") or ()))]
    return [panel for panel in within if panel["type"] != "row"]


def cluster_variable() -> dashboard.QueryVariable:
    """The clusters that are monitored: several, at first all."""
    return _variable("cluster", "Cluster", "label_values(group_monitor_ready, cluster)", several=True)


def groups_variable() -> dashboard.QueryVariable:
    """Groups of the chosen clusters: several, at first all.

    Not called as the one group of `group_variable`: links carry variables along, and "all" is no group.
    """
    return _variable("groups", "Groups", f"label_values(kafka_group_info{{{CLUSTERS.cluster}}}, group)", several=True)


def group_variable() -> dashboard.QueryVariable:
    """One group of the chosen clusters."""
    return _variable("group", "Group", f"label_values(kafka_group_info{{{CLUSTERS.cluster}}}, group)", several=False)


def topic_variable() -> dashboard.QueryVariable:
    """Topics the one group has committed offsets of: several, at first all."""
    matchers = f"{ONE_GROUP.cluster}, {ONE_GROUP.group}"
    query = f"label_values(kafka_consumergroup_group_topic_sum_lag{{{matchers}}}, topic)"
    return _variable("topic", "Topic", query, several=True)


def _variable(name: str, label: str, query: str, *, several: bool) -> dashboard.QueryVariable:
    variable = (
        dashboard.QueryVariable(name)
        .label(label)
        .query({"query": query, "refId": name})
        .definition(query)
        .datasource(DATASOURCE)
        .refresh(dashboard_model.VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(dashboard_model.VariableSort.ALPHABETICAL_CASE_INSENSITIVE_ASC)
        .regex(NAMES)
        .multi(several)
        .include_all(several)
    )
    if several:
        # Not `.+`: what is about the monitor itself carries no group, and belongs to all.
        variable.all_value(".*").current(dashboard_model.VariableOption(selected=True, text="All", value="$__all"))
    return variable


def _datasource() -> dashboard.DatasourceVariable:
    return dashboard.DatasourceVariable("datasource").label("Prometheus").type("prometheus")


def _links() -> dashboard.DashboardLink:
    return (
        dashboard.DashboardLink("Kafka groups")
        .type(dashboard_model.DashboardLinkType.DASHBOARDS)
        .tags([TAG])
        .as_dropdown(False)
        .include_vars(True)
        .keep_time(True)
    )


def _without_placement(value: Any) -> Any:  # noqa: ANN401 - any JSON
    """JSON without the SDK's `placement` of links: it would put them into a menu, where they are hard to find."""
    if isinstance(value, Mapping):
        kept = {key: _without_placement(item) for key, item in value.items()}
        return {key: item for key, item in kept.items() if (key, item) != ("placement", "inControlsMenu")}
    return [_without_placement(item) for item in value] if isinstance(value, list) else value
