"""A recording of a real broker, read as requests: who called, and what clients and assignors had to say.

The first record of an event shows who called, and what about. What assignors answered (targets), leaders sent
(assignments) and which topics changed is taken from the recording as well. All else the reference coordinator has to
know on its own: which records there are, in which order, for whom, with which epochs, and what each member has of its
target, and since when.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any, Final

from coordinator_model.groups.embedded_subscription import by_topic, claim_of
from coordinator_model.records.consumer_protocol import decode_assignment
from coordinator_model.records.record_types import RecordType as T
from coordinator_model.records.serde import Record, decode_record
from lab.builders import topic_id
from streaming.recording.file_format import open_recording
from tests.simulator import classic, conversions, share
from tests.simulator.cluster import Cluster, Place, Release
from tests.simulator.coordinator import ReferenceCoordinator
from tests.simulator.memory import UNREVOKED, Group, Member

OFFSETS: Final = (T.LEGACY_OFFSET_COMMIT, T.OFFSET_COMMIT)
_METADATA: Final = (
    T.CONSUMER_GROUP_MEMBER_METADATA,
    T.SHARE_GROUP_MEMBER_METADATA,
    T.STREAMS_GROUP_MEMBER_METADATA,
)
_CURRENT: Final = (
    T.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT,
    T.SHARE_GROUP_CURRENT_MEMBER_ASSIGNMENT,
    T.STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT,
)
_EPOCH: Final = (T.CONSUMER_GROUP_METADATA, T.SHARE_GROUP_METADATA, T.STREAMS_GROUP_METADATA)
_TARGET_EPOCH: Final = (
    T.CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA,
    T.SHARE_GROUP_TARGET_ASSIGNMENT_METADATA,
    T.STREAMS_GROUP_TARGET_ASSIGNMENT_METADATA,
)
_TARGET: Final = (T.CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER, T.SHARE_GROUP_TARGET_ASSIGNMENT_MEMBER)


@dataclass(frozen=True, slots=True)
class RecordedEvent:
    """Records of one group and one timestamp; commits are apart from what else happens in that millisecond."""

    time_ms: int
    records: tuple[Record, ...]

    @property
    def first(self) -> Any:
        return self.records[0]

    def of(self, *types: T) -> list[Any]:
        """Records of these types that are no tombstones: their values are there, and of as many classes."""
        return [record for record in self.records if record.type in types and record.value is not None]

    def ended(self, *types: T) -> list[Record]:
        """Tombstones of these types."""
        return [record for record in self.records if record.type in types and record.value is None]


@dataclass(slots=True)
class Recording:
    """Events by group, in order, and the names of the topics that ids stand for."""

    release: str
    topic_names: dict[str, str]
    events: dict[str, list[RecordedEvent]] = field(default_factory=dict)


def recording_of(path: Path) -> Recording:
    """All groups of a recording."""
    with open_recording(path) as recording:
        read = [(of.timestamp_ms, decode_record(of.key, of.value)) for of in recording]
        found = Recording(".".join(str(recording.header.kafka_version).split(".")[:2]), recording.header.topic_names)
    of_groups: dict[str, list[tuple[int, Record]]] = {}
    for time_ms, record in read:
        if isinstance(record, Record):
            of_groups.setdefault(record.group_name, []).append((time_ms, record))
    for group, written in of_groups.items():
        found.events[group] = [
            RecordedEvent(time_ms, tuple(record for _, record in event))
            for (time_ms, _), event in groupby(written, key=lambda of: (of[0], _commits(of[1])))
        ]
    return found


def _commits(record: Record) -> bool:
    return record.type in OFFSETS and record.value is not None


class Player:
    """Plays the requests of one group to a reference coordinator."""

    def __init__(self, recording: Recording, group: str, release: Release, family: str) -> None:
        self.names = {**recording.topic_names, **{topic_id(name): name for name in recording.topic_names.values()}}
        partitions = dict.fromkeys(recording.topic_names.values(), 1) | {"t": 1, "u": 1, "v": 1}
        if family == "streams" and not _ready_at_once(recording.events[group]):
            partitions["v"] = 0
        self.coordinator = ReferenceCoordinator(cluster=Cluster(release=release, partitions=partitions))
        self.group: Group = self.coordinator.open(group, family=family)

    def play(self, event: RecordedEvent) -> list[Record]:
        """What the coordinator writes when it is asked what the event says that the broker was asked."""
        self.coordinator.now_ms = event.time_ms - 1
        before = len(self.coordinator.log)
        self._answer(event)
        self._request(event)
        self.group = self.coordinator.groups[self.group.name]
        self.group.answer = self.group.answer_standby = self.group.answer_warmup = None
        written = [decode_record(*of) for entry in self.coordinator.log[before:] for of in entry.records]
        return [of for of in written if isinstance(of, Record)]

    def places(self, parts: Iterable[Any]) -> set[Place]:
        """Partitions by the name of their topic, tasks by their subtopology."""
        return {(self._topic(part), partition) for part in parts for partition in part.partitions}

    def _topic(self, part: Any) -> str:
        return str(part.subtopology_id if hasattr(part, "subtopology_id") else self.names[part.topic_id])

    def _answer(self, event: RecordedEvent) -> None:
        """What the assignor answered last in the event: the target of a conversion is no answer."""
        targets = {of.key.member_id: self.places(of.value.topic_partitions) for of in event.of(*_TARGET)}
        tasks = event.of(T.STREAMS_GROUP_TARGET_ASSIGNMENT_MEMBER)
        targets |= {of.key.member_id: self.places(of.value.active_tasks) for of in tasks}
        self.group.answer = targets if event.of(*_TARGET_EPOCH) else None
        if tasks:
            self.group.answer_standby = {of.key.member_id: self.places(of.value.standby_tasks) for of in tasks}
            self.group.answer_warmup = {of.key.member_id: self.places(of.value.warmup_tasks) for of in tasks}

    def _request(self, event: RecordedEvent) -> None:
        """Who called, and what about: the first that fits."""
        first, group, coordinator = event.first, self.group, self.coordinator
        if _commits(first):
            coordinator.commit(group, {(of.key.topic, of.key.partition): of.value.offset for of in event.of(*OFFSETS)})
        elif all(of.type in OFFSETS for of in event.records):
            coordinator.forget_offsets(group, [(of.key.topic, of.key.partition) for of in event.records])
        elif first.type is T.GROUP_METADATA and first.value is not None:
            self._classic(first)
        elif not group.members and event.of(T.GROUP_METADATA):
            coordinator.write(group, conversions.downgraded_offline(group, event.time_ms))
        elif event.of(*_METADATA):
            self._reported_of_itself(event, event.of(*_METADATA)[-1])
        elif event.ended(*_METADATA):
            self._left(event)
        else:
            self._called_without_a_word(event)

    def _called_without_a_word(self, event: RecordedEvent) -> None:
        """Neither did a member say anything of itself, nor did one leave."""
        first, group, coordinator = event.first, self.group, self.coordinator
        if first.type is T.SHARE_GROUP_STATE_PARTITION_METADATA and first.value is not None:
            deleting = bool(first.value.deleting_topics)
            coordinator.write(group, share.deleting(group)) if deleting else coordinator.initialize(group)
        elif first.type is T.SHARE_GROUP_TARGET_ASSIGNMENT_METADATA and first.value is None:
            coordinator.write(group, share.ended(group))
        elif first.value is None:
            coordinator.delete(group)
        elif first.type is T.CONSUMER_GROUP_REGULAR_EXPRESSION:
            self._matched(event)
        else:
            self._called(event)

    def _classic(self, record: Any) -> None:
        group, value = self.group, record.value
        if not value.members and not value.protocol_type:
            self.coordinator.write(group, classic.begun(group, self.coordinator.now_ms))
            return
        reported = {of.member_id: of for of in value.members}
        if value.generation == group.written_generation and reported.keys() != group.members.keys():
            (new,) = (of for of in value.members if of.member_id not in group.members)
            member = group.of_instance(new.group_instance_id)
            assert member is not None
            self.coordinator.ids.append(new.member_id)
            self.coordinator.bounce(group, member)
            return
        members = {of: group.members.get(of) or Member(member_id=of, classic=True) for of in reported}
        for member_id, member in members.items():
            member.instance_id = reported[member_id].group_instance_id
            claim = claim_of(value.protocol, reported[member_id].subscription)
            member.topics = () if claim is None else claim.topics
        group.members, group.protocol = members, value.protocol or group.protocol
        group.generation = value.generation - 1  # which rounds were lost, no record says
        self.coordinator.rebalance(
            group, assignor=lambda _, __: {of: _given(reported[of].assignment) for of in reported}
        )

    def _reported_of_itself(self, event: RecordedEvent, record: Any) -> None:
        """A member joins, takes another's place, or says something else of itself."""
        group, coordinator, member_id, value = self.group, self.coordinator, record.key.member_id, record.value
        as_classic = getattr(value, "classic_member_metadata", None) is not None
        topics = tuple(getattr(value, "subscribed_topic_names", ()))
        regex = getattr(value, "subscribed_topic_regex", None) or None
        if member_id in group.members:
            self._said_again(event, group.members[member_id], topics, regex, value)
            return
        coordinator.ids.append(member_id)
        former = group.of_instance(value.instance_id) if getattr(value, "instance_id", None) else None
        if former is not None:
            coordinator.come_back(group, former, as_classic=as_classic)
            return
        if record.type is T.SHARE_GROUP_MEMBER_METADATA:
            coordinator.join_share(group, topics=topics)
        elif record.type is T.STREAMS_GROUP_MEMBER_METADATA:
            coordinator.join_streams(group, process_id=value.process_id)
        elif as_classic:
            coordinator.join_classic(group, topics=topics)
        else:
            coordinator.join_consumer(group, topics=topics, regex=regex)
        if member_id in group.members:
            group.members[member_id].instance_id = getattr(value, "instance_id", None)

    def _said_again(
        self, event: RecordedEvent, member: Member, topics: tuple[str, ...], regex: str | None, value: Any
    ) -> None:
        if (topics, regex) != (member.topics, member.regex) and self.group.kind != "streams":
            self.coordinator.resubscribe(self.group, member, topics, regex=regex)
        elif member.classic:
            self.coordinator.heartbeat(self.group, member, let_go=self._let_go(event, member))
        else:
            self.coordinator.move_host(self.group, member, f"{value.client_host} again")

    def _left(self, event: RecordedEvent) -> None:
        group, stay = self.group, {of.member_id for T2 in event.of(T.GROUP_METADATA) for of in T2.value.members}
        gone = [of.key.member_id for of in event.ended(*_METADATA) if of.key.member_id not in stay]
        leavers = [group.members[of] for of in gone if of in group.members]
        if leavers:
            self.coordinator.leave(group, *leavers)
        else:
            self.coordinator.delete(group)

    def _matched(self, event: RecordedEvent) -> None:
        """What an expression matches is for the broker to say, and whether any of it is new."""
        for of in event.of(T.CONSUMER_GROUP_REGULAR_EXPRESSION):
            self.group.matches[of.key.regular_expression] = tuple(of.value.topics)
        self.coordinator.match_regexes(self.group)

    def _called(self, event: RecordedEvent) -> None:
        """A heartbeat, or the timer of a streams group's delay."""
        group, coordinator = self.group, self.coordinator
        if event.first.type in (*_EPOCH, T.CONSUMER_GROUP_PARTITION_METADATA) and not group.newly_initialized:
            for topic in coordinator.cluster.partitions:
                coordinator.cluster.grow(topic, coordinator.cluster.partitions[topic] + 1)
        current = event.of(*_CURRENT)
        if current and current[0].value.member_epoch == -2:
            coordinator.step_away(group, group.members[current[0].key.member_id])
        elif current:
            member = group.members[current[0].key.member_id]
            coordinator.heartbeat(group, member, let_go=self._let_go(event, member))
        elif group.delayed_until_ms is not None and event.of(T.STREAMS_GROUP_TARGET_ASSIGNMENT_METADATA):
            group.delayed_until_ms = event.time_ms  # give or take a few milliseconds
            coordinator.end_delay(group)
        else:
            members = list(group.members.values())
            member = next((of for of in members if of.state == UNREVOKED), members[0])
            coordinator.heartbeat(group, member, let_go=False)

    def _let_go(self, event: RecordedEvent, member: Member) -> bool:
        """Whether the member gave up what it had to: it then has nothing of it."""
        for of in event.of(*_CURRENT):
            names = ("partitions_pending_revocation", "active_tasks_pending_revocation")
            pending = [part for name in names for part in getattr(of.value, name, ())]
            if of.key.member_id == member.member_id and member.state == UNREVOKED:
                return not (self.places(pending) & member.pending.keys())
        return True


def _ready_at_once(events: Iterable[RecordedEvent]) -> bool:
    epochs = (of.value for event in events for of in event.of(T.STREAMS_GROUP_METADATA))
    return next((of.validated_topology_epoch >= 0 for of in epochs), True)


def _given(assignment: bytes) -> set[Place]:
    decoded = decode_assignment(assignment) if assignment else None
    parts = {} if decoded is None else by_topic(decoded.assigned_partitions)
    return {(topic, partition) for topic, partitions in parts.items() for partition in partitions}
