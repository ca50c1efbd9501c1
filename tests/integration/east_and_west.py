"""Several monitors at once, one story: of two clusters in one process, of one cluster twice, one that stands by.

One process monitors the cluster `east` and writes what it knows to topics there, monitors `east` once more as
`again`, and monitors the cluster `west`; of two further ones nothing comes: `nowhere` has no brokers, and `foreign` the
state directory of another cluster. A second process serves from the topics alone; a third stands by with the
configuration of `east`. The broker of `west` is killed and comes back; then the first process is killed, members come
and go while no one watches, and the standby takes over.
"""

import json
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient

from lab.monitor_process import (
    CommandProcess,
    MonitorProcess,
    OneOfSeveral,
    configuration,
    parse_metrics,
    until,
)
from streaming.config.kafka_sections import KafkaSection
from streaming.config.loading import load
from streaming.demo import child_processes
from streaming.demo.embedded_broker import EmbeddedBroker
from streaming.demo.verifiable_consumer import Protocol, create_topics
from streaming.kafka.topic_reader import TopicReader
from streaming.recording.file_format import RecordedRecord
from streaming.recording.recorder import LogRecorder
from streaming.sinks import topic_format
from streaming.sinks.topic_setup import sink_findings
from tests.faults.coordinator_log import PARTITIONS, Answer, replayed
from tests.faults.reported import shown
from tests.in_process_members import InProcessMember

EVENTS, GROUPS = "monitor-events", "monitor-groups"
SINK: Final = f"kafka_sink: {{events_topic: {EVENTS}, groups_topic: {GROUPS}, groups_interval_ms: 300}}\n"
CLASSIC, CONSUMER, SIMPLE, DOOMED, UNSEEN = "classic-service", "consumer-service", "simple", "doomed", "made-unseen"
WESTERN: Final = "western"
ALL_OF_EAST: Final = frozenset({CLASSIC, CONSUMER, SIMPLE, DOOMED, UNSEEN})
SMALL: Final = ("--set", "spark.shuffle_partitions=1", "--set", "source.tasks=1")
"""Of each query: it takes half as many Python workers."""
QUICK: Final = {"broker.session.timeout.ms": "3000", "broker.heartbeat.interval.ms": "500"}
"""A broker that was killed is let in again once its session is over."""
PATIENCE_SECONDS: Final = 120.0
NOBODY: Final = "127.0.0.1:1"
WEST_ID: Final = "d2VzdGVybi1jbHVzdGVyMQ"

MEMBERS: Final[tuple[tuple[str, str, Protocol], ...]] = (
    ("classic-1", CLASSIC, "classic"),
    ("classic-2", CLASSIC, "classic"),
    ("consumer-1", CONSUMER, "consumer"),
)

# What is of the process that is asked, or of the moment, and what starts again with a monitor.
OF_ONE_PROCESS: Final = (
    "group_monitor_batch_seconds",
    "group_monitor_record_to_metric_seconds",
    "group_monitor_end_offset_age_seconds",
    "group_monitor_source_age_seconds",
    "group_monitor_sink_",
    "group_monitor_replica_lag_records",
    "process_",
)
OF_A_MOMENT: Final = ("_age_seconds", "_lag_seconds", "rebalancing_seconds", "unsettled_seconds", "mixed_seconds")
Samples = dict[str, dict[tuple[tuple[str, str], ...], float]]
Shown = tuple[dict[str, Any], Samples]
"""Every GROUP with its lag, and every figure that is not of the process itself."""


