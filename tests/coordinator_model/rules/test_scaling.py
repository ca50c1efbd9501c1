"""Members that come, or go, one after another: one scale-up, the rebalances it cost and the one it needed."""

from typing import Any

import pytest

from coordinator_model.rules.scaling import EPISODE_GAP_MS
from lab.builders import RecordBytes, consumer_group_member_subscription, group_metadata, member
from lab.coordinator_events import consumer_join, consumer_leave, consumer_moves, retarget
from tests.histories import Moment, Reported, at, history


def generation(number: int, *member_ids: str, instance_ids: dict[str, str] | None = None) -> RecordBytes:
    """A classic generation of these members, each with a partition."""
    named = instance_ids or {}
    members = [member(of, {"t": [place]}, instance_id=named.get(of)) for place, of in enumerate(member_ids)]
    return group_metadata("g", generation=number, members=members)


def episodes(reported: Reported) -> list[dict[str, Any] | None]:
    """The episode beside each completed rebalance; None where there is none."""
    return [detail.get("scaling") for detail in reported.details("rebalance_completed")]


def cost(reported: Reported) -> tuple[str, int, int, int, int]:
    """(direction, members before, after, rebalances it cost, needed) of the group's last episode."""
    shown = reported.view("g")["scaling"]
    names = ("direction", "members_before", "members_after", "rebalances", "rebalances_needed")
    return tuple(shown[name] for name in names)


ONE = at(0, generation(1, "a"))


def test_members_that_join_one_by_one_are_one_scale_up_of_many_rebalances() -> None:
    """Three joins, three rebalances, where one for all would have done."""
    reported = history(
        ONE,
        at(10_000, generation(2, "a", "b")),
        at(20_000, generation(3, "a", "b", "c")),
        at(30_000, generation(4, "a", "b", "c", "d")),
    ).replayed()

    assert ("up", 0, 4, 3, 1) == cost(reported)
    assert [1, 2, 3] == [of["rebalances"] for of in episodes(reported) if of is not None]
    assert 2 == reported.states["g"].counters.rebalances_avoidable
    assert {} == reported.alarms()


def test_members_that_join_together_need_what_they_cost() -> None:
    """What group.initial.rebalance.delay.ms is for."""
    reported = history(at(0, generation(1)), at(10_000, generation(2, "a", "b", "c"))).replayed()

    assert ("up", 0, 3, 1, 1) == cost(reported)
    assert 0 == reported.states["g"].counters.rebalances_avoidable


def test_scale_down_is_an_episode_too() -> None:
    """Members that stop one by one cost a rebalance each."""
    reported = history(
        at(0, generation(1, "a", "b", "c")),
        at(EPISODE_GAP_MS + 1, generation(2, "a", "b")),
        at(EPISODE_GAP_MS + 9_000, generation(3, "a")),
    ).replayed()

    assert ("down", 3, 1, 2, 1) == cost(reported)
    assert 1 == reported.states["g"].counters.rebalances_avoidable


def test_joins_of_one_rebalance_of_a_consumer_group_cost_one() -> None:
    """Epochs that move on while members are on their way belong to the rebalance under way."""
    reported = history(
        at(0, *consumer_join("g", "a", epoch=2, targets={"a": {"t": [0, 1, 2]}})),
        at(
            EPISODE_GAP_MS + 1,
            *consumer_join("g", "b", epoch=3, targets={"b": {"t": [1]}, "a": {"t": [0, 2]}}, assigned={}),
        ),
        at(
            EPISODE_GAP_MS + 2,
            *consumer_join("g", "c", epoch=4, targets={"c": {"t": [2]}, "a": {"t": [0]}}, assigned={}),
        ),
        at(EPISODE_GAP_MS + 5_000, *consumer_moves("g", "a", epoch=4, previous_epoch=2, assigned={"t": [0]})),
        at(EPISODE_GAP_MS + 6_000, *consumer_moves("g", "b", epoch=4, previous_epoch=3, assigned={"t": [1]})),
        at(EPISODE_GAP_MS + 7_000, *consumer_moves("g", "c", epoch=4, assigned={"t": [2]})),
    ).replayed()

    assert ("up", 1, 3, 1, 1) == cost(reported)


