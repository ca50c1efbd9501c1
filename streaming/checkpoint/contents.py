"""The checkpoint: its state read back, its positions, and how it is forgotten. Resuming reads the state, not the log.

Nothing of a checkpoint is beyond replacement: the log has it all. `run --rebuild` forgets it, and what else is in the
directory stays: lag history, and events that are still to be delivered.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from coordinator_model.state import packed_offsets, snapshot
from coordinator_model.state.packed_offsets import check_format
from streaming.base.batch_rows import Row
from streaming.checkpoint.files import CheckpointFiles
from streaming.query.former_state import ledger_of
from streaming.query.ledger import TaskLedger
from streaming.query.progress import PartitionOffsets, offsets_of
from streaming.query.schemas import BOOK_STATE, ENTRIES_STATE, GROUPS_STATE, OFFSETS_STATE, PACKS_STATE
from streaming.query.share_cells import SHARE_LOG
from streaming.query.share_task import stored_share_rows
from streaming.query.state_cache import LEDGER, UNKNOWN_PARTITION, Entry, StoredKey, all_entries, former_entry, key_of

if TYPE_CHECKING:
    import pyarrow as pa

_COLUMNS: Final = {
    PACKS_STATE: ("user_map_key.partition", "user_map_key.slot", "user_map_value.pack"),
    ENTRIES_STATE: (
        *(f"user_map_key.{name}" for name in ("partition", "group", "topic", "bucket")),
        *("user_map_value.payload", "user_map_value.words"),
    ),
    BOOK_STATE: ("value.snapshot",),
}
"""State variable → what is read back of it, in this order: what changed lately is among the packs."""
_FORMER_COLUMNS: Final = {
    GROUPS_STATE: ("user_map_key.group", "user_map_value.snapshot"),
    OFFSETS_STATE: ("user_map_key.group", "user_map_key.topic", "user_map_key.bucket", "user_map_value.snapshot"),
}
"""The same of state layouts before 7, of which there is a ledger in `BOOK_STATE`."""


_NO_SUCH_VARIABLE: Final = "STDS_INVALID_OPTION_VALUE.WITH_MESSAGE"
"""What Spark says of a state variable that an operator does not have."""


class Mark(NamedTuple):
    """How far a checkpoint is: the id Spark gave the query when it made it, and the last finished micro-batch.

    A new checkpoint has another id, and counts its batches from zero.
    """

    query_id: str | None = None
    batch: int = -1

    @property
    def has_state(self) -> bool:
        """Whether a micro-batch was ever finished; before that there is no state to read back."""
        return self.batch >= 0


def mark(files: CheckpointFiles) -> Mark:
    """How far it is; an empty one where there is none.

    Raises:
        OSError, ValueError, LookupError, TypeError: it is not what Spark wrote.
    """
    batch = max(_numbers(files.names("commits")), default=-1)
    try:
        return Mark(str(json.loads(files.text("metadata"))["id"]), batch)
    except FileNotFoundError:
        if batch >= 0:
            raise
        return Mark()


def settle(files: CheckpointFiles, root: str) -> None:
    """Have a checkpoint that was moved, or copied, find its own files: Spark notes where those of a schema are.

    Args:
        files: of it.
        root: the place that Spark is given, as it notes it.

    Raises:
        OSError, ValueError, LookupError, TypeError, AttributeError: it cannot be written, or is not what Spark wrote.
    """
    for operator in files.names("state"):
        directory = f"state/{operator}/_metadata/v2"
        for number in _numbers(files.names(directory)):
            name = f"{directory}/{number}"
            version, _, noted = files.text(name).partition("\n")
            held = json.loads(noted)
            for store in held["stateStoreInfo"]:
                places = (of.rpartition("/state/")[2] for of in store["stateSchemaFilePaths"])
                store["stateSchemaFilePaths"] = [f"{root}/state/{place}" for place in places]
            if held != json.loads(noted):
                files.write(name, f"{version}\n{json.dumps(held, separators=(',', ':'))}")


def read_to_end_ms(files: CheckpointFiles) -> int:
    """When the log was last read to the end that it had then, by the clock of who read it; 0 where that is not known.

    Spark notes with each micro-batch when it was planned, which a copy does not change.

    Raises:
        OSError, ValueError, LookupError, TypeError: it is not what Spark wrote.
    """
    planned = set(_numbers(files.names("offsets")))
    for batch in sorted(planned & set(_numbers(files.names("commits"))), reverse=True):
        _version, noted, *sources = files.text(f"offsets/{batch}").splitlines()
        if sources and not json.loads(sources[0]).get("cut", True):
            return int(json.loads(noted)["batchTimestampMs"])
    return 0


def committed_positions(files: CheckpointFiles, batch: int) -> tuple[PartitionOffsets, ...]:
    """Next offsets of commits and of membership, as a finished micro-batch left them.

    Spark writes them before a batch, a line of JSON after two lines of its own.

    Raises:
        OSError, ValueError, LookupError, AttributeError: they are not what Spark wrote.
    """
    _version, _metadata, *sources = files.text(f"offsets/{batch}").splitlines()
    positions = offsets_of(sources[0]) if sources else ()
    if not positions or not all(positions):
        raise ValueError(f"{batch} of the log of offsets is cut short")
    return positions


def stored_rows(spark: SparkSession, checkpoint: str, batch: int | None = None) -> Iterator[Row]:
    """The checkpoint's state as the rows that once made it, for filling the board.

    Args:
        spark: reads it.
        checkpoint: as Spark is given it.
        batch: the micro-batch that left it so; by default the last finished one.

    While the rows of one part of it are taken, the JVM is at the next.

    Raises:
        SnapshotFormatError: a group was written down by another release, in a way that this one does not read.
        PySparkException, Py4JError, ValueError, LookupError, TypeError: the state is damaged.
    """
    # Asking for the streams registers the coordinator of state stores, without which reading them fails loudly.
    _ = spark.streams.active
    ahead = ThreadPoolExecutor(1, thread_name_prefix="state")

    def asked(variables: Mapping[str, Sequence[str]]) -> "dict[str, Future[pa.Table]]":
        return {of: ahead.submit(_fetched, spark, checkpoint, of, names, batch) for of, names in variables.items()}

    def single() -> Iterator[tuple[StoredKey, Entry]]:
        for *place, payload, words in _values(_if_there(parts.pop(ENTRIES_STATE))):
            yield tuple(place), (payload, words)
        former = [ledger_of(text) for (text,) in _values(parts.pop(BOOK_STATE).result())]
        ledgers.extend(former)
        for variable in asked(_FORMER_COLUMNS).values() if former else ():
            yield from (former_entry(UNKNOWN_PARTITION, key, text) for *key, text in _values(variable.result()))

    try:
        parts = asked(_COLUMNS)
        packs = [((partition, slot), pack) for partition, slot, pack in _values(_if_there(parts.pop(PACKS_STATE)))]
        of_shares = [held for held in packs if held[0][0] >= SHARE_LOG]
        packs = [held for held in packs if held[0][0] < SHARE_LOG]
        ledgers = [TaskLedger.load(held) for at, held in packs if at == LEDGER]
        yield from (_row(place, entry) for place, entry in all_entries(packs, single()))
        yield from chain.from_iterable(map(rows_of, ledgers))
        yield from stored_share_rows(of_shares)
    finally:
        # A stop meanwhile does not wait for it: it ends with the JVM.
        ahead.shutdown(wait=False, cancel_futures=True)


def rows_of(ledger: TaskLedger) -> Iterator[Row]:
    """What a task's ledger once passed on of its partitions: what is owed of one is owed after a restart, too."""
    for partition, of in ledger.partitions.items():
        yield Row(partition, "shard", "", json.dumps(of.totals()).encode())


