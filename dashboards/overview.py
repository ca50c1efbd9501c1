"""All groups at once: is anything wrong, and which group is it."""

from typing import Final

from dashboards import thresholds as at
from dashboards.alert import SEVERITIES
from dashboards.board import CLUSTERS, GROUPS, Board, Episodes, Row, cluster_variable, groups_variable
from dashboards.panels import STATE_COLOURS, Query, monitor_panel, stat_panel, table_panel, timeseries_panel

_TOP: Final = "topk(15, %s)"
_SUM: Final = "sum by (cluster) (%s)"
_GROUP: Final = "{{group}}"

_NOW: Final = (
    monitor_panel(),
    stat_panel(CLUSTERS, "Groups", Query(signal="groups", legend="{{cluster}}"), span=3),
    stat_panel(CLUSTERS, "Not Stable", Query(signal="groups_unsettled", legend="{{cluster}}"), span=3),
    stat_panel(GROUPS, "Members", Query(signal="member_count", over=_SUM, legend="{{cluster}}"), span=3),
    stat_panel(
        GROUPS,
        "Worst lag in time",
        Query(signal="max_lag_seconds", over="max by (cluster) (%s)", legend="{{cluster}}"),
        span=4,
        limit=at.LAG_SECONDS,
        colour="orange",
    ),
    stat_panel(
        GROUPS,
        "Two owners",
        Query(signal="duplicate_partitions", over=_SUM, legend="{{cluster}}"),
        limit=at.NONE,
    ),
    stat_panel(
        CLUSTERS,
        "Alerts firing",
        Query(signal="firing_alerts", over="count by (cluster) (%s)", legend="{{cluster}}", zero_when_ready=True),
        limit=at.NONE,
        colour="orange",
    ),
)

_LOOK: Final = (
    table_panel(
        CLUSTERS,
        "Needs a look",
        [Query(signal="firing_alerts")],
        height=8,
        ranked=("severity", list(SEVERITIES)),
    ),
)

_LAG: Final = (
    timeseries_panel(
        CLUSTERS,
        "Groups by state",
        [Query(signal="groups_in_state", legend="{{state}}", over="sum by (state) (%s)")],
        span=8,
        stacked=True,
        colours=STATE_COLOURS,
    ),
    timeseries_panel(GROUPS, "Largest lag", [Query(signal="max_lag", legend=_GROUP, over=_TOP)], span=8, links=True),
    timeseries_panel(
        GROUPS,
        "Largest lag in time",
        [Query(signal="max_lag_seconds", legend=_GROUP, over=_TOP)],
        span=8,
        limit=at.LAG_SECONDS,
        colour="orange",
        links=True,
    ),
)

_REBALANCES: Final = (
    timeseries_panel(
        GROUPS,
        "Rebalances",
        [Query(signal="rebalances", legend=_GROUP, over="topk(15, %s > 0)")],
        bars=True,
        links=True,
    ),
    timeseries_panel(
        GROUPS,
        "Rebalancing for",
        [Query(signal="rebalancing_seconds", legend=_GROUP, over="topk(15, %s > 0)")],
        limit=at.REBALANCING_SECONDS,
        links=True,
    ),
    timeseries_panel(
        GROUPS,
        "Partitions with two owners or with none",
        [
            Query(signal="duplicate_partitions", legend="{{group}}: two owners", over="topk(15, %s > 0)"),
            Query(signal="unassigned_partitions", legend="{{group}}: no owner", over="topk(15, %s > 0)"),
        ],
        limit=at.NONE,
        links=True,
    ),
    timeseries_panel(
        GROUPS,
        "Rewinds",
        [Query(signal="rewinds", legend="{{group}} {{topic}}", over="topk(15, %s > 0)")],
        bars=True,
        links=True,
    ),
)

_ALL: Final = (
    table_panel(
        GROUPS,
        "All groups",
        [
            Query(signal="group_info"),
            Query(signal="group_state"),
            Query(signal="member_count", legend="members"),
            Query(signal="sum_lag", legend="lag"),
            Query(signal="max_lag_seconds", legend="lag in time"),
            Query(signal="duplicate_partitions", legend="two owners"),
            Query(signal="unassigned_partitions", legend="no owner"),
            Query(signal="rebalances", legend="rebalances"),
        ],
        height=12,
        hidden=("protocol",),  # it is the group's board's; the names need the room
        sort_by="lag",
        limits={
            "two owners": (at.NONE, "red"),
            "no owner": (at.NONE, "orange"),
            "lag in time": (at.LAG_SECONDS, "orange"),
        },
    ),
)

OVERVIEW: Final = Board(
    uid="group-monitor-overview",
    title="Kafka groups: Overview",
    description="All groups of the chosen clusters: states, the worst lag, rebalances, and what needs a look. "
    "A group's name leads to its own board.",
    variables=(cluster_variable(), groups_variable()),
    episodes=(
        Episodes(
            name="Alerts",
            scope=GROUPS,
            over=("Largest lag", "Largest lag in time", "Rebalances", "Partitions with two owners or with none"),
            query=Query(signal="firing_alerts"),
            colour="red",
            title="{{alertname}} {{group}}",
        ),
    ),
    rows=(
        Row("Now", _NOW),
        Row("What needs a look", _LOOK),
        Row("States and lag", _LAG),
        Row("Rebalances and ownership", _REBALANCES),
        Row("Groups", _ALL),
    ),
)