def test_new_group_s_members_are_a_scale_up_from_none() -> None:
    """Its first epoch shows that no member was there before."""
    reported = history(
        at(0, *consumer_join("g", "a", epoch=1, targets={"a": {"t": [0]}})),
        at(1_000, *consumer_join("g", "b", epoch=2, targets={"b": {"t": [1]}})),
    ).replayed()

    assert ("up", 0, 2) == cost(reported)[:3]


def no_episode() -> dict[str, list[Moment]]:
    static = {"a": "i", "a2": "i"}
    far = EPISODE_GAP_MS + 1
    return {
        "one member": [ONE],
        "members far apart in time": [ONE, at(far, generation(2, "a", "b")), at(2 * far, generation(3, "a", "b", "c"))],
        "a static member that is back": [
            at(0, generation(1, "a", instance_ids=static)),
            at(1_000, generation(1, "a2", instance_ids=static)),
            at(2_000, generation(2, "a", instance_ids=static)),
        ],
        "a restart: one goes, one comes": [
            ONE,
            at(far, generation(2, "a", "b")),
            at(far + 1_000, generation(3, "a")),
            at(far + 2_000, generation(4, "a", "b2")),
        ],
        "members that were there before the log was cleaned": [
            at(0, *consumer_join("g", "a", epoch=50, targets={"a": {"t": [0]}})),
            at(0, *consumer_join("g", "b", epoch=50, targets={"b": {"t": [1]}})),
        ],
        "members without their group's epoch": [
            at(0, consumer_group_member_subscription("g", "a"), consumer_group_member_subscription("g", "b")),
        ],
        "members that come to be known before and with their group's epoch": [
            at(0, consumer_group_member_subscription("g", "a"), consumer_group_member_subscription("g", "b")),
            at(1, *consumer_join("g", "c", epoch=50, targets={"c": {"t": [0]}})),
            at(1, *consumer_join("g", "d", epoch=50, targets={"d": {"t": [1]}})),
        ],
        "some go while others come": [ONE, at(1_000, generation(2, "b")), at(2_000, generation(3, "c"))],
    }


@pytest.mark.parametrize("moments", no_episode().values(), ids=no_episode().keys())
def test_what_is_no_scaling(moments: list[Moment]) -> None:
    """Nothing stands beside its rebalances, and nothing was avoidable."""
    reported = history(*moments).replayed()

    assert {None} >= {of and of["direction"] for of in episodes(reported)}
    assert "scaling" not in reported.view("g")
    assert 0 == reported.states["g"].counters.rebalances_avoidable


def test_rebalance_for_another_reason_costs_the_episode_nothing() -> None:
    """The leader rejoined: that is not the scale-up's doing."""
    reported = history(
        at(0, generation(1)), at(10_000, generation(2, "a", "b")), at(20_000, generation(3, "a", "b"))
    ).replayed()

    assert ("up", 0, 2, 1, 1) == cost(reported)


def test_expiry_of_several_at_once_is_one_step_of_the_episode() -> None:
    """Members removed together cost one rebalance."""
    reported = history(
        at(0, *consumer_join("g", "a", epoch=2, targets={"a": {"t": [0, 1, 2]}})),
        at(1_000, *consumer_join("g", "b", epoch=3, targets={"b": {"u": [1]}})),
        at(1_100, *consumer_moves("g", "a", epoch=3, previous_epoch=2, assigned={"t": [0, 1, 2]})),
        at(2_000, *consumer_join("g", "c", epoch=4, targets={"c": {"u": [0]}})),
        at(2_100, *consumer_moves("g", "a", epoch=4, previous_epoch=3, assigned={"t": [0, 1, 2]})),
        at(2_200, *consumer_moves("g", "b", epoch=4, previous_epoch=3, assigned={"u": [1]})),
        at(9_000, *consumer_leave("g", "b", "c", epoch=5)),
        at(
            9_500,
            *retarget("g", 5, {}),
            *consumer_moves("g", "a", epoch=5, previous_epoch=4, assigned={"t": [0, 1, 2]}),
        ),
    ).replayed()

    assert ("down", 3, 1, 1, 1) == cost(reported)


def test_episode_has_the_keys_that_others_read() -> None:
    """Consumers of events, the page and the terminal read them by these names."""
    reported = history(ONE, at(10_000, generation(2, "a", "b", "c"))).replayed()

    assert {
        "direction": "up",
        "since": 0,
        "last_change": 10_000,
        "members_before": 0,
        "members_after": 3,
        "rebalances": 1,
        "rebalances_needed": 1,
    } == reported.view("g")["scaling"]
