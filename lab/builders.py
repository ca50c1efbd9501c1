"""Records of ``__consumer_offsets`` in the coordinator's words, so that a test reads as a history of the log.

One factory per record and per tombstone, named like those of upstream's `GroupCoordinatorRecordHelpers`; each returns
the key and value bytes a broker would have written::

    consumer_group_epoch("orders", 2)
    consumer_group_current_assignment("orders", "member-a", epoch=2, assigned={"t": [0, 1]})
    offset_commit("orders", "t", 0, offset=42)

Assignments are given by topic name, ``{"t": [0, 1]}``; where a record names topics by id, that is `topic_id("t")`.
"""

from collections.abc import Iterable, Mapping, Sequence
from hashlib import md5
from typing import Any, TypeAlias

from coordinator_model.records import classic_group, consumer_group, consumer_protocol, share_group, streams_group
from coordinator_model.records import offset_commit as offsets
from coordinator_model.records.serde import encode_record
from coordinator_model.wire.primitives import uuid_text, write_int32

RecordBytes: TypeAlias = tuple[bytes, bytes | None]
Partitions: TypeAlias = Mapping[str, Sequence[int]]
"""Topic (or subtopology) → partitions."""
EpochPartitions: TypeAlias = Mapping[str, Sequence[int] | Mapping[int, int]]
"""The same, or topic → partition → epoch it was assigned in."""

NOW_MS = 1_795_236_417_050
REBALANCE_TIMEOUT_MS = 300_000
SESSION_TIMEOUT_MS = 45_000
HOST = "/127.0.0.1"


def topic_id(topic: str) -> str:
    """The id that the topic of this name has in every test."""
    return uuid_text(md5(topic.encode(), usedforsecurity=False).digest())


def topic_name(topic: str) -> str:
    """The name of a topic that may be the second of it: ``t~2`` has another id than ``t``, and the same name."""
    return topic.partition("~")[0]


# -- offsets ----------------------------------------------------------------------------------------------------------


def offset_commit(
    group: str,
    topic: str,
    partition: int,
    offset: int,
    *,
    leader_epoch: int = -1,
    metadata: str = "",
    timestamp: int = NOW_MS,
    expire_timestamp: int = -1,
    id_of_topic: str | None = None,
    version: int = 4,
) -> RecordBytes:
    """A committed offset, with the id of its topic unless `id_of_topic` says another (transactions: `ZERO_UUID`)."""
    value = offsets.OffsetCommitValue(
        offset=offset,
        leader_epoch=leader_epoch,
        metadata=metadata,
        commit_timestamp=timestamp,
        expire_timestamp=expire_timestamp,
        topic_id=topic_id(topic) if id_of_topic is None else id_of_topic,
    )
    return encode_record(offsets.OffsetCommitKey(group=group, topic=topic, partition=partition), value, version)


def offset_commit_tombstone(group: str, topic: str, partition: int) -> RecordBytes:
    """A committed offset expired or deleted."""
    return encode_record(offsets.OffsetCommitKey(group=group, topic=topic, partition=partition), None)


def legacy_offset_commit(
    group: str, topic: str, partition: int, offset: int, *, metadata: str = "", timestamp: int = NOW_MS
) -> RecordBytes:
    """A committed offset of a broker older than 0.9."""
    value = offsets.LegacyOffsetCommitValue(offset=offset, metadata=metadata, commit_timestamp=timestamp)
    return encode_record(offsets.LegacyOffsetCommitKey(group=group, topic=topic, partition=partition), value)


def legacy_offset_commit_tombstone(group: str, topic: str, partition: int) -> RecordBytes:
    """The same, deleted."""
    return encode_record(offsets.LegacyOffsetCommitKey(group=group, topic=topic, partition=partition), None)


# -- classic groups and what their members embed ----------------------------------------------------------------------


