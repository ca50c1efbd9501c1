"""How long anything of ours waits for the JVM: it may not answer, and descriptors may run out on either side.

    wait                                              ends
    for the answer to a call                          after `ANSWER_SECONDS`, with an error
    to connect for the rows of a micro-batch          after 30 s, with an error (query/row_socket.py)
    for these rows, and for the JVM's next call       with the query, which has a deadline of its own (board/stall.py)
    for a connection of the JVM to be taken           once there is a descriptor again

py4j itself waits for an answer without end, and takes no connection any more after one that it could not take.
"""

import select
import socket
import time
from typing import Any, Final

from py4j.clientserver import ClientServer
from py4j.java_gateway import CallbackServer, JavaGateway, quiet_close, quiet_shutdown

ANSWER_SECONDS: Final = 300.0
"""The longest calls load plans, ask a file system that is elsewhere, or collect garbage: seconds."""

_AGAIN_SECONDS: Final = 0.5


def bound(gateway: Any, seconds: float = ANSWER_SECONDS) -> None:  # noqa: ANN401 - py4j has no types
    """Let no answer to a call be waited for longer, and have the callback server outlive what it cannot take.

    A gateway of the other mode (`callbacks.py`), as spark-submit makes it where that is asked for, stays as it is.
    """
    if not isinstance(gateway, JavaGateway) or isinstance(gateway, ClientServer):
        return
    client = gateway._gateway_client  # noqa: SLF001 - the connections that are open already
    gateway.gateway_parameters.read_timeout = seconds
    for connection in list(client.deque):
        connection.socket.settimeout(seconds)
    pool = gateway.gateway_property.pool
    gateway._create_callback_server = lambda parameters: SteadfastServer(  # noqa: SLF001 - where py4j makes its own
        pool, client, callback_server_parameters=parameters
    )


class SteadfastServer(CallbackServer):  # type: ignore[misc]  # py4j has no types
    """Takes the JVM's connections as its base does, and goes on after one that it could not take."""

    def run(self) -> None:
        """Listen until shut down."""
        self.server_socket.listen(5)
        while not self.is_shutdown:
            try:
                # Unlike the base's select(), of descriptors of any number.
                poll = select.poll()
                poll.register(self.server_socket, select.POLLIN)
                if poll.poll(self.callback_server_parameters.accept_timeout * 1_000) and not self.is_shutdown:
                    self._take(*self.server_socket.accept())
            except (OSError, ValueError, AttributeError):
                # It is shut down by closing the socket; else there is no descriptor, and the connection waits.
                time.sleep(0 if self.is_shutdown else _AGAIN_SECONDS)

    def _take(self, connected: socket.socket, _address: object) -> None:
        connection = self._create_connection(connected, connected.makefile("rb"))
        with self.lock:
            if self.is_shutdown:
                quiet_shutdown(connected)
                quiet_close(connected)
                return
            self.connections.add(connection)
            connection.start()
