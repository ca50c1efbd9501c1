"""The replica beside a coordinator that knows what it wrote: after any lawful history both hold the same.

Quick and always the same; ``HYPOTHESIS_PROFILE=exhaustive`` looks a hundred times as long.
"""

from collections import Counter
from random import Random
from typing import Final

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from coordinator_model.events import CRITICAL, INFO, Event
from coordinator_model.replica import Position, Replica
from coordinator_model.view import group_view
from tests.histories import PARTITION, TOPIC_NAMES, TextStore
from tests.side_by_side import GROUPS, alarms, cleaned, comparable, is_by_design, lawful, log_of, without_past
from tests.simulator.coordinator import ReferenceCoordinator
from tests.simulator.driver import DEEDS, LAGS_MS, happen


class SideBySide(RuleBasedStateMachine):
    """A coordinator and a replica of its log: after every event they hold the same."""

    @initialize(protocol=st.sampled_from([protocol for _, protocol in GROUPS]), custom=st.booleans())
    def open(self, protocol: str, custom: bool) -> None:
        self.coordinator = ReferenceCoordinator()
        self.coordinator.open("g", protocol=protocol)
        self.coordinator.open("other", custom_assignor=custom)
        self.store = TextStore()
        self.replica = Replica(self.store)
        self.events: list[Event] = []
        self.read = self.offset = 0

    @rule(
        deeds=st.lists(st.sampled_from(sorted(DEEDS)), min_size=1, max_size=8),
        name=st.sampled_from(("g", "g", "g", "other")),
        seed=st.integers(0, 2**16),
    )
    def things_happen(self, deeds: list[str], name: str, seed: int) -> None:
        chance = Random(seed)
        for deed in deeds:
            happen(self.coordinator, self.coordinator.groups[name], deed, chance)
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
        facts = ("topic", "partition", "from", "to", "group_empty")
        rewound = [of.detail for of in self.events if of.kind == "offset_rewound"]
        assert self.coordinator.rewinds == [{of: detail[of] for of in facts if of in detail} for detail in rewound]
        told = log_of(self.coordinator).replayed()
        assert sorted(of.id for of in told.events) == sorted(of.id for of in self.events)


LONGER: Final = settings(max_examples=max(100, settings().max_examples))

TestSideBySide = SideBySide.TestCase
TestSideBySide.settings = LONGER


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
    log, replica, events, offset, batch = log_of(coordinator), Replica(), list[Event](), 0, 0
    for written in coordinator.log:
        events += replica.settle() if written.batch != batch else []
        batch = written.batch
        for key, value in written.records:
            events += replica.replay(Position(PARTITION, offset, written.time_ms), key, value)
            offset += 1
    events += replica.settle()

    assert sorted(of.id for of in log.replayed().events) == sorted(of.id for of in events)


@LONGER
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

    assert without_past(comparable(whole.views)) == without_past(comparable(less.views))
    assert Counter() == alarms(less.events) - alarms(whole.events)
    assert [] == [of for of in less.events if of.severity == CRITICAL]
