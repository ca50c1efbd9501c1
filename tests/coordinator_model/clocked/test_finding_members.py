"""Which members a finding is about: those who are named to the operator, and no other."""

import pytest

from coordinator_model.clocked.finding_members import FINDINGS, involved_members
from coordinator_model.clocked.stuck import GRACE_MS
from coordinator_model.rules.static_members import RESTARTS, RUN_GAP_MS
from coordinator_model.state.events import SEVERITIES
from lab.builders import REBALANCE_TIMEOUT_MS, group_metadata, member
from lab.coordinator_events import consumer_join, consumer_moves, static_goes_away
from tests.histories import Reported, at, history

ALONE = at(0, *consumer_join("g", "a", epoch=2, targets={"a": {"t": [0, 1]}}))
SECOND = at(1_000, *consumer_join("g", "b", epoch=3, targets={"b": {"t": [1]}, "a": {"t": [0]}}, assigned={}))
A_GIVES_UP = at(5_000, *consumer_moves("g", "a", epoch=3, previous_epoch=2, assigned={"t": [0]}))


def named(reported: Reported, now_ms: int = 10_000) -> list[tuple[str, str]]:
    """(finding, member id) at a time, of group g."""
    return [(finding, member.member_id) for finding, member in involved_members(reported.states["g"], now_ms)]


def test_findings_are_kinds_of_events() -> None:
    """What begins with an event is called as the event is."""
    assert set(FINDINGS) <= SEVERITIES.keys()


def test_sound_group_has_no_involved() -> None:
    """Members that share a topic concern no one."""
    takes = at(6_000, *consumer_moves("g", "b", epoch=3, assigned={"t": [1]}))

    assert [] == named(history(ALONE, SECOND, A_GIVES_UP, takes).replayed(), 10**9)


def test_both_owners_of_a_partition_are_named_until_one_gives_it_up() -> None:
    """KAFKA-16147: who owns what another one owns too, and a third member is left out."""
    third = at(1_500, *consumer_join("g", "c", epoch=3, targets={"c": {}}, assigned={}))
    takes_early = at(2_000, *consumer_moves("g", "b", epoch=3, assigned={"t": [1]}))
    twice = history(ALONE, SECOND, third, takes_early)

    assert [("duplicate_assignment", "a"), ("duplicate_assignment", "b")] == named(twice.replayed())
    assert [] == named(history(ALONE, SECOND, third, takes_early, A_GIVES_UP).replayed())


def test_owners_in_a_classic_group_are_named() -> None:
    """KAFKA-7026: the leader gave one partition to two of three members."""
    members = [member("a", {"t": [0]}), member("b", {"t": [0]}), member("c", {"t": [1]})]
    reported = history(at(0, group_metadata("g", generation=1, members=members))).replayed()

    assert [("duplicate_assignment", "a"), ("duplicate_assignment", "b")] == named(reported)


def test_static_member_that_is_away_is_named() -> None:
    """It said that it would be back, and its partitions wait."""
    joins = at(0, *consumer_join("g", "a1", epoch=2, instance_id="i", targets={"a1": {"t": [0, 1]}}))
    reported = history(
        joins, at(60_000, *static_goes_away("g", "a1", previous_epoch=2, assigned={"t": [0, 1]}))
    ).replayed()

    assert [("static_member_absent", "a1")] == named(reported, 61_000)


@pytest.mark.parametrize(
    ("hosts", "finding"),
    [(("/a", "/b"), "static_member_contended"), (("/a",), "static_member_restarting")],
)
def test_who_stands_for_an_instance_id_that_is_taken_over_is_named_as_long_as_it_is(
    hosts: tuple[str, ...], finding: str
) -> None:
    """When ten minutes have passed after the last take-over none is named any more."""
    takeovers = []
    for number in range(RESTARTS + 1):
        there = member(f"m-{number}", {"t": [0]}, instance_id="i", client_host=hosts[number % len(hosts)])
        takeovers.append(at(3_000 * number, group_metadata("g", generation=1, members=[there])))
    reported = history(*takeovers).replayed()
    last_ms = 3_000 * RESTARTS

    assert [(finding, f"m-{RESTARTS}")] == named(reported, last_ms + RUN_GAP_MS)
    assert [] == named(reported, last_ms + RUN_GAP_MS + 1)


def test_who_does_not_let_go_is_named_once_its_timeout_is_over() -> None:
    """A stuck rebalance waits for the member that holds on, not for the one that waits for it."""
    revokes = at(2_000, *consumer_moves("g", "a", epoch=2, previous_epoch=2, assigned={"t": [0]}, pending={"t": [1]}))
    reported = history(ALONE, SECOND, revokes).replayed()
    late_ms = 2_000 + REBALANCE_TIMEOUT_MS + GRACE_MS

    assert [] == named(reported, late_ms)
    assert ("rebalance_stuck", "a") in named(reported, late_ms + 1)


def test_nobody_is_late_when_the_coordinator_has_just_moved() -> None:
    """It gave every member its whole timeout again, so no member is named for what ran before."""
    revokes = at(2_000, *consumer_moves("g", "a", epoch=2, previous_epoch=2, assigned={"t": [0]}, pending={"t": [1]}))
    state = history(ALONE, SECOND, revokes).replayed().states["g"]
    late_ms = 2_000 + REBALANCE_TIMEOUT_MS + GRACE_MS + 1

    assert [] != list(involved_members(state, late_ms))
    assert [] == list(involved_members(state, late_ms, moved_ms=late_ms - 1_000))
