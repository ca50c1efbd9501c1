"""foreachBatch: rows of a finished micro-batch → whatever shows or keeps them.

Spark repeats a batch whose end it did not record, so every sink takes rows that are absolute, or events that carry
a stable id: taken twice, they change nothing.
"""

import json
from collections.abc import Callable, Sequence
from contextlib import closing
from typing import Any, ClassVar, Final, Protocol

from pyspark import SparkContext
from pyspark.errors.exceptions.captured import unwrap_spark_exception
from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql.pandas.serializers import ArrowCollectSerializer
from pyspark.sql.streaming.readwriter import DataStreamWriter

from streaming.base.batch_rows import BatchRows, Row
from streaming.base.expectations import Expectations
from streaming.base.logging_setup import get_logger, with_fields
from streaming.query.jvm_objects import borrowed
from streaming.query.row_codec import unpacked_output
from streaming.query.row_socket import opened

_log = get_logger("sink")

_LOGGED: Final = {"undecodable": "undecodable_record", "unreadable": "unreadable_batch"}
"""Kind of row → what is logged for each, with its payload."""


class BatchSink(Protocol):
    """Takes the rows of one micro-batch; `now_ms` is the wall clock at that moment."""

    def apply(self, batch_id: int, rows: Sequence[Row], now_ms: int) -> None:
        """Take them; a batch id seen before means the same rows again."""
        ...


class BatchWriter:
    """What each micro-batch of a stream is given to: collects it once and hands it to every sink in turn.

    PySpark's `foreachBatch` makes a session and a DataFrame in Python for each micro-batch, with some thirty calls to
    the JVM, and collects it as a query of its own. Here the JVM calls us directly, and is asked for the rows alone.

    Args:
        sinks: in this order.
        clock_ms: the wall clock.
        expectations: of the configuration.
        settled: makes of a batch's number and rows what the sinks are given (`board/copies.py`).
    """

    def __init__(
        self,
        sinks: Sequence[BatchSink],
        clock_ms: Callable[[], int],
        expectations: Expectations | None = None,
        *,
        settled: Callable[[int, Sequence[Row]], Sequence[Row]] = lambda _, rows: rows,
    ) -> None:
        self._sinks = sinks
        self._settled = settled
        self._expectations = expectations or Expectations()
        self._clock_ms = clock_ms
        # Spark calls from a thread of its own.
        self._hand_on = with_fields(self._handed_on)

    def follow(self, stream: DataStreamWriter) -> DataStreamWriter:
        """Have every micro-batch of a stream that is started next handed to this one."""
        gateway = SparkContext._gateway  # noqa: SLF001 - the only way to Spark's own classes
        assert gateway is not None  # noqa: S101 - a stream has one
        sources = gateway.jvm.org.apache.spark.sql.execution.streaming.sources
        sources.PythonForeachBatchHelper.callForeachBatch(stream._jwrite, self)  # noqa: SLF001 - as Spark does
        ensure_callback_server_started(gateway)  # type: ignore[no-untyped-call]  # Spark's
        return stream

    def call(self, dataset: Any, batch_id: int) -> None:  # noqa: ANN401 - an object of Java
        """Collect and hand on one micro-batch."""
        self._hand_on(dataset, batch_id)

    class Java:
        """Py4J's way to say what it is to Java."""

        implements: ClassVar = ["org.apache.spark.sql.execution.streaming.sources.PythonForeachBatchFunction"]

    def _handed_on(self, dataset: Any, batch_id: int) -> None:  # noqa: ANN401 - as above
        unpacked = unpacked_output(_packs(dataset))
        for row in unpacked:
            if row.kind in _LOGGED:
                _log.warning(_LOGGED[row.kind], partition=row.partition, **json.loads(row.payload))
        settled = self._settled(batch_id, unpacked)
        rows = BatchRows(settled, self._expectations.applied) if self._expectations else BatchRows(settled)
        now_ms = self._clock_ms()
        for sink in self._sinks:
            sink.apply(batch_id, rows, now_ms)


def _packs(dataset: Any) -> list[bytes]:  # noqa: ANN401 - as above
    """The cells of a Dataset's only column, as `DataFrame.toArrow` fetches them."""
    with borrowed(dataset), borrowed(dataset.collectAsArrowToPython()) as served:
        path, secret, server = served
        with borrowed(server):
            # Where no one connects, the server waits without end, and would be waited for as long.
            file, connected = opened((path, secret))
            try:
                with closing(connected), closing(file):
                    *tables, order = ArrowCollectSerializer().load_stream(file)  # type: ignore[no-untyped-call]  # Spark's
            finally:
                # Where Spark failed, it is here that it says why.
                with unwrap_spark_exception():
                    server.getResult()
    return [pack for at in order for pack in tables[at].column("rows").to_pylist()]
