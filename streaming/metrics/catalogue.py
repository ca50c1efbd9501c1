"""The catalogue of metrics as data: what the exporter feeds and the dashboards read.

A metric stands here with what feeds it, or it does not stand here. Names are stable (docs/metrics.md); all metrics
carry the label `cluster`, which is not repeated in the rows. Those of kafka-lag-exporter carry `cluster_name` as well,
so that dashboards made for it keep working.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

Kind = Literal["gauge", "counter", "histogram"]

CLUSTER: Final = "cluster"
CLUSTER_NAME: Final = "cluster_name"


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One metric.

    Attributes:
        name: as it is exposed; a counter's ends with `_total`.
        kind: its Prometheus type.
        help: one sentence without a full stop.
        labels: label names besides `cluster`, in the order values are given.
    """

    name: str
    kind: Kind
    help: str
    labels: tuple[str, ...]

    @property
    def per_partition(self) -> bool:
        """Whether it is part of what `metrics.partition_series` switches."""
        return {"topic", "partition"} <= set(self.labels)


def _gauge(name: str, text: str, *labels: str) -> Metric:
    return Metric(name=name, kind="gauge", help=text, labels=labels)


def _counter(name: str, text: str, *labels: str) -> Metric:
    return Metric(name=name, kind="counter", help=text, labels=labels)


def _histogram(name: str, text: str, *labels: str) -> Metric:
    return Metric(name=name, kind="histogram", help=text, labels=labels)


_ITS_PYTHON: Final = "of the monitor's own Python process, without Java and Spark's workers"

_GROUPS: Final = (
    _gauge("kafka_group_info", "Always 1; protocol is the assignor chosen or preferred", "group", "type", "protocol"),
    _gauge("kafka_group_state", "1 for the state the group is in", "group", "state"),
    _gauge("kafka_group_epoch", "Group epoch, or generation of a classic group", "group"),
    _gauge("kafka_group_assignment_epoch", "Epoch of the target assignment; not of classic groups", "group"),
    _gauge("kafka_group_members", "Members, by the protocol they use", "group", "protocol"),
)

_REBALANCES: Final = (
    _counter("kafka_group_rebalances_total", "Rebalances completed", "group"),
    _counter("kafka_group_rebalance_rounds_lost_total", "Generations begun and never completed", "group"),
    _counter("kafka_group_partitions_moved_total", "Partitions that changed owner in rebalances", "group"),
    _counter("kafka_group_partitions_kept_total", "Partitions that kept their owner in rebalances", "group"),
    _counter(
        "kafka_group_rebalances_avoidable_total",
        "Rebalances of a scale-up or scale-down beyond the one it needed",
        "group",
    ),
    _histogram(
        "kafka_group_rebalance_duration_seconds",
        "Duration of rebalances; of classic groups from the end of the join phase",
        "group",
    ),
    _gauge(
        "kafka_group_rebalancing_seconds",
        "Age of the rebalance under way, 0 for none; a classic group's log does not show it",
        "group",
    ),
    _gauge(
        "kafka_group_rebalance_stuck",
        "1 while a rebalance is overdue: by the log, of classic groups by what their coordinator answers",
        "group",
    ),
    _gauge(
        "kafka_group_members_not_back",
        "Members that a roll did not bring back, for longer than a restart, up to a day; absent where none is missing",
        "group",
    ),
    _gauge(
        "kafka_group_unsettled_seconds",
        "Since when the group has not been settled: rebalancing, or an epoch moved within a minute; absent when it is",
        "group",
    ),
    _gauge(
        "kafka_group_unsettled_epochs",
        "Epochs, or generations, that went by since then, without follow-up rounds; absent when it is settled",
        "group",
    ),
    _gauge(
        "kafka_group_storm_rebalances",
        "Rebalances of the last five minutes, without follow-up rounds and conversions",
        "group",
    ),
)

_EVENTS: Final = (
    _counter(
        "kafka_group_events_total",
        "Events reported since the monitor's state directory was made or the group was, by kind",
        "group",
        "kind",
    ),
    _counter(
        "kafka_group_silenced_total",
        "Alarms held back because the configuration expects them of the group; 0 as soon as it does",
        "group",
        "kind",
    ),
)

