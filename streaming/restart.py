"""What a checkpoint belongs to, and what is in it: resuming is reading the state back, not the log.

A state directory is made for one cluster, one offsets topic and one number of stateful tasks. It says so in
`monitor.json`, so that a wrong configuration is told before anything is touched.

Nothing of a checkpoint is beyond replacement: the log tells it all again. `run --rebuild` forgets it, and what else is
in the directory stays: lag history, and what was told and is yet to be passed on.
"""

import json
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from coordinator_model import snapshot
from streaming.entries import Key, unpacked_entries
from streaming.errors import UsageError
from streaming.files import replace
from streaming.progress import PartitionOffsets, offsets_of
from streaming.schemas import BOOK_STATE, GROUPS_STATE, OFFSETS_STATE, PACKS_STATE, OutputRow

if TYPE_CHECKING:
    import pyarrow as pa

IDENTITY_FILE: Final = "monitor.json"
FORGOTTEN: Final = ".forgotten"
"""Ends the name of a checkpoint on its way out."""

STATE_LAYOUT: Final = 4
"""Of the state's keys and variables (`processor.py`) and of the position in the log (`source.py`). 1 had a key for each
partition, and no number in its identity; 2 the positions of Spark's Kafka source; 3 no packs."""
LAYOUTS_GONE_ON_FROM: Final = (3,)
"""Beside our own: what such state lacks is made when it is first written."""

_COLUMNS: Final = {
    GROUPS_STATE: ("user_map_key.group", "user_map_value.snapshot"),
    OFFSETS_STATE: ("user_map_key.group", "user_map_key.topic", "user_map_key.bucket", "user_map_value.snapshot"),
    PACKS_STATE: ("user_map_value.pack",),
    BOOK_STATE: ("value.snapshot",),
}
"""State variable → what is read back of it."""

_NO_SUCH_VARIABLE: Final = "STDS_INVALID_OPTION_VALUE.WITH_MESSAGE"
"""What Spark says of a state variable that an operator does not have."""

_UNTOLD: Final = -1
"""Partition of a row read back: not every part of the state holds it, and the board does not ask."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """What the checkpoint is of. A difference in any field makes it another one's."""

    cluster_id: str
    offsets_topic: str
    topic_id: str
    partitions: int
    shuffle_partitions: int
    isolation: str
    snapshot_format: int = snapshot.FORMAT
    state_layout: int = STATE_LAYOUT


REBUILD: Final = "run --rebuild, which reads the log from its beginning"

REMEDY: Final = {
    "cluster_id": "kafka.bootstrap_servers of the same cluster, or another state.dir",
    "offsets_topic": "the same kafka.offsets_topic, or another state.dir",
    "topic_id": f"the same offsets topic; made anew, it needs {REBUILD}",
    "partitions": f"the offsets topic as it was, or {REBUILD}",
    "shuffle_partitions": f"the same spark.shuffle_partitions, or {REBUILD}",
    "isolation": f"the same source.isolation, or {REBUILD}",
    "snapshot_format": f"the release that wrote it, or {REBUILD}",
    "state_layout": f"the release that wrote it, or {REBUILD}",
}
ANOTHER_ONES: Final = ("cluster_id", "offsets_topic")
"""What makes it another monitor's directory, which is not ours to rebuild."""


Forget = Callable[[Mapping[str, Any] | None], object]


def claim(directory: Path, identity: Identity, anew: Forget | None = None) -> None:
    """Make the state directory this identity's, or see that it is.

    Args:
        directory: made where it is not.
        identity: who wants it.
        anew: forgets what is in it, given whose it is if that can be read; what it was made with then does not matter.

    Raises:
        UsageError: it belongs to another one, is damaged, or cannot be written.
    """
    path = directory / IDENTITY_FILE
    with _writable(directory):
        directory.mkdir(parents=True, exist_ok=True)
        held = _identity_in(path) if path.exists() else None
    wanted = asdict(identity)
    former = held
    if held is not None and held.get("state_layout") in LAYOUTS_GONE_ON_FROM:
        held = {**held, "state_layout": identity.state_layout}
    if path.exists() and anew is None and held is None:
        raise damaged(directory, f"{IDENTITY_FILE} is no JSON object")
    if held is not None:
        _same(directory, held, {name: wanted[name] for name in (wanted if anew is None else ANOTHER_ONES)})
    with _writable(directory):
        if anew is not None:
            anew(former)
        if former != wanted:
            replace(path, json.dumps(wanted, indent=1) + "\n")


