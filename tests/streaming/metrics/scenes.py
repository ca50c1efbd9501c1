"""Boards with something of everything between them, each of one subject, with the samples that it has and has not.

What is added to a scene moves the values of that scene alone: figures of the whole cluster have one of their own.
"""

import json
import platform
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Final

from coordinator_model.clocked.not_back import NotBack
from coordinator_model.state.rule_memory import GroupCounters
from lab import builders
from lab.builders import RecordBytes
from lab.coordinator_events import share_join
from lab.share_state import share_snapshot, share_update
from streaming.base.batch_rows import Row
from streaming.base.expectations import Expectations, Expected
from streaming.base.output_status import SinkState
from streaming.base.version import release
from streaming.board.board import Board
from streaming.end_offsets.store import EndOffsets, Topic
from tests.streaming.board_rows import Shard, ShareShard
from tests.streaming.boards import (
    CLUSTER,
    NOW_MS,
    OFFSETS_TOPIC,
    THEN_MS,
    board_of,
    caught_up,
    classic_group,
    described,
    log_ends,
    sample,
    shares_read,
)

Labels = Mapping[str, str]


@dataclass(frozen=True)
class Scene:
    """A board, and what of it is on /metrics: (name, labels without the cluster's, value)."""

    board: Callable[[], Board]
    values: list[tuple[str, Labels, float]]
    unknown: list[tuple[str, Labels]] = field(default_factory=list)


def written(shard: Shard, *records: RecordBytes, time_ms: int = THEN_MS) -> None:
    shard.pending += [(time_ms, *record) for record in records]


# -- two owners, who rebalanced ---------------------------------------------------------------------------------------


def two_owners() -> Board:
    """The instance `i-1` is replaced while another member joins and gets a partition that it keeps."""
    shard = Shard()
    first = builders.member("m-1", {"orders": [0, 1]}, topics=["orders"], instance_id="i-1")
    again = builders.member("m-1b", {"orders": [0]}, topics=["orders"], instance_id="i-1")
    twice = builders.member("m-2", {"orders": [0]}, topics=["orders"])
    for generation, members, time_ms in ((3, [first], THEN_MS), (5, [again, twice], THEN_MS + 1_000)):
        record = builders.group_metadata("twice", generation=generation, members=members, timestamp=time_ms - 250)
        written(shard, record, time_ms=time_ms)
    expected = Expected("twice", frozenset(("shares_partitions",)), "each reads all")
    return board_of(shard, log_ends(orders=3), Expectations([expected]))


TWICE: Final = {"group": "twice"}
OWNER: Final = {**TWICE, "finding": "duplicate_assignment", "client_id": "client", "client_host": builders.HOST}

