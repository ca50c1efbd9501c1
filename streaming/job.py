"""The whole, wired: source → shards → board, and what serves and feeds the board.

A monitor owns everything it starts and ends it in the opposite order. Of what it starts only the query is ever
started again: it fails when brokers are away, its checkpoint says where to go on, and the board keeps showing what
was.
"""

import errno
import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack, closing, suppress
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Final, Self

from kafka.errors import KafkaError
from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from streaming import interpreter, java, kafka_client, kafka_sink, restart, session
from streaming.api import BrokerAnswers
from streaming.board import Board
from streaming.config import Config
from streaming.end_offsets import KafkaOffsetsClient
from streaming.errors import CannotTellError, MonitorError, UsageError, first_line
from streaming.event_file import EventFile
from streaming.event_window import Event
from streaming.exporter import Exporter
from streaming.failures import Failures
from streaming.history.queries import History
from streaming.history.writer import HistoryWriter
from streaming.log_ends import LogEnds, Topic
from streaming.logs import get_logger
from streaming.outlets import Outlets, Reader
from streaming.packing import bundle_keys
from streaming.processor import CoordinatorShards
from streaming.progress import PartitionOffsets, Progress, ProgressListener
from streaming.readiness import Offsets, Positions
from streaming.restart import Identity
from streaming.schemas import BUNDLE, OUTPUT
from streaming.server import Server
from streaming.sink import BatchWriter, Sink
from streaming.source import coordinator_log
from streaming.state_directory import StateDirectory
from streaming.state_lock import JVM_LOCK, StateLock
from streaming.stopping import stop_signals
from streaming.watchers import watchers

