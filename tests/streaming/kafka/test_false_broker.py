"""A broker that is none: what it claims about the size of an answer takes no memory, from any of the clients."""

import select
import socket
import ssl
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final, Self

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient as ConfluentAdmin
from kafka.errors import KafkaError

from streaming.base import kafka_frames
from streaming.config.kafka_sections import KafkaSection
from streaming.kafka.any_release import AdminClient
from streaming.kafka.bounded_reads import MOST_AT_A_TIME, _received
from streaming.kafka.client_settings import confluent_settings, python_settings
from streaming.kafka.handshake_probe import refuse_unreachable
from tests.certificates import Authority

CLAIMED: Final = (2**31 - 1, 200_000_000, -1)
"""Bytes: the most that can be said, what is beyond every client's limit, and what is no number of bytes."""
TAKEN: Final = 24 * 2**20
"""Bytes that may be in buffers of the system on their way, of one connection, until a client has closed it."""


class FalseBroker:
    """Answers whatever it is asked with a length, and goes on sending; use as a context manager.

    Attributes:
        servers: where it is.
        sent: bytes that were taken from it, by connection.
    """

    def __init__(self, claimed: int) -> None:
        self._claimed = claimed
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._ended = False
        self.servers = f"127.0.0.1:{self._listening.getsockname()[1]}"
        self.sent: list[int] = []

    def __enter__(self) -> Self:
        threading.Thread(target=self._serve, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended = True
        self._listening.close()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._listening.accept()
                self.sent.append(0)
                arguments = (connection, len(self.sent) - 1)
                threading.Thread(target=self._answer, args=arguments, daemon=True).start()

    def _answer(self, connection: socket.socket, number: int) -> None:
        with connection, suppress(OSError):
            connection.settimeout(5)
            connection.recv(65_536)
            connection.sendall(struct.pack(">i", self._claimed))
            while not self._ended:
                self.sent[number] += connection.send(bytes(65_536))


@pytest.fixture(params=CLAIMED)
def broker(request: pytest.FixtureRequest) -> Iterator[FalseBroker]:
    """One that claims so much."""
    with FalseBroker(request.param) as made:
        yield made


def kafka_python(kafka: KafkaSection) -> Any:
    """Ask with the client that asks for offsets, topics and groups."""
    return AdminClient(**{**python_settings(kafka, "test"), "bootstrap_timeout_ms": 1_000})


def librdkafka(kafka: KafkaSection) -> Any:
    """Ask with the client that reads the log."""
    return ConfluentAdmin({**confluent_settings(kafka, "test"), "log_level": 0}).list_topics(timeout=1)


def by_hand(kafka: KafkaSection) -> Any:
    """Ask as the members of a rehearsal do."""
    host, _, port = kafka.bootstrap_servers.rpartition(":")
    with socket.create_connection((host, int(port)), timeout=5) as connection:
        return kafka_frames.ask(connection, b"\x00\x12\x00\x00\x00\x00\x00\x00\xff\xff")


@pytest.mark.parametrize("ask", [kafka_python, librdkafka, by_hand, refuse_unreachable])
def test_what_it_claims_is_not_believed(broker: FalseBroker, ask: Callable[[KafkaSection], Any]) -> None:
    """The connection is closed once the length is read; what came after it is not kept."""
    with suppress(KafkaError, KafkaException, OSError):
        ask(KafkaSection(bootstrap_servers=broker.servers))

    assert broker.sent
    assert max(broker.sent) < TAKEN


@pytest.mark.parametrize("tls", [False, True])
def test_a_long_answer_is_read_in_parts(tls: bool, tmp_path: Path) -> None:
    """All of it arrives, also what TLS has decrypted before a selector looks; no part is longer than it may be."""
    answer = bytes(range(256)) * (4 * MOST_AT_A_TIME // 256) + b"end"
    reading, writing = socket.socketpair()
    context = ssl._create_unverified_context()  # noqa: S323 - both ends are here
    their_context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)

    def send() -> None:
        with their_context.wrap_socket(writing, server_side=True) if tls else writing as connection:
            connection.sendall(answer)
            connection.recv(1)

    their_context.load_cert_chain(*Authority(tmp_path).issue("broker", "localhost"))
    sender = threading.Thread(target=send, daemon=True)
    sender.start()
    with context.wrap_socket(reading) if tls else reading as connection:
        connection.setblocking(False)
        found: list[bytes] = []
        while sum(map(len, found)) < len(answer):
            assert select.select([connection], [], [], 30)[0]
            part, error = _received(SimpleNamespace(_sock=connection))
            assert error is None
            found.append(part)
        connection.setblocking(True)
        connection.send(b"x")
    sender.join(30)

    assert answer == b"".join(found)
    assert max(map(len, found)) < MOST_AT_A_TIME + 2 * 64 * 1024
