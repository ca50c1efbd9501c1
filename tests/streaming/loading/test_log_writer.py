"""Writing with a client id that brokers let write to their internal topics: to the rehearsal's own broker alone."""

import socket
import struct
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pytest
from kafka.protocol.metadata import MetadataResponse
from kafka.protocol.producer import ProduceRequest, ProduceResponse
from kafka.record import MemoryRecords

from streaming.base.errors import CannotTellError
from streaming.loading import log_writer
from streaming.loading.log_writer import ASKING, WRITING, LogWriter
from streaming.recording.file_format import RecordedRecord

OWN: Final = "b3duLWNsdXN0ZXItaWQtMQ"
SOMEBODYS: Final = "c29tZWJvZHlzLWNsdXN0ZXI"
PRODUCE: Final = 0
METADATA: Final = 3


@dataclass
class Started:
    """What a writer is given."""

    port: int
    pid: int | None = 1
    cluster_id: str = OWN


class Server:
    """A broker of one connection after the other: says whose it is, and keeps what it is asked."""

    def __init__(
        self, cluster_id: str = OWN, brokers: list[tuple[str, int]] | None = None, errors: Sequence[int] = ()
    ) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._cluster_id, self._brokers, self._errors = cluster_id, brokers, list(errors)
        self.asked: list[tuple[int, str]] = []
        self.connections = 0
        self.produced: list[tuple[int, bytes]] = []
        self._ends: dict[int, int] = {}
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(10)

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            with connection, connection.makefile("rb") as stream:
                while head := stream.read(4):
                    request = stream.read(struct.unpack(">i", head)[0])
                    answer = self._answer(request)
                    connection.sendall(struct.pack(">i", len(answer)) + answer)

    def _answer(self, request: bytes) -> bytes:
        key, version, correlation, size = struct.unpack_from(">hhih", request)
        self.asked.append((key, request[10 : 10 + size].decode()))
        if key == METADATA:
            answer: Any = MetadataResponse(
                throttle_time_ms=0,
                cluster_id=self._cluster_id,
                controller_id=1,
                topics=[],
                brokers=[
                    MetadataResponse.MetadataResponseBroker(node_id=number, host=host, port=port, rack=None)
                    for number, (host, port) in enumerate(self._brokers or [("127.0.0.1", self.port)])
                ],
            )
        else:
            answer = self._taken(ProduceRequest.decode(request, version=version, header=True))
        return struct.pack(">i", correlation) + bytes(answer.encode(version=version))

    def _taken(self, request: Any) -> ProduceResponse:
        of = request.topic_data[0].partition_data[0]
        records = [record for batch in batches(of.records) for record in batch]
        first, error = self._ends.get(of.index, 0), self._errors.pop(0) if self._errors else 0
        if not error:
            self._ends[of.index] = first + len(records)
            self.produced.append((of.index, bytes(of.records)))
        topic = ProduceResponse.TopicProduceResponse
        partition = topic.PartitionProduceResponse(
            index=of.index, error_code=error, base_offset=-1 if error else first, log_append_time_ms=-1
        )
        return ProduceResponse(
            responses=[topic(name=log_writer.OFFSETS_TOPIC, partition_responses=[partition])], throttle_time_ms=0
        )


def batches(data: bytes) -> Iterator[Any]:
    records = MemoryRecords(data)
    while records.has_next():
        yield records.next_batch()


def record(offset: int, partition: int = 0, value: bytes | None = b"v", timestamp_ms: int = 7) -> RecordedRecord:
    return RecordedRecord(partition, offset, timestamp_ms, b"k%d" % offset, value)


@pytest.fixture
def own() -> Iterator[Server]:
    server = Server()
    yield server
    server.close()


def test_records_are_written_as_they_stand(own: Server) -> None:
    """In their order, with key, value, tombstone and timestamp; where each came from is remembered."""
    with LogWriter(Started(own.port)) as writer:
        for each in (record(4, timestamp_ms=9), record(0, partition=2), record(7, value=None, timestamp_ms=8)):
            writer.write(each)

    written = {partition: list(next(batches(data))) for partition, data in own.produced}
    assert [(b"k4", b"v", 9), (b"k7", None, 8)] == [(of.key, of.value, of.timestamp) for of in written[0]]
    assert [(b"k0", b"v", 7)] == [(of.key, of.value, of.timestamp) for of in written[2]]
    assert {0: [4, 7], 2: [0]} == writer.offsets
    assert 1 == own.connections