_OWNERSHIP: Final = (
    _gauge("kafka_group_duplicate_partitions", "Partitions held by more than one member", "group"),
    _gauge(
        "kafka_group_assigned_partitions",
        "Partitions of a topic that some member holds; not of streams groups, which hand out tasks",
        *("group", "topic"),
    ),
    _gauge("kafka_group_unassigned_partitions", "Partitions of subscribed topics that no member holds", "group"),
    _counter("kafka_group_stale_claims_total", "Claims of ownership from a former generation", "group"),
    _gauge("kafka_group_static_members", "Members with a group instance id", "group"),
    _gauge("kafka_group_static_members_absent", "Static members that are away and keep their partitions", "group"),
    _counter(
        "kafka_group_static_member_replacements_total",
        "Static members taken over under another member id that had not said they would be back",
        "group",
    ),
    _counter("kafka_group_static_member_returns_total", "Static members that were away and came back", "group"),
    _counter("kafka_group_rebalances_saved_total", "Static members that came back without a rebalance", "group"),
    _gauge(
        "kafka_group_involved_members",
        "1 for each member that a finding is about as long as it holds; no series while nothing is found",
        *("group", "finding", "member_id", "instance_id", "client_id", "client_host"),
    ),
)

_MIGRATION: Final = (
    _gauge("kafka_group_migration_phase", "1 for the phase between the protocols the group is in", "group", "phase"),
    _gauge("kafka_group_migration_upgraded_members", "Members that use the consumer protocol", "group"),
    _gauge(
        "kafka_group_migration_mixed_seconds", "How long both protocols are in use, 0 if not, none if unknown", "group"
    ),
    _counter("kafka_group_conversions_total", "Conversions between the protocols", "group", "direction"),
    _gauge(
        "kafka_group_leftover_records", "Live records of the new protocols under a group that is classic again", "group"
    ),
    _gauge("kafka_group_upgrade_blockers", "1 for each reason a broker would refuse an upgrade for", "group", "reason"),
)

_CLUSTER: Final = (
    _gauge("kafka_cluster_groups", "Groups, by type and state", "type", "state"),
    _gauge(
        "kafka_cluster_leftover_records",
        "Live records of the new protocols that a broker downgrade would meet, by record type",
        "record_type",
    ),
    _gauge(
        "kafka_cluster_gate",
        "1 for the verdict on rolling all groups now (upgrade) or all brokers back (downgrade), as the log has it",
        *("gate", "verdict"),
    ),
    _gauge(
        "kafka_cluster_gate_reasons",
        "Reasons behind the verdict of a gate, by what they do to it",
        *("gate", "effect", "code"),
    ),
    _gauge(
        "kafka_cluster_readiness_groups",
        "Groups by readiness for the consumer protocol, as the log has it: what brokers allow, the plan asks too",
        "readiness",
    ),
)

_OFFSETS: Final = (
    _counter("kafka_group_commits_total", "Offsets committed", "group", "topic"),
    _counter("kafka_group_offset_rewinds_total", "Commits of a smaller offset than the one before", "group", "topic"),
    _counter(
        "kafka_group_offset_resets_total",
        "Rewinds while the group had no members, as an admin's resets are, and such as were back within two seconds",
        "group",
    ),
    _gauge("kafka_group_commit_age_seconds", "Time since the last commit", *("group", "topic", "partition")),
)

_PARTITION: Final = (CLUSTER_NAME, "group", "topic", "partition")

