"""State accessed many keys at a time, in a real stateful task: the same as one key at a time."""

import json
import os
import re
import resource
import signal
import sys
import tarfile
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pyarrow as pa
import pyspark
import pytest
from py4j.finalizer import ThreadSafeFinalizer
from py4j.protocol import Py4JError
from pyarrow import parquet
from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from bench import log
from coordinator_model.state.group_state import GroupState
from coordinator_model.state.offsets import OffsetBucket
from coordinator_model.state.packed_offsets import load_offsets
from coordinator_model.state.snapshot import load_group
from lab.monitor_process import until
from streaming.base import gc_tuning
from streaming.base.batch_rows import Row
from streaming.checkpoint import contents
from streaming.checkpoint.files import CheckpointFiles, HadoopFiles, LocalFiles
from streaming.checkpoint.identity import IDENTITY_FILE, STATE_LAYOUT, Identity
from streaming.checkpoint.location import Location
from streaming.checkpoint.state_directory import StateDirectory
from streaming.config.loading import Config
from streaming.monitor.cds_training import rehearse
from streaming.query import row_socket
from streaming.query.foreach_batch import BatchWriter
from streaming.query.processor import CoordinatorShards
from streaming.query.row_codec import LOG_LAYOUT, packed, packed_output, unpacked_output
from streaming.query.schemas import BUCKET_KEY, BUNDLE, OUTPUT, PACK, PACKED, SLOT_KEY, SNAPSHOT
from streaming.query.state_pipelining import get_many, put_many
from streaming.query.task_keys import bundle_keys
from streaming.spark import cds_archive, jvm_lifecycle, launch_environment, planners, session
from streaming.spark.worker_daemon import SeldomCollector
from tests.faults.damage import LAYOUT_6_FILE, left_by_former_release
from tests.faults.processes_of import DAEMON
from tests.left_out import MAPS, needs_classes
from tests.streaming.shard import log_rows

MIB = 1024 * 1024
BATCHES = 12

pytestmark = pytest.mark.spark

KEYS = [(f"g{n}" * (1 + n % 700), "t", n) for n in range(1_500)]
"""More than a round of requests, some of them long."""
PACKS = {(n, 31 - n): bytes(range(256)) * (n * n * 40) for n in range(12)}
"""None, some kilobytes, more than a connection holds."""


