"""Committed offsets: types 0 and 1 (``OffsetCommitKey.json``, ``OffsetCommitValue.json``, ``Legacy…``)."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

from coordinator_model.records.keys import RecordKey
from coordinator_model.wire.primitives import ZERO_UUID
from coordinator_model.wire.schema import Int32, Int64, Schema, Since, String, Tag, Until, Uuid


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetCommitKey(RecordKey):
    """A partition that a group has committed an offset for. The record does not name the member that did."""

    group: String
    topic: String
    partition: Int32

    @property
    def group_name(self) -> str:
        """The group whose state the record is part of."""
        return self.group


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetCommitValue:
    """The offset a group will go on from.

    Brokers up to 4.0 write version 3, later ones 4; any broker writes 1 when an old client asked for a retention, which
    loses `leader_epoch` and `topic_id`. Transactional commits carry the zero `topic_id`. Timestamps are milliseconds of
    the broker's clock; `metadata` is the client's own text, empty if it gave none.
    """

    SCHEMA: ClassVar[Schema] = Schema(highest=4, flexible_since=4)

    offset: Int64
    leader_epoch: Annotated[Int32, Since(3)] = -1
    metadata: String
    commit_timestamp: Int64
    expire_timestamp: Annotated[Int64, Since(1), Until(1)] = -1
    topic_id: Annotated[Uuid, Since(4), Tag(0)] = ZERO_UUID


@dataclass(frozen=True, slots=True, kw_only=True)
class LegacyOffsetCommitKey(OffsetCommitKey):
    """The key that brokers older than 0.9 wrote. Still read, never written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LegacyOffsetCommitValue:
    """A committed offset as brokers older than 0.9 stored it; Kafka 4.3.1 reads version 0 alone."""

    SCHEMA: ClassVar[Schema] = Schema()

    offset: Int64
    metadata: String
    commit_timestamp: Int64
