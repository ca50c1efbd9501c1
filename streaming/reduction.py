"""Fewer commits for the replica to read, and the same state and events.

Nearly all of the log is offset commits, and of a run of commits to one partition that only went forward, the first
and the last tell everything: the first may be new or a rewind, the last is what stands, and how many there were is
counted. Finding such runs needs of each record its key and eight bytes of its value, which is done on whole columns.
Where a run has a tombstone, a rewind, another topic id or anything odd in it, every record of it is replayed.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

WORTH_REDUCING: Final = 500
"""Rows below which looking for runs costs more than it saves."""

_OFFSET_COMMIT: Final = b"\x00\x01"
_OFFSET_AT: Final = slice(2, 10)
"""Where the committed offset stands in an OffsetCommitValue of every version: first field after the version."""
_OLDEST, _NEWEST_VERSION = b"\x00\x00", b"\x00\x04"
_ONE_TAG: Final = b"\x01\x00\x10"
"""How the tagged section begins whose only field is the topic id: one field, tag 0, 16 bytes."""
_TOPIC_ID_BYTES: Final = 16
_TAGGED_ID_BYTES: Final = len(_ONE_TAG) + _TOPIC_ID_BYTES
_SHORTEST_RUN: Final = 3
_NOT_PLAIN: Final = np.iinfo(np.int64).min
"""Stands for the offset of a record that may not be passed over: it never goes forward."""


class LogRow(NamedTuple):
    """A record with its place, and how many commits of its key it stands for."""

    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    commits: int


def in_log_order(frames: Iterable[pd.DataFrame]) -> Iterator[LogRow]:
    """Rows of `schemas.LOG_ROW` by offset, runs of forward commits reduced to their ends."""
    held = [frame for frame in frames if len(frame)]
    if not held:
        return
    rows = pd.concat(held, ignore_index=True) if len(held) > 1 else held[0]
    rows = rows.iloc[np.argsort(rows["offset"].to_numpy(), kind="stable")]
    commits = np.ones(len(rows), dtype=np.int64)
    if len(rows) >= WORTH_REDUCING:
        commits = _commits_told(rows["key"].to_numpy(), rows["value"].to_numpy())
        rows, commits = rows[commits > 0], commits[commits > 0]
    columns = (rows[name].to_numpy().tolist() for name in ("offset", "timestamp_ms", "key", "value"))
    for values in zip(*columns, commits.tolist(), strict=True):
        yield LogRow(*values)


def _commits_told(keys: npt.NDArray[Any], values: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """How many commits each row stands for: 0 for one to be passed over."""
    told = np.ones(len(keys), dtype=np.int64)
    (places,) = np.nonzero(
        np.fromiter((key is not None and key[:2] == _OFFSET_COMMIT for key in keys), bool, len(keys))
    )
    if not len(places):
        return told
    codes = pd.factorize(keys[places])[0]
    by_key = np.argsort(codes, kind="stable")
    codes, places = codes[by_key], places[by_key]
    offsets = _committed_offsets(values[places])
    first = np.flatnonzero(np.r_[True, codes[1:] != codes[:-1]])
    last = np.r_[first[1:], len(codes)] - 1
    forward = np.r_[True, offsets[1:] >= offsets[:-1]]
    # A topic made anew under its name is an event of the very commit that shows it.
    ids = _topic_ids(values[places])
    forward &= np.r_[True, ids[1:] == ids[:-1]]
    forward[first] = True
    forward &= offsets != _NOT_PLAIN
    runs = np.logical_and.reduceat(forward, first) & (last - first >= _SHORTEST_RUN - 1)
    counts = np.zeros(len(codes), dtype=np.int64)
    lengths = last - first
    for begin, end in zip(first[~runs], last[~runs], strict=True):
        counts[begin : end + 1] = 1
    counts[first[runs]] = 1
    counts[last[runs]] = lengths[runs]
    told[places] = counts
    return told


def _topic_ids(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Topic id of each value as its last bytes, a tagged field of version 4; empty where there is none."""
    ids = np.empty(len(values), dtype=object)
    ids[:] = [
        value[-_TOPIC_ID_BYTES:] if value is not None and value[-_TAGGED_ID_BYTES:-_TOPIC_ID_BYTES] == _ONE_TAG else b""
        for value in values
    ]
    return ids


def _committed_offsets(values: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    plain = np.fromiter(
        (
            value is not None and len(value) >= _OFFSET_AT.stop and _OLDEST <= value[:2] <= _NEWEST_VERSION
            for value in values
        ),
        bool,
        len(values),
    )
    offsets = np.full(len(values), _NOT_PLAIN, dtype=np.int64)
    offsets[plain] = np.frombuffer(b"".join(value[_OFFSET_AT] for value in values[plain]), dtype=">i8")
    return offsets
