"""Our codec against Kafka's own, on real, generated, cut and damaged records."""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from py4j.java_collections import JavaList
from py4j.java_gateway import JavaObject

from coordinator_model.records.classic_group import MemberMetadata
from coordinator_model.records.consumer_group import (
    AssignedTopicPartitions,
    ClassicMemberMetadata,
)
from coordinator_model.records.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from coordinator_model.records.record_types import RECORD_SCHEMAS, RecordType
from coordinator_model.records.serde import Record, UndecodableRecord, UnknownRecord, decode_record, encode_record
from coordinator_model.records.streams_group import AssignedTaskIds
from coordinator_model.records.upstream_json import camel_case, record_json, struct_json
from coordinator_model.wire.schema import field_specs
from lab import builders
from tests.golden_records import GOLDEN_RECORDS, GoldenRecord, recorded
from tests.kafka_oracle import KafkaOracle, Refused, kafka_oracle
from tests.left_out import needs_kafka_jars
from tests.record_strategies import records, structs, types_and_versions

pytestmark = [
    pytest.mark.broker,
    needs_kafka_jars,
]

every_golden_record = pytest.mark.parametrize("golden", GOLDEN_RECORDS, ids=lambda golden: golden.name)
every_type_and_version = pytest.mark.parametrize(
    ("record_type", "version"), types_and_versions(), ids=lambda part: getattr(part, "name", f"v{part}")
)


@pytest.fixture(scope="module")
def oracle() -> Iterator[KafkaOracle]:
    """One JVM for the module."""
    with kafka_oracle() as started:
        yield started


def verdict(oracle: KafkaOracle, key: bytes, value: bytes | None) -> Any:
    """What Kafka reads, or None if it refuses."""
    try:
        return comparable(oracle.record_json(key, value))
    except Refused:
        return None


def our_verdict(key: bytes, value: bytes | None) -> Any:
    """What we read, or None for what is no record."""
    record = decode_record(key, value)
    return comparable(record_json(record)) if isinstance(record, Record) else None


def comparable(form: Any) -> Any:
    """Java and Python replace malformed UTF-8 alike, but not by the same number of replacement characters."""
    return json.loads(re.sub("\ufffd+", "\ufffd", json.dumps(form, ensure_ascii=False)))


def test_registry_is_kafkas(oracle: KafkaOracle) -> None:
    """Every type has the name, id and value versions of the release, and none is missing."""
    ours = {
        row.record_type.name: (int(row.record_type), row.value.SCHEMA.lowest, row.value.SCHEMA.highest)
        for row in RECORD_SCHEMAS.values()
    }

    assert oracle.types() == ours


@pytest.mark.parametrize("record_type", RecordType, ids=lambda record_type: record_type.name)
def test_defaults_are_kafkas(oracle: KafkaOracle, record_type: RecordType) -> None:
    """What a reader assumes of a field that is not there is what Kafka assumes."""
    value = RECORD_SCHEMAS[record_type].value

    assert kafkas_defaults(oracle, value, value.__name__) == defaults(value)


@pytest.mark.parametrize(
    ("struct", "name"),
    [
        (MemberMetadata, "GroupMetadataValue.MemberMetadata"),
        (AssignedTopicPartitions, "ConsumerGroupCurrentMemberAssignmentValue.TopicPartitions"),
        (AssignedTaskIds, "StreamsGroupCurrentMemberAssignmentValue.TaskIds"),
    ],
)
def test_defaults_within_nested_structs_are_kafkas(oracle: KafkaOracle, struct: type[Any], name: str) -> None:
    """The same one level down."""
    assert kafkas_defaults(oracle, struct, name) == defaults(struct)


def defaults(struct: type[Any]) -> dict[str, Any]:
    """Field → default, of the fields that some version or an omitted tag leaves out."""
    return {spec.name: spec.default for spec in field_specs(struct) if spec.tag is not None or spec.since or spec.until}


