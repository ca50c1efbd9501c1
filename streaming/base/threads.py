"""Threads in the background, those that check again and again, and the connection to brokers that they may ask over."""

import contextlib
import threading
from collections.abc import Callable
from typing import Final, Generic, Protocol, TypeVar

from streaming.base.logging_setup import get_logger, with_fields

_STOP_SECONDS: Final = 1.0

_log = get_logger("repeating")


class Closable(Protocol):
    """What a connection is to."""

    def close(self) -> None:
        """Let go of it; a call under way in another thread ends with an error."""
        ...


_Client = TypeVar("_Client", bound=Closable)


class Connection(Generic[_Client]):
    """A client that is made when it is first asked for, and again after it was dropped."""

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


class Background:
    """A thread that runs until it is stopped.

    Args:
        name: the thread's.
        run: what it does, until `stopping` is set.
        stop_seconds: how long to wait for its end, and again once it is interrupted; None for as long as it takes.
        interrupt: ends what it may be waiting for.

    Attributes:
        stopping: set when it is to end; what it waits with.
    """

    def __init__(
        self,
        name: str,
        run: Callable[[], object],
        *,
        stop_seconds: float | None = _STOP_SECONDS,
        interrupt: Callable[[], object] | None = None,
    ) -> None:
        self.stopping = threading.Event()
        self._stop_seconds = stop_seconds
        self._interrupt = interrupt
        self._what = run
        self._thread = threading.Thread(target=self._do, name=name, daemon=True)

    def start(self) -> None:
        """Begin; what it logs has the fields that are bound where it is begun."""
        self._what = with_fields(self._what)
        self._thread.start()

    def stop(self) -> None:
        """End the thread, even out of a question without an answer; one that never began is no thread to end."""
        self.stopping.set()
        self._join()
        if self._interrupt is not None:
            self._interrupt()
            self._join()

    @property
    def was_started(self) -> bool:
        """Whether it ever began."""
        return self._thread.ident is not None

    def is_alive(self) -> bool:
        """Whether it runs."""
        return self._thread.is_alive()

    def _do(self) -> None:
        self._what()

    def _join(self) -> None:
        if self._thread.is_alive():
            self._thread.join(self._stop_seconds)


class Repeating(Background):
    """A thread that checks again and again.

    Args:
        name: the thread's.
        every_seconds: between the end of one check and the beginning of the next, and before the first.
        check: what is done; one that fails is logged, and is not the last.
        interrupt: ends a check that is waiting for somebody's answer.
    """

    def __init__(
        self,
        name: str,
        every_seconds: float,
        check: Callable[[], object],
        interrupt: Callable[[], object] | None = None,
    ) -> None:
        super().__init__(name, self._run, interrupt=interrupt)
        self._every_seconds = every_seconds
        self._check = check

    def _run(self) -> None:
        while not self.stopping.wait(self._every_seconds):
            try:
                self._check()
            except Exception:  # noqa: BLE001 - one check that fails must not be the last
                _log.exception("look_failed", thread=self._thread.name)
