"""What classic consumers embed: read in every version, and opaque rather than wrong."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator_model.records.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    StickyUserData,
    TopicPartition,
    cooperative_sticky_generation,
    decode_assignment,
    decode_first_fields,
    decode_sticky_user_data,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from lab.builders import assignment, cooperative_sticky_user_data, sticky_user_data, subscription
from tests.record_strategies import structs

OWNED = (TopicPartition(topic="rec-orders", partitions=(3, 4, 5)),)
COOPERATIVE = bytes.fromhex(
    "000300000001000a7265632d6f7264657273000000040000000300000001000a7265632d6f7264657273"
    "0000000300000003000000040000000500000003ffff"
)
"""A Java 4.3.1 client's subscription with cooperative-sticky, after its third generation."""


def test_subscription_reads_what_a_client_sent() -> None:
    """Topics, the assignor's user data, the partitions claimed and the generation they were claimed in."""
    expected = ConsumerProtocolSubscription(
        topics=("rec-orders",), user_data=b"\x00\x00\x00\x03", owned_partitions=OWNED, generation_id=3
    )

    assert expected == decode_subscription(COOPERATIVE)
    assert COOPERATIVE == encode_subscription(expected)


@pytest.mark.parametrize("version", [1, 4])
def test_first_fields_are_read_of_a_subscription_that_ends_after_them(version: int) -> None:
    """kafka-go says version 1 and faust version 4: that cannot be read, and the coordinator makes do with this much."""
    raw = bytes.fromhex(f"000{version}00000001000a7265632d6f7264657273000000022a2b")

    assert None is decode_subscription(raw)
    expected = ConsumerProtocolSubscription(topics=("rec-orders",), user_data=b"*+", version=version)
    assert expected == decode_first_fields(raw)
    assert None is decode_first_fields(raw[:-1])


def test_assignment_reads_what_a_leader_sent() -> None:
    """Partitions by topic name; the range assignor adds no user data."""
    raw = bytes.fromhex("000300000001000a7265632d6f726465727300000003000000030000000400000005ffffffff")
    expected = ConsumerProtocolAssignment(assigned_partitions=OWNED)

    assert expected == decode_assignment(raw)
    assert raw == encode_assignment(expected)


@pytest.mark.parametrize("version", range(4))
@given(data=st.data())
def test_subscription_survives_a_round_trip(version: int, data: st.DataObject) -> None:
    """Every version brings back what it can carry."""
    fields = data.draw(structs(ConsumerProtocolSubscription, version))
    sent = ConsumerProtocolSubscription(
        topics=fields.topics,
        user_data=fields.user_data,
        owned_partitions=fields.owned_partitions,
        generation_id=fields.generation_id,
        rack_id=fields.rack_id,
        version=version,
    )

    assert sent == decode_subscription(encode_subscription(sent))


@pytest.mark.parametrize("version", range(4))
@given(data=st.data())
def test_assignment_survives_a_round_trip(version: int, data: st.DataObject) -> None:
    """The layout is the same in all versions, the prefix is not."""
    fields = data.draw(structs(ConsumerProtocolAssignment, version))
    sent = ConsumerProtocolAssignment(
        assigned_partitions=fields.assigned_partitions, user_data=fields.user_data, version=version
    )

    assert sent == decode_assignment(encode_assignment(sent))


@pytest.mark.parametrize("version", [4, 5, 0x7FFF])
def test_later_versions_are_read_as_version_3(version: int) -> None:
    """Fields may only be appended, so what is known stands in front."""
    later = version.to_bytes(2, "big") + COOPERATIVE[2:] + b"appended"
    read = decode_subscription(later)

    assert read is not None
    assert (("rec-orders",), OWNED, 3, version) == (
        read.topics,
        read.owned_partitions,
        read.generation_id,
        read.version,
    )
    assert decode_assignment(version.to_bytes(2, "big") + assignment({"t": [1]})[2:] + b"appended") is not None


@pytest.mark.parametrize("version", range(4))
def test_fields_of_later_versions_take_their_defaults(version: int) -> None:
    """Owned partitions came with version 1, the generation with 2, the rack with 3."""
    raw = subscription(["t"], owned={"t": [1]}, generation_id=9, rack_id="r", version=version)
    read = decode_subscription(raw)

    assert read is not None
    expected = [(), -1, None]
    expected[:version] = [(TopicPartition(topic="t", partitions=(1,)),), 9, "r"][:version]
    assert expected == [read.owned_partitions, read.generation_id, read.rack_id]


def test_zero_bytes_are_an_empty_assignment() -> None:
    """A member that the leader left out gets no bytes at all, not even a version."""
    assert ConsumerProtocolAssignment() == decode_assignment(b"")
    assert decode_subscription(b"") is None


@pytest.mark.parametrize("blob", [COOPERATIVE, assignment({"t": [1, 2]})], ids=["subscription", "assignment"])
def test_cut_blob_is_opaque(blob: bytes) -> None:
    """Foreign bytes are no error, only unreadable."""
    decode = decode_subscription if blob is COOPERATIVE else decode_assignment
    for length in range(1, len(blob)):
        assert decode(blob[:length]) is None


def test_negative_version_is_opaque() -> None:
    """No client counts backwards."""
    assert decode_subscription(b"\xff\xff" + COOPERATIVE[2:]) is None
    assert decode_assignment(b"\xff\xff" + assignment({"t": [1]})[2:]) is None


@given(blob=st.binary(max_size=60))
def test_arbitrary_bytes_never_raise(blob: bytes) -> None:
    """Connect, Schema Registry and custom assignors put anything there."""
    decode_subscription(blob)
    decode_assignment(blob)
    decode_sticky_user_data(blob)
    cooperative_sticky_generation(blob)


def test_sticky_user_data_carries_what_was_owned_and_when() -> None:
    """Its first layout lacks the generation, its second has it, and no version distinguishes them."""
    previous = (TopicPartition(topic="t", partitions=(0, 2)),)

    assert StickyUserData(previous_assignment=previous, generation=4) == decode_sticky_user_data(
        sticky_user_data({"t": [0, 2]}, generation=4)
    )
    assert StickyUserData(previous_assignment=previous, generation=-1) == decode_sticky_user_data(
        sticky_user_data({"t": [0, 2]}, generation=None)
    )


def test_sticky_user_data_ignores_what_trails() -> None:
    """Bytes behind the generation are left alone; fewer than four behind the partitions are no generation."""
    whole, old = sticky_user_data({"t": [0]}, generation=4), sticky_user_data({"t": [0]}, generation=None)

    assert decode_sticky_user_data(whole) == decode_sticky_user_data(whole + b"more")
    assert decode_sticky_user_data(old) == decode_sticky_user_data(old + b"\x00\x00\x00")


def test_cut_sticky_user_data_is_opaque() -> None:
    """Without all its partitions the previous assignment is worth nothing."""
    raw = sticky_user_data({"t": [0, 2]}, generation=None)
    for length in range(len(raw)):
        assert decode_sticky_user_data(raw[:length]) is None


@pytest.mark.parametrize("generation", [-1, 0, 7, 2**31 - 1])
def test_cooperative_sticky_user_data_is_a_generation(generation: int) -> None:
    """Four bytes, -1 before any assignment; fewer are nothing."""
    raw = cooperative_sticky_user_data(generation)

    assert generation == cooperative_sticky_generation(raw)
    assert cooperative_sticky_generation(raw[:3]) is None
