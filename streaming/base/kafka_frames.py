"""Requests and responses of Kafka's protocol on a socket: four bytes of length, big-endian, before each."""

import socket
import struct
from typing import Final

LONGEST: Final = 64 * 1024 * 1024
"""Bytes of a response: what says that it is longer is no broker."""


def ask(connection: socket.socket, request: bytes) -> bytes:
    """Send a request and return its response; both begin with their header.

    Raises:
        OSError: The connection ends, or what answers is no broker.
    """
    connection.sendall(struct.pack(">i", len(request)) + request)
    return receive_response(connection, receive(connection, 4))


def receive_response(connection: socket.socket, prefix: bytes, longest: int = LONGEST) -> bytes:
    """The response whose length the four bytes received before it say; raises OSError as `ask`."""
    (length,) = struct.unpack(">i", prefix)
    if not 0 <= length <= longest:
        raise ConnectionError(f"it answers with what would be a response of {length} bytes")
    return receive(connection, length)


def receive(connection: socket.socket, count: int) -> bytes:
    """So many bytes; raises OSError if the connection ends before."""
    received = b""
    while len(received) < count:
        part = connection.recv(count - len(received))
        if not part:
            raise ConnectionError("it closes the connection")
        received += part
    return received