def subscription(
    topics: Iterable[str] = ("t",),
    *,
    owned: Partitions | None = None,
    generation_id: int = -1,
    rack_id: str | None = None,
    user_data: bytes | None = None,
    version: int = 3,
) -> bytes:
    """What a classic consumer sends to join."""
    return consumer_protocol.encode_subscription(
        consumer_protocol.ConsumerProtocolSubscription(
            topics=tuple(topics),
            user_data=user_data,
            owned_partitions=_by_name(owned or {}),
            generation_id=generation_id,
            rack_id=rack_id,
            version=version,
        )
    )


def first_fields(topics: Iterable[str] = ("t",), *, user_data: bytes | None = None, version: int = 1) -> bytes:
    """What kafka-go (version 1) and faust (version 4) send to join: another version's number, and the fields of 0."""
    return version.to_bytes(2, "big") + subscription(topics, user_data=user_data, version=0)[2:]


def assignment(partitions: Partitions, *, user_data: bytes | None = None, version: int = 3) -> bytes:
    """What the leader of a classic group assigns to one member."""
    return consumer_protocol.encode_assignment(
        consumer_protocol.ConsumerProtocolAssignment(
            assigned_partitions=_by_name(partitions), user_data=user_data, version=version
        )
    )


def sticky_user_data(previous: Partitions, generation: int | None) -> bytes:
    """User data of assignor ``sticky``; None is the old layout, without a generation."""
    data = consumer_protocol.StickyUserData(previous_assignment=_by_name(previous), generation=generation or 0)
    return consumer_protocol.encode_sticky_user_data(data, version=0 if generation is None else 1)


def cooperative_sticky_user_data(generation: int) -> bytes:
    """User data of assignor ``cooperative-sticky``."""
    out = bytearray()
    write_int32(out, generation)
    return bytes(out)


def member(
    member_id: str,
    assigned: Partitions | None = None,
    *,
    topics: Iterable[str] = ("t",),
    owned: Partitions | None = None,
    owned_generation: int = -1,
    instance_id: str | None = None,
    client_id: str = "client",
    client_host: str = HOST,
    user_data: bytes | None = None,
    subscription_bytes: bytes | None = None,
    assignment_bytes: bytes | None = None,
) -> classic_group.MemberMetadata:
    """A member within `group_metadata`; `assigned` None is one that the leader left out."""
    joined_with = subscription(topics, owned=owned, generation_id=owned_generation, user_data=user_data)
    given = b"" if assigned is None else assignment(assigned)
    return classic_group.MemberMetadata(
        member_id=member_id,
        group_instance_id=instance_id,
        client_id=client_id,
        client_host=client_host,
        rebalance_timeout=REBALANCE_TIMEOUT_MS,
        session_timeout=SESSION_TIMEOUT_MS,
        subscription=joined_with if subscription_bytes is None else subscription_bytes,
        assignment=given if assignment_bytes is None else assignment_bytes,
    )


def group_metadata(
    group: str,
    *,
    generation: int,
    members: Iterable[classic_group.MemberMetadata] = (),
    protocol: str | None = "range",
    protocol_type: str = "consumer",
    leader: str | None = None,
    timestamp: int = NOW_MS,
    version: int = 3,
) -> RecordBytes:
    """A classic group after a rebalance; without members it has neither protocol nor leader."""
    present = tuple(members)
    value = classic_group.GroupMetadataValue(
        protocol_type=protocol_type,
        generation=generation,
        protocol=protocol if present else None,
        leader=leader or (present[0].member_id if present else None),
        current_state_timestamp=timestamp,
        members=present,
    )
    return encode_record(classic_group.GroupMetadataKey(group=group), value, version)


def new_group_metadata(group: str, *, timestamp: int = NOW_MS) -> RecordBytes:
    """The first record of a classic group, written before anyone has joined."""
    return group_metadata(group, generation=0, protocol_type="", timestamp=timestamp)


def group_metadata_tombstone(group: str) -> RecordBytes:
    """A classic group deleted or converted."""
    return encode_record(classic_group.GroupMetadataKey(group=group), None)


# -- consumer groups --------------------------------------------------------------------------------------------------


