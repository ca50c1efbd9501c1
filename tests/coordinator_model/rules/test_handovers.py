"""Rewinds soon after a partition changed hands: the sign of a member that goes on with what it lost."""

from typing import Any

import pytest

from coordinator_model.rules.handovers import HANDOVER_WINDOW_MS, REMEMBERED_MS
from coordinator_model.wire.primitives import ZERO_UUID
from lab.builders import (
    RecordBytes,
    group_metadata,
    member,
    offset_commit,
    streams_group_current_assignment,
    streams_group_epoch,
    streams_group_member,
    streams_group_target_assignment_epoch,
    streams_group_topology,
)
from lab.coordinator_events import consumer_join, consumer_leave, consumer_moves, converted_to_consumer
from tests.histories import Moment, at, history

HANDED_MS = 10_000
FORWARD = at(1_000, offset_commit("g", "t", 1, 500), offset_commit("g", "t", 0, 500))

CLASSIC = (
    at(0, group_metadata("g", generation=1, members=[member("a", {"t": [0, 1]}), member("b", {})])),
    FORWARD,
    at(HANDED_MS, group_metadata("g", generation=2, members=[member("a", {"t": [0]}), member("b", {"t": [1]})])),
)
CONSUMER = (
    at(0, *consumer_join("g", "a", epoch=2, targets={"a": {"t": [0, 1]}})),
    FORWARD,
    at(8_000, *consumer_join("g", "b", epoch=3, targets={"b": {"t": [1]}, "a": {"t": [0]}}, assigned={})),
    at(9_000, *consumer_moves("g", "a", epoch=3, assigned={"t": [0]})),
    at(HANDED_MS, *consumer_moves("g", "b", epoch=3, assigned={"t": [1]})),
)


def streams_runs(member_id: str, tasks: list[int], epoch: int) -> RecordBytes:
    """A member of a streams group runs these tasks of subtopology 0."""
    return streams_group_current_assignment("g", member_id, epoch=epoch, active={"0": tasks})


STREAMS = (
    at(
        0,
        streams_group_topology("g", 0, {"0": ["t"]}),
        *(streams_group_member("g", member_id) for member_id in "ab"),
        streams_group_epoch("g", 2, validated_topology_epoch=0),
        streams_group_target_assignment_epoch("g", 2),
        streams_runs("a", [0, 1], 2),
        streams_runs("b", [], 2),
    ),
    FORWARD,
    at(
        HANDED_MS,
        streams_group_epoch("g", 3, validated_topology_epoch=0),
        streams_group_target_assignment_epoch("g", 3),
        streams_runs("a", [0], 3),
        streams_runs("b", [1], 3),
    ),
)


def rewound(*moments: Moment, partition: int = 1, at_ms: int = HANDED_MS + 1) -> tuple[bool, dict[str, Any]]:
    """(inferred, detail) of a rewind of the partition at that time."""
    reported = history(*moments, at(at_ms, offset_commit("g", "t", partition, 300))).replayed()
    (event,) = (event for event in reported.events if event.kind == "offset_rewound")
    return event.inferred, dict(event.detail)


@pytest.mark.parametrize("moments", [CLASSIC, CONSUMER, STREAMS], ids=["classic", "consumer", "streams"])
def test_rewind_after_a_hand_over_names_both_owners(moments: tuple[Moment, ...]) -> None:
    """The record has no author: it is the former owner's, or the present one's that began before its last commit."""
    inferred, detail = rewound(*moments)

    assert inferred
    assert ("a", "b", {"t": [1]}) == (detail["former_owner"], detail["present_owner"], detail["handed_over"])
    assert (True, HANDED_MS, False) == (detail["after_handover"], detail["handover_time"], detail["group_empty"])


@pytest.mark.parametrize("moments", [CLASSIC, CONSUMER, STREAMS], ids=["classic", "consumer", "streams"])
def test_rewind_of_a_partition_that_stayed_is_nobody_else_s(moments: tuple[Moment, ...]) -> None:
    """Its owner sought back."""
    inferred, detail = rewound(*moments, partition=0)

    assert (False, False) == (inferred, "after_handover" in detail)


@pytest.mark.parametrize(("late_ms", "reported"), [(HANDOVER_WINDOW_MS, True), (HANDOVER_WINDOW_MS + 1, False)])
def test_rewind_long_after_a_hand_over_has_nothing_to_do_with_it(late_ms: int, reported: bool) -> None:
    """Who polls once in five minutes knows by then that it lost the partition."""
    assert reported == rewound(*CLASSIC, at_ms=HANDED_MS + late_ms)[0]


