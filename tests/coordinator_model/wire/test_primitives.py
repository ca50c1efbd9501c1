"""Primitives: their bytes, their limits, and a complaint one byte short."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator_model.wire import primitives
from coordinator_model.wire.primitives import (
    BufferUnderflow,
    OutOfBoundValue,
    Reader,
    UnexpectedNull,
    WireError,
    Writer,
)

INTEGERS = [
    pytest.param(primitives.read_int8, primitives.write_int8, -(2**7), 2**7 - 1, id="int8"),
    pytest.param(primitives.read_int16, primitives.write_int16, -(2**15), 2**15 - 1, id="int16"),
    pytest.param(primitives.read_uint16, primitives.write_uint16, 0, 2**16 - 1, id="uint16"),
    pytest.param(primitives.read_int32, primitives.write_int32, -(2**31), 2**31 - 1, id="int32"),
    pytest.param(primitives.read_int64, primitives.write_int64, -(2**63), 2**63 - 1, id="int64"),
    pytest.param(primitives.read_uvarint, primitives.write_uvarint, 0, 2**31 - 1, id="uvarint"),
]

GOLDEN: list[tuple[Reader, Writer, Any, str]] = [
    (primitives.read_int8, primitives.write_int8, -2, "fe"),
    (primitives.read_int16, primitives.write_int16, 258, "0102"),
    (primitives.read_uint16, primitives.write_uint16, 65535, "ffff"),
    (primitives.read_int32, primitives.write_int32, -2, "fffffffe"),
    (primitives.read_int64, primitives.write_int64, 1, "0000000000000001"),
    (primitives.read_uvarint, primitives.write_uvarint, 0, "00"),
    (primitives.read_uvarint, primitives.write_uvarint, 127, "7f"),
    (primitives.read_uvarint, primitives.write_uvarint, 128, "8001"),
    (primitives.read_uvarint, primitives.write_uvarint, 300, "ac02"),
    (primitives.read_uvarint, primitives.write_uvarint, 2**31 - 1, "ffffffff07"),
    (primitives.read_uuid, primitives.write_uuid, "qfldg-hETbqqm-sPvkJUZQ", "a9f95d83e8444dbaaa9beb0fbe425465"),
    (primitives.read_uuid, primitives.write_uuid, primitives.ZERO_UUID, "00" * 16),
    (primitives.read_uuid, primitives.write_uuid, "_" * 21 + "w", "ff" * 16),
    (primitives.read_legacy_string, primitives.write_nullable_legacy_string, "t1", "00027431"),
    (primitives.read_legacy_string, primitives.write_nullable_legacy_string, "", "0000"),
    (primitives.read_nullable_legacy_string, primitives.write_nullable_legacy_string, None, "ffff"),
    (
        primitives.read_nullable_legacy_string,
        primitives.write_nullable_legacy_string,
        "группа",
        "000cd0b3d180d183d0bfd0bfd0b0",
    ),
    (primitives.read_compact_string, primitives.write_nullable_compact_string, "t1", "037431"),
    (primitives.read_compact_string, primitives.write_nullable_compact_string, "", "01"),
    (primitives.read_nullable_compact_string, primitives.write_nullable_compact_string, None, "00"),
    (primitives.read_nullable_compact_string, primitives.write_nullable_compact_string, "😀", "05f09f9880"),
    (primitives.read_compact_string, primitives.write_nullable_compact_string, "m" * 127, "8001" + "6d" * 127),
    (primitives.read_legacy_bytes, primitives.write_nullable_legacy_bytes, b"\xff", "00000001ff"),
    (primitives.read_nullable_legacy_bytes, primitives.write_nullable_legacy_bytes, None, "ffffffff"),
    (primitives.read_nullable_legacy_bytes, primitives.write_nullable_legacy_bytes, b"", "00000000"),
    (primitives.read_compact_bytes, primitives.write_nullable_compact_bytes, b"\xff", "02ff"),
    (primitives.read_nullable_compact_bytes, primitives.write_nullable_compact_bytes, None, "00"),
    (primitives.read_nullable_compact_bytes, primitives.write_nullable_compact_bytes, b"", "01"),
    (primitives.read_legacy_count, primitives.write_legacy_count, -1, "ffffffff"),
    (primitives.read_compact_count, primitives.write_compact_count, -1, "00"),
    (primitives.read_compact_count, primitives.write_compact_count, 0, "01"),
]


def written(write: Writer, value: Any) -> bytes:
    """What a writer appends."""
    out = bytearray(b"before")
    write(out, value)
    assert out.startswith(b"before")
    return bytes(out[6:])


@pytest.mark.parametrize(("read", "write", "value", "raw"), GOLDEN)
def test_primitive_has_these_bytes(read: Reader, write: Writer, value: Any, raw: str) -> None:
    """Each primitive is written to and read from the bytes that Kafka gives it, anywhere in a buffer."""
    data = bytes.fromhex(raw)

    assert data == written(write, value)
    assert (value, 3 + len(data)) == read(b"pre" + data + b"behind", 3)


@pytest.mark.parametrize(("read", "write", "value", "raw"), GOLDEN)
def test_primitive_one_byte_short_underflows(read: Reader, write: Writer, value: Any, raw: str) -> None:
    """Cut anywhere, a primitive says that bytes are missing."""
    data = bytes.fromhex(raw)
    for length in range(len(data)):
        with pytest.raises(BufferUnderflow):
            read(data[:length], 0)


@pytest.mark.parametrize(("read", "write", "lowest", "highest"), INTEGERS)
def test_integer_keeps_its_limits(read: Reader, write: Writer, lowest: int, highest: int) -> None:
    """The limits of an integer travel; what lies beyond is refused, and so is what is no integer."""
    for value in (lowest, highest):
        assert value == read(written(write, value), 0)[0]
    for value in (lowest - 1, highest + 1):
        with pytest.raises(OutOfBoundValue, match=str(value)):
            written(write, value)


@given(value=st.integers(0, 2**31 - 1))
def test_uvarint_survives_a_round_trip(value: int) -> None:
    """Any count or length comes back."""
    assert value == primitives.read_uvarint(written(primitives.write_uvarint, value), 0)[0]


@pytest.mark.parametrize("raw", ["8000", "ff00", "8080808000"])
def test_uvarint_may_be_padded(raw: str) -> None:
    """Java reads superfluous zero groups, so they are legal."""
    data = bytes.fromhex(raw)

    assert (data[0] & 0x7F, len(data)) == primitives.read_uvarint(data, 0)


@pytest.mark.parametrize("raw", ["808080808001", "ffffffffff", "8080808008", "ffffffff0f"])
def test_uvarint_beyond_a_positive_int32_is_refused(raw: str) -> None:
    """Five bytes and 31 bits are all that a count or length can need."""
    with pytest.raises(OutOfBoundValue, match="varint at byte 0"):
        primitives.read_uvarint(bytes.fromhex(raw), 0)


@given(text=st.text(max_size=200))
@pytest.mark.parametrize(
    ("read", "write"),
    [
        (primitives.read_nullable_compact_string, primitives.write_nullable_compact_string),
        (primitives.read_nullable_legacy_string, primitives.write_nullable_legacy_string),
    ],
)
def test_string_survives_a_round_trip(read: Reader, write: Writer, text: str) -> None:
    """Any text comes back, in both families."""
    assert text == read(written(write, text), 0)[0]


@pytest.mark.parametrize(
    ("read", "raw"),
    [
        (primitives.read_legacy_string, "ffff"),
        (primitives.read_legacy_string, "8000"),
        (primitives.read_compact_string, "00"),
        (primitives.read_legacy_bytes, "ffffffff"),
        (primitives.read_compact_bytes, "00"),
        (primitives.required_count(primitives.read_legacy_count), "ffffffff"),
        (primitives.required_count(primitives.read_compact_count), "00"),
    ],
)
def test_null_is_refused_where_none_is_allowed(read: Reader, raw: str) -> None:
    """The place of the null is named."""
    with pytest.raises(UnexpectedNull, match="null at byte 0"):
        read(bytes.fromhex(raw), 0)


@pytest.mark.parametrize(
    ("read", "raw"),
    [
        (primitives.read_nullable_legacy_string, "fffe"),
        (primitives.read_nullable_legacy_bytes, "80000000"),
        (primitives.read_legacy_count, "fffffffe"),
    ],
)
def test_any_negative_length_is_null(read: Reader, raw: str) -> None:
    """Kafka asks whether a length is below zero, not whether it is -1."""
    assert read(bytes.fromhex(raw), 0)[0] in (None, -1)


@pytest.mark.parametrize("malformed", [b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xf4\x90\x80\x80"])
def test_malformed_utf8_is_replaced(malformed: bytes) -> None:
    """What is not UTF-8 becomes replacement characters, and the text around it stays."""
    text, _ = primitives.read_compact_string(bytes([len(malformed) + 3]) + b"a" + malformed + b"b", 0)

    assert text.startswith("a\ufffd")
    assert text.endswith("\ufffdb")


@pytest.mark.parametrize(
    "text", ["", "short", "A" * 21, "A" * 23, "A" * 21 + "=", "A" * 21 + "ä", "A" * 21 + "!", None]
)
def test_uuid_text_that_is_none_is_refused(text: Any) -> None:
    """A uuid is 22 characters of base64url."""
    with pytest.raises(OutOfBoundValue, match="is not a uuid"):
        written(primitives.write_uuid, text)


def test_count_beyond_the_bytes_left_is_refused() -> None:
    """No element is shorter than a byte."""
    assert (3, 1) == primitives.read_compact_count(b"\x04abc", 0)
    with pytest.raises(BufferUnderflow, match="4 elements declared at byte 1, 3 bytes left"):
        primitives.read_compact_count(b"\x05abc", 0)


def test_tagged_fields_are_written_in_ascending_order() -> None:
    """KIP-482 wants them so, whatever the order of the schema."""
    assert b"\x02\x00\x01a\x05\x00" == written(primitives.write_tagged_fields, [(5, b""), (0, b"a")])


def test_errors_are_one_family() -> None:
    """Decoders of foreign bytes catch one class."""
    assert all(
        issubclass(error, WireError)
        for error in (BufferUnderflow, OutOfBoundValue, UnexpectedNull, primitives.UnsupportedVersion)
    )
