"""Bugs of Kafka's brokers and clients, as the log of a consumer group that met them, and what the monitor says.

What a bug does to a group is from its issue; the histories are drawn up after it.
"""

from coordinator_model.clocked import stuck
from coordinator_model.rules import rebalances
from lab.builders import (
    group_metadata,
    group_metadata_tombstone,
    member,
    offset_commit,
    offset_commit_tombstone,
    topic_id,
)
from lab.coordinator_events import (
    consumer_join,
    consumer_leave,
    consumer_moves,
    converted_to_consumer,
    retarget,
    throttled_consumer_join,
)
from tests.histories import History, at, history
from tests.moments import overdue

T0 = f"{topic_id('t')}/0"

TWO_MEMBERS = (
    at(0, *consumer_join("g", "a", epoch=2, targets={"a": {"t": [0, 1]}})),
    at(5_000, *consumer_join("g", "b", epoch=3, targets={"a": {"t": [1]}, "b": {"t": [0]}}, assigned={})),
)


def test_kafka_16147_partition_is_assigned_to_two_members() -> None:
    """KAFKA-16147: the coordinator loses who owns t/0 and gives it to b while a has yet to revoke it.

    Critical as soon as b's record shows it, and over when a has let go.
    """
    reported = history(
        *TWO_MEMBERS,
        at(6_000, *consumer_moves("g", "a", epoch=2, assigned={"t": [1]}, pending={"t": [0]}, state=1)),
        at(7_000, *consumer_moves("g", "b", epoch=3, assigned={"t": [0]})),
        at(8_000, *consumer_moves("g", "a", epoch=3, assigned={"t": [1]})),
    ).replayed()

    assert [(7_000, "duplicate_assignment")] == reported.timed_alarms()
    (detail,) = reported.details("duplicate_assignment")
    assert {T0: ("a", "b")} == detail["partitions"]
    assert ["a", "b"] == [of["member_id"] for of in detail["members"]]
    assert "duplicate_assignment_cleared" in reported.kinds()[8_000]


def test_kafka_20442_empty_group_keeps_its_epoch_ahead_of_its_target() -> None:
    """KAFKA-20442: the last member's leaving bumps the group epoch, and no one is left for whom to compute a target.

    The group is Empty, not Assigning, no rebalance is under way, and none is found stuck however long it lasts.
    """
    reported = history(TWO_MEMBERS[0], at(9_000, *consumer_leave("g", "a", epoch=3))).replayed()

    assert "Empty 3/2" == reported.status("g")
    assert [] == reported.timed_alarms()
    assert [] == overdue(reported.states["g"], 9_000 + 7 * 86_400_000)


def test_kafka_20442_group_with_a_member_that_waits_for_its_target_is_reported() -> None:
    """The look-alike: somebody is there, and no target comes."""
    reported = history(
        TWO_MEMBERS[0], at(500, *throttled_consumer_join("g", "b", epoch=3, assignment_epoch=2))
    ).replayed()

    (event,) = overdue(reported.states["g"], 500 + stuck.ASSIGNING_MS + 1)
    assert ("rebalance_stuck", "assignor") == (event.kind, event.detail["waiting_for"])


def test_kafka_16224_commit_that_is_retried_for_ever_holds_a_partition() -> None:
    """KAFKA-16224: before it revokes, the member commits to a topic that is deleted, again and again.

    Nothing is written meanwhile; beyond its rebalance timeout the clock finds it, with what it holds. The coordinator
    removes it then, and if it does, that is reported too.
    """
    log = (
        *TWO_MEMBERS,
        at(6_000, *consumer_moves("g", "a", epoch=2, assigned={"t": [1]}, pending={"t": [0]}, state=1)),
    )
    late_ms = 6_000 + rebalances.DEFAULT_REBALANCE_TIMEOUT_MS + stuck.GRACE_MS + 1

    (event,) = overdue(history(*log).replayed().states["g"], late_ms)
    assert ("rebalance_stuck", "members") == (event.kind, event.detail["waiting_for"])
    assert [("a", {topic_id("t"): [0]})] == [
        (member["member_id"], member["will_not_release"]) for member in event.detail["members"]
    ]
    fenced = history(*log, at(late_ms, *consumer_leave("g", "a", epoch=4))).replayed()
    assert [(late_ms, "member_fenced")] == fenced.timed_alarms()


def without_members_of_the_new_protocol() -> History:
    """KAFKA-20273, KAFKA-17317: the last of them left or was replaced, and the group was not converted."""
    return history(
        at(0, group_metadata("g", generation=5, members=[member("c", {"t": [0, 1]})])),
        at(
            1_000,
            *converted_to_consumer("g", generation=5, members={"c": {"t": [0, 1]}}),
            *consumer_join("g", "n", epoch=6, targets={"c": {"t": [0]}, "n": {"t": [1]}}, assigned={}),
        ),
        at(2_000, *consumer_moves("g", "c", epoch=6, assigned={"t": [0]})),
        at(2_500, *consumer_moves("g", "n", epoch=6, assigned={"t": [1]})),
        at(10_000, *consumer_leave("g", "n", epoch=7), *retarget("g", 7, {"c": {"t": [0, 1]}})),
        at(11_000, *consumer_moves("g", "c", epoch=7, assigned={"t": [0, 1]})),
    )


def test_kafka_20273_consumer_group_of_classic_members_only() -> None:
    """It should be a classic group again, and lives on as a mixed one none of whose members is upgraded.

    No rule is broken by a record; a roll that no one goes on with is what it is reported as, after half an hour.
    """
    reported = without_members_of_the_new_protocol().replayed()

    shown = reported.view("g")["migration"]
    assert ("upgrading", 1, 0) == (shown["phase"], shown["members"], shown["upgraded_members"])
    assert [] == reported.timed_alarms()
    (event,) = overdue(reported.states["g"], 10_000 + stuck.STALLED_MS + 1)
    assert ("migration_stalled", 0) == (event.kind, event.detail["upgraded_members"])


def test_kafka_19163_group_is_deleted_while_a_transaction_commits_to_it() -> None:
    """KAFKA-19163, KAFKA-19164: the transaction's offset comes after the group's tombstone.

    A group that has only an offset begins; of the deleted one nothing comes back.
    """
    reported = history(
        at(0, group_metadata("g", generation=3), offset_commit("g", "t", 0, 5)),
        at(60_000, offset_commit_tombstone("g", "t", 0), group_metadata_tombstone("g")),
        at(61_000, offset_commit("g", "t", 0, 9)),
    ).replayed()

    assert (True, {"t/0": 9}) == (reported.view("g")["simple"], reported.offsets("g"))
    assert ["group_deleted", "group_created"] == [
        event.kind for event in reported.events if event.kind in ("group_deleted", "group_created")
    ][1:]
    assert [] == reported.timed_alarms()
