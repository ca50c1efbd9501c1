"""A log with one right answer: histories of real groups in an ordinary topic of the same layout as the coordinator's.

No one else writes to it, and it is read through `kafka.offsets_topic`; so what a monitor must show, count and tell
follows from it by a replay in one piece, whatever was done to the monitor meanwhile.
"""

import json
import random
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from confluent_kafka import KafkaError, Message, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions, NewTopic

from coordinator_model.replica import Replica
from coordinator_model.state import snapshot
from coordinator_model.state.events import event_view
from coordinator_model.state.findings import Position
from coordinator_model.state.offsets import OffsetBucket
from coordinator_model.views.group_view import group_view
from lab import builders
from lab.monitor_process import until
from streaming.config.kafka_sections import KafkaSection
from streaming.recording.file_format import RecordedRecord, open_recording
from streaming.recording.recorder import LogRecorder

TOPIC: Final = "coordinator-log"
PARTITIONS: Final = 4
RECORDINGS: Final = Path(__file__).resolve().parents[1] / "recordings" / "4.3.1"
START_MS: Final = 1_790_000_000_000
COMMITTING_GROUPS: Final = 24
CROWD: Final = 800
"""Groups that commit at once: enough for what is kept of them to be packed."""
CROWD_AFTER: Final = 160
CROWD_EVERY: Final = 40
"""Events of the story before, and between, those of the crowd."""
NEWEST_TYPE: Final = b"\x7f\x01"
"""A record type of some later release."""

# Kept whole and for ever, whatever time its records carry.
KEPT: Final = {"cleanup.policy": "delete", "retention.ms": "-1", "message.timestamp.type": "CreateTime"}


@dataclass(frozen=True, slots=True)
class Write:
    """One record to be written."""

    partition: int
    timestamp_ms: int
    key: bytes
    value: bytes | None


Events = list[Write]
"""Records of whole events of the coordinator: an event is one record batch, so it is never read in part."""


def histories() -> list[Events]:
    """What real brokers wrote: recordings of the newest release, each in a partition, cut between two events."""
    found: list[Events] = []
    for number, path in enumerate(sorted(RECORDINGS.glob("*.ndjson.gz"))):
        open_events: Events = []
        with open_recording(path) as records:
            for record in sorted(records, key=lambda of: (of.partition, of.offset)):
                if open_events and record.timestamp_ms != open_events[-1].timestamp_ms:
                    found.append(open_events)
                    open_events = []
                write = Write(number % PARTITIONS, record.timestamp_ms, record.key, record.value)
                open_events.append(write)
        found.append(open_events)
    return found


def commits(rounds: int, seed: int = 1) -> Iterator[Events]:
    """Simple groups that commit, some backwards, some for the last time, and records of an unknown type."""
    chance = random.Random(seed)
    offsets: dict[tuple[str, int], int] = {}
    for number in range(rounds):
        time_ms = START_MS + 1_000 * number
        written: Events = []
        for group in (f"commits-{n}" for n in range(COMMITTING_GROUPS)):
            partition = chance.randrange(3)
            place = (group, partition)
            offsets[place] = max(0, offsets.get(place, 0) + chance.choice((1, 1, 5, 100, -3)))
            record = builders.offset_commit(group, "t", partition, offsets[place], timestamp=time_ms)
            if chance.random() < 0.01:
                record = builders.offset_commit_tombstone(group, "t", partition)
            written.append(Write(hash_of(group), time_ms, *record))
        if number % 20 == 7:
            written.append(Write(number % PARTITIONS, time_ms, NEWEST_TYPE + bytes([0, number % 256]), b"\x00\x00"))
        yield written


def crowds(rounds: int) -> Iterator[Events]:
    """Many groups that commit together; every time another eighth of them ends, to begin again the next time."""
    for number in range(rounds):
        time_ms = START_MS + 1_000 * number
        written: Events = []
        for n in range(CROWD):
            group = f"crowd-{n}"
            record = builders.offset_commit(group, "t", 0, 10 * number, timestamp=time_ms)
            if number and n % 8 == number % 8:
                record = builders.offset_commit_tombstone(group, "t", 0)
            written.append(Write(hash_of(group), time_ms, *record))
        yield written


