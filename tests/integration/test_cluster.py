"""The same job where tasks run in executors: submitted to a cluster, which loses one, and on a cluster in little.

The log is a topic of ours of the same layout, so what has to be shown follows from what was written.
"""

import json
import os
import re
import shlex
import signal
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from coordinator_model.replica import Replica
from coordinator_model.state.findings import Position
from coordinator_model.views.group_view import group_view
from lab.builders import NOW_MS, RecordBytes, offset_commit
from lab.monitor_process import END_SECONDS, READY_SECONDS, MonitorProcess, until
from streaming.base.places import CACHE
from streaming.demo.embedded_broker import EmbeddedBroker
from tests.histories import recorded
from tests.integration.far_checkpoints import FAR, SPARK_JARS
from tests.integration.standalone import SPARK_HOME, StandaloneCluster
from tests.left_out import asked_for
from tests.test_docs import commands

pytestmark = [
    pytest.mark.broker,
    pytest.mark.spark,
    pytest.mark.timeout(600),
    asked_for("CLUSTERS"),
]

ROOT: Final = Path(__file__).resolve().parents[2]
TOPIC: Final = "coordinator-log"
PARTITIONS: Final = 4
GROUPS: Final = 40
COMMITS: Final = 25

SETTINGS: Final = {"GROUP_MONITOR__KAFKA__OFFSETS_TOPIC": TOPIC, "GROUP_MONITOR__SPARK__SHUFFLE_PARTITIONS": "2"}
IN_LITTLE: Final = "local-cluster[2,1,1024]"


class Submitted(MonitorProcess):
    """The command of docs/operate.md, with the test's own addresses and files in the place of its."""

    def __init__(self, directory: Path, servers: str, master: str, **others: Any) -> None:
        (command,) = (line for program, line in commands() if program == "docs/operate.md" and "spark-submit" in line)
        ours = {
            "spark-submit": SPARK_HOME / "bin" / "spark-submit",
            "spark://spark:7077": master,
            "streaming/submit.py": ROOT / "streaming" / "submit.py",
        }
        words = [str(ours.pop(word, word)) for word in shlex.split(command)]
        assert not ours
        self.program = tuple(words[: words.index("run")])
        settings = directory / "conf"
        settings.mkdir(parents=True)
        # Of a worker of two cores, so that there are two of them.
        (settings / "spark-defaults.conf").write_text("spark.executor.cores 1\nspark.executor.memory 512m\n", "utf-8")
        environment = {
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_CONF_DIR": str(settings),
            **others.pop("environment"),
        }
        super().__init__(directory, servers, environment=environment, **others)


@dataclass
class Log:
    """A topic of the coordinator's layout, and what follows from it."""

    servers: str
    replicas: dict[int, Replica] = field(default_factory=lambda: {n: Replica() for n in range(PARTITIONS)})
    ends: dict[int, int] = field(default_factory=lambda: dict.fromkeys(range(PARTITIONS), 0))

    def make(self) -> None:
        admin = AdminClient({"bootstrap.servers": self.servers})
        wanted = NewTopic(TOPIC, PARTITIONS, 1, config={"retention.ms": "-1"})
        admin.create_topics([wanted], operation_timeout=30)[TOPIC].result(30)
        self._producer = Producer({"bootstrap.servers": self.servers, "enable.idempotence": True})

    def write(self, partition: int, timestamp_ms: int, key: bytes, value: bytes | None) -> None:
        place = Position(partition, self.ends[partition], timestamp_ms)
        self.ends[partition] += 1
        self.replicas[partition].replay(place, key, value)
        self._producer.produce(TOPIC, value, key, partition=partition, timestamp=timestamp_ms)
        self._producer.poll(0)

    def flush(self) -> None:
        assert 0 == self._producer.flush(60)

    def views(self) -> dict[str, dict[str, Any]]:
        """GROUPs, as far as the log alone shows."""
        for replica in self.replicas.values():
            replica.settle()
        return {
            name: timeless(group_view(state, replica.offsets(name), {}))
            for replica in self.replicas.values()
            for name, state in replica.groups.items()
            if state.exists
        }

    def commits(self) -> dict[str, float]:
        """Group → how many commits it made."""
        counts: dict[str, float] = {}
        for replica in self.replicas.values():
            for (group, _, _), bucket in replica.buckets.items():
                counts[group] = counts.get(group, 0) + bucket.commits
        return counts


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Log]:
    with EmbeddedBroker(tmp_path_factory.mktemp("broker"), offsets_partitions=1) as broker:
        made = Log(broker.bootstrap_servers)
        made.make()
        for of in recorded().records:
            made.write(of.place.partition % PARTITIONS, of.place.timestamp_ms, of.key, of.value)
        made.flush()
        yield made


def write_commits(log: Log, first: int) -> None:
    """A stretch of commits of every group, forward all of them."""
    for number in range(first, first + COMMITS):
        for group in range(GROUPS):
            record: RecordBytes = offset_commit(f"commits-{group}", "t", number % 3, number)
            log.write(group % PARTITIONS, NOW_MS + number, *record)
    log.flush()


def await_answer(monitor: MonitorProcess, log: Log) -> None:
    """Wait until the monitor has read all there is; then it shows every group as it is, and each commit once."""
    expected, commits = log.views(), log.commits()
    until(lambda: shown(monitor, expected) == expected, READY_SECONDS, lambda: unlike(monitor, expected))
    assert commits == counted(monitor)


