"""What can be asked of the metrics, each question once: name, PromQL, unit, meaning.

Panels, alerts and the runbook speak of signals, never of metrics, so a figure on a board and the alert about it cannot
differ. `promql.py` has the words that stand in the expressions.

Every signal is aggregated to the labels it names: what a scrape adds (`instance`, `job`) is gone, so two monitors of
one cluster show as one.
"""

from collections.abc import Mapping
from typing import Final

from dashboards.promql import COUNT, Signal

STATE_CODES: Final[Mapping[str, int]] = {
    "Empty": 0,
    "Stable": 1,
    "Assigning": 2,
    "Reconciling": 3,
    "NotReady": 4,
}
"""Group state → the number a state timeline draws; states of the log, as Kafka's tools print them."""

PHASE_CODES: Final[Mapping[str, int]] = {
    "classic": 0,
    "downgraded": 1,
    "upgraded": 2,
    "upgrading": 3,
    "downgrading": 4,
    "blocked": 5,
}
"""Phase of a migration → the number a state timeline draws. Of several in a step the largest is drawn: what is under
way hides what is at rest, so that a conversion of seconds is seen."""

LEFTOVER_TYPES: Final[Mapping[str, str]] = {"consumer": "[3-8]|16", "share": "1[0-5]", "streams": "17|19|2[0-3]"}
"""Group type → its record types, as a regular expression (CoordinatorRecordType, 4.3.1)."""

VERDICT_CODES: Final[Mapping[str, int]] = {"open": 0, "cannot_tell": 1, "closed": 2}
"""Verdict of a gate → the number that is drawn."""

BUILT_IN: Final = frozenset({"ALERTS"})
"""Series that Prometheus itself makes."""


def _coded(metric: str, label: str, codes: Mapping[str, int]) -> str:
    values = " or ".join(f'{metric}{{GROUP, {label}="{value}"}} * {code}' for value, code in codes.items())
    return f"max by (cluster, group) ({values})"


def _leftovers(type_: str, record_types: str) -> str:
    found = f'sum by (cluster) (kafka_cluster_leftover_records{{CLUSTER, record_type=~"{record_types}"}})'
    return f'label_replace({found}, "type", "{type_}", "", "")'


def _new(metric: str, of: str = "{CLUSTER}", labels: str = "cluster, record_type") -> str:
    """What a counter gained, also where its series is new: `increase` sees no birth."""
    total = f"max by ({labels}) ({metric}{of}"
    grown = f"max by ({labels}) (increase({metric}{of}[WINDOW])) > 0"
    return f"({grown} or ({total}) unless {total} offset WINDOW)))"


_C: Final = ("cluster",)
_G: Final = ("cluster", "group")
_T: Final = ("cluster", "group", "topic")
_P: Final = ("cluster", "group", "topic", "partition")
_LAG: Final = "kafka_consumergroup_group"
_READ_LAG: Final = (
    "(max by (cluster, group) (kafka_consumergroup_group_sum_lag{GROUP}) - on (cluster, group) "
    "max by (cluster, group) (kafka_group_unsubscribed_lag{GROUP}))"
)


_UNKNOWN_LAG: Final = "max by (cluster, group) (kafka_group_unknown_lag_partitions{GROUP}"
_WRITTEN_TO: Final = "max by (cluster, topic) (kafka_group_commits_total{GROUP})"


def _held(alert: str) -> str:
    """0 for a group of which an alert is open, while the growth of its lag is unknown: that needs both ends of it."""
    was_open = f'max by (cluster, group) (ALERTS{{GROUP, alertname="{alert}"}})'
    cannot_tell = f"({_UNKNOWN_LAG}) > 0 or {_UNKNOWN_LAG} offset WINDOW) > 0)"
    return f"({was_open} * 0 and on (cluster, group) {cannot_tell})"


def _signal(name: str, expr: str, unit: str, meaning: str, labels: tuple[str, ...] = _G) -> Signal:
    return Signal(name=name, expr=expr, unit=unit, meaning=meaning, labels=labels)


def _gauge(name: str, metric: str, meaning: str, unit: str = COUNT, labels: tuple[str, ...] = _G) -> Signal:
    return _signal(name, f"max by ({', '.join(labels)}) ({metric}{{GROUP}})", unit, meaning, labels)


def _expects(name: str, kind: str, meaning: str) -> Signal:
    return _signal(
        name, f'max by (cluster, group) (kafka_group_silenced_total{{GROUP, kind="{kind}"}}) >= 0', COUNT, meaning
    )


