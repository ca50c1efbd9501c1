"""The second table: record types of ``__share_group_state``, and their bytes to records and back.

Ids and names are those of the share coordinator's `CoordinatorRecordType`. What is unknown or damaged is the same as in
the first log (`serde.py`), as is how a later value version is read.
"""

from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache
from typing import Any, Final, TypeAlias

from coordinator_model.records.serde import UndecodableRecord, UnknownRecord
from coordinator_model.records.share_state import (
    SharePartitionKey,
    ShareSnapshotKey,
    ShareSnapshotValue,
    ShareUpdateKey,
    ShareUpdateValue,
)
from coordinator_model.wire import primitives
from coordinator_model.wire.codec import encode_struct, reader
from coordinator_model.wire.primitives import Reader, WireError
from coordinator_model.wire.schema import TopLevel

SHARE_STATE_TOPIC: Final = "__share_group_state"


class ShareStateType(IntEnum):
    """The int16 that leads every key of this log."""

    SHARE_SNAPSHOT = 0
    SHARE_UPDATE = 1


@dataclass(frozen=True, slots=True)
class ShareStateSchema:
    """The two halves of a record type."""

    record_type: ShareStateType
    key: type[SharePartitionKey]
    value: type[TopLevel]


_ROWS: Final = (
    ShareStateSchema(ShareStateType.SHARE_SNAPSHOT, ShareSnapshotKey, ShareSnapshotValue),
    ShareStateSchema(ShareStateType.SHARE_UPDATE, ShareUpdateKey, ShareUpdateValue),
)

SHARE_STATE_SCHEMAS: Final[dict[ShareStateType, ShareStateSchema]] = {row.record_type: row for row in _ROWS}
"""Every known type, in order of ids."""

_BY_KEY: Final[dict[type[SharePartitionKey], ShareStateSchema]] = {row.key: row for row in _ROWS}


@dataclass(slots=True)
class ShareStateRecord:
    """A record of a known type, never changed; fields as those of `serde.Record`."""

    # Not frozen, as `Record` is not.
    type: ShareStateType
    key: Any
    value: Any | None
    value_version: int | None
    newer: bool = False

    @property
    def group_name(self) -> str:
        """The group whose state the record is part of."""
        name: str = self.key.group_id
        return name


DecodedShareState: TypeAlias = ShareStateRecord | UnknownRecord | UndecodableRecord


def decode_share_state(key: bytes | None, value: bytes | None) -> DecodedShareState:
    """The record in these bytes, whatever they are. Never raises; `value` None is a tombstone."""
    if key is None:
        return UndecodableRecord(None, "key is null")
    key = bytes(key)
    found = _remembered_key(key) if len(key) <= _LONGEST_KEY_REMEMBERED else _read_key(key)
    if not isinstance(found, SharePartitionKey):
        return found
    row = _BY_KEY[type(found)]
    if value is None:
        return ShareStateRecord(row.record_type, found, None, None)
    value, newest = bytes(value), row.value.SCHEMA.highest
    version = newest
    try:
        version, position = primitives.read_int16(value, 0)
        read = _READERS[row.record_type] if version == newest else reader(row.value, version)
        return ShareStateRecord(row.record_type, found, read(value, position)[0], version, version > newest)
    except WireError as error:
        if version > newest:
            return UndecodableRecord(int(row.record_type), f"value: {error}", version, found.group_id)
        return UndecodableRecord(int(row.record_type), f"value: {error}")


def encode_share_state(key: SharePartitionKey, value: TopLevel | None) -> tuple[bytes, bytes | None]:
    """Key and value bytes as Kafka 4.3.1 would write them.

    Raises WireError for a value that does not fit, TypeError for a class that is not in the table or the other type's.
    """
    row = _BY_KEY.get(type(key))
    if row is None:
        raise TypeError(f"{type(key).__name__} is not the key of a record type")
    key_bytes = row.record_type.to_bytes(2, "big") + encode_struct(key, 0)
    if value is None:
        return key_bytes, None
    if type(value) is not row.value:
        raise TypeError(f"{type(key).__name__} goes with {row.value.__name__}, not {type(value).__name__}")
    version = row.value.SCHEMA.default_version
    return key_bytes, version.to_bytes(2, "big", signed=True) + encode_struct(value, version)


_LONGEST_KEY_REMEMBERED: Final = 1_024
"""Bytes of a key, as in `serde.py`."""

_KEY_READERS: Final[dict[int, Reader]] = {int(row.record_type): reader(row.key, 0) for row in _ROWS}
_READERS: Final[dict[ShareStateType, Reader]] = {
    row.record_type: reader(row.value, row.value.SCHEMA.highest) for row in _ROWS
}


def _read_key(key: bytes) -> SharePartitionKey | UnknownRecord | UndecodableRecord:
    type_id = None
    try:
        type_id, position = primitives.read_int16(key, 0)
        read = _KEY_READERS.get(type_id)
        if read is None:
            return UnknownRecord(type_id, _group_of_unknown(key, position))
        found: SharePartitionKey = read(key, position)[0]
    except WireError as error:
        return UndecodableRecord(type_id, f"key: {error}")
    return found


_remembered_key: Final = lru_cache(maxsize=8_192)(_read_key)


def _group_of_unknown(key: bytes, position: int) -> str | None:
    """Both types have the group first in their key, so a later one probably has too."""
    try:
        name: str | None = primitives.read_nullable_legacy_string(key, position)[0]
    except WireError:
        return None
    return name
