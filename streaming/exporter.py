"""The board as Prometheus samples, worked out when they are scraped.

What is not known has no sample: no -1, no NaN, no 0 in its place. What is gone has none either, because every page is
of the groups there are. How a page is made stands in `kept_pages.py`; here it becomes text.

A page may have a million lines, so it is sent piece by piece: its text is nowhere as a whole, and no other thread waits
for more than a piece.
"""

import time
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from prometheus_client.core import Metric
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.openmetrics.exposition import CONTENT_TYPE_LATEST as OPENMETRICS_CONTENT_TYPE
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector

from streaming import deflated, exposition
from streaming.board import Board
from streaming.deflated import Piece
from streaming.exposition import END_OF_OPENMETRICS
from streaming.group_samples import Moment
from streaming.kept_pages import KeptPages, Page
from streaming.shelf import MANY_GROUPS

_PREPARED_PAGES: Final = 2
"""With the second one, groups that never rest are apart from those that do."""


class Exporter(Collector):
    """A prometheus-client collector over a board.

    Args:
        board: what to show.
        cluster: value of the labels `cluster` and `cluster_name`.
        partition_series: whether there are series per partition; sums and maxima are there either way.
        rebalance_histogram: whether rebalance durations are a histogram per group.
        clock_ms: the wall clock, in milliseconds.
    """

    def __init__(
        self,
        board: Board,
        cluster: str,
        *,
        partition_series: bool = True,
        rebalance_histogram: bool = True,
        clock_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        self._board = board
        self.cluster = cluster
        self._clock_ms = clock_ms
        self._pages = KeptPages(cluster, partition_series=partition_series, rebalance_histogram=rebalance_histogram)
        self._to_prepare = _PREPARED_PAGES

    def describe(self) -> Iterable[Metric]:
        """Nothing: prometheus-client would otherwise collect once to learn the names."""
        return []

    def collect(self) -> Iterable[Metric]:
        """All metrics that have a sample at this moment, for a registry that holds other collectors too."""
        return text_string_to_metric_families(self.render()[0].decode())

    def render(self, accept: str = "") -> tuple[bytes, str]:
        """The page of /metrics, as OpenMetrics if the Accept header names it, and its content type."""
        pieces, content_type = self.pieces(accept)
        return b"".join(pieces), content_type

    def pieces(self, accept: str = "", *, gzip: bool = False) -> tuple[Iterator[bytes], str]:
        """The same, to be sent piece by piece, as gzip if that is asked for; all of it is of this moment."""
        openmetrics = "application/openmetrics-text" in accept
        content_type = OPENMETRICS_CONTENT_TYPE if openmetrics else CONTENT_TYPE_PLAIN_0_0_4
        told = _told(self._page(), openmetrics=openmetrics)
        return deflated.gzipped(told) if gzip else deflated.plain(told), content_type

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
        return Moment(self._board, self._clock_ms())


def _told(page: Page, *, openmetrics: bool) -> Iterator[Piece]:
    """The page in the form that is asked for."""
    for name, parts in page.metrics:
        before = exposition.head(name, openmetrics=openmetrics).encode()
        for part in parts:
            piece = part() if callable(part) else part
            if piece:
                if before:
                    yield before
                    before = b""
                yield piece
    if openmetrics:
        yield END_OF_OPENMETRICS.encode()
