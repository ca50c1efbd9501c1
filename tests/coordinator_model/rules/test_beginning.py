"""What rules know of a group of which only state was made: as much as the last record of each key says."""

from typing import Final

import pytest

from coordinator_model.clocked.stuck import STALLED_MS
from coordinator_model.first_reading import FirstReading
from coordinator_model.records.serde import decode_key
from coordinator_model.state.group_state import GroupState
from coordinator_model.state.rule_memory import GroupCounters
from lab.builders import consumer_group_current_assignment, group_metadata, member, offset_commit, topic_id
from lab.coordinator_events import (
    consumer_join,
    consumer_moves,
    converted_to_consumer,
    speaks_classic,
    static_goes_away,
)
from tests.histories import Moment, at, history
from tests.moments import overdue

ALONE: Final = at(1_000, *consumer_join("g", "a", epoch=2, targets={"a": {"t": [0, 1]}}))
BETWEEN_TARGETS: Final = (
    ALONE,
    at(2_000, *consumer_join("g", "b", epoch=3, targets={"b": {"t": [1]}, "a": {"t": [0]}}, assigned={})),
)


def built(*moments: Moment) -> FirstReading:
    """A replica that made state of a history, and whose rules have begun with it."""
    replica = FirstReading()
    for record in history(*moments).records:
        replica.build(record.place, decode_key(record.key), record.value, records=1)
    replica.begin()
    return replica


def begun(*moments: Moment) -> GroupState:
    return built(*moments).groups["g"]


def test_rebalance_under_way_lasts_from_the_last_record() -> None:
    """When it began is not known; that it goes on is, and its end is reported."""
    state = begun(*BETWEEN_TARGETS)

    assert state.rebalance is not None
    assert 2_000 == state.rebalance.since_ms


def test_nothing_is_counted_of_what_was_before() -> None:
    """Neither rebalances nor members that moved: the log may have any number of them, and shows the last."""
    assert GroupCounters() == begun(*BETWEEN_TARGETS).counters


def test_members_that_are_there_did_not_just_come() -> None:
    """The group's next event is the first that is reported."""
    replica = built(*BETWEEN_TARGETS)
    moved = history(at(5_000, *consumer_moves("g", "a", epoch=3, assigned={"t": [0]})), start=50).records
    events = [event for record in moved for event in replica.replay(record.place, record.key, record.value)]

    assert [] == [event.kind for event in [*events, *replica.settle()]]


def test_partitions_are_held_since_the_last_record() -> None:
    """An alarm about them stands there, and not at the log's beginning."""
    state = begun(*BETWEEN_TARGETS)

    assert (2_000, state.last_step_offset) == (state.held_ms, state.held_offset)


@pytest.mark.parametrize("classic", [False, True])
def test_static_member_stands_for_its_instance_since_no_one_knows_when(classic: bool) -> None:
    """Nor has it been away for as long as that is known, unless the last record has it away."""
    record = group_metadata("g", generation=4, members=[member("a", {"t": [0]}, instance_id="i")])
    joined = consumer_join("g", "a", epoch=2, targets={"a": {"t": [0]}}, instance_id="i")
    state = begun(at(1_000, *([record] if classic else joined)))

    assert {"i": ("a", -1, None)} == {
        name: (of.member_id, of.since_ms, of.absent_since_ms) for name, of in state.instances.items()
    }


def test_static_member_that_is_away_has_been_since_the_last_record() -> None:
    """As far as is known: what it is then said to have been away is no more than that."""
    joined = at(1_000, *consumer_join("g", "a", epoch=2, targets={"a": {"t": [0]}}, instance_id="i"))
    state = begun(joined, at(3_000, *static_goes_away("g", "a", assigned={"t": [0]}, previous_epoch=2)))

    assert 3_000 == state.instances["i"].absent_since_ms


def test_group_without_static_members_has_no_instances() -> None:
    """Nothing is remembered for ever of members that go and do not come back."""
    assert ({}, {}) == (begun(ALONE).instances, begun(ALONE).departed)


def test_classic_members_of_a_mixed_group_are_followed() -> None:
    """Who has still to join again is known of the first record."""
    upgraded = at(1_000, *converted_to_consumer("g", generation=2, members={"a": {"t": [0]}}))
    state = begun(at(0, group_metadata("g", generation=2, members=[member("a", {"t": [0]})])), upgraded)

    assert ["a"] == list(state.migration.classic_members)


def test_fault_that_lasts_is_reported_once_it_is_live() -> None:
    """Where it was written last; what is not live yet raises no alarm."""
    twice = at(3_000, consumer_group_current_assignment("g", "b", epoch=3, assigned={"t": [0, 1]}))
    replica = built(*BETWEEN_TARGETS, twice)
    (event,) = (event for event in replica.judge("g") if event.kind == "duplicate_assignment")

    assert (3_000, replica.groups["g"].last_step_offset) == (event.time_ms, event.offset)
    assert {f"{topic_id('t')}/0", f"{topic_id('t')}/1"} == set(event.detail["partitions"])
    assert [] == replica.judge("g")


def test_sound_group_has_nothing_to_be_judged() -> None:
    """Neither a consumer group nor a mixed one."""
    assert not begun(*BETWEEN_TARGETS).withheld
    mixed = at(3_000, *consumer_join("g", "c", epoch=4, targets={"c": {}}, classic=speaks_classic()))
    assert [] == built(*BETWEEN_TARGETS, mixed).judge("g")


def test_group_of_offsets_alone_is_one() -> None:
    """It is not reported to be new with its next commit."""
    replica = built(at(0, offset_commit("g", "t", 0, 5)))
    later = history(at(9_000, offset_commit("g", "t", 1, 5)), start=9).records[0]

    assert replica.groups["g"].announced
    assert [] == replica.replay(later.place, later.key, later.value)


def test_roll_that_began_in_what_was_built_is_stalled_since_the_last_record() -> None:
    """Since when the group is mixed is not known, and not said."""
    mixed = at(3_000, *consumer_join("g", "c", epoch=4, targets={"c": {}}, classic=speaks_classic()))
    state = begun(ALONE, mixed)

    early, late = (overdue(state, 3_000 + STALLED_MS + of, read_ms=2_000) for of in (0, 1))
    assert [] == [of for of in early if of.kind == "migration_stalled"]
    (event,) = (of for of in late if of.kind == "migration_stalled")
    assert (3_000, None, 2) == (event.time_ms, event.detail["mixed_ms"], event.detail["members"])