def test_only_what_writes_has_the_id_that_may(own: Server) -> None:
    """Whose broker it is is asked by another client id, before the first produce request."""
    with LogWriter(Started(own.port)) as writer:
        writer.write(record(0))

    assert [(METADATA, ASKING), (PRODUCE, WRITING)] == own.asked


def test_a_full_batch_is_sent_and_another_begun(own: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """A partition's batches follow each other; the places go on."""
    monkeypatch.setattr(log_writer, "_BATCH_BYTES", 200)

    with LogWriter(Started(own.port)) as writer:
        for offset in range(20):
            writer.write(record(offset, value=b"x" * 50))

    assert len(own.produced) > 1
    assert {0: list(range(20))} == writer.offsets


@pytest.mark.parametrize(
    ("server", "said"),
    [
        ({"cluster_id": SOMEBODYS}, f"found cluster {SOMEBODYS}"),
        ({"brokers": [("127.0.0.1", 9092)]}, "found brokers [('127.0.0.1', 9092)]"),
        ({"brokers": [("kafka-1.example.org", 9092)]}, "found brokers [('kafka-1.example.org', 9092)]"),
        ({"cluster_id": ""}, "found cluster "),
    ],
)
def test_nothing_is_written_to_a_broker_of_somebody_else(server: dict[str, Any], said: str) -> None:
    """A broker at the port that is in another cluster, or sends its clients elsewhere, meets no produce request."""
    other = Server(**server)
    try:
        with pytest.raises(CannotTellError, match="nothing was written") as refused, LogWriter(Started(other.port)):
            pytest.fail("it was let in")
    finally:
        other.close()

    assert said in str(refused.value)
    assert [(METADATA, ASKING)] == other.asked
    assert [] == other.produced


def test_a_cluster_of_several_brokers_is_not_the_rehearsals(own: Server) -> None:
    """Also if one of them is where the rehearsal's is."""
    other = Server(brokers=[("127.0.0.1", own.port), ("127.0.0.1", 9092)])
    try:
        with pytest.raises(CannotTellError, match="found brokers"), LogWriter(Started(other.port)):
            pytest.fail("it was let in")
    finally:
        other.close()

    assert [] == other.produced


def test_without_a_process_of_its_own_no_connection_is_opened(own: Server) -> None:
    """A broker that was not started, or was stopped, may have left its port to somebody."""
    with pytest.raises(CannotTellError, match="no broker that it has started"), LogWriter(Started(own.port, pid=None)):
        pytest.fail("it was let in")

    assert 0 == own.connections


def test_a_writer_takes_no_address(own: Server) -> None:
    """It goes to loopback whatever the broker was given: there is nothing by which to send it elsewhere."""
    started = Started(own.port)
    started.host = "kafka-1.example.org"  # type: ignore[attr-defined]  # what somebody might add

    with LogWriter(started) as writer:
        writer.write(record(0))

    assert 1 == len(own.produced)


@pytest.mark.parametrize("error", [3, 5, 6])
def test_a_partition_that_was_just_made_is_waited_for(error: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has no leader yet, and took nothing: the same records are written on the same connection."""
    monkeypatch.setattr(log_writer, "_PAUSE_SECONDS", 0.0)
    late = Server(errors=[error, error])
    try:
        with LogWriter(Started(late.port)) as writer:
            writer.write(record(0))
    finally:
        late.close()

    assert (1, 1, {0: [0]}) == (late.connections, len(late.produced), writer.offsets)


def test_a_refused_record_ends_it() -> None:
    """With what the broker said; no other connection is tried."""
    refusing = Server(errors=[29])
    try:
        with (
            pytest.raises(CannotTellError, match=r"partition 3 \(error 29"),
            LogWriter(Started(refusing.port)) as writer,
        ):
            writer.write(record(0, partition=3))
    finally:
        refusing.close()

    assert 1 == refusing.connections
