"""The thread that looks at the board by the clock: what is found reaches the events, once."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from coordinator_model.clocked.unassigned_partitions import METADATA_MAX_AGE_MS
from coordinator_model.rules.static_absences import ABSENT, NEXT_MS
from lab.builders import REBALANCE_TIMEOUT_MS, RecordBytes, group_metadata, member
from lab.coordinator_events import Targets, consumer_join, consumer_moves, static_goes_away, static_returns
from streaming.base.batch_rows import Row
from streaming.base.expectations import Expectations, Expected
from streaming.board.board import Board
from streaming.board.event_window_file import EventWindowFile
from streaming.board.readiness import Standstill
from streaming.watchers.overdue_watch import OverdueWatch
from tests.simulator.coordinator import ReferenceCoordinator
from tests.streaming.board_rows import Shard
from tests.streaming.boards import NOW_MS, board_of, classic_group, log_ends, sample

LASTING_MS = METADATA_MAX_AGE_MS + REBALANCE_TIMEOUT_MS


class Clock:
    """A wall clock that stands still until it is set."""

    def __init__(self) -> None:
        self.now_ms = NOW_MS

    def __call__(self) -> int:
        return self.now_ms


def looking(orders: int, *, log_end: int = 1) -> tuple[OverdueWatch, Board, Clock]:
    """A watch on a board that has read one record; of `orders` partitions a group holds the first two."""
    shard = Shard()
    classic_group(shard, "g", {"m-1": {"orders": [0, 1]}})
    board = board_of(shard, ends := log_ends(orders=orders))
    board.health.set_log_end_at_start({0: log_end}, {0: log_end})
    board.health.set_positions({0: 1}, {0: 1}, NOW_MS)
    sample(ends, NOW_MS, "orders", *([0] * orders))
    assert board.health.ready()[0] == (log_end == 1)
    clock = Clock()
    return OverdueWatch(board, board.events.add, clock), board, clock


def unassigned(board: Board) -> list[dict[str, Any]]:
    return [dict(event["detail"]) for event in board.latest_events(99) if event["kind"] == "partition_unassigned"]


def test_partition_that_nobody_holds_for_long_is_reported_and_is_over_once() -> None:
    """The brokers' count says that there is one more than the group holds; then that there is not."""
    watch, board, clock = looking(orders=3)

    watch.check()
    clock.now_ms += LASTING_MS
    watch.check()
    assert [] == unassigned(board)

    for _ in range(3):
        clock.now_ms += 1_000
        watch.check()
    assert [{"orders": [2]}] == [of["partitions"] for of in unassigned(board)]

    board.ends.set_topics(list(log_ends(orders=2).topics.values()), [])
    watch.check()
    watch.check()
    assert [False, True] == ["cleared" in of for of in unassigned(board)]


def test_group_that_holds_everything_is_never_reported() -> None:
    """However long one looks."""
    watch, board, clock = looking(orders=2)

    for _ in range(5):
        watch.check()
        clock.now_ms += LASTING_MS
    assert [] == unassigned(board)


def test_nothing_is_found_before_the_board_is_ready() -> None:
    """While catching up a group is what it was at some time."""
    watch, board, clock = looking(orders=3, log_end=99)

    watch.check()
    clock.now_ms += 2 * LASTING_MS
    watch.check()
    watch.check()

    assert [] == unassigned(board)


def test_nothing_is_found_of_a_group_whose_partition_is_not_read() -> None:
    """What it did meanwhile is not known: what is open stays, nothing opens; once it is read it is looked at again."""
    watch, board, clock = looking(orders=3)
    watch.check()
    board.health.set_unread({0: NOW_MS}, 50)
    for _ in range(3):
        clock.now_ms += LASTING_MS
        watch.check()
    assert [] == unassigned(board)

    board.health.set_unread({}, 50)
    clock.now_ms += LASTING_MS
    watch.check()
    assert [{"orders": [2]}] == [of["partitions"] for of in unassigned(board)]

    board.health.set_unread({0: NOW_MS}, 50)
    board.ends.set_topics(list(log_ends(orders=2).topics.values()), [])
    for _ in range(3):
        clock.now_ms += LASTING_MS
        watch.check()
    assert [False] == ["cleared" in of for of in unassigned(board)]


