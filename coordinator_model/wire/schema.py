"""The language in which record layouts are written. `coordinator_model.wire.codec` reads and writes by it.

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

Nothing here knows a record by name: a new record is a dataclass, not code.
"""

from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields, is_dataclass
from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    ClassVar,
    Final,
    ParamSpec,
    Protocol,
    TypeAlias,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

from coordinator_model.wire.primitives import UnsupportedVersion


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

    def layout_version(self, version: int) -> int:
        """The version whose layout reads `version`. Raises UnsupportedVersion.

        A later version of a flexible struct only adds tagged fields, so the highest known layout reads it (KIP-915).
        """
        if version in self.versions:
            return version
        if version > self.highest and self.is_flexible(self.highest):
            return self.highest
        raise UnsupportedVersion(f"version {version}, known are {self.lowest} to {self.highest}")


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

_P = ParamSpec("_P")
_R = TypeVar("_R")


def once(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """`functools.cache` that keeps the signature; mypy holds a class for unhashable, hence the cast."""
    return cast("Callable[_P, _R]", cache(cast("Any", function)))


@once
def field_specs(cls: type[Any]) -> tuple[FieldSpec, ...]:
    """The fields of a struct in wire order.

    Raises TypeError for an annotation outside the language: a mistake in a schema must not wait for a record.
    """
    hints = get_type_hints(cls, include_extras=True)
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
