"""Share partitions (docs/coordinator-log.md, "Share partitions"): snapshots, updates, and how they are merged."""

from itertools import pairwise
from random import Random
from typing import Any

import pytest

from coordinator_model.groups.share_partitions import combined, first_not_done
from coordinator_model.share_replica import ShareReplica
from coordinator_model.state.findings import Position
from coordinator_model.state.share_partition import NOT_INITIALIZED, Batch, SharePartition, SharePartitionId
from coordinator_model.views.share_partitions import share_partitions_view
from lab.builders import RecordBytes, topic_id
from lab.share_state import share_snapshot, share_snapshot_tombstone, share_update

ID = SharePartitionId("s", topic_id("t"), 0)


def replayed(*records: RecordBytes) -> ShareReplica:
    """A replica that has read these, a second apart."""
    replica = ShareReplica()
    for offset, (key, value) in enumerate(records):
        replica.replay(Position(3, offset, 1_000 * offset), key, value)
    return replica


def held(*records: RecordBytes) -> SharePartition:
    """The share partition that they are about."""
    return replayed(*records).partitions[ID]


def test_snapshot_is_the_whole_state() -> None:
    """Whatever was there before, of whatever epochs, a snapshot takes its place."""
    first = share_snapshot("s", "t", 0, start_offset=9, batches=[(9, 20, 2, 1)], snapshot_epoch=4, state_epoch=3)
    now = held(first, share_snapshot("s", "t", 0, start_offset=5, batches=[(7, 7, 0, 2)], snapshot_epoch=1))

    assert (1, 1, 5, [Batch(7, 7, 0, 2)]) == (now.snapshot_epoch, now.state_epoch, now.start_offset, now.batches)


def test_update_changes_what_it_says_and_the_count_in_any_case() -> None:
    """-1 keeps the start offset and the leader epoch; the count of what is done becomes not known."""
    now = held(
        share_snapshot("s", "t", 0, start_offset=5, leader_epoch=2, delivery_complete_count=1),
        share_update("s", "t", 0, (7, 8, 2, 1), snapshot_epoch=9),
    )

    assert (5, 2, -1, 0) == (now.start_offset, now.leader_epoch, now.delivery_complete_count, now.snapshot_epoch)
    assert [Batch(7, 8, 2, 1)] == now.batches


def test_update_without_a_snapshot_is_the_state() -> None:
    """A log may begin behind the snapshot; nothing is cut off at the start offset then."""
    now = held(share_update("s", "t", 0, (3, 8, 2, 1), start_offset=5, snapshot_epoch=2, leader_epoch=1))

    assert (2, 0, 1, 5, [Batch(3, 8, 2, 1)]) == (
        now.snapshot_epoch,
        now.state_epoch,
        now.leader_epoch,
        now.start_offset,
        now.batches,
    )


def test_what_lies_below_the_start_offset_is_cut_off() -> None:
    """When it moves; of a batch that it is in, the rest is left."""
    now = held(
        share_snapshot("s", "t", 0, batches=[(0, 3, 2, 1), (4, 9, 4, 5), (10, 12, 0, 1)]),
        share_update("s", "t", 0, start_offset=6),
    )

    assert [Batch(6, 9, 4, 5), Batch(10, 12, 0, 1)] == now.batches


def test_released_record_counts_its_deliveries_until_it_is_archived() -> None:
    """Five deliveries, the last of which reached the limit; a write that comes again changes nothing."""
    deliveries = [share_update("s", "t", 0, (20, 20, 0, count)) for count in range(1, 5)]
    archived = share_update("s", "t", 0, (20, 20, 4, 5))
    now = held(share_snapshot("s", "t", 0), *deliveries, archived, deliveries[2], archived)

    assert [Batch(20, 20, 4, 5)] == now.batches


def test_tombstone_of_the_snapshot_ends_it_and_one_of_an_update_does_not() -> None:
    """The second is written by no coordinator, and Kafka's would not survive it."""
    key, _ = share_update("s", "t", 0)
    replica = replayed(share_snapshot("s", "t", 0), (key, None))
    assert [ID] == [of.id for of in replica.of_group("s")]

    replica.replay(Position(3, 2, 2_000), *share_snapshot_tombstone("s", "t", 0))
    assert ([], []) == (replica.of_group("s"), replica.groups())


