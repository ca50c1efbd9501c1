"""Runs the query, and starts it again when it fails.

The checkpoint says where to resume; meanwhile the board keeps showing what was.
"""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from copy import copy
from pathlib import Path
from typing import Final

from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from coordinator_model.records.topics import SHARE_STATE_TOPIC
from streaming.base.errors import MonitorError, UsageError
from streaming.base.logging_setup import get_logger, with_fields
from streaming.base.stages import Stages
from streaming.base.times import now_ms
from streaming.board.board import Board
from streaming.board.readiness import Positions
from streaming.board.stall import LEAST_SECONDS, Stall
from streaming.checkpoint.contents import Mark
from streaming.checkpoint.state_directory import StateDirectory
from streaming.config.loading import Config
from streaming.end_offsets.store import PartitionEnds, Topic
from streaming.monitor.continuity import Continuity
from streaming.monitor.memory_trim import MemoryTrim
from streaming.monitor.offsets_topic import OffsetsTopic
from streaming.monitor.retry_policy import RetryPolicy
from streaming.monitor.stall_watch import StallWatch
from streaming.monitor.standstill_log import StandstillLog
from streaming.monitor.unread_partitions import UnreadPartitions
from streaming.query.first_reading import door
from streaming.query.foreach_batch import BatchSink, BatchWriter
from streaming.query.jvm_objects import is_no_answer
from streaming.query.log_continuity import Note
from streaming.query.processor import CoordinatorShards
from streaming.query.progress import PartitionOffsets, Progress, ProgressListener
from streaming.query.schemas import BUNDLE, OUTPUT
from streaming.query.source import Known, coordinator_log
from streaming.query.task_keys import bundle_keys
from streaming.spark import jvm_lifecycle, planners
from streaming.spark.session import master_of, runs_here

_TELL_SECONDS: Final = 1.0

_starting: Final = threading.Lock()
"""Monitors of one session start their queries one after the other. How many tasks a query has is a setting of the
session, read when it starts. And Spark looks whether a source is there before it puts it there, and fails if it came to
be there in between."""

_log = get_logger("job")

_SAME_SIGNAL_SECONDS: Final = 0.5
"""Within which a signal to the JVM and to us are taken as one."""

_LOOK_SECONDS: Final = 1.0
"""How often it is looked which partitions cannot be read."""

HANGS_SECONDS: Final = 60.0
"""So long a query may take to stop once the brokers answer; what hangs then hangs for good."""

WORKERS_HANG_SECONDS: Final = 15.0
"""So long it may take before its workers are killed: longer than what waited for brokers takes once they are back."""

PAY_SECONDS: Final = (10.0, 20.0, 40.0, 80.0)
"""How soon after a start the query is started again to read what is owed; the last repeats, while something is."""


class OwedRecordsError(Exception):
    """No failure: partitions are back of which records were planned, and could not be read when they were."""


class StalledError(Exception):
    """The query made no progress (`board/stall.py`)."""


class QueryHangsError(MonitorError):
    """The query of before does not stop, though brokers answer: its name and its checkpoint are not free."""


