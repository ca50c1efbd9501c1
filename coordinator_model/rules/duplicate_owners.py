"""A partition has one owner: the promise that all of a group's processing rests on.

    group      a member owns                                                     source
    classic    what one generation assigned it                                   KAFKA-7026
    consumer   what it has *or has yet to revoke*; a static member that is       KAFKA-16147, KIP-848
               away still owns its own
    streams    its active tasks, in the same way                                 KIP-1071
    share      is not asked: share groups share by design                        KIP-932

Nor are targets asked, which are yet to be (`record_consistency.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from coordinator_model.rules.lasting import About, Lasting
from coordinator_model.rules.members import members_of, named, units
from coordinator_model.rules.partition_holders import held_twice
from coordinator_model.rules.transition import Transition
from coordinator_model.state.findings import Finding
from coordinator_model.state.membership import SHARE, Membership

MOST_NAMED: Final = 20
"""Of so many owners the event says where they run."""


def duplicate_assignments(membership: Membership) -> dict[str, tuple[str, ...]]:
    """Partitions that more than one member holds."""
    modern = membership.modern_group
    if modern is not None:
        if modern.family == SHARE:
            return {}
        return held_twice(
            (member.member_id, parts)
            for member in modern.members.values()
            for parts in (member.assigned, member.pending_revocation)
        )
    group = membership.classic
    if group is None:
        return {}
    return held_twice((member.member_id, member.assigned) for member in group.members.values())


def _hold(transition: Transition) -> dict[str, tuple[str, ...]]:
    found = duplicate_assignments(transition.after)
    transition.duplicates = found
    transition.all_members |= found != transition.state.duplicates
    return found


def _opened(transition: Transition, partitions: Mapping[str, tuple[str, ...]]) -> Iterator[Finding]:
    members = members_of(transition.after)
    owners = sorted({id_ for owners in partitions.values() for id_ in owners})[:MOST_NAMED]
    detail = {"partitions": partitions, "members": [named(members[id_]) for id_ in owners]}
    yield Finding("duplicate_assignment", detail | units(transition.after))


def _cleared(transition: Transition, partitions: list[str]) -> Iterator[Finding]:
    former = transition.state.duplicates
    detail = {"partitions": {name: former[name] for name in partitions}}
    yield Finding("duplicate_assignment_cleared", detail | units(transition.after))


DUPLICATE_ASSIGNMENT: Final = Lasting(
    kind="duplicate_assignment",
    holds=_hold,
    opened=_opened,
    cleared=_cleared,
    about=lambda _, owners: About(members=owners),
)
