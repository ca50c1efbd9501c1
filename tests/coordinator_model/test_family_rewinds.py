"""Families of histories about offsets that go back: a former owner is named, and what is meant wakes no one."""

from collections.abc import Callable
from random import Random
from typing import Final

import pytest

from coordinator_model.state.events import CRITICAL, INFO, WARNING, Event
from tests.side_by_side import VICTIM, Scene, log_of
from tests.simulator.cluster import RELEASES, Place
from tests.simulator.memory import Group

SEEDS = range(20)
PRODUCER: Final = 1


def rewinds(scene: Scene) -> list[Event]:
    """What is reported of the victim's offsets that went back."""
    events = log_of(scene.coordinator).replayed().events
    return [of for of in events if of.group == VICTIM and of.kind == "offset_rewound"]


def owned(group: Group) -> dict[Place, str]:
    """(topic name, partition) → member id."""
    if group.kind == "classic":
        return {place: id_ for id_, places in group.assignment.items() for place in places}
    named = group.cluster.named
    return {place: of.member_id for of in group.members.values() for place in named(of.assigned)}


def commit(scene: Scene, offsets: dict[Place, int], *, transactional: bool) -> None:
    scene.coordinator.commit(scene.group, offsets, producer=PRODUCER if transactional else None)
    if transactional:
        scene.coordinator.end_transaction(PRODUCER, commit=True)


def cooperative(scene: Scene) -> None:
    scene.classic_members(2)


def consumers(scene: Scene) -> None:
    scene.consumer_members(2)


def another_comes(scene: Scene) -> None:
    """And takes over some partitions, once their owners have given them up."""
    if scene.group.kind == "classic":
        scene.coordinator.join_classic(scene.group)
        scene.coordinator.rebalance(scene.group)
    else:
        scene.coordinator.join_consumer(scene.group)
    scene.coordinator.settle(scene.group)


def nothing_moves(scene: Scene) -> None:
    """A rebalance that leaves everything where it is."""
    if scene.group.kind == "classic":
        scene.coordinator.rebalance(scene.group)
    else:
        scene.coordinator.join_consumer(scene.group, topics=("v",))
    scene.coordinator.settle(scene.group)


KINDS: Final = [
    pytest.param(cooperative, "cooperative-sticky", id="cooperative"),
    pytest.param(cooperative, "range", id="eager"),
    pytest.param(consumers, "range", id="consumer"),
]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("transactional", [False, True], ids=["plain", "transactional"])
@pytest.mark.parametrize(("members", "protocol"), KINDS)
def test_former_owner_that_commits_is_reported(
    members: Callable[[Scene], None], protocol: str, transactional: bool, seed: int
) -> None:
    """However many rebalances came after the hand-over; all its partitions in one event, both owners by name."""
    scene, chance = Scene(seed, protocol), Random(seed)
    members(scene)
    before = owned(scene.group)
    commit(scene, dict.fromkeys(before, 500), transactional=transactional)
    another_comes(scene)
    now = owned(scene.group)
    moved = {place for place, owner in now.items() if before[place] != owner}
    commit(scene, dict.fromkeys(now, 600), transactional=transactional)
    for _ in range(chance.randint(0, 3)):
        nothing_moves(scene)
    former = before[chance.choice(sorted(moved))]
    back = [place for place in sorted(moved) if before[place] == former]
    commit(scene, dict.fromkeys(back, chance.randint(1, 599)), transactional=transactional)

    (event,) = rewinds(scene)
    detail = event.detail
    assert (True, WARNING, True) == (detail.get("after_handover"), event.severity, event.inferred)
    assert (former, now[detail["topic"], detail["partition"]]) == (detail["former_owner"], detail["present_owner"])
    assert sorted(f"{topic}/{partition}" for topic, partition in back) == sorted(detail["offsets"])


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("release", ["3.9", "4.0"])
def test_former_owner_is_reported_where_commits_never_name_topic_ids(release: str, seed: int) -> None:
    """Brokers before 4.1 write names with the group, and that says which topic is which."""
    scene = Scene(seed)
    scene.coordinator.upgrade_brokers(RELEASES[release])
    for topics in (("t",), ("t", "u")):
        scene.coordinator.join_consumer(scene.group, topics=topics)
        scene.coordinator.settle(scene.group)
    before = owned(scene.group)
    commit(scene, dict.fromkeys(before, 500), transactional=False)
    scene.coordinator.join_consumer(scene.group, topics=("t", "u"))
    scene.coordinator.settle(scene.group)
    now = owned(scene.group)
    place = next(of for of, owner in sorted(now.items()) if before[of] != owner)
    stayed = next(of for of, owner in sorted(now.items()) if before[of] == owner)
    commit(scene, {place: 100}, transactional=False)
    scene.coordinator.lag(1_000)
    commit(scene, {stayed: 100}, transactional=False)

    first, second = rewinds(scene)
    assert before[place] == first.detail.get("former_owner")
    assert "after_handover" not in second.detail


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("members", "protocol"), KINDS)
def test_owner_that_seeks_back_is_no_former_owner(members: Callable[[Scene], None], protocol: str, seed: int) -> None:
    """Looks alike: some partitions have just moved, and one that did not for long goes back."""
    scene, chance = Scene(seed, protocol), Random(seed)
    members(scene)
    scene.coordinator.lag(600_000)
    before = owned(scene.group)
    commit(scene, dict.fromkeys(before, 500), transactional=False)
    another_comes(scene)
    stayed = [place for place, owner in sorted(owned(scene.group).items()) if before[place] == owner]
    commit(scene, {chance.choice(stayed): 100}, transactional=chance.random() < 0.5)

    (event,) = rewinds(scene)
    assert (False, False, WARNING) == ("after_handover" in event.detail, event.inferred, event.severity)


