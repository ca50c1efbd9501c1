"""Who had a partition before who has it now: what has moved, and which commit may be of a former owner.

A partition changes hands in one step (eager members), or has no owner for a generation or a rebalance in between
(cooperative members, those of a consumer group, any that restart). So its last owner is remembered, of each partition
the latest one that is not the present owner:

    a partition             and was last owned   is
    is taken                by another           moved; the other one is remembered
    is taken                by the same          as it was: no other had it
    is given up, or lost    by its owner         without an owner; that one is remembered

for `REMEMBERED_MS`, whatever happens meanwhile: further rebalances, an empty group, a conversion between the protocols.

A partition that a member is to let go of is its own until it says that it has, however long that takes: its record then
no longer names it, or, of a cooperative classic member, the next generation that it joins. Until then it stands among
what is yet to be revoked, or among what the member claims and the leader gave to no member.

A coordinator refuses commits of a former owner (KIP-447, KIP-848), but not all of them: until a member has acknowledged
that it lost a partition its commits are accepted, transactional ones without a member always, and what the former owner
committed after the new one had asked where to begin is processed twice. In the log all this looks alike: soon after a
hand-over the committed offset goes back.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import Any, Final

from coordinator_model.groups.embedded_subscription import STICKY
from coordinator_model.rules.members import Member, members_of
from coordinator_model.rules.subscriptions import subscribed_topics
from coordinator_model.rules.transition import Transition
from coordinator_model.state.clocks import within
from coordinator_model.state.findings import Finding
from coordinator_model.state.group_state import GroupState
from coordinator_model.state.membership import SHARE, STREAMS, ClassicMember, Membership, Partitions
from coordinator_model.state.rule_memory import Handover

HANDOVER_WINDOW_MS: Final = 300_000
"""How long after a hand-over a rewind is put down to it: Kafka's default for the time between two polls."""

REMEMBERED_MS: Final = 600_000
"""How long the last owner of a partition is remembered: a rebalance may take half of it, and so may a restart."""

_Owner = dict[tuple[str, int], str]
"""(topic, partition) → who owns it."""


def successions(transition: Transition) -> Iterable[Finding]:
    """Remember who owned what another took, and count it; finds nothing."""
    transition.former_handovers = transition.state.handovers
    moved = _moved(transition.state, transition.before, transition.after, transition.time_ms)
    transition.partitions_moved = moved
    transition.state.counters.partitions_moved += moved
    return ()


def _moved(state: GroupState, before: Membership, after: Membership, time_ms: int) -> int:
    """Advance `state.handovers` over one step; returns how many partitions have moved in it."""
    if SHARE in (before.family, after.family) or (before.modern is None and before.classic is after.classic):
        return 0
    was, now = _changed(_owning(before), _owning(after))
    if (before.modern_group is None) != (after.modern_group is None) and before.exists:
        was = translated(state, before, after, was)
        state.handovers = tuple(
            Handover(time_ms=of.time_ms, former_owners=translated(state, before, after, of.former_owners))
            for of in state.handovers
        )
    if not was and not now:
        return 0
    had, have = by_place(was), by_place(now)
    lost = {place: owner for place, owner in had.items() if have.get(place) != owner}
    gained = {place: owner for place, owner in have.items() if had.get(place) != owner}
    if not lost and not gained:
        return 0
    remembered = _remembered(state, time_ms) if state.handovers else {}
    moved, former = 0, dict(lost)
    for place, owner in gained.items():
        last = lost.get(place) or remembered.get(place, owner)
        moved += last != owner
        former[place] = last
    reported = {place: last for place, last in former.items() if last != have.get(place)}
    _remember(state, reported, forget=former.keys(), time_ms=time_ms)
    return moved


def of_partition(state: GroupState, topic: str, partition: int, time_ms: int) -> dict[str, Any] | None:
    """The hand-over of a partition that lately was, or is under way; None for none, and where it is not known.

    As an event's detail: `former_owner` and `present_owner` (None while it has none), instance ids of static members
    and member ids of others, and `handover_time` in milliseconds. Of a topic that the log does not name in
    assignments (its commits are all in transactions), any that it may be.
    """
    if not state.handovers:
        return None
    members = members_of(state.membership).values()
    for name in _names_in_assignments(state, topic):
        present = next((_name(of) for of in members if partition in of.assigned.get(name, ())), None)
        for handover in reversed(state.handovers):
            former = _owner(handover.former_owners, name, partition)
            if former is None or former == present or not within(HANDOVER_WINDOW_MS, handover.time_ms, time_ms):
                continue
            return {"former_owner": former, "present_owner": present, "handover_time": handover.time_ms}
    return None


def translated(
    state: GroupState, before: Membership, after: Membership, owners: Mapping[str, Partitions]
) -> dict[str, Partitions]:
    """Owner → partitions, as the group before a conversion names topics, in the words of the group after it.

    Classic groups name topics, consumer groups their ids. A topic of which the log does not tell both is left out.
    """
    modern = before.modern_group or after.modern_group
    ids = state.ids_by_topic()
    if modern is not None:
        ids = {**ids, **modern.topic_ids}
    words = ids if before.modern_group is None else {id_: topic for topic, id_ in ids.items()}
    found: dict[str, Partitions] = {
        owner: {words[topic]: partitions for topic, partitions in parts.items() if topic in words}
        for owner, parts in owners.items()
    }
    unknown = {topic for parts in owners.values() for topic in parts} - words.keys()
    others = {topic for of in members_of(after).values() for topic in of.assigned} - {*words.values()}
    if len(unknown) == len(others) == 1:  # then the one is the other
        (topic,), (other,) = unknown, others
        found = {
            owner: {**parts, **({other: owners[owner][topic]} if topic in owners[owner] else {})}
            for owner, parts in found.items()
        }
    return found