def test_rewind_while_the_partition_is_between_two_owners() -> None:
    """The former one has given it up, the other one has not got it: no one should commit it."""
    inferred, detail = rewound(*CONSUMER[:-1], at_ms=9_500)

    assert (True, "a", None, 9_000) == (
        inferred,
        detail["former_owner"],
        detail["present_owner"],
        detail["handover_time"],
    )


SLOW_MS = 8_000 + REMEMBERED_MS + 120_000
"""When a member that was told so at 8 s has let go of a partition: twelve minutes later."""

SLOW_CONSUMER = (
    *CONSUMER[:2],
    at(8_000, *consumer_join("g", "b", epoch=3, targets={"b": {"t": [1]}, "a": {"t": [0]}}, assigned={})),
    at(8_001, *consumer_moves("g", "a", epoch=2, assigned={"t": [0]}, pending={"t": [1]}, state=1)),
    at(SLOW_MS, *consumer_moves("g", "a", epoch=3, assigned={"t": [0]})),
    at(SLOW_MS + 1_000, *consumer_moves("g", "b", epoch=3, assigned={"t": [1]})),
)
BOTH = {"t": [0, 1]}
SLOW_COOPERATIVE = (
    at(0, group_metadata("g", generation=1, members=[member("a", BOTH)], protocol="cooperative-sticky")),
    FORWARD,
    at(
        8_000,
        group_metadata(
            "g",
            generation=2,
            members=[member("a", {"t": [0]}, owned=BOTH, owned_generation=1), member("b", {})],
            protocol="cooperative-sticky",
        ),
    ),
    at(
        SLOW_MS,
        group_metadata(
            "g",
            generation=3,
            members=[member("a", {"t": [0]}, owned={"t": [0]}, owned_generation=2), member("b", {"t": [1]})],
            protocol="cooperative-sticky",
        ),
    ),
)


@pytest.mark.parametrize("moments", [SLOW_CONSUMER, SLOW_COOPERATIVE], ids=["consumer", "cooperative"])
def test_partition_is_handed_over_when_its_owner_has_let_go_of_it(moments: tuple[Moment, ...]) -> None:
    """However long that takes: it is counted as moved, and its owner is the former one."""
    reported = history(*moments).replayed()
    inferred, detail = rewound(*moments, at_ms=SLOW_MS + 2_000)

    assert 1 == reported.states["g"].counters.partitions_moved
    assert 1 == sum(of["partitions_moved"] for of in reported.details("rebalance_completed"))
    assert (True, True, moments[-1].time_ms) == (inferred, detail["after_handover"], detail["handover_time"])
    assert ("a", "b") == (detail["former_owner"], detail["present_owner"])


@pytest.mark.parametrize("moments", [SLOW_CONSUMER, SLOW_COOPERATIVE], ids=["consumer", "cooperative"])
def test_who_has_yet_to_let_go_of_a_partition_still_owns_it(moments: tuple[Moment, ...]) -> None:
    """It sought back, as an owner may, while no other member had the partition."""
    inferred, detail = rewound(*moments[: 4 if moments is SLOW_CONSUMER else 3], at_ms=SLOW_MS - 60_000)

    assert (False, False) == (inferred, "after_handover" in detail)


def test_partition_that_its_owner_gets_back_before_it_let_go_has_not_moved() -> None:
    """Who was to take it left meanwhile."""
    back = at(SLOW_MS, *consumer_leave("g", "b", epoch=4), *consumer_moves("g", "a", epoch=4, assigned=BOTH))
    moments = (*SLOW_CONSUMER[:4], back)

    assert 0 == history(*moments).replayed().states["g"].counters.partitions_moved
    assert (False, False) == (rewound(*moments, at_ms=SLOW_MS + 1)[0], "after_handover" in rewound(*moments)[1])


def test_rewind_in_a_group_that_emptied_is_a_reset() -> None:
    """An admin's, which is meant, whatever member had the partition before."""
    inferred, detail = rewound(*CONSUMER, at(10_500, *consumer_leave("g", "a", "b", epoch=4)), at_ms=11_000)

    assert (False, True, False) == (inferred, detail["group_empty"], "after_handover" in detail)


def test_hand_over_is_remembered_over_later_rebalances() -> None:
    """Those that moved other partitions, and those that moved none."""
    third = group_metadata("g", generation=3, members=[member("b", {"t": [0, 1]}), member("a", {})])
    again = group_metadata("g", generation=4, members=[member("b", {"t": [0, 1]}), member("a", {})])
    later = at(20_000, third), at(30_000, again)

    assert rewound(*CLASSIC, *later, at_ms=30_001)[0]
    assert rewound(*CLASSIC, *later, partition=0, at_ms=30_001)[0]


