"""Consumer groups (docs/coordinator-log.md): a target for the group, and each member on its way to it.

A member's way is upstream's CurrentAssignmentBuilder: give up what the target does not have, wait until
the process has let go, move to the target's epoch, take what no member holds any more.
"""

import re
from collections.abc import Iterable
from copy import deepcopy
from dataclasses import replace

from lab import builders
from lab.builders import RecordBytes
from tests.simulator import classic
from tests.simulator.assignors import sticky
from tests.simulator.cluster import Place, metadata_hash
from tests.simulator.memory import (
    AWAY,
    COOPERATIVE,
    STABLE,
    UNRELEASED,
    UNREVOKED,
    Group,
    Member,
    by_topic,
    with_epochs,
)


def joined(group: Group, member: Member, now_ms: int) -> list[RecordBytes]:
    """A member joins; its target comes at once, unless the last is too fresh or its expression is yet to be matched."""
    group.members[member.member_id] = member
    member.embedded = classic.subscription(group, member) if member.classic else b""
    records = [subscribed(group, member)]
    if group.epoch == 0 or member.regex is None or member.topics or member.regex in group.regexes:
        group.epoch += 1
        records += [*epoch(group), *_retargeted(group, now_ms)]
    if group.assignment_epoch < group.epoch:
        member.epoch = group.assignment_epoch
        member.owned, member.owned_generation = set(), member.epoch if member.classic else -1
    else:
        _moved(group, member, let_go=True)
    member.previous_epoch = 0
    return [*records, current(group, member)]


def beat(
    group: Group, member: Member, now_ms: int, *, let_go: bool = True, resubscribed: bool = False
) -> list[RecordBytes]:
    """A heartbeat (a rejoin, for one of the classic protocol): a target that is due, and a member that moves."""
    records: list[RecordBytes] = []
    if group.topics_changed():
        group.epoch += 1
        records += epoch(group)
    records += _retargeted(group, now_ms)
    before = deepcopy(member)
    _moved(group, member, let_go=let_go)
    if resubscribed and group.cluster.release.gives_up_topics:
        _gave_up_topics(group, member)
    if member == before:
        return records
    if member.classic:
        said = deepcopy(before)
        if before.state == UNREVOKED and let_go:
            said.owned = group.cluster.named(before.assigned)
        member.embedded = classic.subscription(group, said)
    rejoined = [] if member.embedded == before.embedded else [subscribed(group, member)]
    return [*records, *rejoined, current(group, member)]


def resubscribed(
    group: Group, member: Member, topics: tuple[str, ...], regex: str | None, now_ms: int
) -> list[RecordBytes]:
    """A member subscribes to other topics, or by another expression: which is matched first."""
    renamed = member.topics != topics
    member.topics, member.regex = topics, regex
    records = [subscribed(group, member), *_unused_regexes(group)]
    if renamed or regex is None or regex in group.regexes:
        group.epoch += 1
        records += epoch(group)
    return [*records, *beat(group, member, now_ms, resubscribed=True)]


def matched(group: Group) -> list[RecordBytes]:
    """The topics that expressions match are looked up; a new epoch if they are not those that were known."""
    used = {member.regex for member in group.members.values() if member.regex is not None}
    records = []
    for regex in sorted(used):
        there_are = [name for name, count in sorted(group.cluster.partitions.items()) if count]
        group.regexes[regex] = group.matches.pop(regex, tuple(of for of in there_are if re.fullmatch(regex, of)))
        records.append(builders.consumer_group_regular_expression(group.name, regex, group.regexes[regex]))
    if records and group.known_metadata() != group.metadata:
        group.epoch += 1
        records += epoch(group)
    return records


def left(group: Group, leavers: Iterable[Member]) -> list[RecordBytes]:
    """Members leave, expire or are removed: one new epoch, and no target is computed again yet."""
    records = [record for member in leavers for record in forgotten(group, member)]
    records += _unused_regexes(group)
    group.epoch += 1
    return [*records, *epoch(group)]


