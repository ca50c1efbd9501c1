"""Who is asked about, how often, and what becomes of the answers."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

import pytest
from structlog.testing import capture_logs

from coordinator_model.clocked.described import PREPARING
from coordinator_model.clocked.hang_suspicion import SILENT_MS
from lab.builders import REBALANCE_TIMEOUT_MS, offset_commit, topic_id
from streaming.board.board import Board
from streaming.board.lag_columns import measure, table_of
from streaming.end_offsets.store import STALE_AFTER_MS, Topic
from streaming.kafka.cluster_client import ReportedGroup
from streaming.watchers.hang_sampler import CALM_MS, MOST_ASKED, REFUSED_MS, HangSampler
from streaming.watchers.overdue_watch import OverdueWatch
from tests.streaming.board_rows import Shard
from tests.streaming.boards import NOW_MS, OFFSETS_TOPIC, THEN_MS, board_of, classic_group, described, log_ends, sample
from tests.streaming.fake_cluster import FakeCluster

TIMEOUT_MS = REBALANCE_TIMEOUT_MS


@dataclass
class FakeGroups(FakeCluster[tuple[int, list[str]]]):
    """What is said of each group."""

    answers: dict[str, ReportedGroup] = field(default_factory=dict)

    def describe(self, groups: Collection[str], broker: int) -> Mapping[str, ReportedGroup]:
        self.note((broker, sorted(groups)))
        return {name: self.answers[name] for name in groups if name in self.answers}


@dataclass
class Rig:
    """A sampler on a board of classic groups that committed at THEN_MS, and the clock they share."""

    board: Board
    cluster: FakeGroups
    sampler: HangSampler
    now_ms: int = THEN_MS + SILENT_MS + 1

    def look(self, *, after_ms: int = 0) -> None:
        """After the lag of all groups was measured, as it is every few seconds."""
        self.now_ms += after_ms
        self.measure()
        self.sampler.check()

    def measure(self) -> None:
        table = table_of(self.board.shown.groups.values())
        self.sampler.look(measure(table, self.board.ends, self.now_ms), self.now_ms)

    def commit(self, offset: int) -> None:
        """Group a commits now."""
        shard = Shard()
        classic_group(shard, "a", {"a-1": {"orders": [0]}})
        shard.pending.append((self.now_ms, *offset_commit("a", "orders", 0, offset, timestamp=self.now_ms)))
        self.board.apply(1, shard.flush(), self.now_ms)


def rig(*names: str, end: int = 9, ready: bool = True) -> Rig:
    """Groups of these names that committed offset 5 of a partition that ends at `end`."""
    shard = Shard()
    for name in names:
        classic_group(shard, name, {f"{name}-1": {"orders": [0]}})
        shard.pending.append((THEN_MS, *offset_commit(name, "orders", 0, 5, timestamp=THEN_MS)))
    board = board_of(shard, ends := log_ends(orders=1))
    ends.set_topics([described("orders", 1), Topic(topic_id(OFFSETS_TOPIC), OFFSETS_TOPIC, 1, {0: 4})], [])
    board.health.set_log_end_at_start({0: 1}, {0: 1})
    board.health.set_positions({0: int(ready)}, {0: int(ready)}, NOW_MS)
    sample(ends, NOW_MS, "orders", end)
    cluster = FakeGroups()
    made = Rig(board, cluster, HangSampler(board, cluster.connect, lambda: made.now_ms))
    return made


def test_suspects_of_a_coordinator_are_one_question() -> None:
    """It goes to the broker that leads their partition of the offsets topic."""
    made = rig("a", "b")

    made.look()

    assert [(4, ["a", "b"])] == made.cluster.asked


@pytest.mark.parametrize(("end", "ready"), [(5, True), (9, False)], ids=["idle", "catching up"])
def test_nobody_else_is_asked_about(end: int, ready: bool) -> None:
    """No one waits for an idle group, and while catching up nothing is known of now."""
    made = rig("a", end=end, ready=ready)

    made.look()

    assert ([], 0) == (made.cluster.asked, made.cluster.connections)


def test_calm_suspect_is_left_alone_for_a_while() -> None:
    """One that rebalances is looked at with every look."""
    made = rig("calm", "moving")
    made.cluster.answers = {"calm": ReportedGroup("Stable", 1), "moving": ReportedGroup(PREPARING, 1)}

    for pause_ms in (0, 5_000, 5_000):
        made.look(after_ms=pause_ms)
    assert [["calm", "moving"], ["moving"], ["moving"]] == [names for _, names in made.cluster.asked]

    made.look(after_ms=CALM_MS)
    assert ["calm", "moving"] == made.cluster.asked[-1][1]


def test_refused_suspect_is_reported_once_and_left_alone() -> None:
    """All else works without the permission."""
    made = rig("a", "b")
    made.cluster.answers = dict.fromkeys("ab", ReportedGroup(refused=True))

    with capture_logs() as logs:
        for _ in range(5):
            made.look(after_ms=CALM_MS)

    assert 1 == len(made.cluster.asked)
    assert ["group_not_described"] == [said["event"] for said in logs]
    assert {} == made.sampler.answers
    made.look(after_ms=REFUSED_MS)
    assert 2 == len(made.cluster.asked)


def test_only_so_many_are_asked_about_at_once_and_all_in_turn() -> None:
    """A whole cluster that falls silent is no reason to flood its brokers."""
    names = [f"g{number:03}" for number in range(2 * MOST_ASKED)]
    made = rig(*names)
    made.cluster.answers = dict.fromkeys(names, ReportedGroup("Stable", 1))

    made.look()
    made.look(after_ms=5_000)

    first, second = (asked for _, asked in made.cluster.asked)
    assert MOST_ASKED == len(first) == len(second)
    assert names == sorted(first + second)


def test_coordinator_that_moved_is_asked_about_with_the_next_look() -> None:
    """The offsets topic is described at once: until then it is unknown."""
    made = rig("a")
    made.cluster.answers = {"a": ReportedGroup(away=True)}
    made.look()
    doubted = made.board.ends.take_doubt()
    made.cluster.answers = {"a": ReportedGroup(PREPARING, 1)}
    made.look(after_ms=5_000)

    assert doubted
    assert 2 == len(made.cluster.asked)
    assert PREPARING == made.sampler.answers["a"].state


def test_suspect_stays_one_while_its_lag_is_not_known() -> None:
    """A leader that is away is no commit: what the coordinator answered is not forgotten for it."""
    made = rig("a")
    made.cluster.answers = {"a": ReportedGroup(PREPARING, 1)}
    made.look()
    made.board.ends.record(made.now_ms + STALE_AFTER_MS + 1, {}, {})
    for _ in range(3):
        made.look(after_ms=5_000)

    assert 4 == len(made.cluster.asked)
    assert ["a"] == list(made.sampler.answers)


def test_brokers_that_are_away_end_nothing() -> None:
    """The next look connects again."""
    made = rig("a")
    made.cluster.down = OSError("gone")
    made.look()
    made.cluster.down = None
    made.cluster.answers = {"a": ReportedGroup("Stable", 1)}
    made.look(after_ms=5_000)

    assert (2, ["a"]) == (made.cluster.connections, list(made.sampler.answers))


def test_answers_of_who_is_no_suspect_any_more_are_forgotten() -> None:
    """It commits again."""
    made = rig("a")
    made.cluster.answers = {"a": ReportedGroup(PREPARING, 1)}
    made.look()
    assert ["a"] == list(made.sampler.answers)

    made.commit(6)
    made.look()

    assert {} == made.sampler.answers


def test_one_that_commits_after_its_lag_was_measured_is_not_asked_about() -> None:
    """At a million groups lag is measured once a minute, and what has happened since counts."""
    made = rig("a")
    made.measure()
    made.commit(6)

    made.sampler.check()

    assert [] == made.cluster.asked


def test_records_of_an_open_transaction_wait_for_nobody() -> None:
    """Whoever reads committed records alone has read all that there is, and may be idle."""
    made = rig("a", end=5)
    made.board.ends.record(NOW_MS + 1, {("orders", 0): 9}, {("orders", 0): 5})

    made.look()
    assert [] == made.cluster.asked

    made.board.ends.record(NOW_MS + 2, {("orders", 0): 9}, {("orders", 0): 9})
    made.look()
    assert [(4, ["a"])] == made.cluster.asked


def test_rebalance_that_does_not_end_is_one_event_and_a_gauge_until_it_does() -> None:
    """From suspicion to event and back, by the answers alone."""
    made = rig("a", "b")
    made.cluster.answers = {"a": ReportedGroup(PREPARING, 3), "b": ReportedGroup("Stable", 1)}
    watch = OverdueWatch(made.board, made.board.add_events, lambda: made.now_ms, lambda: made.sampler.answers)

    for _ in range((TIMEOUT_MS + 60_000) // 5_000):
        made.look(after_ms=5_000)
        watch.check()

    stuck = [event for event in made.board.latest_events(99) if event["kind"] == "rebalance_stuck"]
    assert ["a"] == [event["group"] for event in stuck]
    assert (frozenset("a"), 3) == (
        made.board.findings.overdue["rebalance_stuck"],
        stuck[0]["detail"]["described_members"],
    )

    made.cluster.answers["a"] = ReportedGroup("Stable", 3)
    made.look(after_ms=5_000)
    watch.check()
    assert frozenset() == made.board.findings.overdue["rebalance_stuck"]
    assert 1 == made.board.events.counts_by_group()["a"]["rebalance_stuck"]


def test_the_end_of_an_outage_is_logged_though_nobody_is_suspected_any_more() -> None:
    """Consumers that go on with the brokers are asked about once more, as no other answer may ever come."""
    made = rig("a")
    with capture_logs() as lines:
        made.cluster.down = OSError("gone")
        made.look()
        made.cluster.down = None
        made.commit(6)
        for _ in range(3):
            made.look(after_ms=CALM_MS // 12)

    assert ["group_descriptions_unavailable", "group_descriptions_available_again"] == [line["event"] for line in lines]
    assert 2 == len(made.cluster.asked)
    assert {} == made.sampler.answers


def test_an_outage_is_logged_when_it_begins_and_when_it_is_over() -> None:
    """However many questions fail in between; what the end of the thread interrupts is no failure."""
    made = rig("a")
    with capture_logs() as lines:
        made.cluster.down = OSError("gone")
        for _ in range(3):
            made.look(after_ms=CALM_MS)
        made.cluster.down = None
        made.look(after_ms=CALM_MS)
        made.sampler.stop()
        made.cluster.down = OSError("interrupted")
        made.look(after_ms=CALM_MS)

    assert ["group_descriptions_unavailable", "group_descriptions_available_again"] == [line["event"] for line in lines]
    assert ("OSError: gone", 3) == (lines[0]["reason"], lines[1]["failures"])
