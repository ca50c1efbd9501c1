"""Sampling where the logs end: one thread asks the brokers, `LogEnds` keeps the answers.

Each round asks for the high watermark and for the last stable offset of every partition that some group has to do
with, and of the offsets topic: two requests a broker. Where a transaction stays open in the offsets topic, the record
it began with is read once (`open_transactions.py`). Topics are described again when a name or an id comes up that is
not known, when something is amiss, and every half minute: that is how a topic made anew is noticed.

A round that fails is not the end of anything: the figures grow old, which is shown, and the next round tries again.
"""

import contextlib
import time
import uuid
from base64 import urlsafe_b64decode
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, Final, Protocol

from kafka import TopicPartition as KafkaTopicPartition
from kafka.admin import OffsetSpec
from kafka.errors import BrokerResponseError, KafkaError, TopicAuthorizationFailedError
from kafka.protocol.consumer import IsolationLevel

from coordinator_model.wire import uuid_text
from streaming.lazy_admin import LazyAdmin
from streaming.log_ends import LogEnds, Topic, TopicPartition
from streaming.logs import get_logger
from streaming.open_transactions import STANDS_MS, RecordTimes
from streaming.repeating import Background, Connection

DESCRIBE_EVERY_MS: Final = 30_000
DESCRIBE_AGAIN_MS: Final = 5_000
"""How soon where a topic is missing, a partition does not answer, or an end went backwards: something is changing."""

SAVE_EVERY_MS: Final = 60_000
SLOWEST_RETRY_MS: Final = 5_000
"""Longest pause between rounds while the brokers do not answer."""

_MOST_QUESTIONS: Final = 64
_STOP_SECONDS: Final = 1.0

