"""Of what is long past, fewer records for the replica to read, and the same state.

Below the live tail only state is made, and state follows from the last record of each key, in their order, with some
more:

    left beside the last of a key                        because
    tombstones of a group's first record, all of them    they end the group's former life: what comes after is another's
    group epochs of 1                                    a broker up to 4.2, of which assignment epochs begin at 0
    commits and tombstones where offsets go back or go,  rewinds and commits are counted, and topic ids remembered
    or name another topic id, and those before them
    what is of an unknown type or a newer version, and   it is counted, and may not hide what can be read
    what is before it
    all of a group that was of two types                 its conversions are to be known: rules follow it
"""

from collections import defaultdict
from collections.abc import Mapping
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from streaming.query.commit_columns import LENGTH_BYTES, VERSION_BYTES, ColumnBytes, commit_values
from streaming.query.row_codec import COMMITS, whole, with_counts

_Ints = npt.NDArray[np.int64]
_Flags = npt.NDArray[np.bool_]


def without_history(rows: pa.Table, live_from: Mapping[int, int]) -> pa.Table:
    """Rows of `row_codec.packed`, less those that say nothing of the state where each partition's live tail begins."""
    offsets, partitions = (whole(rows, name).to_numpy() for name in ("offset", "partition"))
    ends = np.zeros(max(int(partitions.max(initial=0)), *live_from, 0) + 1, dtype=np.int64)
    ends[list(live_from)] = list(live_from.values())
    below = offsets < ends[partitions]
    if not below.any():
        return rows
    commits = whole(rows, COMMITS.name).to_numpy()
    built, commits = _last_of_each_key(offsets, whole(rows, "key"), whole(rows, "value"), commits, below)
    return with_counts(rows, commits, built)


def _last_of_each_key(
    offsets: _Ints, keys: pa.LargeBinaryArray, values: pa.LargeBinaryArray, represented: _Ints, below: _Flags
) -> tuple[_Flags, _Ints]:
    """(of which records only state is to be made, how many records of its key each stands for: 0 to be passed over).

    Args:
        offsets: as for `commit_compaction.commits_represented`.
        keys: likewise.
        values: likewise.
        represented: likewise, of records of any type.
        below: which records are below the live tail.
    """
    represented, names = represented.copy(), ColumnBytes(keys)
    types = names.numbers(names.starts, ">i2")
    built = below & (types >= 0) & (types < len(HIGHEST))
    built[built] = HIGHEST[types[built]] >= 0
    built &= ~_of_two_types(keys, types, built)
    (places,) = np.nonzero(built)
    if not len(places):
        return built, represented
    at = pa.array(places)
    distinct = keys.take(at).dictionary_encode()
    codes = distinct.indices.to_numpy(zero_copy_only=False)
    held = ColumnBytes(values.take(at))
    by_key = np.lexsort((offsets[places], codes))
    codes, places = codes[by_key], places[by_key]
    first = np.r_[True, codes[1:] != codes[:-1]]

    types, live = types[places], held.valid[by_key]
    values_of = commit_values(held)
    plain, committed, ids = (of[by_key] for of in (values_of.plain, values_of.offsets, values_of.topic_ids))
    is_commit = types == _COMMIT
    versions = held.numbers(held.starts, ">i2")[by_key]
    usual = np.where(is_commit, plain, ~live | ((versions >= 0) & (versions <= HIGHEST[types])))
    odd = ~usual
    turn = np.r_[False, is_commit[1:] & ((committed[1:] < committed[:-1]) | (ids[1:] != ids[:-1]))] & ~first
    ends = np.isin(types, ENDS)
    epoch = held.numbers(held.starts + VERSION_BYTES, ">i4")[by_key]
    begins = (ends & ~live) | (ends & (types != _GROUP_METADATA) & (epoch == 1))
    kept = odd | turn | begins
    kept |= np.r_[first[1:] | odd[1:] | turn[1:], True]

    (at_kept,) = np.nonzero(kept)
    counts = np.zeros(len(places), dtype=np.int64)
    counts[at_kept] = np.add.reduceat(represented[places], np.r_[0, at_kept[:-1] + 1])
    represented[places] = counts
    return built, represented


# The model would say all this, and is not loaded for it: a process that plans does without. A test compares both.
HIGHEST: Final = np.array([0, 4, 4, 0, 0, 0, 0, 0, 0, -1, 0, 0, 0, 0, 0, 0, 0, 0, -1, 0, 0, 0, 0, 0])
"""Record type → highest version of its value that is known; -1 for a type that is not."""
ENDS: Final = (2, 3, 11, 17)
"""Types whose tombstone ends a group."""
_GROUP_METADATA: Final = 2
_COMMIT: Final = 1


def _of_two_types(keys: pa.LargeBinaryArray, types: _Ints, among: _Flags) -> _Flags:
    """Which of these records are of groups that were of more than one type."""
    (first,) = np.nonzero(among & np.isin(types, ENDS))
    found = defaultdict[bytes, set[bytes]](set)
    for key in keys.take(pa.array(first)).unique().to_pylist():
        found[key[2:]].add(key[:2])
    names = {name for name, of in found.items() if len(of) > 1}
    if not names:
        return np.zeros(len(types), dtype=bool)
    distinct = keys.dictionary_encode()
    of_them = [name_of(key) in names for key in distinct.dictionary.to_pylist()]
    codes = distinct.indices.fill_null(len(of_them)).to_numpy(zero_copy_only=False)
    named: _Flags = np.array([*of_them, False], dtype=bool)[codes]
    return named


def name_of(key: bytes) -> bytes:
    """The group that a key of any type begins with, with its length."""
    return key[VERSION_BYTES : VERSION_BYTES + LENGTH_BYTES + int.from_bytes(key[2:4], "big")]
