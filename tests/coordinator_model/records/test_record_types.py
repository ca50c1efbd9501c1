"""The registry and the builders against each other."""

import pytest

from coordinator_model.records.record_types import RECORD_SCHEMAS, SCHEMA_OF_KEY, RecordType
from tests.record_factories import FACTORIES, built


def test_registry_lists_every_type_once() -> None:
    """That they are Kafka's own is compared with its registry (`tests/integration/test_kafka_oracle.py`)."""
    assert sorted(RecordType) == sorted(RECORD_SCHEMAS)
    assert len(RECORD_SCHEMAS) == len(SCHEMA_OF_KEY) == len({row.value for row in RECORD_SCHEMAS.values()})


@pytest.mark.parametrize("record_type", RecordType, ids=lambda record_type: record_type.name)
def test_classes_are_named_after_their_type(record_type: RecordType) -> None:
    """OFFSET_COMMIT has OffsetCommitKey and OffsetCommitValue: a swapped row shows."""
    name = record_type.name.title().replace("_", "")
    row = RECORD_SCHEMAS[record_type]

    assert (record_type, f"{name}Key", f"{name}Value") == (row.record_type, row.key.__name__, row.value.__name__)


@pytest.mark.parametrize("record_type", RecordType, ids=lambda record_type: record_type.name)
def test_versions_are_those_of_the_release(record_type: RecordType) -> None:
    """Offset commits and classic groups have five, flexible from the last; all later types have one, flexible."""
    schema = RECORD_SCHEMAS[record_type].value.SCHEMA
    five = record_type in (RecordType.OFFSET_COMMIT, RecordType.GROUP_METADATA)
    flexible_since = 4 if five else None if record_type is RecordType.LEGACY_OFFSET_COMMIT else 0

    assert (range(5 if five else 1), flexible_since) == (schema.versions, schema.flexible_since)
    assert (3 if record_type is RecordType.GROUP_METADATA else schema.highest) == schema.default_version


def test_every_type_has_a_factory_for_record_and_tombstone() -> None:
    """No history is impossible to write for want of a word."""
    made = {(built(factory).type, built(factory).value is None) for factory in FACTORIES.values()}

    assert {(record_type, tombstone) for record_type in RecordType for tombstone in (False, True)} == made


@pytest.mark.parametrize("name", [name for name in FACTORIES if name.endswith("_tombstone")])
def test_tombstone_deletes_what_its_record_made(name: str) -> None:
    """A tombstone and the factory it is named after have the same key."""
    record, tombstone = built(FACTORIES[name.removesuffix("_tombstone")]), built(FACTORIES[name])

    assert (record.type, record.key) == (tombstone.type, tombstone.key)
    assert record.value is not None
    assert tombstone.value is None
