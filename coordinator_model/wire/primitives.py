"""Primitives of Kafka's serialization, as flat functions.

A reader takes ``(buffer, position)`` and returns ``(value, next position)``; a writer appends to a ``bytearray``.
Positions instead of a stream: nothing is copied, and a cut buffer is noticed by arithmetic.

Two families share the integers and differ in how they count (KIP-482):

==========  ============================  =====================================
item        non-flexible ("legacy")       flexible ("compact")
==========  ============================  =====================================
string      int16 length, -1 is null      uvarint of length + 1, 0 is null
bytes       int32 length, -1 is null      uvarint of length + 1, 0 is null
array       int32 count, -1 is null       uvarint of count + 1, 0 is null
struct end  nothing                       section of tagged fields
==========  ============================  =====================================

A declared length is compared with what is left *before* anything is allocated, because the bytes may be hostile.
A uuid is shown as Kafka's tools show it: 22 characters of base64url without padding.
"""

import struct
from binascii import Error as Base64Error
from binascii import a2b_base64, b2a_base64
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final, TypeAlias

ZERO_UUID: Final = "AAAAAAAAAAAAAAAAAAAAAA"
MAX_STRING_BYTES: Final = 0x7FFF
"""Kafka's generated readers refuse longer strings in both families, although a compact length could say more."""
MAX_INT32: Final = 0x7FFFFFFF

Reader: TypeAlias = Callable[[bytes, int], tuple[Any, int]]
Writer: TypeAlias = Callable[[bytearray, Any], None]


class WireError(ValueError):
    """Bytes that are not what the schema says, or a value the schema cannot carry."""


class BufferUnderflow(WireError):
    """The bytes end before the item does."""


class UnexpectedNull(WireError):
    """A null where the schema has none."""


class OutOfBoundValue(WireError):
    """A number, length or text beyond what its wire type holds."""


class UnsupportedVersion(WireError):
    """A version the schema has no layout for."""


def underflow(buffer: bytes, position: int, wanted: int) -> BufferUnderflow:
    """The error for `wanted` bytes at `position`, worded so that the damaged record can be found in a hex dump."""
    return BufferUnderflow(f"{wanted} bytes wanted at byte {position}, {max(len(buffer) - position, 0)} left")


# -- integers ---------------------------------------------------------------------------------------------------------

INT8: Final = struct.Struct(">b")
INT16: Final = struct.Struct(">h")
UINT16: Final = struct.Struct(">H")
INT32: Final = struct.Struct(">i")
INT64: Final = struct.Struct(">q")


def int_reader(layout: struct.Struct) -> Reader:
    """The reader of one integer."""
    unpack, size = layout.unpack_from, layout.size

    def read(buffer: bytes, position: int) -> tuple[int, int]:
        try:
            return unpack(buffer, position)[0], position + size
        except struct.error:
            raise underflow(buffer, position, size) from None

    return read


def _int_writer(layout: struct.Struct) -> Writer:
    def write(out: bytearray, value: int) -> None:
        try:
            out += layout.pack(value)
        except struct.error as error:
            raise OutOfBoundValue(f"{value!r} does not fit: {error}") from None

    return write


read_int8, write_int8 = int_reader(INT8), _int_writer(INT8)
read_int16, write_int16 = int_reader(INT16), _int_writer(INT16)
read_uint16, write_uint16 = int_reader(UINT16), _int_writer(UINT16)
read_int32, write_int32 = int_reader(INT32), _int_writer(INT32)
read_int64, write_int64 = int_reader(INT64), _int_writer(INT64)
_unpack_int16: Final = INT16.unpack_from


def read_uvarint(buffer: bytes, position: int) -> tuple[int, int]:
    """Unsigned LEB128 of at most five bytes; more than a positive int32 is refused (no count or length needs it)."""
    try:
        byte = buffer[position]
        if byte < 0x80:
            return byte, position + 1
        value, shift, at = byte & 0x7F, 7, position + 1
        while (byte := buffer[at]) >= 0x80:
            value |= (byte & 0x7F) << shift
            shift, at = shift + 7, at + 1
            if shift > 28:
                raise OutOfBoundValue(f"varint at byte {position} is longer than five bytes")
    except IndexError:
        raise underflow(buffer, position, 1) from None
    value |= byte << shift
    if value > MAX_INT32:
        raise OutOfBoundValue(f"varint at byte {position} is {value}, more than an int32 holds")
    return value, at + 1


