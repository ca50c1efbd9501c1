"""Conditions without a record: overdue rebalances and abandoned rolls, reported by the clock."""

from dataclasses import replace

import pytest

from coordinator_model.clocked import stuck
from coordinator_model.groups import streams
from coordinator_model.kinds.table import sentence
from coordinator_model.replica import Replica
from coordinator_model.rules.rebalances import DEFAULT_REBALANCE_TIMEOUT_MS
from coordinator_model.state.events import Event, event_view
from coordinator_model.state.findings import Position
from coordinator_model.state.group_state import GroupState
from lab import builders
from lab.builders import (
    RecordBytes,
    classic_member_metadata,
    consumer_group_current_assignment,
    consumer_group_epoch,
    consumer_group_member_subscription,
    consumer_group_target_assignment,
    consumer_group_target_assignment_epoch,
    subscription,
    topic_id,
)
from lab.coordinator_events import consumer_join, consumer_moves, retarget, speaks_classic, throttled_consumer_join
from tests.histories import Moment, at, history
from tests.moments import overdue

WRITTEN_MS = 1_000_000
TIMEOUT_MS = 30_000


def group_after(*records: RecordBytes) -> GroupState:
    """A group as one coordinator event left it."""
    replica = Replica()
    for offset, (key, value) in enumerate(records):
        replica.replay(Position(0, offset, WRITTEN_MS), key, value)
    replica.settle()
    return replica.groups["g"]


def kinds(state: GroupState, after_ms: int) -> list[str]:
    """Kinds of what is overdue so long after the last record."""
    return [event.kind for event in overdue(state, WRITTEN_MS + after_ms)]


def revoking() -> GroupState:
    """A member that has to give up a partition and has not yet."""
    return group_after(
        consumer_group_member_subscription("g", "a", topics=["t"], rebalance_timeout_ms=TIMEOUT_MS),
        consumer_group_epoch("g", 3),
        consumer_group_target_assignment("g", "a", {"t": [0]}),
        consumer_group_target_assignment_epoch("g", 3),
        consumer_group_current_assignment(
            "g", "a", epoch=2, state=1, assigned={"t": [0]}, pending_revocation={"t": [1]}
        ),
    )


def mixed() -> GroupState:
    """A group of a classic and a consumer-protocol member, both where they should be."""
    return group_after(
        consumer_group_member_subscription(
            "g", "a", topics=["t"], classic=classic_member_metadata(range=subscription(["t"]))
        ),
        consumer_group_member_subscription("g", "b", topics=["t"]),
        consumer_group_epoch("g", 2),
        consumer_group_target_assignment_epoch("g", 2),
        consumer_group_current_assignment("g", "a", epoch=2),
        consumer_group_current_assignment("g", "b", epoch=2),
    )


def test_member_past_its_rebalance_timeout_is_stuck_and_named_with_what_it_holds() -> None:
    """The finding says who is waited for, and which partitions it will not release."""
    (event,) = overdue(revoking(), WRITTEN_MS + TIMEOUT_MS + stuck.GRACE_MS + 1)

    assert "rebalance_stuck" == event.kind
    assert event.inferred
    (member,) = event.detail["members"]
    assert "a" == member["member_id"]
    assert [[1]] == list(member["will_not_release"].values())


def test_member_within_its_rebalance_timeout_is_not_stuck() -> None:
    """Revoking takes as long as the member was promised."""
    assert [] == kinds(revoking(), TIMEOUT_MS + stuck.GRACE_MS)


def test_target_that_is_never_computed_is_a_stuck_assignor() -> None:
    """A group epoch ahead of the assignment epoch for a minute is no member's revocation."""
    state = group_after(
        consumer_group_member_subscription("g", "a", topics=["t"], rebalance_timeout_ms=TIMEOUT_MS * 100),
        consumer_group_target_assignment_epoch("g", 2),
        consumer_group_current_assignment("g", "a", epoch=2),
        consumer_group_epoch("g", 3),
    )

    assert [] == kinds(state, stuck.ASSIGNING_MS)
    assert ["rebalance_stuck"] == kinds(state, stuck.ASSIGNING_MS + 1)