TWO_OWNERS: Final = Scene(
    two_owners,
    [
        ("kafka_group_info", {**TWICE, "type": "classic", "protocol": "range"}, 1),
        ("kafka_group_state", {**TWICE, "state": "Stable"}, 1),
        ("kafka_group_epoch", TWICE, 5),
        ("kafka_group_members", {**TWICE, "protocol": "classic"}, 2),
        ("kafka_group_members", {**TWICE, "protocol": "consumer"}, 0),
        ("kafka_group_rebalances_total", TWICE, 1),
        ("kafka_group_rebalance_rounds_lost_total", TWICE, 1),
        ("kafka_group_partitions_moved_total", TWICE, 1),
        ("kafka_group_rebalance_stuck", TWICE, 0),
        ("kafka_group_storm_rebalances", TWICE, 1),
        ("kafka_group_unsettled_seconds", TWICE, 9),
        ("kafka_group_unsettled_epochs", TWICE, 1),
        ("kafka_group_silenced_total", {**TWICE, "kind": "duplicate_assignment"}, 1),
        ("kafka_group_silenced_total", {**TWICE, "kind": "stale_claim"}, 0),
        ("kafka_group_events_total", {**TWICE, "kind": "duplicate_assignment"}, 1),
        ("kafka_group_leftover_records", TWICE, 0),
        ("kafka_group_assigned_partitions", {**TWICE, "topic": "orders"}, 1),
        ("kafka_group_involved_members", {**OWNER, "member_id": "m-1b", "instance_id": "i-1"}, 1),
        ("kafka_group_involved_members", {**OWNER, "member_id": "m-2", "instance_id": ""}, 1),
        ("kafka_group_rebalance_duration_seconds_bucket", {**TWICE, "le": "0.1"}, 0),
        ("kafka_group_rebalance_duration_seconds_bucket", {**TWICE, "le": "0.25"}, 1),
        ("kafka_group_rebalance_duration_seconds_bucket", {**TWICE, "le": "+Inf"}, 1),
        ("kafka_group_rebalance_duration_seconds_count", TWICE, 1),
        ("kafka_group_rebalance_duration_seconds_sum", TWICE, 0.25),
        ("kafka_group_duplicate_partitions", TWICE, 1),
        ("kafka_group_unassigned_partitions", TWICE, 2),
        ("kafka_group_static_members", TWICE, 1),
        ("kafka_group_static_members_absent", TWICE, 0),
        ("kafka_group_static_member_replacements_total", TWICE, 1),
        ("kafka_group_migration_phase", {**TWICE, "phase": "classic"}, 1),
        ("kafka_group_migration_mixed_seconds", TWICE, 0),
        ("kafka_cluster_gate", {"gate": "upgrade", "verdict": "closed"}, 1),
        ("kafka_cluster_gate", {"gate": "downgrade", "verdict": "cannot_tell"}, 1),
        ("kafka_cluster_gate_reasons", {"gate": "upgrade", "effect": "stop", "code": "duplicate_assignment"}, 1),
    ],
    [
        ("kafka_group_stale_claims_total", TWICE),
        ("kafka_group_conversions_total", {**TWICE, "direction": "upgrade"}),
        ("kafka_group_assignment_epoch", TWICE),
        ("kafka_group_rebalancing_seconds", TWICE),
        ("kafka_group_state", {**TWICE, "state": "Empty"}),
        ("kafka_consumergroup_group_sum_lag", {"cluster_name": CLUSTER, **TWICE}),
    ],
)


# -- between two protocols --------------------------------------------------------------------------------------------


def mixed() -> Board:
    """A static classic member joins a new consumer group between two epochs; a third is away."""
    shard = Shard()
    classic = builders.classic_member_metadata(range=builders.subscription(["orders"]))
    written(
        shard,
        builders.consumer_group_epoch("mixed", 5),
        builders.consumer_group_target_assignment_epoch("mixed", 5),
        builders.consumer_group_member_subscription("mixed", "new", topics=["orders"], server_assignor="uniform"),
        builders.consumer_group_member_subscription(
            "mixed", "old", topics=["orders"], instance_id="i-1", classic=classic
        ),
        builders.consumer_group_member_subscription("mixed", "away", topics=["orders"], instance_id="i-2"),
        builders.consumer_group_current_assignment("mixed", "new", epoch=5, assigned={"orders": [0]}),
        builders.consumer_group_current_assignment("mixed", "old", epoch=5, assigned={"orders": [1]}),
        builders.consumer_group_current_assignment("mixed", "away", epoch=-2),
    )
    board = caught_up(board_of(shard, log_ends(orders=3)))
    board.findings.set_overdue({"rebalance_stuck": ["mixed"]})
    board.findings.set_not_back({"mixed": NotBack(2, THEN_MS, is_open=True)})
    return board


MIXED_GROUP: Final = {"group": "mixed"}

MIXED: Final = Scene(
    mixed,
    [
        ("kafka_group_info", {**MIXED_GROUP, "type": "consumer", "protocol": "uniform"}, 1),
        ("kafka_group_assignment_epoch", MIXED_GROUP, 5),
        ("kafka_group_members", {**MIXED_GROUP, "protocol": "classic"}, 1),
        ("kafka_group_members", {**MIXED_GROUP, "protocol": "consumer"}, 2),
        ("kafka_group_rebalance_stuck", MIXED_GROUP, 1),
        ("kafka_group_members_not_back", MIXED_GROUP, 2),
        ("kafka_group_assigned_partitions", {**MIXED_GROUP, "topic": "orders"}, 2),
        ("kafka_group_rebalancing_seconds", MIXED_GROUP, 0),
        ("kafka_group_duplicate_partitions", MIXED_GROUP, 0),
        ("kafka_group_unassigned_partitions", MIXED_GROUP, 1),
        ("kafka_group_static_members", MIXED_GROUP, 2),
        ("kafka_group_static_members_absent", MIXED_GROUP, 1),
        ("kafka_group_migration_upgraded_members", MIXED_GROUP, 2),
        ("kafka_group_migration_mixed_seconds", MIXED_GROUP, 10),
        ("kafka_cluster_groups", {"type": "consumer", "state": "Reconciling"}, 1),
        ("kafka_cluster_readiness_groups", {"readiness": "care"}, 1),
    ],
    [("kafka_consumergroup_group_sum_lag", {"cluster_name": CLUSTER, **MIXED_GROUP})],
)


