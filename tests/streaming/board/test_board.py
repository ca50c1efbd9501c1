"""The board: whole batches, absolute rows, lag as of the moment of reading."""

import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from coordinator_model.lag import FRESH_MS
from lab import builders
from streaming.base.batch_rows import Row
from streaming.base.times import now_ms
from streaming.board import group_answer
from streaming.board.board import Board
from streaming.board.lag_columns import UNKNOWN
from streaming.board.readiness import Standstill
from streaming.end_offsets.store import EndOffsets, Wanted
from tests.streaming.board_rows import Shard
from tests.streaming.boards import (
    NOW_MS,
    OFFSETS_TOPIC,
    THEN_MS,
    board_of,
    classic_group,
    commits_of,
    described,
    lags_of,
    log_ends,
    sample,
)


def commit(group: str, partition: int, offset: int, topic: str = "orders", **more: Any) -> tuple[bytes, bytes | None]:
    return builders.offset_commit(group, topic, partition, offset, timestamp=THEN_MS, **more)


def event_row(number: int, group: str = "g", time_ms: int = THEN_MS) -> Row:
    id_ = f"0-{number}-member_joined-0"
    event = {"id": id_, "time": time_ms, "group": group, "kind": "member_joined", "detail": {}}
    return Row(0, "event", group, json.dumps(event).encode(), "member_joined")


def test_a_group_is_shown_with_members_offsets_and_lag() -> None:
    """GROUP as its schema has it, and lag beside every offset."""
    shard = Shard()
    classic_group(shard, "g", {"m-1": {"orders": [0, 1]}})
    shard.pending += [(THEN_MS, *commit("g", 0, 90)), (THEN_MS, *commit("g", 1, 40))]
    ends = log_ends(orders=2)
    sample(ends, NOW_MS - 4_000, "orders", 80, 40)
    sample(ends, NOW_MS - 2_000, "orders", 100, 40)
    ends.record_earliest({("orders", 0): 7, ("orders", 1): 0})

    group = group_answer.view(board_of(shard, ends), "g", NOW_MS)

    assert group is not None
    assert ["m-1"] == [member["member_id"] for member in group["members"]]
    assert (10, 10, 3.0) == (group["lag"], group["max_lag"], group["max_lag_seconds"])
    figures = ("offset", "log_end_offset", "log_start_offset", "lag", "lag_seconds", "lag_method")
    assert [(90, 100, 7, 10, 3.0, "interpolated"), (40, 40, 0, 0, 0.0, "caught_up")] == [
        tuple(offset[name] for name in figures) for offset in group["offsets"]
    ]


def test_lag_grows_between_commits() -> None:
    """Lag is of the moment of reading, so a consumer that died falls behind on the board."""
    shard = Shard()
    board = board_of(shard, ends := log_ends(orders=1))
    board.apply(1, shard.write(commit("g", 0, 90), timestamp_ms=THEN_MS), NOW_MS)
    lags = []
    for end in (90, 120, 500):
        sample(ends, NOW_MS + end, "orders", end)
        lags.append((group_answer.view(board, "g", NOW_MS + end) or {})["lag"])

    assert [0, 30, 410] == lags


def test_a_commit_fresher_than_the_sample_is_no_negative_lag() -> None:
    """Commits come faster than samples: their lag is 0, said to be ahead of the sampled end."""
    shard = Shard()
    sample(ends := log_ends(orders=1), NOW_MS, "orders", 50)
    shard.pending.append((THEN_MS, *commit("g", 0, 60)))
    (offset,) = (group_answer.view(board_of(shard, ends), "g", NOW_MS) or {})["offsets"]

    assert (0, 0.0, "ahead_of_end") == (offset["lag"], offset["lag_seconds"], offset["lag_method"])