_LAG: Final = (
    _gauge("kafka_consumergroup_group_offset", "Committed offset", *_PARTITION),
    _gauge("kafka_consumergroup_group_lag", "High watermark minus committed offset", *_PARTITION),
    _gauge(
        "kafka_consumergroup_group_stable_lag",
        "Last stable offset minus committed offset, where a transaction keeps it from being the lag",
        *_PARTITION,
    ),
    _gauge(
        "kafka_consumergroup_group_lag_seconds",
        "Age of the record at the committed offset; a lower bound where neither samples nor brokers know more",
        *_PARTITION,
    ),
    _gauge(
        "kafka_consumergroup_group_max_lag",
        "Largest lag of a partition, of those that are known",
        CLUSTER_NAME,
        "group",
    ),
    _gauge(
        "kafka_consumergroup_group_max_lag_seconds",
        "Largest lag in seconds; a lower bound while some partition's is one, or is not known",
        *(CLUSTER_NAME, "group"),
    ),
    _gauge(
        "kafka_consumergroup_group_sum_lag",
        "Lag of all partitions; no sample while that of some partition is not known",
        *(CLUSTER_NAME, "group"),
    ),
    _gauge(
        "kafka_group_unknown_lag_partitions",
        "Partitions with a committed offset whose lag is not known; no sample where there are none",
        "group",
    ),
    _gauge(
        "kafka_group_unsubscribed_lag", "Part of the group's lag that is of topics no member reads any more", "group"
    ),
    _gauge(
        "kafka_consumergroup_group_topic_sum_lag",
        "Lag of a topic's partitions, as the group's sum",
        CLUSTER_NAME,
        "group",
        "topic",
    ),
    _gauge("kafka_partition_latest_offset", "High watermark", CLUSTER_NAME, "topic", "partition"),
    _gauge("kafka_partition_earliest_offset", "First offset that can be read", CLUSTER_NAME, "topic", "partition"),
)

_SHARE_PARTITION: Final = ("group", "topic", "partition")

_SHARES: Final = (
    _gauge("kafka_share_partition_start_offset", "Where delivery begins, as last written", *_SHARE_PARTITION),
    _gauge(
        "kafka_share_partition_redelivered_records",
        "Records to be delivered that were delivered twice or more, in vain",
        *_SHARE_PARTITION,
    ),
    _gauge(
        "kafka_share_partition_max_delivery_count",
        "How often a record to be delivered was delivered, at most",
        *_SHARE_PARTITION,
    ),
    _gauge(
        "kafka_share_partition_stalled_seconds",
        "How long the first offset that is not done has been so while its record waits, 0 where none does",
        *_SHARE_PARTITION,
    ),
    _counter(
        "kafka_share_records_archived_total",
        "Records given up for good, as far back as the share coordinator's log went: limit, rejected, or unclear where "
        "there may have been none",
        *("group", "topic", "why"),
    ),
    _gauge(
        "kafka_share_group_redelivered_records",
        "Records to be delivered that were delivered twice or more, in vain, in all share partitions",
        "group",
    ),
    _gauge(
        "kafka_share_group_stalled_seconds",
        "How long the first offset that is not done has been so, in the share partition where that is longest",
        "group",
    ),
)