def test_streams_member_that_holds_a_standby_task_is_named() -> None:
    """Another waits for the task; the one that has it, and has to revoke it as a standby, is named with it."""
    state = group_after(
        builders.streams_group_member("g", "a", rebalance_timeout_ms=TIMEOUT_MS),
        builders.streams_group_member("g", "b", client_id="b-1", rebalance_timeout_ms=TIMEOUT_MS),
        builders.streams_group_epoch("g", 3, validated_topology_epoch=0),
        builders.streams_group_target_assignment("g", "a", active={"0": [2]}),
        builders.streams_group_target_assignment("g", "b"),
        builders.streams_group_target_assignment_epoch("g", 3),
        builders.streams_group_current_assignment("g", "a", epoch=3, state=streams.MEMBER_UNRELEASED),
        builders.streams_group_current_assignment(
            "g", "b", epoch=2, state=streams.MEMBER_UNREVOKED, standby_pending_revocation={"0": [2]}
        ),
    )
    (event,) = overdue(state, WRITTEN_MS + TIMEOUT_MS + stuck.GRACE_MS + 1)

    assert [("b", {"0": [2]})] == [(late["member_id"], late["will_not_release"]) for late in event.detail["members"]]


def test_who_holds_what_a_member_waits_for_in_vain_is_named() -> None:
    """It is at the target by its own record, and has a standby task that another is to run."""
    state = group_after(
        builders.streams_group_member("g", "a", rebalance_timeout_ms=TIMEOUT_MS),
        builders.streams_group_member("g", "b", client_id="b-1", rebalance_timeout_ms=TIMEOUT_MS),
        builders.streams_group_epoch("g", 3, validated_topology_epoch=0),
        builders.streams_group_target_assignment("g", "a", active={"0": [2]}),
        builders.streams_group_target_assignment("g", "b", standby={"0": [2]}),
        builders.streams_group_target_assignment_epoch("g", 3),
        builders.streams_group_current_assignment("g", "a", epoch=3, state=streams.MEMBER_UNRELEASED),
        builders.streams_group_current_assignment("g", "b", epoch=3, state=streams.MEMBER_STABLE, standby={"0": [2]}),
    )
    (event,) = overdue(state, WRITTEN_MS + TIMEOUT_MS + stuck.GRACE_MS + 1)

    (late,) = event.detail["members"]
    assert [("b", "standby", {"0": [2]})] == [(of["member_id"], of["as"], of["partitions"]) for of in late["held_by"]]


def test_stable_group_is_never_overdue() -> None:
    """Silence of a group that is where it should be means nothing."""
    state = group_after(
        consumer_group_member_subscription("g", "a", topics=["t"]),
        consumer_group_epoch("g", 2),
        consumer_group_target_assignment_epoch("g", 2),
        consumer_group_current_assignment("g", "a", epoch=2),
    )

    assert [] == kinds(state, 10**9)


def test_roll_that_nobody_goes_on_with_is_stalled_after_half_an_hour() -> None:
    """A mixed group in which no member came or went for half an hour."""
    assert [] == kinds(mixed(), stuck.STALLED_MS)
    assert ["migration_stalled"] == kinds(mixed(), stuck.STALLED_MS + 1)


def test_stalled_roll_names_who_is_still_on_the_classic_protocol() -> None:
    """And what each of them is at: who is behind does not even rejoin."""
    reported = history(
        at(0, *consumer_join("g", "n", epoch=2, targets={"n": {"t": [0]}})),
        at(1_000, *consumer_join("g", "c", epoch=3, targets={"c": {"t": [0]}, "n": {}}, classic=speaks_classic())),
    ).replayed()
    (event,) = (of for of in overdue(reported.states["g"], 1_001 + stuck.STALLED_MS) if of.kind == "migration_stalled")

    assert {"c": "settled"} == event.detail["classic_members"]


