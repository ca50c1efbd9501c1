"""Reading the whole log: how fast the replica is at its end, and right.

Warm means a session whose JVM and workers have done the same once before: that is what reading costs. So the job's own
query runs here in this process, on one session; all that a monitor does besides, its samplers and its server, is left
out. Beside it, on the same session, Spark counts the records with the same options of its reader, and a plain client
reads the topic and looks at nothing. What a user waits for, a process started on this log until it is ready, is
measured too, and called cold; so is its memory `settle` seconds later.
"""

import gc
import json
import os
import time
from pathlib import Path
from typing import Any, Final

from pyspark.sql import SparkSession

from bench import log, truth, writer
from bench.figures import Outcome
from bench.process_tree import Meter, ProcessTree
from bench.query import Query, open_session
from bench.stage import Log, Stage, note
from streaming.base.errors import UsageError
from streaming.config.loading import Config
from streaming.spark import session

_QUICK: Final = {"kafka.max.poll.records": "10000", "kafka.max.partition.fetch.bytes": str(8 * 1024 * 1024)}
"""With Kafka's defaults, the bare read takes longer."""
_WITH_CODE: Final = {"spark.sql.codegen.wholeStage": "true", "spark.sql.codegen.factoryMode": "FALLBACK"}
"""Spark's defaults, said outright: `session.start` changes the second one's default for all of the JVM."""
_CONNECTOR: Final = Path(".cache/jars/bench")
"""Jars of Spark's own Kafka source, by which the bare read is done; the monitor has a source of its own."""


def catch_up(stage: Stage, size: dict[str, Any]) -> Outcome:
    """Catch up `repeats` times on a log of `groups` groups that committed `rounds` times."""
    outcome = Outcome(size)
    read = stage.log(log.Plan.of(size["groups"], rounds=size["rounds"]))
    records = read.expected.records
    outcome.add("records", "records", records)
    for _ in range(size["repeats"]):
        begun = time.monotonic()
        count = writer.read_all(stage.broker.bootstrap_servers, read.topic, log.OFFSETS_PARTITIONS)
        outcome.add("plain_read_seconds", "s", time.monotonic() - begun, reference=True)
        if count != records:
            raise truth.WrongResult(f"a plain consumer read {count} records of {records}")
    _warm(stage, read, size["repeats"], outcome)
    if size["cold"]:
        _cold(stage, read, size["settle"], outcome)
    return outcome


def _warm(stage: Stage, read: Log, repeats: int, outcome: Outcome) -> None:
    tree = ProcessTree(os.getpid(), without=[stage.broker.pid or -1])
    records = read.expected.records
    given = stage.config(read)
    given["spark"]["conf"] |= _with_connector()
    config = Config.model_validate(given)
    with open_session(config) as spark:
        for repeat in range(repeats + 1):
            seconds, count = _counted(spark, config)
            if count != records:
                raise truth.WrongResult(f"Spark counted {count} records of {records}")
            took = _caught_up(stage, read, spark, tree)
            if repeat == 0:
                note(f"catch-up, in a session that is not warm yet: {took['wall_seconds']:.1f} s")
                continue
            note(f"catch-up: {took['wall_seconds']:.2f} s, bare Spark read: {seconds:.2f} s")
            outcome.add("seconds", "s", took["wall_seconds"])
            outcome.add("records_per_second", "records/s", records / took["wall_seconds"])
            outcome.add("cpu_seconds", "s", took["cpu_seconds"])
            outcome.add("others_share", "1", took["others_share"])
            outcome.add("bare_spark_seconds", "s", seconds, reference=True)
            outcome.add("times_bare_spark", "1", took["wall_seconds"] / seconds)


def _caught_up(stage: Stage, read: Log, spark: SparkSession, tree: ProcessTree) -> dict[str, float]:
    config = Config.model_validate(stage.config(read))
    gc.collect()
    with Query(config, spark) as query:
        meter = Meter(tree)
        begun = time.monotonic()
        with query.caught_up():
            pass
        took = {**meter.read(), "wall_seconds": query.seconds - begun}
        truth.require(read.expected, truth.of_board(query.board), "board")
    return took


def _counted(spark: SparkSession, config: Config) -> tuple[float, int]:
    """Seconds and records of a bare read by Spark's own Kafka source, every byte looked at by Spark alone.

    With compiled plans, as Spark does it by default: what is no gain for a micro-batch is one for a million rows.
    """
    topic = config.kafka.offsets_topic
    for name, value in _WITH_CODE.items():
        spark.conf.set(name, value)
    begun = time.monotonic()
    frame = (
        spark.read.format("kafka")
        .option("kafka.bootstrap.servers", config.kafka.bootstrap_servers)
        .options(**_QUICK)
        .option("assign", json.dumps({topic: list(range(log.OFFSETS_PARTITIONS))}))
        .option("startingOffsets", "earliest")
        .option("endingOffsets", "latest")
        .load()
    )
    (row,) = frame.selectExpr("sum(length(key) + coalesce(length(value), 0)) as bytes", "count(1) as records").collect()
    seconds = time.monotonic() - begun
    for name, value in session.WITHOUT_CODE.items():
        spark.conf.set(name, value)
    return seconds, row["records"]


def _with_connector() -> dict[str, str]:
    """Settings of a session in which Spark's own Kafka source reads the log.

    Raises:
        UsageError: its jars are not there.
    """
    jars = sorted(_CONNECTOR.resolve().glob("*.jar"))
    if not jars:
        raise UsageError(f"jars: found none in {str(_CONNECTOR)!r}, accepted: the folder that `make bench` fills")
    return {
        "spark.jars": ",".join(map(str, jars)),
        # Its admin-based reader leaves out internal topics without a word: __consumer_offsets reads as no rows.
        "spark.sql.streaming.kafka.useDeprecatedOffsetFetching": "true",
    }


def _cold(stage: Stage, read: Log, settle: float, outcome: Outcome) -> None:
    monitor = stage.start(stage.config(read))
    meter = Meter(monitor.tree)
    monitor.await_ready()
    outcome.add("cold_ready_seconds", "s", time.monotonic() - monitor.started)
    outcome.add("cold_cpu_seconds", "s", meter.read()["cpu_seconds"])
    monitor.require(read)
    time.sleep(settle)
    outcome.add("cold_pss_mib", "MiB", monitor.tree.pss_bytes() / 2**20)
    stage.stop()
