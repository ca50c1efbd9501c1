"""Share groups (docs/coordinator-log.md; KIP-932): members share partitions, whose delivery state is set up first."""

from collections.abc import Iterable

from lab import builders
from lab.builders import RecordBytes
from tests.simulator import consumer
from tests.simulator.assignors import shared
from tests.simulator.cluster import metadata_hash
from tests.simulator.memory import Group, Member, by_topic


def joined(group: Group, member: Member, now_ms: int) -> list[RecordBytes]:
    """A member joins; partitions that were not subscribed to before are to be initialized."""
    group.members[member.member_id] = member
    group.epoch += 1
    records = [_described(group, member), _epoch(group), *_retargeted(group, now_ms)]
    _moved(group, member)
    member.previous_epoch = 0
    return [*records, current(group, member), *_initializing(group)]


def beat(group: Group, member: Member, now_ms: int) -> list[RecordBytes]:
    """A heartbeat: topics that changed or are initialized now, a target that is due, and a member that moves."""
    records: list[RecordBytes] = []
    if group.topics_changed() or group.newly_initialized:
        group.epoch += 1
        records.append(_epoch(group))
    records += _retargeted(group, now_ms)
    if member.epoch != group.assignment_epoch:
        _moved(group, member)
        records.append(current(group, member))
    return [*records, *_initializing(group)]


def changed(group: Group, member: Member, now_ms: int) -> list[RecordBytes]:
    """A member subscribes to other topics."""
    group.epoch += 1
    return [_described(group, member), _epoch(group), *beat(group, member, now_ms)]


def described(group: Group, member: Member) -> list[RecordBytes]:
    """A member calls from elsewhere, which moves no epoch."""
    return [_described(group, member)]


def left(group: Group, leavers: Iterable[Member]) -> list[RecordBytes]:
    """Members leave or expire."""
    records = []
    for member in leavers:
        del group.members[member.member_id]
        group.targets.pop(member.member_id, None)
        records += [
            builders.share_group_current_assignment_tombstone(group.name, member.member_id),
            builders.share_group_target_assignment_tombstone(group.name, member.member_id),
            builders.share_group_member_subscription_tombstone(group.name, member.member_id),
        ]
    group.epoch += 1
    return [*records, _epoch(group)]


def initialized(group: Group) -> list[RecordBytes]:
    """The share coordinator has set up the delivery state."""
    if not group.initializing:
        return []
    group.initialized |= group.initializing
    group.initializing, group.newly_initialized = set(), True
    return [_delivery_state(group)]


def without_topic(group: Group, topic: str) -> list[RecordBytes]:
    """A topic is no more: no delivery state is kept of it."""
    before = (group.initializing, group.initialized)
    group.initializing = {place for place in group.initializing if place[0] != topic}
    group.initialized = {place for place in group.initialized if place[0] != topic}
    return [] if before == (group.initializing, group.initialized) else [_delivery_state(group)]


def deleting(group: Group) -> list[RecordBytes]:
    """First half of a deletion: the delivery state is to be taken down."""
    topics = sorted({topic for topic, _ in (*group.initializing, *group.initialized)})
    group.initializing, group.initialized = set(), set()
    return [builders.share_group_state_partition_metadata(group.name, deleting=topics)]


def ended(group: Group) -> list[RecordBytes]:
    """Second half: tombstones of an empty group."""
    return [
        builders.share_group_target_assignment_epoch_tombstone(group.name),
        builders.share_group_state_partition_metadata_tombstone(group.name),
        builders.share_group_epoch_tombstone(group.name),
    ]


def current(group: Group, member: Member) -> RecordBytes:
    """What a member reads."""
    return builders.share_group_current_assignment(
        group.name,
        member.member_id,
        epoch=member.epoch,
        previous_epoch=member.previous_epoch,
        assigned=by_topic(member.assigned),
    )


def _described(group: Group, member: Member) -> RecordBytes:
    return builders.share_group_member_subscription(
        group.name,
        member.member_id,
        topics=member.topics,
        client_id=member.client_id,
        client_host=member.client_host,
    )


def _epoch(group: Group) -> RecordBytes:
    group.metadata, group.newly_initialized = group.known_metadata(), False
    return builders.share_group_epoch(group.name, group.epoch, metadata_hash=metadata_hash(group.metadata))


def _initializing(group: Group) -> list[RecordBytes]:
    wanted = {place for places in group.wanted().values() for place in places}
    new = wanted - group.initialized - group.initializing
    group.initializing |= new
    return [_delivery_state(group)] if new else []


def _delivery_state(group: Group) -> RecordBytes:
    return builders.share_group_state_partition_metadata(
        group.name, initializing=by_topic(group.initializing), initialized=by_topic(group.initialized)
    )


def _retargeted(group: Group, now_ms: int) -> list[RecordBytes]:
    release = group.cluster.release
    too_fresh = bool(group.assignment_ms) and now_ms - group.assignment_ms < release.throttle_ms
    if group.epoch == group.assignment_epoch or too_fresh:
        return []
    before = group.targets
    readable = {of: [place for place in places if place in group.initialized] for of, places in group.wanted().items()}
    group.targets = consumer.answered(group) or shared(readable)
    group.assignment_epoch, group.assignment_ms = group.epoch, now_ms
    timestamp = now_ms if release.partition_epochs else 0
    return [
        *(
            builders.share_group_target_assignment(group.name, of, by_topic(places))
            for of, places in group.targets.items()
            if before.get(of) != places
        ),
        builders.share_group_target_assignment_epoch(group.name, group.epoch, timestamp=timestamp),
    ]


def _moved(group: Group, member: Member) -> None:
    """Nothing is revoked: what the target says is read at once."""
    member.previous_epoch, member.epoch = member.epoch, group.assignment_epoch
    target = group.targets.get(member.member_id, set())
    member.assigned = dict.fromkeys(sorted(target), member.epoch)