def test_nothing_is_found_while_the_stream_stands_still() -> None:
    """Of what the groups did meanwhile nothing is on the board, although it is ready still."""
    watch, board, clock = looking(orders=3)
    seconds = [0.0]
    board.health.expect_batches(one_reader=False, standstill=Standstill(lambda: seconds[0]))
    board.health.looked()
    watch.check()
    topic = board.offsets_topic
    board.ends.set_topics([*log_ends(**{topic: 1, "orders": 3}).topics.values()], [])
    board.ends.record(NOW_MS, {(topic, 0): 9}, {(topic, 0): 9})
    seconds[0] = 20.0
    assert board.health.ready()[0]
    clock.now_ms += 2 * LASTING_MS
    watch.check()
    watch.check()
    assert [] == unassigned(board)

    board.health.observe_batch(0.1)
    watch.check()
    assert [{"orders": [2]}] == [of["partitions"] for of in unassigned(board)]


def test_group_that_is_gone_is_forgotten() -> None:
    """One that comes under its name later has its own time."""
    watch, board, clock = looking(orders=3)
    watch.check()
    board.apply(1, [Row(0, "group_deleted", "g")], NOW_MS)
    watch.check()
    shard = Shard()
    classic_group(shard, "g", {"m-1": {"orders": [0, 1]}})
    board.apply(2, shard.flush(), NOW_MS)

    clock.now_ms += LASTING_MS + 1
    watch.check()
    assert [] == unassigned(board)


def test_clock_that_jumped_tells_nothing_at_once() -> None:
    """What would be overdue by it is looked at again once it has settled, by the clock as it is then."""
    watch, board, clock = looking(orders=3)
    settling = [False]
    watch = OverdueWatch(board, board.events.add, clock, settling=lambda _: settling[0])

    watch.check()
    settling[0] = True
    clock.now_ms += 24 * LASTING_MS
    watch.check()
    assert [] == unassigned(board)

    settling[0] = False
    watch.check()
    assert [{"orders": [2]}] == [of["partitions"] for of in unassigned(board)]


def test_records_of_a_wrong_clock_hang_no_rebalance_as_they_come() -> None:
    """One that begins yesterday by a broker's clock is as old as the look that first found it, and no older."""
    shard = Shard()
    shard.pending += [(NOW_MS, *of) for of in consumer_join("g", "a", epoch=1, targets={"a": {"t": [0, 1]}})]
    board = board_of(shard)
    board.health.set_log_end_at_start({0: 1}, {0: 1})
    board.health.set_positions({0: 1}, {0: 1}, NOW_MS)
    sample(board.ends, NOW_MS, "orders", 0)
    watch = OverdueWatch(board, board.events.add, clock := Clock())
    watch.check()

    yesterday_ms = NOW_MS - 86_400_000
    two = {"a": {"t": [0]}, "b": {"t": [1]}}
    shard.pending += [(yesterday_ms, *of) for of in consumer_join("g", "b", epoch=2, targets=two, assigned={})]
    revokes = consumer_moves("g", "a", epoch=1, assigned={"t": [0]}, pending={"t": [1]}, state=1)
    shard.pending += [(yesterday_ms + 1, *of) for of in revokes]
    board.apply(1, shard.flush(), NOW_MS)

    def reported(after_ms: int) -> list[int]:
        clock.now_ms = NOW_MS + after_ms
        watch.check()
        found = [event for event in board.latest_events(99) if event["kind"] == "rebalance_stuck"]
        return [event["detail"]["rebalancing_ms"] for event in found]

    assert [] == reported(1_000)
    assert {"g": NOW_MS + 1_000} == board.findings.read_ms
    assert [] == reported(REBALANCE_TIMEOUT_MS)
    assert [REBALANCE_TIMEOUT_MS + 11_000] == reported(REBALANCE_TIMEOUT_MS + 12_000)


