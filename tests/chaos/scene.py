"""What chaos is done to: three brokers, eighteen groups with real clients, and a monitor that is started again."""

import json
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Final

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import AlterConfigOpType, ConfigEntry, ConfigResource
from confluent_kafka.admin._resource import ResourceType
from confluent_kafka.cimpl import NewTopic

from lab.monitor_process import MonitorProcess, until
from streaming.checkpoint.identity import REBUILD
from tests.chaos.apart import Apart
from tests.chaos.clients import (
    PARTITIONS,
    QUIET,
    Commit,
    Committer,
    Load,
    Member,
    TransactionalCommitter,
    Working,
    Writer,
    name_in,
)
from tests.faults.leaders import Leaders
from tests.faults.three_brokers import ThreeBrokers, _Node

OFFSETS: Final = "__consumer_offsets"
TOPICS: Final = ("orders", "payments", "visits")
COMMITTED: Final = "committed"
"""Topic of the groups that only commit. It is never made again, so that their lag can be known."""
RECORDS_A_SECOND: Final = 12

OFFSETS_HELD_BY: Final = ((2, 3), (3, 2), (2, 3), (1, 2), (3, 1), (2, 1))
"""Brokers that hold each offsets partition; the first three may lose what was written last, or have no leader."""
MAY_BE_LOST: Final = frozenset({0, 1, 2})
"""Transactions are kept out of these: one whose marker is lost stays open for good, and Kafka's readers wait for it."""

BROKERS: Final = {
    "offsets.topic.replication.factor": "2",
    # The smallest that there may be.
    "offsets.topic.segment.bytes": "1048576",
    "log.cleaner.backoff.ms": "2000",
    "auto.leader.rebalance.enable": "true",
    "leader.imbalance.check.interval.seconds": "10",
    "leader.imbalance.per.broker.percentage": "0",
    "group.consumer.min.session.timeout.ms": "6000",
    "group.consumer.session.timeout.ms": "8000",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "2000",
}

OF_OFFSETS: Final = {
    "unclean.leader.election.enable": "true",
    # Short segments, and an eager cleaner: what is read again after a while was compacted.
    "segment.ms": "20000",
    "min.cleanable.dirty.ratio": "0.1",
}
"""Settings of the offsets topic."""

MEMBERS: Final = (
    # (stem of the name, protocol, assignor, static, members)
    ("classic-range", "classic", "range", False, 2),
    ("classic-robin", "classic", "roundrobin", False, 3),
    ("classic-sticky", "classic", "cooperative-sticky", False, 2),
    ("classic-static", "classic", "range", True, 2),
    ("classic-alone", "classic", "range", False, 1),
    ("consumer-a", "consumer", None, False, 2),
    ("consumer-b", "consumer", None, False, 3),
    ("consumer-c", "consumer", None, False, 1),
    ("consumer-static", "consumer", None, True, 2),
    ("consumer-alone-static", "consumer", None, True, 1),
)


def say(line: str) -> None:
    """Print a line with the time."""
    print(f"{time.strftime('%H:%M:%S')} {line}", flush=True)  # noqa: T201 - what the harness is for


class Watched:
    """The monitor: killed now and then, and started again on its state directory as a service manager does.

    Attributes:
        in_hand: held by the thread that ends or starts it.
        process: the one that runs, or ran last.
        ended_alone: what it said last where it ended without being asked to.
    """

    def __init__(self, stack: ExitStack, directory: Path, servers: str) -> None:
        self._stack, self._directory, self._servers = stack, directory, servers
        self.in_hand = threading.RLock()
        self.runs = 0
        self.ended_alone: list[str] = []
        self.process = self.start()

    def start(self, *arguments: str) -> MonitorProcess:
        """Start the next one."""
        with self.in_hand:
            self.runs += 1
            self.process = self._stack.enter_context(
                MonitorProcess(
                    self._directory / f"run-{self.runs}",
                    self._servers,
                    state=self._directory / "state",
                    command=("run", *arguments),
                )
            )
            return self.process

    def get(self, path: str) -> tuple[int, str]:
        """Status and body of an answer of the one that runs now.

        Raises:
            OSError: no answer, or it does not listen yet.
        """
        process = self.process
        if process.exit_status is not None or not process._where():
            raise ConnectionError("it does not listen")
        return process.get(path)

    def is_ready(self) -> bool:
        """Whether the one that runs now is."""
        with suppress(OSError):
            return self.get("/ready")[0] == 200
        return False

    def look_after(self) -> None:
        """Start it again if it ended by itself."""
        if not self.in_hand.acquire(blocking=False):
            return
        try:
            if self.process.exit_status is None:
                return
            said = (self.process.error_lines() or ["nothing"])[-1]
            self.ended_alone.append(f"status {self.process.exit_status}: {said}")
            say(f"the monitor ended by itself, {self.ended_alone[-1]}")
            # An operator does what the line says.
            self.start(*([REBUILD] if REBUILD in said else []))
        finally:
            self.in_hand.release()