def test_a_commit_that_the_log_never_reaches_has_no_lag() -> None:
    """An old commit beyond the end is of a topic that was cut off or recreated: no calm is made of it."""
    shard = Shard()
    shard.pending.append((THEN_MS, *commit("g", 0, 60)))
    board = board_of(shard, ends := log_ends(orders=1))
    seen = []
    for after_ms in (0, FRESH_MS):
        sample(ends, THEN_MS + after_ms, "orders", 50)
        (offset,) = (group_answer.view(board, "g", NOW_MS) or {})["offsets"]
        lags = lags_of(board.shown.groups["g"], ends, NOW_MS)
        seen.append((offset["lag"], offset["lag_method"], lags.records.tolist()))

    assert [(0, "ahead_of_end", [0]), (None, "beyond_end", [UNKNOWN])] == seen


def test_a_commit_of_a_former_topic_has_no_lag() -> None:
    """After a topic was recreated, the old commit's number means nothing in the new log."""
    shard = Shard()
    shard.pending.append((THEN_MS, *commit("g", 0, 60, id_of_topic=builders.topic_id("orders of old"))))
    sample(ends := log_ends(orders=1), NOW_MS, "orders", 100)
    group = group_answer.view(board_of(shard, ends), "g", NOW_MS) or {}

    assert (None, "topic_recreated") == (group["lag"], group["offsets"][0]["lag_method"])


def test_a_partition_that_was_never_sampled_has_no_lag() -> None:
    """Not 0 and not the committed offset: nothing."""
    shard = Shard()
    shard.pending.append((THEN_MS, *commit("g", 0, 60)))
    group = group_answer.view(board_of(shard), "g", NOW_MS) or {}

    assert (None, None, "no_end_offset") == (group["lag"], group["max_lag_seconds"], group["offsets"][0]["lag_method"])


def test_a_batch_taken_twice_changes_nothing() -> None:
    """Spark repeats a batch whose end it did not record: groups, counters and events stay as they are."""
    shard = Shard()
    classic_group(shard, "g", {"m-1": {"orders": [0]}})
    shard.pending += [(THEN_MS, *commit("g", 0, 9)), (THEN_MS, *commit("g", 0, 5))]
    rows = shard.flush()
    board = Board(log_ends(orders=1))
    board.load([])
    board.health.set_log_end_at_start({}, {})
    board.health.set_positions({}, {}, NOW_MS)

    def everything() -> object:
        shown = board.shown
        return (
            list(group_answer.views(board, NOW_MS)), commits_of(board, "g"), dict(shown.shards),
            board.latest_events(100), board.health.record_to_metric.read(),
        )  # fmt: skip

    board.apply(7, rows, NOW_MS)
    once = everything()
    board.apply(7, rows, NOW_MS + 500)

    assert once == everything()
    assert {"orders": (2, 1)} == commits_of(board, "g")


def test_a_deleted_group_is_gone_with_its_offsets() -> None:
    """Nothing of a deleted group is left, and one that comes under its name begins without its counters."""
    shard = Shard()
    shard.pending.append((THEN_MS, *commit("g", 0, 9)))
    board = board_of(shard)
    rows = shard.write(builders.offset_commit_tombstone("g", "orders", 0), timestamp_ms=THEN_MS)
    board.apply(1, rows, NOW_MS)

    assert group_answer.view(board, "g", NOW_MS) is None

    board.apply(2, shard.write(commit("g", 3, 4), timestamp_ms=THEN_MS), NOW_MS)

    assert {"orders": (1, 0)} == commits_of(board, "g")


def test_a_group_may_end_and_begin_in_one_batch() -> None:
    """Rows of one partition are taken in their order: the new group has the new offset only."""
    shard = Shard()
    shard.pending.append((THEN_MS, *commit("g", 0, 9)))
    board = board_of(shard)
    board.apply(
        1,
        shard.write(builders.offset_commit_tombstone("g", "orders", 0), commit("g", 1, 2), timestamp_ms=THEN_MS),
        NOW_MS,
    )

    assert [("orders", 1)] == [(topic, partition) for topic, partition, _ in board.shown.groups["g"].offsets]


