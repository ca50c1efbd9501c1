"""How much kafka-python reads at a time.

It reads until nothing more has come, and only then looks at how long the answer says it is. Who sends faster than it
reads keeps it there, and all of that in memory. So it reads a part at a time, and refuses what is too long after the
first.
"""

import ssl
from typing import Any, Final

from kafka import errors
from kafka.net.transport import KafkaTCPTransport

_PART: Final = 64 * 1024
MOST_AT_A_TIME: Final = 1024 * 1024
"""Bytes; beyond, other connections have their turn."""


def _received(transport: Any) -> tuple[bytes, Exception | None]:  # noqa: ANN401 - kafka-python has no types
    """What has come, but for the rest of much, and what ended it; in the place of `KafkaTCPTransport._sock_recv`."""
    parts: list[bytes] = []
    length, connection = 0, transport._sock  # noqa: SLF001 - as its own
    # What TLS has decrypted already, no selector would report.
    while length < MOST_AT_A_TIME or (isinstance(connection, ssl.SSLSocket) and connection.pending()):
        try:
            part = connection.recv(_PART)
        except (BlockingIOError, InterruptedError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
            break
        except Exception as error:  # noqa: BLE001 - as it does: the connection is closed with it
            return b"".join(parts), errors.KafkaConnectionError(error)
        if not part:
            return b"".join(parts), errors.KafkaConnectionError("socket disconnected")
        parts.append(part)
        length += len(part)
    return b"".join(parts), None


def bound() -> None:
    """Have every connection of this process read so, from now on."""
    for transport in (KafkaTCPTransport, *KafkaTCPTransport.__subclasses__()):
        transport._sock_recv = _received  # noqa: SLF001 - it has no other place for it
