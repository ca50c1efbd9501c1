"""What batches and the watch leave in the spool: events with their batch, states of groups thinned out."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from coordinator_model.views import group_view
from lab import builders
from lab.coordinator_events import share_join
from lab.share_state import share_snapshot
from streaming.board.board import Board, Row
from streaming.sinks.queue import FILE, Spool, SpoolError
from streaming.sinks.queue_sink import STATES_AT_ONCE, QueueSink
from tests.full_disk import no_room_beyond
from tests.streaming.board_rows import Shard, ShareShard
from tests.streaming.boards import NOW_MS, THEN_MS, classic_group, log_ends, sample

INTERVAL_MS = 10_000


class Reported:
    """A board and a sink behind it, fed with batches; the clock stands where it is set."""

    def __init__(
        self, directory: Path, *, interval_ms: int | None = INTERVAL_MS, is_ready: bool = True, **spool: Any
    ) -> None:
        self.now_ms = NOW_MS
        ends = log_ends(orders=2)
        sample(ends, NOW_MS, "orders", 100, 100)
        self.board = Board(ends)
        self.board.load([])
        if is_ready:
            self.board.health.set_log_end_at_start({}, {})
            self.board.health.set_positions({}, {}, NOW_MS)
        self.spool = Spool(directory, ["reader"], clock_ms=lambda: self.now_ms, **spool)
        self.sink = QueueSink(
            self.spool, self.board, lambda: "query", interval_ms=interval_ms, clock_ms=lambda: self.now_ms
        )
        self.batch = 0

    def apply(self, rows: list[Row]) -> None:
        """One micro-batch, as the stream gives it to its sinks."""
        outputs = [Row(*row) for row in rows]
        self.board.apply(self.batch, outputs, self.now_ms)
        self.sink.apply(self.batch, outputs, self.now_ms)
        self.batch += 1

    def new(self) -> list[Mapping[str, Any]]:
        """What was written since this was last asked."""
        found = self.spool.read("reader", 10_000)
        if found:
            self.spool.acknowledge("reader", found[-1].position)
        return [entry for _, entry in found]


def kinds(entries: list[Mapping[str, Any]]) -> list[str]:
    return [entry["kind"] for entry in entries]


def commit(shard: Shard, offset: int, group: str = "g", at_ms: int = THEN_MS) -> list[Row]:
    return shard.write(builders.offset_commit(group, "orders", 0, offset, timestamp=at_ms), timestamp_ms=at_ms)


def test_a_batch_brings_its_events_and_the_groups_that_changed(tmp_path: Path) -> None:
    """The state is the GROUP, with the time of the event that shows the change."""
    reported, shard = Reported(tmp_path), Shard()
    classic_group(shard, "g", {"m-1": {"orders": [0, 1]}})
    reported.apply(shard.flush())

    *events, state = reported.new()
    assert {"event"} == set(kinds(events))
    assert {"group_created", "member_joined"} <= {entry["event"]["kind"] for entry in events}
    held = reported.board.shown.groups["g"]
    assert ("group", "g", max(entry["event"]["time"] for entry in events)) == (
        state["kind"],
        state["group"],
        state["time"],
    )
    expected = group_view.group_view(held.state, held.offsets, {}, state["time"])
    assert {**expected, "share_partitions": []} == state["state"]


def test_without_a_reader_of_states_there_are_events_only(tmp_path: Path) -> None:
    """States cost more than events, and are written for those who ask."""
    reported, shard = Reported(tmp_path, interval_ms=None), Shard()
    classic_group(shard, "g", {"m-1": {"orders": [0, 1]}})
    reported.apply(shard.flush())
    reported.apply(commit(shard, 5))
    reported.now_ms += INTERVAL_MS

    assert {"event"} == set(kinds(reported.new()))


def test_commits_alone_are_written_once_an_interval_with_the_newest_offset(tmp_path: Path) -> None:
    """However many batches they come in; the last of them is written even if none follows."""
    reported, shard = Reported(tmp_path), Shard()
    reported.apply(commit(shard, 1))
    reported.new()
    for offset in (2, 3, 4):
        reported.apply(commit(shard, offset, at_ms=THEN_MS + offset))
        reported.sink.write_owed()
    assert [] == reported.new()

    reported.now_ms += INTERVAL_MS
    reported.sink.write_owed()
    (state,) = reported.new()
    assert (THEN_MS + 4, 4) == (state["time"], state["state"]["offsets"][0]["offset"])
    reported.now_ms += INTERVAL_MS
    reported.sink.write_owed()
    assert [] == reported.new()


def test_share_partitions_are_written_as_commits_are(tmp_path: Path) -> None:
    """Once an interval, with the group: they come by themselves, out of another log."""
    reported, shares = Reported(tmp_path), ShareShard()
    members = share_join("queue", "m", epoch=2, targets={"m": {"orders": [0]}})
    reported.apply(Shard().write(*members, timestamp_ms=THEN_MS))
    reported.new()
    reported.apply(shares.write(share_snapshot("queue", "orders", 0, start_offset=7), timestamp_ms=THEN_MS))
    assert [] == reported.new()

    reported.now_ms += INTERVAL_MS
    reported.sink.write_owed()
    (state,) = reported.new()
    assert ("queue", [7]) == (state["group"], [of["start_offset"] for of in state["state"]["share_partitions"]])


def test_a_state_is_of_no_earlier_time_than_its_membership(tmp_path: Path) -> None:
    """A member joins while states wait: what is owed for an old commit has the time of the join."""
    reported, shard = Reported(tmp_path, is_ready=False), Shard()
    reported.apply(commit(shard, 1, at_ms=THEN_MS - 5_000))
    classic_group(shard, "g", {"m-1": {"orders": [0, 1]}})
    reported.apply(shard.flush())
    reported.board.health.set_log_end_at_start({}, {})
    reported.board.health.set_positions({}, {}, NOW_MS)
    reported.sink.write_owed()

    (state,) = [entry for entry in reported.new() if entry["kind"] == "group"]
    assert (THEN_MS, 1) == (state["time"], len(state["state"]["members"]))


def test_a_deleted_group_is_reported_and_owed_no_more(tmp_path: Path) -> None:
    """One that comes again under its name in the same batch follows its end."""
    reported, shard = Reported(tmp_path), Shard()
    reported.apply(commit(shard, 1))
    reported.apply(commit(shard, 2))
    reported.new()
    reported.apply(shard.write(builders.offset_commit_tombstone("g", "orders", 0), timestamp_ms=THEN_MS))
    reported.now_ms += INTERVAL_MS
    reported.sink.write_owed()

    assert ["event", "event", "group_deleted"] == sorted(kinds(reported.new()))


def test_while_catching_up_states_wait_and_events_do_not(tmp_path: Path) -> None:
    """A group that changed a hundred times long ago is written once, when the end of the log is reached."""
    reported, shard = Reported(tmp_path, is_ready=False), Shard()
    reported.apply(commit(shard, 1))
    reported.sink.write_owed()
    assert {"event"} == set(kinds(reported.new()))

    reported.board.health.set_log_end_at_start({}, {})
    reported.board.health.set_positions({}, {}, NOW_MS)
    reported.sink.write_owed()
    assert ["group"] == kinds(reported.new())


def test_many_groups_are_written_bit_by_bit(tmp_path: Path) -> None:
    """A batch does not wait for thousands of states: those beyond the first stay owed, and come."""
    reported, shard = Reported(tmp_path), Shard()
    count = STATES_AT_ONCE + 10
    records = (builders.offset_commit(f"g-{each}", "orders", 0, 1, timestamp=THEN_MS) for each in range(count))
    reported.apply(shard.write(*records, timestamp_ms=THEN_MS))
    assert STATES_AT_ONCE == kinds(reported.new()).count("group")

    reported.sink.write_owed()
    assert 10 == kinds(reported.new()).count("group")


def test_after_a_restart_what_may_have_changed_is_written(tmp_path: Path) -> None:
    """A group that committed shortly before the last entry is owed, one that did not is not; in a new spool all are."""
    reported, shard = Reported(tmp_path), Shard()
    reported.apply(commit(shard, 1, group="old", at_ms=NOW_MS - 1_000_000))
    reported.apply(commit(shard, 1, group="new", at_ms=NOW_MS))
    reported.new()

    reported.sink.owe_since(reported.spool.last_ms)
    reported.sink.write_owed()
    assert ["new"] == [entry["group"] for entry in reported.new()]
    reported.sink.owe_since(None)
    reported.sink.write_owed()
    assert {"new", "old"} == {entry["group"] for entry in reported.new()}


def test_a_disk_without_room_fails_the_batch_which_is_repeated(tmp_path: Path) -> None:
    """Events and states of the batch are there once when it has come again, and what was owed is owed still."""
    reported, shard = Reported(tmp_path), Shard()
    reported.apply(commit(shard, 1))
    written = reported.new()
    reported.apply(commit(shard, 2))
    rows = commit(shard, 1, group="another")

    with no_room_beyond((tmp_path / f"{FILE}-wal").stat().st_size):
        with pytest.raises(SpoolError):
            reported.apply(rows)
        reported.now_ms += INTERVAL_MS
        with pytest.raises(SpoolError):
            reported.sink.write_owed()
    assert [] == reported.new()
    reported.apply(rows)
    reported.sink.write_owed()

    assert ["event", "group", "group"] == kinds(reported.new())
    assert ["event", "group"] == kinds(written)


def test_at_the_bound_states_are_owed_until_there_is_room(tmp_path: Path) -> None:
    """Events go in all the same."""
    reported, shard = Reported(tmp_path, max_bytes=200_000), Shard()
    number = 0
    while reported.spool.has_room_for_states:
        reported.sink.add_events([{"id": str(number), "group": "g"}])
        number += 1
    reported.apply(commit(shard, 1))
    reported.sink.write_owed()
    assert {"event"} == set(kinds(reported.new()))

    reported.sink.write_owed()
    assert ["group"] == kinds(reported.new())


def test_what_the_watch_tells_again_is_written_once(tmp_path: Path) -> None:
    """A monitor that starts again finds what it had found, under the same id."""
    reported = Reported(tmp_path)
    reported.sink.add_events([{"id": "7-rebalance_stuck-0", "group": "g"}])
    reported.spool.close()
    reported = Reported(tmp_path)
    reported.sink.add_events([{"id": "7-rebalance_stuck-0", "group": "g"}])

    assert 1 == len(reported.new())
