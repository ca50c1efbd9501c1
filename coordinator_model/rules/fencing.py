"""Whom the coordinator removed because it kept the others waiting for longer than its rebalance timeout.

    member of a group        has to, within its rebalance timeout             runs from
    consumer, streams        let go of what it is to revoke                   the last record of it
    mixed, classic protocol  join again: to let go, to reach the target, to   the record that made it do so, or the last
                             get what is free for it                          one of it

Nothing says why a member goes; one that goes after that time was removed, or left just then, so it is inferred. One
that is gone sooner left, or its session expired. One that is gone hours later was not removed: the coordinator's timer,
which begins again once the coordinator has moved, had not run so far, whatever the records' clock says. Who waits for
others has no time to keep, and a member that was fenced did not leave: `member_left` is not for it.

(GroupMetadataManager.scheduleConsumerGroupRebalanceTimeout, -JoinTimeoutIfNeeded.)
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from coordinator_model.migration.classic_protocol_members import MUST_REJOIN
from coordinator_model.rules.members import members_of, own_protocol, replacements, speaks, units
from coordinator_model.rules.rebalances import timeout_ms
from coordinator_model.rules.transition import Transition
from coordinator_model.state.findings import Finding
from coordinator_model.state.group_state import GroupState
from coordinator_model.state.membership import ModernGroup, ModernMember, Partitions

AWAY_MS: Final = 3_600_000
"""So long no broker leads a partition, which starts the timers of its groups again, and it is noticed otherwise."""


def fenced(transition: Transition) -> Iterator[Finding]:
    """Members gone with the step that had been waited for beyond their time."""
    state, was = transition.state, transition.before.modern_group
    if state.rebalance is None or was is None:
        return
    now = members_of(transition.after)
    same = {former.member_id for former, _ in replacements(was.members, now)}
    for member_id in sorted(was.members.keys() - now.keys() - same):
        member = was.members[member_id]
        waited_ms = transition.time_ms - state.rebalance.unsettled_since_ms.get(member_id, transition.time_ms)
        allowed_ms = timeout_ms(member)
        if allowed_ms <= waited_ms <= 2 * allowed_ms + AWAY_MS and _is_waited_for(state, member):
            detail: dict[str, Any] = {
                "member_id": member_id,
                "instance_id": member.instance_id,
                "client_id": member.client_id,
                "client_host": member.client_host,
                "protocol": speaks(member),
                **own_protocol(transition.before),
                "epoch": member.epoch,
                "waited_ms": waited_ms,
                "timeout_ms": allowed_ms,
                "not_released": {of: list(partitions) for of, partitions in not_released(was, member).items()},
            }
            yield Finding("member_fenced", detail | units(transition.before), inferred=True)


def not_released(group: ModernGroup, member: ModernMember) -> Partitions:
    """What it is asked to revoke; of a classic member that has not joined again, what is beyond its target."""
    if member.pending_revocation or not member.uses_classic_protocol:
        return member.pending_revocation
    target = group.targets.get(member.member_id, {})
    beyond = {
        topic: tuple(p for p in parts if p not in target.get(topic, ())) for topic, parts in member.assigned.items()
    }
    return {topic: partitions for topic, partitions in beyond.items() if partitions}


def _is_waited_for(state: GroupState, member: ModernMember) -> bool:
    if not member.uses_classic_protocol:
        return bool(member.pending_revocation)
    progress = state.migration.classic_members.get(member.member_id)
    return progress is not None and MUST_REJOIN.get(progress.situation, False)
