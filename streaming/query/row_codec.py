"""Rows between Spark's tasks and the driver, many in one: Arrow record batches inside one binary cell.

Spark hands a stateful processor its rows one by one as Python objects, which costs more than replaying them, and turns
every row from Arrow's form into its own and back. So rows travel as a stream of Arrow record batches that neither the
shuffle nor Python has to look into: what a source task read, with superseded commits dropped (`commit_compaction`), in
cells of one bundle of partitions each; and what a stateful task puts out.

    partition % bundles     which bundle a partition of the offsets topic is in
    a bundle's key          a number that Spark's hash leads to the stateful task of the bundle's own (`task_keys`)
"""

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cache
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from streaming.base.batch_rows import Row
from streaming.query.commit_compaction import WORTH_REDUCING, commits_represented
from streaming.query.log_continuity import Note
from streaming.query.schemas import BUNDLE

LOG_LAYOUT: Final = pa.schema(
    [
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp_ms", pa.int64()),
        ("key", pa.large_binary()),
        ("value", pa.large_binary()),
    ]
)
"""One record of the log, of either reader. Large: a batch of a million records has more than two gigabytes."""


COMMITS: Final = pa.field("commits", pa.int64())
BUILT: Final = pa.field("built", pa.bool_())
_CUT: Final = pa.field("cut", pa.bool_())
"""Whether the micro-batch ends before the log of the record's partition did."""

REDUCE_AFTER: Final = 200_000
"""A first catch-up reads millions of records in a task, most of them commits: records are buffered up to this number,
then superseded commits are dropped."""


ROWS_A_CELL: Final = 25_000
"""A bundle's rows that are more leave in several cells: of what is large the JVM makes copies, in one thread."""

COMPRESSED_FROM_BYTES: Final = 16 * 1024 * 1024
"""What a client has packed a thousand to one, to write it at all, does not get to the JVM as large as it is."""


class LogRow(NamedTuple):
    """A record with its place.

    `commits` is how many of its key it stands for; `built` whether it is from below the live tail, so that only state
    is made of it.
    """

    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    commits: int = 1
    built: bool = False


_NOTES: Final = b"notes"


def packed(
    tables: Iterable[pa.Table],
    keys: Sequence[int],
    *,
    less: Callable[[pa.Table], pa.Table] = lambda rows: rows,
    cut: Collection[int] = (),
    notes: Callable[[], Mapping[int, Note]] = dict,
) -> pa.RecordBatch:
    """Records of `LOG_LAYOUT`, in any order, as rows of `schemas.PACKED`: of each bundle that has some, one or more.

    `less` leaves out records before superseded commits are (`first_reading`). Of the partitions that are `cut` there is
    more in the log. `notes` is asked by partition once all tables were read; a partition that could not be read has no
    records, even where some were read.
    """
    rows, waiting = _no_rows(), []
    for table in tables:
        waiting.append(_uncounted(table))
        if sum(map(len, waiting)) >= REDUCE_AFTER:
            rows, waiting = _reduced(less(_in_one(rows, *waiting))), []
    rows = _reduced(less(_in_one(rows, *waiting)))
    said = notes()
    if left_out := [partition for partition, note in said.items() if note.unread]:
        rows = rows.filter(pa.array(~np.isin(whole(rows, "partition").to_numpy(), left_out)))
    partitions = whole(rows, "partition").to_numpy()
    rows = rows.append_column(_CUT, pa.array(np.isin(partitions, list(cut))))
    bundles = partitions % len(keys)
    cells = []
    for bundle, key in enumerate(keys):
        mine = {partition: note for partition, note in said.items() if partition % len(keys) == bundle}
        cells += [(key, cell) for cell in _cells(rows.filter(pa.array(bundles == bundle)), mine)]
    return pa.RecordBatch.from_pydict(
        {
            BUNDLE: pa.array([key for key, _ in cells], pa.int32()),
            "rows": pa.array([cell for _, cell in cells], pa.binary()),
        }
    )


def _cells(rows: pa.Table, notes: Mapping[int, Note]) -> list[bytes]:
    """Rows of one bundle, packed; compressed where they are so many that the JVM is not done with them at once."""
    starts = range(0, rows.num_rows or bool(notes), ROWS_A_CELL)
    if notes:
        rows = rows.replace_schema_metadata({_NOTES: json.dumps(list(notes.items()))})
    is_large = len(starts) > 1 or rows.nbytes > COMPRESSED_FROM_BYTES
    return [dumped(rows.slice(start, ROWS_A_CELL), compressed=is_large) for start in starts]


