"""One group: what it does now, how far behind it is, and how it got there."""

from typing import Final

from dashboards import thresholds as at
from dashboards.board import ONE_GROUP, TOPICS, Board, Episodes, Row, cluster_variable, group_variable, topic_variable
from dashboards.panels import (
    PHASE_COLOURS,
    PROTOCOL_COLOURS,
    STATE_COLOURS,
    Query,
    monitor_panel,
    stat_panel,
    table_panel,
    timeline_panel,
    timeseries_panel,
    words,
)
from dashboards.signals import PHASE_CODES, STATE_CODES

_STATES: Final = words(STATE_CODES, STATE_COLOURS)
_PHASES: Final = words(PHASE_CODES, PHASE_COLOURS)
_PARTITION: Final = "{{topic}}/{{partition}}"
_STORM: Final = f"{at.STORM_REBALANCES.value} + {at.STORM_REBALANCES_A_MEMBER.value} * %s"
"""Where the alert begins: it goes by the group's size, so it is a line of its own and no threshold."""

_NOW: Final = (
    monitor_panel(span=4, height=3),
    stat_panel(ONE_GROUP, "State", Query(signal="state_code"), texts=_STATES, height=3),
    stat_panel(
        ONE_GROUP,
        "Type and assignor",
        Query(signal="group_info", legend="{{type}} {{protocol}}"),
        show_name=True,
        height=3,
    ),
    stat_panel(ONE_GROUP, "Protocol", Query(signal="phase_code"), texts=_PHASES, height=3),
    stat_panel(ONE_GROUP, "Members", Query(signal="member_count"), height=3),
    stat_panel(ONE_GROUP, "Lag", Query(signal="sum_lag"), height=3),
    stat_panel(
        ONE_GROUP,
        "Lag in time",
        Query(signal="max_lag_seconds"),
        span=8,
        limit=at.LAG_SECONDS,
        colour="orange",
        height=3,
    ),
    stat_panel(
        ONE_GROUP,
        "Two owners",
        Query(signal="duplicate_partitions"),
        span=8,
        limit=at.NONE,
        height=3,
    ),
    stat_panel(
        ONE_GROUP,
        "No owner",
        Query(signal="unassigned_partitions"),
        span=8,
        limit=at.NONE,
        colour="orange",
        height=3,
    ),
)

_MEMBERSHIP: Final = (
    timeline_panel(ONE_GROUP, "States", Query(signal="state_code", legend="{{group}}"), _STATES, height=4),
    timeseries_panel(
        ONE_GROUP,
        "Members by protocol",
        [Query(signal="members", legend="{{protocol}}")],
        span=8,
        stacked=True,
        colours=PROTOCOL_COLOURS,
    ),
    timeseries_panel(
        ONE_GROUP,
        "Epochs",
        [
            Query(signal="group_epoch", legend="group epoch, or generation"),
            Query(signal="assignment_epoch", legend="assignment epoch"),
        ],
        span=8,
    ),
    timeseries_panel(
        TOPICS,
        "Assignment",
        [Query(signal="assigned_partitions", legend="{{topic}}")],
        span=8,
        stacked=True,
    ),
)

