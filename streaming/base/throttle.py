"""Long work that leaves other threads their share of the processor."""

import time
from collections.abc import Callable, Iterable, Iterator
from typing import Final, TypeVar

Part = TypeVar("Part")

SPARE_SHARE: Final = 0.25
"""Of one processor, for long work that no request waits for."""

SHORTEST_PAUSE_SECONDS: Final = 0.005
"""Shorter pauses are added up to this: they cost more than they give."""

LOT: Final = 100
"""Groups between two pauses: a few milliseconds of work."""


class Pauses:
    """Pauses of a thread with long work: called between two parts of it, waits as long as the share asks.

    Args:
        wait: waits for so many seconds, or for less where the thread is to end.
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
        """Pause for the work since the last pause, if it was not too little."""
        pause = (self._used_seconds() - self._paused_at) * self._times_work
        if pause >= SHORTEST_PAUSE_SECONDS:
            self._wait(pause)
            self._paused_at = self._used_seconds()


def no_pause() -> None:
    """The pause of work that a request waits for."""


def in_lots(things: Iterable[Part], between: Callable[[], object]) -> Iterator[Part]:
    """The same things; `between`, such as `Pauses`, is called before each hundred of them."""
    for number, thing in enumerate(things):
        if number % LOT == 0:
            between()
        yield thing


def unhurried(parts: Iterable[Part], wait: Callable[[float], object] = time.sleep) -> Iterator[Part]:
    """Parts that a thread makes as they are asked for, with pauses before them: half of one processor at most.

    Each part may be asked for by another thread. A single part comes at once.
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