@dataclass
class Reported:
    """What was seen while the story was played."""

    check: dict[str, str] = field(default_factory=dict)
    """Finding → status, of a `check` that made the topics."""
    unfit: list[str] = field(default_factory=list)
    """What `check` finds amiss with a compacted topic of events, and one of groups that is not there."""
    compared: dict[str, tuple[Shown, Shown]] = field(default_factory=dict)
    """When → what the monitor shows, and who serves."""
    twice: tuple[dict[str, Any], dict[str, Any]] = field(default_factory=lambda: ({}, {}))
    """Groups and events by id of `east` and `again`, two monitors of one cluster."""
    labels: dict[str, set[str]] = field(default_factory=dict)
    """Monitor → values of the label `cluster`."""
    groups_of: dict[str, set[str]] = field(default_factory=dict)
    """Monitor → groups."""
    coordinated: set[str] = field(default_factory=set)
    """Groups that the brokers of `east` know of while three monitors read there."""
    outage: dict[str, Any] = field(default_factory=dict)
    away: dict[str, Any] = field(default_factory=dict)
    takeover_seconds: float = 0.0
    """From the kill of the one to /ready of the other."""
    log: list[RecordedRecord] = field(default_factory=list)
    """All of the coordinator's log of `east`."""
    answer: Answer = field(default_factory=Answer)
    """What follows from it, undisturbed."""
    views: dict[str, Any] = field(default_factory=dict)
    """Groups as the standby shows them in the end, with what the log alone shows."""
    events: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    """Who → the events it shows in the end."""
    records: list[tuple[str, tuple[str, ...], Any]] = field(default_factory=list)
    """(topic, key, value) of all records of both topics."""
    addresses: list[str] = field(default_factory=list)
    """What the process of several wrote to standard output."""
    refused: tuple[int, list[str]] = (0, [])
    errors: dict[str, list[str]] = field(default_factory=dict)