def test_a_topic_leaves_when_neither_subscribed_nor_committed() -> None:
    """The counters of a topic stay while the group subscribes to it, though its offsets are gone, and then go."""
    shard = Shard()
    classic_group(shard, "g", {"m-1": {"orders": [0]}})
    shard.pending.append((THEN_MS, *commit("g", 0, 9)))
    board = board_of(shard)
    board.apply(1, shard.write(builders.offset_commit_tombstone("g", "orders", 0), timestamp_ms=THEN_MS + 1), NOW_MS)

    assert {"orders": (1, 0)} == commits_of(board, "g")

    member = builders.member("m-1", {"audit": [0]}, topics=["audit"])
    other = builders.group_metadata("g", generation=4, members=[member])
    board.apply(2, shard.write(other, timestamp_ms=THEN_MS + 2), NOW_MS)

    assert {} == commits_of(board, "g")


def test_a_board_filled_from_the_state_store_shows_the_same() -> None:
    """What was shown before a restart is what the stored rows show after it."""
    shard = Shard()
    classic_group(shard, "g", {"m-1": {"orders": [0]}, "m-2": {"orders": [1]}})
    shard.pending += [(THEN_MS, *commit("g", 0, 9)), (THEN_MS, *commit("only-commits", 1, 5))]
    before = board_of(shard)
    after = Board(log_ends())
    after.load(reversed(shard.rows()))

    assert list(group_answer.views(before, NOW_MS)) == list(group_answer.views(after, NOW_MS))
    assert before.shown.shards == after.shown.shards


def test_loading_replaces_what_was_there() -> None:
    """A board loaded again holds nothing of before: groups may have ended unseen."""
    shard = Shard()
    shard.pending.append((THEN_MS, *commit("g", 0, 9)))
    board = board_of(shard)
    board.load([])

    assert [] == list(group_answer.views(board, NOW_MS))


def test_rows_of_other_kinds_are_passed_over() -> None:
    """A row that is the log's business, or a later release's, does not stop a batch."""
    board = Board(log_ends())
    board.apply(0, [Row(0, "undecodable", "", b"{}"), Row(0, "of tomorrow", "", b"?"), event_row(1)], NOW_MS)

    assert 1 == len(board.latest_events(10))


def test_groups_can_be_asked_for_by_type_and_state() -> None:
    """The two filters of /api/v1/groups."""
    shard = Shard()
    classic_group(shard, "busy", {"m-1": {"orders": [0]}})
    shard.pending.append((THEN_MS, *commit("idle", 0, 9)))
    shard.pending.append((THEN_MS, *builders.share_group_epoch("shared", 4)))
    board = board_of(shard)

    def names(type_: str | None = None, state: str | None = None) -> list[str]:
        return [view["group"] for view in group_answer.views(board, NOW_MS, type_=type_, state=state)]

    assert ["busy", "idle", "shared"] == names()
    assert ["busy", "idle"] == names(type_="classic")
    assert ["busy"] == names(type_="classic", state="Stable")
    assert [] == names(type_="share", state="Stable")


def test_readers_never_see_half_a_batch() -> None:
    """Two groups that change in one batch are always read as changed together."""
    shard = Shard()
    batches = []
    for generation in range(1, 150):
        classic_group(shard, "a", {"m-1": {"orders": [0]}}, generation)
        classic_group(shard, "b", {"m-1": {"orders": [1]}}, generation)
        batches.append(shard.flush())
    board = Board(log_ends())
    board.apply(0, batches[0], NOW_MS)
    torn: list[tuple[int, int]] = []
    done = threading.Event()

    def read() -> None:
        while not done.is_set():
            shown = board.shown.groups
            epochs = (shown["a"].state.epoch, shown["b"].state.epoch)
            if epochs[0] != epochs[1]:
                torn.append(epochs)

    reader = threading.Thread(target=read)
    reader.start()
    for number, rows in enumerate(batches):
        board.apply(number, rows, NOW_MS)
    done.set()
    reader.join()

    assert [] == torn
    assert 149 == board.shown.groups["b"].state.epoch


