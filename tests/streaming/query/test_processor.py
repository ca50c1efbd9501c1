"""The processor in Spark's TwsTester: what it keeps, what it puts out, and when it draws its conclusions."""

import json
from collections import Counter
from typing import Any, Final
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator_model.records.serde import decode_key
from coordinator_model.replica import Replica
from coordinator_model.state.events import INFO, event_view
from coordinator_model.state.packed_offsets import load_offsets
from coordinator_model.state.snapshot import load_group
from lab.builders import (
    consumer_group_epoch,
    consumer_group_member_subscription,
    group_metadata,
    member,
    new_group_metadata,
    offset_commit,
    offset_commit_tombstone,
    topic_id,
)
from lab.coordinator_events import consumer_group_deleted, consumer_join, consumer_leave, consumer_moves, retarget
from streaming.base.batch_rows import Row
from streaming.board.board import Board
from streaming.end_offsets.store import EndOffsets
from streaming.query import shard_task, state_cache
from streaming.query.commit_compaction import WORTH_REDUCING
from streaming.query.former_state import ledger_of
from streaming.query.shard_task import GIVE_UP_WAITING_MS, SETTLE_AFTER_MS
from streaming.query.state_cache import PACK_FROM, PACK_SHARE
from tests.histories import PARTITION, History, Moment, at, history
from tests.history_strategies import nonsense, simulated
from tests.side_by_side import log_of
from tests.simulator.coordinator import ReferenceCoordinator
from tests.streaming.shard import Shard

JOIN = history(at(1_000, *consumer_join("g", "a", epoch=2, targets={"a": {"t": [0, 1]}})))
DUPLICATE = history(
    at(1_000, *consumer_join("g", "a", epoch=2, targets={"a": {"t": [1]}})),
    at(2_000, *consumer_join("g", "b", epoch=3, targets={"b": {"t": [1]}})),
)
TOPIC_1 = f"{topic_id('t')}/1"


def of_kind(rows: list[Row], kind: str) -> list[Row]:
    """Rows of one kind."""
    return [row for row in rows if row.kind == kind]


def totals(rows: list[Row]) -> dict[str, Any]:
    """Payload of the shard row, of which there is one a call."""
    (row,) = of_kind(rows, "shard")
    found: dict[str, Any] = json.loads(row.payload)
    return found


def replica_of(log: History) -> tuple[Replica, list[str]]:
    """The replica of a whole log and its events as JSON, sorted."""
    replica = Replica()
    events = [event for of in log.records for event in replica.replay(of.place, of.key, of.value)]
    events += replica.settle()
    return replica, sorted(json.dumps(event_view(event), sort_keys=True) for event in events)


def test_each_key_of_a_batch_is_decoded_once() -> None:
    """However many records have it; the same decoded key says what to read of the state and is replayed."""
    log = history(*(at(1_000 + number, offset_commit("g", "t", number % 2, number)) for number in range(10)))
    with patch.object(shard_task, "decode_key", wraps=decode_key) as decoded:
        rows = Shard().batch(log)

    assert 2 == decoded.call_count
    assert 10 == totals(rows)["records"]


# -- what comes out ---------------------------------------------------------------------------------------------------


def test_batch_puts_out_what_it_changed() -> None:
    """The group, its events, and the totals; all of the shard's partition, payloads as the board reads them."""
    rows = Shard().batch(JOIN)

    assert {PARTITION} == {row.partition for row in rows}
    assert [("group", "g"), *[("event", "g")] * 4, ("shard", "")] == [(row.kind, row.group) for row in rows]
    assert "g" == load_group(rows[0].words).name
    assert {"id", "time", "group", "kind", "severity", "partition", "offset", "detail", "inferred"} == set(
        json.loads(rows[1].payload)
    )
    assert {
        "records": 5,
        "unknown_records": {},
        "undecodable_records": {},
        "newer_value_versions": {},
        "last_offset": 4,
    } == totals(rows)


