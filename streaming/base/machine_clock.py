"""A clock that the processes of one machine share, and that goes on while it sleeps."""

import socket
import time
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

_BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")


class Instant(NamedTuple):
    """A moment of such a clock.

    Attributes:
        machine: whose clock it is, and since which of its starts.
        seconds: what it shows.
    """

    machine: str
    seconds: float

    def until(self, later: "Instant") -> float | None:
        """Seconds between the two; None where they are of two clocks."""
        return later.seconds - self.seconds if self.machine == later.machine else None


def now() -> Instant:
    """This moment."""
    return Instant(_machine(), seconds())


def seconds() -> float:
    """What the clock shows. Where a machine has none that goes on while it sleeps, one that does not."""
    clock = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if clock is None else time.clock_gettime(clock)


@cache
def _machine() -> str:
    try:
        return _BOOT_ID.read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return socket.gethostname()
