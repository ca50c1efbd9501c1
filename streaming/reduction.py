"""Fewer commits for the replica to read, and the same state and events.

Nearly all of the log is offset commits, and of a run of commits to one partition that only went forward, the first
and the last tell everything: the first may be new or a rewind, the last is what stands, and how many there were is
counted. Finding such runs needs of each record its key and a few bytes of its value, which are looked at where Arrow
holds them, a whole column at a time. Where a run has a tombstone, a rewind, another topic id or anything odd in it,
every record of it is replayed.
"""

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

WORTH_REDUCING: Final = 500
"""Rows below which looking for runs costs more than it saves."""

_OFFSET_COMMIT: Final = b"\x00\x01"
_OFFSET_AT: Final = 2
_OFFSET_BYTES: Final = 8
"""Where the committed offset stands in an OffsetCommitValue of every version: first field after the version."""
_NEWEST_VERSION: Final = 4
_ONE_TAG: Final = b"\x01\x00\x10"
"""How the tagged section begins whose only field is the topic id: one field, tag 0, 16 bytes."""
_TOPIC_ID_BYTES: Final = 16
_TAGGED_ID_BYTES: Final = len(_ONE_TAG) + _TOPIC_ID_BYTES
_SHORTEST_RUN: Final = 3

_Ints = npt.NDArray[np.int64]
_Flags = npt.NDArray[np.bool_]


def commits_told(offsets: _Ints, keys: pa.LargeBinaryArray, values: pa.LargeBinaryArray) -> _Ints:
    """How many commits each record stands for: 0 for one to be passed over, 1 for anything else than a run.

    Args:
        offsets: of the records in the log; records of one key must be of one partition.
        keys: their keys.
        values: their values, null for a tombstone.
    """
    told = np.ones(len(offsets), dtype=np.int64)
    (places,) = np.nonzero(_starts_with(_Bytes(keys), _OFFSET_COMMIT))
    if not len(places):
        return told
    keys, held = keys.take(pa.array(places)), _Bytes(values.take(pa.array(places)))
    codes = keys.dictionary_encode().indices.to_numpy(zero_copy_only=False)
    by_key = np.lexsort((offsets[places], codes))
    codes, places = codes[by_key], places[by_key]
    first = np.flatnonzero(np.r_[True, codes[1:] != codes[:-1]])
    last = np.r_[first[1:], len(codes)] - 1

    plain, committed = _committed(held)
    plain, committed = plain[by_key], committed[by_key]
    forward = np.r_[True, committed[1:] >= committed[:-1]]
    # A topic made anew under its name is an event of the very commit that shows it.
    ids = _topic_ids(held)[by_key]
    forward &= np.r_[True, ids[1:] == ids[:-1]]
    forward[first] = True
    forward &= plain
    runs = np.logical_and.reduceat(forward, first) & (last - first >= _SHORTEST_RUN - 1)

    lengths = last - first
    counts = np.repeat(np.where(runs, 0, 1), lengths + 1)
    counts[first[runs]] = 1
    counts[last[runs]] = lengths[runs]
    told[places] = counts
    return told


class _Bytes:
    """The bytes of a column where Arrow keeps them: one buffer, and where each value begins and ends in it."""

    def __init__(self, column: pa.LargeBinaryArray) -> None:
        _, bounds, data = column.buffers()
        bounds = np.frombuffer(bounds, dtype=np.int64)[column.offset : column.offset + len(column) + 1]
        self.data = np.frombuffer(data, dtype=np.uint8) if data is not None else np.zeros(0, dtype=np.uint8)
        self.starts, self.ends = bounds[:-1], bounds[1:]
        self.valid: _Flags = column.is_valid().to_numpy(zero_copy_only=False)

    def at_least(self, length: int) -> _Flags:
        """Which values are there and so long."""
        return self.valid & (self.ends - self.starts >= length)

    def slices(self, which: _Flags, starts: _Ints, length: int) -> npt.NDArray[np.uint8]:
        """(chosen values, length) bytes, of each chosen value `length` bytes from where `starts` says."""
        chosen: npt.NDArray[np.uint8] = self.data[starts[which][:, None] + np.arange(length)]
        return chosen


def _starts_with(column: _Bytes, prefix: bytes) -> _Flags:
    found = column.at_least(len(prefix))
    found[found] = (column.slices(found, column.starts, len(prefix)) == np.frombuffer(prefix, np.uint8)).all(axis=1)
    return found


def _committed(values: _Bytes) -> tuple[_Flags, _Ints]:
    """Which values are of a version whose offset is where it is looked for, and that offset."""
    plain = values.at_least(_OFFSET_AT + _OFFSET_BYTES)
    versions = values.slices(plain, values.starts, _OFFSET_AT).view(">i2").ravel()
    plain[plain] = (versions >= 0) & (versions <= _NEWEST_VERSION)
    committed = np.zeros(len(plain), dtype=np.int64)
    committed[plain] = values.slices(plain, values.starts + _OFFSET_AT, _OFFSET_BYTES).view(">i8").ravel()
    return plain, committed


def _topic_ids(values: _Bytes) -> npt.NDArray[Any]:
    """Topic id of each value as its last bytes, a tagged field of version 4; zeros where there is none."""
    tagged = values.at_least(_TAGGED_ID_BYTES)
    tags = values.slices(tagged, values.ends - _TAGGED_ID_BYTES, len(_ONE_TAG))
    tagged[tagged] = (tags == np.frombuffer(_ONE_TAG, np.uint8)).all(axis=1)
    ids = np.zeros((len(tagged), _TOPIC_ID_BYTES), dtype=np.uint8)
    ids[tagged] = values.slices(tagged, values.ends - _TOPIC_ID_BYTES, _TOPIC_ID_BYTES)
    return ids.view(f"V{_TOPIC_ID_BYTES}").ravel()
