"""The second table: record types of ``__share_group_state``, and their bytes to records and back.

Ids and names are those of the share coordinator's `CoordinatorRecordType`. Bytes are read and written as those of the
first log (`serde.py`), later value versions and what is damaged included.
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final, TypeAlias

from coordinator_model.records.serde import Codec, UndecodableRecord, UnknownRecord
from coordinator_model.records.share_state import (
    SharePartitionKey,
    ShareSnapshotKey,
    ShareSnapshotValue,
    ShareUpdateKey,
    ShareUpdateValue,
)
from coordinator_model.wire.schema import TopLevel


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

_SHARE_STATE_LOG: Final = Codec(_ROWS, ShareStateRecord)

decode_share_key: Final = _SHARE_STATE_LOG.decode_key
decode_share_state: Final = _SHARE_STATE_LOG.decode
encode_share_state: Final = _SHARE_STATE_LOG.encode