_LAG: Final = (
    timeseries_panel(
        TOPICS,
        "Lag by partition",
        [
            Query(signal="lag", legend=_PARTITION),
            Query(signal="stable_lag", legend=f"{_PARTITION}, to the last stable offset"),
        ],
    ),
    timeseries_panel(
        TOPICS,
        "Lag by partition in time",
        [Query(signal="lag_seconds", legend=_PARTITION)],
        limit=at.LAG_SECONDS,
        colour="orange",
    ),
    timeseries_panel(TOPICS, "Lag by topic", [Query(signal="topic_lag", legend="{{topic}}")], span=8, stacked=True),
    timeseries_panel(
        ONE_GROUP,
        "Lag of topics without a reader",
        [Query(signal="unsubscribed_lag", legend="of topics that no member reads any more")],
        span=8,
    ),
    timeseries_panel(
        ONE_GROUP,
        "Lag not known",
        [Query(signal="unknown_lag_partitions", legend="partitions")],
        span=8,
        limit=at.NONE,
        colour="orange",
    ),
    timeseries_panel(
        TOPICS,
        "Commits",
        [Query(signal="commit_rate", legend="{{topic}}")],
        span=6,
    ),
    timeseries_panel(
        TOPICS,
        "Records written",
        [Query(signal="write_rate", legend="{{topic}}")],
        span=6,
    ),
    timeseries_panel(
        TOPICS,
        "Commit age",
        [Query(signal="commit_age", legend=_PARTITION)],
        span=6,
        limit=at.COMMIT_AGE_SECONDS,
        colour="orange",
    ),
    timeseries_panel(
        TOPICS,
        "Rewinds",
        [
            Query(signal="rewinds", legend="{{topic}}"),
            Query(signal="resets", legend="no members, or back at once"),
        ],
        span=6,
        bars=True,
    ),
    table_panel(
        TOPICS,
        "Partitions",
        [
            Query(signal="committed_offset", legend="committed offset"),
            Query(signal="lag", legend="lag"),
            Query(signal="lag_seconds", legend="lag in time"),
            Query(signal="commit_age", legend="commit age"),
            Query(signal="retention_margin", legend="above log start"),
        ],
        sort_by="lag",
        hidden=("cluster", "group"),
        limits={"lag in time": (at.LAG_SECONDS, "orange"), "commit age": (at.COMMIT_AGE_SECONDS, "orange")},
    ),
)

_SHARES: Final = (
    timeseries_panel(
        TOPICS,
        "Given up",
        [
            Query(signal="share_given_up", legend="{{topic}}, {{why}}"),
            Query(signal="share_archived", legend="{{topic}}, {{why}}, unclear ones too"),
        ],
        span=8,
        bars=True,
    ),
    timeseries_panel(
        TOPICS,
        "Delivered again",
        [
            Query(signal="share_redelivered", legend=f"{_PARTITION}, records"),
            Query(signal="share_max_deliveries", legend=f"{_PARTITION}, most deliveries of one"),
        ],
        span=8,
    ),
    timeseries_panel(
        TOPICS,
        "First offset not done",
        [Query(signal="share_partition_stalled", legend=_PARTITION)],
        span=8,
    ),
    table_panel(
        TOPICS,
        "Share partitions",
        [
            Query(signal="share_start_offset", legend="start offset"),
            Query(signal="lag", legend="lag"),
            Query(signal="share_redelivered", legend="delivered again"),
            Query(signal="share_partition_stalled", legend="not done for"),
        ],
        sort_by="lag",
        hidden=("cluster", "group"),
    ),
    timeseries_panel(
        ONE_GROUP,
        "Delivered again, all partitions",
        [Query(signal="share_group_redelivered", legend="records")],
    ),
    timeseries_panel(
        ONE_GROUP,
        "First offset not done, the longest",
        [Query(signal="share_group_stalled", legend="not done for")],
    ),
)

