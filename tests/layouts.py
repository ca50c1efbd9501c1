"""Layouts of values: record type, value version, and each tagged field that may or may not be there.

A layout is what a decoder can get wrong: `OFFSET_COMMIT v3`, `OFFSET_COMMIT v4 topic_id`, `OFFSET_COMMIT tombstone`.
"""

from collections.abc import Iterator
from dataclasses import MISSING, is_dataclass
from pathlib import Path
from typing import Any, Final

from coordinator_model.records.record_types import RECORD_SCHEMAS
from coordinator_model.records.serde import Record, decode_record
from coordinator_model.wire.schema import ArrayOf, FieldType, field_specs
from streaming.recording.file_format import open_recording

NOT_WRITTEN: Final = {
    "Nothing since the first release with this topic writes it; read only.": {
        "LEGACY_OFFSET_COMMIT v0",
        "LEGACY_OFFSET_COMMIT tombstone",
    },
    "Brokers before 3.0 wrote it.": {
        "OFFSET_COMMIT v0",
        "OFFSET_COMMIT v2",
        "GROUP_METADATA v0",
        "GROUP_METADATA v1",
        "GROUP_METADATA v2",
    },
    "Readable since 4.0, written by no release yet.": {"GROUP_METADATA v4"},
    "The schema has it, the coordinator fills it for active tasks only.": {
        f"STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT v0 {tasks}.assignment_epochs"
        for tasks in (
            "standby_tasks",
            "warmup_tasks",
            "standby_tasks_pending_revocation",
            "warmup_tasks_pending_revocation",
        )
    },
}
"""Why → layouts that no recording can show."""


def known_layouts() -> set[str]:
    """Every layout that the registry knows."""
    found = set()
    for row in RECORD_SCHEMAS.values():
        found.add(f"{row.record_type.name} tombstone")
        for version in row.value.SCHEMA.versions:
            name = f"{row.record_type.name} v{version}"
            found |= {name, *(f"{name} {path}" for path in _tags(row.value, version))}
    return found


def layouts_of(record: Record) -> set[str]:
    """The layouts that one record shows."""
    if record.value is None:
        return {f"{record.type.name} tombstone"}
    name = f"{record.type.name} v{record.value_version}"
    return {name, *(f"{name} {path}" for path in _tags_present(record.value))}


def recorded_layouts(*paths: Path) -> set[str]:
    """The layouts in recordings."""
    found: set[str] = set()
    for path in paths:
        with open_recording(path) as recording:
            for recorded in recording:
                record = decode_record(recorded.key, recorded.value)
                found |= layouts_of(record) if isinstance(record, Record) else set()
    return found


def _tags(struct: type[Any], version: int) -> Iterator[str]:
    for spec in field_specs(struct):
        if not spec.in_version(version):
            continue
        if spec.tag is not None:
            yield spec.name
        element = _element(spec.type)
        if isinstance(element, type) and is_dataclass(element):
            yield from (f"{spec.name}.{path}" for path in _tags(element, version))


def _element(field_type: FieldType) -> Any:
    return field_type.element if isinstance(field_type, ArrayOf) else field_type


def _tags_present(value: Any) -> Iterator[str]:
    for spec in field_specs(type(value)):
        part = getattr(value, spec.name)
        if spec.tag is not None and spec.default is not MISSING and part != spec.default:
            yield spec.name
        for struct in part if isinstance(part, tuple) else (part,):
            if is_dataclass(struct):
                yield from (f"{spec.name}.{path}" for path in _tags_present(struct))
