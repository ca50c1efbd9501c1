"""What one connection may cost: time limits and numbers, below HTTP.

uvicorn waits for a request's head, and for a reader of an answer, as long as it takes; a few hundred clients that send
or read a byte now and then would keep everybody else out. So a connection has a time to say what it wants, an answer a
time in which some of it must be taken, and one address may not have all connections there are.
"""

import asyncio
import socket
from typing import Any, Final

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

HEAD_SECONDS: Final = 10.0
"""From a connection's beginning, or the end of the last answer, to the end of a request."""

READ_SECONDS: Final = 30.0
"""How long a client may take nothing of an answer that waits for it."""

HANDSHAKE_SECONDS: Final = 10.0
"""How long a TLS handshake may take."""

MOST_CONNECTIONS: Final = 512
"""From then on a request is answered 503."""

MOST_OF_ONE_ADDRESS: Final = 384
"""Beyond that a connection is closed at once; a quarter is left for everybody else."""

_MOST_SOCKETS: Final = MOST_CONNECTIONS + 128
"""Beyond that even a 503 is too much."""


class TimedProtocol(H11Protocol):
    """uvicorn's, with an end to waiting."""

    _waiting: asyncio.TimerHandle | None = None
    _unread: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as its base declares it
        """Count, and begin to wait for a request."""
        super().connection_made(transport)
        hosts = [(getattr(other, "client", None) or (None,))[0] for other in self.connections]
        if hosts.count((self.client or (None,))[0]) > MOST_OF_ONE_ADDRESS or len(hosts) > _MOST_SOCKETS:
            transport.abort()
            return
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
