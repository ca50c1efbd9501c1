"""The language in which record layouts are written, and the one decoder and encoder that read it.

A struct is a frozen, keyword-only dataclass whose annotations are its schema, in the order of the wire::

    @dataclass(frozen=True, slots=True, kw_only=True)
    class OffsetCommitValue:
        SCHEMA: ClassVar = Schema(highest=4, flexible_since=4)

        offset: Int64
        leader_epoch: Annotated[Int32, Since(3)] = -1
        topic_id: Annotated[Uuid, Since(4), Tag(0)] = ZERO_UUID

======================  ========================================================================================
annotation              upstream schema (``*.json`` under ``common/message`` of group-coordinator)
======================  ========================================================================================
``Int8`` … ``Bytes``    ``type``
``X | None``            ``nullableVersions`` (the same as ``versions`` in every schema used here)
``tuple[X, ...]``       ``[]X``
a dataclass             a nested struct; it shares version and flexibility with the one around it
``Since``, ``Until``    ``versions``
``Tag``                 ``tag`` (``taggedVersions`` are the ``versions`` in every schema used here)
the Python default      ``default``: what a reader finds when its version lacks the field, or its tag is omitted
``OmittedAs``           the same, for a field that has no Python default
======================  ========================================================================================

`decoder` and `encoder` compile a (class, version) once into closures; adjacent fixed-size fields become one
``struct`` call. Nothing here knows a record by name: a new record is a dataclass, not code.
"""

import struct
from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields, is_dataclass
from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, ClassVar, Final, Protocol, TypeAlias, TypeVar, Union, get_args, get_origin
from typing import get_type_hints as resolved_annotations

from coordinator_model import wire
from coordinator_model.wire import BufferUnderflow, Reader, UnexpectedNull, UnsupportedVersion, WireError, Writer


class WireType(Enum):
    """Primitive types of the schemas; ``float64``, ``bool`` and ``records`` occur in none of them."""

    INT8 = "int8"
    INT16 = "int16"
    UINT16 = "uint16"
    INT32 = "int32"
    INT64 = "int64"
    UUID = "uuid"
    STRING = "string"
    BYTES = "bytes"


Int8 = Annotated[int, WireType.INT8]
Int16 = Annotated[int, WireType.INT16]
UInt16 = Annotated[int, WireType.UINT16]
Int32 = Annotated[int, WireType.INT32]
Int64 = Annotated[int, WireType.INT64]
Uuid = Annotated[str, WireType.UUID]
String = Annotated[str, WireType.STRING]
Bytes = Annotated[bytes, WireType.BYTES]


@dataclass(frozen=True, slots=True)
class Since:
    """First version that has the field."""

    version: int


@dataclass(frozen=True, slots=True)
class Until:
    """Last version that has the field."""

    version: int


@dataclass(frozen=True, slots=True)
class Tag:
    """The field travels in the tagged section under this number, and only when it is not the default."""

    number: int


@dataclass(frozen=True, slots=True)
class OmittedAs:
    """What an omitted tag means, where that would be a treacherous Python default and every writer should choose."""

    value: Any


class OffWire(Enum):
    """Marks an attribute that the struct's bytes do not carry, as `Annotated[int, OFF_WIRE]`."""

    MARK = "off wire"


OFF_WIRE: Final = OffWire.MARK


@dataclass(frozen=True, slots=True, kw_only=True)
class Schema:
    """Versions of a top-level struct. `written` is the version Kafka 4.3.1 writes unless asked for another."""

    lowest: int = 0
    highest: int = 0
    flexible_since: int | None = None
    written: int | None = None

    @property
    def versions(self) -> range:
        """Every version that has a layout here."""
        return range(self.lowest, self.highest + 1)

    @property
    def default_version(self) -> int:
        """The version to write unless asked for another."""
        return self.highest if self.written is None else self.written

    def is_flexible(self, version: int) -> bool:
        """Whether `version` counts compactly and carries tagged fields (KIP-482)."""
        return self.flexible_since is not None and version >= self.flexible_since


class TopLevel(Protocol):
    """A dataclass that stands alone on the wire, hence knows its versions."""

    SCHEMA: ClassVar[Schema]


