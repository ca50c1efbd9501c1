"""Ranges of the coordinator's log, many partitions with one consumer.

Spark's own Kafka source reads each partition with a consumer of its own, twice, and compiles a projection for each: at
the tail of the log, where a micro-batch has a few records of each of fifty partitions, that was most of a batch. Here
one request asks a broker for all of them. A consumer is kept by the worker process for the next batch; between
batches nothing is assigned to it, so it is silent.

    read committed      up to the last stable offset: offset commits, without the aborted ones, and membership
    read uncommitted    from there to the high watermark: membership alone, which is never transactional

A client that may write to the log may write what is small on the wire, and large or unreadable where it is unpacked:

    what is met                                      becomes
    a value above the largest that is taken          `serde.value_left_out`: an undecodable record
    a batch that librdkafka cannot unpack            `SteppedOver`; it reports that one, and then asks for it for ever
"""

import time
from collections.abc import Callable, Collection, Generator, Mapping
from functools import partial
from itertools import compress
from typing import Any, Final, NamedTuple

from confluent_kafka import KafkaError, KafkaException, Message, TopicPartition

from streaming.kafka.plain_consumer import GROUP_ERRORS, PARTITION_EOF, plain_consumer

_POLL_SECONDS: Final = 0.01
"""How long to wait for the last of as many records as there can still be; compaction has left fewer."""
_READ_AT_ONCE: Final = 10_000
_LOOK_SECONDS: Final = 3.0
"""After which, when nothing comes, it is looked whether what is missing has a leader."""

LOG_LOST: Final = "the log is not the one that was read"
"""How the error begins when offsets that were read, or are to be read, are gone."""

UNREADABLE: Final = frozenset(
    {
        KafkaError._BAD_COMPRESSION,  # noqa: SLF001 - its public name, as those that follow
        KafkaError._BAD_MSG,  # noqa: SLF001
        KafkaError._NOT_IMPLEMENTED,  # noqa: SLF001
    }
)
"""What librdkafka says of a batch: it does not unpack, or to more than a client takes; it is not what its checksum
says; its codec or format is none that is known."""

LARGEST_VALUE_BYTES: Final = 64 * 1024 * 1024

_RECEIVED_BYTES: Final = 100_000_000
"""librdkafka's own limit to an answer, and to what a batch of zstd unpacks to."""
_MOST_RECEIVED_BYTES: Final = 2**31 - 1
_BACKOFF_MS: Final = 20
"""How long librdkafka waits where a batch was unreadable: there may be a thousand of them."""

Ranges = Mapping[int, tuple[int, int]]
"""Partition → first offset, and the one after the last."""

BatchEnd = Callable[[int, int, int], int | None]
"""Partition, offset in a batch, leader → the offset after the batch; None where that is not to be had."""


class SteppedOver(NamedTuple):
    """A batch that could not be read: from an offset to one that is not part of it, and librdkafka's word why."""

    first: int
    end: int
    reason: str


class LogLostError(RuntimeError):
    """Records that are to be read are gone: the log was cut off, or recreated."""


class Columns(NamedTuple):
    """Records as columns, in no order but the order of their partition."""

    partitions: list[int]
    offsets: list[int]
    timestamps_ms: list[int]
    keys: list[bytes | None]
    values: list[bytes | None]


