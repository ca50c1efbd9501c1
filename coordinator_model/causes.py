"""Why a group rebalanced, as far as the memberships before and after a step tell.

    cause          seen as
    conversion     the group's type changed
    join, leave    a member came; a member went (of its own will, expired or removed: the records are the same)
    static_return  a static member is back under another member id
    subscription   a member subscribes to other topics than before
    follow_up      the second round of a cooperative rebalance, which gives out what the first one took
    metadata       a new group epoch for none of these: partitions or topics changed
    rejoin         a new generation for none of these: the leader rejoined, or topic metadata changed

The broker writes no reason down, so each is an inference; several may hold at once.
"""

from __future__ import annotations

from typing import Final

from coordinator_model.group_state import ClassicGroup, ClassicMember, Membership
from coordinator_model.roster import Member, members_of

CAUSES: Final = (
    "conversion",
    "join",
    "leave",
    "static_return",
    "subscription",
    "follow_up",
    "metadata",
    "rejoin",
)


def causes(before: Membership, after: Membership) -> list[str]:
    """Causes of a rebalance between two memberships, of `CAUSES`."""
    was, now = members_of(before), members_of(after)
    came = [member for member_id, member in now.items() if member_id not in was]
    gone = [member for member_id, member in was.items() if member_id not in now]
    returned = {member.instance_id for member in came} & {member.instance_id for member in gone} - {None}
    found = {
        "conversion": before.exists and before.type != after.type,
        "join": any(member.instance_id not in returned for member in came),
        "leave": any(member.instance_id not in returned for member in gone),
        "static_return": bool(returned),
        "subscription": any(_topics(was[i]) != _topics(now[i]) for i in was.keys() & now.keys()),
    }
    told = [cause for cause in CAUSES if found.get(cause)]
    return told or _unexplained(before.classic_group, after.classic_group)


def _unexplained(before: ClassicGroup | None, after: ClassicGroup | None) -> list[str]:
    if before is None or after is None:
        return ["metadata"]
    return ["follow_up"] if _revoked(before, after) else ["rejoin"]


def _revoked(before: ClassicGroup, after: ClassicGroup) -> bool:
    """Whether the generation before took partitions from members that claim them no more, to be given out now."""
    given = sum(len(parts) for member in after.members.values() for parts in member.assigned.values())
    held = sum(len(parts) for member in before.members.values() for parts in member.assigned.values())
    return given > held


def _topics(member: Member) -> tuple[tuple[str, ...], str | None] | None:
    """What a member subscribes to; None where it is not known."""
    if isinstance(member, ClassicMember):
        return None if member.claim is None else (member.claim.topics, None)
    return member.subscribed_topics, member.subscribed_regex
