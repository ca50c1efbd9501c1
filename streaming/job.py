"""The whole, wired: source → shards → board, and what serves and feeds the board.

A monitor owns everything it starts and ends it in the opposite order. Of what it starts only the query is ever
started again: it fails when brokers are away, its checkpoint says where to go on, and the board keeps showing what
was.
"""

import errno
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from copy import copy
from pathlib import Path
from typing import Any, ClassVar, Final, Self

from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from streaming import interpreter, java, kafka_client, kafka_sink, restart, session
from streaming.api import BrokerAnswers
from streaming.board import Board
from streaming.config import Config
from streaming.errors import MonitorError, UsageError
from streaming.event_file import EventFile
from streaming.event_window import Event
from streaming.exporter import Exporter
from streaming.failures import Failures
from streaming.history.queries import History
from streaming.history.writer import HistoryWriter
from streaming.log_ends import LogEnds
from streaming.logs import get_logger, with_fields
from streaming.outlets import Outlets, Reader
from streaming.packing import bundle_keys
from streaming.processor import CoordinatorShards
from streaming.progress import PartitionOffsets, Progress, ProgressListener
from streaming.readiness import Positions
from streaming.schemas import BUNDLE, OUTPUT
from streaming.server import Server
from streaming.sink import BatchWriter, Sink
from streaming.source import coordinator_log
from streaming.standby import await_turn
from streaming.state_directory import StateDirectory
from streaming.state_lock import JVM_LOCK, StateLock
from streaming.watched_log import WatchedLog
from streaming.watchers import watchers

END_OFFSETS_FILE: Final = "end-offsets.json"
EVENTS_FILE: Final = "events.ndjson"
SPARK_LOG: Final = "spark.log"

CALM_SECONDS: Final = 10.0
"""After a large batch, before its memory is given back."""

_log = get_logger("job")


def now_ms() -> int:
    """The wall clock, as Kafka writes it."""
    return time.time_ns() // 1_000_000


