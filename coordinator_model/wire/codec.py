"""The one decoder and the one encoder of structs, by introspection of their schemas.

A (class, version) is compiled once, its reader to one function; adjacent integers become one ``struct`` call. Readers
and writers are those of `coordinator_model.wire.primitives`: ``(buffer, position) -> (value, next position)`` and
``(out, value) -> None``.
"""

import struct
from dataclasses import fields
from itertools import groupby
from typing import Any, Final, TypeVar

from coordinator_model.wire import primitives
from coordinator_model.wire.primitives import Reader, UnexpectedNull, UnsupportedVersion, WireError, Writer
from coordinator_model.wire.schema import ArrayOf, FieldSpec, FieldType, TopLevel, WireType, field_specs, once

_FIXED: Final = {
    WireType.INT8: primitives.INT8,
    WireType.INT16: primitives.INT16,
    WireType.UINT16: primitives.UINT16,
    WireType.INT32: primitives.INT32,
    WireType.INT64: primitives.INT64,
}
_READERS: Final[dict[tuple[WireType, bool, bool], Reader]] = {
    (WireType.STRING, False, False): primitives.read_legacy_string,
    (WireType.STRING, False, True): primitives.read_nullable_legacy_string,
    (WireType.STRING, True, False): primitives.read_compact_string,
    (WireType.STRING, True, True): primitives.read_nullable_compact_string,
    (WireType.BYTES, False, False): primitives.read_legacy_bytes,
    (WireType.BYTES, False, True): primitives.read_nullable_legacy_bytes,
    (WireType.BYTES, True, False): primitives.read_compact_bytes,
    (WireType.BYTES, True, True): primitives.read_nullable_compact_bytes,
    (WireType.UUID, False, False): primitives.read_uuid,
    (WireType.UUID, True, False): primitives.read_uuid,
}
"""By type, flexible, nullable. Integers are read in runs and arrays, never alone, except in a tag."""

