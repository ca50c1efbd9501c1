"""What a group of a new protocol leaves in the log is remembered, also once the group is no more."""

import random
from copy import deepcopy

import pytest

from coordinator_model.migration import leftover_records
from coordinator_model.migration.leftover_records import NEW_PROTOCOL_TYPES, live_records
from coordinator_model.records.record_types import RecordType
from coordinator_model.records.serde import Record
from coordinator_model.replica import HANDLERS, OFFSET_TYPES, Replica
from coordinator_model.state.membership import Membership
from lab import builders
from lab.builders import RecordBytes, new_group_metadata, offset_commit
from lab.coordinator_events import consumer_gone, consumer_group_deleted, consumer_join, converted_to_classic
from tests.histories import History, Moment, Reported, at, history
from tests.record_factories import with_tombstones

MEMBERS = ("a", "b")
JOINED = (
    at(0, *consumer_join("g", "a", epoch=2, targets={"a": {"t": [0]}})),
    at(100, *consumer_join("g", "b", epoch=3, targets={"a": {"t": [0]}, "b": {}}, assigned={})),
    at(200, builders.consumer_group_regular_expression("g", "rx-.*", ["rx-a"])),
)
*OTHERS, EPOCH = consumer_group_deleted("g", MEMBERS, regexes=["rx-.*"])
"""Tombstones of a whole deletion, the group's epoch last as brokers write them."""


def classic_later(time_ms: int = 60_000) -> Moment:
    """A classic group of the same name, long after."""
    return at(time_ms, new_group_metadata("g"))


def left(reported: Reported) -> dict[str, int]:
    """What is left over by type."""
    return leftover_records.left_over(reported.states["g"].membership)


def deleted(seed: int) -> tuple[list[RecordBytes], int]:
    """A deletion that wrote the epoch's tombstone first and forgot some of the others, and how many."""
    chance = random.Random(seed)
    lasting = [record for record in OTHERS if record[0] != builders.consumer_group_partition_metadata_tombstone("g")[0]]
    forgotten = chance.sample(lasting, chance.randint(1, len(lasting)))
    written = [record for record in OTHERS if record not in forgotten]
    chance.shuffle(written)
    return [EPOCH, *written], len(forgotten)


@pytest.mark.parametrize("seed", range(24))
def test_leftovers_outlive_a_group_whose_epoch_ended_first(seed: int) -> None:
    """Each tombstone a step of its own, or all in one: a group of the name that comes later meets what has none."""
    tombstones, forgotten = deleted(seed)
    one_by_one = [at(10_000 + number, record) for number, record in enumerate(tombstones)]
    at_once = [at(10_000, *tombstones)]

    for ending in (one_by_one, at_once):
        log = history(*JOINED, *ending, classic_later())
        for reported in (log.replayed(), log.replayed_in_batches([1] * (len(log) - 1))):
            assert forgotten == sum(left(reported).values())
            assert forgotten == reported.view("g")["migration"]["leftovers"]
            assert [{"leftover_records": forgotten}] == [
                {"leftover_records": of["leftover_records"]} for of in reported.details("downgrade_unclean")
            ]


@pytest.mark.parametrize("seed", range(24))
def test_whole_deletion_leaves_nothing_whatever_its_order(seed: int) -> None:
    """The epoch's tombstone first, last or between: a group that comes later is clean."""
    tombstones = [*OTHERS, EPOCH]
    random.Random(seed).shuffle(tombstones)
    log = history(*JOINED, *(at(10_000 + number, record) for number, record in enumerate(tombstones)), classic_later())

    for reported in (log.replayed(), log.replayed_in_batches([1] * (len(log) - 1))):
        assert {} == left(reported)
        assert [] == reported.details("downgrade_unclean")


def test_group_is_gone_though_it_left_records() -> None:
    """What is kept is no group: it is in no list, and is said to be deleted once."""
    log = history(*JOINED, at(10_000, EPOCH), at(11_000, *OTHERS[:1]))
    reported = log.replayed()

    assert {} == reported.views
    assert 1 == [event.kind for event in reported.events].count("group_deleted")


def test_what_is_left_takes_neither_offsets_nor_counters_along() -> None:
    """A group that only commits is another one, and begins at nothing."""
    log: History = history(
        at(0, offset_commit("g", "t", 0, 5)),
        *JOINED,
        at(5_000, builders.offset_commit_tombstone("g", "t", 0)),
        at(10_000, EPOCH),
        at(20_000, offset_commit("g", "u", 0, 1)),
    )
    reported = log.replayed()

    assert {"u/0": 1} == reported.offsets("g")
    assert 0 == reported.states["g"].counters.rebalances
    assert reported.view("g")["simple"]


def test_downgrade_is_clean_once_the_last_record_left_over_is_gone() -> None:
    """Once, by the same kind of event."""
    target = {"a": {"t": [0]}}
    downgraded = at(20_000, *converted_to_classic("g", all_members=[], generation=3, remaining=target))
    rest = consumer_gone("g", "a")
    reported = history(
        at(0, *consumer_join("g", "a", epoch=2, targets=target)),
        downgraded,
        at(30_000, *rest[:-1]),
        at(40_000, *rest[-1:]),
        at(50_000, *rest),
    ).replayed()

    found = [(of.time_ms, of.severity, of.detail) for of in reported.events if of.kind == "downgrade_unclean"]
    assert [(20_000, "warning"), (40_000, "info")] == [of[:2] for of in found]
    assert {"cleared": True} == found[1][2]


def test_what_an_earlier_downgrade_left_is_reported_when_reading_has_caught_up() -> None:
    """Of the past nothing is said; what is still there is, though the group does nothing more."""
    target = {"a": {"t": [0]}}
    log = history(
        at(0, *consumer_join("g", "a", epoch=2, targets=target)),
        at(20_000, *converted_to_classic("g", all_members=[], generation=3, remaining=target)),
    )
    replica = Replica(live_from=len(log.records))
    read = [event for of in log.records for event in replica.replay(of.place, of.key, of.value)] + replica.settle()

    assert [] == [of for of in read if of.kind == "downgrade_unclean"]
    assert [("downgrade_unclean", "warning")] == [(of.kind, of.severity) for of in replica.judge("g")]
    assert [] == replica.judge("g")


@pytest.mark.parametrize(
    ("type_", "record", "tombstone"),
    [of for of in with_tombstones() if of[0] in NEW_PROTOCOL_TYPES],
    ids=lambda of: of.name if isinstance(of, RecordType) else "",
)
def test_every_type_of_a_new_protocol_counts_as_what_it_is(
    type_: RecordType, record: Record, tombstone: Record
) -> None:
    """As one live record of its type, until its tombstone; a copy of the group stays as it was."""
    membership = Membership()

    HANDLERS[type_](membership, record.key, record.value)

    assert {type_: 1} == live_records(membership)
    group = membership.modern
    assert group is not None
    assert (1, True) == (group.live_records(), group.holds_anything())
    before, as_it_was = membership.copy(), deepcopy(membership)
    group.closed = True
    HANDLERS[type_](membership, tombstone.key, tombstone.value)
    assert {} == live_records(membership)
    assert membership.modern is None
    assert as_it_was == before


def test_every_type_is_of_a_new_protocol_but_offsets_and_classic_groups() -> None:
    """A type that is not listed would be left over without a word."""
    assert set(RecordType) == {*NEW_PROTOCOL_TYPES, *OFFSET_TYPES, RecordType.GROUP_METADATA}