# -- whom it is waited for, and since when ----------------------------------------------------------------------------

DAY_MS = 86_400_000
LATE_MS = DEFAULT_REBALANCE_TIMEOUT_MS + stuck.GRACE_MS
TWO = {"a": {"t": [0]}, "b": {"t": [1]}}
JOINS = (
    at(0, *consumer_join("g", "a", epoch=2, targets={"a": {"t": [0, 1]}})),
    at(1_000, *consumer_join("g", "b", epoch=3, targets=TWO, assigned={})),
)
REVOKES = at(2_000, *consumer_moves("g", "a", epoch=2, assigned={"t": [0]}, pending={"t": [1]}, state=1))


def stuck_events(*moments: Moment, at_ms: int, moved_ms: int | None = None, read_ms: int | None = None) -> list[Event]:
    """What is overdue at that time of a history."""
    return overdue(history(*moments).replayed().states["g"], at_ms, moved_ms, read_ms)


def test_only_who_holds_it_up_is_named() -> None:
    """The member that waits for the other's partitions has done its part, however long it waits."""
    (event,) = stuck_events(*JOINS, REVOKES, at_ms=2_000 + LATE_MS + 1)

    assert ("members", ["a"]) == (event.detail["waiting_for"], [of["member_id"] for of in event.detail["members"]])
    assert {topic_id("t"): [1]} == event.detail["members"][0]["will_not_release"]


def test_time_of_a_member_begins_again_with_each_record_of_it() -> None:
    """With each the coordinator restarts its timer; what is written of others changes nothing."""
    again = at(100_000, *consumer_moves("g", "a", epoch=2, assigned={}, pending={"t": [0, 1]}, state=1))
    of_other = at(100_000, *consumer_moves("g", "b", epoch=3, previous_epoch=3, assigned={}, state=2))

    assert [] == stuck_events(*JOINS, REVOKES, again, at_ms=2_000 + LATE_MS + 1)
    assert [] != stuck_events(*JOINS, REVOKES, again, at_ms=100_000 + LATE_MS + 1)
    assert [] != stuck_events(*JOINS, REVOKES, of_other, at_ms=2_000 + LATE_MS + 1)


def test_one_that_waits_in_vain_is_reported_when_nobody_holds_it_up() -> None:
    """All others are at the target, and the partition still does not come: that should not be possible."""
    settled = at(2_000, *consumer_moves("g", "a", epoch=3, assigned={"t": [0]}))
    (event,) = stuck_events(*JOINS, settled, at_ms=1_000 + LATE_MS + 1)

    assert "partitions" == event.detail["waiting_for"]
    assert [("b", {topic_id("t"): [1]})] == [(of["member_id"], of["awaits"]) for of in event.detail["members"]]
    assert [] == stuck_events(*JOINS, settled, at_ms=1_000 + LATE_MS)


def test_one_that_waits_says_who_still_holds_it() -> None:
    """Who has it, or has yet to revoke it, by client and host; no member where it is free."""
    targets = {"a": {"t": [0]}, "b": {"t": [1]}}
    held = at(2_000, *consumer_moves("g", "a", epoch=3, assigned={"t": [0, 1]}))
    free = at(2_000, *consumer_moves("g", "a", epoch=3, assigned={"t": [0]}))
    joins = at(1_000, *consumer_join("g", "b", epoch=3, targets=targets, assigned={}))
    (waits,) = stuck_events(JOINS[0], joins, held, at_ms=2_000 + LATE_MS + 1)
    (in_vain,) = stuck_events(JOINS[0], joins, free, at_ms=2_000 + LATE_MS + 1)

    (holder,) = waits.detail["members"][0]["held_by"]
    assert ("a", {topic_id("t"): [1]}) == (holder["member_id"], holder["partitions"])
    assert holder["client_host"] in sentence(event_view(waits))
    assert [] == in_vain.detail["members"][0]["held_by"]