def write_uvarint(out: bytearray, value: int) -> None:
    """Unsigned LEB128: seven bits a byte, lowest first."""
    if not 0 <= value <= MAX_INT32:
        raise OutOfBoundValue(f"{value} is not a count or length")
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)


# -- uuid -------------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=4096)  # a cluster's few topic ids stand in most of its records
def uuid_text(raw: bytes) -> str:
    """16 bytes as 22 characters of base64url."""
    return b2a_base64(raw, newline=False)[:22].translate(_TO_URL_SAFE).decode("ascii")


_TO_URL_SAFE: Final = bytes.maketrans(b"+/", b"-_")
_FROM_URL_SAFE: Final = bytes.maketrans(b"-_", b"+/")


def read_uuid(buffer: bytes, position: int) -> tuple[str, int]:
    """16 raw bytes, as text."""
    end = position + 16
    if end > len(buffer):
        raise underflow(buffer, position, 16)
    return uuid_text(buffer[position:end]), end


def write_uuid(out: bytearray, value: str) -> None:
    """Text of 22 base64url characters, as 16 raw bytes."""
    try:
        raw = a2b_base64(value.encode("ascii").translate(_FROM_URL_SAFE) + b"==", strict_mode=True)
    except (AttributeError, UnicodeEncodeError, Base64Error):
        raise OutOfBoundValue(f"{value!r} is not a uuid in base64url") from None
    if len(raw) != 16 or len(value) != 22:
        raise OutOfBoundValue(f"{value!r} is not a uuid in base64url")
    out += raw


# -- strings and bytes ------------------------------------------------------------------------------------------------
# Kafka takes any negative length for null. Malformed UTF-8 is replaced, as Kafka does: a record with a broken client id
# must not hide the group.


def read_legacy_string(buffer: bytes, position: int) -> tuple[str, int]:
    """int16 length and UTF-8."""
    # As `read_int16`, without a call: nothing stands in records as often as strings do.
    try:
        length: int = _unpack_int16(buffer, position)[0]
    except struct.error:
        raise underflow(buffer, position, INT16.size) from None
    start = position + INT16.size
    end = start + length
    if length < 0 or end > len(buffer):
        raise _null(position) if length < 0 else underflow(buffer, start, length)
    return str(buffer[start:end], "utf-8", "replace"), end


def read_compact_string(buffer: bytes, position: int) -> tuple[str, int]:
    """uvarint of length + 1 and UTF-8."""
    length, start = read_uvarint(buffer, position)
    end = start + length - 1
    if length == 0 or length > MAX_STRING_BYTES + 1 or end > len(buffer):
        raise _null(position) if length == 0 else _bad_length(buffer, start, length - 1)
    return str(buffer[start:end], "utf-8", "replace"), end


def read_legacy_bytes(buffer: bytes, position: int) -> tuple[bytes, int]:
    """int32 length and the bytes."""
    length, start = read_int32(buffer, position)
    end = start + length
    if length < 0 or end > len(buffer):
        raise _null(position) if length < 0 else underflow(buffer, start, length)
    return buffer[start:end], end


def read_compact_bytes(buffer: bytes, position: int) -> tuple[bytes, int]:
    """uvarint of length + 1 and the bytes."""
    length, start = read_uvarint(buffer, position)
    end = start + length - 1
    if length == 0 or end > len(buffer):
        raise _null(position) if length == 0 else underflow(buffer, start, length - 1)
    return buffer[start:end], end


def read_nullable_legacy_string(buffer: bytes, position: int) -> tuple[str | None, int]:
    """Like `read_legacy_string`, or null."""
    length, start = read_int16(buffer, position)
    return (None, start) if length < 0 else read_legacy_string(buffer, position)


def read_nullable_compact_string(buffer: bytes, position: int) -> tuple[str | None, int]:
    """Like `read_compact_string`, or null."""
    length, start = read_uvarint(buffer, position)
    return (None, start) if length == 0 else read_compact_string(buffer, position)


def read_nullable_legacy_bytes(buffer: bytes, position: int) -> tuple[bytes | None, int]:
    """Like `read_legacy_bytes`, or null."""
    length, start = read_int32(buffer, position)
    return (None, start) if length < 0 else read_legacy_bytes(buffer, position)


