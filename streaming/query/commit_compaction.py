"""Fewer commits for the replica to read, and the same state and events.

Nearly all of the log is offset commits, and of a run of commits to one partition that only went forward, the first
and the last tell everything: the first may be new or a rewind, the last is what stands, and how many there were is
counted. Finding such runs needs of each record its key and a few bytes of its value, which are looked at where Arrow
holds them, a whole column at a time. Where a run has a tombstone, a rewind, another topic id or anything odd in it,
every record of it is replayed.

    OffsetCommitKey                  type 1, group, topic: int16 length and bytes each, int32 partition
    OffsetCommitValue   0 … 3        version, int64 offset, from 3 on int32 leader epoch, metadata: int16 length and
                                     bytes, int64 commit time, in 1 also int64 expiry
                        4            version, int64 offset, int32 leader epoch, metadata: uvarint of length + 1 and
                                     bytes, int64 commit time, tagged fields: none, or the topic id alone

A record that is not whole by this, as the replica would find, is odd.
"""

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

WORTH_REDUCING: Final = 500
"""Rows below which looking for runs costs more than it saves."""

_OFFSET_COMMIT: Final = b"\x00\x01"
_VERSION_BYTES: Final = 2
_OFFSET_BYTES: Final = 8
_PARTITION_BYTES: Final = 4
_LENGTH_BYTES: Final = 2
_EPOCH_BYTES: Final = 4
_TIME_BYTES: Final = 8
_WITH_EXPIRY, _WITH_EPOCH, _FLEXIBLE = 1, 3, 4
"""Versions of the value: the only one with an expiry, the first with a leader epoch, the newest."""
_MORE: Final = 0x80
"""Bit of a varint's byte that another one follows."""
_NO_TAGS: Final = b"\x00"
_ONE_TAG: Final = b"\x01\x00\x10"
"""How the tagged section begins whose only field is the topic id: one field, tag 0, 16 bytes."""
_TOPIC_ID_BYTES: Final = 16
_SHORTEST_RUN: Final = 3

_Ints = npt.NDArray[np.int64]
_Flags = npt.NDArray[np.bool_]


def commits_told(offsets: _Ints, keys: pa.LargeBinaryArray, values: pa.LargeBinaryArray, told: _Ints) -> _Ints:
    """How many commits each record stands for: 0 for one to be passed over.

    Args:
        offsets: of the records in the log; records of one key must be of one partition.
        keys: their keys.
        values: their values, null for a tombstone.
        told: how many each stands for already: 1, or more where an earlier look has left others out before it.
    """
    told = told.copy()
    (places,) = np.nonzero(_starts_with(_Bytes(keys), _OFFSET_COMMIT))
    if not len(places):
        return told
    keys, held = keys.take(pa.array(places)), _Bytes(values.take(pa.array(places)))
    distinct = keys.dictionary_encode()
    codes = distinct.indices.to_numpy(zero_copy_only=False)
    by_key = np.lexsort((offsets[places], codes))
    codes, places = codes[by_key], places[by_key]
    first = np.flatnonzero(np.r_[True, codes[1:] != codes[:-1]])
    last = np.r_[first[1:], len(codes)] - 1

    plain, committed, ids = (column[by_key] for column in _committed(held))
    plain &= _whole_keys(_Bytes(distinct.dictionary))[codes]
    forward = np.r_[True, committed[1:] >= committed[:-1]]
    # A topic recreated under its name is an event of the very commit that shows it.
    forward &= np.r_[True, ids[1:] == ids[:-1]]
    forward[first] = True
    forward &= plain
    runs = np.logical_and.reduceat(forward, first) & (last - first >= _SHORTEST_RUN - 1)

    before = told[places]
    counts = np.where(np.repeat(runs, last - first + 1), 0, before)
    counts[first[runs]] = before[first[runs]]
    counts[last[runs]] = (np.add.reduceat(before, first) - before[first])[runs]
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

    def has(self, at: _Ints, length: int) -> _Flags:
        """Which values are there and have `length` bytes from where `at` says."""
        return self.valid & (at >= self.starts) & (at + length <= self.ends)

    def slices(self, which: _Flags, at: _Ints, length: int) -> npt.NDArray[np.uint8]:
        """(chosen values, length) bytes, of each chosen value `length` bytes from where `at` says."""
        chosen: npt.NDArray[np.uint8] = self.data[at[which][:, None] + np.arange(length)]
        return chosen

    def holds(self, at: _Ints, wanted: bytes) -> _Flags:
        """Which values have these bytes there."""
        found = self.has(at, len(wanted))
        found[found] = (self.slices(found, at, len(wanted)) == np.frombuffer(wanted, np.uint8)).all(axis=1)
        return found

    def numbers(self, at: _Ints, layout: str) -> _Ints:
        """A big-endian integer of each value, -1 for values that do not reach so far."""
        length = np.dtype(layout).itemsize
        which = self.has(at, length)
        numbers = np.full(len(which), -1, dtype=np.int64)
        numbers[which] = self.slices(which, at, length).view(layout).ravel()
        return numbers


def _starts_with(column: _Bytes, prefix: bytes) -> _Flags:
    return column.holds(column.starts, prefix)


def _whole_keys(keys: _Bytes) -> _Flags:
    """Which keys of offset commits name a group, a topic and a partition."""
    whole, at = keys.valid, keys.starts + len(_OFFSET_COMMIT)
    for _ in ("group", "topic"):
        lengths = keys.numbers(at, ">i2")
        whole = whole & (lengths >= 0)
        at = at + _LENGTH_BYTES + lengths
    return whole & keys.has(at, _PARTITION_BYTES)


def _committed(values: _Bytes) -> tuple[_Flags, _Ints, npt.NDArray[Any]]:
    """Which values are whole, of a version known here, and say no more than it does; their offsets and topic ids.

    The id is zeros where there is none.
    """
    versions = values.numbers(values.starts, ">i2")
    offsets_at = values.starts + _VERSION_BYTES
    committed = values.numbers(offsets_at, ">i8")
    metadata_at = offsets_at + _OFFSET_BYTES + np.where(versions >= _WITH_EPOCH, _EPOCH_BYTES, 0)
    flexible = versions == _FLEXIBLE

    lengths = values.numbers(metadata_at, ">i2")
    times_at = metadata_at + _LENGTH_BYTES + lengths
    ends = times_at + _TIME_BYTES + np.where(versions == _WITH_EXPIRY, _TIME_BYTES, 0)
    plain = (versions >= 0) & (versions < _FLEXIBLE) & (lengths >= 0) & (ends <= values.ends)

    first, second = values.numbers(metadata_at, "u1"), values.numbers(metadata_at + 1, "u1")
    long = first >= _MORE
    lengths = np.where(long, first % _MORE + second * _MORE, first) - 1
    tags_at = metadata_at + 1 + long + lengths + _TIME_BYTES
    # A third byte of the varint, or none at all, is odd enough.
    readable = flexible & (lengths >= 0) & (second < np.where(long, _MORE, _MORE * 2)) & ~(long & (second < 0))
    tagged = readable & values.holds(tags_at, _ONE_TAG) & values.has(tags_at + len(_ONE_TAG), _TOPIC_ID_BYTES)
    ids = np.zeros((len(versions), _TOPIC_ID_BYTES), dtype=np.uint8)
    ids[tagged] = values.slices(tagged, tags_at + len(_ONE_TAG), _TOPIC_ID_BYTES)
    plain |= tagged | (readable & values.holds(tags_at, _NO_TAGS))
    return plain, committed, ids.view(f"V{_TOPIC_ID_BYTES}").ravel()