def stuck_group(shard: Shard) -> None:
    """A member that was to give up a partition, and has not."""
    joins = (
        *consumer_join("s", "a", epoch=2, targets={"a": {"t": [0, 1]}}),
        *consumer_join("s", "b", epoch=3, targets={"b": {"t": [1]}, "a": {"t": [0]}}, assigned={}),
        *consumer_moves("s", "a", epoch=2, assigned={"t": [0]}, pending={"t": [1]}, state=1),
    )
    shard.pending += [(NOW_MS, *record) for record in joins]


def test_alarm_that_only_looks_find_is_over_once_also_after_a_restart() -> None:
    """What was reported before is taken up from the events that are kept."""
    shard = Shard()
    stuck_group(shard)
    board = board_of(shard, ends := log_ends(orders=1))
    board.health.set_log_end_at_start({0: 1}, {0: 1})
    board.health.set_positions({0: 1}, {0: 1}, NOW_MS)
    sample(ends, NOW_MS, "orders", 0)
    clock = Clock()
    clock.now_ms += REBALANCE_TIMEOUT_MS + 60_000
    OverdueWatch(board, board.events.add, clock).check()

    def reported() -> list[bool]:
        return ["cleared" in of["detail"] for of in board.latest_events(99) if of["kind"] == "rebalance_stuck"]

    assert [False] == reported()
    moves = (
        *consumer_moves("s", "a", epoch=3, assigned={"t": [0]}),
        *consumer_moves("s", "b", epoch=3, assigned={"t": [1]}),
    )
    board.apply(9, shard.write(*moves, timestamp_ms=clock.now_ms), clock.now_ms)
    restarted = OverdueWatch(board, board.events.add, clock)
    for _ in range(3):
        restarted.check()
        clock.now_ms += 31_000
    assert [False, True] == reported()


def test_partition_without_an_owner_is_over_also_after_a_restart() -> None:
    """It was reported before, and is handed out while the monitor is away."""
    watch, board, clock = looking(orders=3)
    watch.check()
    clock.now_ms += LASTING_MS + 1
    watch.check()
    assert [False] == ["cleared" in of for of in unassigned(board)]

    board.ends.set_topics(list(log_ends(orders=2).topics.values()), [])
    restarted = OverdueWatch(board, board.events.add, clock)
    for _ in range(3):
        restarted.check()
        clock.now_ms += 1_000
    assert [False, True] == ["cleared" in of for of in unassigned(board)]


def test_partition_without_an_owner_is_reported_once_over_a_restart() -> None:
    """It lasts, and the monitor that comes up knows that it was reported."""
    watch, board, clock = looking(orders=3)
    watch.check()
    clock.now_ms += LASTING_MS + 1
    watch.check()
    restarted = OverdueWatch(board, board.events.add, clock)
    for _ in range(3):
        restarted.check()
        clock.now_ms += LASTING_MS
    assert [False] == ["cleared" in of for of in unassigned(board)]
    assert {"g"} == board.findings.overdue["partition_unassigned"]


def sharing(*patterns: str) -> Expectations:
    return Expectations([Expected(of, frozenset({"shares_partitions"}), "each reads everything") for of in patterns])


