"""Pages of /metrics, each made once for all who ask for it in the same moment.

    asked for       a page that no one waits for     one that is being made
                    is begun, four at a time; who    is read as well, from its beginning; it is of the moment
                    waits longer than 5 s gets 503   in which it was begun
    no one reads    it is not made any further

A page is held in gzip, a tenth of its text, until all have read it; who wants text is given it unpacked. So it costs
the same whether it is read quickly, slowly or not at all, and by how many. `unread_answers.py` has the bound.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from streaming.metrics.exporter import OPENMETRICS, SENT_AT_ONCE, Exporter
from streaming.metrics.group_metrics import GroupShard
from streaming.metrics.unzipping import Unzipping
from streaming.web.connection_limits import Client
from streaming.web.history_api import BusyError
from streaming.web.unread_answers import UnreadAnswers

MADE_AT_ONCE: Final = 4
WAIT_SECONDS: Final = 5.0

ENDING: Final = "monitor: found it ending, accepted: one that runs"
"""What is asked while its threads take nothing any more."""

_Asked = tuple[bool, GroupShard]


class SharedPages:
    """The pages of one server; used by its event loop.

    Args:
        exporter: what writes them.
        unread: counts what is held of them.
    """

    def __init__(self, exporter: Exporter, unread: UnreadAnswers) -> None:
        self._exporter = exporter
        self._unread = unread
        self._in_making: dict[_Asked, SharedPage] = {}
        self._slots = asyncio.Semaphore(MADE_AT_ONCE)
        # Of their own: where all others are taken by questions to the API, Prometheus is answered all the same.
        self._threads = ThreadPoolExecutor(MADE_AT_ONCE, thread_name_prefix="metrics-page")
        self._is_closed = False
        self._tasks: set[asyncio.Task[None]] = set()

    async def page(self, client: Client, shard: GroupShard, *, openmetrics: bool) -> "SharedPage":
        """The page, begun, for a client that is to `leave` it; raises BusyError where others are before it for long."""
        asked = (openmetrics, shard)
        page = self._in_making.get(asked)
        if page is None:
            page = self._in_making[asked] = SharedPage(self._unread)
            task = asyncio.get_running_loop().create_task(self._make(asked, page))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        page.join(client)
        try:
            await asyncio.wait_for(page.begun.wait(), WAIT_SECONDS)
        except TimeoutError:
            page.leave(client)
            raise BusyError(f"pages: found {MADE_AT_ONCE} in the making, accepted: fewer") from None
        except BaseException:
            page.leave(client)
            raise
        if isinstance(page.failure, BusyError):
            page.leave(client)
            raise page.failure
        return page

    def close(self) -> None:
        """Begin no page any more."""
        self._is_closed = True
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _make(self, asked: _Asked, page: "SharedPage") -> None:
        try:
            async with self._slots:
                if page.is_wanted:
                    await self._fill(asked, page)
        except Exception as error:  # noqa: BLE001 - each reader raises it
            page.failure = BusyError(ENDING) if self._is_closed else error
        finally:
            del self._in_making[asked]
            page.end()

    async def _fill(self, asked: _Asked, page: "SharedPage") -> None:
        loop, (openmetrics, shard) = asyncio.get_running_loop(), asked
        accept = OPENMETRICS if openmetrics else ""

        def begin() -> tuple[Iterator[bytes], str]:
            return self._exporter.pieces(accept, gzip=True, shard=shard)

        pieces, page.content_type = await loop.run_in_executor(self._threads, begin)
        page.begun.set()
        while page.is_wanted and (piece := await loop.run_in_executor(self._threads, next, pieces, b"")):
            page.add(piece)


class SharedPage:
    """A page that is being made, or was.

    Attributes:
        begun: set once it is of a moment, or never will be.
        content_type: of its text, once it is begun.
        failure: what kept it from being made, if anything.
    """

    def __init__(self, unread: UnreadAnswers) -> None:
        self.begun = asyncio.Event()
        self.content_type = ""
        self.failure: Exception | None = None
        self._unread = unread
        self._readers: list[Client] = []
        self._pieces: list[bytes] = []
        self._is_whole = False
        self._news = asyncio.Event()

    @property
    def is_wanted(self) -> bool:
        """Whether anyone reads it."""
        return not all(client.gone for client in self._readers)

    def join(self, client: Client) -> None:
        """One more reads it."""
        self._readers.append(client)

    def leave(self, client: Client) -> None:
        """One of them reads it no more."""
        self._readers.remove(client)
        if not self._readers:
            self._unread.done(self)
            self._pieces.clear()
            self._is_whole = True

    def add(self, piece: bytes) -> None:
        """The next piece."""
        if self._readers:
            self._pieces.append(piece)
            self._unread.grows(self, len(piece), self._give_up)
            self._tell()

    def end(self) -> None:
        """It has come as far as it ever will."""
        self._is_whole = True
        self.begun.set()
        self._tell()

    async def read(self, *, gzip: bool) -> AsyncIterator[bytes]:
        """All of it; as text unless as gzip."""
        unzipping = Unzipping(SENT_AT_ONCE)
        at = 0
        while True:
            while at < len(self._pieces):
                for part in (self._pieces[at],) if gzip else unzipping.parts(self._pieces[at]):
                    yield part
                    self._unread.taken(self)
                at += 1
            if self._is_whole:
                break
            await self._news.wait()
        if self.failure is not None:
            raise self.failure

    def _tell(self) -> None:
        news, self._news = self._news, asyncio.Event()
        news.set()

    def _give_up(self) -> None:
        for client in self._readers:
            client.let_go()
