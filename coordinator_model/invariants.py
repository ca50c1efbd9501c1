"""Questions to a membership at the end of a step, never in its middle (coordinator-records, 5).

Exclusive ownership is the one everything rests on. It is judged

- for a classic group over the assignments of one generation (KAFKA-7026: the sticky assignor of old handed one
  partition to two members);
- for a consumer group over what members own *or have yet to revoke* (KAFKA-16147), a static member that is away
  still owning its own; streams groups likewise over active tasks;
- not for share groups, which share by design, nor between targets, which a custom assignor may overlap.
"""

from __future__ import annotations

from collections.abc import Iterable

from coordinator_model.group_state import SHARE, Membership, Partitions
from coordinator_model.groups.classic import CONSUMER_PROTOCOL_TYPE

Duplicates = dict[str, tuple[str, ...]]
"""`topic/partition` (`subtopology/partition` of a streams group) → ids of the members that hold it, sorted."""


def duplicate_assignments(membership: Membership) -> Duplicates:
    """Partitions that more than one member holds."""
    modern = membership.modern_group
    if modern is not None:
        if modern.family == SHARE:
            return {}
        return _held_twice(
            (member.member_id, parts)
            for member in modern.members.values()
            for parts in (member.assigned, member.pending_revocation)
        )
    group = membership.classic
    if group is None or group.protocol_type != CONSUMER_PROTOCOL_TYPE:
        return {}
    return _held_twice((member.member_id, member.assigned) for member in group.members.values())


def _held_twice(held: Iterable[tuple[str, Partitions]]) -> Duplicates:
    first: dict[tuple[str, int], str] = {}
    holders: dict[tuple[str, int], set[str]] = {}
    for member_id, parts in held:
        for topic, partitions in parts.items():
            for partition in partitions:
                place = (topic, partition)
                other = first.setdefault(place, member_id)
                if other != member_id:
                    holders.setdefault(place, {other}).add(member_id)
    return {f"{topic}/{partition}": tuple(sorted(ids)) for (topic, partition), ids in sorted(holders.items())}
