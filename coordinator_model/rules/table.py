"""All rules, in the order in which a step runs them, which is the order of its events.

A verdict is one function of a `Transition`, or one `Lasting` where it opens and clears, and one row here. Its kind of
event is a row of `kinds/table.py`.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from coordinator_model.rules import (
    anomalies,
    endings,
    existence,
    fencing,
    handovers,
    members,
    migrations,
    ownership_claims,
    partition_holders,
    poll_intervals,
    rebalance_storm,
    rebalances,
    scaling,
    settling,
    static_absences,
    static_members,
)
from coordinator_model.rules.duplicate_owners import DUPLICATE_ASSIGNMENT
from coordinator_model.rules.transition import Rule, Transition


class RuleRow(NamedTuple):
    """One rule.

    Attributes:
        rule: the function, or the alarm.
        kinds: kinds of the events it makes; none for a rule that only remembers.
        remembers: fields of `GroupState` that it writes, beside the transition.
        live_only: whether it speaks on the live tail alone; then it is asked again when a group becomes live.
    """

    rule: Rule
    kinds: tuple[str, ...] = ()
    remembers: tuple[str, ...] = ()
    live_only: bool = False


RULES: Final = (
    RuleRow(existence.created, ("group_created",), ("announced",)),
    RuleRow(endings.forget, (), ("endings",)),
    RuleRow(partition_holders.remember_change, (), ("held_ms", "held_offset")),
    RuleRow(fencing.fenced, ("member_fenced",)),
    RuleRow(members.joins_and_leaves, ("member_joined", "member_left")),
    RuleRow(
        static_members.succession,
        ("static_member_returned", "static_member_replaced"),
        ("instances", "departed", "endings", "alarms", "counters"),
    ),
    RuleRow(static_absences.absences, ("static_member_absent",), ("absences", "alarms"), live_only=True),
    RuleRow(static_members.contention, ("static_member_contended", "static_member_restarting"), ("alarms",)),
    RuleRow(poll_intervals.exceeded, ("poll_interval_exceeded",), ("poll_runs", "alarms", "endings")),
    RuleRow(
        ownership_claims.stale_claims,
        ("stale_claim", "handover_without_revocation"),
        ("alarms", "counters"),
    ),
    RuleRow(
        migrations.phase_changes,
        ("upgrade_started", "upgrade_completed", "downgrade_started", "downgrade_completed"),
        ("migration", "counters"),
    ),
    RuleRow(migrations.upgrade_unclean, ("upgrade_unclean",), ("migration",), live_only=True),
    RuleRow(migrations.classic_members, (), ("migration",)),
    RuleRow(scaling.episode, (), ("scaling",)),
    RuleRow(handovers.successions, (), ("handovers", "counters")),
    RuleRow(
        rebalances.progress,
        ("rebalance_started", "rebalance_completed", "rebalance_rounds_lost"),
        ("rebalance", "rounds_lost_ms", "scaling", "counters"),
    ),
    RuleRow(
        rebalance_storm.storm,
        ("rebalance_storm",),
        (
            "recent_rebalances_ms",
            "recent_rebalance_members",
            "members_since_rebalance",
            "last_rebalance_offset",
            "alarms",
            "endings",
        ),
    ),
    RuleRow(settling.epochs_going_by, (), ("restless",)),
    RuleRow(
        DUPLICATE_ASSIGNMENT,
        ("duplicate_assignment", "duplicate_assignment_cleared"),
        ("alarms",),
        live_only=True,
    ),
    RuleRow(migrations.DOWNGRADE_UNCLEAN, ("downgrade_unclean",), ("alarms",), live_only=True),
    RuleRow(migrations.UPGRADE_BLOCKED, ("upgrade_blocked",), ("alarms",), live_only=True),
    RuleRow(anomalies.LASTING_ANOMALIES, ("epoch_anomaly",), ("alarms",), live_only=True),
    RuleRow(members.emptied, ("group_emptied",)),
    RuleRow(existence.deleted, ("group_deleted",), ("announced",)),
    RuleRow(anomalies.record_by_record, ("epoch_anomaly",), live_only=True),
)
"""Hand-overs stand before the rebalances they are the cost of, duplicates before anomalies, which leave out what a
duplicate assignment says; a storm after the rebalances it counts; `group_created` first and `group_deleted` after what
the members' departure showed."""


_EVERY_RULE: Final = tuple(row.rule for row in RULES)
_LIVE_RULES: Final = tuple(row.rule for row in RULES if row.live_only)


def run(transition: Transition) -> None:
    """Run the rules in order; what they find is in `transition.found`. Without a step only live rules are asked."""
    for rule in _LIVE_RULES if transition.step is None else _EVERY_RULE:
        transition.found += rule(transition)