# -- once each way, and what stays of it ------------------------------------------------------------------------------


def converted() -> Board:
    """An empty group of each protocol takes the other's place, in one step each; of another, an expression stays."""
    shard = Shard()
    empty = builders.group_metadata("converted", generation=2, protocol=None)
    written(shard, empty)
    upgrade = (builders.group_metadata_tombstone("converted"), builders.consumer_group_epoch("converted", 3))
    written(shard, *upgrade, time_ms=THEN_MS + 1)
    written(shard, builders.consumer_group_epoch_tombstone("converted"), empty, time_ms=THEN_MS + 2)
    written(
        shard,
        builders.consumer_group_epoch("unclean", 5),
        builders.consumer_group_regular_expression("unclean", "orders.*", ["orders"]),
        builders.consumer_group_epoch_tombstone("unclean"),
        builders.group_metadata("unclean", generation=5, protocol=None),
    )
    return board_of(shard)


CONVERTED: Final = Scene(
    converted,
    [
        ("kafka_group_conversions_total", {"group": "converted", "direction": "upgrade"}, 1),
        ("kafka_group_conversions_total", {"group": "converted", "direction": "downgrade"}, 1),
        ("kafka_group_leftover_records", {"group": "unclean"}, 1),
        ("kafka_cluster_leftover_records", {"record_type": "3"}, 0),
        ("kafka_cluster_leftover_records", {"record_type": "16"}, 1),
    ],
)


# -- each readiness for the consumer protocol -------------------------------------------------------------------------


def kinds_of_groups() -> Board:
    """Groups of each type, one of workers, and one whose assignor keeps brokers from converting it."""
    shard = Shard()
    classic_group(shard, "plain", {"m": {"orders": [0]}})
    written(
        shard,
        builders.consumer_group_epoch("idle", 2),
        builders.consumer_group_epoch("moved", 1),
        builders.consumer_group_member_subscription("moved", "m", topics=["orders"]),
        builders.consumer_group_target_assignment_epoch("moved", 1),
        builders.consumer_group_current_assignment("moved", "m", epoch=1),
        builders.group_metadata(
            "connect", generation=1, members=[builders.member("w-1")], protocol_type="connect", protocol="sessioned"
        ),
        builders.group_metadata(
            "custom",
            generation=1,
            protocol="own",
            members=[builders.member("c-1", assignment_bytes=builders.assignment({"t": [0]}, user_data=b"mine"))],
        ),
        builders.share_group_epoch("shared", 4),
    )
    return caught_up(board_of(shard, log_ends(orders=1)))


KINDS_OF_GROUPS: Final = Scene(
    kinds_of_groups,
    [
        ("kafka_group_info", {"group": "shared", "type": "share", "protocol": ""}, 1),
        ("kafka_group_migration_phase", {"group": "idle", "phase": "upgraded"}, 1),
        ("kafka_group_migration_phase", {"group": "connect", "phase": "classic"}, 1),
        ("kafka_group_upgrade_blockers", {"group": "custom", "reason": "assignment_user_data"}, 1),
        ("kafka_cluster_groups", {"type": "classic", "state": "Stable"}, 3),
        ("kafka_cluster_groups", {"type": "consumer", "state": "Empty"}, 1),
        ("kafka_cluster_groups", {"type": "consumer", "state": "Stable"}, 1),
        ("kafka_cluster_groups", {"type": "share", "state": "Empty"}, 1),
        ("kafka_cluster_readiness_groups", {"readiness": "ready"}, 1),
        ("kafka_cluster_readiness_groups", {"readiness": "care"}, 0),
        ("kafka_cluster_readiness_groups", {"readiness": "blocked"}, 1),
        ("kafka_cluster_readiness_groups", {"readiness": "unknown"}, 1),
        ("kafka_cluster_readiness_groups", {"readiness": "done"}, 1),
        ("kafka_cluster_readiness_groups", {"readiness": "out_of_scope"}, 2),
        ("kafka_cluster_leftover_records", {"record_type": "3"}, 2),
        ("kafka_cluster_leftover_records", {"record_type": "5"}, 1),
        ("kafka_cluster_leftover_records", {"record_type": "23"}, 0),
    ],
    [
        ("kafka_group_duplicate_partitions", {"group": "shared"}),
        ("kafka_group_migration_phase", {"group": "shared", "phase": "upgraded"}),
    ],
)


