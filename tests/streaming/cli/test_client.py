"""Asking a running monitor: what goes where."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from streaming.base.errors import CannotTellError
from streaming.cli.client import MonitorClient

TOKEN = "t0ken-of-the-test"  # noqa: S105 - of servers that live as long as the test


class _Sending(BaseHTTPRequestHandler):
    """Sends on what it is asked for to `/`, and answers everything else; notes the credentials that came."""

    to = ""
    came: list[str | None]

    def do_GET(self) -> None:
        self.came.append(self.headers.get("Authorization"))
        if self.to and not self.path.startswith("/there"):
            self.send_response(307)
            self.send_header("Location", f"{self.to}/there")
            self.end_headers()
            return
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b'{"groups": []}')

    def log_message(self, *_: object) -> None:
        """Nothing."""


@pytest.fixture
def two() -> Iterator[list[tuple[str, type[_Sending]]]]:
    """Two servers: of each its address, and its handler."""
    servers = []
    for _ in range(2):
        handler = type("Handler", (_Sending,), {"came": []})
        servers.append((HTTPServer(("127.0.0.1", 0), handler), handler))
    for server, _ in servers:
        threading.Thread(target=server.serve_forever, daemon=True).start()
    yield [(f"http://127.0.0.1:{server.server_port}", handler) for server, handler in servers]
    for server, _ in servers:
        server.shutdown()
        server.server_close()


def test_credentials_go_to_no_other_origin(two: list[tuple[str, type[_Sending]]]) -> None:
    """Who answers at the address may send on to another port or host: that is said, and nothing is sent there."""
    (first, sending), (other, receiving) = two
    sending.to = other

    with pytest.raises(CannotTellError) as error:
        MonitorClient(first, environment={"GROUP_MONITOR_TOKEN": TOKEN}).groups()

    assert f"--url: found {first} sending on to {other}, accepted: the address of the monitor itself" == str(
        error.value
    )
    assert ([f"Bearer {TOKEN}"], []) == (sending.came, receiving.came)


def test_the_same_origin_may_send_on(two: list[tuple[str, type[_Sending]]]) -> None:
    """As a proxy does for another path."""
    (first, sending), _ = two
    sending.to = first

    assert [] == MonitorClient(first, environment={"GROUP_MONITOR_TOKEN": TOKEN}).groups()
    assert [f"Bearer {TOKEN}"] * 2 == sending.came
