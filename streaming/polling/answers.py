"""Answers of coordinators → what the board holds of a group.

    answer                   of              what it does not say
    DescribeGroups           classic groups  generation, timeouts; between two generations subscriptions and assignments
    ConsumerGroupDescribe    consumer groups timeouts, what is yet to be revoked, which assignor each member asks for,
                                             what an expression matched; before version 1 who uses the classic protocol
    ShareGroupDescribe       share groups    targets
    StreamsGroupDescribe     streams groups  timeouts, what is yet to be revoked, which topology was found valid
    OffsetFetch              all but share   when, and in which version, an offset was committed; topic ids

What is not said stays as it is where nothing is known of it (-1, None, nothing), and is never made up.
"""

import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from coordinator_model.groups import classic, streams
from coordinator_model.groups.consumer import MEMBER_STABLE
from coordinator_model.records.classic_group import GroupMetadataKey, GroupMetadataValue, MemberMetadata
from coordinator_model.state.membership import (
    CONSUMER,
    SHARE,
    STATIC_MEMBER_ABSENT_EPOCH,
    STREAMS,
    InternalTopics,
    Membership,
    ModernGroup,
    ModernMember,
    Partitions,
    TaskTarget,
    UserEndpoint,
)
from coordinator_model.state.offsets import CommittedOffset
from coordinator_model.state.partitions import merged
from coordinator_model.wire.primitives import uuid_text

DEAD: Final = "Dead"

NOT_SAID: Final = -1
_UNKNOWN_STATE: Final = 127
"""Of a member (`coordinator_model/groups/consumer.py`)."""
_CLASSIC_MEMBER: Final = 0
"""`MemberType` of ConsumerGroupDescribe: classic; 1 is consumer, -1 not known."""

_BETWEEN_GENERATIONS: Final = ("PreparingRebalance", "CompletingRebalance")

PolledOffsets = Mapping[str, Mapping[int, CommittedOffset]]
"""Topic → partition → its committed offset."""


@dataclass(frozen=True, slots=True)
class DescribedGroup:
    """A group as its coordinator describes it: its state in Kafka's word, and its members.

    `membership` is None where the answer has none: of a classic group between two generations.
    """

    state: str
    membership: Membership | None


def classic_group(answer: Any) -> DescribedGroup:  # noqa: ANN401 - kafka-python has no types
    """A group of DescribeGroups; its bytes are read as those of its record (`GroupMetadataValue`)."""
    state = str(answer.group_state)
    if state in _BETWEEN_GENERATIONS:
        return DescribedGroup(state, None)
    membership = Membership()
    if answer.protocol_type or answer.members:
        value = GroupMetadataValue(
            protocol_type=answer.protocol_type,
            generation=NOT_SAID,
            protocol=answer.protocol_data or None,
            leader=None,
            members=tuple(
                MemberMetadata(
                    member_id=member.member_id,
                    group_instance_id=member.group_instance_id,
                    client_id=member.client_id,
                    client_host=member.client_host,
                    session_timeout=NOT_SAID,
                    subscription=bytes(member.member_metadata or b""),
                    assignment=bytes(member.member_assignment or b""),
                )
                for member in answer.members
            ),
        )
        classic.replay_group_metadata(membership, GroupMetadataKey(group=answer.group_id), value)
    return DescribedGroup(state, membership)


def consumer_group(answer: Any) -> DescribedGroup:  # noqa: ANN401 - kafka-python has no types
    """A group of ConsumerGroupDescribe."""
    group = _modern(CONSUMER, answer, (_consumer_member(member, answer) for member in answer.members))
    group.targets = {member.member_id: _by_id(member.target_assignment) for member in answer.members}
    return _described(answer, group)


def share_group(answer: Any) -> DescribedGroup:  # noqa: ANN401 - kafka-python has no types
    """A group of ShareGroupDescribe."""
    members = (_member(member, **_of_topics(member)) for member in answer.members)
    return _described(answer, _modern(SHARE, answer, members))


