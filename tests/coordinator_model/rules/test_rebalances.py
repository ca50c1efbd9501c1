"""Rebalances: begun and completed once each, with their cause, their cost, and storms of them."""

from typing import Any

import pytest

from coordinator_model.rules.handovers import REMEMBERED_MS
from coordinator_model.rules.rebalance_storm import (
    STORM_REBALANCES,
    STORM_REBALANCES_A_MEMBER,
    STORM_WINDOW_MS,
)
from coordinator_model.rules.rebalances import under_way
from coordinator_model.state.rule_memory import REBALANCE_DURATION_BUCKETS_MS, GroupCounters
from lab.builders import (
    RecordBytes,
    consumer_group_current_assignment,
    consumer_group_epoch,
    consumer_group_member_subscription,
    consumer_group_target_assignment_epoch,
    group_metadata,
    member,
    streams_group_current_assignment,
    streams_group_epoch,
    streams_group_member,
    streams_group_target_assignment_epoch,
)
from lab.coordinator_events import (
    consumer_join,
    consumer_leave,
    consumer_moves,
    converted_to_consumer,
    retarget,
    speaks_classic,
)
from tests.histories import Moment, Reported, at, history
from tests.moments import overdue


def rebalances(reported: Reported) -> list[tuple[int, str]]:
    """(time, kind) of what was reported of rebalances."""
    return [(event.time_ms, event.kind) for event in reported.events if event.kind.startswith("rebalance_")]


def completed(reported: Reported) -> list[dict[str, Any]]:
    """Details of completed rebalances."""
    return reported.details("rebalance_completed")


# -- duration ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("duration_ms", "bucket"),
    [(0, 0), (100, 0), (101, 1), (2_500, 4), (300_000, 9), (300_001, 10), (10**9, 10)],
)
def test_duration_falls_into_the_first_bucket_that_bounds_it(duration_ms: int, bucket: int) -> None:
    """A bound belongs to its bucket; the last bucket has none."""
    counters = GroupCounters()

    counters.observe_duration(duration_ms)

    assert [int(number == bucket) for number in range(len(REBALANCE_DURATION_BUCKETS_MS) + 1)] == (
        counters.duration_buckets
    )
    assert duration_ms == counters.duration_sum_ms


def test_rebalance_lasts_from_its_first_epoch_to_the_last_members_arrival() -> None:
    """In the consumer protocol both ends are in the log."""
    reported = history(
        at(1_000, *consumer_join("g", "a", epoch=2, targets={"a": {"t": [0, 1]}})),
        at(2_000, *consumer_join("g", "b", epoch=3, targets={"b": {"t": [1]}, "a": {"t": [0]}}, assigned={})),
        at(5_000, *consumer_moves("g", "a", epoch=3, assigned={"t": [0]})),
        at(9_500, *consumer_moves("g", "b", epoch=3, assigned={"t": [1]})),
    ).replayed()

    assert [0, 7_500] == [detail["duration_ms"] for detail in completed(reported)]
    assert [0, 1] == [detail["partitions_moved"] for detail in completed(reported)]
    counters = reported.states["g"].counters
    assert (2, 1, 7_500, 1, 1) == (
        counters.rebalances,
        counters.partitions_moved,
        counters.duration_sum_ms,
        counters.duration_buckets[0],
        counters.duration_buckets[6],
    )


def test_rebalance_under_way_is_kept_with_its_beginning() -> None:
    """What is stuck is found by its age, as nothing is written then."""
    reported = history(
        at(1_000, *consumer_join("g", "a", epoch=2, targets={"a": {"t": [0]}})),
        at(2_000, *consumer_join("g", "b", epoch=3, targets={"b": {"t": [0]}, "a": {}}, assigned={})),
    ).replayed()

    rebalance = reported.states["g"].rebalance
    assert rebalance is not None
    assert (2_000, 2, ("join",)) == (rebalance.since_ms, rebalance.from_epoch, rebalance.causes)


