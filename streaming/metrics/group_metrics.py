"""What /metrics says of each group's state: tables from a metric's name to where its values come from.

What it says of a group's offsets stands in `offset_samples.py`.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from coordinator_model.clocked.finding_members import involved_members
from coordinator_model.clocked.stuck import effective_start_ms
from coordinator_model.migration import phases
from coordinator_model.rules import rebalance_storm
from coordinator_model.rules.rebalance_storm import STORM_WINDOW_MS
from coordinator_model.rules.settling import AT_REST_MS
from coordinator_model.state.membership import CLASSIC, SHARE
from coordinator_model.state.rule_memory import REBALANCE_DURATION_BUCKETS_MS, GroupCounters
from streaming.board.board import Board
from streaming.board.board_group import BoardGroup, is_migrating_kind
from streaming.board.left_out import LeftOut
from streaming.metrics.text_format import label, labelled, of_group

Samples = Iterable[tuple[str, float]]
"""(labels as `labelled` writes them, value)"""

DURATION: Final = "kafka_group_rebalance_duration_seconds"
UNASSIGNED: Final = "kafka_group_unassigned_partitions"
ASSIGNED: Final = "kafka_group_assigned_partitions"

DURATION_BOUNDS: Final = tuple(bound / 1000 for bound in REBALANCE_DURATION_BUCKETS_MS)


class Moment:
    """What a scrape is of: everything is read of the same board at the same time."""

    def __init__(self, board: Board, now_ms: int, exported: LeftOut | None = None) -> None:
        """Of what `exported` has in scope, and by default of all that the board shows."""
        self.board = board
        self.exported = exported or LeftOut(board.scope)
        self.groups = self.exported.scope.groups
        self.topics = self.exported.scope.topics
        self.now_ms = now_ms
        self.shown = board.shown
        self.sums = board.sums_of(self.shown.groups)
        self.stuck = board.stuck
        self.read_ms = board.read_ms
        self.event_counts = board.events.counts_by_group()
        self.silenced = board.events.silenced_by_group()
        self.expectations = board.expectations
        self.sizes = board.ends.sizes
        self.topic_names = board.ends.topic_names


class StateRow:
    """The state of one group at that moment; `weight` is about how many lines a metric may have of it."""

    __slots__ = ("held", "label", "of", "weight")

    def __init__(self, held: BoardGroup, _: Moment) -> None:
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
        if of.unsettled is not None and of.unsettled.lasts(now_ms):
            return now_ms
        # A rebalance goes out of the window; one that a clock ahead of ours has timed comes into it first.
        turns = [ms + by for ms in of.recent_rebalances_ms for by in (-STORM_WINDOW_MS, STORM_WINDOW_MS + 1)]
        turns += [] if of.unsettled is None else [of.unsettled.last_ms - AT_REST_MS]
        return min((turn for turn in turns if turn > now_ms), default=math.inf)


def _duplicates(row: StateRow, _: Moment) -> float | None:
    return None if row.of.type == SHARE else row.of.duplicates


def _rebalancing_seconds(row: StateRow, moment: Moment) -> float | None:
    if row.of.type == CLASSIC:
        return None  # its log does not tell
    since_ms = row.of.rebalancing_since_ms
    return 0 if since_ms is None else _believed_age(row, moment, since_ms)


def _believed_age(row: StateRow, moment: Moment, since_ms: int) -> float:
    return age(moment.now_ms, effective_start_ms(since_ms, moment.now_ms, moment.read_ms.get(row.held.name)))


def _unsettled_seconds(row: StateRow, moment: Moment) -> float | None:
    of = row.of.unsettled
    return _believed_age(row, moment, of.since_ms) if of is not None and of.lasts(moment.now_ms) else None


def _unsettled_epochs(row: StateRow, moment: Moment) -> float | None:
    of = row.of.unsettled
    return of.epochs if of is not None and of.lasts(moment.now_ms) else None


def _storm(row: StateRow, moment: Moment) -> float:
    recent_ms = row.of.recent_rebalances_ms
    return rebalance_storm.storm_rebalances(recent_ms, moment.now_ms) if recent_ms else 0


def _mixed_seconds(row: StateRow, moment: Moment) -> float | None:
    if not is_migrating_kind(row.of.type):
        return None
    return 0 if row.of.mixed_since_ms is None else _believed_age(row, moment, row.of.mixed_since_ms)


def _if_migrating(value: Callable[[StateRow], float]) -> Callable[[StateRow, Moment], float | None]:
    return lambda row, _: value(row) if is_migrating_kind(row.of.type) else None


def _counted(count: Callable[[GroupCounters], int]) -> Callable[[StateRow, Moment], float | None]:
    """A counter begins with its first count: `kafka_group_info` says that the group is known, so none means 0."""
    return lambda row, _: count(row.of.counters) or None


STATE_VALUES: Final[Mapping[str, Callable[[StateRow, Moment], float | None]]] = {
    "kafka_group_epoch": lambda row, _: row.of.epoch,
    "kafka_group_assignment_epoch": lambda row, _: row.of.assignment_epoch,
    "kafka_group_rebalances_total": _counted(lambda counters: counters.rebalances),
    "kafka_group_rebalance_rounds_lost_total": _counted(lambda counters: counters.rounds_lost),
    "kafka_group_rebalances_avoidable_total": _counted(lambda counters: counters.rebalances_avoidable),
    "kafka_group_partitions_moved_total": _counted(lambda counters: counters.partitions_moved),
    "kafka_group_partitions_kept_total": _counted(lambda counters: counters.partitions_kept),
    "kafka_group_stale_claims_total": _counted(lambda counters: counters.stale_claims),
    "kafka_group_duplicate_partitions": _duplicates,
    UNASSIGNED: lambda row, moment: row.held.unassigned_partitions(moment.sizes),
    "kafka_group_static_members": lambda row, _: row.of.static_members,
    "kafka_group_static_members_absent": lambda row, _: row.of.absent_members,
    "kafka_group_static_member_replacements_total": _counted(lambda counters: counters.static_replacements),
    "kafka_group_static_member_returns_total": _counted(lambda counters: counters.static_returns),
    "kafka_group_rebalances_saved_total": _counted(lambda counters: counters.rebalances_saved),
    "kafka_group_offset_resets_total": _counted(lambda counters: counters.offset_resets),
    "kafka_group_leftover_records": _if_migrating(lambda row: row.of.leftovers),
    "kafka_group_migration_upgraded_members": _if_migrating(lambda row: row.of.upgraded_members),
}
"""Metrics with one sample a group, None for none: of its state alone, or of topics besides."""

FINDINGS_VALUES: Final[Mapping[str, Callable[[StateRow, Moment], float | None]]] = {
    "kafka_group_rebalancing_seconds": _rebalancing_seconds,
    "kafka_group_rebalance_stuck": lambda row, moment: int(row.held.name in moment.stuck),
    "kafka_group_storm_rebalances": _storm,
    "kafka_group_unsettled_seconds": _unsettled_seconds,
    "kafka_group_unsettled_epochs": _unsettled_epochs,
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


def _silenced(row: StateRow, moment: Moment) -> Samples:
    """From 0 on for each kind that is expected: alert rules leave out what has this series."""
    counts = moment.silenced.get(row.held.name, _NONE)
    return [(label(kind=kind), counts.get(kind, 0)) for kind in sorted(moment.expectations.kinds(row.held.name))]


def _assigned(row: StateRow, moment: Moment) -> Samples:
    names = {topic: topic if row.of.type == CLASSIC else moment.topic_names.get(topic) for topic in row.of.assigned}
    return [
        (label(topic=name), len(row.of.assigned[topic]))
        for topic, name in names.items()
        if name is not None and moment.topics(name)
    ]


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
    phase = row.of.phase
    return [(label(phase=phase), 1)] if phase is not None and is_migrating_kind(row.of.type) else ()


def _conversions(row: StateRow, _: Moment) -> Samples:
    if not is_migrating_kind(row.of.type):
        return ()
    counters = row.of.counters
    by_direction = {phases.UPGRADE: counters.upgrades, phases.DOWNGRADE: counters.downgrades}
    return [(label(direction=direction), count) for direction, count in by_direction.items() if count]


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
    "kafka_group_silenced_total": _silenced,
    "kafka_group_involved_members": _involved,
}
"""Likewise: of the clock or of events besides."""

_NONE: Final[Mapping[str, int]] = {}


def age(now_ms: int, since_ms: int) -> float:
    """Seconds since then, 0 for what the brokers' clocks say is yet to come."""
    return max(0, now_ms - since_ms) / 1000