_WRITERS: Final[dict[tuple[WireType, bool], Writer]] = {
    (WireType.STRING, False): primitives.write_nullable_legacy_string,
    (WireType.STRING, True): primitives.write_nullable_compact_string,
    (WireType.BYTES, False): primitives.write_nullable_legacy_bytes,
    (WireType.BYTES, True): primitives.write_nullable_compact_bytes,
    **{
        (type_, flexible): writer
        for flexible in (False, True)
        for type_, writer in {
            WireType.INT8: primitives.write_int8,
            WireType.INT16: primitives.write_int16,
            WireType.UINT16: primitives.write_uint16,
            WireType.INT32: primitives.write_int32,
            WireType.INT64: primitives.write_int64,
            WireType.UUID: primitives.write_uuid,
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


@once
def struct_reader(cls: type[Any], version: int, flexible: bool) -> Reader:
    """The compiled reader of one struct in one version."""
    specs = {spec.name: spec for spec in field_specs(cls)}
    present = [spec for spec in specs.values() if spec.in_version(version)]
    source = _ReaderSource(cls)
    source.read_plain([spec for spec in present if spec.tag is None], version, flexible)
    if flexible:
        source.read_tagged([spec for spec in present if spec.tag is not None], version)
    for field in fields(cls):
        if field.name not in source.filled:
            source.fill(field.name, specs[field.name].default if field.name in specs else field.default)
    return source.compiled()


class _ReaderSource:
    """Source text of one reader in the making.

    A decoder made of closures spends most of its time in calls between them; as one function it takes half of it. All
    names in the text are made here, so nothing in it comes from a log.
    """

    def __init__(self, cls: type[Any]) -> None:
        self._lines = ["def read(buffer, position):"]
        self._names: dict[str, Any] = {"cls": cls, "new": object.__new__, "error": struct.error}
        self._names["underflow"] = primitives.underflow
        self._cls = cls
        self.filled: dict[str, str] = {}
        """Field → the expression of its value."""

    def read_plain(self, specs: list[FieldSpec], version: int, flexible: bool) -> None:
        """Fields that are always there. Neighbouring integers are one `struct` call."""
        runs = groupby(specs, lambda spec: isinstance(spec.type, WireType) and spec.type in _FIXED)
        for fixed, run in runs:
            if fixed:
                self._read_integers(list(run))
                continue
            for spec in run:
                read = self._name("read", _reader(spec.type, spec.nullable, version, flexible))
                self._say(f"{self._value_of(spec)}, position = {read}(buffer, position)")

    def read_tagged(self, specs: list[FieldSpec], version: int) -> None:
        """The tagged section; an empty one, as nearly all are, is one byte."""
        read = self._name("read_tags", _tags_reader(specs, version))
        omitted = [self._name("omitted", spec.default) for spec in specs]
        values = [self._value_of(spec) for spec in specs]
        self._say("if buffer[position:position + 1] == b'\\x00':")
        self._say("    position += 1")
        for value, default in zip(values, omitted, strict=True):
            self._say(f"    {value} = {default}")
        self._say("else:")
        self._say(f"    ({''.join(f'{value}, ' for value in values)}), position = {read}(buffer, position)")

    def fill(self, field: str, value: object) -> None:
        """A field that this version lacks."""
        self.filled[field] = self._name("absent", value)

    def compiled(self) -> Reader:
        """The reader."""
        # Filling the slots directly halves the cost of a frozen dataclass's __init__, which none of them extends.
        self._say("instance = new(cls)")
        for field, value in self.filled.items():
            self._say(f"{self._name('set', getattr(self._cls, field).__set__)}(instance, {value})")
        self._say("return instance, position")
        exec("\n    ".join(self._lines), self._names)  # noqa: S102 - text and names are made above
        read: Reader = self._names["read"]
        return read

    def _read_integers(self, run: list[FieldSpec]) -> None:
        layout = struct.Struct(">" + "".join(_FIXED[spec.type].format[1:] for spec in run))  # type: ignore[index]  # integers only
        unpack = self._name("unpack", layout.unpack_from)
        self._say("try:")
        self._say(f"    {''.join(f'{self._value_of(spec)}, ' for spec in run)}= {unpack}(buffer, position)")
        self._say("except error:")
        self._say(f"    raise underflow(buffer, position, {layout.size}) from None")
        self._say(f"position += {layout.size}")

    def _value_of(self, spec: FieldSpec) -> str:
        return self.filled.setdefault(spec.name, f"value_{len(self.filled)}")

    def _name(self, kind: str, value: object) -> str:
        name = f"{kind}_{len(self._names)}"
        self._names[name] = value
        return name

    def _say(self, line: str) -> None:
        self._lines.append(line)


def _tags_reader(specs: list[FieldSpec], version: int) -> Reader:
    """(values in the order of `specs`, next position) of a tagged section; what is omitted has its default."""
    readers = {spec.tag: (index, _tagged_reader(spec, version)) for index, spec in enumerate(specs)}
    omitted = [spec.default for spec in specs]

    def read(buffer: bytes, position: int) -> tuple[list[Any], int]:
        count, position = primitives.read_uvarint(buffer, position)
        contents = omitted.copy()
        for _ in range(count):
            tag, position = primitives.read_uvarint(buffer, position)
            size, position = primitives.read_uvarint(buffer, position)
            if tag in readers:
                # Like Kafka's generated readers, trust the content of a known tag to say where it ends.
                index, read_content = readers[tag]
                contents[index], position = read_content(buffer, position)
            else:
                position = primitives.skip(buffer, position, size)
        return contents, position

    return read


def _tagged_reader(spec: FieldSpec, version: int) -> Reader:
    """Like `_reader`, except that a nullable struct has another presence mark (upstream's generator, not KIP-482)."""
    if isinstance(spec.type, type) and spec.nullable:
        return _nullable_struct_reader(struct_reader(spec.type, version, True), primitives.read_uvarint, null_up_to=0)
    if isinstance(spec.type, WireType) and spec.type in _FIXED:
        return primitives.int_reader(_FIXED[spec.type])
    return _reader(spec.type, spec.nullable, version, flexible=True)


def _reader(type_: FieldType, nullable: bool, version: int, flexible: bool) -> Reader:
    if isinstance(type_, WireType):
        return _READERS[type_, flexible, nullable]
    if isinstance(type_, ArrayOf):
        read_count: Reader = primitives.read_compact_count if flexible else primitives.read_legacy_count
        if not nullable:
            read_count = primitives.required_count(read_count)
        return _array_reader(type_.element, read_count, version, flexible)
    read = struct_reader(type_, version, flexible)
    return _nullable_struct_reader(read, primitives.read_int8, null_up_to=-1) if nullable else read


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
            raise primitives.underflow(buffer, position, count * size)
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
            primitives.write_tagged_fields(out, _tagged_contents(value, tagged))

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
    write_count = primitives.write_compact_count if flexible else primitives.write_legacy_count

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
