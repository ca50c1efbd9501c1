"""Measures the lag of all groups every few seconds: for charts, and for who looks for groups that may hang."""

import time
from collections.abc import Callable
from typing import Final

from streaming.base.logging_setup import get_logger
from streaming.base.persistent_map import GroupMap
from streaming.base.threads import Background
from streaming.board.board_group import BoardGroup
from streaming.board.lag_columns import Lags
from streaming.board.lag_history import LagHistory
from streaming.end_offsets.store import EndOffsets

SAMPLE_EVERY_SECONDS: Final = 5.0


SHARE_OF_TIME: Final = 0.04
"""Of one processor, at most: what takes longer is done more seldom."""


_log = get_logger("lag_history")


class LagSampler:
    """The thread that samples.

    Args:
        history: what is written.
        groups: the groups as they are now.
        ends: where the logs end.
        ready: whether lag may be believed; before, nothing is sampled.
        clock_ms: the wall clock.
        look: takes what was measured, and when, besides.
    """

    def __init__(  # noqa: PLR0913 - what it needs of others
        self,
        history: LagHistory,
        groups: Callable[[], GroupMap[BoardGroup]],
        ends: EndOffsets,
        ready: Callable[[], bool],
        clock_ms: Callable[[], int],
        look: Callable[[Lags, int], None] | None = None,
    ) -> None:
        self._history = history
        self._groups = groups
        self._ends = ends
        self._ready = ready
        self._clock_ms = clock_ms
        self._look = look
        self._thread = Background("lag-history", self._run, stop_seconds=None)

    def start(self) -> None:
        """Begin to sample."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread."""
        self._thread.stop()

    def sample(self) -> float:
        """Take one sample; returns how many seconds to wait for the next."""
        begun = time.thread_time()
        if self._ready():
            now_ms = self._clock_ms()
            lags = self._history.sample(self._groups(), self._ends, now_ms)
            if self._look is not None:
                self._look(lags, now_ms)
        return max(SAMPLE_EVERY_SECONDS, (time.thread_time() - begun) / SHARE_OF_TIME)

    def _run(self) -> None:
        wait = 0.0
        while not self._thread.stopping.wait(wait):
            try:
                wait = self.sample()
            except Exception:  # noqa: BLE001 - one sample that fails must not be the last
                _log.exception("sample_failed")
                wait = SAMPLE_EVERY_SECONDS
