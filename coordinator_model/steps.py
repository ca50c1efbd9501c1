"""From records to events: a step is what the coordinator wrote for one thing that happened.

One event of the coordinator (a join, an expiry, a conversion) is several records, and in the middle of them the
group is in states it never was in: an upgrade begins with the tombstone of the classic group. So conclusions are
drawn at the end of a step only, from the membership before it and the membership after it.

A step is a run of one group's membership records with one timestamp: all records of an event carry the same
(coordinator-records, 4.0). Nothing in the log marks its end, so it ends when the group's next record has another
timestamp, or when the caller knows that a record batch ended (`Replica.settle`), because an event never spans
two. Offset commits do not take part. Two events of one group in the same millisecond become one step, which then
tells what both did together.

What would be an alarm is reported only of the live tail. While catching up, a compacted log shows states that
never were; what is then found is withheld and judged again when the group is live (KAFKA-19862).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from coordinator_model import (
    classic_members,
    coherence,
    downgrades,
    holders,
    invariants,
    migration,
    ownership,
    rebalances,
    roster,
    scaling,
    statics,
    upgrade_blockers,
)
from coordinator_model.clocks import went_back
from coordinator_model.conclusions import Finding, Place, events_of
from coordinator_model.events import INFO, Event
from coordinator_model.group_state import EpochAnomaly, GroupState, Holders, Membership, Step
from coordinator_model.leftovers import left_over


def open_step(state: GroupState, place: Place) -> None:
    """Remember the membership as it is before the first record of a step."""
    state.step = Step(timestamp_ms=place.timestamp_ms, last_offset=place.offset, before=state.membership.copy())


def note(state: GroupState, was: invariants.Epochs, member_id: str | None) -> None:
    """Remember of the open step what only two neighbouring records show. `was` is from before the last one."""
    step = state.step
    if step is None:
        return
    downgrades.note(step, state.membership, member_id)
    now = invariants.epochs_of(state.membership, member_id)
    if was == now:
        return
    if not state.whole and now.rewrote(was):
        state.whole = state.withheld = True  # what was not judged before is to be judged now
    step.anomalies += tuple(invariants.odd_moves(was, now, member_id))
    begun, ended = now.began(was), was.began(now)
    if begun is not None:
        if now.has_members:
            step.anomalies += tuple(invariants.odd_conversion(step.ended_type, step.ended_epoch, *begun))
        step.ended_type = None
    if ended is not None and (was.has_members or roster.members_of(step.before)):
        step.ended_type, step.ended_epoch = ended


def close_step(state: GroupState, *, live_from: int) -> list[Event]:
    """Draw the conclusions of the open step; nothing where none is open.

    `live_from` is the log's end as it was when reading began: alarms are for steps at or beyond it.
    """
    step = state.step
    if step is None:
        return []
    state.step = None
    jumped = went_back(state.last_step_ms, step.timestamp_ms)
    if jumped and state.rebalance is not None:
        state.rebalance.clock_jumped = True
    state.last_step_ms, state.last_step_offset = step.timestamp_ms, step.last_offset
    place = Place(state.partition, step.last_offset, step.timestamp_ms)
    if holders.changed(step.before, state.membership):
        state.held_ms, state.held_offset = step.timestamp_ms, step.last_offset
    live = step.last_offset >= live_from
    findings = [*_findings(state, step, place, live=live), *_anomalies(step.anomalies if live else ())]
    if jumped and state.rebalance is not None:  # it may have begun with this step
        state.rebalance.clock_jumped = True
    return list(events_of(state.name, place, findings))


def judge(state: GroupState) -> list[Event]:
    """Report what was withheld of a group that became live without a record of its own, as of the record it is from."""
    if not state.withheld:
        return []
    place = Place(state.partition, state.last_step_offset, state.last_step_ms)
    return list(events_of(state.name, place, _verdicts(state, None, live=True)))


def announce(state: GroupState) -> Iterator[Finding]:
    """Say that a group came to be, or is no more, once each."""
    if state.exists and not state.announced:
        state.announced = True
        yield Finding("group_created", {"type": state.type, "simple": state.simple})
    elif not state.exists and state.announced:
        state.announced = False
        yield Finding("group_deleted")


def _findings(state: GroupState, step: Step, place: Place, *, live: bool) -> Iterator[Finding]:
    before, after, time_ms = step.before, state.membership, place.timestamp_ms
    if state.exists:
        yield from announce(state)
    yield from roster.follow(before, after)
    yield from statics.follow(state, before, after, place)
    yield from ownership.follow(state, before.classic_group, after.classic_group)
    yield from migration.follow(state, step)
    if migration.members_by_protocol(before) != migration.members_by_protocol(after):
        state.migration.changed_ms, state.migration.changed_offset = time_ms, place.offset
    classic_members.follow(state.migration.classic_members, before, after, time_ms)
    rebalanced = rebalances.follow(state, before, after, place)
    yield from scaling.follow(state, before, after, time_ms, rebalanced)
    yield from _verdicts(state, before, live=live)
    if after.exists and roster.members_of(before) and not roster.members_of(after):
        yield Finding("group_emptied", {"type": after.type, "epoch": after.epoch})
    if not state.exists:
        yield from announce(state)


def _verdicts(state: GroupState, before: Membership | None, *, live: bool) -> Iterator[Finding]:
    """What is an alarm. Each opens once and clears once. `before` is None where no step was taken."""
    found = invariants.duplicate_assignments(state.membership)
    # The tombstones of a group that ends may span record batches: only a classic group in its place is a downgrade.
    leftovers = state.membership.leftovers() if state.membership.classic is not None else 0
    odd = {anomaly.name: anomaly for anomaly in _odd(state, before, found)}
    # An end counts too: what was told before a restart may have resolved itself before this run caught up.
    changed = found != state.duplicates or bool(leftovers) != state.migration.leftovers_reported
    blocked = upgrade_blockers.worth_telling(state.membership, state.migration.blockers_reported)
    changed = changed or odd.keys() != set(state.anomalies) or blocked != state.migration.blockers_reported
    state.withheld = changed and not live
    if not live:
        return
    opened = {place: ids for place, ids in found.items() if place not in state.duplicates}
    cleared = {place: ids for place, ids in state.duplicates.items() if place not in found}
    if opened:
        yield Finding("duplicate_assignment", {"partitions": opened})
    if cleared:
        yield Finding("duplicate_assignment_cleared", {"partitions": cleared})
    state.duplicates = found
    if leftovers and not state.migration.leftovers_reported:
        by_type = left_over(state.membership)
        yield Finding("downgrade_unclean", {"leftover_records": leftovers, "record_types": by_type})
    state.migration.leftovers_reported = bool(leftovers)
    new = tuple(reason for reason in blocked if reason not in state.migration.blockers_reported)
    yield from upgrade_blockers.tell(state.membership, new)
    state.migration.blockers_reported = blocked
    yield from _anomalies(anomaly for name, anomaly in odd.items() if name not in state.anomalies)
    for name in state.anomalies:
        if name not in odd:
            rule, _, member_id = name.partition("/")
            detail = {"rule": rule, "member_id": member_id or None, "cleared": True}
            yield Finding("epoch_anomaly", detail, severity=INFO)
    state.anomalies = tuple(sorted(odd))


def _odd(state: GroupState, before: Membership | None, duplicates: Holders) -> Iterator[EpochAnomaly]:
    """Anomalies at the end of a step, but for what a duplicate assignment says already."""
    yield from invariants.odd_epochs(state.membership)
    if state.whole:
        anew = before is None or state.withheld or duplicates != state.duplicates
        for anomaly in coherence.incoherent(before, state.membership, state.anomalies, all_members=anew):
            if not anomaly.partitions or anomaly.partitions.keys() - duplicates.keys():
                yield anomaly


def _anomalies(anomalies: Iterable[EpochAnomaly]) -> Iterator[Finding]:
    for anomaly in anomalies:
        yield Finding(
            "epoch_anomaly",
            {
                "rule": anomaly.rule,
                "member_id": anomaly.member_id,
                "expected": anomaly.expected,
                "found": anomaly.found,
                **({"partitions": anomaly.partitions} if anomaly.partitions else {}),
            },
        )
