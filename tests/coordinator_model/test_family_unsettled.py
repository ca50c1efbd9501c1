"""Families of histories about groups that do not come to rest, and rolls and slow members that look like it."""

from collections import Counter
from random import Random
from typing import Final

import pytest

from coordinator_model.clocked.lasting import LastingAlarms
from coordinator_model.clocked.moment import UNSETTLED_AFTER_MS
from coordinator_model.replica import Replica
from coordinator_model.state.events import INFO, Event
from coordinator_model.state.findings import Position
from tests.histories import PARTITION
from tests.moments import overdue
from tests.side_by_side import VICTIM, Scene, log_of
from tests.simulator.coordinator import ReferenceCoordinator

SEEDS: Final = range(20)
FEW: Final = range(6)
"""Of what takes hundreds of events, whichever way each of them goes."""
LOOK_EVERY_MS: Final = 5_000


def looked_at(coordinator: ReferenceCoordinator, *, until_ms: int = 0, without_storms: bool = True) -> list[Event]:
    """What is reported of the victim by its log, and by looks every few seconds, each event once."""
    replica, lasting, reported = Replica(), LastingAlarms(), dict[str, Event]()
    next_ms = coordinator.log[0].time_ms

    def look(now_ms: int) -> None:
        state = replica.groups.get(VICTIM)
        found = overdue(state, now_ms) if state is not None and state.step is None else []
        reported.update({event.id: event for event in (*found, *lasting.ended(found, now_ms))})

    for of in log_of(coordinator).records:
        while of.place.timestamp_ms > next_ms:
            for event in replica.settle():
                reported[event.id] = event
            look(next_ms)
            next_ms += LOOK_EVERY_MS
        for event in replica.replay(Position(PARTITION, *of.place[1:]), of.key, of.value):
            reported[event.id] = event
    for event in replica.settle():
        reported[event.id] = event
    for now_ms in range(next_ms, max(until_ms, coordinator.now_ms + 200_000), LOOK_EVERY_MS):
        look(now_ms)
    quiet = {"rebalance_storm"} if without_storms else set()
    return [of for of in reported.values() if of.group == VICTIM and of.kind not in quiet]


def alarms(events: list[Event]) -> Counter[str]:
    """Kinds beyond information."""
    return Counter(of.kind for of in events if of.severity != INFO)


def flap(scene: Scene, chance: Random, *, for_ms: int, every_ms: int) -> None:
    """One member joins and leaves again and again; the others call in now and then."""
    coordinator, group, until_ms = scene.coordinator, scene.group, scene.coordinator.now_ms + for_ms
    steady = list(group.members)
    while coordinator.now_ms < until_ms:
        flapping = [of for of in group.members.values() if of.member_id not in steady]
        if flapping:
            coordinator.leave(group, *flapping)
        elif group.kind == "classic":
            coordinator.join_classic(group)
        else:
            coordinator.join_consumer(group)
        if group.kind != "classic" and chance.random() < 0.7:
            coordinator.heartbeat(group, group.members[chance.choice(steady)])
        coordinator.lag(every_ms)


@pytest.mark.parametrize(("every_ms", "seed"), [(1_000, 0), (4_000, 1), (15_000, 0)])
@pytest.mark.parametrize("kind", ["consumer", "mixed", "classic"])
def test_group_in_which_a_member_flaps_for_hours_is_reported(kind: str, every_ms: int, seed: int) -> None:
    """Once when it lasts for too long, with epochs a minute and who comes and goes, and once when it is over."""
    scene, chance = Scene(seed), Random(seed)
    if kind != "consumer":
        scene.classic_members(2)
    if kind != "classic":
        scene.consumer_members(2)
    scene.coordinator.lag(120_000)
    begun_ms = scene.coordinator.now_ms
    flap(scene, chance, for_ms=7_200_000 if every_ms == 15_000 else 900_000, every_ms=every_ms)
    scene.coordinator.settle(scene.group)
    ended_ms = scene.coordinator.now_ms

    opened, cleared = (of for of in looked_at(scene.coordinator) if of.kind == "group_unsettled")
    assert ("warning", None, "info", True) == (
        opened.severity,
        opened.detail.get("cleared"),
        cleared.severity,
        cleared.detail["cleared"],
    )
    assert begun_ms <= opened.time_ms <= begun_ms + 60_000 < ended_ms
    assert opened.detail["unsettled_ms"] >= UNSETTLED_AFTER_MS
    assert opened.detail["epochs_per_minute"] > 2
    assert opened.detail["come_and_go"][0]["joined"] + opened.detail["come_and_go"][0]["left"] > 20


@pytest.mark.parametrize("seed", FEW)
def test_mixed_group_that_storms_is_reported(seed: int) -> None:
    """It was exempt, as somebody rolls it."""
    scene, chance = Scene(seed), Random(seed)
    scene.classic_members(2)
    scene.consumer_members(1)
    for _ in range(60):
        member = next(of for of in scene.group.members.values() if not of.classic)
        scene.coordinator.join_consumer(scene.group)
        scene.coordinator.lag(1_100)
        scene.coordinator.leave(scene.group, member)
        for _ in range(4):
            for of in list(scene.group.members.values()):
                scene.coordinator.heartbeat(scene.group, of)
            scene.coordinator.lag(chance.randint(200, 500))

    reported = looked_at(scene.coordinator, until_ms=scene.coordinator.now_ms + 400_000, without_storms=False)
    assert [None, True] == [of.detail.get("cleared") for of in reported if of.kind == "rebalance_storm"]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("pause_ms", [1_000, 30_000])