# -- what is counted of a group ---------------------------------------------------------------------------------------


def counted() -> Board:
    """Counters as they would be after a long life."""
    shard = Shard()
    written(shard, builders.consumer_group_epoch("counted", 2))
    shard.replica.group("counted", 7).counters = GroupCounters(
        partitions_kept=2, stale_claims=3, static_returns=4, rebalances_saved=5, rebalances_avoidable=6, offset_resets=7
    )
    return board_of(shard)


COUNTED_GROUP: Final = {"group": "counted"}

COUNTED: Final = Scene(
    counted,
    [
        ("kafka_group_partitions_kept_total", COUNTED_GROUP, 2),
        ("kafka_group_stale_claims_total", COUNTED_GROUP, 3),
        ("kafka_group_static_member_returns_total", COUNTED_GROUP, 4),
        ("kafka_group_rebalances_saved_total", COUNTED_GROUP, 5),
        ("kafka_group_rebalances_avoidable_total", COUNTED_GROUP, 6),
        ("kafka_group_offset_resets_total", COUNTED_GROUP, 7),
    ],
    [("kafka_group_rebalances_total", COUNTED_GROUP)],
)


# -- offsets and lag --------------------------------------------------------------------------------------------------


def ends_of_orders() -> EndOffsets:
    """Three partitions at 100, 40 and 0; the last stable offset of the second is 15; the first begins at 7."""
    ends = log_ends(orders=3)
    sample(ends, NOW_MS - 4_000, "orders", 80, 40, 0)
    sample(ends, NOW_MS - 2_000, "orders", 100, 40, 0, stable={1: 15})
    ends.record_earliest({("orders", 0): 7})
    return ends


def committed() -> Board:
    """Offsets of three partitions, one of which went back once."""
    shard = Shard()
    for offset in (95, 90):
        written(shard, builders.offset_commit("g", "orders", 0, offset, timestamp=THEN_MS))
    written(
        shard,
        builders.offset_commit("g", "orders", 1, 10, timestamp=THEN_MS + 500),
        builders.offset_commit("g", "orders", 2, 0, timestamp=NOW_MS - 400),
    )
    return board_of(shard, ends_of_orders())


G: Final = {"group": "g"}
LAG: Final = {"cluster_name": CLUSTER, **G}
OF_ORDERS: Final = {"cluster_name": CLUSTER, "topic": "orders"}

COMMITTED: Final = Scene(
    committed,
    [
        ("kafka_group_events_total", {**G, "kind": "offset_rewound"}, 1),
        ("kafka_group_commits_total", {**G, "topic": "orders"}, 4),
        ("kafka_group_offset_rewinds_total", {**G, "topic": "orders"}, 1),
        ("kafka_group_commit_age_seconds", {**G, "topic": "orders", "partition": "1"}, 9.5),
        ("kafka_consumergroup_group_offset", {**LAG, "topic": "orders", "partition": "0"}, 90),
        ("kafka_consumergroup_group_lag", {**LAG, "topic": "orders", "partition": "0"}, 10),
        ("kafka_consumergroup_group_lag_seconds", {**LAG, "topic": "orders", "partition": "0"}, 3),
        ("kafka_consumergroup_group_lag_seconds", {**LAG, "topic": "orders", "partition": "2"}, 0),
        # Commits before the first sample have a lower bound, and are in the group's largest.
        ("kafka_consumergroup_group_lag_seconds", {**LAG, "topic": "orders", "partition": "1"}, 4),
        ("kafka_consumergroup_group_max_lag_seconds", LAG, 4),
        ("kafka_consumergroup_group_stable_lag", {**LAG, "topic": "orders", "partition": "1"}, 5),
        ("kafka_consumergroup_group_max_lag", LAG, 30),
        ("kafka_consumergroup_group_sum_lag", LAG, 40),
        ("kafka_consumergroup_group_topic_sum_lag", {**LAG, "topic": "orders"}, 40),
        ("kafka_partition_latest_offset", {**OF_ORDERS, "partition": "0"}, 100),
        ("kafka_partition_earliest_offset", {**OF_ORDERS, "partition": "0"}, 7),
        ("group_monitor_end_offset_age_seconds", {}, 2),
    ],
    [
        ("kafka_consumergroup_group_stable_lag", {**LAG, "topic": "orders", "partition": "0"}),
        ("kafka_group_unknown_lag_partitions", G),
        ("kafka_partition_earliest_offset", {**OF_ORDERS, "partition": "1"}),
    ],
)