def test_commit_puts_out_its_bucket_and_not_its_group() -> None:
    """A group of ten thousand partitions is not sent for one commit."""
    shard = Shard()
    shard.batch(JOIN)
    shard.batch(history(at(2_000, offset_commit("g", "t", 0, 5), offset_commit("g", "t", 64, 6)), start=5))

    rows = shard.batch(history(at(3_000, offset_commit("g", "t", 0, 7)), start=7))

    assert ["offsets", "shard"] == [row.kind for row in rows]
    bucket = load_offsets(rows[0].payload, rows[0].words)
    assert (0, 2, 7) == (bucket.number, bucket.commits, bucket.offsets[0].offset)


def test_totals_are_absolute() -> None:
    """A repeated batch counts nothing twice downstream."""
    shard = Shard()
    shard.batch(JOIN)

    rows = shard.batch(history(at(2_000, (b"\x00\x63", None), (b"\x00\x01\x00", None)), start=5))

    assert {
        "records": 7,
        "unknown_records": {"99": 1},
        "undecodable_records": {"1": 1},
        "newer_value_versions": {},
        "last_offset": 6,
    } == totals(rows)
    (undecodable,) = of_kind(rows, "undecodable")
    assert (6, 1) == (json.loads(undecodable.payload)["offset"], json.loads(undecodable.payload)["record_type"])


def test_deleted_group_goes_with_its_offsets() -> None:
    """From the board and from the state store."""
    shard = Shard()
    log = history(
        *_moments_of_a_commit(),
        at(3_000, *consumer_leave("g", "a", epoch=3)),
        at(4_000, offset_commit_tombstone("g", "t", 0), *consumer_group_deleted("g")),
    )

    shard.batch(log.cut(6))
    assert (["g"], [("g", "t", 0)]) == (list(shard.groups()), list(shard.buckets()))
    rows = shard.batch(list(log.records[6:]))

    assert ({}, {}) == (shard.groups(), shard.buckets())
    assert [Row(PARTITION, "group_deleted", "g")] == of_kind(rows, "group_deleted")
    assert [] == of_kind(rows, "group") + of_kind(rows, "offsets")


def _moments_of_a_commit() -> tuple[Any, Any]:
    join = consumer_join("g", "a", epoch=2, targets={"a": {"t": [0]}})
    return at(1_000, *join), at(2_000, offset_commit("g", "t", 0, 5))


def test_group_deleted_and_recreated_in_one_batch_comes_after_its_deletion() -> None:
    """The board drops the former one first: nothing of it stays."""
    shard = Shard()
    shard.batch(history(at(1_000, offset_commit("s", "t", 0, 5), offset_commit("s", "t", 64, 5))))

    rows = shard.batch(
        history(
            at(2_000, offset_commit_tombstone("s", "t", 0), offset_commit_tombstone("s", "t", 64)),
            at(3_000, offset_commit("s", "t", 0, 1)),
            start=2,
        )
    )

    assert ["group_deleted", "group", "offsets"] == [row.kind for row in rows if row.kind not in {"event", "shard"}]
    assert [("s", "t", 0)] == list(shard.buckets())
    assert (1, 0) == (shard.buckets()["s", "t", 0].commits, shard.buckets()["s", "t", 0].rewinds)


def test_rows_of_a_batch_are_replayed_in_the_order_of_the_log() -> None:
    """The committed and the uncommitted reader's rows arrive in any order."""
    log = list(history(*_moments_of_a_commit()).records)

    shuffled, straight = Shard(), Shard()
    shuffled.batch(log[::-1])
    straight.batch(log)

    assert straight.groups() == shuffled.groups()
    assert straight.rows == shuffled.rows


# -- state, in pieces -------------------------------------------------------------------------------------------------


WORTH_PACKING = st.sampled_from([(1, 0.0), (2, 0.5), (PACK_FROM, PACK_SHARE)])
"""Entries of a slot, and their share of its pack, that are worth a pack: every one, some, as it is."""


@given(st.one_of(simulated().map(log_of), nonsense(6)), st.integers(1, 9), WORTH_PACKING)
def test_batches_of_any_size_come_to_the_same(log: History, size: int, worth: tuple[int, float]) -> None:
    """While catching up a batch may end anywhere; groups, offsets, totals and events are those of the whole log.

    However the state is kept.
    """
    shard = Shard(live_from=log.end)
    with patch.multiple(state_cache, PACK_FROM=worth[0], PACK_SHARE=worth[1], SLOTS=2):
        for start in range(0, len(log), size):
            shard.batch(list(log.records[start : start + size]))

    replica, events = replica_of(log)
    reported = {json.dumps(event, sort_keys=True) for event in shard.events()}
    assert {name for name, state in replica.groups.items() if state.is_kept} == set(shard.groups())
    assert {place: of for place, of in replica.buckets.items() if of.commits} == shard.buckets()
    assert replica.counters == shard.book().counters
    # Of the past nothing is an alarm: only what still holds is reported, at the end.
    assert [of for of in events if is_information(of)] == sorted(filter(is_information, reported))


