"""Garbage-collector and thread-scheduling settings of a process, and returning freed memory to the machine."""

import ctypes
import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

SWITCH_SECONDS: Final = 0.001
"""A computing thread lets another one run after so long. The stream waits for many answers of the JVM, and each wait
ends with such a switch: at Python's default of 5 ms, a scrape of two seconds delayed each of them by as much."""

COLLECT_AFTER: Final = 50_000
"""Allocations minus deallocations before the youngest generation is collected; Python's default is 700."""

_M_ARENA_MAX: Final = -8
"""Of `mallopt`, as malloc.h has it."""


def share_fairly() -> None:
    """Set the switch interval, the collector's threshold and the C library's arenas of this process."""
    sys.setswitchinterval(SWITCH_SECONDS)
    collect_seldom()
    keep_one_arena()


def keep_one_arena() -> None:
    """Have all threads that begin from now on allocate in one arena, where the C library has several.

    Of all others it keeps what is free at their end, up to 64 MB each, even where it is asked to return it.
    """
    set_option = getattr(ctypes.CDLL(None), "mallopt", None)
    if set_option is not None:
        set_option(_M_ARENA_MAX, 1)


def collect_seldom() -> None:
    """Collect garbage less often than by default."""
    gc.set_threshold(COLLECT_AFTER, 10, 10)


@contextmanager
def paused() -> Iterator[None]:
    """Collect nothing meanwhile: where many objects are made at once, and hardly a cycle among them."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def freeze() -> None:
    """Exempt all present objects from collections: each full one stops all threads for as long as they are many.

    For objects that stay, as the groups of a board do. Garbage is collected first, and costs little: frozen objects are
    not looked at, so only what is new since the last call is. Objects that are freed by their reference count go as
    ever; a frozen cycle stays until `thaw`.
    """
    gc.collect()
    gc.freeze()


def thaw() -> None:
    """Collect everything, frozen objects included, return free memory, and freeze what is left.

    All threads stand still for it: for a calm moment.
    """
    gc.unfreeze()
    give_back()
    gc.freeze()


def give_back() -> None:
    """Collect garbage and return free memory to the machine, where the C library can: its allocator keeps it otherwise.

    What a catch-up needed lies between what stays of it, so none of it is at the heap's end, which alone the allocator
    returns without being asked.
    """
    gc.collect()
    if (arrow := sys.modules.get("pyarrow")) is not None:
        # Its buffers are in an allocator of its own.
        arrow.default_memory_pool().release_unused()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
