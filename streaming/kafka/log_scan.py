"""What is physically in the coordinator's log, live or not: the keys of all of it, read on demand.

Brokers before 3.4.1 fail on record types they do not know while they load a partition, on tombstones of such too, and
on values of version 4 (KIP-915). The cleaner removes them in its own time, so what is live does not answer whether any
are left: only the log does. It is read from the earliest offsets to where it ended at the beginning, as the stream
reads it: a batch that cannot be read is stepped over, and counted. Of a value two bytes are looked at, its version.
The reader joins no group, commits nothing, and has a limit in time.
"""

import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import closing
from typing import Final

from confluent_kafka import KafkaException

from coordinator_model.gates.verdict import LogScan
from streaming.base.logging_setup import get_logger
from streaming.config.kafka_sections import KafkaSection
from streaming.kafka.batch_bounds import BatchBounds
from streaming.kafka.client_settings import confluent_settings, python_settings
from streaming.kafka.log_bounds import LogBounds
from streaming.kafka.plain_consumer import QUIET
from streaming.kafka.range_reader import LogLostError, RangeReader, Ranges, SteppedOver

SCAN_SECONDS: Final = 120.0
"""Most time that one scan takes."""

REMEMBERED_SECONDS: Final = 30.0
"""How long a finished scan is the answer: an operator who waits for the cleaner asks again and again."""

ANSWER_SECONDS: Final = 4.0
"""How long a caller waits for a scan before it is said to be under way."""

HIGHEST_TYPE_BEFORE: Final = 2
"""Record types that brokers before 3.4.1 know are 0 to 2: offset commits and classic groups."""

HIGHEST_VALUE_VERSION_BEFORE: Final = 3

_PATIENCE_SECONDS: Final = 10.0
"""How long no record may come while some are missing."""

_log = get_logger("log_scan")


class Found:
    """Counts what matters of the records seen."""

    def __init__(self) -> None:
        self.records: Counter[int] = Counter()
        self.tombstones: Counter[int] = Counter()
        self.value_versions: Counter[int] = Counter()
        self.left_out = 0
        """Values that the reader left out, or that have a version that never was."""

    def take(self, keys: Iterable[bytes | None], values: Iterable[bytes | None]) -> None:
        """Look at records; a key too short to have a type is passed over, as brokers do not get that far."""
        for key, value in zip(keys, values, strict=True):
            self._take(key, value)

    def _take(self, key: bytes | None, value: bytes | None) -> None:
        if key is None or len(key) < 2:  # noqa: PLR2004 - the two bytes of the type
            return
        record_type = int.from_bytes(key[:2], signed=True)
        if record_type > HIGHEST_TYPE_BEFORE:
            (self.tombstones if value is None else self.records)[record_type] += 1
        elif value is not None:
            version = int.from_bytes(value[:2], signed=True)
            if version > HIGHEST_VALUE_VERSION_BEFORE:
                self.value_versions[version] += 1
            self.left_out += version < 0

    def scan(self, share: float, seconds: float, batches: int, *, under_way: bool) -> LogScan:
        """What was found so far; `batches` could not be read."""
        return LogScan(
            records=dict(self.records),
            tombstones=dict(self.tombstones),
            value_versions=dict(self.value_versions),
            unreadable=batches + self.left_out,
            share=share,
            seconds=seconds,
            under_way=under_way,
        )


def scanned(kafka: KafkaSection, limit_seconds: float = SCAN_SECONDS) -> Iterator[LogScan]:
    """Scan the offsets topic; yields what was found so far again and again, last of all how it ended.

    Where the brokers do not answer, or refuse, the last one is of the share that was read.
    """
    settings = {**QUIET, **confluent_settings(kafka, "scan")}
    with (
        closing(BatchBounds(python_settings(kafka, "scan-batches"), kafka.offsets_topic)) as batches,
        closing(
            RangeReader(
                settings,
                kafka.offsets_topic,
                committed=False,
                timeout_seconds=min(_PATIENCE_SECONDS, limit_seconds),
                batch_end=batches.after,
            )
        ) as reader,
    ):
        bounds = LogBounds(settings, kafka.offsets_topic, kafka.request_timeout_ms / 1_000)
        yield from scan_with(reader, bounds, limit_seconds)


