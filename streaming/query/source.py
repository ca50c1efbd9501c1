"""The coordinator's log as a streaming source of Spark: packed rows for the shards.

Two views of one log (docs/decisions/0005). Offset commits may be transactional, and an aborted one must never count:
they are read committed. Membership records never are, and must not wait behind another group's open transaction: they
are read uncommitted. So the position in a partition is two offsets; while no transaction is open they are the same,
and one consumer reads both kinds in one pass.

    commits      next offset of the committed reader
    membership   next offset up to which membership records were read, never below `commits`
    cut          partitions of which there was more than the micro-batch took
    epochs       leader epoch of the last record read, where brokers name one
    begins       partitions that the micro-batch reads from another place than where the one before it ended
    again        of these, those that it reads from their beginning because their log was cut off, or unread for long
    gaps         partitions that were not looked at for a while, with their end as it was found (`log_continuity.py`)

A partition that is cut may end in the middle of an event of the coordinator; any other ends between two. Spark writes
the position down before it reads, so a micro-batch that is read again is cut where it was, however far the log has
grown since (docs/decisions/0024).

A partition that cannot be read stays where it is, and the others go on. Where it is lost between plan and reading, the
micro-batch goes without it and says so: the stateful step keeps in mind from where on it is owed (`shard_task.py`), and
the next start of the query reads it from there.

A batch of the log that cannot be unpacked is stepped over, and said with the records (`kafka/range_reader.py`). What is
planned leaves that to the task.

A micro-batch has one task, which reads and replays, so that Spark has one stage to run (docs/decisions/0025):

    records                  are read
    few, of the live tail    where the micro-batch is planned, and handed over with the plan
    more                     by the task; many by it and children of it, each a share of the partitions
"""

import json
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
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

from coordinator_model.records.topics import SHARE_STATE_TOPIC
from streaming.base import gc_tuning, machine_clock
from streaming.base.child_processes import answered_by_children, may_fork
from streaming.base.even_shares import even_shares
from streaming.base.machine_clock import Instant
from streaming.base.resident_memory import GrownMemory
from streaming.kafka.log_bounds import AWAY, LogBounds
from streaming.kafka.range_reader import Columns, LogLostError, RangeReader, Ranges, SteppedOver
from streaming.query.first_reading import door
from streaming.query.log_continuity import (
    AGAIN,
    BEGINS,
    EPOCHS,
    GAP_SECONDS,
    GAPS,
    UNEVEN,
    EpochEnd,
    LogContinuity,
    Look,
    Note,
    gap_of,
)
from streaming.query.progress import COMMITS, MEMBERSHIP, SHARE
from streaming.query.row_codec import LOG_LAYOUT, packed
from streaming.query.schemas import BUNDLE, PACKED
from streaming.query.share_cells import CellNotes, Facts, share_cells

if TYPE_CHECKING:
    from streaming.config.loading import Config
    from streaming.kafka.batch_bounds import BatchBounds
    from streaming.kafka.leader_epochs import LeaderEpochs
    from streaming.query.share_source import ShareLog, ShareReader

CUT: Final = "cut"

FORMAT: Final = "coordinator_log"
SETTINGS_OPTION: Final = "secret_settings"
"""Its name makes Spark hide the value, which holds credentials, wherever plans are shown."""

_ASK_SECONDS: Final = 5.0
"""How long the brokers may take to say where the log ends, before they are asked again."""
_QUEUE_KIBIBYTES: Final = 64 * 1024
"""What a consumer fetches ahead at most."""

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

_batch_bounds: "dict[tuple[int, str, str], BatchBounds]" = {}
"""By process, settings and topic, as above."""

_share_readers: "dict[tuple[int, str, float], ShareReader]" = {}
"""As `_readers`, of the second log."""


NOTHING_READ: Final[Position] = {COMMITS: {}, MEMBERSHIP: {}}


class Known(NamedTuple):
    """What a run knows of the log when it starts a query, by partition.

    Attributes:
        built_until: of records below only state is made (`first_reading`).
        live_from: from where on it is live, of partitions whose end was to be had; None for all.
        owed: the `Note` of what was planned and could not be read.
        unread_seconds: how long the log has not been read.
        tombstone_seconds: how long it keeps tombstones.
        largest_batch_bytes: its max.message.bytes; 0 where brokers do not say.
        share_owed: as `owed`, of the share coordinator's log.
    """

    built_until: Mapping[int, int] = {}
    live_from: Mapping[int, int] | None = None
    owed: Mapping[int, Sequence[Any]] = {}
    unread_seconds: float = 0.0
    tombstone_seconds: float = 86_400.0
    largest_batch_bytes: int = 0
    share_owed: Mapping[int, Sequence[Any]] = {}