@pytest.mark.parametrize("over", [False, True])
def test_duplicate_that_is_expected_no_more_is_reported_once(over: bool) -> None:
    """It was held back, and goes on after the configuration changed; one that is over by then is not reported."""
    shard = Shard()
    classic_group(shard, "g", {"m-1": {"orders": [0]}, "m-2": {"orders": [0, 1]}})
    board = board_of(shard, ends := log_ends(orders=2), sharing("x*", "g", "g*"))
    board.health.set_log_end_at_start({0: 1}, {0: 1})
    board.health.set_positions({0: 1}, {0: 1}, NOW_MS)
    sample(ends, NOW_MS, "orders", 0, 0)
    clock = Clock()

    def reported() -> list[tuple[str, bool]]:
        found = [of for of in board.latest_events(99) if of["kind"] == "duplicate_assignment"]
        return [(of["severity"], "expected" in of["detail"]) for of in found]

    OverdueWatch(board, board.events.add, clock).check()
    assert [("info", True)] == reported()
    assert {"duplicate_assignment": 1} == board.events.silenced_by_group()["g"]
    if over:
        generation = group_metadata("g", generation=9, members=[member("m-2", {"orders": [0, 1]})])
        board.apply(9, shard.write(generation, timestamp_ms=NOW_MS), NOW_MS)
    board.expectations = sharing("other")
    for _ in range(3):
        restarted = OverdueWatch(board, board.events.add, clock)
        restarted.check()
        restarted.check()
        clock.now_ms += 3_600_000

    assert [("info", True), ("critical", False)][: 1 if over else 2] == reported()
    assert {"duplicate_assignment": 1} == board.events.silenced_by_group()["g"]


def joins_static(member_id: str, instance_id: str, epoch: int, targets: Targets) -> list[RecordBytes]:
    """A static member of the consumer protocol joins, and has its target at once."""
    return consumer_join("g", member_id, epoch=epoch, targets=targets, instance_id=instance_id)


def test_absence_that_is_expected_no_more_is_reported_once_as_long_as_one_is_away() -> None:
    """Two had closed when the configuration changed: one restart, which is not over when one of them is back."""
    shard, owned = Shard(), {"m-1": {"orders": [0]}, "m-2": {"orders": [1]}}
    for at, records in enumerate(
        [
            joins_static("m-1", "i-1", 2, {"m-1": owned["m-1"]}),
            joins_static("m-2", "i-2", 3, owned),
            consumer_moves("g", "m-1", epoch=3, assigned=owned["m-1"]),
            static_goes_away("g", "m-1", assigned=owned["m-1"], previous_epoch=3),
            static_goes_away("g", "m-2", assigned=owned["m-2"], previous_epoch=3),
        ]
    ):
        shard.pending += [(NOW_MS + at, *record) for record in records]
    reason = "closes every night"
    nightly = Expectations([Expected("g", frozenset({"restarts"}), reason)])
    board = board_of(shard, ends := log_ends(orders=2), nightly)
    board.health.set_log_end_at_start({0: 1}, {0: 1})
    board.health.set_positions({0: 1}, {0: 1}, NOW_MS)
    sample(ends, NOW_MS, "orders", 0, 0)

    def reported() -> list[tuple[list[str], str]]:
        found = [of for of in board.latest_events(99) if of["kind"] == "static_member_absent"]
        return [(of["detail"]["instance_ids"], of["severity"]) for of in found]

    clock = Clock()
    clock.now_ms += 10_000
    OverdueWatch(board, board.events.add, clock).check()
    assert [(["i-1", "i-2"], "info")] == reported()
    back = static_returns("g", old="m-2", new="m-3", instance_id="i-2", epoch=3, assigned=owned["m-2"])
    board.apply(9, shard.write(*back, timestamp_ms=NOW_MS + 9_000), NOW_MS)
    OverdueWatch(board, board.events.add, clock).check()
    assert [(["i-1", "i-2"], "info")] == reported()
    board.expectations = Expectations()
    for _ in range(3):
        OverdueWatch(board, board.events.add, clock).check()

    assert [(["i-1", "i-2"], "info"), (["i-1", "i-2"], "warning")] == sorted(reported())


