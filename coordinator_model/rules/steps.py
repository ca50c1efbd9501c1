"""When a step opens and closes: a step is what the coordinator wrote for one thing that happened.

One event of the coordinator (a join, an expiry, a conversion) is several records, and in the middle of them the
group is in states it never was in: an upgrade begins with the tombstone of the classic group. So conclusions are
drawn at the end of a step only, from the membership before it and the membership after it (`table.py`).

A step is a run of one group's membership records with one timestamp: all records of an event carry the same
(CoordinatorRuntime, `appendRecords`). Nothing in the log marks its end, so it ends when the group's next record has
another timestamp, or when the caller knows that a record batch ended (`Replica.settle`), because an event never spans
two. Offset commits do not take part. Two events of one group in the same millisecond become one step, which then
shows what both did together; of a classic group each generation is an event of its own.

What would be an alarm is reported only of the live tail. While catching up, a compacted log shows states that
never were; what is then found is withheld and judged again when the group is live (KAFKA-19862).
"""

from __future__ import annotations

from coordinator_model.migration import downgrade_check, upgrade_check
from coordinator_model.rules import epochs, members, table
from coordinator_model.rules.transition import Transition
from coordinator_model.state.clocks import went_back
from coordinator_model.state.events import Event
from coordinator_model.state.findings import Position, events_of
from coordinator_model.state.group_state import GroupState
from coordinator_model.state.membership import Membership
from coordinator_model.state.rule_memory import Step


def open_step(state: GroupState, position: Position) -> None:
    """Remember the membership as it is before the first record of a step."""
    state.step = Step(
        timestamp_ms=position.timestamp_ms,
        last_offset=position.offset,
        before=state.membership.copy(),
        whole_before=state.whole,
    )


def is_over(step: Step, membership: Membership, timestamp_ms: int, *, of_classic_group: bool) -> bool:
    """Whether the group's next record, perhaps one of a classic group, is of another event than the open step."""
    if step.timestamp_ms != timestamp_ms:
        return True
    return of_classic_group and membership.classic is not None and membership.classic != step.before.classic


def note_record(state: GroupState, was: epochs.Epochs, member_id: str | None) -> None:
    """Remember of the open step what only two neighbouring records show. `was` is from before the last one."""
    step = state.step
    if step is None:
        return
    downgrade_check.note(step, state.membership, member_id)
    upgrade_check.note(step, state.membership, member_id)
    now = epochs.epochs_of(state.membership, member_id)
    if was == now:
        return
    if not state.whole and now.rewrote(was):
        state.whole = state.withheld = True  # what was not judged before is to be judged now
    step.anomalies += tuple(epochs.odd_moves(was, now, member_id))
    begun, ended = now.began(was), was.began(now)
    if begun is not None:
        if now.has_members:
            step.anomalies += tuple(epochs.odd_conversion(step.ended_type, step.ended_epoch, *begun))
        step.ended_type = None
    if ended is not None and (was.has_members or members.members_of(step.before)):
        step.ended_type, step.ended_epoch = ended


def close_step(state: GroupState, *, live_from: int) -> list[Event]:
    """Run the rules on the open step; nothing where none is open.

    `live_from` is the log's end as it was when reading began: alarms are for steps at or beyond it.
    """
    step = state.step
    if step is None:
        return []
    state.step = None
    jumped = went_back(state.last_step_ms, step.timestamp_ms)
    state.last_step_ms, state.last_step_offset = step.timestamp_ms, step.last_offset
    return _run(
        Transition(
            state=state,
            before=step.before,
            step=step,
            position=Position(state.partition, step.last_offset, step.timestamp_ms),
            live=step.last_offset >= live_from,
            clock_jumped=jumped,
            all_members=state.withheld,
        )
    )


def judge(state: GroupState) -> list[Event]:
    """Report what was withheld of a group that became live without a record of its own, as of the record it is from."""
    if not state.withheld:
        return []
    position = Position(state.partition, state.last_step_offset, state.last_step_ms)
    return _run(
        Transition(state=state, before=state.membership, step=None, position=position, live=True, all_members=True)
    )


def _run(transition: Transition) -> list[Event]:
    table.run(transition)
    transition.state.withheld = transition.withheld
    return list(events_of(transition.state.name, transition.position, transition.found))