def test_timestamps_that_go_back_give_no_negative_duration() -> None:
    """The coordinator may move to a broker whose clock is behind."""
    reported = history(
        at(9_000, *consumer_join("g", "a", epoch=2, targets={"a": {"t": [0]}})),
        at(9_500, *consumer_join("g", "b", epoch=3, targets={"b": {"t": [0]}, "a": {}}, assigned={})),
        at(9_100, *consumer_moves("g", "a", epoch=3, assigned={})),
        at(9_200, *consumer_moves("g", "b", epoch=3, assigned={"t": [0]})),
    ).replayed()

    assert [0, 0] == [detail["duration_ms"] for detail in completed(reported)]


def test_group_without_members_is_not_between_targets() -> None:
    """Its epoch moved on as the last one left, and no target is computed for none."""
    reported = history(
        at(1_000, *consumer_join("g", "a", epoch=2, targets={"a": {"t": [0]}})),
        at(2_000, *consumer_leave("g", "a", epoch=3)),
    ).replayed()
    group = reported.states["g"].membership.modern_group

    assert group is not None
    assert (3, 2, False) == (group.epoch, group.assignment_epoch, under_way(group))


def test_rebalance_ends_with_the_last_member() -> None:
    """A group that empties completes nothing."""
    reported = history(
        at(1_000, *consumer_join("g", "a", epoch=2, targets={"a": {"t": [0]}})),
        at(2_000, *consumer_join("g", "b", epoch=3, targets={"b": {"t": [0]}, "a": {}}, assigned={})),
        at(3_000, *consumer_leave("g", "a", "b", epoch=4)),
        at(60_000, *consumer_join("g", "c", epoch=5, targets={"c": {"t": [0]}})),
    ).replayed()

    assert [
        (1_000, "rebalance_started"),
        (1_000, "rebalance_completed"),
        (2_000, "rebalance_started"),
        (60_000, "rebalance_started"),
        (60_000, "rebalance_completed"),
    ] == rebalances(reported)


def test_group_met_half_way_tells_nothing_until_both_epochs_are_known() -> None:
    """In a compacted log a member may come before the epochs: that is not a rebalance."""
    reported = history(
        at(1_000, consumer_group_current_assignment("g", "a", epoch=7, assigned={"t": [0]})),
        at(1_100, consumer_group_member_subscription("g", "a")),
        at(1_200, consumer_group_epoch("g", 7)),
    ).replayed()

    assert [] == rebalances(reported)


@pytest.mark.parametrize(
    "known",
    [
        [consumer_group_current_assignment("g", member_id, epoch=epoch) for member_id, epoch in (("a", 7), ("b", 0))],
        [consumer_group_current_assignment("g", "b", epoch=0)],
    ],
    ids=["one stands elsewhere", "of one it is not known"],
)
def test_group_met_half_way_is_no_new_one_for_a_member_that_is_new(known: list[RecordBytes]) -> None:
    """One member stands where memory starts; the other has been there for long, or may have."""
    reported = history(
        at(
            1_000,
            *known,
            consumer_group_member_subscription("g", "a"),
            consumer_group_member_subscription("g", "b"),
            consumer_group_epoch("g", 8),
        )
    ).replayed()

    assert [] == rebalances(reported)


# -- cost -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("generations", "kept", "moved"),
    [
        ([{}, {"a": {"t": [0, 1]}}], 0, 0),
        ([{"a": {"t": [0, 1]}}, {"a": {"t": [0, 1]}}], 2, 0),
        ([{"a": {"t": [0, 1]}}, {"a": {"t": [0]}, "b": {"t": [1]}}], 1, 1),
        ([{"a": {"t": [0, 1]}}, {"a": {"t": [0]}}], 1, 0),
        ([{"a": {"t": [0, 1]}}, {"a": {"t": [0]}}, {"a": {"t": [0]}, "b": {"t": [1]}}], 1, 1),
        ([{"a": {"t": [0, 1]}}, {"a": {"t": [0]}}, {"a": {"t": [0, 1]}}], 1, 0),
        ([{"a": {"t": [0]}}, {}, {"b": {"t": [0]}}], 0, 1),
        ([{"a": {"t": [0]}}, {}, {"a": {"t": [0]}}], 0, 0),
        ([{"a": {"t": [0]}, "b": {"t": [1]}}, {"a": {"t": [1]}, "b": {"t": [0]}}], 0, 2),
        ([{"a": {"t": [0]}}, {"b": {"u": [0]}}], 0, 0),
        ([{"a": {"t": [0, 1]}}, {"a": {"t": [0]}, "b": {"t": [1]}}, {"a": {"t": [0, 2]}, "b": {"t": [1]}}], 2, 0),
    ],
    ids=[
        *("first owner", "kept", "one handed over", "one given up", "given up and taken", "given up and taken back"),
        *("by way of an empty group", "back after an empty group", "swapped", "another topic", "taken a round before"),
    ],
)
def test_partition_has_moved_when_another_owner_takes_it(generations: Any, kept: int, moved: int) -> None:
    """From its last owner: a generation with no owner in between hides nothing. Giving up alone is neither."""
    moments = [
        at(1_000 * turn, group_metadata("g", generation=turn, members=[member(id_, of) for id_, of in owners.items()]))
        for turn, owners in enumerate(generations, 1)
    ]

    last = completed(history(*moments).replayed())[-1]

    assert (kept, moved) == (last["partitions_kept"], last["partitions_moved"])