class RangeReader:
    """Reads ranges of one topic with one consumer of an isolation level.

    Args:
        settings: of librdkafka, without those that are the reader's own.
        topic: the coordinator's log.
        committed: whether records of open and aborted transactions are left out.
        timeout_seconds: how long no record may come while some are missing.
        batch_end: where a batch ends that cannot be read.
        largest_value_bytes: values above are left out of their records.
    """

    def __init__(  # noqa: PLR0913 - what it reads and how, all named
        self,
        settings: Mapping[str, Any],
        topic: str,
        *,
        committed: bool,
        timeout_seconds: float,
        batch_end: BatchEnd = lambda _partition, _offset, _leader: None,
        largest_value_bytes: int = LARGEST_VALUE_BYTES,
    ) -> None:
        self._topic = topic
        self._timeout_seconds = timeout_seconds
        self._batch_end = batch_end
        self._largest_value_bytes = largest_value_bytes
        self._last_error: str | None = None
        self._make = partial(
            plain_consumer,
            {**_checked(largest_value_bytes), **settings},
            committed=committed,
            gone="error",
            on_error=self._note,
        )
        self._consumer = self._make()

    def read(
        self,
        ranges: Ranges,
        left_out: set[int] | None = None,
        stepped_over: dict[int, list[SteppedOver]] | None = None,
    ) -> Generator[Columns]:
        """All records of the ranges, some at a time.

        Given a set, a partition that cannot be read to its end is put there and left, whatever came of it: one whose
        records are gone, one without a leader, and one of which nothing comes while others could be read.
        Given a dict, a batch that cannot be read is put there, and what is behind it is read.

        Raises:
            LogLostError: records of the ranges are gone.
            KafkaException: the brokers refuse, or do not answer in time; a batch cannot be read.
        """
        missing = {partition: end for partition, (start, end) in ranges.items() if start < end}
        if not missing:
            return
        self._consumer.assign([TopicPartition(self._topic, p, ranges[p][0]) for p in missing])
        # So many can still come: an end of partition counts like a record.
        most = sum(end - ranges[partition][0] for partition, end in missing.items())
        ends, self._last_error = dict(missing), None
        try:
            last_s = looked_s = time.monotonic()
            while missing:
                found = self._consumer.consume(min(most, _READ_AT_ONCE), _POLL_SECONDS)
                now_s = time.monotonic()
                if found:
                    last_s = looked_s = now_s
                elif now_s - last_s > self._timeout_seconds:
                    if left_out is None or len(missing) == len(ranges):
                        raise KafkaException(KafkaError(KafkaError._TIMED_OUT, self._late()))  # noqa: SLF001 - its public name
                    left_out.update(missing)  # |= with keys makes another set
                    return
                elif left_out is not None and now_s - looked_s > _LOOK_SECONDS:
                    looked_s = now_s
                    without = (self._without_leader() & missing.keys()) | self._cut_off(missing)
                    left_out |= without
                    self._done(without, missing)
                columns = self._taken(found, ends, missing, left_out, stepped_over)
                if len(columns.offsets):
                    yield columns
        finally:
            if missing:
                # What was asked for is on its way, and stays with a consumer that is assigned something else.
                self._consumer.close()
                self._consumer = self._make()
            else:
                # A partition stays paused over assignments.
                self._consumer.resume(self._consumer.assignment())
                self._consumer.unassign()

    def close(self) -> None:
        """Let the brokers go."""
        self._consumer.close()

    def _without_leader(self) -> set[int]:
        """Partitions that have none, as the brokers say now; none where they do not answer."""
        return {partition for partition, leader in self._leaders().items() if leader < 0}

    def _leaders(self) -> dict[int, int]:
        """Partition → its leader, below 0 for none, as the brokers say now; nothing where they do not answer."""
        try:
            topic = self._consumer.list_topics(self._topic, timeout=_LOOK_SECONDS).topics[self._topic]
        except KafkaException:
            return {}
        return {of.id: of.leader for of in topic.partitions.values()}

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

    def _note(self, error: KafkaError) -> None:
        self._last_error = error.str()

    def _late(self) -> str:
        cause = "" if self._last_error is None else f" ({self._last_error})"
        return f"no record for {self._timeout_seconds:g} s{cause}"

    def _taken(
        self,
        found: list[Message],
        ends: Mapping[int, int],
        missing: dict[int, int],
        left_out: set[int] | None,
        stepped_over: dict[int, list[SteppedOver]] | None,
    ) -> Columns:
        """Records of the ranges, by partition up to `ends`; partitions read to their end are no longer missing.

        Each column is taken of all messages in one call: a look at them one by one takes three times as long.
        """
        errors = list(map(Message.error, found))
        # Compared with None, an error of librdkafka leaves an exception behind.
        if any(error is not None for error in errors):
            for message, error in zip(found, errors, strict=True):
                if error is not None and error.code() in UNREADABLE and stepped_over is not None:
                    self._step_over(error, message, missing, left_out, stepped_over)
                elif error is not None:
                    self._meet(error, message, missing, left_out)
            found = [message for message, error in zip(found, errors, strict=True) if error is None]
        partitions: list[Any] = list(map(Message.partition, found))
        offsets: list[Any] = list(map(Message.offset, found))
        last = dict(zip(partitions, offsets, strict=True))
        self._done([of for of in missing.keys() & last.keys() if last[of] >= ends[of] - 1], missing)
        if any(last[of] >= ends.get(of, 0) for of in last):
            wanted = [offset < ends.get(of, 0) for of, offset in zip(partitions, offsets, strict=True)]
            found, partitions, offsets = (list(compress(of, wanted)) for of in (found, partitions, offsets))
        times_ms = [time_ms for _, time_ms in map(Message.timestamp, found)]
        values = list(map(Message.value, found))
        sizes = list(map(len, found))
        if max(sizes, default=0) > self._largest_value_bytes:
            # Loaded where it is needed: a process that plans does without the model.
            from coordinator_model.records.serde import value_left_out

            most = self._largest_value_bytes
            values = [value_left_out(of, most) if of > most else value for value, of in zip(values, sizes, strict=True)]
        return Columns(partitions, offsets, times_ms, list(map(Message.key, found)), values)

    def _done(self, partitions: Collection[int], missing: dict[int, int]) -> None:
        for partition in partitions:
            del missing[partition]
        if missing and partitions:
            self._consumer.pause([TopicPartition(self._topic, partition) for partition in partitions])

    def _step_over(
        self,
        error: KafkaError,
        message: Any,  # noqa: ANN401 - a Message
        missing: dict[int, int],
        left_out: set[int] | None,
        stepped_over: dict[int, list[SteppedOver]],
    ) -> None:
        """Go on behind a batch that cannot be read; the partition is left out where no one says where that is."""
        partition, offset = message.partition(), message.offset()
        known = stepped_over.setdefault(partition, [])
        if partition not in missing or any(of.first <= offset < of.end for of in known):
            return  # said again before it was gone from
        leader = self._leaders().get(partition, -1)
        end = None if leader < 0 else self._batch_end(partition, offset, leader)
        if end is None:
            if left_out is None:
                raise KafkaException(error)
            left_out.add(partition)
            self._done([partition], missing)
            return
        known.append(SteppedOver(offset, end, error.str()))
        if end >= missing[partition]:
            self._done([partition], missing)
        else:
            self._consumer.seek(TopicPartition(self._topic, partition, end))

    def _meet(
        self,
        error: KafkaError,
        message: Any,  # noqa: ANN401 - a Message
        missing: dict[int, int],
        left_out: set[int] | None,
    ) -> None:
        code = error.code()
        if code == PARTITION_EOF:
            # What is left of the range, if anything, was control records, or compacted away.
            partition = message.partition()
            if message.offset() >= missing.get(partition, message.offset() + 1):
                self._done([partition], missing)
        elif code in (KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE):  # noqa: SLF001 - its public name
            if left_out is None:
                raise LogLostError(f"{LOG_LOST}: partition {message.partition()}: {error.str()}")
            left_out.add(message.partition())
            self._done(missing.keys() & {message.partition()}, missing)
        elif code not in GROUP_ERRORS:
            raise KafkaException(error)


def _checked(largest_value_bytes: int) -> dict[str, Any]:
    """Settings of a consumer that trusts no batch, and takes one with the largest value.

    Without a look at the checksum a batch that is damaged on disk is taken for what it seems to say: a stream of gzip
    that ends early has librdkafka unpack it for ever.
    """
    received = min(max(_RECEIVED_BYTES, 2 * largest_value_bytes), _MOST_RECEIVED_BYTES)
    return {"check.crcs": True, "receive.message.max.bytes": received, "fetch.error.backoff.ms": _BACKOFF_MS}
