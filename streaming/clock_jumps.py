"""When the machine's clock was set, or the machine slept: what is on the board is then older than it looks.

A wall clock that jumps makes everything look overdue at once, or nothing for a while; which of the two readings was
right cannot be told. A machine that was suspended has jumped too, and has read nothing meanwhile. In both cases the
stream needs a moment to read on, so after a jump nothing is told by the clock for `SETTLE_SECONDS`; what is overdue
then is so by the clock as it is.
"""

import time
from collections.abc import Callable
from typing import Final

from streaming.logs import get_logger

JUMP_MS: Final = 10_000
"""More than two looks can be late by on a busy machine, whose other clock goes on as well."""

SETTLE_SECONDS: Final = 60.0

_log = get_logger("clock")


class ClockJumps:
    """Compares the wall clock with one that nobody can set; used by one thread.

    Args:
        elapsed_seconds: goes on while the machine runs, whatever is done to its wall clock.
    """

    def __init__(self, elapsed_seconds: Callable[[], float] = time.monotonic) -> None:
        self._elapsed_seconds = elapsed_seconds
        self._last: tuple[int, float] | None = None
        self._settled_at = -1.0

    def settling(self, now_ms: int) -> bool:
        """Take a reading of the wall clock; tells whether it jumped a short while ago."""
        elapsed = self._elapsed_seconds()
        if self._last is not None:
            last_ms, last_elapsed = self._last
            jumped_ms = now_ms - last_ms - 1000 * (elapsed - last_elapsed)
            if abs(jumped_ms) > JUMP_MS:
                _log.warning("clock_jumped", seconds=round(jumped_ms / 1000))
                self._settled_at = elapsed + SETTLE_SECONDS
        self._last = now_ms, elapsed
        return elapsed < self._settled_at
