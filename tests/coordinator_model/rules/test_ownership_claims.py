"""What classic members claim to own against what they get (KIP-341, KIP-429): stale, contradicting, not revoked."""

from typing import Any

import pytest

from lab.builders import (
    RecordBytes,
    cooperative_sticky_user_data,
    group_metadata,
    member,
    sticky_user_data,
    subscription,
)
from lab.coordinator_events import consumer_group_deleted, consumer_join
from tests.histories import Reported, at, history


def generation(number: int, *members: Any, protocol: str = "cooperative-sticky") -> RecordBytes:
    """A generation of group g."""
    return group_metadata("g", generation=number, members=members, protocol=protocol)


FORMER = at(-1, group_metadata("g", generation=1))
"""The group was known before: what is claimed in the first record that is seen of a group is not judged."""


def findings(reported: Reported) -> list[tuple[str, dict[str, Any]]]:
    """What was reported of claims."""
    kinds = {"stale_claim", "handover_without_revocation"}
    return [(event.kind, dict(event.detail)) for event in reported.events if event.kind in kinds]


def test_claims_of_the_generation_before_are_as_they_should_be() -> None:
    """Everyone says what it got last, and keeps it."""
    reported = history(
        FORMER,
        at(
            0,
            generation(
                5,
                member("a", {"t": [0]}, owned={"t": [0]}, owned_generation=4),
                member("b", {"t": [1]}, owned={"t": [1]}, owned_generation=4),
            ),
        ),
    ).replayed()

    assert [] == findings(reported)


def test_claim_of_an_older_generation_is_stale() -> None:
    """KAFKA-7026: a member that was away claims what others have been given since."""
    reported = history(
        FORMER,
        at(
            0,
            generation(
                6,
                member("a", {"t": [0, 1]}, owned={"t": [0, 1]}, owned_generation=5),
                member("b", {}, owned={"t": [1]}, owned_generation=2),
            ),
        ),
    ).replayed()

    assert [
        (
            "stale_claim",
            {"member_id": "b", "claimed_generation": 2, "newest_generation": 5, "partitions": {"t": [1]}},
        )
    ] == findings(reported)
    assert 1 == reported.states["g"].counters.stale_claims


def test_claim_is_stale_although_nobody_got_anything_in_the_newer_generation() -> None:
    """Who was in it says so with nothing to claim; what it says is newer all the same, and nothing is handed over."""
    reported = history(
        FORMER,
        at(
            0,
            generation(
                6,
                member("a", {"t": [0]}, owned={}, owned_generation=5),
                member("b", {}, owned={"t": [0]}, owned_generation=2),
            ),
        ),
    ).replayed()

    assert [(2, 5)] == [(of["claimed_generation"], of["newest_generation"]) for of in reported.details("stale_claim")]
    assert [] == reported.details("handover_without_revocation")


def test_claims_of_a_generation_that_the_log_lost_are_not_judged() -> None:
    """The coordinator counted on from the record that was left: others were in another generation of that number."""
    others = member("a", {"t": [0]}, owned={}, owned_generation=6)
    left_out = member("b", {"t": [1]}, owned={"t": [1]}, owned_generation=5)

    assert [] == findings(history(FORMER, at(0, generation(6, others, left_out))).replayed())
    (stale,) = findings(history(FORMER, at(0, generation(7, others, left_out))).replayed())
    assert "stale_claim" == stale[0]


@pytest.mark.parametrize("protocol", ["sticky", "cooperative-sticky"])
def test_claims_are_read_where_the_assignor_puts_them(protocol: str) -> None:
    """The sticky assignor's are in its user data; the cooperative one's generation may be four bytes of it."""
    if protocol == "sticky":
        claims = [subscription(user_data=sticky_user_data({"t": [0]}, of), version=0) for of in (5, 2)]
    else:
        claims = [
            subscription(owned={"t": [0]}, user_data=cooperative_sticky_user_data(of), version=1) for of in (5, 2)
        ]
    members = [member("a", {"t": [0]}, subscription_bytes=claims[0]), member("b", {}, subscription_bytes=claims[1])]

    reported = history(FORMER, at(0, generation(6, *members, protocol=protocol))).replayed()

    assert [(2, 5)] == [(of["claimed_generation"], of["newest_generation"]) for of in reported.details("stale_claim")]


