"""Bugs of Kafka's clients and brokers, as the log of a classic group that met them, and what the monitor says.

What a bug does to a group is from its issue; the histories are drawn up after it.
"""

from typing import Any

from coordinator_model.gates.upgrade import upgrade_gate
from coordinator_model.gates.verdict import Cluster
from lab.builders import (
    RecordBytes,
    group_metadata,
    member,
    offset_commit,
    sticky_user_data,
    subscription,
)
from tests.histories import Reported, at, history

COOP = "cooperative-sticky"


def generation(number: int, *members: Any, protocol: str) -> RecordBytes:
    """A generation of group g."""
    return group_metadata("g", generation=number, members=members, protocol=protocol)


def remembers(member_id: str, given: dict[str, list[int]], had: dict[str, list[int]], generation: int | None) -> Any:
    """A member of the sticky assignor with what it was given and what it claims; generation None is the old format."""
    data = sticky_user_data(had, generation)
    return member(member_id, given, subscription_bytes=subscription(user_data=data))


def paused_and_back(claim_generation: int | None, *, leader_believes_it: bool) -> Reported:
    """Member a owned 0 and 1, was thrown out while it paused, and comes back claiming them; b and c have them now."""
    a_gets: dict[str, list[int]] = {"t": [0, 1]} if leader_believes_it else {"t": [3]}
    c_gets: dict[str, list[int]] = {"t": [1, 3]} if leader_believes_it else {"t": [1]}
    fresh = claim_generation if claim_generation is None else 2
    return history(
        at(
            0,
            generation(
                1, member("a", {"t": [0, 1]}), member("b", {"t": [2]}), member("c", {"t": [3]}), protocol="sticky"
            ),
        ),
        at(
            60_000,
            generation(2, member("b", {"t": [0, 2]}), member("c", {"t": [1, 3]}), protocol="sticky"),
        ),
        at(
            90_000,
            generation(
                3,
                remembers("a", a_gets, {"t": [0, 1]}, claim_generation),
                remembers("b", {"t": [0, 2]}, {"t": [0, 2]}, fresh),
                remembers("c", c_gets, {"t": [1, 3]}, fresh),
                protocol="sticky",
            ),
        ),
    ).replayed()


def test_kafka_7026_sticky_assignor_gives_a_partition_to_two_members() -> None:
    """KAFKA-7026, KIP-341: without a generation in the claim the leader cannot tell that it is old.

    The duplicate is critical and names partitions and members; the claim has no generation, so that it is stale
    is not known. No one should upgrade such a group.
    """
    reported = paused_and_back(None, leader_believes_it=True)

    assert [(90_000, "duplicate_assignment")] == reported.timed_alarms()
    (detail,) = reported.details("duplicate_assignment")
    assert {"t/0": ("a", "b"), "t/1": ("a", "c")} == detail["partitions"]
    assert ["a", "b", "c"] == [of["member_id"] for of in detail["members"]]
    reasons = upgrade_gate([reported.states["g"]], Cluster())["reasons"]
    assert "duplicate_assignment" in {reason["code"] for reason in reasons if reason["effect"] == "stop"}


def test_kip_341_generation_makes_the_old_claim_harmless() -> None:
    """With the generation the leader ignores the claim: it is worth a warning, and there is no duplicate."""
    reported = paused_and_back(1, leader_believes_it=False)

    assert [(90_000, "stale_claim")] == reported.timed_alarms()
    assert [
        {"member_id": "a", "claimed_generation": 1, "newest_generation": 2, "partitions": {"t": [0, 1]}}
    ] == reported.details("stale_claim")


def test_kafka_12984_cooperative_assignor_is_wedged_by_an_invalid_claim() -> None:
    """KAFKA-12984: two members claim t/0 each time they join; it counts as still to be revoked, and goes to no one.

    The claims that contradict each other are reported once, however often they are made, and when there are too many
    generations in five minutes, a storm, once. No duplicate is reported: there is none.
    """
    wedged = [
        generation(
            number,
            member("a", {"t": [1]}, owned={"t": [0, 1]}, owned_generation=number - 1),
            member("b", {"t": [2]}, owned={"t": [0, 2]}, owned_generation=number - 1),
            protocol="cooperative-sticky",
        )
        for number in range(2, 41)
    ]
    first = generation(1, member("a", {"t": [0, 1]}), member("b", {"t": [2]}), protocol="cooperative-sticky")
    reported = history(*(at(3_000 * number, record) for number, record in enumerate((first, *wedged)))).replayed()

    kinds = [kind for _, kind in reported.timed_alarms()]
    assert {"stale_claim": 1, "rebalance_storm": 1} == {kind: kinds.count(kind) for kind in kinds}
    assert {"contradicting": True, "claimed_generation": 1, "partitions": {"t/0": ("a", "b")}} == reported.details(
        "stale_claim"
    )[-1]
    assert {"a": {"t": [1]}, "b": {"t": [2]}} == reported.owners("g")


