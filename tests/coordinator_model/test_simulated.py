"""The replica beside a coordinator that knows what it wrote: lawful histories, and each fault there is, in them.

Quick and always the same; ``HYPOTHESIS_PROFILE=exhaustive`` looks a hundred times as long.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from coordinator_model.events import CRITICAL, INFO, Event
from coordinator_model.replica import Position, Replica
from coordinator_model.view import group_view
from tests.histories import PARTITION, TOPIC_NAMES, History, TextStore, at, history
from tests.simulator import faults
from tests.simulator.coordinator import ReferenceCoordinator
from tests.simulator.driver import DEEDS, LAGS_MS, happen, history_of
from tests.simulator.memory import Group

GROUPS: Final = (("g", "range"), ("h", "cooperative-sticky"), ("s", "sticky"))
BLOCKED: Final = "x"

BY_DESIGN: Final = {"downgrade_started", "rebalance_rounds_lost", "static_member_absent"}
"""Kinds that a lawful history is worth a warning for."""

Views = dict[str, dict[str, Any]]


def log_of(coordinator: ReferenceCoordinator) -> History:
    """What it wrote, as a history."""
    return history(*(at(written.time_ms, *written.records) for written in coordinator.log))


def comparable(views: Views) -> Views:
    """GROUP views in which a mixed group is mixed, whichever way it is going: the simulator does not call it."""
    ways = ("upgrading", "downgrading")
    return {
        name: {
            **view,
            "migration": {
                **view["migration"],
                "phase": "mixed" if view["migration"]["phase"] in ways else view["migration"]["phase"],
            },
        }
        for name, view in views.items()
    }


def without_past(views: Views) -> Views:
    """The same without what only the past tells, which a cleaned log does not hold."""
    lost = ("phase", "mixed_since")
    return {
        name: {**view, "migration": {key: item for key, item in view["migration"].items() if key not in lost}}
        for name, view in views.items()
    }


def is_by_design(event: Event, groups: dict[str, Group]) -> bool:
    """Whether a lawful history may show it.

    A sticky assignor remembers across a downgrade what a member had in the consumer group, where each moves on alone.
    """
    group = groups.get(event.group)
    remembered = group is not None and group.protocol == "sticky" and group.was_downgraded
    return event.kind in BY_DESIGN or (event.kind == "stale_claim" and remembered)


def alarms(events: list[Event]) -> Counter[tuple[str, str]]:
    """(group, kind) → how many events beyond information that no lawful history shows."""
    return Counter((of.group, of.kind) for of in events if of.severity != INFO and of.kind not in BY_DESIGN)


def cleaned(log: History, before: int, *, drop_tombstones: bool) -> History:
    """As the cleaner leaves it: up to `before` the last record of each key, tombstones for a day only."""
    compacted = log.compacted(before)
    kept = (of for of in compacted.records if of.value is not None or of.place.offset >= before or not drop_tombstones)
    return replace(compacted, records=tuple(kept))


# -- side by side -----------------------------------------------------------------------------------------------------


class SideBySide(RuleBasedStateMachine):
    """A coordinator and a replica of its log: after every event they hold the same."""

    @initialize()
    def open(self) -> None:
        self.coordinator = ReferenceCoordinator()
        for name, protocol in GROUPS:
            self.coordinator.open(name, protocol=protocol)
        self.coordinator.open(BLOCKED, custom_assignor=True)
        self.store = TextStore()
        self.replica = Replica(self.store)
        self.events: list[Event] = []
        self.read = self.offset = 0

    @rule(
        deed=st.sampled_from(sorted(DEEDS)),
        name=st.sampled_from([name for name, _ in GROUPS] + [BLOCKED]),
        seed=st.integers(0, 2**16),
    )
    def something_happens(self, deed: str, name: str, seed: int) -> None:
        happen(self.coordinator, self.coordinator.groups[name], deed, Random(seed))
        self._read_on()

    @rule(ms=st.sampled_from(LAGS_MS))
    def nothing_happens(self, ms: int) -> None:
        self.coordinator.lag(ms)

    @rule()
    def monitor_restarts(self) -> None:
        self.store.keep(self.replica)
        self.replica = Replica(self.store, self.store.counters())
        for name in self.store.groups:
            self.replica.known(name)

    @invariant()
    def replica_holds_what_the_coordinator_holds(self) -> None:
        views = {
            name: group_view(state, self.replica.offsets(name), TOPIC_NAMES)
            for name, state in sorted(self.replica.groups.items())
            if state.exists
        }
        assert self.coordinator.views() == comparable(views)

    def _read_on(self) -> None:
        for written in self.coordinator.log[self.read :]:
            for key, value in written.records:
                self._told(self.replica.replay(Position(PARTITION, self.offset, written.time_ms), key, value))
                self.offset += 1
        self.read = len(self.coordinator.log)
        self._told(self.replica.settle())

    def _told(self, events: list[Event]) -> None:
        assert [] == [of for of in events if of.severity != INFO and not is_by_design(of, self.coordinator.groups)]
        self.events += events

    def teardown(self) -> None:
        told = log_of(self.coordinator).replayed()
        assert sorted(of.id for of in told.events) == sorted(of.id for of in self.events)


TestSideBySide = SideBySide.TestCase


@given(st.integers(0, 2**32), st.integers(0, 2**32))
def test_cut_anywhere_and_restarted_it_tells_the_same(seed: int, cuts: int) -> None:
    """Micro-batches may end within an event; state goes to text and back between them."""
    log, chance = log_of(lawful(seed)), Random(cuts)
    sizes = [chance.randint(0, 9) for _ in range(len(log))]

    whole, pieces = log.replayed(), log.replayed_in_batches(sizes)

    assert whole.event_texts() == pieces.event_texts()
    assert whole.views == pieces.views
    assert whole.states == pieces.states


@given(st.integers(0, 2**32))
def test_settled_at_the_end_of_each_record_batch_it_tells_the_same(seed: int) -> None:
    """A batch may hold several events; its end adds nothing to what their times tell."""
    coordinator = lawful(seed)
    log, replica, events, offset, batch = log_of(coordinator), Replica(), list[Event](), 0, 0
    for written in coordinator.log:
        events += replica.settle() if written.batch != batch else []
        batch = written.batch
        for key, value in written.records:
            events += replica.replay(Position(PARTITION, offset, written.time_ms), key, value)
            offset += 1
    events += replica.settle()

    assert sorted(of.id for of in log.replayed().events) == sorted(of.id for of in events)


@given(st.integers(0, 2**32), st.integers(0, 2**32), st.booleans(), st.booleans())
def test_cleaned_log_ends_in_the_same_groups(seed: int, before: int, drop_tombstones: bool, live: bool) -> None:
    """Whatever the cleaner took, members, epochs, assignments and offsets are the same, and no alarm comes of a gap.

    Whether the replica knows that it is catching up or takes the cleaned log for new.
    """
    coordinator = lawful(seed)
    log = log_of(coordinator)
    end = before % (len(log) + 1)

    whole = log.replayed()
    less = cleaned(log, end, drop_tombstones=drop_tombstones).replayed(live_from=0 if live else end)

    assert without_past(whole.views) == without_past(less.views)
    assert Counter() == alarms(less.events) - alarms(whole.events)
    assert [] == [of for of in less.events if of.severity == CRITICAL]


def lawful(seed: int) -> ReferenceCoordinator:
    """A history of some dozens of events, half of them in one group."""
    chance = Random(seed)
    return history_of(chance, *chance.sample(GROUPS, 2), length=chance.randint(5, 60))


# -- one fault in a lawful history ------------------------------------------------------------------------------------

VICTIM: Final = "victim"


class Scene:
    """A coordinator with traffic of other groups before, between and after what happens to one."""

    def __init__(self, seed: int, protocol: str = "range") -> None:
        self._chance = Random(seed)
        self.coordinator = ReferenceCoordinator()
        for name, of in GROUPS:
            self.coordinator.open(name, protocol=of)
        self.group = self.coordinator.open(VICTIM, protocol=protocol)
        self.traffic()

    def traffic(self) -> None:
        """Some things happen to other groups."""
        for _ in range(self._chance.randint(0, 6)):
            group = self.coordinator.groups[self._chance.choice(GROUPS)[0]]
            happen(self.coordinator, group, self._chance.choice(list(DEEDS)), self._chance)
        self.coordinator.lag(5_000)

    def classic_members(self, number: int, *, static: bool = False) -> None:
        for _ in range(number):
            self.coordinator.join_classic(self.group, static=static)
            self.traffic()
        self.coordinator.rebalance(self.group)  # a cooperative group's second round
        self.traffic()

    def consumer_members(self, number: int) -> None:
        for _ in range(number):
            self.coordinator.join_consumer(self.group)
            self.coordinator.settle(self.group)
            self.traffic()

    def told(self) -> tuple[list[Event], History]:
        """What a replica tells of the victim; it holds what the coordinator holds, and nobody else alarmed."""
        self.traffic()
        log = log_of(self.coordinator)
        told = log.replayed()
        assert self.coordinator.views() == comparable(told.views)
        assert {VICTIM} >= {group for group, kind in alarms(told.events) if kind != "stale_claim"}
        return [of for of in told.events if of.group == VICTIM], log


def kinds(events: list[Event]) -> Counter[str]:
    """Alarms of the victim, and what says that one is over."""
    over = {"duplicate_assignment_cleared"}
    return Counter(of.kind for of in events if of.kind in over or (of.severity != INFO and of.kind not in BY_DESIGN))


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


def zombie_commits(scene: Scene) -> None:
    scene.consumer_members(2)
    faults.commit_of_a_zombie(scene.coordinator, scene.group, ("t", 0))


def nothing_is_wrong(scene: Scene) -> None:
    scene.classic_members(3, static=True)
    scene.consumer_members(2)
    scene.coordinator.leave(scene.group, *[of for of in scene.group.members.values() if not of.classic])
    scene.traffic()
    scene.coordinator.rebalance(scene.group)


Script = Callable[[Scene], None]

FAULTS: Final[list[tuple[Script, str, dict[str, int]]]] = [
    (leader_assigns_twice, "range", {"duplicate_assignment": 1}),
    (leader_assigns_twice_and_once, "range", {"duplicate_assignment": 1, "duplicate_assignment_cleared": 1}),
    (coordinator_forgets_an_owner, "range", {"duplicate_assignment": 1}),
    (
        coordinator_forgets_an_owner_who_gives_up,
        "range",
        {"duplicate_assignment": 1, "duplicate_assignment_cleared": 1},
    ),
    (leader_hands_over, "cooperative-sticky", {"handover_without_revocation": 1}),
    (member_claims_the_past, "sticky", {"stale_claim": 1}),
    (two_processes_flap, "range", {"static_member_contended": 1}),
    (downgrade_forgets, "range", {"downgrade_unclean": 1}),
    (coordinator_skips_epochs, "range", {"epoch_anomaly": 1}),
    (newer_broker_writes, "range", {"unknown_record": 1}),
    (zombie_commits, "range", {"offset_rewound": 1}),
    (nothing_is_wrong, "range", {}),
]


CASES: Final = [pytest.param(*case, id=case[0].__name__) for case in FAULTS]


@pytest.mark.parametrize(("script", "protocol", "expected"), CASES)
@given(seed=st.integers(0, 2**32))
@settings(max_examples=max(5, settings().max_examples // 5))
def test_fault_raises_its_alarm_once(script: Script, protocol: str, expected: dict[str, int], seed: int) -> None:
    """That one and no other, in whatever traffic of other groups; and again once when it is over, where that shows."""
    scene = Scene(seed, protocol)

    script(scene)
    events, _ = scene.told()

    assert expected == kinds(events)


@pytest.mark.parametrize(("script", "protocol", "expected"), CASES)
@given(seed=st.integers(0, 2**32))
@settings(max_examples=max(2, settings().max_examples // 10))
def test_fault_is_told_alike_wherever_the_log_is_cut(
    script: Script, protocol: str, expected: dict[str, int], seed: int
) -> None:
    """What is open is kept across restarts, so that it opens once and clears once."""
    scene = Scene(seed, protocol)
    script(scene)
    _, log = scene.told()
    chance = Random(seed)

    pieces = log.replayed_in_batches([chance.randint(0, 9) for _ in range(len(log))])

    assert log.replayed().event_texts() == pieces.event_texts()
    assert expected == kinds([of for of in pieces.events if of.group == VICTIM])


LASTING: Final = [case for case in FAULTS if case[0] in (leader_assigns_twice, coordinator_forgets_an_owner)]


@pytest.mark.parametrize(("script", "protocol"), [case[:2] for case in LASTING])
@given(seed=st.integers(0, 2**32), before=st.integers(0, 2**32), drop_tombstones=st.booleans())
@settings(max_examples=max(5, settings().max_examples // 5))
def test_fault_that_lasts_is_told_once_of_a_cleaned_log(
    script: Script, protocol: str, seed: int, before: int, drop_tombstones: bool
) -> None:
    """If it holds at the end of the log it is told there, whatever the cleaner took."""
    scene = Scene(seed, protocol)
    script(scene)
    log = log_of(scene.coordinator)
    end = before % (len(log) + 1)

    replica, events = Replica(live_from=len(log)), list[Event]()
    for of in cleaned(log, end, drop_tombstones=drop_tombstones).records:
        events += replica.replay(of.place, of.key, of.value)
    events += replica.settle()
    assert [] == [of for of in events if of.severity == CRITICAL]

    assert ["duplicate_assignment"] == [of.kind for of in replica.judge(VICTIM)]
    assert [] == replica.judge(VICTIM)


# -- rolled there and back --------------------------------------------------------------------------------------------


def phases(coordinator: ReferenceCoordinator) -> list[str | None]:
    """The victim's phase after each event of the log; None while there is no victim."""
    replica, offset, found = Replica(), 0, list[str | None]()
    for written in coordinator.log:
        for key, value in written.records:
            replica.replay(Position(PARTITION, offset, written.time_ms), key, value)
            offset += 1
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
