"""A monitor that is killed, stopped, started again, and left without brokers: it goes on as if nothing had been.

One story is played once, in `reported`. Traffic runs; the monitor is killed in the middle of a micro-batch and
restarted on the same state directory; it is stopped and started with nothing new in the log; the brokers go away and
come back. What it shows is compared with Kafka's tool, what it counted with a replay of the whole log that nothing
disturbed.
"""

import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from coordinator_model.replica import Replica
from coordinator_model.state.events import Event
from coordinator_model.state.findings import Position
from lab.monitor_process import END_SECONDS, MonitorProcess, contents, until
from streaming.base.threads import Repeating
from streaming.config.kafka_sections import KafkaSection
from streaming.demo.embedded_broker import EmbeddedBroker
from streaming.demo.verifiable_consumer import Protocol, create_topics
from streaming.history.queries import History
from streaming.kafka.log_bounds import AWAY, LogBounds
from streaming.recording.recorder import LogRecorder
from tests.group_tool import GroupTool
from tests.in_process_members import InProcessMember
from tests.integration.kafka_truth import Described, agreement

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.timeout(900)]

OFFSETS_TOPIC: Final = "__consumer_offsets"
TOPICS: Final = {"orders": 6, "payments": 3}
PARTITIONS: Final = 4
CLASSIC: Final = "classic-service"
CONSUMER: Final = "consumer-service"
OUTAGE_SECONDS: Final = 8.0
"""Longer than a client of the brokers waits for an answer."""

Counts = dict[tuple[str, ...], float]
"""(what, group[, topic]) → total."""


@dataclass
class Reported:
    """What was seen while the story was played."""

    truths: dict[str, tuple[Described, Described]] = field(default_factory=dict)
    counts: dict[str, tuple[Counts, Counts]] = field(default_factory=dict)
    events: dict[str, tuple[set[str], list[dict[str, Any]], Counts]] = field(default_factory=dict)
    """Ids of what a replay reported, events that the monitor remembers, what it counted of them."""
    ends: dict[str, tuple[int, float, list[str]]] = field(default_factory=dict)
    """Which end → exit status, seconds it took, processes left."""
    groups: dict[str, tuple[int, dict[str, Any]]] = field(default_factory=dict)
    """When the groups were at rest, and how the monitor showed them then."""
    log_ends: list[dict[int, int]] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    """Errors of asking where the log ends, while the brokers went and came, that do not mean that they are away."""
    while_away: list[int] = field(default_factory=list)
    """Status of /healthz, /metrics and a group while the brokers were away."""
    outage_lines: list[str] = field(default_factory=list)
    error_lines: dict[str, list[str]] = field(default_factory=dict)
    state: Path = Path()


