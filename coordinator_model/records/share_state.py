"""Delivery state of share groups (KIP-932): the types of ``__share_group_state``, from ``Share*.json`` as of 4.3.

They are the share coordinator's, numbered from 0 again: what type a record is depends on the log that it stands in.
"""

from dataclasses import dataclass
from typing import Annotated, ClassVar

from coordinator_model.records.consumer_group import FLEXIBLE
from coordinator_model.records.keys import GroupIdKey
from coordinator_model.wire.schema import Int8, Int16, Int32, Int64, Schema, Tag, Uuid


@dataclass(frozen=True, slots=True, kw_only=True)
class SharePartitionKey(GroupIdKey):
    """One partition of one topic as one share group has it."""

    topic_id: Uuid
    partition: Int32


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareSnapshotKey(SharePartitionKey):
    """The whole state of a share partition; its tombstone ends it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareUpdateKey(SharePartitionKey):
    """A change to the state of a share partition. Tombstones of it are not written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StateBatch:
    """Neighbouring offsets of one state: 0 available, 2 acknowledged, 4 archived (3, archiving, is not written)."""

    first_offset: Int64
    last_offset: Int64
    delivery_state: Int8
    delivery_count: Int16


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareSnapshotValue:
    """Everything there is of a share partition. A start offset of -1 is not initialized, a count of -1 not known."""

    SCHEMA: ClassVar[Schema] = FLEXIBLE

    snapshot_epoch: Int32
    state_epoch: Int32
    leader_epoch: Int32
    start_offset: Int64
    delivery_complete_count: Annotated[Int32, Tag(0)] = -1
    create_timestamp: Int64
    write_timestamp: Int64
    state_batches: tuple[StateBatch, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareUpdateValue:
    """What has changed. A start offset or leader epoch of -1 stays as it was; the count is replaced, by -1 too."""

    SCHEMA: ClassVar[Schema] = FLEXIBLE

    snapshot_epoch: Int32
    leader_epoch: Int32
    start_offset: Int64
    delivery_complete_count: Annotated[Int32, Tag(0)] = -1
    state_batches: tuple[StateBatch, ...]