def _increase(name: str, metric: str, meaning: str, labels: tuple[str, ...] = _G, of: str = "{GROUP}") -> Signal:
    return _signal(name, f"({_gained(metric, labels, of)})", COUNT, meaning, labels)


def _gained(metric: str, labels: tuple[str, ...], of: str = "{GROUP}") -> str:
    """What a counter of a group gained. Its series begins with its first count, which `increase` does not see.

    The group has to be known since before: what comes back with the monitor, after an outage, was not gained then.
    """
    by = f"max by ({', '.join(labels)})"
    known = "max by (cluster, group) (kafka_group_info{GROUP} offset WINDOW)"
    born = f"{by} ({metric}{of}) unless {by} ({metric}{of} offset WINDOW) and on (cluster, group) {known}"
    return f"{born} or {by} (increase({metric}{of}[WINDOW]))"


def _quantile(name: str, quantile: float, metric: str, meaning: str, labels: tuple[str, ...] = _G) -> Signal:
    word = "GROUP" if "group" in labels else "CLUSTER"
    rates = f"sum by ({', '.join((*labels, 'le'))}) (rate({metric}_bucket{{{word}}}[WINDOW]))"
    return _signal(name, f"histogram_quantile({quantile}, {rates})", "s", meaning, labels)


_GROUPS: Final = (
    _gauge(
        "group_info",
        "kafka_group_info",
        "Type of the group and its assignor, empty for the broker's default.",
        labels=(*_G, "type", "protocol"),
    ),
    _gauge("group_state", "kafka_group_state", "State as Kafka's own tools print it.", labels=(*_G, "state")),
    _signal(
        "state_code", _coded("kafka_group_state", "state", STATE_CODES), COUNT, "State as Kafka's own tools print it."
    ),
    _signal(
        "groups_in_state",
        "sum by (cluster, type, state) (kafka_cluster_groups{CLUSTER})",
        COUNT,
        "Groups by type and state; the broker's own group-count counts the same.",
        ("cluster", "type", "state"),
    ),
    _signal("groups", "sum by (cluster) (kafka_cluster_groups{CLUSTER})", COUNT, "Groups a broker would list.", _C),
    _signal(
        "groups_unsettled",
        'sum by (cluster) (kafka_cluster_groups{CLUSTER, state!~"Empty|Stable"}) or sum by (cluster) '
        "(kafka_cluster_groups{CLUSTER}) * 0",
        COUNT,
        "Groups between two assignments: neither Stable nor Empty.",
        _C,
    ),
    _signal(
        "empty",
        'max by (cluster, group) (kafka_group_state{GROUP, state="Empty"})',
        COUNT,
        "1 for a group without members.",
    ),
    _signal(
        "recently_active",
        'max by (cluster, group) (last_over_time(kafka_group_state{GROUP, state!~"Empty|Dead"}[WINDOW]))',
        COUNT,
        "1 for a group that had members within the time looked back over.",
    ),
    _gauge("group_epoch", "kafka_group_epoch", "Group epoch, or the generation of a classic group."),
    _gauge(
        "assignment_epoch",
        "kafka_group_assignment_epoch",
        "Epoch of the target assignment; behind the group epoch while the assignor is at work.",
    ),
    _gauge(
        "members",
        "kafka_group_members",
        "Members by the protocol they speak with the broker.",
        labels=(*_G, "protocol"),
    ),
    _signal("member_count", "sum by (cluster, group) (kafka_group_members{GROUP})", COUNT, "Members of the group."),
    _signal(
        "most_members",
        "max_over_time((sum by (cluster, group) (kafka_group_members{GROUP}))[WINDOW:15s])",
        COUNT,
        "The most members that the group had within the time looked back over.",
    ),
    _signal(
        "members_total",
        "sum by (cluster, protocol) (kafka_group_members{GROUP})",
        COUNT,
        "Members of all groups by the protocol they speak.",
        ("cluster", "protocol"),
    ),
    _signal(
        "classic_members",
        'sum by (cluster) (kafka_group_members{GROUP, protocol="classic"})',
        COUNT,
        "Members that speak the classic protocol: in an upgrade those that remain.",
        _C,
    ),
    _signal(
        "members_changed",
        "sum by (cluster, group) (changes(kafka_group_members{GROUP}[WINDOW]))",
        COUNT,
        "How often the number of members of either protocol changed.",
    ),
)

