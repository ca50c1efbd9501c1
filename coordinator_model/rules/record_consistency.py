"""What of a membership goes together at the end of a step, epochs aside (`docs/coordinator-log.md`, "Invariants").

    rule              holds                                                            but for
    previous_epoch    a member's previous epoch <= its epoch                           a static member that is away
    partition_epoch   no partition was assigned in an epoch beyond its member's;       writers that give no such epochs
                      all are 0 with a static member that is away                      (brokers up to 4.2)
    member_state      a member has something to revoke exactly if it says so           a static member that is away;
                                                                                       streams: standby tasks do, too
    held_and_pending  nothing is both owned and to be revoked                          -
    beyond_target     who is at the target's epoch, and has nothing to revoke, owns    share groups
                      nothing but of its target
    target_overlap    no partition is in the targets of two members                    share groups; standby tasks
    member_records    a member's metadata and its current assignment are both there;   who never had an assignment in a
                      a target is of a member that has metadata                        group without a target
    leader            the leader of a classic group is one of its members              groups without members
    generation_zero   a generation with members is above 0: it was completed           -
    same_generation   a generation written again has the same members, or static ones  -
                      under new ids, with the same assignments

A custom assignor is free to overlap targets; the coordinator then never gives the partition to the second member, so
that the group stays on its way for ever. Hence a warning, as of all these.

None of them is judged of what a cleaned log may lack. Where one record of a key follows another, the cleaner has not
been: from there on the group is what its records say (`steps.note_record`), and only such groups are asked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from coordinator_model.groups import consumer, streams
from coordinator_model.rules.partition_holders import held_twice
from coordinator_model.state.membership import (
    SHARE,
    STREAMS,
    ClassicGroup,
    ClassicMember,
    Holders,
    Membership,
    ModernGroup,
    ModernMember,
    Partitions,
)
from coordinator_model.state.rule_memory import EpochAnomaly

_OVERLAP: Final = "target_overlap/"
"""Name of that anomaly, which is of no one member."""

_SHOWN: Final = 5
"""Members that an anomaly spells out."""


def incoherent(
    before: Membership, after: Membership, lasting: Iterable[str], *, all_members: bool
) -> Iterator[EpochAnomaly]:
    """What does not go together in a membership.

    Args:
        before: the membership before the step.
        after: the membership at its end.
        lasting: names of anomalies reported before.
        all_members: ask of every member; else of those whose records the step changed, and those in `lasting`.
    """
    modern = after.modern_group
    if modern is None:
        if after.classic is not None:
            yield from _classic(before.classic_group, after.classic)
        return
    was = before.modern_group
    reported = frozenset(lasting)
    asked = _asked(None if all_members else was, modern, reported)
    for member_id in sorted(asked & modern.members.keys()):
        for rule in _OF_MEMBERS:
            yield from rule(modern, modern.members[member_id])
    for member_id in sorted(asked):
        yield from _member_records(was, modern, member_id, reported)
    if modern.family != SHARE and (asked & (modern.targets.keys() | modern.task_targets.keys())):
        yield from _target_overlap(modern)


def _asked(before: ModernGroup | None, after: ModernGroup, lasting: frozenset[str]) -> set[str]:
    """Ids of the members to ask about, of which a target may be all there is."""
    ids = {*after.members, *after.targets, *after.task_targets}
    if before is None or before.assignment_epoch != after.assignment_epoch or _OVERLAP in lasting:
        return ids
    about = {name.partition("/")[2] for name in lasting}
    return {member_id for member_id in ids if member_id in about or _differ(before, after, member_id)}


def _differ(before: ModernGroup, after: ModernGroup, member_id: str) -> bool:
    """By identity: what a record does not touch stays the very same."""
    return (
        before.members.get(member_id) is not after.members.get(member_id)
        or before.targets.get(member_id) is not after.targets.get(member_id)
        or before.task_targets.get(member_id) is not after.task_targets.get(member_id)
    )


# -- a member of a consumer, share or streams group -------------------------------------------------------------------


def _previous_epoch(_group: ModernGroup, member: ModernMember) -> Iterator[EpochAnomaly]:
    if member.epoch > 0 and member.previous_epoch > member.epoch:
        yield _of(member, "previous_epoch", f"at most {member.epoch}", str(member.previous_epoch))


def _partition_epoch(_group: ModernGroup, member: ModernMember) -> Iterator[EpochAnomaly]:
    highest = max(member.epoch, 0)
    if member.current_live and member.newest_partition_epoch > highest:
        yield _of(member, "partition_epoch", f"at most {highest}", str(member.newest_partition_epoch))


def _member_state(group: ModernGroup, member: ModernMember) -> Iterator[EpochAnomaly]:
    if group.family == SHARE or not member.current_live or member.is_absent_static:
        return
    unrevoked = consumer.MEMBER_UNREVOKED if group.family != STREAMS else streams.MEMBER_UNREVOKED
    names = consumer.MEMBER_STATES if group.family != STREAMS else streams.MEMBER_STATES
    found = names.get(member.state)
    if found is None:
        return  # of a newer broker
    if member.pending_revocation and member.state != unrevoked:
        places = _places(member.pending_revocation, member)
        yield _of(member, "member_state", names[unrevoked], found, places)
    elif member.state == unrevoked and not member.pending_revocation and group.family != STREAMS:
        yield _of(member, "member_state", "something to revoke", found)


def _held_and_pending(_group: ModernGroup, member: ModernMember) -> Iterator[EpochAnomaly]:
    if not member.pending_revocation:
        return
    both = {
        topic: tuple(sorted({*partitions} & {*member.assigned.get(topic, ())}))
        for topic, partitions in member.pending_revocation.items()
    }
    if any(both.values()):
        places = _places(both, member)
        yield _of(member, "held_and_pending", "either owned or to be revoked", f"{_counted(places)} both", places)


def _beyond_target(group: ModernGroup, member: ModernMember) -> Iterator[EpochAnomaly]:
    if group.family == SHARE or not member.current_live or not group.assignment_epoch_live:
        return
    if member.epoch != group.assignment_epoch or member.pending_revocation:
        return
    if group.family == STREAMS:
        task_target = group.task_targets.get(member.member_id)
        target = {} if task_target is None else task_target.active
    else:
        target = group.targets.get(member.member_id, {})
    if member.assigned == target:
        return
    beyond = {
        topic: tuple(sorted({*partitions} - {*target.get(topic, ())})) for topic, partitions in member.assigned.items()
    }
    if any(beyond.values()):
        places = _places(beyond, member)
        yield _of(member, "beyond_target", "nothing but its target", f"{_counted(places)} more", places)


_OF_MEMBERS: Final[tuple[Callable[[ModernGroup, ModernMember], Iterator[EpochAnomaly]], ...]] = (
    _previous_epoch,
    _partition_epoch,
    _member_state,
    _held_and_pending,
    _beyond_target,
)


# -- a consumer, share or streams group -------------------------------------------------------------------------------


def _target_overlap(group: ModernGroup) -> Iterator[EpochAnomaly]:
    targets: Iterable[tuple[str, Partitions]] = group.targets.items()
    if group.family == STREAMS:
        targets = ((member_id, target.active) for member_id, target in group.task_targets.items())
    overlap = held_twice(targets)
    if overlap:
        yield EpochAnomaly(
            rule="target_overlap",
            expected="one member a partition",
            found=f"{_counted(overlap)} of two",
            partitions=overlap,
        )


def _member_records(
    before: ModernGroup | None, after: ModernGroup, member_id: str, lasting: frozenset[str]
) -> Iterator[EpochAnomaly]:
    member = after.members.get(member_id)
    if member is None:
        yield EpochAnomaly(rule="member_records", expected="metadata", found="a target alone", member_id=member_id)
    elif not member.metadata_live:
        yield _of(member, "member_records", "metadata", "a current assignment alone")
    elif not member.current_live:
        found = _of(member, "member_records", "a current assignment", "metadata alone")
        # Brokers up to 4.2 write none of a member that waits for its expression in a group without a target: its
        # epoch, 0, is the target's. So it must have had one, or come when there was a target.
        was = None if before is None else before.members.get(member.member_id)
        lost = was is not None and was.current_live
        owed = before is not None and was is None and before.assignment_epoch_live
        if lost or owed or found.name in lasting:
            yield found


# -- a classic group --------------------------------------------------------------------------------------------------


def _classic(before: ClassicGroup | None, after: ClassicGroup) -> Iterator[EpochAnomaly]:
    if not after.members:
        return
    if after.leader not in after.members:
        yield EpochAnomaly(rule="leader", expected="one of the members", found=str(after.leader))
    if after.generation == 0:
        yield EpochAnomaly(rule="generation_zero", expected="no members", found=f"{len(after.members)} members")
    if before is None or before.generation != after.generation or not before.members:
        return
    was, now = _by_identity(before), _by_identity(after)
    if was.keys() != now.keys():
        other = sorted(was.keys() ^ now.keys())
        yield EpochAnomaly(rule="same_generation", expected="the members it had", found=", ".join(other[:_SHOWN]))
    elif any(dict(was[name].assigned) != dict(now[name].assigned) for name in was):
        other = sorted(name for name in was if dict(was[name].assigned) != dict(now[name].assigned))
        found = f"another one of {', '.join(other[:_SHOWN])}"
        yield EpochAnomaly(rule="same_generation", expected="the assignment it had", found=found)


def _by_identity(group: ClassicGroup) -> Mapping[str, ClassicMember]:
    return {member.instance_id or member.member_id: member for member in group.members.values()}


# -- parts ------------------------------------------------------------------------------------------------------------


def _of(member: ModernMember, rule: str, expected: str, found: str, partitions: Holders | None = None) -> EpochAnomaly:
    return EpochAnomaly(
        rule=rule, expected=expected, found=found, member_id=member.member_id, partitions=partitions or {}
    )


def _places(parts: Partitions, member: ModernMember) -> Holders:
    return {f"{topic}/{partition}": (member.member_id,) for topic, of in sorted(parts.items()) for partition in of}


def _counted(places: Holders) -> str:
    return f"{len(places)} partition{'s' if len(places) > 1 else ''}"
