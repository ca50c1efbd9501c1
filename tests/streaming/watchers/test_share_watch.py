"""Share groups looked at with a clock in hand: what is reported once, and what stays silent."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from lab.builders import RecordBytes, topic_id
from lab.coordinator_events import share_join
from lab.share_state import share_snapshot, share_update
from streaming.base.batch_rows import Row
from streaming.board.board import SHARE_LOG
from streaming.board.lag_columns import measure, table_of
from streaming.watchers.share_watch import ShareWatch
from tests.streaming.board_rows import Shard, ShareShard
from tests.streaming.boards import NOW_MS, board_of, caught_up, log_ends, sample, shares_read

MINUTE_MS: Final = 60_000
WINDOW_MS: Final = 5 * MINUTE_MS
BEGIN_MS: Final = NOW_MS // WINDOW_MS * WINDOW_MS


class Scene:
    """A share group with a member that has both partitions of `t`, followed from `BEGIN_MS` on."""

    def __init__(self, *, members: bool = True) -> None:
        shard = Shard()
        targets = {"m": {"t": [0, 1]}} if members else {"m": {"t": []}}
        shard.pending += [(BEGIN_MS, *of) for of in share_join("queue", "m", epoch=2, targets=targets)]
        self.ends = shares_read(log_ends(t=2))
        sample(self.ends, BEGIN_MS - 1_000, "t", 0, 0)
        self.board = caught_up(board_of(shard, self.ends))
        self.published: list[Mapping[str, Any]] = []
        self.watch = ShareWatch(self.board, self._publish)
        self.shares = [ShareShard(0), ShareShard(1)]
        self._batch = 1

    def write(self, *records: RecordBytes, at_ms: int, log: int = 0) -> None:
        """A micro-batch of one partition of the share coordinator's log."""
        self._batch += 1
        self.board.apply(self._batch, self.shares[log].write(*records, timestamp_ms=at_ms), at_ms)

    def look(self, now_ms: int, *ends: int) -> list[str]:
        """Look, where the partitions end so; returns kinds of what is published, with `-` before what is over."""
        sample(self.ends, now_ms, "t", *ends)
        before = len(self.published)
        self.watch.look(measure(table_of(self.board.shown.groups.values()), self.ends, now_ms), now_ms)
        return [("-" if of["detail"].get("cleared") else "") + str(of["kind"]) for of in self.published[before:]]

    def _publish(self, events: Sequence[Mapping[str, Any]]) -> None:
        self.published += events
        self.board.add_events([dict(of) for of in events])


def test_a_partition_that_does_not_get_on_is_reported_once() -> None:
    """Ten minutes after its first record waits, also by a monitor that was started again meanwhile."""
    scene = Scene()
    scene.write(share_snapshot("queue", "t", 0), share_snapshot("queue", "t", 1), at_ms=BEGIN_MS)
    assert [] == scene.look(BEGIN_MS, 5, 0)
    assert [] == scene.look(BEGIN_MS + 9 * MINUTE_MS, 5, 0)
    assert ["share_partition_stalled"] == scene.look(BEGIN_MS + 11 * MINUTE_MS, 5, 0)
    assert [] == scene.look(BEGIN_MS + 12 * MINUTE_MS, 9, 0)
    (event,) = scene.published
    assert (topic_id("t"), 0, 0) == tuple(
        event["detail"][name] for name in ("topic", "topic_partition", "first_offset")
    )

    scene.watch = ShareWatch(scene.board, scene._publish)
    assert [] == scene.look(BEGIN_MS + 13 * MINUTE_MS, 9, 0)
    scene.write(share_update("queue", "t", 0, (0, 8, 2, 1), delivery_complete_count=9), at_ms=BEGIN_MS + 14 * MINUTE_MS)
    assert ["-share_partition_stalled"] == scene.look(BEGIN_MS + 14 * MINUTE_MS, 9, 0)


def test_one_that_is_not_initialized_while_records_come_is_reported() -> None:
    """Its end moves, and nothing is delivered."""
    scene = Scene()
    scene.write(share_snapshot("queue", "t", 0, start_offset=-1), at_ms=BEGIN_MS)
    scene.look(BEGIN_MS, 0, 0)
    scene.look(BEGIN_MS + MINUTE_MS, 3, 0)

    assert [] == scene.look(BEGIN_MS + 10 * MINUTE_MS, 4, 0)
    assert ["share_partition_stalled"] == scene.look(BEGIN_MS + 12 * MINUTE_MS, 5, 0)
    assert "not_initialized" == scene.published[0]["detail"]["why"]


def test_without_a_member_of_its_own_nothing_is_said() -> None:
    """Nobody is to take the records."""
    scene = Scene(members=False)
    scene.write(share_snapshot("queue", "t", 0), at_ms=BEGIN_MS)
    scene.look(BEGIN_MS, 5, 0)

    assert [] == scene.look(BEGIN_MS + 20 * MINUTE_MS, 5, 0)


def test_while_the_log_is_not_read_nothing_is_said() -> None:
    """What was read before may be long over."""
    scene = Scene()
    scene.write(share_snapshot("queue", "t", 0), at_ms=BEGIN_MS)
    scene.look(BEGIN_MS, 5, 0)
    scene.ends.share_log.see("unreadable")

    assert [] == scene.look(BEGIN_MS + 20 * MINUTE_MS, 5, 0)


def redelivered(scene: Scene, number: int) -> None:
    """Up to the window of this number, 200 records became done in each, 24 of them not at once, told by two logs."""
    first = BEGIN_MS // WINDOW_MS
    windows = {str(first + at): [100, 12, at, BEGIN_MS + at * WINDOW_MS] for at in range(number + 1)}
    totals = json.dumps({"next_offset": 1, "windows": {"queue": windows}})
    scene.board.apply(100 + number, [Row(SHARE_LOG + at, "share_log", "", totals.encode()) for at in range(2)], NOW_MS)


def test_a_quarter_of_an_hour_of_redeliveries_is_reported_once() -> None:
    """Of all partitions of the log together: neither has 20 in a window."""
    scene = Scene()
    scene.write(share_snapshot("queue", "t", 0, start_offset=5), at_ms=BEGIN_MS)
    said: list[str] = []
    for number in range(8):
        redelivered(scene, number)
        said += scene.look(BEGIN_MS + (number + 1) * WINDOW_MS + MINUTE_MS, 5, 0)

    assert ["share_redelivering"] == said
    assert {"done": 600, "redelivered": 72} == scene.published[0]["detail"]
    assert "__share_group_state" == scene.published[0]["log"]
    scene.watch = ShareWatch(scene.board, scene._publish)
    assert [] == scene.look(BEGIN_MS + 8 * WINDOW_MS + MINUTE_MS, 5, 0)
    assert ["-share_redelivering"] == scene.look(BEGIN_MS + 9 * WINDOW_MS + MINUTE_MS, 5, 0)
