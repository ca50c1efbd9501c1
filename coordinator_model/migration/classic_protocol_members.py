"""Members that still use the classic protocol in a consumer group, each a machine of its own (KIP-848, online upgrade).

While a group is mixed, the coordinator translates: JoinGroup brings what a member owns and moves it on, SyncGroup
fetches what it was given, Heartbeat answers REBALANCE_IN_PROGRESS when it must join again. KIP-848 gives each
such member the states of a classic group:

    PrepareRebalance      must rejoin, within its rebalance timeout from the heartbeat that said so
    CompletingRebalance   has rejoined and must sync, within its rebalance timeout
    Stable                has synced

A rejoin leaves a trace (the member's metadata or its current assignment is written), a sync and a heartbeat leave none.
What records show is the *situation* of the member:

    situation        records show                                                   heartbeats tell it to rejoin
    unknown          no current assignment, or a state of a newer broker            not known
    revoking         state UnrevokedPartitions: it keeps what is assigned, which    yes: as soon as it has revoked, it
                     is assigned ∩ target, and has to give up what is pending       rejoins without it
    behind           member epoch < assignment epoch                                yes
    awaiting_target  member epoch = assignment epoch < group epoch                  up to 4.2; later ones compute the
                                                                                    target first (KIP-1263)
    waiting          state UnreleasedPartitions, and others still hold part of      no
                     its target
    released         state UnreleasedPartitions, and no member holds any            yes, to get it
    settled          none of these                                                  no

and from it follows the state, the first row that holds:

    state                 holds when                                                 inferred
    CompletingRebalance   it rejoined within the last three seconds: a client        yes
                          syncs at once, and that is not written
    PrepareRebalance      heartbeats tell it to rejoin                               only if awaiting_target
    Stable                its last join is longer ago than its rebalance timeout,    no
                          and it is still there: who does not sync is removed
    Stable                none of the above                                          yes
    Unknown               its situation is unknown                                   yes

A member revokes *eagerly* everything before it rejoins, so that it never is revoking, or *cooperatively* what it lost:

    rebalance protocol  shown by                                                     inferred
    cooperative         it claimed partitions as owned when it joined                no
    eager               it supports an assignor that is eager (range, roundrobin,    yes: by the assignor's name
                        sticky): a client may revoke less only if all of its
                        assignors can
    cooperative         it supports cooperative-sticky alone                         yes: by the assignor's name
    unknown             it supports assignors of its own, and claimed nothing

(GroupMetadataManager.classicGroupJoinToConsumerGroup, -SyncTo-, -HeartbeatTo-; CurrentAssignmentBuilder.)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from coordinator_model.groups import consumer
from coordinator_model.groups.embedded_subscription import COOPERATIVE_STICKY, STICKY
from coordinator_model.state.clocks import within
from coordinator_model.state.membership import CONSUMER, Membership, ModernGroup, ModernMember, Partitions
from coordinator_model.state.partitions import common, merged, without
from coordinator_model.state.rule_memory import ClassicProgress

PREPARE_REBALANCE: Final = "PrepareRebalance"
COMPLETING_REBALANCE: Final = "CompletingRebalance"
STABLE: Final = "Stable"
UNKNOWN_STATE: Final = "Unknown"

UNKNOWN: Final = "unknown"
REVOKING: Final = "revoking"
BEHIND: Final = "behind"
AWAITING_TARGET: Final = "awaiting_target"
WAITING: Final = "waiting"
RELEASED: Final = "released"
SETTLED: Final = "settled"

MUST_REJOIN: Final = {
    UNKNOWN: False,
    REVOKING: True,
    BEHIND: True,
    AWAITING_TARGET: True,
    WAITING: False,
    RELEASED: True,
    SETTLED: False,
}
"""Situation → whether the coordinator answers the member's heartbeats with REBALANCE_IN_PROGRESS."""

EAGER: Final = "eager"
COOPERATIVE: Final = "cooperative"
REBALANCE_PROTOCOLS: Final = {"range": EAGER, "roundrobin": EAGER, STICKY: EAGER, COOPERATIVE_STICKY: COOPERATIVE}
"""Assignor of Kafka's consumer → the rebalance protocol that its client uses with it."""

