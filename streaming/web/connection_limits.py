"""What one connection may cost: time limits and numbers, below HTTP.

uvicorn waits for a request's head, and for a reader of an answer, as long as it takes; a few hundred clients that send
or read a byte now and then would keep everybody else out. So a connection has a time to say what it wants, an answer a
time in which some of it must be taken, and one address may not have all connections there are.

They are counted from when they are accepted, before TLS: a handshake that is not finished holds as much.

    all are taken, or all of an address     the new connection
    some of them have asked nothing yet     takes the place of the oldest of these
    none of them                            is closed
"""

import asyncio
import ipaddress
import socket
from collections import Counter
from typing import Any, ClassVar, Final, Self

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

HEAD_SECONDS: Final = 10.0
"""From a connection's beginning, or the end of the last answer, to the end of a request."""

READ_SECONDS: Final = 30.0
"""How long a client may take nothing of an answer that waits for it."""

HANDSHAKE_SECONDS: Final = 3.0
"""How long a TLS handshake may take."""

MOST_CONNECTIONS: Final = 512

MOST_OF_ONE_ADDRESS: Final = 384
"""A quarter is left for everybody else. Of IPv6 a network of 64 bits is one address: a caller has all of it."""


class Connections:
    """The connections of one server, by who opened them; used by its thread."""

    def __init__(self) -> None:
        self._held: dict[int, _Connection] = {}
        self._silent: dict[int, _Connection] = {}
        """Of these, those that have asked nothing yet, the oldest first."""
        self._of: Counter[str] = Counter()

    def takes(self, connection: "_Connection") -> bool:
        """Whether a new one is kept, perhaps in the place of another."""
        address = connection.address
        if self._of[address] >= MOST_OF_ONE_ADDRESS and not self._let_go(address):
            return False
        if len(self._held) >= MOST_CONNECTIONS and not self._let_go():
            return False
        number = connection.fileno()
        self._held[number] = self._silent[number] = connection
        self._of[address] += 1
        return True

    def asked(self, number: int) -> None:
        """The connection with this descriptor has made a request."""
        self._silent.pop(number, None)

    def closed(self, connection: "_Connection") -> None:
        """It is there no more."""
        number = connection.fileno()
        if self._held.get(number) is connection:
            self._forget(number)

    def _let_go(self, address: str | None = None) -> bool:
        for number, connection in self._silent.items():
            if address in (None, connection.address):
                self._forget(number)
                # Its transport finds that it has ended, and closes it.
                connection.shutdown(socket.SHUT_RDWR)
                return True
        return False

    def _forget(self, number: int) -> None:
        connection = self._held.pop(number)
        self._silent.pop(number, None)
        self._of[connection.address] -= 1
        if not self._of[connection.address]:
            del self._of[connection.address]


class Listener(socket.socket):
    """A listening socket whose connections are counted; those that are too many are not accepted.

    Args:
        listening: the socket, which this one takes over.
        connections: counts them.
    """

    def __init__(self, listening: socket.socket, connections: Connections) -> None:
        super().__init__(listening.family, listening.type, listening.proto, fileno=listening.detach())
        self._connections = connections

    def accept(self) -> tuple[socket.socket, Any]:
        """The next connection that is kept; raises OSError where there is none."""
        while True:
            accepted, peer = super().accept()
            connection = _Connection(accepted, peer, self._connections)
            if self._connections.takes(connection):
                return connection, peer
            connection.close()


class _Connection(socket.socket):
    """A connection that says when it is closed."""

    def __init__(self, accepted: socket.socket, peer: Any, connections: Connections) -> None:  # noqa: ANN401 - of any family
        super().__init__(accepted.family, accepted.type, accepted.proto, fileno=accepted.detach())
        self.address = _who(str(peer[0]))
        self._connections = connections

    def close(self) -> None:
        """See the base."""
        self._connections.closed(self)
        super().close()


def _who(address: str) -> str:
    """Whom an address stands for."""
    found = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(found, ipaddress.IPv4Address):
        return str(found)
    return str(found.ipv4_mapped or ipaddress.ip_network((int(found) >> 64 << 64, 64)))


class TimedProtocol(H11Protocol):
    """uvicorn's, with an end to waiting."""

    counted: ClassVar[Connections]
    _waiting: asyncio.TimerHandle | None = None
    _unread: asyncio.TimerHandle | None = None
    _number = -1

    @classmethod
    def of(cls, connections: Connections) -> type[Self]:
        """The same for a server that counts these connections."""
        return type(cls.__name__, (cls,), {"counted": connections})

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as its base declares it
        """Begin to wait for a request."""
        super().connection_made(transport)
        self._number = transport.get_extra_info("socket").fileno()
        # asyncio sets it on sockets it has made itself. Without it the second part of an answer waits 40 ms for the
        # client to say that it has the first.
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._wait()

    def data_received(self, data: bytes) -> None:
        """Take what came; the limit goes on unless it was the rest of a request."""
        super().data_received(data)
        self._wait()

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no HTTP: in words if nothing is answered yet, by closing otherwise.

        Its base speaks even where an answer has begun, and what was asked then speaks after it: each a traceback.
        """
        asked: RequestResponseCycle | None = self.cycle  # none before the first request, whatever its base declares
        if asked is not None and not asked.response_complete:
            asked.disconnected = True
            asked.message_event.set()
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            super().send_400_response(msg)
        else:
            self.transport.close()

    def on_response_complete(self) -> None:
        """Begin to wait for the next request."""
        super().on_response_complete()
        self._wait()

    def pause_writing(self) -> None:
        """The client reads slower than we write."""
        super().pause_writing()
        if self._unread is None:
            self._unread = self.loop.call_later(READ_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        """It has taken most of it."""
        super().resume_writing()
        self._unread = _cancel(self._unread)

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing is waited for any more."""
        self._waiting, self._unread = _cancel(self._waiting), _cancel(self._unread)
        super().connection_lost(exc)

    def _wait(self) -> None:
        """Start the limit where the client's part is not done, and end it where it is."""
        if self.conn.their_state not in (h11.IDLE, h11.SEND_BODY) or self.transport.is_closing():
            self._waiting = _cancel(self._waiting)
            self.counted.asked(self._number)
        elif self._waiting is None:
            self._waiting = self.loop.call_later(HEAD_SECONDS, self.transport.abort)


class Loop(asyncio.SelectorEventLoop):
    """The event loop of the server: who does not finish a handshake is let go."""

    async def create_server(self, *args: Any, **options: Any) -> asyncio.Server:  # noqa: ANN401 - as its base
        """See the base."""
        if options.get("ssl") is not None:
            options.setdefault("ssl_handshake_timeout", HANDSHAKE_SECONDS)
        return await super().create_server(*args, **options)


def _cancel(timer: asyncio.TimerHandle | None) -> asyncio.TimerHandle | None:
    """End it; what is left of it is None."""
    if timer is not None:
        timer.cancel()
    return None
