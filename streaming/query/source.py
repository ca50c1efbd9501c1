"""The coordinator's log as a streaming source of Spark: packed rows for the shards.

Two views of one log (docs/decisions/0005). Offset commits may be transactional, and an aborted one must never count:
they are read committed. Membership records never are, and must not wait behind another group's open transaction: they
are read uncommitted. So the position in a partition is two offsets; while no transaction is open they are the same,
and one consumer reads both kinds in one pass.

    commits      next offset of the committed reader
    membership   next offset up to which membership records were read, never below `commits`
    cut          partitions of which there was more than the micro-batch took

A partition that is cut may end in the middle of an event of the coordinator; any other ends between two. Spark writes
the position down before it reads, so a micro-batch that is read again is cut where it was, however far the log has
grown since (docs/decisions/0024).

A micro-batch has one task, which reads and replays, so that Spark has one stage to run (docs/decisions/0025):

    records                  are read
    few, of the live tail    where the micro-batch is planned, and handed over with the plan
    more                     by the task; many by it and children of it, each a share of the partitions
"""

import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
from confluent_kafka import KafkaException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.datasource_internal import _SimpleStreamReaderWrapper
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows
from pyspark.sql.types import StructType

from streaming.base.child_processes import answered_by_children, may_fork
from streaming.base.even_shares import even_shares
from streaming.query.progress import COMMITS, MEMBERSHIP
from streaming.query.range_reader import AWAY, LOG_LOST, Columns, LogBounds, LogLostError, RangeReader, Ranges
from streaming.query.row_codec import LOG_LAYOUT, packed
from streaming.query.schemas import PACKED

if TYPE_CHECKING:
    from streaming.config.loading import Config

CUT: Final = "cut"

FORMAT: Final = "coordinator_log"
SETTINGS_OPTION: Final = "secret_settings"
"""Its name makes Spark hide the value, which holds credentials, wherever plans are shown."""

_ASK_SECONDS: Final = 5.0
"""How long the brokers may take to say where the log ends, before they are asked again."""
_QUEUE_KIBIBYTES: Final = 64 * 1024
"""What a consumer fetches ahead at most."""

LOST_AFTER_SECONDS: Final = 30.0
"""A log that ends before what was read for so long is another one."""

RECORDS_A_PROCESS: Final = 20_000
"""Below twice as many, reading a batch with a second process costs more than it saves; below that, with a task's."""

_PLANNED_SECONDS: Final = 1.0
"""How long planning a micro-batch may wait for a record before it leaves the reading to the task: a query can be
stopped while a task waits, and not while it is planned."""

Position = Mapping[str, Any]
"""{"commits": {"0": 17, …}, "membership": {"0": 21, …}, "cut": [0, …]}: partition, as JSON has it, → next offset."""

_COMMIT_KEYS: Final = (b"\x00\x00", b"\x00\x01")
"""Record types 0 and 1, with which the keys of offset commits begin."""

_readers: dict[tuple[int, str, bool, float], RangeReader] = {}
"""By process, settings, whether committed, and patience in seconds; they outlive a task. A child process makes its own,
and leaves alone those that it has inherited: a client does not survive a fork."""


def coordinator_log(
    spark: SparkSession, config: "Config", partitions: int, keys: Sequence[int], built_until: Mapping[int, int]
) -> DataFrame:
    """Every record of the offsets topic, packed as `schemas.PACKED` under these keys of bundles.

    Of records below `built_until`, by partition, only what state is made of (`row_codec.packed`).
    """
    # Spark imports this module in four processes one after the other, and all but this one need less.
    from streaming.kafka.client_settings import portable_settings

    kafka, source = config.kafka, config.source
    settings = {
        "client": portable_settings(kafka, "log") | {"socket.timeout.ms": kafka.request_timeout_ms},
        "fetch": {
            "fetch.wait.max.ms": source.fetch_max_wait_ms,
            "max.partition.fetch.bytes": source.max_partition_fetch_bytes,
            "queued.max.messages.kbytes": _QUEUE_KIBIBYTES,
        },
        "topic": kafka.offsets_topic,
        "partitions": partitions,
        "timeout_seconds": kafka.request_timeout_ms / 1_000,
        "committed_only": source.isolation == "committed_only",
        "max_records": source.max_offsets_per_trigger,
        "processes": source.tasks if may_fork() else 1,
        "keys": list(keys),
        "built_until": dict(built_until),
    }
    spark.dataSource.register(CoordinatorLog)
    return spark.readStream.format(FORMAT).option(SETTINGS_OPTION, json.dumps(settings)).load()


