"""Committed offsets of groups of which nothing is known yet, made of whole columns of a first catch-up.

Below the live tail a group's offsets follow from the last commit of each partition. So its buckets are made as the
state holds them, and no commit becomes an object (docs/decisions/0022). Decoded are, by the one decoder that there is,

    of keys     what stands before the partition, once for each group and topic
    of values   what is left without numbers, once for each version, metadata and topic id

and numbers are read where they stand. Of a group that says more than that, all is replayed record by record:

    it has                                                    because
    a tombstone of an offset, or of the group                 what comes after it is another's
    two commits of one partition, two ids of one topic        they are counted, in their order
    a commit of type 0, or one that is not plain              as `commit_columns` says
    a record of a newer version                               rules begin with it
    a group or topic in whose name bytes are replaced         other bytes may be the same name
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from coordinator_model.records.serde import KnownKey, Record, decode_key, decode_value
from coordinator_model.rules import offset_commits
from coordinator_model.state import packed_offsets
from coordinator_model.state.offsets import BUCKET_PARTITIONS
from coordinator_model.state.packed_offsets import PackedOffsets, Said
from streaming.query.commit_columns import (
    EPOCH_BYTES,
    OFFSET_BYTES,
    PARTITION_BYTES,
    TIME_BYTES,
    VERSION_BYTES,
    WITH_EPOCH,
    WITH_EXPIRY,
    ColumnBytes,
    commit_keys,
    commit_values,
)
from streaming.query.first_reading.last_records import ENDS, HIGHEST, name_of

_COMMITS: Final = (0, 1)
"""Record types of offset commits; type 0 is replayed."""
_COMMIT: Final = 1
_REPLACED: Final = "\N{REPLACEMENT CHARACTER}"
_ANY_KEY: Final = decode_key(b"\x00\x01" + bytes(8))
"""Of a commit: a value is read by the type of its key alone."""
_NO_ID: Final = -1

_Ints = npt.NDArray[np.int64]
_Flags = npt.NDArray[np.bool_]


@dataclass(slots=True)
class Seed:
    """Offsets of one group.

    Attributes:
        records: of the log that they stand for.
        last_offset: in the log, of the last of them.
        buckets: (topic, bucket number) → how many offsets, and these.
        topic_ids: topic → its id, where commits name one.
    """

    records: int = 0
    last_offset: int = -1
    buckets: dict[tuple[str, int], tuple[int, PackedOffsets]] = field(default_factory=dict)
    topic_ids: dict[str, str] = field(default_factory=dict)


Seeds = dict[int, dict[str, Seed]]
"""Partition of the log → group → its offsets."""


class _Place(NamedTuple):
    """What stands before the partition in a key."""

    name: bytes
    """As `name_of` has it."""
    group: str
    topic: str


def seeds_of(rows: pa.Table, known: Collection[int]) -> tuple[Seeds, pa.Table]:
    """Offsets that follow from whole columns, and the rows that are still to be replayed.

    Args:
        rows: of `row_codec.unpacked_table`.
        known: partitions of the log of which there is something already; all their rows are left.
    """
    of_log = rows["partition"].to_numpy()
    fresh = ~np.isin(of_log, list(known))
    built = fresh & rows["built"].to_numpy()
    if not built.any():
        return {}, rows
    keys, values = (rows[name].combine_chunks() for name in ("key", "value"))
    names, held = ColumnBytes(keys), ColumnBytes(values)
    types = names.numbers(names.starts, ">i2")
    whole, ends = commit_keys(names)
    (at,) = np.nonzero(built & held.valid & (types == _COMMIT) & whole & (ends == names.ends))
    if not len(at):
        return {}, rows
    commits = _Commits(
        keys.take(pa.array(at)),
        values.take(pa.array(at)),
        rows.select(["partition", "offset", "commits"]).take(pa.array(at)),
    )
    (refused,) = np.nonzero(_ends_or_is_newer(types, held) | np.isin(types, _COMMITS))
    is_plain = np.zeros(len(types), dtype=bool)
    is_plain[at] = commits.plain
    refused = refused[fresh[refused] & ~is_plain[refused]]
    seeds, seeded = commits.seeds({name_of(key) for key in keys.take(pa.array(refused)).drop_null().to_pylist()})
    left = np.ones(len(types), dtype=bool)
    left[at[seeded]] = False
    return seeds, rows.filter(pa.array(left))


def _ends_or_is_newer(types: _Ints, values: ColumnBytes) -> _Flags:
    """Which records may end a group, or are of a version that is not known."""
    known = (types >= 0) & (types < len(HIGHEST))
    highest = HIGHEST[np.where(known, types, 0)]
    newer: _Flags = known & (values.numbers(values.starts, ">i2") > highest)
    return newer | (np.isin(types, ENDS) & ~values.valid)


class _Commits:
    """Commits whose keys are whole, in columns.

    Attributes:
        plain: which of them say what their version does, and no more.
    """

    def __init__(self, keys: pa.LargeBinaryArray, values: pa.LargeBinaryArray, log: pa.Table) -> None:
        names, held = ColumnBytes(keys), ColumnBytes(values)
        found = commit_values(held)
        self._of_log, self._offsets, self._records = (column.to_numpy() for column in log.columns)
        self._partitions = names.numbers(names.ends - PARTITION_BYTES, ">i4")
        before = pc.binary_slice(keys, 0, -PARTITION_BYTES).dictionary_encode()
        self._place_of = before.indices.to_numpy()
        self._places = [_place(key) for key in before.dictionary.to_pylist()]

        has_epoch = found.versions >= WITH_EPOCH
        epochs_at = held.starts + VERSION_BYTES + OFFSET_BYTES
        epochs = np.where(has_epoch, held.numbers(epochs_at, ">i4"), -1)
        times_ms = held.numbers(found.times_at, ">i8")
        self._numbers = np.stack([self._partitions, found.offsets, times_ms, epochs], axis=1)
        words = held.data.copy()
        for first, length, of in (
            (held.starts + VERSION_BYTES, OFFSET_BYTES, found.plain),
            (epochs_at, EPOCH_BYTES, found.plain & has_epoch),
            (found.times_at, TIME_BYTES, found.plain),
            (found.times_at + TIME_BYTES, TIME_BYTES, found.plain & (found.versions == WITH_EXPIRY)),
        ):
            words[first[of][:, None] + np.arange(length)] = 0
        valid, bounds, _ = values.buffers()
        parts = [valid, bounds, pa.py_buffer(words)]
        alike = pa.Array.from_buffers(pa.large_binary(), len(values), parts, offset=values.offset).dictionary_encode()
        said = [_said(value) for value in alike.dictionary.to_pylist()]
        number = {of: at for at, of in enumerate(dict.fromkeys(said))}
        self._said = list(number)
        self._said_of = np.array([number[of] for of in said], dtype=np.int64)[alike.indices.to_numpy()]
        self.plain = found.plain & np.array([of is not None for of in self._said], dtype=bool)[self._said_of]

    def seeds(self, refused: set[bytes]) -> tuple[Seeds, _Flags]:
        """Offsets by partition of the log and group, without groups of these names; which commits they are made of."""
        refused = refused | {self._places[at].name for at in self._in_order()}
        taken = np.array(
            [_REPLACED not in of.group + of.topic and of.name not in refused for of in self._places], dtype=bool
        )
        seeded: _Flags = taken[self._place_of] & self.plain
        (at,) = np.nonzero(seeded)
        at = at[np.lexsort((self._partitions[at], self._place_of[at], self._of_log[at]))]
        seeds: Seeds = {}
        for of_log, place, bucket in self._buckets(at):
            seed = seeds.setdefault(of_log, {}).setdefault(place.group, Seed())
            seed.records += bucket.commits
            seed.last_offset = max(seed.last_offset, bucket.last_offset)
            words = packed_offsets.text_of(packed_offsets.words(place.topic, bucket.said, bucket.which))
            seed.buckets[place.topic, bucket.number] = bucket.offsets, (bucket.numbers, words)
            seed.topic_ids.update((place.topic, id_) for _, id_, _ in bucket.said if id_ is not None)
        return seeds, seeded

    def _in_order(self) -> set[int]:
        """Places of which what comes first matters: of two commits of one partition, of two ids of the topic."""
        order = np.lexsort((self._partitions, self._place_of, self._of_log))
        at = np.stack([self._of_log[order], self._place_of[order], self._partitions[order]], axis=1)
        twice = self._place_of[order][1:][(at[1:] == at[:-1]).all(axis=1)]
        ids: dict[str | None, int] = {None: _NO_ID}
        for of in self._said:
            if of is not None:
                ids.setdefault(of[1], len(ids))
        id_of = np.array([_NO_ID if of is None else ids[of[1]] for of in self._said])[self._said_of]
        named = np.unique(np.stack([self._place_of, id_of], axis=1)[id_of != _NO_ID], axis=0)[:, 0]
        return {*twice.tolist(), *named[1:][named[1:] == named[:-1]].tolist()}

    def _buckets(self, at: _Ints) -> Iterator[tuple[int, _Place, "_Bucket"]]:
        """(partition of the log, place, bucket) of commits in the order of both and of their partitions."""
        numbers, said_of = self._partitions[at] // BUCKET_PARTITIONS, self._said_of[at]
        of = np.stack([self._of_log[at], self._place_of[at], numbers], axis=1)
        (first,) = np.nonzero(np.r_[True, (of[1:] != of[:-1]).any(axis=1)][: len(at)])
        if not len(first):
            return
        counts = np.diff(np.r_[first, len(at)])
        commits = np.add.reduceat(self._records[at], first)
        last = np.maximum.reduceat(self._offsets[at], first)
        alike = np.minimum.reduceat(said_of, first) == np.maximum.reduceat(said_of, first)
        # A row of the bucket's own stands before those of its offsets.
        heads = first + np.arange(len(first))
        rows = np.zeros((len(at) + len(first), 4), dtype="<i8")
        rows[heads] = np.stack([numbers[first], commits, np.zeros(len(first), dtype=np.int64), counts], axis=1)
        rows[np.arange(len(at)) + np.repeat(np.arange(1, len(first) + 1), counts)] = self._numbers[at]
        packed, size = rows.tobytes(), packed_offsets.ROW.size
        columns = (of[first], commits, last, counts, alike, first, heads)
        said_by = said_of.tolist()
        for (of_log, place, number), of_commits, last_offset, count, is_alike, start, head in zip(
            *(column.tolist() for column in columns), strict=True
        ):
            which = said_by[start : start + (1 if is_alike else count)]
            said = {code: at for at, code in enumerate(dict.fromkeys(which))}
            yield (
                of_log,
                self._places[place],
                _Bucket(
                    number,
                    count,
                    of_commits,
                    last_offset,
                    tuple(self._said[code] for code in said),
                    () if is_alike else tuple(said[code] for code in which),
                    packed[head * size : (head + count + 1) * size],
                ),
            )


class _Bucket(NamedTuple):
    """As `packed_offsets` has it."""

    number: int
    offsets: int
    commits: int
    last_offset: int
    said: tuple[Said, ...]
    which: tuple[int, ...]
    numbers: bytes


def _place(before: bytes) -> _Place:
    """The group and topic of a key without its partition."""
    key = decode_key(before + bytes(PARTITION_BYTES))
    assert isinstance(key, KnownKey)  # noqa: S101 - for the type checker: `commit_keys` has seen that it is whole
    of: Any = key.key
    return _Place(name_of(before), of.group, of.topic)


def _said(value: bytes) -> Said | None:
    """What a value says besides numbers; None where it says more than its version does."""
    record = decode_value(_ANY_KEY, value)
    if not isinstance(record, Record) or record.newer:
        return None
    of = offset_commits.offset_of(record)
    return of.metadata, of.topic_id, of.other_version
