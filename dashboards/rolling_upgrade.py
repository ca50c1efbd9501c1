"""What stays open while consumers are rolled from one protocol to the other, and after they were rolled back.

Left to right and top to bottom it is the order in which one asks. The first screen is the roll itself: how many members
remain, does it hurt (lag against before, owners), which groups are in which phase and for how long, is anything in the
way. Below it: may we go on, how it went, how much it hurts, is anything left over.
"""

from typing import Final

from dashboards import thresholds as at
from dashboards.board import CLUSTERS, GROUPS, Board, Episodes, Row, cluster_variable, groups_variable
from dashboards.panels import (
    PHASE_COLOURS,
    PROTOCOL_COLOURS,
    READINESS_COLOURS,
    ROWS,
    VERDICT_COLOURS,
    Query,
    monitor_panel,
    stat_panel,
    table_panel,
    timeline_panel,
    timeseries_panel,
    words,
)
from dashboards.signals import PHASE_CODES, VERDICT_CODES

_PHASES: Final = words(PHASE_CODES, PHASE_COLOURS)
_GROUP: Final = "{{group}}"
_SUM: Final = "sum by (cluster) (%s)"

_VERDICTS: Final = words(VERDICT_CODES, VERDICT_COLOURS)


def _gate(name: str) -> Query:
    """One gate: an instant answer has no order, and two gates in a tile would change places while one looks."""
    alone = f'%s and on (gate) label_replace(vector(1), "gate", "{name}", "", "")'
    return Query(signal="gate_code", legend="{{cluster}}", over=alone)


_THE_ROLL: Final = (
    monitor_panel(),
    stat_panel(GROUPS, "Classic members", Query(signal="classic_members", legend="{{cluster}}")),
    stat_panel(GROUPS, "Upgraded", Query(signal="upgraded_share", legend="{{cluster}}"), span=3),
    stat_panel(
        GROUPS,
        "Still mixed",
        Query(signal="mixed_seconds", legend="{{cluster}}", over="count by (cluster) (%s > 0)", zero_when_ready=True),
        span=3,
        limit=at.NONE,
        colour="yellow",
    ),
    stat_panel(GROUPS, "Lag against before", Query(signal="lag_growth", legend="{{cluster}}", over=_SUM), span=5),
    stat_panel(
        GROUPS,
        "Two owners",
        Query(signal="duplicate_partitions", legend="{{cluster}}", over=_SUM),
        span=3,
        limit=at.NONE,
    ),
    stat_panel(
        GROUPS,
        "No owner",
        Query(signal="unassigned_partitions", legend="{{cluster}}", over=_SUM),
        span=3,
        limit=at.NONE,
        colour="orange",
    ),
    timeline_panel(
        GROUPS,
        "Phases",
        Query(signal="phase_code", legend=_GROUP, over=f"topk({ROWS}, %s)"),  # blocked or on the way before at rest
        _PHASES,
        height=7,
        links=True,
    ),
    table_panel(
        GROUPS,
        "Groups on the way",
        [
            Query(signal="phase_code", legend="phase"),
            Query(signal="member_count", legend="members"),
            Query(signal="upgraded_members", legend="upgraded"),
            Query(signal="group_upgraded_share", legend="share"),
            Query(signal="mixed_seconds", legend="mixed for"),
        ],
        span=14,
        sort_by="mixed for",
        limits={"mixed for": (at.MIGRATION_STALLED_SECONDS, "orange")},
        texts={"phase": _PHASES},
    ),
    table_panel(GROUPS, "In the way", [Query(signal="upgrade_blockers", legend="found")], span=10),
)

_GATES: Final = (
    stat_panel(CLUSTERS, "Upgrade gate", _gate("upgrade"), span=5, texts=_VERDICTS),
    stat_panel(CLUSTERS, "Downgrade gate", _gate("downgrade"), span=5, texts=_VERDICTS),
    stat_panel(
        GROUPS,
        "Blocked",
        Query(
            signal="upgrade_blockers",
            legend="{{cluster}}",
            over="count by (cluster) (max by (cluster, group) (%s))",
            zero_when_ready=True,
        ),
        span=4,
        limit=at.NONE,
        colour="orange",
    ),
    stat_panel(
        GROUPS,
        "Longest mixed",
        Query(signal="mixed_seconds", legend="{{cluster}}", over="max by (cluster) (%s)"),
        span=5,
        limit=at.MIXED_SECONDS,
        colour="orange",
    ),
    stat_panel(
        CLUSTERS,
        "Records left over",
        Query(signal="unclean_leftovers", legend="{{cluster}}", over="sum by (cluster) (%s)", zero_when_ready=True),
        span=5,
        limit=at.NONE,
        colour="orange",
    ),
    timeline_panel(
        CLUSTERS,
        "Gates until now",
        Query(signal="gate_code", legend="{{cluster}} {{gate}}"),
        _VERDICTS,
        span=10,
        height=7,
    ),
    table_panel(
        CLUSTERS,
        "Reasons of the gates",
        [Query(signal="gate_reasons", legend="how many")],
        span=14,
        height=7,
        ranked=("effect", ("stop", "unknown", "note")),  # what decides a gate, first
    ),
)

