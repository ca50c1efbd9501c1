"""Records and their bytes: what Kafka wrote is read and written back alike, and no bytes whatever raise."""

import pickle
import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator_model.records.classic_group import GroupMetadataKey, GroupMetadataValue
from coordinator_model.records.consumer_group import (
    EMPTY_CLASSIC_METADATA,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
)
from coordinator_model.records.consumer_protocol import (
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from coordinator_model.records.offset_commit import OffsetCommitKey, OffsetCommitValue
from coordinator_model.records.record_types import RECORD_SCHEMAS, RecordType
from coordinator_model.records.serde import Record, UndecodableRecord, UnknownRecord, decode_record, encode_record
from coordinator_model.wire.primitives import OutOfBoundValue, UnexpectedNull, UnsupportedVersion, WireError
from coordinator_model.wire.schema import field_specs
from lab import builders
from tests.golden_records import GOLDEN_RECORDS, GoldenRecord, recorded
from tests.record_strategies import records, types_and_versions

every_golden_record = pytest.mark.parametrize("golden", GOLDEN_RECORDS, ids=lambda golden: golden.name)
every_type_and_version = pytest.mark.parametrize(
    ("record_type", "version"), types_and_versions(), ids=lambda part: getattr(part, "name", f"v{part}")
)
LAST_KNOWN_TYPE = max(RecordType)


def key_of(record_type: int, *strings: str) -> bytes:
    """A key of strings alone, for types that have no class."""
    parts = [len(raw).to_bytes(2, "big") + raw for raw in (string.encode() for string in strings)]
    return record_type.to_bytes(2, "big", signed=True) + b"".join(parts)


def value_in(key: bytes, value: bytes | None) -> Any:
    """The value of a record that is expected to decode and to have one."""
    record = decode_record(key, value)
    assert isinstance(record, Record)
    assert record.value is not None
    return record.value


class TestGoldenRecords:
    @every_golden_record
    def test_decode_reads_what_a_broker_wrote(self, golden: GoldenRecord) -> None:
        """Bytes of a live broker mean what its own tools printed for them."""
        assert golden.record == decode_record(golden.key, golden.value)

    @every_golden_record
    def test_encode_writes_what_a_broker_wrote(self, golden: GoldenRecord) -> None:
        """Written back in its own version, a record is the same to the byte."""
        record = golden.record

        assert (golden.key, golden.value) == encode_record(record.key, record.value, record.value_version)

    @every_golden_record
    def test_encode_chooses_the_version_a_broker_writes(self, golden: GoldenRecord) -> None:
        """Without a version, the writer picks Kafka 4.3.1's."""
        assert (golden.key, golden.value) == encode_record(golden.record.key, golden.record.value)

    @every_golden_record
    def test_cut_value_is_undecodable(self, golden: GoldenRecord) -> None:
        """A value that lacks its end is distinguished from a whole one at every length."""
        for length in range(len(golden.value)):
            cut = decode_record(golden.key, golden.value[:length])

            assert isinstance(cut, UndecodableRecord), length
            assert golden.record.type == cut.record_type
            assert cut.reason.startswith("value: ")

    @every_golden_record
    def test_cut_key_is_undecodable(self, golden: GoldenRecord) -> None:
        """A key that lacks its end is distinguished from a whole one, with its type as long as that is there."""
        for length in range(len(golden.key)):
            cut = decode_record(golden.key[:length], golden.value)

            assert isinstance(cut, UndecodableRecord), length
            assert (None if length < 2 else golden.record.type) == cut.record_type
            assert cut.reason.startswith("key: ")

    @every_golden_record
    def test_bytes_behind_key_and_value_are_ignored(self, golden: GoldenRecord) -> None:
        """What a later release appends does not disturb what is known."""
        assert golden.record == decode_record(golden.key + b"\x00\x01", golden.value + b"\xff\xff\xff")

    @every_golden_record
    def test_null_value_is_a_tombstone(self, golden: GoldenRecord) -> None:
        """A tombstone has the key of the record it deletes, and no version."""
        assert Record(golden.record.type, golden.record.key, None, None) == decode_record(golden.key, None)


class TestRecording:
    def test_recording_is_written_back_to_the_byte(self) -> None:
        """Every record of a real broker is read, and is the same when written back in its version."""
        for key, value in recorded():
            record = decode_record(key, value)

            assert isinstance(record, Record)
            assert (key, value) == encode_record(record.key, record.value, record.value_version)

    def test_recording_embeds_nothing_opaque(self) -> None:
        """What its classic members embed is read and written back too."""
        groups = [value for key, value in recorded() if value is not None and key.startswith(b"\x00\x02")]
        members = [member for value in groups for member in value_in(b"\x00\x02\x00\x00", value).members]

        assert members
        for member in members:
            subscription, assignment = decode_subscription(member.subscription), decode_assignment(member.assignment)

            assert subscription is not None
            assert assignment is not None
            assert member.subscription == encode_subscription(subscription)
            assert member.assignment in (b"", encode_assignment(assignment))


class TestGeneratedRecords:
    @every_type_and_version
    @given(data=st.data())
    def test_record_survives_a_round_trip(self, record_type: RecordType, version: int, data: st.DataObject) -> None:
        """Every type in every version reads back what was written."""
        record = data.draw(records(record_type, version))

        assert record == decode_record(*encode_record(record.key, record.value, version))

    @every_type_and_version
    @given(data=st.data())
    def test_cut_record_is_undecodable(self, record_type: RecordType, version: int, data: st.DataObject) -> None:
        """A generated value cut short at any length is undecodable, and so is a key."""
        record = data.draw(records(record_type, version))
        key, value = encode_record(record.key, record.value, version)
        assert value is not None
        for length in {*range(min(len(value), 64)), *range(max(len(value) - 64, 0), len(value))}:
            assert isinstance(decode_record(key, value[:length]), UndecodableRecord)
        for length in range(len(key)):
            assert isinstance(decode_record(key[:length], value), UndecodableRecord)

    @pytest.mark.parametrize("record_type", RecordType, ids=lambda record_type: record_type.name)
    @given(data=st.data())
    def test_tombstone_survives_a_round_trip(self, record_type: RecordType, data: st.DataObject) -> None:
        """A key alone reads back as a tombstone."""
        record = data.draw(records(record_type, 0))

        assert Record(record_type, record.key, None, None) == decode_record(*encode_record(record.key, None))

    @given(key=st.none() | st.binary(max_size=40), value=st.none() | st.binary(max_size=80))
    def test_arbitrary_bytes_never_raise(self, key: bytes | None, value: bytes | None) -> None:
        """Whatever the bytes, the answer is one of the three outcomes."""
        assert isinstance(decode_record(key, value), Record | UnknownRecord | UndecodableRecord)

    @given(golden=st.sampled_from(GOLDEN_RECORDS), data=st.data())
    def test_damaged_bytes_never_raise(self, golden: GoldenRecord, data: st.DataObject) -> None:
        """A real record with one byte changed is still one of the three outcomes."""
        damaged = bytearray(golden.value)
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))

        assert isinstance(decode_record(golden.key, bytes(damaged)), Record | UndecodableRecord)