def coordinator_log(spark: SparkSession, config: "Config", keys: Sequence[int], known: Known) -> DataFrame:
    """Every record of the offsets topic, packed as `schemas.PACKED` under these keys of bundles."""
    # Spark imports this module in four processes one after the other, and all but this one need less.
    from streaming.kafka.client_settings import portable_section, portable_settings

    kafka, source = config.kafka, config.source
    settings = {
        "client": portable_settings(kafka, "log") | {"socket.timeout.ms": kafka.request_timeout_ms},
        "fetch": {
            "fetch.wait.max.ms": source.fetch_max_wait_ms,
            "max.partition.fetch.bytes": source.max_partition_fetch_bytes,
            "queued.max.messages.kbytes": _QUEUE_KIBIBYTES,
        },
        "kafka": portable_section(kafka),
        "topic": kafka.offsets_topic,
        "timeout_seconds": kafka.request_timeout_ms / 1_000,
        "committed_only": source.isolation == "committed_only",
        "max_records": source.max_offsets_per_trigger,
        "max_record_bytes": max(kafka.max_record_bytes, known.largest_batch_bytes),
        "processes": source.tasks if may_fork() else 1,
        "keys": list(keys),
        "known": known._asdict(),
        "share_groups": config.share_groups.enabled is not False,
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
        self._bounds: LogBounds | None = None
        self._continuity: LogContinuity | None = None
        self._leader_epochs: LeaderEpochs | None = None
        self._looked: Instant | None = None
        self._planned: list[pa.RecordBatch] | None = None
        self._memory: GrownMemory | None = None
        self._share_log: ShareLog | None = None

    def __getstate__(self) -> dict[str, Any]:
        made = ("_bounds", "_continuity", "_leader_epochs", "_planned", "_memory", "_share_log")
        return {**self.__dict__, **dict.fromkeys(made)}

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's
        """Where the log begins."""
        first = {str(partition): offset for partition, offset in self._log_bounds().first().items()}
        return {COMMITS: first, MEMBERSHIP: first}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's
        """How much of the log a micro-batch may have."""
        return ReadMaxRows(self._settings["max_records"])

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802 - Spark's
        """Where the next micro-batch ends; where it begins where nothing is to be read.

        So it is while the brokers are away, which `end_offsets` shows.
        """
        self._looked = machine_clock.now()
        self._return_memory()
        try:
            bounds = self._log_bounds().ends()
            look = self._log_continuity().look(start, bounds, self._log_bounds().first)
        except KafkaException as error:
            if error.args[0].code() not in AWAY:
                raise
            return start
        most = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        end = next_position(start, look, most, committed_only=self._settings["committed_only"])
        pieces = pieces_between(start, end)
        of_shares = start.get(SHARE, {})
        share = self._next_of_share_log(of_shares, most)
        if not pieces and share is of_shares:
            return start
        self._log_continuity().planned([piece.partition for piece in pieces])
        return end | ({SHARE: share} if share else {})

    def _next_of_share_log(self, start: Position, most: int | None) -> Position:
        """Where the second log is at the end of the next micro-batch; `start` where nothing is to be read of it."""
        held = start or NOTHING_READ
        look = self._shares().look(held) if self._settings["share_groups"] else None
        if look is None:
            return start
        end = next_position(held, look, most)
        pieces = pieces_between(held, end)
        self._shares().planned([piece.partition for piece in pieces])
        return end if pieces else start

    def _shares(self) -> "ShareLog":
        if self._share_log is None:
            # As with epochs: loaded where it is asked for the first time.
            from streaming.query.share_source import ShareLog

            self._share_log = ShareLog(self._settings, partial(self._epoch_ends, topic=SHARE_STATE_TOPIC))
        return self._share_log

    def _return_memory(self) -> None:
        """Small micro-batches are read where they are planned; records of many kilobytes leave as much behind."""
        if self._memory is None:
            self._memory = GrownMemory()
        elif self._memory.is_due():
            gc_tuning.give_back()
            self._memory.returned()

    def _log_bounds(self) -> LogBounds:
        if self._bounds is None:
            of = self._settings
            self._bounds = LogBounds(of["client"], of["topic"], _ASK_SECONDS)
        return self._bounds

    def _log_continuity(self) -> LogContinuity:
        if self._continuity is None:
            known = Known(**self._settings["known"])
            self._continuity = LogContinuity(
                self._epoch_ends,
                live_from=None if known.live_from is None else {int(of) for of in known.live_from},
                unread_seconds=known.unread_seconds,
                tombstone_seconds=known.tombstone_seconds,
                owed={int(of): Note.of(held) for of, held in known.owed.items()},
            )
        return self._continuity

    def _epoch_ends(
        self, asked: Collection[tuple[int, int]], leaders: Mapping[int, int], topic: str | None = None
    ) -> dict[tuple[int, int], EpochEnd]:
        """Where leaders have these epochs of partitions end; nothing of those that do not answer."""
        # Loaded where it is asked for the first time: Spark imports this module in processes that never do.
        from streaming.kafka import leader_epochs
        from streaming.kafka.client_settings import python_settings, section_of

        topic = topic or self._settings["topic"]
        if self._leader_epochs is None:
            settings = python_settings(section_of(self._settings["kafka"]), "epochs")
            self._leader_epochs = leader_epochs.LeaderEpochs(settings)
        ends = self._leader_epochs.ends_if_answered(
            [(topic, partition, epoch) for partition, epoch in asked],
            {(topic, partition): leader for partition, leader in leaders.items()},
        )
        return {(partition, epoch): end for (_, partition, epoch), end in ends.items()}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """The one task of a micro-batch, or none; what is read of it here is what `getCache` returns."""
        pieces, share = pieces_between(start, end), self._share_plan(start, end)
        self._planned = None
        records = sum(of.records for of in (*pieces, *(() if share is None else share.pieces)))
        if (pieces or share) and records < RECORDS_A_PROCESS and not self._built_until(pieces):
            # What fails here is read by the task, which is tried again, and whose failure is the query's.
            with suppress(KafkaException, LogLostError):
                self._planned = [
                    *(self._packed(pieces, self._looked, _PLANNED_SECONDS) if pieces else ()),
                    *self._packed_share(share, self._looked, _PLANNED_SECONDS),
                ]
        return [InputPartition((self._looked, pieces, share))] if pieces or share else []

    def _share_plan(self, start: Position, end: Position) -> "SharePlan | None":
        """What there is of the second log; None for nothing."""
        if SHARE not in end or end[SHARE] == start.get(SHARE):
            return None
        pieces = pieces_between(start.get(SHARE) or NOTHING_READ, end[SHARE])
        return SharePlan(pieces, self._shares().facts()) if pieces else None

    def getCache(self, start: dict[str, Any], end: dict[str, Any]) -> Iterator[Any] | None:  # noqa: ARG002, N802 - Spark's
        """Rows of the micro-batch that was planned last; None leaves them to its task."""
        return None if self._planned is None else iter(self._planned)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """What a task reads, packed."""
        looked, pieces, share = partition.value
        patience_seconds: float = self._settings["timeout_seconds"]
        yield from self._packed_share(share, looked, patience_seconds, may_leave_out=True)
        if not pieces:
            return
        own, *others = shared_out(pieces, self._settings["processes"])
        with answered_by_children(
            lambda share: self._packed(share, looked, patience_seconds, may_leave_out=True), others
        ) as answers:
            yield from self._packed(own, looked, patience_seconds, may_leave_out=True)
            yield from chain.from_iterable(answers)

    def _built_until(self, pieces: list["Piece"]) -> dict[int, int]:
        """Of the partitions of which there may be records below the live tail: up to where."""
        until: dict[str, int] = self._settings["known"]["built_until"]
        built = {of.partition: until[str(of.partition)] for of in pieces if of.begins_below(until)}
        return built | {of.partition: of.membership_end for of in pieces if of.note is not None and of.note.again}

    def _packed(
        self, pieces: list["Piece"], looked: Instant | None, patience_seconds: float, *, may_leave_out: bool = False
    ) -> list[pa.RecordBatch]:
        """What there is in the pieces, in one batch; in none if there is nothing.

        A partition that cannot be read is left out whole, and noted, if it `may_leave_out`. `looked` is when it was
        seen what there is; None where that was before this run, whose limits say what may be missing.
        """
        lost = Lost(set(), {}) if may_leave_out else Lost()
        known, began = Known(**self._settings["known"]), machine_clock.now()
        built = self._built_until(pieces)

        def notes() -> dict[int, Note]:
            late = late_seconds(looked, began, machine_clock.now())
            noted = ((of, of.noted(lost, late, known.tombstone_seconds)) for of in pieces)
            return {of.partition: note for of, note in noted if note is not None}

        batch = packed(
            chain(self._stable(pieces, patience_seconds, lost), self._unstable(pieces, patience_seconds, lost)),
            self._settings["keys"],
            less=partial(door.without_history, live_from=built) if built else lambda rows: rows,
            cut=[of.partition for of in pieces if of.is_cut],
            notes=notes,
        )
        return [batch.cast(to_arrow_schema(PACKED))] if batch.num_rows else []

    def _packed_share(
        self, plan: "SharePlan | None", looked: Instant | None, patience_seconds: float, *, may_leave_out: bool = False
    ) -> list[pa.RecordBatch]:
        """What there is of the second log, in one batch; in none if there is nothing."""
        if plan is None:
            return []
        from streaming.query.share_source import ShareReader

        known, lost, began = (os.getpid(), self._text, patience_seconds), Lost(set(), {}), machine_clock.now()
        if known not in _share_readers:
            batch_end = partial(self._batch_end, topic=SHARE_STATE_TOPIC)
            _share_readers[known] = ShareReader(self._settings, patience_seconds, batch_end)
        assert lost.partitions is not None and lost.batches is not None  # noqa: PT018, S101 - made so
        ranges = {of.partition: (of.membership, of.membership_end) for of in plan.pieces}
        rows, pruned = _share_readers[known].read(ranges, lost.partitions, lost.batches, may_leave_out=may_leave_out)
        late = late_seconds(looked, began, machine_clock.now())
        notes = {str(of.partition): of.noted(lost, late, float("inf")) for of in plan.pieces}
        said = CellNotes(
            notes={name: note for name, note in notes.items() if note is not None},
            pruned={str(partition): of for partition, of in pruned.items()},
            ends={str(of.partition): of.membership_end for of in plan.pieces},
            limits=plan.facts.limits,
            looked=_share_readers[known].looked(rows, plan.facts) if rows.num_rows < RECORDS_A_PROCESS else {},
        )
        cells = [*share_cells(rows, self._settings["keys"], said)]
        columns = {
            BUNDLE: pa.array([key for key, _ in cells], pa.int32()),
            "rows": pa.array([cell for _, cell in cells], pa.binary()),
        }
        return [pa.RecordBatch.from_pydict(columns).cast(to_arrow_schema(PACKED))] if cells else []

    def _stable(self, pieces: list["Piece"], patience_seconds: float, lost: "Lost") -> Iterator[pa.Table]:
        """Up to the last stable offset: all commits, and membership not yet read."""
        ranges = {of.partition: (of.commits, of.commits_end) for of in pieces if of.commits < of.commits_end}
        begins = {of.partition: of.membership for of in pieces}
        partly_read = any(of.commits < of.membership for of in pieces)
        for columns in self._read(ranges, patience_seconds, lost, committed=True):
            table = _table(columns)
            if partly_read:
                unread = [at >= begins[of] for of, at in zip(columns.partitions, columns.offsets, strict=True)]
                table = table.filter(pa.array(np.array(unread) | _is_commit(columns.keys)))
            yield table

    def _unstable(self, pieces: list["Piece"], patience_seconds: float, lost: "Lost") -> Iterator[pa.Table]:
        """From the last stable offset to the end: membership alone."""
        held_back = [
            of for of in pieces if of.unstable_from < of.membership_end and of.partition not in (lost.partitions or ())
        ]
        ranges = {of.partition: (of.unstable_from, of.membership_end) for of in held_back}
        for columns in self._read(ranges, patience_seconds, lost, committed=False):
            yield _table(columns).filter(pa.array(~_is_commit(columns.keys)))

    def _read(self, ranges: Ranges, patience_seconds: float, lost: "Lost", *, committed: bool) -> Iterator[Columns]:
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
                batch_end=self._batch_end,
                largest_value_bytes=settings["max_record_bytes"],
            )
        yield from _readers[known].read(ranges, lost.partitions, lost.batches)

    def _batch_end(self, partition: int, offset: int, leader: int, topic: str | None = None) -> int | None:
        """Where a batch ends; None where its leader does not say."""
        # As above: it is hardly ever asked for.
        from streaming.kafka.batch_bounds import BatchBounds
        from streaming.kafka.client_settings import python_settings, section_of

        topic = topic or self._settings["topic"]
        known = (os.getpid(), self._text, topic)
        if known not in _batch_bounds:
            settings = python_settings(section_of(self._settings["kafka"]), "batches")
            _batch_bounds[known] = BatchBounds(settings, topic)
        return _batch_bounds[known].after(partition, offset, leader)


