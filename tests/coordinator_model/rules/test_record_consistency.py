"""What of a membership goes together (docs/coordinator-log.md): each rule broken once, and all that only looks broken.

A rule is asked only of a group in which one record followed another of its key: what a cleaned log lacks is no fault.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from coordinator_model.replica import Replica
from lab.builders import (
    RecordBytes,
    consumer_group_current_assignment,
    consumer_group_current_assignment_tombstone,
    consumer_group_epoch,
    consumer_group_member_subscription,
    consumer_group_member_subscription_tombstone,
    consumer_group_regular_expression,
    consumer_group_target_assignment,
    group_metadata,
    member,
    share_group_current_assignment,
    share_group_epoch,
    streams_group_current_assignment,
    streams_group_epoch,
    streams_group_member,
    streams_group_target_assignment,
    streams_group_target_assignment_epoch,
    topic_id,
)
from lab.coordinator_events import (
    consumer_gone,
    consumer_join,
    consumer_leave,
    consumer_moves,
    converted_to_classic,
    converted_to_consumer,
    retarget,
    share_join,
    share_leave,
    static_goes_away,
    static_returns,
    throttled_consumer_join,
)
from tests.histories import RECORDING, Moment, Reported, at, history, recording

ONE = at(0, *consumer_join("g", "a", epoch=2, targets={"a": {"t": [0, 1]}}, instance_id="i"))
TWO = (
    ONE,
    at(1_000, *consumer_join("g", "b", epoch=3, targets={"b": {"t": [1]}, "a": {"t": [0]}}, assigned={})),
    at(2_000, *consumer_moves("g", "a", epoch=2, state=1, assigned={"t": [0]}, pending={"t": [1]})),
    at(3_000, *consumer_moves("g", "a", epoch=3, previous_epoch=2, assigned={"t": [0]})),
    at(4_000, *consumer_moves("g", "b", epoch=3, assigned={"t": [1]})),
)
"""Two members, both where they should be, after a partition moved."""

CLASSIC = (
    at(0, group_metadata("g", generation=4, members=[member("a", {"t": [0]})])),
    at(1_000, group_metadata("g", generation=5, members=[member("a", {"t": [0]}), member("b", {"t": [1]})])),
)
STREAMS = (
    at(
        0,
        streams_group_member("g", "s"),
        streams_group_epoch("g", 2),
        streams_group_target_assignment("g", "s", active={"0": [0, 1]}, standby={"1": [0]}),
        streams_group_target_assignment_epoch("g", 2),
        streams_group_current_assignment("g", "s", epoch=2, previous_epoch=0, active={"0": [0, 1]}),
    ),
    at(
        1_000,
        streams_group_member("g", "z"),
        streams_group_epoch("g", 3),
        streams_group_target_assignment("g", "z", active={"0": [1]}, standby={"1": [0]}),
        streams_group_target_assignment("g", "s", active={"0": [0]}, standby={"1": [0]}),
        streams_group_target_assignment_epoch("g", 3),
        streams_group_current_assignment("g", "z", epoch=3, previous_epoch=0, state=3),
    ),
)
SHARE = (
    at(0, *share_join("g", "s", epoch=2, targets={"s": {"t": [0, 1]}})),
    at(1_000, *share_join("g", "z", epoch=3, targets={"z": {"t": [0, 1]}, "s": {"t": [0, 1]}})),
)


def anomalies(reported: Reported) -> list[tuple[int, str, str | None, list[str]]]:
    """(time, rule, member, partitions) of every anomaly reported."""
    return [
        (of.time_ms, of.detail["rule"], of.detail["member_id"], sorted(of.detail.get("partitions", {})))
        for of in reported.events
        if of.kind == "epoch_anomaly" and "cleared" not in of.detail
    ]


def places(*partitions: int) -> list[str]:
    """Partitions of topic t as anomalies name them."""
    return [f"{topic_id('t')}/{partition}" for partition in partitions]


Broken = tuple[Iterable[Moment], list[RecordBytes], tuple[str, str | None, list[str]]]

BROKEN: dict[str, Broken] = {
    "previous epoch beyond the epoch": (
        TWO,
        consumer_moves("g", "b", epoch=3, previous_epoch=4, assigned={"t": [1]}),
        ("previous_epoch", "b", []),
    ),
    "partition assigned in an epoch to come": (
        TWO,
        [consumer_group_current_assignment("g", "b", epoch=3, assigned={"t": {1: 4}})],
        ("partition_epoch", "b", []),
    ),
    "partition of a member that is away with an epoch": (
        TWO,
        [consumer_group_current_assignment("g", "a", epoch=-2, previous_epoch=2, assigned={"t": {0: 2}})],
        ("partition_epoch", "a", []),
    ),
    "stable with something to revoke": (
        TWO[:2],
        consumer_moves("g", "a", epoch=2, assigned={"t": [0]}, pending={"t": [1]}),
        ("member_state", "a", places(1)),
    ),
    "to revoke nothing": (TWO[:2], consumer_moves("g", "a", epoch=2, state=1, assigned={}), ("member_state", "a", [])),
    "owned and to be revoked at once": (
        TWO[:2],
        consumer_moves("g", "a", epoch=2, state=1, assigned={"t": [0, 1]}, pending={"t": [1]}),
        ("held_and_pending", "a", places(1)),
    ),
    "settled with more than its target": (
        TWO[:2],
        consumer_moves("g", "a", epoch=3, previous_epoch=2, assigned={"t": [0, 1]}),
        ("beyond_target", "a", places(1)),
    ),
    "awaiting with more than its target": (
        TWO[:2],
        consumer_moves("g", "b", epoch=3, state=2, assigned={"u": [0]}),
        ("beyond_target", "b", [f"{topic_id('u')}/0"]),
    ),
    "target of two members": (
        TWO,
        [consumer_group_epoch("g", 4), *retarget("g", 4, {"b": {"t": [0, 1]}})],
        ("target_overlap", None, places(0)),
    ),
    "assignment of a member that is gone": (
        TWO,
        [consumer_group_member_subscription_tombstone("g", "b")],
        ("member_records", "b", []),
    ),
    "member whose assignment is gone": (
        TWO,
        [consumer_group_current_assignment_tombstone("g", "b")],
        ("member_records", "b", []),
    ),
    "member that joins without an assignment": (
        TWO,
        [consumer_group_member_subscription("g", "c"), consumer_group_epoch("g", 4)],
        ("member_records", "c", []),
    ),
    "target without a member": (
        TWO,
        [consumer_group_target_assignment("g", "nobody", {"u": [0]})],
        ("member_records", "nobody", []),
    ),
    "leader from elsewhere": (
        CLASSIC,
        [group_metadata("g", generation=6, members=[member("a", {"t": [0]})], leader="c")],
        ("leader", None, []),
    ),
    "same generation, other members": (
        CLASSIC,
        [group_metadata("g", generation=5, members=[member("a", {"t": [0]}), member("c", {"t": [1]})])],
        ("same_generation", None, []),
    ),
    "same generation, other assignment": (
        CLASSIC,
        [group_metadata("g", generation=5, members=[member("a", {"t": [1]}), member("b", {"t": [0]})])],
        ("same_generation", None, []),
    ),
    "active task in the targets of two": (
        STREAMS,
        [
            streams_group_epoch("g", 4),
            streams_group_target_assignment("g", "z", active={"0": [0, 1]}),
            streams_group_target_assignment_epoch("g", 4),
        ],
        ("target_overlap", None, ["0/0"]),
    ),
    "streams member with active tasks to revoke that says nothing": (
        STREAMS,
        [
            streams_group_current_assignment(
                "g", "s", epoch=2, active={"0": [0]}, active_pending_revocation={"0": [1]}, state=1
            )
        ],
        ("member_state", "s", ["0/1"]),
    ),
    "streams member with more than its target": (
        STREAMS,
        [streams_group_current_assignment("g", "s", epoch=3, previous_epoch=2, active={"0": [0, 1]})],
        ("beyond_target", "s", ["0/1"]),
    ),
    "share group's assignment without a member": (
        SHARE,
        [share_group_epoch("g", 4), share_group_current_assignment("g", "nobody", epoch=3)],
        ("member_records", "nobody", []),
    ),
}


@pytest.mark.parametrize(("before", "records", "expected"), BROKEN.values(), ids=BROKEN.keys())
def test_broken_rule_is_reported_once_with_whom_and_what(
    before: Iterable[Moment], records: list[RecordBytes], expected: tuple[str, str | None, list[str]]
) -> None:
    """One fault, one event, however often it is written; a warning."""
    reported = history(*before, at(9_000, *records), at(10_000, *records)).replayed()

    assert [(9_000, *expected)] == anomalies(reported)
    assert {"epoch_anomaly": "warning"} == {
        of.kind: of.severity for of in reported.events if of.severity != "info" and of.kind != "static_member_absent"
    }


@pytest.mark.parametrize(("before", "records", "expected"), BROKEN.values(), ids=BROKEN.keys())
def test_broken_rule_is_reported_alike_wherever_the_log_is_cut(
    before: Iterable[Moment], records: list[RecordBytes], expected: tuple[str, str | None, list[str]]
) -> None:
    """What it takes to judge is kept with the group."""
    log = history(*before, at(9_000, *records), at(10_000, *records))
    whole = log.replayed()

    assert [expected] == [found[1:] for found in anomalies(whole)]
    for position in range(len(log) + 1):
        assert whole.event_texts() == log.replayed_in_batches([position]).event_texts()


def test_generation_zero_with_members() -> None:
    """A group in generation 0 has completed no round yet; from there on the record is whole."""
    reported = history(
        at(0, group_metadata("g", generation=1)),
        at(9_000, group_metadata("g", generation=0, members=[member("a", {})])),
    ).replayed()

    assert {"generation", "generation_zero"} == {rule for _, rule, _, _ in anomalies(reported)}


def test_anomaly_that_is_over_says_so_once() -> None:
    """By the same kind of event, of no severity: who heard that it began hears that it ended."""
    fault = at(5_000, consumer_group_current_assignment("g", "b", epoch=3, assigned={"t": {1: 4}}))
    mended = at(6_000, consumer_group_current_assignment("g", "b", epoch=3, assigned={"t": [1]}))
    noise = at(7_000, consumer_group_member_subscription("g", "b", rack_id="r"))

    reported = history(*TWO, fault, mended, noise).replayed()

    assert [(5_000, "warning"), (6_000, "info")] == [
        (of.time_ms, of.severity) for of in reported.events if of.kind == "epoch_anomaly"
    ]
    assert {"rule": "partition_epoch", "member_id": "b", "cleared": True} == reported.details("epoch_anomaly")[1]
    assert {} == reported.states["g"].alarms


def test_anomaly_ends_with_the_group() -> None:
    """Nothing stays open of what is no more."""
    reported = history(
        *TWO,
        at(5_000, consumer_group_current_assignment("g", "b", epoch=3, assigned={"t": {1: 4}})),
        at(6_000, *converted_to_classic("g", all_members=["a", "b"], generation=3, remaining={"a": {"t": [0]}})),
    ).replayed()

    assert [False, True] == ["cleared" in detail for detail in reported.details("epoch_anomaly")]


def test_partition_that_is_assigned_twice_is_reported_as_that_alone() -> None:
    """It is beyond the target of one of the two as well: one fault, one alarm, the worse one."""
    reported = history(*TWO, at(5_000, *consumer_moves("g", "a", epoch=3, assigned={"t": [0, 1]}))).replayed()

    assert {("g", "duplicate_assignment"): 1} == reported.alarms()


# -- what must stay quiet ---------------------------------------------------------------------------------------------

LEGAL: dict[str, list[Moment]] = {
    "a partition moves": [*TWO],
    "writers that tell no epochs of partitions": [
        *TWO,
        at(5_000, consumer_group_current_assignment("g", "b", epoch=3, assigned={"t": [1]}, epochs=False)),
    ],
    "only the previous epoch changes": [
        *TWO[:3],
        at(
            2_500,
            *consumer_moves("g", "a", epoch=2, previous_epoch=2, state=1, assigned={"t": [0]}, pending={"t": [1]}),
        ),
        *TWO[3:],
    ],
    "static member away and back": [
        *TWO,
        at(5_000, *static_goes_away("g", "a", assigned={"t": [0]}, previous_epoch=2)),
        at(6_000, *static_returns("g", old="a", new="a2", instance_id="i", epoch=3, assigned={"t": [0]})),
    ],
    "static member away while it revokes: its state stays, what it was to revoke is forgotten": [
        *TWO[:3],
        at(
            2_500,
            consumer_group_current_assignment("g", "a", epoch=-2, previous_epoch=2, state=1, assigned={"t": {0: 0}}),
        ),
    ],
    "static member back in a group that moved on meanwhile": [
        *TWO,
        at(5_000, *static_goes_away("g", "a", assigned={"t": [0]}, previous_epoch=2)),
        at(
            6_000,
            *consumer_join("g", "c", epoch=4, targets={"c": {"t": [0]}, "a": {}}, assigned={}),
        ),
        at(
            7_000,
            *consumer_gone("g", "a"),
            consumer_group_member_subscription("g", "a2", instance_id="i"),
            consumer_group_target_assignment("g", "a2", {}),
            consumer_group_current_assignment("g", "a2", epoch=4, previous_epoch=0, assigned={}),
        ),
    ],
    "subscription that shrinks before the target does (state 0 owns less than its target)": [
        *TWO,
        at(
            5_000,
            consumer_group_member_subscription("g", "b", topics=()),
            *consumer_moves("g", "b", epoch=3, assigned={}),
        ),
    ],
    "subscription that shrinks, at the target's epoch and with something to revoke": [
        *TWO,
        at(
            5_000,
            consumer_group_member_subscription("g", "b", topics=()),
            *consumer_moves("g", "b", epoch=3, state=1, assigned={}, pending={"t": [1]}),
        ),
    ],
    "throttled joins (KIP-1263): no target yet": [
        *TWO,
        at(5_000, *throttled_consumer_join("g", "c", epoch=4, assignment_epoch=3)),
        at(5_100, *throttled_consumer_join("g", "d", epoch=5, assignment_epoch=3)),
        at(9_000, *retarget("g", 5, {"c": {"u": [0]}, "d": {"u": [1]}})),
    ],
    "joins that wait for an expression, in a group without a target (up to 4.2)": [
        at(0, consumer_group_member_subscription("g", "a", topics=(), regex="rx-.*")),
        at(100, consumer_group_member_subscription("g", "b", topics=(), regex="ry-.*")),
        at(200, consumer_group_regular_expression("g", "rx-.*", ["rx-a"]), consumer_group_epoch("g", 1)),
        at(300, *consumer_join("g", "c", epoch=2, targets={"c": {"t": [0]}, "a": {"rx-a": [0]}, "b": {}})),
        at(400, *consumer_moves("g", "a", epoch=2, previous_epoch=0, assigned={"rx-a": [0]})),
        at(500, *consumer_moves("g", "b", epoch=2, previous_epoch=0, assigned={})),
    ],
    "gaining member's target before the losing one's, within an event": [
        *TWO,
        at(5_000, consumer_group_epoch("g", 4), *retarget("g", 4, {"b": {"t": [0, 1]}, "a": {}})),
    ],
    "members gone, no target computed again": [*TWO, at(5_000, *consumer_leave("g", "a", "b", epoch=4))],
    "target of a departed member given on": [
        *TWO,
        at(5_000, *consumer_leave("g", "a", epoch=4)),
        at(6_000, *retarget("g", 4, {"b": {"t": [0, 1]}})),
        at(6_100, *consumer_moves("g", "b", epoch=4, previous_epoch=3, assigned={"t": [0, 1]})),
    ],
    "online there and back": [
        *CLASSIC,
        at(
            2_000,
            *converted_to_consumer("g", generation=5, members={"a": {"t": [0]}, "b": {"t": [1]}}),
            *consumer_join("g", "n", epoch=6, targets={"n": {"t": [1]}, "b": {}}, assigned={}),
        ),
        at(3_000, *converted_to_classic("g", all_members=["a", "b", "n"], generation=6, remaining={"a": {"t": [0]}})),
    ],
    "classic static member back under a new id, leader or not": [
        at(0, group_metadata("g", generation=1, members=[member("a", {"t": [0]}, instance_id="i")])),
        at(1, group_metadata("g", generation=2, members=[member("a", {"t": [0]}, instance_id="i")])),
        at(2, group_metadata("g", generation=2, members=[member("a2", {"t": [0]}, instance_id="i")])),
    ],
    "classic group that loses rounds, and is empty": [
        *CLASSIC,
        at(2_000, group_metadata("g", generation=9, members=[member("a", None)])),
        at(3_000, group_metadata("g", generation=10)),
        at(4_000, group_metadata("g", generation=10)),
    ],
    "streams: standby tasks twice, and to revoke without active ones": [
        *STREAMS,
        at(
            2_000,
            streams_group_current_assignment(
                "g", "s", epoch=2, active={"0": [0]}, active_pending_revocation={"0": [1]}, state=2
            ),
        ),
        at(3_000, streams_group_current_assignment("g", "s", epoch=3, previous_epoch=2, active={"0": [0]})),
        at(
            4_000,
            streams_group_current_assignment(
                "g", "s", epoch=3, active={"0": [0]}, standby_pending_revocation={"1": [0]}, state=2
            ),
        ),
    ],
    "share: targets and assignments overlap by design": [*SHARE, at(2_000, *share_leave("g", "z", epoch=4))],
    "share: a member keeps what is no longer its target's": [
        *SHARE,
        at(2_000, share_group_current_assignment("g", "s", epoch=3, previous_epoch=2, assigned={"t": [0, 1, 2]})),
    ],
    "a newer broker's member state": [
        *TWO,
        at(5_000, *consumer_moves("g", "b", epoch=3, state=9, assigned={"t": [1]})),
    ],
}


@pytest.mark.parametrize("moments", LEGAL.values(), ids=LEGAL.keys())
def test_legal_history_is_no_anomaly(moments: list[Moment]) -> None:
    """What docs/coordinator-log.md, "Invariants", names as an exception or as legal, whole and as any prefix of it."""
    for end in range(1, len(moments) + 1):
        assert [] == anomalies(history(*moments[:end]).replayed())


@pytest.mark.parametrize("moments", LEGAL.values(), ids=LEGAL.keys())
def test_legal_history_compacted_anywhere_is_no_anomaly(moments: list[Moment]) -> None:
    """Taken for new, too: a gap that the cleaner left is no fault."""
    log = history(*moments)

    for before in range(len(log) + 1):
        assert [] == anomalies(log.compacted(before).replayed())


RECORDINGS = sorted(RECORDING.parent.rglob("*.ndjson*"))


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: f"{path.parent.name}-{path.name.partition('.')[0]}")
def test_recording_of_a_real_broker_is_no_anomaly(path: Path) -> None:
    """Brokers of five releases, every group type: whole, and compacted at places all over the log."""
    log = recording(path)

    for before in range(0, len(log) + 1, max(1, len(log) // 10)):
        assert [] == anomalies(log.compacted(before).replayed())


def test_nothing_is_asked_of_a_group_in_which_no_record_followed_another() -> None:
    """A cleaned log may hold one record of a member, the other behind, before or for good gone."""
    reported = history(
        at(0, consumer_group_current_assignment("g", "b", epoch=3, assigned={"t": [1]})),
        at(1, consumer_group_epoch("g", 3)),
    ).replayed()

    assert [] == anomalies(reported)
    assert not reported.states["g"].whole


def test_fault_before_the_live_tail_is_reported_there_if_it_lasts() -> None:
    """Withheld while catching up: reading beside the cleaner shows states that never were (KAFKA-19862)."""
    log = history(*TWO, at(5_000, consumer_group_current_assignment("g", "b", epoch=3, assigned={"t": {1: 4}})))
    replica, events = Replica(live_from=len(log)), list[Any]()
    for record in log.records:
        events += replica.replay(record.place, record.key, record.value)
    events += replica.settle()

    assert [] == [event for event in events if event.kind == "epoch_anomaly"]
    assert ["epoch_anomaly"] == [event.kind for event in replica.judge("g")]
    assert [] == replica.judge("g")


@pytest.mark.parametrize(("pending", "found"), [([1], "1 partition both"), ([0, 1], "2 partitions both")])
def test_partitions_of_an_anomaly_are_counted_in_words(pending: list[int], found: str) -> None:
    """Both owned and to be revoked."""
    broken = consumer_moves("g", "a", epoch=2, state=1, assigned={"t": [0, 1]}, pending={"t": pending})
    reported = history(*TWO[:2], at(9_000, *broken)).replayed()

    assert [found] == [detail["found"] for detail in reported.details("epoch_anomaly")]


WORDS: dict[str, tuple[str, str]] = {
    "previous epoch beyond the epoch": ("at most 3", "4"),
    "partition assigned in an epoch to come": ("at most 3", "4"),
    "partition of a member that is away with an epoch": ("at most 0", "2"),
    "stable with something to revoke": ("UnrevokedPartitions", "Stable"),
    "to revoke nothing": ("something to revoke", "UnrevokedPartitions"),
    "owned and to be revoked at once": ("either owned or to be revoked", "1 partition both"),
    "settled with more than its target": ("nothing but its target", "1 partition more"),
    "awaiting with more than its target": ("nothing but its target", "1 partition more"),
    "target of two members": ("one member a partition", "1 partition of two"),
    "assignment of a member that is gone": ("metadata", "a current assignment alone"),
    "member whose assignment is gone": ("a current assignment", "metadata alone"),
    "member that joins without an assignment": ("a current assignment", "metadata alone"),
    "target without a member": ("metadata", "a target alone"),
    "leader from elsewhere": ("one of the members", "c"),
    "same generation, other members": ("the members it had", "b, c"),
    "same generation, other assignment": ("the assignment it had", "another one of a, b"),
    "active task in the targets of two": ("one member a partition", "1 partition of two"),
    "streams member with active tasks to revoke that says nothing": ("UnrevokedTasks", "Stable"),
    "streams member with more than its target": ("nothing but its target", "1 partition more"),
    "share group's assignment without a member": ("metadata", "a current assignment alone"),
}
"""What should be and what was found, as people read it."""


@pytest.mark.parametrize("name", BROKEN)
def test_broken_rule_says_what_should_be_and_what_was_found(name: str) -> None:
    """In words that stand for themselves."""
    before, records, _ = BROKEN[name]
    (detail,) = history(*before, at(9_000, *records)).replayed().details("epoch_anomaly")

    assert WORDS[name] == (detail["expected"], detail["found"])


def test_anomaly_of_targets_lasts_while_the_group_alone_moves_on() -> None:
    """A record that is no member's changes no target."""
    before, records, _ = BROKEN["target of two members"]
    reported = history(*before, at(9_000, *records), at(10_000, consumer_group_epoch("g", 5))).replayed()

    assert [9_000] == [of.time_ms for of in reported.events if of.kind == "epoch_anomaly"]
    assert ["target_overlap/"] == [*reported.states["g"].open("epoch_anomaly")]