def lag_in_part() -> Board:
    """A group whose members do not read what it committed, and one whose lag is known of one topic of two."""
    shard = Shard()
    written(
        shard,
        builders.group_metadata("ghost", generation=1, members=[builders.member("g-1", topics=["t"])]),
        builders.offset_commit("ghost", "orders", 0, 40),
        *(builders.offset_commit("half", topic, at, 40) for topic, at in (("orders", 0), ("away", 0), ("away", 1))),
    )
    classic_group(shard, "reads", {"m": {"orders": [0]}})
    written(shard, builders.offset_commit("reads", "orders", 0, 40))
    return board_of(shard, ends_of_orders())


HALF: Final = {"cluster_name": CLUSTER, "group": "half"}

LAG_IN_PART: Final = Scene(
    lag_in_part,
    [
        ("kafka_group_unsubscribed_lag", {"group": "ghost"}, 60),
        ("kafka_group_unsubscribed_lag", {"group": "reads"}, 0),
        ("kafka_group_unknown_lag_partitions", {"group": "half"}, 2),
        ("kafka_consumergroup_group_topic_sum_lag", {**HALF, "topic": "orders"}, 60),
        ("kafka_consumergroup_group_max_lag", HALF, 60),
    ],
    [
        ("kafka_group_offset_rewinds_total", {"group": "ghost", "topic": "orders"}),
        ("kafka_consumergroup_group_sum_lag", HALF),
        ("kafka_consumergroup_group_topic_sum_lag", {**HALF, "topic": "away"}),
        ("kafka_group_unsubscribed_lag", {"group": "half"}),
    ],
)


# -- the monitor itself -----------------------------------------------------------------------------------------------


def ready() -> Board:
    """Two batches were read of a log that goes on, in which a transaction is open; its coordinator moved twice."""
    shard = Shard(7)
    ends = log_ends()
    for epoch in (1, 3):
        elected = Topic(builders.topic_id(OFFSETS_TOPIC), OFFSETS_TOPIC, 8, {7: 1}, {7: epoch})
        ends.set_topics([described("orders", 3), elected], [])
    ends.record(NOW_MS - 2_000, {(OFFSETS_TOPIC, 7): 500}, {(OFFSETS_TOPIC, 7): 450})
    written(shard, builders.consumer_group_epoch("g", 2))
    board = board_of(shard, ends)
    board.health.set_log_end_at_start({7: 1}, {7: 1})
    board.health.set_positions({7: 480}, {7: 450}, NOW_MS - 3_000)
    board.health.observe_batch(0.3)
    board.health.observe_batch(1.0)
    board.health.show_history_size(lambda: 4_096)
    board.health.offsets_partitions = 8
    sink = SinkState(name="kafka-events", waiting=3, oldest_ms=NOW_MS - 7_000, dropped=2, delivered=40)
    board.health.show_sinks(lambda: [sink])
    board.health.show_source_age(lambda: 4.0)
    board.findings.set_not_loaded({7: NOW_MS - 9_000})
    late = builders.offset_commit("g", "orders", 0, 0, timestamp=NOW_MS - 400)
    board.apply(1, shard.write(late, timestamp_ms=NOW_MS - 400), NOW_MS)
    return board