@dataclass
class Scene:
    """All of it; use `set_up`.

    Attributes:
        chance: what decides.
        calm: set while nothing is to be done any more.
        moved: seconds from a leader's move to a new commit on the page, with what was done.
    """

    stack: ExitStack
    brokers: ThreeBrokers
    monitor: Watched
    admin: AdminClient
    apart: Apart
    leaders: Leaders
    load: Load
    members: dict[str, list[Member]] = field(default_factory=dict)
    committers: dict[int, Committer] = field(default_factory=dict)
    workers: list[Working] = field(default_factory=list)
    calm: threading.Event = field(default_factory=threading.Event)
    moved: list[tuple[float, str]] = field(default_factory=list)

    @property
    def servers(self) -> str:
        return self.brokers.bootstrap_servers

    def wait(self, seconds: float) -> None:
        """Wait, but not once it is to be calm."""
        self.calm.wait(seconds)

    def names_in(self, partition: int) -> list[str]:
        """Groups that hash to an offsets partition, the one that only commits first; and a name that no group has."""
        count = len(OFFSETS_HELD_BY)
        others = [*self.members, *(of.group for of in self.workers if isinstance(of, TransactionalCommitter))]
        found = [name for name in others if name == name_in(partition, count, name.rpartition("-")[0])]
        return [self.committers[partition].group, *found, name_in(partition, count, "nobody")]

    def heal(self, seconds: float = 120.0) -> None:
        """Have all brokers run, all partitions led, and all replicas whole."""
        for node in self.brokers.nodes.values():
            start_again(node)
        until(lambda: all(of.coordinates() for of in self.brokers.nodes.values()), seconds, "brokers do not come back")
        until(self._is_whole, seconds, lambda: f"not whole: {self.leaders.now()}, {self.leaders.in_sync()}")

    def _is_whole(self) -> bool:
        with suppress(KafkaException):
            self.make_topics()
            topics = self.admin.list_topics(timeout=10).topics
            return set(TOPICS) <= topics.keys() and all(
                of.leader >= 0 and len(of.isrs) == len(of.replicas)
                for topic in topics.values()
                for of in topic.partitions.values()
            )
        return False

    def make_topics(self) -> None:
        """Make those that are read and that there are not; raises KafkaException."""
        there = self.admin.list_topics(timeout=10).topics
        wanted = [NewTopic(name, PARTITIONS, 3) for name in (*TOPICS, COMMITTED) if name not in there]
        for made in (self.admin.create_topics(wanted) if wanted else {}).values():
            made.result(20)

    def first_commit_after(self, partition: int, moment: float, seconds: float = 60.0) -> Commit:
        """The first commit in an offsets partition that was sent after a moment, once brokers have acknowledged it."""
        found: list[Commit] = []

        def is_there() -> bool:
            commit = self.committers[partition].first_sent_after(moment)
            found.extend([] if commit is None else [commit])
            return bool(found)

        until(is_there, seconds, f"brokers take no commit in partition {partition}")
        return found[0]

    def shown_number(self, partition: int) -> int:
        """Number of the last commit in an offsets partition that the monitor shows; 0 where it shows none."""
        with suppress(OSError):
            status, body = self.monitor.get(f"/api/v1/groups/{self.committers[partition].group}")
            if status == 200:
                offsets = json.loads(body)["offsets"]
                # confluent-kafka writes the zero at the end of a C string, too.
                numbers = ((of["metadata"] or "").rstrip("\0") for of in offsets)
                return max((int(of) for of in numbers if of.isdigit()), default=0)
        return 0


def start_again(node: _Node) -> None:
    """Have a broker run, whatever was done to it."""
    if node.pid is not None and node.is_alive:
        node.thaw()
        return
    node.stop()
    node.start()


def set_up(stack: ExitStack, directory: Path, chance: Random) -> Scene:
    """Start all of it, and wait until the monitor is ready."""
    count = len(OFFSETS_HELD_BY)
    brokers = stack.enter_context(ThreeBrokers(directory / "brokers", offsets_partitions=count, properties=BROKERS))
    servers = brokers.bootstrap_servers
    admin = AdminClient({"bootstrap.servers": servers, **QUIET})
    leaders = Leaders(servers, OFFSETS)
    leaders.reassign(dict(enumerate(OFFSETS_HELD_BY)))
    settings = [
        ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET) for name, value in OF_OFFSETS.items()
    ]
    resource = ConfigResource(ResourceType.TOPIC, OFFSETS, incremental_configs=settings)
    for done in admin.incremental_alter_configs([resource]).values():
        done.result(20)
    load = Load()
    monitor = Watched(stack, directory / "monitor", servers)
    apart = Apart({"bootstrap.servers": servers, **QUIET})
    stack.callback(apart.close)
    scene = Scene(stack, brokers, monitor, admin, apart, leaders, load)
    scene.make_topics()
    stack.callback(_end, scene)
    for number, (stem, protocol, assignor, static, members) in enumerate(MEMBERS):
        group, topic = name_in(number % count, count, stem), TOPICS[number % len(TOPICS)]
        scene.members[group] = [
            Member(
                servers,
                group,
                topic,
                client_id=f"{group}-{member}",
                protocol=protocol,  # type: ignore[arg-type]  # one of two words
                assignor=assignor,
                static=static,
            )
            for member in range(members)
        ]
    for partition in range(count):
        group = name_in(partition, count, "commits")
        scene.committers[partition] = Committer(load, servers, group, COMMITTED, Random(chance.random()))
    transactional = [
        TransactionalCommitter(load, servers, name_in(partition, count, "transactional"), COMMITTED)
        for partition in sorted(set(range(count)) - MAY_BE_LOST)[:2]
    ]
    writer = Writer(load, servers, [*TOPICS, COMMITTED], RECORDS_A_SECOND)
    scene.workers = [*scene.committers.values(), *transactional, writer]
    for worker in scene.workers:
        worker.start()
    monitor.process.await_ready(300)
    return scene


def _end(scene: Scene) -> None:
    scene.load.ending.set()
    closing: list[Callable[[], None]] = [of.close for of in scene.workers]
    closing += [member.close for members in scene.members.values() for member in members]
    threads = [threading.Thread(target=close, daemon=True) for close in closing]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(40)
