"""From the spool into the history: what is reported arrives whatever happens, and every day stands on its own."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from lab.builders import offset_commit
from lab.monitor_process import until
from streaming.base.batch_rows import Row
from streaming.config.output_sections import HistorySection
from streaming.history import writer as writer_module
from streaming.history.queries import History
from streaming.history.store import HistoryStore
from streaming.history.tables import EVENTS, GROUPS
from streaming.history.writer import HistoryWriter
from streaming.sinks.delivery import Delivery
from streaming.sinks.queue import Spool, Spooled
from streaming.sinks.queue_sink import QueueSink
from tests.streaming.board_rows import Shard
from tests.streaming.boards import NOW_MS, board_of, classic_group, described, log_ends
from tests.streaming.history.entries import DAY_MS, deleted, event, state

PATIENCE_SECONDS = 60.0


class Writing:
    """A writer whose board holds two groups and is ready, with a clock that is set."""

    def __init__(self, directory: Path) -> None:
        self.now_ms = NOW_MS
        shard = Shard()
        for name in ("quiet", "busy"):
            classic_group(shard, name, {"m1": {"orders": [0]}})
        self.board = board_of(shard, log_ends(orders=1))
        self.ready = True
        self.board.health.ready = lambda: (self.ready, [])  # type: ignore[method-assign]  # what makes it so is others' test
        self.directory = directory
        self.history = History(directory)
        self.store = HistoryStore(directory)
        self.start()

    def start(self, retain_days: int = 30) -> None:
        """Another run on the same directory."""
        self.writer = HistoryWriter(
            self.directory, HistorySection(retain_days=retain_days), self.board, lambda: self.now_ms
        )

    def epoch(self, group: str, at_ms: int) -> int:
        """The epoch a group had."""
        return int(self.history.group_at(group, at_ms)["epoch"])


@pytest.fixture
def writing(tmp_path: Path) -> Writing:
    return Writing(tmp_path / "history")


@pytest.fixture
def spool(tmp_path: Path) -> Spool:
    return Spool(tmp_path / "spool", ["history"])


@contextmanager
def delivering(spool: Spool, writing: Writing) -> Iterator[None]:
    reader = writing.writer.reader()
    delivery = Delivery(spool, reader.name, reader.deliver)
    delivery.start()
    try:
        yield
    finally:
        delivery.stop()


def test_what_is_in_the_spool_arrives(spool: Spool, writing: Writing) -> None:
    """Events, states and deletions are written, and only then does the spool let go of them."""
    spool.append("stream", 0, [event(1), state(1, time_ms=NOW_MS), deleted(time_ms=NOW_MS + 1)])
    spool.append("stream", 1, [event(2), {"kind": "of a later release"}])
    with delivering(spool, writing):
        until(lambda: spool.waiting("history").entries == 0, PATIENCE_SECONDS, "it does not arrive")

    assert [1, 2] == [found["offset"] for found in writing.history.timeline("a")]
    assert 1 == writing.epoch("a", NOW_MS)
    assert None is writing.history.state_at("a", NOW_MS + 1).state


def test_nothing_is_lost_while_the_disk_is_full(
    spool: Spool, writing: Writing, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What cannot be written waits in the spool and is written once it can be."""
    refused: list[object] = []
    write = HistoryStore.write

    def full(self: HistoryStore, *what: object) -> None:
        if len(refused) < 2:
            refused.append(what)
            raise OSError(28, "No space left on device")
        write(self, *what)  # type: ignore[arg-type]  # as it was called

    monkeypatch.setattr(HistoryStore, "write", full)
    monkeypatch.setattr("streaming.sinks.delivery.RETRY_SECONDS", (0.01,))
    spool.append("stream", 0, [event(1)])
    with delivering(spool, writing):
        until(lambda: spool.waiting("history").entries == 0, PATIENCE_SECONDS, "it does not arrive")

    assert 2 == len(refused)
    assert [1] == [found["offset"] for found in writing.history.timeline("a")]


def test_topics_are_named_in_what_is_kept(writing: Writing) -> None:
    """Who reads the files has no broker to ask which topic an id is of."""
    topic = described("orders", 1)
    reported = event(1)
    reported["event"]["detail"] = {"partitions": {topic.id: [0]}}
    spooled = [Spooled(0, reported)]
    writing.writer.deliver(spooled)

    (found,) = writing.history.timeline("a")
    assert {"partitions": {"orders": [0]}} == found["detail"]


def test_every_day_begins_with_all_groups(writing: Writing) -> None:
    """A quiet group is known all the same, from when the history began; also once older days are gone."""
    writing.writer.keep_in_order()
    assert 3 == writing.epoch("quiet", NOW_MS)
    assert [NOW_MS] == writing.store.complete_times_ms()
    for day in range(1, 4):
        writing.now_ms = NOW_MS + day * DAY_MS
        writing.start(retain_days=1)
        writing.writer.keep_in_order()

    assert 2 == len(writing.store.days(GROUPS))
    assert [NOW_MS + 2 * DAY_MS, NOW_MS + 3 * DAY_MS] == writing.store.complete_times_ms()
    assert 3 == writing.epoch("quiet", NOW_MS + 2 * DAY_MS)