def same(directory: Path, held: Identity, found: Identity) -> None:
    """See that what the state directory is of is still what there is. Raises UsageError."""
    _same(directory, asdict(held), asdict(found))


def _same(directory: Path, held: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
    for name, value in wanted.items():
        if held.get(name) != value:
            raise UsageError(
                f"state.dir: found {str(directory)!r} of a monitor with {name} {held.get(name)!r}, this one has "
                f"{value!r}, accepted: {REMEDY[name]}"
            )


@contextmanager
def _writable(directory: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise UsageError(f"state.dir: found {str(directory)!r}: {error}, accepted: a writable directory") from error


def _identity_in(path: Path) -> dict[str, Any] | None:
    """What the file says; None where it is damaged."""
    try:
        held = json.loads(path.read_bytes())
    except ValueError:
        return None
    return held if isinstance(held, dict) else None


def damaged(directory: Path, reason: str) -> UsageError:
    """What to say of a state directory from which nobody can go on."""
    return UsageError(f"state.dir: found {str(directory)!r}, damaged ({reason}), accepted: a whole one, or {REBUILD}")


def forget(checkpoint: str) -> None:
    """Remove a checkpoint; interrupted, it is either there or not.

    Raises:
        UsageError: it is not on a file system of this machine.
        OSError: it cannot be removed.
    """
    if not _is_local(checkpoint):
        raise UsageError(
            f"--rebuild: found state.checkpoint_location {checkpoint!r}, accepted: one on this machine; empty that one "
            "yourself"
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
    """Whether there is nothing where a checkpoint was; not to be told of one on another machine."""
    return _is_local(checkpoint) and not has_committed_batch(checkpoint)


def last_written_ms(checkpoint: str) -> int | None:
    """When the last micro-batch was finished, by the clock of the file system; None where that is not to be told."""
    commits = _path(checkpoint) / "commits"
    times = [entry.stat().st_mtime_ns // 1_000_000 for entry in commits.glob("[0-9]*")] if commits.is_dir() else []
    return max(times, default=None)


def has_committed_batch(checkpoint: str) -> bool:
    """Whether a run got as far as finishing a micro-batch; before that there is no state to read back."""
    commits = _path(checkpoint) / "commits"
    return commits.is_dir() and any(entry.name.isdecimal() for entry in commits.iterdir())


def query_id(checkpoint: str) -> str:
    """The id Spark gave the query when it made the checkpoint; one made anew counts its batches anew.

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
    """
    # Asking for the streams registers the coordinator of state stores, without which reading them fails loudly.
    _ = spark.streams.active
    ahead = ThreadPoolExecutor(1, thread_name_prefix="state")
    try:
        parts = {of: ahead.submit(_fetched, spark, checkpoint, of, columns) for of, columns in _COLUMNS.items()}
        single: set[Key] = set()
        for variable in (GROUPS_STATE, OFFSETS_STATE):
            for *key, text in _values(parts.pop(variable).result()):
                single.add(tuple(key))
                yield _row(key, text)
        for (pack,) in _values(_if_there(parts.pop(PACKS_STATE))):
            # Where there are two of an entry, the one by itself is the newer.
            yield from (_row(key, text) for key, text in unpacked_entries(pack) if key not in single)
        for (text,) in _values(parts.pop(BOOK_STATE).result()):
            for partition, book in json.loads(text)["partitions"].items():
                totals = {**book["counters"], "last_offset": book["last_offset"]}
                yield OutputRow(int(partition), "shard", "", json.dumps(totals))
    finally:
        # Who is told to stop meanwhile does not wait for it: it ends with the JVM.
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
    return OutputRow(_UNTOLD, "group" if len(key) == 1 else "offsets", key[0], text)


def _values(table: "pa.Table | None") -> Iterator[tuple[Any, ...]]:
    """Columns row by row."""
    for batch in () if table is None else table.to_batches():
        yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)