def test_two_claims_of_the_newest_generation_on_one_partition_contradict() -> None:
    """One of them is wrong; which one the log does not say."""
    reported = history(
        FORMER,
        at(
            0,
            generation(
                6,
                member("a", {"t": [0]}, owned={"t": [0]}, owned_generation=5),
                member("b", {}, owned={"t": [0]}, owned_generation=5),
            ),
        ),
    ).replayed()

    contradicting = {"contradicting": True, "claimed_generation": 5, "partitions": {"t/0": ("a", "b")}}
    assert ("stale_claim", contradicting) == findings(reported)[0]


def test_cooperative_handover_without_revocation() -> None:
    """KAFKA-14639: claimed by one and given to another in the same generation, when it should rest for a round."""
    reported = history(
        FORMER,
        at(
            0,
            generation(
                6,
                member("a", {"t": [0]}, owned={"t": [0, 1]}, owned_generation=5),
                member("b", {"t": [1]}, owned_generation=5),
            ),
        ),
    ).replayed()

    assert [
        (
            "handover_without_revocation",
            {"from_member_id": "a", "to_member_id": "b", "partitions": {"t": [1]}, "generation": 6},
        )
    ] == findings(reported)


def test_eager_sticky_handover_is_the_rule() -> None:
    """Its members own nothing while they join: what they remember may go to anyone."""
    remembered = subscription(user_data=sticky_user_data({"t": [0, 1]}, 5), version=0)

    reported = history(
        FORMER,
        at(
            0,
            generation(
                6, member("a", {"t": [0]}, subscription_bytes=remembered), member("b", {"t": [1]}), protocol="sticky"
            ),
        ),
    ).replayed()

    assert [] == findings(reported)


@pytest.mark.parametrize(
    "claimless",
    [
        member("b", {"t": [1]}),
        member("b", {"t": [1]}, owned={}, owned_generation=3),
        member("b", {"t": [1]}, owned={"t": [1]}, owned_generation=-1),
        member("b", {"t": [1]}, subscription_bytes=b"\xff"),
    ],
    ids=["eager", "owns nothing", "without a generation", "opaque"],
)
def test_member_without_a_claim_is_not_judged(claimless: Any) -> None:
    """Nothing follows from what is not said."""
    reported = history(
        FORMER, at(0, generation(6, member("a", {"t": [0]}, owned={"t": [0]}, owned_generation=5), claimless))
    ).replayed()

    assert [] == findings(reported)


def test_claims_are_judged_once_a_generation() -> None:
    """A static member's rejoin writes the same generation again, claims included."""
    stale = member("b", {}, owned={"t": [1]}, owned_generation=2)
    reported = history(
        FORMER,
        at(0, generation(6, member("a-1", {"t": [0]}, owned={"t": [0]}, owned_generation=5, instance_id="i"), stale)),
        at(1, generation(6, member("a-2", {"t": [0]}, owned={"t": [0]}, owned_generation=5, instance_id="i"), stale)),
    ).replayed()

    assert 1 == len(findings(reported))


def test_claims_in_a_record_that_a_downgrade_wrote_are_not_judged() -> None:
    """It repeats what each member said when it last joined, and in a consumer group they join one by one."""
    moved_on = generation(
        6,
        member("a", {"t": [0]}, owned={"t": [0]}, owned_generation=2),
        member("b", {"t": [1]}, owned={"t": [0, 1]}, owned_generation=5),
    )
    reported = history(
        at(0, *consumer_join("g", "n", epoch=6, targets={"n": {"t": [0, 1]}})),
        at(1, *consumer_group_deleted("g", ["n", "a", "b"]), moved_on),
    ).replayed()

    assert [] == findings(reported)
    assert 0 == reported.states["g"].counters.stale_claims


