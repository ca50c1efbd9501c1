"""Whether a stream makes no progress, whatever the cause, and is to be started again.

    records wait where leaders answer, the log was read to its end once, and …      what is done
    a micro-batch finished within five minutes, or ten times the longest so far     nothing
    none did                                                                        the query is started again
    none did after three such starts in a row                                       as above, and /healthz answers 503

Brokers that are away, a partition without a leader and a first catch-up, of which one micro-batch may bring all, are no
standstill of ours: a start or another process would change nothing about them.
"""

from typing import Final

LEAST_SECONDS: Final = 300.0
"""So long nothing has to have finished, at least."""

TIMES_THE_LONGEST: Final = 10
"""So many times the longest micro-batch, if that is more."""

RESTARTS: Final = 3
"""So many starts in a row may change nothing until another process is asked for."""


class Stall:
    """Follows one stream; without a clock.

    Args:
        least_seconds: the least patience, more than the pause between two micro-batches.

    Attributes:
        restarts: how often in a row the query was to be started again.
        is_stuck: whether that was of no use.
    """

    def __init__(self, least_seconds: float = LEAST_SECONDS) -> None:
        self.restarts = 0
        self.is_stuck = False
        self._least_seconds = least_seconds
        self._longest_seconds = 0.0
        self._runs = False
        self._since: float | None = None

    @property
    def patience_seconds(self) -> float:
        """How long records may wait without a finished micro-batch."""
        return max(self._least_seconds, TIMES_THE_LONGEST * self._longest_seconds)

    def started(self) -> None:
        """The query was started: it has all the time again."""
        self._runs, self._since = True, None

    def ended(self) -> None:
        """The query has ended: who waits to start it again, does."""
        self._runs = False

    def finished(self, seconds: float) -> None:
        """A micro-batch is finished, which took so long."""
        self._longest_seconds = max(self._longest_seconds, seconds)
        self._moves()

    def look(self, at: float, *, waiting: int, caught_up: bool) -> float | None:
        """How long nothing has finished, where the query is to be started again; that is said once for each start.

        Args:
            at: seconds of a clock that only grows.
            waiting: records to read in partitions whose leaders answer.
            caught_up: whether the end of the log as it was at start was reached.
        """
        if not waiting or not caught_up:
            self._moves()
            return None
        if not self._runs:
            return None
        if self._since is None:
            self._since = at
        seconds = at - self._since
        if seconds < self.patience_seconds:
            return None
        self.is_stuck = self.restarts >= RESTARTS
        self.restarts += 1
        self._runs = False
        return seconds

    def _moves(self) -> None:
        self._since, self.restarts, self.is_stuck = None, 0, False
