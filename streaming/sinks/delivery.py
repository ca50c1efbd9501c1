"""What leaves the spool, and how far it has come: a thread for each reader, which tries again until it succeeds."""

from collections.abc import Callable, Sequence
from typing import Final

from streaming.base.errors import first_line
from streaming.base.logging_setup import get_logger
from streaming.base.output_status import SinkState
from streaming.base.threads import Background
from streaming.sinks.queue import Spool, Spooled

LOOK_EVERY_SECONDS: Final = 0.1
RETRY_SECONDS: Final = (1.0, 2.0, 5.0, 10.0)
"""Waits after a failure; the last one repeats. A delivery starts over with the first."""
ENTRIES_AT_ONCE: Final = 1_000

_STOP_SECONDS: Final = 5.0

_log = get_logger("delivery")


class Delivery:
    """The thread of one reader: takes entries of the spool and hands them on, at least once, in their order.

    Args:
        spool: where from.
        reader: one of the spool's readers.
        deliver: takes entries and returns when they have arrived, telling how many were refused for good; what it
            raises is logged, and it is given the same entries again.
        pause_seconds: how long to wait after a delivery that took all there was.
    """

    def __init__(
        self,
        spool: Spool,
        reader: str,
        deliver: Callable[[Sequence[Spooled]], int | None],
        *,
        pause_seconds: float = 0.0,
    ) -> None:
        self._spool = spool
        self._reader = reader
        self._deliver = deliver
        self._pause_seconds = pause_seconds
        self._delivered = self._refused = 0
        self._failure: str | None = None
        self._thread = Background(f"delivery-{reader}", self._run, stop_seconds=_STOP_SECONDS)

    def start(self) -> None:
        """Begin to deliver."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread once what is under way has arrived or failed; what waits stays in the spool."""
        self._thread.stop()

    def state(self) -> SinkState:
        """How it is doing."""
        waiting = self._spool.waiting(self._reader)
        return SinkState(
            name=self._reader,
            waiting=waiting.entries,
            oldest_ms=waiting.oldest_ms,
            dropped=waiting.dropped + self._refused,
            delivered=self._delivered,
            failure=self._failure,
        )

    def _run(self) -> None:
        failures = 0
        while not self._thread.stopping.is_set():
            try:
                found = self._spool.read(self._reader, ENTRIES_AT_ONCE)
                if not found:
                    self._thread.stopping.wait(LOOK_EVERY_SECONDS)
                    continue
                refused = self._deliver(found) or 0
                self._spool.acknowledge(self._reader, found[-1].position)
            except Exception as error:  # noqa: BLE001 - whatever a library raises, the next try may succeed
                self._fail(error)
                self._thread.stopping.wait(RETRY_SECONDS[min(failures, len(RETRY_SECONDS) - 1)])
                failures += 1
            else:
                self._delivered += len(found) - refused
                self._refused += refused
                if self._failure is not None:
                    _log.info("delivers_again", sink=self._reader)
                failures, self._failure = 0, None
                if len(found) < ENTRIES_AT_ONCE:
                    self._thread.stopping.wait(self._pause_seconds)

    def _fail(self, error: Exception) -> None:
        # Without the file, whose name may be another one with each attempt.
        reason = first_line(error) if not isinstance(error, OSError) else error.strerror or first_line(error)
        if self._failure != reason:
            _log.warning("delivery_failed", sink=self._reader, reason=reason)
        self._failure = reason
