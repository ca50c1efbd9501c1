"""Has a stream that makes no progress started again (`board/stall.py`); ends the process where that cannot be done.

The thread that runs the query asks this one between two looks at it. If it does not ask for a minute, it waits for a
JVM that does not answer, and only another process can help.
"""

import os
import threading
import time
from collections.abc import Callable
from typing import Final

from streaming.base.logging_setup import get_logger
from streaming.base.threads import Repeating
from streaming.base.times import now_ms
from streaming.board.health import Health
from streaming.board.stall import Stall
from streaming.spark import jvm_lifecycle

CHECK_EVERY_SECONDS: Final = 1.0

ANSWER_SECONDS: Final = 60.0
"""So long who runs the query may take to see that it is to be started again."""

_log = get_logger("stall")


class StallWatch:
    """The thread that looks.

    Args:
        health: of the board that the stream fills.
        stall: judges.
        kill: ends the JVM, for a reason, so that who waits for it goes on and ends the process; returns whether it can.
        leave: ends the process, with a status.
        clock: seconds that only grow.
        clock_ms: the wall clock.
    """

    def __init__(  # noqa: PLR0913 - what it looks at and what it may do, all named
        self,
        health: Health,
        stall: Stall,
        *,
        kill: Callable[[str], bool] = jvm_lifecycle.kill,
        leave: Callable[[int], object] = os._exit,
        clock: Callable[[], float] = time.monotonic,
        clock_ms: Callable[[], int] = now_ms,
    ) -> None:
        self._health = health
        self._stall = stall
        self._kill = kill
        self._leave = leave
        self._is_killed = False
        self._clock = clock
        self._clock_ms = clock_ms
        self._lock = threading.Lock()
        self._asked_at: float | None = None
        health.show_stuck(self._stuck)
        thread = Repeating("stall", CHECK_EVERY_SECONDS, self.check)
        self.start, self.stop = thread.start, thread.stop

    @property
    def is_asked(self) -> bool:
        """Whether the query is to be started again."""
        return self._asked_at is not None

    def started(self) -> None:
        """The query was started."""
        with self._lock:
            self._asked_at = None
            self._stall.started()

    def ended(self) -> None:
        """The query is seen to have ended, or is about to be stopped."""
        with self._lock:
            self._asked_at = None
            self._stall.ended()

    def finished(self, seconds: float) -> None:
        """A micro-batch is finished, which took so long."""
        with self._lock:
            self._stall.finished(seconds)

    def check(self) -> None:
        """Look whether it is to be started again, and whether that is being done."""
        waiting = self._health.waiting_where_answered(self._clock_ms())
        caught_up, now = self._health.has_read, self._clock()
        with self._lock:
            asked_at = self._asked_at
            if asked_at is None:
                seconds = self._stall.look(now, waiting=waiting, caught_up=caught_up)
                if seconds is None:
                    return
            elif now - asked_at < ANSWER_SECONDS:
                return
            self._asked_at = now
        if asked_at is not None:
            self._give_up()
            return
        _log.warning(
            "stream_restarted", records=waiting, seconds=round(seconds or 0), restarts_in_a_row=self._stall.restarts
        )
        if self._stall.is_stuck:
            _log.error("stream_stuck", reason=self._stuck())

    def _give_up(self) -> None:
        """No thread starts it again: end what is waited for, and if that is not it, the process."""
        reason = f"it does not answer, and the stream could not be started again for {ANSWER_SECONDS:g} s"
        _log.error("stream_hangs", reason=reason)
        if self._is_killed or not self._kill(reason):
            self._leave(1)
        self._is_killed = True

    def _stuck(self) -> str | None:
        if not self._stall.is_stuck:
            return None
        return f"records wait in the log, and {self._stall.restarts - 1} starts of the query in a row changed nothing"
