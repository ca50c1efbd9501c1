"""The board as Prometheus samples, worked out when they are scraped.

What is not known has no sample: no -1, no NaN, no 0 in its place. What is gone has none either, because every scrape
starts from the groups there are, not from series made earlier.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import groupby
from typing import Final

from prometheus_client.core import Metric
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.openmetrics.exposition import CONTENT_TYPE_LATEST as OPENMETRICS_CONTENT_TYPE
from prometheus_client.registry import Collector

from coordinator_model import migration, rebalances, upgrade_blockers
from coordinator_model.group_state import CLASSIC, REBALANCE_DURATION_BUCKETS_MS, SHARE, GroupState
from coordinator_model.involved import involved_members
from coordinator_model.leftovers import NEW_PROTOCOL_TYPES
from coordinator_model.roster import is_absent, members_of, speaks
from streaming import exposition, verdicts
from streaming.board import Board
from streaming.exposition import Families
from streaming.held_group import HeldGroup, OffsetLag, is_migrating_kind, total
from streaming.metrics import CATALOGUE, CLUSTER

_PREFIX: Final = "kafka_consumergroup_group_"


class Exporter(Collector):
    """A prometheus-client collector over a board.

    Args:
        board: what to show.
        cluster: value of the labels `cluster` and `cluster_name`.
        partition_series: whether there are series per partition; sums and maxima are there either way.
        rebalance_histogram: whether rebalance durations are a histogram per group.
        clock_ms: the wall clock, in milliseconds.
    """

    def __init__(
        self,
        board: Board,
        cluster: str,
        *,
        partition_series: bool = True,
        rebalance_histogram: bool = True,
        clock_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        self._board = board
        self.cluster = cluster
        self._partition_series = partition_series
        self._rebalance_histogram = rebalance_histogram
        self._clock_ms = clock_ms

    def describe(self) -> Iterable[Metric]:
        """Nothing: prometheus-client would otherwise collect once to learn the names."""
        return []

    def collect(self) -> Iterator[Metric]:
        """All metrics that have a sample at this moment, for a registry that holds other collectors too."""
        for name, samples in self._families().by_name():
            row = CATALOGUE[name]
            family = Metric(exposition.family_name(name), row.help, row.kind)
            for suffix, values, value in samples:
                names = (*row.labels, exposition.BOUND) if suffix == exposition.BUCKET else row.labels
                labels = dict(zip(names, values, strict=True))
                family.add_sample(name + suffix, {CLUSTER: self.cluster, **labels}, value)
            yield family

    def render(self, accept: str = "") -> tuple[bytes, str]:
        """The page of /metrics, as OpenMetrics if the Accept header names it, and its content type."""
        openmetrics = "application/openmetrics-text" in accept
        page = exposition.page(self._families(), self.cluster, openmetrics=openmetrics)
        return page, OPENMETRICS_CONTENT_TYPE if openmetrics else CONTENT_TYPE_PLAIN_0_0_4

    def _families(self) -> Families:
        families = Families()
        now_ms = self._clock_ms()
        groups = self._board.shown.groups
        topics: set[str] = set()
        for _, held in sorted(groups.items()):
            self._group(families, held, now_ms)
            self._offsets(families, held, now_ms)
            topics |= held.topic_names
        if self._partition_series:
            self._partitions(families, topics)
        _cluster(families, groups.values())
        _gates(families, self._board)
        self._monitor(families, now_ms)
        return families

    def _group(self, families: Families, held: HeldGroup, now_ms: int) -> None:
        state, add = held.state, families.add
        group, counters = state.name, state.counters
        modern = state.membership.modern_group
        add("kafka_group_info", (group, state.type, held.protocol or ""), 1)
        add("kafka_group_state", (group, held.group_state), 1)
        add("kafka_group_epoch", (group,), state.epoch)
        add("kafka_group_assignment_epoch", (group,), None if modern is None else modern.assignment_epoch)
        add("kafka_group_rebalances_total", (group,), counters.rebalances)
        add("kafka_group_rebalance_rounds_lost_total", (group,), counters.rounds_lost)
        add("kafka_group_rebalances_avoidable_total", (group,), counters.rebalances_avoidable)
        add("kafka_group_partitions_moved_total", (group,), counters.partitions_moved)
        add("kafka_group_partitions_kept_total", (group,), counters.partitions_kept)
        add("kafka_group_rebalance_stuck", (group,), int(group in self._board.stuck))
        add("kafka_group_storm_rebalances", (group,), rebalances.storm_rebalances(state, now_ms))
        for kind, count in sorted(self._board.events.counts(group).items()):
            add("kafka_group_events_total", (group, kind), count)
        add("kafka_group_stale_claims_total", (group,), counters.stale_claims)
        if self._rebalance_histogram:
            bounds = [bound / 1000 for bound in REBALANCE_DURATION_BUCKETS_MS]
            name = "kafka_group_rebalance_duration_seconds"
            families.add_histogram(name, (group,), bounds, counters.duration_buckets, counters.duration_sum_ms / 1000)
        if state.type != CLASSIC:
            since_ms = now_ms if state.rebalance is None else state.rebalance.since_ms
            add("kafka_group_rebalancing_seconds", (group,), _age(now_ms, since_ms))
        if state.type != SHARE:
            add("kafka_group_duplicate_partitions", (group,), len(state.duplicates))
        for topic, partitions in held.assigned.items():
            named = topic if state.type == CLASSIC else self._board.ends.topic_names.get(topic)
            if named is not None:
                add("kafka_group_assigned_partitions", (group, named), len(partitions))
        unassigned = held.unassigned_partitions(self._board.ends.topics)
        if unassigned is not None:
            add("kafka_group_unassigned_partitions", (group,), unassigned)
        _members(families, state)
        moved_ms = self._board.ends.leader_moves(self._board.offsets_topic, state.partition).last_ms
        _involved(families, state, now_ms, moved_ms)
        if is_migrating_kind(state):
            _migration(families, state, now_ms)

    def _offsets(self, families: Families, held: HeldGroup, now_ms: int) -> None:
        group, cluster, add = held.state.name, self.cluster, families.add
        for topic, (commits, rewinds) in held.commits.items():
            add("kafka_group_commits_total", (group, topic), commits)
            add("kafka_group_offset_rewinds_total", (group, topic), rewinds)
        lags = held.lags(self._board.ends, now_ms)
        if self._partition_series:
            for each in lags:
                self._partition(families, group, each, now_ms)
        for topic, of_topic in groupby(lags, key=lambda each: each.topic):
            add(_PREFIX + "topic_sum_lag", (cluster, group, topic), total(list(of_topic)).records)
        unread = [each for each in lags if each.topic in held.unsubscribed_topics]
        sums = total(lags)
        add("kafka_group_unsubscribed_lag", (group,), None if sums.records is None else total(unread).records or 0)
        add(_PREFIX + "sum_lag", (cluster, group), sums.records)
        add(_PREFIX + "max_lag", (cluster, group), sums.max_records)
        add(_PREFIX + "max_lag_seconds", (cluster, group), sums.max_seconds)

    def _partition(self, families: Families, group: str, each: OffsetLag, now_ms: int) -> None:
        place = (group, each.topic, str(each.partition))
        labels = (self.cluster, *place)
        if each.committed.commit_timestamp_ms >= 0:
            age = _age(now_ms, each.committed.commit_timestamp_ms)
            families.add("kafka_group_commit_age_seconds", place, age)
        families.add(_PREFIX + "offset", labels, each.committed.offset)
        families.add(_PREFIX + "lag", labels, each.lag.records)
        families.add(_PREFIX + "lag_seconds", labels, each.lag.seconds)

    def _partitions(self, families: Families, topics: Iterable[str]) -> None:
        ends = self._board.ends
        with ends.lock:
            for topic in sorted(topics):
                for partition, known in ends.of_topic(topic).items():
                    labels = (self.cluster, topic, str(partition))
                    families.add("kafka_partition_latest_offset", labels, known.high_watermark)
                    families.add("kafka_partition_earliest_offset", labels, known.earliest)

    def _monitor(self, families: Families, now_ms: int) -> None:
        board, add = self._board, families.add
        for partition, records in board.replica_lag().items():
            add("group_monitor_replica_lag_records", (str(partition),), records)
        for partition, records in board.open_transaction_records().items():
            add("group_monitor_open_transaction_records", (str(partition),), records)
        for partition, seconds in board.open_transaction_seconds(now_ms).items():
            add("group_monitor_open_transaction_seconds", (str(partition),), seconds)
        for partition, moves in board.coordinator_moves().items():
            add("group_monitor_coordinator_moves_total", (str(partition),), moves)
        shards = board.shown.shards.values()
        for type_, count in _summed(shard.unknown_records for shard in shards):
            add("group_monitor_unknown_records_total", (type_,), count)
        for type_, count in _summed(shard.undecodable_records for shard in shards):
            add("group_monitor_undecodable_records_total", (type_,), count)
        for name, distribution in (
            ("group_monitor_record_to_metric_seconds", board.record_to_metric),
            ("group_monitor_batch_seconds", board.batch_seconds),
        ):
            counts, sum_ = distribution.read()
            families.add_histogram(name, (), distribution.bounds, counts, sum_)
        add("group_monitor_ready", (), int(board.ready()[0]))
        add("group_monitor_end_offset_age_seconds", (), board.ends.age_seconds(now_ms))


def _members(families: Families, state: GroupState) -> None:
    members = members_of(state.membership).values()
    by_protocol = Counter(map(speaks, members))
    for protocol in ("classic", "consumer"):
        families.add("kafka_group_members", (state.name, protocol), by_protocol[protocol])
    static = [member for member in members if member.instance_id is not None]
    families.add("kafka_group_static_members", (state.name,), len(static))
    families.add("kafka_group_static_members_absent", (state.name,), sum(map(is_absent, static)))
    families.add("kafka_group_static_member_replacements_total", (state.name,), state.counters.static_replacements)
    families.add("kafka_group_static_member_returns_total", (state.name,), state.counters.static_returns)
    families.add("kafka_group_rebalances_saved_total", (state.name,), state.counters.rebalances_saved)


def _involved(families: Families, state: GroupState, now_ms: int, moved_ms: int | None) -> None:
    for finding, member in involved_members(state, now_ms, moved_ms):
        labels = (member.member_id, member.instance_id or "", member.client_id, member.client_host)
        families.add("kafka_group_involved_members", (state.name, finding, *labels), 1)


def _migration(families: Families, state: GroupState, now_ms: int) -> None:
    group, add = state.name, families.add
    _, upgraded = migration.members_by_protocol(state.membership)
    since_ms = state.migration.mixed_since_ms
    add("kafka_group_leftover_records", (group,), state.membership.leftovers())
    add("kafka_group_migration_phase", (group, migration.phase(state)), 1)
    add("kafka_group_migration_upgraded_members", (group,), upgraded)
    add("kafka_group_migration_mixed_seconds", (group,), 0 if since_ms is None else _age(now_ms, since_ms))
    add("kafka_group_conversions_total", (group, migration.UPGRADE), state.counters.upgrades)
    add("kafka_group_conversions_total", (group, migration.DOWNGRADE), state.counters.downgrades)
    for reason in upgrade_blockers.blockers(state.membership):
        add("kafka_group_upgrade_blockers", (group, reason), 1)


def _cluster(families: Families, groups: Iterable[HeldGroup]) -> None:
    leftovers: Counter[int] = Counter()
    kinds: Counter[tuple[str, str]] = Counter()
    for held in groups:
        kinds[held.state.type, held.group_state] += 1
        leftovers.update(held.new_protocol_records)
    for (type_, group_state), count in sorted(kinds.items()):
        families.add("kafka_cluster_groups", (type_, group_state), count)
    for record_type in NEW_PROTOCOL_TYPES:
        families.add("kafka_cluster_leftover_records", (str(int(record_type)),), leftovers[record_type])


def _gates(families: Families, board: Board) -> None:
    for name, ask in verdicts.OFFLINE.items():
        # A scrape must not wait for brokers: what only they know is asked by `group-monitor gate`.
        answer = ask(board)
        families.add("kafka_cluster_gate", (name, answer["verdict"]), 1)
        counts = Counter((reason["effect"], reason["code"]) for reason in answer["reasons"])
        for (effect, code), count in sorted(counts.items()):
            families.add("kafka_cluster_gate_reasons", (name, effect, code), count)


def _summed(counts: Iterable[Mapping[str, int]]) -> list[tuple[str, int]]:
    summed: Counter[str] = Counter()
    for each in counts:
        summed.update(each)
    return sorted(summed.items())


def _age(now_ms: int, since_ms: int) -> float:
    """Seconds since then, 0 for what the brokers' clocks say is yet to come."""
    return max(0, now_ms - since_ms) / 1000