def consumer_group_epoch(group: str, epoch: int, *, metadata_hash: int = 0) -> RecordBytes:
    """The group epoch was bumped."""
    value = consumer_group.ConsumerGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash)
    return encode_record(consumer_group.ConsumerGroupMetadataKey(group_id=group), value)


def consumer_group_epoch_tombstone(group: str) -> RecordBytes:
    """A consumer group deleted or converted."""
    return encode_record(consumer_group.ConsumerGroupMetadataKey(group_id=group), None)


def consumer_group_partition_metadata(group: str, topics: Mapping[str, int]) -> RecordBytes:
    """Topic → number of partitions, as brokers up to 4.0 wrote it."""
    value = consumer_group.ConsumerGroupPartitionMetadataValue(
        topics=tuple(
            consumer_group.TopicMetadata(
                topic_id=topic_id(topic), topic_name=topic_name(topic), num_partitions=count, partition_metadata=()
            )
            for topic, count in topics.items()
        )
    )
    return encode_record(consumer_group.ConsumerGroupPartitionMetadataKey(group_id=group), value)


def consumer_group_partition_metadata_tombstone(group: str) -> RecordBytes:
    """Written whenever a consumer group goes, whether it had such a record or not."""
    return encode_record(consumer_group.ConsumerGroupPartitionMetadataKey(group_id=group), None)


def classic_member_metadata(**protocols: bytes) -> consumer_group.ClassicMemberMetadata:
    """Protocol → subscription of a classic member within a consumer group; ``_`` stands for ``-`` in names."""
    return consumer_group.ClassicMemberMetadata(
        session_timeout_ms=SESSION_TIMEOUT_MS,
        supported_protocols=tuple(
            consumer_group.ClassicProtocol(name=name.replace("_", "-"), metadata=metadata)
            for name, metadata in protocols.items()
        ),
    )


def consumer_group_member_subscription(
    group: str,
    member_id: str,
    *,
    topics: Iterable[str] = ("t",),
    regex: str | None = "",
    instance_id: str | None = None,
    rack_id: str | None = None,
    client_id: str = "client",
    client_host: str = HOST,
    rebalance_timeout_ms: int = REBALANCE_TIMEOUT_MS,
    server_assignor: str | None = None,
    classic: consumer_group.ClassicMemberMetadata | None = None,
) -> RecordBytes:
    """A member joined or changed its mind; with `classic` it speaks the classic protocol."""
    value = consumer_group.ConsumerGroupMemberMetadataValue(
        instance_id=instance_id,
        rack_id=rack_id,
        client_id=client_id,
        client_host=client_host,
        subscribed_topic_names=tuple(sorted(topics)),
        subscribed_topic_regex=regex,
        rebalance_timeout_ms=rebalance_timeout_ms,
        server_assignor=server_assignor,
        classic_member_metadata=classic,
    )
    key = consumer_group.ConsumerGroupMemberMetadataKey(group_id=group, member_id=member_id)
    return encode_record(key, value)


def consumer_group_member_subscription_tombstone(group: str, member_id: str) -> RecordBytes:
    """A member left or was removed."""
    return encode_record(consumer_group.ConsumerGroupMemberMetadataKey(group_id=group, member_id=member_id), None)


def consumer_group_target_assignment_epoch(group: str, epoch: int, *, timestamp: int = 0) -> RecordBytes:
    """A target assignment was computed for this group epoch."""
    value = consumer_group.ConsumerGroupTargetAssignmentMetadataValue(
        assignment_epoch=epoch, assignment_timestamp=timestamp
    )
    return encode_record(consumer_group.ConsumerGroupTargetAssignmentMetadataKey(group_id=group), value)


def consumer_group_target_assignment_epoch_tombstone(group: str) -> RecordBytes:
    """The target assignment of a group that goes."""
    return encode_record(consumer_group.ConsumerGroupTargetAssignmentMetadataKey(group_id=group), None)


def consumer_group_target_assignment(group: str, member_id: str, partitions: Partitions) -> RecordBytes:
    """What a member shall own in the end."""
    value = consumer_group.ConsumerGroupTargetAssignmentMemberValue(topic_partitions=_by_id(partitions))
    key = consumer_group.ConsumerGroupTargetAssignmentMemberKey(group_id=group, member_id=member_id)
    return encode_record(key, value)