OF_A_MOMENT: Final = ("offset_deleted", "offset_rewound")


def is_information(text: str) -> bool:
    """Of an event as JSON; not the end of an alarm, and not a record of a kind unknown, which is an alarm when live.

    Nor offsets that went, or went back: of a moment that a batch cuts, each part is reported with its batch.
    """
    event = json.loads(text)
    ended = "cleared" in event["detail"] or event["kind"] == "duplicate_assignment_cleared"
    return event["severity"] == INFO and not ended and event["kind"] not in {"unknown_record", *OF_A_MOMENT}


@given(simulated())
def test_live_batches_give_what_a_replay_of_the_whole_log_gives(coordinator: ReferenceCoordinator) -> None:
    """At the log's end a batch holds whole events: state and events are exactly those of a replay."""
    log = log_of(coordinator)
    shard = Shard()
    for written in coordinator.log:
        if event := [
            of for of in log.records if written.offset <= of.place.offset < written.offset + len(written.records)
        ]:
            shard.batch(event)
    shard.at(2 * SETTLE_AFTER_MS)  # what went back last is awaited

    replica, events = replica_of(log)
    assert {name: state for name, state in replica.groups.items() if state.is_kept} == shard.groups()
    assert {place: of for place, of in replica.buckets.items() if of.commits} == shard.buckets()
    assert events == sorted(json.dumps(event, sort_keys=True) for event in shard.events())


# -- offsets that go back, and may be back in the next batch ----------------------------------------------------------


def rewound(*later: Moment) -> History:
    """A member commits 500, goes back to 200 in the next second, and what comes then."""
    members = group_metadata("g", generation=1, members=[member("a", {"t": [0]})])
    commits = [at(ms, offset_commit("g", "t", 0, offset)) for ms, offset in ((0, 500), (1_000, 200))]
    return history(at(0, members), *commits, *later)


@pytest.mark.parametrize(
    ("later", "severity"),
    [
        ([at(1_100, offset_commit("g", "t", 0, 520))], "info"),
        ([at(9_000, offset_commit("g", "t", 0, 520))], "warning"),
        ([at(9_000, offset_commit("h", "t", 0, 1))], "warning"),
        ([], "warning"),
    ],
    ids=["back at once", "back too late", "another group goes on", "nothing is written any more"],
)
def test_rewind_is_judged_by_what_the_next_batch_brings(later: list[Moment], severity: str) -> None:
    """The group waits in the ledger: for its own records, for the log's time, and last for the clock."""
    log, shard = rewound(*later), Shard()
    for record in log.records[:3]:
        shard.batch([record])

    assert ([], ["g"]) == ([kind for kind in shard.kinds() if kind == "offset_rewound"], shard.book().waiting)
    for record in log.records[3:]:
        shard.batch([record])
    shard.at(10 * SETTLE_AFTER_MS)
    (event,) = (event for event in shard.events() if event["kind"] == "offset_rewound")
    assert (severity, 2, 1_000, []) == (event["severity"], event["offset"], event["time"], shard.book().waiting)


# -- events that a batch cuts in two ----------------------------------------------------------------------------------


def test_event_cut_by_a_batch_is_concluded_with_its_rest() -> None:
    """While catching up a batch may end within an event; nothing is said of the half."""
    shard = Shard(live_from=5)

    shard.batch(JOIN.cut(2))
    assert ([], ["g"]) == (shard.kinds(), shard.book().waiting)
    shard.batch(list(JOIN.records[2:]))

    assert ["group_created", "member_joined", "rebalance_started", "rebalance_completed"] == shard.kinds()
    assert [] == shard.book().waiting


