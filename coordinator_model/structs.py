"""The one decoder and the one encoder of structs, by introspection of their schemas.

A (class, version) is compiled once into closures; adjacent integers become one ``struct`` call. Readers and writers are
those of `coordinator_model.wire`: ``(buffer, position) -> (value, next position)`` and ``(out, value) -> None``.
"""

import struct
from collections.abc import Callable
from dataclasses import fields
from typing import Any, Final, TypeAlias, TypeVar

from coordinator_model import wire
from coordinator_model.schema import ArrayOf, FieldSpec, FieldType, TopLevel, WireType, field_specs, once
from coordinator_model.wire import Reader, UnexpectedNull, UnsupportedVersion, WireError, Writer

_FIXED: Final = {
    WireType.INT8: wire.INT8,
    WireType.INT16: wire.INT16,
    WireType.UINT16: wire.UINT16,
    WireType.INT32: wire.INT32,
    WireType.INT64: wire.INT64,
}
_READERS: Final[dict[tuple[WireType, bool, bool], Reader]] = {
    (WireType.STRING, False, False): wire.read_legacy_string,
    (WireType.STRING, False, True): wire.read_nullable_legacy_string,
    (WireType.STRING, True, False): wire.read_compact_string,
    (WireType.STRING, True, True): wire.read_nullable_compact_string,
    (WireType.BYTES, False, False): wire.read_legacy_bytes,
    (WireType.BYTES, False, True): wire.read_nullable_legacy_bytes,
    (WireType.BYTES, True, False): wire.read_compact_bytes,
    (WireType.BYTES, True, True): wire.read_nullable_compact_bytes,
    (WireType.UUID, False, False): wire.read_uuid,
    (WireType.UUID, True, False): wire.read_uuid,
}
"""By type, flexible, nullable. Integers are read in runs and arrays, never alone, except in a tag."""

_WRITERS: Final[dict[tuple[WireType, bool], Writer]] = {
    (WireType.STRING, False): wire.write_nullable_legacy_string,
    (WireType.STRING, True): wire.write_nullable_compact_string,
    (WireType.BYTES, False): wire.write_nullable_legacy_bytes,
    (WireType.BYTES, True): wire.write_nullable_compact_bytes,
    **{
        (type_, flexible): writer
        for flexible in (False, True)
        for type_, writer in {
            WireType.INT8: wire.write_int8,
            WireType.INT16: wire.write_int16,
            WireType.UINT16: wire.write_uint16,
            WireType.INT32: wire.write_int32,
            WireType.INT64: wire.write_int64,
            WireType.UUID: wire.write_uuid,
        }.items()
    },
}
"""By type and flexible. Whether None may be written is checked around them."""


# -- whole structs ----------------------------------------------------------------------------------------------------

_T = TypeVar("_T", bound=TopLevel)


def decode_struct(cls: type[_T], version: int, buffer: bytes, position: int) -> _T:
    """The struct at `position`; bytes behind it are ignored, as Kafka ignores them. Raises WireError."""
    value: _T = reader(cls, version)(buffer, position)[0]
    return value


def reader(cls: type[TopLevel], version: int) -> Reader:
    """The compiled reader for `version`, or for the layout that can read it. Raises UnsupportedVersion."""
    layout = cls.SCHEMA.layout_version(version)
    return struct_reader(cls, layout, cls.SCHEMA.is_flexible(layout))


def encode_struct(value: TopLevel, version: int) -> bytes:
    """The bytes of `value` in `version`. Raises WireError for a version without layout or a value that does not fit."""
    schema = type(value).SCHEMA
    if version not in schema.versions:
        known = f"known are {schema.lowest} to {schema.highest}"
        raise UnsupportedVersion(f"{type(value).__name__} has no version {version}, {known}")
    out = bytearray()
    struct_writer(type(value), version, schema.is_flexible(version))(out, value)
    return bytes(out)


# -- the decoder ------------------------------------------------------------------------------------------------------

_Step: TypeAlias = Callable[[bytes, int, list[Any]], int]
"""Appends the values of some fields to the list and returns the next position."""


