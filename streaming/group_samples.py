"""What /metrics says of each group: tables from a metric's name to where its values come from."""

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from coordinator_model import migration, rebalances
from coordinator_model.group_state import CLASSIC, REBALANCE_DURATION_BUCKETS_MS, SHARE
from coordinator_model.involved import involved_members
from coordinator_model.overdue import believed_ms
from streaming.board import Board
from streaming.exposition import labelled
from streaming.held_group import HeldGroup, TopicLag, is_migrating_kind, total

Samples = Iterable[tuple[str, float]]
"""(labels as `labelled` writes them, value)"""

DURATION_BOUNDS: Final = tuple(bound / 1000 for bound in REBALANCE_DURATION_BUCKETS_MS)


class Moment:
    """What a scrape is of: everything is read of the same board at the same time."""

    def __init__(self, board: Board, now_ms: int) -> None:
        self.board = board
        self.now_ms = now_ms
        self.shown = board.shown
        self.sums = board.sums_of(self.shown.groups)
        self.stuck = board.stuck
        self.read_ms = board.read_ms
        self.event_counts = board.events.counts_by_group()
        self.sizes = board.ends.sizes
        self.topic_names = board.ends.topic_names


class Row:
    """One group at that moment."""

    __slots__ = ("commits", "held", "label", "lags", "of", "sums")

    def __init__(self, held: HeldGroup, moment: Moment) -> None:
        self.held = held
        self.of = held.summary
        self.label = labelled(group=held.name)
        self.lags = held.topic_lags(moment.board.ends, moment.now_ms)
        self.sums = total(self.lags)
        self.commits = held.commits


def _duplicates(row: Row, _: Moment) -> float | None:
    return None if row.of.type == SHARE else row.of.duplicates


def _rebalancing_seconds(row: Row, moment: Moment) -> float | None:
    if row.of.type == CLASSIC:
        return None  # its log does not tell
    since_ms = row.of.rebalancing_since_ms
    return 0 if since_ms is None else _believed_age(row, moment, since_ms)


def _believed_age(row: Row, moment: Moment, since_ms: int) -> float:
    return age(moment.now_ms, believed_ms(since_ms, moment.now_ms, moment.read_ms.get(row.held.name)))


def _storm(row: Row, moment: Moment) -> float:
    return rebalances.storm_rebalances(row.of.recent_rebalances_ms, moment.now_ms) if row.of.recent_rebalances_ms else 0


def _unsubscribed_lag(row: Row, _: Moment) -> float | None:
    if row.sums.records is None:
        return None
    unread = [each for each in row.lags if row.held.is_unsubscribed(each.topic)]
    return (total(unread).records or 0) if unread else 0


def _mixed_seconds(row: Row, moment: Moment) -> float | None:
    if not is_migrating_kind(row.of.type):
        return None
    return 0 if row.of.mixed_since_ms is None else _believed_age(row, moment, row.of.mixed_since_ms)


def _if_migrating(value: Callable[[Row], float]) -> Callable[[Row, Moment], float | None]:
    return lambda row, _: value(row) if is_migrating_kind(row.of.type) else None


GROUP_VALUES: Final[Mapping[str, Callable[[Row, Moment], float | None]]] = {
    "kafka_group_epoch": lambda row, _: row.of.epoch,
    "kafka_group_assignment_epoch": lambda row, _: row.of.assignment_epoch,
    "kafka_group_rebalances_total": lambda row, _: row.of.counters.rebalances,
    "kafka_group_rebalance_rounds_lost_total": lambda row, _: row.of.counters.rounds_lost,
    "kafka_group_rebalances_avoidable_total": lambda row, _: row.of.counters.rebalances_avoidable,
    "kafka_group_partitions_moved_total": lambda row, _: row.of.counters.partitions_moved,
    "kafka_group_partitions_kept_total": lambda row, _: row.of.counters.partitions_kept,
    "kafka_group_rebalancing_seconds": _rebalancing_seconds,
    "kafka_group_rebalance_stuck": lambda row, moment: int(row.held.name in moment.stuck),
    "kafka_group_storm_rebalances": _storm,
    "kafka_group_stale_claims_total": lambda row, _: row.of.counters.stale_claims,
    "kafka_group_duplicate_partitions": _duplicates,
    "kafka_group_unassigned_partitions": lambda row, moment: row.held.unassigned_partitions(moment.sizes),
    "kafka_group_static_members": lambda row, _: row.of.static_members,
    "kafka_group_static_members_absent": lambda row, _: row.of.absent_members,
    "kafka_group_static_member_replacements_total": lambda row, _: row.of.counters.static_replacements,
    "kafka_group_static_member_returns_total": lambda row, _: row.of.counters.static_returns,
    "kafka_group_rebalances_saved_total": lambda row, _: row.of.counters.rebalances_saved,
    "kafka_group_leftover_records": _if_migrating(lambda row: row.of.leftovers),
    "kafka_group_migration_upgraded_members": _if_migrating(lambda row: row.of.upgraded_members),
    "kafka_group_migration_mixed_seconds": _mixed_seconds,
    "kafka_group_unsubscribed_lag": _unsubscribed_lag,
    "kafka_consumergroup_group_sum_lag": lambda row, _: row.sums.records,
    "kafka_consumergroup_group_max_lag": lambda row, _: row.sums.max_records,
    "kafka_consumergroup_group_max_lag_seconds": lambda row, _: row.sums.max_seconds,
}
"""Metrics with one sample a group; None for none."""