class SharePlan(NamedTuple):
    """What a micro-batch has of the second log, and what brokers said before."""

    pieces: Sequence["Piece"]
    facts: Facts


class Lost(NamedTuple):
    """What of some pieces could not be read, as `RangeReader.read` fills it; None where that is to be an error."""

    partitions: set[int] | None = None
    batches: dict[int, list[SteppedOver]] | None = None


class Piece(NamedTuple):
    """What a micro-batch has of a partition: commits and membership from an offset to one that is not part of it."""

    partition: int
    commits: int
    commits_end: int
    membership: int
    membership_end: int
    is_cut: bool = False
    note: Note | None = None

    def begins_below(self, until: Mapping[str, int]) -> bool:
        """Whether there may be records below these offsets, by partition."""
        return min(self.commits, self.membership) < until.get(str(self.partition), 0)

    @property
    def records(self) -> int:
        """How many there may be; compaction has left fewer."""
        return max(self.commits_end, self.membership_end) - min(self.commits, self.membership)

    @property
    def unstable_from(self) -> int:
        """Where membership begins that is not read with the commits."""
        return max(self.commits_end, self.membership)

    def noted(self, lost: "Lost", late_seconds: float, tombstone_seconds: float) -> Note | None:
        """What is said of it once it was read as far as it could be; `late_seconds` is as of `read_late`."""
        if self.partition in (lost.partitions or ()):
            return self.owed()
        note, batches = self.read_late(late_seconds, tombstone_seconds), (lost.batches or {}).get(self.partition)
        if not batches or (note is not None and note.unread):
            return note
        return (note or Note((self.commits, self.membership)))._replace(
            stepped_over=tuple((of.first, of.end, of.reason) for of in batches)
        )

    def owed(self) -> Note:
        """What is said of it where it could not be read."""
        note = Note(begins=(self.commits, self.membership)) if self.note is None else self.note
        return note._replace(begins=(self.commits, self.membership), unread=True)

    def read_late(self, late_seconds: float, tombstone_seconds: float) -> Note | None:
        """What is said of it where it was read so long after it was planned: the cleaner may have been there."""
        if late_seconds < GAP_SECONDS or (self.note is not None and self.note.again is not None):
            return self.note
        if late_seconds >= tombstone_seconds:
            return self.owed()._replace(again={"unread_seconds": round(late_seconds)}, gap=None)
        note = Note(begins=(self.commits, self.membership)) if self.note is None else self.note
        of_plan = () if note.gap is None else (note.gap,)
        return note._replace(gap=_wider(gap_of(late_seconds, self.membership_end), *of_plan))