def test_event_at_the_end_of_the_log_is_concluded_at_once() -> None:
    """The high watermark falls on the end of a record batch, and an event never spans two."""
    shard = Shard()

    shard.batch(JOIN)

    assert 4 == len(shard.kinds())
    assert ([], None) == (shard.book().waiting, shard.bundle_book().timer_ms)


def test_group_in_the_middle_of_its_first_event_is_kept_and_not_shown_as_more_than_it_is() -> None:
    """An event of another group does not conclude it."""
    shard = Shard(live_from=100)

    shard.batch(JOIN.cut(1))
    shard.batch(history(at(1_000, new_group_metadata("h")), at(1_001, group_metadata("h", generation=1)), start=1))

    assert ["group_created"] == shard.kinds()
    assert ["g", "h"] == shard.book().waiting


def test_timer_does_not_conclude_before_the_end_of_the_log() -> None:
    """The rest is in a batch yet to come, however long that takes, within reason."""
    shard = Shard(live_from=5)
    shard.batch(JOIN.cut(2))

    assert [] == of_kind(shard.at(SETTLE_AFTER_MS), "event")
    assert [] == of_kind(shard.at(2 * SETTLE_AFTER_MS + 1), "event")
    assert ["g"] == shard.book().waiting
    shard.batch(list(JOIN.records[2:]))
    assert 4 == len(shard.kinds())


def test_batch_that_is_read_again_puts_out_what_it_did() -> None:
    """A monitor was killed before its end was noted; the next one finds a longer log, and a sink knows the batch."""
    killed, going_on = Shard(), Shard()
    going_on.restart(live_from=0, log_end=2 * len(JOIN))

    assert killed.batch(JOIN) == going_on.batch(JOIN, log_end=len(JOIN))
    assert [] == going_on.book().waiting


def test_batch_of_the_live_tail_that_is_cut_concludes_nothing() -> None:
    """More is written at once than a batch may have: its last event may be there in part."""
    shard = Shard()

    shard.batch(JOIN.cut(2), log_end=len(JOIN))
    assert ([], ["g"]) == (shard.kinds(), shard.book().waiting)

    shard.batch(list(JOIN.records[2:]))
    assert (4, []) == (len(shard.kinds()), shard.book().waiting)


def test_book_of_an_earlier_release_may_be_cut_anywhere() -> None:
    """It does not say."""
    book = {"counters": {}, "last_offset": 0, "waiting": [], "last_rows_ms": 0}

    assert ledger_of(json.dumps({"partitions": {f"{PARTITION}": book}, "timer_ms": None})).partitions[PARTITION].is_cut


def test_shard_that_hears_nothing_for_a_minute_is_live() -> None:
    """What stands at the end of the log may be a transaction marker, which is never delivered."""
    shard = Shard(live_from=JOIN.records[-1].place.offset + 2)
    shard.batch(JOIN)
    assert [] == shard.kinds()

    for now_ms in range(1, GIVE_UP_WAITING_MS, SETTLE_AFTER_MS):
        assert [] == of_kind(shard.at(now_ms), "event")
    shard.at(GIVE_UP_WAITING_MS + SETTLE_AFTER_MS)

    assert 4 == len(shard.kinds())
    assert ([], None) == (shard.book().waiting, shard.bundle_book().timer_ms)


def test_shard_without_anything_to_wait_for_has_no_timer() -> None:
    """Timers cost; a quiet shard is not woken."""
    shard = Shard()
    shard.batch(JOIN)

    assert [] == shard.at(10 * GIVE_UP_WAITING_MS)


# -- alarms and the live tail -----------------------------------------------------------------------------------------


def test_alarm_of_the_past_is_reported_when_the_shard_is_live() -> None:
    """It is judged again at the end of the log, of the record that showed it and at that record's time."""
    shard = Shard(live_from=len(DUPLICATE) + 1)
    shard.batch(DUPLICATE)
    assert "duplicate_assignment" not in shard.kinds()
    assert ["g"] == shard.book().waiting

    shard.batch(history(at(9_000, offset_commit("other", "t", 0, 5)), start=len(DUPLICATE)))

    (event,) = (event for event in shard.events() if event["kind"] == "duplicate_assignment")
    assert (2_000, len(DUPLICATE) - 1) == (event["time"], event["offset"])
    assert {TOPIC_1: ["a", "b"]} == event["detail"]["partitions"]
    assert [] == shard.book().waiting