def test_what_is_done_without_a_hole_moves_the_first_offset_that_is_not_done() -> None:
    """The start offset is written before it moves: all acknowledged and idle is no backlog."""
    done = [(0, 99, 2, 1), (100, 100, 4, 5)]

    assert 101 == first_not_done(held(share_snapshot("s", "t", 0, batches=done)))
    assert 3 == first_not_done(held(share_snapshot("s", "t", 0, start_offset=3, batches=[(4, 9, 2, 1)])))
    assert 4 == first_not_done(held(share_snapshot("s", "t", 0, batches=[(0, 3, 2, 1), (4, 4, 0, 1)])))
    assert None is first_not_done(held(share_snapshot("s", "t", 0, start_offset=-1)))


def test_state_without_a_name_is_counted_and_kept() -> None:
    """A later Kafka writes 3 (archiving), or what is not known yet."""
    replica = replayed(share_snapshot("s", "t", 0, batches=[(0, 0, 3, 1), (1, 2, 9, 1)]))

    assert {"9": 1} == replica.unknown_states
    assert [Batch(0, 0, 3, 1), Batch(1, 2, 9, 1)] == replica.partitions[ID].batches


def test_records_of_no_known_type_or_layout_are_counted() -> None:
    """Nothing of this log stops a replica either."""
    key, value = share_snapshot("s", "t", 0)
    assert value is not None
    newer = b"\x00\x01" + value[2:]
    replica = replayed((b"\x00\x07" + key[2:], value), (key[:5], value), (key, value[:9]), (key, newer))

    assert {"7": 1} == replica.counters.unknown_records
    assert {"0": 2} == replica.counters.undecodable_records
    assert {"0": 1} == replica.counters.newer_value_versions
    assert 4 == replica.counters.records
    assert [ID] == list(replica.partitions)


def test_first_record_of_an_unknown_type_or_version_is_reported() -> None:
    """Once, as in the first log; before the live tail it is information."""
    key, value = share_snapshot("s", "t", 0)
    assert value is not None
    log = [(b"\x00\x07" + key[2:], value), (key, b"\x00\x01" + value[2:])]
    for live_from, severity in ((0, "warning"), (9, "info")):
        replica = ShareReplica(live_from={3: live_from})
        events = [
            event
            for offset, record in enumerate([*log, *log])
            for event in replica.replay(Position(3, offset, 1_000), *record)
        ]

        assert [(0, severity, {"record_type": 7}), (1, severity, {"record_type": 0, "value_version": 1})] == [
            (of.offset, of.severity, dict(of.detail)) for of in events
        ]
        assert {("unknown_record", "s", "__share_group_state")} == {(of.kind, of.group, of.log) for of in events}


def test_log_that_was_pruned_while_no_one_read_leaves_what_was_seen_since() -> None:
    """Each share partition that lives has a snapshot behind the new start; what has none is gone."""
    replica = replayed(share_snapshot("s", "t", 0), share_snapshot("s", "t", 1), share_snapshot("s", "t", 2))
    replica.replay(Position(3, 10, 9_000), *share_snapshot("s", "t", 1))

    assert [(0,), (2,)] == [of.id[2:] for of in replica.forget_before(3, 5)]
    assert [1] == [of.id.partition for of in replica.of_group("s")]


def archived(*records: RecordBytes, **settings: Any) -> dict[str, int]:
    """Cause → offsets that were given up."""
    replica = ShareReplica(**settings)
    for offset, (key, value) in enumerate(records):
        replica.replay(Position(3, offset, 1_000 * offset), key, value)
    return dict(replica.partitions[ID].archived)


def test_offsets_are_given_up_for_the_limit_or_because_they_were_rejected() -> None:
    """By the delivery count; the limit is the group's own, or the brokers'."""
    log = share_snapshot("s", "t", 0), share_update("s", "t", 0, (3, 5, 4, 1), (20, 20, 4, 5))

    assert {"rejected": 3, "limit": 1} == archived(*log)
    assert {"rejected": 4} == archived(*log, delivery_count_limits={"": 5, "s": 10})
    assert {"limit": 4} == archived(*log, delivery_count_limits={"": 1, "other": 10})


def test_where_an_offset_may_have_no_record_it_is_not_said_to_be_rejected() -> None:
    """A client archives gaps: markers of transactions, or what was compacted away."""
    log = share_snapshot("s", "t", 0), share_update("s", "t", 0, (3, 5, 4, 1), (20, 20, 4, 5))

    assert {"unclear": 3, "limit": 1} == archived(*log, gaps={topic_id("t")})
    assert {"rejected": 3, "limit": 1} == archived(*log, gaps={topic_id("u")})