def consumer_group_target_assignment_tombstone(group: str, member_id: str) -> RecordBytes:
    """The target of a member that left."""
    key = consumer_group.ConsumerGroupTargetAssignmentMemberKey(group_id=group, member_id=member_id)
    return encode_record(key, None)


def consumer_group_current_assignment(
    group: str,
    member_id: str,
    *,
    epoch: int,
    previous_epoch: int | None = None,
    state: int = 0,
    assigned: EpochPartitions | None = None,
    pending_revocation: EpochPartitions | None = None,
    epochs: bool = True,
) -> RecordBytes:
    """What a member owns.

    Partitions without an epoch of their own get the member's; `epochs` False leaves all out, as brokers up to 4.2 do.
    """
    value = consumer_group.ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=epoch,
        previous_member_epoch=epoch if previous_epoch is None else previous_epoch,
        state=state,
        assigned_partitions=_by_id_with_epochs(assigned or {}, epoch, epochs),
        partitions_pending_revocation=_by_id_with_epochs(pending_revocation or {}, epoch, epochs),
    )
    key = consumer_group.ConsumerGroupCurrentMemberAssignmentKey(group_id=group, member_id=member_id)
    return encode_record(key, value)


def consumer_group_current_assignment_tombstone(group: str, member_id: str) -> RecordBytes:
    """The assignment of a member that left."""
    key = consumer_group.ConsumerGroupCurrentMemberAssignmentKey(group_id=group, member_id=member_id)
    return encode_record(key, None)


def consumer_group_regular_expression(
    group: str, regex: str, topics: Iterable[str], *, version: int = 1, timestamp: int = NOW_MS
) -> RecordBytes:
    """A regular expression was resolved at this version of the metadata image."""
    value = consumer_group.ConsumerGroupRegularExpressionValue(
        topics=tuple(sorted(topics)), version=version, timestamp=timestamp
    )
    key = consumer_group.ConsumerGroupRegularExpressionKey(group_id=group, regular_expression=regex)
    return encode_record(key, value)


def consumer_group_regular_expression_tombstone(group: str, regex: str) -> RecordBytes:
    """No member subscribes with the expression any more."""
    key = consumer_group.ConsumerGroupRegularExpressionKey(group_id=group, regular_expression=regex)
    return encode_record(key, None)


# -- share groups -----------------------------------------------------------------------------------------------------


def share_group_epoch(group: str, epoch: int, *, metadata_hash: int = 0) -> RecordBytes:
    """The group epoch was bumped."""
    value = share_group.ShareGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash)
    return encode_record(share_group.ShareGroupMetadataKey(group_id=group), value)


def share_group_epoch_tombstone(group: str) -> RecordBytes:
    """A share group deleted."""
    return encode_record(share_group.ShareGroupMetadataKey(group_id=group), None)


def share_group_member_subscription(
    group: str,
    member_id: str,
    *,
    topics: Iterable[str] = ("t",),
    rack_id: str | None = None,
    client_id: str = "client",
    client_host: str = HOST,
) -> RecordBytes:
    """A member joined or changed its mind."""
    value = share_group.ShareGroupMemberMetadataValue(
        rack_id=rack_id, client_id=client_id, client_host=client_host, subscribed_topic_names=tuple(sorted(topics))
    )
    return encode_record(share_group.ShareGroupMemberMetadataKey(group_id=group, member_id=member_id), value)


def share_group_member_subscription_tombstone(group: str, member_id: str) -> RecordBytes:
    """A member left or was removed."""
    return encode_record(share_group.ShareGroupMemberMetadataKey(group_id=group, member_id=member_id), None)


def share_group_target_assignment_epoch(group: str, epoch: int, *, timestamp: int = 0) -> RecordBytes:
    """A target assignment was computed for this group epoch."""
    value = share_group.ShareGroupTargetAssignmentMetadataValue(assignment_epoch=epoch, assignment_timestamp=timestamp)
    return encode_record(share_group.ShareGroupTargetAssignmentMetadataKey(group_id=group), value)