_REBALANCES: Final = (
    _increase("rebalances", "kafka_group_rebalances_total", "Rebalances completed."),
    _increase(
        "rebalances_avoidable",
        "kafka_group_rebalances_avoidable_total",
        "Rebalances of a scale-up or scale-down beyond the one it needed, as its members came or went one by one.",
    ),
    _increase(
        "rounds_lost",
        "kafka_group_rebalance_rounds_lost_total",
        "Generations of a classic group that were begun and never completed.",
    ),
    _increase("partitions_moved", "kafka_group_partitions_moved_total", "Partitions that changed owner in rebalances."),
    _increase(
        "partitions_kept", "kafka_group_partitions_kept_total", "Partitions that kept their owner in rebalances."
    ),
    _gauge(
        "rebalance_stuck",
        "kafka_group_rebalance_stuck",
        "1 while a rebalance is overdue: beyond a member's own rebalance timeout, or without a target; of classic "
        "groups as their coordinator answers.",
    ),
    _gauge(
        "members_not_back",
        "kafka_group_members_not_back",
        "Members that the group's roll did not bring back, for longer than a restart and up to a day; nothing where "
        "none is missing.",
    ),
    _gauge(
        "unsettled_seconds",
        "kafka_group_unsettled_seconds",
        "How long the group has not come to rest: rebalancing, or an epoch moved within a minute; nothing when it has.",
        "s",
    ),
    _gauge(
        "unsettled_epochs",
        "kafka_group_unsettled_epochs",
        "Epochs that went by since the group was last at rest, without follow-up rounds of cooperative rebalances.",
    ),
    _gauge(
        "storm_rebalances",
        "kafka_group_storm_rebalances",
        "Rebalances of the last five minutes, without follow-up rounds and conversions.",
    ),
    _signal(
        "open_storm",
        'max by (cluster, group) (ALERTS{GROUP, alertname="KafkaGroupRebalanceStorm", alertstate="firing"})',
        COUNT,
        "There while KafkaGroupRebalanceStorm fires.",
    ),
    _increase(
        "silenced",
        "kafka_group_silenced_total",
        "Alarms held back because they are expected of the group, by kind.",
        (*_G, "kind"),
    ),
    _expects("sharing_expected", "duplicate_assignment", "There for groups that share partitions by design."),
    _expects("rewinds_expected", "offset_rewound", "There for groups whose members seek back."),
    _expects("restarts_expected", "rebalance_storm", "There for groups that are restarted all the time."),
    _expects("fewer_expected", "members_not_back", "There for groups whose next roll leaves them with fewer members."),
    _increase("events", "kafka_group_events_total", "Events of the group, by kind.", (*_G, "kind")),
    _quantile(
        "rebalance_duration_p50",
        0.5,
        "kafka_group_rebalance_duration_seconds",
        "Duration that half of the rebalances keep under; of classic groups from the end of the join phase. "
        "Empty unless `metrics.rebalance_histogram` is on; it is off by default.",
    ),
    _quantile(
        "rebalance_duration_p95",
        0.95,
        "kafka_group_rebalance_duration_seconds",
        "Duration that 95 of 100 rebalances keep under; of classic groups from the end of the join phase. "
        "Empty unless `metrics.rebalance_histogram` is on; it is off by default.",
    ),
    _gauge(
        "rebalancing_seconds",
        "kafka_group_rebalancing_seconds",
        "Age of the rebalance under way, 0 for none; a classic group's log does not show it.",
        "s",
    ),
)

_OWNERSHIP: Final = (
    _gauge("duplicate_partitions", "kafka_group_duplicate_partitions", "Partitions that two members own at once."),
    _gauge(
        "assigned_partitions",
        "kafka_group_assigned_partitions",
        "Partitions of a topic that some member holds, one that two hold counted once; not of streams groups.",
        labels=_T,
    ),
    _gauge(
        "unassigned_partitions",
        "kafka_group_unassigned_partitions",
        "Partitions of subscribed topics that no member owns, so they are not read.",
    ),
    _increase(
        "stale_claims",
        "kafka_group_stale_claims_total",
        "Claims, made while joining, on partitions of an earlier generation (KIP-792).",
    ),
    _gauge("static_members", "kafka_group_static_members", "Members with a group.instance.id."),
    _gauge(
        "static_members_absent",
        "kafka_group_static_members_absent",
        "Static members that are away while their partitions wait for them; a classic group's log does not show it.",
    ),
    _increase(
        "static_member_replacements",
        "kafka_group_static_member_replacements_total",
        "Static members taken over under another member id that had not said they would be back.",
    ),
    _increase(
        "static_member_returns",
        "kafka_group_static_member_returns_total",
        "Static members that were away and came back; a classic group's log does not show it.",
    ),
    _increase(
        "rebalances_saved",
        "kafka_group_rebalances_saved_total",
        "Static members that came back without a rebalance, by either way: what static membership is for (KIP-345).",
    ),
)