# --- events ---


def test_events_are_kept_once_and_the_oldest_go() -> None:
    """The window holds the latest events, each id once."""
    board = Board(log_ends(), event_window=3)
    board.apply(0, [event_row(number) for number in (1, 2, 2, 3)], NOW_MS)
    board.apply(1, [event_row(number) for number in (3, 4)], NOW_MS)

    assert ["0-2-member_joined-0", "0-3-member_joined-0", "0-4-member_joined-0"] == [
        event["id"] for event in board.latest_events(10)
    ]


def test_events_are_found_by_group_time_and_number() -> None:
    """Oldest first by the log's time, the latest of them if there are more than asked for."""
    board = Board(log_ends())
    rows = [event_row(3, "a", 30), event_row(1, "a", 10), event_row(2, "b", 20), event_row(4, "a", 40)]
    board.apply(0, rows, NOW_MS)

    assert [10, 30, 40] == [event["time"] for event in board.latest_events(10, group="a")]
    assert [20, 30, 40] == [event["time"] for event in board.latest_events(10, since_ms=20)]
    assert [30, 40] == [event["time"] for event in board.latest_events(2)]


def test_events_name_topics_when_their_names_are_known() -> None:
    """An event of the new protocol holds topic ids; what is shown holds names as soon as brokers have said them."""
    board = Board(ends := log_ends())
    id_ = builders.topic_id("orders")
    detail = {"partitions": {f"{id_}/3": ["m-1", "m-2"]}}
    event = {"id": "0-1-x-0", "time": 1, "group": "g", "kind": "x", "detail": detail}
    board.apply(0, [Row(0, "event", "g", json.dumps(event).encode(), "x")], NOW_MS)
    unnamed = board.latest_events(1)[0]["detail"]
    ends.set_topics([described("orders", 6)], [])

    assert detail == unnamed
    assert {"partitions": {"orders/3": ["m-1", "m-2"]}} == board.latest_events(1)[0]["detail"]


# --- ready ---


def reasons(board: Board) -> list[str]:
    ready, missing = board.health.ready()
    assert ready == (not missing)
    return [each["reason"] for each in missing]


def test_ready_needs_state_log_and_samples() -> None:
    """Each thing that is missing is named until it is there."""
    before_ms = now_ms()
    board = Board(ends := log_ends(orders=1))

    assert ["the state of the former run is not loaded", "the end of the log at start is not known"] == reasons(board)

    board.load([])
    board.health.set_log_end_at_start({0: 100, 1: 0}, {0: 90, 1: 0})
    assert (100, 0) == (board.health.ready()[1][0]["records"], board.health.ready()[1][0]["read_percent"])

    board.health.set_positions({0: 60}, {0: 60}, NOW_MS)

    (missing,) = board.health.ready()[1]
    assert before_ms <= missing["since"] <= now_ms()
    known = {"reason": "the monitor is still reading the log", "far": "60 % read, 40 records to go"}
    assert {**known, "since": missing["since"]} == board.health.standing().doubt
    assert known.items() <= missing.items()
    assert (40, 60, {"0": 40}) == (missing["records"], missing["read_percent"], missing["partitions"])

    board.health.set_positions({0: 100}, {0: 89}, NOW_MS)

    assert 1 == board.health.ready()[1][0]["records"]

    sample(ends, NOW_MS, "orders", 1)
    board.health.set_positions({}, {0: 90}, NOW_MS + 1)

    assert ["lag is not known, as log end offsets are not sampled yet"] == reasons(board)

    sample(ends, NOW_MS + 2, "orders", 1)

    assert [] == reasons(board)
    assert board.health.standing().doubt is None


