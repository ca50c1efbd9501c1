"""Who may call this process from the JVM: only one that knows the gateway's secret.

Spark's JVM calls Python over a port of its own (`foreachBatch`, query listeners). PySpark starts that server without a
secret, so that any local account could drop the listener or end the server with a few bytes. py4j can ask for the
secret that Python and the JVM share anyway, but only its one-gateway mode sends it; the mode with a JVM thread for each
Python thread (PYSPARK_PIN_THREAD) does not. Nothing here needs such threads.
"""

import os
import struct
import sys
from typing import Any, Final

from py4j.java_gateway import GatewayConnection

_PIN_THREAD: Final = "PYSPARK_PIN_THREAD"


def choose_mode() -> None:
    """Have the JVM that is started next send the secret. Before the start, as both sides read it then."""
    os.environ[_PIN_THREAD] = "false"


def ask_for_secret(gateway: Any) -> None:  # noqa: ANN401 - py4j has no types
    """Let the callback server, which Spark starts on first use, refuse who does not send the gateway's secret."""
    if os.environ.get(_PIN_THREAD) == "false":
        gateway.callback_server_parameters.auth_token = gateway.gateway_parameters.auth_token


def end_with_the_jvm(server: Any) -> None:  # noqa: ANN401 - as above
    """Let Spark's accumulator server take the end of its connection as what it is: the JVM has ended before it.

    PySpark prints a traceback then, in the midst of a stop; that a JVM is gone which should not be is reported anyway.
    """
    printed = server.handle_error

    def handle_error(request: object, client_address: object) -> None:
        if not isinstance(sys.exc_info()[1], EOFError | ConnectionError | struct.error):
            printed(request, client_address)

    server.handle_error = handle_error


def close_when_interrupted() -> None:
    """Let a call that Ctrl-C breaks off end with KeyboardInterrupt, and its connection with it.

    py4j asks the connection of either mode for what only the other mode's has, and ends with an AttributeError.
    """
    GatewayConnection.shutdown_socket = _shut


def _shut(connection: GatewayConnection, _remote_port: int, _local_port: int) -> None:
    connection.close(reset=True)
