"""Ranges of the coordinator's log, many partitions with one consumer.

Spark's own Kafka source reads each partition with a consumer of its own, twice, and compiles a projection for each: at
the tail of the log, where a micro-batch has a few records of each of fifty partitions, that was most of a batch. Here
one request asks a broker for all of them. A consumer is kept by the worker process for the next batch; between
batches nothing is assigned to it, so it is silent.

    read committed      up to the last stable offset: offset commits, without the aborted ones, and membership
    read uncommitted    from there to the high watermark: membership alone, which is never transactional
"""

import time
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from confluent_kafka import Consumer, IsolationLevel, KafkaError, KafkaException, Message, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]  # exported, though not by name

from streaming.kafka.msk_iam import connectable

_POLL_SECONDS: Final = 0.01
"""How long to wait for the last of as many records as there can still be; compaction has left fewer."""
_READ_AT_ONCE: Final = 10_000

LOG_LOST: Final = "the log is not the one that was read"
"""How the error begins when offsets that were read, or are to be read, are gone."""

_GROUP_ERRORS: Final = frozenset(
    {KafkaError.GROUP_AUTHORIZATION_FAILED, KafkaError.COORDINATOR_NOT_AVAILABLE, KafkaError.NOT_COORDINATOR}
)
"""What the group of the consumer's name meets, which is none: partitions are assigned by hand, nothing is committed."""

AWAY: Final = frozenset(
    {
        KafkaError._TRANSPORT,  # noqa: SLF001 - its public name, as those that follow
        KafkaError._ALL_BROKERS_DOWN,  # noqa: SLF001
        KafkaError._TIMED_OUT,  # noqa: SLF001
        KafkaError._RESOLVE,  # noqa: SLF001
        KafkaError._WAIT_COORD,  # noqa: SLF001
        KafkaError.REQUEST_TIMED_OUT,
        KafkaError.BROKER_NOT_AVAILABLE,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.NETWORK_EXCEPTION,
        # Said while a leader goes or comes, and it and its client know of different epochs.
        KafkaError.FENCED_LEADER_EPOCH,
        KafkaError.UNKNOWN_LEADER_EPOCH,
        KafkaError.OFFSET_NOT_AVAILABLE,
        KafkaError.REPLICA_NOT_AVAILABLE,
        KafkaError.KAFKA_STORAGE_ERROR,
    }
)
"""Errors of brokers that are away or not yet what they will be: nothing is wrong but the moment."""

_EARLIEST: Final = OffsetSpec.earliest()  # type: ignore[no-untyped-call]  # has no types
_LATEST: Final = OffsetSpec.latest()  # type: ignore[no-untyped-call]  # has no types

Ranges = Mapping[int, tuple[int, int]]
"""Partition → first offset, and the one after the last."""
Offsets = dict[int, int]


class LogLostError(RuntimeError):
    """Records that are to be read are gone: the log was cut off, or recreated."""


class Columns(NamedTuple):
    """Records as columns, in no order but the order of their partition."""

    partitions: npt.NDArray[np.int64]
    offsets: npt.NDArray[np.int64]
    timestamps_ms: list[int]
    keys: list[bytes | None]
    values: list[bytes | None]

    def table(self, layout: pa.Schema) -> pa.Table:
        """As a table of this layout."""
        return pa.Table.from_arrays(
            [pa.array(column, field.type) for column, field in zip(self, layout, strict=True)], schema=layout
        )


