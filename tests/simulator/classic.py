"""Classic groups (docs/coordinator-log.md): members join, a leader assigns, and one record shows how it ended.

A process says what it owns when it joins. In the eager protocols that is nothing; `sticky` remembers in user data,
`cooperative-sticky` keeps what it has and names the generation it got it in (KIP-341, KIP-429, KIP-792). A process
whose generation is not the group's has lost what it owned.
"""

from collections.abc import Callable
from dataclasses import replace

from lab import builders
from lab.builders import RecordBytes
from tests.simulator.assignors import Assignment, cooperative, ranges, sticky
from tests.simulator.cluster import Place
from tests.simulator.memory import COOPERATIVE, Group, Member, by_topic

Assignor = Callable[[Group, dict[str, set[Place]]], Assignment]

USER_DATA = b"custom"


def begun(group: Group, now_ms: int) -> list[RecordBytes]:
    """The first JoinGroup of a unknown group; where offsets are known, so is the group, and nothing is written."""
    group.generation = 0
    if group.exists:
        return []
    group.kind, group.written_generation, group.written, group.assignment = "classic", 0, (), {}
    group.opened = False
    return [builders.new_group_metadata(group.name, timestamp=now_ms)]


def round_completed(group: Group, *, joined_ms: int, assignor: Assignor | None = None) -> list[RecordBytes]:
    """The next generation: all members joined by `joined_ms`, the leader has synced; or no one is left to."""
    group.generation += 1
    claims = {member.member_id: _believed(group, member) for member in group.members.values()}
    given = (assignor or assigned)(group, claims) if group.members else {}
    for member in group.members.values():
        member.embedded = subscription(group, member)
        member.owned, member.owned_generation = set(given[member.member_id]), group.generation
    return written(group, given, joined_ms=joined_ms)


def round_lost(group: Group) -> None:
    """The leader was gone before it synced: the generation is used up, and nothing is written.

    The members have rejoined, and what they said then is known to the coordinator.
    """
    group.generation += 1
    for member in group.members.values():
        member.embedded = subscription(group, member)


def assigned(group: Group, claims: dict[str, set[Place]]) -> Assignment:
    """What the group's own assignor gives."""
    wanted = {of.member_id: group.cluster.named_places(group.subscribed(of)) for of in group.members.values()}
    if group.protocol == "range":
        return ranges(wanted)
    return (sticky if group.protocol == "sticky" else cooperative)(wanted, claims)


def bounced(group: Group, member: Member, member_id: str, *, joined_ms: int) -> list[RecordBytes]:
    """A static member is back under a new id: same generation, same assignment, the rest as it was."""
    place = list(group.members)
    former, member.member_id = member.member_id, member_id
    group.members = {member_id if of == former else of: group.members[of] for of in place}
    given = {member_id if of == former else of: places for of, places in group.assignment.items()}
    member.owned, member.owned_generation = set(), -1
    member.embedded = subscription(group, member)
    member.owned, member.owned_generation = set(given.get(member_id, ())), group.written_generation
    return written(group, given, joined_ms=joined_ms)


def written(group: Group, given: Assignment, *, joined_ms: int) -> list[RecordBytes]:
    """The record of the group with all its members, as they joined, and what each was given."""
    data = USER_DATA if group.custom_assignor else None
    members = [
        builders.member(
            member.member_id,
            instance_id=member.instance_id,
            client_id=member.client_id,
            client_host=member.client_host,
            subscription_bytes=member.embedded,
            assignment_bytes=builders.assignment(by_topic(given.get(member.member_id, ())), user_data=data),
        )
        for member in group.members.values()
    ]
    group.kind, group.written_generation, group.assignment = "classic", group.generation, given
    group.written = tuple(replace(member) for member in group.members.values())
    return [
        builders.group_metadata(
            group.name, generation=group.generation, members=members, protocol=group.protocol, timestamp=joined_ms
        )
    ]


def subscription(group: Group, member: Member) -> bytes:
    """What the member sends to join: its topics, what it owns, and since when."""
    believed, generation = _believed(group, member), member.owned_generation if _current(group, member) else -1
    if group.protocol == "sticky":
        data = builders.sticky_user_data(by_topic(believed), generation) if generation >= 0 else None
        return builders.subscription(member.topics, generation_id=generation, user_data=data)
    if group.protocol in COOPERATIVE:
        data = builders.cooperative_sticky_user_data(generation)
        owned = by_topic(believed)
        return builders.subscription(member.topics, owned=owned, generation_id=generation, user_data=data)
    return builders.subscription(member.topics, generation_id=generation)


def _current(group: Group, member: Member) -> bool:
    """Whether what the process believes still holds for it; `sticky` remembers whatever it had."""
    return group.kind == "consumer" or group.protocol == "sticky" or member.owned_generation == group.written_generation


def _believed(group: Group, member: Member) -> set[Place]:
    return set(member.owned) if _current(group, member) else set()
