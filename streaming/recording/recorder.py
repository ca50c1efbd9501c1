"""Reading the offsets topic into a recording: two readers of one log, merged in offset order.

Offset commits (types 0 and 1) come from a read_committed reader, so that aborted transactions never count; everything
else from a read_uncommitted one, because membership records are never transactional and must not wait behind an open
transaction. A reader is at the end when its *position* is: control batches and cleaned records occupy offsets that
never arrive as records. Nothing is committed, and no group is joined: the log read is the one groups are written to.
"""

import math
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Final, Literal

from kafka import KafkaConsumer, TopicPartition
from kafka.errors import AuthorizationError, KafkaError

from streaming.base.errors import CannotTellError
from streaming.config.kafka_sections import KafkaSection
from streaming.kafka.broker_queries import broker_release, describe_topics
from streaming.kafka.client_settings import IsolationLevel, admin_client, python_settings
from streaming.recording.file_format import Header, RecordedRecord, RecordedTopic

OFFSET_COMMIT_TYPES: Final = (b"\x00\x00", b"\x00\x01")
"""First two bytes of the keys of offset commits: record types 0 and 1."""

Kept = Literal["commits", "membership"]

_POLL_TIMEOUT_MS: Final = 200
_STALL_POLLS: Final = 150
"""Polls without any progress before giving up: 30 s."""


@dataclass(slots=True)
class _Reader:
    """One isolation level: how far it has come, and what it delivered that waits for the other one."""

    consumer: Any
    keeps: Kept
    ends: dict[int, float]
    """By partition the offset reading stops before; infinite while following."""
    positions: dict[int, int]
    waiting: dict[int, deque[RecordedRecord]]

    def poll(self) -> bool:
        """Fetch once; returns whether anything moved."""
        for partition, records in self.consumer.poll(timeout_ms=_POLL_TIMEOUT_MS).items():
            number = partition.partition
            self.waiting[number].extend(
                RecordedRecord(number, record.offset, record.timestamp, record.key, record.value)
                for record in records
                if record.offset < self.ends[number] and self._is_kept(record.key)
            )
        before = self.positions
        self.positions = {
            partition.partition: self.consumer.position(partition) for partition in self.consumer.assignment()
        }
        return before != self.positions

    def is_done(self, partition: int) -> bool:
        """Whether nothing more is to come of a partition."""
        return self.positions[partition] >= self.ends[partition]

    def _is_kept(self, key: bytes | None) -> bool:
        # A record without a key cannot be the coordinator's (and the format has no place for it).
        return key is not None and (key[:2] in OFFSET_COMMIT_TYPES) == (self.keeps == "commits")


