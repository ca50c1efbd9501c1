"""How a process's Python shares itself among its threads, and the machine's memory with others.

The stream must not wait for a scrape, nor for a page; and what a catch-up needed is not needed ever after.
"""

import ctypes
import gc
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Final, TypeVar

Part = TypeVar("Part")

SWITCH_SECONDS: Final = 0.001
"""A thread that computes lets another have its turn after so long. Each answer of the JVM that the stream waits for is
a turn: at Python's default of 5 ms, a scrape of two seconds held up each of them by as much."""

SPARE_SHARE: Final = 0.25
"""Of one processor, for long work that nobody waits for."""

SHORTEST_PAUSE_SECONDS: Final = 0.005
"""Pauses are saved up to that: shorter ones cost more than they give."""

LOT: Final = 100
"""Groups that are looked at between two pauses: a few milliseconds' work."""

COLLECT_AFTER: Final = 50_000
"""Objects made and not let go again before the collector of cycles looks at the young ones; Python's default is 700."""


def share_fairly() -> None:
    """Set both for this process."""
    sys.setswitchinterval(SWITCH_SECONDS)
    collect_seldom()


def collect_seldom() -> None:
    """Let the collector of cycles look less often than by default."""
    gc.set_threshold(COLLECT_AFTER, 10, 10)


class Pauses:
    """Long work of a thread, done in its spare time: called between two parts of it, waits as long as its share asks.

    Args:
        wait: waits for so many seconds, or for less where somebody is in a hurry.
        used_seconds: the processor time that the thread has used.
        share: how much of one processor the work may take.
    """

    def __init__(
        self,
        wait: Callable[[float], object],
        *,
        used_seconds: Callable[[], float] = time.thread_time,
        share: float = SPARE_SHARE,
    ) -> None:
        self._wait = wait
        self._used_seconds = used_seconds
        self._times_work = 1 / share - 1
        self._paused_at = used_seconds()

    def __call__(self) -> None:
        """Pause for what was done since the last pause, if it was not too little."""
        pause = (self._used_seconds() - self._paused_at) * self._times_work
        if pause >= SHORTEST_PAUSE_SECONDS:
            self._wait(pause)
            self._paused_at = self._used_seconds()


def no_pause() -> None:
    """Between two parts of what somebody waits for."""


def in_lots(things: Iterable[Part], between: Callable[[], object]) -> Iterator[Part]:
    """The same things; before each hundred of them `between` is called, as `Pauses` are."""
    for number, thing in enumerate(things):
        if number % LOT == 0:
            between()
        yield thing


def unhurried(parts: Iterable[Part], wait: Callable[[float], object] = time.sleep) -> Iterator[Part]:
    """Parts that a thread makes as they are asked for, with pauses before them: half of one processor, and no more.

    Each part may be asked for by another thread. A single one comes at once.
    """
    used = 0.0
    begun = time.thread_time()
    for part in parts:
        used += time.thread_time() - begun
        yield part
        if used >= SHORTEST_PAUSE_SECONDS:
            wait(used)
            used = 0.0
        begun = time.thread_time()


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