@once
def struct_reader(cls: type[Any], version: int, flexible: bool) -> Reader:
    """The compiled reader of one struct in one version."""
    specs = {spec.name: spec for spec in field_specs(cls)}
    present = [spec for spec in specs.values() if spec.in_version(version)]
    plain = [spec for spec in present if spec.tag is None]
    tagged = [spec for spec in present if spec.tag is not None and flexible]
    steps = _steps(plain, version, flexible)
    if flexible:
        steps.append(_tagged_step(tagged, version))
    names = [spec.name for spec in plain + tagged]
    absent = {
        field.name: specs[field.name].default if field.name in specs else field.default
        for field in fields(cls)
        if field.name not in names
    }
    defaults = list(absent.values())
    # Filling the slots directly halves the cost of a frozen dataclass's __init__, which these classes do not extend.
    new, fillers = object.__new__, [getattr(cls, name).__set__ for name in (*names, *absent)]

    def read(buffer: bytes, position: int) -> tuple[Any, int]:
        values: list[Any] = []
        for step in steps:
            position = step(buffer, position, values)
        values += defaults
        instance = new(cls)
        for fill, value in zip(fillers, values, strict=True):
            fill(instance, value)
        return instance, position

    return read


def _steps(specs: list[FieldSpec], version: int, flexible: bool) -> list[_Step]:
    """One step per field, except that neighbouring integers share one."""
    steps: list[_Step] = []
    run = ""
    for spec in specs:
        if isinstance(spec.type, WireType) and spec.type in _FIXED:
            run += _FIXED[spec.type].format[1:]
            continue
        if run:
            steps.append(_fixed_step(run))
            run = ""
        steps.append(_field_step(_reader(spec.type, spec.nullable, version, flexible)))
    if run:
        steps.append(_fixed_step(run))
    return steps


def _fixed_step(run: str) -> _Step:
    layout = struct.Struct(f">{run}")
    unpack, size = layout.unpack_from, layout.size

    def step(buffer: bytes, position: int, values: list[Any]) -> int:
        try:
            values += unpack(buffer, position)
        except struct.error:
            raise wire.underflow(buffer, position, size) from None
        return position + size

    return step


def _field_step(read: Reader) -> _Step:
    def step(buffer: bytes, position: int, values: list[Any]) -> int:
        value, position = read(buffer, position)
        values.append(value)
        return position

    return step


def _tagged_step(specs: list[FieldSpec], version: int) -> _Step:
    readers = {spec.tag: (index, _tagged_reader(spec, version)) for index, spec in enumerate(specs)}
    omitted = [spec.default for spec in specs]

    def step(buffer: bytes, position: int, values: list[Any]) -> int:
        count, position = wire.read_uvarint(buffer, position)
        if not count:
            values += omitted
            return position
        contents = omitted.copy()
        for _ in range(count):
            tag, position = wire.read_uvarint(buffer, position)
            size, position = wire.read_uvarint(buffer, position)
            if tag in readers:
                # Like Kafka's generated readers, trust the content of a known tag to say where it ends.
                index, read = readers[tag]
                contents[index], position = read(buffer, position)
            else:
                position = wire.skip(buffer, position, size)
        values += contents
        return position

    return step


def _tagged_reader(spec: FieldSpec, version: int) -> Reader:
    """Like `_reader`, except that a nullable struct has another presence mark (upstream's generator, not KIP-482)."""
    if isinstance(spec.type, type) and spec.nullable:
        return _nullable_struct_reader(struct_reader(spec.type, version, True), wire.read_uvarint, null_up_to=0)
    if isinstance(spec.type, WireType) and spec.type in _FIXED:
        return wire.int_reader(_FIXED[spec.type])
    return _reader(spec.type, spec.nullable, version, flexible=True)


def _reader(type_: FieldType, nullable: bool, version: int, flexible: bool) -> Reader:
    if isinstance(type_, WireType):
        return _READERS[type_, flexible, nullable]
    if isinstance(type_, ArrayOf):
        read_count: Reader = wire.read_compact_count if flexible else wire.read_legacy_count
        if not nullable:
            read_count = wire.required_count(read_count)
        return _array_reader(type_.element, read_count, version, flexible)
    read = struct_reader(type_, version, flexible)
    return _nullable_struct_reader(read, wire.read_int8, null_up_to=-1) if nullable else read


def _array_reader(element: FieldType, read_count: Reader, version: int, flexible: bool) -> Reader:
    if isinstance(element, WireType) and element in _FIXED:
        return _fixed_array_reader(_FIXED[element], read_count)
    read_element = _reader(element, False, version, flexible)

    def read(buffer: bytes, position: int) -> tuple[tuple[Any, ...] | None, int]:
        count, position = read_count(buffer, position)
        if count < 0:
            return None, position
        elements = []
        for _ in range(count):
            value, position = read_element(buffer, position)
            elements.append(value)
        return tuple(elements), position

    return read