class LogRecorder:
    """Reads partitions of the offsets topic from their beginning.

    Args:
        kafka: where and how to connect.
        partitions: which partitions to read.
        follow: go on after the end, until interrupted (Ctrl-C).
        begin: reader → partition → offset to begin at, as `positions` gave it; the beginning where it is not said, or
            not there any more.

    Attributes:
        ends: partition to high watermark when reading began.
        open_transactions: partition to number of offsets behind its last stable offset then, where there are any;
            commits among them are not delivered.

    Raises:
        CannotTellError: no broker answers, or the log may not be read.
    """

    def __init__(
        self,
        kafka: KafkaSection,
        partitions: list[int],
        *,
        follow: bool = False,
        begin: Mapping[str, Mapping[int, int]] | None = None,
    ) -> None:
        self._kafka = kafka
        self._partitions = partitions
        self._follow = follow
        with _reported(kafka):
            # High watermarks first: what was open then and is not any more is none of ours to warn of.
            self._membership = _reader(kafka, partitions, "membership", begin or {})
            self._commits = _reader(kafka, partitions, "commits", begin or {})
        stable = self._commits.ends
        # Both stop at one end: beyond it commits would have no membership beside them.
        stable.update({partition: min(end, self._membership.ends[partition]) for partition, end in stable.items()})
        self.ends = {partition: int(end) for partition, end in self._membership.ends.items()}
        self.open_transactions = {
            partition: end - int(stable[partition]) for partition, end in self.ends.items() if end > stable[partition]
        }
        self._starts = dict(self._membership.positions)
        if follow:
            for reader in self._readers:
                reader.ends = dict.fromkeys(partitions, math.inf)

    def records(self, on_progress: Callable[[float], None] | None = None) -> Iterator[RecordedRecord]:
        """Yield records in offset order within each partition.

        Args:
            on_progress: called with the fraction read, 0 to 1.

        Raises:
            CannotTellError: the log cannot be read to its end.
        """
        idle = 0
        try:
            with _reported(self._kafka):
                while unfinished := [reader for reader in self._readers if not self._is_done(reader)]:
                    moved = [reader.poll() for reader in unfinished]
                    idle = 0 if any(moved) or self._follow else idle + 1
                    if idle > _STALL_POLLS:
                        raise CannotTellError(self._stalled())
                    yield from self._merged(until_reached=True)
                    if on_progress is not None:
                        on_progress(self._fraction())
        except KeyboardInterrupt:
            if not self._follow:
                raise
        yield from self._merged(until_reached=False)

    @property
    def positions(self) -> dict[str, dict[int, int]]:
        """Reader → partition → the next offset it would read."""
        return {reader.keeps: dict(reader.positions) for reader in self._readers}

    def close(self) -> None:
        """Close both readers."""
        for reader in self._readers:
            reader.consumer.close(autocommit=False)

    @property
    def _readers(self) -> tuple[_Reader, _Reader]:
        return self._commits, self._membership

    def _merged(self, *, until_reached: bool) -> Iterator[RecordedRecord]:
        """Yield what waits; with `until_reached` only up to where neither reader can deliver anything earlier."""
        for partition in self._partitions:
            limit = min(self._reach(reader, partition) for reader in self._readers) if until_reached else math.inf
            commits, membership = self._commits.waiting[partition], self._membership.waiting[partition]
            while commits or membership:
                earlier = (
                    commits if not membership or (commits and commits[0].offset < membership[0].offset) else membership
                )
                if earlier[0].offset >= limit:
                    break
                yield earlier.popleft()

    @staticmethod
    def _reach(reader: _Reader, partition: int) -> float:
        return math.inf if reader.is_done(partition) else reader.positions[partition]

    def _is_done(self, reader: _Reader) -> bool:
        return all(reader.is_done(partition) for partition in self._partitions)

    def _fraction(self) -> float:
        total = sum(self.ends[partition] - self._starts[partition] for partition in self._partitions)
        read = sum(
            min(self._membership.positions[partition], self.ends[partition]) - self._starts[partition]
            for partition in self._partitions
        )
        return read / total if total > 0 else 1.0

    def _stalled(self) -> str:
        partition = next(
            number for number in self._partitions for reader in self._readers if not reader.is_done(number)
        )
        position = min(reader.positions[partition] for reader in self._readers)
        return (
            f"{self._kafka.offsets_topic} partition {partition}: found no progress at offset {position} for "
            f"{_POLL_TIMEOUT_MS * _STALL_POLLS // 1000} s, accepted: offset {self.ends[partition]} reached"
        )


def header_of(kafka: KafkaSection) -> Header:
    """The header of a recording of this cluster, as it is now. Raises CannotTellError."""
    with admin_client(kafka, "record") as admin:
        topics = describe_topics(admin)
        release = broker_release(admin)
        own = next(topic for topic in describe_topics(admin, [kafka.offsets_topic]))
    return Header(
        kafka_version=release,
        offsets_topic_partitions=own.partitions,
        topics=tuple(
            RecordedTopic(id=topic.id, name=topic.name, partitions=topic.partitions)
            for topic in sorted(topics, key=attrgetter("name"))
            if topic.name != kafka.offsets_topic
        ),
    )


def _reader(kafka: KafkaSection, partitions: list[int], keeps: Kept, begin: Mapping[str, Mapping[int, int]]) -> _Reader:
    level: IsolationLevel = "read_committed" if keeps == "commits" else "read_uncommitted"
    consumer = KafkaConsumer(
        **python_settings(kafka, level),
        isolation_level=level,
        group_id=None,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        allow_auto_create_topics=False,
        exclude_internal_topics=False,
        max_poll_records=10_000,
        max_partition_fetch_bytes=8 * 1024 * 1024,
        fetch_max_wait_ms=20,
    )
    assigned = [TopicPartition(kafka.offsets_topic, partition) for partition in partitions]
    consumer.assign(assigned)
    consumer.seek_to_beginning(*assigned)
    for partition in assigned:
        offset = begin.get(keeps, {}).get(partition.partition)
        if offset is not None:
            consumer.seek(partition, offset)
    # A read_committed reader gets the last stable offset as the end, and that is as far as it comes.
    ends = {partition.partition: float(end) for partition, end in consumer.end_offsets(assigned).items()}
    positions = {partition.partition: consumer.position(partition) for partition in assigned}
    return _Reader(consumer, keeps, ends, positions, {partition: deque() for partition in partitions})


@contextmanager
def _reported(kafka: KafkaSection) -> Iterator[None]:
    """Turn failures of the client into one line that says what was being read."""
    try:
        yield
    except AuthorizationError as error:
        found = f"no permission ({type(error).__name__})"
        raise CannotTellError(f"{kafka.offsets_topic}: found {found}, accepted: READ and DESCRIBE") from error
    except KafkaError as error:
        found = str(error) or type(error).__name__
        raise CannotTellError(f"{kafka.offsets_topic}: found {found}, accepted: a log that can be read") from error
