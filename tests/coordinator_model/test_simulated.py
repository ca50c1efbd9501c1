"""The replica beside a coordinator that knows what it wrote: after any lawful history both hold the same.

Quick and always the same; ``HYPOTHESIS_PROFILE=exhaustive`` looks a hundred times as long.
"""

from collections import Counter
from random import Random
from typing import Final

from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from coordinator_model.replica import Replica
from coordinator_model.state.events import CRITICAL, INFO, Event
from coordinator_model.state.findings import Position
from coordinator_model.views.group_view import group_view
from tests.histories import PARTITION, TextStore
from tests.side_by_side import (
    GROUPS,
    Views,
    alarms,
    cleaned,
    cleaned_while_read,
    comparable,
    is_by_design,
    lawful,
    log_of,
    oddities_said,
    without_past,
)
from tests.simulator import readers
from tests.simulator.cluster import RELEASES, Cluster
from tests.simulator.coordinator import ReferenceCoordinator
from tests.simulator.driver import DEEDS, LAGS_MS, PRODUCERS, happen


class SideBySide(RuleBasedStateMachine):
    """A coordinator and a replica that reads its log as the monitor does: after every event they hold the same.

    Memberships at once, offsets as far as no open transaction is in the way.
    """

    @initialize(
        kind=st.sampled_from([(protocol, family) for _, protocol, family in GROUPS]),
        release=st.sampled_from(sorted(RELEASES)),
        custom=st.booleans(),
    )
    def open(self, kind: tuple[str, str], release: str, custom: bool) -> None:
        self.coordinator = ReferenceCoordinator(cluster=Cluster(release=RELEASES[release]))
        self.coordinator.open("g", protocol=kind[0], family=kind[1]).standbys = int(custom)
        self.coordinator.open("other", custom_assignor=custom)
        self.store = TextStore()
        self.replica = Replica(self.store)
        self.events: list[Event] = []
        self.read = self.offsets_up_to = 0

    @rule(
        deeds=st.lists(st.integers(0, 99), min_size=1, max_size=8),
        name=st.sampled_from(("g", "g", "g", "other")),
        seed=st.integers(0, 2**16),
    )
    def things_happen(self, deeds: list[int], name: str, seed: int) -> None:
        chance = Random(seed)
        for number in deeds:
            possible = sorted(DEEDS[self.coordinator.groups[name].family])
            happen(self.coordinator, self.coordinator.groups[name], possible[number % len(possible)], chance)
            self._read_on()
            self.replica_holds_what_the_coordinator_holds()

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
        names = self.coordinator.cluster.topic_names()
        views = {
            name: group_view(state, self.replica.offsets(name), names)
            for name, state in sorted(self.replica.groups.items())
            if state.exists
        }
        known = self.coordinator.views_of(readers.offsets_read(self.coordinator.log))
        assert known == comparable(views, known)

    def _read_on(self) -> None:
        log = self.coordinator.log
        members, offsets, self.offsets_up_to = readers.of_two_readers(log, self.read, self.offsets_up_to)
        self.read = len(log)
        for of in sorted((*members, *offsets), key=lambda of: of.offset):
            self._reported(self.replica.replay(Position(PARTITION, of.offset, of.time_ms), *of.record))
        self._reported(self.replica.settle())

    def _reported(self, events: list[Event]) -> None:
        assert [] == [of for of in events if of.severity != INFO and not is_by_design(of, self.coordinator)]
        self.events += events

    def teardown(self) -> None:
        reported = log_of(self.coordinator).replayed()
        if not any(of.producer for of in self.coordinator.log):
            assert sorted(of.id for of in reported.events) == sorted(of.id for of in self.events)
        for producer in PRODUCERS:
            self.coordinator.end_transaction(producer, commit=True)
        self._read_on()
        assert self.coordinator.views() == self.coordinator.views_of(readers.offsets_read(self.coordinator.log))
        self.replica_holds_what_the_coordinator_holds()


LONGER: Final = settings(max_examples=max(60, settings().max_examples))

TestSideBySide = SideBySide.TestCase
TestSideBySide.settings = LONGER


@LONGER
@example(2_101)  # upgraded before the round was over that the downgrade before had begun
@given(st.integers(0, 2**32))
def test_recorded_log_tells_all_that_the_coordinator_knows(seed: int) -> None:
    """Groups of every type, offsets with transactions over, of any release: as in memory, and nothing is an alarm."""
    coordinator = lawful(seed)
    known, reported = coordinator.views(), log_of(coordinator).replayed()

    assert known == coordinator.views_of(readers.offsets_read(coordinator.log))
    assert known == comparable(reported.views, known)
    assert [] == [of for of in reported.events if of.severity != INFO and not is_by_design(of, coordinator)]