END_OFFSETS_FILE: Final = "end-offsets.json"
EVENTS_FILE: Final = "events.ndjson"
SPARK_LOG: Final = "spark.log"

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
        rebuild: bool = False,
    ) -> None:
        """See that Java is there, and take the port, unless it may be another one's yet.

        With `rebuild`, what the state directory holds of the log is forgotten, and it is read from its beginning.
        """
        java.find_java()
        self._config = config
        self._sinks = sinks
        self._directory = Path(config.state.dir)
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
        self._lock = StateLock(self._directory)
        if not standby:
            self.server = self._server()
        self._stack = ExitStack()
        self._spark: SparkSession | None = None
        self._query_name = f"group-monitor {config.cluster.name}"
        self._identity: Identity | None = None
        self._finished_batches = 0
        self._failures = Failures(config)
        self._has_targets = False
        self._batches_seen = 0
        self._looked_ms: int | None = None
        self._listener: ProgressListener | None = None

    def __enter__(self) -> Self:
        interpreter.share_fairly()
        with ExitStack() as stack:
            stack.callback(self._lock.release)
            if self._standby:
                self._start_spark(stack)
                self._await_turn()
            stack.callback(self.server.stop)
            if not self._standby:
                self._lock.take()
            self._identify()
            self._lock.keep()
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
            retention_ms = kafka_client.tombstone_retention_ms(admin, kafka.offsets_topic)
        if retention_ms is not None:
            self._state.tombstone_retention_ms = retention_ms
        self._identity = Identity(
            cluster_id=cluster_id,
            offsets_topic=kafka.offsets_topic,
            topic_id=described[0].id,
            partitions=described[0].partitions,
            shuffle_partitions=self._config.spark.shuffle_partitions,
            isolation=self._config.source.isolation,
        )
        self._state.claim(self._identity, rebuild=self._rebuild)

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
            if not self._state.rebuild_if_outlived(*self._log_end(), _positions(by_reader)):
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
            raise MonitorError(f"spark: its JVM ended by itself (see {self._directory / SPARK_LOG})") from error
        except (PySparkException, Py4JError) as error:
            # It did not even start, as on a disk that is full: that may pass as well as anything else.
            return error
        finally:
            if query is not None:
                _stop(query)

    def _start_query(self) -> StreamingQuery:
        assert self._spark is not None  # noqa: S101 - set on entry
        config = self._config
        high_watermarks, last_stable = self._log_end()
        if self._state.rebuild_if_outlived(high_watermarks, last_stable, self.board.positions):
            self.board.begin_anew()
            self._has_targets = False
        self.board.rebuilds = self._state.rebuilds
        if not self._has_targets:
            # A single reader never gets past an open transaction: its target is the last stable offset throughout.
            both = config.source.isolation == "exact"
            self.board.set_log_end_at_start(high_watermarks if both else last_stable, last_stable)
            self._set_positions(())
            self._has_targets = True
        if self._listener is None:
            self._listener = ProgressListener(self._query_name, self._on_progress)
            self._listener.listen(self._spark)
        live_from = self._state.begin(high_watermarks)
        keys = bundle_keys(self._spark, config.spark.shuffle_partitions)
        bundles = coordinator_log(self._spark, config, self._known.partitions, keys).groupBy(BUNDLE)
        replayed = bundles.transformWithStateInPandas(
            CoordinatorShards(dict(live_from), dict(high_watermarks), dict(self._state.told_before)),
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

    @property
    def _known(self) -> Identity:
        assert self._identity is not None  # noqa: S101 - set on entry
        return self._identity

    def _look(self) -> None:
        """While the query runs: keep in mind how far it is, and see that the topic is still the one it reads.

        Raises:
            UsageError: the topic was made anew, which the source notices only if it is shorter than it was.
        """
        topic = self._ends.topic(self._config.kafka.offsets_topic)
        if topic is not None:
            self._refuse_another(topic)
        if self._batches_seen != self._finished_batches:
            self._batches_seen = self._finished_batches
            self._state.finished_batch()
        if self._ends.sampled_ms != self._looked_ms:
            self._looked_ms = self._ends.sampled_ms
            with self._ends.lock:
                ends = {of: copy(held) for of, held in self._ends.of_topic(self._config.kafka.offsets_topic).items()}
            self._state.follow(self._looked_ms, ends, self.board.positions)

    def _refuse_another(self, topic: Topic) -> None:
        found = replace(self._known, topic_id=topic.id, partitions=topic.partitions)
        restart.same(self._directory, self._known, found)

    def _log_end(self) -> tuple[Offsets, Offsets]:
        """High watermark and last stable offset of every partition of the offsets topic."""
        kafka = self._config.kafka
        try:
            client = KafkaOffsetsClient(kafka_client.python_settings(kafka, "start"))
        except (KafkaError, OSError) as error:
            raise CannotTellError(f"kafka.bootstrap_servers: {first_line(error)}") from error
        with closing(client):
            try:
                (topic,) = client.describe([kafka.offsets_topic], ())
                self._refuse_another(topic)
                leaders = {(topic.name, partition): broker for partition, broker in topic.leaders.items()}
                ends = [client.ends(leaders, committed=committed) for committed in (False, True)]
            except (KafkaError, OSError, RuntimeError, ValueError) as error:
                raise CannotTellError(f"kafka.offsets_topic: its end is not to be had: {first_line(error)}") from error
        high_watermarks, last_stable = ({partition: end for (_, partition), end in each.items()} for each in ends)
        return high_watermarks, last_stable

    def _on_progress(self, progress: Progress) -> None:
        self._finished_batches += 1
        self._failures.finished_batch()
        self.board.observe_batch(progress.duration_ms / 1_000)
        self._set_positions(progress.positions)

    def _set_positions(self, by_reader: tuple[PartitionOffsets, ...]) -> None:
        positions = _positions(by_reader)
        self.board.set_positions(positions.membership, positions.commits, now_ms())


def run(config: Config, *, standby: bool = False, rebuild: bool = False) -> None:
    """Run the monitor until SIGINT or SIGTERM; see `Monitor` for `standby` and `rebuild`. Raises MonitorError."""
    with Monitor(config, standby=standby, rebuild=rebuild) as monitor, stop_signals() as stopped:
        print(f"page {monitor.server.url}/  metrics {monitor.server.url}/metrics", flush=True)  # noqa: T201 - its address
        monitor.run_until(stopped)


def _stop(query: StreamingQuery) -> None:
    # One that waits for brokers that are away does not stop in time; its JVM, which goes next, does.
    with suppress(PySparkException, Py4JError, OSError):
        query.stop()


def _positions(by_reader: tuple[PartitionOffsets, ...]) -> Positions:
    commits, membership = by_reader or ({}, {})
    return Positions(membership=membership, commits=commits)