def test_alarm_of_the_past_is_reported_by_the_timer_if_nothing_is_written() -> None:
    """Two members own a partition and all is quiet: that is no reason to be silent."""
    shard = Shard(live_from=len(DUPLICATE) + 1)
    shard.batch(DUPLICATE)

    shard.at(GIVE_UP_WAITING_MS + SETTLE_AFTER_MS)

    assert 1 == shard.kinds().count("duplicate_assignment")
    assert "duplicate_assignment" not in [
        json.loads(of.payload)["kind"] for of in shard.at(10**9) if of.kind == "event"
    ]


def test_alarm_that_resolved_while_catching_up_is_not_reported() -> None:
    """It may never have been: a log read while the cleaner runs shows such."""
    log = history(
        at(1_000, *consumer_join("g", "a", epoch=2, targets={"a": {"t": [1]}})),
        at(2_000, *consumer_join("g", "b", epoch=3, targets={"b": {"t": [1]}})),
        at(3_000, *consumer_moves("g", "a", epoch=3, assigned={})),
    )
    shard = Shard(live_from=len(log))

    for record in log.records:
        shard.batch([record])

    assert [] == [kind for kind in shard.kinds() if kind.startswith("duplicate_")]
    assert [] == shard.book().waiting


def test_alarm_reported_before_a_restart_is_not_reported_again_and_clears() -> None:
    """The checkpoint holds what is open; what resolved itself meanwhile is reported once the new run has caught up."""
    shard = Shard()
    shard.batch(DUPLICATE)
    assert 1 == shard.kinds().count("duplicate_assignment")

    end = len(DUPLICATE)
    shard.restart(live_from=end + 3)
    shard.batch(history(at(3_000, consumer_group_member_subscription("g", "b", client_id="again")), start=end))
    assert 1 == shard.kinds().count("duplicate_assignment")
    shard.batch(history(at(4_000, *consumer_moves("g", "a", epoch=3, assigned={})), start=end + 1))
    assert 0 == shard.kinds().count("duplicate_assignment_cleared")
    shard.batch(history(at(5_000, offset_commit("g", "t", 0, 5)), start=end + 2))

    assert 1 == shard.kinds().count("duplicate_assignment_cleared")
    assert {} == shard.groups()["g"].duplicates


def test_alarm_that_came_and_went_between_two_runs_is_reported() -> None:
    """A run that goes on at once reads the tail as one would have that had stayed, and yet cuts no event in two."""
    log = history(
        *(at(of.place.timestamp_ms, (of.key, of.value)) for of in DUPLICATE.records),
        at(3_000, *consumer_moves("g", "a", epoch=3, assigned={})),
    )
    undisturbed, shard = Shard(), Shard()
    undisturbed.batch(log)
    joined = len(JOIN)
    shard.batch(log.cut(joined))
    shard.restart(live_from=0, log_end=len(log))
    for record in log.records[joined:]:
        shard.batch([record])

    assert {"duplicate_assignment", "duplicate_assignment_cleared"} <= set(shard.kinds())
    assert undisturbed.events() == shard.events()


# -- a log that was cleaned while no monitor ran -----------------------------------------------------------------------

BEFORE = (
    at(1_000, *consumer_join("g", "a", epoch=2, targets={"a": {"t": [0, 1]}})),
    at(2_000, *consumer_join("h", "c", epoch=2, targets={"c": {"t": [1]}})),
)
READ = sum(len(moment.records) for moment in BEFORE)
"""Records that the former run has read."""
MEANWHILE = (
    # b joins g and gets partition 1 once a has given it up; a gets partition 2, then 3.
    at(3_000, *consumer_join("g", "b", epoch=3, targets={"a": {"t": [0]}, "b": {"t": [1]}}, assigned={})),
    at(4_000, *consumer_moves("g", "a", epoch=3, assigned={"t": [0]})),
    at(5_000, *consumer_moves("g", "b", epoch=3, assigned={"t": [1]})),
    at(6_000, consumer_group_epoch("g", 4), *retarget("g", 4, {"a": {"t": [0, 2]}})),
    at(6_500, consumer_group_epoch("g", 5), *retarget("g", 5, {"a": {"t": [0, 2, 3]}})),
    at(7_000, *consumer_moves("g", "a", epoch=5, assigned={"t": [0, 2, 3]})),
    # d joins h and has what c owns.
    at(8_000, *consumer_join("h", "d", epoch=3, targets={"d": {"t": [1]}})),
)
JUMPS = (at(9_000, consumer_group_epoch("g", 8)),)
LOG = history(*BEFORE, *MEANWHILE)
END = len(LOG)
CLEANED = [of for of in LOG.compacted(END - 1).records if of.place.offset >= READ]
"""What the next run finds: g jumps from epoch 2 to 5, and b owns what a has not given up."""


