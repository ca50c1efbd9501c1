"""Records as the tools of Kafka print them."""

import json

import pytest

from coordinator_model.records.serde import decode_record
from coordinator_model.records.upstream_json import camel_case, record_json
from lab import builders
from tests.golden_records import GOLDEN_RECORDS, GoldenRecord


def test_offset_commit_has_the_form_of_the_dump_tool() -> None:
    """Names are the schemas', the topic's id is text; a field that version 4 lacks is absent."""
    key, value = builders.offset_commit("orders", "t", 3, 42, leader_epoch=1, metadata="md", timestamp=5)

    assert {
        "key": {"type": 1, "data": {"group": "orders", "topic": "t", "partition": 3}},
        "value": {
            "version": 4,
            "data": {
                "offset": 42,
                "leaderEpoch": 1,
                "metadata": "md",
                "commitTimestamp": 5,
                "topicId": builders.topic_id("t"),
            },
        },
    } == record_json(decode_record(key, value))


def test_version_decides_which_fields_are_printed() -> None:
    """Version 1 has an expiry and no leader epoch."""
    commit = builders.offset_commit("orders", "t", 3, 42, leader_epoch=1, expire_timestamp=9, timestamp=5, version=1)

    assert {
        "version": 1,
        "data": {"offset": 42, "metadata": "", "commitTimestamp": 5, "expireTimestamp": 9},
    } == record_json(decode_record(*commit))["value"]


def test_tagged_defaults_are_left_out_and_a_null_struct_is_not() -> None:
    """A hash of 0 is the default; the null of a consumer-protocol member is not, for its default is a struct."""
    epoch = record_json(decode_record(*builders.consumer_group_epoch("orders", 2)))
    member = record_json(decode_record(*builders.consumer_group_member_subscription("orders", "m")))

    assert {"epoch": 2} == epoch["value"]["data"]
    assert member["value"]["data"]["classicMemberMetadata"] is None


def test_bytes_are_base64_and_structs_nest() -> None:
    """Embedded subscriptions stay opaque, as in Kafka's own output."""
    record = builders.group_metadata(
        "orders", generation=1, members=[builders.member("m", subscription_bytes=b"\xfb\xff", assignment_bytes=b"")]
    )
    printed = record_json(decode_record(*record))["value"]["data"]["members"]

    assert [("m", "+/8=", "")] == [
        (member["memberId"], member["subscription"], member["assignment"]) for member in printed
    ]


def test_tombstone_has_a_null_value() -> None:
    """The key says what was deleted."""
    expected = {"key": {"type": 2, "data": {"group": "orders"}}, "value": None}

    assert expected == record_json(decode_record(*builders.group_metadata_tombstone("orders")))


def test_unknown_and_undecodable_records_say_so() -> None:
    """Kafka's converters have no form for them; they are shown rather than dropped."""
    unknown = record_json(decode_record(b"\x00\x63\x00\x01g", None))
    damaged = record_json(decode_record(b"\x00\x03\x00\x01g", b"\x00\x00\x00"))

    assert {"key": {"type": 99, "data": None, "group": "g"}, "value": None} == unknown
    assert (3, None) == (damaged["key"]["type"], damaged["key"]["data"])
    assert "value: 4 bytes wanted at byte 2, 1 left" == damaged["error"]


@pytest.mark.parametrize("golden", GOLDEN_RECORDS, ids=lambda golden: golden.name)
def test_every_form_is_json(golden: GoldenRecord) -> None:
    """Nothing in it needs a helper to be written out."""
    printed = record_json(golden.record)

    assert printed == json.loads(json.dumps(printed))


@pytest.mark.parametrize(
    ("name", "expected"),
    [("offset", "offset"), ("topic_id", "topicId"), ("rebalance_timeout_ms", "rebalanceTimeoutMs")],
)
def test_field_names_become_camel_case(name: str, expected: str) -> None:
    """As the JSON schemas spell them."""
    assert expected == camel_case(name)
