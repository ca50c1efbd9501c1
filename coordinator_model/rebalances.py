"""When a group rebalances, and what it cost.

    family             begins                                          ends
    classic            not in the log                                  a record with a higher generation and members
    consumer,streams   epochs or members move away from the target     every member is Stable at the group epoch
    share              the group epoch moves on                        the target's epoch and all members reach it

Epochs that move on while a rebalance is under way belong to it. A classic rebalance has a duration only from the
end of its join phase (`currentStateTimestamp`) to the leader's assignment; how long members took to join is not
recorded. Generations that were begun and never completed are the gap between two that were.

A partition that had an owner before and has one after was kept or has moved; the share that was kept is the
assignment's stickiness. One that comes from nobody or goes to nobody counts as neither.

A member that is removed after its own rebalance timeout, without having let go of what it had to, was fenced by the
coordinator; a member that leaves just then looks the same, so it is inferred.

A storm is many completed rebalances in a few minutes: more than restarting every member would take.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from coordinator_model import causes as why_of
from coordinator_model import clocks
from coordinator_model.causes import causes, triggers
from coordinator_model.conclusions import Finding, Place
from coordinator_model.group_state import (
    FIRST_EPOCH,
    STREAMS,
    ClassicGroup,
    ClassicMember,
    GroupCounters,
    GroupState,
    Handover,
    Membership,
    ModernGroup,
    ModernMember,
    Partitions,
    Rebalance,
)
from coordinator_model.groups import consumer, modern, streams

DEFAULT_REBALANCE_TIMEOUT_MS: Final = 300_000
"""Where no member says its own: max.poll.interval.ms of Kafka's consumer."""

STORM_WINDOW_MS: Final = 300_000
STORM_REBALANCES: Final = 20
STORM_REBALANCES_A_MEMBER: Final = 4
"""A storm is more than 20 + 4 a member in five minutes: a rolling restart costs every member a leave and a join, and
may be done twice. Follow-up rounds of a cooperative rebalance do not count, nor what happens while a group is rolled
from one protocol to the other: that is somebody's intention."""


def epochs_known(group: ModernGroup) -> bool:
    """False for a group met half-way in a compacted log: without both epochs nothing can be said of a rebalance.

    A new group may wait for its first target, for a regular expression or the delay of a streams group: its members
    then stand where memory starts, and nobody has a target.
    """
    if not group.epoch_live or group.assignment_epoch_live:
        return group.epoch_live
    new = all(member.current_live and 0 <= member.epoch <= FIRST_EPOCH for member in group.members.values())
    return new and not group.targets and not group.task_targets


def under_way(group: ModernGroup) -> bool:
    """True while the group is between targets. A static member that is away is waited for, not rebalanced."""
    if not group.members or not epochs_known(group):
        return False
    return group.epoch > group.assignment_epoch or bool(unsettled(group))


def follow(state: GroupState, before: Membership, after: Membership, place: Place) -> Iterator[Finding]:
    """Advance the group's rebalance over one step; yields its beginning, its end and what was lost."""
    group, time_ms = after.modern_group, place.timestamp_ms
    if group is not None:
        yield from _modern(state, before, after, group, place)
        return
    state.rebalance = None
    was, now = before.classic_group, after.classic_group
    if was is not None and now is not None and now.generation > was.generation:
        yield from _lost_rounds(state, was, now, time_ms)
        if now.members:
            why = causes(before, after)
            cost = _cost(state, owners_of(was.members), owners_of(now.members), time_ms)
            detail = {**_sync_time(state.counters, now, time_ms), **cost, "causes": why, **triggers(before, after, why)}
            yield _completed(state.counters, {"generation": now.generation, "members": len(now.members), **detail})
            yield from _storm(state, why, len(now.members), time_ms)


def storm_rebalances(recent_rebalances_ms: Iterable[int], now_ms: int) -> int:
    """How many were completed within `STORM_WINDOW_MS`, of a state's `recent_rebalances_ms`."""
    return sum(clocks.within(STORM_WINDOW_MS, ms, now_ms) for ms in recent_rebalances_ms)


