"""Following a rehearsal: the embedded broker's coordinator log, read as it is written, into the replica. No Spark."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from contextlib import closing
from types import TracebackType
from typing import Any, Final, Self

from confluent_kafka import OFFSET_BEGINNING, KafkaException, TopicPartition

from coordinator_model.state.events import Event
from coordinator_model.state.membership import Membership
from coordinator_model.views.roll_cost import Cost
from streaming.base.errors import CannotTellError, first_line
from streaming.base.times import now_ms
from streaming.kafka.librdkafka import Consumer
from streaming.recording.file_format import RecordedRecord, RecordedTopic
from streaming.reports.measure import MeasuredGroup

OFFSETS_TOPIC: Final = "__consumer_offsets"
_POLL_SECONDS: Final = 0.05
_AT_ONCE: Final = 5_000


class Follower:
    """The replica of one group of the embedded broker, kept current by a thread; use as a context manager.

    Args:
        bootstrap_servers: the broker.
        group: the rehearsed group.
        topics: its topics, with their ids there.
        offsets_partitions: partitions of the coordinator's log.
    """

    def __init__(
        self, bootstrap_servers: str, group: str, topics: Iterable[RecordedTopic], offsets_partitions: int
    ) -> None:
        self.failure: str | None = None
        self.records: list[RecordedRecord] = []
        self._measured = MeasuredGroup(group, topics)
        self._partitions = offsets_partitions
        self._settings = {
            "bootstrap.servers": bootstrap_servers,
            # Must be there, and is used for nothing: no group is joined.
            "group.id": f"{group}-followed",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "isolation.level": "read_uncommitted",
            "fetch.wait.max.ms": 20,
            "log_level": 2,
        }
        self._changed = threading.Condition()
        self._stopping = threading.Event()
        self._written_ms = now_ms()
        self._settled = True
        self._thread = threading.Thread(target=self._run, name="follow", daemon=True)

    def membership(self) -> tuple[Membership, int] | None:
        """The group's members as of the last settled step, and when the group was last written; None while open."""
        with self._changed:
            state = self._measured.state
            if not self._settled or state is None:
                return None
            return state.membership.copy(), self._written_ms

    def wait(self, seconds: float) -> None:
        """Wait until something was read, or so long."""
        with self._changed:
            self._changed.wait(seconds)

    def begin(self) -> None:
        """Measure from now on."""
        with self._changed:
            self._measured.begin(now_ms())

    def cost(self) -> Cost:
        """What was measured until now."""
        with self._changed:
            return self._measured.cost(now_ms())

    def notes(self, cost: Cost) -> list[str]:
        """What is to be said of these figures."""
        with self._changed:
            return self._measured.notes(cost)

    def __enter__(self) -> Self:
        """Start."""
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop."""
        self._stopping.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            with closing(Consumer(self._settings)) as consumer:
                parts = range(self._partitions)
                consumer.assign([TopicPartition(OFFSETS_TOPIC, number, OFFSET_BEGINNING) for number in parts])
                while not self._stopping.is_set():
                    self._take(consumer.consume(_AT_ONCE, _POLL_SECONDS))
        except (KafkaException, CannotTellError) as error:
            with self._changed:
                self.failure = first_line(error)
                self._changed.notify_all()

    def _take(self, messages: list[Any]) -> None:
        with self._changed:
            events: list[Event] = []
            for message in messages:
                if message.error() is not None:
                    continue
                _, timestamp_ms = message.timestamp()
                record = RecordedRecord(
                    message.partition(), message.offset(), timestamp_ms, message.key(), message.value()
                )
                self.records.append(record)
                self._measured.take(record)
                if record.partition == self._measured.offsets_partition and _is_membership(record.key):
                    self._written_ms, self._settled = now_ms(), False
            if not messages:
                # A fetch brings whole batches, and an event never spans two.
                events += self._measured.settle()
                events += self._measured.look(now_ms())
                self._settled = True
            self._changed.notify_all()


def _is_membership(key: bytes | None) -> bool:
    return key is not None and int.from_bytes(key[:2], signed=True) >= 2  # noqa: PLR2004 - 0 and 1 are commits