def _owning(membership: Membership) -> Mapping[str, Member]:
    """Member id → member, of classic ones with what they have yet to let go of among what they are assigned."""
    classic = membership.classic_group
    # Eager members own nothing while they join; the sticky assignor remembers for them what they had.
    if (
        classic is None
        or classic.protocol == STICKY
        or not any(of.claim is not None and of.claim.owned for of in classic.members.values())
    ):
        return members_of(membership)
    given = by_place({member_id: of.assigned for member_id, of in classic.members.items()})
    newest = max(of.claim.generation for of in classic.members.values() if of.claim is not None)
    found: dict[str, Member] = {}
    for member_id, member in classic.members.items():
        kept = {**member.assigned}
        if member.claim is not None and member.claim.generation == newest:
            for topic, partitions in member.claim.owned.items():
                rest = [p for p in partitions if (topic, p) not in given]
                if rest:
                    kept[topic] = tuple(sorted({*kept.get(topic, ()), *rest}))
        found[member_id] = member if kept == member.assigned else replace(member, assigned=kept)
    return found


def _changed(
    was: Mapping[str, Member], now: Mapping[str, Member]
) -> tuple[dict[str, Partitions], dict[str, Partitions]]:
    """Owner → partitions before and after, of the members that are not the same."""
    return (
        _holding({id_: of for id_, of in was.items() if (now_ := now.get(id_)) is not of and now_ != of}),
        _holding({id_: of for id_, of in now.items() if (was_ := was.get(id_)) is not of and was_ != of}),
    )


def _holding(members: Mapping[str, Member]) -> dict[str, Partitions]:
    """As `owners_of`, with what is yet to be revoked."""
    found: dict[str, Partitions] = owners_of(members)
    for member in members.values():
        if isinstance(member, ClassicMember) or not member.pending_revocation:
            continue
        parts = dict(member.assigned)
        for topic, partitions in member.pending_revocation.items():
            parts[topic] = tuple(sorted({*parts.get(topic, ()), *partitions}))
        found[_name(member)] = parts
    return found


def owners_of(members: Mapping[str, Member]) -> dict[str, Partitions]:
    """Owner → partitions, of members by member id."""
    return {_name(member): member.assigned for member in members.values()}


def _name(member: Member) -> str:
    """A static member owns under its instance id, whatever its member id is."""
    return member.instance_id or member.member_id


def by_place(owners: Mapping[str, Partitions]) -> _Owner:
    """Owner → partitions, as (topic, partition) → owner."""
    return {(topic, p): owner for owner, parts in owners.items() for topic, ps in parts.items() for p in ps}


def _remembered(state: GroupState, time_ms: int) -> _Owner:
    found: _Owner = {}
    for handover in state.handovers:
        if within(REMEMBERED_MS, handover.time_ms, time_ms):
            found |= by_place(handover.former_owners)
    return found


def _remember(state: GroupState, former: _Owner, *, forget: AbstractSet[tuple[str, int]], time_ms: int) -> None:
    kept = [of for of in _without(state.handovers, forget) if within(REMEMBERED_MS, of.time_ms, time_ms)]
    if former:
        owners: dict[str, dict[str, list[int]]] = {}
        for (topic, partition), owner in sorted(former.items()):
            owners.setdefault(owner, {}).setdefault(topic, []).append(partition)
        reported: dict[str, Partitions] = {
            owner: {topic: tuple(ps) for topic, ps in parts.items()} for owner, parts in owners.items()
        }
        kept.append(Handover(time_ms=time_ms, former_owners=reported))
    state.handovers = tuple(kept)


def _without(handovers: tuple[Handover, ...], places: AbstractSet[tuple[str, int]]) -> Iterator[Handover]:
    """What is remembered of other partitions."""
    for handover in handovers:
        former = by_place(handover.former_owners)
        if former.keys().isdisjoint(places):
            yield handover
            continue
        owners: dict[str, dict[str, tuple[int, ...]]] = {}
        for (topic, partition), owner in former.items():
            if (topic, partition) not in places:
                parts = owners.setdefault(owner, {})
                parts[topic] = (*parts.get(topic, ()), partition)
        if owners:
            yield Handover(time_ms=handover.time_ms, former_owners={**owners})


def _names_in_assignments(state: GroupState, topic: str) -> tuple[str, ...]:
    """What the topic is called in assignments, or may be: its name, its id, the subtopologies that read it."""
    modern = state.membership.modern_group
    if modern is None:
        return (topic,)
    if modern.family == STREAMS:
        return tuple(name for name, topics in modern.subtopologies.items() if topic in topics)
    known = [*state.topic_ids.get(topic, ())[-1:], *([modern.topic_ids[topic]] if topic in modern.topic_ids else [])]
    if not known and topic in state.known_ids:
        known = [state.known_ids[topic]]
    if known or topic not in subscribed_topics(state.membership):
        return tuple(known)
    of_others = {id_ for id_, other in state.topics_by_id().items() if other != topic}
    assigned = {id_: None for of in modern.members.values() for id_ in of.assigned}
    handed = {id_: None for of in state.handovers for parts in of.former_owners.values() for id_ in parts}
    return tuple(id_ for id_ in {**assigned, **handed} if id_ not in of_others)


def _owner(owners: Mapping[str, Partitions], name: str, partition: int) -> str | None:
    return next((owner for owner, parts in owners.items() if partition in parts.get(name, ())), None)
