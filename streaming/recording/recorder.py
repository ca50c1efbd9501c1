"""Reading the offsets topic into a recording, in offset order, as the stream of a monitor reads it.

    read committed      up to the last stable offset: offset commits, without the aborted ones, and membership
    read uncommitted    from there to the high watermark: membership alone, which is never transactional and must not
                        wait behind an open transaction

So a partition has two positions: from where on commits (types 0 and 1) were not read, and membership. Where reading
goes on after the end, membership waits for the commits before it, so that offsets stay in order. Nothing is committed,
and no group is joined: the log read is the one groups are written to.
"""

import time
from collections import deque
from collections.abc import Callable, Collection, Generator, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import chain
from operator import attrgetter
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException

from coordinator_model.records.topics import SHARE_STATE_TOPIC
from streaming.base.errors import CannotTellError
from streaming.config.kafka_sections import KafkaSection
from streaming.kafka.batch_bounds import BatchBounds
from streaming.kafka.broker_queries import broker_release, describe_topics
from streaming.kafka.client_settings import admin_client, confluent_settings, python_settings
from streaming.kafka.log_bounds import AWAY, LOOK_AGAIN_SECONDS, Bounds, LogBounds
from streaming.kafka.plain_consumer import QUIET
from streaming.kafka.range_reader import Columns, LogLostError, RangeReader, Ranges, SteppedOver
from streaming.recording.file_format import Header, RecordedRecord, RecordedTopic

OFFSET_COMMIT_TYPES: Final = (b"\x00\x00", b"\x00\x01")
"""First two bytes of the keys of offset commits: record types 0 and 1."""

_FETCH: Final[Mapping[str, Any]] = {
    "fetch.wait.max.ms": 20,
    "max.partition.fetch.bytes": 8 * 1024 * 1024,
}
_REFUSED: Final = frozenset(
    {
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
        KafkaError.GROUP_AUTHORIZATION_FAILED,
    }
)
_COMMITS: Final = "commits"
_MEMBERSHIP: Final = "membership"
_LOOK_EVERY_SECONDS: Final = 0.25
"""How often it is looked, while following, whether there is more."""
_PATIENCE_SECONDS: Final = 30.0
"""How long no record may come while some are missing, and a partition may have no leader."""
_LARGEST_VALUE_BYTES: Final = 47 * 1024 * 1024
"""In base64, with its key, it fits into the longest line of a recording."""


