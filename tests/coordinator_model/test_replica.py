"""The replica as a whole: same log, same state, same events, in one go or in pieces; nothing makes it throw."""

import random
from collections import Counter
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator_model.records.record_types import RecordType
from coordinator_model.replica import HANDLERS, OFFSET_TYPES, Counters, Replica
from coordinator_model.state.findings import Position
from coordinator_model.state.snapshot import dump_group, load_group
from coordinator_model.views.group_view import group_view
from lab.builders import (
    consumer_group_member_subscription,
    group_metadata,
    member,
    new_group_metadata,
    offset_commit,
)
from lab.coordinator_events import consumer_join, consumer_leave, converted_to_consumer
from tests.histories import History, Reported, at, history, recorded
from tests.history_strategies import nonsense


def same(expected: Reported, found: Reported) -> None:
    """Two replays of one log came to the same: states, views, totals and events."""
    assert expected.states == found.states
    assert expected.views == found.views
    assert expected.counters == found.counters
    assert expected.event_texts() == found.event_texts()


MEMBER_KEPT: Final = (
    "member_id",
    "instance_id",
    "protocol",
    "epoch",
    "state",
    "assigned",
    "pending_revocation",
    "target",
)


def kept(views: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """GROUP views without what only the past shows, which a compacted log need not keep."""
    return {
        name: {
            **{part: view[part] for part in ("type", "state", "epoch", "assignment_epoch", "simple", "offsets")},
            "members": [{key: member.get(key) for key in MEMBER_KEPT} for member in view["members"]],
            "migration": {key: view["migration"][key] for key in ("members", "upgraded_members", "leftovers")},
        }
        for name, view in views.items()
    }


# -- same log, same state, same events --------------------------------------------------------------------------------


@given(nonsense(), st.lists(st.integers(0, 9)))
def test_nonsense_in_micro_batches_of_any_size(log: History, sizes: list[int]) -> None:
    """Records no broker would write still give one state, however they are cut."""
    same(log.replayed(), log.replayed_in_batches(sizes))


@given(nonsense(max_size=5))
def test_nonsense_cut_at_every_position(log: History) -> None:
    """Once at each position, and at all of them."""
    whole = log.replayed()

    for position in range(len(log) + 1):
        same(whole, log.replayed_in_batches([position]))
    same(whole, log.replayed_in_batches([1] * len(log)))


@pytest.mark.parametrize("live_from", [0, 11, 10_000])
def test_history_cut_at_every_position(live_from: int) -> None:
    """An upgrade among offset commits, before, at and beyond the live tail."""
    log = history(
        at(0, new_group_metadata("g")),
        at(1, group_metadata("g", generation=1, members=[member("c", {"t": [0, 1]})])),
        at(2, offset_commit("g", "t", 0, 5), offset_commit("h", "t", 64, 5), offset_commit("g", "t", 1, 5)),
        at(
            3,
            *converted_to_consumer("g", generation=1, members={"c": {"t": [0, 1]}}),
            *consumer_join("g", "n", epoch=2, targets={"n": {"t": [1]}, "c": {"t": [0]}}),
        ),
        at(4, offset_commit("g", "t", 0, 4)),
        at(5, *consumer_leave("g", "c", epoch=3)),
    )
    whole = log.replayed(live_from=live_from)

    for position in range(len(log) + 1):
        same(whole, log.replayed_in_batches([position], live_from=live_from))


def test_recording_of_a_real_broker_cut_at_every_position() -> None:
    """Real bytes, several partitions: the same at each position, and in batches of one."""
    log = recorded()
    whole = log.replayed()

    for position in range(0, len(log), 3):
        same(whole, log.replayed_in_batches([position]))
    same(whole, log.replayed_in_batches([1] * len(log)))
    same(whole, log.replayed_in_batches([7] * len(log)))


# -- a compacted log --------------------------------------------------------------------------------------------------


def not_given_by(whole: Reported, compacted: Reported) -> Counter[tuple[str, str]]:
    """Alarms that only the compacted log gave."""
    return compacted.alarms() - whole.alarms()


def test_recording_compacted_anywhere_ends_in_the_same_groups() -> None:
    """As above, on real bytes."""
    log = recorded()
    whole = log.replayed()

    for before in range(0, len(log) + 1, 2):
        compacted = log.compacted(before).replayed()
        assert kept(whole.views) == kept(compacted.views)
        assert Counter() == not_given_by(whole, compacted)


@given(nonsense(), st.integers(0, 10_000))
def test_compacted_nonsense_does_not_throw(log: History, before: int) -> None:
    """Nothing is promised of its state but that there is one."""
    assert len(log) >= log.compacted(before % (len(log) + 1)).replayed().counters.records


# -- never throws -----------------------------------------------------------------------------------------------------


@given(nonsense())
def test_every_prefix_can_be_shown_and_kept(log: History) -> None:
    """After each record, in the middle of events too, every group has a view and a text that gives it back."""
    replica = Replica()
    for record in log.records:
        replica.replay(record.place, record.key, record.value)
        for name, state in replica.groups.items():
            assert name == group_view(state, replica.offsets(name), log.topic_names)["group"]
            assert state == load_group(dump_group(state))
    assert len(log) == replica.counters.records


def test_damaged_recording_is_read_to_its_end() -> None:
    """Bytes flipped, cut off and swapped in a real log: whatever decodes is replayed, the rest is counted."""
    log = recorded()
    chance = random.Random(7)
    replica = Replica()
    for _ in range(20):
        for record in log.records:
            key, value = bytearray(record.key), None if record.value is None else bytearray(record.value)
            target = key if value is None or chance.random() < 0.2 else value
            if chance.random() < 0.3 and target:
                target[chance.randrange(len(target))] ^= 1 << chance.randrange(8)
            if chance.random() < 0.1:
                del target[chance.randrange(len(target) + 1) :]
            replica.replay(record.place, bytes(key), None if value is None else bytes(value))
    replica.settle()

    assert 20 * len(log) == replica.counters.records
    assert replica.counters.undecodable_records
    assert replica.counters.unknown_records


# -- what is not known ------------------------------------------------------------------------------------------------


def test_every_registered_type_has_a_handler() -> None:
    """A new record type that only the codec knows would be dropped in silence."""
    assert set(RecordType) == {*HANDLERS, *OFFSET_TYPES}


def unknown(type_: int, group: str = "g") -> tuple[bytes, bytes]:
    """A record of a type that Kafka 4.3.1 does not have."""
    return type_.to_bytes(2, "big") + len(group).to_bytes(2, "big") + group.encode(), b"\0\0"


def test_unknown_type_is_reported_once_and_counted_always() -> None:
    """Types 9 and 18 are gaps in the list: each, as the next one, is an event when first met (KIP-915)."""
    next_ = max(RecordType) + 1
    reported = history(
        at(0, unknown(next_)), at(1, unknown(next_, "h")), at(2, unknown(9)), at(3, unknown(next_))
    ).replayed()

    assert Counters(records=4, unknown_records={str(next_): 3, "9": 1}) == reported.counters
    assert [("g", 0, {"record_type": next_}), ("g", 2, {"record_type": 9})] == [
        (event.group, event.time_ms, dict(event.detail)) for event in reported.events
    ]
    assert {("g", "unknown_record"): 2} == reported.alarms()
    assert {} == reported.views


def test_unknown_type_whose_key_is_no_group_is_reported_without_one() -> None:
    """The group is a guess from the key's first string."""
    reported = history(at(0, (b"\x00\x63\x00\x10short", None))).replayed()

    assert ["", {"99": 1}] == [reported.events[0].group, reported.counters.unknown_records]


def test_undecodable_records_are_counted_and_kept_for_the_log() -> None:
    """By type where that much can be read; the caller says where they stood and why."""
    replica = Replica()
    key, value = offset_commit("g", "t", 0, 5)
    assert value is not None

    for offset, (bad_key, bad_value) in enumerate([(key, value[:-1]), (key[:5], value), (b"\0", value), (key, b"")]):
        assert [] == replica.replay(Position(3, offset, 0), bad_key, bad_value)
    assert [] == replica.replay(Position(3, 4, 0), None, value)

    assert Counters(records=5, undecodable_records={"1": 3, "none": 2}) == replica.counters
    assert [0, 1, 2, 3, 4] == [place.offset for place, _ in replica.undecodable]
    assert {} == replica.groups


def test_undecodable_record_leaves_the_group_as_it_was() -> None:
    """A damaged value is passed over, also in the middle of an event."""
    key, _ = group_metadata("g", generation=2)
    log = (at(0, group_metadata("g", generation=1, members=[member("a", {"t": [0]})])),)

    reported = history(*log, at(1, (key, b"\0\x03\0"))).replayed()

    assert history(*log).replayed().views == reported.views


# -- steps ------------------------------------------------------------------------------------------------------------


def test_event_is_judged_when_the_next_one_of_its_group_begins() -> None:
    """Another group's records and offset commits do not end it; another timestamp does."""
    replica = Replica()
    log = history(
        at(5, new_group_metadata("g")),
        at(6, new_group_metadata("h"), offset_commit("g", "t", 0, 1)),
        at(7, group_metadata("g", generation=1, members=[member("a", {})])),
    )
    said = [[event.kind for event in replica.replay(of.place, of.key, of.value)] for of in log.records]

    assert [[], [], [], ["group_created"]] == said
    assert ["g", "h"] == sorted(replica.open_steps())
    assert [("h", 1), ("g", 3), ("g", 3)] == [(event.group, event.offset) for event in replica.settle()]
    assert ([], []) == (replica.open_steps(), replica.settle())


def test_event_stands_at_its_last_record() -> None:
    """It has the place of the record that completed it, its time the records'."""
    reported = history(at(9, *consumer_join("g", "a", epoch=2, targets={"a": {"t": [0]}}))).replayed()

    assert {(7, 4, 9)} == {(event.partition, event.offset, event.time_ms) for event in reported.events}


def test_two_events_of_one_millisecond_are_reported_together() -> None:
    """Nothing separates them in the log; what both did is what is reported."""
    reported = history(
        at(0, *consumer_join("g", "a", epoch=2, targets={"a": {"t": [0]}}), *consumer_leave("g", "a", epoch=3))
    ).replayed()

    assert ["group_created"] == reported.kinds()[0]
    assert "Empty 3/2" == reported.status("g")


def test_commit_within_an_event_leaves_the_announcement_to_it() -> None:
    """The group is created once, as what it turns out to be."""
    reported = history(at(0, new_group_metadata("g"), offset_commit("g", "t", 0, 5))).replayed()

    assert [{"type": "classic", "simple": False}] == reported.details("group_created")


# -- what changed -----------------------------------------------------------------------------------------------------


def changes_of(replica: Replica) -> tuple[set[str], set[tuple[str, str, int]], dict[str, set[tuple[str, int]]]]:
    """Groups, buckets and deletions since last asked."""
    changes = replica.take_changes()
    return changes.groups, changes.buckets, changes.deleted


def test_changes_are_what_was_touched_since_last_taken() -> None:
    """A checkpoint writes these and nothing else."""
    replica = Replica()
    log = history(
        at(0, new_group_metadata("g"), offset_commit("g", "t", 0, 5)),
        at(1, offset_commit("g", "t", 0, 6)),
        at(2, consumer_group_member_subscription("h", "a")),
    ).records

    for record in log[:2]:
        replica.replay(record.place, record.key, record.value)
    assert ({"g"}, {("g", "t", 0)}, {}) == changes_of(replica)
    replica.replay(log[2].place, log[2].key, log[2].value)
    assert (set(), {("g", "t", 0)}, {}) == changes_of(replica)
    replica.replay(log[3].place, log[3].key, log[3].value)
    replica.settle()
    assert ({"g", "h"}, set(), {}) == changes_of(replica)
    assert (set(), set(), {}) == changes_of(replica)


def test_group_that_ends_and_begins_again_between_two_looks() -> None:
    """Its former offsets are named for deletion, its new ones for writing: in this order they give what is."""
    log = history(
        at(0, offset_commit("g", "t", 0, 5), offset_commit("g", "t", 64, 5)),
        at(1, *(record for record in _deleted("g", (0, 64)))),
        at(2, offset_commit("g", "t", 0, 1)),
    )
    replica = Replica()
    for record in log.records:
        replica.replay(record.place, record.key, record.value)

    assert ({"g"}, {("g", "t", 0)}, {"g": {("t", 0), ("t", 1)}}) == changes_of(replica)
    same(log.replayed(), log.replayed_in_batches([2, 1, 1]))


def _deleted(group: str, partitions: tuple[int, ...]) -> list[tuple[bytes, bytes | None]]:
    return [(offset_commit(group, "t", partition, 0)[0], None) for partition in partitions]


def test_position_is_partition_offset_and_time() -> None:
    """What the callers know of a record besides its bytes."""
    assert ["partition", "offset", "timestamp_ms"] == list(Position._fields)