def test_each_offset_is_given_up_once() -> None:
    """A write that comes again, a wider one, snapshots, and a start offset that went by and comes again."""
    first = share_update("s", "t", 0, (3, 5, 4, 1), start_offset=0)

    assert {"rejected": 6} == archived(
        share_snapshot("s", "t", 0),
        first,
        first,
        share_update("s", "t", 0, (1, 6, 4, 1)),
        share_snapshot("s", "t", 0, batches=[(0, 0, 2, 1), (1, 6, 4, 1)], snapshot_epoch=1),
        share_update("s", "t", 0, start_offset=7),
        first,
    )


def test_what_is_archived_and_passed_in_one_write_counts() -> None:
    """The batch lies below the start offset that comes with it."""
    assert {"rejected": 3} == archived(
        share_snapshot("s", "t", 0), share_update("s", "t", 0, (3, 5, 4, 1), start_offset=6)
    )


def test_what_was_done_otherwise_is_not_given_up() -> None:
    """A write of a former delivery that comes late loses."""
    assert {} == archived(share_snapshot("s", "t", 0, batches=[(3, 5, 2, 2)]), share_update("s", "t", 0, (3, 5, 4, 1)))


def test_log_that_begins_later_has_what_its_snapshot_says() -> None:
    """And after a reset the same offset may be given up a second time: it was delivered once more."""
    first = share_snapshot("s", "t", 0, batches=[(3, 5, 4, 1)], state_epoch=1)

    assert {"rejected": 3} == archived(first)
    assert {"rejected": 4} == archived(
        first, share_snapshot("s", "t", 0, state_epoch=2), share_update("s", "t", 0, (3, 3, 4, 1))
    )


def test_view_says_what_is_not_known() -> None:
    """Not initialized, no leader yet, and no count before 4.2; what is delivered again is counted."""
    fresh = held(share_snapshot("s", "t", 0, start_offset=-1, leader_epoch=-1, delivery_complete_count=-1))
    (shown,) = share_partitions_view([fresh], {})
    assert (topic_id("t"), topic_id("t"), 0, 1) == (
        shown["topic"],
        shown["topic_id"],
        shown["partition"],
        shown["state_epoch"],
    )
    unknown = ("start_offset", "first_not_done", "leader_epoch", "delivery_complete_count")
    assert [None] * 4 == [shown[name] for name in unknown]

    used = held(
        share_snapshot("s", "t", 0, start_offset=2, leader_epoch=4, delivery_complete_count=7),
        share_update("s", "t", 0, (2, 3, 2, 1), (4, 5, 0, 3), (6, 6, 0, 1), (8, 8, 4, 5), delivery_complete_count=3),
    )
    (shown,) = share_partitions_view([used], {topic_id("t"): "t"})
    assert {
        "topic": "t",
        "partition": 0,
        "topic_id": topic_id("t"),
        "start_offset": 2,
        "first_not_done": 4,
        "state_epoch": 1,
        "leader_epoch": 4,
        "delivery_complete_count": 3,
        "redelivered": 2,
        "max_delivery_count": 3,
        "archived_total": {"limit": 1, "rejected": 0},
        "archived_unclear": 0,
    } == shown


def some_batches(chance: Random) -> list[Batch]:
    """Up to six, in any order and over each other."""
    firsts = [chance.randrange(30) for _ in range(chance.randrange(7))]
    return [Batch(of, of + chance.randrange(13), chance.choice((0, 2, 4)), chance.randint(1, 3)) for of in firsts]


@pytest.mark.parametrize("seed", range(20))
def test_merging_is_the_highest_of_each_offset(seed: int) -> None:
    """Delivery count first, then state; ascending, apart, and no two neighbours of one kind."""
    chance = Random(seed)
    for _ in range(50):
        so_far, new = some_batches(chance), some_batches(chance)
        start = chance.choice((NOT_INITIALIZED, chance.randrange(45)))
        highest: dict[int, tuple[int, int]] = {}
        for of in (*so_far, *new):
            for offset in range(of.first, of.last + 1):
                highest[offset] = max(highest.get(offset, (0, 0)), (of.deliveries, of.state))

        merged = combined(combined((), so_far, NOT_INITIALIZED), new, start)

        found = {at: (of.deliveries, of.state) for of in merged for at in range(of.first, of.last + 1)}
        assert {at: kind for at, kind in highest.items() if at >= start} == found
        assert sum(of.last + 1 - of.first for of in merged) == len(found)
        assert not any(
            one.last >= two.first or (one.last + 1 == two.first and one[2:] == two[2:]) for one, two in pairwise(merged)
        )
