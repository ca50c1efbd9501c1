"""Asks brokers when records were written that groups have not read and no sample of log ends shows the age of.

A group that had stopped before the monitor began has only a lower bound: the first sample. Its commit stands still, so
the time of the record there is sought once (`bisection.py`) and kept. All searches go on together, a question a second
for as many partitions as `AT_ONCE`; who gives no answer is asked again after `AGAIN_SECONDS`.
"""

import time
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Final, Protocol

from kafka.errors import KafkaError

from streaming.base.logging_setup import get_logger
from streaming.base.outage import Outage
from streaming.base.threads import Connection, Repeating
from streaming.end_offsets.bisection import Bisection
from streaming.end_offsets.store import EndOffsets, TopicPartition

AT_ONCE: Final = 100
"""Partitions that one round asks about: an answer is a look into an index and a segment, on the broker's disk."""

EVERY_SECONDS: Final = 1.0
AGAIN_SECONDS: Final = 600.0

_log = get_logger("lag_times")

FirstRecord = tuple[int, int]
"""Offset and timestamp of the first record that is no older; negative for none."""


class TimesClient(Protocol):
    """What is asked of a cluster. Every method may raise KafkaError, OSError or RuntimeError."""

    def first_since(
        self, times_ms: Mapping[TopicPartition, int], leaders: Mapping[TopicPartition, int]
    ) -> tuple[dict[TopicPartition, FirstRecord], Collection[TopicPartition]]:
        """The first record of each partition at or after a time, of those that answer, and who is to be asked again.

        `leaders` maps each partition to the broker that leads it; asked again are those that another broker has to
        answer, or this one in a moment.
        """
        ...

    def close(self) -> None:
        """Let go of all connections; a call under way in another thread ends with an error."""
        ...


class LagTimes:
    """The thread that asks.

    Args:
        ends: where answers go.
        connect: makes a client; called again after a failure.
        wanted: (topic, partition, offset) of the commits whose lag in seconds is a lower bound.
        clock_ms: the wall clock, in milliseconds.
    """

    def __init__(
        self,
        ends: EndOffsets,
        connect: Callable[[], TimesClient],
        wanted: Callable[[], Iterable[tuple[str, int, int]]],
        clock_ms: Callable[[], int],
    ) -> None:
        self._ends = ends
        self._connection = Connection(connect)
        self._wanted = wanted
        self._clock_ms = clock_ms
        self._searches: dict[TopicPartition, Bisection] = {}
        self._settled: dict[tuple[str, int, int], float] = {}
        self._outage = Outage(_log, "times_of_records", clock_ms)
        self._thread = Repeating("lag-times", EVERY_SECONDS, self.look, interrupt=self._connection.drop)

    def start(self) -> None:
        """Begin to ask."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread, even out of a question without an answer."""
        self._thread.stop()

    def look(self) -> None:
        """One round of questions. Never raises for the brokers' sake."""
        topics = self._ends.topics
        # A partition without a leader cannot be asked about.
        self._choose(
            {
                (topic, partition, offset)
                for topic, partition, offset in self._wanted()
                if topic in topics and partition in topics[topic].leaders
            }
        )
        if not self._searches:
            return
        asked = {place: search.question_ms for place, search in self._searches.items()}
        try:
            answers, again = self._connection.client.first_since(
                asked, {(topic, partition): topics[topic].leaders[partition] for topic, partition in asked}
            )
        except (KafkaError, OSError, RuntimeError) as error:
            self._connection.drop()
            self._outage.failed(error)
            return
        self._outage.succeeded()
        found: dict[TopicPartition, dict[int, int]] = {}
        if again:
            self._ends.doubt_leaders()
        for place in asked.keys() - {*again}:
            search = self._searches[place]
            if place in answers:
                search.take(*answers[place])
            if place not in answers or search.is_over:
                del self._searches[place]
                # Found or not: what is still asked for then, as a commit above a cut, is let be for a while.
                self._settled[(*place, search.offset)] = time.monotonic()
                if search.written_ms is not None:
                    found[place] = {search.offset: search.written_ms}
        if found:
            self._ends.record_found(found)

    def _choose(self, wanted: set[tuple[str, int, int]]) -> None:
        """Go on with searches whose commit still stands, and begin others while there is room: one a partition."""
        now = time.monotonic()
        self._settled = {of: at for of, at in self._settled.items() if of in wanted and now - at < AGAIN_SECONDS}
        self._searches = {
            place: search for place, search in self._searches.items() if (*place, search.offset) in wanted
        }
        for topic, partition, offset in sorted(wanted - self._settled.keys()):
            if len(self._searches) >= AT_ONCE:
                break
            self._searches.setdefault((topic, partition), Bisection(offset, self._clock_ms()))