def test_reading_from_the_beginning_again_is_since_then() -> None:
    """Since when the log is read is of this reading, not of the first."""
    board = Board(log_ends(orders=1))
    first = board.health.ready()[1][0]["since"]
    while now_ms() == first:
        pass
    board.start_over()

    assert board.health.ready()[1][0]["since"] > first


def moving(*, one_reader: bool = False) -> tuple[Board, EndOffsets, list[float]]:
    """A board that is ready at offset 10 of the offsets topic, and the seconds of its clock."""
    seconds = [0.0]
    ends = log_ends(**{OFFSETS_TOPIC: 1})
    board = Board(ends, offsets_topic=OFFSETS_TOPIC)
    board.health.expect_batches(one_reader=one_reader, standstill=Standstill(lambda: seconds[0]))
    board.health.looked()
    board.load([])
    board.health.set_log_end_at_start({0: 10}, {0: 10})
    board.health.set_positions({0: 10}, {0: 10}, NOW_MS)
    sample(ends, NOW_MS, OFFSETS_TOPIC, 10)
    return board, ends, seconds


def test_not_ready_before_the_log_is_looked_at() -> None:
    """It may have lost what a former run had read of it, and be as long again."""
    board, _, _ = moving()
    board.health.expect_batches(one_reader=False)

    assert ["the log is not compared yet with what was read of it"] == reasons(board)

    board.health.looked()

    assert [] == reasons(board)


def test_not_ready_while_the_stream_stands_still() -> None:
    """Records wait without a finished micro-batch: in doubt after 15 s, not ready after 30; over with the next."""
    board, ends, seconds = moving()
    seconds[0] = 1_000.0
    assert ([], None) == (reasons(board), board.health.standing().doubt)

    sample(ends, NOW_MS, OFFSETS_TOPIC, 15)
    seconds[0] += 14.0
    assert ([], None, None) == (reasons(board), board.health.standing().doubt, board.health.standstill_seconds())

    seconds[0] += 1.0
    assert ([], 15.0) == (reasons(board), board.health.standstill_seconds())
    assert "records wait in the log, and no micro-batch has finished" == (board.health.standing().doubt or {})["reason"]

    seconds[0] += 15.0
    (still,) = board.health.ready()[1]
    assert 5 == still["records"]
    assert {"reason": "records wait in the log, and no micro-batch has finished"}.items() <= still.items()
    assert still["since"] == still["as_of"]
    assert (board.health.standing().doubt or {})["as_of"] is not None
    assert 30_000 <= now_ms() - still["since"] < 31_000

    board.health.observe_batch(0.1)
    assert ([], None, None) == (reasons(board), board.health.standing().doubt, board.health.standstill_seconds())


def test_a_first_batch_may_take_long() -> None:
    """While the log is being read, how much of it is said; that it stands still only after a minute."""
    board, ends, seconds = moving()
    board.start_over()
    board.health.set_log_end_at_start({0: 10}, {0: 10})
    board.health.set_positions({0: 0}, {0: 0}, NOW_MS)
    sample(ends, NOW_MS, OFFSETS_TOPIC, 15)
    seconds[0] = 59.0
    assert ["the monitor is still reading the log"] == reasons(board)
    assert "as_of" not in (board.health.standing().doubt or {})

    seconds[0] += 1.0
    assert 60.0 == board.health.standstill_seconds()


def test_ready_while_nothing_waits() -> None:
    """A silent cluster has no micro-batches; what comes after an hour of silence has not waited for an hour."""
    board, ends, seconds = moving()
    seconds[0] = 3_600.0
    assert [] == reasons(board)

    sample(ends, NOW_MS, OFFSETS_TOPIC, 11)
    assert [] == reasons(board)


