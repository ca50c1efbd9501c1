"""Groups of the classic protocol: type 2 (``GroupMetadataKey.json``, ``GroupMetadataValue.json``)."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

from coordinator_model.records.keys import RecordKey
from coordinator_model.wire.schema import Bytes, Int32, Int64, Schema, Since, String


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupMetadataKey(RecordKey):
    """A classic group."""

    group: String

    @property
    def group_name(self) -> str:
        """The group whose state the record is part of."""
        return self.group


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberMetadata:
    """A member at the moment its generation became stable.

    `subscription` is its metadata for the chosen protocol alone, `assignment` the leader's answer, of zero bytes if the
    leader left the member out; in groups of protocol type ``consumer`` both hold `records.consumer_protocol` structs.
    Timeouts are milliseconds; a `rebalance_timeout` of -1 stands for the session timeout.
    """

    member_id: String
    group_instance_id: Annotated[String | None, Since(3)] = None
    client_id: String
    client_host: String
    rebalance_timeout: Annotated[Int32, Since(1)] = -1
    session_timeout: Int32
    subscription: Bytes
    assignment: Bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupMetadataValue:
    """A classic group after a rebalance, a static member's return, or the departure of its last member.

    `current_state_timestamp` (milliseconds) is when the join phase ended, not when the group became stable. Kafka 4.3.1
    writes version 3 although it reads 4.
    """

    SCHEMA: ClassVar[Schema] = Schema(highest=4, flexible_since=4, written=3)

    protocol_type: String
    generation: Int32
    protocol: String | None
    leader: String | None
    current_state_timestamp: Annotated[Int64, Since(2)] = -1
    members: tuple[MemberMetadata, ...]
