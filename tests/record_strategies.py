"""Hypothesis strategies for records, derived from the schemas: a new record type is generated without a line here."""

from typing import Any, Final

from hypothesis import strategies as st

from coordinator_model.records.record_types import RECORD_SCHEMAS, RecordSchema, RecordType
from coordinator_model.records.serde import Record
from coordinator_model.wire.primitives import uuid_text
from coordinator_model.wire.schema import ArrayOf, FieldSpec, FieldType, WireType, field_specs

_INTEGERS: Final = {
    WireType.INT8: (-(2**7), 2**7 - 1),
    WireType.INT16: (-(2**15), 2**15 - 1),
    WireType.UINT16: (0, 2**16 - 1),
    WireType.INT32: (-(2**31), 2**31 - 1),
    WireType.INT64: (-(2**63), 2**63 - 1),
}

LENGTHS_AROUND_VARINTS: Final = (0, 10, 126, 127, 128, 200, 300, 16382, 16383)
"""Length + 1 takes one byte up to 127, two up to 16383: readers that take one byte for granted fail in between."""

_TEXT: Final = st.one_of(
    st.text(max_size=12),
    st.sampled_from(LENGTHS_AROUND_VARINTS[:-2]).map(lambda length: "x" * length),
)
_BYTES: Final = st.one_of(
    st.binary(max_size=12),
    st.sampled_from(LENGTHS_AROUND_VARINTS[:-2]).map(bytes),
)


def structs(cls: type[Any], version: int) -> st.SearchStrategy[Any]:
    """Values of a struct that `version` can carry: a field it lacks stays at its default."""
    specs = [spec for spec in field_specs(cls) if spec.in_version(version)]
    return st.builds(cls, **{spec.name: _field(spec, version) for spec in specs})


def records(record_type: RecordType, version: int) -> st.SearchStrategy[Record]:
    """Records of one type with a value of one version."""
    row = RECORD_SCHEMAS[record_type]
    return st.builds(Record, st.just(record_type), structs(row.key, 0), structs(row.value, version), st.just(version))


def types_and_versions() -> list[tuple[RecordType, int]]:
    """Every value version that has a layout."""
    return [(row.record_type, version) for row in RECORD_SCHEMAS.values() for version in _versions(row)]


def _versions(row: RecordSchema) -> range:
    return row.value.SCHEMA.versions


def _field(spec: FieldSpec, version: int) -> st.SearchStrategy[Any]:
    values = _type(spec.type, version)
    if spec.nullable:
        values = st.one_of(st.none(), values)
    if spec.tag is not None:
        values = st.one_of(st.just(spec.default), values)
    return values


def _type(type_: FieldType, version: int) -> st.SearchStrategy[Any]:
    if isinstance(type_, ArrayOf):
        return st.lists(_type(type_.element, version), max_size=3).map(tuple)
    if not isinstance(type_, WireType):
        return structs(type_, version)
    if type_ in _INTEGERS:
        return st.integers(*_INTEGERS[type_])
    if type_ is WireType.UUID:
        return st.binary(min_size=16, max_size=16).map(uuid_text)
    return _TEXT if type_ is WireType.STRING else _BYTES
