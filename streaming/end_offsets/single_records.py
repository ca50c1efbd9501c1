"""Reading single records of many partitions with one client, each look with an end."""

import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from streaming.kafka.plain_consumer import PartitionReader

POLL_SECONDS: Final = 0.2

_FETCH: Final[Mapping[str, Any]] = {
    # One record of each partition is all that is wanted; a broker sends its batch whole, however long.
    "fetch.message.max.bytes": 1024,
    "queued.min.messages": 1,
    "fetch.wait.max.ms": 100,
    # A batch that is damaged on disk is not unpacked: a stream of gzip that ends early is unpacked for ever.
    "check.crcs": True,
}
_PATIENCE_SECONDS: Final = 3.0


class SingleRecords:
    """Connects with the first question, and stays connected until it is closed or a look says `let_go`.

    Args:
        settings: of librdkafka. No group is joined and nothing is committed.
    """

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._settings = {**settings, **_FETCH}
        self._reader: PartitionReader | None = None
        # A client of librdkafka is never closed while another thread is in it.
        self._using = threading.Lock()
        self._closing = threading.Event()

    @contextmanager
    def reader(self) -> Iterator[PartitionReader]:
        """The connected reader; no other thread has it meanwhile."""
        with self._using:
            if self._reader is None:
                self._reader = PartitionReader(self._settings)
            yield self._reader

    def turns(self) -> Iterator[None]:
        """Once for each poll that a look has time for; ends early when it is closed."""
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while time.monotonic() < deadline and not self._closing.is_set():
            yield

    def let_go(self) -> None:
        """Let go of all connections, from within a look; the next one begins with asking who leads what."""
        reader, self._reader = self._reader, None
        if reader is not None:
            reader.close()

    def close(self) -> None:
        """Let go of all connections; a question under way in another thread ends early."""
        self._closing.set()
        with self._using:
            self.let_go()
