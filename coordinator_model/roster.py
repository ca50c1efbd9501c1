"""Who came, who went, and who is the same one again.

A static member (KIP-345) is known by its instance id; its member id changes with every restart. So a member that
goes in the same step in which another with its instance id comes was replaced, and one that had said it would be
back (epoch -2, consumer protocol) has returned: neither is a leave and a join.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from coordinator_model.conclusions import Finding
from coordinator_model.group_state import ClassicMember, GroupCounters, Membership, ModernMember

Member = ClassicMember | ModernMember


def members_of(membership: Membership) -> dict[str, Member]:
    """Member id → member, whatever the group is."""
    modern = membership.modern_group
    if modern is not None:
        return dict(modern.members)
    return {} if membership.classic is None else dict(membership.classic.members)


def is_absent(member: Member) -> bool:
    """A static member known to be away; of classic ones the log does not tell."""
    return isinstance(member, ModernMember) and member.is_absent_static


def speaks(member: Member) -> str:
    """Protocol the member uses: `classic` or `consumer`."""
    return "consumer" if isinstance(member, ModernMember) and not member.uses_classic_protocol else "classic"


def follow(counters: GroupCounters, before: Membership, after: Membership) -> Iterator[Finding]:
    """Findings about members over one step."""
    was, now = members_of(before), members_of(after)
    left = {member_id: member for member_id, member in was.items() if member_id not in now}
    joined = {member_id: member for member_id, member in now.items() if member_id not in was}
    gone_instances = {member.instance_id: member for member in left.values() if member.instance_id is not None}
    for member in joined.values():
        former = gone_instances.pop(member.instance_id, None) if member.instance_id is not None else None
        if former is None:
            yield Finding("member_joined", _named(member))
            continue
        del left[former.member_id]
        counters.static_replacements += 1
        kind = "static_member_returned" if is_absent(former) else "static_member_replaced"
        yield Finding(kind, {**_named(member), "former_member_id": former.member_id})
    for member in left.values():
        yield Finding("member_left", _named(member))
    for member_id, member in now.items():
        if is_absent(member) and not (member_id in was and is_absent(was[member_id])):
            yield Finding("static_member_absent", _named(member))


def _named(member: Member) -> dict[str, Any]:
    return {
        "member_id": member.member_id,
        "instance_id": member.instance_id,
        "client_id": member.client_id,
        "client_host": member.client_host,
        "protocol": speaks(member),
    }
