"""Logs for the judge, with the places at which both sides are looked at."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Final

from tests.histories import History, LogRecord, recording
from tests.kafka_replay.judge import NO_PRODUCER, SHOW, Entry, end, record
from tests.side_by_side import log_of
from tests.simulator.coordinator import ReferenceCoordinator
from tests.simulator.log import Written

PLACES: Final = 8
"""Places within a simulated history that are looked at, besides its end."""
PLACES_OF_RECORDING: Final = 40


@dataclass(frozen=True, slots=True)
class JudgedLog:
    """One offsets partition.

    Attributes:
        name: what it is called where something differs.
        entries: what Kafka loads, with a SHOW at each place and at the end.
        records: what the replica reads, of a reader of committed records: no markers, nothing that was aborted.
        read: how many of `records` stand before each SHOW.
    """

    name: str
    entries: tuple[Entry, ...]
    records: tuple[LogRecord, ...]
    read: tuple[int, ...]

    def until(self, entry: int) -> "JudgedLog":
        """What stands before an entry, looked at once: at its end. Of a log without transactions."""
        entries = tuple(each for each in self.entries[:entry] if each != SHOW)
        offset = self.entries[entry][1]
        records = tuple(of for of in self.records if of.place.offset < offset)
        return JudgedLog(self.name, (*entries, SHOW), records, (len(records),))

    def unread_by_kafka(self, entry: int) -> "JudgedLog":
        """The same without one entry for Kafka; the replica reads it."""
        return replace(self, entries=(*self.entries[:entry], *self.entries[entry + 1 :]))


def of_history(name: str, log: History, *, places: int = 0) -> JudgedLog:
    """A log without transactions, looked at between records of different times."""
    between = [
        at
        for at, (one, next_one) in enumerate(zip(log.records, log.records[1:], strict=False), 1)
        if one.place.timestamp_ms != next_one.place.timestamp_ms
    ]
    read = (*sorted(Random(name).sample(between, min(places, len(between)))), len(log))
    entries = [record(of.place.offset, of.key, of.value) for of in log.records]
    for at in reversed(read):
        entries.insert(at, SHOW)
    return JudgedLog(name, tuple(entries), log.records, read)


def of_recording(path: Path) -> Iterator[JudgedLog]:
    """A log for each partition: a coordinator has one shard a partition."""
    log = recording(path)
    for partition in sorted({of.place.partition for of in log.records}):
        part = History(tuple(of for of in log.records if of.place.partition == partition), log.topic_names)
        yield of_history(f"{path.parent.name}/{path.name}[{partition}]", part, places=PLACES_OF_RECORDING)


def of_simulated(name: str, coordinator: ReferenceCoordinator) -> JudgedLog:
    """What a reference coordinator wrote, transactions included, looked at where none is open.

    Where one is, a reader of committed records waits for its end, and Kafka does not.
    """
    log, records = coordinator.log, log_of(coordinator).records
    quiet = list(_without_open_transaction(log))
    chosen = {*Random(name).sample(quiet, min(PLACES, len(quiet))), len(log) - 1}
    entries: list[Entry] = []
    read: list[int] = []
    for at, written in enumerate(log):
        entries += _entries(written)
        if at in chosen:
            entries.append(SHOW)
            read.append(sum(of.place.offset < written.offset + len(written.records) for of in records))
    return JudgedLog(name, tuple(entries), records, tuple(read))


def _entries(written: Written) -> Iterator[Entry]:
    if written.marker is not None:
        assert written.producer is not None
        yield end(written.producer, committed=written.marker)
    producer = NO_PRODUCER if written.producer is None else written.producer
    for offset, (key, value) in enumerate(written.records, written.offset):
        yield record(offset, key, value, producer)


def _without_open_transaction(log: Sequence[Written]) -> Iterator[int]:
    open_ = set[int]()
    for at, written in enumerate(log):
        if written.producer is not None:
            (open_.add if written.marker is None else open_.discard)(written.producer)
        if not open_:
            yield at