class Accesses(StatefulProcessor):
    """Puts in one way, gets in both, and shows what it found."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._map = handle.getMapState("map", BUCKET_KEY, SNAPSHOT)
        self._packs = handle.getMapState("packs", SLOT_KEY, PACK)

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:  # type: ignore[override]  # noqa: N802, N803 - Spark's
        for _ in rows:
            pass
        before = get_many(self._map, KEYS)
        put_many(self._map, [(at, ("v" * (7 * at[2]),)) for at in KEYS if at[2] % 3])
        one_by_one = {at: self._map.getValue(at) for at in KEYS}
        many = get_many(self._map, KEYS)
        put_many(self._packs, [(at, (pack,)) for at, pack in PACKS.items()])
        packs = get_many(self._packs, [*PACKS, (9, 9)])
        reported = {
            "packs": {at: bytes(pack) for at, (pack,) in packs.items()} == PACKS,
            "before": len(before),
            "same": many == {at: value for at, value in one_by_one.items() if value is not None},
            "found": len(many),
            "largest": max(len(value[0]) for value in many.values()),
        }
        yield pd.DataFrame({"reported": [json.dumps(reported)]})


@pytest.fixture(scope="module")
def spark_log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("spark") / "spark.log"


@pytest.fixture(scope="module")
def spark(spark_log: Path) -> Iterator[SparkSession]:
    """A session as the monitor starts it."""
    started = session.start(Config(), spark_log)
    yield started
    jvm_lifecycle.stop(started)


def test_many_keys_at_once_are_what_one_at_a_time_is(spark: SparkSession, spark_log: Path, tmp_path: Path) -> None:
    """Every value that was put is found under its key and no other, whichever way it is asked for.

    Spark once wrote a line into its log for each key that was new. And threads that answer for the state, which have no
    session, made code for each variable of each task, 42 classes here; what is left sorts rows, four classes.
    """
    reported: list[str] = []
    assert spark._jvm is not None
    made = spark._jvm.org.apache.spark.metrics.source.CodegenMetrics.METRIC_GENERATED_CLASS_BYTECODE_SIZE()
    before = made.getCount()
    source = tmp_path / "in"
    source.mkdir()
    (source / "rows.json").write_text('{"bundle": 1}\n')
    query = (
        spark.readStream.schema("bundle int")
        .json(str(source))
        .groupBy("bundle")
        .transformWithStateInPandas(Accesses(), "reported string", "Update", "none")
        .writeStream.foreachBatch(lambda batch, _: reported.extend(row.reported for row in batch.collect()))
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .outputMode("update")
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()

    (found,) = map(json.loads, reported)
    assert {"packs": True, "before": 0, "same": True, "found": 1_000, "largest": 7 * 1_499} == found
    assert "doesn't contain key" not in spark_log.read_text("utf-8")
    assert made.getCount() - before < 10


def test_files_of_the_checkpoint_get_their_mode_without_a_child_process(spark: SparkSession, tmp_path: Path) -> None:
    """Hadoop's own file system starts one for each; checksums are written all the same."""
    assert spark._jvm is not None
    hadoop = spark.sparkContext._jsc.hadoopConfiguration()
    path = spark._jvm.org.apache.hadoop.fs.Path((tmp_path / "made").as_uri())
    files = path.getFileSystem(hadoop)
    files.create(path).close()

    assert "com.globalmentor.apache.hadoop.fs.BareLocalFileSystem" == files.getClass().getName()
    assert {".made.crc": 0o600, "made": 0o600} == {of.name: of.stat().st_mode & 0o777 for of in tmp_path.iterdir()}


@pytest.mark.parametrize("kind", [LocalFiles, HadoopFiles])
def test_files_are_the_same_by_python_and_by_hadoop(
    spark: SparkSession, tmp_path: Path, kind: type[LocalFiles | HadoopFiles]
) -> None:
    """Written, listed, read, removed and forgotten, whatever the place is called; what is missing is missing."""
    directory = tmp_path / "a b%20#[1] é?"
    location = Location.of(directory, f"file://{directory}/checkpoint")
    assert location.local is not None
    files: CheckpointFiles = LocalFiles(location.local) if kind is LocalFiles else HadoopFiles(spark, location)
    assert f"file:{directory}/checkpoint" == files.root
    assert [] == files.names()
    with pytest.raises(FileNotFoundError):
        files.text("lease.json")
    files.remove("lease.json")
    for text in ("1", "zwei é\n"):
        files.write("lease.json", text)
        assert text == files.text("lease.json")
    files.write("state/0/_metadata/v2/0", "v2")

    assert {"lease.json", "state"} == {name for name in files.names() if not name.endswith(".crc")}
    assert ["0"] == [name for name in files.names("state/0/_metadata/v2") if name.isdecimal()]
    assert "zwei é\n" == (directory / "checkpoint" / "lease.json").read_text("utf-8")
    files.remove("lease.json")
    assert "lease.json" not in files.names()
    files.forget()
    files.forget()
    assert [] == list(directory.iterdir())


def test_file_system_that_is_not_known_is_an_error_of_files(spark: SparkSession) -> None:
    """One line is left of Java's stack."""
    with pytest.raises(OSError, match=r'^org\.apache\.hadoop\.fs\.Unsupported\w+: No FileSystem for scheme "nil"$'):
        HadoopFiles(spark, Location.of(Path("state"), "nil://x/y"))