_INVOLVED: Final = (
    _gauge(
        "involved_members",
        "kafka_group_involved_members",
        "Members that a finding is about, as long as it holds: two owners of a partition, a static member away or "
        "contended, one that holds up a rebalance or exceeds its poll interval.",
        labels=(*_G, "finding", "member_id", "instance_id", "client_id", "client_host"),
    ),
    _signal(
        "contended_members",
        "count by (cluster, group) (max by (cluster, group, member_id) (kafka_group_involved_members{GROUP, "
        'finding="static_member_contended"}))',
        COUNT,
        "Instance ids that two processes take from each other.",
    ),
    _signal(
        "restarting_members",
        "count by (cluster, group) (max by (cluster, group, member_id) (kafka_group_involved_members{GROUP, "
        'finding="static_member_restarting"}))',
        COUNT,
        "Instance ids that one process takes again and again.",
    ),
    _signal(
        "slow_pollers",
        "count by (cluster, group) (max by (cluster, group, client_id, client_host) (max_over_time("
        'kafka_group_involved_members{GROUP, finding="poll_interval_exceeded"}[WINDOW])))',
        COUNT,
        "Processes that leave and join again and again, each time after their poll interval, within the time looked "
        "back over.",
    ),
)

_MIGRATION: Final = (
    _signal(
        "phase_code",
        _coded("kafka_group_migration_phase", "phase", PHASE_CODES),
        COUNT,
        "Phase between the classic and the consumer protocol (KIP-848); blocked: a broker would refuse to convert.",
    ),
    _signal(
        "groups_in_phase",
        "count by (cluster, phase) (max by (cluster, group, phase) (kafka_group_migration_phase{GROUP}))",
        COUNT,
        "Classic and consumer groups by phase of the migration.",
        ("cluster", "phase"),
    ),
    _signal(
        "downgrading",
        'max by (cluster, group) (kafka_group_migration_phase{GROUP, phase="downgrading"})',
        COUNT,
        "1 for a group whose members go back to the classic protocol.",
    ),
    _gauge(
        "upgraded_members",
        "kafka_group_migration_upgraded_members",
        "Members that use the consumer protocol.",
    ),
    _signal(
        "upgraded_share",
        "sum by (cluster) (kafka_group_migration_upgraded_members{GROUP}) / (sum by (cluster) "
        "(sum by (cluster, group) (kafka_group_members{GROUP}) and on (cluster, group) "
        "kafka_group_migration_upgraded_members{GROUP}) > 0)",
        "percentunit",
        "Share of the members of classic and consumer groups that use the consumer protocol.",
        _C,
    ),
    _signal(
        "group_upgraded_share",
        "max by (cluster, group) (kafka_group_migration_upgraded_members{GROUP}) / on (cluster, group) "
        "(sum by (cluster, group) (kafka_group_members{GROUP}) > 0)",
        "percentunit",
        "Share of the group's members that use the consumer protocol.",
    ),
    _gauge(
        "mixed_seconds",
        "kafka_group_migration_mixed_seconds",
        "How long members of both protocols are in the group, 0 if they are not.",
        "s",
    ),
    _increase(
        "upgrades",
        "kafka_group_conversions_total",
        "Conversions of the group to the consumer protocol.",
        of='{GROUP, direction="upgrade"}',
    ),
    _signal(
        "unclean_upgrades",
        _new("kafka_group_events_total", of='{GROUP, kind="upgrade_unclean"}', labels="cluster, group"),
        COUNT,
        "Online upgrades that did not carry over epoch, members, assignments or offsets as they were.",
    ),
    _increase(
        "downgrades",
        "kafka_group_conversions_total",
        "Conversions of the group back to the classic protocol.",
        of='{GROUP, direction="downgrade"}',
    ),
    _gauge(
        "upgrade_blockers",
        "kafka_group_upgrade_blockers",
        "Reasons for which a broker would refuse to convert the group.",
        labels=(*_G, "reason"),
    ),
    _signal(
        "leftover_records",
        "max by (cluster, record_type) (kafka_cluster_leftover_records{CLUSTER})",
        COUNT,
        "Live records of the new protocols, which a broker without them would meet (KIP-915); normal while such groups "
        "exist.",
        ("cluster", "record_type"),
    ),
    _gauge(
        "group_leftovers",
        "kafka_group_leftover_records",
        "Live records of the new protocols under a group that is classic again.",
    ),
    _signal(
        "unclean_leftovers",
        "(" + " or ".join(_leftovers(*row) for row in LEFTOVER_TYPES.items()) + ") unless on (cluster, type) "
        "sum by (cluster, type) (kafka_cluster_groups{CLUSTER})",
        COUNT,
        "Records of a group type of which there is no group left: what a downgrade did not take along.",
        ("cluster", "type"),
    ),
    _signal(
        "gate_code",
        "max by (cluster, gate) ("
        + " or ".join(
            f'kafka_cluster_gate{{CLUSTER, verdict="{verdict}"}} * {code}' for verdict, code in VERDICT_CODES.items()
        )
        + ")",
        COUNT,
        "May consumers (upgrade) or brokers (downgrade) be rolled now, as far as the log shows; what only brokers know "
        "is asked by `group-monitor gate`.",
        ("cluster", "gate"),
    ),
    _signal(
        "gate_reasons",
        "max by (cluster, gate, effect, code) (kafka_cluster_gate_reasons{CLUSTER})",
        COUNT,
        "Reasons behind the verdict of a gate: how many groups, or records, say stop, unknown or note.",
        ("cluster", "gate", "effect", "code"),
    ),
    _signal(
        "readiness_groups",
        "max by (cluster, readiness) (kafka_cluster_readiness_groups{CLUSTER})",
        COUNT,
        "Groups by readiness for the consumer protocol, as far as the log shows; reasons and waves are in "
        "`group-monitor plan`.",
        ("cluster", "readiness"),
    ),
)

