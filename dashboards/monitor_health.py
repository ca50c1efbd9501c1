"""The monitor itself: may the other boards be believed."""

from typing import Final

from dashboards import thresholds as at
from dashboards.board import CLUSTERS, Board, Row, cluster_variable
from dashboards.panels import READY_TEXTS, Query, stat_panel, table_panel, timeline_panel, timeseries_panel

_NOW: Final = (
    stat_panel(CLUSTERS, "Ready", Query(signal="ready", legend="{{cluster}}"), texts=READY_TEXTS),
    stat_panel(
        CLUSTERS,
        "Records behind",
        Query(signal="replica_lag_total", legend="{{cluster}}"),
        limit=at.REPLICA_LAG_RECORDS,
        colour="orange",
    ),
    stat_panel(
        CLUSTERS,
        "Record to metric",
        Query(signal="record_to_metric_p95", legend="{{cluster}}", window="5m"),
        limit=at.RECORD_TO_METRIC_SECONDS,
        colour="orange",
    ),
    stat_panel(
        CLUSTERS,
        "Log end age",
        Query(signal="end_offset_age", legend="{{cluster}}"),
        limit=at.END_OFFSET_AGE_SECONDS,
        colour="orange",
    ),
    stat_panel(
        CLUSTERS,
        "Unknown records",
        Query(signal="unknown_records", legend="{{cluster}}", over="sum by (cluster) (%s)", zero_when_ready=True),
        limit=at.NONE,
        colour="orange",
    ),
    stat_panel(
        CLUSTERS,
        "Damaged records",
        Query(signal="undecodable_records", legend="{{cluster}}", over="sum by (cluster) (%s)", zero_when_ready=True),
        limit=at.NONE,
        colour="orange",
    ),
)

_KEEPING_UP: Final = (
    timeline_panel(CLUSTERS, "Readiness", Query(signal="ready", legend="{{cluster}}"), READY_TEXTS, height=4),
    timeseries_panel(
        CLUSTERS,
        "Distance to the end of the log",
        [
            Query(signal="replica_lag_total", legend="{{cluster}}, all partitions"),
            Query(signal="replica_lag", legend="{{cluster}} partition {{partition}}", over="topk(5, %s > 0)"),
        ],
        limit=at.REPLICA_LAG_RECORDS,
        colour="orange",
    ),
    timeseries_panel(
        CLUSTERS,
        "From record to metric",
        [
            Query(signal="record_to_metric_p50", legend="{{cluster}}: 50 of 100 under"),
            Query(signal="record_to_metric_p95", legend="{{cluster}}: 95 of 100 under"),
        ],
        limit=at.RECORD_TO_METRIC_SECONDS,
        colour="orange",
    ),
    timeseries_panel(
        CLUSTERS,
        "Duration of micro-batches",
        [
            Query(signal="batch_p50", legend="{{cluster}}: 50 of 100 under"),
            Query(signal="batch_p95", legend="{{cluster}}: 95 of 100 under"),
        ],
    ),
    timeseries_panel(
        CLUSTERS,
        "Age of log ends",
        [Query(signal="end_offset_age", legend="{{cluster}}")],
        limit=at.END_OFFSET_AGE_SECONDS,
        colour="orange",
    ),
)

_INPUT: Final = (
    timeseries_panel(
        CLUSTERS,
        "Open transactions",
        [Query(signal="open_transactions", legend="{{cluster}} partition {{partition}}", over="topk(15, %s > 0)")],
    ),
    timeseries_panel(
        CLUSTERS,
        "Age of open transactions",
        [
            Query(
                signal="open_transaction_seconds",
                legend="{{cluster}} partition {{partition}}",
                over="topk(15, %s > 0)",
            )
        ],
        limit=at.OPEN_TRANSACTION_SECONDS,
        colour="orange",
    ),
    timeseries_panel(
        CLUSTERS,
        "Coordinators moved",
        [Query(signal="coordinator_moves", legend="{{cluster}} partition {{partition}}", over="topk(15, %s > 0)")],
        span=8,
        bars=True,
    ),
    timeseries_panel(
        CLUSTERS,
        "Partitions without a leader",
        [
            Query(signal="without_leader", legend="{{cluster}}"),
            Query(signal="not_loaded", legend="{{cluster}}, not loaded by their coordinator"),
            Query(signal="unreadable", legend="{{cluster}}, with a batch that cannot be read"),
        ],
        span=8,
        limit=at.NONE,
        colour="red",
    ),
    timeseries_panel(
        CLUSTERS,
        "Log read from the start",
        [Query(signal="rebuilds", legend="{{cluster}}")],
        span=8,
        bars=True,
    ),
    timeseries_panel(
        CLUSTERS,
        "Groups",
        [
            Query(signal="groups", legend="{{cluster}}"),
            Query(signal="not_described", legend="{{cluster}}, polled and not described"),
            Query(signal="polled", legend="{{cluster}}: 1 where groups are polled"),
            Query(signal="in_two_partitions", legend="{{cluster}}, in two offsets partitions"),
            Query(signal="share_orphans", legend="{{cluster}}, share partitions of no group"),
        ],
    ),
    timeseries_panel(
        CLUSTERS,
        "Left out by patterns",
        [Query(signal="left_out", legend="{{cluster}} {{what}}, from {{from}}")],
    ),
    table_panel(
        CLUSTERS,
        "Records not understood",
        [
            Query(signal="unknown_records", legend="of unknown type"),
            Query(signal="undecodable_records", legend="damaged"),
            Query(signal="newer_value_versions", legend="of newer value versions"),
            Query(signal="unreadable_batches", legend="unreadable batches"),
        ],
        height=7,
    ),
)

_OPTIONAL: Final = (
    timeseries_panel(
        CLUSTERS,
        "Silence of the monitor",
        [Query(signal="source_age", legend="{{cluster}}")],
        span=8,
        limit=at.SOURCE_AGE_SECONDS,
    ),
    timeseries_panel(
        CLUSTERS,
        "Series per partition are on",
        [Query(signal="partition_series", legend="{{cluster}}")],
        span=8,
    ),
    timeseries_panel(CLUSTERS, "Size of the history", [Query(signal="history_bytes", legend="{{cluster}}")], span=8),
    timeseries_panel(
        CLUSTERS,
        "Waits for a sink",
        [Query(signal="sink_waiting_seconds", legend="{{cluster}} {{sink}}")],
        limit=at.SINK_WAITING_SECONDS,
        colour="orange",
    ),
    timeseries_panel(CLUSTERS, "Waiting for sinks", [Query(signal="sink_waiting", legend="{{cluster}} {{sink}}")]),
    timeseries_panel(CLUSTERS, "Taken by sinks", [Query(signal="sink_delivered", legend="{{cluster}} {{sink}}")]),
    timeseries_panel(
        CLUSTERS,
        "Given up by sinks",
        [Query(signal="sink_dropped", legend="{{cluster}} {{sink}}")],
        bars=True,
    ),
)

MONITOR_HEALTH: Final = Board(
    uid="group-monitor-monitor-health",
    title="Kafka groups: Monitor health",
    description="Whether the monitor keeps up with the log, how fresh its figures are, and what it did not understand.",
    variables=(cluster_variable(),),
    rows=(
        Row("Now", _NOW),
        Row("Keeping up", _KEEPING_UP),
        Row("What comes in", _INPUT),
        Row("If configured: sinks, serving from topics, history, series", _OPTIONAL, collapsed=True),
    ),
)
