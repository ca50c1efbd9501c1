"""What is asked of each decoder. A target takes any bytes, and raises where a property does not hold.

Of all of them: no exception but the errors that users see, and what is read can be written and read again.
Time and memory are asked of the corpus in `test_corpus.py`, and by libFuzzer's limits of every input.
"""

import gzip
import json
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa

from coordinator_model.records.consumer_protocol import (
    cooperative_sticky_generation,
    decode_assignment,
    decode_sticky_user_data,
    decode_subscription,
    encode_assignment,
    encode_sticky_user_data,
    encode_subscription,
)
from coordinator_model.records.kafka_streams import decode_assignment_info, decode_subscription_info
from coordinator_model.records.record_types import RECORD_SCHEMAS
from coordinator_model.records.serde import Record, UndecodableRecord, UnknownRecord, decode_record, encode_record
from coordinator_model.records.upstream_json import record_json
from coordinator_model.replica import Replica
from coordinator_model.state.findings import Position
from coordinator_model.state.packed_offsets import dump_offsets, load_offsets
from coordinator_model.state.snapshot import dump_group, load_group
from lab.builders import group_metadata, offset_commit
from streaming.base.errors import UsageError
from streaming.query.commit_compaction import commits_represented
from streaming.query.row_codec import LOG_LAYOUT, LogRow, packed, unpacked
from streaming.recording.file_format import RecordingReader
from tests.histories import History, LogRecord

NULL: Final = 0xFFFF
_MOST_RECORDS: Final = 64
_PARTITION: Final = 7


@dataclass(frozen=True, slots=True)
class FuzzedRecord:
    """A record as an input holds it: a byte of milliseconds since the one before, key and value."""

    wait_ms: int
    key: bytes | None
    value: bytes | None


def read_records(data: bytes) -> list[FuzzedRecord]:
    """The records in an input: of each a byte, and two lengths of 16 bits before their bytes; null is 0xFFFF."""

    def part(at: int) -> tuple[bytes | None, int]:
        length = int.from_bytes(data[at : at + 2], "big")
        return (None, at + 2) if length == NULL else (data[at + 2 : at + 2 + length], at + 2 + length)

    found: list[FuzzedRecord] = []
    at = 0
    while at < len(data) and len(found) < _MOST_RECORDS:
        key, after_key = part(at + 1)
        value, after = part(after_key)
        found.append(FuzzedRecord(data[at], key, value))
        at = after
    return found


def write_records(records: list[FuzzedRecord]) -> bytes:
    """Inverse of `read_records`."""

    def part(of: bytes | None) -> bytes:
        return NULL.to_bytes(2, "big") if of is None else len(of).to_bytes(2, "big") + of

    return b"".join(bytes([of.wait_ms]) + part(of.key) + part(of.value) for of in records)


def record(data: bytes) -> None:
    """Key and value: one of the three outcomes, with a form as JSON; what was read is written and read alike."""
    for one in read_records(data)[:1]:
        decoded = decode_record(one.key, one.value)
        assert isinstance(decoded, Record | UnknownRecord | UndecodableRecord)
        json.dumps(record_json(decoded))
        if isinstance(decoded, Record):
            # A later version of a flexible value is read with the highest layout there is (KIP-915).
            version = decoded.value_version
            if version is not None:
                version = RECORD_SCHEMAS[decoded.type].value.SCHEMA.layout_version(version)
            again = decode_record(*encode_record(decoded.key, decoded.value, version))
            assert replace(decoded, value_version=version, newer=False) == again


def embedded(data: bytes) -> None:
    """What clients put into their group's records: read or not; what was read is written and read alike."""
    subscription = decode_subscription(data)
    if subscription is not None:
        known = replace(subscription, version=min(subscription.version, subscription.SCHEMA.highest))
        assert known == decode_subscription(encode_subscription(known))
    assignment = decode_assignment(data)
    if assignment is not None:
        given = replace(assignment, version=min(assignment.version, assignment.SCHEMA.highest))
        assert given == decode_assignment(encode_assignment(given))
    sticky = decode_sticky_user_data(data)
    if sticky is not None:
        assert sticky == decode_sticky_user_data(encode_sticky_user_data(sticky))
    generation = cooperative_sticky_generation(data)
    assert generation is None or isinstance(generation, int)
    for tasks in (decode_subscription_info(data), decode_assignment_info(data)):
        hash(tasks)


