"""What the parts share: a broker, logs on it, and monitors that run as their users run them.

A log of given groups is written once and used by every part that asks for it; a monitor that has read it stays up
until a part needs another, so that several parts of the same size cost one start.
"""

import gzip
import json
import shlex
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from io import TextIOWrapper
from pathlib import Path
from typing import Any, Final
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import yaml

from bench import log, truth, writer
from bench.log import Commits, Expected, LogRecord, Plan
from bench.process_tree import ProcessTree
from lab.monitor_process import CommandProcess, MonitorProcess, until
from streaming.base import gc_tuning
from streaming.config.loading import Config
from streaming.demo.embedded_broker import EmbeddedBroker
from streaming.demo.verifiable_consumer import create_topics
from streaming.kafka import broker_queries, client_settings
from streaming.kafka.permissions import OFFSETS_TOPIC
from streaming.spark import session

READY_SECONDS: Final = 300.0
ANSWER_SECONDS: Final = 300.0
"""How long the first page of a million groups may take before the part fails."""

_RIGHT_SECONDS: Final = 60.0
"""How long after the last record the page may take to show it before it counts as wrong."""

_BATCH_SECONDS: Final = 60.0
"""How long a micro-batch may take on a machine that does much else."""

AHEAD: Final = 4
"""Records in each partition of a consumed topic beyond the last commit of the log: lag is a figure, and known."""

_LOG4J: Final = Path(__file__).resolve().parent / "log4j2.properties"
_PROGRESS: Final = "made progress: "


@dataclass(slots=True)
class Log:
    """A coordinator's log on the broker."""

    plan: Plan
    topic: str
    expected: Expected
    topic_ids: dict[str, str]
    ends: dict[str, int]
    """Consumed topic → where each of its partitions ends."""

    def commits(self, groups: int) -> list[Commits]:
        """The partitions of the first so many groups, for a trickle."""
        return [commit for name in self.plan.names[:groups] for commit in self.commits_of(name)]

    def commits_of(self, name: str) -> list[Commits]:
        """The partitions of one group."""
        return [Commits(self.plan, name, at, self.topic_ids) for at in range(self.plan.partitions_of(name))]


class Monitored(MonitorProcess):
    """`group-monitor run --config FILE`, whose Spark writes a line of its progress after every micro-batch.

    Attributes:
        options: its configuration.
        started: when it was started, by the monotonic clock.
        ready_seconds: how long after that it was ready, once that was waited for.
        tree: its processes.
    """

    def __init__(self, directory: Path, config: dict[str, Any]) -> None:
        """Start it with this configuration."""
        directory.mkdir(parents=True, exist_ok=True)
        self.config = directory / "monitor.yaml"
        self.config.write_text(yaml.safe_dump(config), encoding="utf-8")
        self.options = config
        self.spark_log = Path(config["state"]["dir"]) / "spark.log"
        self.started = time.monotonic()
        self.ready_seconds = 0.0
        CommandProcess.__init__(self, directory, "run", "--config", str(self.config))
        self._url = None
        self.tree = ProcessTree(self.pid)

    def get(self, path: str) -> tuple[int, str]:
        """Status and body of an answer, however large. Raises OSError."""
        try:
            with urlopen(self.url + path, timeout=ANSWER_SECONDS) as response:  # noqa: S310 - our own address
                return response.status, response.read().decode("utf-8")
        except HTTPError as error:
            return error.code, error.read().decode("utf-8")

    def lines(self) -> Iterator[str]:
        """Lines of /metrics as they come: of a million groups there is no memory for all of it. Raises OSError."""
        request = Request(self.url + "/metrics", headers={"Accept-Encoding": "gzip"})  # noqa: S310 - our own address
        with (
            urlopen(request, timeout=ANSWER_SECONDS) as response,  # noqa: S310 - likewise
            gzip.open(response) as page,
        ):
            yield from TextIOWrapper(page, encoding="utf-8", newline="\n")

    def await_ready(self, seconds: float = READY_SECONDS) -> None:
        """Wait until /ready says yes."""
        super().await_ready(seconds)
        self.ready_seconds = self.ready_seconds or time.monotonic() - self.started

    def progress(self) -> list[dict[str, Any]]:
        """Spark's own report of every micro-batch of this run so far."""
        decoder = json.JSONDecoder()
        text = self.spark_log.read_text(encoding="utf-8", errors="replace")
        found = []
        # The last one may still be being written.
        with suppress(ValueError):
            for part in text.split(_PROGRESS)[1:]:
                report, _ = decoder.raw_decode(part)
                found.append(report)
        return found

    def batches_since(self, count: int) -> list[dict[str, Any]]:
        """Reports of the micro-batches after the first `count`; waits until there is one.

        Raises:
            WrongResult: none ended for a minute.
        """
        deadline = time.monotonic() + _BATCH_SECONDS
        while len(reports := self.progress()) <= count:
            if time.monotonic() > deadline:
                raise truth.WrongResult(f"no micro-batch ended within {_BATCH_SECONDS:g} s")
            time.sleep(0.1)
        return reports[count:]

    def require(self, read: Log, *, offsets: bool = True) -> None:
        """Wait until /metrics shows all that the log leads to, lag included; without `offsets`, not single ones.

        Raises:
            WrongResult: it does not.
        """
        deadline = time.monotonic() + _RIGHT_SECONDS
        while True:
            try:
                shown = truth.of_metrics(self.lines())
                truth.require(read.expected.with_lag(read.ends, offsets=offsets), shown, "/metrics")
            except truth.WrongResult:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.5)
            else:
                return


