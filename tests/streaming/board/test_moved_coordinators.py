"""Members that are gone after their rebalance timeout, where a coordinator that moved began it again."""

import json
from typing import Any

import pytest

from lab import builders
from lab.builders import REBALANCE_TIMEOUT_MS
from lab.coordinator_events import consumer_join, consumer_leave, consumer_moves
from streaming.board.board import Board, Row
from streaming.board.moved_coordinators import NOTICED_WITHIN_MS
from streaming.end_offsets.store import EndOffsets, Topic
from tests.streaming.board_rows import Shard
from tests.streaming.boards import NOW_MS, OFFSETS_TOPIC

WAITED_MS = REBALANCE_TIMEOUT_MS + 20_000
SINCE_MS = NOW_MS - WAITED_MS


def rows() -> list[Row]:
    """A member was asked to let go of a partition, did not, and is gone 20 s after its rebalance timeout."""
    shard = Shard()
    targets = {"a": {"t": [0]}, "b": {"t": [1]}}
    for ms, records in (
        (SINCE_MS - 60_000, consumer_join("g", "a", epoch=2, targets={"a": {"t": [0, 1]}})),
        (SINCE_MS, consumer_join("g", "b", epoch=3, targets=targets, assigned={})),
        (SINCE_MS, consumer_moves("g", "a", epoch=2, assigned={"t": [0]}, pending={"t": [1]}, state=1)),
        (NOW_MS, consumer_leave("g", "a", epoch=4)),
    ):
        shard.pending += [(ms, *record) for record in records]
    return shard.flush()


def gone(*moves_ms: int) -> dict[str, Any]:
    """The one event about it, as sinks are given it, after the coordinator was seen to move at these times."""
    ends = EndOffsets()
    for leader, ms in enumerate((SINCE_MS - 120_000, *moves_ms)):
        ends.set_topics([Topic(builders.topic_id("o"), OFFSETS_TOPIC, 1, {0: leader}, {0: leader})], [], ms)
    settled = Board(ends).settled(1, rows())
    events = [(json.loads(row[3]), row[4]) for row in settled if row[1] == "event"]
    assert [] == [event for event, kind in events if event["kind"] != kind]
    assert len(events) == len({event["id"] for event, _ in events})
    (found,) = (event for event, kind in events if kind in ("member_fenced", "member_left"))
    assert "a" == found["detail"]["member_id"]
    return dict(found)


@pytest.mark.parametrize(
    "moves_ms", [[], [SINCE_MS - 1_000], [SINCE_MS, NOW_MS + 1_000]], ids=["never", "before", "before and since"]
)
def test_member_that_was_waited_for_by_one_coordinator_was_fenced(moves_ms: list[int]) -> None:
    """A move before it was waited for began nothing again, nor did one after it was gone."""
    event = gone(*moves_ms)

    assert ("member_fenced", "warning", WAITED_MS) == (event["kind"], event["severity"], event["detail"]["waited_ms"])


def test_member_that_goes_soon_after_a_move_left_or_expired() -> None:
    """Its rebalance timeout began again with the new coordinator, and its session as well."""
    event = gone(NOW_MS - REBALANCE_TIMEOUT_MS + NOTICED_WITHIN_MS + 1)

    assert ("member_left", "info", False) == (event["kind"], event["severity"], event["inferred"])
    assert {"member_id", "instance_id", "client_id", "client_host", "protocol"} == event["detail"].keys()


def test_member_that_outlives_its_timeout_after_a_move_was_fenced() -> None:
    """By the new coordinator, which may have been there before it was noticed; it waited since then."""
    moved_ms = NOW_MS - REBALANCE_TIMEOUT_MS + NOTICED_WITHIN_MS
    event = gone(moved_ms)

    assert ("member_fenced", NOW_MS - moved_ms) == (event["kind"], event["detail"]["waited_ms"])
