"""A group rolled from one protocol to the other and back, as an operator would: the way is known all along."""

from random import Random
from typing import Final

import pytest

from coordinator_model.replica import Replica
from coordinator_model.state.findings import Position
from coordinator_model.views.group_view import group_view
from tests.histories import PARTITION, TOPIC_NAMES
from tests.side_by_side import VICTIM, Scene, cleaned, kinds, log_of
from tests.simulator.coordinator import ReferenceCoordinator


def phases(coordinator: ReferenceCoordinator) -> list[str | None]:
    """The victim's phase after each event of the log; None while there is no victim."""
    replica, found = Replica(), list[str | None]()
    for written in coordinator.log:
        for offset, (key, value) in enumerate(written.records, written.offset):
            replica.replay(Position(PARTITION, offset, written.time_ms), key, value)
        replica.settle()
        state = replica.groups.get(VICTIM)
        found.append(None if state is None else group_view(state, (), TOPIC_NAMES)["migration"]["phase"])
    return found


ROLLED: Final = ["upgrade_started", "upgrade_completed", "downgrade_started", "downgrade_completed"]


def assert_rolled(scene: Scene, begun: int, turned: int) -> None:
    """Reported once each, nothing else alarmed, and the phase was right after each event on either way."""
    events, _ = scene.reported()
    way = phases(scene.coordinator)

    assert {} == kinds(events)
    assert ROLLED == [of.kind for of in events if of.kind.startswith(("upgrade", "downgrade"))]
    assert ["classic", "upgrading", "upgraded"] == list(dict.fromkeys(way[begun - 1 : turned]))
    assert ["upgraded", "downgrading", "downgraded"] == list(dict.fromkeys(way[turned - 1 :]))


@pytest.mark.parametrize("protocol", ["range", "cooperative-sticky"])
@pytest.mark.parametrize("seed", range(5))
def test_members_rolled_up_and_down_one_by_one(protocol: str, seed: int) -> None:
    """KIP-848, KIP-915: each leaves and comes back speaking the other protocol; the way is known all along."""
    scene = Scene(seed, protocol)
    scene.classic_members(3)
    coordinator, group = scene.coordinator, scene.group

    def roll(*, classic: bool) -> None:
        for member in list(group.members.values()):
            coordinator.leave(group, member)
            coordinator.lag(2_000)
            coordinator.join_classic(group) if classic else coordinator.join_consumer(group)
            scene.traffic()
            coordinator.settle(group)

    begun = len(coordinator.log)
    roll(classic=False)
    turned = len(coordinator.log)
    roll(classic=True)

    assert_rolled(scene, begun, turned)


@pytest.mark.parametrize("seed", range(5))
def test_static_members_rolled_up_and_down_in_place(seed: int) -> None:
    """Each is replaced by a process of the same instance id; the last one down converts the group as it comes."""
    scene = Scene(seed)
    scene.classic_members(3, static=True)
    coordinator, group = scene.coordinator, scene.group
    statics = sorted(of.instance_id or "" for of in group.members.values())

    def roll(*, classic: bool) -> None:
        for instance_id in statics:
            member = group.of_instance(instance_id)
            assert member is not None
            assert coordinator.come_back(group, member, as_classic=classic)
            scene.traffic()
            coordinator.settle(group)

    begun = len(coordinator.log)
    scene.consumer_members(1)
    dynamic = next(of for of in group.members.values() if of.instance_id is None)
    roll(classic=False)
    coordinator.leave(group, dynamic)
    coordinator.settle(group)
    turned = len(coordinator.log)
    roll(classic=True)

    assert_rolled(scene, begun, turned)
    assert group.kind == "classic"


@pytest.mark.parametrize("seed", range(5))
def test_roll_that_turns_round(seed: int) -> None:
    """Two of three are rolled up and back down: it is a downgrade as soon as a classic member takes one's place."""
    scene = Scene(seed)
    scene.classic_members(3)
    coordinator, group = scene.coordinator, scene.group

    def replace_one(*, classic: bool) -> None:
        coordinator.leave(group, next(of for of in group.members.values() if of.classic != classic))
        coordinator.join_classic(group) if classic else coordinator.join_consumer(group)
        scene.traffic()
        coordinator.settle(group)

    replace_one(classic=False)
    replace_one(classic=False)
    turned = len(coordinator.log)
    replace_one(classic=True)
    replace_one(classic=True)
    events, _ = scene.reported()

    assert {} == kinds(events)
    assert [ROLLED[0], *ROLLED[2:]] == [of.kind for of in events if of.kind.startswith(("upgrade", "downgrade"))]
    assert ["upgrading", "downgrading", "downgraded"] == list(dict.fromkeys(phases(coordinator)[turned - 1 :]))


# -- members that crash or restart meanwhile --------------------------------------------------------------------------

SEEDS: Final = range(20)


