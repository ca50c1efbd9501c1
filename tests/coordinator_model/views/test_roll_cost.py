"""What a roll cost, from records: owners, moves, time without an owner, alarms; and what is counted as nothing."""

from collections.abc import Sequence
from typing import Any, Final

from coordinator_model.replica import Replica
from coordinator_model.state.findings import Position
from coordinator_model.state.membership import STATIC_MEMBER_ABSENT_EPOCH
from coordinator_model.views.roll_cost import RollCost, cost_view
from lab.builders import (
    consumer_group_current_assignment,
    consumer_group_epoch,
    consumer_group_member_subscription,
    consumer_group_target_assignment,
    consumer_group_target_assignment_epoch,
    group_metadata,
    member,
)
from tests.histories import TOPIC_NAMES, Moment, at, history

GROUP: Final = "g"


def cost(*moments: Moment, since_ms: int = 0, until_ms: int | None = None) -> dict[str, Any]:
    """The figures of a history, up to its last moment unless said."""
    measured = followed(*moments, since_ms=since_ms)
    return cost_view(measured.cost(moments[-1].time_ms if until_ms is None else until_ms))


def followed(*moments: Moment, since_ms: int) -> RollCost:
    """A history that was followed to its end."""
    replica, measured = Replica(), RollCost(dict(TOPIC_NAMES), since_ms)
    for record in history(*moments).records:
        position = Position(record.place.partition, record.place.offset, record.place.timestamp_ms)
        events = replica.replay(position, record.key, record.value)
        measured.follow(replica.known(GROUP), events)
    measured.follow(replica.known(GROUP), replica.settle())
    return measured


def generation(
    time_ms: int, number: int, *members: Any, begun_ms: int | None = None, protocol: str = "range"
) -> Moment:
    """A classic rebalance that is completed, whose join phase ended at `begun_ms`."""
    timestamp = time_ms if begun_ms is None else begun_ms
    return at(
        time_ms, group_metadata(GROUP, generation=number, members=members, timestamp=timestamp, protocol=protocol)
    )


def consumers(time_ms: int, epoch: int, held: Sequence[tuple[str, dict[str, list[int]], int]]) -> Moment:
    """A consumer group whose members (id, partitions, epoch) have what they have."""
    records = [consumer_group_epoch(GROUP, epoch), consumer_group_target_assignment_epoch(GROUP, epoch)]
    for member_id, partitions, member_epoch in held:
        records += [
            consumer_group_member_subscription(GROUP, member_id, instance_id=f"i-{member_id}"),
            consumer_group_target_assignment(GROUP, member_id, partitions),
            consumer_group_current_assignment(GROUP, member_id, epoch=member_epoch, assigned=partitions),
        ]
    return at(time_ms, *records)


def test_eager_members_own_nothing_while_the_leader_divides() -> None:
    """From the end of the join phase to the leader's assignment; who moved is who has another owner then."""
    found = cost(
        generation(1_000, 1, member("a", {"t": [0, 1]}), member("b", {"t": [2]})),
        generation(5_000, 2, member("a", {"t": [0]}), member("b", {"t": [1, 2]}), begun_ms=4_750),
        since_ms=2_000,
    )

    assert (1, 1) == (found["rebalances"], found["partitions_moved"])
    assert {"t/0": 0.25, "t/1": 0.25, "t/2": 0.25} == found["ownerless_seconds"]["partitions"]
    assert (0.25, 0.75) == (found["ownerless_seconds"]["max"], found["ownerless_seconds"]["total"])


def test_what_a_member_claims_is_not_without_an_owner() -> None:
    """Cooperative members keep what they claim; what they gave up has none until the round that gives it out."""
    found = cost(
        generation(1_000, 1, member("a", {"t": [0, 1]}), protocol="cooperative-sticky"),
        generation(
            3_000, 2, member("a", {"t": [0]}, owned={"t": [0, 1]}, owned_generation=1), member("b", {}),
            begun_ms=2_900, protocol="cooperative-sticky",
        ),
        generation(
            4_500, 3, member("a", {"t": [0]}, owned={"t": [0]}, owned_generation=2), member("b", {"t": [1]}),
            begun_ms=4_400, protocol="cooperative-sticky",
        ),
        since_ms=2_000,
    )  # fmt: skip

    assert {"t/1": 1.5} == found["ownerless_seconds"]["partitions"]
    assert (2, 1) == (found["rebalances"], found["partitions_moved"])


def test_a_consumer_group_s_handover_is_timed_record_by_record() -> None:
    """From the record in which the former owner has let go to the one in which the next has it."""
    found = cost(
        consumers(1_000, 1, [("a", {"t": [0, 1]}, 1), ("b", {}, 1)]),
        at(3_000, consumer_group_current_assignment(GROUP, "a", epoch=2, assigned={"t": [0]})),
        at(3_400, consumer_group_current_assignment(GROUP, "b", epoch=2, assigned={"t": [1]})),
    )

    assert {"t/1": 0.4} == found["ownerless_seconds"]["partitions"]
    assert 1 == found["partitions_moved"]