READY: Final = Scene(
    ready,
    [
        ("group_monitor_ready", {}, 1),
        ("group_monitor_offsets_partitions_without_leader", {}, 0),
        ("group_monitor_offsets_partitions_not_loaded", {}, 1),
        ("group_monitor_offsets_partitions_unreadable", {}, 0),
        ("group_monitor_open_transaction_seconds", {"partition": "7"}, 2),
        ("group_monitor_open_transaction_records", {"partition": "7"}, 50),
        ("group_monitor_coordinator_moves_total", {"partition": "7"}, 2),
        ("group_monitor_coordinator_moves_total", {"partition": "6"}, 0),
        ("group_monitor_rebuilds_total", {}, 0),
        ("group_monitor_partition_series", {}, 1),
        ("group_monitor_left_out", {"from": "page", "what": "groups"}, 0),
        ("group_monitor_left_out", {"from": "metrics", "what": "topics"}, 0),
        ("group_monitor_replica_lag_records", {"partition": "7"}, 20),
        ("group_monitor_record_to_metric_seconds_bucket", {"le": "0.25"}, 0),
        ("group_monitor_record_to_metric_seconds_bucket", {"le": "0.5"}, 1),
        ("group_monitor_record_to_metric_seconds_count", {}, 1),
        ("group_monitor_batch_seconds_bucket", {"le": "0.25"}, 0),
        ("group_monitor_batch_seconds_bucket", {"le": "1.0"}, 2),
        ("group_monitor_batch_seconds_count", {}, 2),
        ("group_monitor_batch_seconds_sum", {}, 1.3),
        ("group_monitor_source_age_seconds", {}, 4),
        ("group_monitor_source_info", {"kind": "log"}, 1),
        ("group_monitor_groups_not_described", {}, 0),
        ("group_monitor_sink_waiting", {"sink": "kafka-events"}, 3),
        ("group_monitor_sink_waiting_seconds", {"sink": "kafka-events"}, 7),
        ("group_monitor_sink_delivered_total", {"sink": "kafka-events"}, 40),
        ("group_monitor_sink_dropped_total", {"sink": "kafka-events"}, 2),
        (
            "group_monitor_build_info",
            {"version": release(), "python": platform.python_version(), "spark": version("pyspark")},
            1,
        ),
        ("group_monitor_history_bytes", {}, 4_096),
    ],
    [("group_monitor_replica_lag_records", {"partition": "0"})],
)


def hardly_read() -> Board:
    """Records of tomorrow, some that are none, and a group of which another partition has a copy."""
    shard = Shard(7)
    key, value = builders.consumer_group_epoch("idle", 2)
    written(shard, (key, value), (key, b"\x00\x01" + (value or b"")[2:]), (b"\x00\x63", b"x"), (b"\x00\x03\x00", None))
    board = board_of(shard)
    board.health.offsets_partitions = 8
    copy = Shard(6).write(builders.offset_commit("idle", "orders", 0, 1, timestamp=THEN_MS - 1), timestamp_ms=THEN_MS)
    board.settled(1, copy)
    totals = {**board.shown.shards[7], "unreadable": [[2, 5, 9, THEN_MS]], "unreadable_batches": 2}
    board.apply(2, [Row(7, "shard", "", json.dumps(totals).encode())], NOW_MS)
    return board


HARDLY_READ: Final = Scene(
    hardly_read,
    [
        ("group_monitor_groups_in_two_partitions", {}, 1),
        ("group_monitor_unknown_records_total", {"record_type": "99"}, 1),
        ("group_monitor_undecodable_records_total", {"record_type": "3"}, 1),
        ("group_monitor_newer_value_versions_total", {"record_type": "3"}, 1),
        ("group_monitor_offsets_partitions_unreadable", {}, 1),
        ("group_monitor_unreadable_batches_total", {"partition": "7"}, 2),
        ("kafka_cluster_gate_reasons", {"gate": "downgrade", "effect": "stop", "code": "unknown_records"}, 1),
        ("kafka_cluster_gate", {"gate": "downgrade", "verdict": "closed"}, 1),
    ],
)


# -- a share group ----------------------------------------------------------------------------------------------------


