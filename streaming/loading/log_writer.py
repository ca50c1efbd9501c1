"""Records of a coordinator's log, written into the log of a broker that a rehearsal has started, and into no other.

A broker takes records for its internal topics from a client with the id `__admin_client`. A client of that id that
met a cluster of somebody's would write group records into it. So there is no client library here that follows what
brokers say of other brokers, but one connection:

    it is opened to         loopback, at the port of a broker that this process has started and that runs
    on it is asked first    whose cluster it is, by a client of another id: it must have the id that the rehearsal gave,
                            and that one broker
    on it is written        what a rehearsal loads; once it breaks, no other is opened
"""

import socket
import time
from types import TracebackType
from typing import Any, Final, Protocol, Self

from kafka.protocol.metadata import MetadataRequest, MetadataResponse
from kafka.protocol.producer import ProduceRequest, ProduceResponse
from kafka.record.default_records import DefaultRecordBatchBuilder

from streaming.base import kafka_frames
from streaming.base.errors import CannotTellError
from streaming.demo.embedded_broker import HOST
from streaming.recording.file_format import RecordedRecord

OFFSETS_TOPIC: Final = "__consumer_offsets"

ASKING: Final = "group-monitor-rehearsal"
WRITING: Final = "__admin_client"
"""Client ids: the first reads, the second may write to internal topics."""

_METADATA_VERSION: Final = 5
_PRODUCE_VERSION: Final = 3
"""Versions that all brokers from 3.3 on serve."""

_BATCH_BYTES: Final = 1_000_000
_TIMEOUT_SECONDS: Final = 60.0
_PAUSE_SECONDS: Final = 0.1
_ALL: Final = -1
_NOT_YET: Final = frozenset({3, 5, 6})
"""Errors of a partition that was just made and has no leader yet: nothing was written."""


class StartedBroker(Protocol):
    """What the writer is to know of a broker: `ReleaseBroker` and no address."""

    @property
    def port(self) -> int:
        """On loopback."""
        ...

    @property
    def pid(self) -> int | None:
        """Of the process while it runs."""
        ...

    @property
    def cluster_id(self) -> str:
        """What it was given."""
        ...


class LogWriter:
    """Writes to `__consumer_offsets` of one broker; use as a context manager.

    Args:
        broker: the one that was started for it.

    Attributes:
        offsets: partition → the offsets that its records came from, in the order in which they were written: where
            record n of the broker's log stood in the log that is rehearsed.
        written: bytes that were sent.

    Raises:
        CannotTellError: what answers is not that broker, or it refuses a record.
    """

    def __init__(self, broker: StartedBroker) -> None:
        self._broker = broker
        self._connection: socket.socket | None = None
        self._batches: dict[int, tuple[Any, list[int]]] = {}
        self.offsets: dict[int, list[int]] = {}
        self.written = 0

    def __enter__(self) -> Self:
        """Connect, and see whose broker it is."""
        if self._broker.pid is None:
            raise CannotTellError("rehearsal: found no broker that it has started; nothing was written")
        try:
            self._connection = socket.create_connection((HOST, self._broker.port), timeout=_TIMEOUT_SECONDS)
            self._refuse_others()
        except OSError as error:
            self.close()
            raise CannotTellError(f"rehearsal: its broker does not answer ({error}); nothing was written") from error
        except CannotTellError:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Write what is left, unless something went wrong, and let go."""
        try:
            if kind is None:
                self.flush()
        finally:
            self.close()

    def write(self, record: RecordedRecord) -> None:
        """Write a record, with its timestamp and bytes; those of a partition come in their order."""
        batch, places = self._batches.get(record.partition) or self._begin(record.partition)
        if batch.append(len(places), record.timestamp_ms, record.key, record.value, []) is None:
            self._send(record.partition)
            batch, places = self._begin(record.partition)
            batch.append(0, record.timestamp_ms, record.key, record.value, [])
        places.append(record.offset)

    def flush(self) -> None:
        """Send what is not sent yet."""
        for partition in list(self._batches):
            self._send(partition)

    def close(self) -> None:
        """Let go of the connection; there will be no other."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _begin(self, partition: int) -> tuple[Any, list[int]]:
        # Zipped, as a checksum in Python takes longer than all else.
        batch = DefaultRecordBatchBuilder(
            magic=2,
            compression_type=DefaultRecordBatchBuilder.CODEC_GZIP,
            is_transactional=False,
            producer_id=-1,
            producer_epoch=-1,
            base_sequence=-1,
            batch_size=_BATCH_BYTES,
        )
        self._batches[partition] = batch, []
        return self._batches[partition]

    def _send(self, partition: int) -> None:
        batch, places = self._batches.pop(partition)
        of_partition = ProduceRequest.TopicProduceData.PartitionProduceData(
            index=partition, records=bytes(batch.build())
        )
        topic = ProduceRequest.TopicProduceData(name=OFFSETS_TOPIC, partition_data=[of_partition])
        request = ProduceRequest(
            transactional_id=None, acks=_ALL, timeout_ms=int(_TIMEOUT_SECONDS * 1000), topic_data=[topic]
        )
        try:
            answer = self._ask(request, ProduceResponse, _PRODUCE_VERSION, WRITING)
            deadline = time.monotonic() + _TIMEOUT_SECONDS
            while _error(answer) in _NOT_YET and time.monotonic() < deadline:
                time.sleep(_PAUSE_SECONDS)
                answer = self._ask(request, ProduceResponse, _PRODUCE_VERSION, WRITING)
        except OSError as error:
            self.close()
            raise CannotTellError(f"rehearsal: its broker went away while the log was written ({error})") from error
        said = answer.responses[0].partition_responses[0]
        known = self.offsets.setdefault(partition, [])
        if said.error_code or said.base_offset != len(known):
            raise CannotTellError(
                f"rehearsal: its broker did not take records of partition {partition} (error {said.error_code}, "
                f"offset {said.base_offset} where {len(known)} was next)"
            )
        known.extend(places)

    def _refuse_others(self) -> None:
        """Raise CannotTellError unless what answers is the broker that was started, alone in its cluster."""
        request = MetadataRequest(topics=[], allow_auto_topic_creation=False)
        said = self._ask(request, MetadataResponse, _METADATA_VERSION, ASKING)
        if said.cluster_id != self._broker.cluster_id:
            raise CannotTellError(
                f"rehearsal: found cluster {said.cluster_id} at {HOST}:{self._broker.port}, accepted: "
                f"{self._broker.cluster_id}, which it has started; nothing was written"
            )
        brokers = [(of.host, of.port) for of in said.brokers]
        if brokers != [(HOST, self._broker.port)]:
            raise CannotTellError(
                f"rehearsal: found brokers {brokers}, accepted: {HOST}:{self._broker.port} alone; nothing was written"
            )

    def _ask(self, request: Any, response: Any, version: int, client_id: str) -> Any:  # noqa: ANN401 - kafka-python has no types
        if self._connection is None:
            raise ConnectionError("not connected")
        request.with_header(correlation_id=1, client_id=client_id)
        sent = bytes(request.encode(version=version, header=True))
        self.written += len(sent)
        received = kafka_frames.ask(self._connection, sent)
        return response.decode(received, version=version, header=True)


def _error(answer: Any) -> int:  # noqa: ANN401 - kafka-python has no types
    code: int = answer.responses[0].partition_responses[0].error_code
    return code
