"""Failures in a row of something that is tried again and again: logged when they begin and when they end."""

from collections.abc import Callable

import structlog

from streaming.base.errors import first_line


class Outage:
    """One of them; used by one thread.

    Args:
        log: gets `WHAT_unavailable` with the first failure, and `WHAT_available_again` with the next success.
        what: cannot be had meanwhile.
        clock_ms: the wall clock.

    Attributes:
        failures: how many in a row, up to now.
    """

    def __init__(self, log: structlog.stdlib.BoundLogger, what: str, clock_ms: Callable[[], int]) -> None:
        self.failures = 0
        self._log = log
        self._what = what
        self._clock_ms = clock_ms
        self._since_ms = 0

    def failed(self, error: Exception) -> None:
        """Count a failure."""
        if not self.failures:
            self._since_ms = self._clock_ms()
            self._log.warning(f"{self._what}_unavailable", reason=f"{type(error).__name__}: {first_line(error)}")
        self.failures += 1

    def succeeded(self) -> None:
        """End the outage, if there is one."""
        if self.failures:
            seconds = round((self._clock_ms() - self._since_ms) / 1_000, 1)
            self._log.info(f"{self._what}_available_again", after_seconds=seconds, failures=self.failures)
        self.failures = 0