def test_no_connection_of_a_task_stays_open(spark: SparkSession, tmp_path: Path) -> None:
    """Spark 4.2.0 left one open of each task that there ever was, several a second (SPARK-58932)."""
    plan = log.Plan(classic_groups=10, consumer_groups=0, simple_groups=10, wide_groups=0, rounds=2)
    written = list(log.records(plan, log.Expected(), 1_700_000_000_000, {}))
    rows = [(of.partition, at, of.timestamp_ms, of.key, of.value) for at, of in enumerate(written)]
    source = tmp_path / "in"
    source.mkdir()
    many = len(rows) // BATCHES
    for number in range(BATCHES):
        batch = pa.Table.from_batches([packed([log_rows(rows[number * many :][:many])], [7])])
        parquet.write_table(batch, source / f"{number}.parquet")
        os.utime(source / f"{number}.parquet", (number, number))
    jvm: Any = spark.sparkContext._jvm
    descriptors = Path(f"/proc/{jvm.java.lang.ProcessHandle.current().pid()}/fd")

    def sockets() -> int:
        return sum(each.is_socket() for each in descriptors.iterdir())

    before = sockets()
    assert BATCHES == len(_put_out(spark, source, tmp_path / "checkpoint"))
    until(lambda: sockets() < before + BATCHES, 60, lambda: f"{before} sockets were open, and are {sockets()}")