def test_all_groups_are_written_once_a_day(writing: Writing, monkeypatch: pytest.MonkeyPatch) -> None:
    """However often it looks, and after a restart; in pieces, so that a batch of the stream may come in between."""
    monkeypatch.setattr(writer_module, "GROUPS_AT_ONCE", 1)
    for _ in range(3):
        writing.writer.keep_in_order()
        writing.start()

    (day,) = writing.store.days(GROUPS)
    assert 2 == len(writing.store.files(GROUPS, day))


def test_groups_are_not_all_written_while_catching_up(writing: Writing) -> None:
    """A board that is not ready shows how groups were long ago."""
    writing.ready = False
    writing.writer.keep_in_order()

    assert [] == writing.store.complete_times_ms()


def test_state_reported_later_wins(writing: Writing) -> None:
    """Times are the log's: what was concluded late is of an earlier time, and yet how the group was from then on."""
    of = [state(5, group="busy", time_ms=NOW_MS + 5_000), state(6, group="busy", time_ms=NOW_MS + 3_000)]
    for each in of:
        writing.writer.deliver([Spooled(0, each)])

    assert 6 == writing.epoch("busy", NOW_MS + 9_000)
    assert 6 == writing.epoch("busy", NOW_MS + 3_000)


def test_state_reported_later_wins_beyond_midnight(writing: Writing) -> None:
    """Also where its time is of the day before."""
    midnight_ms = (NOW_MS // DAY_MS + 1) * DAY_MS
    for each in (state(5, time_ms=midnight_ms + 1), state(6, time_ms=midnight_ms - 1)):
        writing.writer.deliver([Spooled(0, each)])

    assert 6 == writing.epoch("a", midnight_ms + 2)


def test_no_commit_is_shown_before_it_was_made(tmp_path: Path, writing: Writing) -> None:
    """A slow batch brings a join and half a minute of commits: asked for the time between, the commits of before it.

    A partition that was committed for the first time after that time is left out; the join is shown.
    """
    joined_ms, later_ms = NOW_MS - 26_000, NOW_MS
    spool, shard = Spool(tmp_path / "slow", ["history"]), Shard()
    sink = QueueSink(spool, writing.board, lambda: "query", interval_ms=10_000, clock_ms=lambda: NOW_MS)
    writing.board.health.set_log_end_at_start({}, {})
    writing.board.health.set_positions({}, {}, NOW_MS)

    def commit(partition: int, offset: int, at_ms: int) -> tuple[int, bytes, bytes | None]:
        return at_ms, *offset_commit("slow", "orders", partition, offset, timestamp=at_ms)

    shard.pending += [commit(0, 5, joined_ms - 9_000)]
    batches = [shard.flush()]
    classic_group(shard, "slow", {"m1": {"orders": [0]}}, at_ms=joined_ms)
    shard.pending += [commit(0, 7, later_ms), commit(1, 1, later_ms)]
    batches.append(shard.flush())
    for batch_id, rows in enumerate(batches, 1):
        outputs = [Row(*row) for row in rows]
        writing.board.apply(batch_id, outputs, NOW_MS)
        sink.apply(batch_id, outputs, NOW_MS)
        writing.now_ms += 1
        writing.writer.deliver(spool.read("history", 1_000)[-1:])

    def was(at_ms: int) -> tuple[int, list[tuple[int, int]]]:
        found = writing.history.group_at("slow", at_ms)
        return len(found["members"]), [(of["partition"], of["offset"]) for of in found["offsets"]]

    assert (0, [(0, 5)]) == was(joined_ms - 1)
    assert (1, [(0, 5)]) == was(joined_ms) == was(later_ms - 1)
    assert (1, [(0, 7), (1, 1)]) == was(later_ms)


def test_looking_after_the_files_goes_on_after_a_full_disk(writing: Writing, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is said once; what was due is done when it can be."""
    with monkeypatch.context() as patched, capture_logs() as logs:

        def full(*_: object) -> None:
            raise OSError(28, "No space left on device")

        patched.setattr(HistoryStore, "write", full)
        writing.writer.keep_in_order()
        writing.writer.keep_in_order()
    assert ["history_not_kept_in_order"] == [line["event"] for line in logs]
    assert [] == writing.store.complete_times_ms()
    writing.writer.keep_in_order()

    assert [NOW_MS] == writing.store.complete_times_ms()


def test_size_is_that_of_the_files(writing: Writing) -> None:
    """What the metric shows is measured on the disk."""
    writing.writer.deliver([Spooled(0, event(1))])
    (day,) = writing.store.days(EVENTS)
    (file,) = writing.store.files(EVENTS, day)

    assert file.path.stat().st_size == writing.writer.size_bytes()
