"""Records as JSON, in the form of upstream's generated `CoordinatorRecordJsonConverters`.

``kafka-dump-log --offsets-decoder`` and the console formatters print this form, so outputs can be compared. Names are
the schemas' camelCase. A field that the value's version lacks is absent, and so is a tagged one at its default; bytes
are standard base64.
"""

from base64 import b64encode
from typing import Any

from coordinator_model.records.serde import DecodedRecord, Record, UnknownRecord
from coordinator_model.records.share_state_types import DecodedShareState, ShareStateRecord
from coordinator_model.wire.schema import TopLevel, field_specs


def record_json(record: DecodedRecord | DecodedShareState) -> dict[str, Any]:
    """``{"key": {"type": n, "data": {…}}, "value": {"version": n, "data": {…}} | null}``.

    What Kafka's converters have no form for stands in the same place: an unknown record as its type with ``data`` null
    and the group it seems to belong to, an undecodable one with the ``error``.
    """
    if isinstance(record, Record | ShareStateRecord):
        return {
            "key": {"type": int(record.type), "data": struct_json(record.key, 0)},
            "value": _value_json(record.value, record.value_version),
        }
    if isinstance(record, UnknownRecord):
        return {"key": {"type": record.record_type, "data": None, "group": record.group_name}, "value": None}
    return {"key": {"type": record.record_type, "data": None}, "value": None, "error": record.reason}


def _value_json(value: TopLevel | None, version: int | None) -> dict[str, Any] | None:
    if value is None or version is None:
        return None
    return {"version": version, "data": struct_json(value, value.SCHEMA.layout_version(version))}


def struct_json(struct: Any, version: int) -> dict[str, Any]:
    """One struct as `version` has it."""
    return {
        camel_case(spec.name): _field_json(getattr(struct, spec.name), version)
        for spec in field_specs(type(struct))
        if spec.in_version(version) and not (spec.tag is not None and getattr(struct, spec.name) == spec.default)
    }


def _field_json(value: Any, version: int) -> Any:
    if isinstance(value, tuple):
        return [_field_json(element, version) for element in value]
    if isinstance(value, bytes):
        return b64encode(value).decode("ascii")
    if value is None or isinstance(value, int | str):
        return value
    return struct_json(value, version)


def camel_case(name: str) -> str:
    """The schema's name of a field: ``topic_id`` → ``topicId``."""
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)