def test_kafka_14639_partition_is_revoked_and_assigned_in_a_single_round() -> None:
    """KAFKA-14639: t/1 goes from a to b while a, which joined claiming it, has not been asked to stop reading it.

    There is no duplicate in the record, so the hand-over is all there is to tell.
    """
    reported = history(
        at(0, generation(1, member("a", {"t": [0, 1]}), protocol="cooperative-sticky")),
        at(
            9_000,
            generation(
                2,
                member("a", {"t": [0]}, owned={"t": [0, 1]}, owned_generation=1),
                member("b", {"t": [1]}),
                protocol="cooperative-sticky",
            ),
        ),
    ).replayed()

    assert [(9_000, "handover_without_revocation")] == reported.timed_alarms()
    assert [
        {"from_member_id": "a", "to_member_id": "b", "partitions": {"t": [1]}, "generation": 2}
    ] == reported.details("handover_without_revocation")


def test_kafka_13419_member_that_missed_a_sync_claims_what_it_had_before() -> None:
    """KAFKA-13419: its sync was refused as a rebalance was in progress, and it went on with what it owned before.

    In the next generation it claims that, as of a generation that is over.
    """
    reported = history(
        at(0, generation(1, member("a", {"t": [0, 1]}), protocol=COOP)),
        at(
            3_000,
            generation(
                2, member("a", {"t": [0]}, owned={"t": [0, 1]}, owned_generation=1), member("b", {}), protocol=COOP
            ),
        ),
        at(
            6_000,
            generation(
                3,
                member("a", {"t": [0]}, owned={"t": [0, 1]}, owned_generation=1),
                member("b", {"t": [1]}, owned={}, owned_generation=2),
                protocol=COOP,
            ),
        ),
    ).replayed()

    assert [(6_000, "stale_claim")] == reported.timed_alarms()
    assert [
        {"member_id": "a", "claimed_generation": 1, "newest_generation": 2, "partitions": {"t": [0, 1]}}
    ] == reported.details("stale_claim")


def test_kafka_12890_rounds_that_end_in_nothing() -> None:
    """KAFKA-12890, KAFKA-9752: rounds that wait for a member that never syncs leave no record.

    The next one that ends shows how many there were.
    """
    reported = history(
        at(0, generation(1, member("a", {"t": [0, 1]}), protocol="range")),
        at(900_000, generation(4, member("a", {"t": [0]}), member("b", {"t": [1]}), protocol="range")),
    ).replayed()

    assert [(900_000, "rebalance_rounds_lost")] == reported.timed_alarms()
    assert [{"from_generation": 1, "to_generation": 4, "rounds_lost": 2}] == reported.details("rebalance_rounds_lost")


def test_kafka_8653_members_of_old_clients_rebalance_for_ever() -> None:
    """KAFKA-8653, KAFKA-7610: an old client that joins again with each answer makes a generation with each.

    They are a storm, reported once.
    """
    reported = history(
        *(
            at(2_000 * number, generation(number, member(f"a-{number}", {"t": [0, 1]}), protocol="range"))
            for number in range(1, 61)
        )
    ).replayed()

    assert {("g", "rebalance_storm"): 1} == reported.alarms()


def test_kafka_14196_fetch_goes_on_while_a_commit_is_pending() -> None:
    """KAFKA-14196: the former owner's commit arrives after the new owner's, and takes the group back.

    The rewind names both, and says that this is inferred: the record has no author.
    """
    reported = history(
        at(0, generation(1, member("a", {"t": [0, 1]}), member("b", {}), protocol="range")),
        at(1_000, offset_commit("g", "t", 1, 500)),
        at(9_000, generation(2, member("a", {"t": [0]}), member("b", {"t": [1]}), protocol="range")),
        at(9_500, offset_commit("g", "t", 1, 560)),
        at(9_600, offset_commit("g", "t", 1, 520)),
    ).replayed()

    (rewind,) = (event for event in reported.events if event.kind == "offset_rewound")
    assert ("warning", True) == (rewind.severity, rewind.inferred)
    assert {"a", "b"} <= {str(value) for value in rewind.detail.values()}