SYNC_WITHIN_MS: Final = 3_000
"""A client sends SyncGroup on the answer to its JoinGroup: a round trip, with room for a slow one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassicMemberState:
    """State of one member at one moment, and what it waits for. Topics stand under their ids.

    `keeps` is assigned ∩ target; `revokes` what it holds beyond that; `waits_for` what others hold of its target, by
    their member ids.
    """

    state: str
    inferred: bool
    since_ms: int | None
    situation: str
    rebalance_protocol: str | None
    rebalance_protocol_inferred: bool
    keeps: Partitions
    revokes: Partitions
    waits_for: Mapping[str, Partitions]


PartitionHolders = Mapping[str, Mapping[int, str]]
"""Topic → partition → id of the member that holds it, what it has yet to give up included."""


def holders(group: ModernGroup) -> PartitionHolders:
    """Who holds what of a consumer group."""
    held: dict[str, dict[int, str]] = {}
    for member in group.members.values():
        for parts in (member.assigned, member.pending_revocation):
            for topic, partitions in parts.items():
                held.setdefault(topic, {}).update(dict.fromkeys(partitions, member.member_id))
    return held


def track(progress: dict[str, ClassicProgress], before: Membership, after: Membership, time_ms: int) -> None:
    """Advance what is remembered of the classic members of a consumer group over one step."""
    group = after.modern_group
    if group is None or group.family != CONSUMER:
        progress.clear()
        return
    classic = {of.member_id: of for of in group.members.values() if of.uses_classic_protocol}
    for member_id in progress.keys() - classic.keys():
        del progress[member_id]
    if not classic:
        return
    was, held = before.modern_group, holders(group)
    former = was.members if was is not None and was.family == CONSUMER else None
    for member_id, member in classic.items():
        known, now = progress.get(member_id), situation(group, member, held)
        # Members that a conversion brought along have not joined this group: it was made of them.
        joined = former is not None and former.get(member_id) != member
        joined_ms = time_ms if joined else known.joined_ms if known is not None else None
        since_ms = known.since_ms if known is not None and known.situation == now and not joined else time_ms
        progress[member_id] = ClassicProgress(situation=now, since_ms=since_ms, joined_ms=joined_ms)


def situation(group: ModernGroup, member: ModernMember, held: PartitionHolders) -> str:
    """What the records of the group say about the member; a key of `MUST_REJOIN`."""
    if not member.current_live or member.state not in consumer.MEMBER_STATES:
        return UNKNOWN
    if member.state == consumer.MEMBER_UNREVOKED:
        return REVOKING
    if member.epoch < group.assignment_epoch:
        return BEHIND
    if member.epoch < group.epoch:
        return AWAITING_TARGET
    if member.state == consumer.MEMBER_STABLE:
        return SETTLED
    return WAITING if waits_for(group, member, held) else RELEASED


def state_of(
    group: ModernGroup, member: ModernMember, held: PartitionHolders, progress: ClassicProgress | None, now_ms: int
) -> ClassicMemberState:
    """State of a classic member of a consumer group at a moment that is not before the last record of the group."""
    now = situation(group, member, held)
    name, inferred = _state(member, now, None if progress is None else progress.joined_ms, now_ms)
    protocol, by_name = rebalance_protocol(member)
    target = group.targets.get(member.member_id, {})
    return ClassicMemberState(
        state=name,
        inferred=inferred,
        since_ms=None if progress is None else progress.since_ms,
        situation=now,
        rebalance_protocol=protocol,
        rebalance_protocol_inferred=by_name,
        keeps=common(member.assigned, target),
        revokes=merged(sorted([*without(member.assigned, target).items(), *member.pending_revocation.items()])),
        waits_for=waits_for(group, member, held),
    )


def _state(member: ModernMember, now: str, joined_ms: int | None, now_ms: int) -> tuple[str, bool]:
    if now == UNKNOWN:
        return UNKNOWN_STATE, True
    if joined_ms is not None and within(SYNC_WITHIN_MS, joined_ms, now_ms) and now not in (BEHIND, RELEASED):
        return COMPLETING_REBALANCE, True
    if MUST_REJOIN[now]:
        return PREPARE_REBALANCE, now == AWAITING_TARGET
    synced = joined_ms is not None and 0 < member.rebalance_timeout_ms < now_ms - joined_ms
    return STABLE, not synced


def rebalance_protocol(member: ModernMember) -> tuple[str | None, bool]:
    """(`eager` or `cooperative` or None, whether that is inferred from names of assignors)."""
    if any(claim is not None and claim.owned and name != STICKY for name, claim in member.claims.items()):
        return COOPERATIVE, False
    known = {REBALANCE_PROTOCOLS.get(name) for name in member.claims}
    if EAGER in known:
        return EAGER, True
    return (COOPERATIVE, True) if known == {COOPERATIVE} else (None, False)


def embedded_version(member: ModernMember) -> int | None:
    """Version of the embedded consumer protocol the member joined with; None where no subscription of it decodes."""
    return min((claim.version for claim in member.claims.values() if claim is not None), default=None)


def waits_for(group: ModernGroup, member: ModernMember, held: PartitionHolders) -> dict[str, Partitions]:
    """Member id → what that member still holds of this one's target."""
    found: dict[str, dict[str, tuple[int, ...]]] = {}
    for topic, partitions in without(group.targets.get(member.member_id, {}), member.assigned).items():
        for partition in partitions:
            holder = held.get(topic, {}).get(partition, member.member_id)
            if holder != member.member_id:
                parts = found.setdefault(holder, {})
                parts[topic] = (*parts.get(topic, ()), partition)
    return dict(sorted(found.items()))
