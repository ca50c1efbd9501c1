"""Each fault raises its alarm once, in whatever lawful traffic of other groups, and clears it once where it clears."""

from collections.abc import Callable
from random import Random
from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator_model.replica import Replica
from coordinator_model.state.events import CRITICAL, Event
from tests.side_by_side import VICTIM, Scene, cleaned, kinds, log_of
from tests.simulator import faults


def leader_assigns_twice(scene: Scene) -> None:
    scene.classic_members(3)
    faults.assign_twice(scene.coordinator, scene.group)
    scene.traffic()


def leader_assigns_twice_and_once(scene: Scene) -> None:
    leader_assigns_twice(scene)
    scene.coordinator.rebalance(scene.group)
    scene.traffic()
    scene.coordinator.rebalance(scene.group)


def coordinator_forgets_an_owner(scene: Scene) -> None:
    scene.consumer_members(3)
    faults.own_twice(scene.coordinator, scene.group)


def coordinator_forgets_an_owner_who_gives_up(scene: Scene) -> None:
    scene.consumer_members(3)
    place = faults.own_twice(scene.coordinator, scene.group)
    scene.traffic()
    faults.own_once(scene.coordinator, scene.group, place)


def coordinator_forgets_who_has_yet_to_revoke(scene: Scene) -> None:
    scene.consumer_members(2)
    owner = faults.keep_revoking(scene.coordinator, scene.group)
    scene.traffic()
    faults.own_what_is_revoked(scene.coordinator, scene.group, owner)
    scene.traffic()
    scene.coordinator.settle(scene.group)


def leader_hands_over(scene: Scene) -> None:
    scene.classic_members(3)
    faults.hand_over(scene.coordinator, scene.group)
    scene.traffic()
    scene.coordinator.rebalance(scene.group)


def member_claims_the_past(scene: Scene) -> None:
    scene.classic_members(3)
    faults.claim_of_the_past(scene.coordinator, scene.group)
    scene.traffic()
    scene.coordinator.rebalance(scene.group)


def two_processes_flap(scene: Scene) -> None:
    scene.classic_members(2, static=True)
    member = next(iter(scene.group.members.values()))
    faults.flap(scene.coordinator, scene.group, member, times=8, every_ms=10_000)


def downgrade_forgets(scene: Scene) -> None:
    scene.classic_members(2)
    scene.consumer_members(1)
    leaver = next(of for of in scene.group.members.values() if not of.classic)
    forgotten = faults.downgrade_and_forget(scene.coordinator, scene.group, leaver)
    scene.traffic()
    scene.coordinator.rebalance(scene.group)
    scene.traffic()
    faults.remember(scene.coordinator, scene.group, forgotten)


def coordinator_skips_epochs(scene: Scene) -> None:
    scene.consumer_members(2)
    faults.skip_epochs(scene.coordinator, scene.group, 3)
    scene.coordinator.settle(scene.group)


def newer_broker_writes(scene: Scene) -> None:
    scene.classic_members(1)
    for _ in range(3):
        faults.write_unknown(scene.coordinator, scene.group)
        scene.traffic()


def newer_broker_writes_newer_values(scene: Scene) -> None:
    scene.consumer_members(2)
    for _ in range(3):
        faults.write_newer(scene.coordinator, scene.group, record_type=3, version=1)
        scene.traffic()


def zombie_commits(scene: Scene) -> None:
    scene.consumer_members(2)
    faults.commit_of_a_zombie(scene.coordinator, scene.group, ("t", 0))


def leader_does_not_sync(scene: Scene) -> None:
    scene.classic_members(2)
    for _ in range(3):
        scene.coordinator.lose_round(scene.group)
        scene.traffic()
    scene.coordinator.rebalance(scene.group)


def leader_rejoins_all_the_time(scene: Scene) -> None:
    scene.classic_members(2)
    faults.rebalance_again_and_again(scene.coordinator, scene.group)


def two_members_claim_one_partition(scene: Scene) -> None:
    scene.classic_members(3)
    faults.contradict(scene.coordinator, scene.group)
    scene.traffic()
    scene.coordinator.rebalance(scene.group)


def two_processes_run_one_task(scene: Scene) -> None:
    scene.streams_members(3)
    faults.run_twice(scene.coordinator, scene.group)
    scene.traffic()
    scene.coordinator.settle(scene.group)


def member_is_set_back(scene: Scene) -> None:
    scene.consumer_members(2)
    faults.go_back(scene.coordinator, scene.group)
    scene.traffic()
    scene.coordinator.settle(scene.group)


def generation_goes_back(scene: Scene) -> None:
    scene.classic_members(2)
    faults.go_back_a_generation(scene.coordinator, scene.group)
    scene.traffic()
    scene.coordinator.rebalance(scene.group)


def topology_stays_behind(scene: Scene) -> None:
    scene.streams_members(1)
    scene.coordinator.leave(scene.group, *scene.group.members.values())
    forgotten = faults.convert_and_forget(scene.coordinator, scene.group)
    scene.traffic()
    scene.coordinator.join_classic(scene.group)
    scene.traffic()
    faults.remember(scene.coordinator, scene.group, forgotten)


def share_group_shares(scene: Scene) -> None:
    scene.share_members(4)
    scene.coordinator.leave(scene.group, next(iter(scene.group.members.values())))
    scene.coordinator.settle(scene.group)


def streams_group_rebalances(scene: Scene) -> None:
    scene.streams_members(3)
    scene.coordinator.leave(scene.group, next(iter(scene.group.members.values())))
    scene.traffic()
    scene.coordinator.settle(scene.group)


