"""A shard under test: one stateful key fed through Spark's TwsTester, as the one place that knows the tester."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pandas as pd
from pyspark.sql.streaming.tws_tester import TwsTester

from streaming.processor import CoordinatorShard
from streaming.schemas import LOG_ROW, OutputRow

KeyValue = tuple[bytes | None, bytes | None]


@dataclass(frozen=True, slots=True)
class LogRow:
    """One record with its place in the log."""

    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None


def log(*records: KeyValue, start: int = 0, timestamp_ms: int = 1_000) -> list[LogRow]:
    """Records at consecutive offsets, written in one millisecond: one coordinator event."""
    return [LogRow(start + n, timestamp_ms, key, value) for n, (key, value) in enumerate(records)]


class Shard:
    """Feeds micro-batches to one partition of the log and keeps what comes out."""

    def __init__(self, partition: int = 0, live_from: int = 0) -> None:
        self.partition = partition
        self.rows: list[OutputRow] = []
        self._tester = TwsTester(CoordinatorShard({partition: live_from}), timeMode="ProcessingTime")

    def batch(self, rows: Iterable[LogRow]) -> list[OutputRow]:
        """One micro-batch; returns the rows it put out."""
        columns = [field.name for field in LOG_ROW.fields]
        frame = pd.DataFrame(
            [(self.partition, row.offset, row.timestamp_ms, row.key, row.value) for row in rows], columns=columns
        )
        return self._keep(self._tester.testInPandas(self.partition, frame))

    def at(self, processing_time_ms: int) -> list[OutputRow]:
        """Let the clock reach a time; returns the rows of timers that fired."""
        return self._keep(self._tester.setProcessingTime(processing_time_ms))

    def events(self) -> list[dict[str, Any]]:
        """Every event put out so far."""
        return [json.loads(row.payload) for row in self.rows if row.kind == "event"]

    def kinds(self) -> list[str]:
        """Kinds of the events put out so far."""
        return [str(event["kind"]) for event in self.events()]

    def _keep(self, frame: Any) -> list[OutputRow]:  # noqa: ANN401 - pandas or nothing
        if frame is None or not len(frame):
            return []
        put_out = [OutputRow(*values) for values in frame[list(OutputRow._fields)].itertuples(index=False)]
        self.rows += put_out
        return put_out
