"""Says in the log that the stream stands still, whatever its cause, and when it moves again: one line each."""

from typing import Final

from streaming.base.logging_setup import get_logger
from streaming.base.threads import Repeating
from streaming.board.board import Board

CHECK_EVERY_SECONDS: Final = 1.0

_log = get_logger("standstill")


class StandstillLog:
    """The thread that looks; one of its own, as a query that hangs or is started again may take its thread with it.

    Args:
        board: filled by the stream.
    """

    def __init__(self, board: Board) -> None:
        self._board = board
        self._stood_seconds: float | None = None
        thread = Repeating("standstill", CHECK_EVERY_SECONDS, self.check)
        self.start, self.stop = thread.start, thread.stop

    def check(self) -> None:
        """Say what has changed since the last look."""
        seconds, stood = self._board.health.standstill_seconds(), self._stood_seconds
        if seconds is not None and stood is None:
            _log.warning("stream_stands_still", records=self._board.health.waiting(), seconds=round(seconds))
        elif seconds is None and stood is not None:
            _log.info("stream_moves_again", stood_still_seconds=round(stood))
        self._stood_seconds = seconds