class Story:
    """The clusters, their members, and the processes that look at them."""

    def __init__(self, stack: ExitStack, directory: Path) -> None:
        self.reported = Reported()
        self._stack = stack
        self._directory = directory
        self._west = EmbeddedBroker(
            directory / "west-broker",
            offsets_partitions=PARTITIONS,
            heap="384m",
            properties=QUICK,
            cluster_id=WEST_ID,
        )
        stack.enter_context(self._west)
        east = stack.enter_context(EmbeddedBroker(directory / "broker", offsets_partitions=PARTITIONS))
        self._servers = east.bootstrap_servers
        with ThreadPoolExecutor() as at_once:
            list(at_once.map(create_topics, (self._servers, self._west.bootstrap_servers), ({"orders": 6},) * 2))

    def tell(self) -> Reported:
        """From the first start to the last end."""
        self._make_topics()
        both = self._several()
        served = self._process("served", "serve")
        east, again, west = (OneOfSeveral(both, cluster) for cluster in ("east", "again", "west"))
        for each in (east, again, west):
            each.await_ready()
        # Its own start is no part of the takeover, so it has all the time it needs.
        standby = self._process("standby", "run", "--standby")
        second = self._process("second", "run")
        members = {name: self._join(group, protocol) for name, group, protocol in MEMBERS}
        for group in (SIMPLE, DOOMED):
            self._commit(group, 3)
        self._commit(WESTERN, 1, self._west.bootstrap_servers)
        served.await_ready()
        until(lambda: {CLASSIC, CONSUMER, SIMPLE, DOOMED} <= served.groups().keys(), PATIENCE_SECONDS, "no groups")
        until(lambda: WESTERN in west.groups(), PATIENCE_SECONDS, "no group of west")
        self._lose_west(east, again, west)
        self._compare("at first", east, served, with_events=True)
        self._look_at_each(east, again, west)
        self.reported.refused = second.await_end(PATIENCE_SECONDS), second.error_lines()
        until(lambda: _happened(standby, "standing_by"), PATIENCE_SECONDS, "no monitor stands by")
        self.reported.errors["both"] = both.error_lines()
        self.reported.addresses = both.output_lines()

        killed = time.monotonic()
        both.kill_alone()
        members["classic-2"].close()
        self._commit(SIMPLE, 5)
        self._commit(UNSEEN, 1)
        self.reported.away = {
            "groups": served.groups().keys(),
            "age": _value(served, "group_monitor_source_age_seconds"),
        }
        standby.await_ready(PATIENCE_SECONDS)
        self.reported.takeover_seconds = time.monotonic() - killed
        _delete(self._servers, DOOMED)
        for member in members.values():
            member.close()
        until(lambda: DOOMED not in served.groups() and UNSEEN in served.groups(), PATIENCE_SECONDS, "not followed")
        until(lambda: not _members(standby), PATIENCE_SECONDS, "members are not gone")
        self._compare("after the takeover", standby, served)
        self._read_log(standby)
        self.reported.events = {"standby": standby.events(limit="10000"), "served": served.events(limit="10000")}
        self._read_topics()
        self.reported.errors |= {"standby": standby.error_lines(), "served": served.error_lines()}
        standby.terminate()
        assert 0 == standby.await_end(60)
        return self.reported

    def _process(self, name: str, *command: str) -> MonitorProcess:
        process = MonitorProcess(
            self._directory / name,
            self._servers,
            state=self._directory / "state",
            settings=SINK,
            command=(*command, *SMALL),
            cluster="east",
        )
        return self._stack.enter_context(process)

    def _several(self) -> CommandProcess:
        """The process with three monitors, and two more that never come to be one."""
        west = self._west.bootstrap_servers
        foreign = self._directory / "state-foreign"
        foreign.mkdir()
        (foreign / "monitor.json").write_text('{"cluster_id": "of-somebody-else"}\n', "utf-8")
        words: list[str] = []
        for name, servers, state, more in (
            ("nowhere", NOBODY, "state-nowhere", ""),
            ("foreign", west, "state-foreign", ""),
            ("east", self._servers, "state", SINK),
            ("again", self._servers, "state-again", ""),
            ("west", west, "state-west", ""),
        ):
            file = self._directory / f"{name}.yaml"
            file.write_text(configuration(servers, self._directory / state, name) + more, "utf-8")
            words += ["--config", str(file)]
        return self._stack.enter_context(CommandProcess(self._directory / "both", "run", *words, *SMALL))

    def _make_topics(self) -> None:
        config = self._directory / "check.yaml"
        config.write_text(configuration(self._servers, self._directory / "state") + SINK, "utf-8")
        made = sink_findings(load(config), create=True)
        self.reported.check = {of.name: f"{of.status}: {of.detail}" for of in made}
        swapped = {"kafka_sink.events_topic": GROUPS, "kafka_sink.groups_topic": "not-there"}
        self.reported.unfit = [
            of.detail for of in sink_findings(load(config, overrides=swapped)) if of.status == "fail"
        ]

    def _lose_west(self, east: MonitorProcess, again: MonitorProcess, west: MonitorProcess) -> None:
        """Its broker is killed; when that is known, commits come to the other cluster; then it is back."""
        process = self._west._process
        assert process is not None
        child_processes.kill(process)
        self._west._process = None
        until(lambda: _happened(west, "end_offsets_unavailable"), PATIENCE_SECONDS, "west is not missed")
        for each, offset in ((east, 4), (again, 5)):
            self._commit(SIMPLE, offset)
            until(lambda: _committed(each, SIMPLE) >= offset, PATIENCE_SECONDS, "west holds up east")  # noqa: B023 - called here
        self.reported.outage = {
            "ready": [each.get("/ready")[0] for each in (east, again)],
            "west": [west.get(path)[0] for path in ("/healthz", "/metrics", f"/api/v1/groups/{WESTERN}")],
            "sampled": [_value(each, "group_monitor_end_offset_age_seconds") for each in (east, again, west)],
        }
        self._west.start()
        self._commit(WESTERN, 2, self._west.bootstrap_servers)
        until(lambda: _committed(west, WESTERN) == 2, PATIENCE_SECONDS, "west does not go on")
        until(lambda: _happened(west, "end_offsets_available_again"), PATIENCE_SECONDS, "west is not sampled again")
        self.reported.outage["lines"] = {of: each.error_lines() for of, each in (("east", east), ("again", again))}

    def _look_at_each(self, east: MonitorProcess, again: MonitorProcess, west: MonitorProcess) -> None:
        """What two monitors of one cluster say at one moment, and of whom each of the three speaks."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            first, second = ({"groups": _groups(of), "events": _events_by_id(of)} for of in (east, again))
            if first == second or time.monotonic() > deadline:
                self.reported.twice = first, second
                break
            time.sleep(0.3)
        for name, each in (("east", east), ("again", again), ("west", west)):
            self.reported.labels[name] = {dict(labels)["cluster"] for of in each.samples().values() for labels in of}
            self.reported.groups_of[name] = set(each.groups())
        admin = AdminClient({"bootstrap.servers": self._servers, "log_level": 2})
        self.reported.coordinated = {group.group_id for group in admin.list_consumer_groups().result(30).valid}

    def _join(self, group: str, protocol: Protocol) -> InProcessMember:
        return self._stack.enter_context(InProcessMember(self._servers, group, "orders", protocol=protocol))

    def _commit(self, group: str, offset: int, servers: str | None = None) -> None:
        consumer = Consumer({"bootstrap.servers": servers or self._servers, "group.id": group, "log_level": 2})
        consumer.commit(offsets=[TopicPartition("orders", 0, offset)], asynchronous=False)
        consumer.close()

    def _compare(
        self, when: str, monitor: MonitorProcess, served: MonitorProcess, *, with_events: bool = False
    ) -> None:
        """Until both say the same, and the first says it before and after the second does."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            before, found, after = (_shown(each, with_events=with_events) for each in (monitor, served, monitor))
            if before == found == after or time.monotonic() > deadline:
                self.reported.compared[when] = (after, found)
                return
            time.sleep(0.3)

    def _read_log(self, standby: MonitorProcess) -> None:
        recorder = LogRecorder(KafkaSection(bootstrap_servers=self._servers), list(range(PARTITIONS)))
        with closing(recorder):
            self.reported.log = list(recorder.records())
        self.reported.answer = replayed(self.reported.log)
        self.reported.views = shown(standby, self.reported.answer)

    def _read_topics(self) -> None:
        with closing(TopicReader({"bootstrap.servers": self._servers}, {EVENTS: None, GROUPS: None})) as reader:
            at_end = False
            while not at_end:
                at_end = reader.at_first_end
                for topic, key, value in reader.poll():
                    name = topic_format.read_key(key) if topic == GROUPS else ((key or b"").decode(),)
                    self.reported.records.append((topic, name, None if value is None else json.loads(value)))


