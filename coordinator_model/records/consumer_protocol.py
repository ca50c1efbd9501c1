"""What classic consumers embed in their group's records (``ConsumerProtocol*.json``, and user data of the assignors).

The blobs stand in `MemberMetadata` and `ClassicProtocol`; they mean this only if the protocol type is ``consumer``.
They are the client's own bytes, which no broker checked, so every decoder here answers None when it cannot read one,
as Kafka then goes on with opaque bytes. An int16 version leads; later ones only append, so one above 3 is read as 3.
"""

from dataclasses import dataclass
from typing import Annotated, ClassVar, TypeVar

from coordinator_model.wire import primitives
from coordinator_model.wire.codec import decode_struct, encode_struct
from coordinator_model.wire.schema import OFF_WIRE, Bytes, Int32, Schema, Since, String, TopLevel

NO_GENERATION = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicPartition:
    """Partitions of one topic, in no order."""

    topic: String
    partitions: tuple[Int32, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerProtocolSubscription:
    """What a member asked for when it joined, and what it then claimed to own as of `generation_id`.

    Eager assignors own nothing at that moment; cooperative ones say so in `owned_partitions`.
    """

    SCHEMA: ClassVar[Schema] = Schema(highest=3)

    topics: tuple[String, ...]
    user_data: Bytes | None = None
    owned_partitions: Annotated[tuple[TopicPartition, ...], Since(1)] = ()
    generation_id: Annotated[Int32, Since(2)] = NO_GENERATION
    rack_id: Annotated[String | None, Since(3)] = None
    version: Annotated[int, OFF_WIRE] = 3
    """The version prefix the bytes came with or shall go with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerProtocolAssignment:
    """What the leader assigned. Non-empty `user_data` keeps the group from an online upgrade."""

    SCHEMA: ClassVar[Schema] = Schema(highest=3)

    assigned_partitions: tuple[TopicPartition, ...] = ()
    user_data: Bytes | None = None
    version: Annotated[int, OFF_WIRE] = 3
    """The version prefix the bytes came with or shall go with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StickyUserData:
    """What a member of assignor ``sticky`` owned in `generation`; its bytes carry no version."""

    SCHEMA: ClassVar[Schema] = Schema(highest=1)

    previous_assignment: tuple[TopicPartition, ...]
    generation: Annotated[Int32, Since(1)] = NO_GENERATION


def decode_subscription(blob: bytes) -> ConsumerProtocolSubscription | None:
    """A subscription of any version, or None."""
    return _decoded(ConsumerProtocolSubscription, blob)


def decode_first_fields(blob: bytes) -> ConsumerProtocolSubscription | None:
    """The fields of version 0 (topics, user data) of a subscription that says it is of another, or None.

    kafka-go says version 1 and faust version 4, and neither writes more. The coordinator reads topics so
    (Kafka's computeSubscribedTopics), and the whole of it when it converts the group, which fails.
    """
    return _decoded(ConsumerProtocolSubscription, blob, highest=0)


def decode_assignment(blob: bytes) -> ConsumerProtocolAssignment | None:
    """An assignment of any version, or None. Zero bytes are the empty assignment of a member the leader left out."""
    return ConsumerProtocolAssignment() if not blob else _decoded(ConsumerProtocolAssignment, blob)


def encode_subscription(subscription: ConsumerProtocolSubscription) -> bytes:
    """The bytes a member sends to join. Raises WireError."""
    return _encode_versioned(subscription, subscription.version)


def encode_assignment(assignment: ConsumerProtocolAssignment) -> bytes:
    """The bytes a leader sends to one member. Raises WireError."""
    return _encode_versioned(assignment, assignment.version)


def decode_sticky_user_data(user_data: bytes) -> StickyUserData | None:
    """The subscription's user data of assignor ``sticky``, or None.

    No version says which layout it is: like the assignor, try the one with a generation, then the one without.
    """
    for version in (1, 0):
        try:
            return decode_struct(StickyUserData, version, user_data, 0)
        except primitives.WireError:
            continue
    return None


def encode_sticky_user_data(user_data: StickyUserData, version: int = 1) -> bytes:
    """The bytes of `decode_sticky_user_data`. Raises WireError."""
    return encode_struct(user_data, version)


def cooperative_sticky_generation(user_data: bytes) -> int | None:
    """The generation in the subscription's user data of assignor ``cooperative-sticky`` (-1 before any), or None.

    Where the subscription has a generation of its own (version 2 on), that one counts.
    """
    try:
        return int(primitives.read_int32(user_data, 0)[0])
    except primitives.WireError:
        return None


_T = TypeVar("_T", ConsumerProtocolSubscription, ConsumerProtocolAssignment)


def _decoded(cls: type[_T], blob: bytes, highest: int | None = None) -> _T | None:
    try:
        version, position = primitives.read_int16(blob, 0)
        layout = min(version, cls.SCHEMA.highest if highest is None else highest)
        struct: _T = decode_struct(cls, layout, blob, position)
    except primitives.WireError:
        return None
    object.__setattr__(struct, "version", version)  # still ours alone: it was not handed out yet
    return struct


def _encode_versioned(struct: TopLevel, version: int) -> bytes:
    out = bytearray()
    primitives.write_int16(out, version)
    return bytes(out) + encode_struct(struct, version)