@dataclass(slots=True)
class Stage:
    """One run of the benchmark; `open_stage` makes it and ends it.

    Attributes:
        directory: for all files.
        jars_dir: the broker's jars.
    """

    directory: Path
    jars_dir: Path
    _logs: dict[tuple[Plan, str], Log] = field(default_factory=dict)
    _monitors: ExitStack = field(default_factory=ExitStack)
    _broker: EmbeddedBroker | None = None
    _filled: dict[str, int] = field(default_factory=dict)
    _running: tuple[str, Monitored] | None = None
    """Topic of the log that it reads, and the monitor."""
    _count: int = 0

    @property
    def broker(self) -> EmbeddedBroker:
        """A real one, started when it is asked for first, with a heap for logs of some million records."""
        if self._broker is None:
            broker = EmbeddedBroker(self.directory / "broker", jars_dir=self.jars_dir, heap="768m")
            broker.start()
            self._broker = broker
        return self._broker

    def log(self, plan: Plan, purpose: str = "") -> Log:
        """The log of a plan, written when it is asked for first; another for each purpose that writes on to it."""
        held = self._logs.get((plan, purpose))
        if held is None:
            (held,) = self._written(plan, [f"coordinator-log-{len(self._logs)}"])
            self._logs[plan, purpose] = held
        return held

    def coordinator_log(self, plan: Plan) -> Log:
        """The log of a plan in `__consumer_offsets` itself, read by the broker's coordinator as it starts again."""
        (read,) = self._written(plan, [OFFSETS_TOPIC])
        self.broker.stop()
        self.broker.start()
        return read

    def config(self, log_: Log, **sections: dict[str, Any]) -> dict[str, Any]:
        """A configuration like a user's: where the log and the state are, the rest as by default.

        Args:
            log_: what is monitored.
            sections: more options by section.
        """
        self._count += 1
        given: dict[str, dict[str, Any]] = {
            "cluster": {"name": "bench"},
            "kafka": {"bootstrap_servers": self.broker.bootstrap_servers, "offsets_topic": log_.topic},
            "state": {"dir": str(self.directory / f"state-{self._count}")},
            "http": {"port": 0},
            "metrics": {"partition_series": True},
            "spark": {"conf": {"spark.driver.extraJavaOptions": _java_options()}},
        }
        for name, options in sections.items():
            given[name] = {**given.get(name, {}), **options}
        Config.model_validate(given)
        return given

    def start(self, config: dict[str, Any]) -> Monitored:
        """Start a monitor, any other one having been stopped; it stops with the stage."""
        self.stop()
        self._count += 1
        monitor = Monitored(self.directory / f"monitor-{self._count}", config)
        self._monitors.enter_context(monitor)
        return monitor

    def running(self, log_: Log) -> Monitored:
        """A monitor of this log that is ready: the one that runs, if it is of this log, all else by default."""
        held = self.held(log_)
        if held is None:
            held = self.start(self.config(log_))
            held.await_ready()
            self.hold(log_, held)
        return held

    def held(self, log_: Log) -> Monitored | None:
        """The monitor that runs, if it is of this log and ready."""
        return self._running[1] if self._running is not None and self._running[0] == log_.topic else None

    def hold(self, log_: Log, monitor: Monitored) -> None:
        """Let others that ask for one of this log have this one, which is ready."""
        self._running = (log_.topic, monitor)

    def stop(self) -> None:
        """End the monitor that runs, if any, as a service manager would."""
        self._running = None
        self._monitors.close()

    def close(self) -> None:
        """End everything."""
        self.stop()
        if self._broker is not None:
            self._broker.stop()

    def shares(self, plan: Plan, count: int) -> list[Log]:
        """The log of a plan dealt out to so many topics of its layout: in each what one of so many executors reads."""
        return self._written(plan, [f"coordinator-share-{number}" for number in range(count)])

    def _written(self, plan: Plan, topics: Sequence[str]) -> list[Log]:
        """Write a log to topics: of each the same number of partitions has records, and no partition's go to two."""
        servers = self.broker.bootstrap_servers
        consumed = dict.fromkeys(plan.topic_names, plan.partitions)
        made = [topic for topic in topics if topic != OFFSETS_TOPIC]
        create_topics(servers, {**dict.fromkeys(made, log.OFFSETS_PARTITIONS), **consumed})
        ids = self._topic_ids(plan)
        writer.write(servers, self._consumed(plan))
        expected, shares = Expected(), [Expected() for _ in topics]

        def share(partition: int) -> int:
            return partition * len(topics) // log.OFFSETS_PARTITIONS

        def placed() -> Iterator[tuple[str, LogRecord]]:
            for record in log.records(plan, expected, int(time.time() * 1000), ids):
                number = share(record.partition)
                shares[number].records += 1
                yield topics[number], record

        begun = time.monotonic()
        writer.write(servers, placed())
        seconds = time.monotonic() - begun
        gc_tuning.give_back()
        note(f"{expected.records} records of {len(expected.groups)} groups written in {seconds:.1f} s")
        for name, group in expected.groups.items():
            shares[share(log.shard(name))].groups[name] = group
        return [Log(plan, topic, of, ids, self._filled) for topic, of in zip(topics, shares, strict=True)]

    def _topic_ids(self, plan: Plan) -> dict[str, str]:
        kafka = Config.model_validate({"kafka": {"bootstrap_servers": self.broker.bootstrap_servers}}).kafka
        described: list[broker_queries.TopicDescription] = []

        def all_there() -> bool:
            with client_settings.admin_client(kafka, "bench") as admin:
                described[:] = broker_queries.describe_topics(admin, plan.topic_names)
            return len(described) == plan.topics

        until(all_there, 60, "topics that were created are not described")
        return {topic.name: topic.id for topic in described if topic.id is not None}

    def _consumed(self, plan: Plan) -> Iterator[tuple[str, LogRecord]]:
        """Records that bring the consumed topics to the offsets that commits will say, and a little further."""
        now_ms = int(time.time() * 1000)
        for topic in plan.topic_names:
            missing = max(0, plan.rounds + AHEAD - self._filled.get(topic, 0))
            self._filled[topic] = self._filled.get(topic, 0) + missing
            for partition in range(plan.partitions):
                yield from [(topic, LogRecord(partition, now_ms, b"", b""))] * missing


@contextmanager
def open_stage(directory: Path, *, jars_dir: Path) -> Iterator[Stage]:
    """A stage; everything on it is ended and removed afterwards."""
    with ExitStack() as stack:
        directory.mkdir(parents=True, exist_ok=True)
        stack.callback(shutil.rmtree, directory, ignore_errors=True)
        stage = Stage(directory, jars_dir)
        stack.callback(stage.close)
        yield stage


def note(text: str) -> None:
    """Say what is going on."""
    sys.stderr.write(f"bench: {text}\n")
    sys.stderr.flush()


def _java_options() -> str:
    """The monitor's own options, with a log configuration that lets progress reports through."""
    own = [option for option in session.java_options() if "log4j2" not in option]
    return shlex.join([*own, f"-Dlog4j2.configurationFile={_LOG4J.as_uri()}"])