def test_roll_of_a_group_up_and_down_is_no_unrest(pause_ms: int, seed: int) -> None:
    """Looks alike: members of both protocols come and go, one at a time, for an hour."""
    scene, chance = Scene(seed), Random(seed)
    scene.classic_members(chance.randint(3, 9))
    coordinator, group = scene.coordinator, scene.group
    for classic in (False, True):
        for member in list(group.members.values()):
            coordinator.leave(group, member)
            coordinator.lag(chance.randint(1_000, 2_000) + pause_ms)
            coordinator.join_classic(group) if classic else coordinator.join_consumer(group)
            coordinator.settle(group)
            coordinator.lag(pause_ms)

    reported = alarms(looked_at(coordinator, without_storms=False))
    assert not reported.keys() & {"group_unsettled", "rebalance_storm", "rebalance_stuck"}


@pytest.mark.parametrize("seed", SEEDS)
def test_member_that_is_slow_to_let_go_is_no_unrest(seed: int) -> None:
    """Looks alike: not settled for a quarter of an hour, and no epoch goes by."""
    scene = Scene(seed)
    scene.consumer_members(2)
    scene.coordinator.join_consumer(scene.group)
    scene.coordinator.lag(5_000)
    for _ in range(180):
        for member in list(scene.group.members.values()):
            scene.coordinator.heartbeat(scene.group, member, let_go=False)
        scene.coordinator.lag(5_000)

    assert "group_unsettled" not in alarms(looked_at(scene.coordinator))


@pytest.mark.parametrize("seed", range(2))
def test_many_members_that_start_one_by_one_are_no_unrest(seed: int) -> None:
    """Looks alike: an epoch every ten seconds for a quarter of an hour, and each member comes once."""
    scene, chance = Scene(seed), Random(seed)
    scene.coordinator.grow("t", 60)
    for _ in range(90):
        scene.coordinator.join_consumer(scene.group)
        scene.coordinator.lag(chance.randint(5_000, 15_000))

    assert "group_unsettled" not in alarms(looked_at(scene.coordinator))


@pytest.mark.parametrize("seed", FEW)
def test_restarts_now_and_then_all_day_are_no_unrest(seed: int) -> None:
    """Looks alike: a hundred epochs, and the group comes to rest after each."""
    scene, chance = Scene(seed, Random(seed).choice(["range", "cooperative-sticky"])), Random(seed)
    scene.classic_members(3)
    for _ in range(50):
        scene.coordinator.leave(scene.group, chance.choice(list(scene.group.members.values())))
        scene.coordinator.rebalance(scene.group)
        scene.coordinator.join_classic(scene.group)
        scene.coordinator.rebalance(scene.group)
        scene.coordinator.lag(chance.randint(70_000, 900_000))

    assert "group_unsettled" not in alarms(looked_at(scene.coordinator))


# -- assignors that are not stuck -------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
def test_group_with_only_away_members_waits_for_no_assignor(seed: int) -> None:
    """No one calls in who would ask for a target: it is computed when one of them is back."""
    scene, chance = Scene(seed), Random(seed)
    for _ in range(chance.randint(1, 3)):
        scene.coordinator.join_consumer(scene.group, static=True)
        scene.coordinator.settle(scene.group)
    scene.consumer_members(1)
    for member in list(scene.group.members.values()):
        if member.instance_id is not None:
            scene.coordinator.step_away(scene.group, member)
    scene.coordinator.leave(scene.group, *[of for of in scene.group.members.values() if not of.away])

    reported = looked_at(scene.coordinator, until_ms=scene.coordinator.now_ms + 1_800_000)
    assert "rebalance_stuck" not in alarms(reported)


@pytest.mark.parametrize("seed", SEEDS)
def test_streams_group_within_its_initial_delay_waits_for_no_assignor(seed: int) -> None:
    """Its first members came, and more may: the delay is configured, and may be minutes."""
    scene, chance = Scene(seed, family="streams"), Random(seed)
    for _ in range(chance.randint(1, 3)):
        scene.coordinator.join_streams(scene.group)
        scene.coordinator.lag(chance.randint(0, 10_000))

    reported = looked_at(scene.coordinator, until_ms=scene.coordinator.now_ms + 240_000)
    assert "rebalance_stuck" not in alarms(reported)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("family", ["consumer", "streams"])
def test_target_that_a_member_waits_for_in_vain_is_a_stuck_assignor(family: str, seed: int) -> None:
    """One is there who calls in; reported once, and once when there is a target."""
    scene = Scene(seed, family=family)
    join = scene.coordinator.join_consumer if family == "consumer" else scene.coordinator.join_streams
    join(scene.group)
    scene.coordinator.settle(scene.group)
    join(scene.group)
    scene.coordinator.leave(scene.group, list(scene.group.members.values())[-1])
    scene.coordinator.lag(120_000)
    scene.coordinator.settle(scene.group)

    reported = [of for of in looked_at(scene.coordinator) if of.kind == "rebalance_stuck"]
    assert [("assignor", None), (None, True)] == [
        (of.detail.get("waiting_for"), of.detail.get("cleared")) for of in reported
    ]
