"""The log's own records, kept as long as the history: what a recording for a post-mortem is cut out of.

The offsets topic is compacted, so a broker soon forgets what was written before the last record of a key. Once a look,
this reads what came since the last one, as `record` does, and writes it to the history. What is older than the
retention is folded into a base, the last record of each key, as the broker's own cleaner would have it: a cut is the
base and all that followed, and its replay gives the group as the whole log would.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from itertools import islice, takewhile
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from coordinator_model.records.serde import Record, UnknownRecord, decode_record
from streaming.base.atomic_files import replace
from streaming.base.errors import CannotTellError
from streaming.base.logging_setup import get_logger
from streaming.base.threads import Repeating
from streaming.base.times import now_ms
from streaming.config.kafka_sections import KafkaSection
from streaming.history.store import HistoryStore
from streaming.history.tables import RECORDS, in_order
from streaming.recording.file_format import Header, RecordedRecord, RecordedTopic
from streaming.recording.recorder import LogRecorder, header_of

LOOK_EVERY_SECONDS: Final = 30.0
RECORDS_AT_ONCE: Final = 20_000
POSITIONS: Final = "positions.json"
HEADER: Final = "header.json"
READ: Final = "read.json"
"""When the last look began that read to the end of the log, ms: all that was written before is in the files."""

_log = get_logger("history_records")


class RecordKeeper:
    """The thread that reads the log into a history.

    Args:
        kafka: where and how to connect.
        store: where to write.
    """

    def __init__(self, kafka: KafkaSection, store: HistoryStore) -> None:
        self._kafka = kafka
        self._store = store
        self._directory = store.directory / RECORDS.name
        self._header: Header | None = None
        self._failure: str | None = None
        thread = Repeating("history-records", LOOK_EVERY_SECONDS, self.look)
        self.start, self.stop = thread.start, thread.stop

    def look(self) -> None:
        """Keep what came since the last look; what cannot be read or written now is at the next one."""
        try:
            self._take()
        except (CannotTellError, OSError) as error:
            reason = " ".join(str(error).split())
            if self._failure != reason:
                _log.warning("history_records_late", reason=reason)
            self._failure = reason
        else:
            self._failure = None

    def _take(self) -> None:
        if self._header is None:
            self._header = header_of(self._kafka)
            _replace(self._directory / HEADER, asdict(self._header))
        begun_ms = now_ms()
        recorder = LogRecorder(
            self._kafka, list(range(self._header.offsets_topic_partitions)), begin=_positions(self._directory)
        )
        try:
            records = recorder.records()
            while part := list(islice(records, RECORDS_AT_ONCE)):
                self._store.write(RECORDS, rows_of(part))
            # Only now: what a kill leaves out of it is read again, and is in the files once all the same.
            _replace(self._directory / POSITIONS, recorder.positions)
            _replace(self._directory / READ, {"until": begun_ms})
        finally:
            recorder.close()


def rows_of(records: Sequence[RecordedRecord]) -> pa.Table:
    """Records as rows, sorted as files are."""
    columns = {
        "group": [_group_of(record) for record in records],
        "time": [record.timestamp_ms for record in records],
        "partition": [record.partition for record in records],
        "offset": [record.offset for record in records],
        "key": [record.key for record in records],
        "value": [record.value for record in records],
    }
    return in_order(RECORDS, pa.table(columns, schema=RECORDS.schema))


def header(directory: Path) -> Header:
    """The header of a recording cut out of a history.

    Raises:
        CannotTellError: the history keeps no records.
    """
    try:
        held = json.loads((directory / RECORDS.name / HEADER).read_text("utf-8"))
        return Header(**{**held, "topics": tuple(RecordedTopic(**topic) for topic in held["topics"])})
    except (OSError, ValueError, KeyError, TypeError):
        raise CannotTellError(
            f"--dir: found no records in {str(directory)!r}, accepted: a history kept with history.records"
        ) from None


def read_until_ms(directory: Path) -> int | None:
    """Until when all that was written to the log is kept; None where a former release wrote the history."""
    try:
        return int(json.loads((directory / RECORDS.name / READ).read_text("utf-8"))["until"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def until(records: Sequence[RecordedRecord], until_ms: int | None) -> Iterator[RecordedRecord]:
    """Records of one partition up to the first that is of a later time."""
    return takewhile(lambda record: until_ms is None or record.timestamp_ms <= until_ms, records)


def _group_of(record: RecordedRecord) -> str:
    # A tombstone is enough: the group stands in the key.
    decoded = decode_record(record.key, None)
    return (decoded.group_name if isinstance(decoded, Record | UnknownRecord) else None) or ""


def _positions(directory: Path) -> dict[str, dict[int, int]]:
    try:
        held = json.loads((directory / POSITIONS).read_text("utf-8"))
    except (FileNotFoundError, ValueError):
        return {}
    return {reader: {int(partition): offset for partition, offset in of.items()} for reader, of in held.items()}


def _replace(path: Path, value: Any) -> None:  # noqa: ANN401 - what JSON holds
    path.parent.mkdir(parents=True, exist_ok=True)
    replace(path, json.dumps(value))
