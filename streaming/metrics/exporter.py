"""The board as Prometheus samples, worked out when they are scraped.

What is not known has no sample: no -1, no NaN, no 0 in its place. What is gone has none either, because every page is
of the groups there are. How a page is made stands in `page_cache.py`; here it becomes text.

A page may have a million lines, so its text is streamed in pieces and never held in memory as a whole: no other thread
waits for more than a piece.
"""

from collections.abc import Callable, Iterator
from typing import Final

from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.openmetrics.exposition import CONTENT_TYPE_LATEST as OPENMETRICS_CONTENT_TYPE

from streaming.base.name_filter import Scope
from streaming.base.times import now_ms
from streaming.board.board import Board
from streaming.board.left_out import LeftOut
from streaming.metrics import gzip_pieces, text_format
from streaming.metrics.group_metrics import Moment
from streaming.metrics.gzip_pieces import Piece
from streaming.metrics.page_cache import KeptPages, Page
from streaming.metrics.sample_cache import MANY_GROUPS
from streaming.metrics.text_format import END_OF_OPENMETRICS

_PREPARED_PAGES: Final = 2
"""With the second one, groups that never rest are apart from those that do."""


class Exporter:
    """Writes a board as a page of /metrics.

    Args:
        board: what to show.
        cluster: value of the labels `cluster` and `cluster_name`.
        partition_series: whether there are series per partition; sums and maxima are there either way.
        rebalance_histogram: whether rebalance durations are a histogram per group.
        scope: what of that which the board shows has series of its own; sums count the rest.
        clock_ms: the wall clock, in milliseconds.
    """

    def __init__(  # noqa: PLR0913 - what is configured of it, each by name
        self,
        board: Board,
        cluster: str,
        *,
        partition_series: bool = True,
        rebalance_histogram: bool = True,
        scope: Scope | None = None,
        clock_ms: Callable[[], int] = now_ms,
    ) -> None:
        self._board = board
        self.cluster = cluster
        self._clock_ms = clock_ms
        self._exported = LeftOut((scope or Scope()).within(board.scope))
        self._pages = KeptPages(cluster, partition_series=partition_series, rebalance_histogram=rebalance_histogram)
        self._to_prepare = _PREPARED_PAGES

    def render(self, accept: str = "") -> tuple[bytes, str]:
        """The page of /metrics, as OpenMetrics if the Accept header names it, and its content type."""
        pieces, content_type = self.pieces(accept)
        return b"".join(pieces), content_type

    def pieces(self, accept: str = "", *, gzip: bool = False) -> tuple[Iterator[bytes], str]:
        """The same, to be sent piece by piece, as gzip if that is asked for; all of it is of this moment."""
        openmetrics = "application/openmetrics-text" in accept
        content_type = OPENMETRICS_CONTENT_TYPE if openmetrics else CONTENT_TYPE_PLAIN_0_0_4
        told = _told(self._page(), openmetrics=openmetrics)
        return gzip_pieces.gzipped(told) if gzip else gzip_pieces.plain(told), content_type

    def tidy(self) -> None:
        """To be called every few seconds: make what the first page will need, and let go of it where nobody asks.

        The first page of many groups takes so long that a scrape might not wait for it; so it is prepared, in a quarter
        of a processor's time.
        """
        if self._to_prepare and self._board.ready()[0]:
            self._to_prepare -= 1
            if len(self._board.shown.groups) > MANY_GROUPS:
                self._pages.prepare(self._moment)
        self._pages.let_go()

    def stop(self) -> None:
        """End what `tidy` is at, or would begin."""
        self._pages.stop()

    def _page(self) -> Page:
        return self._pages.page(self._moment)

    def _moment(self) -> Moment:
        return Moment(self._board, self._clock_ms(), self._exported)


def _told(page: Page, *, openmetrics: bool) -> Iterator[Piece]:
    """The page in the form that is asked for."""
    for name, parts in page.metrics:
        before = text_format.head(name, openmetrics=openmetrics).encode()
        for part in parts:
            piece = part() if callable(part) else part
            if piece:
                if before:
                    yield before
                    before = b""
                yield piece
    if openmetrics:
        yield END_OF_OPENMETRICS.encode()
