"""Families of histories about partitions that change hands: what moved is counted, and nothing else.

Each history is made by a coordinator that knows who owned what all along; members come and go as chance has it.
"""

from random import Random

import pytest

from coordinator_model.rules.handovers import REMEMBERED_MS
from tests.histories import Reported
from tests.side_by_side import VICTIM, Scene, log_of
from tests.simulator.assignors import Assignment
from tests.simulator.classic import Assignor
from tests.simulator.cluster import Place
from tests.simulator.memory import Group

SEEDS = range(20)


class Watcher:
    """Looks at the group after each event, and counts what another took than who had it last."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.last: dict[Place, str] = {}
        self.vacant_since_ms: dict[Place, int] = {}
        self.let_go_from: dict[Place, int] = {}
        """Generation from which on the owner of a partition is to let go of it."""
        self.moved = 0

    def look(self) -> None:
        now_ms, now = self.scene.coordinator.now_ms, owners(self.scene.group)
        for place, owner in now.items():
            vacant_ms = now_ms - self.vacant_since_ms.pop(place, now_ms)
            self.moved += self.last.get(place, owner) != owner and vacant_ms <= REMEMBERED_MS
            self.last[place] = owner
            self.let_go_from.pop(place, None)
        for place in self.last.keys() - now.keys():
            if not self.has_yet_to_let_go(place):
                self.vacant_since_ms.setdefault(place, now_ms)

    def has_yet_to_let_go(self, place: Place) -> bool:
        """Whether the owner, who still is a member, learns only from this generation that it is to let go."""
        group = self.scene.group
        if group.kind != "classic" or group.protocol != "cooperative-sticky":
            return False
        present = {of.instance_id or of.member_id for of in group.written}
        generation = self.let_go_from.setdefault(place, group.written_generation)
        return generation == group.written_generation and self.last[place] in present


def owners(group: Group) -> dict[Place, str]:
    """Topic as it was first made, and partition → who has it, a static member by its instance id."""
    if group.kind == "classic":
        ids = {of.member_id: of.instance_id or of.member_id for of in group.written}
        return {place: ids[id_] for id_, places in group.assignment.items() if id_ in ids for place in places}
    return {place: of.instance_id or of.member_id for of in group.members.values() for place in of.assigned}


def fixed(given: Assignment) -> Assignor:
    """An assignor that gives this, whatever members claim."""
    return lambda _, __: given


def reported(scene: Scene) -> Reported:
    return log_of(scene.coordinator).replayed()


def comes_or_goes(scene: Scene, chance: Random) -> None:
    """A classic member joins or leaves, and the group takes the second round that a cooperative one needs."""
    coordinator, group = scene.coordinator, scene.group
    if len(group.members) > 1 and chance.random() < 0.5:
        coordinator.leave(group, chance.choice(list(group.members.values())))
    elif len(group.members) < 5:
        coordinator.join_classic(group, static=chance.random() < 0.3)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("protocol", ["cooperative-sticky", "sticky", "range"])
def test_moves_of_classic_groups_are_all_counted(protocol: str, seed: int) -> None:
    """Also those of a cooperative group, by way of a generation in which no member owns the partition."""
    scene, chance = Scene(seed, protocol), Random(seed)
    watcher = Watcher(scene)
    for _ in range(12):
        comes_or_goes(scene, chance)
        watcher.look()
        scene.traffic()
        scene.coordinator.rebalance(scene.group)
        watcher.look()
        scene.traffic()
    made = reported(scene)

    assert watcher.moved == made.states[VICTIM].counters.partitions_moved > 0
    completed = [of.detail for of in made.events if of.group == VICTIM and of.kind == "rebalance_completed"]
    assert watcher.moved == sum(detail["partitions_moved"] for detail in completed)
    assert all(detail["stickiness"] < 1 for detail in completed if detail["partitions_moved"])


@pytest.mark.parametrize("seed", SEEDS)
def test_moves_of_consumer_groups_are_all_counted(seed: int) -> None:
    """One by one, as members let go and take; and also while the rebalance never ends."""
    scene, chance = Scene(seed), Random(seed)
    watcher, coordinator, group = Watcher(scene), scene.coordinator, scene.group
    for _ in range(12):
        if len(group.members) > 1 and chance.random() < 0.5:
            coordinator.leave(group, chance.choice(list(group.members.values())))
        elif len(group.members) < 5:
            coordinator.join_consumer(group)
        for _ in range(chance.randint(1, 6)):
            coordinator.heartbeat(group, chance.choice(list(group.members.values())))
            watcher.look()
            coordinator.lag(1_500)
    made = reported(scene)

    assert watcher.moved == made.states[VICTIM].counters.partitions_moved > 0


@pytest.mark.parametrize("seed", SEEDS)
def test_moves_are_counted_alike_wherever_the_log_is_cut(seed: int) -> None:
    """The last owners are kept across restarts."""
    scene, chance = Scene(seed, "cooperative-sticky"), Random(seed)
    for _ in range(6):
        comes_or_goes(scene, chance)
        scene.coordinator.rebalance(scene.group)
    log = log_of(scene.coordinator)

    pieces = log.replayed_in_batches([chance.randint(0, 9) for _ in range(len(log))])

    assert log.replayed().states == pieces.states


@pytest.mark.parametrize("seed", SEEDS)
def test_restarts_of_static_members_move_nothing(seed: int) -> None:
    """Looks alike: other member ids have the partitions, and the same instances do."""
    scene, chance = Scene(seed, "cooperative-sticky"), Random(seed)
    scene.classic_members(3, static=True)
    before = reported(scene).states[VICTIM].counters.partitions_moved
    for _ in range(10):
        scene.coordinator.bounce(scene.group, chance.choice(list(scene.group.members.values())))
        scene.traffic()
        if chance.random() < 0.3:
            scene.coordinator.rebalance(scene.group)

    assert before == reported(scene).states[VICTIM].counters.partitions_moved


@pytest.mark.parametrize("seed", SEEDS)
def test_partitions_given_up_and_taken_back_move_nowhere(seed: int) -> None:
    """Looks alike: in between they had no owner."""
    scene, chance = Scene(seed, "cooperative-sticky"), Random(seed)
    scene.classic_members(3)
    before = reported(scene).states[VICTIM].counters.partitions_moved
    for _ in range(8):
        given = {of: set(places) for of, places in scene.group.assignment.items()}
        some = {place for places in given.values() for place in places if chance.random() < 0.5}
        scene.coordinator.rebalance(scene.group, assignor=fixed({of: given[of] - some for of in given}))
        scene.traffic()
        scene.coordinator.rebalance(scene.group, assignor=fixed(given))

    assert before == reported(scene).states[VICTIM].counters.partitions_moved


@pytest.mark.parametrize("seed", SEEDS)
def test_group_that_begins_again_after_a_long_stop_takes_over_from_nobody(seed: int) -> None:
    """Looks alike: other members own what those of the day before did."""
    scene, chance = Scene(seed, Random(seed).choice(["range", "cooperative-sticky"])), Random(seed)
    scene.classic_members(2)
    scene.coordinator.leave(scene.group, *scene.group.members.values())
    before = reported(scene).states[VICTIM].counters.partitions_moved
    scene.coordinator.lag(REMEMBERED_MS + chance.randint(1, 86_400_000))
    scene.coordinator.join_classic(scene.group)
    scene.traffic()

    assert before == reported(scene).states[VICTIM].counters.partitions_moved