@dataclass(frozen=True, slots=True)
class ArrayOf:
    """``[]element``."""

    element: "FieldType"


FieldType: TypeAlias = WireType | ArrayOf | type[Any]
"""A primitive, an array, or the dataclass of a nested struct."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldSpec:
    """One field of a struct, as read from its annotation."""

    name: str
    type: FieldType
    nullable: bool
    since: int
    until: int | None
    tag: int | None
    default: Any
    """`dataclasses.MISSING` when every version has the field and a writer must give it."""

    def in_version(self, version: int) -> bool:
        """Whether `version` has the field."""
        return version >= self.since and (self.until is None or version <= self.until)


# -- reading the annotations ------------------------------------------------------------------------------------------


@cache
def field_specs(cls: type[Any]) -> tuple[FieldSpec, ...]:
    """The fields of a struct in wire order.

    Raises TypeError for an annotation outside the language: a mistake in a schema must not wait for a record.
    """
    hints = resolved_annotations(cls, include_extras=True)
    specs = (_field_spec(cls, field.name, hints[field.name], field.default) for field in fields(cls))
    return tuple(spec for spec in specs if spec is not None)


def _field_spec(cls: type[Any], name: str, annotation: Any, default: Any) -> FieldSpec | None:
    marks: tuple[Any, ...] = get_args(annotation)[1:] if get_origin(annotation) is Annotated else ()
    if OFF_WIRE in marks:
        return None
    type_, nullable = _field_type(annotation, where=f"{cls.__name__}.{name}")
    by_kind = {type(mark): mark for mark in marks}
    since, until, tag = by_kind.get(Since), by_kind.get(Until), by_kind.get(Tag)
    if default is MISSING and OmittedAs in by_kind:
        default = by_kind[OmittedAs].value
    if default is MISSING and (since or until or tag):
        raise TypeError(f"{cls.__name__}.{name} is not in every version, so it needs a default")
    return FieldSpec(
        name=name,
        type=type_,
        nullable=nullable,
        since=since.version if since else 0,
        until=until.version if until else None,
        tag=tag.number if tag else None,
        default=default,
    )


def _field_type(annotation: Any, where: str) -> tuple[FieldType, bool]:
    """The type and whether null is allowed."""
    if get_origin(annotation) is Annotated:
        inner, *marks = get_args(annotation)
        for mark in marks:
            if isinstance(mark, WireType):
                return mark, False
        return _field_type(inner, where)
    if get_origin(annotation) in (Union, UnionType):
        (inner,) = (arg for arg in get_args(annotation) if arg is not NoneType)
        return _field_type(inner, where)[0], True
    if get_origin(annotation) is tuple:
        return ArrayOf(_field_type(get_args(annotation)[0], where)[0]), False
    if is_dataclass(annotation) and isinstance(annotation, type):
        return annotation, False
    raise TypeError(f"{where}: {annotation!r} has no wire type")


# -- choosing primitives ----------------------------------------------------------------------------------------------

_FIXED: Final = {
    WireType.INT8: wire.INT8,
    WireType.INT16: wire.INT16,
    WireType.UINT16: wire.UINT16,
    WireType.INT32: wire.INT32,
    WireType.INT64: wire.INT64,
}
_PRIMITIVES: Final[dict[WireType, tuple[Reader, Writer]]] = {
    WireType.INT8: (wire.read_int8, wire.write_int8),
    WireType.INT16: (wire.read_int16, wire.write_int16),
    WireType.UINT16: (wire.read_uint16, wire.write_uint16),
    WireType.INT32: (wire.read_int32, wire.write_int32),
    WireType.INT64: (wire.read_int64, wire.write_int64),
    WireType.UUID: (wire.read_uuid, wire.write_uuid),
}
_LENGTHED: Final[dict[tuple[WireType, bool], tuple[Reader, Writer]]] = {
    (WireType.STRING, False): (wire.read_nullable_legacy_string, wire.write_nullable_legacy_string),
    (WireType.STRING, True): (wire.read_nullable_compact_string, wire.write_nullable_compact_string),
    (WireType.BYTES, False): (wire.read_nullable_legacy_bytes, wire.write_nullable_legacy_bytes),
    (WireType.BYTES, True): (wire.read_nullable_compact_bytes, wire.write_nullable_compact_bytes),
}


# -- the decoder ------------------------------------------------------------------------------------------------------

_Step: TypeAlias = Callable[[bytes, int, dict[str, Any]], int]
"""Reads some fields into the dict and returns the next position."""


@cache
def struct_reader(cls: type[Any], version: int, flexible: bool) -> Reader:
    """The compiled reader of one struct in one version."""
    specs = [spec for spec in field_specs(cls) if spec.in_version(version)]
    steps = _steps([spec for spec in specs if spec.tag is None], version, flexible)
    if flexible:
        steps.append(_tagged_step({spec.tag: spec for spec in specs if spec.tag is not None}, version))

    def read(buffer: bytes, position: int) -> tuple[Any, int]:
        values: dict[str, Any] = {}
        for step in steps:
            position = step(buffer, position, values)
        return cls(**values), position

    return read


def _steps(specs: list[FieldSpec], version: int, flexible: bool) -> list[_Step]:
    """One step per field, except that neighbours of fixed size share one."""
    steps: list[_Step] = []
    run: list[FieldSpec] = []
    for spec in specs:
        if isinstance(spec.type, WireType) and spec.type in _FIXED:
            run.append(spec)
            continue
        if run:
            steps.append(_fixed_step(run))
            run = []
        steps.append(_field_step(spec.name, _reader(spec, version, flexible)))
    if run:
        steps.append(_fixed_step(run))
    return steps


def _fixed_step(run: list[FieldSpec]) -> _Step:
    names = [spec.name for spec in run]
    layout = struct.Struct(">" + "".join(_FIXED[spec.type].format[1:] for spec in run if isinstance(spec.type, WireType)))
    unpack, size = layout.unpack_from, layout.size

    def step(buffer: bytes, position: int, values: dict[str, Any]) -> int:
        try:
            values.update(zip(names, unpack(buffer, position), strict=True))
        except struct.error:
            raise wire.underflow(buffer, position, size) from None
        return position + size

    return step


def _field_step(name: str, read: Reader) -> _Step:
    def step(buffer: bytes, position: int, values: dict[str, Any]) -> int:
        values[name], position = read(buffer, position)
        return position

    return step


def _tagged_step(specs: dict[int | None, FieldSpec], version: int) -> _Step:
    readers = {tag: (spec.name, _tagged_reader(spec, version)) for tag, spec in specs.items()}
    omitted = {spec.name: spec.default for spec in specs.values()}

    def step(buffer: bytes, position: int, values: dict[str, Any]) -> int:
        values.update(omitted)
        count, position = wire.read_uvarint(buffer, position)
        for _ in range(count):
            tag, position = wire.read_uvarint(buffer, position)
            size, position = wire.read_uvarint(buffer, position)
            known = readers.get(tag)
            if known is None:
                position = wire.skip(buffer, position, size)
            else:
                # Like Kafka's generated readers, the content of a known tag says itself where it ends.
                name, read = known
                values[name], position = read(buffer, position)
        return position

    return step


def _tagged_reader(spec: FieldSpec, version: int) -> Reader:
    """Like `_reader`, but a nullable struct has another presence mark when tagged (upstream's generator, not a KIP)."""
    if isinstance(spec.type, type) and spec.nullable:
        return _nullable_struct_reader(struct_reader(spec.type, version, True), wire.read_uvarint, null_up_to=0)
    return _reader(spec, version, flexible=True)


def _reader(spec: FieldSpec, version: int, flexible: bool) -> Reader:
    if isinstance(spec.type, type):
        read = struct_reader(spec.type, version, flexible)
        return _nullable_struct_reader(read, wire.read_int8, null_up_to=-1) if spec.nullable else read
    read = _type_reader(spec.type, version, flexible)
    may_be_null = isinstance(spec.type, ArrayOf) or (spec.type, flexible) in _LENGTHED
    return wire.required(read) if may_be_null and not spec.nullable else read


def _type_reader(type_: FieldType, version: int, flexible: bool) -> Reader:
    """The reader of an array's element or of a field; lengthed types may come out as None."""
    if isinstance(type_, ArrayOf):
        if isinstance(type_.element, WireType) and type_.element in _FIXED:
            return _fixed_array_reader(_FIXED[type_.element], flexible)
        return _array_reader(_element_reader(type_.element, version, flexible), flexible)
    if isinstance(type_, WireType):
        return (_PRIMITIVES.get(type_) or _LENGTHED[type_, flexible])[0]
    return struct_reader(type_, version, flexible)


def _element_reader(type_: FieldType, version: int, flexible: bool) -> Reader:
    read = _type_reader(type_, version, flexible)
    return wire.required(read) if isinstance(type_, ArrayOf) or (type_, flexible) in _LENGTHED else read


def _array_reader(read_element: Reader, flexible: bool) -> Reader:
    read_count = wire.read_compact_count if flexible else wire.read_legacy_count

    def read(buffer: bytes, position: int) -> tuple[tuple[Any, ...] | None, int]:
        count, position = read_count(buffer, position)
        if count < 0:
            return None, position
        elements = []
        for _ in range(count):
            element, position = read_element(buffer, position)
            elements.append(element)
        return tuple(elements), position

    return read


def _fixed_array_reader(element: struct.Struct, flexible: bool) -> Reader:
    """Partition lists are most of a large assignment, so their integers are read in one call."""
    read_count = wire.read_compact_count if flexible else wire.read_legacy_count
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


@cache
def struct_writer(cls: type[Any], version: int, flexible: bool) -> Writer:
    """The compiled writer of one struct in one version. A field that the version lacks is left out, as upstream's
    ``ignorable`` fields are."""
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
    if isinstance(type_, ArrayOf):
        return _array_writer(_required_writer(_type_writer(type_.element, version, flexible)), flexible)
    if isinstance(type_, WireType):
        return (_PRIMITIVES.get(type_) or _LENGTHED[type_, flexible])[1]
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


# -- whole structs ----------------------------------------------------------------------------------------------------

_T = TypeVar("_T", bound=TopLevel)


def decode_struct(cls: type[_T], version: int, buffer: bytes, position: int) -> _T:
    """The struct at `position`; bytes behind it are ignored, as Kafka ignores them.

    `version` may be above the highest known one of a flexible struct: later versions only add tagged fields then, so
    the highest known layout reads them (KIP-915). Raises WireError.
    """
    value: _T = reader(cls, version)(buffer, position)[0]
    return value


def layout_version(schema: Schema, version: int) -> int:
    """The version whose layout reads `version`. Raises UnsupportedVersion."""
    if version in schema.versions:
        return version
    if version > schema.highest and schema.is_flexible(schema.highest):
        return schema.highest
    raise UnsupportedVersion(f"version {version}, known are {schema.lowest} to {schema.highest}")


def reader(cls: type[TopLevel], version: int) -> Reader:
    """The compiled reader for `version`. Raises UnsupportedVersion."""
    layout = layout_version(cls.SCHEMA, version)
    return struct_reader(cls, layout, cls.SCHEMA.is_flexible(layout))


def encode_struct(value: TopLevel, version: int) -> bytes:
    """The bytes of `value` in `version`. Raises WireError for a version without layout or a value that does not fit."""
    schema = type(value).SCHEMA
    if version not in schema.versions:
        raise UnsupportedVersion(
            f"{type(value).__name__} has no version {version}, known are {schema.lowest} to {schema.highest}"
        )
    out = bytearray()
    struct_writer(type(value), version, schema.is_flexible(version))(out, value)
    return bytes(out)


__all__ = [
    "OFF_WIRE", "ArrayOf", "BufferUnderflow", "Bytes", "FieldSpec", "Int8", "Int16", "Int32", "Int64", "Schema", "Since",
    "String", "Tag", "TopLevel", "UInt16", "Until", "Uuid", "WireType", "decode_struct", "encode_struct", "field_specs",
    "layout_version", "reader",
]  # fmt: skip  # a list of names reads better as a paragraph