def timeless(view: dict[str, Any]) -> dict[str, Any]:
    """Without what is inferred from how long ago something was."""
    members = [{name: of for name, of in member.items() if name != "classic_protocol"} for member in view["members"]]
    return {**view, "members": members}


def counted(monitor: MonitorProcess) -> dict[str, float]:
    """Group → commits, as the metrics count them."""
    counts: dict[str, float] = {}
    for labels, value in monitor.samples()["kafka_group_commits_total"].items():
        group = dict(labels)["group"]
        counts[group] = counts.get(group, 0) + value
    return counts


def shown(monitor: MonitorProcess, expected: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Groups as the API answers them, of each what the log alone shows."""
    return {name: as_known(view, expected.get(name, {})) for name, view in monitor.groups().items()}


def unlike(monitor: MonitorProcess, expected: dict[str, dict[str, Any]]) -> str:
    found = shown(monitor, expected)
    return str([(name, found.get(name), of) for name, of in expected.items() if found.get(name) != of][:2])


def as_known(found: Any, known: Any) -> Any:
    """Of what is shown, the keys that are known: the board adds lag and the like, and what depends on the time."""
    if isinstance(known, dict) and isinstance(found, dict):
        return {key: as_known(found.get(key), of) for key, of in known.items()}
    if isinstance(known, list) and isinstance(found, list) and len(known) == len(found):
        return [as_known(*pair) for pair in zip(found, known, strict=True)]
    return found


def test_a_submitted_job_goes_on_without_an_executor(log: Log, tmp_path: Path) -> None:
    """On a standalone cluster by spark-submit; one of two executors is killed: the same answer, each commit once."""
    with ExitStack() as stack:
        cluster = stack.enter_context(StandaloneCluster(tmp_path / "cluster", cores=2))
        monitor = stack.enter_context(
            Submitted(tmp_path / "run", log.servers, cluster.master, state=tmp_path / "state", environment=SETTINGS)
        )
        monitor.await_ready(2 * READY_SECONDS)
        write_commits(log, 0)
        await_answer(monitor, log)
        until(lambda: len(cluster.executors()) == 2, 60, "there are not two executors")
        os.kill(cluster.executors()[0], signal.SIGKILL)
        write_commits(log, COMMITS)
        await_answer(monitor, log)
        monitor.interrupt()
        monitor.await_end(4 * END_SECONDS)
        until(lambda: not monitor.left_over(), 90, "processes of a submitted monitor are still there")


def test_a_cluster_in_little_gives_the_same_answer(log: Log, tmp_path: Path) -> None:
    """`run` with `local-cluster[2,1,1024]`: state, packing and code of ours hold in executors of their own."""
    environment = {**SETTINGS, "GROUP_MONITOR__SPARK__MASTER": IN_LITTLE}
    with MonitorProcess(tmp_path / "run", log.servers, state=tmp_path / "state", environment=environment) as monitor:
        monitor.await_ready(2 * READY_SECONDS)
        write_commits(log, 2 * COMMITS)
        await_answer(monitor, log)
        monitor.terminate()
        assert 0 == monitor.await_end(4 * END_SECONDS)
        until(lambda: not monitor.left_over(), 90, "processes of a monitor are still there")


def test_no_jar_of_s3_stands_before_one_of_sparks() -> None:
    """Amazon's library asks for Netty and SLF4J of versions with which Spark does not start."""
    for_s3, of_spark = (
        {re.sub(r"-\d.*", "", jar.name) for jar in directory.glob("*.jar")}
        for directory in (CACHE / "jars" / "s3", SPARK_JARS)
    )

    assert {"hadoop-aws", "analyticsaccelerator-s3"} <= for_s3
    assert set() == for_s3 & of_spark


@pytest.mark.parametrize("kind", FAR)
def test_a_checkpoint_far_away_is_read_back(log: Log, tmp_path: Path, kind: str) -> None:
    """After `kill -9`, on HDFS and on S3, whatever it is called: ready with every group, each commit once.

    Then a monitor with another state directory goes on with it, and `--rebuild` forgets it.
    """
    with FAR[kind](tmp_path / "far") as far:
        environment = {
            **SETTINGS,
            "GROUP_MONITOR__SPARK__CONF": json.dumps(far.settings),
            "GROUP_MONITOR__STATE__CHECKPOINT_LOCATION": f"{far.root}/check points%20#1",
        }

        def started(name: str, state: str, *more: str) -> MonitorProcess:
            command = ("run", *more)
            return MonitorProcess(
                tmp_path / name, log.servers, state=tmp_path / state, environment=environment, command=command
            )

        with started("first", "state") as monitor:
            monitor.await_ready(2 * READY_SECONDS)
            # Other offsets each time: those of before would be shown already.
            write_commits(log, (3 + [*FAR].index(kind)) * COMMITS)
            await_answer(monitor, log)
            with started("second", "another") as refused:
                assert 2 == refused.await_end(READY_SECONDS)
                assert "in use by process" in refused.error_lines()[-1]
            monitor.kill()
        for name, state, more in (
            ("again", "state", ()),
            ("moved", "another", ()),
            ("anew", "another", ("--rebuild",)),
        ):
            with started(name, state, *more) as monitor:
                monitor.await_ready(2 * READY_SECONDS)
                expected = log.views()
                assert shown(monitor, expected) == expected, name
                assert log.commits() == counted(monitor)
                assert ["--rebuild"] == [*more] or "reading_log" not in "".join(monitor.start_lines())
                monitor.terminate()
                monitor.await_end(4 * END_SECONDS)
