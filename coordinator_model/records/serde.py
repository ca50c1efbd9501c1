"""Key and value bytes of one record, to a record and back.

Three outcomes and no exception, because a replica must get past every record of the log: what is known, what another
Kafka release wrote (`UnknownRecord`), and what is damaged (`UndecodableRecord`). Where it deviates from the broker's
`GroupCoordinatorRecordSerde`: a value version above the highest known is read with the highest layout if that is a
flexible one (KIP-915), while the broker gives up the whole partition.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, Generic, Protocol, TypeAlias, TypeVar

from coordinator_model.records.keys import RecordKey
from coordinator_model.records.record_types import RECORD_SCHEMAS, RecordType
from coordinator_model.wire import primitives
from coordinator_model.wire.codec import encode_struct, reader
from coordinator_model.wire.primitives import Reader, WireError
from coordinator_model.wire.schema import TopLevel

R = TypeVar("R")


@dataclass(slots=True)
class Record:
    """A record of a known type, never changed. `value` None is a tombstone, `value_version` then None too.

    `key` and `value` are the classes that `record_types` lists for `type`; `value_version` is the one on the wire.
    """

    # Not frozen: one is made for every record of the log, and a frozen dataclass takes four times as long to make.
    type: RecordType
    key: Any
    value: Any | None
    value_version: int | None
    newer: bool = False
    """Whether `value_version` is above the highest known: read with that one's layout, which may miss what is new."""

    @property
    def group_name(self) -> str:
        """The group whose state the record is part of."""
        name: str = self.key.group_name
        return name


@dataclass(frozen=True, slots=True)
class UnknownRecord:
    """A record of a type that Kafka 4.3.1 does not have. `group_name` is what its key seems to say, or None."""

    record_type: int
    group_name: str | None


@dataclass(frozen=True, slots=True)
class UndecodableRecord:
    """A record whose bytes are not what its type says; `record_type` is None if not even the type can be read."""

    record_type: int | None
    reason: str
    newer_version: int | None = None
    """The value's version where it is above the highest known, which then is why."""
    group_name: str | None = None
    """The group, where the key says it and the version is newer."""


_LEFT_OUT: Final = b"\x80\x00left out: "
"""How such a value begins: with a version that never was."""


@dataclass(slots=True)
class KnownKey:
    """The key of a record of a known type, never changed."""

    # Not frozen, as `Record` is not.
    key: RecordKey
    decoder: "_Decoder"


DecodedKey: TypeAlias = KnownKey | UnknownRecord | UndecodableRecord
DecodedRecord: TypeAlias = Record | UnknownRecord | UndecodableRecord


def value_left_out(size_bytes: int, most_bytes: int) -> bytes:
    """What stands for a value that is larger than a reader takes: its record does not decode, and says why."""
    return _LEFT_OUT + f"value: {size_bytes:,} bytes, of at most {most_bytes:,}".encode()


class RecordTypeRow(Protocol):
    """The two halves of a record type, in the table of a log."""

    @property
    def record_type(self) -> int:
        """The int16 that leads the key."""
        ...

    @property
    def key(self) -> type[RecordKey]:
        """Its class."""
        ...

    @property
    def value(self) -> type[TopLevel]:
        """Its class; the versions are in its `SCHEMA`."""
        ...


