"""When a coordinator is said not to have loaded its partition, and what only looks like it.

A group of the one partition of the log commits every ten seconds, its broker restarts, and then nothing is written. Its
leader is asked with every look, five seconds apart.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import pytest
from kafka.errors import KafkaConnectionError
from structlog.testing import capture_logs

from coordinator_model.clocked.not_loaded import GRACE_MS, LOADED_A_SECOND, load_ms, records_to_load
from lab.builders import offset_commit, topic_id
from streaming.board.lag_columns import measure, table_of
from streaming.end_offsets.store import Topic
from streaming.kafka.cluster_client import ReportedGroup
from streaming.watchers.hang_sampler import CALM_MS, REFUSED_MS
from streaming.watchers.load_watch import IN_A_ROW_MS, SILENT_MS, LoadWatch
from tests.streaming.board_rows import Shard
from tests.streaming.boards import NOW_MS, OFFSETS_TOPIC, board_of, classic_group, described, log_ends, sample
from tests.streaming.fake_cluster import FakeCluster

NOT_COORDINATOR: Final = ReportedGroup(away=True, not_loaded="NOT_COORDINATOR")
LOADING: Final = ReportedGroup(away=True, not_loaded="COORDINATOR_LOAD_IN_PROGRESS")
STABLE: Final = ReportedGroup("Stable", 1)

LOOK_MS: Final = 5_000
BUSY_MS: Final = 300_000
"""As long the groups wrote before: their habit is known."""


@dataclass
class FakeCoordinators(FakeCluster[tuple[int, list[str]]]):
    """What the leader says, of whichever group."""

    answer: ReportedGroup | None = STABLE

    def describe(self, groups: Collection[str], broker: int) -> Mapping[str, ReportedGroup]:
        self.note((broker, sorted(groups)))
        return {} if self.answer is None else dict.fromkeys(groups, self.answer)


@dataclass
class Rig:
    """A watch on a board with some groups, which wrote last at `NOW_MS`."""

    members: bool = True
    end: int = 100
    read_to: int = 1
    partition: int = 0
    beside: Sequence[int] = ()
    """Where other partitions end, which the same broker leads; they have no groups."""
    now_ms: int = NOW_MS
    leader: Topic = field(init=False)
    cluster: FakeCoordinators = field(default_factory=FakeCoordinators)

    def __post_init__(self) -> None:
        shard = Shard(self.partition)
        for name in ("audit", "orders"):
            if self.members:
                classic_group(shard, name, {f"{name}-1": {"t": [0]}}, at_ms=NOW_MS)
            shard.pending.append((NOW_MS, *offset_commit(name, "t", 0, 5, timestamp=NOW_MS)))
        self.board = board_of(shard, log_ends(t=1))
        self.leads(4, epoch=1)
        self.board.health.set_log_end_at_start({0: 1}, {0: 1})
        self.board.health.set_positions({0: self.read_to}, {0: self.read_to}, NOW_MS)
        sample(self.board.ends, NOW_MS, "t", 5)
        self.watch = self.started()

    def started(self) -> LoadWatch:
        """A monitor's watch, new as after a restart."""
        return LoadWatch(self.board, self.cluster.connect, self.board.events.add, lambda: self.now_ms)

    def leads(self, broker: int | None, epoch: int) -> None:
        numbers = range(1 + len(self.beside))
        leaders = {} if broker is None else dict.fromkeys(numbers, broker)
        offsets = Topic(topic_id(OFFSETS_TOPIC), OFFSETS_TOPIC, len(numbers), leaders, dict.fromkeys(numbers, epoch))
        self.board.ends.set_topics([described("t", 1), offsets], [], self.now_ms)

    def look(self, *, after_ms: int = LOOK_MS, wrote: int = 0) -> None:
        """The lag is measured, and the watch looks, after so long; so many records were written meanwhile."""
        self.now_ms += after_ms
        self.end += wrote
        sample(self.board.ends, self.now_ms, OFFSETS_TOPIC, self.end, *self.beside)
        self.watch.look(measure(table_of(self.board.shown.groups.values()), self.board.ends, self.now_ms), self.now_ms)
        self.watch.check()

    def busy(self, every_ms: int = 10_000) -> None:
        for _ in range(BUSY_MS // every_ms):
            self.look(after_ms=every_ms, wrote=1)

    def silent(self, span_ms: int) -> None:
        for _ in range(span_ms // LOOK_MS):
            self.look()

    def reported(self) -> list[dict[str, Any]]:
        """Events, as they leave the monitor."""
        return [{**of} for of in self.board.latest_events(99) if of["kind"] == "coordinator_not_loaded"]

    def ends(self) -> list[str]:
        return [of["detail"]["why"] for of in self.reported() if of["detail"].get("cleared")]

    def fails(self) -> None:
        """The broker restarts, and does not load: it is elected again, and the alarm opens."""
        self.busy()
        self.leads(4, epoch=2)
        self.cluster.answer = NOT_COORDINATOR
        self.silent(GRACE_MS + SILENT_MS + 2 * LOOK_MS)
        assert 1 == len(self.reported())


LATE_MS: Final = GRACE_MS + SILENT_MS + 60_000


def test_coordinator_that_did_not_load_is_reported_once_with_its_groups() -> None:
    """Its leader answers NOT_COORDINATOR for longer than a load takes; the event is of no group, and critical."""
    rig = Rig()
    rig.busy()
    rig.leads(4, epoch=2)
    rig.cluster.answer = NOT_COORDINATOR
    rig.silent(SILENT_MS + GRACE_MS)
    assert [] == rig.reported()
    rig.silent(60_000)

    (said,) = rig.reported()
    assert (None, "critical", 0, 129) == tuple(said[name] for name in ("group", "severity", "partition", "offset"))
    since_ms = NOW_MS + BUSY_MS + SILENT_MS
    assert since_ms == said["time"]
    assert said["detail"] == {
        "partition": 0,
        "since": since_ms,
        "said": "NOT_COORDINATOR",
        "broker": 4,
        "groups": ["audit", "orders"],
        "groups_count": 2,
    }
    assert {0: since_ms} == rig.board.findings.not_loaded


def test_load_that_never_ends_is_reported() -> None:
    """The broker answers COORDINATOR_LOAD_IN_PROGRESS all the time."""
    rig = Rig()
    rig.busy()
    rig.cluster.answer = LOADING
    rig.silent(LATE_MS)

    assert ["COORDINATOR_LOAD_IN_PROGRESS"] == [of["detail"]["said"] for of in rig.reported()]


def test_what_is_written_as_a_rule_is_missed_without_members_too() -> None:
    """A client that commits without being a member is missed by the habit alone."""
    rig = Rig(members=False)
    rig.busy()
    rig.cluster.answer = NOT_COORDINATOR
    rig.silent(LATE_MS)

    assert 1 == len(rig.reported())


def test_monitor_that_starts_afterwards_finds_it_by_the_members() -> None:
    """It saw nothing being written, and knows no habit; members are there."""
    rig = Rig()
    rig.cluster.answer = NOT_COORDINATOR
    rig.silent(LATE_MS)

    assert 1 == len(rig.reported())


def test_silence_before_the_monitor_started_is_no_habit() -> None:
    """It came back after a day, and nothing says that the groups were as silent."""
    rig = Rig(now_ms=NOW_MS + 86_400_000)
    rig.fails()


def test_cluster_without_groups_is_measured_like_any_other() -> None:
    """Nothing can be asked, and what measures lag goes on; it once ended with each look."""
    rig = Rig()
    rig.watch.look(measure(table_of([]), rig.board.ends, rig.now_ms), rig.now_ms)
    rig.watch.check()

    assert [] == rig.cluster.asked


def test_quiet_groups_are_no_alarm() -> None:
    """They write nothing, against their habit, and their coordinator is there; it is asked once a minute."""
    rig = Rig()
    rig.busy()
    rig.silent(10 * CALM_MS)

    assert [] == rig.reported()
    assert 10 == len(rig.cluster.asked)


def test_group_that_the_coordinator_does_not_know_is_no_alarm() -> None:
    """It answers for the partition; that it has no such group is another matter."""
    rig = Rig()
    rig.cluster.answer = None
    rig.silent(LATE_MS)

    assert [] == rig.reported()


def test_long_load_is_no_alarm() -> None:
    """A large log may load for minutes; nor is one that takes as long as it may."""
    rig = Rig(end=10_000_000)
    rig.busy()
    rig.leads(4, epoch=2)
    rig.cluster.answer = LOADING
    longest_ms = load_ms(records_to_load(rig.end, live_records=4))
    rig.silent(SILENT_MS + longest_ms)
    rig.cluster.answer = STABLE
    rig.silent(LATE_MS)

    assert longest_ms > 2 * GRACE_MS
    assert [] == rig.reported()


def test_load_that_waits_for_those_of_other_partitions_is_no_alarm() -> None:
    """A broker loads one partition after the other: a small one may have to wait for large ones that it leads, too."""
    rig = Rig(beside=[1_500_000, 1_500_000])
    rig.busy()
    rig.leads(4, epoch=2)
    rig.cluster.answer = LOADING
    rig.silent(SILENT_MS + load_ms(3_000_000))

    assert [] == rig.reported()

    rig.silent(LATE_MS)

    assert [0] == [of["partition"] for of in rig.reported()]


@pytest.mark.parametrize("answer", [NOT_COORDINATOR, LOADING])
def test_leader_that_moves_is_no_alarm(answer: ReportedGroup) -> None:
    """Each leader loads from the beginning, and so the time begins again; be it the same broker, elected again."""
    rig = Rig()
    rig.busy()
    rig.cluster.answer = answer
    for epoch, broker in enumerate((4, 5, 5, 4), start=2):
        rig.leads(broker, epoch)
        rig.silent(GRACE_MS)
    rig.cluster.answer = STABLE
    rig.silent(LATE_MS)

    assert [] == rig.reported()


def test_partition_without_leader_has_another_name() -> None:
    """There is no leader to ask, and nothing of this is said."""
    rig = Rig()
    rig.busy()
    rig.leads(None, epoch=2)
    rig.cluster.answer = NOT_COORDINATOR
    rig.silent(2 * LATE_MS)

    assert ([], {}, []) == (rig.reported(), rig.board.findings.not_loaded, rig.cluster.asked)


def test_coordinator_that_writes_has_loaded() -> None:
    """Whatever another broker answers, whom an old address led to."""
    rig = Rig()
    rig.busy()
    rig.cluster.answer = NOT_COORDINATOR
    for _ in range(20):
        rig.silent(40_000)
        rig.look(wrote=1)

    assert [] == rig.reported()


def test_silence_that_is_the_habit_is_no_alarm() -> None:
    """The partition is written to every four minutes; it is missed once it was silent for longer than that."""
    every_ms = 240_000
    rig = Rig()
    for _ in range(14):
        rig.look(after_ms=every_ms, wrote=1)
        for _ in range(2):
            rig.look(after_ms=1_000, wrote=1)
    rig.cluster.answer = NOT_COORDINATOR
    rig.silent(every_ms)
    assert [] == rig.reported()

    rig.silent(LATE_MS)
    assert 1 == len(rig.reported())


def test_what_nobody_misses_is_no_alarm() -> None:
    """Groups without members of which no habit is known."""
    rig = Rig(members=False)
    rig.cluster.answer = NOT_COORDINATOR
    rig.silent(2 * LATE_MS)

    assert [] == rig.reported()


def test_answers_that_are_far_apart_say_nothing_of_the_time_between() -> None:
    """The machine of the monitor was suspended, or its brokers did not answer."""
    rig = Rig()
    rig.cluster.answer = NOT_COORDINATOR
    rig.silent(SILENT_MS + LOOK_MS)
    rig.look(after_ms=IN_A_ROW_MS + LATE_MS)
    rig.cluster.down = KafkaConnectionError("away")
    rig.silent(LATE_MS)
    rig.cluster.down = None
    rig.look()

    assert [] == rig.reported()
    rig.silent(GRACE_MS + LOOK_MS)
    assert 1 == len(rig.reported())


def test_error_that_says_something_else_decides_nothing() -> None:
    """COORDINATOR_NOT_AVAILABLE opens nothing and ends nothing."""
    rig = Rig()
    rig.cluster.answer = ReportedGroup(away=True)
    rig.silent(LATE_MS)
    assert [] == rig.reported()

    rig = Rig()
    rig.fails()
    rig.cluster.answer = ReportedGroup(away=True)
    rig.silent(LATE_MS)
    assert [] == rig.ends()


def test_it_is_over_once_the_coordinator_answers() -> None:
    """As after the log was repaired; one event says so, with for how long it was."""
    rig = Rig()
    rig.fails()
    rig.cluster.answer = STABLE
    rig.silent(LATE_MS)

    opened, cleared = rig.reported()
    assert (["loaded"], "info", None) == (rig.ends(), cleared["severity"], cleared["group"])
    assert opened["detail"]["since"] == cleared["detail"]["since"] < cleared["detail"]["until"] == cleared["time"]
    assert {} == rig.board.findings.not_loaded


def test_it_is_over_once_something_is_written() -> None:
    """Also where the group that was asked about may not be described by then."""
    rig = Rig()
    rig.fails()
    rig.look(wrote=3)

    assert ["loaded"] == rig.ends()


@pytest.mark.parametrize(("broker", "why"), [(5, "moved"), (4, "moved"), (None, "no_leader")])
def test_it_is_over_with_its_leader_and_may_open_again_with_the_next(broker: int | None, why: str) -> None:
    """The next leader loads; and if that fails as well, it is another alarm."""
    rig = Rig()
    rig.fails()
    rig.leads(broker, epoch=3)
    rig.look()
    assert ([why], {}) == (rig.ends(), rig.board.findings.not_loaded)

    rig.leads(5, epoch=4)
    rig.silent(LATE_MS)
    assert 3 == len(rig.reported()) == len({of["id"] for of in rig.reported()})


def test_restarted_monitor_goes_on_with_what_was_open() -> None:
    """It is not reported again, and its end is."""
    rig = Rig()
    rig.fails()
    rig.watch = rig.started()
    rig.silent(LATE_MS)
    assert (1, 1) == (len(rig.reported()), len(rig.board.findings.not_loaded))

    rig.cluster.answer = STABLE
    rig.look()
    rig.watch = rig.started()
    rig.silent(LATE_MS)
    assert (["loaded"], {}) == (rig.ends(), rig.board.findings.not_loaded)


def test_what_could_not_be_published_is_published_with_the_next_look() -> None:
    """A disk that is full has no place for events."""
    rig = Rig()
    rig.cluster.answer = NOT_COORDINATOR
    rig.watch._publish = _full
    with pytest.raises(OSError, match="full"):
        rig.silent(LATE_MS)
    rig.watch._publish = rig.board.events.add
    rig.look()

    assert 1 == len(rig.reported())


def _full(_events: object) -> None:
    raise OSError("full")


def test_partition_that_is_written_to_is_not_asked_about() -> None:
    """Its coordinator is there, or nothing could be written."""
    rig = Rig()
    rig.busy()

    assert ([], 0) == (rig.cluster.asked, rig.cluster.connections)


def test_nobody_is_asked_before_the_board_is_ready() -> None:
    """What was written last is not known by then."""
    rig = Rig(read_to=0)
    rig.silent(LATE_MS)

    assert [] == rig.cluster.asked


def test_polled_groups_are_not_asked_about() -> None:
    """As a monitor may serve that follows another which polls: they are of no partition."""
    rig = Rig(partition=-1)
    rig.silent(LATE_MS)

    assert [] == rig.cluster.asked


def test_refused_group_is_reported_once_and_left_alone() -> None:
    """All else works without the permission."""
    rig = Rig()
    rig.cluster.answer = ReportedGroup(refused=True)
    with capture_logs() as logs:
        for _ in range(REFUSED_MS // CALM_MS):
            rig.look(after_ms=CALM_MS)

    assert ["coordinator_not_asked"] == [said["event"] for said in logs]
    assert 1 == len(rig.cluster.asked)


def test_group_with_its_coordinator_elsewhere_is_not_asked_about() -> None:
    """The topic was grown: the copy that was left behind says nothing of this partition."""
    rig = Rig()
    grown = Topic(topic_id(OFFSETS_TOPIC), OFFSETS_TOPIC, 60, dict.fromkeys(range(60), 4))
    rig.board.ends.set_topics([described("t", 1), grown], [], rig.now_ms)
    rig.cluster.answer = NOT_COORDINATOR
    rig.silent(LATE_MS)

    assert ([], []) == (rig.reported(), rig.cluster.asked)


def test_load_may_take_as_long_as_what_is_left_of_the_log_takes() -> None:
    """Of a log of billions of offsets the cleaner leaves what lives, as much again, and a segment."""
    assert GRACE_MS == load_ms(records_to_load(0, 0))
    assert GRACE_MS + 80_000 == load_ms(records_to_load(80 * LOADED_A_SECOND, 50))
    assert records_to_load(10**7, 10**6) == records_to_load(10**10, 10**6)