class LogRecorder:
    """Reads partitions of the offsets topic from their beginning.

    Args:
        kafka: where and how to connect.
        partitions: which partitions to read.
        follow: go on after the end, until interrupted (Ctrl-C).
        whole: whether a partition that cannot be read is an error; else the others are read, and `unread` names it.
        begin: reader → partition → offset to begin at, as `positions` gave it; the beginning where it is not said, or
            not there any more.

    Attributes:
        ends: partition to high watermark when reading began.
        open_transactions: partition to number of offsets behind its last stable offset then, where there are any;
            commits among them are not delivered.
        unread: partition to why it was not read to that end.
        stepped_over: partition to its batches that could not be read.

    Raises:
        CannotTellError: no broker answers, or the log may not be read.
    """

    def __init__(
        self,
        kafka: KafkaSection,
        partitions: list[int],
        *,
        follow: bool = False,
        whole: bool = True,
        begin: Mapping[str, Mapping[int, int]] | None = None,
    ) -> None:
        self._topic = kafka.offsets_topic
        self._follow = follow
        self._begin = begin or {}
        self._settings = {**QUIET, **confluent_settings(kafka, "record")}
        self._log_bounds = LogBounds(self._settings, self._topic, kafka.request_timeout_ms / 1_000)
        self._readers: dict[bool, RangeReader] = {}
        self._batches = BatchBounds(python_settings(kafka, "batches"), self._topic)
        self.stepped_over: dict[int, list[SteppedOver]] = {}
        self._reading: Generator[Columns] | None = None
        self._may_leave = follow or not whole
        self._left_out: set[int] = set()
        """Partitions that the last read could not bring to its end."""
        self._waiting: deque[RecordedRecord] = deque()
        with _reported(self._topic):
            self._bounds = self._ends(partitions, _PATIENCE_SECONDS if whole else 0.0)
            # A partition whose leader goes between the two questions is one that cannot be read.
            first = self._log_bounds.first([of for of in partitions if of in self._bounds.high])
        self.unread = {of: self._bounds.away.get(of, "LEADER_NOT_AVAILABLE") for of in partitions if of not in first}
        if whole and self.unread:
            partition, why = next(iter(self.unread.items()))
            found = f"partition {partition}: found {why}"
            raise CannotTellError(f"{self._topic} {found}, accepted: a leader for each partition")
        self.ends = {of: self._bounds.high[of] for of in first}
        stable = self._bounds.stable
        self.open_transactions = {of: end - stable[of] for of, end in self.ends.items() if end > stable[of]}
        self._commits, self._membership = (
            {of: _start(self._begin.get(kind, {}).get(of), first[of], end) for of, end in self.ends.items()}
            for kind in (_COMMITS, _MEMBERSHIP)
        )
        self._total = self._to_go()

    def records(self, on_progress: Callable[[float], None] = lambda _: None) -> Iterator[RecordedRecord]:
        """Yield records in offset order within each partition.

        Args:
            on_progress: called with the fraction read, 0 to 1.

        Raises:
            CannotTellError: the log cannot be read to its end.
        """
        with _reported(self._topic):
            try:
                for _ in chain(self._stable(), self._more() if self._follow else self._unstable()):
                    yield from self._taken()
                    on_progress(1.0 - self._to_go() / self._total if self._total else 1.0)
            except KeyboardInterrupt:
                if not self._follow:
                    raise
                yield from self._taken()
                # What is known to be there is read; a broker that is away by now does not spoil the rest.
                with suppress(KafkaException):
                    for _ in chain(self._stable(), self._unstable()):
                        yield from self._taken()
        on_progress(1.0)

    @property
    def positions(self) -> dict[str, dict[int, int]]:
        """Reader → partition → the next offset it would read."""
        read = {_COMMITS: self._commits, _MEMBERSHIP: self._membership}
        return {kind: {**self._begin.get(kind, {}), **of} for kind, of in read.items()}

    def close(self) -> None:
        """Let the brokers go."""
        if self._reading is not None:
            self._reading.close()
        while self._readers:
            self._readers.popitem()[1].close()
        self._batches.close()

    def _ends(self, partitions: Collection[int], patience_seconds: float) -> Bounds:
        """Where the log ends; partitions that have no leader may get one so long."""
        deadline = time.monotonic() + patience_seconds
        while True:
            bounds = self._log_bounds.ends()
            if bounds.high.keys() >= {*partitions} or time.monotonic() >= deadline:
                return bounds
            time.sleep(LOOK_AGAIN_SECONDS)

    def _more(self) -> Iterator[None]:
        """Fetch what comes, without an end; what is away is waited for."""
        while True:
            time.sleep(_LOOK_EVERY_SECONDS)
            try:
                self._bounds = self._log_bounds.ends()
                yield from self._stable()
            except KafkaException as error:
                if error.args[0].code() not in AWAY:
                    raise

    def _stable(self) -> Iterator[None]:
        """Fetch up to the last stable offset: all commits, and membership that was not read before them."""
        ranges = {of: (at, self._bounds.stable.get(of, 0)) for of, at in self._commits.items()}
        for columns in self._read(ranges, committed=True):
            for record in _records(columns):
                if record.offset >= self._membership[record.partition] or _is_commit(record):
                    self._waiting.append(record)
            self._commits.update(_next_offsets(columns))
            yield
        for of, (_, end) in ranges.items():
            if of not in self._left_out:
                self._commits[of] = max(self._commits[of], end)
            self._membership[of] = max(self._membership[of], self._commits[of])

    def _unstable(self) -> Iterator[None]:
        """Fetch what is behind it: membership alone, of partitions read so far."""
        ranges = {
            of: (max(stable, self._membership[of]), self._bounds.high[of])
            for of, stable in self._bounds.stable.items()
            if self._commits.get(of, -1) >= stable
        }
        for columns in self._read(ranges, committed=False):
            self._waiting.extend(record for record in _records(columns) if not _is_commit(record))
            self._membership.update(_next_offsets(columns))
            yield
        for of, (_, end) in ranges.items():
            if of not in self._left_out:
                self._membership[of] = max(self._membership[of], end)

    def _read(self, ranges: Ranges, *, committed: bool) -> Iterator[Columns]:
        """Parts of these; partitions that are left out are read from where they are by the next call."""
        self._left_out = set()
        ranges = {of: (start, end) for of, (start, end) in ranges.items() if start < end}
        if not ranges:
            return
        if committed not in self._readers:
            settings = {**self._settings, **_FETCH}
            self._readers[committed] = RangeReader(
                settings,
                self._topic,
                committed=committed,
                timeout_seconds=_PATIENCE_SECONDS,
                batch_end=self._batches.after,
                largest_value_bytes=_LARGEST_VALUE_BYTES,
            )
        left_out = self._left_out if self._may_leave else None
        self._reading = self._readers[committed].read(ranges, left_out, self.stepped_over)
        yield from self._reading
        self.unread.update(dict.fromkeys(self._left_out, "no records"))

    def _taken(self) -> Iterator[RecordedRecord]:
        while self._waiting:
            yield self._waiting.popleft()

    def _to_go(self) -> int:
        return sum(max(0, end - self._commits[of]) for of, end in self.ends.items())


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