def test_ready_while_micro_batches_finish() -> None:
    """On a busy cluster something waits at every look."""
    board, ends, seconds = moving()
    for number in range(5):
        sample(ends, NOW_MS, OFFSETS_TOPIC, 11 + number)
        seconds[0] += 14.0
        assert ([], None) == (reasons(board), board.health.standing().doubt)
        board.health.observe_batch(0.1)


@pytest.mark.parametrize(("one_reader", "expected"), [(True, 0), (False, 1)])
def test_an_open_transaction_is_no_standstill_of_one_reader(*, one_reader: bool, expected: int) -> None:
    """It cannot read past the last stable offset; the reader of membership alone can."""
    board, ends, seconds = moving(one_reader=one_reader)
    sample(ends, NOW_MS, OFFSETS_TOPIC, 20, stable={0: 10})
    seconds[0] = 61.0

    assert expected == len(reasons(board))


def test_ready_stays_ready() -> None:
    """What comes after the start is lag, and has figures of its own."""
    board = Board(ends := log_ends(orders=1))
    board.load([])
    board.health.set_log_end_at_start({0: 1}, {0: 1})
    board.health.set_positions({0: 1}, {0: 1}, NOW_MS)
    sample(ends, NOW_MS, "orders", 1)
    board.health.set_positions({0: 0}, {0: 0}, NOW_MS)

    assert [] == reasons(board)


# --- what is asked of brokers, and the monitor's own distance ---


def test_wanted_topics_are_those_groups_have_to_do_with() -> None:
    """Names from commits and subscriptions, ids from assignments until their names are known."""
    shard = Shard()
    shard.pending += [(THEN_MS, *commit("simple", 0, 9, "audit"))]
    for record in (
        builders.consumer_group_epoch("modern", 2),
        builders.consumer_group_member_subscription("modern", "m-1", topics=["orders"]),
        builders.consumer_group_target_assignment("modern", "m-1", {"orders": [0], "old": [1]}),
        builders.consumer_group_current_assignment("modern", "m-1", epoch=2, assigned={"orders": [0]}),
    ):
        shard.pending.append((THEN_MS, *record))
    board = board_of(shard, ends := log_ends())
    ids = {name: builders.topic_id(name) for name in ("orders", "old")}

    assert Wanted(frozenset({"audit", "orders"}), frozenset(ids.values())) == board.wanted()

    ends.set_topics([described("orders", 1), described("old", 2)], [])

    assert Wanted(frozenset({"audit", "orders", "old"}), frozenset()) == board.wanted()


def test_replica_lag_is_of_the_reader_further_behind() -> None:
    """Membership is measured against the high watermark, commits against the last stable offset.

    Of a partition that came since, as the topic was grown, nothing is read yet.
    """
    board = Board(ends := log_ends(**{OFFSETS_TOPIC: 3}))
    sample(ends, NOW_MS, OFFSETS_TOPIC, 100, 100, 100, stable={1: 70})
    board.health.set_positions({0: 100, 1: 95}, {0: 97, 1: 70}, NOW_MS)

    assert {0: 3, 1: 5, 2: 100} == board.health.replica_lag()
    assert {0: (0, None), 1: (30, NOW_MS), 2: (0, None)} == board.health.open_transactions()


@pytest.mark.parametrize(
    ("assigned", "partitions", "expected"),
    [
        ({"m-1": {"orders": [0, 1]}, "m-2": {"orders": [2]}}, 3, 0),
        ({"m-1": {"orders": [0]}, "m-2": {"orders": [2]}}, 3, 1),
        ({"m-1": {"orders": [0]}}, 6, 5),
        ({"m-1": {"orders": [0]}}, None, None),
    ],
    ids=["all held", "one forgotten", "topic has grown", "topic not described"],
)
def test_unassigned_partitions_of_a_classic_group(
    assigned: dict[str, dict[str, list[int]]], partitions: int | None, expected: int | None
) -> None:
    """Partitions of subscribed topics that no member holds; not a number where the topic is not known."""
    shard = Shard()
    classic_group(shard, "g", assigned)
    ends = log_ends() if partitions is None else log_ends(orders=partitions)

    assert expected == board_of(shard, ends).shown.groups["g"].unassigned_partitions(ends.topics)