def alarms(shard: Shard) -> list[tuple[int, str, str]]:
    """(time, group, kind) of every event so far that is more than information."""
    return [(of["time"], of["group"], of["kind"]) for of in shard.events() if of["severity"] != INFO]


def left_by_former_run(*, live_from: int = 0) -> Shard:
    """The state of one that has read what was before."""
    shard = Shard(live_from=live_from)
    shard.batch(LOG.cut(READ))
    return shard


@pytest.mark.parametrize("size", [2, 100])
def test_gap_in_what_was_cleaned_meanwhile_raises_no_alarm(size: int) -> None:
    """What still holds at its end is reported, and beyond it what is odd is an alarm."""
    shard = left_by_former_run()
    shard.restart(live_from=0, log_end=END)
    for start in range(0, len(CLEANED), size):
        shard.batch(CLEANED[start : start + size])

    assert [(8_000, "h", "duplicate_assignment")] == alarms(shard)
    shard.batch(history(*JUMPS, start=END))
    assert [(9_000, "g", "epoch_anomaly")] == alarms(shard)[1:]


def test_gap_is_remembered_by_the_next_run() -> None:
    """A run that is killed before it has caught up; what was written after it began is judged."""
    shard = left_by_former_run()
    (of_epoch,) = [n for n, of in enumerate(CLEANED) if of.key == consumer_group_epoch("g", 5)[0]]
    shard.restart(live_from=0, log_end=END)
    shard.batch(CLEANED[:of_epoch])
    assert END == shard.book().live_from
    shard.restart(live_from=0, log_end=END + len(JUMPS))
    for record in [*CLEANED[of_epoch:], *history(*JUMPS, start=END).records]:
        shard.batch([record])

    assert [(9_000, "g", "epoch_anomaly")] == [of for of in alarms(shard) if of[1] == "g"]


COMMITS = [at(9_000 + n, offset_commit("busy", "t", 0, n)) for n in range(WORTH_REDUCING)]


@pytest.mark.parametrize(
    "moments", [JUMPS, (*COMMITS, *JUMPS), (*JUMPS, *COMMITS)], ids=["few", "reduced before", "reduced after"]
)
def test_whole_log_of_a_break_is_judged_as_without_it(moments: tuple[Moment, ...]) -> None:
    """The epoch jumps between two records that stand side by side; one commit may stand for hundreds."""
    log, undisturbed, shard = history(*BEFORE, *moments), Shard(), left_by_former_run()
    undisturbed.batch(log.cut(READ))
    undisturbed.batch(list(log.records[READ:]))
    shard.restart(live_from=0, log_end=log.end)
    shard.batch(list(log.records[READ:]))

    assert (0, END) == (shard.book().live_from, len(LOG))
    assert [("g", "epoch_anomaly")] == [(group, kind) for _, group, kind in alarms(shard)]
    assert undisturbed.events() == shard.events()


def test_gap_before_the_live_tail_hides_nothing_of_it() -> None:
    """A first reading of a cleaned log, killed before it had caught up: what came after its start is judged."""
    end = END + 4
    shard = left_by_former_run(live_from=end)
    shard.restart(live_from=end, log_end=end + len(JUMPS))
    shard.batch([*CLEANED, *history(*JUMPS, start=end).records])

    assert [(9_000, "g", "epoch_anomaly")] == [of for of in alarms(shard) if of[1] == "g"]


def test_gap_beyond_what_a_run_goes_on_with_hides_nothing() -> None:
    """A marker of a transaction stands there, or the cleaner is quicker than the run."""
    shard = left_by_former_run()
    shard.restart(live_from=0, log_end=READ)
    shard.batch(history(*JUMPS, start=READ + 1))

    assert [(9_000, "g", "epoch_anomaly")] == alarms(shard)