@pytest.mark.parametrize("looked", [True, False], ids=["by the clock", "by the log"])
@pytest.mark.parametrize("again", [False, True], ids=["", "after a restart"])
def test_end_of_an_absence_is_delivered_once(looked: bool, again: bool, tmp_path: Path) -> None:
    """The clock says that all are back; the group goes on, and what its next record shows is that same event."""
    shard, owned = Shard(), {"m-1": {"orders": [0]}, "m-2": {"orders": [1]}}
    for at, records in enumerate(
        [
            joins_static("m-1", "i-1", 2, {"m-1": owned["m-1"]}),
            joins_static("m-2", "i-2", 3, owned),
            consumer_moves("g", "m-1", epoch=3, assigned=owned["m-1"]),
            static_goes_away("g", "m-1", assigned=owned["m-1"], previous_epoch=3),
            static_returns("g", old="m-1", new="m-3", instance_id="i-1", epoch=3, assigned=owned["m-1"]),
        ]
    ):
        shard.pending += [(NOW_MS + 10_000 * at, *record) for record in records]
    board = board_of(shard, ends := log_ends(orders=2))
    board.events.keep(EventWindowFile(tmp_path / "events"))
    board.health.set_log_end_at_start({0: 1}, {0: 1})
    board.health.set_positions({0: 1}, {0: 1}, NOW_MS)
    sample(ends, NOW_MS, "orders", 0, 0)
    delivered: list[str] = []

    def publish(events: Sequence[Mapping[str, Any]]) -> None:
        board.add_events(events)
        delivered.extend(of["id"] for of in events if of["kind"] == ABSENT and "cleared" in of["detail"])

    clock = Clock()
    clock.now_ms += 40_000 + NEXT_MS + 1
    watch = OverdueWatch(board, publish, clock)
    if looked:
        watch.check()
    if again:
        board.events.close()
        board.events.keep(EventWindowFile(tmp_path / "events"))
    targets = {"m-3": owned["m-1"], "m-2": owned["m-2"], "m-4": {"orders": [2]}}
    rows = shard.write(*joins_static("m-4", "i-4", 4, targets), timestamp_ms=clock.now_ms)
    for _ in range(2):  # a batch that Spark repeats is the same
        settled = board.settled(9, rows)
        board.apply(9, settled, clock.now_ms)
    said = [json.loads(of[3]) for of in settled if of[4] == ABSENT]
    delivered += [of["id"] for of in said if "cleared" in of["detail"]]
    watch.check()

    assert 1 == len(delivered)
    assert 1 == sum("cleared" in of["detail"] for of in board.latest_events(99) if of["kind"] == ABSENT)


@pytest.mark.parametrize("over", [False, True])
def test_downgrade_that_is_expected_no_more_is_reported_once(over: bool) -> None:
    """That it goes back is inferred, and was held back; one that was given up by then is not reported."""
    coordinator, shard = ReferenceCoordinator(now_ms=NOW_MS), Shard()
    group = coordinator.open("g")
    for _ in range(3):
        coordinator.join_classic(group)
    classic = list(group.members.values())
    for _ in range(2):
        coordinator.join_consumer(group)
        coordinator.settle(group)
    coordinator.leave(group, classic[0])
    coordinator.settle(group)
    coordinator.lag(1_200_000)
    coordinator.leave(group, list(group.members.values())[-1])
    coordinator.settle(group)
    coordinator.join_classic(group)
    coordinator.settle(group)
    shard.pending += [(of.time_ms, *record) for of in coordinator.log for record in of.records]
    board = board_of(shard, expectations=Expectations([Expected("*", frozenset({"never_downgrades"}), "goes up only")]))
    board.health.set_log_end_at_start({0: 1}, {0: 1})
    board.health.set_positions({0: 1}, {0: 1}, NOW_MS)
    sample(board.ends, NOW_MS, "orders", 0, 0)
    clock = Clock()
    clock.now_ms = coordinator.now_ms

    def reported() -> list[tuple[str, bool]]:
        found = [of for of in board.latest_events(99) if of["kind"] == "downgrade_started"]
        return [(of["severity"], of["inferred"]) for of in found]

    OverdueWatch(board, board.events.add, clock).check()
    assert [("info", True)] == reported()
    if over:
        written = coordinator.end
        coordinator.leave(group, *(of for of in group.members.values() if of.classic))
        coordinator.settle(group)
        later = [record for of in coordinator.log if of.offset >= written for record in of.records]
        board.apply(9, shard.write(*later, timestamp_ms=coordinator.now_ms), NOW_MS)
    board.expectations = Expectations()
    for _ in range(3):
        OverdueWatch(board, board.events.add, clock).check()

    assert [("info", True), ("warning", True)][: 1 if over else 2] == reported()


