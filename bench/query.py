"""A monitor's query in the benchmark's own process, on a session that is there already."""

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final, Self

from pyspark.sql import SparkSession

from streaming.base.times import now_ms
from streaming.board.board import Board
from streaming.checkpoint.state_directory import StateDirectory
from streaming.config.loading import Config
from streaming.end_offsets.store import EndOffsets
from streaming.monitor.offsets_topic import OffsetsTopic
from streaming.monitor.query_supervisor import QuerySupervisor
from streaming.query.foreach_batch import BatchSink
from streaming.spark import jvm_lifecycle, session

_SECONDS: Final = 150.0
_POLL_SECONDS: Final = 0.005


@contextmanager
def open_session(config: Config) -> Iterator[SparkSession]:
    """A session as a monitor of this configuration starts it; it ends with the block."""
    spark = session.start(config, config.state.dir / "spark.log")
    try:
        yield spark
    finally:
        jvm_lifecycle.stop(spark)


class Query:
    """The query and its board: all that a monitor does besides, its samplers and its server, is left out.

    Attributes:
        seconds: when all that was in the log at start was on the board, by the monotonic clock.
    """

    def __init__(self, config: Config, spark: SparkSession, sinks: Sequence[BatchSink] = ()) -> None:
        """Of this configuration, on this session, with sinks beside the board."""
        self.board = Board(
            EndOffsets(config.end_offsets.history_points, config.end_offsets.history_seconds * 1_000),
            offsets_topic=config.kafka.offsets_topic,
            event_window=config.events.window,
        )
        self.seconds = 0.0
        self._spark = spark
        self._spark_log = config.state.dir / "spark.log"
        self._log = OffsetsTopic(config)
        self._state = StateDirectory(
            config.state.dir,
            config.state.checkpoint_location,
            reads_uncommitted=config.source.isolation == "exact",
            clock_ms=now_ms,
        )
        self._supervisor = QuerySupervisor(config, self.board, self._state, self._log, sinks=lambda: sinks)

    def __enter__(self) -> Self:
        self._state.claim(self._log.identify(), rebuild=False)
        self._state.reach(self._spark)
        self._state.examine()
        self.board.load([])
        return self

    def __exit__(self, *_: object) -> None:
        pass

    @contextmanager
    def caught_up(self) -> Iterator[None]:
        """Run, from when all that was in the log at start is on the board until the block ends.

        Raises:
            TimeoutError: that takes too long.
        """
        stopped = threading.Event()
        failed: list[BaseException] = []

        def run() -> None:
            try:
                self._supervisor.run_until(stopped, self._spark, self._spark_log)
            except BaseException as error:  # noqa: BLE001 - raised again below, in the thread that waits
                failed.append(error)

        thread = threading.Thread(target=run, name="query")
        thread.start()
        try:
            deadline = time.monotonic() + _SECONDS
            while not self._is_caught_up and thread.is_alive() and time.monotonic() < deadline:
                time.sleep(_POLL_SECONDS)
            self.seconds = time.monotonic()
            if not failed and not self._is_caught_up:
                raise TimeoutError(f"not at the end of the log within {_SECONDS:g} s")
            if not failed:
                yield
        finally:
            stopped.set()
            thread.join()
        if failed:
            raise failed[0]

    @property
    def _is_caught_up(self) -> bool:
        # Whether log end offsets are sampled is not asked for here.
        return self.board.health.caught_up