def streams_group(answer: Any) -> DescribedGroup:  # noqa: ANN401 - kafka-python has no types
    """A group of StreamsGroupDescribe; its members have tasks by subtopology."""
    group = _modern(STREAMS, answer, (_streams_member(member, answer) for member in answer.members))
    group.task_targets = {member.member_id: _tasks(member.target_assignment) for member in answer.members}
    if answer.topology is not None:
        group.topology_epoch = answer.topology.epoch
        for part in answer.topology.subtopologies or ():
            repartition = tuple(topic.name for topic in part.repartition_source_topics)
            group.subtopologies[part.subtopology_id] = (*part.source_topics, *repartition)
            group.internal_topics[part.subtopology_id] = InternalTopics(
                repartition_source=repartition,
                repartition_sink=tuple(part.repartition_sink_topics),
                changelog=tuple(topic.name for topic in part.state_changelog_topics),
            )
    return _described(answer, group)


def offsets(topics: Iterable[Any]) -> PolledOffsets | None:
    """The committed offsets of a group in OffsetFetch; None where some partition's is not to be had for now."""
    found: dict[str, dict[int, CommittedOffset]] = {}
    for topic in topics:
        for partition in topic.partitions:
            if partition.error_code:
                return None
            if partition.committed_offset >= 0:
                found.setdefault(topic.name, {})[partition.partition_index] = CommittedOffset(
                    partition.committed_offset, partition.committed_leader_epoch, partition.metadata or ""
                )
    return found


def _described(answer: Any, group: ModernGroup) -> DescribedGroup:  # noqa: ANN401 - see above
    return DescribedGroup(str(answer.group_state), Membership(family=group.family, modern=group))


def _modern(family: str, answer: Any, members: Iterable[ModernMember]) -> ModernGroup:  # noqa: ANN401 - see above
    return ModernGroup(
        family=family,
        epoch=answer.group_epoch,
        assignment_epoch=answer.assignment_epoch,
        epoch_live=True,
        assignment_epoch_live=True,
        members={member.member_id: member for member in members},
    )


def _consumer_member(member: Any, group: Any) -> ModernMember:  # noqa: ANN401 - see above
    holds = _by_id(member.assignment) == _by_id(member.target_assignment)
    return _member(
        member,
        **_of_topics(member),
        instance_id=member.instance_id,
        subscribed_regex=member.subscribed_topic_regex or None,
        server_assignor=group.assignor_name or None,
        uses_classic_protocol=member.member_type == _CLASSIC_MEMBER,
        state=_state(member, group, MEMBER_STABLE, holds=holds),
    )


def _streams_member(member: Any, group: Any) -> ModernMember:  # noqa: ANN401 - see above
    tasks, endpoint = _tasks(member.assignment), member.user_endpoint
    return _member(
        member,
        instance_id=member.instance_id,
        assigned=tasks.active,
        standby_tasks=tasks.standby,
        warmup_tasks=tasks.warmup,
        topology_epoch=member.topology_epoch,
        process_id=member.process_id,
        user_endpoint=None if endpoint is None else UserEndpoint(host=endpoint.host, port=endpoint.port),
        client_tags={tag.key: tag.value for tag in member.client_tags},
        state=_state(member, group, streams.MEMBER_STABLE, holds=tasks == _tasks(member.target_assignment)),
    )


def _state(member: Any, group: Any, stable: int, *, holds: bool) -> int:  # noqa: ANN401 - see above
    """Stable where it is all that the group wants of it, or away; else not known."""
    is_there = member.member_epoch == group.assignment_epoch and holds
    return stable if is_there or member.member_epoch == STATIC_MEMBER_ABSENT_EPOCH else _UNKNOWN_STATE


def _member(member: Any, **more: Any) -> ModernMember:  # noqa: ANN401 - see above
    return ModernMember(
        member_id=member.member_id,
        metadata_live=True,
        current_live=True,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        epoch=member.member_epoch,
        **more,
    )


def _of_topics(member: Any) -> dict[str, Any]:  # noqa: ANN401 - see above
    return {
        "subscribed_topics": tuple(sorted(member.subscribed_topic_names)),
        "assigned": _by_id(member.assignment),
    }


def _tasks(assignment: Any) -> TaskTarget:  # noqa: ANN401 - see above
    return TaskTarget(
        active=streams.by_subtopology(assignment.active_tasks),
        standby=streams.by_subtopology(assignment.standby_tasks),
        warmup=streams.by_subtopology(assignment.warmup_tasks),
    )


def _by_id(assignment: Any) -> Partitions:  # noqa: ANN401 - see above
    """Topic id (22-character text) → partitions, ascending."""
    return merged(
        (uuid_text(uuid.UUID(str(of.topic_id)).bytes), tuple(of.partitions)) for of in assignment.topic_partitions
    )