class QuerySupervisor:
    """The query of one monitor; used by one thread.

    Args:
        config: of the cluster.
        board: takes every micro-batch first.
        state: the state directory.
        log: the offsets topic.
        sinks: take every micro-batch after the board; asked at each start of the query.
        stages: says how far the start is.

    Attributes:
        may_write: whether a query that did not stop in time may still write to the checkpoint.
    """

    def __init__(  # noqa: PLR0913 - what it stands between, all named
        self,
        config: Config,
        board: Board,
        state: StateDirectory,
        log: OffsetsTopic,
        *,
        sinks: Callable[[], Sequence[BatchSink]] = tuple,
        stages: Stages | None = None,
    ) -> None:
        self.may_write = False
        self._config = config
        self._board = board
        self._state = state
        self._log = log
        self._sinks = sinks
        self._name = f"group-monitor {config.cluster.name}"
        self._failures = RetryPolicy(config)
        board.health.show_failure(self._failures.why)
        board.health.expect_batches(one_reader=config.source.isolation != "exact")
        pause_seconds = config.spark.trigger_interval_ms / 1_000
        self._stall = StallWatch(board.health, Stall(max(LEAST_SECONDS, 2 * pause_seconds)))
        self._left: StreamingQuery | None = None
        self._left_since: float | None = None
        self._rid_of_workers: StreamingQuery | None = None
        self._listener: ProgressListener | None = None
        self._has_targets = False
        self._continuity = Continuity(board)
        self._finished_batches = self._seen_batches = 0
        self._last_finished = Mark()
        self._sampled_ms: int | None = None
        self._asked_ms = 0
        self._made_at = self._tell_at = time.monotonic()
        self._was_ready = False
        self._reported_percent: int | None = None
        self._stages = stages or Stages()
        self._unread = UnreadPartitions()
        self._look_at = self._pay_at = 0.0
        self._starts_to_pay = 0

    @property
    def query_id(self) -> str:
        """What Spark calls the query, for as long as its checkpoint is there; the checkpoint's place before that."""
        return self._continuity.shown.query_id or self._state.location.name

    def fill_board(self, spark: SparkSession) -> None:
        """Fill the board from the checkpoint; with nothing if there is none, or if it is too old to resume from."""
        mark = self._state.mark()
        if mark.has_state:
            by_reader = self._state.positions()
            # Brokers that are away at this moment are waited for once the query is to be started.
            is_outlived = self._state.is_unread_for_long and self._state.rebuild_if_outlived(
                *self._log.ends(), _positions(by_reader)
            )
            if not is_outlived:
                self._fill(spark, mark, by_reader)
                return
            mark = Mark()
        self._board.load([])
        self._continuity.filled(mark)

    def _fill(self, spark: SparkSession, mark: Mark, by_reader: tuple[PartitionOffsets, ...]) -> None:
        self._board.load(self._state.rows(spark, mark.batch))
        self._continuity.filled(mark)
        self._set_positions(by_reader)

    def _refill_unless_it_fits(self, spark: SparkSession) -> None:
        """See that the board shows what the query goes on from; else fill it again, not ready until it has caught up.

        Raises:
            UsageError: the checkpoint is gone, or damaged.
        """
        mark = self._state.mark()
        if self._continuity.fits(mark):
            return
        _log.warning("board_refilled", shown=self._continuity.shown._asdict(), found=mark._asdict())
        if not mark.has_state:
            raise self._state.gone()
        self._start_over()
        self._state.settle()
        self._fill(spark, mark, self._state.positions())

    def _start_over(self) -> None:
        """Forget what was shown, and what is still to be reported of how far it was."""
        if self._listener is not None:
            self._listener.forget()
        self._board.start_over()
        self._continuity.filled(Mark())
        self._has_targets = False

    def run_until(self, stopped: threading.Event, spark: SparkSession, spark_log: Path) -> None:
        """Keep the query running.

        Args:
            stopped: ends it.
            spark: the session.
            spark_log: where its JVM writes to, for messages.

        Raises:
            MonitorError: the query cannot be resumed.
        """
        trim = MemoryTrim(self._board, spark)
        standstill = StandstillLog(self._board)
        standstill.start()
        self._stall.start()
        try:
            while not stopped.is_set():
                before = self._finished_batches
                error = self._run(stopped, spark, spark_log, trim)
                if error is None:
                    return
                if isinstance(error, OwedRecordsError | StalledError):
                    continue
                stopped.wait(self._failures.pause_seconds(error, got_on=self._finished_batches > before))
        finally:
            self._stall.stop()
            standstill.stop()

    def _run(
        self, stopped: threading.Event, spark: SparkSession, spark_log: Path, trim: MemoryTrim
    ) -> Exception | None:
        """Start the query and wait for its end; returns the reason if it failed."""
        query = None
        try:
            self._end_left(spark)
            query = self._start(spark)
            self._stall.started()
            while query.isActive and not stopped.wait(0.2):
                self._check()
                trim.check()
                if self._stall.is_asked:
                    return StalledError()
                if self._can_pay():
                    return OwedRecordsError()
            return query.exception() if not stopped.is_set() else None
        except (UsageError, QueryHangsError):
            raise
        except (MonitorError, PySparkException, Py4JError, OSError) as error:
            # A service manager may tell all processes at once, and the JVM may be the quicker one.
            return None if stopped.wait(_SAME_SIGNAL_SECONDS) else failure(error, spark_log)
        finally:
            self._stall.ended()
            planners.plans_no_more(self._name)
            if self._listener is not None:
                self._listener.ended()
            if query is not None:
                self.may_write = not _stopped(query)
                self._left, self._left_since = (query if self.may_write else None), None

    def _end_left(self, spark: SparkSession) -> None:
        """See that the query of before has stopped: Spark starts none of its name before.

        One that does not, though the brokers have answered for a while, waits for a worker that hangs: all of them are
        killed, once.

        Raises:
            CannotTellError: it has not, and the brokers do not answer, for which it may be waiting.
            QueryHangsError: it will not.
            MonitorError: it has not yet.
        """
        if self._left is None:
            return
        if _stopped(self._left):
            self._left, self.may_write = None, False
            return
        since, self._left_since = self._left_since, None
        self._log.ends()
        self._left_since = since or time.monotonic()
        seconds = time.monotonic() - self._left_since
        if seconds >= WORKERS_HANG_SECONDS and self._left is not self._rid_of_workers:
            self._rid_of_workers = self._left
            _log.warning("workers_killed", processes=jvm_lifecycle.kill_workers(spark))
        if seconds >= HANGS_SECONDS:
            stays = f"the query did not stop in {seconds:.0f} s and cannot be started again in this process"
            raise QueryHangsError(f"spark: {jvm_lifecycle.killed_because() or stays}")
        raise MonitorError("the query of before has not stopped yet")

    def _start(self, spark: SparkSession) -> StreamingQuery:
        config, board, state = self._config, self._board, self._state
        state.refuse_lost()
        self._refill_unless_it_fits(spark)
        high_watermarks, last_stable = self._log.ends()
        if state.rebuild_if_outlived(high_watermarks, last_stable, board.health.positions):
            self._start_over()
        board.health.set_rebuilds(state.rebuilds)
        # Saved before the monitor can be ready: a next run has to know where this one began.
        live_from = state.begin(high_watermarks)
        if not self._has_targets:
            # A single reader never gets past an open transaction: its target is the last stable offset throughout.
            both = config.source.isolation == "exact"
            board.health.set_log_end_at_start(
                high_watermarks if both else last_stable, last_stable, self._log.identity.partitions
            )
            self._set_positions(())
            self._has_targets, self._asked_ms = True, now_ms()
        if self._listener is None:
            self._listener = ProgressListener(
                self._name, with_fields(self._on_progress), self._continuity.started, board.health.looked
            )
            self._listener.listen(spark)
        planners.will_plan(self._name)
        self._starts_to_pay = self._starts_to_pay + 1 if board.owed() or board.share_owed() else 0
        self._pay_at = time.monotonic() + PAY_SECONDS[min(self._starts_to_pay, len(PAY_SECONDS) - 1)]
        with _starting:
            return self._started(spark, live_from, high_watermarks)

    def _started(
        self, spark: SparkSession, live_from: Mapping[int, int], high_watermarks: Mapping[int, int]
    ) -> StreamingQuery:
        config, state = self._config, self._state
        tasks = self._log.identity.shuffle_partitions
        spark.conf.set("spark.sql.shuffle.partitions", tasks)
        keys = bundle_keys(spark, tasks)
        known = Known(
            built_until=state.built_until,
            live_from=live_from,
            owed=self._board.owed(),
            unread_seconds=state.unread_seconds,
            tombstone_seconds=state.tombstone_retention_ms / 1_000,
            largest_batch_bytes=self._log.largest_batch_bytes or 0,
            share_owed=self._board.share_owed(),
        )
        records = coordinator_log(spark, config, keys, known)
        if tasks == 1:
            # What is one task already need not be sent to another: that spares a micro-batch its second stage.
            records = records.coalesce(1)
        replayed = records.groupBy(BUNDLE).transformWithStateInPandas(
            CoordinatorShards(
                dict(live_from),
                dict(high_watermarks),
                dict(state.told_before),
                processes=door.processes(tasks) if runs_here(master_of(config)) else 1,
            ),
            outputStructType=OUTPUT,
            outputMode="Update",
            timeMode="ProcessingTime",
        )
        stream = (
            replayed.writeStream.queryName(self._name)
            .outputMode("update")
            .option("checkpointLocation", state.location.for_spark)
            .trigger(processingTime=f"{config.spark.trigger_interval_ms} milliseconds")
        )
        board = self._board
        writer = BatchWriter([self._continuity, *self._sinks()], now_ms, board.expectations, settled=board.settled)
        return writer.follow(stream).start()

    def _check(self) -> None:
        """While the query runs: save how far it is, and see that the topic is still the one it reads.

        Raises:
            UsageError: the topic was deleted and created again, which the source notices only if it is shorter; or
                another monitor has taken the checkpoint over.
        """
        self._state.refuse_lost()
        self._tell_progress()
        ends, name = self._board.ends, self._config.kafka.offsets_topic
        topic = ends.topic(name)
        if topic is not None:
            self._log.refuse_another(topic)
            self._look_for_unread(topic)
        if self._seen_batches != self._finished_batches:
            self._seen_batches = self._finished_batches
            self._state.finished_batch(*self._last_finished)
        if ends.sampled_ms != self._sampled_ms:
            self._sampled_ms = ends.sampled_ms
            self._state.follow(self._sampled_ms, self._ends(), self._replayed())

    def _replayed(self) -> Positions:
        """How far the log was replayed: the query's position, but where what it planned could not be read."""
        owed = {partition: Note.of(note).begins for partition, note in self._board.owed().items()}
        return self._board.health.positions.merged(
            membership={partition: membership for partition, (_, membership) in owed.items()},
            commits={partition: commits for partition, (commits, _) in owed.items()},
        )

    def _ends(self) -> dict[int, PartitionEnds]:
        """Where the log ends, as of one moment."""
        ends = self._board.ends
        with ends.lock:
            return {of: copy(known) for of, known in ends.of_topic(self._config.kafka.offsets_topic).items()}

    def _look_for_unread(self, topic: Topic) -> None:
        """See which partitions cannot be read, and have those that can be again count for being ready."""
        if time.monotonic() < self._look_at:
            return
        self._look_at = time.monotonic() + _LOOK_SECONDS
        board = self._board
        ends = self._ends()
        unread = self._unread.look(now_ms(), topic, ends, board.health.positions, board.owed())
        board.health.set_unread(unread, self._log.identity.partitions)
        known = {
            partition: (of.high_watermark, of.last_stable)
            for partition, of in ends.items()
            if partition in topic.leaders and of.high_watermark is not None and of.last_stable is not None
        }
        both = self._config.source.isolation == "exact"
        board.health.add_log_end_at_start(
            {partition: high if both else stable for partition, (high, stable) in known.items()},
            {partition: stable for partition, (_, stable) in known.items()},
            {
                partition: ends[partition].sampled_ms
                for partition in known
                if ends[partition].sampled_ms > self._asked_ms
            },
        )

    def _can_pay(self) -> bool:
        """Whether partitions are back of which records were planned that could not be read."""
        names = (self._config.kafka.offsets_topic, SHARE_STATE_TOPIC)
        owed = dict(zip(names, (self._board.owed(), self._board.share_owed()), strict=True))
        if not any(owed.values()) or time.monotonic() < self._pay_at:
            return False
        topics = {name: self._board.ends.topic(name) for name in names}
        return any(of is not None and not owed[name].keys().isdisjoint(of.leaders) for name, of in topics.items())

    def _tell_progress(self) -> None:
        """Log how much of the log is read, now and then until the monitor is ready for the first time."""
        if self._was_ready or time.monotonic() < self._tell_at:
            return
        self._was_ready, missing = self._board.health.ready()
        if self._was_ready:
            seconds = round(time.monotonic() - self._made_at, 1)
            self._stages.note("ready", f"ready: {seconds:g} s", seconds=seconds)
            return
        self._tell_at = time.monotonic() + _TELL_SECONDS
        for each in missing:
            if each.get("read_percent", self._reported_percent) != self._reported_percent:
                self._reported_percent = each["read_percent"]
                percent, left = each["read_percent"], each["records"]
                self._stages.note("reading_log", f"log read: {percent} %", read_percent=percent, records_left=left)

    def _on_progress(self, progress: Progress) -> None:
        self._last_finished = Mark(self._continuity.shown.query_id, progress.batch_id)
        self._finished_batches += 1
        if not progress.is_late:
            self._failures.finished_batch()
            if progress.input_rows:
                planners.plans_no_more(self._name)
        self._board.health.looked()
        self._board.health.observe_batch(progress.duration_ms / 1_000)
        self._stall.finished(progress.duration_ms / 1_000)
        self._set_positions(progress.positions)

    def _set_positions(self, by_reader: tuple[PartitionOffsets, ...]) -> None:
        positions = _positions(by_reader)
        self._board.health.set_positions(positions.membership, positions.commits, now_ms())


def failure(error: Exception, spark_log: Path) -> Exception:
    """The reason why the query ended, for the retry policy to judge.

    A query may not even start, as on a disk that is full: that may pass as well as anything else.

    Raises:
        MonitorError: the JVM is gone, and cannot be started again in this process.
    """
    is_lost = isinstance(error, Py4JNetworkError | ConnectionError)
    if is_lost or (is_no_answer(error) and jvm_lifecycle.is_gone()):
        killed_because = jvm_lifecycle.killed_because()
        raise MonitorError(f"spark: {killed_because or 'its JVM ended'} (see {spark_log})") from error
    return error


def _stopped(query: StreamingQuery) -> bool:
    """Stop a query; returns whether it has: one that waits for brokers that are away does not in time."""
    with suppress(PySparkException, Py4JError, OSError):
        query.stop()
        return not query.isActive
    return False


def _positions(by_reader: tuple[PartitionOffsets, ...]) -> Positions:
    commits, membership = by_reader or ({}, {})
    return Positions(membership=membership, commits=commits)
