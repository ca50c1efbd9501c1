"""Returns the memory that a start, a catch-up or a flood of requests needed, and what micro-batches leave behind."""

import time
from collections.abc import Callable
from typing import Final

from pyspark.sql import SparkSession

from streaming.base import gc_tuning
from streaming.base.resident_memory import GrownMemory, resident_bytes
from streaming.board.board import Board
from streaming.spark import jvm_lifecycle, planners

CALM_SECONDS: Final = 10.0
"""After the last large batch: all threads stand still for it, so not between two of a storm of rebalances."""

CLEANED_SECONDS: Final = (3.0, 60.0)
"""After a collection Spark's cleaner drops what broadcasts of ended micro-batches hold; the next one frees that. What
Spark remembers of the last micro-batches, with names of many kilobytes perhaps, goes with those that follow."""

FORGET_SECONDS: Final = 300.0
"""Between two times at which the JVM is to forget sockets: of 1,000 micro-batches it keeps 0.3 MB until then."""


class MemoryTrim:
    """Trims Python's heap once after the start, after large batches and when it has grown, and the JVM's three times.

    Used by one thread.

    Args:
        board: counts the large batches, of which what it starts with is one.
        spark: the session whose JVM is trimmed.
        elapsed_seconds: a clock that cannot be set.
        resident: memory of this process, in bytes.
    """

    def __init__(
        self,
        board: Board,
        spark: SparkSession,
        elapsed_seconds: Callable[[], float] = time.monotonic,
        resident: Callable[[], int] = resident_bytes,
    ) -> None:
        self._board = board
        self._spark = spark
        self._elapsed_seconds = elapsed_seconds
        self._memory = GrownMemory(resident, elapsed_seconds)
        self._trimmed_batches = 0
        self._seen_batches, self._seen_at = 0, 0.0
        self._again_at: list[float] = []
        self._forgot_at = elapsed_seconds()

    def check(self) -> None:
        """Trim, if it is time."""
        now, batches = self._elapsed_seconds(), self._board.large_batches
        is_due = self._memory.is_due() or batches != self._trimmed_batches
        if batches != self._seen_batches:
            self._seen_batches, self._seen_at = batches, now
        elif is_due and now - self._seen_at >= CALM_SECONDS and self._board.health.ready()[0]:
            self._trimmed_batches = batches
            gc_tuning.thaw()
            self._memory.returned()
            jvm_lifecycle.give_back(self._spark)
            self._again_at = [now + seconds for seconds in CLEANED_SECONDS]
        elif self._again_at and now >= self._again_at[0]:
            del self._again_at[0]
            jvm_lifecycle.give_back(self._spark)
        if 0 < batches == self._trimmed_batches:
            # Another query that starts at the same time takes those that are there.
            planners.end_unused(self._spark)
        if now - self._forgot_at >= FORGET_SECONDS:
            self._forgot_at = now
            jvm_lifecycle.forget_sockets(self._spark)