AWAY_MS = 1_200_000


class Followed:
    """A watch that looks every ten seconds at a stuck group, while the leader of its partition answers or does not."""

    def __init__(self) -> None:
        shard = Shard()
        stuck_group(shard)
        self.board = board_of(shard, ends := log_ends(orders=1))
        ends.set_topics([*log_ends(**{self.board.offsets_topic: 1, "orders": 1}).topics.values()], [])
        self.board.health.set_log_end_at_start({0: 1}, {0: 1})
        self.board.health.set_positions({0: 1}, {0: 1}, NOW_MS)
        self.clock = Clock()
        self.watch = OverdueWatch(self.board, self.board.events.add, self.clock)

    def passes(self, span_ms: int, *, answers: bool = True) -> None:
        for _ in range(span_ms // 10_000):
            self.clock.now_ms += 10_000
            if answers:
                sample(self.board.ends, self.clock.now_ms, self.board.offsets_topic, 1)
            sample(self.board.ends, self.clock.now_ms, "orders", 0)
            self.watch.check()

    def told(self) -> list[tuple[str, str | None]]:
        """(kind, group) of what was found, by its own time: what opened, and what is said of the coordinator alone."""
        found = [self.board.named(of) for of in self.board.latest_events(99)]
        kinds = ("rebalance_stuck", "coordinator_not_loaded")
        return [(of["kind"], of["group"]) for of in found if of["kind"] in kinds and "cleared" not in of["detail"]]


def test_nobody_is_late_while_the_coordinator_is_away() -> None:
    """Its broker does not answer for twenty minutes: that is said when it is back, and times run from then."""
    followed = Followed()
    followed.passes(60_000)
    followed.passes(AWAY_MS, answers=False)
    assert [] == followed.told()

    followed.passes(REBALANCE_TIMEOUT_MS)
    assert [("coordinator_not_loaded", None)] == followed.told()
    (said,) = (of for of in followed.board.latest_events(99) if of["kind"] == "coordinator_not_loaded")
    assert (0, NOW_MS + 60_000, NOW_MS + 60_000 + AWAY_MS + 10_000, ["s"]) == tuple(said["detail"].values())

    followed.passes(60_000)
    assert [("rebalance_stuck", "s"), ("coordinator_not_loaded", None)] == followed.told()


def test_nobody_is_late_while_the_coordinator_has_not_loaded() -> None:
    """Its leader answers for the log, and coordinates no group (`load_watch.py`); times run from when it has loaded."""
    followed = Followed()
    followed.board.findings.set_not_loaded({0: NOW_MS})
    followed.passes(AWAY_MS)
    followed.board.findings.set_not_loaded({}, {0: NOW_MS + AWAY_MS})
    followed.passes(REBALANCE_TIMEOUT_MS)
    assert [] == followed.told()

    followed.passes(60_000)
    assert [("rebalance_stuck", "s")] == followed.told()


def test_member_is_late_where_the_coordinator_answers_all_the_time() -> None:
    """Looks alike: nothing is written for as long, as is normal in a quiet partition."""
    followed = Followed()
    followed.passes(REBALANCE_TIMEOUT_MS + 60_000)

    assert [("rebalance_stuck", "s")] == followed.told()


def test_what_is_open_stays_open_while_the_coordinator_is_away() -> None:
    """It was late before; when the coordinator is back it still is, which is no other alarm, and none that is over."""
    followed = Followed()
    followed.passes(REBALANCE_TIMEOUT_MS + 60_000)
    followed.passes(AWAY_MS, answers=False)
    assert {"s"} == followed.board.findings.overdue["rebalance_stuck"]
    followed.passes(120_000)

    assert {"s"} == followed.board.findings.overdue["rebalance_stuck"]
    assert [("rebalance_stuck", "s"), ("coordinator_not_loaded", None)] == followed.told()
    assert not [of for of in followed.board.latest_events(99) if "cleared" in of["detail"]]
