"""Who was removed for keeping the others waiting, and who left: families of histories that differ in that alone."""

from random import Random
from typing import Any, Final

import pytest

from coordinator_model.groups import streams
from coordinator_model.rules.fencing import AWAY_MS, not_released
from coordinator_model.state.membership import CONSUMER, ModernGroup, ModernMember, Partitions
from lab import builders
from lab.builders import REBALANCE_TIMEOUT_MS
from lab.coordinator_events import consumer_join, consumer_leave, consumer_moves, speaks_classic, streams_leave
from tests.histories import at, history
from tests.side_by_side import Scene
from tests.simulator.memory import UNREVOKED, Member

SEEDS: Final = range(20)


def of_leavers(scene: Scene) -> dict[str, list[dict[str, Any]]]:
    """`member_fenced` and `member_left` → details, of the victim."""
    events, _ = scene.reported()
    return {kind: [dict(of.detail) for of in events if of.kind == kind] for kind in ("member_fenced", "member_left")}


def waits(scene: Scene, member: Member, chance: Random, *, fenced: bool) -> None:
    """The member does nothing until its time is over, or nearly, and is gone."""
    over = chance.randint(0, 9_000) if fenced else -chance.randint(3_000, REBALANCE_TIMEOUT_MS - 60_000)
    scene.coordinator.lag(REBALANCE_TIMEOUT_MS + over)
    scene.coordinator.leave(scene.group, member)
    scene.coordinator.settle(scene.group)


def holds_back(scene: Scene) -> Member:
    """A consumer-protocol member that is to revoke partitions for another, and does not."""
    scene.consumer_members(2)
    scene.coordinator.join_consumer(scene.group)
    scene.coordinator.lag(5_000)
    for member in list(scene.group.members.values()):
        scene.coordinator.heartbeat(scene.group, member, let_go=False)
    return next(of for of in scene.group.members.values() if of.state == UNREVOKED)


def does_not_rejoin(scene: Scene) -> Member:
    """A classic member of a mixed group that is to join again, and does not."""
    scene.classic_members(2)
    scene.consumer_members(1)
    scene.coordinator.join_consumer(scene.group)
    scene.coordinator.lag(5_000)
    silent = next(of for of in scene.group.members.values() if of.classic)
    for _ in range(3):
        for member in scene.group.others(silent):
            scene.coordinator.heartbeat(scene.group, member)
        scene.coordinator.lag(3_000)
    assert silent.epoch < scene.group.assignment_epoch
    return silent


@pytest.mark.parametrize(("beyond_ms", "fenced"), [(-100, True), (100, False)])
def test_member_that_is_gone_hours_later_was_not_removed_by_a_timer(beyond_ms: int, fenced: bool) -> None:
    """The timer begins again when the coordinator moves; a longer time is of a clock that was set forward."""
    scene = Scene(1)
    member = holds_back(scene)
    scene.coordinator.lag(2 * REBALANCE_TIMEOUT_MS + AWAY_MS + beyond_ms)
    scene.coordinator.leave(scene.group, member)
    scene.coordinator.settle(scene.group)

    reported = of_leavers(scene)

    assert {"member_fenced": int(fenced), "member_left": int(not fenced)} == {
        kind: sum(of["member_id"] == member.member_id for of in details) for kind, details in reported.items()
    }


@pytest.mark.parametrize("play", [holds_back, does_not_rejoin])
@pytest.mark.parametrize("seed", SEEDS)
def test_member_that_is_gone_after_its_time_was_fenced_and_did_not_leave(seed: int, play: Any) -> None:
    """One event for it, with what it did not release."""
    chance, scene = Random(seed), Scene(seed)
    member = play(scene)
    held = sorted({*member.pending} or {*member.assigned} - scene.group.targets[member.member_id])
    waits(scene, member, chance, fenced=True)

    reported = of_leavers(scene)

    (fenced,) = reported["member_fenced"]
    assert ([], member.member_id) == (reported["member_left"], fenced["member_id"])
    assert ("classic" if member.classic else "consumer") == fenced["protocol"]
    assert len(held) == sum(map(len, fenced["not_released"].values()))
    assert fenced["waited_ms"] >= fenced["timeout_ms"]


@pytest.mark.parametrize("play", [holds_back, does_not_rejoin])
@pytest.mark.parametrize("seed", SEEDS)
def test_member_that_is_gone_sooner_left(seed: int, play: Any) -> None:
    """It was stopped, or its session expired."""
    chance, scene = Random(seed), Scene(seed)
    member = play(scene)
    waits(scene, member, chance, fenced=False)

    reported = of_leavers(scene)

    assert ([], [member.member_id]) == (reported["member_fenced"], [of["member_id"] for of in reported["member_left"]])


