"""Share groups (KIP-932): types 10 to 15, from ``ShareGroup*.json`` as of 4.1.

The values of types 11 and 15 have another layout in 4.0, under the same version. Delivery state is not in this topic.
"""

from dataclasses import dataclass
from typing import Annotated, ClassVar

from coordinator_model.records.consumer_group import FLEXIBLE, TopicPartitions
from coordinator_model.records.keys import GroupIdKey, MemberKey
from coordinator_model.wire.schema import Int8, Int32, Int64, Schema, String, Tag, Uuid


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareGroupMemberMetadataKey(MemberKey):
    """A member of a share group."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareGroupMemberMetadataValue:
    """What a member said about itself."""

    SCHEMA: ClassVar[Schema] = FLEXIBLE

    rack_id: String | None
    client_id: String
    client_host: String
    subscribed_topic_names: tuple[String, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareGroupMetadataKey(GroupIdKey):
    """A share group."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareGroupMetadataValue:
    """The group epoch and the hash of the subscribed topics, an ordinary field here and a tagged one in type 3."""

    SCHEMA: ClassVar[Schema] = FLEXIBLE

    epoch: Int32
    metadata_hash: Int64


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareGroupTargetAssignmentMetadataKey(GroupIdKey):
    """The target assignment of a share group."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareGroupTargetAssignmentMetadataValue:
    """The group epoch that the target assignment was computed for, and when in milliseconds (4.3, KIP-1263)."""

    SCHEMA: ClassVar[Schema] = FLEXIBLE

    assignment_epoch: Int32
    assignment_timestamp: Annotated[Int64, Tag(0)] = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareGroupTargetAssignmentMemberKey(MemberKey):
    """A member's part of the target assignment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareGroupTargetAssignmentMemberValue:
    """The partitions a member shall read from; several members may share one."""

    SCHEMA: ClassVar[Schema] = FLEXIBLE

    topic_partitions: tuple[TopicPartitions, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareGroupCurrentMemberAssignmentKey(MemberKey):
    """Where a member is on its way to the target assignment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareGroupCurrentMemberAssignmentValue:
    """What a member reads from now. Nothing is revoked in a share group, so nothing pends."""

    SCHEMA: ClassVar[Schema] = FLEXIBLE

    member_epoch: Int32
    previous_member_epoch: Int32
    state: Int8
    assigned_partitions: tuple[TopicPartitions, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareGroupStatePartitionMetadataKey(GroupIdKey):
    """The partitions for which a share group keeps delivery state."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicPartitionsInfo:
    """Partitions of one topic, named by id and name."""

    topic_id: Uuid
    topic_name: String
    partitions: tuple[Int32, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicInfo:
    """A topic, named by id and name."""

    topic_id: Uuid
    topic_name: String


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareGroupStatePartitionMetadataValue:
    """How far the delivery state of each partition is from being set up or taken down."""

    SCHEMA: ClassVar[Schema] = FLEXIBLE

    initializing_topics: tuple[TopicPartitionsInfo, ...]
    initialized_topics: tuple[TopicPartitionsInfo, ...]
    deleting_topics: tuple[TopicInfo, ...]
