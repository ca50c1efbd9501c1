"""Ports of embedded brokers."""

import socket

import pytest

from streaming.demo import embedded_broker
from streaming.demo.embedded_broker import HOST, PORTS, _free_ports


def test_ports_are_free_and_different(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that is taken is left out."""
    with socket.create_server((HOST, 0)) as taken:
        monkeypatch.setattr(embedded_broker, "PORTS", [taken.getsockname()[1], *PORTS[:50]])
        monkeypatch.setattr("random.sample", lambda of, count: of[:count])
        found = _free_ports(3)

    assert 3 == len(set(found))
    assert set(found) <= {*PORTS[:50]}
