"""Static members over time: who stands for an instance id, who is away, and two that fight over it (KIP-345).

An instance id is one process's identity. When a new member id takes it over, the former one is fenced. Once is a
restart, and saved a rebalance if the group did not move; again and again within minutes is two processes configured
with the same id, each throwing the other out.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from coordinator_model.conclusions import Finding
from coordinator_model.group_state import GroupState, InstanceHistory, Membership
from coordinator_model.roster import is_absent, members_of

CONTENDED_REPLACEMENTS: Final = 3
CONTENDED_WINDOW_MS: Final = 120_000
"""So many take-overs of one instance id in so short a time are no restarts."""


def follow(state: GroupState, before: Membership, after: Membership, time_ms: int) -> Iterator[Finding]:
    """Advance `state.instances` over one step; yields contention, once as long as it lasts."""
    was = {member.instance_id: member for member in members_of(before).values() if member.instance_id is not None}
    now = {member.instance_id: member for member in members_of(after).values() if member.instance_id is not None}
    for instance_id, member in now.items():
        history = state.instances.setdefault(instance_id, InstanceHistory(member_id=member.member_id))
        former = was.get(instance_id)
        away = is_absent(member)
        history.absent_since_ms = (history.absent_since_ms or time_ms) if away else None
        if history.member_id != member.member_id:
            replaced_live = former is not None and not is_absent(former)
            recent = (*history.replaced_ms, time_ms) if replaced_live else history.replaced_ms
            history.replaced_ms = tuple(ms for ms in recent if time_ms - ms <= CONTENDED_WINDOW_MS)
            former_id, history.member_id = history.member_id, member.member_id
            contended = len(history.replaced_ms) >= CONTENDED_REPLACEMENTS
            if contended and not history.contended:
                yield Finding(
                    "static_member_contended",
                    {
                        "instance_id": instance_id,
                        "member_ids": sorted((former_id, member.member_id)),
                        "replacements": len(history.replaced_ms),
                        "window_ms": CONTENDED_WINDOW_MS,
                    },
                    inferred=True,
                )
            history.contended = contended
    for instance_id in state.instances.keys() - now.keys():
        del state.instances[instance_id]
