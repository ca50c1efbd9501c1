"""Fewer records for the replica to read, and the same state and events.

Nearly all of the log is offset commits, and of a run of commits to one partition that only went forward, the first
and the last tell everything: the first may be new or a rewind, the last is what stands, and how many there were is
counted. Finding such runs needs of each record its key and a few bytes of its value, which are looked at where Arrow
holds them, a whole column at a time (`commit_columns.py`). Where a run has a tombstone, a rewind, another topic id or
anything odd in it, every record of it is replayed.
"""

from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from streaming.query.commit_columns import ColumnBytes, commit_keys, commit_values

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
    names = ColumnBytes(keys)
    commits = names.holds(names.starts, _OFFSET_COMMIT)
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