@pytest.mark.parametrize(("later_ms", "moved"), [(REMEMBERED_MS, 1), (REMEMBERED_MS + 1, 0)])
def test_last_owner_is_remembered_for_minutes(later_ms: int, moved: int) -> None:
    """A member that begins when everything was stopped for longer takes over from none."""
    reported = history(
        at(0, group_metadata("g", generation=1, members=[member("a", {"t": [0]})])),
        at(1_000, group_metadata("g", generation=2)),
        at(1_000 + later_ms, group_metadata("g", generation=3, members=[member("b", {"t": [0]})])),
    ).replayed()

    assert moved == reported.states["g"].counters.partitions_moved


def test_stickiness_is_the_share_of_partitions_that_stayed() -> None:
    """Where none had an owner before there is no share."""
    reported = history(
        at(0, group_metadata("g", generation=1, members=[])),
        at(1_000, group_metadata("g", generation=2, members=[member("a", {"t": [0, 1, 2, 3]})])),
        at(2_000, group_metadata("g", generation=3, members=[member("a", {"t": [0, 1, 2]}), member("b", {"t": [3]})])),
    ).replayed()

    assert [(0, None), (3, 0.75)] == [(of["partitions_kept"], of["stickiness"]) for of in completed(reported)]
    assert (3, 1) == (reported.states["g"].counters.partitions_kept, reported.states["g"].counters.partitions_moved)


def test_static_members_partitions_stay_with_its_instance() -> None:
    """It came back under another member id with what it had."""
    reported = history(
        at(0, group_metadata("g", generation=1, members=[member("i-1", {"t": [0, 1]}, instance_id="i")])),
        at(1_000, group_metadata("g", generation=2, members=[member("i-2", {"t": [0, 1]}, instance_id="i")])),
    ).replayed()

    assert [0] == [detail["partitions_moved"] for detail in completed(reported)]


# -- causes -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "after", "causes"),
    [
        ([member("a", {"t": [0]})], [member("a", {"t": [0]}), member("b", {})], ["join"]),
        ([member("a", {"t": [0]}), member("b", {})], [member("a", {"t": [0]})], ["leave"]),
        ([member("a", {"t": [0]})], [member("b", {"t": [0]})], ["join", "leave"]),
        (
            [member("a", {"t": [0]}, instance_id="i")],
            [member("b", {"t": [0]}, instance_id="i")],
            ["static_return"],
        ),
        ([member("a", {"t": [0]})], [member("a", {"u": [0]}, topics=["u"])], ["subscription"]),
        ([member("a", {"t": [0]}, owned={"t": [0, 1]})], [member("a", {"t": [0, 1]})], ["follow_up"]),
        ([member("a", {"t": [0]})], [member("a", {"t": [0, 1]})], ["partition_count"]),
        ([member("a", {"t": [0]}, instance_id="i"), member("b", {})], [member("b", {"t": [0]})], ["expiry"]),
        ([member("a", {"t": [0]})], [member("a", {"t": [0]})], ["rejoin"]),
    ],
    ids=["join", "leave", "both", "static return", "subscription", "follow-up", "growth", "expiry", "rejoin"],
)
def test_cause_is_what_differs_between_two_generations(before: Any, after: Any, causes: list[str]) -> None:
    """The broker writes no reason down; several may hold at once."""
    reported = history(
        at(0, group_metadata("g", generation=1, members=before)),
        at(1_000, group_metadata("g", generation=2, members=after)),
    ).replayed()

    assert [causes] == [detail["causes"] for detail in completed(reported)]


