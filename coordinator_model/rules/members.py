"""Who came, who went, and who is the same one again.

A static member (KIP-345) is known by its instance id; its member id changes with every restart. So a member that
goes in the same step in which another with its instance id comes was replaced, and one that had said it would be
back (epoch -2, consumer protocol) has returned: neither is a leave and a join.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from coordinator_model.rules.transition import Transition
from coordinator_model.state.findings import Finding
from coordinator_model.state.membership import SHARE, STREAMS, ClassicMember, Membership, ModernMember

Member = ClassicMember | ModernMember


def members_of(membership: Membership) -> Mapping[str, Member]:
    """Member id → member, whatever the group is; the membership's own, which changes with it."""
    modern = membership.modern_group
    if modern is not None:
        return modern.members
    return {} if membership.classic is None else membership.classic.members


def is_absent(member: Member) -> bool:
    """A static member known to be away; of classic ones the log does not tell."""
    return isinstance(member, ModernMember) and member.is_absent_static


def speaks(member: Member) -> str:
    """Protocol the member uses: `classic` or `consumer`."""
    return "consumer" if isinstance(member, ModernMember) and not member.uses_classic_protocol else "classic"


def session_timeout_ms(member: Member) -> int | None:
    """How long the member may be silent; None where the log does not tell."""
    stated = member.session_timeout_ms if isinstance(member, ClassicMember) else member.classic_session_timeout_ms
    return stated if stated > 0 else None


def replacements(was: Mapping[str, Member], now: Mapping[str, Member]) -> list[tuple[Member, Member]]:
    """(former, present) of each static member that goes while another of its instance id comes."""
    if not was or was.keys() == now.keys():
        return []
    gone = {of.instance_id: of for id_, of in was.items() if id_ not in now and of.instance_id is not None}
    come = [of for id_, of in now.items() if id_ not in was and of.instance_id in gone]
    return [(gone.pop(of.instance_id), of) for of in come if of.instance_id in gone]


def joins_and_leaves(transition: Transition) -> Iterator[Finding]:
    """Who joined and who left over one step; who was replaced did neither (`static_members.py`), nor who was fenced."""
    was, now = members_of(transition.before), members_of(transition.after)
    same = {of.member_id for pair in replacements(was, now) for of in pair}
    same |= {str(of.detail["member_id"]) for of in transition.found if of.kind == "member_fenced"}
    for member_id, member in now.items():
        if member_id not in was and member_id not in same:
            yield Finding("member_joined", {**named(member), **own_protocol(transition.after)})
    for member_id, member in was.items():
        if member_id not in now and member_id not in same:
            yield Finding("member_left", {**named(member), **own_protocol(transition.before)})


def own_protocol(membership: Membership) -> dict[str, str]:
    """Share and streams groups have a protocol of their own, which is not the consumer groups'."""
    return {"protocol": membership.type} if membership.type in (SHARE, STREAMS) else {}


def emptied(transition: Transition) -> Iterator[Finding]:
    """The last member went, and the group is still there."""
    before, after = transition.before, transition.after
    if after.exists and members_of(before) and not members_of(after):
        yield Finding("group_emptied", {"type": after.type, "epoch": after.epoch})


def units(membership: Membership) -> dict[str, Any]:
    """What is to be said of partitions in an event: of a streams group they are tasks, by subtopology."""
    return {"tasks": True} if membership.family == STREAMS else {}


def named(member: Member) -> dict[str, Any]:
    """A member as events name it."""
    return {
        "member_id": member.member_id,
        "instance_id": member.instance_id,
        "client_id": member.client_id,
        "client_host": member.client_host,
        "protocol": speaks(member),
    }
