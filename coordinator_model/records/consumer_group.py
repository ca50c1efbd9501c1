"""Groups of the consumer protocol (KIP-848): types 3 to 8 and 16, from ``ConsumerGroup*.json``.

Topics stand under their ids in assignments and under their names in subscriptions.
"""

from dataclasses import dataclass
from typing import Annotated, ClassVar

from coordinator_model.records.keys import GroupIdKey, MemberKey
from coordinator_model.wire.schema import Bytes, Int8, Int32, Int64, OmittedAs, Schema, String, Tag, Uuid

FLEXIBLE = Schema(flexible_since=0)
"""New-protocol values have stayed at version 0: they grow by tagged fields alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerGroupMetadataKey(GroupIdKey):
    """A consumer group."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerGroupMetadataValue:
    """The group epoch, bumped by whatever calls for a new assignment; the hash is of the subscribed topics (4.1)."""

    SCHEMA: ClassVar[Schema] = FLEXIBLE

    epoch: Int32
    metadata_hash: Annotated[Int64, Tag(0)] = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerGroupPartitionMetadataKey(GroupIdKey):
    """The topics a consumer group subscribes to. Since 4.1 only its tombstone is written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionMetadata:
    """The racks that hold a replica of a partition."""

    partition: Int32
    racks: tuple[String, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicMetadata:
    """A topic as the coordinator last saw it."""

    topic_id: Uuid
    topic_name: String
    num_partitions: Int32
    partition_metadata: tuple[PartitionMetadata, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerGroupPartitionMetadataValue:
    """Metadata of the subscribed topics as brokers up to 4.0 kept it; a hash in type 3 has replaced it."""

    SCHEMA: ClassVar[Schema] = FLEXIBLE

    topics: tuple[TopicMetadata, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerGroupMemberMetadataKey(MemberKey):
    """A member of a consumer group."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassicProtocol:
    """A protocol that a classic member supports, with its embedded subscription."""

    name: String
    metadata: Bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassicMemberMetadata:
    """What the coordinator must know to serve a member that still speaks the classic protocol."""

    session_timeout_ms: Int32
    supported_protocols: tuple[ClassicProtocol, ...]


EMPTY_CLASSIC_METADATA = ClassicMemberMetadata(session_timeout_ms=0, supported_protocols=())


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerGroupMemberMetadataValue:
    """What a member said about itself. `classic_member_metadata` is there exactly if it uses the classic protocol.

    Its default upstream is the empty struct, so brokers write the null of every other member out, and a record without
    the tag counts as one of a classic member.
    """

    SCHEMA: ClassVar[Schema] = FLEXIBLE

    instance_id: String | None
    rack_id: String | None
    client_id: String
    client_host: String
    subscribed_topic_names: tuple[String, ...]
    subscribed_topic_regex: String | None
    rebalance_timeout_ms: Int32
    server_assignor: String | None
    classic_member_metadata: Annotated[ClassicMemberMetadata | None, Tag(0), OmittedAs(EMPTY_CLASSIC_METADATA)]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerGroupTargetAssignmentMetadataKey(GroupIdKey):
    """The target assignment of a consumer group."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerGroupTargetAssignmentMetadataValue:
    """The group epoch that the target assignment was computed for, and when in milliseconds (4.3, KIP-1263)."""

    SCHEMA: ClassVar[Schema] = FLEXIBLE

    assignment_epoch: Int32
    assignment_timestamp: Annotated[Int64, Tag(0)] = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerGroupTargetAssignmentMemberKey(MemberKey):
    """A member's part of the target assignment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicPartitions:
    """Partitions of one topic, in no order."""

    topic_id: Uuid
    partitions: tuple[Int32, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerGroupTargetAssignmentMemberValue:
    """The partitions a member shall own in the end."""

    SCHEMA: ClassVar[Schema] = FLEXIBLE

    topic_partitions: tuple[TopicPartitions, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerGroupCurrentMemberAssignmentKey(MemberKey):
    """Where a member is on its way to the target assignment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AssignedTopicPartitions(TopicPartitions):
    """Partitions of one topic and, in parallel, the epoch each was assigned in (4.3, KIP-1251).

    No epochs mean that the writer knew none; null is legal too, and never the default.
    """

    assignment_epochs: Annotated[tuple[Int32, ...] | None, Tag(0)] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerGroupCurrentMemberAssignmentValue:
    """What the coordinator believes a member to own.

    `state` is 0 stable, 1 with partitions to revoke, 2 waiting for partitions others still own. A `member_epoch` of -2
    is a static member that closed and may return.
    """

    SCHEMA: ClassVar[Schema] = FLEXIBLE

    member_epoch: Int32
    previous_member_epoch: Int32
    state: Int8
    assigned_partitions: tuple[AssignedTopicPartitions, ...]
    partitions_pending_revocation: tuple[AssignedTopicPartitions, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerGroupRegularExpressionKey(GroupIdKey):
    """A regular expression that some member subscribes with."""

    regular_expression: String


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerGroupRegularExpressionValue:
    """The topics an expression matched: at which metadata image version and when, in milliseconds."""

    SCHEMA: ClassVar[Schema] = FLEXIBLE

    topics: tuple[String, ...]
    version: Int64
    timestamp: Int64