@LONGER
@given(st.integers(0, 2**32))
def test_offsets_that_go_back_and_topics_recreated_are_reported_one_by_one(seed: int) -> None:
    """Each, with what it went from and to; an aborted one never was."""
    coordinator = lawful(seed)

    assert readers.oddities(coordinator.log) == oddities_said(log_of(coordinator).replayed().events)


@LONGER
@given(st.integers(0, 2**32), st.integers(0, 2**32))
def test_cut_anywhere_and_restarted_it_tells_the_same(seed: int, cuts: int) -> None:
    """Micro-batches may end within an event; state goes to text and back between them."""
    log, chance = log_of(lawful(seed)), Random(cuts)
    sizes = [chance.randint(0, 9) for _ in range(len(log))]

    whole, pieces = log.replayed(), log.replayed_in_batches(sizes)

    assert whole.event_texts() == pieces.event_texts()
    assert whole.views == pieces.views
    assert whole.states == pieces.states


@LONGER
@given(st.integers(0, 2**32))
def test_settled_at_the_end_of_each_record_batch_it_tells_the_same(seed: int) -> None:
    """A batch may hold several events; its end adds nothing to what their times tell."""
    coordinator = lawful(seed)
    log, replica, events, batch = log_of(coordinator), Replica(), list[Event](), 0
    for of in readers.recorded(coordinator.log):
        events += replica.settle() if of.batch != batch else []
        batch = of.batch
        events += replica.replay(Position(PARTITION, of.offset, of.time_ms), *of.record)
    events += replica.settle()

    assert sorted(of.id for of in log.replayed().events) == sorted(of.id for of in events)


@LONGER
@given(st.integers(0, 2**32), st.integers(0, 2**32), st.booleans(), st.booleans())
def test_cleaned_log_ends_in_the_same_groups(seed: int, before: int, drop_tombstones: bool, live: bool) -> None:
    """Whatever the cleaner took, members, epochs, assignments and offsets are the same, and no alarm comes of a gap.

    Whether the replica knows that it is catching up or takes the cleaned log for new.
    """
    coordinator = lawful(seed)
    log, known = log_of(coordinator), coordinator.views()
    end = before % (len(log) + 1)

    whole = log.replayed()
    live_from = 0 if live or not end else log.records[end - 1].place.offset + 1
    less = cleaned(log, end, drop_tombstones=drop_tombstones).replayed(live_from=live_from)

    assert facts(whole.views, known) == facts(less.views, known)
    assert Counter() == alarms(less.events) - alarms(whole.events)
    assert [] == [of for of in less.events if of.severity == CRITICAL]


@LONGER
@given(st.integers(0, 2**32), st.integers(0, 2**32), st.booleans())
def test_log_cleaned_while_it_is_read_ends_in_the_same_groups(seed: int, chances: int, drop_tombstones: bool) -> None:
    """KAFKA-19862: some of what was replaced is read, some is not; none of it is an alarm, then or later."""
    coordinator, chance = lawful(seed), Random(chances)
    log, known = log_of(coordinator), coordinator.views()
    stood_at = chance.choice([0, *(of.offset + len(of.records) for of in coordinator.log)])
    then = sum(of.place.offset < stood_at for of in log.records)
    first, read = sorted(chance.randint(0, then) for _ in range(2))

    whole, torn = log.replayed(), cleaned_while_read(log, read, first, then, drop_tombstones=drop_tombstones)
    replica, events = Replica(live_from=stood_at), list[Event]()
    for of in torn.records:
        events += replica.replay(of.place, of.key, of.value)
    events += replica.settle()
    views = {
        name: group_view(state, replica.offsets(name), log.topic_names)
        for name, state in sorted(replica.groups.items())
        if state.exists
    }
    events += [event for name in list(replica.groups) for event in replica.judge(name)]

    assert facts(whole.views, known) == facts(views, known)
    assert Counter() == alarms(events) - alarms(whole.events)
    assert [] == [of for of in events if of.severity == CRITICAL]


def facts(views: Views, known: Views) -> Views:
    """What a cleaned log must still tell."""
    return without_past(comparable(views, known))