def nothing_is_wrong(scene: Scene) -> None:
    scene.classic_members(3, static=True)
    scene.consumer_members(2)
    scene.coordinator.leave(scene.group, *[of for of in scene.group.members.values() if not of.classic])
    scene.traffic()
    scene.coordinator.rebalance(scene.group)


Script = Callable[[Scene], None]

STREAMS, SHARE = "streams", "share"

# script, assignor of classic members or type of the group, alarms
FAULTS: Final[list[tuple[Script, str, dict[str, int]]]] = [
    (leader_assigns_twice, "range", {"duplicate_assignment": 1}),
    (leader_assigns_twice_and_once, "range", {"duplicate_assignment": 1, "duplicate_assignment_cleared": 1}),
    (coordinator_forgets_an_owner, "range", {"duplicate_assignment": 1}),
    (
        coordinator_forgets_an_owner_who_gives_up,
        "range",
        {"duplicate_assignment": 1, "duplicate_assignment_cleared": 1},
    ),
    (
        coordinator_forgets_who_has_yet_to_revoke,
        "range",
        {"duplicate_assignment": 1, "duplicate_assignment_cleared": 1},
    ),
    (leader_hands_over, "cooperative-sticky", {"handover_without_revocation": 1}),
    (member_claims_the_past, "sticky", {"stale_claim": 1}),
    (two_processes_flap, "range", {"static_member_restarting": 1}),
    (downgrade_forgets, "range", {"downgrade_unclean": 1}),
    (coordinator_skips_epochs, "range", {"epoch_anomaly": 1}),
    (newer_broker_writes, "range", {"unknown_record": 1}),
    (newer_broker_writes_newer_values, "range", {"unknown_record": 1}),
    (zombie_commits, "range", {"offset_rewound": 1}),
    (leader_does_not_sync, "range", {"rebalance_rounds_lost": 1}),
    (leader_rejoins_all_the_time, "range", {"rebalance_storm": 1}),
    (two_members_claim_one_partition, "sticky", {"stale_claim": 1}),
    (two_processes_run_one_task, STREAMS, {"duplicate_assignment": 1, "duplicate_assignment_cleared": 1}),
    (member_is_set_back, "range", {"epoch_anomaly": 1}),
    (generation_goes_back, "range", {"epoch_anomaly": 1}),
    (topology_stays_behind, STREAMS, {"downgrade_unclean": 1}),
    (nothing_is_wrong, "range", {}),
    (share_group_shares, SHARE, {}),
    (streams_group_rebalances, STREAMS, {}),
]


def scene_of(seed: int, kind: str) -> Scene:
    """A scene about a group that is `kind`, or whose classic members use the assignor of this name."""
    return Scene(seed, family=kind) if kind in (STREAMS, SHARE) else Scene(seed, kind)


CASES: Final = [pytest.param(*case, id=case[0].__name__) for case in FAULTS]


@pytest.mark.parametrize(("script", "protocol", "expected"), CASES)
@given(seed=st.integers(0, 2**32))
@settings(max_examples=max(5, settings().max_examples // 5))
def test_fault_raises_its_alarm_once(script: Script, protocol: str, expected: dict[str, int], seed: int) -> None:
    """That one and no other, in whatever traffic of other groups; and again once when it is over, where that shows."""
    scene = scene_of(seed, protocol)

    script(scene)
    events, _ = scene.reported()

    assert expected == kinds(events, besides=expected)


@pytest.mark.parametrize(("script", "protocol", "expected"), CASES)
@given(seed=st.integers(0, 2**32))
@settings(max_examples=max(2, settings().max_examples // 10))
def test_fault_is_reported_alike_wherever_the_log_is_cut(
    script: Script, protocol: str, expected: dict[str, int], seed: int
) -> None:
    """What is open is kept across restarts, so that it opens once and clears once."""
    scene = scene_of(seed, protocol)
    script(scene)
    _, log = scene.reported()
    chance = Random(seed)

    pieces = log.replayed_in_batches([chance.randint(0, 9) for _ in range(len(log))])

    assert log.replayed().event_texts() == pieces.event_texts()
    assert expected == kinds([of for of in pieces.events if of.group == VICTIM], besides=expected)


LASTING: Final = [case for case in FAULTS if case[0] in (leader_assigns_twice, coordinator_forgets_an_owner)]


@pytest.mark.parametrize(("script", "protocol"), [case[:2] for case in LASTING])
@given(seed=st.integers(0, 2**32), before=st.integers(0, 2**32), drop_tombstones=st.booleans())
@settings(max_examples=max(5, settings().max_examples // 5))
def test_fault_that_lasts_is_reported_once_of_a_cleaned_log(
    script: Script, protocol: str, seed: int, before: int, drop_tombstones: bool
) -> None:
    """If it holds at the end of the log it is reported there, whatever the cleaner took."""
    scene = scene_of(seed, protocol)
    script(scene)
    log = log_of(scene.coordinator)
    end = before % (len(log) + 1)

    replica, events = Replica(live_from=log.end), list[Event]()
    for of in cleaned(log, end, drop_tombstones=drop_tombstones).records:
        events += replica.replay(of.place, of.key, of.value)
    events += replica.settle()
    assert [] == [of for of in events if of.severity == CRITICAL]

    assert ["duplicate_assignment"] == [of.kind for of in replica.judge(VICTIM)]
    assert [] == replica.judge(VICTIM)