_OFFSETS: Final = (
    _signal(
        "commits",
        "sum by (cluster, group) (increase(kafka_group_commits_total{GROUP}[WINDOW]))",
        COUNT,
        "Offsets committed.",
    ),
    _signal(
        "commits_without_members",
        # Of polled groups only offsets are known, and only where there are series per partition.
        "(sum by (cluster, group) (increase(kafka_group_commits_total{GROUP}[WINDOW])) or "
        f"sum by (cluster, group) (changes({_LAG}_offset{{GROUP}}[WINDOW]))) unless on (cluster, group) "
        "sum by (cluster, group) (max_over_time(kafka_group_members{GROUP}[WINDOW])) > 0",
        COUNT,
        "Offsets committed while the group had no members: a consumer runs that joins no group, as Flink's.",
    ),
    _signal(
        "commit_rate",
        "sum by (cluster, group, topic) (rate(kafka_group_commits_total{GROUP}[WINDOW]))",
        "cps",
        "Offsets committed per second.",
        _T,
    ),
    _increase("rewinds", "kafka_group_offset_rewinds_total", "Commits of a smaller offset than the one before.", _T),
    _signal(
        "group_rewinds",
        f"sum by (cluster, group) ({_gained('kafka_group_offset_rewinds_total', _T)})",
        COUNT,
        "The same of all topics of the group.",
    ),
    _increase(
        "resets",
        "kafka_group_offset_resets_total",
        "Rewinds while the group had no members, as an admin's resets are, and such as were back within two seconds.",
    ),
    _gauge("commit_age", "kafka_group_commit_age_seconds", "Time since the last commit.", "s", _P),
    _gauge("committed_offset", f"{_LAG}_offset", "Committed offset: the next record to be read.", COUNT, _P),
    _gauge("lag", f"{_LAG}_lag", "Records between the committed offset and the end of the partition.", labels=_P),
    _gauge(
        "lag_seconds",
        f"{_LAG}_lag_seconds",
        "Age of the record at the committed offset; a lower bound where neither samples nor brokers know more.",
        "s",
        _P,
    ),
    _gauge(
        "stable_lag",
        f"{_LAG}_stable_lag",
        "Lag of readers of committed records, where an open transaction keeps it from being the lag.",
        labels=_P,
    ),
    _gauge(
        "max_lag", f"{_LAG}_max_lag", "Largest lag of a partition of the group, in records, of those that are known."
    ),
    _gauge(
        "max_lag_seconds",
        f"{_LAG}_max_lag_seconds",
        "Largest lag of a partition of the group, in seconds; a lower bound while some partition's is one, or unknown.",
        "s",
    ),
    _gauge("sum_lag", f"{_LAG}_sum_lag", "Lag of all partitions of the group, in records; none while some is unknown."),
    _gauge("topic_lag", f"{_LAG}_topic_sum_lag", "Lag of a topic's partitions, in records, as above.", labels=_T),
    _gauge(
        "unknown_lag_partitions",
        "kafka_group_unknown_lag_partitions",
        "Partitions of the group's commits whose lag is not known.",
    ),
    _gauge(
        "unsubscribed_lag",
        "kafka_group_unsubscribed_lag",
        "Part of the group's lag in topics that no member reads any more: it grows, and needs no action.",
    ),
    _gauge(
        "share_start_offset",
        "kafka_share_partition_start_offset",
        "Offset at which a share group's delivery begins, as last written: what is done behind it does not show yet.",
        labels=_P,
    ),
    _gauge(
        "share_redelivered",
        "kafka_share_partition_redelivered_records",
        "Records to be delivered that were delivered twice or more, in vain.",
        labels=_P,
    ),
    _gauge(
        "share_max_deliveries",
        "kafka_share_partition_max_delivery_count",
        "How often a record to be delivered was delivered, at most: at the limit it is given up.",
        labels=_P,
    ),
    _gauge(
        "share_partition_stalled",
        "kafka_share_partition_stalled_seconds",
        "How long the first offset that is not done has been so while its record waits.",
        "s",
        _P,
    ),
    _gauge(
        "share_group_redelivered",
        "kafka_share_group_redelivered_records",
        "Records of the share group to be delivered that were delivered twice or more, in vain.",
    ),
    _gauge(
        "share_group_stalled",
        "kafka_share_group_stalled_seconds",
        "How long the first offset that is not done has been so, in the share partition where that is longest.",
        "s",
    ),
    _increase(
        "share_stalls",
        "kafka_group_events_total",
        "Share partitions that did not get on though records waited, and those that got over it.",
        of='{GROUP, kind="share_partition_stalled"}',
    ),
    _increase(
        "share_given_up",
        "kafka_share_records_archived_total",
        "Records of a share group that were given up for good, without those of which there may have been none.",
        ("cluster", "group", "topic", "why"),
        '{GROUP, why!="unclear"}',
    ),
    _increase(
        "share_archived",
        "kafka_share_records_archived_total",
        "Records of a share group that were given up for good: at the limit of deliveries, or rejected; unclear where "
        "there may have been none.",
        ("cluster", "group", "topic", "why"),
    ),
    _signal(
        "lag_growth",
        # Differences, not `delta`: that reaches beyond the samples and makes records that were never written.
        f"{_READ_LAG} - ({_READ_LAG.replace('{GROUP}', '{GROUP} offset WINDOW')})",
        COUNT,
        "By how many records the group's lag grew, without topics that no member reads any more.",
    ),
    _signal(
        "held_growing",
        _held("KafkaGroupLagGrowingWithoutCommits"),
        COUNT,
        "0 where KafkaGroupLagGrowingWithoutCommits is open, and whether lag still grows is not known.",
    ),
    _signal(
        "held_stopped",
        _held("KafkaGroupConsumerStopped"),
        COUNT,
        "0 where KafkaGroupConsumerStopped is open, and whether lag still grows is not known.",
    ),
    _signal(
        "write_rate",
        "sum by (cluster, topic) (max by (cluster, topic, partition) (rate(kafka_partition_latest_offset{CLUSTER}"
        f"[WINDOW]))) and on (cluster, topic) {_WRITTEN_TO}",
        "wps",
        "Records written per second to the topics the group has committed offsets of.",
        ("cluster", "topic"),
    ),
    _signal(
        "retention_margin",
        f"max by (cluster, group, topic, partition) ({_LAG}_offset{{GROUP}}) - on (cluster, topic, partition) "
        "group_left () max by (cluster, topic, partition) (kafka_partition_earliest_offset{CLUSTER})",
        COUNT,
        "Records between the start of the log and the committed offset; below 0, records were deleted unread.",
        _P,
    ),
)

