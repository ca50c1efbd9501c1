"""What one connection may cost: time limits and numbers, below HTTP.

uvicorn waits for a request's head, and for a reader of an answer, as long as it takes; a few hundred clients that send
or read a byte now and then would keep everybody else out. So a connection has a time to say what it wants, an answer a
time in which some of it must be taken, and one address may not have all connections there are.

They are counted from when they are accepted, before TLS: a handshake that is not finished holds as much.

    all are taken, or all of an address     the new connection
    some of them have asked nothing yet     takes the place of the oldest of these
    none of them                            is closed

Who asks and is refused, for want of credentials say, has asked nothing yet.
"""

import asyncio
import contextlib
import ipaddress
import re
import socket
import time
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, Final, Protocol, Self

import h11
from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

LONGEST_HEAD: Final = 128 * 1024
"""Bytes of a request's path and headers. What comes in one piece is parsed whole, however long it is."""

MOST_LINES: Final = 200
"""Of a head: it may be short and have tens of thousands, which take a tenth of a second before anyone is asked who they
are."""

HEAD_SECONDS: Final = 10.0
"""From a connection's beginning, or the end of the last answer, to the end of a request."""

READ_SECONDS: Final = 30.0
"""How long a client may take to read `READ_BYTES` of an answer, or all that is left of it."""

READ_BYTES: Final = 262_144

HANDSHAKE_SECONDS: Final = 3.0
"""How long a TLS handshake may take, and the farewell."""

KERNEL_BYTES: Final = 262_144
"""What the machine itself keeps of an answer: by default 4 MB for each connection."""

MOST_CONNECTIONS: Final = 512

MOST_OF_ONE_ADDRESS: Final = 384
"""A quarter is left for everybody else. Of IPv6 a network of 64 bits is one address: a caller has all of it."""

CONNECTION: Final = "group_monitor.connection"
"""Key of a request's scope: the `Client` who has asked."""

_BLANK_LINE: Final = re.compile(rb"\n\r?\n")

_ACCEPTED_IN_A_ROW: Final = 16
"""So many connections are accepted before those that are there have their turn."""

_WAITING: Final = 2_048
"""So many may wait to be accepted."""

_REFUSED_AT_ONCE: Final = 100
"""So many connections are closed in a row before others have their turn."""


class Client(Protocol):
    """Who has asked, as those see it who answer."""

    gone: bool
    """Whether the connection has ended."""

    def let_in(self) -> None:
        """What was asked is answered: the connection is not closed for another one."""

    def let_go(self) -> None:
        """End the connection, whatever was not sent yet."""


class _NoClient:
    """A client without a connection, as in tests."""

    gone = False

    def let_in(self) -> None:
        """Nothing."""

    def let_go(self) -> None:
        """Nothing."""


NO_CLIENT: Final = _NoClient()


@dataclass(frozen=True, slots=True)
class Most:
    """How many connections there may be, in all and of one address; by default those of page, metrics and API."""

    in_all: int | None = None
    of_one_address: int | None = None


class Connections:
    """The connections of one server, by who opened them; used by its thread, but for `sweep`."""

    def __init__(self, most: Most | None = None) -> None:
        self._most = most or Most()
        self._held: dict[int, _Connection] = {}
        self._silent: dict[int, _Connection] = {}
        """Of these, those that have asked nothing yet, the oldest first."""
        self._of: Counter[str] = Counter()

    def takes(self, connection: "_Connection") -> bool:
        """Whether a new one is kept, perhaps in the place of another."""
        address = connection.address
        if self._of[address] >= (self._most.of_one_address or MOST_OF_ONE_ADDRESS) and not self._let_go(address):
            return False
        if len(self._held) >= (self._most.in_all or MOST_CONNECTIONS) and not self._let_go():
            return False
        number = connection.fileno()
        self._held[number] = self._silent[number] = connection
        self._of[address] += 1
        return True

    def asked(self, number: int) -> None:
        """The connection with this descriptor has made a request that is answered."""
        self._silent.pop(number, None)

    def closed(self, connection: "_Connection") -> None:
        """It is there no more."""
        number = connection.fileno()
        if self._held.get(number) is connection:
            self._forget(number)

    def sweep(self) -> None:
        """End the connections whose clients do not read, to be called every few seconds.

        Here and not in HTTP's protocol: what is closed with something left to send waits for its reader without one.
        """
        for connection in list(self._held.values()):
            if connection.is_stuck():
                connection.end()

    def _let_go(self, address: str | None = None) -> bool:
        for number, connection in self._silent.items():
            if address in (None, connection.address):
                self._forget(number)
                connection.end()
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
        for _ in range(_REFUSED_AT_ONCE):
            accepted, peer = super().accept()
            connection = _Connection(accepted, peer, self._connections)
            if self._connections.takes(connection):
                return connection, peer
            connection.close()
        raise BlockingIOError