class Monitor:
    """A running monitor of one cluster; a context manager.

    Args:
        config: of the cluster.
        sinks: get every micro-batch after the board.
        standby: whether to wait while another one has the state directory, and then to take over from it. Until then
            it has a Spark that is warm, and no address.
        rebuild: whether what the state directory holds of the log is forgotten, and the log read from its beginning.
        while_waiting: called now and then while it stands by; may raise.

    Raises on entry, with everything ended again:
        UsageError: no usable Java, the address is taken, the state directory is another monitor's.
        CannotTellError: the brokers do not answer, or not about the offsets topic.
    """

    shards: ClassVar[type[CoordinatorShards]] = CoordinatorShards
    """What replays; the benchmark has others beside it."""

    def __init__(
        self,
        config: Config,
        sinks: Sequence[Sink] = (),
        *,
        standby: bool = False,
        rebuild: bool = False,
        while_waiting: Callable[[], object] = lambda: None,
    ) -> None:
        """See that Java is there, and take the port, unless it may be another one's yet."""
        java.find_java()
        self._config = config
        self._sinks = sinks
        self._directory = Path(config.state.dir)
        self._log = WatchedLog(config)
        self._state = StateDirectory(
            self._directory,
            config.state.checkpoint_location,
            reads_uncommitted=config.source.isolation == "exact",
            clock_ms=now_ms,
        )
        self._rebuild = rebuild
        self._ends = LogEnds(config.end_offsets.history_points, config.end_offsets.history_seconds * 1_000)
        self.board = Board(self._ends, offsets_topic=config.kafka.offsets_topic, event_window=config.events.window)
        self._outlets = Outlets(
            config,
            self._readers(),
            self.board,
            others=kafka_sink.group_topics(config, self.board, now_ms),
            source=lambda: restart.query_id(self._state.checkpoint),
            clock_ms=now_ms,
        )
        self.board.sinks = self._outlets.states
        self._exporter = Exporter(
            self.board,
            config.cluster.name,
            partition_series=config.metrics.partition_series,
            rebalance_histogram=config.metrics.rebalance_histogram,
        )
        self._standby = standby
        self._while_waiting = while_waiting
        self._lock = StateLock(self._directory)
        if not standby:
            self.server = self._server()
        self._stack = ExitStack()
        self._spark: SparkSession | None = None
        self._spark_log = self._directory / SPARK_LOG
        self._query_name = f"group-monitor {config.cluster.name}"
        self._finished_batches = 0
        self._failures = Failures(config)
        self._has_targets = False
        self._batches_seen = 0
        # Large batches: those whose memory was given back; all of them, and when the last one was noticed.
        self._given_back = 0
        self._large = (0, 0.0)
        self._looked_ms: int | None = None
        self._listener: ProgressListener | None = None
        self._may_write = False

    def share(self, spark: SparkSession, log_file: Path) -> None:
        """Take a session that others have too, and the file its JVM writes to; before it is entered."""
        self._spark, self._spark_log = spark, log_file

    def discard(self) -> None:
        """Let go of the port of one that is not going to be entered."""
        if not self._standby:
            self.server.stop()

    def __enter__(self) -> Self:
        interpreter.share_fairly()
        with ExitStack() as stack:
            stack.callback(self._lock.release)
            if self._standby:
                spark = self._start_spark(stack)
                await_turn(
                    self._lock, self._state, lambda: deque(self._state.rows(spark), maxlen=0), self._while_waiting
                )
                self.server = self._server()
            stack.callback(self.server.stop)
            if not self._standby:
                self._lock.take()
            self._identify()
            self._lock.keep()
            self.board.events.keep(EventFile(self._directory / EVENTS_FILE))
            stack.callback(self.board.events.close)
            self.server.start()
            spark = self._start_spark(stack)
            stack.callback(self._release, session.hold(spark, self._directory / JVM_LOCK))
            self._fill_board(spark)
            stack.callback(self._outlets.stop)
            self._outlets.start()
            for watcher in watchers(
                self._config, self.board, self._publish, now_ms, self._directory / END_OFFSETS_FILE
            ):
                stack.callback(watcher.stop)
                watcher.start()
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def run_until(self, stopped: threading.Event) -> None:
        """Keep the query running until told to stop.

        Raises:
            MonitorError: the query cannot go on.
        """
        while not stopped.is_set():
            before = self._finished_batches
            error = self._run_query(stopped)
            if error is None:
                return
            stopped.wait(self._failures.pause_seconds(error, got_on=self._finished_batches > before))

    def _server(self) -> Server:
        config = self._config
        brokers = BrokerAnswers(
            group_configs=lambda: kafka_client.group_configs(config.kafka),
            settings=lambda: kafka_client.broker_settings(config.kafka),
        )
        past = History(config.history_dir) if config.history.enabled else None
        return Server.of(config.http, self.board, self._exporter, brokers, past)

    def _start_spark(self, stack: ExitStack) -> SparkSession:
        """The session, there already where it is shared, or where it stood by."""
        if self._spark is None:
            self._spark = session.start(self._config, self._spark_log)
            stack.callback(session.stop, self._spark)
        return self._spark

    def _identify(self) -> None:
        """Learn what is to be read, and see that the state directory is of it."""
        identity = self._log.identify()
        if self._log.tombstone_retention_ms is not None:
            self._state.tombstone_retention_ms = self._log.tombstone_retention_ms
        self._state.claim(identity, rebuild=self._rebuild)

    def _readers(self) -> list[Reader]:
        """Who takes what leaves the stream, as configured."""
        settings = self._config.history
        readers = list(kafka_sink.readers(self._config, self.board))
        if settings.enabled:
            kafka = self._config.kafka if settings.records else None
            history = HistoryWriter(self._config.history_dir, settings, self.board, now_ms, kafka=kafka)
            self.board.history_bytes = history.size_bytes
            readers.insert(0, history.reader())
        return readers

    def _publish(self, events: Sequence[Event]) -> None:
        self.board.tell(events)
        self._outlets.tell(events)

    def _fill_board(self, spark: SparkSession) -> None:
        if self._state.holds_state():
            by_reader = self._state.positions()
            if not self._state.rebuild_if_outlived(*self._log.ends(), _positions(by_reader)):
                self.board.load(self._state.rows(spark))
                self._set_positions(by_reader)
                return
        self.board.load([])

    def _run_query(self, stopped: threading.Event) -> Exception | None:
        """Start the query and wait for its end; the reason if it failed."""
        query = None
        try:
            query = self._start_query()
            while query.isActive and not stopped.wait(0.2):
                self._look()
            return query.exception() if not stopped.is_set() else None
        except UsageError:
            raise
        except (StreamingQueryException, MonitorError) as error:
            return error
        except (Py4JNetworkError, OSError) as error:
            if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
                return error
            raise MonitorError(f"spark: its JVM ended by itself (see {self._spark_log})") from error
        except (PySparkException, Py4JError) as error:
            # It did not even start, as on a disk that is full: that may pass as well as anything else.
            return error
        finally:
            if self._listener is not None:
                self._listener.ended()
            if query is not None:
                self._may_write = not _stopped(query)

    def _start_query(self) -> StreamingQuery:
        assert self._spark is not None  # noqa: S101 - set on entry
        config = self._config
        high_watermarks, last_stable = self._log.ends()
        if self._state.rebuild_if_outlived(high_watermarks, last_stable, self.board.positions):
            self.board.begin_anew()
            self._has_targets = False
        self.board.rebuilds = self._state.rebuilds
        # Kept before anybody can be told that it is ready: a next run has to know where this one began.
        live_from = self._state.begin(high_watermarks)
        if not self._has_targets:
            # A single reader never gets past an open transaction: its target is the last stable offset throughout.
            both = config.source.isolation == "exact"
            self.board.set_log_end_at_start(high_watermarks if both else last_stable, last_stable)
            self._set_positions(())
            self._has_targets = True
        if self._listener is None:
            self._listener = ProgressListener(self._query_name, with_fields(self._on_progress))
            self._listener.listen(self._spark)
        keys = bundle_keys(self._spark, config.spark.shuffle_partitions)
        bundles = coordinator_log(self._spark, config, self._log.identity.partitions, keys).groupBy(BUNDLE)
        replayed = bundles.transformWithStateInPandas(
            self.shards(dict(live_from), dict(high_watermarks), dict(self._state.told_before)),
            outputStructType=OUTPUT,
            outputMode="Update",
            timeMode="ProcessingTime",
        )
        return (
            replayed.writeStream.queryName(self._query_name)
            .foreachBatch(BatchWriter([self.board, *self._outlets.sinks, *self._sinks], now_ms))
            .outputMode("update")
            .option("checkpointLocation", self._state.checkpoint)
            .trigger(processingTime=f"{config.spark.trigger_interval_ms} milliseconds")
            .start()
        )

    def _look(self) -> None:
        """While the query runs: keep in mind how far it is, and see that the topic is still the one it reads.

        Raises:
            UsageError: the topic was made anew, which the source notices only if it is shorter than it was.
        """
        topic = self._ends.topic(self._config.kafka.offsets_topic)
        if topic is not None:
            self._log.refuse_another(topic)
        if self._batches_seen != self._finished_batches:
            self._batches_seen = self._finished_batches
            self._state.finished_batch()
        self._give_back()
        if self._ends.sampled_ms != self._looked_ms:
            self._looked_ms = self._ends.sampled_ms
            with self._ends.lock:
                ends = {of: copy(held) for of, held in self._ends.of_topic(self._config.kafka.offsets_topic).items()}
            self._state.follow(self._looked_ms, ends, self.board.positions)

    def _give_back(self) -> None:
        """Return the memory that a catch-up, or a start with much state, needed and nothing else does.

        Not between two large batches, as in a storm of rebalances: all threads stand still for it.
        """
        batches, seen = self._large
        now = time.monotonic()
        if batches != self.board.large_batches:
            self._large = (self.board.large_batches, now)
        elif batches != self._given_back and now - seen >= CALM_SECONDS and self.board.ready()[0]:
            self._given_back = batches
            assert self._spark is not None  # noqa: S101 - a query runs
            interpreter.give_back()
            session.give_back(self._spark)

    def _release(self, held: Any) -> None:  # noqa: ANN401 - an object of Java
        # The lock on what a query still writes to that would not stop goes with the JVM.
        if not self._may_write:
            session.release(held)

    def _on_progress(self, progress: Progress) -> None:
        self._finished_batches += 1
        if not progress.is_late:
            self._failures.finished_batch()
        self.board.observe_batch(progress.duration_ms / 1_000)
        self._set_positions(progress.positions)

    def _set_positions(self, by_reader: tuple[PartitionOffsets, ...]) -> None:
        positions = _positions(by_reader)
        self.board.set_positions(positions.membership, positions.commits, now_ms())


def _stopped(query: StreamingQuery) -> bool:
    """Stop a query; tells whether it has: one that waits for brokers that are away does not in time."""
    with suppress(PySparkException, Py4JError, OSError):
        query.stop()
        return not query.isActive
    return False


def _positions(by_reader: tuple[PartitionOffsets, ...]) -> Positions:
    commits, membership = by_reader or ({}, {})
    return Positions(membership=membership, commits=commits)
