"""What readers are given of a log with transactions (docs/coordinator-log.md), by the rules of a fetch alone.

Consumers never see markers, and none says which transaction a record is of. One that reads committed records gets
those that a commit marker follows, up to the first record of a transaction that is still open; one that reads
uncommitted ones gets all at once. A monitor takes offsets from the first and memberships from the second.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from lab.builders import RecordBytes
from tests.simulator.cluster import Place
from tests.simulator.log import Written

Offsets = dict[str, dict[Place, dict[str, Any]]]
"""Group → place → committed offset."""


@dataclass(frozen=True, slots=True)
class Read:
    """One record as a reader gets it."""

    offset: int
    time_ms: int
    group: str
    record: RecordBytes
    is_offset: bool
    batch: int


def recorded(log: Sequence[Written]) -> list[Read]:
    """As in a recording: memberships, and offsets that count, in the order of the log."""
    committed = {id(of) for of in read_committed(log)}
    return [read for of in log for read in _records(of) if not read.is_offset or id(of) in committed]


def read_committed(log: Sequence[Written]) -> list[Written]:
    """Events with offsets that count, as far as they can be read: up to the last stable offset."""
    outcome = {id(of): _outcome(log, at) for at, of in enumerate(log) if of.producer is not None and of.marker is None}
    stable = next((at for at, of in enumerate(log) if outcome.get(id(of), True) is None), len(log))
    return [of for of in log[:stable] if of.marker is None and outcome.get(id(of), True)]


def offsets_read(log: Sequence[Written]) -> Offsets:
    """What follows from the committed records alone, in the order of the log."""
    found: Offsets = {}
    for of in read_committed(log):
        for place, offset in of.commits.items():
            held = found.setdefault(of.group, {})
            if offset is None:
                held.pop(place, None)
            else:
                held[place] = offset
    return found


@dataclass(frozen=True, slots=True)
class Oddities:
    """What offsets show besides themselves.

    `rewinds`: (group, topic, partition, from, to) of each that is below the one before, of the same topic.
    `recreated`: (group, topic) each time one names an id of the topic that none of the group did before.
    A commit of a recreated topic goes back on nothing; one within a transaction does not say which topic it means.
    """

    rewinds: list[tuple[str, str, int, int, int]]
    recreated: list[tuple[str, str]]


def oddities(log: Sequence[Written]) -> Oddities:
    """What is to be reported of the offsets of a log."""
    held: Offsets = {}
    ids: dict[tuple[str, str], list[str]] = {}
    found, recreated = [], []
    for of in read_committed(log):
        group = held.setdefault(of.group, {})
        for place, offset in of.commits.items():
            if offset is None:
                group.pop(place, None)
                continue
            former, topic_id = group.get(place), offset["topic_id"]
            known = ids.setdefault((of.group, place[0]), [])
            other = former is not None and None not in (former["topic_id"], topic_id) and former["topic_id"] != topic_id
            anew = topic_id is not None and bool(known) and topic_id not in known
            if former is not None and offset["offset"] < former["offset"] and not other and not anew:
                found.append((of.group, *place, former["offset"], offset["offset"]))
            if anew:
                recreated.append((of.group, place[0]))
            if topic_id is not None and topic_id not in known:
                known.append(topic_id)
            group[place] = offset
        if of.simple and not group:
            ids = {key: known for key, known in ids.items() if key[0] != of.group}
    return Oddities(sorted(found), sorted(recreated))


def of_two_readers(log: Sequence[Written], read: int, offsets_up_to: int) -> tuple[list[Read], list[Read], int]:
    """What comes new to two readers.

    Args:
        log: all that is written.
        read: how many events of it the reader of memberships had.
        offsets_up_to: offset from which the reader of offsets goes on.

    Returns:
        Memberships, offsets, and where the reader of offsets now stands.
    """
    members = [of for event in log[read:] for of in _records(event) if not of.is_offset]
    offsets = [
        of for event in read_committed(log) if event.offset >= offsets_up_to for of in _records(event) if of.is_offset
    ]
    return members, offsets, _last_stable_offset(log)


def _last_stable_offset(log: Sequence[Written]) -> int:
    end = log[-1].offset + max(1, len(log[-1].records)) if log else 0
    open_ = (of.offset for at, of in enumerate(log) if of.producer is not None and _outcome(log, at) is None)
    return min(open_, default=end)


def _outcome(log: Sequence[Written], at: int) -> bool | None:
    """Whether the transaction of an event was committed; None while it is open."""
    ends: Iterable[Written] = (of for of in log[at:] if of.marker is not None and of.producer == log[at].producer)
    return next((of.marker for of in ends), None)


def _records(event: Written) -> Iterator[Read]:
    for offset, record in enumerate(event.records, event.offset):
        is_offset = int.from_bytes(record[0][:2], "big") < 2
        yield Read(offset, event.time_ms, event.group, record, is_offset, event.batch)