def share_group_target_assignment_epoch_tombstone(group: str) -> RecordBytes:
    """The target assignment of a group that goes."""
    return encode_record(share_group.ShareGroupTargetAssignmentMetadataKey(group_id=group), None)


def share_group_target_assignment(group: str, member_id: str, partitions: Partitions) -> RecordBytes:
    """What a member shall read from."""
    value = share_group.ShareGroupTargetAssignmentMemberValue(topic_partitions=_by_id(partitions))
    key = share_group.ShareGroupTargetAssignmentMemberKey(group_id=group, member_id=member_id)
    return encode_record(key, value)


def share_group_target_assignment_tombstone(group: str, member_id: str) -> RecordBytes:
    """The target of a member that left."""
    key = share_group.ShareGroupTargetAssignmentMemberKey(group_id=group, member_id=member_id)
    return encode_record(key, None)


def share_group_current_assignment(
    group: str,
    member_id: str,
    *,
    epoch: int,
    previous_epoch: int | None = None,
    state: int = 0,
    assigned: Partitions | None = None,
) -> RecordBytes:
    """What a member reads from."""
    value = share_group.ShareGroupCurrentMemberAssignmentValue(
        member_epoch=epoch,
        previous_member_epoch=epoch if previous_epoch is None else previous_epoch,
        state=state,
        assigned_partitions=_by_id(assigned or {}),
    )
    key = share_group.ShareGroupCurrentMemberAssignmentKey(group_id=group, member_id=member_id)
    return encode_record(key, value)


def share_group_current_assignment_tombstone(group: str, member_id: str) -> RecordBytes:
    """The assignment of a member that left."""
    key = share_group.ShareGroupCurrentMemberAssignmentKey(group_id=group, member_id=member_id)
    return encode_record(key, None)


def share_group_state_partition_metadata(
    group: str,
    *,
    initializing: Partitions | None = None,
    initialized: Partitions | None = None,
    deleting: Iterable[str] = (),
) -> RecordBytes:
    """How far the delivery state of each partition is from being set up or taken down."""
    value = share_group.ShareGroupStatePartitionMetadataValue(
        initializing_topics=_by_id_and_name(initializing or {}),
        initialized_topics=_by_id_and_name(initialized or {}),
        deleting_topics=tuple(
            share_group.TopicInfo(topic_id=topic_id(name), topic_name=topic_name(name)) for name in deleting
        ),
    )
    return encode_record(share_group.ShareGroupStatePartitionMetadataKey(group_id=group), value)


def share_group_state_partition_metadata_tombstone(group: str) -> RecordBytes:
    """The group keeps no delivery state any more."""
    return encode_record(share_group.ShareGroupStatePartitionMetadataKey(group_id=group), None)


# -- streams groups ---------------------------------------------------------------------------------------------------


def streams_group_epoch(
    group: str,
    epoch: int,
    *,
    metadata_hash: int = 0,
    validated_topology_epoch: int = -1,
    configs: Mapping[str, str] | None = None,
) -> RecordBytes:
    """The group epoch was bumped."""
    value = streams_group.StreamsGroupMetadataValue(
        epoch=epoch,
        metadata_hash=metadata_hash,
        validated_topology_epoch=validated_topology_epoch,
        last_assignment_configs=_key_values(configs or {}),
    )
    return encode_record(streams_group.StreamsGroupMetadataKey(group_id=group), value)


def streams_group_epoch_tombstone(group: str) -> RecordBytes:
    """A streams group deleted or converted."""
    return encode_record(streams_group.StreamsGroupMetadataKey(group_id=group), None)


