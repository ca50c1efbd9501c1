"""Keys and values of offset commits where Arrow holds them: what is looked at of a whole column at a time.

    OffsetCommitKey                  type 1, group, topic: int16 length and bytes each, int32 partition
    OffsetCommitValue   0 … 3        version, int64 offset, from 3 on int32 leader epoch, metadata: int16 length and
                                     bytes, int64 commit time, in 1 also int64 expiry
                        4            version, int64 offset, int32 leader epoch, metadata: uvarint of length + 1 and
                                     bytes, int64 commit time, tagged fields: none, or the topic id alone

A record that is not whole by this, as the replica would find, is odd.
"""

from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

VERSION_BYTES: Final = 2
OFFSET_BYTES: Final = 8
PARTITION_BYTES: Final = 4
LENGTH_BYTES: Final = 2
EPOCH_BYTES: Final = 4
TIME_BYTES: Final = 8
WITH_EXPIRY, WITH_EPOCH, _FLEXIBLE = 1, 3, 4
"""Versions of the value: the only one with an expiry, the first with a leader epoch, the newest."""
_MORE: Final = 0x80
"""Bit of a varint's byte that another one follows."""
_NO_TAGS: Final = b"\x00"
_ONE_TAG: Final = b"\x01\x00\x10"
"""How the tagged section begins whose only field is the topic id: one field, tag 0, 16 bytes."""
_TOPIC_ID_BYTES: Final = 16

_Ints = npt.NDArray[np.int64]
_Flags = npt.NDArray[np.bool_]


class ColumnBytes:
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


class CommitKeys(NamedTuple):
    """Which keys of offset commits name a group, a topic and a partition, and where each would end by that."""

    whole: _Flags
    ends: _Ints


def commit_keys(keys: ColumnBytes) -> CommitKeys:
    """Look at keys that begin with the type of an offset commit."""
    whole, at = keys.valid, keys.starts + VERSION_BYTES
    for _ in ("group", "topic"):
        lengths = keys.numbers(at, ">i2")
        whole = whole & (lengths >= 0)
        at = at + LENGTH_BYTES + lengths
    return CommitKeys(whole & keys.has(at, PARTITION_BYTES), at + PARTITION_BYTES)


class CommitValues(NamedTuple):
    """What values of offset commits say.

    Attributes:
        plain: which are whole, of a version known here, and say no more than it does; of others the rest means nothing.
        versions: of the value.
        offsets: that are committed.
        times_at: where the time of the commit stands.
        topic_ids: 16 bytes each, zeros where there is none.
    """

    plain: _Flags
    versions: _Ints
    offsets: _Ints
    times_at: _Ints
    topic_ids: npt.NDArray[Any]


def commit_values(values: ColumnBytes) -> CommitValues:
    """Look at values of offset commits."""
    versions = values.numbers(values.starts, ">i2")
    offsets_at = values.starts + VERSION_BYTES
    committed = values.numbers(offsets_at, ">i8")
    metadata_at = offsets_at + OFFSET_BYTES + np.where(versions >= WITH_EPOCH, EPOCH_BYTES, 0)
    flexible = versions == _FLEXIBLE

    lengths = values.numbers(metadata_at, ">i2")
    times_at = metadata_at + LENGTH_BYTES + lengths
    ends = times_at + TIME_BYTES + np.where(versions == WITH_EXPIRY, TIME_BYTES, 0)
    plain = (versions >= 0) & (versions < _FLEXIBLE) & (lengths >= 0) & (ends <= values.ends)

    first, second = values.numbers(metadata_at, "u1"), values.numbers(metadata_at + 1, "u1")
    long = first >= _MORE
    lengths = np.where(long, first % _MORE + second * _MORE, first) - 1
    flexible_times_at = metadata_at + 1 + long + lengths
    tags_at = flexible_times_at + TIME_BYTES
    # A third byte of the varint, or none at all, is odd enough.
    readable = flexible & (lengths >= 0) & (second < np.where(long, _MORE, _MORE * 2)) & ~(long & (second < 0))
    tagged = readable & values.holds(tags_at, _ONE_TAG) & values.has(tags_at + len(_ONE_TAG), _TOPIC_ID_BYTES)
    ids = np.zeros((len(versions), _TOPIC_ID_BYTES), dtype=np.uint8)
    ids[tagged] = values.slices(tagged, tags_at + len(_ONE_TAG), _TOPIC_ID_BYTES)
    plain |= tagged | (readable & values.holds(tags_at, _NO_TAGS))
    times_at = np.where(flexible, flexible_times_at, times_at)
    return CommitValues(plain, versions, committed, times_at, ids.view(f"V{_TOPIC_ID_BYTES}").ravel())