def reported_in(directory: Path) -> Reported:
    """The story, played; nothing of it runs any more."""
    with ExitStack() as stack:
        return Story(stack, directory).tell()


def names_in(records: list[RecordedRecord]) -> set[str]:
    """Groups of which there is any record. The name comes behind the type of the key and its own length."""
    return {record.key[4 : 4 + int.from_bytes(record.key[2:4])].decode() for record in records}


def _shown(monitor: MonitorProcess, *, with_events: bool) -> Shown:
    figures = {
        name: values
        for name, values in parse_metrics(monitor.get("/metrics")[1]).items()
        if not name.startswith(OF_ONE_PROCESS)
        and not name.endswith(OF_A_MOMENT)
        and (with_events or name != "kafka_group_events_total")
    }
    return _groups(monitor), figures


def _groups(monitor: MonitorProcess) -> dict[str, Any]:
    groups = monitor.groups()
    for group in groups.values():
        _without_moment(group)
    return groups


def _without_moment(value: Any) -> None:
    """Leave out of a GROUP what grows while one looks."""
    if isinstance(value, dict):
        for name in [name for name in value if name.endswith(("lag_seconds", "lag_method", "_ms"))]:
            del value[name]
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        _without_moment(inner)


def _events_by_id(monitor: MonitorProcess) -> dict[str, Any]:
    return {event["id"]: event for event in monitor.events(limit="10000")}


def _happened(monitor: MonitorProcess, event: str) -> bool:
    return any(f"event={event} " in f"{line} " for line in monitor.error_lines())


def _committed(monitor: MonitorProcess, group: str) -> int:
    return max((of["offset"] for of in monitor.groups().get(group, {}).get("offsets", ())), default=-1)


def _value(monitor: MonitorProcess, name: str) -> float:
    (value,) = monitor.samples()[name].values()
    return value


def _members(monitor: MonitorProcess) -> int:
    return sum(len(group["members"]) for group in monitor.groups().values())


def _delete(bootstrap_servers: str, group: str) -> None:
    # The future is the client's: without it no one answers.
    admin = AdminClient({"bootstrap.servers": bootstrap_servers})
    (deleted,) = admin.delete_consumer_groups([group]).values()
    deleted.result(30)