def log(data: bytes) -> None:
    """Records in any order: the model never raises, and says the same with everything kept as text in between."""
    history = History(tuple(_placed(read_records(data))))
    whole = history.replayed()
    json.dumps([whole.views, whole.event_texts()])
    pieces = history.replayed_in_batches([len(history) // 2])
    assert whole.event_texts() == pieces.event_texts()
    assert whole.views == pieces.views
    assert whole.counters == pieces.counters
    for state in whole.states.values():
        assert state == load_group(dump_group(state))


def lines(data: bytes) -> None:
    """A file, plain or gzipped: a recording, or the error that names its line."""
    global _file  # noqa: PLW0603 - opened with the first input; a descriptor for each would be most of the time
    if _file is None:
        _file = os.memfd_create("recording")
    os.ftruncate(_file, 0)
    os.pwrite(_file, data, 0)
    os.lseek(_file, 0, os.SEEK_SET)
    with open(os.dup(_file), "rb") as raw, suppress(UsageError):  # noqa: PTH123 - a descriptor has no path
        stream = gzip.GzipFile(fileobj=raw) if data[:2] == b"\x1f\x8b" else raw
        for one in RecordingReader(Path("FILE"), stream, raw):
            decode_record(one.key, one.value)


_file: int | None = None


def runs(data: bytes) -> None:
    """Commits in a few keys, many of them damaged: passing over runs of them shows what replaying each one shows."""
    rows = list(_commits(data))
    if not rows:
        return
    skipped = len(data) % 3
    # Arrow hands out parts of columns, whose values begin behind others.
    keys = pa.array([b"before"] * skipped + [row.key for row in rows], pa.large_binary())[skipped:]
    values = pa.array([None] * skipped + [row.value for row in rows], pa.large_binary())[skipped:]
    offsets = np.array([row.offset for row in rows], dtype=np.int64)
    reported = commits_represented(offsets, keys, values, np.ones(len(rows), dtype=np.int64))
    assert int(reported.sum()) == len(rows)
    reduced = [row._replace(commits=int(count)) for row, count in zip(rows, reported, strict=True) if count]
    assert _reported(rows) == _reported(reduced)


def packs(data: bytes) -> None:
    """Rows through the packing of a source task, in several packs: none lost, none changed, in the log's order."""
    keys = (40, 41, 42)
    rows = [
        LogRow(of.wait_ms % 5, offset, of.wait_ms, of.key, of.value, 1) for offset, of in enumerate(read_records(data))
    ]
    blobs = []
    for of in (rows[::2], rows[1::2]):
        columns = zip(*(row[:5] for row in reversed(of)), strict=True) if of else [()] * 5
        table = pa.Table.from_arrays(
            [pa.array(column, of.type) for column, of in zip(columns, LOG_LAYOUT, strict=True)], schema=LOG_LAYOUT
        )
        blobs += packed([table], keys)["rows"].to_pylist()
    assert sorted(rows, key=lambda row: row[:2]) == (unpacked(blobs) if blobs else [])


def _placed(records: list[FuzzedRecord]) -> Iterator[LogRecord]:
    time_ms = 0
    for offset, of in enumerate(records):
        time_ms += of.wait_ms
        yield LogRecord(Position(_PARTITION, offset, time_ms), of.key, of.value)  # type: ignore[arg-type]  # a key may be null


_COMMIT_KEYS: Final = [offset_commit("g", "t", partition, 0)[0] for partition in (0, 1)]
_MEMBERSHIP: Final = group_metadata("g", generation=1, members=[])
_TOPIC_IDS: Final = (b"\x00", b"\x01\x00\x10" + b"A" * 16, b"\x01\x00\x10" + b"B" * 16, b"\x01\x00\x10" + bytes(16))


def _commits(data: bytes) -> Iterator[LogRow]:
    """Four bytes a row: key and what is damaged, version and topic id, committed offset, length of the metadata."""
    for offset in range(min(len(data) // 4, _MOST_RECORDS)):
        kind, version, committed, size = data[4 * offset : 4 * offset + 4]
        key, value = _COMMIT_KEYS[kind & 1], _value(version % 6, version // 6 % 4, committed, size)
        match kind >> 1 & 31:
            case 0:
                key, value = _MEMBERSHIP  # type: ignore[assignment]  # it has a value
            case 1:
                yield LogRow(_PARTITION, offset, 1_000 + offset, key, None, 1)
                continue
            case 2:
                value = value[: size % (len(value) + 1)]
            case 3:
                value += data[:size]
            case 4:
                value = data[: size % 64]
            case 5:
                at = size % len(value)
                value = value[:at] + bytes([committed]) + value[at + 1 :]
            case 6:
                key = key[: size % (len(key) + 1)]
        yield LogRow(_PARTITION, offset, 1_000 + offset, key, value, 1)


def _value(version: int, topic_id: int, committed: int, size: int) -> bytes:
    """An OffsetCommitValue of a version from 0 to 4, or one that calls itself 5, of any metadata."""
    metadata = b"m" * (size % 200)
    head = version.to_bytes(2, "big") + committed.to_bytes(8, "big") + (b"\0\0\0\5" if version >= 3 else b"")
    if version < 4:
        return head + len(metadata).to_bytes(2, "big") + metadata + bytes(16 if version == 1 else 8)
    length = len(metadata) + 1
    varint = bytes([length]) if length < 128 else bytes([length & 127 | 128, length >> 7])
    return head + varint + metadata + bytes(8) + _TOPIC_IDS[topic_id]


def _reported(rows: list[LogRow]) -> tuple[object, ...]:
    replica, events = Replica(), []
    for row in rows:
        place = Position(row.partition, row.offset, row.timestamp_ms)
        events += replica.replay(place, row.key, row.value, commits=row.commits)
    events += replica.settle()
    for bucket in replica.buckets.values():
        assert bucket == load_offsets(*dump_offsets(bucket))
    return replica.groups, replica.buckets, replica.counters, [place for place, _ in replica.undecodable], events


TARGETS: Final[dict[str, Callable[[bytes], None]]] = {
    target.__name__: target for target in (record, embedded, log, lines, runs, packs)
}
"""By name; each has a corpus of that name."""
