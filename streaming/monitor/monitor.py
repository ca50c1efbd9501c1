"""Puts a monitor together: the query that fills the board, and what serves and feeds the board.

A monitor owns everything it starts, and ends it in the opposite order. Only the query is ever started again
(`query_supervisor`).
"""

import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

from pyspark.sql import SparkSession

from streaming.base import gc_tuning
from streaming.base.logging_setup import get_logger
from streaming.base.stages import Stages
from streaming.base.times import now_ms
from streaming.checkpoint.identity import stateful_tasks
from streaming.checkpoint.lock import JVM_LOCK, StateLock
from streaming.checkpoint.standby import await_turn
from streaming.checkpoint.state_directory import StateDirectory
from streaming.config.loading import Config
from streaming.kafka import client_settings
from streaming.monitor import state_formats
from streaming.monitor.base_monitor import BaseMonitor, run_threads
from streaming.monitor.coordinator_check import CoordinatorCheck
from streaming.monitor.offsets_topic import OffsetsTopic
from streaming.monitor.query_supervisor import QuerySupervisor
from streaming.otlp.connection import refuse_without_library
from streaming.polling.client import KafkaGroupsClient
from streaming.query.foreach_batch import BatchSink
from streaming.spark import java, jvm_lifecycle, session

SPARK_LOG: Final = "spark.log"

_log = get_logger("job")


class Monitor(BaseMonitor):
    """A running monitor of one cluster.

    Args:
        config: of the cluster.
        sinks: get every micro-batch after the board.
        standby: whether to wait while another one has the state directory, and then to take over from it. Until then
            it has a Spark that is warm, and no address.
        rebuild: whether what the state directory holds of the log is forgotten, and the log read from its beginning.
        while_waiting: called now and then while it stands by; may raise.
        say: gets a sentence for each stage of the start; by default they are logged.

    Raises on entry, with everything ended again:
        UsageError: no usable Java, the address is taken, the state directory is another monitor's.
        CannotTellError: the brokers do not answer, or not about the offsets topic.
    """

    def __init__(  # noqa: PLR0913 - what it is started with, all named
        self,
        config: Config,
        sinks: Sequence[BatchSink] = (),
        *,
        standby: bool = False,
        rebuild: bool = False,
        while_waiting: Callable[[], object] = lambda: None,
        say: Callable[[str], object] | None = None,
    ) -> None:
        """See that Java is there, and take the port, unless it may be another one's yet."""
        java.find_java()
        refuse_without_library(config.otlp)
        super().__init__(config, lambda: self._query.query_id)
        self._log = OffsetsTopic(config)
        self._state = StateDirectory(
            self._directory,
            config.state.checkpoint_location,
            reads_uncommitted=config.source.isolation == "exact",
            clock_ms=now_ms,
        )
        self._rebuild = rebuild
        self._standby = standby
        self._while_waiting = while_waiting
        self._lock = StateLock(self._directory)
        if not standby:
            self.server = self._server()
        self._stages = Stages(say)
        self.board.health.show_start(self._stages.missing)
        self._spark: SparkSession | None = None
        self._spark_log = self._directory / SPARK_LOG
        self._query = QuerySupervisor(
            config,
            self.board,
            self._state,
            self._log,
            sinks=lambda: [*self._outputs.sinks, *sinks],
            stages=self._stages,
        )

    def share(self, spark: SparkSession, log_file: Path) -> None:
        """Take a session that others have too, and the file its JVM writes to; before it is entered."""
        self._spark, self._spark_log = spark, log_file

    def discard(self) -> None:
        """Let go of the port of one that is not going to be entered."""
        if not self._standby:
            self.server.stop()

    def _start(self, stack: ExitStack) -> None:
        gc_tuning.share_fairly()
        stack.callback(self._lock.release)
        if self._standby:
            spark = self._start_spark(stack)
            self._state.reach(spark)
            stack.callback(self._let_go)
            await_turn(self._lock, self._state, lambda: deque(self._state.rows(spark), maxlen=0), self._while_waiting)
            self.server = self._server()
        stack.callback(self.server.stop)
        if not self._standby:
            self._lock.take()
        with self._stages.stage("asking the brokers for the offsets topic"):
            self._identify()
        if self._state.is_reached:
            self._look_at_checkpoint(stack)
        self._lock.keep()
        self._keep_events(stack)
        self.server.start()
        spark = self._start_spark(stack)
        stack.callback(self._release, jvm_lifecycle.hold(spark, self._directory / JVM_LOCK))
        is_looked_at = self._state.is_reached
        self._state.reach(spark)
        if not is_looked_at:
            self._look_at_checkpoint(stack)
        with self._stages.stage("loading the state"):
            self._query.fill_board(spark)
        settings = client_settings.python_settings(self._config.kafka, "check")
        check = CoordinatorCheck(
            self.board, lambda: KafkaGroupsClient(settings), self._directory, lambda: self._query.query_id
        )
        run_threads(stack, [self._outputs, *self._watchers(), check])

    def run_until(self, stopped: threading.Event) -> None:
        """Keep the query running until stopped.

        Raises:
            MonitorError: the query cannot go on.
        """
        assert self._spark is not None  # noqa: S101 - set on entry
        self._query.run_until(stopped, self._spark, self._spark_log)

    def _start_spark(self, stack: ExitStack) -> SparkSession:
        """The session, there already where it is shared, or where it stood by."""
        if self._spark is None:
            with self._stages.stage("starting Java and Spark"):
                tasks = stateful_tasks(self._directory, self._config.spark.shuffle_partitions)
                self._spark = session.start(self._config, self._spark_log, tasks)
            stack.callback(jvm_lifecycle.stop, self._spark)
        return self._spark

    def _identify(self) -> None:
        """Learn what is to be read, and see that the state directory is of it."""
        identity = self._log.identify()
        self.board.health.set_unread({}, identity.partitions)
        if self._log.tombstone_retention_ms is not None:
            self._state.tombstone_retention_ms = self._log.tombstone_retention_ms
        state_formats.refuse_others(self._directory, rebuild=self._rebuild)
        self._state.claim(identity, rebuild=self._rebuild)

    def _look_at_checkpoint(self, stack: ExitStack) -> None:
        """Have it, and see that it may be gone on from."""
        with self._stages.stage("looking at the checkpoint"):
            if not self._standby:
                stack.callback(self._let_go)
                self._state.hold(self._lock.directory_id(), look=self._while_waiting)
            self._state.examine()

    def _let_go(self) -> None:
        # What would not stop may still write, while there is a JVM: another one waits until the lease is stale.
        if not self._query.may_write or jvm_lifecycle.has_ended():
            self._state.let_go()

    def _release(self, held: Any) -> None:  # noqa: ANN401 - an object of Java
        # The lock on what a query still writes to that would not stop goes with the JVM.
        if not self._query.may_write:
            jvm_lifecycle.release(held)
