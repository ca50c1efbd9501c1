"""From classic to consumer and back (docs/coordinator-log.md, "Conversions"; KIP-848, KIP-915)."""

from collections.abc import Iterable

from lab import builders
from lab.builders import RecordBytes
from tests.simulator import classic, consumer, streams
from tests.simulator.memory import STABLE, Group, Member, by_topic


def upgraded_online(group: Group) -> list[RecordBytes]:
    """The classic group as a consumer group: the generation becomes the epoch, what members have their target."""
    group.kind, group.epoch, group.assignment_epoch, group.assignment_ms = (
        "consumer",
        group.generation,
        group.generation,
        0,
    )
    named = {topic: group.cluster.of_name(topic) for topic in group.cluster.partitions}
    group.targets = {
        of: {(named[topic], partition) for topic, partition in group.assignment.get(of, ())} for of in group.members
    }
    for member in group.members.values():
        member.epoch = member.previous_epoch = group.generation
        member.state, member.pending = STABLE, {}
        member.assigned = dict.fromkeys(sorted(group.targets[member.member_id]), group.generation)
    group.was_downgraded = False
    name, members = group.name, list(group.members.values())
    return [
        builders.group_metadata_tombstone(name),
        *(consumer.subscribed(group, member) for member in members),
        *_epoch(group),
        *(builders.consumer_group_target_assignment(name, of, by_topic(group.targets[of])) for of in group.members),
        builders.consumer_group_target_assignment_epoch(name, group.assignment_epoch),
        *(consumer.current(group, member) for member in members),
    ]


def _epoch(group: Group) -> list[RecordBytes]:
    if group.cluster.release.converts_metadata:
        return consumer.epoch(group)
    group.metadata = {}
    return [builders.consumer_group_epoch(group.name, group.epoch)]


def upgraded_offline(group: Group) -> list[RecordBytes]:
    """An empty classic group, or one that only commits, becomes a consumer group: epochs start again."""
    known = group.exists
    begin(group, "consumer")
    return [builders.group_metadata_tombstone(group.name)] if known else []


def begin(group: Group, kind: str) -> None:
    """Memory of a consumer, share or streams group of which nothing is written yet."""
    release = group.cluster.release
    first = release.first_streams_epoch if kind == "streams" else release.first_epoch
    group.kind, group.epoch, group.assignment_epoch, group.assignment_ms = kind, first, first, 0
    group.targets, group.standby_targets, group.warmup_targets, group.was_downgraded = {}, {}, {}, False
    group.metadata, group.partition_metadata, group.opened = {}, False, False


def downgraded_online(group: Group, now_ms: int, *, gone: Iterable[str] = ()) -> list[RecordBytes]:
    """Only classic members are left: tombstones for all, `gone` too, and the classic group with their targets."""
    records = consumer.ended(group, besides=gone)
    given = {of: group.cluster.named(group.targets.get(of, ())) for of in group.members}
    group.generation = group.written_generation = group.epoch
    for member in group.members.values():
        member.owned, member.owned_generation = group.cluster.named(member.assigned), member.epoch
    _classic_again(group)
    return [*records, *classic.written(group, given, joined_ms=now_ms)]


def downgraded_offline(group: Group, now_ms: int) -> list[RecordBytes]:
    """A classic member comes to an empty consumer or streams group: it ends, and a classic one begins."""
    was_consumer = group.kind == "consumer"
    records = consumer.ended(group) if was_consumer else streams.ended(group)
    _classic_again(group)
    group.was_downgraded = was_consumer
    group.generation = group.written_generation = 0
    group.written, group.assignment = (), {}
    return [*records, builders.new_group_metadata(group.name, timestamp=now_ms)]


def only_classic(group: Group, leavers: Iterable[Member]) -> bool:
    """Whether a consumer group without these members is one of classic members only, and not empty."""
    gone = {member.member_id for member in leavers}
    rest = [member for member in group.members.values() if member.member_id not in gone]
    mixed = group.kind == "consumer" and any(not member.classic for member in group.members.values())
    return mixed and bool(rest) and all(member.classic for member in rest)


def _classic_again(group: Group) -> None:
    group.kind, group.was_downgraded = "classic", True
    group.targets, group.regexes, group.custom_assignor = {}, {}, False
