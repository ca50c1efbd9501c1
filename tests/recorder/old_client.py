"""A client as old as brokers still take it, in a few requests: what today's clients no longer say or do.

It commits with a retention time (OffsetCommit v2, which only then brokers write as value v1), and it joins a classic
group without ever syncing (JoinGroup v2), by which a round of the rebalance is lost.
"""

import socket
import struct
from types import TracebackType
from typing import Final, Self

from streaming.base import kafka_frames

_JOIN_GROUP: Final = 11
_OFFSET_COMMIT: Final = 8
_TIMEOUT_SECONDS: Final = 40.0
_CLIENT_ID: Final = "old-client"
_NO_GENERATION: Final = -1


class OldClient:
    """One connection to the one broker; use as a context manager."""

    def __init__(self, servers: str) -> None:
        host, _, port = servers.partition(":")
        self._socket = socket.create_connection((host, int(port)), timeout=_TIMEOUT_SECONDS)

    def commit(self, group: str, topic: str, offsets: dict[int, int], *, retention_ms: int) -> None:
        """Commit partition → offset for a group without members, to be kept so long."""
        partitions = b"".join(struct.pack(">iq", *item) + _text("old") for item in offsets.items())
        body = _text(group) + struct.pack(">i", _NO_GENERATION) + _text("") + struct.pack(">qi", retention_ms, 1)
        body += _text(topic) + struct.pack(">i", len(offsets)) + partitions
        response = self._call(_OFFSET_COMMIT, body)
        assert (0,) * len(offsets) == tuple(
            error for _, error in struct.iter_unpack(">ih", response[8 + len(_text(topic)) :])
        )

    def join(self, group: str, topic: str, *, rebalance_timeout_ms: int) -> int:
        """Join a group and do no more; returns the generation it came to."""
        subscription = struct.pack(">hi", 0, 1) + _text(topic) + struct.pack(">i", -1)
        body = _text(group) + struct.pack(">ii", 30_000, rebalance_timeout_ms) + _text("") + _text("consumer")
        body += struct.pack(">i", 1) + _text("range") + struct.pack(">i", len(subscription)) + subscription
        _, error, generation = struct.unpack_from(">ihi", self._call(_JOIN_GROUP, body))
        assert 0 == error
        return int(generation)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._socket.close()

    def _call(self, api_key: int, body: bytes) -> bytes:
        """Send a request of version 2 and return its response behind the correlation id."""
        request = struct.pack(">hhi", api_key, 2, 1) + _text(_CLIENT_ID) + body
        return kafka_frames.ask(self._socket, request)[4:]


def _text(text: str) -> bytes:
    data = text.encode()
    return struct.pack(">h", len(data)) + data
