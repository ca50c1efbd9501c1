"""What the layout of the state costs: the one that stands beside others (`layouts.py`), on Spark's own state store.

All layouts are measured in turn in one warm session, on the same log, so that they meet the same machine; the order is
another with each repeat. The job's own query runs in this process with another processor, and what its board shows at
the end is compared with what was written. Processor time is this process's and Spark's, the load included, which
is the same for all.

    seconds                 of a catch-up
    batch_*_seconds         micro-batches under an even load
    written_kib_a_batch     changelogs of the state, as Spark keeps them in the checkpoint
    accesses_a_batch        keys that Spark's state store was asked for or given
    checkpoint_mib          all of the state in the checkpoint after that
"""

import gc
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from bench import log, truth
from bench.figures import Outcome, percentile
from bench.layouts import LAYOUTS
from bench.log import Commits
from bench.process_tree import Meter, ProcessTree
from bench.query import Query, open_session
from bench.stage import Log, Stage, note
from bench.writer import Trickle
from streaming.checkpoint.state_directory import CHECKPOINT
from streaming.config.loading import Config

KIB: Final = 2**10
MIB: Final = 2**20

_REPORTS: Final = {"spark.sql.streaming.numRecentProgressUpdates": "10000"}
_RIGHT_SECONDS: Final = 60.0
_ACCESSES: Final = ("rocksdbGetCount", "rocksdbPutCount")


@dataclass(frozen=True, slots=True)
class _Load:
    """`rate` commits a second to one after the other, for some seconds after `warm` ones."""

    stage: Stage
    read: Log
    commits: Sequence[Commits]
    size: dict[str, Any]

    def measured(self, query: StreamingQuery, config: Config, seconds: float) -> dict[str, tuple[str, float]]:
        """Figure → unit and value."""
        servers, size = self.stage.broker.bootstrap_servers, self.size
        with Trickle(servers, self.read.topic, self.commits, self.read.expected, size["rate"]):
            time.sleep(size["warm"])
            batch = _batch(query)
            files, meter = _files(config), Meter(_tree(self.stage))
            time.sleep(seconds)
            used = meter.read()
            while _batch(query) <= batch:
                time.sleep(0.1)
            held = _files(config)
            reports = [report for report in query.recentProgress if report.batchId > batch]
        durations = [report.batchDuration / 1000 for report in reports]
        changelogs = sum(held[path] for path in held.keys() - files.keys() if path.suffix == ".changelog")
        metrics = [of.customMetrics for report in reports for of in report.stateOperators]
        accesses = sum(int(of.get(name, 0)) for of in metrics for name in _ACCESSES)
        return {
            "batch_p50_seconds": ("s", percentile(durations, 0.5)),
            "batch_p99_seconds": ("s", percentile(durations, 0.99)),
            "cpu_seconds_a_batch": ("s", used["cpu_seconds"] / len(reports)),
            "cpu_share": ("1", used["cpu_seconds"] / used["wall_seconds"]),
            "others_share": ("1", used["others_share"]),
            "batches": ("batches", len(reports)),
            "written_kib_a_batch": ("KiB", changelogs / KIB / len(reports)),
            "accesses_a_batch": ("keys", accesses / len(reports)),
            "checkpoint_mib": ("MiB", sum(held.values()) / MIB),
        }


def catch_up(stage: Stage, size: dict[str, Any]) -> Outcome:
    """Catch up `repeats` times in each layout on a log of `groups` groups that committed `rounds` times."""
    outcome = Outcome(size)
    read = stage.log(log.Plan.of(size["groups"], rounds=size["rounds"]))
    with _session(stage, read) as spark:
        for repeat, name in _turns(size["repeats"]):
            seconds, used, state_bytes = _caught_up(stage, read, spark, name)
            note(f"catch-up, {name}: {seconds:.2f} s")
            if repeat:
                outcome.add(f"{name}_seconds", "s", seconds)
                outcome.add(f"{name}_cpu_seconds", "s", used["cpu_seconds"])
                outcome.add(f"{name}_checkpoint_mib", "MiB", state_bytes / MIB)
    return outcome


