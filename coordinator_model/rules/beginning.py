"""Where rule memory begins: with what the state says at the live tail, when no rule has seen how it came about.

Below the live tail nothing may be alarmed, so only state is made of its records (`first_reading.py`), as a coordinator
does that loads a partition. Then the group is looked at once, as if all of it had been written with its last record:

    what rules remember                                     begins
    what holds now: members, a rebalance under way,         as of that record
    who holds what, alarms that are to be judged live
    that it is mixed                                        without a time: `Migration.mixed_before`
    since when a static member stands for its instance      unknown, as is who did before
    what was counted, what had just happened                at nothing
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Final

from coordinator_model.migration import phases
from coordinator_model.rules import migrations, partition_holders, rebalances, static_members, table
from coordinator_model.rules.members import members_of
from coordinator_model.rules.transition import Transition
from coordinator_model.state.findings import Finding, Position
from coordinator_model.state.group_state import GroupState
from coordinator_model.state.membership import Membership
from coordinator_model.state.rule_memory import GroupCounters, Step

_NOTHING: Final = Membership()


def begun(built: GroupState) -> GroupState:
    """The same group with the memory that its rules go on from.

    Of what they had, if they followed an earlier part of it, what is known of its conversions is taken over.
    """
    state = GroupState(
        name=built.name,
        partition=built.partition,
        membership=built.membership,
        offset_count=built.offset_count,
        buckets=built.buckets,
        topic_ids=built.topic_ids,
        newer_versions=built.newer_versions,
        known_ids=built.known_ids,
        migration=built.migration,
        counters=built.counters,
        alarms=built.alarms,
        absences=built.absences,
        built=True,
        last_step_ms=built.last_step_ms,
        last_step_offset=built.last_step_offset,
    )
    if state.membership.exists:
        _look(state)
    state.announced = state.exists
    return state


def _look(state: GroupState) -> None:
    membership, time_ms = state.membership, state.last_step_ms
    counted, state.counters = state.counters, GroupCounters()
    position = Position(state.partition, state.last_step_offset, time_ms)
    step = Step(timestamp_ms=time_ms, last_offset=position.offset, before=_NOTHING)
    seen = Transition(state=state, before=_NOTHING, step=step, position=position, live=False)
    _remember(partition_holders.remember_change(seen))
    if any(member.instance_id is not None for member in members_of(membership).values()):
        _remember(static_members.succession(seen))
        for history in state.instances.values():
            history.since_ms = -1
    if membership.modern_group is not None:
        _remember(rebalances.progress(seen))
        _remember(migrations.classic_members(seen))
    phases.go_on(state)
    state.counters = counted
    # What is alarmed only live is asked as at the end of the log: it is withheld until then.
    now = Transition(state=state, before=membership, step=None, position=position, live=False)
    table.run(now)
    state.withheld = now.withheld


def _remember(findings: Iterable[Finding]) -> None:
    """Let a rule remember what it does; that all of it just happened is not so, and not said."""
    deque(findings, maxlen=0)