def _table(columns: Columns) -> pa.Table:
    arrays = [pa.array(column, field.type) for column, field in zip(columns, LOG_LAYOUT, strict=True)]
    return pa.Table.from_arrays(arrays, schema=LOG_LAYOUT)


def late_seconds(looked: Instant | None, began: Instant, ended: Instant) -> float:
    """How long after a look at the log, as far as this machine's clock can say, something was read to its end."""
    since_look = None if looked is None else looked.until(ended)
    return ended.seconds - began.seconds if since_look is None else since_look


def _wider(*gaps: tuple[int, int | None]) -> tuple[int, int | None]:
    """The one that takes in all of these."""
    live_from = [of for _, of in gaps if of is not None]
    return max(end for end, _ in gaps), max(live_from, default=None)


def next_position(start: Position, look: Look, most: int | None, *, committed_only: bool = False) -> dict[str, Any]:
    """Where a micro-batch ends that begins at `start`.

    Args:
        start: where the one before has ended.
        look: what may be read; a partition that it lacks stays where it is.
        most: largest number of records, or None.
        committed_only: whether membership waits for the last stable offset, too.

    Where there are more, whole partitions are read, those with the fewest records first: a group whose records all come
    in one micro-batch is replayed and written once, and a small partition does not wait for a large one. One that does
    not fit has what is left of the micro-batch if that is more than half of it, so a partition that never fits whole
    goes on, too. One that is read again from its beginning is read whole or not at all: what was known of it goes with
    the same micro-batch.
    """
    begins = {of: look.begins.get(of) or _begin(start, of) for of in look.high}
    high = look.stable if committed_only else look.high
    waiting = {p: max(0, high[p] - membership) for p, (_, membership) in begins.items()}
    limit = sum(waiting.values()) if most is None else most
    room, taken = limit, {}
    for p in sorted(waiting, key=lambda p: (waiting[p], p)):
        if p in look.again:
            # More than fits into any micro-batch has one of its own.
            taken[p] = waiting[p] if waiting[p] <= room or room == limit else None
        else:
            taken[p] = min(waiting[p], room) if waiting[p] <= room or room * 2 > limit else 0
        room = max(0, room - (taken[p] or 0))
    end: dict[str, Any] = {COMMITS: dict(start[COMMITS]), MEMBERSHIP: dict(start[MEMBERSHIP])}
    end[CUT] = [p for p in waiting if (taken[p] or 0) < waiting[p]]
    end[EPOCHS] = dict(start.get(EPOCHS, {}))
    uneven = dict(start.get(UNEVEN, {}))
    read = []
    for p, amount in taken.items():
        if amount is None:
            continue
        (commits, membership), name = begins[p], str(p)
        to = membership + amount
        end[MEMBERSHIP][name] = to
        # A new leader may know less of what is stable than the one before; what was read stays read.
        end[COMMITS][name] = max(commits, min(look.stable[p], to))
        end[EPOCHS][name] = look.epochs(p, max(to, end[COMMITS][name]))
        if p in look.uneven:
            uneven[name] = [*look.uneven[p]]
        read.append(p)
    said = {
        UNEVEN: uneven,
        BEGINS: {str(p): list(look.begins[p]) for p in read if p in look.begins},
        AGAIN: {str(p): dict(look.again[p]) for p in read if p in look.again},
        GAPS: {str(p): list(look.gaps[p]) for p in read if p in look.gaps and p not in look.again},
    }
    return end | {name: of for name, of in said.items() if of}