def consumer_group() -> Iterator[tuple[bytes, bytes | None]]:
    yield builders.consumer_group_epoch("g", 2)
    yield builders.consumer_group_target_assignment_epoch("g", 2)
    yield builders.consumer_group_member_subscription("g", "m-1", topics=["orders"])
    yield builders.consumer_group_current_assignment(
        "g", "m-1", epoch=1, state=1, assigned={"orders": [0]}, pending_revocation={"orders": [1]}
    )


def test_unassigned_partitions_of_a_consumer_group() -> None:
    """A partition that is still to be revoked has an owner; one that only is a target has none."""
    shard = Shard()
    shard.pending += [(THEN_MS, *record) for record in consumer_group()]
    ends = log_ends(orders=4)

    assert 2 == board_of(shard, ends).shown.groups["g"].unassigned_partitions(ends.topics)


def test_live_records_of_the_new_protocols_are_counted_by_type() -> None:
    """What an older broker would meet: one record of each type the group has."""
    shard = Shard()
    shard.pending += [(THEN_MS, *record) for record in consumer_group()]

    assert {3: 1, 5: 1, 6: 1, 8: 1} == dict(board_of(shard).shown.groups["g"].words.new_protocol_records)


def test_time_to_visibility_is_measured_once_caught_up() -> None:
    """Records of the catch-up say nothing of how fast the monitor is, and a repeated batch was seen before."""
    shard = Shard()
    board = board_of(shard)
    board.apply(1, shard.write(commit("g", 0, 1), timestamp_ms=THEN_MS), NOW_MS)
    while_catching_up = board.health.record_to_metric.read()
    board.health.set_log_end_at_start({}, {})
    board.health.set_positions({}, {}, NOW_MS)
    later = builders.offset_commit("g", "orders", 0, 2, timestamp=NOW_MS - 700)
    rows = shard.write(later, timestamp_ms=NOW_MS - 700)
    board.apply(2, rows, NOW_MS)
    board.apply(2, rows, NOW_MS + 9_000)
    counts, total = board.health.record_to_metric.read()

    assert (0, 0.0) == (sum(while_catching_up[0]), while_catching_up[1])
    assert (1, 0.7) == (sum(counts), total)


def test_ends_are_asked_for_when_the_log_is_read() -> None:
    """Lag is all that is missing then: the board is ready a round of samples earlier than it would be."""
    board = board_of(Shard())
    board.health.set_log_end_at_start({0: 2}, {0: 2})

    def asked() -> bool:
        wanted = board.ends._asked_for.is_set()
        board.ends.await_round(0)
        return wanted

    found = []
    for position in (1, 2, 3):
        board.health.set_positions({0: position}, {0: position}, NOW_MS)
        found.append(asked())

    assert [False, True, False] == found


def test_partitions_that_were_never_committed_have_a_row_without_figures() -> None:
    """Where its reader begins is for the consumer to say; a reader sees that nothing was committed."""
    shard = Shard()
    held = builders.member("m", {"orders": [0, 1]}, topics=["orders"])
    shard.pending += [
        (THEN_MS, *builders.group_metadata("g", generation=1, members=[held])),
        (THEN_MS, *commit("g", 1, 5)),
    ]
    board = board_of(shard, log_ends(orders=2))

    view = group_answer.view(board, "g", NOW_MS)

    assert view is not None
    first, second = view["offsets"]
    assert ("orders", 0, None, None, None, "never_committed") == tuple(
        first[key] for key in ("topic", "partition", "offset", "lag", "lag_seconds", "lag_method")
    )
    assert first.keys() == second.keys()
    assert (1, 5) == (second["partition"], second["offset"])