def scan_with(reader: RangeReader, bounds: LogBounds, limit_seconds: float) -> Iterator[LogScan]:
    """The same with a reader and ends that are there."""
    begun, found, read = time.monotonic(), Found(), _Read({}, away=1)
    left_out, stepped_over = set[int](), dict[int, list[SteppedOver]]()

    def so_far(*, under_way: bool) -> LogScan:
        batches = sum(map(len, stepped_over.values()))
        return found.scan(read.share, time.monotonic() - begun, batches, under_way=under_way)

    try:
        ends, first = bounds.ends(), bounds.first()
        away = ends.away.keys() | (ends.high.keys() - first.keys())
        read = _Read({of: (first[of], end) for of, end in ends.high.items() if of in first}, len(away))
        with closing(reader.read(read.ranges, left_out, stepped_over)) as reading:
            for columns in reading:
                found.take(columns.keys, columns.values)
                read.reach(columns.partitions, columns.offsets)
                if time.monotonic() - begun >= limit_seconds:
                    break
                yield so_far(under_way=True)
            else:
                read.finish(left_out)
    except (KafkaException, LogLostError) as error:
        _log.warning("log_not_scanned", reason=str(error))
    yield so_far(under_way=False)


class LogScanner:
    """Scans when it is asked, one scan at a time, in a thread of its own.

    Args:
        scan: what a scan is, as `scanned`; yields what was found so far.
        answer_seconds: how long a caller waits at most.
        remembered_seconds: how long a finished scan is good.
    """

    def __init__(
        self,
        scan: Callable[[], Iterator[LogScan]],
        *,
        answer_seconds: float = ANSWER_SECONDS,
        remembered_seconds: float = REMEMBERED_SECONDS,
    ) -> None:
        self._scan = scan
        self._answer_seconds = answer_seconds
        self._remembered_seconds = remembered_seconds
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._latest = LogScan(share=0.0, under_way=True)
        self._finished: float | None = None

    def __call__(self) -> LogScan:
        """What a scan found that is under way, or was finished lately."""
        with self._lock:
            thread = self._thread
            fresh = self._finished is not None and time.monotonic() - self._finished < self._remembered_seconds
            if thread is None or not (thread.is_alive() or fresh):
                self._latest, self._finished = LogScan(share=0.0, under_way=True), None
                thread = self._thread = threading.Thread(target=self._run, name="log-scan", daemon=True)
                thread.start()
        thread.join(self._answer_seconds)
        return self._latest

    def _run(self) -> None:
        latest = LogScan(share=0.0)
        try:
            for latest in self._scan():
                self._latest = latest
        except Exception:  # noqa: BLE001 - whatever a client throws, the answer is: not scanned
            _log.exception("log_not_scanned")
            self._latest = LogScan(share=min(latest.share, 0.99), seconds=latest.seconds)
        self._finished = time.monotonic()


class _Read:
    """How far the partitions are read, of which so many could not be asked for their ends."""

    def __init__(self, ranges: Ranges, away: int) -> None:
        self.ranges = {of: (start, end) for of, (start, end) in ranges.items() if start < end}
        self._total = sum(end - start for start, end in self.ranges.values())
        self._at = {of: start for of, (start, _) in self.ranges.items()}
        self._away = away

    def reach(self, partitions: Iterable[int], offsets: Iterable[int]) -> None:
        """Every record up to these, in the order of their partitions, was seen, or is no longer there."""
        self._at.update(zip(partitions, (offset + 1 for offset in offsets), strict=True))

    def finish(self, left_out: Collection[int]) -> None:
        """All are read to their ends but these."""
        self._at.update({of: end for of, (_, end) in self.ranges.items() if of not in left_out})

    @property
    def share(self) -> float:
        left = sum(end - self._at[of] for of, (_, end) in self.ranges.items())
        if not left and not self._away:
            return 1.0
        return min(0.999, 1.0 - left / self._total) if self._total else 0.0
