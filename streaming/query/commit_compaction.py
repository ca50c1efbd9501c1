"""Fewer records for the replica to read, and the same state and events; of what is long past, the same state.

Nearly all of the log is offset commits, and of a run of commits to one partition that only went forward, the first
and the last tell everything: the first may be new or a rewind, the last is what stands, and how many there were is
counted. Finding such runs needs of each record its key and a few bytes of its value, which are looked at where Arrow
holds them, a whole column at a time (`commit_columns.py`). Where a run has a tombstone, a rewind, another topic id or
anything odd in it, every record of it is replayed.

Below the live tail only state is made (`FirstReading`), and state follows from the last record of each key, in their
order, with some more (`last_of_each_key`):

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
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from streaming.query.commit_columns import LENGTH_BYTES, VERSION_BYTES, ColumnBytes, commit_keys, commit_values

WORTH_REDUCING: Final = 500
"""Rows below which looking for runs costs more than it saves."""

_OFFSET_COMMIT: Final = b"\x00\x01"
_SHORTEST_RUN: Final = 3

_Ints = npt.NDArray[np.int64]
_Flags = npt.NDArray[np.bool_]


def commits_represented(
    offsets: _Ints,
    keys: pa.LargeBinaryArray,
    values: pa.LargeBinaryArray,
    represented: _Ints,
    among: _Flags | None = None,
) -> _Ints:
    """How many commits each record stands for: 0 for one to be passed over.

    Args:
        offsets: of the records in the log; records of one key must be of one partition.
        keys: their keys.
        values: their values, null for a tombstone.
        represented: how many each stands for already: 1, or more where an earlier look has left others out before it.
        among: which records are looked at; by default all.
    """
    represented = represented.copy()
    commits = _starts_with(ColumnBytes(keys), _OFFSET_COMMIT)
    (places,) = np.nonzero(commits if among is None else commits & among)
    if not len(places):
        return represented
    keys, held = keys.take(pa.array(places)), ColumnBytes(values.take(pa.array(places)))
    distinct = keys.dictionary_encode()
    codes = distinct.indices.to_numpy(zero_copy_only=False)
    by_key = np.lexsort((offsets[places], codes))
    codes, places = codes[by_key], places[by_key]
    first = np.flatnonzero(np.r_[True, codes[1:] != codes[:-1]])
    last = np.r_[first[1:], len(codes)] - 1

    values_of = commit_values(held)
    plain, committed, ids = (of[by_key] for of in (values_of.plain, values_of.offsets, values_of.topic_ids))
    plain &= commit_keys(ColumnBytes(distinct.dictionary)).whole[codes]
    forward = np.r_[True, committed[1:] >= committed[:-1]]
    # A topic recreated under its name is an event of the very commit that shows it.
    forward &= np.r_[True, ids[1:] == ids[:-1]]
    forward[first] = True
    forward &= plain
    runs = np.logical_and.reduceat(forward, first) & (last - first >= _SHORTEST_RUN - 1)

    before = represented[places]
    counts = np.where(np.repeat(runs, last - first + 1), 0, before)
    counts[first[runs]] = before[first[runs]]
    counts[last[runs]] = (np.add.reduceat(before, first) - before[first])[runs]
    represented[places] = counts
    return represented


def last_of_each_key(
    offsets: _Ints, keys: pa.LargeBinaryArray, values: pa.LargeBinaryArray, represented: _Ints, below: _Flags
) -> tuple[_Flags, _Ints]:
    """(of which records only state is to be made, how many records of its key each stands for: 0 to be passed over).

    Args:
        offsets: as for `commits_represented`.
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


def _starts_with(column: ColumnBytes, prefix: bytes) -> _Flags:
    return column.holds(column.starts, prefix)
