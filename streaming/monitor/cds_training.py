"""Starts Spark once to make the archive of `cds_archive`: `python -m streaming.monitor.cds_training`.

Exit status: 0 it is made; 2 no usable Java; 3 it did not come about.

What a monitor does at a start and in its first micro-batches is done here with one made-up commit: a session, a source
written in Python, the stateful step, a sink, the query started again on its checkpoint, its state read back. So what is
loaded is what a monitor loads, whatever the versions of Java and Spark are.
"""

import shlex
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyspark
from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.datasource_internal import _SimpleStreamReaderWrapper
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows
from pyspark.sql.types import StructType

from coordinator_model.records import serde
from coordinator_model.records.offset_commit import OffsetCommitKey, OffsetCommitValue
from streaming.base import logging_setup
from streaming.base.batch_rows import Row
from streaming.base.errors import CannotTellError, MonitorError, first_line
from streaming.base.times import now_ms
from streaming.checkpoint import contents
from streaming.checkpoint.location import Location
from streaming.config.loading import Config
from streaming.query.foreach_batch import BatchWriter
from streaming.query.processor import CoordinatorShards
from streaming.query.progress import COMMITS, MEMBERSHIP, Progress, ProgressListener
from streaming.query.row_codec import LOG_LAYOUT, packed
from streaming.query.schemas import BUNDLE, OUTPUT, PACKED
from streaming.query.task_keys import bundle_keys
from streaming.spark import cds_archive, java, jvm_lifecycle, launch_environment, local_files, session

FORMAT: Final = "rehearsed_log"
_QUERY: Final = "rehearsal"
_BATCHES: Final = 3
_BATCH_SECONDS: Final = 120.0
_END_SECONDS: Final = 300.0
"""How long the JVM may take to write what it has loaded."""


class RehearsedLog(DataSource):
    """A log to which a commit is added before every look."""

    @classmethod
    def name(cls) -> str:
        """What `format` is called with."""
        return FORMAT

    def schema(self) -> StructType:
        """As the coordinator's."""
        return PACKED

    def streamReader(self, schema: StructType) -> "RehearsedLogReader":  # noqa: ARG002, N802 - Spark's
        """Made in the process that plans, and sent to those that read."""
        return RehearsedLogReader([int(key) for key in self.options["keys"].split()])