class RangeReader:
    """Reads ranges of one topic with one consumer of an isolation level.

    Args:
        settings: of librdkafka, without those that are the reader's own.
        topic: the coordinator's log.
        committed: whether records of open and aborted transactions are left out.
        timeout_seconds: how long no record may come while some are missing.
    """

    def __init__(self, settings: Mapping[str, Any], topic: str, *, committed: bool, timeout_seconds: float) -> None:
        self._topic = topic
        self._timeout_seconds = timeout_seconds
        self._consumer = Consumer(
            connectable(settings)
            | {
                # Must be there, and is used for nothing: no group is joined, no offset committed.
                "group.id": f"{settings.get('client.id', 'group-monitor')}-reader",
                "enable.auto.commit": False,
                "enable.auto.offset.store": False,
                "auto.offset.reset": "error",
                "enable.partition.eof": True,
                "isolation.level": "read_committed" if committed else "read_uncommitted",
                "allow.auto.create.topics": False,
            }
        )

    def read(self, ranges: Ranges) -> Iterator[Columns]:
        """All records of the ranges, some at a time.

        Raises:
            LogLostError: records of the ranges are gone.
            KafkaException: the brokers refuse, or do not answer in time.
        """
        missing = {partition: end for partition, (start, end) in ranges.items() if start < end}
        if not missing:
            return
        self._consumer.assign([TopicPartition(self._topic, p, ranges[p][0]) for p in missing])
        # So many can still come: an end of partition counts like a record.
        most = sum(end - ranges[partition][0] for partition, end in missing.items())
        ends = np.zeros(max(missing) + 1, dtype=np.int64)
        ends[list(missing)] = list(missing.values())
        try:
            last_ms = time.monotonic()
            while missing:
                found = self._consumer.consume(min(most, _READ_AT_ONCE), _POLL_SECONDS)
                if found:
                    last_ms = time.monotonic()
                elif time.monotonic() - last_ms > self._timeout_seconds:
                    raise KafkaException(
                        KafkaError(KafkaError._TIMED_OUT, f"no record for {self._timeout_seconds:g} s")  # noqa: SLF001 - its public name
                    )
                columns = self._taken(found, ends, missing)
                if len(columns.offsets):
                    yield columns
        finally:
            # A partition stays paused over assignments.
            self._consumer.resume(self._consumer.assignment())
            self._consumer.unassign()

    def close(self) -> None:
        """Let the brokers go."""
        self._consumer.close()

    def _taken(self, found: list[Message], ends: npt.NDArray[np.int64], missing: dict[int, int]) -> Columns:
        """Records of the ranges, by partition up to `ends`; partitions read to their end are no longer missing.

        Each column is taken of all messages in one call: a look at them one by one takes three times as long.
        """
        errors = list(map(Message.error, found))
        # Compared with None, an error of librdkafka leaves an exception behind.
        if any(error is not None for error in errors):
            for message, error in zip(found, errors, strict=True):
                if error is not None:
                    self._meet(error, message, missing)
            found = [message for message, error in zip(found, errors, strict=True) if error is None]
        partitions = np.fromiter(map(Message.partition, found), np.int64, len(found))
        offsets = np.fromiter(map(Message.offset, found), np.int64, len(found))
        left = ends[partitions] - offsets
        self._done(missing.keys() & partitions[left <= 1].tolist(), missing)
        if (left <= 0).any():
            wanted = left > 0
            found = [message for message, is_wanted in zip(found, wanted, strict=True) if is_wanted]
            partitions, offsets = partitions[wanted], offsets[wanted]
        times_ms = [time_ms for _, time_ms in map(Message.timestamp, found)]
        return Columns(partitions, offsets, times_ms, list(map(Message.key, found)), list(map(Message.value, found)))

    def _done(self, partitions: Collection[int], missing: dict[int, int]) -> None:
        for partition in partitions:
            del missing[partition]
        if missing and partitions:
            self._consumer.pause([TopicPartition(self._topic, partition) for partition in partitions])

    def _meet(self, error: KafkaError, message: Any, missing: dict[int, int]) -> None:  # noqa: ANN401 - a Message
        code = error.code()
        if code == KafkaError._PARTITION_EOF:  # noqa: SLF001 - its public name
            # What is left of the range, if anything, was control records, or compacted away.
            partition = message.partition()
            if message.offset() >= missing.get(partition, message.offset() + 1):
                self._done([partition], missing)
        elif code in (KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE):  # noqa: SLF001 - as above
            raise LogLostError(f"{LOG_LOST}: partition {message.partition()}: {error.str()}")
        elif code not in _GROUP_ERRORS:
            raise KafkaException(error)


class LogBounds:
    """Where the partitions of the log begin and end.

    Args:
        settings: of librdkafka.
        topic: the coordinator's log.
        partitions: how many it has.
        timeout_seconds: how long one answer may take.
    """

    def __init__(self, settings: Mapping[str, Any], topic: str, partitions: int, timeout_seconds: float) -> None:
        self._settings = dict(settings)
        self._admin: AdminClient | None = None
        self._has_answered = False
        self._topic = topic
        self._partitions = partitions
        self._timeout_seconds = timeout_seconds

    def first(self) -> Offsets:
        """First offset of every partition. Raises KafkaException."""
        return self._ask(_EARLIEST, IsolationLevel.READ_UNCOMMITTED)()

    def ends(self) -> tuple[Offsets, Offsets]:
        """(last stable offset, high watermark) of every partition. Raises KafkaException."""
        # In this order: a commit written between the answers would pass for one of an open transaction, and be read
        # after the membership that follows it.
        high = self._ask(_LATEST, IsolationLevel.READ_UNCOMMITTED)()
        stable = self._ask(_LATEST, IsolationLevel.READ_COMMITTED)()
        return {partition: min(end, high[partition]) for partition, end in stable.items()}, high

    def _ask(self, what: OffsetSpec, isolation: IsolationLevel) -> Callable[[], Offsets]:
        asked = {TopicPartition(self._topic, partition): what for partition in range(self._partitions)}
        futures = self._client().list_offsets(asked, isolation_level=isolation, request_timeout=self._timeout_seconds)

        def found() -> Offsets:
            try:
                offsets: Offsets = {of.partition: future.result().offset for of, future in futures.items()}
            except KafkaException as error:
                if error.args[0].code() != KafkaError._NOENT or not self._has_answered:  # noqa: SLF001 - its public name
                    raise
                # Its brokers have said that they go, and that a partition has no leader any more.
                offsets = {}
            if min(offsets.values(), default=-1) < 0:
                # Of a partition whose leader is gone the client says that for good: another one looks again.
                self._admin = None
                raise KafkaException(KafkaError(KafkaError.LEADER_NOT_AVAILABLE))
            self._has_answered = True
            return offsets

        return found

    def _client(self) -> AdminClient:
        if self._admin is None:
            admin = AdminClient(connectable(self._settings))
            # Asked for offsets while it is still getting to know who leads, a client now and then waits for 3 s.
            admin.list_topics(self._topic, timeout=self._timeout_seconds)
            self._admin = admin
        return self._admin
