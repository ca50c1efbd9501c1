"""foreachBatch: rows of a finished micro-batch → whatever shows or keeps them.

Spark repeats a batch whose end it did not record, so every sink takes rows that are absolute, or events that carry
a stable id: taken twice, they change nothing.
"""

import json
from collections.abc import Callable, Sequence
from typing import Protocol

from pyspark.sql import DataFrame

from streaming.base.batch_rows import BatchRows
from streaming.base.expectations import Expectations
from streaming.base.logging_setup import get_logger, with_fields
from streaming.query.row_codec import unpacked_output
from streaming.query.schemas import OutputRow

_log = get_logger("sink")


class BatchSink(Protocol):
    """Takes the rows of one micro-batch, as `schemas.OutputRow`; `now_ms` is the wall clock at that moment."""

    def apply(self, batch_id: int, rows: Sequence[OutputRow], now_ms: int) -> None:
        """Take them; a batch id seen before means the same rows again."""
        ...


class BatchWriter:
    """What foreachBatch calls: collects the batch once and hands it to every sink in turn."""

    def __init__(
        self, sinks: Sequence[BatchSink], clock_ms: Callable[[], int], expectations: Expectations | None = None
    ) -> None:
        self._sinks = sinks
        self._expectations = expectations or Expectations()
        self._clock_ms = clock_ms
        # Spark calls from a thread of its own.
        self._hand_on = with_fields(self._handed_on)

    def __call__(self, batch: DataFrame, batch_id: int) -> None:
        """Collect and hand on one micro-batch."""
        self._hand_on(batch, batch_id)

    def _handed_on(self, batch: DataFrame, batch_id: int) -> None:
        unpacked = unpacked_output(batch.toArrow().column("rows").to_pylist())
        for row in unpacked:
            if row.kind == "undecodable":
                _log.warning("undecodable_record", partition=row.partition, **json.loads(row.payload))
        rows = BatchRows(unpacked, self._expectations.applied) if self._expectations else BatchRows(unpacked)
        now_ms = self._clock_ms()
        for sink in self._sinks:
            sink.apply(batch_id, rows, now_ms)
