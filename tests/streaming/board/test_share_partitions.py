"""Share partitions on the board: their lag, whose they are, and what is said where it is not known."""

from typing import Any

import pytest

from lab.builders import RecordBytes, topic_id
from lab.coordinator_events import share_join, share_leave
from lab.share_state import share_snapshot, share_snapshot_tombstone, share_update
from streaming.board import group_answer
from streaming.board.board import Board
from streaming.board.share_partitions import NO_COUNT, NO_END, NOT_INITIALIZED, UNREAD, orphans
from streaming.end_offsets.store import EndOffsets, Topic
from tests.streaming.board_rows import Shard, ShareShard
from tests.streaming.boards import NOW_MS, THEN_MS, board_of, log_ends, sample, shares_read


class Scene:
    """A share group `queue` of the topic `t`, of which the second log has these records."""

    def __init__(self, *records: RecordBytes, ends: EndOffsets | None = None) -> None:
        self.shard, self.shares = Shard(), ShareShard()
        self.shard.pending += [(THEN_MS, *of) for of in share_join("queue", "m", epoch=2, targets={"m": {"t": [0, 1]}})]
        if ends is None:
            sample(ends := shares_read(log_ends(t=2)), NOW_MS - 8_000, "t", 0, 0)
            sample(ends, NOW_MS, "t", 100, 8)
        self.board = board_of(self.shard, ends)
        self._batch = 0
        self.write(*records)

    def write(self, *records: RecordBytes, at_ms: int = THEN_MS) -> None:
        """A micro-batch of the second log."""
        self._batch += 1
        rows = self.board.settled(self._batch, self.shares.write(*records, timestamp_ms=at_ms))
        self.board.apply(self._batch, rows, NOW_MS)

    def group(self, name: str = "queue") -> dict[str, Any]:
        """As the API has it."""
        shown = group_answer.view(self.board, name, NOW_MS)
        assert shown is not None
        return shown

    def only(self) -> dict[str, Any]:
        """The one share partition."""
        (found,) = self.group()["share_partitions"]
        return dict(found)


def test_lag_is_as_kafka_s_tool_has_it() -> None:
    """High watermark, less the start offset and what is done behind it; in time of the first that is not done."""
    scene = Scene(
        share_snapshot("queue", "t", 0, start_offset=10),
        share_update("queue", "t", 0, (10, 24, 2, 1), (30, 39, 2, 1), delivery_complete_count=25),
    )
    found = scene.only()

    assert (10, 25, 65) == (found["start_offset"], found["first_not_done"], found["lag"])
    assert 6.0 == pytest.approx(found["lag_seconds"])
    assert NOW_MS - 6_000 == found["stalled_since"]
    assert (65, 65, 0) == tuple(scene.group()[name] for name in ("lag", "max_lag", "unknown_lags"))
    assert 6.0 == pytest.approx(scene.group()["max_lag_seconds"])


def test_all_done_and_idle_is_no_lag_and_does_not_stall() -> None:
    """Though the start offset is written only before it moves, and stands at 0."""
    scene = Scene(
        share_snapshot("queue", "t", 0),
        share_update("queue", "t", 0, (0, 99, 2, 1), delivery_complete_count=100),
    )
    found = scene.only()

    assert (0, 100, 0, 0.0, None) == tuple(
        found[name] for name in ("start_offset", "first_not_done", "lag", "lag_seconds", "stalled_since")
    )


def test_what_waits_since_before_it_came_to_be_first_has_stalled_since_then() -> None:
    """The offset before it was done only now."""
    scene = Scene(share_snapshot("queue", "t", 0))
    scene.write(share_update("queue", "t", 0, (0, 9, 2, 1), delivery_complete_count=10), at_ms=NOW_MS - 1_000)

    assert NOW_MS - 1_000 == scene.only()["stalled_since"]


@pytest.mark.parametrize(
    ("record", "why"),
    [
        (share_snapshot("queue", "t", 0, start_offset=-1), NOT_INITIALIZED),
        (share_snapshot("queue", "t", 0, delivery_complete_count=-1), NO_COUNT),
        (share_snapshot("queue", "u", 0), NO_END),
    ],
)
def test_lag_that_is_not_known_says_why(record: RecordBytes, why: str) -> None:
    """And is no 0; only where the partition's end is missing it makes the group's unknown."""
    scene = Scene(record)

    assert (None, why) == (scene.only()["lag"], scene.only()["lag_unknown"])
    assert None is scene.group()["lag"]
    assert (why == NO_END) == scene.group()["unknown_lags"]


@pytest.mark.parametrize(
    ("found", "said"),
    [
        ("off", "share_groups.enabled is false"),
        ("absent", "Kafka makes it with the first share group"),
        ("unreadable", "permission READ on the topic __share_group_state is missing"),
        ("readable", "is still being read"),
    ],
)
def test_where_the_log_is_not_read_lag_is_left_out_with_the_reason(found: Any, said: str) -> None:
    """The figures that were read before stand, without a lag that would be frozen."""
    sample(ends := log_ends(t=2), NOW_MS, "t", 100, 8)
    scene = Scene(share_snapshot("queue", "t", 0), ends=ends)
    ends.share_log.see(found)

    assert said in scene.group()["lag_left_out"]
    assert said in scene.only()["lag_unknown"]
    assert None is scene.group()["lag"]
    assert 0 == scene.group()["unknown_lags"]
    assert None is orphans(scene.board.shown.shares, scene.board.shown.groups, ends)