def streams_group_member(
    group: str,
    member_id: str,
    *,
    topology_epoch: int = 0,
    process_id: str = "process",
    instance_id: str | None = None,
    rack_id: str | None = None,
    client_id: str = "client",
    client_host: str = HOST,
    endpoint: tuple[str, int] | None = None,
    tags: Mapping[str, str] | None = None,
    rebalance_timeout_ms: int = REBALANCE_TIMEOUT_MS,
) -> RecordBytes:
    """A member joined or changed its mind."""
    value = streams_group.StreamsGroupMemberMetadataValue(
        instance_id=instance_id,
        rack_id=rack_id,
        client_id=client_id,
        client_host=client_host,
        rebalance_timeout_ms=rebalance_timeout_ms,
        topology_epoch=topology_epoch,
        process_id=process_id,
        user_endpoint=None if endpoint is None else streams_group.Endpoint(host=endpoint[0], port=endpoint[1]),
        client_tags=_key_values(tags or {}),
    )
    return encode_record(streams_group.StreamsGroupMemberMetadataKey(group_id=group, member_id=member_id), value)


def streams_group_member_tombstone(group: str, member_id: str) -> RecordBytes:
    """A member left or was removed."""
    return encode_record(streams_group.StreamsGroupMemberMetadataKey(group_id=group, member_id=member_id), None)


def streams_group_target_assignment_epoch(group: str, epoch: int, *, timestamp: int = 0) -> RecordBytes:
    """A target assignment was computed for this group epoch."""
    value = streams_group.StreamsGroupTargetAssignmentMetadataValue(
        assignment_epoch=epoch, assignment_timestamp=timestamp
    )
    return encode_record(streams_group.StreamsGroupTargetAssignmentMetadataKey(group_id=group), value)


def streams_group_target_assignment_epoch_tombstone(group: str) -> RecordBytes:
    """The target assignment of a group that goes."""
    return encode_record(streams_group.StreamsGroupTargetAssignmentMetadataKey(group_id=group), None)


def streams_group_target_assignment(
    group: str,
    member_id: str,
    *,
    active: Partitions | None = None,
    standby: Partitions | None = None,
    warmup: Partitions | None = None,
) -> RecordBytes:
    """The tasks a member shall own in the end, by subtopology."""
    value = streams_group.StreamsGroupTargetAssignmentMemberValue(
        active_tasks=_tasks(active or {}), standby_tasks=_tasks(standby or {}), warmup_tasks=_tasks(warmup or {})
    )
    key = streams_group.StreamsGroupTargetAssignmentMemberKey(group_id=group, member_id=member_id)
    return encode_record(key, value)


def streams_group_target_assignment_tombstone(group: str, member_id: str) -> RecordBytes:
    """The target of a member that left."""
    key = streams_group.StreamsGroupTargetAssignmentMemberKey(group_id=group, member_id=member_id)
    return encode_record(key, None)


def streams_group_current_assignment(
    group: str,
    member_id: str,
    *,
    epoch: int,
    previous_epoch: int | None = None,
    state: int = 1,
    active: EpochPartitions | None = None,
    standby: Partitions | None = None,
    warmup: Partitions | None = None,
    active_pending_revocation: EpochPartitions | None = None,
    standby_pending_revocation: Partitions | None = None,
    warmup_pending_revocation: Partitions | None = None,
    epochs: bool = True,
) -> RecordBytes:
    """The tasks a member owns, by subtopology; active ones carry the epoch they were assigned in (4.2).

    `epochs` False leaves all out, as 4.1 brokers do.
    """
    value = streams_group.StreamsGroupCurrentMemberAssignmentValue(
        member_epoch=epoch,
        previous_member_epoch=epoch if previous_epoch is None else previous_epoch,
        state=state,
        active_tasks=_tasks_with_epochs(active or {}, epoch, epochs),
        standby_tasks=_tasks_without_epochs(standby or {}),
        warmup_tasks=_tasks_without_epochs(warmup or {}),
        active_tasks_pending_revocation=_tasks_with_epochs(active_pending_revocation or {}, epoch, epochs),
        standby_tasks_pending_revocation=_tasks_without_epochs(standby_pending_revocation or {}),
        warmup_tasks_pending_revocation=_tasks_without_epochs(warmup_pending_revocation or {}),
    )
    key = streams_group.StreamsGroupCurrentMemberAssignmentKey(group_id=group, member_id=member_id)
    return encode_record(key, value)