def test_moves_of_a_rebalance_that_had_begun_before_are_told_apart() -> None:
    """Changes of owner count from the roll's beginning on; the event that completes the rebalance has all of them."""
    moments = (
        consumers(1_000, 1, [("a", {"t": [0, 1, 2]}, 1)]),
        at(
            3_000,
            consumer_group_epoch(GROUP, 2),
            *(consumer_group_member_subscription(GROUP, member_id) for member_id in "bc"),
            *(consumer_group_target_assignment(GROUP, id_, {"t": [place]}) for place, id_ in enumerate("abc")),
            consumer_group_target_assignment_epoch(GROUP, 2),
            *(consumer_group_current_assignment(GROUP, member_id, epoch=0) for member_id in "bc"),
            consumer_group_current_assignment(GROUP, "a", epoch=2, assigned={"t": [0]}),
        ),
        at(3_400, consumer_group_current_assignment(GROUP, "b", epoch=2, assigned={"t": [1]})),
        at(3_800, consumer_group_current_assignment(GROUP, "c", epoch=2, assigned={"t": [2]})),
    )

    found = [followed(*moments, since_ms=since_ms).cost(4_000) for since_ms in (2_000, 3_600)]

    assert [(1, 2, 2), (1, 1, 2)] == [(of.rebalances, of.partitions_moved, of.moved_in_rebalances) for of in found]


def test_what_is_yet_to_be_revoked_has_an_owner() -> None:
    """The member may still process it."""
    found = cost(
        consumers(1_000, 1, [("a", {"t": [0, 1]}, 1), ("b", {}, 1)]),
        at(
            3_000,
            consumer_group_current_assignment(
                GROUP, "a", epoch=1, assigned={"t": [0]}, pending_revocation={"t": [1]}, state=1
            ),
        ),
        until_ms=9_000,
    )

    assert ({}, 0) == (found["ownerless_seconds"]["partitions"], found["partitions_moved"])


def test_a_static_member_that_is_away_processes_nothing() -> None:
    """What it holds is without an owner until it is back, and has not moved then."""
    found = cost(
        consumers(1_000, 1, [("a", {"t": [0]}, 1)]),
        at(
            2_000,
            consumer_group_current_assignment(GROUP, "a", epoch=STATIC_MEMBER_ABSENT_EPOCH, assigned={"t": [0]}),
        ),
        at(2_700, consumer_group_current_assignment(GROUP, "a", epoch=1, assigned={"t": [0]})),
    )

    assert ({"t/0": 0.7}, 0) == (found["ownerless_seconds"]["partitions"], found["partitions_moved"])


def test_a_static_member_under_another_id_is_the_same_owner() -> None:
    """A restart moves nothing."""
    found = cost(
        generation(1_000, 1, member("a", {"t": [0]}, instance_id="i")),
        generation(2_000, 2, member("b", {"t": [0]}, instance_id="i")),
    )

    assert 0 == found["partitions_moved"]


def test_a_partition_that_has_no_owner_yet_has_none_until_the_moment_that_is_asked_about() -> None:
    """The figure grows while nothing is written."""
    moments = (
        generation(1_000, 1, member("a", {"t": [0, 1]})),
        generation(2_000, 2, member("a", {"t": [0]})),
    )

    assert {"t/1": 3.0} == cost(*moments, until_ms=5_000)["ownerless_seconds"]["partitions"]


def test_nothing_before_the_roll_is_counted() -> None:
    """Who owned what is known all the same: time without an owner counts from the roll's beginning."""
    moments = (
        generation(1_000, 1, member("a", {"t": [0, 1]})),
        generation(2_000, 2, member("b", {"t": [0]})),
        generation(6_000, 3, member("b", {"t": [0, 1]}, owned={"t": [0]})),
    )

    late = cost(*moments, since_ms=5_000)

    assert (1, 1) == (late["rebalances"], late["partitions_moved"])
    assert {"t/1": 1.0} == late["ownerless_seconds"]["partitions"]
    assert (2, 2) == (cost(*moments)["rebalances"], cost(*moments)["partitions_moved"])


def test_causes_conversions_and_alarms_are_those_of_the_events() -> None:
    """Nothing that a roll asks for is an alarm."""
    found = cost(
        generation(1_000, 1, member("a", {"t": [0]})),
        generation(2_000, 5, member("a", {"t": [0]}), member("b", {"t": [1]})),
        generation(3_000, 6, member("a", {"t": [0]}), member("b", {"t": [0]})),
        since_ms=1_500,
    )

    assert {"join": 1, "partition_count": 1, "rejoin": 1} == found["causes"]
    assert ["rebalance_rounds_lost", "duplicate_assignment"] == found["verdicts"]
    assert {} == found["conversions"]