def _numbers(names: Iterable[str]) -> Iterator[int]:
    """What Spark calls its entries."""
    return (int(name) for name in names if name.isdecimal())


def _fetched(
    spark: SparkSession, checkpoint: str, variable: str, columns: Sequence[str], batch: int | None = None
) -> "pa.Table":
    """Columns of a state variable as Arrow: as Python objects of Spark's a row takes twenty times as long."""
    state = spark.read.format("statestore").option("path", checkpoint).option("stateVarName", variable)
    return (state if batch is None else state.option("batchId", batch)).load().select(*columns).toArrow()


def _if_there(fetched: "Future[pa.Table]") -> "pa.Table | None":
    """What was read of a variable, None if there is none of its name: the state is of a release that had no such."""
    try:
        return fetched.result()
    except PySparkException as error:
        if error.getCondition() != _NO_SUCH_VARIABLE:
            raise
        return None


def _row(place: StoredKey, entry: Entry) -> Row:
    is_group = len(key_of(place)) == 1
    check_format(entry[1], (snapshot.FORMAT if is_group else packed_offsets.FORMAT,))
    return Row(place[0], "group" if is_group else "offsets", place[1], *entry)


def _values(table: "pa.Table | None") -> Iterator[tuple[Any, ...]]:
    """Columns row by row."""
    for batch in () if table is None else table.to_batches():
        yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)
