"""Ranges of the coordinator's log, many partitions with one consumer.

Spark's own Kafka source reads each partition with a consumer of its own, twice, and compiles a projection for each: at
the tail of the log, where a micro-batch has a few records of each of fifty partitions, that was most of a batch. Here
one request asks a broker for all of them. A consumer is kept by the worker process for the next batch; between
batches nothing is assigned to it, so it is silent.

    read committed      up to the last stable offset: offset commits, without the aborted ones, and membership
    read uncommitted    from there to the high watermark: membership alone, which is never transactional
"""

import time
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from confluent_kafka import KafkaError, KafkaException, Message, TopicPartition

from streaming.kafka.librdkafka import Consumer
from streaming.kafka.msk_iam import connectable

_POLL_SECONDS: Final = 0.01
"""How long to wait for the last of as many records as there can still be; compaction has left fewer."""
_READ_AT_ONCE: Final = 10_000
_LOOK_SECONDS: Final = 3.0
"""After which, when nothing comes, it is looked whether what is missing has a leader."""

LOG_LOST: Final = "the log is not the one that was read"
"""How the error begins when offsets that were read, or are to be read, are gone."""

_GROUP_ERRORS: Final = frozenset(
    {KafkaError.GROUP_AUTHORIZATION_FAILED, KafkaError.COORDINATOR_NOT_AVAILABLE, KafkaError.NOT_COORDINATOR}
)
"""What the group of the consumer's name meets, which is none: partitions are assigned by hand, nothing is committed."""

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

    def read(self, ranges: Ranges, left_out: set[int] | None = None) -> Iterator[Columns]:
        """All records of the ranges, some at a time.

        Given a set, a partition that cannot be read to its end is put there and left, whatever came of it: one whose
        records are gone, one without a leader, and one of which nothing comes while others could be read.

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
            last_s = looked_s = time.monotonic()
            while missing:
                found = self._consumer.consume(min(most, _READ_AT_ONCE), _POLL_SECONDS)
                now_s = time.monotonic()
                if found:
                    last_s = looked_s = now_s
                elif now_s - last_s > self._timeout_seconds:
                    if left_out is None or len(missing) == len(ranges):
                        raise KafkaException(
                            KafkaError(KafkaError._TIMED_OUT, f"no record for {self._timeout_seconds:g} s")  # noqa: SLF001 - its public name
                        )
                    left_out |= missing.keys()
                    return
                elif left_out is not None and now_s - looked_s > _LOOK_SECONDS:
                    looked_s = now_s
                    without = (self._without_leader() & missing.keys()) | self._cut_off(missing)
                    left_out |= without
                    self._done(without, missing)
                columns = self._taken(found, ends, missing, left_out)
                if len(columns.offsets):
                    yield columns
        finally:
            # A partition stays paused over assignments.
            self._consumer.resume(self._consumer.assignment())
            self._consumer.unassign()

    def close(self) -> None:
        """Let the brokers go."""
        self._consumer.close()

    def _without_leader(self) -> set[int]:
        """Partitions that have none, as the brokers say now; none where they do not answer."""
        try:
            topic = self._consumer.list_topics(self._topic, timeout=_LOOK_SECONDS).topics[self._topic]
        except KafkaException:
            return set()
        return {of.id for of in topic.partitions.values() if of.leader < 0}

    def _cut_off(self, missing: Mapping[int, int]) -> set[int]:
        """Partitions that end before what is missing of them, as their leaders say now."""
        return {partition for partition, end in missing.items() if self._end(partition, end) < end}

    def _end(self, partition: int, unknown: int) -> int:
        """Where a partition ends; `unknown` where its leader does not answer."""
        place = TopicPartition(self._topic, partition)
        try:
            _, end = self._consumer.get_watermark_offsets(place, timeout=_LOOK_SECONDS, cached=False)
        except KafkaException:
            return unknown
        return int(end)

    def _taken(
        self, found: list[Message], ends: npt.NDArray[np.int64], missing: dict[int, int], left_out: set[int] | None
    ) -> Columns:
        """Records of the ranges, by partition up to `ends`; partitions read to their end are no longer missing.

        Each column is taken of all messages in one call: a look at them one by one takes three times as long.
        """
        errors = list(map(Message.error, found))
        # Compared with None, an error of librdkafka leaves an exception behind.
        if any(error is not None for error in errors):
            for message, error in zip(found, errors, strict=True):
                if error is not None:
                    self._meet(error, message, missing, left_out)
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

    def _meet(
        self,
        error: KafkaError,
        message: Any,  # noqa: ANN401 - a Message
        missing: dict[int, int],
        left_out: set[int] | None,
    ) -> None:
        code = error.code()
        if code == KafkaError._PARTITION_EOF:  # noqa: SLF001 - its public name
            # What is left of the range, if anything, was control records, or compacted away.
            partition = message.partition()
            if message.offset() >= missing.get(partition, message.offset() + 1):
                self._done([partition], missing)
        elif code in (KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE):  # noqa: SLF001 - as above
            if left_out is None:
                raise LogLostError(f"{LOG_LOST}: partition {message.partition()}: {error.str()}")
            left_out.add(message.partition())
            self._done(missing.keys() & {message.partition()}, missing)
        elif code not in _GROUP_ERRORS:
            raise KafkaException(error)
