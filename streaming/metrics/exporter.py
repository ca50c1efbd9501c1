"""The board as Prometheus samples, worked out and written when they are scraped.

What is not known has no sample: no -1, no NaN, no 0 in its place. What is gone has none either, because every page is
of the groups there are. Nothing is kept from one page to the next: figures are columns (`group_columns.py`,
`lag_columns.py`), and their text is written by kernels (`page.py`).
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from isal import isal_zlib
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.openmetrics.exposition import CONTENT_TYPE_LATEST as OPENMETRICS_CONTENT_TYPE

from streaming.base.name_filter import Scope
from streaming.base.times import now_ms
from streaming.board.board import Board
from streaming.board.totals import LeftOut
from streaming.metrics import text_format
from streaming.metrics.catalogue import CATALOGUE, LOG_ONLY
from streaming.metrics.group_metrics import ALL_GROUPS, DURATION, GroupShard, Moment
from streaming.metrics.page import Page, release_memory
from streaming.metrics.partition_series import PartitionSeries, Switch, chosen
from streaming.metrics.text_format import END_OF_OPENMETRICS
from streaming.metrics.unzipping import GZIP

SENT_AT_ONCE: Final = 262_144
"""Bytes in one part of an answer, at most."""

OPENMETRICS: Final = "application/openmetrics-text"
"""In an Accept header, what asks for that form."""

_QUICK: Final = 1
"""Level of compression: a fifth of what zlib's first takes, and a tenth less to send."""


class Exporter:
    """Writes a board as a page of /metrics.

    Args:
        board: what to show.
        cluster: value of the labels `cluster` and `cluster_name`.
        partition_series: whether there are series per partition; sums and maxima are there either way. `auto` has them
            as long as they are few.
        partition_series_limit: how many few are.
        rebalance_histogram: whether rebalance durations are a histogram per group.
        scope: what of that which the board shows has series of its own; sums count the rest.
        clock_ms: the wall clock, in milliseconds.
    """

    def __init__(  # noqa: PLR0913 - what is configured of it, each by name
        self,
        board: Board,
        cluster: str,
        *,
        partition_series: Switch = True,
        partition_series_limit: int = 50_000,
        rebalance_histogram: bool = True,
        scope: Scope | None = None,
        clock_ms: Callable[[], int] = now_ms,
    ) -> None:
        self._board = board
        self.cluster = cluster
        self._clock_ms = clock_ms
        self._exported = LeftOut((scope or Scope()).within(board.scope))
        self._partition_series = PartitionSeries(partition_series, partition_series_limit, self._exported.scope)
        self._names = [name for name in CATALOGUE if rebalance_histogram or name != DURATION]

    def pieces(
        self, accept: str = "", *, gzip: bool = False, shard: GroupShard = ALL_GROUPS
    ) -> tuple[Iterator[bytes], str]:
        """The page of /metrics and its content type, to be sent piece by piece; all of it is of this moment.

        As OpenMetrics if the Accept header names it, as gzip if that is asked for. Of groups, those of one share; what
        is not of one group is on the page of every share.
        """
        openmetrics = OPENMETRICS in accept
        content_type = OPENMETRICS_CONTENT_TYPE if openmetrics else CONTENT_TYPE_PLAIN_0_0_4
        moment = Moment(self._board, self._clock_ms(), self._exported, shard)
        moment.partition_series = self._has_partition_series(moment)
        text = self._text(Page(self.cluster, moment), moment, openmetrics=openmetrics)
        return _gathered(_gzipped(text) if gzip else text), content_type

    def _has_partition_series(self, moment: Moment) -> bool:
        scope = self._exported.scope
        return self._partition_series.is_on(
            moment.shown.groups,
            chosen(moment.sizes, moment.sums.topic_names, scope),
            moment.now_ms,
            is_ready=moment.standing.ready,
            is_polled=moment.polls is not None,
        )

    def _text(self, page: Page, moment: Moment, *, openmetrics: bool) -> Iterator[bytes | memoryview]:
        """The page in the form that is asked for; metrics without samples are left out."""
        names = [
            name
            for name in self._names
            if (moment.partition_series or not CATALOGUE[name].per_partition)
            and not (moment.polls is not None and name in LOG_ONLY)
        ]
        try:
            yield from page.text({name: text_format.head(name, openmetrics=openmetrics) for name in names})
            if openmetrics:
                yield END_OF_OPENMETRICS.encode()
        finally:
            # With its labels, a third of what it took.
            del page, moment
            release_memory()


def _gzipped(pieces: Iterable[bytes | memoryview]) -> Iterator[bytes]:
    """As gzip; other threads have their turn while a piece is compressed."""
    packing = isal_zlib.compressobj(_QUICK, isal_zlib.DEFLATED, GZIP)
    for piece in pieces:
        yield packing.compress(piece)
    yield packing.flush()


def _gathered(parts: Iterable[bytes | memoryview]) -> Iterator[bytes]:
    """The same in parts of one size, but for the last one, which may be empty."""
    held = bytearray()
    for part in parts:
        held += part
        if len(held) >= SENT_AT_ONCE:
            whole = len(held) - len(held) % SENT_AT_ONCE
            for at in range(0, whole, SENT_AT_ONCE):
                yield bytes(held[at : at + SENT_AT_ONCE])
            del held[:whole]
    yield bytes(held)