def read_nullable_compact_bytes(buffer: bytes, position: int) -> tuple[bytes | None, int]:
    """Like `read_compact_bytes`, or null."""
    length, start = read_uvarint(buffer, position)
    return (None, start) if length == 0 else read_compact_bytes(buffer, position)


def _null(position: int) -> UnexpectedNull:
    return UnexpectedNull(f"null at byte {position}, where none is allowed")


def _bad_length(buffer: bytes, position: int, length: int) -> WireError:
    if length > MAX_STRING_BYTES:
        return OutOfBoundValue(f"string of {length} bytes at byte {position}, more than {MAX_STRING_BYTES}")
    return underflow(buffer, position, length)


def encode_text(value: str) -> bytes:
    """UTF-8, within what a Kafka string may hold."""
    try:
        raw = value.encode("utf-8")
    except UnicodeEncodeError:
        raise OutOfBoundValue(f"{value!r} is not text that UTF-8 can carry") from None
    if len(raw) > MAX_STRING_BYTES:
        raise OutOfBoundValue(f"string of {len(raw)} bytes, more than {MAX_STRING_BYTES}")
    return raw


def write_nullable_legacy_string(out: bytearray, value: str | None) -> None:
    """int16 length and UTF-8."""
    if value is None:
        write_int16(out, -1)
    else:
        raw = encode_text(value)
        write_int16(out, len(raw))
        out += raw


def write_nullable_compact_string(out: bytearray, value: str | None) -> None:
    """uvarint of length + 1 and UTF-8."""
    if value is None:
        write_uvarint(out, 0)
    else:
        raw = encode_text(value)
        write_uvarint(out, len(raw) + 1)
        out += raw


def write_nullable_legacy_bytes(out: bytearray, value: bytes | None) -> None:
    """int32 length and the bytes."""
    if value is None:
        write_int32(out, -1)
    else:
        write_int32(out, len(value))
        out += value


def write_nullable_compact_bytes(out: bytearray, value: bytes | None) -> None:
    """uvarint of length + 1 and the bytes."""
    if value is None:
        write_uvarint(out, 0)
    else:
        write_uvarint(out, len(value) + 1)
        out += value


# -- counts -----------------------------------------------------------------------------------------------------------


def read_legacy_count(buffer: bytes, position: int) -> tuple[int, int]:
    """int32 of elements, -1 for null. No element is shorter than a byte, so a count beyond the bytes left is a lie."""
    count, position = read_int32(buffer, position)
    return _believable(buffer, position, max(count, -1))


def read_compact_count(buffer: bytes, position: int) -> tuple[int, int]:
    """Like `read_legacy_count`, from the uvarint of count + 1."""
    count, position = read_uvarint(buffer, position)
    return _believable(buffer, position, count - 1)


def required_count(read_count: Reader) -> Reader:
    """The reader of a count that cannot stand for null."""

    def read(buffer: bytes, position: int) -> tuple[int, int]:
        count, start = read_count(buffer, position)
        if count < 0:
            raise _null(position)
        return count, start

    return read


def _believable(buffer: bytes, position: int, count: int) -> tuple[int, int]:
    if count > len(buffer) - position:
        raise BufferUnderflow(f"{count} elements declared at byte {position}, {len(buffer) - position} bytes left")
    return count, position


def write_legacy_count(out: bytearray, count: int) -> None:
    """-1 for null."""
    write_int32(out, count)


def write_compact_count(out: bytearray, count: int) -> None:
    """-1 for null."""
    write_uvarint(out, count + 1)


# -- tagged fields ----------------------------------------------------------------------------------------------------


def skip(buffer: bytes, position: int, size: int) -> int:
    """The position behind `size` bytes that are not understood here."""
    if position + size > len(buffer):
        raise underflow(buffer, position, size)
    return position + size


def write_tagged_fields(out: bytearray, fields: list[tuple[int, bytes]]) -> None:
    """A section of (tag, content) pairs in ascending order of tags, as KIP-482 wants them."""
    write_uvarint(out, len(fields))
    for tag, content in sorted(fields):
        write_uvarint(out, tag)
        write_uvarint(out, len(content))
        out += content
