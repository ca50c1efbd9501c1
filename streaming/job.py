"""The whole, wired: source → shards → board, and what serves and feeds the board.

A monitor owns everything it starts and ends it in the opposite order. Of what it starts only the query is ever
started again: it fails when brokers are away, its checkpoint says where to go on, and the board keeps showing what
was.
"""

import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import Final, Self

from kafka.errors import KafkaError
from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from streaming import java, kafka_client, kafka_sink, restart, session
from streaming.api import BrokerAnswers
from streaming.board import Board
from streaming.config import Config
from streaming.end_offsets import KafkaOffsetsClient
from streaming.errors import CannotTellError, MonitorError
from streaming.event_file import EventFile
from streaming.event_window import Event
from streaming.exporter import Exporter
from streaming.history.queries import History
from streaming.history.writer import HistoryWriter
from streaming.log_ends import LogEnds
from streaming.logs import get_logger
from streaming.outlets import Outlets, Reader
from streaming.packing import bundle_keys
from streaming.processor import CoordinatorShards
from streaming.progress import PartitionOffsets, Progress, ProgressListener
from streaming.readiness import Offsets
from streaming.restart import Identity
from streaming.schemas import BUNDLE, OUTPUT
from streaming.server import Server
from streaming.sink import BatchWriter, Sink
from streaming.source import coordinator_log
from streaming.state_lock import JVM_LOCK, StateLock
from streaming.stopping import stop_signals
from streaming.watchers import watchers

CHECKPOINT: Final = "checkpoint"
END_OFFSETS_FILE: Final = "end-offsets.json"
EVENTS_FILE: Final = "events.ndjson"
SPARK_LOG: Final = "spark.log"

RETRY_DELAYS_SECONDS: Final = (1, 2, 5, 10, 30)
"""Waits before the query is started again; the last one repeats. A finished micro-batch starts over with the first."""

FRUITLESS_STARTS: Final = 5
"""So many starts in a row without a finished micro-batch, brokers being reachable, are no passing trouble."""