class TestKeys:
    def test_null_key_is_undecodable(self) -> None:
        """A compacted topic has no record without a key; should one appear, it is reported."""
        assert UndecodableRecord(None, "key is null") == decode_record(None, b"\x00\x00")

    @pytest.mark.parametrize("record_type", [9, 18, LAST_KNOWN_TYPE + 1, 0x7FFF, -1])
    def test_unlisted_type_is_unknown_with_its_group(self, record_type: int) -> None:
        """A type of another release is a value of its own, and its first string names the group."""
        expected = UnknownRecord(record_type, "orders")

        assert expected == decode_record(key_of(record_type, "orders", "member"), b"\x00\x00whatever")
        assert expected == decode_record(key_of(record_type, "orders"), None)

    @pytest.mark.parametrize("rest", [b"", b"\x00", b"\x00\x07short", b"\xff\xff"])
    def test_unknown_type_without_a_group_is_still_unknown(self, rest: bytes) -> None:
        """The name is a guess; nothing depends on it."""
        assert UnknownRecord(99, None) == decode_record(b"\x00\x63" + rest, None)

    @pytest.mark.parametrize("record_type", RecordType, ids=lambda record_type: record_type.name)
    def test_group_name_is_uniform_over_all_keys(self, record_type: RecordType) -> None:
        """`group_name` is the group of any record, whatever upstream calls the field."""
        row = RECORD_SCHEMAS[record_type]
        names = [spec.name for spec in field_specs(row.key)]
        given = {"group": "orders", "group_id": "orders", "partition": 0}
        key = row.key(**{name: given.get(name, "x") for name in names})
        record = decode_record(*encode_record(key, None))

        assert isinstance(record, Record)
        assert "orders" == record.group_name

    def test_malformed_utf8_is_replaced(self) -> None:
        """Kafka replaces what is not UTF-8, so the group is seen rather than lost."""
        record = decode_record(b"\x00\x03\x00\x03g\xff!", None)

        assert isinstance(record, Record)
        assert "g\ufffd!" == record.group_name

    def test_bytearrays_are_read_like_bytes(self) -> None:
        """Spark may hand binary columns over as bytearrays."""
        golden = GOLDEN_RECORDS[2]

        key, value = bytearray(golden.key), bytearray(golden.value)

        assert golden.record == decode_record(key, value)  # type: ignore[arg-type]  # that is the point

    def test_record_survives_pickling(self) -> None:
        """Records cross process borders."""
        for golden in GOLDEN_RECORDS:
            copy = pickle.loads(pickle.dumps(golden.record))  # noqa: S301 - bytes of our own

            assert golden.record == copy