def share_state_of(kafka: KafkaSection) -> tuple[KafkaSection, int] | None:
    """Where the share coordinator's log is read, and its partitions; None where it may not be seen, or is not there.

    Kafka makes it with the first share group. Raises CannotTellError where no broker answers.
    """
    with admin_client(kafka, "record") as admin:
        found = describe_topics(admin, [SHARE_STATE_TOPIC])
    if not found:
        return None
    return kafka.model_copy(update={"offsets_topic": SHARE_STATE_TOPIC}), found[0].partitions


def of_share_state(record: RecordedRecord) -> RecordedRecord:
    """A record that a `LogRecorder` read from the share coordinator's log, as it stands in a recording."""
    return replace(record, share_state=True)


def _start(asked: int | None, first: int, end: int) -> int:
    """Where to begin: a position that is not in the log is of another log, or of one that was cut off."""
    return asked if asked is not None and first <= asked <= end else first


def _records(columns: Columns) -> Iterator[RecordedRecord]:
    for partition, offset, time_ms, key, value in zip(*columns, strict=True):
        # A record without a key cannot be the coordinator's (and the format has no place for it).
        if key is not None:
            yield RecordedRecord(partition, offset, time_ms, key, value)


def _next_offsets(columns: Columns) -> dict[int, int]:
    """Partition → the offset after the last one read of it."""
    return {of: at + 1 for of, at in zip(columns.partitions, columns.offsets, strict=True)}


def _is_commit(record: RecordedRecord) -> bool:
    return record.key[:2] in OFFSET_COMMIT_TYPES


@contextmanager
def _reported(topic: str) -> Iterator[None]:
    """Turn failures of the client into one line that says what was being read."""
    try:
        yield
    except LogLostError as error:
        raise CannotTellError(f"{topic}: found {error}, accepted: a log that can be read") from error
    except KafkaException as error:
        said = error.args[0]
        found, accepted = said.str() or said.name(), "a log that can be read"
        if said.code() in _REFUSED:
            found, accepted = f"no permission ({said.name()})", "READ and DESCRIBE"
        raise CannotTellError(f"{topic}: found {found}, accepted: {accepted}") from error