_MONITOR: Final = (
    _gauge("group_monitor_replica_lag_records", "Own distance to the end of an offsets partition", "partition"),
    _gauge(
        "group_monitor_open_transaction_records",
        "High watermark minus last stable offset of an offsets partition",
        "partition",
    ),
    _gauge(
        "group_monitor_open_transaction_seconds",
        "Age of the oldest open transaction of an offsets partition, 0 for none",
        "partition",
    ),
    _counter(
        "group_monitor_coordinator_moves_total",
        "Elections of a leader of an offsets partition, which is its groups' coordinator, since this monitor started",
        "partition",
    ),
    _gauge(
        "group_monitor_offsets_partitions_without_leader",
        "Offsets partitions that have no leader and are not read, so that of their groups nothing is known",
    ),
    _gauge(
        "group_monitor_offsets_partitions_not_loaded",
        "Offsets partitions whose coordinator did not load them: the leader answers that it coordinates none of their "
        "groups, for longer than a load takes",
    ),
    _gauge(
        "group_monitor_offsets_partitions_unreadable",
        "Offsets partitions with a batch that cannot be read, whose coordinator has not said since what its groups are",
    ),
    _counter(
        "group_monitor_unreadable_batches_total",
        "Batches of an offsets partition that could not be read and were stepped over",
        "partition",
    ),
    _histogram(
        "group_monitor_record_to_metric_seconds", "From a record's timestamp to its being visible here, once caught up"
    ),
    _counter("group_monitor_unknown_records_total", "Records of types this release does not know", "record_type"),
    _counter("group_monitor_undecodable_records_total", "Records passed over as damaged", "record_type"),
    _counter(
        "group_monitor_newer_value_versions_total",
        "Records of known types whose value has a version newer than this release knows",
        "record_type",
    ),
    _counter(
        "group_monitor_rebuilds_total",
        "Times the log was read again, unread for longer than it keeps tombstones, since this monitor started",
    ),
    _gauge(
        "group_monitor_groups_in_two_partitions",
        "Groups with records in another offsets partition, too, as after the topic was grown; one copy is the group",
    ),
    _gauge(
        "group_monitor_share_orphans",
        "States of share partitions whose group is not there or whose topic was made again; absent where not known",
    ),
    _histogram("group_monitor_batch_seconds", "Duration of micro-batches"),
    _gauge("group_monitor_sink_waiting", "Events, or groups, that a sink has yet to take", "sink"),
    _gauge(
        "group_monitor_sink_waiting_seconds",
        "How long the oldest of what a sink has yet to take has waited, 0 for none",
        "sink",
    ),
    _counter(
        "group_monitor_sink_delivered_total",
        "Events, or groups, that a sink has taken since this monitor started",
        "sink",
    ),
    _counter(
        "group_monitor_sink_dropped_total",
        "Events, or groups, that a sink refused or that went untaken, since this monitor started",
        "sink",
    ),
    _gauge(
        "group_monitor_source_age_seconds",
        "How long ago the monitor last spoke whose topics are served, or the groups were last polled; else absent",
    ),
    _gauge("group_monitor_source_info", "Always 1; where groups are from: the log, or polled by the Admin API", "kind"),
    _gauge(
        "group_monitor_groups_not_described",
        "Polled groups that brokers list but do not describe, so that they are not shown; 0 where the log is read",
    ),
    _counter("process_cpu_seconds_total", f"Processor time used, user and system; {_ITS_PYTHON}"),
    _gauge("process_resident_memory_bytes", f"Resident memory; {_ITS_PYTHON}"),
    _gauge("process_start_time_seconds", f"When it began, since 1970; {_ITS_PYTHON}"),
    _gauge("process_open_fds", f"Open file descriptors; {_ITS_PYTHON}"),
    _gauge("process_max_fds", f"How many file descriptors may be open; {_ITS_PYTHON}"),
    _gauge("group_monitor_build_info", "1, with what the monitor is made of", "version", "python", "spark"),
    _gauge(
        "group_monitor_ready", "1 when caught up with the log's end as it was at start, and not standing still since"
    ),
    _gauge(
        "group_monitor_left_out",
        "Groups and topics that patterns of the configuration keep from page and metrics, or from metrics",
        *("from", "what"),
    ),
    _gauge(
        "group_monitor_partition_series", "1 while there are series per partition, 0 while only sums and maxima are"
    ),
    _gauge("group_monitor_history_bytes", "Size of the history's files; absent where none is kept"),
    _gauge("group_monitor_end_offset_age_seconds", "Age of the last sample of log end offsets"),
)

CATALOGUE: Final[Mapping[str, Metric]] = {
    metric.name: metric
    for metric in (
        *_GROUPS,
        *_REBALANCES,
        *_EVENTS,
        *_OWNERSHIP,
        *_MIGRATION,
        *_CLUSTER,
        *_OFFSETS,
        *_LAG,
        *_SHARES,
        *_MONITOR,
    )
}
"""Name → metric, in the order of the page."""

LOG_ONLY: Final = {of.name for of in (*_REBALANCES, *_OFFSETS, *_SHARES)} | {
    "group_monitor_batch_seconds",
    "group_monitor_coordinator_moves_total",
    "group_monitor_groups_in_two_partitions",
    "group_monitor_newer_value_versions_total",
    "group_monitor_offsets_partitions_not_loaded",
    "group_monitor_offsets_partitions_unreadable",
    "group_monitor_offsets_partitions_without_leader",
    "group_monitor_open_transaction_records",
    "group_monitor_open_transaction_seconds",
    "group_monitor_rebuilds_total",
    "group_monitor_record_to_metric_seconds",
    "group_monitor_replica_lag_records",
    "group_monitor_share_orphans",
    "group_monitor_undecodable_records_total",
    "group_monitor_unknown_records_total",
    "group_monitor_unreadable_batches_total",
    "kafka_cluster_leftover_records",
    "kafka_group_conversions_total",
    "kafka_group_leftover_records",
    "kafka_group_rebalances_saved_total",
    "kafka_group_stale_claims_total",
    "kafka_group_static_member_replacements_total",
    "kafka_group_static_member_returns_total",
}
"""Absent where groups are polled (`source.kind: admin`): only the coordinator's log has what they are made of."""
