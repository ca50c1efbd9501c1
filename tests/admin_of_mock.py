"""kafka-python's requests to the broker that librdkafka plays, which kafka-python itself takes for none."""

import socket
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Final

from kafka.errors import NodeNotReadyError
from kafka.protocol.consumer import FetchResponse

from streaming.base import kafka_frames

FLEXIBLE: Final = 12
"""The first version of Fetch with tagged fields."""


@dataclass
class AdminOfMock:
    """What stands in the place of kafka-python's connections, which the mock is no broker to: requests by hand."""

    servers: str
    version: int
    closed: int = 0

    def asking(self, request: str) -> AbstractContextManager[None]:
        assert "Fetch" == request
        return nullcontext()

    def send(self, request: Any, broker: int) -> Any:
        if broker != 1:
            raise NodeNotReadyError
        host, _, port = self.servers.partition(":")
        request.with_header(correlation_id=1, client_id="tested")
        with socket.create_connection((host, int(port)), timeout=10) as connection:
            answer = kafka_frames.ask(connection, request.encode(version=self.version, header=True))
        # Correlation id, and from the first flexible version on a tagged section.
        return FetchResponse.decode(answer[5 if self.version >= FLEXIBLE else 4 :], version=self.version)

    def close(self) -> None:
        self.closed += 1