def forgotten(group: Group, member: Member) -> list[RecordBytes]:
    """The end of a member."""
    del group.members[member.member_id]
    group.targets.pop(member.member_id, None)
    return _tombstones(group.name, member.member_id)


def stepped_away(group: Group, member: Member) -> list[RecordBytes]:
    """A static member closes and will be back: it keeps what it has, but not what it was giving up."""
    member.epoch, member.pending = AWAY, {}
    member.assigned = dict.fromkeys(member.assigned, 0)
    return [current(group, member)]


def replaced(group: Group, former: Member, comer: Member, now_ms: int) -> list[RecordBytes]:
    """A static member is back under another id: its target is copied, no epoch moves.

    Its process holds nothing, so what it would have to give up is given up.
    """
    target = group.targets.get(former.member_id)
    records = forgotten(group, former)
    copy = replace(former, member_id=comer.member_id, epoch=0, previous_epoch=0, owned=set(), owned_generation=-1)
    group.members[copy.member_id] = copy
    records.append(subscribed(group, copy))
    if target is not None:
        group.targets[copy.member_id] = target
        records.append(builders.consumer_group_target_assignment(group.name, copy.member_id, by_topic(target)))
    records.append(current(group, copy))
    fields = (comer.classic, comer.client_id, comer.client_host)
    changed = comer.classic or fields != (copy.classic, copy.client_id, copy.client_host)
    copy.classic, copy.client_id, copy.client_host = fields
    if changed:
        copy.embedded = classic.subscription(group, copy) if copy.classic else b""
        records.append(subscribed(group, copy))
    records += _retargeted(group, now_ms)
    _moved(group, copy, let_go=True)
    return [*records, current(group, copy)]


def ended(group: Group, *, besides: Iterable[str] = ()) -> list[RecordBytes]:
    """Tombstones of everything; `besides` are members that are gone from memory already, and not from the log."""
    name, ids = group.name, [*group.members, *besides]
    return [
        *(builders.consumer_group_current_assignment_tombstone(name, of) for of in ids),
        *(builders.consumer_group_target_assignment_tombstone(name, of) for of in ids),
        builders.consumer_group_target_assignment_epoch_tombstone(name),
        *(builders.consumer_group_member_subscription_tombstone(name, of) for of in ids),
        *(builders.consumer_group_regular_expression_tombstone(name, regex) for regex in sorted(group.regexes)),
        builders.consumer_group_partition_metadata_tombstone(name),
        builders.consumer_group_epoch_tombstone(name),
    ]


def subscribed(group: Group, member: Member) -> RecordBytes:
    """Who a member is; one of the classic protocol with what it sends to join."""
    embedded = {group.protocol.replace("-", "_"): member.embedded} if member.classic else {}
    return builders.consumer_group_member_subscription(
        group.name,
        member.member_id,
        topics=member.topics,
        regex=member.regex or "",
        server_assignor=member.server_assignor,
        instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        classic=builders.classic_member_metadata(**embedded) if embedded else None,
    )


def current(group: Group, member: Member) -> RecordBytes:
    """What a member has, and what of it it has yet to give up."""
    return builders.consumer_group_current_assignment(
        group.name,
        member.member_id,
        epoch=member.epoch,
        previous_epoch=member.previous_epoch,
        state=member.state,
        assigned=with_epochs(member.assigned),
        pending_revocation=with_epochs(member.pending),
        epochs=group.cluster.release.partition_epochs,
    )


def epoch(group: Group) -> list[RecordBytes]:
    """A new group epoch, with what it is for: a hash, or in its own record until 4.0."""
    before, group.metadata = group.metadata, group.known_metadata()
    release, records = group.cluster.release, []
    if release.partition_metadata and before != group.metadata:
        counts = dict(group.metadata.values())
        records.append(builders.consumer_group_partition_metadata(group.name, counts))
        group.partition_metadata = True
    elif group.partition_metadata and not release.partition_metadata:
        records.append(builders.consumer_group_partition_metadata_tombstone(group.name))
        group.partition_metadata = False
    hash_ = 0 if release.partition_metadata else metadata_hash(group.metadata)
    return [*records, builders.consumer_group_epoch(group.name, group.epoch, metadata_hash=hash_)]