@pytest.mark.parametrize("reported", range(len(DUPLICATE) + 1))
def test_log_that_is_read_again_is_reported_from_where_it_was_asked_to(reported: int) -> None:
    """Also what would have another id now: an alarm of the past is reported of the group's last record."""
    whole, anew = Shard(), Shard(live_from=len(DUPLICATE), reported=reported)
    whole.batch(DUPLICATE)
    anew.batch(DUPLICATE)

    assert [of["kind"] for of in whole.events() if of["offset"] >= reported] == anew.kinds()
    assert whole.groups() == anew.groups()


def test_alarms_of_two_groups_reported_together_have_ids_of_their_own() -> None:
    """A shared id would make one of them a repeat of the other, and lose it."""
    log = history(
        *(
            at(
                1_000,
                *consumer_join(name, "a", epoch=2, targets={"a": {"t": [1]}}),
                *consumer_join(name, "b", epoch=3, targets={"b": {"t": [1]}}),
            )
            for name in ("g", "h")
        )
    )
    shard = Shard(live_from=len(log) + 1)
    shard.batch(log)

    shard.batch(history(at(2_000, offset_commit("other", "t", 0, 1)), start=len(log)))

    reported = [event for event in shard.events() if event["kind"] == "duplicate_assignment"]
    assert {"g", "h"} == {event["group"] for event in reported}
    assert 2 == len({event["id"] for event in reported})


# -- scale ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("groups", [1, 300])
def test_batch_touches_only_the_groups_in_it(groups: int) -> None:
    """State access is what costs: a batch about one group of many puts out one."""
    shard = Shard()
    first = history(
        *(at(n, group_metadata(f"g{n}", generation=1, members=[member("a", {"t": [0]})])) for n in range(groups))
    )
    shard.batch(first)

    rows = shard.batch(history(at(9_000, group_metadata("g0", generation=2)), start=len(first)))

    assert ["g0"] == [row.group for row in of_kind(rows, "group")]
    assert groups == len(shard.groups())


# -- a topic that was grown -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tasks", [1, 2])
def test_group_in_two_partitions_keeps_both_copies_and_shows_one(tasks: int) -> None:
    """Whether one task has both partitions or each has one: `orders` lives in 51 of 60.

    What expires in its old partition is not the group's.
    """
    old, new = 31, 51
    bundles = {of: Shard() for of in range(tasks)}
    board = Board(EndOffsets())
    board.health.set_unread({}, 60)
    board.load([])
    batches = iter(range(9))

    def write(partition: int, *records: tuple[bytes, bytes | None], at_ms: int, start: int) -> None:
        cells = [(partition, start + n, at_ms, *of) for n, of in enumerate(records)]
        rows, batch = bundles[partition % tasks].read([cells]), next(batches)
        board.apply(batch, board.settled(batch, rows), at_ms)

    write(old, *consumer_join("orders", "a", epoch=2, targets={"a": {"t": [0]}}), at_ms=1_000, start=0)
    write(old, offset_commit("orders", "t", 0, 5), at_ms=2_000, start=5)
    write(new, *consumer_join("orders", "b", epoch=2, targets={"b": {"t": [0]}}), at_ms=60_000, start=0)
    write(new, offset_commit("orders", "t", 0, 7), at_ms=61_000, start=5)
    write(old, *consumer_leave("orders", "a", epoch=3), at_ms=90_000, start=6)
    write(old, offset_commit_tombstone("orders", "t", 0), *consumer_group_deleted("orders"), at_ms=91_000, start=20)
    write(new, offset_commit("orders", "t", 0, 8), at_ms=92_000, start=6)

    ((name, held),) = board.shown.groups.items()
    assert ("orders", new, [8]) == (name, held.partition, [of.offset for _, _, of in held.offsets])
    assert ["b"] == [of["member_id"] for of in held.group_view({})["members"]]
    assert 0 == len(board.copies)
    kinds = Counter(event["kind"] for event in board.latest_events(99))
    assert (1, 0) == (kinds["group_in_two_partitions"], kinds["group_deleted"])