def kafkas_defaults(oracle: KafkaOracle, struct: type[Any], name: str) -> dict[str, Any]:
    """The same of a new instance of Kafka's class."""
    made = new_struct(oracle, name)
    return {field: in_python(getattr(made, camel_case(field))()) for field in defaults(struct)}


def in_python(value: Any) -> Any:
    """A number, text or null of Java's is one of ours already; a list becomes a tuple, a uuid its text."""
    if isinstance(value, JavaList):
        return tuple(value)
    if isinstance(value, JavaObject) and value.getClass().getSimpleName() == "ClassicMemberMetadata":
        return ClassicMemberMetadata(
            session_timeout_ms=value.sessionTimeoutMs(), supported_protocols=tuple(value.supportedProtocols())
        )
    return value.toString() if isinstance(value, JavaObject) else value


def new_struct(oracle: KafkaOracle, name: str) -> Any:
    """An instance of a generated class, which may be nested in another."""
    found = oracle.gateway.jvm.org.apache.kafka.coordinator.group.generated
    for part in name.split("."):
        found = getattr(found, part)
    return found()


def test_recording_reads_and_writes_alike(oracle: KafkaOracle) -> None:
    """Every record of a real broker means the same to both, and both write it back to the byte."""
    for key, value in recorded():
        record = decode_record(key, value)

        assert isinstance(record, Record)
        assert oracle.record_json(key, value) == record_json(record)
        assert (key, value) == encode_record(record.key, record.value, record.value_version)


@every_golden_record
def test_golden_record_reads_and_writes_alike(oracle: KafkaOracle, golden: GoldenRecord) -> None:
    """The bytes quoted in the tests are what Kafka would write."""
    assert oracle.record_json(golden.key, golden.value) == record_json(golden.record)
    assert oracle.written_again(golden.key, golden.value) == (golden.key, golden.value)


@every_type_and_version
@given(data=st.data())
def test_generated_record_reads_and_writes_alike(
    oracle: KafkaOracle, record_type: RecordType, version: int, data: st.DataObject
) -> None:
    """Any value of any type and version: Kafka reads what we write, and writes it the same."""
    record = data.draw(records(record_type, version))
    key, value = encode_record(record.key, record.value, version)

    assert oracle.record_json(key, value) == record_json(record)
    assert oracle.written_again(key, value) == (key, value)


@pytest.mark.parametrize("record_type", RecordType, ids=lambda record_type: record_type.name)
@given(data=st.data())
def test_tombstone_reads_and_writes_alike(oracle: KafkaOracle, record_type: RecordType, data: st.DataObject) -> None:
    """A key without a value."""
    record = data.draw(records(record_type, 0))
    key, _ = encode_record(record.key, None)

    assert oracle.record_json(key, None) == record_json(decode_record(key, None))
    assert oracle.written_again(key, None) == (key, None)


@every_golden_record
def test_cut_record_is_refused_by_both(oracle: KafkaOracle, golden: GoldenRecord) -> None:
    """Undecodable is what Kafka refuses, at every length of key and value."""
    for length in range(len(golden.value)):
        assert verdict(oracle, golden.key, golden.value[:length]) is None
        assert our_verdict(golden.key, golden.value[:length]) is None
    for length in range(len(golden.key)):
        assert verdict(oracle, golden.key[:length], golden.value) is None
        assert our_verdict(golden.key[:length], golden.value) is None


