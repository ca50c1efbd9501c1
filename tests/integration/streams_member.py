"""A member of a streams group (KIP-1071) that costs no JVM: StreamsGroupHeartbeat 0, and no record is processed."""

import socket
import struct
import threading
import uuid
from types import TracebackType
from typing import Final, Self

from streaming.base import kafka_frames

_HEARTBEAT: Final = (88, 0)
_EVERY_SECONDS: Final = 1.0
_ANSWER_SECONDS: Final = 30.0
_REBALANCE_TIMEOUT_MS: Final = 60_000
_NONE: Final = b"\x00"
_NO_STRUCT: Final = b"\xff"
_NO_TAGS: Final = b"\x00"
SUBTOPOLOGY: Final = "0"


class StreamsMember:
    """Runs one subtopology that reads a topic, alone in its group; use as a context manager."""

    def __init__(self, bootstrap_servers: str, group: str, topic: str) -> None:
        """Join, and take whatever tasks the coordinator gives."""
        host, port = bootstrap_servers.rsplit(":", 1)
        self._socket = socket.create_connection((host, int(port)), _ANSWER_SECONDS)
        self._group, self._topic = group, topic
        self._member_id = str(uuid.uuid4())
        self._tasks = b"\x01"
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"streams-{group}", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Leave; a second call does nothing."""
        self._stopping.set()
        self._thread.join()

    def _run(self) -> None:
        epoch = 0
        with self._socket:
            while not self._stopping.is_set():
                epoch = self._beat(epoch)
                self._stopping.wait(_EVERY_SECONDS)
            self._beat(-1)

    def _beat(self, epoch: int) -> int:
        """One heartbeat; returns the epoch to send next."""
        is_new = epoch == 0
        body = b"".join(
            (
                _text(self._group),
                _text(self._member_id),
                struct.pack(">ii", epoch, -1),
                _NONE,  # no instance id
                _NONE,  # no rack
                struct.pack(">i", _REBALANCE_TIMEOUT_MS),
                self._topology() if is_new else _NO_STRUCT,
                self._tasks,
                b"\x01",  # no standby tasks
                b"\x01",  # no warm-up tasks
                _text("process"),
                _NO_STRUCT,  # no endpoint
                b"\x01" if is_new else _NONE,  # client tags
                _NONE,  # no offsets of tasks
                _NONE,  # no end offsets of them
                _NONE,  # no shutdown of the application
                _NO_TAGS,
            )
        )
        answer = self._ask(body)
        (error,) = struct.unpack_from(">h", answer, 4)
        at = 6
        message, at = _read_text(answer, at)
        assert error == 0, (error, message)
        _, at = _read_text(answer, at)
        (epoch,) = struct.unpack_from(">i", answer, at)
        at = _after_statuses(answer, at + 16)
        if answer[at] != 0:
            # An array of tasks, as a later heartbeat has to say it.
            self._tasks = answer[at : _after_tasks(answer, at)]
        return epoch

    def _topology(self) -> bytes:
        """Epoch 0: one subtopology, one source topic; no expression, changelog, repartition or copartition."""
        part = _text(SUBTOPOLOGY) + b"\x02" + _text(self._topic) + b"\x01" * 5 + _NO_TAGS
        return b"\x01" + struct.pack(">i", 0) + b"\x02" + part + _NO_TAGS

    def _ask(self, body: bytes) -> bytes:
        client = b"streams-member"
        header = struct.pack(">hhih", *_HEARTBEAT, 1, len(client)) + client + _NO_TAGS
        return kafka_frames.ask(self._socket, header + body)[5:]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _text(text: str) -> bytes:
    """A compact string; none here has more than 126 bytes."""
    data = text.encode()
    return bytes([len(data) + 1]) + data


def _read_text(data: bytes, at: int) -> tuple[str | None, int]:
    """A compact nullable string, and where it ends."""
    size, at = _read_count(data, at)
    return (None, at) if size == 0 else (data[at : at + size - 1].decode(), at + size - 1)


def _read_count(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if not byte & 0x80:
            return value, at
        shift += 7


def _after_statuses(data: bytes, at: int) -> int:
    count, at = _read_count(data, at)
    for _ in range(count - 1):
        _, at = _read_text(data, at + 1)
        at += 1
    return at


def _after_tasks(data: bytes, at: int) -> int:
    count, at = _read_count(data, at)
    for _ in range(count - 1):
        _, at = _read_text(data, at)
        partitions, at = _read_count(data, at)
        at += 4 * (partitions - 1) + 1
    return at