def _begin(start: Position, partition: int) -> tuple[int, int]:
    name = str(partition)
    return start[COMMITS].get(name, 0), start[MEMBERSHIP].get(name, 0)


def pieces_between(start: Position, end: Position) -> list[Piece]:
    """What there is to read between two positions, by partition.

    An end that was noted by an earlier release does not say where it is cut: that may be anywhere.
    """
    cut = set(end[CUT] if CUT in end else map(int, end[MEMBERSHIP]))
    begins, again, gaps = (end.get(name, {}) for name in (BEGINS, AGAIN, GAPS))
    pieces = []
    for name, to in end[MEMBERSHIP].items():
        commits, membership = begins.get(name) or _begin(start, int(name))
        note = None
        if name in begins or name in again or name in gaps:
            gap = gaps.get(name)
            note = Note((commits, membership), again.get(name), None if gap is None else tuple(gap))
        piece = Piece(int(name), commits, end[COMMITS][name], membership, to, int(name) in cut, note)
        if commits < piece.commits_end or membership < to or name in again:
            pieces.append(piece)
    return pieces


def shared_out(pieces: list[Piece], processes: int) -> list[list[Piece]]:
    """Pieces by process: as many processes as the records are worth, each with about as many."""
    sizes = [of.records for of in pieces]
    count = max(1, min(processes, sum(sizes) // RECORDS_A_PROCESS))
    return [[pieces[of] for of in share] for share in even_shares(sizes, [0] * count) if share]


def _is_commit(keys: Sequence[bytes | None]) -> Any:  # noqa: ANN401 - an array of truth values
    return np.array([key is not None and key[:2] in _COMMIT_KEYS for key in keys], dtype=bool)
