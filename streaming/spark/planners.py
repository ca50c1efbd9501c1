"""The Python processes in which Spark plans how our source is read, and their end.

Spark has the source of a query made as the query starts, and its reading planned in the micro-batch that has its first
records: hours later, of a log in which nothing happens. For each of the two it keeps a daemon, with 75 MB, and for a
minute a worker, with 55 MB more, though a query plans once. All queries of a session share them, so they are ended once
no query is yet to plan: a query fails whose planning is ended. The next one that starts has new ones.
"""

import threading
from typing import Final

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from streaming.base.logging_setup import get_logger

_MODULES: Final = ("pyspark.sql.worker.create_data_source", "pyspark.sql.worker.plan_data_source_read")
"""What Spark runs in their workers."""

_log = get_logger("session")

_lock: Final = threading.Lock()
"""No query begins to plan while planners are ended."""

_planning: Final[set[str]] = set()
"""Queries that are yet to plan, or are at it."""

_are_there = False
"""Whether a query was to plan since planners were ended last."""


def will_plan(query: str) -> None:
    """A query is about to be started."""
    global _are_there  # noqa: PLW0603 - a process has one session, with one set of planners
    with _lock:
        _planning.add(query)
        _are_there = True


def plans_no_more(query: str) -> None:
    """A query has read records, or has ended; it may be said more than once."""
    with _lock:
        _planning.discard(query)


def end_unused(spark: SparkSession) -> None:
    """End the planners, if there are any and no query needs them."""
    global _are_there  # noqa: PLW0603 - as above
    with _lock:
        if _are_there and not _planning:
            _are_there = False
            _end(spark)


def _end(spark: SparkSession) -> None:
    jvm = spark._jvm  # noqa: SLF001 - the only way to Spark's own classes
    assert jvm is not None  # noqa: S101 - there is one
    try:
        environment = jvm.org.apache.spark.SparkEnv.get()
        held = environment.getClass().getDeclaredField("pythonWorkers")
        held.setAccessible(True)
        started = held.get(environment).toList()
        for at in range(started.size()):
            key, daemon = started.apply(at).productElement(0), started.apply(at).productElement(1)
            if key.workerModule() in _MODULES:
                daemon.stop()
    except Py4JError as error:
        # It costs memory, nothing else.
        _log.info("planners_stay", reason=str(error).partition("\n")[0])
