"""A thread that looks again and again, and the connection to brokers that it may ask over."""

import contextlib
import threading
from collections.abc import Callable
from typing import Final, Generic, Protocol, TypeVar

from streaming.logs import get_logger

_STOP_SECONDS: Final = 1.0

_log = get_logger("repeating")


class Closable(Protocol):
    """What a connection is to."""

    def close(self) -> None:
        """Let go of it; a call under way in another thread ends with an error."""
        ...


_Client = TypeVar("_Client", bound=Closable)


class Connection(Generic[_Client]):
    """A client that is made when it is first asked for, and anew after it was dropped."""

    def __init__(self, connect: Callable[[], _Client]) -> None:
        self._connect = connect
        self._client: _Client | None = None

    @property
    def client(self) -> _Client:
        """The client. Raises what making it raises."""
        if self._client is None:
            self._client = self._connect()
        return self._client

    def drop(self) -> None:
        """Close the client, if there is one."""
        client, self._client = self._client, None
        if client is not None:
            with contextlib.suppress(Exception):
                client.close()


class Repeating:
    """The thread.

    Args:
        name: the thread's.
        every_seconds: between the end of one look and the beginning of the next, and before the first.
        look: what is done; one that fails is logged, and is not the last.
        interrupt: ends a look that is waiting for somebody's answer.
    """

    def __init__(
        self,
        name: str,
        every_seconds: float,
        look: Callable[[], object],
        interrupt: Callable[[], object] = lambda: None,
    ) -> None:
        self._every_seconds = every_seconds
        self._look = look
        self._interrupt = interrupt
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread, even out of a question that nobody answers."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(_STOP_SECONDS)
        self._interrupt()
        if self._thread.is_alive():
            self._thread.join(_STOP_SECONDS)

    def _run(self) -> None:
        while not self._stopping.wait(self._every_seconds):
            try:
                self._look()
            except Exception:  # noqa: BLE001 - one look that fails must not be the last
                _log.exception("look_failed", thread=self._thread.name)
