"""Kafka Streams applications on the classic protocol: their tasks, and how far copies of the state are (KIP-441).

The bytes are those of Kafka's own classes, `SubscriptionInfo` and `AssignmentInfo` of kafka-streams 4.2.1, for a member
that ran task 0_0 and has copies of 0_1 (offset sum 41), 1_0 (7) and 1_2 (not known), and that is given 0_0 and 1_2 to
run and 1_1 to stand by for.
"""

from typing import Any, Final

import pytest

from coordinator_model.records import kafka_streams
from coordinator_model.records.kafka_streams import (
    PartitionToOffsetSum,
    StreamsTask,
    SubscriptionInfo,
    TaskOffsetSum,
    decode_assignment_info,
    decode_subscription_info,
    encode_subscription_info,
)
from coordinator_model.wire.primitives import uuid_text
from lab.builders import assignment, group_metadata, member, subscription
from streaming.cli.render.plain import group_text
from tests.histories import Reported, at, history

SUBSCRIPTIONS: Final = {
    1: (
        "0000000100112233445566778899aabbccddeeff00000001000000000000000000000003000000010000000000000000"
        "000000010000000100000002"
    ),
    3: (
        "000000030000000b00112233445566778899aabbccddeeff000000010000000000000000000000030000000100000000"
        "0000000000000001000000010000000200000007686f73743a3830"
    ),
    6: (
        "000000060000000b00112233445566778899aabbccddeeff000000010000000000000000000000030000000100000000"
        "0000000000000001000000010000000200000007686f73743a3830"
    ),
    7: (
        "000000070000000b00112233445566778899aabbccddeeff00000007686f73743a383000000002000000000000000200"
        "000000fffffffffffffffe000000010000000000000029000000010000000200000000000000000000000700000002ff"
        "fffffffffffffd"
    ),
    9: (
        "000000090000000b00112233445566778899aabbccddeeff00000007686f73743a383000000002000000000000000200"
        "000000fffffffffffffffe000000010000000000000029000000010000000200000000000000000000000700000002ff"
        "fffffffffffffd0000000000"
    ),
    10: (
        "0000000a0000000b00112233445566778899aabbccddeeff00000007686f73743a3830000000040000000000000000ff"
        "fffffffffffffeffff00000000000000010000000000000029ffff00000001000000000000000000000007ffff000000"
        "0100000002fffffffffffffffdffff0000000000"
    ),
    11: (
        "0000000b0000000b00112233445566778899aabbccddeeff00000007686f73743a3830000000040000000000000000ff"
        "fffffffffffffeffff00000000000000010000000000000029ffff00000001000000000000000000000007ffff000000"
        "0100000002fffffffffffffffdffff000000000000000001000000047a6f6e650000000161"
    ),
}
"""Version → SubscriptionInfo, as hex."""

ASSIGNMENTS: Final = {
    1: (
        "0000000100000002000000000000000000000001000000020000000100000001000000010000000200056772c3bc6e00"
        "000001000573746f726500000001"
    ),
    3: (
        "000000030000000b00000002000000000000000000000001000000020000000100000001000000010000000200056772"
        "c3bc6e00000001000573746f72650000000100000001000168000000010000000100017400000000"
    ),
    6: (
        "000000060000000b00000002000000000000000000000001000000020000000100000001000000010000000200056772"
        "c3bc6e00000001000573746f726500000001000000010000000000017400000001000168000000010000000100000000"
        "000000000000000000000000"
    ),
    7: (
        "000000070000000b00000002000000000000000000000001000000020000000100000001000000010000000200056772"
        "c3bc6e00000001000573746f726500000001000000010000000000017400000001000168000000010000000100000000"
        "0000000000000000000000007fffffffffffffff"
    ),
    9: (
        "000000090000000b00000002000000000000000000000001000000020000000100000001000000010000000200056772"
        "c3bc6e00000001000573746f726500000001000000010000000000017400000001000168000000010000000100000000"
        "0000000000000000000000007fffffffffffffff"
    ),
    10: (
        "0000000a0000000b00000002000000000000000000000000000000010000000200000000000000010000000100000001"
        "000000000000000200056772c3bc6e00000001000573746f726500000001000000010000000000017400000001000168"
        "0000000100000001000000000000000000000000000000007fffffffffffffff"
    ),
    11: (
        "0000000b0000000b00000002000000000000000000000000000000010000000200000000000000010000000100000001"
        "000000000000000200056772c3bc6e00000001000573746f726500000001000000010000000000017400000001000168"
        "0000000100000001000000000000000000000000000000007fffffffffffffff"
    ),
}
"""Version → AssignmentInfo, as hex."""

