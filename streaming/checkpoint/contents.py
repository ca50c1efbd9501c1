"""The checkpoint: its state read back, its positions, and how it is forgotten. Resuming reads the state, not the log.

Nothing of a checkpoint is beyond replacement: the log has it all. `run --rebuild` forgets it, and what else is in the
directory stays: lag history, and events that are still to be delivered.
"""

import json
import shutil
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from coordinator_model.state import snapshot
from streaming.base.errors import UsageError
from streaming.query.progress import PartitionOffsets, offsets_of
from streaming.query.schemas import BOOK_STATE, GROUPS_STATE, OFFSETS_STATE, PACKS_STATE, OutputRow
from streaming.query.state_cache import all_entries
from streaming.query.state_keys import place_of

if TYPE_CHECKING:
    import pyarrow as pa

FORGOTTEN: Final = ".forgotten"
"""Ends the name of a checkpoint on its way out."""


_COLUMNS: Final = {
    PACKS_STATE: ("user_map_key.partition", "user_map_key.slot", "user_map_value.pack"),
    GROUPS_STATE: ("user_map_key.group", "user_map_value.snapshot"),
    OFFSETS_STATE: ("user_map_key.group", "user_map_key.topic", "user_map_key.bucket", "user_map_value.snapshot"),
    BOOK_STATE: ("value.snapshot",),
}
"""State variable → what is read back of it, in this order: what changed lately is among the packs."""


_NO_SUCH_VARIABLE: Final = "STDS_INVALID_OPTION_VALUE.WITH_MESSAGE"
"""What Spark says of a state variable that an operator does not have."""


_UNKNOWN_PARTITION: Final = -1
"""Partition of a row read back of a release up to layout 5, whose keys do not say it; of each group it has one copy."""


def forget(checkpoint: str) -> None:
    """Remove a checkpoint; interrupted, it is either there or not.

    Raises:
        UsageError: it is not on a file system of this machine.
        OSError: it cannot be removed.
    """
    if not _is_local(checkpoint):
        raise UsageError(
            f"state.checkpoint_location: found {checkpoint!r}, which is to be forgotten, accepted: one on this machine "
            "(empty that one yourself)"
        )
    path = _path(checkpoint)
    former = path.with_name(path.name + FORGOTTEN)
    shutil.rmtree(former, ignore_errors=True)
    if path.exists():
        path.replace(former)
    shutil.rmtree(former, ignore_errors=True)


def settle(checkpoint: str) -> None:
    """Have a checkpoint that was moved, or copied, find its own files: Spark notes where those of a schema are.

    Raises:
        OSError, ValueError, LookupError, TypeError, AttributeError: it cannot be written, or is not what Spark wrote.
    """
    if not _is_local(checkpoint):
        return
    directory = _path(checkpoint).resolve()
    for path in directory.glob("state/*/_metadata/v2/[0-9]*"):
        version, _, noted = path.read_text(encoding="utf-8").partition("\n")
        held = json.loads(noted)
        for store in held["stateStoreInfo"]:
            places = (of.rpartition("/state/")[2] for of in store["stateSchemaFilePaths"])
            # As Hadoop writes it: one slash, nothing escaped.
            store["stateSchemaFilePaths"] = [f"file:{directory}/state/{place}" for place in places]
        if held != json.loads(noted):
            # Not beside it: Spark takes the name of every file there for a number.
            scratch = directory / ".settled"
            scratch.write_text(f"{version}\n{json.dumps(held, separators=(',', ':'))}", encoding="utf-8")
            path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
            scratch.replace(path)


def is_gone(checkpoint: str) -> bool:
    """Whether there is nothing where a checkpoint was; not known of one on another machine."""
    return _is_local(checkpoint) and not has_committed_batch(checkpoint)


