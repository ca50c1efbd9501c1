"""When a group rebalances, and what it cost.

    family             begins                                          ends
    classic            not in the log                                  a record with a higher generation and members
    consumer,streams   epochs or members move away from the target     every member is Stable at the group epoch
    share              the group epoch moves on                        the target's epoch and all members reach it

Epochs that move on while a rebalance is under way belong to it. A classic rebalance has a duration only from the
end of its join phase (`currentStateTimestamp`) to the leader's assignment; how long members took to join is not
recorded. Generations that were begun and never completed are the gap between two that were:

    a gap of                                        is lost because
    as many rounds as members are new               they joined after the others had, and before the leader's answer:
                                                    information
    one round, and no member is left                who began it left before it was over: information
    more                                            the leader did not answer in time, or members did not rejoin

A partition has moved when another member than its last owner takes it, at once or after a while without an owner
(`handovers.py`); one that had its owner before and has it after was kept. The share that was kept of both is the
assignment's stickiness.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from coordinator_model.groups import common, consumer, streams
from coordinator_model.rules import rebalance_causes as why_of
from coordinator_model.rules import scaling
from coordinator_model.rules.handovers import by_place, owners_of, translated
from coordinator_model.rules.rebalance_causes import causes, triggers
from coordinator_model.rules.transition import Transition
from coordinator_model.state import clocks
from coordinator_model.state.events import INFO
from coordinator_model.state.findings import Finding, Position
from coordinator_model.state.group_state import GroupState
from coordinator_model.state.membership import (
    FIRST_EPOCH,
    STREAMS,
    ClassicGroup,
    Membership,
    ModernGroup,
    ModernMember,
    Partitions,
)
from coordinator_model.state.rule_memory import GroupCounters, Rebalance

DEFAULT_REBALANCE_TIMEOUT_MS: Final = 300_000
"""Where no member says its own: max.poll.interval.ms of Kafka's consumer."""


def epochs_known(group: ModernGroup) -> bool:
    """False for a group met half-way in a compacted log: without both epochs nothing can be said of a rebalance.

    A new group may wait for its first target, for a regular expression or the delay of a streams group: its members
    then stand where memory starts, and no member has a target.
    """
    if not group.epoch_live or group.assignment_epoch_live:
        return group.epoch_live
    new = all(0 <= member.epoch <= FIRST_EPOCH for member in group.members.values())
    return new and not group.targets and not group.task_targets


def under_way(group: ModernGroup) -> bool:
    """True while the group is between targets. A static member that is away is waited for, not rebalanced."""
    if not group.members or not epochs_known(group):
        return False
    return group.epoch > group.assignment_epoch or bool(unsettled(group))


def progress(transition: Transition) -> Iterator[Finding]:
    """Advance the group's rebalance over one step; yields its beginning, its end and what was lost."""
    _doubt_duration(transition)
    group = transition.after.modern_group
    if group is not None:
        yield from _modern(transition, group)
        _doubt_duration(transition)
        return
    state, before, after, time_ms = transition.state, transition.before, transition.after, transition.time_ms
    state.rebalance = None
    was, now = before.classic_group, after.classic_group
    if was is not None and now is not None and now.generation > was.generation:
        yield from _lost_rounds(state, was, now, time_ms)
        if now.members:
            known = [parts for of in transition.former_handovers for parts in of.former_owners.values()]
            why = causes(before, after, known=known)
            cost = _cost(
                state.counters,
                owners_of(was.members),
                owners_of(now.members),
                transition.partitions_moved,
            )
            detail = {**_sync_time(state.counters, now, time_ms), **cost, "causes": why}
            detail |= triggers(before, after, why, known)
            detail = {"generation": now.generation, "members": len(now.members), **detail}
            yield _completed(state, detail, time_ms)


def _doubt_duration(transition: Transition) -> None:
    """A rebalance under way while the clock jumps has no known duration."""
    if transition.clock_jumped and transition.state.rebalance is not None:
        transition.state.rebalance.clock_jumped = True


def timeout_ms(member: ModernMember) -> int:
    """How long the member may take to let go of partitions: its own word, or Kafka's default."""
    return member.rebalance_timeout_ms if member.rebalance_timeout_ms > 0 else DEFAULT_REBALANCE_TIMEOUT_MS


def unsettled(group: ModernGroup) -> list[ModernMember]:
    """Members that a rebalance waits for. A static member that is away is not waited for."""
    stable = streams.MEMBER_STABLE if group.family == STREAMS else consumer.MEMBER_STABLE
    return [member for member in common.unsettled_members(group, stable) if not member.is_absent_static]


def _lost_rounds(state: GroupState, was: ClassicGroup, now: ClassicGroup, time_ms: int) -> Iterator[Finding]:
    lost = now.generation - was.generation - 1
    if lost:
        state.counters.rounds_lost += lost
        state.rounds_lost_ms = time_ms
        detail = {"from_generation": was.generation, "to_generation": now.generation, "rounds_lost": lost}
        severity = INFO if lost <= _rounds_explained(was, now) else None
        yield Finding("rebalance_rounds_lost", detail, severity=severity, inferred=True)


def _rounds_explained(was: ClassicGroup, now: ClassicGroup) -> int:
    """How many lost rounds no member is the cause of."""
    return len(now.members.keys() - was.members.keys()) if now.members else 1


def _completed(state: GroupState, detail: Mapping[str, Any], time_ms: int) -> Finding:
    state.counters.rebalances += 1
    episode = scaling.count_rebalance(state, detail["causes"], time_ms)
    return Finding("rebalance_completed", {**detail, **episode})