@pytest.mark.parametrize(("reached", "said"), [(4, []), (1, ["b"])], ids=["lags behind", "older than before"])
def test_members_of_a_downgraded_group_name_the_epoch_that_each_had_reached(reached: int, said: list[str]) -> None:
    """One had not joined again when the epoch last moved. Older than what it said before, a claim is stale as ever."""
    written = generation(
        6,
        member("a", {"t": [0]}, owned={"t": [0]}, owned_generation=2),
        member("b", {"t": [1]}, owned={"t": [0, 1]}, owned_generation=2),
    )
    first = generation(
        7,
        member("a", {"t": [0]}, owned={"t": [0]}, owned_generation=6),
        member("b", {"t": [1]}, owned={"t": [1]}, owned_generation=reached),
    )
    second = generation(
        8,
        member("a", {"t": [0]}, owned={"t": [0]}, owned_generation=7),
        member("b", {"t": [1]}, owned={"t": [1]}, owned_generation=6),
    )
    log = [
        at(0, *consumer_join("g", "n", epoch=6, targets={"n": {"t": [0, 1]}})),
        at(1, *consumer_group_deleted("g", ["n", "a", "b"]), written),
        at(9_000, first),
    ]

    assert said == [detail["member_id"] for _, detail in findings(history(*log).replayed())]
    assert ["b"] == [detail["member_id"] for _, detail in findings(history(*log, at(20_000, second)).replayed())][-1:]


def test_claims_in_the_first_record_seen_of_a_group_are_not_judged() -> None:
    """In a cleaned log nothing shows whether a downgrade wrote it."""
    stale = member("b", {}, owned={"t": [1]}, owned_generation=2)
    reported = history(at(0, generation(6, member("a", {}, owned={"t": [0]}, owned_generation=5), stale))).replayed()

    assert [] == findings(reported)


def test_claim_made_again_round_after_round_is_reported_once_and_once_that_it_is_over() -> None:
    """A member whose joins fail half-way says the same old thing each time; the counter counts each."""

    def round_of(number: int, *, old: bool) -> RecordBytes:
        claims = member("b", {}, owned={"t": [1]}, owned_generation=2 if old else number - 1)
        return generation(number, member("a", {"t": [0]}, owned={"t": [0]}, owned_generation=number - 1), claims)

    log = history(
        FORMER,
        *(at(number, round_of(number, old=True)) for number in range(6, 10)),
        at(10, round_of(10, old=False)),
        at(11, round_of(11, old=False)),
        at(12, round_of(12, old=True)),
    )
    reported = log.replayed()

    assert [(6, "warning"), (10, "info"), (12, "warning")] == [
        (of.time_ms, of.severity) for of in reported.events if of.kind == "stale_claim"
    ]
    assert {"member_id": "b", "cleared": True} == reported.details("stale_claim")[1]
    assert 5 == reported.states["g"].counters.stale_claims
    for position in range(len(log) + 1):
        assert reported.event_texts() == log.replayed_in_batches([position]).event_texts()


def test_claims_are_over_with_the_members() -> None:
    """A group that empties claims nothing."""
    stale = member("b", {}, owned={"t": [1]}, owned_generation=2)
    reported = history(
        FORMER,
        at(0, generation(6, member("a", {"t": [0]}, owned={"t": [0]}, owned_generation=5), stale)),
        at(1, group_metadata("g", generation=7)),
    ).replayed()

    assert [False, True] == ["cleared" in detail for detail in reported.details("stale_claim")]
    assert {} == reported.states["g"].alarms


def test_claim_that_lasts_into_the_live_tail_is_reported_with_its_first_round_there() -> None:
    """Before it nothing is reported, and then it is not known already."""
    rounds = [
        at(
            number,
            generation(
                number,
                member("a", {"t": [0, 1]}, owned={"t": [0, 1]}, owned_generation=number - 1),
                member("b", {}, owned={"t": [1]}, owned_generation=2),
            ),
        )
        for number in (6, 7, 8, 9)
    ]

    reported = history(FORMER, *rounds).replayed(live_from=3)

    assert [(8, "stale_claim")] == reported.timed_alarms()