def test_it_is_one_finding_whatever_is_written_meanwhile() -> None:
    """It has the place of the record that began the rebalance, so it is reported once."""
    third = at(200_000, *throttled_consumer_join("g", "c", epoch=4, assignment_epoch=3))
    (first,) = stuck_events(*JOINS, REVOKES, at_ms=2_000 + LATE_MS + 1)
    (later,) = stuck_events(*JOINS, REVOKES, third, at_ms=900_000)

    assert first.id == later.id
    assert (1_000, 1_000) == (first.time_ms, later.time_ms)


def test_target_that_is_computed_again_and_again_is_no_stuck_assignor() -> None:
    """Members come faster than targets are computed, but they are computed."""
    moments = [*JOINS[:1]]
    for turn in range(100):
        joins = throttled_consumer_join("g", f"m{turn}", epoch=4 + 2 * turn, assignment_epoch=2)
        moments.append(at(1_000 * turn + 1_000, *retarget("g", 3 + 2 * turn, {"a": {"t": [0]}}), *joins))

    assert [] == [of for of in stuck_events(*moments, at_ms=101_000) if of.detail["waiting_for"] == "assignor"]


def test_no_time_runs_from_before_the_coordinator_moved() -> None:
    """The new one restarts every timer when it has loaded the group, and says so once it is late by its own."""
    assert [] == stuck_events(*JOINS, REVOKES, at_ms=2_000 + LATE_MS + 1, moved_ms=50_000)
    (event,) = stuck_events(*JOINS, REVOKES, at_ms=50_000 + LATE_MS + 1, moved_ms=50_000)

    assert event.detail["coordinator_moved"]


def test_coordinator_that_moved_before_the_rebalance_has_no_part_in_it() -> None:
    """Nor one that moved just then, or never."""
    for moved_ms in (None, 0, 1_000):
        (event,) = stuck_events(*JOINS, REVOKES, at_ms=2_000 + LATE_MS + 1, moved_ms=moved_ms)

        assert "coordinator_moved" not in event.detail


def test_stalled_roll_is_one_finding_too() -> None:
    """Heartbeats of classic members write records, and no member comes or goes."""
    replica = Replica()
    records = [
        consumer_group_member_subscription("g", "a", classic=speaks_classic()),
        consumer_group_member_subscription("g", "b"),
        consumer_group_epoch("g", 2),
        consumer_group_target_assignment_epoch("g", 2),
        consumer_group_current_assignment("g", "a", epoch=2),
        consumer_group_current_assignment("g", "b", epoch=2),
    ]
    for offset, (key, value) in enumerate(records):
        replica.replay(Position(0, offset, WRITTEN_MS), key, value)
    replica.settle()
    now_ms = WRITTEN_MS + stuck.STALLED_MS + 1
    ids = [event.id for event in overdue(replica.groups["g"], now_ms)]
    replica.replay(Position(0, 9, WRITTEN_MS + 5_000), *consumer_group_member_subscription("g", "b", rack_id="r"))
    replica.settle()

    assert ids == [event.id for event in overdue(replica.groups["g"], now_ms)]
    assert 1 == len(ids)


@pytest.mark.parametrize("ahead_ms", [-DAY_MS, 365 * DAY_MS])
def test_time_of_a_wrong_clock_runs_from_when_it_was_read(ahead_ms: int) -> None:
    """Records a day old as they come hang no rebalance, nor do those of next year hide one that hangs."""
    read_ms = 1_000 * DAY_MS
    jumped = [replace(moment, time_ms=read_ms + ahead_ms + moment.time_ms) for moment in (*JOINS, REVOKES)]

    def reported(after_ms: int, read: int | None = read_ms) -> list[int]:
        found = stuck_events(*jumped, at_ms=read_ms + after_ms, read_ms=read)
        return [of.detail["rebalancing_ms"] for of in found]

    assert [] == reported(LATE_MS)
    assert [LATE_MS + 1] == reported(LATE_MS + 1)
    assert [LATE_MS + 1] != reported(LATE_MS + 1, read=None)