_OVER_TIME: Final = (
    timeseries_panel(
        GROUPS,
        "Members by protocol",
        [Query(signal="members_total", legend="{{protocol}}", over="sum by (protocol) (%s)")],
        span=8,
        stacked=True,
        colours=PROTOCOL_COLOURS,
    ),
    timeseries_panel(
        GROUPS,
        "Groups by phase",
        [Query(signal="groups_in_phase", legend="{{phase}}", over="sum by (phase) (%s)")],
        span=8,
        stacked=True,
        colours=PHASE_COLOURS,
    ),
    timeseries_panel(
        GROUPS,
        "Conversions",
        [
            Query(signal="upgrades", legend="{{group}} up", over="topk(15, %s > 0)"),
            Query(signal="downgrades", legend="{{group}} down", over="topk(15, %s > 0)"),
            Query(signal="unclean_upgrades", legend="{{group}} up, unclean", over="topk(15, %s > 0)"),
        ],
        span=8,
        bars=True,
        links=True,
    ),
    timeseries_panel(
        CLUSTERS,
        "Groups by readiness",
        [Query(signal="readiness_groups", legend="{{readiness}}", over="sum by (readiness) (%s)")],
        span=5,
        stacked=True,
        colours=READINESS_COLOURS,
    ),
    timeseries_panel(
        GROUPS,
        "Mixed for",
        [Query(signal="mixed_seconds", legend=_GROUP, over="topk(15, %s > 0)")],
        span=5,
        limit=at.MIXED_SECONDS,
        colour="orange",
        links=True,
    ),
    timeseries_panel(
        GROUPS,
        "Members not back",
        [Query(signal="members_not_back", legend=_GROUP, over="topk(15, %s > 0)")],
        span=6,
        limit=at.NONE,
        colour="orange",
        links=True,
    ),
    timeseries_panel(
        GROUPS,
        "Going back to the classic protocol",
        [Query(signal="downgrading", legend=_GROUP, over="topk(15, %s > 0)")],
        span=8,
        limit=at.NONE,
        colour="orange",
        links=True,
    ),
)

_DOES_IT_HURT: Final = (
    timeseries_panel(
        GROUPS, "Largest lag", [Query(signal="max_lag", legend=_GROUP, over="topk(15, %s)")], span=8, links=True
    ),
    timeseries_panel(
        GROUPS,
        "Largest lag in time",
        [Query(signal="max_lag_seconds", legend=_GROUP, over="topk(15, %s)")],
        span=8,
        limit=at.LAG_SECONDS,
        colour="orange",
        links=True,
    ),
    timeseries_panel(
        GROUPS,
        "Partitions with two owners or with none",
        [
            Query(signal="duplicate_partitions", legend="{{group}}: two owners", over="topk(15, %s > 0)"),
            Query(signal="unassigned_partitions", legend="{{group}}: no owner", over="topk(15, %s > 0)"),
        ],
        span=8,
        limit=at.NONE,
        links=True,
    ),
    timeseries_panel(
        GROUPS,
        "Rebalances",
        [Query(signal="rebalances", legend=_GROUP, over="topk(15, %s > 0)")],
        span=8,
        bars=True,
        links=True,
    ),
    timeseries_panel(
        GROUPS,
        "Rebalancing for",
        [Query(signal="rebalancing_seconds", legend=_GROUP, over="topk(15, %s > 0)")],
        span=8,
        limit=at.REBALANCING_SECONDS,
        links=True,
    ),
    timeseries_panel(
        GROUPS,
        "Partitions moved",
        [Query(signal="partitions_moved", legend=_GROUP, over="topk(15, %s > 0)")],
        span=8,
        bars=True,
        links=True,
    ),
)

_LEFT_OVER: Final = (
    timeseries_panel(
        CLUSTERS,
        "Left over",
        [
            Query(signal="unclean_leftovers", legend="{{cluster}} {{type}}"),
            Query(signal="group_leftovers", legend=_GROUP, over="topk(15, %s > 0)"),
        ],
        limit=at.NONE,
        colour="orange",
    ),
    timeseries_panel(
        CLUSTERS,
        "Records of the new protocols",
        [
            Query(
                signal="leftover_records",
                legend="type {{record_type}}",
                over="sum by (record_type) (%s) > 0",
            )
        ],
        stacked=True,
    ),
)

_MOVED_BY_A_CONVERSION: Final = (
    "Members by protocol",
    "Groups by phase",
    "Largest lag",
    "Rebalances",
    "Partitions moved",
)

_EPISODES: Final = (
    Episodes(
        name="Conversions to the consumer protocol",
        scope=GROUPS,
        over=_MOVED_BY_A_CONVERSION,
        query=Query(signal="upgrades", over="%s > 0"),
        colour="green",
        title="{{group}} was converted to the consumer protocol",
    ),
    Episodes(
        name="Conversions to the classic protocol",
        scope=GROUPS,
        over=_MOVED_BY_A_CONVERSION,
        query=Query(signal="downgrades", over="%s > 0"),
        colour="orange",
        title="{{group}} was converted to the classic protocol",
    ),
    Episodes(
        name="Alerts",
        scope=GROUPS,
        over=("Largest lag", "Largest lag in time", "Rebalances", "Partitions with two owners or with none"),
        query=Query(signal="firing_alerts"),
        colour="red",
        title="{{alertname}} {{group}}",
    ),
)

ROLLING_UPGRADE: Final = Board(
    uid="group-monitor-rolling-upgrade",
    title="Kafka groups: Rolling upgrade",
    description="Consumers on their way between the classic and the consumer protocol (KIP-848), and brokers on their "
    "way back (KIP-915). Before each step ask `group-monitor gate upgrade` or `group-monitor gate downgrade`.",
    variables=(cluster_variable(), groups_variable()),
    episodes=_EPISODES,
    since="now-3h",
    rows=(
        Row("The roll", _THE_ROLL),
        Row("Go on or stop", _GATES),
        Row("Over time", _OVER_TIME),
        Row("Does it hurt", _DOES_IT_HURT),
        Row("What is left over", _LEFT_OVER),
    ),
)
