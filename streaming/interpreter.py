"""How a process's Python shares itself among its threads, and the machine's memory with others.

The stream must not wait for a scrape, nor for a page; and what a catch-up needed is not needed ever after.
"""

import ctypes
import gc
import sys
from typing import Final

SWITCH_SECONDS: Final = 0.001
"""A thread that computes lets another have its turn after so long. Each answer of the JVM that the stream waits for is
a turn: at Python's default of 5 ms, a scrape of two seconds held up each of them by as much."""

COLLECT_AFTER: Final = 50_000
"""Objects made and not let go again before the collector of cycles looks at the young ones; Python's default is 700."""


def share_fairly() -> None:
    """Set both for this process."""
    sys.setswitchinterval(SWITCH_SECONDS)
    collect_seldom()


def collect_seldom() -> None:
    """Let the collector of cycles look less often than by default."""
    gc.set_threshold(COLLECT_AFTER, 10, 10)


def put_aside() -> None:
    """Keep all objects there are from the collector of cycles: it looks at each of them while all threads wait.

    For what is there to stay, as the groups of a board are. They are in no cycle, so they go as ever once nobody
    holds them any more.
    """
    gc.freeze()


def give_back() -> None:
    """Return memory that is free to the machine, where the C library can: its allocator keeps it otherwise.

    What a catch-up brought lies between what stays of it, so none of it is at the end, which alone is given back as a
    matter of course.
    """
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