def test_classic_member_that_does_not_rejoin_shows_what_it_holds_beyond_its_target() -> None:
    """Nothing is written of it while it stays away: what others wait for is what it has and is to give up."""
    state = group_after(
        consumer_group_member_subscription(
            "g",
            "a",
            topics=["t"],
            rebalance_timeout_ms=TIMEOUT_MS,
            classic=classic_member_metadata(range=subscription(["t"])),
        ),
        consumer_group_member_subscription("g", "b", topics=["t"], rebalance_timeout_ms=TIMEOUT_MS),
        consumer_group_epoch("g", 3),
        consumer_group_target_assignment("g", "a", {"t": [0]}),
        consumer_group_target_assignment("g", "b", {"t": [1]}),
        consumer_group_target_assignment_epoch("g", 3),
        consumer_group_current_assignment("g", "a", epoch=2, assigned={"t": [0, 1]}),
        consumer_group_current_assignment("g", "b", epoch=3, state=2, assigned={}),
    )

    (event,) = overdue(state, WRITTEN_MS + TIMEOUT_MS + 20_000)
    (member,) = event.detail["members"]

    assert ("a", {topic_id("t"): [1]}) == (member["member_id"], member["will_not_release"])


def test_member_that_has_still_to_revoke_awaits_nothing() -> None:
    """It is given the partitions of others only after it has let go of its own."""
    to_swap = retarget("g", 3, {"a": {"t": [0, 2]}, "b": {"t": [1]}})
    (event,) = stuck_events(*JOINS, at(1_500, *to_swap), REVOKES, at_ms=2_000 + LATE_MS + 1)
    (member,) = event.detail["members"]

    assert ("a", {topic_id("t"): [1]}, {}) == (member["member_id"], member["will_not_release"], member["awaits"])


def test_member_that_waits_for_partitions_of_a_former_target_is_late() -> None:
    """It has to call in for the new target: nothing that another member does moves it on."""
    settled = at(2_000, *consumer_moves("g", "a", epoch=3, assigned={"t": [0]}))
    waits = at(2_000, *consumer_moves("g", "b", epoch=3, assigned={}, state=2))
    grown = {"a": {"t": [0, 2]}, "b": {"t": [1]}}
    moves_on = at(3_000, consumer_group_epoch("g", 4), *retarget("g", 4, grown))
    arrives = at(4_000, *consumer_moves("g", "a", epoch=4, previous_epoch=3, assigned={"t": [0, 2]}))
    (event,) = stuck_events(*JOINS, settled, waits, moves_on, arrives, at_ms=4_000 + LATE_MS + 1)

    assert ("members", ["b"]) == (event.detail["waiting_for"], [of["member_id"] for of in event.detail["members"]])
    assert {} == event.detail["members"][0]["awaits"]


def test_stalled_roll_says_how_many_members_there_are() -> None:
    """Of both protocols together, and the upgraded ones."""
    (event,) = overdue(mixed(), WRITTEN_MS + stuck.STALLED_MS + 1)

    assert (2, 1) == (event.detail["members"], event.detail["upgraded_members"])


def test_member_that_waits_awaits_what_it_does_not_hold_yet() -> None:
    """A topic that it has whole is not named."""
    targets = {"a": {"t": [0]}, "b": {"t": [1], "u": [0]}}
    joins = at(1_000, *consumer_join("g", "b", epoch=3, targets=targets, assigned={"u": [0]}))
    done = at(2_000, *consumer_moves("g", "a", epoch=3, assigned={"t": [0]}))
    (event,) = stuck_events(JOINS[0], joins, done, at_ms=2_000 + LATE_MS + 1)
    (member,) = event.detail["members"]

    assert ("partitions", "b", {topic_id("t"): [1]}) == (
        event.detail["waiting_for"],
        member["member_id"],
        member["awaits"],
    )