def test_causes_of_one_rebalance_add_up() -> None:
    """Who comes and goes while it is under way belongs to it, each cause once and in order."""
    reported = history(
        at(0, *consumer_join("g", "a", epoch=2, targets={"a": {"t": [0]}})),
        at(1_000, *consumer_join("g", "b", epoch=3, targets={"b": {"t": [0]}, "a": {}}, assigned={})),
        at(2_000, *consumer_join("g", "c", epoch=4, targets={"c": {}}, assigned={})),
        at(3_000, *consumer_leave("g", "b", epoch=5)),
        at(4_000, consumer_group_epoch("g", 6, metadata_hash=9), *retarget("g", 6, {"a": {"t": [0]}, "c": {}})),
        at(5_000, *consumer_moves("g", "a", epoch=6, assigned={"t": [0]})),
        at(5_500, *consumer_moves("g", "c", epoch=6, assigned={})),
    ).replayed()

    assert [["join"], ["join", "leave", "metadata"]] == [detail["causes"] for detail in completed(reported)]


# -- streams groups ---------------------------------------------------------------------------------------------------


def test_streams_rebalance_ends_by_the_codes_of_streams_members() -> None:
    """1 is Stable there: 0 and 2 would be another family's words."""
    reported = history(
        at(
            0,
            streams_group_member("w", "a"),
            streams_group_epoch("w", 2),
            streams_group_target_assignment_epoch("w", 2),
            streams_group_current_assignment("w", "a", epoch=2, state=3),
        ),
        at(1_000, streams_group_current_assignment("w", "a", epoch=2, state=1)),
    ).replayed()

    assert [(0, "rebalance_started"), (1_000, "rebalance_completed")] == rebalances(reported)


# -- storms -----------------------------------------------------------------------------------------------------------


def _generations(count: int, every_ms: int) -> list[Moment]:
    """As many completed rebalances, after a first generation that is none."""
    return [
        at(turn * every_ms, group_metadata("g", generation=turn + 1, members=[member("a", {"t": [0]})]))
        for turn in range(count + 1)
    ]


ENOUGH = STORM_REBALANCES + STORM_REBALANCES_A_MEMBER + 1
"""Rebalances that make a storm in a group of one."""


def test_storm_is_reported_once_when_it_begins() -> None:
    """More rebalances in five minutes than restarting every member would take."""
    reported = history(*_generations(ENOUGH + 10, every_ms=1_000)).replayed()

    (event,) = (event for event in reported.events if event.kind == "rebalance_storm")
    assert (ENOUGH * 1_000, "warning", True) == (event.time_ms, event.severity, event.inferred)
    assert {"rebalances": ENOUGH, "window_ms": STORM_WINDOW_MS, "members": 1} == event.detail
    assert reported.states["g"].open("rebalance_storm")


