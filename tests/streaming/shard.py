"""A shard under test: one stateful key fed through Spark's TwsTester, as the one place that knows the tester."""

import json
from typing import Any, Final

import pandas as pd
from pyspark.sql.streaming.tws_tester import TwsTester

from coordinator_model.group_state import GroupState
from coordinator_model.offsets import OffsetBucket
from coordinator_model.snapshot import load_group, load_offsets
from streaming.processor import CoordinatorShard, ShardBook
from streaming.schemas import GROUPS_STATE, LOG_ROW, OFFSETS_STATE, SHARD_STATE, OutputRow
from tests.histories import PARTITION, History, LogRecord

COLUMNS: Final = [field.name for field in LOG_ROW.fields]


class Shard:
    """Feeds micro-batches to one partition of the log, and keeps what comes out.

    `live_from` is the end of the partition's log as the run finds it.
    """

    def __init__(self, *, live_from: int = 0, partition: int = PARTITION) -> None:
        self.partition = partition
        self.rows: list[OutputRow] = []
        self._live_from = {partition: live_from}
        self._tester = TwsTester(CoordinatorShard(self._live_from), timeMode="ProcessingTime")

    def batch(self, records: History | list[LogRecord]) -> list[OutputRow]:
        """One micro-batch, rows in the order given; returns the rows it put out."""
        listed = records.records if isinstance(records, History) else records
        cells = [(self.partition, of.place.offset, of.place.timestamp_ms, of.key, of.value) for of in listed]
        return self._keep(self._tester.testInPandas(self.partition, pd.DataFrame(cells, columns=COLUMNS)))

    def at(self, processing_time_ms: int) -> list[OutputRow]:
        """Let the clock reach a time; returns the rows of timers that fired."""
        return self._keep(self._tester.setProcessingTime(processing_time_ms))

    def restart(self, *, live_from: int) -> None:
        """Go on as a new run does: the state is as it was, the log's end is another one."""
        self._live_from[self.partition] = live_from

    def events(self) -> list[dict[str, Any]]:
        """Every event put out so far."""
        return [json.loads(row.payload) for row in self.rows if row.kind == "event"]

    def kinds(self) -> list[str]:
        """Kinds of the events put out so far."""
        return [str(event["kind"]) for event in self.events()]

    def groups(self) -> dict[str, GroupState]:
        """Groups in the state store."""
        held = self._tester.peekMapState(GROUPS_STATE, self.partition)
        return {name: load_group(text) for (name,), (text,) in sorted(held.items())}

    def buckets(self) -> dict[tuple[str, str, int], OffsetBucket]:
        """Offset buckets in the state store."""
        held = self._tester.peekMapState(OFFSETS_STATE, self.partition)
        return {place: load_offsets(text) for place, (text,) in sorted(held.items())}

    def book(self) -> ShardBook:
        """The shard's bookkeeping in the state store."""
        held = self._tester.peekValueState(SHARD_STATE, self.partition)
        return ShardBook() if held is None else ShardBook.load(held[0])

    def _keep(self, frame: Any) -> list[OutputRow]:
        if frame is None or not len(frame):
            return []
        put_out = [OutputRow(*values) for values in frame[list(OutputRow._fields)].itertuples(index=False)]
        self.rows += put_out
        return put_out