PROCESS_ID: Final = uuid_text(bytes.fromhex("00112233445566778899aabbccddeeff"))


def task(name: str) -> StreamsTask:
    """A task by the name Kafka gives it: `0_1`."""
    subtopology, _, partition = name.rpartition("_")
    return StreamsTask(subtopology=subtopology, partition=int(partition))


# -- bytes ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", SUBSCRIPTIONS)
def test_subscription_info_of_kafkas_own(version: int) -> None:
    """Up to version 6 it names standby tasks without telling how far they are."""
    claimed = decode_subscription_info(bytes.fromhex(SUBSCRIPTIONS[version]))

    sums = {"0_1": 41, "1_0": 7, "1_2": None} if version > 6 else dict.fromkeys(("0_1", "1_0", "1_2"))
    assert claimed is not None
    assert (PROCESS_ID, (task("0_0"),)) == (claimed.process_id, claimed.active)
    assert {task(name): offset_sum for name, offset_sum in sums.items()} == dict(claimed.copies)


@pytest.mark.parametrize("version", ASSIGNMENTS)
def test_assignment_info_of_kafkas_own(version: int) -> None:
    """Tasks come before what depends on the version."""
    assigned = decode_assignment_info(bytes.fromhex(ASSIGNMENTS[version]))

    assert assigned is not None
    assert ((task("0_0"), task("1_2")), (task("1_1"),)) == (assigned.active, assigned.standby)


@pytest.mark.parametrize("version", SUBSCRIPTIONS)
def test_subscription_info_that_is_cut_is_opaque(version: int) -> None:
    """Wherever it is cut."""
    whole = bytes.fromhex(SUBSCRIPTIONS[version])

    assert {None} == {decode_subscription_info(whole[:end]) for end in range(len(whole))}


@pytest.mark.parametrize("version", ASSIGNMENTS)
def test_assignment_info_that_is_cut_is_opaque(version: int) -> None:
    """Wherever in its tasks; what follows is not read."""
    whole = bytes.fromhex(ASSIGNMENTS[version])
    end_of_tasks = whole.index(b"store") + len(b"store") + 4

    assert {None} == {decode_assignment_info(whole[:end]) for end in range(end_of_tasks)}
    assert decode_assignment_info(whole[:end_of_tasks]) is not None


@pytest.mark.parametrize("version", [-1, 0, 12, 2**31 - 1])
def test_versions_that_are_not_known_are_opaque(version: int) -> None:
    """Later ones need not be like these, and there was none before 1."""
    prefix = version.to_bytes(4, "big", signed=True)

    assert None is decode_subscription_info(prefix + bytes.fromhex(SUBSCRIPTIONS[11])[4:])
    assert None is decode_assignment_info(prefix + bytes.fromhex(ASSIGNMENTS[11])[4:])


def test_tasks_of_named_topologies_keep_the_name() -> None:
    """Else two tasks would be one."""
    info = SubscriptionInfo(
        process_id=PROCESS_ID,
        task_offset_sums=(TaskOffsetSum(topic_group_id=0, partition=3, offset_sum=5, named_topology="billing"),),
    )
    claimed = decode_subscription_info(encode_subscription_info(info))
    named = bytes.fromhex("0000000b0000000b 00000001 00000000 00000003 00000002 00620069 00000000")
    broken = bytes.fromhex("0000000b0000000b 00000001 00000000 00000003 00000001 d800 00000000")

    assert claimed is not None
    assert ((task("billing__0_3"), 5),) == claimed.copies
    assert (task("bi__0_3"),) == getattr(decode_assignment_info(named), "active", None)
    assert None is decode_assignment_info(broken)


@pytest.mark.parametrize("version", range(1, 12))
def test_subscription_info_reads_what_it_writes(version: int) -> None:
    """In every version, what the version has."""
    by_partition = (PartitionToOffsetSum(partition=1, offset_sum=9),) if version < 10 else ()
    sums = (TaskOffsetSum(topic_group_id=2, partition=1, offset_sum=9, partition_to_offset_sum=by_partition),)
    info = SubscriptionInfo(
        process_id=PROCESS_ID,
        prev_tasks=(kafka_streams.TaskId(topic_group_id=4, partition=0),),
        task_offset_sums=sums,
    )
    claimed = decode_subscription_info(encode_subscription_info(info, version))

    assert claimed is not None
    assert ((task("4_0"),) if version <= 6 else ()) == claimed.active
    assert (() if version <= 6 else ((task("2_1"), 9),)) == claimed.copies