def share_group() -> Board:
    """Of 30 records ten wait, one of them delivered in vain; two were given up. A state is of a group that is gone."""
    shard = Shard()
    written(shard, *share_join("queue", "m", epoch=2, targets={"m": {"jobs": [0, 1]}}))
    sample(ends := shares_read(log_ends(jobs=2, other=1)), NOW_MS - 8_000, "jobs", 0, 0)
    sample(ends, NOW_MS, "jobs", 30, 8)
    sample(ends, NOW_MS, "other", 4)
    board = board_of(shard, ends)
    shares = ShareShard().write(
        share_snapshot("queue", "jobs", 0),
        share_update(
            *("queue", "jobs", 0),
            *((0, 16, 2, 1), (17, 17, 4, 5), (18, 18, 4, 1), (20, 20, 0, 3), (22, 22, 2, 1)),
            start_offset=2,
            delivery_complete_count=18,
        ),
        share_snapshot("queue", "jobs", 1, start_offset=8),
        share_snapshot("gone", "jobs", 0),
        timestamp_ms=THEN_MS,
    )
    board.apply(1, shares, NOW_MS)
    return board


QUEUE: Final = {"group": "queue"}
JOBS: Final = {**QUEUE, "topic": "jobs"}
LAG_OF_JOBS: Final = {**JOBS, "cluster_name": CLUSTER}

SHARE_GROUP: Final = Scene(
    share_group,
    [
        ("kafka_consumergroup_group_lag", {**LAG_OF_JOBS, "partition": "0"}, 10),
        ("kafka_consumergroup_group_lag", {**LAG_OF_JOBS, "partition": "1"}, 0),
        ("kafka_consumergroup_group_lag_seconds", {**LAG_OF_JOBS, "partition": "0"}, 8 * 11 / 30),
        ("kafka_consumergroup_group_sum_lag", {**QUEUE, "cluster_name": CLUSTER}, 10),
        ("kafka_consumergroup_group_max_lag", {**QUEUE, "cluster_name": CLUSTER}, 10),
        ("kafka_consumergroup_group_max_lag_seconds", {**QUEUE, "cluster_name": CLUSTER}, 8 * 11 / 30),
        ("kafka_consumergroup_group_topic_sum_lag", LAG_OF_JOBS, 10),
        ("kafka_share_partition_start_offset", {**JOBS, "partition": "0"}, 2),
        ("kafka_share_partition_redelivered_records", {**JOBS, "partition": "0"}, 1),
        ("kafka_share_partition_max_delivery_count", {**JOBS, "partition": "0"}, 3),
        ("kafka_share_partition_stalled_seconds", {**JOBS, "partition": "0"}, 2.933),
        ("kafka_share_partition_stalled_seconds", {**JOBS, "partition": "1"}, 0),
        ("kafka_share_records_archived_total", {**JOBS, "why": "limit"}, 1),
        ("kafka_share_records_archived_total", {**JOBS, "why": "rejected"}, 1),
        ("kafka_share_group_redelivered_records", QUEUE, 1),
        ("kafka_share_group_stalled_seconds", QUEUE, 2.933),
        ("kafka_group_events_total", {**QUEUE, "kind": "share_records_archived"}, 2),
        ("group_monitor_share_orphans", {}, 1),
    ],
    [
        ("kafka_consumergroup_group_offset", {**LAG_OF_JOBS, "partition": "0"}),
        ("kafka_group_commit_age_seconds", {**JOBS, "partition": "0"}),
        ("kafka_share_records_archived_total", {**JOBS, "why": "unclear"}),
    ],
)

SCENES: Final[dict[str, Scene]] = {
    "two owners": TWO_OWNERS,
    "mixed": MIXED,
    "converted": CONVERTED,
    "kinds of groups": KINDS_OF_GROUPS,
    "counted": COUNTED,
    "committed": COMMITTED,
    "lag in part": LAG_IN_PART,
    "ready": READY,
    "hardly read": HARDLY_READ,
    "share group": SHARE_GROUP,
}


VALUES: Final = [(scene, *row) for scene, of in SCENES.items() for row in of.values]
"""(scene, name, labels, value) of every sample that is expected."""

UNKNOWN: Final = [(scene, *row) for scene, of in SCENES.items() for row in of.unknown]
"""(scene, name, labels) of every sample that there must not be."""
