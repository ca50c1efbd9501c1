"""Families of histories about instance ids that are taken over: fights, loops, and restarts that are neither."""

from collections import Counter
from random import Random
from typing import Final

import pytest

from coordinator_model.rules.static_members import RESTARTS, RUN_GAP_MS
from coordinator_model.state.events import INFO, SEVERITIES, Event
from tests.moments import overdue
from tests.side_by_side import VICTIM, Scene, log_of
from tests.simulator import faults

SEEDS = range(20)
PACES_MS: Final = (10_000, 61_000, 150_000, 290_000)
TWO_HOSTS: Final = ("/10.0.0.1", "/10.0.0.2")
KINDS: Final = {"static_member_contended", "static_member_restarting"}


def reported(scene: Scene) -> tuple[list[Event], list[Event]]:
    """What is reported of instance ids by the log, and by the clock once all is over; wherever the log is cut."""
    log = log_of(scene.coordinator)
    chance = Random(len(log))
    made = log.replayed_in_batches([chance.randint(0, 30) for _ in range(len(log) // 15)])
    state, later_ms = made.states[VICTIM], scene.coordinator.now_ms + RUN_GAP_MS + 1
    opened = [of for of in made.events if of.group == VICTIM and of.kind in KINDS and of.severity != INFO]
    return opened, [of for of in overdue(state, later_ms) if of.kind in KINDS]


def assert_once(scene: Scene, kind: str, instance_id: str) -> None:
    """It is opened once and cleared once, and nothing is said meanwhile."""
    opened, cleared = reported(scene)

    # What may be a node that was drained is a warning first; where it goes on it is said once more.
    doubted = [of for of in opened if of.severity != SEVERITIES[of.kind]]
    assert len(doubted) <= 1
    opened = [of for of in opened if of not in doubted]
    assert [(kind, instance_id)] == [(of.kind, of.detail["instance_id"]) for of in opened]
    assert [(kind, instance_id, True)] == [(of.kind, of.detail["instance_id"], of.detail["cleared"]) for of in cleared]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("kind", ["classic", "mixed"])
def test_two_processes_that_fence_each_other_for_hours_are_reported_while_it_lasts(kind: str, seed: int) -> None:
    """At any pace, in a classic group and in a consumer group whose members use the classic protocol."""
    scene, chance = Scene(seed), Random(seed)
    scene.classic_members(3, static=True)
    if kind == "mixed":
        scene.consumer_members(1)
    instance_id = max(of.instance_id or "" for of in scene.group.members.values())
    faults.fight(
        scene.coordinator,
        scene.group,
        instance_id,
        times=chance.randint(20, 60),
        every_ms=chance.choice(PACES_MS),
        hosts=TWO_HOSTS,
    )

    assert_once(scene, "static_member_contended", instance_id)


@pytest.mark.parametrize("seed", SEEDS)
def test_loop_of_one_host_is_a_warning(seed: int) -> None:
    """So is a fight of two processes in a classic group that stays Stable: the log has the first one's host."""
    scene, chance = Scene(seed), Random(seed)
    scene.classic_members(3, static=True)
    member = chance.choice(list(scene.group.members.values()))
    faults.flap(
        scene.coordinator, scene.group, member, times=chance.randint(RESTARTS, 60), every_ms=chance.choice(PACES_MS)
    )

    assert_once(scene, "static_member_restarting", member.instance_id or "")


@pytest.mark.parametrize("seed", SEEDS)
def test_three_quick_restarts_of_thirty_static_members_are_neither(seed: int) -> None:
    """Looks alike: ninety take-overs in minutes, three of each."""
    scene, chance = Scene(seed), Random(seed)
    scene.coordinator.grow("t", 30)
    for _ in range(30):
        scene.coordinator.join_classic(scene.group, static=True)
    for _ in range(3):
        members = list(scene.group.members.values())
        for member in chance.sample(members, len(members)):
            scene.coordinator.bounce(scene.group, member)

    assert ([], []) == reported(scene)


@pytest.mark.parametrize("seed", SEEDS)
def test_process_that_moves_to_another_host_is_neither(seed: int) -> None:
    """Looks alike: another host has the id, and the former one never comes back."""
    scene, chance = Scene(seed), Random(seed)
    scene.classic_members(3, static=True)
    for number, instance_id in enumerate(sorted(of.instance_id or "" for of in scene.group.members.values())):
        hosts = tuple(f"/10.0.{number}.{turn}" for turn in range(RESTARTS - 1))
        times = chance.randint(1, RESTARTS - 1)
        faults.fight(scene.coordinator, scene.group, instance_id, times=times, every_ms=60_000, hosts=hosts)

    assert ([], []) == reported(scene)


@pytest.mark.parametrize("seed", SEEDS)
def test_members_that_go_away_and_return_are_neither(seed: int) -> None:
    """Looks alike: consumer-protocol members are rolled, and their member ids change."""
    scene, chance = Scene(seed), Random(seed)
    for _ in range(4):
        scene.coordinator.join_consumer(scene.group, static=True)
        scene.coordinator.settle(scene.group)
    for _ in range(RESTARTS - 1):
        for instance_id in chance.sample(sorted(of.instance_id or "" for of in scene.group.members.values()), 4):
            member = scene.group.of_instance(instance_id)
            assert member is not None
            scene.coordinator.step_away(scene.group, member)
            scene.coordinator.lag(chance.randint(1_000, 40_000))
            scene.coordinator.come_back(scene.group, member, host=chance.choice(TWO_HOSTS))
            scene.coordinator.settle(scene.group)

    assert ([], []) == reported(scene)


@pytest.mark.parametrize("seed", SEEDS)
def test_rare_restarts_are_neither(seed: int) -> None:
    """Looks alike: one after another for a day, from one host to the other and back."""
    scene, chance = Scene(seed), Random(seed)
    scene.classic_members(2, static=True)
    instance_id = next(of.instance_id or "" for of in scene.group.members.values())
    for turn in range(20):
        pace_ms = RUN_GAP_MS + chance.randint(10_000, 3_600_000)
        faults.fight(
            scene.coordinator, scene.group, instance_id, times=1, every_ms=pace_ms, hosts=(TWO_HOSTS[turn % 2],)
        )

    opened, cleared = reported(scene)
    assert (Counter(), []) == (Counter(of.kind for of in opened), cleared)
