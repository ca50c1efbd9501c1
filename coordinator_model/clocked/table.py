"""All rules that only time shows, in the order in which a look asks them.

A clocked verdict is one function of a `Moment` and one row here. Its kind of event is a row of `kinds/table.py`.

    groups       are those                                       asked by
    unsettled    between two states, or suspected to hang        a running monitor, once a second, and the clock of a
                                                                 recording, which has no answers of coordinators
    unheld       in which no member holds some partition         both
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from coordinator_model.clocked import endings, hang_suspicion, not_back, rewinds_awaited, stuck, unsettled
from coordinator_model.clocked.moment import ClockedRule, Moment
from coordinator_model.rules import settling
from coordinator_model.state.events import Event
from coordinator_model.state.group_state import GroupState

UNSETTLED: Final = "unsettled"
UNHELD: Final = "unheld"


def partition_unassigned(moment: Moment) -> Iterable[Event]:
    """What opens and clears of a group's unheld partitions, for whom somebody follows them."""
    if moment.unassigned is None:
        return ()
    return moment.unassigned.look(moment.state, moment.unheld, moment.now_ms, first_seen_ms=moment.first_seen_ms)


ALSO_BY_RECORDS: Final = frozenset({"static_member_absent", "offset_rewound"})
"""Kinds of which the group's next record shows the same event that a look found before it: what comes first says it."""


class ClockedRow(NamedTuple):
    """One rule, the kinds of the events it makes, and the groups it is asked of."""

    rule: ClockedRule
    kinds: tuple[str, ...]
    groups: str


CLOCKED_RULES: Final = (
    ClockedRow(stuck.rebalance_stuck, ("rebalance_stuck",), UNSETTLED),
    ClockedRow(hang_suspicion.rebalance_hangs, ("rebalance_stuck",), UNSETTLED),
    ClockedRow(stuck.migration_stalled, ("migration_stalled",), UNSETTLED),
    ClockedRow(not_back.members_not_back, ("members_not_back",), UNSETTLED),
    ClockedRow(unsettled.group_unsettled, ("group_unsettled",), UNSETTLED),
    ClockedRow(endings.alarms_over, tuple(endings.ENDED_BY_TIME), UNSETTLED),
    ClockedRow(rewinds_awaited.not_back, ("offset_rewound",), UNSETTLED),
    ClockedRow(partition_unassigned, ("partition_unassigned",), UNHELD),
)


def is_unsteady(state: GroupState) -> bool:
    """Whether the rules for unsettled groups may find something, now or later, although nothing is written."""
    return (
        state.rebalance is not None
        or state.migration.mixed
        or (state.migration.roll is not None and bool(state.migration.roll.places))
        or not endings.ENDED_BY_TIME.keys().isdisjoint(state.alarms)
        or bool(state.endings)
        or bool(state.awaited_rewinds)
        or state.absences is not None
        or (state.restless is not None and settling.too_many_epochs(state.restless))
    )


def events(moment: Moment, groups: str) -> list[Event]:
    """What the rules for these groups find at a moment."""
    return [event for row in CLOCKED_RULES if row.groups == groups for event in row.rule(moment)]