def timeout_ms(member: ModernMember) -> int:
    """How long the member may take to let go of partitions: its own word, or Kafka's default."""
    return member.rebalance_timeout_ms if member.rebalance_timeout_ms > 0 else DEFAULT_REBALANCE_TIMEOUT_MS


def unsettled(group: ModernGroup) -> list[ModernMember]:
    """Members that a rebalance waits for. A static member that is away is not waited for."""
    stable = streams.MEMBER_STABLE if group.family == STREAMS else consumer.MEMBER_STABLE
    return [member for member in modern.unsettled_members(group, stable) if not member.is_absent_static]


def _lost_rounds(state: GroupState, was: ClassicGroup, now: ClassicGroup, time_ms: int) -> Iterator[Finding]:
    lost = now.generation - was.generation - 1
    if lost:
        state.counters.rounds_lost += lost
        state.rounds_lost_ms = time_ms
        detail = {"from_generation": was.generation, "to_generation": now.generation, "rounds_lost": lost}
        yield Finding("rebalance_rounds_lost", detail, inferred=True)


def _completed(counters: GroupCounters, detail: Mapping[str, Any]) -> Finding:
    counters.rebalances += 1
    return Finding("rebalance_completed", detail)


def _sync_time(counters: GroupCounters, group: ClassicGroup, time_ms: int) -> dict[str, int]:
    if group.state_timestamp_ms < 0:
        return {}
    sync_ms = clocks.rebalance_ms(group.state_timestamp_ms, time_ms, jumped=False)
    if sync_ms is None:
        return {}
    counters.observe_duration(sync_ms)
    return {"sync_ms": sync_ms}


def _cost(
    state: GroupState, was: Mapping[str, Partitions], now: Mapping[str, Partitions], time_ms: int
) -> dict[str, Any]:
    """Count what moved and what stayed, and keep who had what was handed over."""
    kept, taken = kept_and_taken(was, now)
    partitions_moved = sum(len(partitions) for parts in taken.values() for partitions in parts.values())
    state.handover = Handover(time_ms=time_ms, former_owners=taken) if taken else None
    state.counters.partitions_kept += kept
    state.counters.partitions_moved += partitions_moved
    both = kept + partitions_moved
    stickiness = round(kept / both, 4) if both else None
    return {"partitions_moved": partitions_moved, "partitions_kept": kept, "stickiness": stickiness}


def _storm(state: GroupState, why: Sequence[str], members: int, time_ms: int) -> Iterator[Finding]:
    """Remember a completed rebalance; yields a storm once, when it begins."""
    if "conversion" in why or list(why) == ["follow_up"] or state.migration.mixed_since_ms is not None:
        return
    recent = (*state.recent_rebalances_ms, time_ms)
    state.recent_rebalances_ms = tuple(ms for ms in recent if clocks.within(STORM_WINDOW_MS, ms, time_ms))
    storm = len(state.recent_rebalances_ms) > STORM_REBALANCES + STORM_REBALANCES_A_MEMBER * members
    if storm and not state.storm:
        detail = {"rebalances": len(state.recent_rebalances_ms), "window_ms": STORM_WINDOW_MS, "members": members}
        yield Finding("rebalance_storm", detail, inferred=True)
    state.storm = storm