def _sync_time(counters: GroupCounters, group: ClassicGroup, time_ms: int) -> dict[str, int]:
    if group.state_timestamp_ms < 0:
        return {}
    sync_ms = clocks.rebalance_ms(group.state_timestamp_ms, time_ms, jumped=False)
    if sync_ms is None:
        return {}
    counters.observe_duration(sync_ms)
    return {"sync_ms": sync_ms}


def _cost(
    counters: GroupCounters, was: Mapping[str, Partitions], now: Mapping[str, Partitions], moved: int
) -> dict[str, Any]:
    """Count what stayed; what moved is counted already."""
    kept = _kept(was, now)
    counters.partitions_kept += kept
    both = kept + moved
    stickiness = round(kept / both, 4) if both else None
    return {"partitions_moved": moved, "partitions_kept": kept, "stickiness": stickiness}


def _modern(transition: Transition, group: ModernGroup) -> Iterator[Finding]:
    state, before, after, time_ms = transition.state, transition.before, transition.after, transition.time_ms
    whole = _is_all_known(transition)
    fenced = {str(of.detail["member_id"]) for of in transition.found if of.kind == "member_fenced"}
    if not group.members:
        state.rebalance = None
        return
    was = before.modern_group
    moving = under_way(group)
    if state.rebalance is None:
        moved_on = was is None or not epochs_known(was) or group.epoch > was.epoch
        if not moving and not (moved_on and epochs_known(group)):
            return
        state.rebalance = _begun(state, before, group, transition.position, whole=whole)
        why = causes(before, after, whole=whole)
        state.rebalance.causes = tuple(why)
        detail = {"epoch": group.epoch, "members": len(group.members), "causes": why}
        yield Finding("rebalance_started", {**detail, **triggers(before, after, why)})
    elif was is not None and group.epoch > was.epoch:
        why = causes(before, after, fenced, whole=whole)
        state.rebalance.causes = tuple(dict.fromkeys((*state.rebalance.causes, *why)))
    state.rebalance.partitions_moved += transition.partitions_moved
    if moving:
        _time(state.rebalance, was, group, time_ms)
        return
    rebalance, state.rebalance = state.rebalance, None
    duration_ms = clocks.rebalance_ms(rebalance.since_ms, time_ms, jumped=rebalance.clock_jumped)
    if duration_ms is not None:
        state.counters.observe_duration(duration_ms)
    cost = _cost(state.counters, rebalance.owners, owners_of(group.members), rebalance.partitions_moved)
    detail = {"epoch": group.epoch, "members": len(group.members), "duration_ms": duration_ms, **cost}
    yield _completed(state, {**detail, **_explained(rebalance, group)}, time_ms)


def _is_all_known(transition: Transition) -> bool:
    """Whether no record of the group before the step was cleaned away, or is further on."""
    was, step = transition.before.modern_group, transition.step
    return step is None or step.whole_before or (was is not None and was.epoch_live and was.epoch <= FIRST_EPOCH + 1)


def _begun(state: GroupState, before: Membership, group: ModernGroup, position: Position, *, whole: bool) -> Rebalance:
    was, classic = before.modern_group, before.classic_group
    owners = owners_of(was.members) if was is not None else {}
    if classic is not None:
        owners = translated(state, before, state.membership, owners_of(classic.members))
    return Rebalance(
        since_ms=position.timestamp_ms,
        offset=position.offset,
        from_epoch=was.epoch if was else group.epoch,
        owners=owners,
        partition_counts=why_of.known_partitions(was) if was is not None and whole else {},
    )


def _explained(rebalance: Rebalance, group: ModernGroup) -> dict[str, Any]:
    """The causes, once the assignment shows whether partitions came with the topics' metadata."""
    grown = why_of.grown(rebalance.partition_counts, why_of.known_partitions(group))
    if why_of.METADATA not in rebalance.causes or not grown or group.family == STREAMS:
        return {"causes": list(rebalance.causes)}
    reported = [why_of.PARTITION_COUNT if cause == why_of.METADATA else cause for cause in rebalance.causes]
    return {"causes": reported, **why_of.growth_detail(grown)}


def _time(rebalance: Rebalance, was: ModernGroup | None, group: ModernGroup, time_ms: int) -> None:
    """Note since when a target is waited for, and each member: each record of it restarts its time."""
    if group.epoch <= group.assignment_epoch:
        rebalance.assigning_since_ms = None
    elif rebalance.assigning_since_ms is None or was is None or was.assignment_epoch != group.assignment_epoch:
        rebalance.assigning_since_ms = time_ms
    former = was.members if was is not None else {}
    since, rebalance.unsettled_since_ms = rebalance.unsettled_since_ms, {}
    for member in unsettled(group):
        same = _standing(former.get(member.member_id)) == _standing(member)
        since_ms = since.get(member.member_id, time_ms) if same else time_ms
        rebalance.unsettled_since_ms[member.member_id] = since_ms


def _standing(member: ModernMember | None) -> tuple[object, ...]:
    """What a current assignment record says of the member."""
    if member is None:
        return ()
    return member.epoch, member.previous_epoch, member.state, member.assigned, member.pending_revocation


def _kept(was: Mapping[str, Partitions], now: Mapping[str, Partitions]) -> int:
    """How many partitions have the owner they had; of two owners the later one counts."""
    owner = by_place(now)
    return sum(owner.get((topic, p)) == who for who, parts in was.items() for topic, ps in parts.items() for p in ps)