class TestVersions:
    def test_later_version_is_read_with_the_highest_known_layout(self) -> None:
        """A flexible value grows by tagged fields alone (KIP-915), here one with tag 7."""
        key, value = builders.consumer_group_epoch("orders", 5)
        assert value is not None
        later = b"\x00\x09" + value[2:-1] + b"\x01\x07\x02hi"

        assert Record(
            RecordType.CONSUMER_GROUP_METADATA,
            ConsumerGroupMetadataKey(group_id="orders"),
            ConsumerGroupMetadataValue(epoch=5),
            value_version=9,
            newer=True,
        ) == decode_record(key, later)

    @pytest.mark.parametrize("version", [5, 6, 0x7FFF])
    def test_later_offset_commit_is_read_as_version_4(self, version: int) -> None:
        """Version 4 is flexible, so later ones are read with it, trailing bytes and all."""
        key, value = builders.offset_commit("orders", "t", 0, 42)
        assert value is not None
        later = version.to_bytes(2, "big") + value[2:] + b"more"
        record = decode_record(key, later)

        assert isinstance(record, Record)
        assert (42, version) == (value_in(key, later).offset, record.value_version)

    @pytest.mark.parametrize("version", [-1, -0x8000])
    @pytest.mark.parametrize("record_type", RecordType, ids=lambda record_type: record_type.name)
    def test_negative_version_is_undecodable(self, record_type: RecordType, version: int) -> None:
        """No release counts backwards."""
        key = key_of(record_type, "a", "b") + bytes(4)
        record = decode_record(key, version.to_bytes(2, "big", signed=True) + bytes(40))

        assert isinstance(record, UndecodableRecord)
        assert (record_type, f"value: version {version}, known are 0 to") == (record.record_type, record.reason[:-2])

    def test_legacy_offset_commit_has_version_0_alone(self) -> None:
        """Its layout is not flexible, so a later one cannot be read by it; the broker refuses it too."""
        key, value = builders.legacy_offset_commit("orders", "t", 0, 42)
        assert value is not None

        assert UndecodableRecord(
            0, "value: version 1, known are 0 to 0", newer_version=1, group_name="orders"
        ) == decode_record(key, b"\x00\x01" + value[2:])

    @pytest.mark.parametrize(
        ("version", "lost"),
        [
            (0, {"leader_epoch", "expire_timestamp", "topic_id"}),
            (1, {"leader_epoch", "topic_id"}),
            (2, {"leader_epoch", "expire_timestamp", "topic_id"}),
            (3, {"expire_timestamp", "topic_id"}),
            (4, {"expire_timestamp"}),
        ],
    )
    def test_offset_commit_keeps_what_its_version_has(self, version: int, lost: set[str]) -> None:
        """Fields that a version lacks come back as their defaults; version 1 alone has the expiry."""
        fields = {"leader_epoch": 7, "expire_timestamp": 99, "topic_id": builders.topic_id("t")}
        written = OffsetCommitValue(offset=1, metadata="", commit_timestamp=2, **fields)  # type: ignore[arg-type]  # mixed
        record = decode_record(*encode_record(OffsetCommitKey(group="g", topic="t", partition=0), written, version))

        kept = {name: value for name, value in fields.items() if name not in lost}
        assert isinstance(record, Record)
        assert OffsetCommitValue(offset=1, metadata="", commit_timestamp=2, **kept) == record.value  # type: ignore[arg-type]  # mixed


