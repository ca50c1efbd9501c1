"""Groups and records far beyond the usual: what they cost grows with them at most, counted in steps, not in seconds."""

import json
import sys
from collections.abc import Callable
from typing import TypeVar

import pytest

from coordinator_model.records.serde import Record, decode_record
from lab import builders
from lab.builders import NOW_MS, RecordBytes
from lab.coordinator_events import consumer_moves
from streaming.board import group_answer
from streaming.board.board import Board
from streaming.end_offsets.store import EndOffsets
from streaming.metrics.exporter import Exporter
from tests import hostile
from tests.streaming.board_rows import Shard
from tests.streaming.boards import rendered

SMALL, LARGE = 300, 1_200
GROWS = LARGE / SMALL * 1.15
"""What is sorted takes a little more than its number."""

T = TypeVar("T")


def counted(work: Callable[[], T]) -> tuple[int, T]:
    """Calls of functions, ours and the interpreter's, that some work takes, and what it returns."""
    calls = 0

    def count(_frame: object, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        result = work()
    finally:
        sys.setprofile(None)
    return calls, result


def costs(records: list[RecordBytes], more: list[RecordBytes]) -> dict[str, int]:
    """Steps of what is done with a group, and with further records of it once it is there."""
    shard, board = Shard(), Board(EndOffsets())
    exporter = Exporter(board, "test", clock_ms=lambda: NOW_MS)
    found = {}
    found["replay"], rows = counted(lambda: shard.write(*records, timestamp_ms=NOW_MS))
    found["board"], _ = counted(lambda: board.apply(1, rows, NOW_MS))
    found["metrics"], _ = counted(lambda: rendered(exporter, ""))
    found["JSON"], _ = counted(lambda: json.dumps(list(group_answer.views(board, NOW_MS))))
    found["more"], rows = counted(lambda: shard.write(*more, timestamp_ms=NOW_MS + 1))
    found["board, more"], _ = counted(lambda: board.apply(2, rows, NOW_MS + 1))
    shard.write(builders.offset_commit("g", "t", 0, 1), timestamp_ms=NOW_MS + 2)
    found["commit"], rows = counted(
        lambda: shard.write(builders.offset_commit("g", "t", 0, 2), timestamp_ms=NOW_MS + 3)
    )
    found["board, commit"], _ = counted(lambda: board.apply(3, rows, NOW_MS + 3))
    return found


def _classic(count: int) -> dict[str, int]:
    return costs([hostile.classic_group("g", count)], [hostile.classic_group("g", count - 1)])


def _consumer(count: int) -> dict[str, int]:
    moved = consumer_moves("g", "member-000007", epoch=1, assigned={"t": [7]})
    return costs(list(hostile.consumer_group("g", count)), moved)


@pytest.mark.parametrize("of", [_classic, _consumer])
def test_a_group_costs_what_it_has_members(of: Callable[[int], dict[str, int]]) -> None:
    """Four times the members take four times the steps, wherever the group goes; a commit of it takes the same."""
    first = builders.offset_commit("g", "t", 0, 1)
    costs([first], [first])  # what a process makes once is made
    small, large = of(SMALL), of(LARGE)

    assert [] == [what for what in small if large[what] > GROWS * small[what]]
    assert (small["commit"], small["board, commit"]) == (large["commit"], large["board, commit"])


@pytest.mark.parametrize("size", [10, 1_000_000])
def test_a_record_of_a_megabyte_is_read_in_as_many_steps(size: int) -> None:
    """Bytes that mean nothing to us are taken as they are: a small one of the kind takes as many steps."""
    member = builders.member("m", {"t": [0]}, subscription_bytes=bytes(size))
    key, value = builders.group_metadata("g", generation=1, members=[member])
    steps, decoded = counted(lambda: decode_record(key, value))

    assert isinstance(decoded, Record)
    assert steps <= 100
