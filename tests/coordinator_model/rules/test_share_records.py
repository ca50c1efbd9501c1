"""`share_records_archived`: which records of a share group were given up, and what only looks like it."""

from typing import Any

from coordinator_model.kinds.table import sentence
from coordinator_model.share_replica import ShareReplica
from coordinator_model.state.events import INFO, Event, event_view
from coordinator_model.state.findings import Position
from lab.builders import RecordBytes, topic_id
from lab.share_state import share_snapshot, share_snapshot_tombstone, share_update

PARTITION = 3
BEGIN = share_snapshot("s", "t", 0)


def read(replica: ShareReplica, *log: tuple[int, RecordBytes], start: int = 0) -> list[Event]:
    """What records of these times show."""
    return [
        event
        for offset, (time_ms, (key, value)) in enumerate(log, start)
        for event in replica.replay(Position(PARTITION, offset, time_ms), key, value)
    ]


def said_of(*log: tuple[int, RecordBytes], **settings: Any) -> list[Event]:
    """And what is left to be said at the end."""
    replica = ShareReplica(**settings)
    return [*read(replica, *log), *replica.settle()]


def offsets(events: list[Event]) -> list[tuple[Any, ...]]:
    return [
        tuple(of.detail[name] for name in ("first_offset", "last_offset", "delivery_count", "why")) for of in events
    ]


def rejected(offset: int) -> RecordBytes:
    return share_update("s", "t", 0, (offset, offset, 4, 1))


# -- reported ---------------------------------------------------------------------------------------------------------


def test_record_that_no_member_could_process_is_reported_at_the_limit() -> None:
    """Four deliveries in vain are silent; the one that reaches the limit is reported."""
    (event,) = said_of(
        (0, BEGIN),
        *((1_000 * count, share_update("s", "t", 0, (20, 20, 0, count))) for count in range(1, 5)),
        (9_000, share_update("s", "t", 0, (20, 20, 4, 5))),
    )

    assert {
        "id": "__share_group_state-3-5-share_records_archived-0",
        "time": 9_000,
        "group": "s",
        "kind": "share_records_archived",
        "severity": "warning",
        "partition": PARTITION,
        "offset": 5,
        "detail": {
            "topic": topic_id("t"),
            "topic_partition": 0,
            "first_offset": 20,
            "last_offset": 20,
            "delivery_count": 5,
            "why": "limit",
        },
        "inferred": False,
        "log": "__share_group_state",
    } == event_view(event)


def test_rejected_records_next_to_each_other_are_reported_once() -> None:
    """Neighbours that one write rejects are one event; other causes and offsets have their own."""
    events = said_of(
        (0, BEGIN), (1_000, share_update("s", "t", 0, (3, 5, 4, 1), (6, 6, 4, 2), (7, 7, 4, 5), (9, 9, 4, 1)))
    )

    assert [(3, 6, 2, "rejected"), (7, 7, 5, "limit"), (9, 9, 1, "rejected")] == offsets(events)
    assert [0, 1, 2] == [of.ordinal for of in events]


def test_limit_of_a_group_is_its_own() -> None:
    """The delivery limit is the group's where it is configured (4.3), else the brokers'."""
    log = (0, BEGIN), (1_000, share_update("s", "t", 0, (3, 3, 4, 3)))

    assert ["rejected"] == [of.detail["why"] for of in said_of(*log)]
    assert ["limit"] == [of.detail["why"] for of in said_of(*log, delivery_count_limits={"": 5, "s": 3})]


def test_much_that_is_given_up_within_a_minute_is_told_together() -> None:
    """More than ten in a minute: the rest is one event of each cause, when it is over."""
    log = [(0, BEGIN), *((1_000 + at, rejected(2 * at)) for at in range(14))]
    log.append((1_014, share_update("s", "t", 0, (40, 41, 4, 5), (50, 50, 4, 1))))
    replica = ShareReplica()
    assert [(2 * at, 2 * at, 1, "rejected") for at in range(10)] == offsets(read(replica, *log))
    assert [] == read(replica, (60_999, share_update("s", "t", 0, (99, 99, 2, 1))), start=16)

    events = read(replica, (61_000, rejected(100)), start=17)
    assert [(20, 50, 1, "rejected"), (40, 41, 5, "limit"), (100, 100, 1, "rejected")] == offsets(events)
    assert [5, 2, None] == [of.detail.get("records") for of in events]
    assert [(1_014, 15), (1_014, 15), (61_000, 17)] == [(of.time_ms, of.offset) for of in events]
    assert 3 == len({of.id for of in events})
    assert [] == replica.settle()


