"""What a checkpoint belongs to, and what is in it: resuming is reading the state back, not the log.

A state directory is made for one cluster, one offsets topic and one number of stateful tasks. It says so in
`monitor.json`, so that a wrong configuration is told before anything is touched.
"""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from pyspark.sql import DataFrame, SparkSession

from coordinator_model import snapshot
from streaming.errors import UsageError
from streaming.progress import PartitionOffsets, offsets_of
from streaming.schemas import BOOK_STATE, GROUPS_STATE, OFFSETS_STATE, OutputRow

IDENTITY_FILE: Final = "monitor.json"

STATE_LAYOUT: Final = 2
"""Of the state's keys and variables (`processor.py`). 1 had a key for each partition, and no number in its identity."""

_UNTOLD: Final = -1
"""Partition of a row of offsets read back: the state does not hold it, and the board does not ask."""


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


REMEDY: Final = {
    "cluster_id": "kafka.bootstrap_servers of the same cluster, or another state.dir",
    "offsets_topic": "the same kafka.offsets_topic, or another state.dir",
    "topic_id": "the same offsets topic; made anew, it needs another state.dir",
    "partitions": "the offsets topic as it was, or another state.dir",
    "shuffle_partitions": "the same spark.shuffle_partitions, or another state.dir",
    "isolation": "the same source.isolation, or another state.dir",
    "snapshot_format": "the release that wrote it, or another state.dir",
    "state_layout": "the release that wrote it, or another state.dir",
}


def claim(directory: Path, identity: Identity) -> None:
    """Make the state directory this identity's, or see that it is.

    Raises:
        UsageError: it belongs to another one, or cannot be written.
    """
    path = directory / IDENTITY_FILE
    try:
        directory.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            scratch = path.with_suffix(".new")
            scratch.write_text(json.dumps(asdict(identity), indent=1) + "\n", encoding="utf-8")
            scratch.replace(path)
            return
        held = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"state.dir: found {str(directory)!r}: {error}, accepted: a writable directory") from error
    for name, value in asdict(identity).items():
        if held.get(name) != value:
            raise UsageError(
                f"state.dir: found {str(directory)!r} of a monitor with {name} {held.get(name)!r}, this one has "
                f"{value!r}, accepted: {REMEDY[name]}"
            )


def has_committed_batch(checkpoint: str) -> bool:
    """Whether a run got as far as finishing a micro-batch; before that there is no state to read back."""
    commits = Path(checkpoint.removeprefix("file://")) / "commits"
    return commits.is_dir() and any(entry.name.isdecimal() for entry in commits.iterdir())


def query_id(checkpoint: str) -> str:
    """The id Spark gave the query when it made the checkpoint; one made anew counts its batches anew.

    Where the checkpoint is not on this machine, its location has to do.
    """
    metadata = Path(checkpoint.removeprefix("file://")) / "metadata"
    return str(json.loads(metadata.read_text(encoding="utf-8"))["id"]) if metadata.is_file() else checkpoint


def committed_positions(checkpoint: str, topic: str) -> tuple[PartitionOffsets, ...]:
    """Next offset of each reader, in the order of the sources, as the last finished micro-batch left them.

    Spark writes them before a batch, one line of JSON a source after two lines of its own.
    """
    directory = Path(checkpoint.removeprefix("file://"))
    finished = [int(entry.name) for entry in (directory / "commits").iterdir() if entry.name.isdecimal()]
    lines = (directory / "offsets" / str(max(finished))).read_text(encoding="utf-8").splitlines()
    return tuple(offsets_of(line, topic) for line in lines[2:])


def stored_rows(spark: SparkSession, checkpoint: str) -> Iterator[OutputRow]:
    """The checkpoint's state as the rows that once made it, for filling the board."""
    # Asking for the streams registers the coordinator of state stores, without which reading them fails loudly.
    _ = spark.streams.active
    for row in _state(spark, checkpoint, GROUPS_STATE).toLocalIterator():
        state = snapshot.load_group(row.user_map_value.snapshot)
        if state.exists:
            yield OutputRow(state.partition, "group", state.name, row.user_map_value.snapshot)
    for row in _state(spark, checkpoint, OFFSETS_STATE).toLocalIterator():
        yield OutputRow(_UNTOLD, "offsets", row.user_map_key.group, row.user_map_value.snapshot)
    for row in _state(spark, checkpoint, BOOK_STATE).toLocalIterator():
        for partition, book in json.loads(row.value.snapshot)["partitions"].items():
            totals = {**book["counters"], "last_offset": book["last_offset"]}
            yield OutputRow(int(partition), "shard", "", json.dumps(totals))


def _state(spark: SparkSession, checkpoint: str, variable: str) -> DataFrame:
    return spark.read.format("statestore").option("path", checkpoint).option("stateVarName", variable).load()
