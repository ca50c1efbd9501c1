"""The log's own records, kept as long as the history: what a recording for a post-mortem is cut out of.

The offsets topic is compacted, so a broker soon forgets what was written before the last record of a key. Once a look,
this reads what came since the last one, as `record` does, and writes it to the history. What is older than the
retention is folded into a base, the last record of each key, as the broker's own cleaner would have it: a cut is the
base and all that followed, and its replay gives the group as the whole log would.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import islice, takewhile
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from coordinator_model.records.serde import Record, UnknownRecord, decode_record
from streaming.base.atomic_files import replace
from streaming.base.errors import CannotTellError, first_line
from streaming.base.logging_setup import get_logger
from streaming.base.output_status import SinkState
from streaming.base.threads import Repeating
from streaming.base.times import now_ms
from streaming.config.kafka_sections import KafkaSection
from streaming.history.store import HistoryStore
from streaming.history.tables import RECORDS, in_order
from streaming.recording.file_format import Header, RecordedRecord, RecordedTopic
from streaming.recording.recorder import LogRecorder, header_of

SINK: Final = "history-records"
LOOK_EVERY_SECONDS: Final = 30.0
RECORDS_AT_ONCE: Final = 20_000
POSITIONS: Final = "positions.json"
HEADER: Final = "header.json"
READ: Final = "read.json"
"""When the last look began that read to the end of the log, ms: all that was written before is in the files."""

_log = get_logger("history_records")


class RecordKeeper:
    """The thread that reads the log into a history: an output beside the board (`streaming.sinks.outputs.Sink`).

    Args:
        kafka: where and how to connect.
        store: where to write.
        clock_ms: the wall clock.
    """

    def __init__(self, kafka: KafkaSection, store: HistoryStore, clock_ms: Callable[[], int] = now_ms) -> None:
        self._kafka = kafka
        self._store = store
        self._clock_ms = clock_ms
        self._directory = store.directory / RECORDS.name
        self._header: Header | None = None
        self._kept_until_ms = read_until_ms(store.directory) or clock_ms()
        """When the last look began that found all of the log, of a former run as well."""
        self._delivered = 0
        self._failure: str | None = None
        self._thread = Repeating(SINK, LOOK_EVERY_SECONDS, self.look)

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread; what was not read is read by the next run."""
        self._thread.stop()

    def state(self) -> SinkState:
        """How it is doing: what waits is one look, since the last one that found all of the log."""
        failure = self._failure
        return SinkState(
            name=SINK,
            waiting=0 if failure is None else 1,
            oldest_ms=None if failure is None else self._kept_until_ms,
            dropped=0,
            delivered=self._delivered,
            failure=failure,
        )

    def look(self) -> None:
        """Keep what came since the last look; what cannot be read or written now is shown, and is at the next one."""
        begun_ms = self._clock_ms()
        try:
            unread = self._take(begun_ms)
        except Exception as error:  # noqa: BLE001 - any error of a client: the next try may succeed
            # Without the file, whose name may be another one with each attempt.
            self._fail((isinstance(error, OSError) and error.strerror) or first_line(error))
            return
        if unread:
            which = ", ".join(f"{partition}: {why}" for partition, why in sorted(unread.items()))
            self._fail(f"{self._kafka.offsets_topic}: found partitions that cannot be read ({which})")
            return
        if self._failure is not None:
            _log.info("delivers_again", sink=SINK)
        self._failure, self._kept_until_ms = None, begun_ms

    def _take(self, begun_ms: int) -> Mapping[int, str]:
        """Read what can be read; returns partitions that cannot, with the reason."""
        if self._header is None:
            self._header = header_of(self._kafka)
            _replace(self._directory / HEADER, asdict(self._header))
        partitions = list(range(self._header.offsets_topic_partitions))
        recorder = LogRecorder(self._kafka, partitions, whole=False, begin=_positions(self._directory))
        try:
            records = recorder.records()
            while part := list(islice(records, RECORDS_AT_ONCE)):
                self._store.write(RECORDS, rows_of(part))
                self._delivered += len(part)
                if self._thread.stopping.is_set():
                    return {}
            # Only now: what a kill leaves out of it is read again, and is in the files once all the same.
            _replace(self._directory / POSITIONS, recorder.positions)
            if not recorder.unread:
                _replace(self._directory / READ, {"until": begun_ms})
        finally:
            recorder.close()
        return recorder.unread

    def _fail(self, reason: str) -> None:
        if self._failure != reason:
            _log.warning("delivery_failed", sink=SINK, reason=reason)
        self._failure = reason


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