def _put_out(spark: SparkSession, source: Path, checkpoint: Path) -> list[list[Row]]:
    batches: list[list[Row]] = []
    ends = dict.fromkeys(range(log.OFFSETS_PARTITIONS), 0)
    query = (
        spark.readStream.schema(PACKED)
        .option("maxFilesPerTrigger", 1)
        .parquet(str(source))
        .groupBy(BUNDLE)
        .transformWithStateInPandas(CoordinatorShards(ends), OUTPUT, "Update", "ProcessingTime")
        .writeStream.foreachBatch(
            lambda batch, _: batches.append(unpacked_output(row.rows for row in batch.collect())),
        )
        .option("checkpointLocation", str(checkpoint))
        .outputMode("update")
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return batches


def test_state_of_release_0_1_is_read_back(spark: SparkSession, tmp_path: Path) -> None:
    """From what a real monitor left: every group with its offsets, in snapshots that this release reads."""
    (tmp_path / IDENTITY_FILE).write_text("{}", "utf-8")
    left_by_former_release(tmp_path)
    identity = Identity(**{**json.loads((tmp_path / IDENTITY_FILE).read_text("utf-8")), "state_layout": STATE_LAYOUT})
    state = StateDirectory(tmp_path, None, reads_uncommitted=True, clock_ms=lambda: 0)
    state.claim(identity, rebuild=False)
    state.examine()
    rows = list(state.rows(spark))
    groups = {row.group: load_group(row.words) for row in rows if row.kind == "group"}
    buckets = [(row.group, load_offsets(row.payload, row.words)) for row in rows if row.kind == "offsets"]
    records = sum(json.loads(row.payload)["records"] for row in rows if row.kind == "shard")

    assert sum(sum(of.values()) for of in state.positions()[1:]) == records
    assert all(name == of.name for name, of in groups.items())
    assert {f"commits-{number}" for number in range(24)} == {name for name in groups if name.startswith("commits-")}
    assert sum(of.offset_count for of in groups.values()) == sum(len(bucket.offsets) for _, bucket in buckets)


def test_state_of_the_release_before_is_gone_on_from(spark: SparkSession, tmp_path: Path) -> None:
    """In the middle of a log: what it left, and what is there after the rest, is what this release makes of all.

    The archive holds a checkpoint of state layout 6 and the records of the log, of which it has read three quarters.
    """
    with tarfile.open(LAYOUT_6_FILE) as left:
        left.extractall(tmp_path, filter="data")
    records = parquet.read_table(tmp_path / "records.parquet").to_pylist()
    rows = [tuple(record[name] for name in LOG_LAYOUT.names) for record in records]
    checkpoint, of_ours, source = tmp_path / "checkpoint", tmp_path / "ours", tmp_path / "in"
    source.mkdir()
    contents.settle(LocalFiles(checkpoint), f"file:{checkpoint}")
    for noted in (checkpoint / "sources" / "0").glob("[0-9]*"):
        noted.write_text(re.sub(r"file:[^\"]*/", f"file://{source}/", noted.read_text("utf-8")), "utf-8")
        noted.with_name(f".{noted.name}.crc").unlink()
    quarter = len(rows) // 4
    for number in range(4):
        batch = pa.Table.from_batches([packed([log_rows(rows[number * quarter :][:quarter])], [7])])
        parquet.write_table(batch, source / f"{number}.parquet")
        os.utime(source / f"{number}.parquet", (number + 1, number + 1))
        if number > 1:
            _put_out(spark, source, of_ours)
        if number > 2:
            _put_out(spark, source, checkpoint)
        if number > 1:
            assert _held(spark, of_ours) == _held(spark, checkpoint)


def _held(spark: SparkSession, checkpoint: Path) -> tuple[dict[Any, GroupState], dict[Any, OffsetBucket], set[Any]]:
    """Groups, offset buckets and totals that a checkpoint has."""
    rows = list(contents.stored_rows(spark, checkpoint.as_uri()))
    groups = {(row.partition, row.group): load_group(row.words) for row in rows if row.kind == "group"}
    packed_buckets = [(row, load_offsets(row.payload, row.words)) for row in rows if row.kind == "offsets"]
    buckets = {(row.partition, row.group, of.topic, of.number): of for row, of in packed_buckets}
    assert len(rows) == len(groups) + len(buckets) + sum(row.kind == "shard" for row in rows)
    return groups, buckets, {(row.partition, row.payload) for row in rows if row.kind == "shard"}


@pytest.mark.parametrize("tasks", [1, 4, 7, 50, 336])
def test_every_stateful_task_has_a_bundle(spark: SparkSession, tasks: int) -> None:
    """Spark's own hash sends the keys to different tasks, each to the one it is for."""
    keys = bundle_keys(spark, tasks)

    rows = spark.createDataFrame([(key,) for key in keys], "bundle int")
    sent = rows.repartition(tasks, "bundle").selectExpr("spark_partition_id() as task", "bundle").collect()

    assert list(enumerate(keys)) == sorted((row.task, row.bundle) for row in sent)


def test_workers_spare_what_costs_more_than_a_task(spark: SparkSession) -> None:
    """Packages installed beside us are taken, not Spark's archives of them; no task ends in a collection."""

    def paths(_: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        collector = type(sys.modules["pyspark.daemon"].gc).__name__
        yield pa.RecordBatch.from_pydict({"path": [*sys.path, pyspark.__file__, collector]})

    found = [row.path for row in spark.range(1).mapInArrow(paths, "path string").collect()]

    assert [] == [path for path in found if ".zip" in path and "pyspark" in path]
    assert [pyspark.__file__, SeldomCollector.__name__] == found[-2:]


def test_no_process_starts_from_an_archive(spark: SparkSession) -> None:
    """Spark's search path for the Python it runs has nothing on it that is there."""
    jvm: Any = spark.sparkContext._jvm
    path = jvm.org.apache.spark.api.python.PythonUtils.sparkPythonPath().split(os.pathsep)

    assert [] == [entry for entry in path if entry.endswith(".zip") and Path(entry).exists()]
    assert any(entry.endswith("pyspark.zip") for entry in path)


def _python_modules(spark: SparkSession) -> dict[int, list[str]]:
    """Module that a Python process of Spark's was started with, and what it works for: daemons by process id."""
    jvm: Any = spark.sparkContext._jvm
    daemons = jvm.java.lang.ProcessHandle.current().children().toList()
    commands = (Path(f"/proc/{each.pid()}/cmdline").read_bytes().split(b"\0") for each in daemons)
    modules = (
        (each.pid(), [part.decode() for part in of[of.index(b"-m") + 1 :] if part])
        for each, of in zip(daemons, commands, strict=True)
        if b"-m" in of
    )
    return dict(modules)


def test_reading_and_replaying_share_their_workers(spark: SparkSession, tmp_path: Path) -> None:
    """Of a query that reads in Python and replays in Python there is one daemon, with one worker once it is at rest.

    Spark does not look for data sources in other packages. The two daemons that planned the query are ended once no
    other is yet to plan; the next query starts two new ones.
    """
    jvm: Any = spark.sparkContext._jvm

    def daemons(module: str) -> list[int]:
        return [pid for pid, of in _python_modules(spark).items() if module in of]

    def workers(daemon: int) -> int:
        count: int = jvm.java.lang.ProcessHandle.of(daemon).get().children().count()
        return count

    planned_by: list[list[int]] = []
    for number in range(3):
        planners.will_plan("rehearsed")
        # Written to and read back from, under a name that Spark would look for elsewhere.
        place = Location.of(tmp_path / f"{number} a%20b #[1] {{é}}?", None)
        place.mount(spark)
        rehearse(spark, place.for_spark)
        assert place.local is not None
        assert (place.local / "commits").is_dir()
        assert 1 == len(daemons(DAEMON))
        until(lambda: [1] == [workers(each) for each in daemons(DAEMON)], 10, "more than one worker is kept")
        assert [] == daemons("pyspark.sql.worker.lookup_data_sources")
        planned_by.append(daemons("pyspark.daemon"))
        if number == 0:
            planners.will_plan("of another monitor")
        planners.plans_no_more("rehearsed")
        planners.end_unused(spark)
        if number == 1:
            planners.plans_no_more("of another monitor")
            planners.end_unused(spark)
            until(lambda: not daemons("pyspark.daemon"), 10, lambda: f"there are still {_python_modules(spark)}")
    until(lambda: not daemons("pyspark.daemon"), 10, lambda: f"there are still {_python_modules(spark)}")

    assert 3 == len(list(tmp_path.iterdir()))
    first, second, third = map(set, planned_by)
    assert [2, 2] == [len(first), len(third)]
    assert first == second
    assert not first & third
    assert 1 == len(daemons(DAEMON))


def test_a_micro_batch_leaves_nothing_behind(spark: SparkSession) -> None:
    """What the JVM lent for it is given back with its end.

    A Dataset that stays keeps its plans, and py4j lets go of one when Python's collector comes by, minutes later.
    """
    taken: list[Row] = []
    writer = BatchWriter([SimpleNamespace(apply=lambda _, rows, __: taken.extend(rows))], lambda: 0)
    rows = [Row(0, "group_deleted", name) for name in ("first", "second")]
    batch = spark.createDataFrame([(packed_output([row]),) for row in rows], OUTPUT)._jdf
    with gc_tuning.paused():
        before = set(ThreadSafeFinalizer.finalizers)
        writer.call(batch, 0)
        after = set(ThreadSafeFinalizer.finalizers)

    assert rows == taken
    assert 1 == len(before - after)
    assert set() == after - before


@contextmanager
def no_descriptor_left() -> Iterator[Callable[[], None]]:
    """This process can open nothing any more, whatever it closes, until the function is called, or this is left."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)

    def let_go() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))

    # A new descriptor has to be below the limit; a lower one than three would forbid `poll` of the few that are open.
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
    try:
        yield let_go
    finally:
        let_go()


def test_a_micro_batch_outlives_a_want_of_descriptors(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its rows are fetched once there is one again; if that takes long, it fails, and the next one does not.

    It once waited for the JVM without end, which waited for somebody to fetch the rows.
    """
    taken: list[Row] = []
    writer = BatchWriter([SimpleNamespace(apply=lambda _, rows, __: taken.extend(rows))], lambda: 0)
    rows = [Row(0, "group_deleted", "first")]
    first, *batches = [spark.createDataFrame([(packed_output(rows),)], OUTPUT)._jdf for _ in range(4)]
    writer.call(first, 0)

    with no_descriptor_left() as let_go:
        threading.Timer(1.0, let_go).start()
        writer.call(batches[0], 1)
    assert 2 * rows == taken

    monkeypatch.setattr(row_socket, "OPEN_SECONDS", 0.5)
    with no_descriptor_left(), pytest.raises(PySparkRuntimeError, match="Too many open files"):
        writer.call(batches[1], 2)
    writer.call(batches[2], 3)
    assert 3 * rows == taken


def test_sockets_that_are_closed_are_forgotten(spark: SparkSession) -> None:
    """Java notes each, to delete it at the JVM's end, and strikes none off; what else it is to delete then stays."""
    jvm: Any = spark.sparkContext._jvm
    kept = jvm.java.io.File("kept-to-the-end")
    kept.deleteOnExit()
    spark.range(1).toArrow()
    files = jvm.java.lang.Class.forName("java.io.DeleteOnExitHook").getDeclaredField("files")
    files.setAccessible(True)

    def sockets() -> list[str]:
        (directory,) = launch_environment.socket_directories()
        return [path for path in files.get(None) if path.startswith(f"{directory}/")]

    assert [] != sockets()
    jvm_lifecycle.forget_sockets(spark)

    assert [] == sockets()
    assert files.get(None).contains(kept.getPath())
    assert 1 == len(spark.range(1).toArrow())


def test_workers_that_hang_are_killed_with_the_daemon_that_could_not_do_it(spark: SparkSession) -> None:
    """A task whose worker and daemon stand still ends at once, and the next one has others."""
    jvm: Any = spark.sparkContext._jvm

    def squares() -> list[int]:
        return spark.sparkContext.parallelize([1, 2], 1).map(lambda of: of * of).collect()

    assert [1, 4] == squares()
    hung = [handle.pid() for handle in jvm.java.lang.ProcessHandle.current().descendants().toArray()]
    for pid in hung:
        os.kill(pid, signal.SIGSTOP)
    failed: list[BaseException] = []

    def wait() -> None:
        try:
            squares()
        except Py4JError as error:
            failed.append(error)

    waiting = threading.Thread(target=wait)
    waiting.start()
    waiting.join(1.0)
    assert waiting.is_alive()

    assert len(hung) == jvm_lifecycle.kill_workers(spark)

    waiting.join(60.0)
    assert (False, 1) == (waiting.is_alive(), len(failed))
    assert [1, 4] == squares()


def test_workers_under_spark_submit_are_left_alone(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its JVM has started the monitor, too."""
    monkeypatch.setattr(spark.sparkContext._gateway, "proc", None)
    assert 0 == jvm_lifecycle.kill_workers(spark)


def test_the_jvm_gives_back_what_it_no_longer_needs(spark: SparkSession) -> None:
    """A heap that was filled is smaller than what filled it, as soon as that is garbage and has been asked for."""
    jvm: Any = spark.sparkContext._jvm
    text = jvm.java.lang.StringBuilder()
    text.ensureCapacity(800 * MIB)
    full = jvm.java.lang.Runtime.getRuntime().totalMemory()
    text.trimToSize()

    jvm_lifecycle.give_back(spark)

    assert jvm.java.lang.Runtime.getRuntime().totalMemory() < full - 400 * MIB


def test_the_c_library_gives_back_what_the_jvm_had_of_it(spark: SparkSession) -> None:
    """As jcmd has it done; a command that a JVM does not know is an error, which giving back passes over."""
    gateway: Any = spark.sparkContext._gateway

    assert "rim native heap" in jvm_lifecycle._command(gateway, gateway.jvm, "systemTrimNativeHeap")
    with pytest.raises(Py4JError):
        jvm_lifecycle._command(gateway, gateway.jvm, "noSuchCommand")


@needs_classes(cds_archive.is_whole(cds_archive.place()))
def test_classes_are_those_of_the_archive(spark: SparkSession) -> None:
    """What a rehearsal has written down, the JVM of a monitor maps: of the same jars, though below another home."""
    jvm: Any = spark.sparkContext._gateway.proc  # type: ignore[union-attr]
    maps = Path(f"/proc/{jvm.pid}/maps")
    if not maps.exists():
        MAPS.skip()

    assert str(cds_archive.place().resolve()) in maps.read_text("utf-8")
