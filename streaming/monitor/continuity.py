"""Whether what a query brings follows on what the board shows.

A micro-batch has only what changed. On a board that was filled from nothing, or from an older state, it would look like
all there is. So the board's groups are of one checkpoint up to one micro-batch, which is kept in mind here; before each
start of a query the checkpoint is compared with that, and each micro-batch again, should it be exchanged in between.

    the board shows                     the checkpoint has finished                  what is done
    micro-batch n of it                 n, or n - 1 (n was shown, and is repeated)   goes on
    micro-batch n of it                 anything else, of it or of another           the board is filled from it
    micro-batch n of it                 none                                         the end: it is gone
    nothing                             none                                         goes on
"""

from collections.abc import Sequence
from typing import Final

from streaming.base.batch_rows import Row
from streaming.board.board import Board
from streaming.checkpoint.contents import Mark

NOTHING: Final = Mark()


class OutOfStepError(Exception):
    """A micro-batch came that does not follow on what the board shows."""


class Continuity:
    """The sink in a board's place.

    Args:
        board: gets what follows.

    Attributes:
        shown: what the board shows: `Mark()` for nothing.
    """

    def __init__(self, board: Board) -> None:
        self._board = board
        self.shown = NOTHING
        self._running: str | None = None

    def filled(self, mark: Mark) -> None:
        """The board was filled from a checkpoint that was so far, or with nothing."""
        self.shown = mark

    def fits(self, mark: Mark) -> bool:
        """Whether a query on a checkpoint that is so far brings what follows."""
        if mark.query_id != self.shown.query_id:
            return False
        return mark.batch in (self.shown.batch, max(self.shown.batch - 1, NOTHING.batch))

    def started(self, query_id: str) -> None:
        """A query runs, on a checkpoint that Spark calls so."""
        self._running = query_id
        if self.shown == NOTHING:
            self.shown = Mark(query_id)

    def apply(self, batch_id: int, rows: Sequence[Row], now_ms: int) -> None:
        """As of a `BatchSink`. Raises OutOfStepError."""
        query_id, batch = self.shown
        if self._running != query_id or batch_id not in (batch, batch + 1):
            raise OutOfStepError(
                f"the board shows micro-batch {batch} of query {query_id}, and micro-batch {batch_id} of "
                f"{self._running} came"
            )
        self._board.apply(batch_id, rows, now_ms)
        self.shown = Mark(query_id, batch_id)