def half_way(seed: int, *, up: bool) -> tuple[Scene, Random]:
    """Four or five members, two or more of each protocol, on the way up or down."""
    chance = Random(seed)
    scene = Scene(seed, chance.choice(["range", "cooperative-sticky"]))
    size = chance.randint(4, 5)
    scene.classic_members(size)
    for _ in range(chance.randint(2, size - 2) if up else size):
        replace_one(scene, chance, classic=False)
    for _ in range(0 if up else chance.randint(2, size - 2)):
        replace_one(scene, chance, classic=True)
    return scene, chance


def replace_one(scene: Scene, chance: Random, *, classic: bool) -> None:
    """A member is stopped, and another one started that speaks the other protocol; or the other way round."""
    goes = next(of for of in scene.group.members.values() if of.classic != classic)
    for stops in sorted((True, False), key=lambda _: chance.random()):
        if stops:
            scene.coordinator.leave(scene.group, goes)
        else:
            comes(scene, classic=classic)
        scene.coordinator.lag(chance.choice((0, 2_000, 20_000)))
    scene.traffic()
    scene.coordinator.settle(scene.group)


def comes(scene: Scene, *, classic: bool) -> None:
    joins = scene.coordinator.join_classic if classic else scene.coordinator.join_consumer
    joins(scene.group)


def goes_and_is_back(scene: Scene, chance: Random, *, both: bool) -> None:
    """One member crashes, with `both` one of each protocol, in any order, and each is back as it was."""
    kinds_ = sorted((True, False), key=lambda _: chance.random())[: 2 if both else 1]
    for classic in kinds_:
        scene.coordinator.leave(scene.group, next(of for of in scene.group.members.values() if of.classic == classic))
        scene.coordinator.lag(chance.choice((500, 5_000, 50_000)))
    for classic in sorted(kinds_, key=lambda _: chance.random()):
        comes(scene, classic=classic)
        scene.coordinator.lag(chance.choice((500, 5_000, 50_000)))
    scene.coordinator.settle(scene.group)


def reported_of_the_way(scene: Scene) -> list[str]:
    """Beginnings and ends of upgrades and downgrades of the victim."""
    events, _ = scene.reported()
    return [of.kind for of in events if of.kind in ROLLED]


@pytest.mark.parametrize("up", [True, False])
@pytest.mark.parametrize("seed", SEEDS)
def test_members_that_crash_and_restart_turn_no_roll(seed: int, up: bool) -> None:
    """An upgraded one crashes while a classic one restarts: the roll goes on as it did, up or down."""
    scene, chance = half_way(seed, up=up)
    before = reported_of_the_way(scene)

    for _ in range(chance.randint(1, 2)):
        goes_and_is_back(scene, chance, both=True)
    goes_and_is_back(scene, chance, both=False)

    assert before == reported_of_the_way(scene)
    assert ("upgrading" if up else "downgrading") == phases(scene.coordinator)[-1]


@pytest.mark.parametrize("seed", SEEDS)
def test_last_classic_member_that_restarts_while_an_upgraded_one_is_down_begins_no_downgrade(seed: int) -> None:
    """Whichever went first: the alarm is for a downgrade, and the log does not show one."""
    scene, chance = half_way(seed, up=True)
    while sum(of.classic for of in scene.group.members.values()) > 1:
        replace_one(scene, chance, classic=False)

    goes_and_is_back(scene, chance, both=True)

    assert [] == [kind for kind in reported_of_the_way(scene) if kind.startswith("downgrade")]
    assert phases(scene.coordinator)[-1] in ("upgrading", None)


@pytest.mark.parametrize("seed", SEEDS)
def test_roll_back_from_half_way_is_reported_once(seed: int) -> None:
    """Upgraded members go and classic ones come in their places, even where one crashed and came back before."""
    scene, chance = half_way(seed, up=True)
    goes_and_is_back(scene, chance, both=chance.random() < 0.5)

    for _ in range(2):
        replace_one(scene, chance, classic=True)

    assert ["upgrade_started", "downgrade_started"] == reported_of_the_way(scene)[:2]
    assert phases(scene.coordinator)[-1] in ("downgrading", "downgraded")


@pytest.mark.parametrize("up", [True, False])
@pytest.mark.parametrize("seed", SEEDS)
def test_mixed_group_first_seen_half_way_goes_no_known_way(seed: int, up: bool) -> None:
    """A cleaned log does not show which of both kinds came last: no way is guessed, least of all the wrong one."""
    scene, chance = half_way(seed, up=up)
    log = log_of(scene.coordinator)
    wrong = "downgrading" if up else "upgrading"

    first = cleaned(log, len(log), drop_tombstones=chance.random() < 0.5).replayed()
    assert None is first.view(VICTIM)["migration"]["phase"]
    assert [] == [of.kind for of in first.events if of.group == VICTIM and of.kind.startswith("downgrade")]

    end = len(log)
    replace_one(scene, chance, classic=not up)
    then = cleaned(log_of(scene.coordinator), end, drop_tombstones=True).replayed()
    assert wrong != then.view(VICTIM)["migration"]["phase"]