def streams_group_current_assignment_tombstone(group: str, member_id: str) -> RecordBytes:
    """The assignment of a member that left."""
    key = streams_group.StreamsGroupCurrentMemberAssignmentKey(group_id=group, member_id=member_id)
    return encode_record(key, None)


def streams_group_topology(group: str, epoch: int, subtopologies: Mapping[str, Sequence[str]]) -> RecordBytes:
    """Subtopology → source topics."""
    value = streams_group.StreamsGroupTopologyValue(
        epoch=epoch,
        subtopologies=tuple(
            streams_group.Subtopology(
                subtopology_id=subtopology,
                source_topics=tuple(topics),
                source_topic_regex=(),
                state_changelog_topics=(),
                repartition_sink_topics=(),
                repartition_source_topics=(),
                copartition_groups=(),
            )
            for subtopology, topics in subtopologies.items()
        ),
    )
    return encode_record(streams_group.StreamsGroupTopologyKey(group_id=group), value)


def streams_group_topology_tombstone(group: str) -> RecordBytes:
    """The topology of a group that goes."""
    return encode_record(streams_group.StreamsGroupTopologyKey(group_id=group), None)


# -- parts ------------------------------------------------------------------------------------------------------------


def _by_name(partitions: Partitions) -> tuple[consumer_protocol.TopicPartition, ...]:
    return tuple(
        consumer_protocol.TopicPartition(topic=topic, partitions=tuple(of)) for topic, of in partitions.items()
    )


def _by_id(partitions: Partitions) -> tuple[consumer_group.TopicPartitions, ...]:
    return tuple(
        consumer_group.TopicPartitions(topic_id=topic_id(topic), partitions=tuple(of))
        for topic, of in partitions.items()
    )


def _by_id_and_name(partitions: Partitions) -> tuple[share_group.TopicPartitionsInfo, ...]:
    return tuple(
        share_group.TopicPartitionsInfo(topic_id=topic_id(topic), topic_name=topic_name(topic), partitions=tuple(of))
        for topic, of in partitions.items()
    )


def _by_id_with_epochs(
    partitions: EpochPartitions, epoch: int, epochs: bool
) -> tuple[consumer_group.AssignedTopicPartitions, ...]:
    return tuple(
        consumer_group.AssignedTopicPartitions(
            topic_id=topic_id(topic),
            partitions=tuple(of),
            assignment_epochs=_epochs(of, epoch) if epochs else (),
        )
        for topic, of in partitions.items()
    )


def _epochs(partitions: Sequence[int] | Mapping[int, int], epoch: int) -> tuple[int, ...]:
    if isinstance(partitions, Mapping):
        return tuple(partitions.values())
    return (max(epoch, 0),) * len(partitions)


def _tasks(partitions: Partitions) -> tuple[streams_group.TaskIds, ...]:
    return tuple(
        streams_group.TaskIds(subtopology_id=subtopology, partitions=tuple(of))
        for subtopology, of in partitions.items()
    )


def _tasks_with_epochs(
    partitions: EpochPartitions, epoch: int, epochs: bool
) -> tuple[streams_group.AssignedTaskIds, ...]:
    return tuple(
        streams_group.AssignedTaskIds(
            subtopology_id=subtopology, partitions=tuple(of), assignment_epochs=_epochs(of, epoch) if epochs else ()
        )
        for subtopology, of in partitions.items()
    )


def _tasks_without_epochs(partitions: Partitions) -> tuple[streams_group.AssignedTaskIds, ...]:
    return tuple(
        streams_group.AssignedTaskIds(subtopology_id=subtopology, partitions=tuple(of))
        for subtopology, of in partitions.items()
    )


def _key_values(pairs: Mapping[str, Any]) -> tuple[streams_group.KeyValue, ...]:
    return tuple(streams_group.KeyValue(key=key, value=str(value)) for key, value in pairs.items())
