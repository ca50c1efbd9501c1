"""How many descriptors this process may have open, connections among them: as many as it may give itself, in reason.

What it starts, Spark's JVM above all, has the same limit.
"""

import errno
import resource
from typing import Final, NamedTuple

MOST: Final = 65_536
"""More are of no use here, and some programs walk through all that they might have."""

LOW: Final = 4_096
"""Connections of brokers and callers, files of the state and of Spark: with fewer, they may run out of descriptors."""


_SIGNS: Final = tuple(f"[Errno {number}]" for number in (errno.EMFILE, errno.ENFILE))
"""What the system's errors begin with where none is left; Spark has them in texts of its own."""


class OpenFilesLimit(NamedTuple):
    """How many may be open: now, and at most (`ulimit -Sn`, `ulimit -Hn`)."""

    soft: int
    hard: int

    @property
    def is_low(self) -> bool:
        """Whether callers and brokers may use up what there is."""
        return self.hard < LOW


def limit() -> OpenFilesLimit:
    """Both, without a limit as `MOST`."""
    return OpenFilesLimit(
        *(MOST if each == resource.RLIM_INFINITY else each for each in resource.getrlimit(resource.RLIMIT_NOFILE))
    )


def raise_limit() -> OpenFilesLimit:
    """Raise the one to the other, to `MOST` at most, never down; returns what they are then."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST if hard == resource.RLIM_INFINITY else min(MOST, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        except (OSError, ValueError):
            # A system may have a lower limit of its own.
            return limit()
    return limit()


def none_left(error: BaseException) -> bool:
    """Whether something failed for want of descriptors: it is not what was asked for that is wrong."""
    return any(sign in str(error) for sign in _SIGNS)
