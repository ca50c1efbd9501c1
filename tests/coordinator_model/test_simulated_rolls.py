"""A group rolled from one protocol to the other and back, as an operator would: the way is known all along."""

from typing import Final

import pytest

from coordinator_model.replica import Position, Replica
from coordinator_model.view import group_view
from tests.histories import PARTITION, TOPIC_NAMES
from tests.side_by_side import VICTIM, Scene, kinds
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
    """Told once each, nothing else alarmed, and the phase was right after each event on either way."""
    events, _ = scene.told()
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
    events, _ = scene.told()

    assert {} == kinds(events)
    assert [ROLLED[0], *ROLLED[2:]] == [of.kind for of in events if of.kind.startswith(("upgrade", "downgrade"))]
    assert ["upgrading", "downgrading", "downgraded"] == list(dict.fromkeys(phases(coordinator)[turned - 1 :]))
