"""Whether a downgrade kept what it should: assignments and committed offsets before and after, compared (KIP-915).

The document's test plan has the operator save a group's metadata, downgrade, and look whether it is the same. The log
holds both sides.

    compared       before                                    after
    target         targets of the members that stay          what the classic group that is made assigns them
    owned          what they held                            their targets, which is what they get
    offsets        each commit since the downgrade began     none is lower, none is gone

The coordinator hands over the *target* (ClassicGroup.fromConsumerGroup), so a member that had not reached it loses and
gets partitions at that moment, which is lawful and worth knowing. Classic records name topics, the others' ids; what is
not known from commits is matched: one name for one id throughout, or it is no match. A member that takes another's
place, as static ones do, is compared with the one before it.

Offsets are watched from the beginning of the downgrade, when the first classic member came, to the first generation
completed after it. One that went back or was deleted in between counts until it is committed again at or beyond where
it was. Nothing says that the downgrade is the reason.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from coordinator_model.state.group_state import GroupState
from coordinator_model.state.membership import (
    ClassicGroup,
    ClassicMember,
    Membership,
    ModernGroup,
    ModernMember,
    Partitions,
)
from coordinator_model.state.partitions import merged
from coordinator_model.state.rule_memory import Downgrade, Migration, Step

MOST_OFFSETS: Final = 1_000
"""So many offsets that went back are remembered of a downgrade: more are no better than these."""

Assigned = Mapping[str, Partitions]
"""Member (by instance id where it has one) → partitions."""


def note(step: Step, membership: Membership, member_id: str | None) -> None:
    """Remember the target that a record of the step left a member with, where it is another one than before."""
    group = membership.modern
    target = None if group is None or member_id is None else group.targets.get(member_id)
    if target is None or member_id is None:
        return
    was = step.before.modern
    if was is None or was.targets.get(member_id) != target:
        step.targets[member_id] = target


def complete(state: GroupState, step: Step) -> dict[str, Any]:
    """Compare the classic group that a step made with the consumer group before it; returns it as parts of a detail."""
    migration, group, made = state.migration, step.before.modern_group, state.membership.classic
    downgrade = migration.downgrade
    if downgrade is None:
        downgrade = migration.downgrade = Downgrade(begun_ms=step.timestamp_ms)
    if group is None or made is None:
        return {}
    given = {_who(member): member.assigned for member in made.members.values()}
    targets, held = _before(group, made, step.targets)
    names = state.topics_by_id()
    downgrade.completed_ms, downgrade.generation = step.timestamp_ms, made.generation
    downgrade.differing = differing(targets, given, names)
    downgrade.unsettled = tuple(sorted(who for who in held if held[who] != targets[who]))
    offsets = {"offsets": state.offset_count, "offsets_back": dict(downgrade.offsets_back)}
    if not group.members:
        return offsets
    return {
        **offsets,
        "assignments_kept": not downgrade.differing,
        "members_not_given_their_target": list(downgrade.differing),
        "members_not_at_their_target": list(downgrade.unsettled),
    }


def view(downgrade: Downgrade | None) -> dict[str, Any] | None:
    """The downgrade as it is shown; times in milliseconds, `completed` None while it is under way."""
    if downgrade is None:
        return None
    return {
        "begun": downgrade.begun_ms,
        "completed": downgrade.completed_ms,
        "members_not_given_their_target": list(downgrade.differing),
        "members_not_at_their_target": list(downgrade.unsettled),
        "offsets_back": dict(sorted(downgrade.offsets_back.items())),
    }


def stop_watching(migration: Migration, after: Membership) -> None:
    """Stop watching offsets with the first generation completed since, and forget what is a consumer group again."""
    downgrade, group = migration.downgrade, after.classic_group
    if downgrade is None or downgrade.completed_ms is None:
        return
    if group is None:
        migration.downgrade = None
    elif group.members and group.generation > downgrade.generation:
        downgrade.watching = False


def offset_went(state: GroupState, topic: str, partition: int, offset: int) -> None:
    """A committed offset went back or was deleted; `offset` is where it was."""
    downgrade = state.migration.downgrade
    if downgrade is not None and downgrade.watching and len(downgrade.offsets_back) < MOST_OFFSETS:
        downgrade.offsets_back.setdefault(f"{topic}/{partition}", offset)


def is_missed(state: GroupState, topic: str, partition: int) -> bool:
    """Whether this offset went back or went, and has not come there again."""
    downgrade = state.migration.downgrade
    return downgrade is not None and f"{topic}/{partition}" in downgrade.offsets_back


def offset_came(state: GroupState, topic: str, partition: int, offset: int) -> bool:
    """An offset was committed; returns whether one that had gone back is there again."""
    downgrade = state.migration.downgrade
    if downgrade is None or not downgrade.offsets_back:
        return False
    place = f"{topic}/{partition}"
    if offset < downgrade.offsets_back.get(place, offset + 1):
        return False
    del downgrade.offsets_back[place]
    return True


def _who(member: ClassicMember | ModernMember) -> str:
    return member.instance_id or member.member_id


def _before(
    group: ModernGroup, made: ClassicGroup, written: Mapping[str, Partitions]
) -> tuple[dict[str, Partitions], dict[str, Partitions]]:
    """(targets, what was held) of who stays; nothing of who came in the step itself, as far as it wrote no target."""
    former = {_who(member): member for member in group.members.values()}
    targets: dict[str, Partitions] = {}
    held: dict[str, Partitions] = {}
    for member in made.members.values():
        who = _who(member)
        was = former.get(who)
        ids = [member.member_id] if was is None else [member.member_id, was.member_id]
        latest = [written[member_id] for member_id in ids if member_id in written]
        if was is None and not latest:
            continue
        targets[who] = latest[0] if latest else group.targets.get(ids[-1], {})
        if was is not None and was.current_live:
            held[who] = merged((*was.assigned.items(), *was.pending_revocation.items()))
    return targets, held


def differing(targets: Assigned, given: Assigned, names: Mapping[str, str]) -> tuple[str, ...]:
    """Whose target is not what it is given, topics by id there and by name here; `names` is what is known of them."""
    by_id, by_name = _by_topic(targets), _by_topic({who: given[who] for who in targets})
    renamed = {topic_id: names[topic_id] for topic_id in by_id if topic_id in names}
    free = sorted(by_name.keys() - renamed.values())
    for topic_id in sorted(by_id.keys() - renamed.keys()):
        match = next((name for name in free if by_name[name] == by_id[topic_id]), None)
        if match is not None:
            renamed[topic_id] = match
            free.remove(match)
    rest = sorted(by_id.keys() - renamed.keys())
    if len(rest) == len(free) == 1:
        renamed[rest[0]] = free[0]
    as_named = {who: {renamed.get(of, of): parts for of, parts in target.items()} for who, target in targets.items()}
    return tuple(sorted(who for who, target in as_named.items() if target != given[who]))


def _by_topic(assigned: Assigned) -> dict[str, dict[str, tuple[int, ...]]]:
    found: dict[str, dict[str, tuple[int, ...]]] = {}
    for who, parts in assigned.items():
        for topic, partitions in parts.items():
            found.setdefault(topic, {})[who] = partitions
    return found
