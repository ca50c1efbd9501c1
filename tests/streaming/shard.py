"""A bundle under test: one stateful key fed through Spark's TwsTester, as the one place that knows the tester."""

import json
from collections.abc import Iterable
from copy import copy
from functools import partial
from typing import Any, Final

import pandas as pd
import pyarrow as pa
from pyspark.sql.streaming.tws_tester import TwsTester

from coordinator_model.state.group_state import GroupState
from coordinator_model.state.offsets import OffsetBucket
from coordinator_model.state.packed_offsets import load_offsets
from coordinator_model.state.snapshot import load_group
from streaming.base.batch_rows import Row
from streaming.query.first_reading import door
from streaming.query.ledger import PartitionLedger, TaskLedger
from streaming.query.log_continuity import Note
from streaming.query.processor import CoordinatorShards
from streaming.query.row_codec import LOG_LAYOUT, packed, unpacked_output
from streaming.query.schemas import ENTRIES_STATE, PACKS_STATE
from streaming.query.state_cache import COPIES, LATELY, LEDGER, Entry, all_entries, key_of, unpacked_entries
from tests.histories import PARTITION, History, LogRecord

KEY: Final = 7
"""The bundle's grouping key; the processor asks nothing of it."""


def log_rows(cells: list[tuple[Any, ...]]) -> pa.Table:
    """Rows of `row_codec.LOG_LAYOUT` as a source task has them."""
    columns = zip(*cells, strict=True) if cells else [()] * len(LOG_LAYOUT)
    return pa.Table.from_arrays(
        [pa.array(column, field.type) for column, field in zip(columns, LOG_LAYOUT, strict=True)], schema=LOG_LAYOUT
    )


def _of(entries: Iterable[tuple[Any, Entry]], partition: int | None = None) -> dict[Any, Entry]:
    """Entries by the keys that they have within their partition of the log, of one or all."""
    return {key_of(place): entry for place, entry in entries if partition in (None, place[0])}


class Shard:
    """Feeds micro-batches to one partition of the log, and keeps what comes out.

    `live_from` is the end of the partition's log as the run finds it, `reported` up to where a former reading
    reported it; below `built_until` only state is made.
    """

    def __init__(
        self,
        *,
        live_from: int = 0,
        partition: int = PARTITION,
        reported: int = 0,
        built_until: int = 0,
        processes: int = 1,
    ) -> None:
        self.partition = partition
        self.rows: list[Row] = []
        self._built_until = {partition: built_until} if built_until else {}
        self._live_from, self._log_end = {partition: live_from}, {partition: live_from}
        processor = CoordinatorShards(self._live_from, self._log_end, {partition: reported}, processes=processes)
        self._tester = TwsTester(processor, timeMode="ProcessingTime")

    def batch(
        self, records: History | list[LogRecord], *, log_end: int | None = None, note: Note | None = None
    ) -> list[Row]:
        """One micro-batch, rows in the order given; returns the rows it put out.

        `log_end` is the log's end as it was when the micro-batch was planned, which cut it if there was more; without
        it as the run found it. `note` is what the source says of the partition.
        """
        listed = records.records if isinstance(records, History) else records
        cells = [(self.partition, of.place.offset, of.place.timestamp_ms, of.key, of.value) for of in listed]
        return self.read([cells], log_end=log_end, note=note)

    def read(
        self, packs: list[list[tuple[Any, ...]]], *, log_end: int | None = None, note: Note | None = None
    ) -> list[Row]:
        """One micro-batch, read by as many source tasks as there are lists of rows; returns the rows it put out."""
        end = self._log_end[self.partition] if log_end is None else log_end
        cut = [self.partition] if max((row[1] for cells in packs for row in cells), default=end) + 1 < end else []
        notes = {} if note is None else {self.partition: note}
        built = self._built_until
        if note is not None and note.again is not None:
            built = {self.partition: 1 + max((row[1] for cells in packs for row in cells), default=0)}
        less = partial(door.without_history, live_from=built)
        batches = [packed([log_rows(cells)], [KEY], less=less, cut=cut, notes=lambda: notes) for cells in packs]
        blobs = [blob for batch in batches for blob in batch["rows"].to_pylist()]
        return self._keep(self._tester.testInPandas(KEY, pd.DataFrame({"bundle": KEY, "rows": blobs})))

    def beside(self, partition: int) -> "Shard":
        """The same bundle, fed with another partition of it; all of it is live."""
        other = copy(self)
        other.partition = partition
        self._live_from[partition] = self._log_end[partition] = 0
        return other

    def at(self, processing_time_ms: int) -> list[Row]:
        """Let the clock reach a time; returns the rows of timers that fired."""
        return self._keep(self._tester.setProcessingTime(processing_time_ms))

    def restart(self, *, live_from: int, log_end: int | None = None) -> None:
        """Go on as a new run does: the state is as it was, the log has another end, perhaps beyond where it is live."""
        self._live_from[self.partition] = live_from
        self._log_end[self.partition] = live_from if log_end is None else log_end

    def events(self) -> list[dict[str, Any]]:
        """Every event put out so far."""
        return [json.loads(row.payload) for row in self.rows if row.kind == "event"]

    def kinds(self) -> list[str]:
        """Kinds of the events put out so far."""
        return [str(event["kind"]) for event in self.events()]

    def groups(self, partition: int | None = None) -> dict[str, GroupState]:
        """Groups in the state store, of one partition or all."""
        entries = sorted(self._entries(partition).items())
        return {key[0]: load_group(words) for key, (_, words) in entries if len(key) == 1}

    def buckets(self, partition: int | None = None) -> dict[tuple[str, str, int], OffsetBucket]:
        """Offset buckets in the state store, of one partition or all."""
        return {key: load_offsets(*of) for key, of in sorted(self._entries(partition).items()) if len(key) > 1}

    def single(self) -> dict[Any, Entry]:
        """Entries of the state store that are there by themselves."""
        return _of(self._single().items())

    def packs(self) -> list[dict[Any, Entry]]:
        """Entries in each pack of the state store."""
        return [pack for at, pack in self._packs().items() if at[0] >= 0]

    def lately(self) -> dict[Any, Entry]:
        """Entries that changed lately, as the state store has them."""
        return self._packs().get(LATELY, {})

    def copies(self) -> dict[Any, Entry]:
        """Copies of entries that were looked at lately."""
        return self._packs().get(COPIES, {})

    def _packs(self) -> dict[Any, dict[Any, Entry]]:
        held = self._tester.peekMapState(PACKS_STATE, KEY)
        return {at: _of(unpacked_entries(at, pack)) for at, (pack,) in held.items() if at != LEDGER}

    def _single(self) -> dict[Any, Entry]:
        return dict(self._tester.peekMapState(ENTRIES_STATE, KEY))

    def _entries(self, partition: int | None = None) -> dict[Any, Entry]:
        packs = [(at, pack) for at, (pack,) in self._tester.peekMapState(PACKS_STATE, KEY).items()]
        return _of(all_entries(packs, self._single().items()), partition)

    def book(self) -> PartitionLedger:
        """The partition's bookkeeping in the state store."""
        return self.bundle_book().partitions.get(self.partition, PartitionLedger())

    def bundle_book(self) -> TaskLedger:
        """The bookkeeping of the whole bundle."""
        held = self._tester.peekMapState(PACKS_STATE, KEY).get(LEDGER)
        return TaskLedger() if held is None else TaskLedger.load(*held)

    def _keep(self, frame: Any) -> list[Row]:
        if frame is None or not len(frame):
            return []
        put_out = unpacked_output(frame["rows"])
        self.rows += put_out
        return put_out
