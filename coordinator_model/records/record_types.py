"""The registry: which record type has which key and value. Ids and names are upstream's `CoordinatorRecordType`.

Missing ids are history: 9 was ShareGroupPartitionMetadata in 3.9 and 4.0, 18 never appeared in a release. A record of
an id not listed here is an unknown record, and so is one of a type that a later Kafka adds.
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from coordinator_model.records import classic_group, consumer_group, offset_commit, share_group, streams_group
from coordinator_model.records.keys import RecordKey
from coordinator_model.wire.schema import TopLevel


class RecordType(IntEnum):
    """The int16 that leads every key."""

    LEGACY_OFFSET_COMMIT = 0
    OFFSET_COMMIT = 1
    GROUP_METADATA = 2
    CONSUMER_GROUP_METADATA = 3
    CONSUMER_GROUP_PARTITION_METADATA = 4
    CONSUMER_GROUP_MEMBER_METADATA = 5
    CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA = 6
    CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER = 7
    CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT = 8
    SHARE_GROUP_MEMBER_METADATA = 10
    SHARE_GROUP_METADATA = 11
    SHARE_GROUP_TARGET_ASSIGNMENT_METADATA = 12
    SHARE_GROUP_TARGET_ASSIGNMENT_MEMBER = 13
    SHARE_GROUP_CURRENT_MEMBER_ASSIGNMENT = 14
    SHARE_GROUP_STATE_PARTITION_METADATA = 15
    CONSUMER_GROUP_REGULAR_EXPRESSION = 16
    STREAMS_GROUP_METADATA = 17
    STREAMS_GROUP_MEMBER_METADATA = 19
    STREAMS_GROUP_TARGET_ASSIGNMENT_METADATA = 20
    STREAMS_GROUP_TARGET_ASSIGNMENT_MEMBER = 21
    STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT = 22
    STREAMS_GROUP_TOPOLOGY = 23


@dataclass(frozen=True, slots=True)
class RecordSchema:
    """The two halves of a record type. Versions are the value's: ``schema.value.SCHEMA``."""

    record_type: RecordType
    key: type[RecordKey]
    value: type[TopLevel]


_T = RecordType
_ROWS: Final = (
    RecordSchema(_T.LEGACY_OFFSET_COMMIT, offset_commit.LegacyOffsetCommitKey, offset_commit.LegacyOffsetCommitValue),
    RecordSchema(_T.OFFSET_COMMIT, offset_commit.OffsetCommitKey, offset_commit.OffsetCommitValue),
    RecordSchema(_T.GROUP_METADATA, classic_group.GroupMetadataKey, classic_group.GroupMetadataValue),
    RecordSchema(
        _T.CONSUMER_GROUP_METADATA,
        consumer_group.ConsumerGroupMetadataKey,
        consumer_group.ConsumerGroupMetadataValue,
    ),
    RecordSchema(
        _T.CONSUMER_GROUP_PARTITION_METADATA,
        consumer_group.ConsumerGroupPartitionMetadataKey,
        consumer_group.ConsumerGroupPartitionMetadataValue,
    ),
    RecordSchema(
        _T.CONSUMER_GROUP_MEMBER_METADATA,
        consumer_group.ConsumerGroupMemberMetadataKey,
        consumer_group.ConsumerGroupMemberMetadataValue,
    ),
    RecordSchema(
        _T.CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA,
        consumer_group.ConsumerGroupTargetAssignmentMetadataKey,
        consumer_group.ConsumerGroupTargetAssignmentMetadataValue,
    ),
    RecordSchema(
        _T.CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER,
        consumer_group.ConsumerGroupTargetAssignmentMemberKey,
        consumer_group.ConsumerGroupTargetAssignmentMemberValue,
    ),
    RecordSchema(
        _T.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT,
        consumer_group.ConsumerGroupCurrentMemberAssignmentKey,
        consumer_group.ConsumerGroupCurrentMemberAssignmentValue,
    ),
    RecordSchema(
        _T.SHARE_GROUP_MEMBER_METADATA,
        share_group.ShareGroupMemberMetadataKey,
        share_group.ShareGroupMemberMetadataValue,
    ),
    RecordSchema(
        _T.SHARE_GROUP_METADATA,
        share_group.ShareGroupMetadataKey,
        share_group.ShareGroupMetadataValue,
    ),
    RecordSchema(
        _T.SHARE_GROUP_TARGET_ASSIGNMENT_METADATA,
        share_group.ShareGroupTargetAssignmentMetadataKey,
        share_group.ShareGroupTargetAssignmentMetadataValue,
    ),
    RecordSchema(
        _T.SHARE_GROUP_TARGET_ASSIGNMENT_MEMBER,
        share_group.ShareGroupTargetAssignmentMemberKey,
        share_group.ShareGroupTargetAssignmentMemberValue,
    ),
    RecordSchema(
        _T.SHARE_GROUP_CURRENT_MEMBER_ASSIGNMENT,
        share_group.ShareGroupCurrentMemberAssignmentKey,
        share_group.ShareGroupCurrentMemberAssignmentValue,
    ),
    RecordSchema(
        _T.SHARE_GROUP_STATE_PARTITION_METADATA,
        share_group.ShareGroupStatePartitionMetadataKey,
        share_group.ShareGroupStatePartitionMetadataValue,
    ),
    RecordSchema(
        _T.CONSUMER_GROUP_REGULAR_EXPRESSION,
        consumer_group.ConsumerGroupRegularExpressionKey,
        consumer_group.ConsumerGroupRegularExpressionValue,
    ),
    RecordSchema(
        _T.STREAMS_GROUP_METADATA,
        streams_group.StreamsGroupMetadataKey,
        streams_group.StreamsGroupMetadataValue,
    ),
    RecordSchema(
        _T.STREAMS_GROUP_MEMBER_METADATA,
        streams_group.StreamsGroupMemberMetadataKey,
        streams_group.StreamsGroupMemberMetadataValue,
    ),
    RecordSchema(
        _T.STREAMS_GROUP_TARGET_ASSIGNMENT_METADATA,
        streams_group.StreamsGroupTargetAssignmentMetadataKey,
        streams_group.StreamsGroupTargetAssignmentMetadataValue,
    ),
    RecordSchema(
        _T.STREAMS_GROUP_TARGET_ASSIGNMENT_MEMBER,
        streams_group.StreamsGroupTargetAssignmentMemberKey,
        streams_group.StreamsGroupTargetAssignmentMemberValue,
    ),
    RecordSchema(
        _T.STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT,
        streams_group.StreamsGroupCurrentMemberAssignmentKey,
        streams_group.StreamsGroupCurrentMemberAssignmentValue,
    ),
    RecordSchema(
        _T.STREAMS_GROUP_TOPOLOGY,
        streams_group.StreamsGroupTopologyKey,
        streams_group.StreamsGroupTopologyValue,
    ),
)

RECORD_SCHEMAS: Final[dict[RecordType, RecordSchema]] = {row.record_type: row for row in _ROWS}
"""Every known type, in order of ids."""

SCHEMA_OF_KEY: Final[dict[type[RecordKey], RecordSchema]] = {row.key: row for row in _ROWS}
"""The same rows by key class."""