@pytest.mark.parametrize("seed", SEEDS)
def test_static_member_that_restarts_and_seeks_back_is_no_former_owner(seed: int) -> None:
    """Looks alike: another member id has the partition now."""
    scene, chance = Scene(seed, chance_protocol(seed)), Random(seed)
    scene.classic_members(2, static=True)
    scene.coordinator.lag(600_000)
    places = owned(scene.group)
    commit(scene, dict.fromkeys(places, 500), transactional=False)
    scene.coordinator.bounce(scene.group, chance.choice(list(scene.group.members.values())))
    commit(scene, dict.fromkeys(places, 100), transactional=False)

    (event,) = rewinds(scene)
    assert "after_handover" not in event.detail


def chance_protocol(seed: int) -> str:
    return ("range", "cooperative-sticky")[seed % 2]


@pytest.mark.parametrize("seed", SEEDS)
def test_resets_and_syncs_wake_nobody(seed: int) -> None:
    """Looks alike: offsets go back, of a simple group, of one that emptied, and as MirrorMaker syncs them."""
    scene, chance = Scene(seed, chance_protocol(seed)), Random(seed)
    if chance.random() < 0.5:
        scene.classic_members(2)
        scene.coordinator.leave(scene.group, *scene.group.members.values())
    places: list[Place] = [("t", partition) for partition in range(6)]
    moments = 0
    for _ in range(10):
        commit(scene, dict.fromkeys(places, chance.randint(400, 800)), transactional=False)
        scene.traffic()
        commit(scene, dict.fromkeys(chance.sample(places, 4), chance.randint(0, 300)), transactional=False)
        moments += 1
        scene.traffic()

    reported = rewinds(scene)
    assert {INFO} == {event.severity for event in reported}
    assert moments <= len(reported) <= 2 * moments


@pytest.mark.parametrize("seed", SEEDS)
def test_commits_that_go_forward_after_any_hand_over_say_nothing(seed: int) -> None:
    """Looks alike: partitions move all the time, and their owners commit."""
    scene, chance = Scene(seed, chance_protocol(seed)), Random(seed)
    scene.classic_members(2)
    for turn in range(1, 8):
        another_comes(scene) if len(scene.group.members) < 4 else scene.coordinator.leave(
            scene.group, chance.choice(list(scene.group.members.values()))
        )
        commit(scene, dict.fromkeys(owned(scene.group), 100 * turn), transactional=chance.random() < 0.5)

    assert [] == [event for event in rewinds(scene) if event.severity in (WARNING, CRITICAL)]


@pytest.mark.parametrize("seed", SEEDS)
def test_owner_is_known_where_no_commit_names_an_id_and_topics_are_several(seed: int) -> None:
    """Looks alike: a partition of one topic has moved, and its owner goes back on a partition of another that has not.

    Who reads a recording, or asks a cluster, knows which topic has which id.
    """
    scene, chance = Scene(seed), Random(seed)
    for _ in range(2):
        scene.coordinator.join_consumer(scene.group, topics=("t", "u"))
        scene.coordinator.settle(scene.group)
    scene.coordinator.lag(600_000)
    before = owned(scene.group)
    commit(scene, dict.fromkeys(before, 500), transactional=True)
    scene.coordinator.join_consumer(scene.group, topics=("t", "u"))
    scene.coordinator.settle(scene.group)
    now = owned(scene.group)
    commit(scene, dict.fromkeys(now, 600), transactional=True)
    moved, stayed = ([of for of in sorted(now) if (before[of] != now[of]) is has] for has in (True, False))
    for places in (moved, stayed):
        scene.coordinator.lag(1_000)
        commit(scene, {chance.choice(places): 100}, transactional=True)

    names = scene.coordinator.cluster.topic_names()
    reported = log_of(scene.coordinator).replayed(topic_ids={name: id_ for id_, name in names.items()}).events
    first, second = (of.detail for of in reported if of.group == VICTIM and of.kind == "offset_rewound")
    assert (True, before[first["topic"], first["partition"]]) == (first.get("after_handover"), first["former_owner"])
    assert "after_handover" not in second
