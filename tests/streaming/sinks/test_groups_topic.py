"""The compacted topic is kept equal to the board, and a board made of it alone is the same."""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from lab import builders
from lab.coordinator_events import share_join
from lab.share_state import share_snapshot, share_snapshot_tombstone
from streaming.base.persistent_map import GroupMap
from streaming.board import group_answer
from streaming.board.board import Board
from streaming.board.polls import MOST_NAMED, PollStatus
from streaming.config.output_sections import KafkaSinkSection
from streaming.config.sections import ClusterSection, Config
from streaming.kafka.producer import TopicRecord, WriteError
from streaming.metrics.exporter import Exporter
from streaming.monitor.topic_follower import TopicFollower
from streaming.sinks import topic_format
from streaming.sinks.groups_topic import MONITOR_EVERY_MS, GroupsTopic
from tests.streaming.board_rows import Shard, ShareShard
from tests.streaming.boards import NOW_MS, THEN_MS, classic_group, log_ends, rendered, sample, shares_read

CLUSTER, TOPIC, EVENTS = "prod", "groups", "events"
INTERVAL_MS = 2_000


@dataclass
class Topic:
    """A topic in memory, behind what a writer and a reader of it offer."""

    records: list[tuple[str, bytes | None, bytes | None]] = field(default_factory=list)
    fails: bool = False
    refused: int = 0
    read: int = 0

    def write(self, records: Iterable[TopicRecord]) -> int:
        if self.fails:
            raise WriteError("nobody there")
        self.records += [(record.topic, record.key, record.value) for record in records]
        return self.refused

    def close(self) -> None:
        self.read = 0

    @property
    def at_first_end(self) -> bool:
        return self.read == len(self.records)

    def poll(self) -> list[tuple[str, bytes | None, bytes | None]]:
        found = self.records[self.read : self.read + 2]
        self.read += len(found)
        return found

    def newest(self) -> Mapping[str, Any]:
        """Group → its newest value, None for a tombstone."""
        keys = {topic_format.read_key(key): value for _, key, value in self.records}
        return {key[1]: None if value is None else json.loads(value) for key, value in keys.items() if len(key) == 2}


class Kept:
    """A board, and what keeps a topic equal to it; time stands where it is set."""

    def __init__(self, topic: Topic, board: Board | None = None, cluster: str = CLUSTER) -> None:
        self.now_ms = NOW_MS
        self.topic = topic
        self.board = board or ready_board()
        writer: Any = topic
        read: Any = lambda: topic  # noqa: E731 - the reader is the topic itself
        self.sink = GroupsTopic(
            "kafka-groups",
            cluster=cluster,
            topic=TOPIC,
            board=self.board,
            writer=writer,
            read=read,
            interval_ms=INTERVAL_MS,
            clock_ms=lambda: self.now_ms,
        )
        self.batch = 0

    def apply(self, rows: Any) -> None:
        self.board.apply(self.batch, rows, self.now_ms)
        self.batch += 1

    def look(self) -> list[str]:
        """Groups written by one look, but for the first, which reads."""
        before = len(self.topic.records)
        self.sink.check()
        keys = [topic_format.read_key(key) for _, key, _ in self.topic.records[before:]]
        return [key[1] for key in keys if len(key) == 2]


def ready_board() -> Board:
    ends = log_ends(orders=2)
    sample(ends, NOW_MS, "orders", 100, 100)
    board = Board(ends)
    board.load([])
    board.health.set_log_end_at_start({}, {})
    board.health.set_positions({}, {}, NOW_MS)
    return board


def kept(topic: Topic | None = None) -> Kept:
    of = Kept(topic or Topic())
    of.look()
    return of


def commit(shard: Shard, offset: int, group: str = "g") -> Any:
    return shard.write(builders.offset_commit(group, "orders", 0, offset, timestamp=THEN_MS), timestamp_ms=THEN_MS)