COOPERATIVE = (
    *CLASSIC[:2],
    at(7_000, group_metadata("g", generation=2, members=[member("a", {"t": [0]}), member("b", {})])),
    at(HANDED_MS, group_metadata("g", generation=3, members=[member("a", {"t": [0]}), member("b", {"t": [1]})])),
)


def test_rewind_after_a_cooperative_hand_over_names_both_owners() -> None:
    """For a generation the partition had no owner."""
    inferred, detail = rewound(*COOPERATIVE)

    assert inferred
    assert ("a", "b", HANDED_MS) == (detail["former_owner"], detail["present_owner"], detail["handover_time"])


def test_partition_given_up_and_taken_back_was_handed_to_nobody() -> None:
    """Its owner sought back, as far as anybody can tell."""
    back = group_metadata("g", generation=3, members=[member("a", {"t": [0, 1]}), member("b", {})])

    assert not rewound(*COOPERATIVE[:-1], at(HANDED_MS, back))[0]


IN_A_TRANSACTION = at(1_000, *(offset_commit("g", "t", of, 500, id_of_topic=ZERO_UUID) for of in (0, 1)))


@pytest.mark.parametrize(("partition", "expected"), [(1, True), (0, False)])
def test_commits_in_transactions_name_no_topic_id_and_are_still_distinguished(partition: int, expected: bool) -> None:
    """The one topic that members subscribe to is the one that is assigned."""
    again = at(HANDED_MS + 1, offset_commit("g", "t", partition, 300, id_of_topic=ZERO_UUID))
    reported = history(CONSUMER[0], IN_A_TRANSACTION, *CONSUMER[2:], again).replayed()

    assert [expected] == ["after_handover" in detail for detail in reported.details("offset_rewound")]


def test_commit_of_a_topic_that_no_member_reads_comes_after_no_hand_over() -> None:
    """Whatever was handed over is of another topic."""
    moments = [at(time_ms, offset_commit("g", "u", 1, offset)) for time_ms, offset in ((1_000, 500), (10_001, 300))]
    reported = history(CONSUMER[0], moments[0], *CONSUMER[2:], moments[1]).replayed()

    assert [False] == ["after_handover" in detail for detail in reported.details("offset_rewound")]


def test_static_member_that_came_back_handed_nothing_over() -> None:
    """It owns under its instance id."""
    before = group_metadata("g", generation=1, members=[member("i-1", {"t": [0, 1]}, instance_id="i")])
    after = group_metadata("g", generation=2, members=[member("i-2", {"t": [0, 1]}, instance_id="i")])

    assert not rewound(at(0, before), FORWARD, at(HANDED_MS, after))[0]


def test_hand_over_is_known_wherever_the_log_is_cut() -> None:
    """It is kept with the group."""
    log = history(*CONSUMER, at(HANDED_MS + 1, offset_commit("g", "t", 1, 300)))

    whole = log.replayed().event_texts()
    for position in range(len(log) + 1):
        assert whole == log.replayed_in_batches([position]).event_texts()


def test_hand_over_is_remembered_over_an_upgrade() -> None:
    """The classic group names its topics and the consumer group their ids; commits name both."""
    moved = {"a": {"t": [0], "u": [0]}, "b": {"t": [1]}}
    inferred, detail = rewound(
        at(0, group_metadata("g", generation=1, members=[member("a", {"t": [0, 1], "u": [0]}), member("b", {})])),
        FORWARD,
        at(2_000, offset_commit("g", "u", 0, 500)),
        at(HANDED_MS, group_metadata("g", generation=2, members=[member(of, parts) for of, parts in moved.items()])),
        at(HANDED_MS + 1_000, *converted_to_consumer("g", generation=2, members=moved)),
        at_ms=HANDED_MS + 2_000,
    )

    assert inferred
    assert ("a", "b", HANDED_MS) == (detail["former_owner"], detail["present_owner"], detail["handover_time"])


@pytest.mark.parametrize(("partition", "owners"), [(0, ("a", "b")), (1, ("b", "c"))])
def test_one_of_two_that_were_handed_over_together_moves_on_alone(partition: int, owners: tuple[str, str]) -> None:
    """Of the other the former owner is remembered as before."""
    turns = ({"a": [0, 1], "b": [], "c": []}, {"a": [], "b": [0, 1], "c": []}, {"a": [], "b": [0], "c": [1]})
    first, second, third = (
        group_metadata("g", generation=turn, members=[member(of, {"t": parts}) for of, parts in each.items()])
        for turn, each in enumerate(turns, 1)
    )
    _, detail = rewound(
        at(0, first), FORWARD, at(5_000, second), at(HANDED_MS, third), partition=partition, at_ms=HANDED_MS + 1
    )

    assert owners == (detail["former_owner"], detail["present_owner"])
