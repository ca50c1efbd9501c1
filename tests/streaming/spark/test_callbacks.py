"""What the JVM sends to this process, and what of its end is worth a line."""

import socket
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from pyspark.accumulators import _start_update_server

from streaming.spark import callbacks

SECRET = "s3cret"  # noqa: S105 - of a server that lives as long as the test


@pytest.fixture
def server() -> Iterator[Any]:
    """Spark's own server for accumulators, as a session has it."""
    running = _start_update_server(SECRET, is_unix_domain_sock=False)
    callbacks.end_with_the_jvm(running)
    yield running
    running.shutdown()


def sent(server: Any, *parts: bytes) -> None:
    """A JVM says something to it, and is gone; returns when the server has seen that."""
    with socket.create_connection(server.server_address, timeout=60) as jvm:
        # One that is refused is hung up on.
        with suppress(OSError):
            for part in parts:
                jvm.sendall(part)
            jvm.shutdown(socket.SHUT_WR)
        with suppress(OSError):
            while jvm.recv(1_024):
                pass


def test_a_jvm_that_ended_first_is_no_error(server: Any, capfd: pytest.CaptureFixture[str]) -> None:
    """Between two reports, or within one: a stop is quiet."""
    sent(server, SECRET.encode(), b"\0\0\0\0")
    sent(server, SECRET.encode(), b"\0\0\0\0", b"\0\0")

    assert "" == capfd.readouterr().err


def test_another_error_is_shown(server: Any, capfd: pytest.CaptureFixture[str]) -> None:
    """Who does not know the secret is no JVM of ours."""
    sent(server, b"secret", b"\0\0\0\0")

    assert "AccumulatorServer is not correct" in capfd.readouterr().err