LOG_LOST: Final = (
    "may have been aged out",
    "offset was changed from",
    "KAFKA_DATA_LOSS",
    "Some data may have been lost",
)
"""What the connector says when the log is not the one the checkpoint knows."""

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

    Raises on entry, with everything ended again:
        UsageError: no usable Java, no jars, the address is taken, the state directory is another monitor's.
        CannotTellError: the brokers do not answer, or not about the offsets topic.
    """

    def __init__(
        self,
        config: Config,
        sinks: Sequence[Sink] = (),
        *,
        standby: bool = False,
    ) -> None:
        """See that Java and jars are there, and take state directory and port, unless they may be another one's yet."""
        java.find_java()
        session.connector_jars(config.spark.jars_dir)
        self._config = config
        self._sinks = sinks
        self._directory = Path(config.state.dir)
        # Spark reads a bare path as the file system's it is configured for, which is not always this machine's.
        self._checkpoint = config.state.checkpoint_location or (self._directory / CHECKPOINT).resolve().as_uri()
        self._ends = LogEnds(config.end_offsets.history_points, config.end_offsets.history_seconds * 1_000)
        self.board = Board(self._ends, offsets_topic=config.kafka.offsets_topic, event_window=config.events.window)
        self._outlets = Outlets(
            config,
            self._readers(),
            self.board,
            others=kafka_sink.group_topics(config, self.board, now_ms),
            source=lambda: restart.query_id(self._checkpoint),
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
        self._lock = StateLock(self._directory)
        if not standby:
            self._lock.take()
            self.server = self._server()
        self._stack = ExitStack()
        self._spark: SparkSession | None = None
        self._query_name = f"group-monitor {config.cluster.name}"
        self._partitions = 0
        self._finished_batches = 0
        self._brokers_away = False
        self._listener: ProgressListener | None = None

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            stack.callback(self._lock.release)
            if self._standby:
                self._start_spark(stack)
                self._await_turn()
            stack.callback(self.server.stop)
            self._identify()
            self.board.events.keep(EventFile(self._directory / EVENTS_FILE))
            stack.callback(self.board.events.close)
            self.server.start()
            spark = self._start_spark(stack)
            stack.callback(session.release, session.hold(spark, self._directory / JVM_LOCK))
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
        failures = fruitless = 0
        while not stopped.is_set():
            before = self._finished_batches
            error = self._run_query(stopped)
            if error is None:
                return
            failures = 0 if self._finished_batches > before else failures + 1
            reachable = self._tell(error, failures)
            fruitless = fruitless + 1 if reachable and failures else 0
            if fruitless >= FRUITLESS_STARTS:
                raise MonitorError(f"the query fails again and again: {_first_line(error)}")
            stopped.wait(RETRY_DELAYS_SECONDS[min(failures, len(RETRY_DELAYS_SECONDS) - 1)])

    def _server(self) -> Server:
        config = self._config
        brokers = BrokerAnswers(
            group_configs=lambda: kafka_client.group_configs(config.kafka),
            settings=lambda: kafka_client.broker_settings(config.kafka),
        )
        past = History(config.history_dir) if config.history.enabled else None
        return Server.of(config.http, self.board, self._exporter, brokers, past)

    def _start_spark(self, stack: ExitStack) -> SparkSession:
        """The session, warm already where it stood by."""
        if self._spark is None:
            self._spark = session.start(self._config, self._directory / SPARK_LOG)
            stack.callback(session.stop, self._spark)
        return self._spark

    def _await_turn(self) -> None:
        """Return once the state directory is ours, with an address."""
        _log.info("standing_by", state_dir=str(self._directory), holder=self._lock.holder())
        self._lock.wait()
        _log.info("taking_over", state_dir=str(self._directory))
        self.server = self._server()

    def _identify(self) -> None:
        """Learn what is to be read, and see that the state directory is of it."""
        kafka = self._config.kafka
        with kafka_client.admin_client(kafka, "start") as admin:
            described = kafka_client.describe_topics(admin, [kafka.offsets_topic])
            if not described:
                raise CannotTellError(
                    f"kafka.offsets_topic: found no {kafka.offsets_topic!r}, accepted: an existing topic"
                )
            cluster_id = kafka_client.cluster_id(admin)
        self._partitions = described[0].partitions
        restart.claim(
            self._directory,
            Identity(
                cluster_id=cluster_id,
                offsets_topic=kafka.offsets_topic,
                topic_id=described[0].id,
                partitions=self._partitions,
                shuffle_partitions=self._config.spark.shuffle_partitions,
                isolation=self._config.source.isolation,
            ),
        )

    def _readers(self) -> list[Reader]:
        """Who takes what leaves the stream, as configured."""
        settings = self._config.history
        kept = [HistoryWriter(self._config.history_dir, settings, self.board, now_ms)] if settings.enabled else []
        return [*(history.reader() for history in kept), *kafka_sink.readers(self._config, self.board)]

    def _publish(self, events: Sequence[Event]) -> None:
        self.board.tell(events)
        self._outlets.tell(events)

    def _fill_board(self, spark: SparkSession) -> None:
        if not restart.has_committed_batch(self._checkpoint):
            self.board.load([])
            return
        topic = self._config.kafka.offsets_topic
        self.board.load(restart.stored_rows(spark, self._checkpoint))
        self._set_positions(restart.committed_positions(self._checkpoint, topic))

    def _run_query(self, stopped: threading.Event) -> Exception | None:
        """Start the query and wait for its end; the reason if it failed."""
        query = None
        try:
            query = self._start_query()
            while query.isActive and not stopped.wait(0.2):
                pass
            return query.exception() if not stopped.is_set() else None
        except (StreamingQueryException, MonitorError) as error:
            return error
        except (Py4JNetworkError, OSError) as error:
            raise MonitorError(f"spark: its JVM ended by itself (see {self._directory / SPARK_LOG})") from error
        finally:
            if query is not None:
                _stop(query)

    def _start_query(self) -> StreamingQuery:
        assert self._spark is not None  # noqa: S101 - set on entry
        config = self._config
        high_watermarks, last_stable = self._log_end()
        if self._listener is None:
            # A single reader never gets past an open transaction: its target is the last stable offset throughout.
            both = config.source.isolation == "exact"
            self.board.set_log_end_at_start(high_watermarks if both else last_stable, last_stable)
            self._set_positions(())
            self._listener = ProgressListener(self._query_name, config.kafka.offsets_topic, self._on_progress)
            self._spark.streams.addListener(self._listener)
        keys = bundle_keys(self._spark, config.spark.shuffle_partitions)
        bundles = coordinator_log(self._spark, config, self._partitions, keys).groupBy(BUNDLE)
        replayed = bundles.transformWithStateInPandas(
            CoordinatorShards(dict(high_watermarks)),
            outputStructType=OUTPUT,
            outputMode="Update",
            timeMode="ProcessingTime",
        )
        return (
            replayed.writeStream.queryName(self._query_name)
            .foreachBatch(BatchWriter([self.board, *self._outlets.sinks, *self._sinks], now_ms))
            .outputMode("update")
            .option("checkpointLocation", self._checkpoint)
            .trigger(processingTime=f"{config.spark.trigger_interval_ms} milliseconds")
            .start()
        )

    def _log_end(self) -> tuple[Offsets, Offsets]:
        """High watermark and last stable offset of every partition of the offsets topic."""
        kafka = self._config.kafka
        try:
            client = KafkaOffsetsClient(kafka_client.python_settings(kafka, "start"))
        except (KafkaError, OSError) as error:
            raise CannotTellError(f"kafka.bootstrap_servers: {_first_line(error)}") from error
        with closing(client):
            try:
                (topic,) = client.describe([kafka.offsets_topic], ())
                leaders = {(topic.name, partition): broker for partition, broker in topic.leaders.items()}
                ends = [client.ends(leaders, committed=committed) for committed in (False, True)]
            except (KafkaError, OSError, RuntimeError, ValueError) as error:
                raise CannotTellError(f"kafka.offsets_topic: its end is not to be had: {_first_line(error)}") from error
        high_watermarks, last_stable = ({partition: end for (_, partition), end in each.items()} for each in ends)
        return high_watermarks, last_stable

    def _on_progress(self, progress: Progress) -> None:
        self._finished_batches += 1
        if self._brokers_away:
            self._brokers_away = False
            _log.info("brokers_reachable_again")
        self.board.observe_batch(progress.duration_ms / 1_000)
        self._set_positions(progress.positions)

    def _set_positions(self, by_reader: tuple[PartitionOffsets, ...]) -> None:
        """The readers stand in the order of `source.isolation_levels`: commits first, membership last."""
        commits, membership = (by_reader[0], by_reader[-1]) if by_reader else ({}, {})
        self.board.set_positions(membership, commits, now_ms())

    def _tell(self, error: Exception, failures: int) -> bool:
        """Log a failed query; returns whether the brokers can be reached.

        Raises:
            MonitorError: the log is not the one the checkpoint knows.
        """
        if any(sign in str(error) for sign in LOG_LOST):
            raise MonitorError(
                f"state.dir: found {str(self._directory)!r} of a log that was cut off or made anew "
                f"({_first_line(error)}), accepted: another state.dir, or this one emptied, to read from the beginning"
            ) from error
        try:
            kafka_client.preflight(self._config)
        except MonitorError as unreachable:
            if not self._brokers_away:
                _log.warning("brokers_unreachable", reason=str(unreachable))
            self._brokers_away = True
            return False
        _log.warning("query_failed", reason=_first_line(error), failures=failures)
        return True


def run(config: Config, *, standby: bool = False) -> None:
    """Run the monitor until SIGINT or SIGTERM; see `Monitor` for `standby`. Raises MonitorError."""
    with Monitor(config, standby=standby) as monitor, stop_signals() as stopped:
        print(f"page {monitor.server.url}/  metrics {monitor.server.url}/metrics", flush=True)  # noqa: T201 - its address
        monitor.run_until(stopped)


def _stop(query: StreamingQuery) -> None:
    # One that waits for brokers that are away does not stop in time; its JVM, which goes next, does.
    with suppress(PySparkException, Py4JError, OSError):
        query.stop()


def _first_line(error: BaseException) -> str:
    """What is worth telling of an error that brings a Java stack along."""
    text = str(error) or type(error).__name__
    causes = [line for line in text.splitlines() if line.startswith("Caused by:")]
    return (causes[-1].removeprefix("Caused by: ") if causes else text.splitlines()[0])[:500]