def unpacked_table(blobs: Iterable[bytes]) -> pa.Table:
    """Records of packed rows, by partition and offset; columns as `LogRow` has them, and whether they are cut."""
    tables = [loaded(blob) for blob in blobs]
    notes = [note for table in tables for note in _notes_in(table)]
    rows = pa.concat_tables(tables)
    if notes:
        rows = rows.replace_schema_metadata({_NOTES: json.dumps(notes)})
    order = np.lexsort((rows["offset"].to_numpy(), rows["partition"].to_numpy()))
    return rows.take(pa.array(order)).select([*LogRow._fields, _CUT.name]).combine_chunks()


def rows_of(table: pa.Table) -> list[LogRow]:
    """Its rows as objects."""
    columns = table.select(LogRow._fields).columns
    return list(map(LogRow._make, zip(*(column.to_pylist() for column in columns), strict=True)))


def partitions_cut(table: pa.Table) -> set[int]:
    """Partitions of which the log had more than is in the table."""
    return set(pc.unique(table["partition"].filter(table[_CUT.name])).to_pylist())


def notes_of(table: pa.Table) -> dict[int, Note]:
    """What is said of partitions beside their records."""
    return {partition: Note.of(held) for partition, held in _notes_in(table)}


def _notes_in(table: pa.Table) -> list[Any]:
    text = (table.schema.metadata or {}).get(_NOTES)
    return [] if text is None else json.loads(text)


def unpacked(blobs: Iterable[bytes]) -> list[LogRow]:
    """Records of packed rows, by partition and offset."""
    return rows_of(unpacked_table(blobs))


@cache
def _no_rows() -> pa.Table:
    """Made when it is asked for: it takes pandas along, which a process that only plans does without."""
    return LOG_LAYOUT.append(COMMITS).append(BUILT).empty_table()


def _uncounted(table: pa.Table) -> pa.Table:
    """Each record standing for itself."""
    ones, none = np.ones(table.num_rows, dtype=np.int64), np.zeros(table.num_rows, dtype=bool)
    return table.append_column(COMMITS, pa.array(ones)).append_column(BUILT, pa.array(none))


def _in_one(*tables: pa.Table) -> pa.Table:
    return pa.concat_tables(tables).combine_chunks()


def _reduced(rows: pa.Table) -> pa.Table:
    """Less commits that other records tell of."""
    if rows.num_rows < WORTH_REDUCING:
        return rows
    built, commits = (whole(rows, of.name).to_numpy(zero_copy_only=False) for of in (BUILT, COMMITS))
    offsets, names, values = (whole(rows, name) for name in ("offset", "key", "value"))
    return with_counts(rows, commits_represented(offsets.to_numpy(), names, values, commits, ~built), built)


def with_counts(rows: pa.Table, commits: npt.NDArray[np.int64], built: npt.NDArray[np.bool_]) -> pa.Table:
    """Rows that stand for so many of their key, less those that stand for none; and whether state alone is made."""
    columns = [*rows.columns[: len(LOG_LAYOUT)], pa.array(commits), pa.array(built)]
    return pa.Table.from_arrays(columns, schema=rows.schema).filter(pa.array(commits > 0))


def whole(rows: pa.Table, name: str) -> pa.Array:
    """A column in one piece."""
    return rows[name].combine_chunks()


# Arrow compresses and reads columns in threads: for what a pack holds, waking them costs ten times the work.
_AS_IT_IS: Final = pa.ipc.IpcWriteOptions(use_threads=False)
_COMPRESSED: Final = pa.ipc.IpcWriteOptions(compression="lz4", use_threads=False)
_READ: Final = pa.ipc.IpcReadOptions(use_threads=False)


def dumped(rows: pa.Table, *, compressed: bool = False) -> bytes:
    """A stream of Arrow record batches."""
    written = pa.BufferOutputStream()
    with pa.ipc.new_stream(written, rows.schema, options=_COMPRESSED if compressed else _AS_IT_IS) as stream:
        stream.write_table(rows)
    return bytes(written.getvalue())


def loaded(stream: bytes) -> pa.Table:
    """Inverse of `dumped`."""
    return pa.ipc.open_stream(stream, options=_READ).read_all()


OUTPUT_LAYOUT: Final = pa.schema(
    [
        ("partition", pa.int32()),
        ("kind", pa.string()),
        ("group", pa.string()),
        ("payload", pa.large_binary()),
        ("words", pa.large_string()),
    ]
)


def packed_output(rows: Sequence[Row]) -> bytes:
    """Rows as what `unpacked_output` reads."""
    columns = [pa.array(column, of.type) for column, of in zip(zip(*rows, strict=True), OUTPUT_LAYOUT, strict=True)]
    return dumped(pa.Table.from_arrays(columns, schema=OUTPUT_LAYOUT), compressed=True)


def unpacked_output(packs: Iterable[bytes]) -> list[Row]:
    """Rows of some packs, in their order."""
    rows: list[Row] = []
    for pack in packs:
        columns = loaded(pack).columns
        rows += map(Row._make, zip(*(column.to_pylist() for column in columns), strict=True))
    return rows
