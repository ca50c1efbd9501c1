"""What /metrics says of each group's state: tables from a metric's name to where its values come from.

What it says of a group's offsets stands in `offset_samples.py`.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from coordinator_model import migration, rebalances
from coordinator_model.group_state import CLASSIC, REBALANCE_DURATION_BUCKETS_MS, SHARE
from coordinator_model.involved import involved_members
from coordinator_model.overdue import believed_ms
from coordinator_model.rebalances import STORM_WINDOW_MS
from streaming.board import Board
from streaming.exposition import label, labelled, of_group
from streaming.held_group import HeldGroup, is_migrating_kind

Samples = Iterable[tuple[str, float]]
"""(labels as `labelled` writes them, value)"""

DURATION: Final = "kafka_group_rebalance_duration_seconds"
UNASSIGNED: Final = "kafka_group_unassigned_partitions"
ASSIGNED: Final = "kafka_group_assigned_partitions"

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


class StateRow:
    """The state of one group at that moment; `weight` is about how many lines a metric may have of it."""

    __slots__ = ("held", "label", "of", "weight")

    def __init__(self, held: HeldGroup, _: Moment) -> None:
        self.held = held
        self.of = held.summary
        self.label = of_group(held.name)
        self.weight = max(1, len(self.of.assigned))

    def good_until_ms(self, _: Moment) -> float:
        """When time alone changes what is said of it."""
        return math.inf


class FindingsRow(StateRow):
    """The same, asked for what changes with time or is found by others than the log."""

    __slots__ = ()

    def good_until_ms(self, moment: Moment) -> float:
        """See the base; now for what changes all the time."""
        of, now_ms = self.of, moment.now_ms
        if of.rebalancing_since_ms is not None or of.mixed_since_ms is not None or of.contended:
            return now_ms
        if not of.recent_rebalances_ms:
            return math.inf
        # A rebalance goes out of the window; one that a clock ahead of ours has timed comes into it first.
        turns = [ms + by for ms in of.recent_rebalances_ms for by in (-STORM_WINDOW_MS, STORM_WINDOW_MS + 1)]
        return min((turn for turn in turns if turn > now_ms), default=math.inf)


def _duplicates(row: StateRow, _: Moment) -> float | None:
    return None if row.of.type == SHARE else row.of.duplicates


def _rebalancing_seconds(row: StateRow, moment: Moment) -> float | None:
    if row.of.type == CLASSIC:
        return None  # its log does not tell
    since_ms = row.of.rebalancing_since_ms
    return 0 if since_ms is None else _believed_age(row, moment, since_ms)


def _believed_age(row: StateRow, moment: Moment, since_ms: int) -> float:
    return age(moment.now_ms, believed_ms(since_ms, moment.now_ms, moment.read_ms.get(row.held.name)))


def _storm(row: StateRow, moment: Moment) -> float:
    return rebalances.storm_rebalances(row.of.recent_rebalances_ms, moment.now_ms) if row.of.recent_rebalances_ms else 0


def _mixed_seconds(row: StateRow, moment: Moment) -> float | None:
    if not is_migrating_kind(row.of.type):
        return None
    return 0 if row.of.mixed_since_ms is None else _believed_age(row, moment, row.of.mixed_since_ms)


def _if_migrating(value: Callable[[StateRow], float]) -> Callable[[StateRow, Moment], float | None]:
    return lambda row, _: value(row) if is_migrating_kind(row.of.type) else None


STATE_VALUES: Final[Mapping[str, Callable[[StateRow, Moment], float | None]]] = {
    "kafka_group_epoch": lambda row, _: row.of.epoch,
    "kafka_group_assignment_epoch": lambda row, _: row.of.assignment_epoch,
    "kafka_group_rebalances_total": lambda row, _: row.of.counters.rebalances,
    "kafka_group_rebalance_rounds_lost_total": lambda row, _: row.of.counters.rounds_lost,
    "kafka_group_rebalances_avoidable_total": lambda row, _: row.of.counters.rebalances_avoidable,
    "kafka_group_partitions_moved_total": lambda row, _: row.of.counters.partitions_moved,
    "kafka_group_partitions_kept_total": lambda row, _: row.of.counters.partitions_kept,
    "kafka_group_stale_claims_total": lambda row, _: row.of.counters.stale_claims,
    "kafka_group_duplicate_partitions": _duplicates,
    UNASSIGNED: lambda row, moment: row.held.unassigned_partitions(moment.sizes),
    "kafka_group_static_members": lambda row, _: row.of.static_members,
    "kafka_group_static_members_absent": lambda row, _: row.of.absent_members,
    "kafka_group_static_member_replacements_total": lambda row, _: row.of.counters.static_replacements,
    "kafka_group_static_member_returns_total": lambda row, _: row.of.counters.static_returns,
    "kafka_group_rebalances_saved_total": lambda row, _: row.of.counters.rebalances_saved,
    "kafka_group_leftover_records": _if_migrating(lambda row: row.of.leftovers),
    "kafka_group_migration_upgraded_members": _if_migrating(lambda row: row.of.upgraded_members),
}
"""Metrics with one sample a group, None for none: of its state alone, or of topics besides."""

FINDINGS_VALUES: Final[Mapping[str, Callable[[StateRow, Moment], float | None]]] = {
    "kafka_group_rebalancing_seconds": _rebalancing_seconds,
    "kafka_group_rebalance_stuck": lambda row, moment: int(row.held.name in moment.stuck),
    "kafka_group_storm_rebalances": _storm,
    "kafka_group_migration_mixed_seconds": _mixed_seconds,
}
"""Likewise: of the clock besides, or of what is found beside the log."""


def _info(row: StateRow, _: Moment) -> Samples:
    return [(label(type=row.of.type, protocol=row.of.protocol or ""), 1)]


def _members(row: StateRow, _: Moment) -> Samples:
    return [(',protocol="classic"', row.of.classic_members), (',protocol="consumer"', row.of.consumer_members)]


def _events(row: StateRow, moment: Moment) -> Samples:
    counts = moment.event_counts.get(row.held.name, _NONE)
    return [(label(kind=kind), count) for kind, count in sorted(counts.items())]


def _assigned(row: StateRow, moment: Moment) -> Samples:
    names = {topic: topic if row.of.type == CLASSIC else moment.topic_names.get(topic) for topic in row.of.assigned}
    return [(label(topic=name), len(row.of.assigned[topic])) for topic, name in names.items() if name is not None]


def _involved(row: StateRow, moment: Moment) -> Samples:
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


def _phase(row: StateRow, _: Moment) -> Samples:
    return [(label(phase=row.of.phase), 1)] if is_migrating_kind(row.of.type) else ()


def _conversions(row: StateRow, _: Moment) -> Samples:
    if not is_migrating_kind(row.of.type):
        return ()
    counters = row.of.counters
    return [
        (label(direction=migration.UPGRADE), counters.upgrades),
        (label(direction=migration.DOWNGRADE), counters.downgrades),
    ]


def _blockers(row: StateRow, _: Moment) -> Samples:
    return [(label(reason=reason), 1) for reason in row.of.blockers] if is_migrating_kind(row.of.type) else ()


STATE_SAMPLES: Final[Mapping[str, Callable[[StateRow, Moment], Samples]]] = {
    "kafka_group_info": _info,
    "kafka_group_state": lambda row, _: [(label(state=row.of.group_state), 1)],
    "kafka_group_members": _members,
    ASSIGNED: _assigned,
    "kafka_group_migration_phase": _phase,
    "kafka_group_conversions_total": _conversions,
    "kafka_group_upgrade_blockers": _blockers,
}
"""Metrics with samples by another label, or of some groups only: of a group's state alone, or of topics besides."""

FINDINGS_SAMPLES: Final[Mapping[str, Callable[[StateRow, Moment], Samples]]] = {
    "kafka_group_events_total": _events,
    "kafka_group_involved_members": _involved,
}
"""Likewise: of the clock or of events besides."""

_NONE: Final[Mapping[str, int]] = {}


def age(now_ms: int, since_ms: int) -> float:
    """Seconds since then, 0 for what the brokers' clocks say is yet to come."""
    return max(0, now_ms - since_ms) / 1000