_REBALANCES: Final = (
    timeseries_panel(
        ONE_GROUP,
        "Rebalances",
        [
            Query(signal="rebalances", legend="completed"),
            Query(signal="rebalances_avoidable", legend="of them avoidable: members came or went one by one"),
            Query(signal="rounds_lost", legend="begun and lost"),
        ],
        span=8,
        bars=True,
        overlaid=True,
    ),
    timeseries_panel(
        ONE_GROUP,
        "Partitions moved",
        [Query(signal="partitions_moved", legend="moved"), Query(signal="partitions_kept", legend="stayed")],
        span=8,
        bars=True,
    ),
    timeseries_panel(
        ONE_GROUP,
        "Rebalancing for",
        [Query(signal="rebalancing_seconds", legend="age")],
        span=8,
        limit=at.REBALANCING_SECONDS,
    ),
    timeseries_panel(
        ONE_GROUP,
        "Overdue",
        [Query(signal="rebalance_stuck", legend="rebalance")],
        span=8,
        limit=at.NONE,
    ),
    timeseries_panel(
        ONE_GROUP,
        "Rebalances of five minutes",
        [
            Query(signal="storm_rebalances", legend="as a storm counts them"),
            Query(
                signal="most_members",
                legend="a storm is more than",
                window=f"{at.STORM_WINDOW_SECONDS.value}s",
                over=_STORM,
            ),
        ],
        span=8,
    ),
    timeseries_panel(
        ONE_GROUP,
        "Ownership",
        [
            Query(signal="duplicate_partitions", legend="two owners"),
            Query(signal="unassigned_partitions", legend="no owner"),
        ],
        span=8,
        limit=at.NONE,
    ),
    timeseries_panel(
        ONE_GROUP,
        "Events",
        [
            Query(signal="events", legend="{{kind}}", over="%s > 0"),
            Query(signal="silenced", legend="{{kind}}, expected", over="%s > 0"),
        ],
        span=16,
        bars=True,
    ),
    timeseries_panel(
        ONE_GROUP, "Stale claims", [Query(signal="stale_claims", legend="stale claims")], span=8, bars=True
    ),
    timeseries_panel(
        ONE_GROUP,
        "Not settled",
        [Query(signal="unsettled_seconds", legend="not at rest for")],
    ),
    timeseries_panel(
        ONE_GROUP,
        "Epochs since at rest",
        [Query(signal="unsettled_epochs", legend="epochs")],
    ),
    timeseries_panel(
        ONE_GROUP,
        "Static members",
        [
            Query(signal="static_members", legend="static members"),
            Query(signal="static_members_absent", legend="of them away"),
            Query(signal="restarting_members", legend="in a loop of restarts"),
            Query(signal="contended_members", legend="contended"),
        ],
    ),
    timeseries_panel(
        ONE_GROUP,
        "Static members replaced",
        [
            Query(signal="static_member_replacements", legend="replaced"),
            Query(signal="static_member_returns", legend="returned"),
            Query(signal="rebalances_saved", legend="without a rebalance"),
        ],
        bars=True,
    ),
    table_panel(
        ONE_GROUP,
        "Members to look at",
        [Query(signal="involved_members")],
        height=6,
        hidden=("cluster", "group"),
    ),
)

_OPTIONAL: Final = (
    timeseries_panel(
        ONE_GROUP,
        "Duration of rebalances",
        [
            Query(signal="rebalance_duration_p50", legend="50 of 100 under"),
            Query(signal="rebalance_duration_p95", legend="95 of 100 under"),
        ],
        span=24,
    ),
)

_MOVED_BY_A_REBALANCE: Final = (
    "Members by protocol",
    "Epochs",
    "Assignment",
    "Lag by partition",
    "Lag by partition in time",
    "Commits",
    "Partitions moved",
)

_EPISODES: Final = (
    Episodes(
        name="Rebalances under way",
        scope=ONE_GROUP,
        over=_MOVED_BY_A_REBALANCE,
        query=Query(signal="rebalancing_seconds", over="%s > 0"),
        colour="orange",
        title="Rebalance of {{group}}",
    ),
    Episodes(
        name="Rebalances completed",
        scope=ONE_GROUP,
        over=_MOVED_BY_A_REBALANCE,
        query=Query(signal="rebalances", over="%s > 0"),
        colour="blue",
        title="Rebalance of {{group}} completed",
    ),
    Episodes(
        name="Alerts",
        scope=ONE_GROUP,
        over=("Lag by partition", "Lag by partition in time", "Commits", "Rebalances", "Ownership"),
        query=Query(signal="firing_alerts"),
        colour="red",
        title="{{alertname}}",
    ),
)

GROUP: Final = Board(
    uid="group-monitor-group",
    title="Kafka groups: Group",
    description="One group: state, members and epochs, lag by partition in records and in time, and its rebalances.",
    variables=(cluster_variable(), group_variable(), topic_variable()),
    episodes=_EPISODES,
    rows=(
        Row("Now", _NOW),
        Row("Membership", _MEMBERSHIP),
        Row("Lag and commits", _LAG),
        Row("Rebalances and ownership", _REBALANCES),
        Row("If it is a share group: deliveries", _SHARES, collapsed=True),
        Row("If configured: durations of rebalances", _OPTIONAL, collapsed=True),
    ),
)