def steady(stage: Stage, size: dict[str, Any]) -> Outcome:
    """With `groups` groups in state, commit `rate` times a second over `active` of them."""
    read = stage.log(log.Plan.of(size["groups"], rounds=2))
    return _under_load(_Load(stage, read, read.commits(size["active"]), size))


def wide(stage: Stage, size: dict[str, Any]) -> Outcome:
    """Commit to one partition after the other of a group of `wide` partitions, `rate` a second."""
    plan = log.Plan(
        classic_groups=1,
        consumer_groups=0,
        simple_groups=0,
        wide_groups=1,
        partitions=10,
        wide_partitions=size["wide"],
        topics=1,
        rounds=1,
    )
    read = stage.log(plan)
    return _under_load(_Load(stage, read, read.commits_of("wide-000000"), size))


def _turns(repeats: int) -> Iterator[tuple[int, str]]:
    """(repeat, layout): first, as number 0, one that warms the session up."""
    names = list(LAYOUTS)
    yield 0, names[0]
    for repeat in range(repeats):
        yield from ((repeat + 1, name) for name in (names if repeat % 2 == 0 else reversed(names)))


@contextmanager
def _session(stage: Stage, read: Log) -> Iterator[SparkSession]:
    given = stage.config(read)
    given["spark"]["conf"] |= _REPORTS
    with open_session(Config.model_validate(given)) as spark:
        yield spark


def _caught_up(stage: Stage, read: Log, spark: SparkSession, name: str) -> tuple[float, dict[str, float], int]:
    """Seconds, what was used meanwhile, and the size of the state."""
    config = Config.model_validate(stage.config(read))
    gc.collect()
    with Query(config, spark, LAYOUTS[name]) as query:
        meter = Meter(_tree(stage))
        begun = time.monotonic()
        with query.caught_up():
            pass
        used = meter.read()
        truth.require(read.expected, truth.of_board(query.board), f"board, {name}")
    return query.seconds - begun, used, sum(_files(config).values())


def _under_load(load: _Load) -> Outcome:
    outcome = Outcome(load.size)
    stage, read = load.stage, load.read
    with _session(stage, read) as spark:
        for repeat, name in _turns(load.size["repeats"]):
            config = Config.model_validate(stage.config(read))
            gc.collect()
            with Query(config, spark, LAYOUTS[name]) as query, query.caught_up():
                (running,) = spark.streams.active
                found = load.measured(running, config, load.size["seconds"] if repeat else 0)
                _require(query, read, name)
            note(f"{name}: micro-batches of {found['batch_p50_seconds'][1]:.3f} s")
            if repeat:
                for figure, (unit, value) in found.items():
                    outcome.add(f"{name}_{figure}", unit, value)
    return outcome


def _batch(query: StreamingQuery) -> int:
    """Number of the last micro-batch that is finished."""
    report = query.lastProgress
    return -1 if report is None else int(report.batchId)


def _require(query: Query, read: Log, name: str) -> None:
    """Wait until the board shows all that the log leads to. Raises WrongResult."""
    deadline = time.monotonic() + _RIGHT_SECONDS
    while True:
        try:
            truth.require(read.expected, truth.of_board(query.board), f"board, {name}")
        except truth.WrongResult:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.5)
        else:
            return


def _tree(stage: Stage) -> ProcessTree:
    return ProcessTree(os.getpid(), without=[stage.broker.pid or -1])


def _files(config: Config) -> dict[Path, int]:
    """Files of the state in the checkpoint and their sizes, bytes; those that Spark removes meanwhile do not count."""
    found = {}
    for path in (config.state.dir / CHECKPOINT / "state").rglob("*"):
        with suppress(OSError):
            if path.is_file():
                found[path] = path.stat().st_size
    return found
