"""What waits for the JVM ends: a call without an answer, and a connection that could not be taken."""

import errno
import socket
import threading
from collections.abc import Iterator
from typing import Any, Final

import pytest
from py4j.java_gateway import CallbackServerParameters, GatewayParameters, JavaGateway
from py4j.protocol import Py4JError

from streaming.spark import deadlines

PATIENCE_SECONDS: Final = 60


@pytest.fixture
def silent_jvm() -> Iterator[int]:
    """The port of one that takes connections and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def test_a_call_without_an_answer_is_an_error(silent_jvm: int) -> None:
    """As any other error of Spark, for which the query is started again: the JVM is there."""
    gateway = JavaGateway(gateway_parameters=GatewayParameters(port=silent_jvm, enable_memory_management=False))
    deadlines.bound(gateway, 0.1)

    with pytest.raises(Py4JError) as error:
        gateway.jvm.System.gc()
    assert isinstance(error.value, Py4JError)


def test_connections_that_are_open_already_have_the_deadline_too(silent_jvm: int) -> None:
    """py4j keeps them for the next call."""
    gateway = JavaGateway(gateway_parameters=GatewayParameters(port=silent_jvm, enable_memory_management=False))
    client: Any = gateway._gateway_client
    connection = client._get_connection()
    client._give_back_connection(connection)
    deadlines.bound(gateway, 7.0)

    assert 7.0 == connection.socket.gettimeout()
    gateway.close()


class Pool(dict[str, Any]):
    """What the JVM may call."""


class Called:
    """A function of ours."""

    def __init__(self) -> None:
        self.has_been = threading.Event()

    def call(self) -> None:
        self.has_been.set()


def test_a_connection_that_could_not_be_taken_is_taken_later() -> None:
    """Out of descriptors, py4j's own server ended with the first: the JVM then waited without end for all others."""
    called = Called()
    parameters = CallbackServerParameters(port=0, daemonize=True, daemonize_connections=True)
    server: Any = deadlines.SteadfastServer(Pool(p0=called), None, callback_server_parameters=parameters)
    failed = threading.Event()
    server.start()
    listening = server.server_socket
    listening.listen(5)  # as its thread does, which may not have come to it

    class Full:
        """Its socket, while there is no descriptor left."""

        def accept(self) -> Any:
            if not failed.is_set():
                failed.set()
                raise OSError(errno.EMFILE, "Too many open files")
            return listening.accept()

        def __getattr__(self, name: str) -> Any:
            return getattr(listening, name)

    server.server_socket = Full()
    with socket.create_connection(("127.0.0.1", server.get_listening_port()), PATIENCE_SECONDS) as jvm:
        jvm.sendall(b"c\np0\ncall\ne\n")
        answer = jvm.recv(64)

    assert (True, True) == (failed.is_set(), called.has_been.is_set())
    assert answer.startswith(b"!y")
    server.shutdown()
    assert server.thread is None
