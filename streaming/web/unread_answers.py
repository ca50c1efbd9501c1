"""What is held for clients until they have taken it: no answer is copied whole for each, and all of it has a bound.

An answer goes out in slices, each once the former one is taken, so that a connection holds a slice, whatever the
answer's size. The answers themselves are counted: pages of metrics, which several read, and bodies. Where they are too
much, the one of which nothing has been taken for longest is given up, and its connections are closed. Who reads at all
is not the one.
"""

from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from streaming.web.connection_limits import CONNECTION, NO_CLIENT

SLICE: Final = 262_144
"""Bytes that are handed to a connection at once."""

MOST_UNREAD: Final = 256 * 1024 * 1024
"""Bytes of all answers that are not taken yet. One alone may be larger."""


class UnreadAnswers:
    """The answers of one server; used by its thread."""

    def __init__(self) -> None:
        self._held: OrderedDict[object, tuple[int, Callable[[], None]]] = OrderedDict()
        """By answer its size and what gives it up; that of which something was taken last is the last."""
        self.size = 0

    def grows(self, answer: object, size: int, give_up: Callable[[], None]) -> None:
        """So many bytes of an answer are held, more than before perhaps; others are given up where it is too much."""
        held, _ = self._held.get(answer, (0, give_up))
        self._held[answer] = (held + size, give_up)
        self.size += size
        while self.size > MOST_UNREAD and len(self._held) > 1:
            oldest = next(of for of in self._held if of is not answer)
            _, let_go = self._held[oldest]
            self.done(oldest)
            let_go()

    def taken(self, answer: object) -> None:
        """Something of it has been taken."""
        if answer in self._held:
            self._held.move_to_end(answer)

    def done(self, answer: object) -> None:
        """It is not held any more."""
        size, _ = self._held.pop(answer, (0, None))
        self.size -= size


class InSlices:
    """Wraps an ASGI application: large bodies are sent in slices, and counted while they are."""

    def __init__(self, app: ASGIApp, unread: UnreadAnswers) -> None:
        self._app = app
        self._unread = unread

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See the class."""
        connection = scope.get(CONNECTION, NO_CLIENT)
        answer = object()

        async def send_in_slices(message: Message) -> None:
            body = message.get("body", b"")
            if len(body) <= SLICE or scope["method"] == "HEAD":
                await send(message)
                return
            self._unread.grows(answer, len(body), connection.let_go)
            try:
                for at in range(0, len(body), SLICE):
                    if connection.gone:
                        return
                    more = at + SLICE < len(body) or message.get("more_body", False)
                    await send({**message, "body": bytes(body[at : at + SLICE]), "more_body": more})
                    self._unread.taken(answer)
            finally:
                self._unread.done(answer)

        await self._app(scope, receive, send_in_slices)