class Story:
    """The cluster, its traffic, and one monitor after the other on one state directory."""

    def __init__(self, stack: ExitStack, directory: Path) -> None:
        self.reported = Reported(state=directory / "state")
        self._stack = stack
        self._directory = directory
        self.broker = stack.enter_context(EmbeddedBroker(directory / "broker", offsets_partitions=PARTITIONS))
        self.servers = self.broker.bootstrap_servers
        self._tool = stack.enter_context(GroupTool(self.servers, log=directory / "tool.log"))
        create_topics(self.servers, TOPICS)
        self._members = {name: self._join(group, protocol) for name, group, protocol in _MEMBERS}
        self._commit_once("deleted-unseen")

    def tell(self) -> Reported:
        """From the first start to the last end."""
        self._kill_in_the_middle()
        self._start_with_nothing_new()
        return self.reported

    def _kill_in_the_middle(self) -> None:
        monitor = self._start("first")
        with Traffic(self.servers):
            monitor.await_ready()
            until(lambda: {CLASSIC, CONSUMER, "simple"} <= monitor.groups().keys(), 60, "groups are not seen")
            self._change_members()
            self._await_batch_under_way()
            monitor.kill()
            # No one watches; members come and go, a group goes for good.
            self._change_members()
            self._commit_once("made-unseen")
            self._tool.delete("deleted-unseen")
            monitor = self._start("after the kill")
            monitor.await_ready()
        self._compare(monitor, "after the kill")
        self._stop(monitor, "after the kill")

    def _start_with_nothing_new(self) -> None:
        self.reported.log_ends.append(self._log_end())
        monitor = self._start("nothing new")
        monitor.await_ready()
        self._compare(monitor, "nothing new")
        self.reported.log_ends.append(self._log_end())
        self._lose_the_brokers(monitor)

    def _lose_the_brokers(self, monitor: MonitorProcess) -> None:
        said = len(monitor.error_lines())
        with looks(self.servers, self.reported.refused):
            self.broker.stop()
            gone = time.monotonic()
            until(
                lambda: time.monotonic() - gone > OUTAGE_SECONDS and len(monitor.error_lines()) > said,
                60,
                "the brokers are not missed",
            )
            addresses = ("/healthz", "/metrics", f"/api/v1/groups/{CLASSIC}")
            self.reported.while_away = [monitor.get(address)[0] for address in addresses]
            self.broker.start()
            with Traffic(self.servers):
                self._change_members()
            self._compare(monitor, "brokers back")
        # A part that asks seldom learns late that they are back.
        until(lambda: is_over(monitor.error_lines()[said:]), 60, lambda: f"{monitor.error_lines()[said:]}")
        self.reported.outage_lines = monitor.error_lines()[said:]
        self._await_history("brokers back")
        for member in self._members.values():
            member.close()
        self.broker.stop()
        self._stop(monitor, "without brokers")

    def _await_history(self, name: str) -> None:
        """Wait until what was reported and shown then is in the history's files."""
        history = History(self.reported.state / "history")
        _, events, _ = self.reported.events[name]
        ids = {event["id"] for event in events if event["group"] == CLASSIC}
        offsets = lag_left_out(self.reported.groups[name][1][CLASSIC])["offsets"]
        until(
            lambda: (
                ids <= {event["id"] for event in history.timeline(CLASSIC, limit=10_000)}
                and history.group_at(CLASSIC, time.time_ns() // 1_000_000)["offsets"] == offsets
            ),
            60,
            "the history is behind",
        )

    def _start(self, name: str) -> MonitorProcess:
        settings = "history: {enabled: true, interval_ms: 1000}\n"
        return self._stack.enter_context(
            MonitorProcess(self._directory / name, self.servers, state=self.reported.state, settings=settings)
        )

    def _stop(self, monitor: MonitorProcess, name: str) -> None:
        begun = time.monotonic()
        monitor.terminate()
        status = monitor.await_end(4 * END_SECONDS)
        seconds = time.monotonic() - begun
        # A process that ends with the JVM's last word may get none of a busy machine's time for a while.
        with suppress(AssertionError):
            until(lambda: not monitor.left_over(), END_SECONDS, "")
        self.reported.ends[name] = (status, seconds, monitor.left_over())
        self.reported.error_lines[name] = monitor.error_lines()

    def _await_batch_under_way(self) -> None:
        """Return when Spark has begun a micro-batch, and not recorded its end."""
        begun, ended = self.reported.state / "checkpoint" / "offsets", self.reported.state / "checkpoint" / "commits"
        deadline = time.monotonic() + 60
        while _numbers(begun) <= _numbers(ended):
            assert time.monotonic() < deadline, "no micro-batch is under way"
            time.sleep(0.005)

    def _change_members(self) -> None:
        """One member of each group goes, another one comes."""
        for name, group, protocol in _MEMBERS[::2]:
            self._members[name].close()
            self._members[name] = self._join(group, protocol)

    def _join(self, group: str, protocol: Protocol) -> InProcessMember:
        return self._stack.enter_context(InProcessMember(self.servers, group, "orders", protocol=protocol))

    def _commit_once(self, group: str) -> None:
        consumer = Consumer({"bootstrap.servers": self.servers, "group.id": group})
        consumer.commit(offsets=[TopicPartition("payments", 0, 0)], asynchronous=False)
        consumer.close()

    def _compare(self, monitor: MonitorProcess, name: str) -> None:
        self.reported.truths[name] = agreement(self._tool, monitor, holds=_at_rest, seconds=60)
        replayed, events = self._replayed()
        self.reported.counts[name] = (replayed, counted(monitor, *_GROUP_TOTALS.values(), *_OFFSET_TOTALS))
        self.reported.groups[name] = (time.time_ns() // 1_000_000, monitor.groups())
        self.reported.events[name] = (events, monitor.events(limit="10000"), counted(monitor, _EVENTS_TOTAL))

    def _replayed(self) -> tuple[Counts, set[str]]:
        """Totals and ids of events of a replay of the whole log, in one piece."""
        replica = Replica()
        events: list[Event] = []
        recorder = LogRecorder(KafkaSection(bootstrap_servers=self.servers), list(range(PARTITIONS)))
        with closing(recorder):
            for record in recorder.records():
                place = Position(record.partition, record.offset, record.timestamp_ms)
                events += replica.replay(place, record.key, record.value)
        events += replica.settle()
        return totals(replica), {event.id for event in events if event.kind in _REPORTED_ALWAYS}

    def _log_end(self) -> dict[int, int]:
        consumer = Consumer({"bootstrap.servers": self.servers, "group.id": "asks-only"})
        try:
            topic = "__consumer_offsets"
            return {
                n: consumer.get_watermark_offsets(TopicPartition(topic, n), timeout=10)[1] for n in range(PARTITIONS)
            }
        finally:
            consumer.close()


_MEMBERS: Final[tuple[tuple[str, str, Protocol], ...]] = (
    ("classic-1", CLASSIC, "classic"),
    ("classic-2", CLASSIC, "classic"),
    ("consumer-1", CONSUMER, "consumer"),
    ("consumer-2", CONSUMER, "consumer"),
)


class Traffic:
    """Records for the members to read, commits without members, and transactions, until it is left."""

    def __init__(self, bootstrap_servers: str) -> None:
        self._servers = bootstrap_servers
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="traffic", daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join()

    def _run(self) -> None:
        quiet = {"bootstrap.servers": self._servers, "log_level": 2}
        producer = Producer(quiet)
        transactional = Producer({**quiet, "transactional.id": "traffic"})
        transactional.init_transactions(60)
        simple = Consumer({**quiet, "group.id": "simple"})
        owner = Consumer({**quiet, "group.id": "transactional"})
        rounds = 0
        while not self._stopping.wait(0.1):
            rounds += 1
            for topic, partitions in TOPICS.items():
                for number in range(partitions):
                    producer.produce(topic, str(rounds), partition=number)
            producer.poll(0)
            # Every fifth one starts over.
            simple.commit(offsets=[TopicPartition("payments", 0, rounds % 5)], asynchronous=False)
            transactional.begin_transaction()
            place = TopicPartition("payments", 1, rounds)
            transactional.send_offsets_to_transaction([place], owner.consumer_group_metadata(), 30)
            # Every other one never was.
            (transactional.abort_transaction if rounds % 2 else transactional.commit_transaction)(30)
        assert 0 == producer.flush(30)
        for consumer in (simple, owner):
            consumer.close()


@contextmanager
def looks(bootstrap_servers: str, refused: list[str]) -> Iterator[None]:
    """Asks all the time where the log ends; keeps errors other than of brokers that are away."""
    ends = LogBounds({"bootstrap.servers": bootstrap_servers, "log_level": 2}, OFFSETS_TOPIC, 5.0)
    ends.ends()

    def look() -> None:
        try:
            ends.ends()
        except KafkaException as error:
            if error.args[0].code() not in AWAY:
                refused.append(error.args[0].name())

    thread = Repeating("looks", 0.05, look)
    thread.start()
    try:
        yield
    finally:
        thread.stop()


@pytest.fixture(scope="module")
def reported(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reported]:
    with ExitStack() as stack:
        yield Story(stack, tmp_path_factory.mktemp("story")).tell()


@pytest.mark.parametrize("name", ["after the kill", "nothing new", "brokers back"])
class TestGoesOn:
    """What a monitor shows and has counted when it went on from where it, or another one, had been."""

    def test_state_is_what_kafka_s_tool_says(self, reported: Reported, name: str) -> None:
        """Every group, member, assignment, epoch, committed offset and lag."""
        expected, found = reported.truths[name]

        assert expected == found

    def test_nothing_is_counted_twice_or_lost(self, reported: Reported, name: str) -> None:
        """Rebalances, moves, conversions, commits and rewinds are those of a replay that nothing disturbed."""
        expected, found = reported.counts[name]

        assert expected == found
        assert found["kafka_group_rebalances_total", CLASSIC] > 1
        assert found["kafka_group_commits_total", "simple", "payments"] > 1
        assert found["kafka_group_offset_rewinds_total", "simple", "payments"] > 0

    def test_nothing_is_reported_twice_or_lost(self, reported: Reported, name: str) -> None:
        """Events of the runs before are there, each once, among them all that a replay shows; so are their counts."""
        expected, events, counts = reported.events[name]
        ids = [event["id"] for event in events]

        assert len(ids) == len(set(ids))
        assert expected == {event["id"] for event in events if event["kind"] in _REPORTED_ALWAYS}
        for group in (CLASSIC, CONSUMER):
            kinds = Counter(event["kind"] for event in events if event["group"] == group)
            assert kinds == {kind: count for (_, of, kind), count in counts.items() if of == group}


@pytest.mark.parametrize("name", ["after the kill", "nothing new", "brokers back"])
def test_history_holds_how_groups_were(reported: Reported, name: str) -> None:
    """Asked once all is over, of the files alone: members, epochs and offsets of each group as they were shown then."""
    history = History(reported.state / "history")
    at_ms, groups = reported.groups[name]

    for group in (CLASSIC, CONSUMER, "made-unseen"):
        found = history.group_at(group, at_ms)
        assert lag_left_out(groups[group]) == {part: found[part] for part in _PARTS_KEPT}


def test_history_holds_what_happened(reported: Reported) -> None:
    """Every event that any of the runs reported is in the files, and comes back once, a group that is gone included."""
    history = History(reported.state / "history")
    _, events, _ = reported.events["brokers back"]

    for group in (CLASSIC, CONSUMER, "deleted-unseen"):
        ids = [event["id"] for event in history.timeline(group, limit=10_000)]
        assert len(ids) == len(set(ids))
        assert {event["id"] for event in events if event["group"] == group} <= set(ids)


def test_groups_come_and_go_unseen(reported: Reported) -> None:
    """A group deleted while no one watched is gone, one made meanwhile is there."""
    _, found = reported.truths["after the kill"]

    assert {CLASSIC, CONSUMER, "simple", "transactional", "made-unseen"} == found.keys()


def test_start_with_nothing_new_in_the_log(reported: Reported) -> None:
    """It became ready although not one record came: what it shows was read from the checkpoint."""
    before, after = reported.log_ends

    assert before == after
    assert reported.truths["after the kill"] == reported.truths["nothing new"]


@pytest.mark.parametrize("name", ["after the kill", "without brokers"])
def test_sigterm_ends_it(reported: Reported, name: str) -> None:
    """Exit status 0, soon, with no process left and nothing to say, with brokers and without."""
    status, seconds, left = reported.ends[name]

    assert (0, []) == (status, left)
    assert seconds < END_SECONDS


def test_end_is_quiet(reported: Reported) -> None:
    """A monitor that was started on the state of a killed one and stopped again had nothing to report."""
    assert [] == reported.error_lines["after the kill"]


def test_shows_what_it_knows_while_the_brokers_are_away(reported: Reported) -> None:
    """Page, metrics and groups stay: the board needs no broker."""
    assert [200, 200, 200] == reported.while_away


def test_says_once_that_the_brokers_are_gone_and_back(reported: Reported) -> None:
    """One line a change of state and part, no matter how often it was tried in between; no stack, no other line.

    The query is one of the parts if a micro-batch was being read when they went, the stream if a record was not read.
    """
    happened = events_of(reported.outage_lines)
    gone, back = gone_and_back(happened)

    assert sorted(gone | back) == sorted(happened)
    assert "end_offsets_unavailable" in gone


def test_no_moment_of_it_is_taken_for_an_error(reported: Reported) -> None:
    """A reader that always asks where the log ends learns that brokers are away, never that something is wrong."""
    assert [] == reported.refused


def test_state_of_another_cluster_is_refused(reported: Reported, tmp_path: Path) -> None:
    """In one line, with exit status 2, before anything is started; and not a byte of the state is changed."""
    another = "YW5vdGhlci1jbHVzdGVyMQ"
    before = contents(reported.state)
    with (
        EmbeddedBroker(tmp_path / "broker", offsets_partitions=PARTITIONS, cluster_id=another) as other,
        MonitorProcess(tmp_path / "monitor", other.bootstrap_servers, state=reported.state) as monitor,
    ):
        status, left = monitor.await_end(60), monitor.left_over()
    (line,) = monitor.error_lines()

    assert (2, []) == (status, left)
    assert line.startswith("error: state.dir: found ")
    assert "of a monitor with cluster_id" in line
    assert before == contents(reported.state)


_PARTS_KEPT: Final = ("group", "type", "state", "epoch", "assignment_epoch", "protocol", "members", "offsets")


_LAG: Final = frozenset(
    """
    log_end_offset log_start_offset last_stable_offset lag stable_lag lag_seconds lag_seconds_at_least lag_method
    records_lost
    """.split()  # noqa: SIM905 - a list literal takes a line a word
)


def events_of(lines: list[str]) -> list[str]:
    """What each line of the log says has happened."""
    return [line.partition("event=")[2].split()[0] for line in lines]


def gone_and_back(happened: list[str]) -> tuple[set[str], set[str]]:
    """The events of parts that miss the brokers, and those by which each of them has to end."""
    gone = {event for event in happened if event.endswith(("_unavailable", "_unreachable", "_stands_still"))}
    return gone, {"stream_moves_again" if event == "stream_stands_still" else again(event) for event in gone}


def again(event: str) -> str:
    """How a part says that it has back what it said was gone."""
    part, _, what = event.rpartition("_un")
    return f"{part}_{what}_again"


def is_over(lines: list[str]) -> bool:
    """Whether all that have missed the brokers have them again."""
    happened = events_of(lines)
    return gone_and_back(happened)[1] <= {*happened}


def lag_left_out(group: dict[str, Any]) -> dict[str, Any]:
    """What the history keeps of a group as the API shows it: lag is not part of how a group was."""
    committed = [offset for offset in group["offsets"] if offset["offset"] is not None]
    offsets = [{part: value for part, value in offset.items() if part not in _LAG} for offset in committed]
    return {**{part: group[part] for part in _PARTS_KEPT}, "offsets": offsets}


def counted(monitor: MonitorProcess, *names: str) -> Counts:
    """Totals on /metrics."""
    return {
        (name, *(value for label, value in labels if label != "cluster")): total
        for name, samples in monitor.samples().items()
        if name in names
        for labels, total in samples.items()
    }


# Whether an alarm is drawn depends on where the log ended when a monitor was started; these are reported of any log.
_REPORTED_ALWAYS: Final = ("group_created", "group_deleted", "member_joined", "member_left", "rebalance_completed")

_EVENTS_TOTAL: Final = "kafka_group_events_total"
_OFFSET_TOTALS: Final = ("kafka_group_commits_total", "kafka_group_offset_rewinds_total")
_GROUP_TOTALS: Final = {
    "rebalances": "kafka_group_rebalances_total",
    "rounds_lost": "kafka_group_rebalance_rounds_lost_total",
    "partitions_moved": "kafka_group_partitions_moved_total",
    "stale_claims": "kafka_group_stale_claims_total",
    "static_replacements": "kafka_group_static_member_replacements_total",
    "static_returns": "kafka_group_static_member_returns_total",
    "rebalances_saved": "kafka_group_rebalances_saved_total",
    "rebalances_avoidable": "kafka_group_rebalances_avoidable_total",
}


def totals(replica: Replica) -> Counts:
    """The same of a replica."""
    found: Counts = {}
    for group, state in replica.groups.items():
        if not state.exists:
            continue
        found |= {(name, group): getattr(state.counters, counter) for counter, name in _GROUP_TOTALS.items()}
        list(replica.offsets(group))
    for (group, topic, _), bucket in replica.buckets.items():
        for name, count in (("commits", bucket.commits), ("offset_rewinds", bucket.rewinds)):
            key = (f"kafka_group_{name}_total", group, topic)
            found[key] = found.get(key, 0) + count
    # A counter begins with its first count.
    return {key: count for key, count in found.items() if count or key[0] == "kafka_group_commits_total"}


def _numbers(directory: Path) -> int:
    """The largest number that a file of a Spark log is named by; -1 for none."""
    names = [path.name for path in directory.glob("[0-9]*")]
    return max((int(name) for name in names if name.isdecimal()), default=-1)


def _at_rest(truth: Described) -> bool:
    """No rebalance is under way, and the members have committed all there is."""
    return all(
        truth[group]["state"] == "Stable"
        and len(truth[group]["members"]) == 2
        and all(lag == 0 for _, _, lag in truth[group]["offsets"].values())
        for group in (CLASSIC, CONSUMER)
    )