@pytest.mark.parametrize("classic", [True, False])
@pytest.mark.parametrize("seed", SEEDS)
def test_member_that_has_nothing_to_do_leaves_when_it_likes(seed: int, classic: bool) -> None:
    """However long it was there: of a settled group, and of one that waits for another member."""
    chance, scene = Random(seed), Scene(seed)
    scene.classic_members(2)
    scene.consumer_members(2)
    waiting = chance.random() < 0.5
    if waiting:
        scene.coordinator.join_consumer(scene.group)
        for _ in range(3):
            scene.coordinator.lag(5_000)
            for member in list(scene.group.members.values()):
                scene.coordinator.heartbeat(scene.group, member, let_go=member.classic)
    able = [of for of in scene.group.members.values() if of.classic == classic and not of.pending]
    idle = next(of for of in able if of.epoch == scene.group.assignment_epoch and of.state in (0, 2))
    waits(scene, idle, chance, fenced=True)

    reported = of_leavers(scene)

    assert [] == [of for of in reported["member_fenced"] if of["member_id"] == idle.member_id]
    assert idle.member_id in [of["member_id"] for of in reported["member_left"]]


@pytest.mark.parametrize(
    ("classic", "pending", "expected"),
    [
        (False, {}, {}),
        (False, {"t": (1,)}, {"t": (1,)}),
        (True, {}, {"t": (2,)}),
        (True, {"t": (1,)}, {"t": (1,)}),
    ],
)
def test_what_a_member_does_not_release(classic: bool, pending: Partitions, expected: Partitions) -> None:
    """What it is asked to revoke; a classic member is asked when it joins again, to leave what its target lacks.

    A topic that it may keep whole is not named.
    """
    member = ModernMember(
        member_id="a", uses_classic_protocol=classic, assigned={"t": (0, 2), "u": (0,)}, pending_revocation=pending
    )
    group = ModernGroup(family=CONSUMER, members={"a": member}, targets={"a": {"t": (0,), "u": (0,)}})

    assert expected == not_released(group, member)


def test_classic_member_that_waits_for_another_was_not_fenced() -> None:
    """It has joined again and has no time to keep: that it goes at last is its own doing."""
    reported = history(
        at(0, *consumer_join("g", "a", epoch=2, targets={"a": {"t": [0, 1]}})),
        at(
            1_000,
            *consumer_join(
                "g", "w", epoch=3, targets={"w": {"t": [1]}, "a": {"t": [0]}}, assigned={}, classic=speaks_classic()
            ),
        ),
        at(2_000, *consumer_moves("g", "a", epoch=2, state=UNREVOKED, assigned={"t": [0]}, pending={"t": [1]})),
        at(2_000 + 2 * REBALANCE_TIMEOUT_MS, *consumer_leave("g", "w", epoch=4)),
    ).replayed()

    assert ([], ["w"]) == (
        reported.details("member_fenced"),
        [detail["member_id"] for detail in reported.details("member_left")],
    )


def test_member_of_a_streams_group_that_is_fenced_is_of_its_protocol() -> None:
    """It had a task to give up: neither the task nor its member is of the consumer protocol."""
    epoch = builders.streams_group_epoch
    reported = history(
        at(
            0,
            builders.streams_group_topology("g", 0, {"0": ["t"]}),
            builders.streams_group_member("g", "a", rebalance_timeout_ms=REBALANCE_TIMEOUT_MS),
            epoch("g", 2, validated_topology_epoch=0),
            builders.streams_group_target_assignment("g", "a", active={"0": [0, 1]}),
            builders.streams_group_target_assignment_epoch("g", 2),
            builders.streams_group_current_assignment("g", "a", epoch=2, active={"0": {0: 2, 1: 2}}),
        ),
        at(
            1_000,
            builders.streams_group_member("g", "b"),
            epoch("g", 3, validated_topology_epoch=0),
            builders.streams_group_target_assignment("g", "a", active={"0": [0]}),
            builders.streams_group_target_assignment("g", "b", active={"0": [1]}),
            builders.streams_group_target_assignment_epoch("g", 3),
            builders.streams_group_current_assignment(
                "g",
                "a",
                epoch=2,
                state=streams.MEMBER_UNREVOKED,
                active={"0": {0: 2}},
                active_pending_revocation={"0": {1: 2}},
            ),
        ),
        at(1_000 + REBALANCE_TIMEOUT_MS, *streams_leave("g", "a", epoch=4)),
    ).replayed()

    (fenced,) = reported.details("member_fenced")
    assert ("streams", {"0": [1]}, True) == (fenced["protocol"], fenced["not_released"], fenced["tasks"])
