"""When a group rebalances, and what it cost.

    family             begins                                          ends
    classic            not in the log                                  a record with a higher generation and members
    consumer,streams   epochs or members move away from the target     every member is Stable at the group epoch
    share              the group epoch moves on                        the target's epoch and all members reach it

Epochs that move on while a rebalance is under way belong to it. A classic rebalance has a duration only from the
end of its join phase (`currentStateTimestamp`) to the leader's assignment; how long members took to join is not
recorded. Generations that were begun and never completed are the gap between two that were.

A storm is many completed rebalances in a few minutes: more than restarting every member would take.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from coordinator_model.causes import causes
from coordinator_model.conclusions import Finding
from coordinator_model.group_state import (
    FIRST_EPOCH,
    STREAMS,
    ClassicGroup,
    ClassicMember,
    GroupCounters,
    GroupState,
    Membership,
    ModernGroup,
    ModernMember,
    Partitions,
    Rebalance,
)
from coordinator_model.groups import consumer, modern, streams

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
    stable = streams.MEMBER_STABLE if group.family == STREAMS else consumer.MEMBER_STABLE
    late = modern.unsettled_members(group, stable)
    return group.epoch > group.assignment_epoch or any(not member.is_absent_static for member in late)


def follow(state: GroupState, before: Membership, after: Membership, time_ms: int) -> Iterator[Finding]:
    """Advance the group's rebalance over one step; yields its beginning, its end and what was lost."""
    group = after.modern_group
    if group is not None:
        yield from _modern(state, before, after, group, time_ms)
        return
    state.rebalance = None
    was, now = before.classic_group, after.classic_group
    if was is not None and now is not None and now.generation > was.generation:
        yield from _lost_rounds(state.counters, was, now)
        if now.members:
            why = causes(before, after)
            yield _classic(state.counters, was, now, why, time_ms)
            yield from _storm(state, why, len(now.members), time_ms)


def _lost_rounds(counters: GroupCounters, was: ClassicGroup, now: ClassicGroup) -> Iterator[Finding]:
    lost = now.generation - was.generation - 1
    if lost:
        counters.rounds_lost += lost
        detail = {"from_generation": was.generation, "to_generation": now.generation, "rounds_lost": lost}
        yield Finding("rebalance_rounds_lost", detail, inferred=True)


def _classic(counters: GroupCounters, was: ClassicGroup, now: ClassicGroup, why: list[str], time_ms: int) -> Finding:
    partitions_moved = moved(_owners(was.members), _owners(now.members))
    detail: dict[str, Any] = {
        "generation": now.generation,
        "members": len(now.members),
        "partitions_moved": partitions_moved,
        "causes": why,
    }
    if now.state_timestamp_ms >= 0:
        detail["sync_ms"] = max(0, time_ms - now.state_timestamp_ms)
        counters.observe_duration(detail["sync_ms"])
    counters.rebalances += 1
    counters.partitions_moved += partitions_moved
    return Finding("rebalance_completed", detail)


def _storm(state: GroupState, why: Sequence[str], members: int, time_ms: int) -> Iterator[Finding]:
    """Remember a completed rebalance; yields a storm once, when it begins."""
    if "conversion" in why or list(why) == ["follow_up"] or state.migration.mixed_since_ms is not None:
        return
    recent = (*state.recent_rebalances_ms, time_ms)
    state.recent_rebalances_ms = tuple(ms for ms in recent if time_ms - ms <= STORM_WINDOW_MS)
    storm = len(state.recent_rebalances_ms) > STORM_REBALANCES + STORM_REBALANCES_A_MEMBER * members
    if storm and not state.storm:
        detail = {"rebalances": len(state.recent_rebalances_ms), "window_ms": STORM_WINDOW_MS, "members": members}
        yield Finding("rebalance_storm", detail, inferred=True)
    state.storm = storm


def _modern(
    state: GroupState, before: Membership, after: Membership, group: ModernGroup, time_ms: int
) -> Iterator[Finding]:
    if not group.members:
        state.rebalance = None
        return
    was = before.modern_group
    moving = under_way(group)
    if state.rebalance is None:
        moved_on = was is None or not epochs_known(was) or group.epoch > was.epoch
        if not moving and not (moved_on and epochs_known(group)):
            return
        owners = _owners(was.members) if was is not None else {}
        state.rebalance = Rebalance(since_ms=time_ms, from_epoch=was.epoch if was else group.epoch, owners=owners)
        why = causes(before, after)
        state.rebalance.causes = tuple(why)
        yield Finding("rebalance_started", {"epoch": group.epoch, "members": len(group.members), "causes": why})
    elif was is not None and group.epoch > was.epoch:
        state.rebalance.causes = tuple(dict.fromkeys((*state.rebalance.causes, *causes(before, after))))
    if moving:
        return
    rebalance, state.rebalance = state.rebalance, None
    duration_ms = max(0, time_ms - rebalance.since_ms)
    partitions_moved = moved(rebalance.owners, _owners(group.members))
    state.counters.rebalances += 1
    state.counters.partitions_moved += partitions_moved
    state.counters.observe_duration(duration_ms)
    yield Finding(
        "rebalance_completed",
        {
            "epoch": group.epoch,
            "members": len(group.members),
            "duration_ms": duration_ms,
            "partitions_moved": partitions_moved,
            "causes": list(rebalance.causes),
        },
    )
    yield from _storm(state, rebalance.causes, len(group.members), time_ms)


def _owners(members: Mapping[str, ClassicMember] | Mapping[str, ModernMember]) -> dict[str, Partitions]:
    """Owner → partitions; a static member owns under its instance id, whatever its member id is."""
    return {member.instance_id or member.member_id: member.assigned for member in members.values()}


def moved(was: Mapping[str, Partitions], now: Mapping[str, Partitions]) -> int:
    """Partitions that had an owner before and have another one now."""
    former = {(topic, p): owner for owner, parts in was.items() for topic, ps in parts.items() for p in ps}
    return sum(
        former.get((topic, p), owner) != owner
        for owner, parts in now.items()
        for topic, ps in parts.items()
        for p in ps
    )