class CoordinatorLog(DataSource):
    """Spark's name for the log; its one option holds all settings."""

    @classmethod
    def name(cls) -> str:
        """What `format` is called with."""
        return FORMAT

    def schema(self) -> StructType:
        """One row a bundle and task."""
        return PACKED

    def streamReader(self, schema: StructType) -> "CoordinatorLogReader":  # noqa: ARG002, N802 - Spark's
        """Made in the process that plans, and sent to those that read."""
        return CoordinatorLogReader(self.options[SETTINGS_OPTION])


class CoordinatorLogReader(_SimpleStreamReaderWrapper):
    """Plans micro-batches, and reads them. Sent between processes, so a client is made where it is first asked.

    Spark takes rows along with a plan (`getCache`) from readers of the class that it wraps simple ones with, so this is
    one of them. All of that class is replaced here; it is private, and pinned by the lock of packages.
    """

    simple_reader = None  # type: ignore[assignment]  # Spark asks whether it can do more
    commit = DataSourceStreamReader.commit

    def __init__(self, settings: str) -> None:
        self._text = settings
        self._settings: dict[str, Any] = json.loads(settings)
        self._ends: LogBounds | None = None
        self._short_since: float | None = None
        self._planned: list[pa.RecordBatch] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_ends": None, "_short_since": None, "_planned": None}

    def _log_end(self) -> LogBounds:
        if self._ends is None:
            of = self._settings
            self._ends = LogBounds(of["client"], of["topic"], of["partitions"], _ASK_SECONDS)
        return self._ends

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's
        """Where the log begins."""
        first = {str(partition): offset for partition, offset in self._log_end().first().items()}
        return {COMMITS: first, MEMBERSHIP: first}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's
        """How much of the log a micro-batch may have."""
        return ReadMaxRows(self._settings["max_records"])

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802 - Spark's
        """Where the next micro-batch ends; where it begins while the brokers are away, which `end_offsets` shows.

        It begins there, too, while the log is said to end before what was read: a leader that has just been made one
        may not know yet how far its log reaches. What lasts for `LOST_AFTER_SECONDS` is an error.
        """
        try:
            stable, high = self._log_end().ends()
        except KafkaException as error:
            if error.args[0].code() not in AWAY:
                raise
            return start
        if self._settings["committed_only"]:
            high = stable
        most = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        try:
            end = next_position(start, stable, high, most)
        except LogLostError:
            now = time.monotonic()
            self._short_since = now if self._short_since is None else self._short_since
            if now - self._short_since < LOST_AFTER_SECONDS:
                return start
            raise
        self._short_since = None
        return end

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """The one task of a micro-batch, or none; what is read of it here is what `getCache` returns."""
        pieces = pieces_between(start, end)
        self._planned = None
        if pieces and sum(of.records for of in pieces) < RECORDS_A_PROCESS and not self._built_until(pieces):
            # What fails here is read by the task, which is tried again, and whose failure is the query's.
            with suppress(KafkaException, LogLostError):
                self._planned = self._packed(pieces, _PLANNED_SECONDS)
        return [InputPartition(pieces)] if pieces else []

    def getCache(self, start: dict[str, Any], end: dict[str, Any]) -> Iterator[Any] | None:  # noqa: ARG002, N802 - Spark's
        """Rows of the micro-batch that was planned last; None leaves them to its task."""
        return None if self._planned is None else iter(self._planned)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """What a task reads, packed."""
        own, *others = shared_out(partition.value, self._settings["processes"])
        patience_seconds: float = self._settings["timeout_seconds"]
        with answered_by_children(lambda share: self._packed(share, patience_seconds), others) as answers:
            yield from self._packed(own, patience_seconds)
            yield from chain.from_iterable(answers)

    def _built_until(self, pieces: list["Piece"]) -> dict[int, int]:
        """Of the partitions of which there may be records below the live tail: up to where."""
        until: dict[str, int] = self._settings["built_until"]
        return {of.partition: until[str(of.partition)] for of in pieces if of.begins_below(until)}

    def _packed(self, pieces: list["Piece"], patience_seconds: float) -> list[pa.RecordBatch]:
        """What there is in the pieces, in one batch; in none if there is nothing."""
        batch = packed(
            chain(self._stable(pieces, patience_seconds), self._unstable(pieces, patience_seconds)),
            self._settings["keys"],
            built_until=self._built_until(pieces),
            cut=[of.partition for of in pieces if of.is_cut],
        )
        return [batch.cast(to_arrow_schema(PACKED))] if batch.num_rows else []

    def _stable(self, pieces: list["Piece"], patience_seconds: float) -> Iterator[pa.Table]:
        """Up to the last stable offset: all commits, and membership not yet read."""
        ranges = {of.partition: (of.commits, of.commits_end) for of in pieces if of.commits < of.commits_end}
        begins = {of.partition: of.membership for of in pieces}
        partly_read = any(of.commits < of.membership for of in pieces)
        for columns in self._read(ranges, patience_seconds, committed=True):
            table = columns.table(LOG_LAYOUT)
            if partly_read:
                unread = columns.offsets >= np.array([begins[of] for of in columns.partitions.tolist()])
                table = table.filter(pa.array(unread | _is_commit(columns.keys)))
            yield table

    def _unstable(self, pieces: list["Piece"], patience_seconds: float) -> Iterator[pa.Table]:
        """From the last stable offset to the end: membership alone."""
        begins = {of: max(of.commits_end, of.membership) for of in pieces}
        ranges = {of.partition: (begin, of.membership_end) for of, begin in begins.items() if begin < of.membership_end}
        for columns in self._read(ranges, patience_seconds, committed=False):
            yield columns.table(LOG_LAYOUT).filter(pa.array(~_is_commit(columns.keys)))

    def _read(self, ranges: Ranges, patience_seconds: float, *, committed: bool) -> Iterator[Columns]:
        """Where there is something to read, with a reader that outlives the task."""
        if not ranges:
            return
        known, settings = (os.getpid(), self._text, committed, patience_seconds), self._settings
        if known not in _readers:
            _readers[known] = RangeReader(
                settings["client"] | settings["fetch"],
                settings["topic"],
                committed=committed,
                timeout_seconds=patience_seconds,
            )
        yield from _readers[known].read(ranges)


