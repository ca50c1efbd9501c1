"""How much memory this process has, and when what it needed for a while may be returned."""

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

GROWN_BYTES: Final = 32 * 1024 * 1024
"""So much more than is usual was needed for something: a long log, names of many kilobytes, many connections."""

CALM_SECONDS: Final = 10.0
"""After it last grew: to return memory takes a moment, so not between two of what needs it."""

HARDLY_BYTES: Final = 1024 * 1024
"""No growth: between one look and the next memory goes up and down by so much."""

_MEMORY: Final = Path("/proc/self/statm")
_PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")


def resident_bytes() -> int:
    """Memory of this process; 0 where the system does not tell."""
    try:
        return int(_MEMORY.read_text(encoding="ascii").split()[1]) * _PAGE_BYTES
    except (OSError, ValueError):
        return 0


class GrownMemory:
    """Notices that a process has more memory than usual, and no longer grows; used by one thread.

    Args:
        resident: how much it has, in bytes.
        elapsed_seconds: a clock that cannot be set.
    """

    def __init__(
        self, resident: Callable[[], int] = resident_bytes, elapsed_seconds: Callable[[], float] = time.monotonic
    ) -> None:
        self._resident = resident
        self._elapsed_seconds = elapsed_seconds
        self._usual = self._former = resident()
        self._grown_at = elapsed_seconds()

    def is_due(self) -> bool:
        """Whether it is time to return some; to be asked now and then."""
        resident, now = self._resident(), self._elapsed_seconds()
        if resident > self._former + HARDLY_BYTES:
            self._grown_at = now
        self._former = resident
        self._usual = min(self._usual, resident)
        return resident > self._usual + GROWN_BYTES and now - self._grown_at >= CALM_SECONDS

    def returned(self) -> None:
        """It was returned: what is left is in use."""
        self._usual = self._former = self._resident()