# -- views ------------------------------------------------------------------------------------------------------------


def sums(**of_tasks: int) -> bytes:
    """User data of a member: ``t0_1`` is task 0_1; -2 is one it ran."""
    tasks = [(*map(int, name[1:].split("_")), offset_sum) for name, offset_sum in of_tasks.items()]
    info = SubscriptionInfo(
        process_id=PROCESS_ID,
        task_offset_sums=tuple(
            TaskOffsetSum(topic_group_id=subtopology, partition=partition, offset_sum=offset_sum)
            for subtopology, partition, offset_sum in tasks
        ),
    )
    return encode_subscription_info(info)


def application(protocol: str = "stream", **members: bytes | None) -> Reported:
    """A generation of members with these user data, each given what `ASSIGNMENTS` says."""
    given = bytes.fromhex(ASSIGNMENTS[11])
    joined = [
        member(
            name,
            subscription_bytes=subscription(user_data=user_data),
            assignment_bytes=assignment({"t": [0]}, user_data=given),
        )
        for name, user_data in members.items()
    ]
    return history(at(0, group_metadata("g", generation=1, protocol=protocol, members=joined))).replayed()


def behind(reported: Reported, member_id: str) -> dict[str, Any]:
    """Task → how far a member's copy is behind the most advanced one."""
    return {of["task"]: of["behind_most_advanced"] for of in reported.member("g", member_id)["task_copies"]}


def test_member_shows_what_it_runs_stands_by_for_and_has_copies_of() -> None:
    """Subtopology → partitions, as streams groups are shown, and how far each copy is."""
    shown = application(a=bytes.fromhex(SUBSCRIPTIONS[11])).member("g", "a")

    assert PROCESS_ID == shown["process_id"]
    assert {"active": {"0": [0], "1": [2]}, "standby": {"1": [1]}} == shown["tasks"]
    assert [("0_1", 41), ("1_0", 7), ("1_2", None)] == [(of["task"], of["offset_sum"]) for of in shown["task_copies"]]


def test_copy_is_behind_the_most_advanced_one() -> None:
    """Where no member ran the task; by no less than that, the changelogs' end being unknown."""
    reported = application(a=sums(t0_1=100, t0_2=7), b=sums(t0_1=40, t0_2=-3), c=sums(t0_1=90))

    assert {"0_1": 0, "0_2": 0} == behind(reported, "a")
    assert {"0_1": 60, "0_2": None} == behind(reported, "b")
    assert {"0_1": 10} == behind(reported, "c")


def test_copy_of_a_task_that_somebody_ran_is_behind_by_what_is_not_known() -> None:
    """The one that runs it says only that it is ahead of all."""
    reported = application(a=sums(t0_1=-2), b=sums(t0_1=40), c=sums(t0_1=90))

    assert {} == behind(reported, "a")
    assert {"0_1": None} == behind(reported, "b")
    assert {"0_1": None} == behind(reported, "c")


@pytest.mark.parametrize("user_data", [None, b"", b"?", sums(t0_1=1)[:-1]])
def test_member_whose_user_data_does_not_decode_shows_no_tasks(user_data: bytes | None) -> None:
    """It is a member all the same."""
    shown = application(a=user_data).member("g", "a")

    assert {"t": [0]} == shown["assigned"]
    assert "tasks" not in shown


def test_user_data_of_other_assignors_is_not_taken_for_tasks() -> None:
    """Whatever it looks like."""
    shown = application("own", a=sums(t0_1=1)).member("g", "a")

    assert "tasks" not in shown


def test_describe_has_a_table_of_tasks() -> None:
    """Of those applications only."""
    reported = application(a=sums(t0_1=100), b=sums(t0_1=40, t0_2=-3))
    (*_, table) = group_text(reported.view("g"))
    heads, a, b = (line.split("  ") for line in table.splitlines())

    assert ["STREAMS-MEMBER", "PROCESS"] == [part for part in heads if part][:2]
    assert ["a", PROCESS_ID, "0:0 1:2", "1:1", "0_1 (behind 0)"] == [part.strip() for part in a if part]
    assert ["b", PROCESS_ID, "0:0 1:2", "1:1", "0_1 (behind 60), 0_2"] == [part.strip() for part in b if part]
    assert not any("STREAMS-MEMBER" in part for part in group_text(application("own", a=b"").view("g")))