def hash_of(group: str) -> int:
    """The partition of a group of ours."""
    return sum(group.encode()) % PARTITIONS


def story(rounds: int = 120) -> list[Events]:
    """All of it, mixed so that something of everything happens throughout."""
    real, simple = histories(), list(commits(rounds))
    stride = max(1, len(real) // len(simple))
    mixed: list[Events] = []
    while real or simple:
        mixed += real[:stride]
        mixed += simple[:1]
        real, simple = real[stride:], simple[1:]
    places = range(CROWD_AFTER, len(mixed), CROWD_EVERY)
    for place, crowd in reversed([*zip(places, crowds(len(places)), strict=True)]):
        mixed.insert(place, crowd)
    return mixed


class Log:
    """The topic, for writing and for knowing what follows from it."""

    def __init__(
        self,
        bootstrap_servers: str,
        topic: str = TOPIC,
        *,
        replicas: int = 1,
        placed: Sequence[Sequence[int]] | None = None,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        """Make it; `placed` names the brokers that hold each partition, the one first that is to lead it."""
        self._replicas, self._placed = replicas, placed
        self.bootstrap_servers, self.topic = bootstrap_servers, topic
        self._kafka = KafkaSection(bootstrap_servers=bootstrap_servers, offsets_topic=topic)
        # One event is one batch: what is flushed at once is sent at once.
        self._producer = Producer({"bootstrap.servers": bootstrap_servers, "linger.ms": 1_000, "log_level": 2})
        self._settings = {**KEPT, **(settings or {})}
        self._written: list[RecordedRecord] = []
        self._one_event = threading.Lock()
        self.make()

    def make(self, partitions: int = PARTITIONS) -> None:
        """Make the topic."""
        admin = AdminClient({"bootstrap.servers": self.bootstrap_servers, "log_level": 2})
        where = (
            {"replication_factor": self._replicas}
            if self._placed is None
            else {"replica_assignment": [list(of) for of in self._placed]}
        )
        self.partitions = partitions
        wanted = NewTopic(self.topic, partitions, config=self._settings, **where)
        self._written = []
        admin.create_topics([wanted], operation_timeout=30)[self.topic].result(30)

    def remove(self) -> None:
        """Delete the topic."""
        admin = AdminClient({"bootstrap.servers": self.bootstrap_servers, "log_level": 2})
        admin.delete_topics([self.topic], operation_timeout=30)[self.topic].result(30)

    def grow(self) -> None:
        """Give the topic a partition more."""
        admin = AdminClient({"bootstrap.servers": self.bootstrap_servers, "log_level": 2})
        admin.create_partitions([NewPartitions(self.topic, self.partitions + 1)])[self.topic].result(30)
        self.partitions += 1

        def is_known() -> bool:
            return self.partitions == len(
                self._producer.list_topics(self.topic, timeout=10).topics[self.topic].partitions
            )

        until(is_known, 60, "the topic does not grow")

    def write(self, *events: Events) -> None:
        """Write events; they are in the log when this returns."""
        for records in events:
            with self._one_event:
                for of in records:
                    self._producer.produce(
                        self.topic,
                        of.value,
                        of.key,
                        partition=of.partition,
                        timestamp=of.timestamp_ms,
                        on_delivery=self._note,
                    )
                assert 0 == self._producer.flush(60)

    def undisturbed(self, live_from: dict[int, int] | None = None) -> "Answer":
        """What follows from the log: a replay in one piece of all that was written, cleaned away or not.

        Args:
            live_from: by partition the log's end when it began to be read; without it, it was empty.
        """
        return replayed(self._whole(), live_from, self.partitions)

    def records(self) -> list[RecordedRecord]:
        """What there is to read, in the order of each partition, as the two readers deliver it."""
        recorder = LogRecorder(self._kafka, list(range(self.partitions)))
        try:
            return list(recorder.records())
        finally:
            recorder.close()

    def cleaned_away(self) -> int:
        """How many of the records that were written are there no more."""
        return len(self._written) - len(self.records())

    def _whole(self) -> list[RecordedRecord]:
        """Of a log that is kept, what there is in it; of a compacted one what brokers acknowledged."""
        if self._settings["cleanup.policy"] != "compact":
            return self.records()
        return sorted(self._written, key=lambda of: (of.partition, of.offset))

    def _note(self, error: KafkaError | None, message: Message) -> None:
        assert error is None, error
        place, offset, key = message.partition(), message.offset(), message.key()
        assert place is not None
        assert offset is not None
        assert key is not None
        self._written.append(RecordedRecord(place, offset, message.timestamp()[1], key, message.value()))

    def ends(self) -> dict[int, int]:
        """By partition, the offset that comes next."""
        recorder = LogRecorder(self._kafka, list(range(self.partitions)))
        recorder.close()
        return recorder.ends


@dataclass
class Answer:
    """What must be shown, counted and reported, in the form of the checkpoint, of the API and of events."""

    events: dict[str, dict[str, Any]] = field(default_factory=dict)
    groups: dict[str, Any] = field(default_factory=dict)
    """Group → everything remembered of it, its counters included."""
    offsets: dict[tuple[str, str, int], OffsetBucket] = field(default_factory=dict)
    """(group, topic, bucket) → committed offsets, and how many commits and rewinds."""
    shards: dict[int, Any] = field(default_factory=dict)
    """Partition → records read, unknown and undecodable ones by type."""
    views: dict[str, dict[str, Any]] = field(default_factory=dict)

    def take(self, replica: Replica) -> None:
        """Add one partition's."""
        self.events.update((event.id, event_view(event)) for event in replica.settle())
        for name, state in sorted(replica.groups.items()):
            for event in replica.judge(name):
                self.events[event.id] = event_view(event)
            if state.exists:
                self.groups[name] = json.loads(snapshot.dump_group(state))
                # As of now: how long a classic member has had to rejoin depends on it.
                self.views[name] = group_view(state, replica.offsets(name), {}, time.time_ns() // 1_000_000)
                self.shards[state.partition] = asdict(replica.counters)
        for (group, topic, number), bucket in replica.buckets.items():
            if group in self.groups:
                self.offsets[group, topic, number] = bucket


def replayed(
    records: Iterable[RecordedRecord], live_from: Mapping[int, int] | None = None, partitions: int = PARTITIONS
) -> Answer:
    """What follows from the records of so many partitions; `live_from` as in `Log.undisturbed`."""
    replicas = {n: Replica(live_from=(live_from or {}).get(n, 0)) for n in range(partitions)}
    answer = Answer()
    for record in records:
        place = Position(record.partition, record.offset, record.timestamp_ms)
        events = replicas[record.partition].replay(place, record.key, record.value)
        answer.events.update((event.id, event_view(event)) for event in events)
    for replica in replicas.values():
        answer.take(replica)
    return answer


class Writing:
    """Writes events in the background, so many a second, until it is left; then the rest at once."""

    def __init__(self, log: Log, events: Sequence[Events], per_second: float) -> None:
        self._log, self._events, self._pause = log, list(events), 1 / per_second
        self._hurry = threading.Event()
        self._failed: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="writing", daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._hurry.set()
        self._thread.join()
        assert self._failed is None, self._failed

    @property
    def is_done(self) -> bool:
        return not self._thread.is_alive()

    def _run(self) -> None:
        try:
            for events in self._events:
                self._log.write(events)
                self._hurry.wait(self._pause)
        except BaseException as error:  # noqa: BLE001 - reported by who waits for the thread
            self._failed = error