def _fixed_array_reader(element: struct.Struct, read_count: Reader) -> Reader:
    """Partition lists are most of a large assignment, so their integers are read in one call."""
    code, size = element.format[1:], element.size

    def read(buffer: bytes, position: int) -> tuple[tuple[int, ...] | None, int]:
        count, position = read_count(buffer, position)
        if count < 0:
            return None, position
        end = position + count * size
        if end > len(buffer):
            raise wire.underflow(buffer, position, count * size)
        return struct.unpack_from(f">{count}{code}", buffer, position), end

    return read


def _nullable_struct_reader(read_struct: Reader, read_presence: Reader, null_up_to: int) -> Reader:
    """A presence mark in front: an int8, negative for null; in tagged fields a uvarint, 0 for null."""

    def read(buffer: bytes, position: int) -> tuple[Any, int]:
        presence, position = read_presence(buffer, position)
        return (None, position) if presence <= null_up_to else read_struct(buffer, position)

    return read


# -- the encoder ------------------------------------------------------------------------------------------------------


@once
def struct_writer(cls: type[Any], version: int, flexible: bool) -> Writer:
    """The compiled writer of one struct in one version.

    A field that the version lacks is left out, as upstream does with those it marks ``ignorable``.
    """
    specs = [spec for spec in field_specs(cls) if spec.in_version(version)]
    plain = [(spec.name, _writer(spec, version, flexible)) for spec in specs if spec.tag is None]
    tagged = [(spec, _tagged_writer(spec, version)) for spec in specs if spec.tag is not None]

    def write(out: bytearray, value: Any) -> None:
        if not isinstance(value, cls):
            raise WireError(f"{value!r} stands where {cls.__name__} is wanted")
        for name, write_field in plain:
            try:
                write_field(out, getattr(value, name))
            except WireError as error:
                raise type(error)(f"{cls.__name__}.{name}: {error}") from None
        if flexible:
            wire.write_tagged_fields(out, _tagged_contents(value, tagged))

    return write


def _tagged_contents(value: Any, tagged: list[tuple[FieldSpec, Writer]]) -> list[tuple[int, bytes]]:
    """What differs from its default, by tag."""
    contents = []
    for spec, write_field in tagged:
        field_value = getattr(value, spec.name)
        if spec.tag is not None and field_value != spec.default:
            content = bytearray()
            write_field(content, field_value)
            contents.append((spec.tag, bytes(content)))
    return contents


def _tagged_writer(spec: FieldSpec, version: int) -> Writer:
    if isinstance(spec.type, type) and spec.nullable:
        return _nullable_struct_writer(struct_writer(spec.type, version, True), null=b"\x00")
    return _writer(spec, version, flexible=True)


def _writer(spec: FieldSpec, version: int, flexible: bool) -> Writer:
    write = _type_writer(spec.type, version, flexible)
    if isinstance(spec.type, type):
        return _nullable_struct_writer(write, null=b"\xff") if spec.nullable else write
    return write if spec.nullable else _required_writer(write)


def _type_writer(type_: FieldType, version: int, flexible: bool) -> Writer:
    if isinstance(type_, WireType):
        return _WRITERS[type_, flexible]
    if isinstance(type_, ArrayOf):
        return _array_writer(_required_writer(_type_writer(type_.element, version, flexible)), flexible)
    return struct_writer(type_, version, flexible)


def _required_writer(write_value: Writer) -> Writer:
    def write(out: bytearray, value: Any) -> None:
        if value is None:
            raise UnexpectedNull("None, where no null is allowed")
        write_value(out, value)

    return write


def _array_writer(write_element: Writer, flexible: bool) -> Writer:
    write_count = wire.write_compact_count if flexible else wire.write_legacy_count

    def write(out: bytearray, value: tuple[Any, ...] | None) -> None:
        write_count(out, -1 if value is None else len(value))
        for element in value or ():
            write_element(out, element)

    return write


def _nullable_struct_writer(write_struct: Writer, null: bytes) -> Writer:
    def write(out: bytearray, value: Any) -> None:
        out += null if value is None else b"\x01"
        if value is not None:
            write_struct(out, value)

    return write