def _unused_regexes(group: Group) -> list[RecordBytes]:
    used = {member.regex for member in group.members.values()}
    unused = [regex for regex in sorted(group.regexes) if regex not in used]
    for regex in unused:
        del group.regexes[regex]
    return [builders.consumer_group_regular_expression_tombstone(group.name, regex) for regex in unused]


def _tombstones(name: str, member_id: str) -> list[RecordBytes]:
    return [
        builders.consumer_group_current_assignment_tombstone(name, member_id),
        builders.consumer_group_target_assignment_tombstone(name, member_id),
        builders.consumer_group_member_subscription_tombstone(name, member_id),
    ]


def _retargeted(group: Group, now_ms: int) -> list[RecordBytes]:
    """A new target if one is due: of the members it changes for, then its epoch."""
    release = group.cluster.release
    too_fresh = bool(group.assignment_ms) and now_ms - group.assignment_ms < release.throttle_ms
    if group.epoch == group.assignment_epoch or too_fresh:
        return []
    before, group.targets = group.targets, answered(group) or sticky(group.wanted(), group.targets)
    group.assignment_epoch, group.assignment_ms = group.epoch, now_ms
    return [
        *(
            builders.consumer_group_target_assignment(group.name, of, by_topic(places))
            for of, places in group.targets.items()
            if before.get(of) != places
        ),
        builders.consumer_group_target_assignment_epoch(
            group.name, group.epoch, timestamp=now_ms if release.partition_epochs else 0
        ),
    ]


def answered(group: Group) -> dict[str, set[Place]] | None:
    """What the assignor answers where that is known: of some members again, of the others what they had."""
    return with_answer(group, group.answer, group.targets)


def with_answer(
    group: Group, answer: dict[str, set[Place]] | None, targets: dict[str, set[Place]]
) -> dict[str, set[Place]] | None:
    """Targets with those that are answered again."""
    return None if answer is None else {of: answer.get(of, targets.get(of, set())) for of in group.members}


def _gave_up_topics(group: Group, member: Member) -> None:
    """A member that subscribes to less gives up the rest before any target says so."""
    subscribed = {group.cluster.of_name(topic) for topic in group.subscribed(member)}
    revoked = {place: epoch for place, epoch in member.assigned.items() if place[0] not in subscribed}
    if revoked:
        if group.cluster.release.partition_epochs:  # as of 4.3
            member.previous_epoch = member.epoch
        member.state, member.pending = UNREVOKED, {**member.pending, **revoked}
        member.assigned = {place: epoch for place, epoch in member.assigned.items() if place not in revoked}


def _moved(group: Group, member: Member, *, let_go: bool) -> None:
    """One step of a member towards the target. `let_go`: the process has given up what it was asked to."""
    if member.state == STABLE and member.epoch == group.assignment_epoch:
        return
    if member.state == UNREVOKED and member.pending and not let_go:
        member.previous_epoch = member.epoch
        return
    subscribed = {group.cluster.of_name(topic) for topic in group.subscribed(member)}
    target = {place for place in group.targets.get(member.member_id, set()) if place[0] in subscribed}
    kept = {place: epoch for place, epoch in member.assigned.items() if place in target}
    revoked = {place: epoch for place, epoch in member.assigned.items() if place not in target}
    member.previous_epoch = member.epoch
    eager = member.classic and group.protocol not in COOPERATIVE
    if revoked and member.epoch > 0 and not eager:  # a process that has just come, or joins eagerly, holds nothing
        member.state, member.assigned, member.pending = UNREVOKED, kept, revoked
        return
    held = {place for other in group.others(member) for place in other.holds}
    member.epoch, member.pending = group.assignment_epoch, {}
    member.assigned = {**kept, **dict.fromkeys(sorted(target - held - kept.keys()), group.assignment_epoch)}
    member.state = UNRELEASED if target & held else STABLE
    if member.classic:
        member.owned, member.owned_generation = group.cluster.named(member.assigned), member.epoch