def last_written_ms(checkpoint: str) -> int | None:
    """When the last micro-batch was finished, by the clock of the file system; None where that is not known."""
    commits = _path(checkpoint) / "commits"
    times = [entry.stat().st_mtime_ns // 1_000_000 for entry in commits.glob("[0-9]*")] if commits.is_dir() else []
    return max(times, default=None)


def has_committed_batch(checkpoint: str) -> bool:
    """Whether a run got as far as finishing a micro-batch; before that there is no state to read back."""
    commits = _path(checkpoint) / "commits"
    return commits.is_dir() and any(entry.name.isdecimal() for entry in commits.iterdir())


def query_id(checkpoint: str) -> str:
    """The id Spark gave the query when it made the checkpoint; a new one counts its batches from zero.

    Where the checkpoint is not on this machine, its location has to do.
    """
    metadata = _path(checkpoint) / "metadata"
    return str(json.loads(metadata.read_text(encoding="utf-8"))["id"]) if metadata.is_file() else checkpoint


def committed_positions(checkpoint: str) -> tuple[PartitionOffsets, ...]:
    """Next offsets of commits and of membership, as the last finished micro-batch left them.

    Spark writes them before a batch, a line of JSON after two lines of its own.

    Raises:
        OSError, ValueError, LookupError, AttributeError: they are not what Spark wrote.
    """
    directory = _path(checkpoint)
    finished = [int(entry.name) for entry in (directory / "commits").iterdir() if entry.name.isdecimal()]
    path = directory / "offsets" / str(max(finished))
    _version, _metadata, *sources = path.read_text(encoding="utf-8").splitlines()
    positions = offsets_of(sources[0]) if sources else ()
    if not positions or not all(positions):
        raise ValueError(f"{path.name} of the log of offsets is cut short")
    return positions


def stored_rows(spark: SparkSession, checkpoint: str) -> Iterator[OutputRow]:
    """The checkpoint's state as the rows that once made it, for filling the board.

    While the rows of one part of it are taken, the JVM is at the next.

    Raises:
        SnapshotFormatError: a group was written down by another release, in a way that this one does not read.
        PySparkException, Py4JError, ValueError, LookupError, TypeError: the state is damaged.
    """
    # Asking for the streams registers the coordinator of state stores, without which reading them fails loudly.
    _ = spark.streams.active
    ahead = ThreadPoolExecutor(1, thread_name_prefix="state")
    try:
        parts = {of: ahead.submit(_fetched, spark, checkpoint, of, columns) for of, columns in _COLUMNS.items()}
        packs = [((partition, slot), pack) for partition, slot, pack in _values(_if_there(parts.pop(PACKS_STATE)))]
        single = (
            (tuple(key), text)
            for variable in (GROUPS_STATE, OFFSETS_STATE)
            for *key, text in _values(parts.pop(variable).result())
        )
        yield from (_row(key, text) for key, text in all_entries(packs, single))
        for (text,) in _values(parts.pop(BOOK_STATE).result()):
            for partition, book in json.loads(text)["partitions"].items():
                totals = {**book["counters"], "last_offset": book["last_offset"]}
                yield OutputRow(int(partition), "shard", "", json.dumps(totals))
    finally:
        # A stop meanwhile does not wait for it: it ends with the JVM.
        ahead.shutdown(wait=False, cancel_futures=True)


def _is_local(checkpoint: str) -> bool:
    return checkpoint.startswith("file:") or "://" not in checkpoint


def _path(checkpoint: str) -> Path:
    return Path(unquote(checkpoint.removeprefix("file://")) if checkpoint.startswith("file:") else checkpoint)


def _fetched(spark: SparkSession, checkpoint: str, variable: str, columns: Sequence[str]) -> "pa.Table":
    """Columns of a state variable as Arrow: as Python objects of Spark's a row takes twenty times as long."""
    state = spark.read.format("statestore").option("path", checkpoint).option("stateVarName", variable).load()
    return state.select(*columns).toArrow()


def _if_there(fetched: "Future[pa.Table]") -> "pa.Table | None":
    """What was read of a variable, None if there is none of its name: the state is of a release that had no such."""
    try:
        return fetched.result()
    except PySparkException as error:
        if error.getCondition() != _NO_SUCH_VARIABLE:
            raise
        return None


def _row(key: Sequence[Any], text: str) -> OutputRow:
    partition, entry = place_of(tuple(key))
    is_group = len(entry) == 1
    snapshot.check_format(text, (snapshot.FORMAT,) if is_group else snapshot.OFFSETS_FORMATS)
    of = _UNKNOWN_PARTITION if partition is None else partition
    return OutputRow(of, "group" if is_group else "offsets", entry[0], text)


def _values(table: "pa.Table | None") -> Iterator[tuple[Any, ...]]:
    """Columns row by row."""
    for batch in () if table is None else table.to_batches():
        yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)