class RehearsedLogReader(_SimpleStreamReaderWrapper):
    """Plans micro-batches of one commit in each of two partitions; as `source`, it reads small ones as it plans."""

    simple_reader = None  # type: ignore[assignment]  # as `source.CoordinatorLogReader` has it
    commit = DataSourceStreamReader.commit

    def __init__(self, keys: Sequence[int]) -> None:
        self._keys = keys

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's
        """Where the log begins."""
        return _position(0)

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's
        """More than there is."""
        return ReadMaxRows(1_000)

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: ARG002, N802 - Spark's
        """A commit in each of two partitions further."""
        return _position(start[COMMITS]["0"] + 1)

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:  # noqa: ARG002
        """One task."""
        return [InputPartition(start[COMMITS]["0"])]

    def getCache(self, start: dict[str, Any], end: dict[str, Any]) -> Iterator[Any] | None:  # noqa: ARG002, N802 - Spark's
        """The rows of every other micro-batch."""
        offset = start[COMMITS]["0"]
        return self.read(InputPartition(offset)) if offset % 2 else None

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The commits, packed."""
        offset = partition.value
        rows = []
        for number in range(2):
            key = OffsetCommitKey(group=f"rehearsal-{number}", topic="rehearsal", partition=0)
            value = OffsetCommitValue(
                offset=offset, leader_epoch=-1, metadata="", commit_timestamp=offset, expire_timestamp=-1
            )
            # By its module: Spark pickles what this class holds with it, as it is the script's own.
            written = serde.encode_record(key, value)
            rows.append({"partition": number, "offset": offset, "timestamp_ms": offset} | _pair(written))
        yield packed([pa.Table.from_pylist(rows, LOG_LAYOUT)], self._keys).cast(to_arrow_schema(PACKED))


class _Seen:
    """A sink that counts."""

    def __init__(self) -> None:
        self.batches = 0

    def apply(self, batch_id: int, rows: Sequence[Row], now_ms: int) -> None:  # noqa: ARG002 - a sink's
        self.batches += bool(rows)


def make(archive: Path) -> None:
    """Make the archive, in half a minute or more.

    Raises:
        UsageError: no usable Java.
        CannotTellError: it did not come about; why.
    """
    java.find_java()
    archive.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="rehearsal-", dir=archive.parent) as scratch:
        directory = Path(scratch)
        made = directory / "made.jsa"
        options = [*session.java_options(with_archive=False), f"-XX:ArchiveClassesAtExit={made}"]
        config = Config.model_validate(
            {
                "state": {"dir": scratch},
                "spark": {"master": "local[2]", "conf": {"spark.driver.extraJavaOptions": shlex.join(options)}},
            }
        )
        log = directory / "spark.log"
        try:
            # From where it is installed: the JVM that uses an archive looks for the jars where they were then.
            installed = {"SPARK_HOME": str(Path(pyspark.__file__).parent)}
            with launch_environment.environment(installed), _spark(config, log) as spark:
                place = Location.of(directory, None)
                place.mount(spark)
                rehearse(spark, place.for_spark)
            cds_archive.keep(made, archive)
        except (PySparkException, OSError) as error:
            raise CannotTellError(f"class archive: {first_line(error)}") from error


@contextmanager
def _spark(config: Config, log: Path) -> Iterator[SparkSession]:
    """A session whose JVM ends on its own, however long that takes: it writes the archive then."""
    spark = session.start(config, log)
    jvm = SparkContext._gateway.proc  # type: ignore[union-attr]  # noqa: SLF001 - the only way to the process
    try:
        yield spark
        spark.stop()
        jvm.stdin.close()
        jvm.wait(_END_SECONDS)
    finally:
        jvm_lifecycle.stop(spark)


def rehearse(spark: SparkSession, checkpoint: str) -> None:
    """Do what a monitor does: two queries one after the other on one checkpoint, whose state is read back then.

    Raises:
        CannotTellError: a query did not get on; why.
    """
    listener = ProgressListener(_QUERY, _nothing)
    listener.listen(spark)
    spark.dataSource.register(RehearsedLog)
    keys = bundle_keys(spark, 1)
    for _ in range(2):
        seen = _Seen()
        stream = (
            spark.readStream.format(FORMAT)
            .option("keys", " ".join(map(str, keys)))
            .load()
            .coalesce(1)
            .groupBy(BUNDLE)
            .transformWithStateInPandas(CoordinatorShards({}), OUTPUT, "Update", "ProcessingTime")
            .writeStream.queryName(_QUERY)
            .outputMode("update")
            .option("checkpointLocation", checkpoint)
            .trigger(processingTime="100 milliseconds")
        )
        query = BatchWriter([seen], now_ms).follow(stream).start()
        until = time.monotonic() + _BATCH_SECONDS
        while seen.batches < _BATCHES and query.isActive and time.monotonic() < until:
            time.sleep(0.1)
        query.stop()
        if seen.batches < _BATCHES:
            reason = query.exception() or TimeoutError(f"no batch ended within {_BATCH_SECONDS:g} s")
            raise CannotTellError(f"class archive: Spark did not get on ({first_line(reason)})")
    list(contents.stored_rows(spark, checkpoint))


def _nothing(_: Progress) -> None:
    pass


def _position(offset: int) -> dict[str, dict[str, int]]:
    partitions = {"0": offset, "1": offset}
    return {COMMITS: partitions, MEMBERSHIP: partitions}


def _pair(written: tuple[bytes, bytes | None]) -> dict[str, bytes | None]:
    return {"key": written[0], "value": written[1]}


def main() -> int:
    """Make the archive of this installation; returns the exit status."""
    logging_setup.configure("warning")  # py4j's stack of a JVM that has ended as it should is not for readers
    archive = cds_archive.place()
    try:
        local_files.fetch_if_missing()
    except MonitorError as error:
        sys.stderr.write(f"warning: {error}\n")  # micro-batches take longer without it
    try:
        make(archive)
    except MonitorError as error:
        sys.stderr.write(f"error: {error}\n")
        return error.exit_status
    sys.stdout.write(f"{archive} {archive.stat().st_size // 1_000_000} MB\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