def test_what_is_left_to_be_said_is_said_at_the_end() -> None:
    """What was kept of such a minute, at the end of the log or of the share partition."""
    log = [(0, BEGIN), *((1_000 + at, rejected(2 * at)) for at in range(11))]

    assert (20, 20, 1, "rejected") == offsets(said_of(*log))[-1]
    assert (20, 20, 1, "rejected") == offsets(said_of(*log, (1_100, share_snapshot_tombstone("s", "t", 0))))[-1]


def test_share_partition_that_is_written_elsewhere_and_deleted_is_no_error() -> None:
    """Its log was grown: what follows stands in another partition, and its end too."""
    replica = ShareReplica()
    read(replica, (0, BEGIN), (1_000, rejected(4)))
    for offset, record in enumerate((rejected(9), share_snapshot_tombstone("s", "t", 0))):
        replica.replay(Position(PARTITION + 1, offset, 2_000), *record)

    assert [] == read(replica, (90_000, share_update("s", "u", 0)), start=2)
    assert [] == replica.settle()


def test_offset_that_may_have_no_record_is_information() -> None:
    """An offset below the limit in a topic with gaps, where perhaps no record was: information."""
    events = said_of((0, BEGIN), (1_000, share_update("s", "t", 0, (3, 3, 4, 1), (9, 9, 4, 5))), gaps={topic_id("t")})

    assert [(3, 3, 1, "unclear"), (9, 9, 5, "limit")] == offsets(events)
    assert [INFO, "warning"] == [of.severity for of in events]


# -- silent -----------------------------------------------------------------------------------------------------------


def test_write_that_is_tried_again_is_no_second_time() -> None:
    """A write that is tried again, by the same leader or the next one; what is new in it is told."""
    again = share_update("s", "t", 0, (2, 6, 4, 1), leader_epoch=2)
    events = said_of((0, BEGIN), (1_000, rejected(4)), (2_000, rejected(4)), (3_000, again), (4_000, again))

    assert [(4, 4, 1, "rejected"), (2, 3, 1, "rejected"), (5, 6, 1, "rejected")] == offsets(events)


def test_snapshot_of_what_was_given_up_is_no_second_time() -> None:
    """A snapshot of what was given up before: every 500 updates, and every five minutes of rest."""
    snapshot = share_snapshot("s", "t", 0, snapshot_epoch=1, batches=[(0, 3, 2, 1), (4, 4, 4, 1)])

    assert 1 == len(said_of((0, BEGIN), (1_000, rejected(4)), (2_000, snapshot), (400_000, snapshot)))


def test_released_and_acknowledged_records_are_not_given_up() -> None:
    """Records that were released, or acknowledged at the fifth delivery."""
    assert [] == said_of(
        (0, BEGIN),
        (1_000, share_update("s", "t", 0, (0, 9, 2, 1), (20, 20, 0, 4), (21, 29, 2, 2))),
        (2_000, share_update("s", "t", 0, (20, 20, 2, 5), start_offset=30)),
    )


def test_records_skipped_by_a_reset_are_not_given_up() -> None:
    """Records that a reset skips: a new state epoch begins somewhere else."""
    assert [] == said_of(
        (0, BEGIN),
        (1_000, share_update("s", "t", 0, (20, 20, 0, 4))),
        (2_000, share_snapshot("s", "t", 0, state_epoch=2, start_offset=500)),
    )


def test_what_was_given_up_before_the_live_tail_is_not_reported() -> None:
    """What was given up before the live tail: it is counted, also where it was much."""
    replica = ShareReplica(live_from={PARTITION: 13})
    log = [(0, BEGIN), *((1_000 + at, rejected(2 * at)) for at in range(12))]

    assert [] == [*read(replica, *log), *replica.settle()]
    assert [{"rejected": 12}] == [of.archived for of in replica.of_group("s")]
    assert [(90, 90, 1, "rejected")] == offsets(read(replica, (99_000, rejected(90)), start=13))


def test_sentences() -> None:
    """As people read them."""
    one, many = said_of((0, BEGIN), (1_000, share_update("s", "t", 0, (3, 3, 4, 5), (5, 8, 4, 1))))

    assert [
        f"Offset 3 of {topic_id('t')}/0: given up at the delivery limit, after 5 deliveries",
        f"Offsets 5 to 8 of {topic_id('t')}/0: rejected by a member, after 1 delivery",
    ] == [sentence(event_view(of)) for of in (one, many)]