def _modern(
    state: GroupState, before: Membership, after: Membership, group: ModernGroup, place: Place
) -> Iterator[Finding]:
    fenced = _overdue(state.rebalance, before, after, place.timestamp_ms)
    yield from _fenced(fenced)
    if not group.members:
        state.rebalance = None
        return
    was = before.modern_group
    moving = under_way(group)
    if state.rebalance is None:
        moved_on = was is None or not epochs_known(was) or group.epoch > was.epoch
        if not moving and not (moved_on and epochs_known(group)):
            return
        state.rebalance = _begun(was, group, place)
        why = causes(before, after)
        state.rebalance.causes = tuple(why)
        detail = {"epoch": group.epoch, "members": len(group.members), "causes": why}
        yield Finding("rebalance_started", {**detail, **triggers(before, after, why)})
    elif was is not None and group.epoch > was.epoch:
        why = causes(before, after, fenced)
        state.rebalance.causes = tuple(dict.fromkeys((*state.rebalance.causes, *why)))
    if moving:
        _time(state.rebalance, was, group, place.timestamp_ms)
        return
    rebalance, state.rebalance = state.rebalance, None
    duration_ms = clocks.rebalance_ms(rebalance.since_ms, place.timestamp_ms, jumped=rebalance.clock_jumped)
    if duration_ms is not None:
        state.counters.observe_duration(duration_ms)
    cost = _cost(state, rebalance.owners, owners_of(group.members), place.timestamp_ms)
    detail = {"epoch": group.epoch, "members": len(group.members), "duration_ms": duration_ms, **cost}
    yield _completed(state.counters, {**detail, **_explained(rebalance, group)})
    yield from _storm(state, rebalance.causes, len(group.members), place.timestamp_ms)


def _begun(was: ModernGroup | None, group: ModernGroup, place: Place) -> Rebalance:
    return Rebalance(
        since_ms=place.timestamp_ms,
        offset=place.offset,
        from_epoch=was.epoch if was else group.epoch,
        owners=owners_of(was.members) if was is not None else {},
        partition_counts=why_of.known_partitions(was) if was is not None else {},
    )


def _explained(rebalance: Rebalance, group: ModernGroup) -> dict[str, Any]:
    """The causes, once the assignment tells whether it was partitions that came with the topics' metadata."""
    grown = why_of.grown(rebalance.partition_counts, why_of.known_partitions(group))
    if why_of.METADATA not in rebalance.causes or not grown or group.family == STREAMS:
        return {"causes": list(rebalance.causes)}
    told = [why_of.PARTITION_COUNT if cause == why_of.METADATA else cause for cause in rebalance.causes]
    return {"causes": told, **why_of.growth_detail(grown)}


def _time(rebalance: Rebalance, was: ModernGroup | None, group: ModernGroup, time_ms: int) -> None:
    """Note since when a target is waited for, and each member: a record of it starts its time anew."""
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


def _overdue(
    rebalance: Rebalance | None, before: Membership, after: Membership, time_ms: int
) -> dict[str, ModernMember]:
    """Members that were removed after their rebalance timeout, having partitions to let go of."""
    was, now = before.modern_group, after.modern_group
    if rebalance is None or was is None or now is None:
        return {}
    gone = (member for member_id, member in was.members.items() if member_id not in now.members)
    since = rebalance.unsettled_since_ms
    return {
        member.member_id: member
        for member in gone
        if member.pending_revocation and time_ms - since.get(member.member_id, time_ms) >= timeout_ms(member)
    }


def _fenced(members: Mapping[str, ModernMember]) -> Iterator[Finding]:
    for member_id, member in sorted(members.items()):
        not_released = {topic: list(partitions) for topic, partitions in member.pending_revocation.items()}
        detail = {"member_id": member_id, "instance_id": member.instance_id, "epoch": member.epoch}
        yield Finding("member_fenced", {**detail, "not_released": not_released}, inferred=True)


def owners_of(members: Mapping[str, ClassicMember] | Mapping[str, ModernMember]) -> dict[str, Partitions]:
    """Owner → partitions; a static member owns under its instance id, whatever its member id is."""
    return {member.instance_id or member.member_id: member.assigned for member in members.values()}


def kept_and_taken(was: Mapping[str, Partitions], now: Mapping[str, Partitions]) -> tuple[int, dict[str, Partitions]]:
    """How many partitions have the owner they had; and former owner → partitions that have another one now."""
    owner = {(topic, p): who for who, parts in now.items() for topic, ps in parts.items() for p in ps}
    kept, taken = 0, dict[str, Partitions]()
    for who, parts in was.items():
        kept += sum(owner.get((topic, p)) == who for topic, ps in parts.items() for p in ps)
        lost = {topic: tuple(p for p in ps if owner.get((topic, p), who) != who) for topic, ps in parts.items()}
        if any(lost.values()):
            taken[who] = {topic: partitions for topic, partitions in lost.items() if partitions}
    return kept, taken