@every_type_and_version
@given(data=st.data())
def test_damaged_record_reads_alike_or_is_refused_by_both(
    oracle: KafkaOracle, record_type: RecordType, version: int, data: st.DataObject
) -> None:
    """One byte changed: nulls, lengths, tags and texts go wrong in the same way."""
    record = data.draw(records(record_type, version))
    key, value = encode_record(record.key, record.value, version)
    assert value is not None
    assume(len(value) > 2)
    # The version stays: reading a later one is where we differ on purpose.
    place = data.draw(st.integers(2, len(value) - 1))
    damaged = value[:place] + bytes([data.draw(st.integers(0, 255))]) + value[place + 1 :]
    ours = decode_record(key, damaged)
    # Java takes a varint beyond int32 for a negative number, hence a null or no fields at all; we refuse it.
    assume(not (isinstance(ours, UndecodableRecord) and "varint" in ours.reason))

    assert verdict(oracle, key, damaged) == our_verdict(key, damaged)


@pytest.mark.parametrize("tail", [b"\x00", b"\xff" * 9, b"trailing"])
@every_golden_record
def test_trailing_bytes_are_ignored_by_both(oracle: KafkaOracle, golden: GoldenRecord, tail: bytes) -> None:
    """Behind the key and behind the value."""
    assert verdict(oracle, golden.key + tail, golden.value + tail) == record_json(golden.record)
    assert our_verdict(golden.key + tail, golden.value + tail) == record_json(golden.record)


@pytest.mark.parametrize("record_type", [9, 18, max(RecordType) + 1, -1])
def test_unlisted_type_is_unknown_to_both(oracle: KafkaOracle, record_type: int) -> None:
    """Kafka raises, and its loader goes on; we go on at once."""
    key = record_type.to_bytes(2, "big", signed=True) + b"\x00\x01g"

    with pytest.raises(Refused, match="unknown record type"):
        oracle.record_json(key, None)
    assert decode_record(key, None) == UnknownRecord(record_type, "g")


def test_later_version_is_where_we_differ(oracle: KafkaOracle) -> None:
    """Kafka gives up the partition on a version it does not know; a monitor reads what it can (KIP-915)."""
    key, value = builders.consumer_group_epoch("g", 5)
    assert value is not None
    later = b"\x00\x01" + value[2:]

    with pytest.raises(Refused, match="unknown record version 1"):
        oracle.record_json(key, later)
    assert isinstance(decode_record(key, later), Record)


def test_malformed_utf8_is_replaced_by_both(oracle: KafkaOracle) -> None:
    """A broken name is shown, with replacement characters."""
    key, value = b"\x00\x03\x00\x03g\xff!", builders.consumer_group_epoch("g", 5)[1]

    assert verdict(oracle, key, value)["key"]["data"] == {"groupId": "g\ufffd!"}
    assert our_verdict(key, value) == verdict(oracle, key, value)


@pytest.mark.parametrize("version", [*range(4), 9])
@pytest.mark.parametrize(
    ("kind", "struct", "decode", "encode"),
    [
        ("Subscription", ConsumerProtocolSubscription, decode_subscription, encode_subscription),
        ("Assignment", ConsumerProtocolAssignment, decode_assignment, encode_assignment),
    ],
)
@given(data=st.data())
def test_embedded_blob_reads_alike_or_is_refused_by_both(
    oracle: KafkaOracle,
    kind: str,
    struct: type[Any],
    decode: Callable[[bytes], Any],
    encode: Callable[[Any], bytes],
    version: int,
    data: st.DataObject,
) -> None:
    """What classic members embed, whole, of a later version, and with one byte changed."""
    layout = min(version, struct.SCHEMA.highest)
    drawn = data.draw(structs(struct, layout))
    whole = version.to_bytes(2, "big") + encode(replace(drawn, version=layout))[2:]
    place = data.draw(st.integers(2, len(whole) - 1))
    damaged = whole[:place] + bytes([data.draw(st.integers(0, 255))]) + whole[place + 1 :]

    assert oracle.embedded_json(kind, whole) == struct_json(decode(whole), layout)
    for blob in (damaged, whole[:place]):
        ours = decode(blob)
        try:
            kafkas = comparable(oracle.embedded_json(kind, blob))
        except Refused:
            kafkas = None

        assert kafkas == (None if ours is None else comparable(struct_json(ours, layout)))