class Piece(NamedTuple):
    """What a micro-batch has of a partition: commits and membership from an offset to one that is not part of it."""

    partition: int
    commits: int
    commits_end: int
    membership: int
    membership_end: int
    is_cut: bool = False

    def begins_below(self, until: Mapping[str, int]) -> bool:
        """Whether there may be records below these offsets, by partition."""
        return min(self.commits, self.membership) < until.get(str(self.partition), 0)

    @property
    def records(self) -> int:
        """How many there may be; compaction has left fewer."""
        return max(self.commits_end, self.membership_end) - min(self.commits, self.membership)


def next_position(
    start: Position, stable: Mapping[int, int], high: Mapping[int, int], most: int | None
) -> dict[str, Any]:
    """Where a micro-batch ends that begins at `start`.

    Args:
        start: where the one before has ended.
        stable: last stable offset of every partition.
        high: its high watermark.
        most: largest number of records, or None.

    Where there are more, whole partitions are read, those with the fewest records first: a group whose records all come
    in one micro-batch is replayed and written once, and a small partition does not wait for a large one. One that does
    not fit has what is left of the micro-batch if that is more than half of it, so a partition that never fits whole
    goes on, too.

    Raises:
        LogLostError: the log ends before what was read of it.
    """
    commits, membership = start[COMMITS], start[MEMBERSHIP]
    waiting = {p: high[p] - membership.get(str(p), 0) for p in high}
    for p, left in waiting.items():
        if left < 0:
            raise LogLostError(f"{LOG_LOST}: partition {p} ends at {high[p]}, and was read to {membership[str(p)]}")
    limit = sum(waiting.values()) if most is None else most
    room, taken = limit, {}
    for p in sorted(waiting, key=lambda p: (waiting[p], p)):
        taken[p] = min(waiting[p], room) if waiting[p] <= room or room * 2 > limit else 0
        room -= taken[p]
    end: dict[str, Any] = {COMMITS: {}, MEMBERSHIP: {}, CUT: [p for p in waiting if taken[p] < waiting[p]]}
    for p in waiting:
        to = membership.get(str(p), 0) + taken[p]
        end[MEMBERSHIP][str(p)] = to
        # A new leader may know less of what is stable than the one before; what was read stays read.
        end[COMMITS][str(p)] = max(commits.get(str(p), 0), min(stable[p], to))
    return end


def pieces_between(start: Position, end: Position) -> list[Piece]:
    """What there is to read between two positions, by partition.

    An end that was noted by an earlier release does not say where it is cut: that may be anywhere.
    """
    cut = set(end[CUT] if CUT in end else map(int, end[MEMBERSHIP]))
    pieces = [
        Piece(int(p), start[COMMITS].get(p, 0), end[COMMITS][p], start[MEMBERSHIP].get(p, 0), to, int(p) in cut)
        for p, to in end[MEMBERSHIP].items()
    ]
    return [of for of in pieces if of.commits < of.commits_end or of.membership < of.membership_end]


def shared_out(pieces: list[Piece], processes: int) -> list[list[Piece]]:
    """Pieces by process: as many processes as the records are worth, each with about as many."""
    sizes = [of.records for of in pieces]
    count = max(1, min(processes, sum(sizes) // RECORDS_A_PROCESS))
    return [[pieces[of] for of in share] for share in even_shares(sizes, [0] * count) if share]


def _is_commit(keys: Sequence[bytes | None]) -> Any:  # noqa: ANN401 - an array of truth values
    return np.array([key is not None and key[:2] in _COMMIT_KEYS for key in keys], dtype=bool)
