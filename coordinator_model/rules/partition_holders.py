"""Who holds which partitions, across the members of a group."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from coordinator_model.rules.transition import Transition
from coordinator_model.state.findings import Finding
from coordinator_model.state.membership import STREAMS, ClassicMember, Membership, ModernMember, Partitions


def held(membership: Membership) -> Mapping[str, frozenset[int]]:
    """Topic (name in a classic group, id in any other) → partitions that some member holds; nothing of streams groups.

    What is yet to be revoked is held, and so is what a static member has that is away.
    """
    modern = membership.modern_group
    if modern is not None and modern.family == STREAMS:
        return {}
    merged: dict[str, set[int]] = {}
    for member in _members(membership).values():
        for part in _holds(member):
            for topic, partitions in part.items():
                merged.setdefault(topic, set()).update(partitions)
    return {topic: frozenset(partitions) for topic, partitions in merged.items()}


def changed(before: Membership, after: Membership) -> bool:
    """Whether some member holds other partitions than before, or another member does."""
    if before.modern_group is None and after.modern_group is None and before.classic is after.classic:
        return False
    was, now = _members(before), _members(after)
    if was.keys() != now.keys():
        return True
    return any(
        _holds(member) != _holds(was[member_id]) for member_id, member in now.items() if member is not was[member_id]
    )


def remember_change(transition: Transition) -> Iterable[Finding]:
    """Remember when and where it was last written that a member holds other partitions. It finds nothing alone."""
    if changed(transition.before, transition.after):
        transition.state.held_ms, transition.state.held_offset = transition.time_ms, transition.position.offset
    return ()


def held_twice(held: Iterable[tuple[str, Partitions]]) -> dict[str, tuple[str, ...]]:
    """The `Holders` of partitions that more than one member has, of (member id, partitions)."""
    listed = list(held)
    if _disjoint(listed):
        return {}
    first: dict[tuple[str, int], str] = {}
    holders: dict[tuple[str, int], set[str]] = {}
    for member_id, parts in listed:
        for topic, partitions in parts.items():
            for partition in partitions:
                place = (topic, partition)
                other = first.setdefault(place, member_id)
                if other != member_id:
                    holders.setdefault(place, {other}).add(member_id)
    return {f"{topic}/{partition}": tuple(sorted(ids)) for (topic, partition), ids in sorted(holders.items())}


def _disjoint(held: Iterable[tuple[str, Partitions]]) -> bool:
    """The answer nearly always, found without a look at each partition's holder."""
    seen: dict[str, list[int]] = {}
    for _, parts in held:
        for topic, partitions in parts.items():
            seen.setdefault(topic, []).extend(partitions)
    return all(len(set(partitions)) == len(partitions) for partitions in seen.values())


def _members(membership: Membership) -> Mapping[str, ClassicMember | ModernMember]:
    modern = membership.modern_group
    if modern is not None:
        return modern.members
    return {} if membership.classic is None else membership.classic.members


def _holds(member: ClassicMember | ModernMember) -> tuple[Partitions, ...]:
    return (member.assigned,) if isinstance(member, ClassicMember) else (member.assigned, member.pending_revocation)
