"""When partitions appeared, by what the log names and by hashes of topics' metadata; and what that means for owners."""

from typing import Any

import pytest

from coordinator_model.clocked.unassigned_partitions import METADATA_MAX_AGE_MS
from coordinator_model.recording_clock import Looks
from coordinator_model.replica import Replica
from coordinator_model.state.events import Event
from coordinator_model.topic_growth import appeared_ms
from lab.builders import (
    REBALANCE_TIMEOUT_MS,
    Partitions,
    consumer_group_current_assignment,
    consumer_group_epoch,
    consumer_group_epoch_tombstone,
    consumer_group_member_subscription,
    consumer_group_partition_metadata,
    consumer_group_target_assignment,
    group_metadata,
    member,
    offset_commit,
    topic_id,
)
from lab.coordinator_events import retarget
from tests.histories import TOPIC_NAMES, History, Moment, at, history

LASTING_MS = METADATA_MAX_AGE_MS + REBALANCE_TIMEOUT_MS + 60_000
GROWS_MS = 4 * LASTING_MS
END = at(8 * LASTING_MS, offset_commit("other", "u", 0, 1))


class Topic:
    """A topic of a recording's header."""

    def __init__(self, name: str, partitions: int) -> None:
        self.id, self.partitions = topic_id(name), partitions


def since(*moments: Moment, count: int = 4) -> dict[int, int]:
    """Partition of `t` → since when it is certain to have been there."""
    records = ((of.place.timestamp_ms, of.key, of.value) for of in history(*moments).records)
    return {p: ms for (_, p), ms in appeared_ms(records, TOPIC_NAMES, {"t": count}).items()}


def lacking(log: History, count: int = 4) -> list[tuple[int, Any]]:
    """(time, partitions) of what a replay of a recording finds unassigned; the header has the last count."""
    replica, events = Replica(), list[Event]()

    def appeared() -> dict[tuple[str, int], int]:
        records = ((of.place.timestamp_ms, of.key, of.value) for of in log.records)
        return appeared_ms(records, TOPIC_NAMES, {"t": count})

    looks = Looks(replica, {"t": Topic("t", count)}, appeared=appeared)
    for of in log.records:
        events += looks.before(of.place)
        events += replica.replay(of.place, of.key, of.value)
    events += [*replica.settle(), *looks.at_end()]
    return [(of.time_ms, of.detail["partitions"]["t"]) for of in events if of.kind == "partition_unassigned"]


def consumer(time_ms: int, epoch: int, hash_: int, assigned: list[int], target: list[int] | None = None) -> Moment:
    """A consumer group of one member reads `t`, by topic metadata of this hash."""
    parts: Partitions = {"t": assigned}
    return at(
        time_ms,
        consumer_group_member_subscription("g", "a"),
        consumer_group_epoch("g", epoch, metadata_hash=hash_),
        *retarget("g", epoch, {"a": parts if target is None else {"t": target}}),
        consumer_group_current_assignment("g", "a", epoch=epoch, assigned=parts),
    )


TWO = (consumer(0, 2, 5, [0, 1]), consumer(1_000, 3, 5, [0, 1]))
"""Its member has two partitions. The log was not cleaned: a record follows another of its key."""


def classic(time_ms: int, generation: int, assigned: list[int]) -> Moment:
    """A classic group of one member reads `t`."""
    return at(time_ms, group_metadata("g", generation=generation, members=[member("a", {"t": assigned})]))


def test_partition_is_there_since_it_or_a_higher_one_was_named() -> None:
    """By an assignment or a commit, of any group."""
    committed = at(2_000, offset_commit("other", "t", 2, 7))

    assert {0: 0, 1: 0, 2: 2_000, 3: GROWS_MS} == since(
        classic(0, 1, [0, 1]), committed, classic(GROWS_MS, 2, [0, 1, 2, 3])
    )


def test_partition_in_a_target_is_there_since_the_hash_it_was_made_by() -> None:
    """The hash covers all partitions of the topics; the target may come later."""
    late = at(GROWS_MS + 9_000, consumer_group_target_assignment("g", "a", {"t": [0, 1, 2, 3]}))

    assert {0: 0, 1: 0, 2: GROWS_MS, 3: GROWS_MS} == since(
        consumer(0, 2, 5, [0, 1]), consumer(GROWS_MS, 3, 6, [0, 1]), late
    )


def test_partition_that_is_never_named_is_there_since_the_last_hash() -> None:
    """No other partitions can have come since; where no group has a hash, nothing is known."""
    assert {0: 0, 1: 0, 2: 0, 3: 0} == since(consumer(0, 2, 5, [0, 1]))
    assert {0: 0, 1: 0, 2: GROWS_MS, 3: GROWS_MS} == since(consumer(0, 2, 5, [0, 1]), consumer(GROWS_MS, 3, 6, [0, 1]))
    assert {0: 0, 1: 0} == since(consumer(0, 2, 0, [0, 1]))
    assert {0: 0, 1: 0} == since(consumer(0, 2, 5, [0, 1]), at(9, consumer_group_epoch_tombstone("g")))


def test_brokers_up_to_4_0_write_how_many_there_are() -> None:
    """In a record of the group's topics, which they write when that changes."""
    assert {0: 0, 1: 0, 2: GROWS_MS, 3: GROWS_MS} == since(
        at(0, consumer_group_partition_metadata("g", {"t": 2})),
        at(GROWS_MS, consumer_group_partition_metadata("g", {"t": 4})),
    )


@pytest.mark.parametrize("of", [consumer, classic])
def test_nobody_lacks_partitions_before_they_are_there(of: Any) -> None:
    """The header has the partitions of the end; the topic grew half-way, and its group had each when it did."""
    if of is consumer:
        log = history(*TWO, consumer(GROWS_MS, 4, 6, [0, 1, 2, 3]), END)
    else:
        log = history(classic(0, 1, [0, 1]), classic(GROWS_MS, 2, [0, 1, 2, 3]), END)

    assert [] == lacking(log)


def test_partition_that_was_there_and_had_no_owner_is_reported() -> None:
    """Named before, or under a higher one, or covered by the hash; as one that is never named at all is."""
    named = history(classic(0, 1, [0, 1, 2, 3]), classic(1_000, 2, [0, 1]), classic(GROWS_MS, 3, [0, 1, 2, 3]), END)
    below = history(classic(0, 1, [0, 1, 3]), classic(GROWS_MS, 2, [0, 1, 2, 3]), END)
    covered = history(*TWO, consumer(GROWS_MS, 4, 5, [0, 1, 2, 3]), END)
    never = history(classic(0, 1, [0, 1]), END)

    assert [(1_000, [2, 3]), (GROWS_MS, [2, 3])] == lacking(named)
    assert [(0, [2]), (GROWS_MS, [2])] == lacking(below)
    assert [(0, [2, 3]), (GROWS_MS, [2, 3])] == lacking(covered)
    assert [(0, [2, 3])] == lacking(never)


def test_partition_that_appears_and_finds_no_owner_is_reported_from_then_on() -> None:
    """Its time runs from when it was there, and not from when its group began."""
    soon = at(GROWS_MS + LASTING_MS // 2, offset_commit("other", "u", 0, 1))
    early = history(*TWO, consumer(GROWS_MS, 4, 6, [0, 1]), soon)
    later = history(*TWO, consumer(GROWS_MS, 4, 6, [0, 1]), END)

    assert [] == lacking(early)
    assert [[2, 3]] == [partitions for _, partitions in lacking(later)]
