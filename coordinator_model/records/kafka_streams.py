"""What Kafka Streams applications on the classic protocol put into user data (``SubscriptionInfoData.json``, KIP-441).

Their protocol type is ``consumer`` and their assignor ``stream``. Unlike everything else here an int32 version leads. A
subscription says which tasks a member ran and how far it had restored those that it keeps a copy of; an assignment
which tasks it shall run. Not to be mistaken for streams groups (KIP-1071), which have records of their own.

They are the client's own bytes, so a decoder answers None when it cannot read one, or when it is of a version that is
not known: later ones need not be like these.
"""

from dataclasses import dataclass
from typing import Annotated, ClassVar, Final

from coordinator_model.wire import primitives
from coordinator_model.wire.codec import decode_struct, encode_struct
from coordinator_model.wire.schema import Bytes, Int8, Int32, Int64, Schema, Since, String, Until, Uuid

RUNNING: Final = -2
"""Offset sum of a task that the member ran as the active one: it is at the changelog's end (`Task.LATEST_OFFSET`)."""

_NAMED_TOPOLOGIES: Final = 10
_COMMON_VERSION: Final = 3
_LATEST: Final = 11


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskId:
    """A task as versions 1 to 6 name it."""

    topic_group_id: Int32
    partition: Int32


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionToOffsetSum:
    """Offset sum of one task of a subtopology, versions 7 to 9."""

    partition: Int32
    offset_sum: Int64


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskOffsetSum:
    """How far the state of a task is: `RUNNING`, or the sum of the offsets of its changelogs, below 0 if not known.

    Versions 7 to 9 have one a subtopology, with the partitions inside; later ones have one a task.
    """

    topic_group_id: Int32
    partition: Annotated[Int32, Since(10)] = -1
    offset_sum: Annotated[Int64, Since(10)] = -1
    named_topology: Annotated[String | None, Since(10)] = None
    partition_to_offset_sum: Annotated[tuple[PartitionToOffsetSum, ...], Since(7), Until(9)] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientTag:
    """A tag for rack-aware standbys (KIP-708)."""

    key: Bytes
    value: Bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscriptionInfo:
    """User data of a subscription; its version is the int32 in front."""

    SCHEMA: ClassVar[Schema] = Schema(lowest=1, highest=_LATEST)

    latest_supported_version: Annotated[Int32, Since(3)] = -1
    process_id: Uuid
    prev_tasks: Annotated[tuple[TaskId, ...], Until(6)] = ()
    standby_tasks: Annotated[tuple[TaskId, ...], Until(6)] = ()
    user_end_point: Annotated[Bytes, Since(2)] = b""
    task_offset_sums: Annotated[tuple[TaskOffsetSum, ...], Since(7)] = ()
    unique_field: Annotated[Int8, Since(8)] = 0
    error_code: Annotated[Int32, Since(9)] = 0
    client_tags: Annotated[tuple[ClientTag, ...], Since(11)] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamsTask:
    """A task: `subtopology` is its number, after the name of the topology where that has one, as ``name__0``."""

    subtopology: str
    partition: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TasksClaimed:
    """What a member says of its tasks: those it ran, and for the others how far their copies are, None if not known."""

    process_id: str
    active: tuple[StreamsTask, ...]
    copies: tuple[tuple[StreamsTask, int | None], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TasksAssigned:
    """What a member shall do. A warm-up is a standby task until it has caught up: the bytes are the same."""

    active: tuple[StreamsTask, ...]
    standby: tuple[StreamsTask, ...]


def decode_subscription_info(user_data: bytes) -> TasksClaimed | None:
    """What a member claims; None for what is no SubscriptionInfo of a version from 1 to 11."""
    try:
        version, position = primitives.read_int32(user_data, 0)
        info = decode_struct(SubscriptionInfo, version, user_data, position)
    except primitives.WireError:
        return None
    sums = [
        (StreamsTask(subtopology=_subtopology(part), partition=partition), offset_sum)
        for part in info.task_offset_sums
        for partition, offset_sum in _sums(part)
    ]
    before = [_task(of) for of in info.prev_tasks]
    return TasksClaimed(
        process_id=info.process_id,
        active=(*before, *(task for task, offset_sum in sums if offset_sum == RUNNING)),
        copies=(
            *((_task(of), None) for of in info.standby_tasks),
            *((task, None if of < 0 else of) for task, of in sums if of != RUNNING),
        ),
    )


def encode_subscription_info(info: SubscriptionInfo, version: int = _LATEST) -> bytes:
    """The bytes of `decode_subscription_info`. Raises WireError."""
    out = bytearray()
    primitives.write_int32(out, version)
    return bytes(out) + encode_struct(info, version)


def decode_assignment_info(user_data: bytes) -> TasksAssigned | None:
    """The tasks in an assignment's user data (`AssignmentInfo.encode`), or None as above. What follows is not read."""
    try:
        version, position = primitives.read_int32(user_data, 0)
        if not 1 <= version <= _LATEST:
            return None
        if version >= _COMMON_VERSION:
            _, position = primitives.read_int32(user_data, position)
        active, position = _read_tasks(user_data, position, version, with_partitions=False)
        standby, _ = _read_tasks(user_data, position, version, with_partitions=True)
    except (primitives.WireError, UnicodeDecodeError):
        return None
    return TasksAssigned(active=active, standby=standby)


def _read_tasks(
    buffer: bytes, position: int, version: int, *, with_partitions: bool
) -> tuple[tuple[StreamsTask, ...], int]:
    """Tasks, each followed by the partitions it reads where it is a standby."""
    count, position = primitives.read_legacy_count(buffer, position)
    tasks = []
    for _ in range(max(count, 0)):
        subtopology, position = primitives.read_int32(buffer, position)
        partition, position = primitives.read_int32(buffer, position)
        name = ""
        if version >= _NAMED_TOPOLOGIES:
            characters, position = primitives.read_int32(buffer, position)
            end = primitives.skip(buffer, position, 2 * max(characters, 0))
            name, position = buffer[position:end].decode("utf-16-be"), end
        tasks.append(StreamsTask(subtopology=_named(name, subtopology), partition=partition))
        if with_partitions:
            position = _skip_partitions(buffer, position)
    return tuple(tasks), position


def _skip_partitions(buffer: bytes, position: int) -> int:
    count, position = primitives.read_legacy_count(buffer, position)
    for _ in range(max(count, 0)):
        length, position = primitives.read_int16(buffer, position)  # of Java's modified UTF-8
        position = primitives.skip(buffer, position, max(length, 0))
        _, position = primitives.read_int32(buffer, position)
    return position


def _sums(part: TaskOffsetSum) -> list[tuple[int, int]]:
    if part.partition_to_offset_sum:
        return [(of.partition, of.offset_sum) for of in part.partition_to_offset_sum]
    return [(part.partition, part.offset_sum)] if part.partition >= 0 else []


def _task(task: TaskId) -> StreamsTask:
    return StreamsTask(subtopology=str(task.topic_group_id), partition=task.partition)


def _subtopology(part: TaskOffsetSum) -> str:
    return _named(part.named_topology or "", part.topic_group_id)


def _named(topology: str, subtopology: int) -> str:
    return f"{topology}__{subtopology}" if topology else str(subtopology)