def test_a_partition_of_the_log_that_cannot_be_read_leaves_its_own_unknown() -> None:
    """Others are known."""
    scene = Scene(share_snapshot("queue", "t", 0), share_snapshot("queue", "t", 1))
    scene.board.ends.share_log.follow({}, unread=[0])

    assert {UNREAD} == {of["lag_unknown"] for of in scene.group()["share_partitions"]}
    assert 2 == scene.group()["unknown_lags"]


def test_states_of_no_group_are_counted_and_shown_in_none() -> None:
    """Of a group that is gone, of one that is no share group, and of a topic that was made again."""
    scene = Scene(share_snapshot("queue", "t", 0), share_snapshot("gone", "t", 0), share_snapshot("gone", "t", 1))
    board = scene.board

    def count() -> int | None:
        return orphans(board.shown.shares, board.shown.groups, board.ends)

    assert 2 == count()
    board.ends.set_topics([Topic(topic_id("again"), "t", 2, {0: 1, 1: 1})], ["t"])
    assert 3 == count()
    assert [] == scene.group()["share_partitions"]
    assert "gone" not in board.shown.groups


def test_state_before_its_group_is_shown_with_it() -> None:
    """The two logs are read in one micro-batch and in no order."""
    board = Board(shares_read(log_ends(t=1)))
    board.load([])
    shares = ShareShard().write(share_snapshot("queue", "t", 0, start_offset=4), timestamp_ms=THEN_MS)
    board.apply(1, shares, NOW_MS)
    group = Shard().write(*share_join("queue", "m", epoch=2, targets={"m": {"t": [0]}}), timestamp_ms=THEN_MS)
    board.apply(2, group, NOW_MS)
    shown = group_answer.view(board, "queue", NOW_MS)

    assert shown is not None
    assert [4] == [of["start_offset"] for of in shown["share_partitions"]]


def test_a_share_partition_that_ends_is_gone() -> None:
    """With the last the group has none."""
    scene = Scene(share_snapshot("queue", "t", 0))
    scene.write(share_snapshot_tombstone("queue", "t", 0))

    assert [] == scene.group()["share_partitions"]
    assert "queue" not in scene.board.shown.shares.groups


def test_the_second_log_makes_no_copy_of_a_group() -> None:
    """Where its state lives says nothing of where the group does."""
    scene = Scene()
    scene.shares = ShareShard(partition=7)
    scene.write(share_update("queue", "t", 0, (3, 3, 4, 5)))

    assert 0 == len(scene.board.copies)
    kinds = [event["kind"] for event in scene.board.latest_events(100)]
    assert "share_records_archived" in kinds
    assert "group_in_two_partitions" not in kinds


def test_topics_of_share_partitions_are_sampled() -> None:
    """By name, and by id until that is known; with the log's own ends once it may be read."""
    scene = Scene(share_snapshot("queue", "t", 0), share_snapshot("queue", "new", 0))
    wanted = scene.board.wanted()

    assert {"t", "__share_group_state"} <= wanted.names
    assert {topic_id("new")} == wanted.ids


def test_events_name_the_topic() -> None:
    """The log has its id."""
    scene = Scene(share_update("queue", "t", 1, (3, 4, 4, 5)))
    (event,) = [of for of in scene.board.latest_events(10) if of["kind"] == "share_records_archived"]

    assert ("t", 1, 3, 4, "limit") == tuple(
        event["detail"][name] for name in ("topic", "topic_partition", "first_offset", "last_offset", "why")
    )
    assert "__share_group_state" == event["log"]


def test_starting_over_forgets_all_of_it() -> None:
    """And what is read is to be read again."""
    scene = Scene(share_snapshot("queue", "t", 0))
    scene.board.start_over()

    assert not scene.board.shown.shares.groups
    assert "is still being read" in str(scene.board.ends.share_log.why_unknown)


@pytest.mark.parametrize(
    ("records", "codes"),
    [
        ([share_snapshot("queue", "t", 0)], ["consumers_stopped"]),
        ([share_snapshot("queue", "t", 0), share_update("queue", "t", 0, (0, 99, 2, 1))], []),
    ],
)
def test_a_share_group_without_members_while_records_wait_needs_a_look(records: list[RecordBytes], codes: Any) -> None:
    """As any group; where all is done it does not."""
    scene = Scene(*records)
    board, later_ms = scene.board, NOW_MS + 700_000
    board.apply(90, scene.shard.write(*share_leave("queue", "m", epoch=3), timestamp_ms=NOW_MS), NOW_MS)
    shown = group_answer.view(board, "queue", later_ms)

    assert shown is not None
    assert codes == [of["code"] for of in shown["attention"]]


def test_with_members_a_share_group_that_commits_nothing_is_none_that_should() -> None:
    """`lag_without_commits` is about commits."""
    scene = Scene(share_snapshot("queue", "t", 0))
    shown = group_answer.view(scene.board, "queue", NOW_MS + 7_000_000)

    assert shown is not None
    assert [] == shown["attention"]


def test_a_group_with_members_and_no_state_says_so_after_a_while() -> None:
    """Brokers may keep it elsewhere."""
    scene = Scene()
    soon = group_answer.view(scene.board, "queue", THEN_MS + 599_000)
    late = group_answer.view(scene.board, "queue", THEN_MS + 600_000)

    assert soon is not None
    assert late is not None
    assert "lag_left_out" not in soon
    assert "group.share.persister.class.name" in late["lag_left_out"]