def test_one_rebalance_less_is_no_storm() -> None:
    """Nor is the same number over a longer time."""
    assert {} == history(*_generations(ENOUGH - 1, every_ms=1_000)).replayed().alarms()
    assert {} == history(*_generations(4 * ENOUGH, every_ms=STORM_WINDOW_MS // (ENOUGH - 2))).replayed().alarms()


def test_conversion_is_no_rebalance_of_a_storm() -> None:
    """Somebody rolls the group: one rebalance less than a storm, and the upgrade, are none."""
    upgraded = at(
        ENOUGH * 1_000,
        *converted_to_consumer("g", generation=ENOUGH, members={"a": {"t": [0]}}),
        *consumer_join("g", "b", epoch=ENOUGH + 1, targets={"b": {"t": [1]}, "a": {"t": [0]}}),
        *consumer_moves("g", "a", epoch=ENOUGH + 1, assigned={"t": [0]}),
    )
    reported = history(*_generations(ENOUGH - 1, every_ms=1_000), upgraded).replayed()

    assert ["conversion", "join"] == completed(reported)[-1]["causes"]
    assert ENOUGH - 1 == len(reported.states["g"].recent_rebalances_ms)
    assert {} == reported.alarms()


def test_rolling_restart_is_no_storm() -> None:
    """Every member leaves and joins once, which is two rebalances a member."""
    ids = [f"m{number}" for number in range(12)]
    moments = [at(0, group_metadata("g", generation=1, members=[member(of, {}) for of in ids]))]
    for turn, old in enumerate(ids):
        without = [of for of in ids if of != old]
        ids = [*without, f"{old}-new"]
        for step, present in enumerate((without, ids), 1):
            generation = 2 * turn + step + 1
            members = [member(of, {}) for of in present]
            moments.append(at(generation * 5_000, group_metadata("g", generation=generation, members=members)))

    assert {} == history(*moments).replayed().alarms()


def _scaled_in(members: int, to: int, every_ms: int = 4_000) -> list[Moment]:
    """A classic group of so many members, of which one after another leaves."""
    return [
        at(
            turn * every_ms,
            group_metadata("g", generation=turn + 1, members=[member(f"m{n}", {}) for n in range(left)]),
        )
        for turn, left in enumerate(range(members, to - 1, -1))
    ]


def test_group_that_is_scaled_in_storms_no_more_than_the_members_it_had_explain() -> None:
    """Forty members go to two, one after another: a rebalance each, which two members would not make."""
    reported = history(*_scaled_in(40, to=2)).replayed()

    assert 38 == len(reported.states["g"].recent_rebalances_ms)
    assert {} == reported.alarms()


def test_group_that_storms_after_it_was_scaled_in_is_measured_by_who_is_left() -> None:
    """Five minutes later the members it had explain nothing any more."""
    scaled = _scaled_in(40, to=2)
    later_ms = scaled[-1].time_ms + STORM_WINDOW_MS + 1
    left = [member("m0", {}), member("m1", {})]
    storming = [
        at(later_ms + turn * 1_000, group_metadata("g", generation=100 + turn, members=left))
        for turn in range(STORM_REBALANCES + 2 * STORM_REBALANCES_A_MEMBER + 1)
    ]
    reported = history(*scaled, *storming).replayed()

    assert [2] == [detail["members"] for detail in reported.details("rebalance_storm")]
    assert {("g", "rebalance_storm"): 1, ("g", "rebalance_rounds_lost"): 1} == reported.alarms()


def test_storm_of_a_group_that_is_scaled_in_rests_by_the_members_it_had() -> None:
    """It is over with half the rebalances that restarting all of them takes, and not with half of those left."""
    enough = STORM_REBALANCES + STORM_REBALANCES_A_MEMBER * 10 + 1
    ten = [member(f"m{n}", {}) for n in range(10)]
    moments = [at(turn * 1_000, group_metadata("g", generation=turn + 1, members=ten)) for turn in range(enough + 1)]
    last_ms = enough * 1_000
    gone = at(last_ms + 1_000, group_metadata("g", generation=enough + 2, members=[member("m0", {})]))
    state = history(*moments, gone).replayed().states["g"]

    half_gone_ms = (enough // 2 + 3) * 1_000 + STORM_WINDOW_MS
    assert state.open("rebalance_storm")
    assert [] == overdue(state, half_gone_ms - 10_000)
    assert [{"cleared": True}] == [event.detail for event in overdue(state, half_gone_ms)]


def test_follow_up_rounds_of_cooperative_rebalances_do_not_count() -> None:
    """Each rebalance takes two generations there; the second gives out what the first one took."""
    moments: list[Moment] = []
    for turn in range(2 * ENOUGH):
        both, one = {"t": [0, 1]}, {"t": [0]}
        present = member("a", both, owned=one) if turn % 2 else member("a", one, owned=both)
        moments.append(at(turn * 1_000, group_metadata("g", generation=turn + 1, members=[present])))

    causes = [cause for detail in completed(history(*moments).replayed()) for cause in detail["causes"]]

    assert (ENOUGH, ENOUGH - 1) == (causes.count("follow_up"), causes.count("rejoin"))
    assert {} == history(*moments).replayed().alarms()


def test_group_of_both_protocols_storms_too() -> None:
    """That it is rolled from one to the other is when a storm is feared most."""

    def moments(classic_members: int) -> list[Moment]:
        said = [at(0, consumer_group_epoch("g", 1), consumer_group_target_assignment_epoch("g", 1))]
        for number in range(2):
            classic = speaks_classic() if number < classic_members else None
            joined = consumer_join("g", f"m{number}", epoch=number + 2, targets={f"m{number}": {}}, classic=classic)
            said.append(at(number + 1, *joined))
        for turn in range(2 * ENOUGH):
            settled = [consumer_moves("g", f"m{number}", epoch=turn + 4, assigned={})[0] for number in range(2)]
            bumped = [consumer_group_epoch("g", turn + 4), consumer_group_target_assignment_epoch("g", turn + 4)]
            said.append(at(1_000 * (turn + 1), *bumped, *settled))
        return said

    assert {("g", "rebalance_storm"): 1} == history(*moments(classic_members=0)).replayed().alarms()
    assert {("g", "rebalance_storm"): 1} == history(*moments(classic_members=1)).replayed().alarms()


def test_storm_over_and_begun_again_is_reported_again() -> None:
    """It is one as long as it lasts."""
    first = _generations(ENOUGH, every_ms=1_000)
    generation = len(first) + 1
    later = [
        at(10_000_000 + turn * 1_000, group_metadata("g", generation=generation + turn, members=[member("a", {})]))
        for turn in range(ENOUGH)
    ]

    reported = history(*first, *later).replayed()

    assert 2 == len(reported.details("rebalance_storm"))


def test_storm_that_is_over_is_said_by_the_clock() -> None:
    """Nothing is written when it ends; the event is the same however late one looks."""
    state = history(*_generations(ENOUGH, every_ms=1_000)).replayed().states["g"]
    last_ms = ENOUGH * 1_000

    assert [] == overdue(state, last_ms + STORM_WINDOW_MS // 2)
    (first,), (again,) = overdue(state, last_ms + STORM_WINDOW_MS + 1), overdue(state, 86_400_000)
    assert ("rebalance_storm", "info", True, {"cleared": True}, first.id) == (
        first.kind,
        first.severity,
        first.inferred,
        first.detail,
        again.id,
    )
    half = (STORM_REBALANCES + STORM_REBALANCES_A_MEMBER) // 2
    assert (ENOUGH - half) * 1_000 + STORM_WINDOW_MS == first.time_ms == again.time_ms


def test_storm_that_ended_before_another_began_is_said_to_have() -> None:
    """No one looked in between; what is reported of a storm twice is reported to be over twice."""
    first = _generations(ENOUGH, every_ms=1_000)
    later = [
        at(1_000_000 + turn * 1_000, group_metadata("g", generation=100 + turn, members=[member("a", {})]))
        for turn in range(ENOUGH)
    ]
    state = history(*first, *later).replayed().states["g"]

    assert [{"cleared": True}] == [event.detail for event in overdue(state, 1_030_000)]
    assert 2 == len({event.id for event in overdue(state, 3_000_000)})


def test_storm_does_not_end_and_begin_with_each_rebalance() -> None:
    """As many as make one are still one when a few are missing."""
    slow = (STORM_WINDOW_MS // (ENOUGH - 4)) * 3
    reported = history(
        *_generations(ENOUGH, every_ms=1_000),
        *(
            at(ENOUGH * 1_000 + turn * slow // 3, group_metadata("g", generation=100 + turn, members=[member("a", {})]))
            for turn in range(1, 60)
        ),
    ).replayed()

    assert 1 == len(reported.details("rebalance_storm"))
    assert reported.states["g"].open("rebalance_storm")


def test_consumer_groups_storm_too() -> None:
    """One member that joins and leaves again and again."""
    moments: list[Moment] = [at(0, *consumer_join("g", "a", epoch=2, targets={"a": {"t": [0]}}))]
    for turn in range(2 * ENOUGH):
        epoch = 3 + turn
        moments.append(
            at(
                (turn + 1) * 1_000,
                consumer_group_epoch("g", epoch, metadata_hash=turn),
                consumer_group_target_assignment_epoch("g", epoch),
                *consumer_moves("g", "a", epoch=epoch, assigned={"t": [0]}),
            )
        )

    assert {("g", "rebalance_storm"): 1} == history(*moments).replayed().alarms()