def _info(row: Row, _: Moment) -> Samples:
    return [(labelled(type=row.of.type, protocol=row.of.protocol or ""), 1)]


def _members(row: Row, _: Moment) -> Samples:
    return [(',protocol="classic"', row.of.classic_members), (',protocol="consumer"', row.of.consumer_members)]


def _events(row: Row, moment: Moment) -> Samples:
    counts = moment.event_counts.get(row.held.name, _NONE)
    return [(labelled(kind=kind), count) for kind, count in sorted(counts.items())]


def _assigned(row: Row, moment: Moment) -> Samples:
    names = {topic: topic if row.of.type == CLASSIC else moment.topic_names.get(topic) for topic in row.of.assigned}
    return [(labelled(topic=name), len(row.of.assigned[topic])) for topic, name in names.items() if name is not None]


def _involved(row: Row, moment: Moment) -> Samples:
    if row.of.steady:
        return ()
    board = moment.board
    moved_ms = board.ends.leader_moves(board.offsets_topic, row.of.partition).last_ms
    return [
        (
            labelled(
                finding=finding,
                member_id=member.member_id,
                instance_id=member.instance_id or "",
                client_id=member.client_id,
                client_host=member.client_host,
            ),
            1,
        )
        for finding, member in involved_members(
            row.held.state, moment.now_ms, moved_ms, moment.read_ms.get(row.held.name)
        )
    ]


def _phase(row: Row, _: Moment) -> Samples:
    return [(labelled(phase=row.of.phase), 1)] if is_migrating_kind(row.of.type) else ()


def _conversions(row: Row, _: Moment) -> Samples:
    if not is_migrating_kind(row.of.type):
        return ()
    counters = row.of.counters
    return [
        (labelled(direction=migration.UPGRADE), counters.upgrades),
        (labelled(direction=migration.DOWNGRADE), counters.downgrades),
    ]


def _blockers(row: Row, _: Moment) -> Samples:
    return [(labelled(reason=reason), 1) for reason in row.of.blockers] if is_migrating_kind(row.of.type) else ()


def _by_topic(figures: Mapping[str, float | None]) -> Samples:
    return [(labelled(topic=topic), of) for topic, of in figures.items() if of is not None]


def _topic_sum_lag(row: Row, _: Moment) -> Samples:
    if len(row.lags) == 1:
        return _by_topic({row.lags[0].topic: row.sums.records})
    return _by_topic({each.topic: total([each]).records for each in row.lags})


GROUP_SAMPLES: Final[Mapping[str, Callable[[Row, Moment], Samples]]] = {
    "kafka_group_info": _info,
    "kafka_group_state": lambda row, _: [(labelled(state=row.of.group_state), 1)],
    "kafka_group_members": _members,
    "kafka_group_events_total": _events,
    "kafka_group_assigned_partitions": _assigned,
    "kafka_group_involved_members": _involved,
    "kafka_group_migration_phase": _phase,
    "kafka_group_conversions_total": _conversions,
    "kafka_group_upgrade_blockers": _blockers,
    "kafka_group_commits_total": lambda row, _: _by_topic({of: commits for of, (commits, _) in row.commits.items()}),
    "kafka_group_offset_rewinds_total": lambda row, _: _by_topic({of: back for of, (_, back) in row.commits.items()}),
    "kafka_consumergroup_group_topic_sum_lag": _topic_sum_lag,
}
"""Metrics with samples by another label, or of some groups only."""


def _commit_ages(each: TopicLag, moment: Moment) -> Iterable[float | None]:
    now_ms = moment.now_ms
    return [None if ms < 0 else (now_ms - ms) / 1000 if ms < now_ms else 0.0 for ms in each.commit_times_ms]


PARTITION_COLUMNS: Final[Mapping[str, Callable[[TopicLag, Moment], Iterable[float | None]]]] = {
    "kafka_group_commit_age_seconds": _commit_ages,
    "kafka_consumergroup_group_offset": lambda each, _: each.committed,
    "kafka_consumergroup_group_lag": lambda each, _: each.records,
    "kafka_consumergroup_group_lag_seconds": lambda each, _: each.seconds,
}
"""Metrics with a sample for each committed offset."""

_NONE: Final[Mapping[str, int]] = {}


def age(now_ms: int, since_ms: int) -> float:
    """Seconds since then, 0 for what the brokers' clocks say is yet to come."""
    return max(0, now_ms - since_ms) / 1000