class TestTaggedFields:
    UNKNOWN = b"\x02\x05\x03abc\xc8\x01\x00"
    """Two fields, tags 5 and 200, that no release has."""

    def test_unknown_tags_are_skipped(self) -> None:
        """What a later release tags on is passed over by its size."""
        key, value = builders.consumer_group_epoch("orders", 5)
        assert value is not None
        assert value.endswith(b"\x00")

        assert decode_record(key, value) == decode_record(key, value[:-1] + self.UNKNOWN)

    def test_unknown_tags_are_skipped_within_array_elements(self) -> None:
        """Every struct has its own section."""
        key, value = builders.consumer_group_target_assignment("orders", "m", {"t": [1]})
        assert value is not None
        assert value.endswith(b"\x00\x00\x00\x01\x00\x00")

        assert decode_record(key, value) == decode_record(key, value[:-2] + self.UNKNOWN + b"\x00")

    def test_target_assignment_has_no_epochs(self) -> None:
        """Tag 0 means epochs in a current assignment; in a target it is unknown, however alike the structs are."""
        key, value = builders.consumer_group_target_assignment("orders", "m", {"t": [1]})
        assert value is not None

        assert decode_record(key, value) == decode_record(key, value[:-2] + b"\x01\x00\x03abc" + b"\x00")

    def test_known_and_unknown_tags_mix(self) -> None:
        """An unknown tag behind a known one does not hide it."""
        key, value = builders.consumer_group_epoch("orders", 5, metadata_hash=77)
        assert value is not None
        record = decode_record(key, value.replace(b"\x01\x00\x08", b"\x02\x00\x08") + b"\x09\x01z")

        assert isinstance(record, Record)
        assert ConsumerGroupMetadataValue(epoch=5, metadata_hash=77) == record.value

    def test_unknown_tag_longer_than_the_value_is_undecodable(self) -> None:
        """A declared size is believed only as far as there are bytes."""
        key, value = builders.consumer_group_epoch("orders", 5)
        assert value is not None

        assert isinstance(decode_record(key, value[:-1] + b"\x01\x05\x04abc"), UndecodableRecord)


class TestHostileLengths:
    HUGE = b"\x7f\xff\xff\xff"
    HUGE_VARINT = b"\xff\xff\xff\xff\x07"

    @pytest.mark.parametrize(
        ("key", "value"),
        [
            pytest.param(
                builders.group_metadata_tombstone("g")[0],
                b"\x00\x03\x00\x00" + bytes(4) + b"\xff\xff\xff\xff" + bytes(8) + HUGE,
                id="members of a classic group",
            ),
            pytest.param(
                builders.offset_commit_tombstone("g", "t", 0)[0],
                b"\x00\x03" + bytes(12) + b"\x7f\xff",
                id="legacy string",
            ),
            pytest.param(
                builders.offset_commit_tombstone("g", "t", 0)[0],
                b"\x00\x04" + bytes(12) + HUGE_VARINT + bytes(80),
                id="compact string",
            ),
            pytest.param(
                builders.consumer_group_target_assignment_tombstone("g", "m")[0],
                b"\x00\x00" + HUGE_VARINT + bytes(80),
                id="compact array of structs",
            ),
            pytest.param(
                builders.consumer_group_target_assignment_tombstone("g", "m")[0],
                b"\x00\x00\x02" + bytes(16) + HUGE_VARINT + bytes(80),
                id="compact array of integers",
            ),
            pytest.param(
                builders.consumer_group_target_assignment_tombstone("g", "m")[0],
                b"\x00\x00\x02" + bytes(16) + b"\x52" + bytes(82),
                id="integers beyond the bytes although not beyond their number",
            ),
            pytest.param(
                builders.consumer_group_epoch_tombstone("g")[0],
                b"\x00\x00" + bytes(4) + HUGE_VARINT,
                id="tagged fields",
            ),
            pytest.param(
                builders.consumer_group_epoch_tombstone("g")[0],
                b"\x00\x00" + bytes(4) + b"\x01\x09" + HUGE_VARINT + bytes(80),
                id="size of a tagged field",
            ),
            pytest.param(
                builders.consumer_group_epoch_tombstone("g")[0],
                b"\x00\x00" + bytes(4) + b"\x80\x80\x80\x80\x80\x01",
                id="varint without end",
            ),
            pytest.param(
                builders.consumer_group_epoch_tombstone("g")[0],
                b"\x00\x00" + bytes(4) + b"\xff\xff\xff\xff\x0f",
                id="varint beyond int32",
            ),
        ],
    )
    def test_declared_length_beyond_the_bytes_fails_before_allocating(self, key: bytes, value: bytes) -> None:
        """A length of two thousand million costs an error message, not memory."""
        tracemalloc.start()
        record = decode_record(key, value)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()

        assert isinstance(record, UndecodableRecord)
        assert peak < 50_000

    def test_string_beyond_kafkas_limit_is_undecodable(self) -> None:
        """A compact length can exceed 32767, yet Kafka's readers refuse such a string."""
        key, _ = builders.offset_commit_tombstone("g", "t", 0)
        too_long = b"\x81\x80\x02"  # 32768 + 1

        assert isinstance(decode_record(key, b"\x00\x04" + bytes(12) + too_long + bytes(40_000)), UndecodableRecord)

    @pytest.mark.parametrize("version", range(5))
    @pytest.mark.parametrize("length", [0, 10, 126, 127, 128, 200, 300, 16382, 16383, 32767])
    def test_commit_metadata_of_any_length_is_read(self, length: int, version: int) -> None:
        """From 127 bytes on, a compact length takes more than one byte; the offset and timestamp stay right."""
        commit = builders.offset_commit("g", "t", 3, 42, metadata="m" * length, timestamp=1234, version=version)
        value = value_in(*commit)

        assert (42, "m" * length, 1234) == (value.offset, value.metadata, value.commit_timestamp)