class _Connection(socket.socket):
    """A connection that says when it is closed, and knows how long its client has not read."""

    def __init__(self, accepted: socket.socket, peer: Any, connections: Connections) -> None:  # noqa: ANN401 - of any family
        super().__init__(accepted.family, accepted.type, accepted.proto, fileno=accepted.detach())
        self.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, KERNEL_BYTES)
        self.address = who(str(peer[0]))
        self._connections = connections
        self._waits_since: float | None = None
        self._taken = 0
        """Bytes since then."""

    def send(self, data: Any, *flags: int) -> int:  # noqa: ANN401 - any buffer, as its base
        """See the base."""
        try:
            sent = super().send(data, *flags)
        except BlockingIOError:
            self._sent(0, all_of_it=False)
            raise
        self._sent(sent, all_of_it=sent == len(data))
        return sent

    def sendmsg(self, buffers: Any, *more: Any) -> int:  # noqa: ANN401 - as its base
        """See the base."""
        held = list(buffers)
        try:
            sent = super().sendmsg(held, *more)
        except BlockingIOError:
            self._sent(0, all_of_it=False)
            raise
        self._sent(sent, all_of_it=sent == sum(map(len, held)))
        return sent

    def is_stuck(self) -> bool:
        """Whether its client takes too little of what is sent."""
        since = self._waits_since
        return since is not None and time.monotonic() - since > READ_SECONDS

    def end(self) -> None:
        """Let its transport find that it has ended, and close it."""
        with contextlib.suppress(OSError):
            self.shutdown(socket.SHUT_RDWR)

    def _sent(self, taken: int, *, all_of_it: bool) -> None:
        self._taken += taken
        if all_of_it:
            self._waits_since, self._taken = None, 0
        elif self._waits_since is None or self._taken >= READ_BYTES:
            self._waits_since, self._taken = time.monotonic(), 0

    def close(self) -> None:
        """See the base."""
        self._connections.closed(self)
        super().close()


@lru_cache(4_096)
def who(address: str) -> str:
    """Whom an address stands for; what is none, for itself."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(found, ipaddress.IPv4Address):
        return str(found)
    return str(found.ipv4_mapped or ipaddress.ip_network((int(found) >> 64 << 64, 64)))


class TimedProtocol(H11Protocol):
    """uvicorn's, with an end to waiting; each request has who asked it (`Client`)."""

    counted: ClassVar[Connections]
    gone = False
    _waiting: asyncio.TimerHandle | None = None
    _number = -1
    _ahead = 0
    """Bytes that came before the answer to what came before them."""
    _lines = 0
    """Of the head that is read."""

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
        transport.set_write_buffer_limits(HIGH_WATER_LIMIT)
        self._wait()

    def data_received(self, data: bytes) -> None:
        """Take what came; the limit goes on unless it was the rest of a request."""
        answering = self._is_answering()
        if self.conn.their_state is h11.IDLE and self._has_many_lines(data):
            self.send_400_response(f"found more than {MOST_LINES} lines, accepted: fewer")
            return
        super().data_received(data)
        self._ahead = self._ahead + len(data) if answering else 0
        if self._ahead > LONGEST_HEAD:
            self.transport.abort()
        self._wait()

    def eof_received(self) -> None:
        """The client sends no more: it is taken to be gone, and the connection ends."""
        self.gone = True
        super().eof_received()

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
        self._ahead = 0
        if self._has_many_lines(self.conn.trailing_data[0]):
            self.transport.close()
        super().on_response_complete()
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing is waited for any more."""
        self.gone = True
        self._waiting = _cancel(self._waiting)
        super().connection_lost(exc)

    def let_in(self) -> None:
        """See `Client`."""
        self.counted.asked(self._number)

    def let_go(self) -> None:
        """See `Client`."""
        self.transport.abort()

    def _has_many_lines(self, data: bytes) -> bool:
        """Whether there are too many lines in the head that goes on with this."""
        end = _BLANK_LINE.search(data)
        self._lines += data.count(b"\n", 0, len(data) if end is None else end.start())
        return self._lines > MOST_LINES

    def _is_answering(self) -> bool:
        asked: RequestResponseCycle | None = self.cycle  # as above
        return asked is not None and not asked.response_complete

    def _wait(self) -> None:
        """Start the limit where the client's part is not done, and end it where it is."""
        if self.conn.their_state is not h11.IDLE:
            self._lines = 0
        if self._is_answering():
            self.scope.setdefault(CONNECTION, self)  # type: ignore[typeddict-item]  # of our own
            # Reading goes on, or it would not be seen that the client is gone.
            self.flow.resume_reading()
        if self.conn.their_state not in (h11.IDLE, h11.SEND_BODY) or self.transport.is_closing():
            self._waiting = _cancel(self._waiting)
        elif self._waiting is None:
            self._waiting = self.loop.call_later(HEAD_SECONDS, self.transport.abort)


class Loop(asyncio.SelectorEventLoop):
    """The event loop of the server: who does not finish a handshake is let go."""

    async def create_server(self, *args: Any, **options: Any) -> asyncio.Server:  # noqa: ANN401 - as its base
        """See the base."""
        if options.get("ssl") is not None:
            options.setdefault("ssl_handshake_timeout", HANDSHAKE_SECONDS)
            options.setdefault("ssl_shutdown_timeout", HANDSHAKE_SECONDS)
        # The base accepts as many in a row as the machine is to keep waiting; each has its handshake begun before any
        # of those that it takes the place of is closed.
        waiting = options.pop("backlog", _WAITING)
        server = await super().create_server(*args, backlog=_ACCEPTED_IN_A_ROW, **options)
        if options.get("sock") is not None:
            options["sock"].listen(waiting)
        return server


def _cancel(timer: asyncio.TimerHandle | None) -> asyncio.TimerHandle | None:
    """End it; what is left of it is None."""
    if timer is not None:
        timer.cancel()
    return None
