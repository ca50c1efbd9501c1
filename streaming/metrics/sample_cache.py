"""Groups' samples as text that is kept: of groups that rest, some hundred together and compressed.

A group that may have changed leaves the chunk it rests in, which is written once more without it, and is *awake*: its
lines are written with each page, until it has been the same for some pages; then it is put into a new chunk with others
that came to rest. A group that changes as long as time goes by never rests; a chunk with one that will change at a
certain time is written anew then. So what a page costs grows with what changed lately, and never beyond writing each
line once. Fewer groups than fill a chunk are always awake: for them nothing is kept, and nothing is done but write.

A chunk is closed by the number of its groups or of their lines, whichever comes first: no other thread has its turn
while the text of one is put together.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Final, Generic, Protocol, TypeVar

from streaming.board.board_group import BoardGroup
from streaming.metrics.group_metrics import Moment
from streaming.metrics.gzip_pieces import QUICK, Deflated, Piece, deflate

CHUNK_GROUPS: Final = 500
CHUNK_LINES: Final = 2_000

REST_PAGES: Final = 3
"""For so many pages a group has to be the same before it rests."""

MANY_GROUPS: Final = 2_000
"""With more groups awake than that, their text is compressed as soon as it is there, so that there is never much."""

_KEPT_LEVEL: Final = 1


class _Row(Protocol):
    """A group as it is asked for its samples."""

    @property
    def label(self) -> str:
        """Its name as a label."""
        ...

    @property
    def weight(self) -> int:
        """How many lines a metric may have of it."""
        ...

    @property
    def held(self) -> BoardGroup:
        """The group."""
        ...

    def good_until_ms(self, moment: Moment) -> float:
        """When time alone changes its samples: now if it does all the time, infinity if it does not."""
        ...


RowT = TypeVar("RowT", bound=_Row)

Dated = Callable[[int], bytes]
"""Text that is another at each time in milliseconds."""
Later = Callable[[], Piece]
"""A piece that is put together when it is sent."""
Parts = list["Piece | Later"]


class _Chunk:
    """Groups that rest, and their text by metric until a time; none for a metric that is to be written."""

    __slots__ = ("good_until_ms", "names", "texts", "weight")

    def __init__(self, names: list[str], weight: int) -> None:
        self.names = names
        self.weight = weight
        self.texts: dict[str, Deflated | Dated] = {}
        self.good_until_ms = math.inf

    def clear(self) -> None:
        """All of it is to be written."""
        self.texts.clear()
        self.good_until_ms = math.inf


class Shelf(Generic[RowT]):
    """The text of some metrics, of all groups.

    Args:
        row: what a group is asked through.
        write: metric → the text of its samples, of some groups.
        dated: the same, kept as what is to be asked for the text at a time.
    """

    def __init__(
        self,
        row: Callable[[BoardGroup, Moment], RowT],
        write: Mapping[str, Callable[[list[RowT], Moment], str]],
        dated: Mapping[str, Callable[[list[RowT]], Dated]],
    ) -> None:
        self._row = row
        self._write: Final = write
        self._dated: Final = dated
        self._page = 0
        self._chunks: dict[_Chunk, None] = {}
        self._home: dict[str, _Chunk] = {}
        self._torn: set[_Chunk] = set()
        # Group → the page at which it was last seen to change; one that is new may rest at once.
        self._awake: dict[str, int] = {}

    def add(self, name: str) -> None:
        """Take in a group that is new."""
        self._rouse(name, self._page - REST_PAGES)

    def rouse(self, names: Iterable[str]) -> None:
        """Say that these may have changed; names of others are passed over."""
        for name in names:
            if name in self._home or name in self._awake:
                self._rouse(name, self._page + 1)

    def remove(self, name: str) -> None:
        """Say that this group is gone."""
        self._rouse(name, 0)
        del self._awake[name]

    def rewrite(self, metric: str | None = None) -> None:
        """Say that all samples of a metric, or of all, may have changed, those of groups that rest as well."""
        for chunk in self._chunks:
            if metric is None:
                chunk.clear()
            else:
                chunk.texts.pop(metric, None)

    def parts(self, moment: Moment, between: Callable[[], object]) -> dict[str, Parts]:
        """Metric → all its text at this moment, of which no two parts are of the same group.

        `between` is called whenever some groups' text of a metric is done.
        """
        self._page += 1
        self._mend()
        for chunk in self._chunks:
            if moment.now_ms >= chunk.good_until_ms:
                chunk.clear()
            if len(chunk.texts) < len(self._write):
                self._fill(chunk, [self._row_of(name, moment) for name in chunk.names], moment, between)
        fresh: dict[str, Parts] = {metric: [] for metric in self._write}
        compressed = len(self._awake) > MANY_GROUPS
        for rows in _lumps(self._looked_at(moment, between)):
            for metric, write in self._write.items():
                between()
                text = write(rows, moment).encode()
                if text:
                    fresh[metric].append(deflate(text, QUICK) if compressed else text)
        return {metric: [*self._kept(metric, moment.now_ms), *parts] for metric, parts in fresh.items()}

    def _looked_at(self, moment: Moment, between: Callable[[], object]) -> Iterator[RowT]:
        """Groups that are awake; those that may rest are put into chunks, as far as they fill some."""
        resting: list[RowT] = []
        weight = 0
        for name in list(self._awake):
            row = self._row_of(name, moment)
            if row.good_until_ms(moment) <= moment.now_ms:
                self._awake[name] = self._page
            if self._page - self._awake[name] < REST_PAGES:
                yield row
                continue
            resting.append(row)
            weight += row.weight
            if _is_full(len(resting), weight):
                self._put_by(resting, weight, moment, between)
                resting, weight = [], 0
        yield from resting

    def _put_by(self, rows: list[RowT], weight: int, moment: Moment, between: Callable[[], object]) -> None:
        names = [row.held.name for row in rows]
        chunk = _Chunk(names, weight)
        self._fill(chunk, rows, moment, between)
        self._chunks[chunk] = None
        for name in names:
            del self._awake[name]
            self._home[name] = chunk

    def _fill(self, chunk: _Chunk, rows: list[RowT], moment: Moment, between: Callable[[], object]) -> None:
        for metric, write in self._write.items():
            if metric in chunk.texts:
                continue
            between()
            dated = self._dated.get(metric)
            kept = deflate(write(rows, moment).encode(), _KEPT_LEVEL) if dated is None else dated(rows)
            chunk.texts[metric] = kept
        chunk.good_until_ms = min([chunk.good_until_ms, *(row.good_until_ms(moment) for row in rows)])

    def _kept(self, metric: str, now_ms: int) -> Iterator[Piece | Later]:
        for chunk in self._chunks:
            text = chunk.texts[metric]
            if not isinstance(text, Deflated):
                yield partial(text, now_ms)
            elif text.size:
                yield text

    def _row_of(self, name: str, moment: Moment) -> RowT:
        return self._row(moment.shown.groups[name], moment)

    def _rouse(self, name: str, page: int) -> None:
        chunk = self._home.pop(name, None)
        if chunk is not None:
            self._torn.add(chunk)
        self._awake[name] = page

    def _mend(self) -> None:
        """Chunks without those that left; what is left of one that lost most is to be put by anew."""
        for chunk in self._torn:
            size = len(chunk.names)
            chunk.names = [name for name in chunk.names if self._home.get(name) is chunk]
            chunk.weight = chunk.weight * len(chunk.names) // size
            chunk.clear()
            if not _is_full(2 * len(chunk.names), 2 * chunk.weight):
                del self._chunks[chunk]
                for name in chunk.names:
                    del self._home[name]
                    self._awake[name] = self._page - REST_PAGES
        self._torn.clear()


def _is_full(groups: int, weight: int) -> bool:
    return groups >= CHUNK_GROUPS or weight >= CHUNK_LINES


def _lumps(rows: Iterator[RowT]) -> Iterator[list[RowT]]:
    """Some of them at a time."""
    lump: list[RowT] = []
    weight = 0
    for row in rows:
        lump.append(row)
        weight += row.weight
        if _is_full(len(lump), weight):
            yield lump
            lump, weight = [], 0
    if lump:
        yield lump