class TestNulls:
    @pytest.mark.parametrize(
        ("key", "value"),
        [
            (b"\x00\x02\xff\xff", None),
            (builders.offset_commit_tombstone("g", "t", 0)[0], b"\x00\x00" + bytes(8) + b"\xff\xff" + bytes(8)),
            (builders.offset_commit_tombstone("g", "t", 0)[0], b"\x00\x04" + bytes(12) + b"\x00" + bytes(9)),
            (builders.group_metadata_tombstone("g")[0], b"\x00\x01\x00\x00" + bytes(8) + b"\xff\xff\xff\xff"),
            (builders.consumer_group_target_assignment_tombstone("g", "m")[0], b"\x00\x00\x00\x00"),
        ],
    )
    def test_null_where_none_is_allowed_is_undecodable(self, key: bytes, value: bytes | None) -> None:
        """A null group, metadata or list is damage, in both ways to write a null."""
        record = decode_record(key, value)

        assert isinstance(record, UndecodableRecord)
        assert "null at byte" in record.reason

    def test_omitted_classic_metadata_is_the_empty_struct(self) -> None:
        """Brokers write the null out, because the schema's default is a struct and not null."""
        key, value = builders.consumer_group_member_subscription("g", "m")
        assert value is not None
        assert value.endswith(b"\x01\x00\x01\x00")
        omitted = value[:-4] + b"\x00"

        assert value_in(key, value).classic_member_metadata is None
        assert EMPTY_CLASSIC_METADATA == value_in(key, omitted).classic_member_metadata
        assert (
            omitted
            == encode_record(ConsumerGroupMemberMetadataKey(group_id="g", member_id="m"), value_in(key, omitted))[1]
        )


class TestRefusals:
    def test_encode_refuses_a_version_without_layout(self) -> None:
        """No one can write a version that is not known."""
        with pytest.raises(UnsupportedVersion, match="OffsetCommitValue has no version 5, known are 0 to 4"):
            builders.offset_commit("g", "t", 0, 1, version=5)

    def test_encode_refuses_a_number_that_does_not_fit(self) -> None:
        """The error names the field."""
        with pytest.raises(OutOfBoundValue, match=r"OffsetCommitKey\.partition: 2147483648 does not fit"):
            builders.offset_commit_tombstone("g", "t", 2**31)

    @pytest.mark.parametrize("group", ["g" * 32768, "\ud800"])
    def test_encode_refuses_a_text_that_kafka_cannot_hold(self, group: str) -> None:
        """Too long, or not text at all."""
        with pytest.raises(OutOfBoundValue, match=r"GroupMetadataKey\.group"):
            builders.group_metadata_tombstone(group)

    def test_encode_refuses_a_null_where_none_is_allowed(self) -> None:
        """None is no group."""
        with pytest.raises(UnexpectedNull, match=r"GroupMetadataKey\.group"):
            encode_record(GroupMetadataKey(group=None), None)  # type: ignore[arg-type]  # that is the point

    def test_encode_refuses_a_value_of_another_type(self) -> None:
        """Key and value belong to one row of the registry."""
        value = ConsumerGroupMetadataValue(epoch=1)

        with pytest.raises(TypeError, match="GroupMetadataKey goes with GroupMetadataValue"):
            encode_record(GroupMetadataKey(group="g"), value)
        with pytest.raises(TypeError, match="ConsumerGroupMetadataValue is not the key of a record type"):
            encode_record(value, None)  # type: ignore[arg-type]  # that is the point

    def test_encode_refuses_a_stranger_in_an_array(self) -> None:
        """A member of a classic group is a MemberMetadata."""
        value = GroupMetadataValue(protocol_type="", generation=0, protocol=None, leader=None, members=("m",))  # type: ignore[arg-type]  # that is the point

        with pytest.raises(WireError, match="'m' stands where MemberMetadata is wanted"):
            encode_record(GroupMetadataKey(group="g"), value)
