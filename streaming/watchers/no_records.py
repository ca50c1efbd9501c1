"""Looks whether a record waits at all where a log has stood still and a group has not read it to the end.

Such a rest may hold no record: the marker that ends a transaction, or what was aborted. Clients whose commits stop one
short of a marker (sarama, kafkajs and franz-go with auto-commit) would lag for ever, and once the log is cleaned they
would have lost what never was. So the rest is looked at once, as a consumer of committed records is sent it, when it is
short and its log has been idle for a while; what comes of it is kept as long as nothing is appended. Where READ on the
topic is missing nothing is known, and a record is said to wait.
"""

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Final, Protocol

from kafka.errors import KafkaError

from streaming.base.logging_setup import get_logger
from streaming.base.outage import Outage
from streaming.base.threads import Connection, Repeating
from streaming.end_offsets.first_records import FirstRecords
from streaming.end_offsets.store import EndOffsets, TopicPartition

AT_ONCE: Final = 20
"""Partitions that one look reads from: a broker sends a whole batch of each."""

EVERY_SECONDS: Final = 1.0

RETRY_SECONDS: Final = 5.0
"""How soon what was not answered is asked again."""
AGAIN_SECONDS: Final = 600.0
"""After so long an offset is looked at again that gave no answer."""

REFUSED_SECONDS: Final = 3_600.0
"""After so long a topic is tried again that may not be read."""

_log = get_logger("no_records")


class RecordsClient(Protocol):
    """What is asked of a cluster. Every method may raise KafkaError, OSError or RuntimeError."""

    def first_at(self, places: Mapping[TopicPartition, int], leaders: Mapping[TopicPartition, int]) -> FirstRecords:
        """The first committed records at these offsets or after them, of partitions that answer in time."""
        ...

    def close(self) -> None:
        """Let go of all connections; a call under way in another thread ends early."""
        ...


class NoRecords:
    """The thread that looks.

    Args:
        ends: where answers go.
        connect: makes a client; called again after a failure.
        wanted: (topic, partition, offset) of what may hold no record.
        clock_ms: the wall clock, in milliseconds.
        clock: in seconds, for how long an answer is waited for.
    """

    def __init__(
        self,
        ends: EndOffsets,
        connect: Callable[[], RecordsClient],
        wanted: Callable[[], Iterable[tuple[str, int, int]]],
        clock_ms: Callable[[], int],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._ends = ends
        self._connection = Connection(connect)
        self._wanted = wanted
        self._clock = clock
        self._asked: dict[tuple[str, int, int], float] = {}
        self._refused: dict[str, float] = {}
        self._refusal_logged = False
        self._outage = Outage(_log, "first_records", clock_ms)
        self._thread = Repeating("no-records", EVERY_SECONDS, self.look, interrupt=self._connection.drop)

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread, even out of a question without an answer."""
        self._thread.stop()

    def look(self) -> None:
        """One look. Never raises for the brokers' sake."""
        places, leaders = self._choose()
        if not places:
            self._connection.drop()  # idle logs are rare news: no connection is kept for them
            return
        now = self._clock()
        self._asked |= {(*place, offset): now for place, offset in places.items()}
        try:
            found = self._connection.client.first_at(places, leaders)
        except (KafkaError, OSError, RuntimeError) as error:
            self._connection.drop()
            self._outage.failed(error)
            self._asked |= {(*place, offset): now - AGAIN_SECONDS + RETRY_SECONDS for place, offset in places.items()}
            return
        self._outage.succeeded()
        self._refused |= dict.fromkeys(found.refused, now)
        if found.refused and not self._refusal_logged:
            self._refusal_logged = True
            _log.debug("records_not_looked_at", topic=min(found.refused), needs="READ, to tell markers from records")
        self._ends.record_gaps(found.gaps)

    def _choose(self) -> tuple[dict[TopicPartition, int], dict[TopicPartition, int]]:
        """What to look at now, one offset a partition; and who leads these."""
        now, topics = self._clock(), self._ends.topics
        self._asked = {of: at for of, at in self._asked.items() if now - at < AGAIN_SECONDS}
        self._refused = {topic: at for topic, at in self._refused.items() if now - at < REFUSED_SECONDS}
        places: dict[TopicPartition, int] = {}
        for topic, partition, offset in sorted({*self._wanted()} - self._asked.keys()):
            # A partition without a leader cannot be asked about.
            if topic not in self._refused and topic in topics and partition in topics[topic].leaders:
                places.setdefault((topic, partition), offset)
            if len(places) == AT_ONCE:
                break
        return places, {(topic, partition): topics[topic].leaders[partition] for topic, partition in places}
