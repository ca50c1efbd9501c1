"""Requests and responses on a socket."""

import socket
import struct

import pytest

from streaming.base.kafka_frames import ask, receive, receive_response


def test_a_response_that_arrives_in_pieces_is_put_together() -> None:
    """A read may return less than was asked for."""
    ours, broker = socket.socketpair()
    with ours, broker:
        broker.sendall(struct.pack(">i", 5) + b"re")
        prefix = receive(ours, 4)
        broker.sendall(b"plyNEXT")

        assert b"reply" == receive_response(ours, prefix)


def test_a_request_goes_out_with_its_length() -> None:
    ours, broker = socket.socketpair()
    with ours, broker:
        broker.sendall(struct.pack(">i", 2) + b"ok")

        assert b"ok" == ask(ours, b"request")
        assert struct.pack(">i", 7) + b"request" == broker.recv(100)


@pytest.mark.parametrize("prefix", [b"HTTP", b"\xff\xff\xff\xff"])
def test_what_is_no_broker_is_not_waited_for(prefix: bytes) -> None:
    """Its first bytes would be a length of a gigabyte, or below zero."""
    ours, other = socket.socketpair()
    with ours, other, pytest.raises(ConnectionError, match="would be a response of"):
        receive_response(ours, prefix)


def test_a_connection_that_ends_is_an_error() -> None:
    ours, broker = socket.socketpair()
    broker.close()
    with ours, pytest.raises(ConnectionError, match="closes"):
        receive(ours, 1)