def test_a_group_is_written_when_it_changes_and_not_again() -> None:
    """At once when members change; a commit alone waits for its turn, and then the newest one goes."""
    of, shard = kept(), Shard()
    classic_group(shard, "g", {"m-1": {"orders": [0, 1]}})
    of.apply(shard.flush())
    assert (["g"], []) == (of.look(), of.look())
    for offset in (1, 2, 3):
        of.apply(commit(shard, offset))
    # The first commit changes what the group is: it has an offset it had not.
    assert ["g"] == of.look()
    for offset in (4, 5):
        of.apply(commit(shard, offset))
    assert [] == of.look()
    of.now_ms += INTERVAL_MS

    assert ["g"] == of.look()
    assert 5 == of.topic.newest()["g"]["state"]["offsets"][0]["offset"]


def test_a_look_costs_what_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Groups of which nothing changed, or that wait for their turn, are not looked at; those that are gone are."""
    of, shard = kept(), Shard()
    for number in range(50):
        of.apply(commit(shard, 1, f"g{number}"))
    of.look()
    asked: list[str] = []
    for look in (GroupMap.__getitem__, GroupMap.get):
        # Bound to the look of this turn: all are called later.
        def noted(groups: GroupMap[Any], name: str, *default: Any, look: Callable[..., Any] = look) -> Any:
            asked.append(name)
            return look(groups, name, *default)

        monkeypatch.setattr(GroupMap, look.__name__, noted)

    assert ([], []) == (of.look(), asked)
    of.apply([*commit(shard, 2, "g1"), *commit(shard, 2, "g2")])
    asked.clear()
    assert ([], {"g1", "g2"}) == (of.look(), set(asked))
    asked.clear()
    assert ([], []) == (of.look(), asked)
    of.apply(shard.write(builders.offset_commit_tombstone("g3", "orders", 0), timestamp_ms=THEN_MS))
    asked.clear()
    assert (["g3"], {"g3"}) == (of.look(), set(asked))


def test_a_group_that_is_gone_has_a_tombstone() -> None:
    """Written once; one that comes again is written again."""
    of, shard = kept(), Shard()
    of.apply(commit(shard, 1))
    of.look()
    of.apply(shard.write(builders.offset_commit_tombstone("g", "orders", 0), timestamp_ms=THEN_MS))

    assert (["g"], []) == (of.look(), of.look())
    assert {"g": None} == of.topic.newest()
    of.apply(commit(shard, 1))
    assert ["g"] == of.look()


def test_what_cannot_be_written_is_shown_and_written_later() -> None:
    """Of many changes meanwhile the last one; nothing waits for it."""
    of, shard = kept(), Shard()
    of.topic.fails = True
    of.apply(commit(shard, 1))
    assert [] == of.look()
    of.now_ms += 5_000
    of.apply(commit(shard, 2))
    of.apply(commit(shard, 1, "another"))
    of.look()
    state = of.sink.state()
    assert (2, NOW_MS, 0, "nobody there") == (state.waiting, state.oldest_ms, state.delivered, state.failure)

    of.topic.fails = False
    assert {"another", "g"} == set(of.look())
    state = of.sink.state()
    assert (0, None, 2, None) == (state.waiting, state.oldest_ms, state.delivered, state.failure)
    assert 2 == of.topic.newest()["g"]["state"]["offsets"][0]["offset"]


def test_what_is_refused_is_counted_and_not_tried_again() -> None:
    """A group too long for the topic would be so again."""
    of, shard = kept(), Shard()
    of.topic.refused = 1
    of.apply(commit(shard, 1))
    of.look()
    of.look()

    assert (1, 0, 0) == (of.sink.state().dropped, of.sink.state().delivered, of.sink.state().waiting)


def test_after_a_restart_what_differs_is_written_and_nothing_else() -> None:
    """A group that went while no one looked has its tombstone; one as it was is left; an unreadable one is new."""
    of, shard = kept(), Shard()
    for group in ("same", "changed", "gone", "damaged"):
        of.apply(commit(shard, 1, group))
    of.look()
    of.topic.records.append((TOPIC, topic_format.group_key(CLUSTER, "damaged"), b'{"format":"group-state/9"}'))
    of.topic.records.append((TOPIC, topic_format.group_key("another cluster", "g"), b"{}"))
    of.topic.records.append((TOPIC, b"nothing of ours", b"{}"))
    rows = [*commit(shard, 2, "changed")]
    rows += shard.write(builders.offset_commit_tombstone("gone", "orders", 0), timestamp_ms=THEN_MS)
    of.apply(rows)
    again = Kept(of.topic, of.board)
    of.topic.read = 0
    again.look()

    assert {"changed", "damaged", "gone"} == set(again.look())
    assert of.topic.newest()["gone"] is None
    assert [] == again.look()


def test_nothing_is_written_while_catching_up_but_that_it_is_so() -> None:
    """What the topic holds is nearer to the truth than what a monitor shows that reads the log again."""
    board = Board(log_ends(orders=1))
    board.load([])
    of = Kept(Topic(), board)
    of.look()
    of.apply(commit(Shard(), 1))

    assert [] == of.look()
    assert [False] == [json.loads(value or b"")["ready"] for _, _, value in of.topic.records]


def test_the_monitor_says_how_far_it_is_every_second() -> None:
    """Positions and counts; who reads them knows by the time when it was last there."""
    of = kept()
    of.board.health.set_positions({0: 7}, {0: 5}, NOW_MS)
    of.look()
    of.now_ms += MONITOR_EVERY_MS - 1
    of.look()
    of.now_ms += 1
    of.look()

    held = [json.loads(value or b"") for _, _, value in of.topic.records]
    assert [NOW_MS, NOW_MS + MONITOR_EVERY_MS] == [value["time"] for value in held]
    assert {"membership": {"0": 7}, "commits": {"0": 5}} == held[-1]["positions"]


# --- the other side ---


def follower(board: Board, topic: Topic, clock_ms: Callable[[], int] = lambda: NOW_MS) -> TopicFollower:
    sink = KafkaSinkSection(events_topic=EVENTS, groups_topic=TOPIC)
    config = Config(cluster=ClusterSection(name=CLUSTER), kafka_sink=sink)
    read: Any = lambda: topic  # noqa: E731 - as above
    return TopicFollower(config, board, read, clock_ms)


def served(topic: Any) -> tuple[Board, TopicFollower]:
    """A board that has read a topic to its end."""
    ends = log_ends(orders=2)
    sample(ends, NOW_MS, "orders", 100, 100)
    board = Board(ends)
    topic.read = 0
    of = follower(board, topic)
    of.read_to_end(topic)
    return board, of


def follow(following: TopicFollower, topic: Any) -> None:
    """Take in what is there."""
    following.follow(topic)


def figures(board: Board) -> str:
    page, _ = rendered(Exporter(board, CLUSTER, clock_ms=lambda: NOW_MS))
    of_process = ("group_monitor_record_to_metric", "group_monitor_batch", "process_")
    return "\n".join(line for line in page.decode().splitlines() if not any(name in line for name in of_process))


def test_a_board_made_of_the_topic_is_the_same() -> None:
    """Groups, lag and figures; at first, and after each change."""
    of, shard = kept(), Shard()
    classic_group(shard, "g", {"m-1": {"orders": [0]}, "m-2": {"orders": [0, 1]}})
    shard.pending.append((THEN_MS, b"\x00\x63\x00\x00", None))
    of.apply([row for row in shard.flush() if row[1] != "event"])
    of.apply(commit(shard, 1, "another")[:-2])
    of.look()
    board, following = served(of.topic)
    assert list(group_answer.views(of.board, NOW_MS)) == list(group_answer.views(board, NOW_MS))

    rows = [*commit(shard, 9), *commit(shard, 5, "new")]
    rows += shard.write(builders.offset_commit_tombstone("another", "orders", 0), timestamp_ms=THEN_MS)
    of.apply([row for row in rows if row[1] != "event"])
    of.now_ms += INTERVAL_MS
    of.look()
    while not of.topic.at_first_end:
        follow(following, of.topic)

    assert {"g", "new"} == board.shown.groups.keys()
    assert list(group_answer.views(of.board, NOW_MS)) == list(group_answer.views(board, NOW_MS))
    assert figures(of.board) == figures(board)
    assert board.health.ready()[0]


def test_share_partitions_come_along() -> None:
    """With their lag, as far as the monitor knows it; one that ended is gone."""
    of, shares = kept(), ShareShard()
    members = share_join("queue", "m", epoch=2, targets={"m": {"orders": [0, 1]}})
    shares_read(of.board.ends)
    of.apply([row for row in Shard().write(*members, timestamp_ms=THEN_MS) if row[1] != "event"])
    begun = [share_snapshot("queue", "orders", number, start_offset=40 * number) for number in range(2)]
    of.apply(shares.write(*begun, timestamp_ms=THEN_MS))
    of.now_ms += INTERVAL_MS
    of.look()
    board, following = served(of.topic)
    assert [100, 60] == [share["lag"] for share in group_answer_of(board, "queue")["share_partitions"]]
    assert group_answer_of(of.board, "queue") == group_answer_of(board, "queue")

    of.apply(shares.write(share_snapshot_tombstone("queue", "orders", 1), timestamp_ms=THEN_MS))
    of.board.ends.share_log.see("unreadable")
    of.now_ms += INTERVAL_MS
    of.look()
    while not of.topic.at_first_end:
        follow(following, of.topic)
    assert [0] == [share["partition"] for share in group_answer_of(board, "queue")["share_partitions"]]
    assert "permission READ" in group_answer_of(board, "queue")["lag_left_out"]


def group_answer_of(board: Board, name: str) -> dict[str, Any]:
    found = group_answer.view(board, name, NOW_MS)
    assert found is not None
    return found


def test_a_group_that_ended_and_began_again_unseen_keeps_nothing() -> None:
    """An offset of the former group is not one of the new."""
    of, shard = kept(), Shard()
    of.apply(commit(shard, 1))
    of.look()
    board, following = served(of.topic)
    rows = shard.write(builders.offset_commit_tombstone("g", "orders", 0), timestamp_ms=THEN_MS)
    rows += shard.write(builders.offset_commit("g", "payments", 0, 4, timestamp=THEN_MS), timestamp_ms=THEN_MS)
    of.apply(rows)
    of.now_ms += INTERVAL_MS
    of.look()
    while not of.topic.at_first_end:
        follow(following, of.topic)

    (group,) = group_answer.views(board, NOW_MS)
    assert [("payments", 4)] == [(offset["topic"], offset["offset"]) for offset in group["offsets"]]


def test_events_are_shown_once_and_those_of_other_clusters_not() -> None:
    """By their ids; what is no event is passed over and logged."""
    topic = Topic()
    event = {"id": "1", "time": THEN_MS, "group": "g", "kind": "member_joined", "detail": {}}
    for cluster, number in ((CLUSTER, "1"), (CLUSTER, "1"), ("another", "2"), (CLUSTER, "3")):
        topic.records.append((EVENTS, *topic_format.event_record(cluster, {**event, "id": number})))
    topic.records.append((EVENTS, b"g", b"no event"))
    board, _ = served(topic)

    assert ["1", "3"] == [each["id"] for each in board.latest_events(10)]
    assert "cluster" not in board.latest_events(10)[0]


def test_who_serves_is_ready_when_the_monitor_is() -> None:
    """Before the monitor has caught up, what the topic holds may be of long ago."""
    board = Board(log_ends(orders=1))
    board.load([])
    of = Kept(Topic(), board)
    of.look()
    of.look()
    shown, following = served(of.topic)
    assert not shown.health.ready()[0]
    assert following.source_age_seconds() is not None

    shown.ends.record(NOW_MS * 2, {}, {})
    of.topic.records.append(
        (TOPIC, topic_format.monitor_key(CLUSTER), topic_format.monitor_value(CLUSTER, board, NOW_MS, ready=True))
    )
    follow(following, of.topic)
    assert shown.health.ready()[0]


@pytest.mark.parametrize(("later_ms", "ready"), [(60_000, True), (1_000, False)])
def test_who_serves_knows_since_when_the_monitor_is_silent_or_not_ready(later_ms: int, ready: bool) -> None:
    """What the topics hold is of that moment then, and under doubt; not before, and not when it speaks again."""
    topic: Any = Topic()
    seconds = [NOW_MS]
    empty = Board(log_ends(orders=1))
    board = Board(log_ends(orders=1))
    board.ends.record(NOW_MS * 2, {}, {})
    topic.read = 0
    following = follower(board, topic, lambda: seconds[0])
    board.health.show_start(following.missing)

    def write(at_ms: int, *, is_ready: bool) -> None:
        seconds[0] = at_ms
        value = topic_format.monitor_value(CLUSTER, empty, at_ms, ready=is_ready)
        topic.records.append((TOPIC, topic_format.monitor_key(CLUSTER), value))

    write(NOW_MS, is_ready=True)
    following.read_to_end(topic)
    assert board.health.ready()[0]

    seconds[0] = NOW_MS + 59_999
    assert board.health.standing().doubt is None

    if ready:
        seconds[0] = NOW_MS + later_ms
    else:
        write(NOW_MS + later_ms, is_ready=False)
        follow(following, topic)
        write(NOW_MS + later_ms + 5, is_ready=False)
        follow(following, topic)
    since_ms = NOW_MS if ready else NOW_MS + later_ms
    assert (since_ms, since_ms) == (
        (board.health.standing().doubt or {})["since"],
        (board.health.standing().doubt or {})["as_of"],
    )
    assert not board.health.ready()[0]

    write(NOW_MS + 70_000, is_ready=True)
    follow(following, topic)
    assert board.health.standing().doubt is None


def test_who_serves_knows_what_the_monitor_cannot_read() -> None:
    """A monitor that was ready has written its groups as they were: who serves is ready, and doubts them as well."""
    topic: Any = Topic()
    topic.read = 0
    monitor, board = ready_board(), Board(log_ends(orders=1))
    board.ends.record(NOW_MS * 2, {}, {})
    following = follower(board, topic, lambda: NOW_MS)

    def write(unread: Mapping[int, int]) -> None:
        monitor.health.set_unread(unread, 50)
        value = topic_format.monitor_value(CLUSTER, monitor, NOW_MS, ready=True)
        topic.records.append((TOPIC, topic_format.monitor_key(CLUSTER), value))

    write({7: NOW_MS - 1})
    following.read_to_end(topic)
    standing = board.health.standing()
    assert (True, (7,), 50) == (standing.ready, standing.unread.without_leader, standing.unread.partitions)

    write({})
    follow(following, topic)
    assert () == board.health.standing().unread.without_leader


def test_what_a_former_release_wrote_is_served() -> None:
    """It says nothing of partitions that it cannot read."""
    topic: Any = Topic()
    topic.read = 0
    board = Board(log_ends(orders=1))
    held = json.loads(topic_format.monitor_value(CLUSTER, ready_board(), NOW_MS, ready=True))
    del held["unread"], held["offsets_partitions"]
    topic.records.append((TOPIC, topic_format.monitor_key(CLUSTER), json.dumps(held).encode()))
    follower(board, topic, lambda: NOW_MS).read_to_end(topic)

    assert not board.health.standing().unread


def test_who_serves_polled_groups_says_that_they_are() -> None:
    """With how the polling goes, and as many groups that are not described."""
    board = Board(log_ends(orders=1))
    left_out = {f"g{number}": "not authorised" for number in range(MOST_NAMED + 5)}
    status = PollStatus(interval_ms=5_000, polled_ms=NOW_MS, left_out=left_out, lists_all=True)
    board.health.show_polls(lambda: status)
    topic = Topic()
    topic.records.append(
        (TOPIC, topic_format.monitor_key(CLUSTER), topic_format.monitor_value(CLUSTER, board, NOW_MS, ready=True))
    )
    _, following = served(topic)
    polls = following.polls()

    assert polls is not None
    assert status.as_json() == polls.as_json()


@pytest.mark.parametrize("key", [None, b"", b"\xff", b"{}", b"[]", b"[1]", b'["a","b","c"]', b'"a"'])
def test_a_key_that_is_not_ours_is_none(key: bytes | None) -> None:
    """Others may write to the topic, too."""
    assert () == topic_format.read_key(key)