class Codec(Generic[R]):
    """The bytes of one log's records, by its table of types.

    Args:
        rows: the table.
        record: makes a record of a type of it, with the arguments of `Record`.
    """

    def __init__(self, rows: Iterable[RecordTypeRow], record: Callable[..., R]) -> None:
        self._row_of_key = {row.key: row for row in rows}
        self._decoders = {int(row.record_type): _decoder(row) for row in self._row_of_key.values()}
        self._record = record
        # A log is mostly the same keys again, batch after batch: the commits of what consumers consume.
        self._remembered_key = lru_cache(maxsize=8_192)(self._read_key)

    def decode_key(self, key: bytes | None) -> DecodedKey:
        """The key in these bytes, for `decode_value`. Never raises."""
        if key is None:
            return UndecodableRecord(None, "key is null")
        key = bytes(key)  # Spark may hand over a bytearray; for bytes this is no copy
        return self._remembered_key(key) if len(key) <= _LONGEST_KEY_REMEMBERED else self._read_key(key)

    def decode_value(self, key: DecodedKey, value: bytes | None) -> R | UnknownRecord | UndecodableRecord:
        """The record of this key and value. Never raises; `value` None is a tombstone."""
        if not isinstance(key, KnownKey):
            return key
        decoder = key.decoder
        if value is None:
            return self._record(decoder.record_type, key.key, None, None)
        value = bytes(value)
        try:
            version, position = primitives.read_int16(value, 0)
            read_value = decoder.value_readers.get(version)
            if read_value is None and value.startswith(_LEFT_OUT):
                reason = value[len(_LEFT_OUT) :].decode("utf-8", "replace")
                return UndecodableRecord(int(decoder.record_type), reason)
            if read_value is None:
                return self._other_version(key, value, version, position)
            return self._record(decoder.record_type, key.key, read_value(value, position)[0], version)
        except WireError as error:
            return UndecodableRecord(int(decoder.record_type), f"value: {error}")

    def decode(self, key: bytes | None, value: bytes | None) -> R | UnknownRecord | UndecodableRecord:
        """The record in these bytes, whatever they are. Never raises; `value` None is a tombstone."""
        return self.decode_value(self.decode_key(key), value)

    def encode(self, key: RecordKey, value: TopLevel | None, version: int | None = None) -> tuple[bytes, bytes | None]:
        """Key and value bytes as Kafka would write them; `version` is the value's, by default the one 4.3.1 writes.

        A field that `version` lacks is left out. Raises WireError for a value that does not fit, TypeError for a key or
        value class that is not in the table or does not belong together.
        """
        row = self._row_of_key.get(type(key))
        if row is None:
            raise TypeError(f"{type(key).__name__} is not the key of a record type")
        key_bytes = row.record_type.to_bytes(2, "big") + encode_struct(key, 0)
        if value is None:
            return key_bytes, None
        if type(value) is not row.value:
            raise TypeError(f"{type(key).__name__} goes with {row.value.__name__}, not {type(value).__name__}")
        if version is None:
            version = row.value.SCHEMA.default_version
        return key_bytes, version.to_bytes(2, "big", signed=True) + encode_struct(value, version)

    def _read_key(self, key: bytes) -> DecodedKey:
        type_id = None
        try:
            type_id, position = primitives.read_int16(key, 0)
            decoder = self._decoders.get(type_id)
            if decoder is None:
                return UnknownRecord(type_id, _group_of_unknown(key, position))
            return KnownKey(decoder.read_key(key, position)[0], decoder)
        except WireError as error:
            return UndecodableRecord(type_id, f"key: {error}")

    def _other_version(self, key: KnownKey, value: bytes, version: int, position: int) -> R | UndecodableRecord:
        """A value of a version without a layout of its own. Raises WireError for one that never was."""
        decoder = key.decoder
        newer = version > max(decoder.value_readers)
        try:
            return self._record(
                decoder.record_type, key.key, decoder.value_reader(version)(value, position)[0], version, newer
            )
        except WireError as error:
            if not newer:
                raise
            return UndecodableRecord(int(decoder.record_type), f"value: {error}", version, key.key.group_name)


@dataclass(frozen=True, slots=True)
class _Decoder:
    """A row with its readers compiled."""

    record_type: int
    read_key: Reader
    value_readers: dict[int, Reader]
    value_reader: Callable[[int], Reader]
    """For versions not in `value_readers`; raises UnsupportedVersion."""


def _decoder(row: RecordTypeRow) -> _Decoder:
    readers = {version: reader(row.value, version) for version in row.value.SCHEMA.versions}
    return _Decoder(row.record_type, reader(row.key, 0), readers, lambda version: reader(row.value, version))


_LONGEST_KEY_REMEMBERED: Final = 1_024
"""Bytes of a key: names of 32 KiB are lawful, and 65,536 of them would fill the memory."""


def _group_of_unknown(key: bytes, position: int) -> str | None:
    """Every type so far has the group first in its key, so a later one probably has too."""
    try:
        name: str | None = primitives.read_nullable_legacy_string(key, position)[0]
    except WireError:
        return None
    return name


_OFFSETS_LOG: Final = Codec(RECORD_SCHEMAS.values(), Record)

decode_key: Final = _OFFSETS_LOG.decode_key
decode_value: Final = _OFFSETS_LOG.decode_value
decode_record: Final = _OFFSETS_LOG.decode
encode_record: Final = _OFFSETS_LOG.encode
"""Of ``__consumer_offsets``."""