_log = get_logger("end_offsets")


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the groups have to do with: topics by name (commits, subscriptions) and by id (assignments)."""

    names: frozenset[str] = frozenset()
    ids: frozenset[str] = frozenset()


class OffsetsClient(Protocol):
    """What the sampler asks of a cluster. Every method may raise KafkaError, OSError or RuntimeError."""

    def describe(self, names: Collection[str], ids: Collection[str]) -> list[Topic]:
        """Topics by name and by id (22-character text); those that do not exist are left out."""
        ...

    def ends(self, partitions: Mapping[TopicPartition, int], *, committed: bool) -> dict[TopicPartition, int]:
        """Last stable offsets if `committed`, else high watermarks, of partitions that answer.

        `partitions` maps each to the broker that leads it.
        """
        ...

    def earliest(self, partitions: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """First offsets that can be read, of partitions that answer."""
        ...

    def written_ms(self, places: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """Timestamps of the records at these offsets, in milliseconds; what does not come in time is left out."""
        ...

    def close(self) -> None:
        """Let go of all connections; a call under way in another thread ends with an error."""
        ...


class KafkaOffsetsClient:
    """kafka-python behind the protocol. It connects with the first question, so that `close` can end that, too.

    Args:
        settings: of `KafkaAdminClient`; time limits are tightened, because a sample that comes late is worth nothing.
    """

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._admin = LazyAdmin(settings)
        self._record_times = RecordTimes(settings)
        self._silent: set[TopicPartition] = set()
        self._refused: set[str] = set()

    def describe(self, names: Collection[str], ids: Collection[str]) -> list[Topic]:
        """See `OffsetsClient`. Partitions that did not answer before are asked again from here on."""
        self._silent.clear()
        described = self._admin.client.describe_topics([*names, *(_uuid(id_) for id_ in ids)])
        self._tell_refused(described)
        return [
            Topic(
                id=uuid_text(uuid.UUID(str(topic["topic_id"])).bytes),
                name=topic["name"],
                partitions=len(topic["partitions"]),
                leaders={p["partition_index"]: p["leader_id"] for p in topic["partitions"] if p["leader_id"] >= 0},
                leader_epochs={p["partition_index"]: p.get("leader_epoch", -1) for p in topic["partitions"]},
            )
            for topic in described
            if topic["error_code"] == 0
        ]

    def ends(self, partitions: Mapping[TopicPartition, int], *, committed: bool) -> dict[TopicPartition, int]:
        """See `OffsetsClient`."""
        isolation = IsolationLevel.READ_COMMITTED if committed else IsolationLevel.READ_UNCOMMITTED
        return self._list(partitions, OffsetSpec.LATEST, isolation)

    def earliest(self, partitions: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """See `OffsetsClient`."""
        return self._list(partitions, OffsetSpec.EARLIEST, IsolationLevel.READ_UNCOMMITTED)

    def written_ms(self, places: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """See `OffsetsClient`."""
        return self._record_times.written_ms(places)

    def close(self) -> None:
        """See `OffsetsClient`."""
        self._record_times.close()
        self._admin.close()

    def _tell_refused(self, described: list[dict[str, Any]]) -> None:
        """Say once of each topic that it is there, but not for us: it would be missing without a word."""
        code = TopicAuthorizationFailedError.errno
        refused = {topic["name"] or str(topic["topic_id"]) for topic in described if topic["error_code"] == code}
        for name in sorted(refused - self._refused):
            _log.warning("topic_not_described", topic=name, needs="the permission DESCRIBE")
        self._refused = refused

    def _list(
        self, partitions: Mapping[TopicPartition, int], spec: object, isolation: object
    ) -> dict[TopicPartition, int]:
        """All in one question; where kafka-python fails it for the sake of a part, in smaller ones."""
        found: dict[TopicPartition, int] = {}
        asked = sorted(partitions.keys() - self._silent, key=lambda place: (partitions[place], place))
        pending, first_error = [asked] if asked else [], None
        for _ in range(_MOST_QUESTIONS):
            if not pending:
                break
            part = pending.pop()
            specs = {KafkaTopicPartition(topic, partition): spec for topic, partition in part}
            try:
                answer = self._admin.client.list_partition_offsets(specs, isolation)
            except KafkaError as error:
                first_error = first_error or error
                pending += self._smaller(part, partitions, error)
                continue
            found.update({(place.topic, place.partition): held.offset for place, held in answer.items()})
        if first_error is not None and not found:
            raise first_error
        return found

    def _smaller(
        self, part: list[TopicPartition], brokers: Mapping[TopicPartition, int], error: KafkaError
    ) -> list[list[TopicPartition]]:
        """What to ask instead: broker by broker, then by halves until the partition that the broker means is alone."""
        by_broker = [list(places) for _, places in groupby(part, key=brokers.__getitem__)]
        if len(by_broker) > 1:
            return by_broker
        if not isinstance(error, BrokerResponseError):
            return []  # the broker does not answer at all
        if len(part) == 1:
            self._silent.update(part)
            return []
        return [part[len(part) // 2 :], part[: len(part) // 2]]


class EndOffsetSampler:
    """The thread that samples.

    Args:
        ends: where the samples go.
        connect: makes a client; called again after a failure.
        wanted: what the groups have to do with at the moment.
        offsets_topic: the coordinator's log, sampled too.
        interval_ms: time between the beginnings of two rounds.
        file: where histories are kept over a restart; None for nowhere.
        clock_ms: the wall clock, in milliseconds.
    """

    def __init__(  # noqa: PLR0913 - what it samples, how, and how often
        self,
        ends: LogEnds,
        connect: Callable[[], OffsetsClient],
        wanted: Callable[[], Wanted],
        *,
        offsets_topic: str = "__consumer_offsets",
        interval_ms: int = 1_000,
        file: Path | None = None,
        clock_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        self._ends = ends
        self._connection = Connection(connect)
        self._wanted = wanted
        self._offsets_topic = offsets_topic
        self._interval_ms = interval_ms
        self._file = file
        self._clock_ms = clock_ms
        self._thread = Background("end-offsets", self._run, stop_seconds=_STOP_SECONDS, interrupt=self._connection.drop)
        self._failures = 0
        self._failing_since_ms = 0
        self._described_ms: int | None = None
        self._asked = Wanted()
        self._amiss = False
        self._saved_ms = clock_ms()

    def start(self) -> None:
        """Load the histories and begin to sample."""
        if self._file is not None:
            try:
                self._ends.load(self._file)
            except ValueError as error:
                _log.warning("end_offset_history_not_loaded", reason=str(error))
        self._thread.start()

    def stop(self) -> None:
        """End the thread, even out of a question that nobody answers, and keep the histories."""
        self._thread.stop()
        self._save()

    def sample(self) -> bool:
        """One round; tells whether it came in. Never raises."""
        try:
            self._round(self._connection.client)
        except Exception as error:  # noqa: BLE001 - whatever a client throws must not end the sampling
            self._failed(error)
            return False
        if self._failures:
            since_ms = self._clock_ms() - self._failing_since_ms
            _log.info("end_offsets_available_again", after_seconds=round(since_ms / 1000, 1))
        self._failures = 0
        return True

    def _run(self) -> None:
        while not self._thread.stopping.is_set():
            begun = time.monotonic()
            self.sample()
            if self._clock_ms() - self._saved_ms >= SAVE_EVERY_MS:
                self._save()
            pause_ms = self._interval_ms
            if self._failures:
                pause_ms = max(pause_ms, min(SLOWEST_RETRY_MS, pause_ms << min(self._failures, 10)))
            self._thread.stopping.wait(max(0.0, pause_ms / 1000 - (time.monotonic() - begun)))

    def _round(self, client: OffsetsClient) -> None:
        wanted = self._wanted()
        wanted = Wanted(wanted.names | {self._offsets_topic}, wanted.ids - self._ends.topic_names.keys())
        now_ms = self._clock_ms()
        interval_ms = DESCRIBE_AGAIN_MS if self._amiss else DESCRIBE_EVERY_MS
        due = self._described_ms is None or not 0 <= now_ms - self._described_ms < interval_ms
        news = wanted.names - self._asked.names or wanted.ids - self._asked.ids
        if due or news:
            self._describe(client, wanted)
        partitions = self._partitions()
        high_watermarks = client.ends(partitions, committed=False)
        last_stable = client.ends(partitions, committed=True)
        backwards = self._ends.record(self._clock_ms(), high_watermarks, last_stable)
        unanswered = partitions.keys() - (high_watermarks.keys() & last_stable.keys())
        missing = self._asked.names - self._ends.topics.keys() or self._asked.ids - self._ends.topic_names.keys()
        self._amiss = bool(backwards or unanswered or missing)
        if due or news:
            self._ends.record_earliest(client.earliest(partitions))
        stands = self._ends.open_transactions(self._offsets_topic, self._clock_ms() - STANDS_MS)
        if stands:
            written_ms: Mapping[TopicPartition, int] = {}
            # Without an answer the age counts from when the transaction was first seen: no reason to lose the round.
            with contextlib.suppress(Exception):
                written_ms = client.written_ms(stands)
            self._ends.record_open_since(stands, written_ms)

    def _describe(self, client: OffsetsClient, wanted: Wanted) -> None:
        described = client.describe(wanted.names, ())
        by_id = client.describe((), wanted.ids) if wanted.ids else []
        self._ends.set_topics([*described, *by_id], wanted.names, self._clock_ms())
        self._asked = wanted
        self._described_ms = self._clock_ms()

    def _partitions(self) -> dict[TopicPartition, int]:
        topics = self._ends.topics.values()
        return {(topic.name, partition): broker for topic in topics for partition, broker in topic.leaders.items()}

    def _failed(self, error: Exception) -> None:
        if not self._failures and not self._thread.stopping.is_set():
            self._failing_since_ms = self._clock_ms()
            _log.warning("end_offsets_unavailable", reason=f"{type(error).__name__}: {error}")
        self._failures += 1
        self._described_ms = None
        self._connection.drop()

    def _save(self) -> None:
        self._saved_ms = self._clock_ms()
        if self._file is None or not self._thread.was_started:
            return
        try:
            self._ends.save(self._file)
        except OSError as error:
            _log.warning("end_offset_history_not_saved", file=str(self._file), reason=str(error))


def _uuid(text: str) -> uuid.UUID:
    return uuid.UUID(bytes=urlsafe_b64decode(text + "=="))
