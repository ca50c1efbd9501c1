"""Alarms that are open of a group: before it is rolled they are to be looked into, as a roll would hide what they say.

    alarm                      is known of
    static_member_contended    the state, at a moment: another take-over would belong to the same run
    static_member_restarting   likewise
    rebalance_storm            the state, at a moment: the last five minutes hold a storm
    rebalance_stuck            looks with a clock in hand (`clocked`)
    group_unsettled            likewise
    partition_unassigned       likewise

Overlapping owners are none of these: a plan has a reason of its own for them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from coordinator_model.rules import rebalance_storm, static_members
from coordinator_model.state.group_state import GroupState

STUCK: Final = "rebalance_stuck"
UNSETTLED: Final = "group_unsettled"
UNASSIGNED: Final = "partition_unassigned"


def of_state(state: GroupState, now_ms: int) -> Iterator[str]:
    """Kinds of the alarms that the state itself shows to be open at a moment."""
    if any(static_members.is_contended(history, now_ms) for history in state.instances.values()):
        yield static_members.CONTENDED
    if any(static_members.is_restarting(history, now_ms) for history in state.instances.values()):
        yield static_members.RESTARTING
    if state.storm and rebalance_storm.is_storm(state, now_ms):
        yield rebalance_storm.STORM
