"""How old the oldest open transaction of a partition is: the age of the record at its last stable offset.

The last stable offset is by definition the first record of the first transaction that is open, so that record's
timestamp is when the transaction wrote there first. It is asked for only where the same offset has stood for some
seconds: applications that commit every 100 ms always have a transaction open, and another one every time. Until it is
known, and where it cannot be had, the age is counted from the first sample that showed the transaction.
"""

import threading
import time
from collections.abc import Mapping
from typing import Any, Final

from streaming.end_offsets.store import TopicPartition
from streaming.kafka.plain_consumer import PartitionReader

STANDS_MS: Final = 5_000
"""How long a last stable offset has to stand before the record at it is asked for."""

_FETCH: Final[Mapping[str, Any]] = {
    # One record of each partition is all that is wanted; a broker sends its batch whole, however long.
    "fetch.message.max.bytes": 1024,
    "queued.min.messages": 1,
    "fetch.wait.max.ms": 100,
}
_AT_ONCE: Final = 1_000
_POLL_SECONDS: Final = 0.2
_PATIENCE_SECONDS: Final = 3.0


class RecordTimes:
    """Reads single records of the log, uncommitted ones too; connects with the first question.

    Args:
        settings: of librdkafka. No group is joined and nothing is committed.
    """

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._settings = settings
        self._reader: PartitionReader | None = None
        # A client of librdkafka is never closed while another thread is in it.
        self._using = threading.Lock()
        self._closing = threading.Event()

    def written_ms(self, places: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """Timestamps of the records at these offsets; what does not come in time is left out.

        Raises ReadError.
        """
        with self._using:
            if self._reader is None:
                self._reader = PartitionReader({**self._settings, **_FETCH})
            found: dict[TopicPartition, int] = {}
            try:
                found = self._first_of(self._reader, places)
            finally:
                if len(found) < len(places):
                    # Who leads the others may be another broker by now: the next question begins with another look.
                    self._let_go()
        return found

    def close(self) -> None:
        """Let go of all connections; a question under way in another thread ends early."""
        self._closing.set()
        with self._using:
            self._let_go()

    def _let_go(self) -> None:
        reader, self._reader = self._reader, None
        if reader is not None:
            reader.close()

    def _first_of(self, reader: PartitionReader, places: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        reader.begin(places)
        found: dict[TopicPartition, int] = {}
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while len(found) < len(places) and time.monotonic() < deadline and not self._closing.is_set():
            for record in reader.poll(_AT_ONCE, _POLL_SECONDS):
                place = record.topic() or "", record.partition() or 0
                if (record.offset() or 0) >= places[place]:
                    found.setdefault(place, record.timestamp()[1])
            reader.leave(reader.positions.keys() & found.keys())
        return found