_MONITOR: Final = (
    _signal(
        "ready",
        "min by (cluster) (group_monitor_ready{CLUSTER})",
        COUNT,
        "1 once the monitor has read the log up to its end as it was at start, 0 again while its stream stands still.",
        _C,
    ),
    _signal(
        "ready_throughout",
        "min by (cluster) (min_over_time(group_monitor_ready{CLUSTER}[WINDOW]))",
        COUNT,
        "1 if the monitor was ready all the time looked back over: what it counted while catching up is history.",
        _C,
    ),
    _signal(
        "monitor_gone",
        "(max by (cluster) (last_over_time(group_monitor_ready{CLUSTER}[WINDOW])) unless on (cluster) "
        "max by (cluster) (group_monitor_ready{CLUSTER}) or on () absent(group_monitor_ready{CLUSTER}))",
        COUNT,
        "A value for each cluster that was monitored within the time looked back over and is not now.",
        _C,
    ),
    _signal(
        "replica_lag",
        "max by (cluster, partition) (group_monitor_replica_lag_records{CLUSTER})",
        COUNT,
        "The monitor's own distance to the end of each partition of __consumer_offsets.",
        ("cluster", "partition"),
    ),
    _signal(
        "replica_lag_total",
        "sum by (cluster) (max by (cluster, partition) (group_monitor_replica_lag_records{CLUSTER}))",
        COUNT,
        "The monitor's own distance to the end of __consumer_offsets.",
        _C,
    ),
    _quantile(
        "record_to_metric_p50",
        0.5,
        "group_monitor_record_to_metric_seconds",
        "From a record's timestamp to its being visible here: half of the records keep under it.",
        _C,
    ),
    _quantile(
        "record_to_metric_p95",
        0.95,
        "group_monitor_record_to_metric_seconds",
        "From a record's timestamp to its being visible here: 95 of 100 records keep under it.",
        _C,
    ),
    _quantile("batch_p50", 0.5, "group_monitor_batch_seconds", "Duration half of the micro-batches keep under.", _C),
    _quantile("batch_p95", 0.95, "group_monitor_batch_seconds", "Duration 95 of 100 micro-batches keep under.", _C),
    _signal(
        "open_transactions",
        "max by (cluster, partition) (group_monitor_open_transaction_records{CLUSTER})",
        COUNT,
        "High watermark minus last stable offset of a partition of __consumer_offsets: commits there wait for a "
        "transaction.",
        ("cluster", "partition"),
    ),
    _signal(
        "open_transaction_seconds",
        "max by (cluster, partition) (group_monitor_open_transaction_seconds{CLUSTER})",
        "s",
        "Age of the oldest open transaction of a partition of __consumer_offsets, 0 for none.",
        ("cluster", "partition"),
    ),
    _signal(
        "coordinator_moves",
        "max by (cluster, partition) (increase(group_monitor_coordinator_moves_total{CLUSTER}[WINDOW]))",
        COUNT,
        "Elections of a leader of a partition of __consumer_offsets: its groups' coordinator moved, and their timers "
        "started again.",
        ("cluster", "partition"),
    ),
    _signal(
        "without_leader",
        "max by (cluster) (group_monitor_offsets_partitions_without_leader{CLUSTER})",
        COUNT,
        "Partitions of __consumer_offsets that have no leader: what is shown of their groups is as it was, and gates "
        "cannot tell.",
        _C,
    ),
    _signal(
        "not_loaded",
        "max by (cluster) (group_monitor_offsets_partitions_not_loaded{CLUSTER})",
        COUNT,
        "Partitions of __consumer_offsets whose leader did not load them: their groups neither join nor commit.",
        _C,
    ),
    _signal(
        "unreadable",
        "max by (cluster) (group_monitor_offsets_partitions_unreadable{CLUSTER})",
        COUNT,
        "Partitions of __consumer_offsets with a batch that cannot be read: their groups are in doubt, and gates "
        "cannot tell, until their coordinator confirms what is shown.",
        _C,
    ),
    _signal(
        "unreadable_batches",
        "max by (cluster, partition) (group_monitor_unreadable_batches_total{CLUSTER})",
        COUNT,
        "Batches of a partition of __consumer_offsets that could not be read, since the log's beginning.",
        ("cluster", "partition"),
    ),
    _signal(
        "rebuilds",
        "max by (cluster) (increase(group_monitor_rebuilds_total{CLUSTER}[WINDOW]))",
        COUNT,
        "Times the monitor read the log from its beginning, because it was away longer than tombstones are kept.",
        _C,
    ),
    _signal(
        "share_orphans",
        "max by (cluster) (group_monitor_share_orphans{CLUSTER})",
        COUNT,
        "States of share partitions whose group is not there, or whose topic was made again.",
        _C,
    ),
    _signal(
        "in_two_partitions",
        "max by (cluster) (group_monitor_groups_in_two_partitions{CLUSTER})",
        COUNT,
        "Groups with records in another partition of __consumer_offsets, too, as after it was grown: one copy is the "
        "group.",
        _C,
    ),
    _signal(
        "unknown_records",
        "max by (cluster, record_type) (group_monitor_unknown_records_total{CLUSTER})",
        COUNT,
        "Records of types this release does not know, since the log's beginning.",
        ("cluster", "record_type"),
    ),
    _signal(
        "undecodable_records",
        "max by (cluster, record_type) (group_monitor_undecodable_records_total{CLUSTER})",
        COUNT,
        "Records that were passed over as damaged, since the log's beginning.",
        ("cluster", "record_type"),
    ),
    _signal(
        "newer_value_versions",
        "max by (cluster, record_type) (group_monitor_newer_value_versions_total{CLUSTER})",
        COUNT,
        "Records of known types with a value newer than this release knows, since the log's beginning.",
        ("cluster", "record_type"),
    ),
    _signal(
        "new_newer_value_versions",
        _new("group_monitor_newer_value_versions_total"),
        COUNT,
        "Records of known types with a value newer than this release knows.",
        ("cluster", "record_type"),
    ),
    _signal(
        "new_unknown_records",
        _new("group_monitor_unknown_records_total"),
        COUNT,
        "Records of types this release does not know.",
        ("cluster", "record_type"),
    ),
    _signal(
        "new_undecodable_records",
        _new("group_monitor_undecodable_records_total"),
        COUNT,
        "Records that were passed over as damaged.",
        ("cluster", "record_type"),
    ),
    _signal(
        "source_age",
        "max by (cluster) (group_monitor_source_age_seconds{CLUSTER})",
        "s",
        "How long ago the monitor last spoke whose topics are served (`group-monitor serve`), or groups were polled.",
        _C,
    ),
    _signal(
        "polled",
        'max by (cluster) (group_monitor_source_info{CLUSTER, kind="admin"})',
        COUNT,
        "1 where groups are polled: what only the log has is not known.",
        _C,
    ),
    _signal(
        "not_described",
        "max by (cluster) (group_monitor_groups_not_described{CLUSTER})",
        COUNT,
        "Polled groups that brokers list but do not describe, so that they are not shown.",
        _C,
    ),
    _signal(
        "sink_waiting",
        "max by (cluster, sink) (group_monitor_sink_waiting{CLUSTER})",
        COUNT,
        "Events, or groups, that a sink has yet to take.",
        ("cluster", "sink"),
    ),
    _signal(
        "sink_waiting_seconds",
        "max by (cluster, sink) (group_monitor_sink_waiting_seconds{CLUSTER})",
        "s",
        "How long the oldest of what a sink has yet to take has waited.",
        ("cluster", "sink"),
    ),
    _signal(
        "sink_delivered",
        "max by (cluster, sink) (rate(group_monitor_sink_delivered_total{CLUSTER}[WINDOW]))",
        "cps",
        "Events, or groups, that a sink takes a second.",
        ("cluster", "sink"),
    ),
    _signal(
        "sink_dropped",
        "max by (cluster, sink) (increase(group_monitor_sink_dropped_total{CLUSTER}[WINDOW]))",
        COUNT,
        "Events, or groups, that a sink refused, or that went untaken because too much waited.",
        ("cluster", "sink"),
    ),
    _signal(
        "left_out",
        "max by (cluster, from, what) (group_monitor_left_out{CLUSTER})",
        COUNT,
        "Groups and topics that patterns of the configuration leave out of page and metrics, or of metrics.",
        ("cluster", "from", "what"),
    ),
    _signal(
        "partition_series",
        "min by (cluster) (group_monitor_partition_series{CLUSTER})",
        COUNT,
        "1 while there are series per partition; 0 where they would be more than `metrics.partition_series_limit`.",
        _C,
    ),
    _signal(
        "history_bytes",
        "max by (cluster) (group_monitor_history_bytes{CLUSTER})",
        "bytes",
        "Size of the files in which events and groups are kept; none where no history is.",
        _C,
    ),
    _signal(
        "end_offset_age",
        "max by (cluster) (group_monitor_end_offset_age_seconds{CLUSTER})",
        "s",
        "Age of the last sample of log end offsets: lag is as old as this.",
        _C,
    ),
    _signal(
        "firing_alerts",
        'max by (alertname, severity, cluster, group, topic, partition) (ALERTS{GROUP, alertname=~"KafkaGroup.+", '
        'alertstate="firing"})',
        COUNT,
        "Alerts that Prometheus holds to be firing; none where the rules are not loaded.",
        ("alertname", "severity", "cluster", "group", "topic", "partition"),
    ),
)

SIGNALS: Final[Mapping[str, Signal]] = {
    signal.name: signal
    for signal in (*_GROUPS, *_REBALANCES, *_OWNERSHIP, *_INVOLVED, *_MIGRATION, *_OFFSETS, *_MONITOR)
}
"""Name → signal."""
