"""Streams groups (KIP-1071): types 17 and 19 to 23, from ``StreamsGroup*.json``. There is no type 18."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

from coordinator_model.records.consumer_group import FLEXIBLE
from coordinator_model.records.keys import GroupIdKey, MemberKey
from coordinator_model.wire.schema import Int8, Int16, Int32, Int64, Schema, String, Tag, UInt16


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyValue:
    """A client tag or a topic config."""

    key: String
    value: String


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamsGroupMetadataKey(GroupIdKey):
    """A streams group."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamsGroupMetadataValue:
    """The group epoch, the hash of the topics, the topology last found valid and the assignor's configs (both 4.2)."""

    SCHEMA: ClassVar[Schema] = FLEXIBLE

    epoch: Int32
    metadata_hash: Int64
    validated_topology_epoch: Annotated[Int32, Tag(0)] = -1
    last_assignment_configs: Annotated[tuple[KeyValue, ...] | None, Tag(1)] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamsGroupMemberMetadataKey(MemberKey):
    """A member of a streams group."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """Where a member answers interactive queries."""

    host: String
    port: UInt16


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamsGroupMemberMetadataValue:
    """What a member said about itself; members of one `process_id` share a process."""

    SCHEMA: ClassVar[Schema] = FLEXIBLE

    instance_id: String | None
    rack_id: String | None
    client_id: String
    client_host: String
    rebalance_timeout_ms: Int32
    topology_epoch: Int32
    process_id: String
    user_endpoint: Endpoint | None
    client_tags: tuple[KeyValue, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamsGroupTargetAssignmentMetadataKey(GroupIdKey):
    """The target assignment of a streams group."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamsGroupTargetAssignmentMetadataValue:
    """The group epoch that the target assignment was computed for, and when in milliseconds (4.3, KIP-1263)."""

    SCHEMA: ClassVar[Schema] = FLEXIBLE

    assignment_epoch: Int32
    assignment_timestamp: Annotated[Int64, Tag(0)] = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamsGroupTargetAssignmentMemberKey(MemberKey):
    """A member's part of the target assignment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskIds:
    """Tasks of one subtopology, by partition."""

    subtopology_id: String
    partitions: tuple[Int32, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamsGroupTargetAssignmentMemberValue:
    """The tasks a member shall own in the end, by role."""

    SCHEMA: ClassVar[Schema] = FLEXIBLE

    active_tasks: tuple[TaskIds, ...]
    standby_tasks: tuple[TaskIds, ...]
    warmup_tasks: tuple[TaskIds, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamsGroupCurrentMemberAssignmentKey(MemberKey):
    """Where a member is on its way to the target assignment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AssignedTaskIds(TaskIds):
    """Tasks of one subtopology and, in parallel and for active ones alone, the epoch each was assigned in (4.2)."""

    assignment_epochs: Annotated[tuple[Int32, ...] | None, Tag(0)] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamsGroupCurrentMemberAssignmentValue:
    """What the coordinator believes a member to own.

    `state` is 1 stable, 2 with tasks to revoke, 3 waiting for tasks others still own: not the numbers of type 8.
    """

    SCHEMA: ClassVar[Schema] = FLEXIBLE

    member_epoch: Int32
    previous_member_epoch: Int32
    state: Int8
    active_tasks: tuple[AssignedTaskIds, ...]
    standby_tasks: tuple[AssignedTaskIds, ...]
    warmup_tasks: tuple[AssignedTaskIds, ...]
    active_tasks_pending_revocation: tuple[AssignedTaskIds, ...]
    standby_tasks_pending_revocation: tuple[AssignedTaskIds, ...]
    warmup_tasks_pending_revocation: tuple[AssignedTaskIds, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamsGroupTopologyKey(GroupIdKey):
    """The topology of a streams group."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InternalTopicInfo:
    """A changelog or repartition topic; a count of 0 leaves the choice to the coordinator."""

    name: String
    partitions: Int32
    replication_factor: Int16
    topic_configs: tuple[KeyValue, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CopartitionGroup:
    """Topics that must be partitioned alike, as positions in the lists of their subtopology."""

    source_topics: tuple[Int16, ...]
    source_topic_regex: tuple[Int16, ...]
    repartition_source_topics: tuple[Int16, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Subtopology:
    """A connected part of the topology; its tasks are one per partition of its source topics."""

    subtopology_id: String
    source_topics: tuple[String, ...]
    source_topic_regex: tuple[String, ...]
    state_changelog_topics: tuple[InternalTopicInfo, ...]
    repartition_sink_topics: tuple[String, ...]
    repartition_source_topics: tuple[InternalTopicInfo, ...]
    copartition_groups: tuple[CopartitionGroup, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamsGroupTopologyValue:
    """The topology that members were started with."""

    SCHEMA: ClassVar[Schema] = FLEXIBLE

    epoch: Int32
    subtopologies: tuple[Subtopology, ...]
