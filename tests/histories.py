"""A small language for histories: what the coordinator wrote, event by event, and what the replica made of it.

    log = history(
        at(0, *consumer_join("g", "a", epoch=2, targets={"a": {"t": [0, 1]}})),
        at(5_000, *consumer_leave("g", "a", epoch=3)),
    )
    reported = log.replayed()
    assert {0: ["group_created", …], 5_000: ["member_left", "group_emptied"]} == reported.kinds()
    assert "Empty" == reported.view("g")["state"]

The records of one `at` carry one timestamp, as those of one coordinator event do; offsets are consecutive. A history
can be replayed whole, in micro-batches with everything written to a store and read back in between, and as the cleaner
would leave it.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Self

from hypothesis import currently_in_test_context, note

from coordinator_model.records.serde import Record, decode_record
from coordinator_model.replica import Changes, Counters, Replica
from coordinator_model.state.events import INFO, Event, event_view
from coordinator_model.state.findings import Position
from coordinator_model.state.group_state import GroupState
from coordinator_model.state.offsets import OffsetBucket
from coordinator_model.state.packed_offsets import PackedOffsets, dump_offsets, load_offsets
from coordinator_model.state.snapshot import dump_group, load_group
from coordinator_model.views.group_view import group_view
from lab.builders import RecordBytes, topic_id
from streaming.recording.file_format import open_recording

PARTITION: Final = 7
"""Offsets partition that a history is in; not 0, so that a forgotten one shows."""

TOPIC_NAMES: Final = {topic_id(name): name for name in ("t", "u", "rx-a", "rx-b")}
RECORDING: Final = Path(__file__).parent / "recordings" / "scenarios.ndjson"


@dataclass(frozen=True, slots=True)
class Moment:
    """One coordinator event: its records, all of one time."""

    time_ms: int
    records: tuple[RecordBytes, ...]


@dataclass(frozen=True, slots=True, repr=False)
class LogRecord:
    """One record with its place in the log."""

    place: Position
    key: bytes
    value: bytes | None

    def __repr__(self) -> str:
        """As a person reads it: where a test fails, its history is shown."""
        of = decode_record(self.key, self.value)
        said = f"{of.key} = {of.value}" if isinstance(of, Record) else f"{of}: {self.key!r} = {self.value!r}"
        return f"{self.place.partition}/{self.place.offset}, {self.place.timestamp_ms} ms: {said}"

    def _repr_pretty_(self, printer: Any, _cycle: bool) -> None:
        """Hypothesis would show the fields."""
        printer.text(repr(self))


def at(time_ms: int, *records: RecordBytes) -> Moment:
    """The records of one coordinator event."""
    return Moment(time_ms, records)


def history(*moments: Moment, start: int = 0) -> "History":
    """Moments one after another, from offset `start`."""
    written = ((moment.time_ms, key, value) for moment in moments for key, value in moment.records)
    return History(
        tuple(
            LogRecord(Position(PARTITION, offset, time_ms), key, value)
            for offset, (time_ms, key, value) in enumerate(written, start)
        )
    )


def shown(log: "History") -> "History":
    """The same; where Hypothesis finds the test failing, it is printed."""
    if currently_in_test_context():
        note(log)
    return log


def recording(path: Path) -> "History":
    """A recording of a real broker, all its partitions one after another as in the file."""
    with open_recording(path) as opened:
        return History(
            tuple(
                LogRecord(Position(record.partition, record.offset, record.timestamp_ms), record.key, record.value)
                for record in opened
            ),
            opened.header.topic_names,
        )


def recorded() -> "History":
    """The one recording that tests of single modules look at."""
    return recording(RECORDING)


@dataclass(frozen=True, slots=True, repr=False)
class History:
    """Records of the log, in order within each partition."""

    records: tuple[LogRecord, ...]
    topic_names: dict[str, str] = field(default_factory=lambda: dict(TOPIC_NAMES))

    def __repr__(self) -> str:
        return "\n".join(("History:", *(f"  {record!r}" for record in self.records)))

    def _repr_pretty_(self, printer: Any, _cycle: bool) -> None:
        """As above."""
        printer.text(repr(self))

    def __len__(self) -> int:
        return len(self.records)

    @property
    def end(self) -> int:
        """Offset of the record that would come next; control records leave gaps, so it is not their number."""
        return self.records[-1].place.offset + 1 if self.records else 0

    def replayed(self, *, live_from: int = 0, topic_ids: Mapping[str, str] | None = None) -> "Reported":
        """Replay everything in one go, and close what is open at the end."""
        replica = Replica(live_from=live_from, topic_ids=topic_ids)
        events = [event for record in self.records for event in _replay(replica, record)]
        events += replica.settle()
        return Reported(events, _views(replica, self.topic_names), replica.counters, dict(_existing(replica)))

    def replayed_in_batches(self, sizes: Iterable[int], *, live_from: int = 0) -> "Reported":
        """Replay in micro-batches of these sizes, then the rest, each by a new replica on a store of text."""
        store = TextStore()
        events: list[Event] = []
        for batch in self._batches(sizes):
            replica = Replica(store, store.counters(), live_from=live_from)
            events += [event for record in batch for event in _replay(replica, record)]
            store.keep(replica)
        replica = Replica(store, store.counters(), live_from=live_from)
        for name in store.groups:
            replica.known(name)
        events += replica.settle()
        return Reported(events, _views(replica, self.topic_names), replica.counters, dict(_existing(replica)))

    def compacted(self, before: int) -> Self:
        """As the cleaner leaves it: of the first `before` records only the last of each key, tombstones included."""
        dirty = self.records[before:]
        last = {record.key: record for record in self.records[:before]}
        kept = set(last.values())
        return type(self)((*(record for record in self.records[:before] if record in kept), *dirty), self.topic_names)

    def cut(self, at: int) -> Self:
        """The first `at` records."""
        return type(self)(self.records[:at], self.topic_names)

    def _batches(self, sizes: Iterable[int]) -> Iterator[tuple[LogRecord, ...]]:
        start = 0
        for size in sizes:
            yield self.records[start : start + size]
            start += size
        yield self.records[start:]


@dataclass(frozen=True, slots=True)
class Reported:
    """What a replay concluded: events in order, GROUP views of the groups that are, totals."""

    events: list[Event]
    views: dict[str, dict[str, Any]]
    counters: Counters
    states: dict[str, GroupState]

    def view(self, group: str) -> dict[str, Any]:
        """The GROUP."""
        return self.views[group]

    def member(self, group: str, member_id: str) -> dict[str, Any]:
        """The Member."""
        (found,) = (member for member in self.view(group)["members"] if member["member_id"] == member_id)
        return dict(found)

    def owners(self, group: str) -> dict[str, Any]:
        """Member id → what it owns."""
        return {member["member_id"]: member["assigned"] for member in self.view(group)["members"]}

    def status(self, group: str) -> str:
        """State, epoch and assignment epoch in short: ``Stable 2/2``; of a classic group ``Stable 2``."""
        view = self.view(group)
        target = "" if view["assignment_epoch"] is None else f"/{view['assignment_epoch']}"
        return f"{view['state']} {view['epoch']}{target}"

    def offsets(self, group: str) -> dict[str, int]:
        """`topic/partition` → committed offset."""
        return {f"{of['topic']}/{of['partition']}": of["offset"] for of in self.view(group)["offsets"]}

    def kinds(self) -> dict[int, list[str]]:
        """Time → kinds of the events of that time, in order."""
        kinds: dict[int, list[str]] = {}
        for event in self.events:
            kinds.setdefault(event.time_ms, []).append(event.kind)
        return kinds

    def details(self, kind: str) -> list[dict[str, Any]]:
        """Details of all events of one kind."""
        return [dict(event.detail) for event in self.events if event.kind == kind]

    def alarms(self) -> Counter[tuple[str, str]]:
        """(group, kind) → how many events that are more than information."""
        return Counter((event.group, event.kind) for event in self.events if event.severity != INFO)

    def timed_alarms(self) -> list[tuple[int, str]]:
        """(time, kind) of every event that is more than information, in order."""
        return [(event.time_ms, event.kind) for event in self.events if event.severity != INFO]

    def event_texts(self) -> list[str]:
        """Every event as JSON, sorted: two replays that reported the same compare equal, whenever they reported it."""
        return sorted(json.dumps(event_view(event), sort_keys=True) for event in self.events)


class TextStore:
    """A checkpoint that holds only text and bytes; what is read from it shares nothing with what was written."""

    def __init__(self) -> None:
        self.groups: dict[str, str] = {}
        self.buckets: dict[tuple[str, str, int], PackedOffsets] = {}
        self._counters = Counters()

    def load_group(self, name: str) -> GroupState | None:
        text = self.groups.get(name)
        return None if text is None else load_group(text)

    def load_bucket(self, group: str, topic: str, number: int) -> OffsetBucket | None:
        packed = self.buckets.get((group, topic, number))
        return None if packed is None else load_offsets(*packed)

    def counters(self) -> Counters:
        held = self._counters
        return Counters(
            held.records,
            dict(held.unknown_records),
            dict(held.undecodable_records),
            dict(held.newer_value_versions),
        )

    def keep(self, replica: Replica) -> None:
        """Write what a replica changed, and only that."""
        changes: Changes = replica.take_changes()
        for name, places in changes.deleted.items():
            self.groups.pop(name, None)
            for topic, number in places:
                self.buckets.pop((name, topic, number), None)
        for name in changes.groups:
            self.groups[name] = dump_group(replica.groups[name])
        for place in changes.buckets:
            self.buckets[place] = dump_offsets(replica.buckets[place])
        self._counters = replica.counters


def _replay(replica: Replica, record: LogRecord) -> list[Event]:
    return replica.replay(record.place, record.key, record.value)


def _existing(replica: Replica) -> Iterator[tuple[str, GroupState]]:
    return ((name, state) for name, state in sorted(replica.groups.items()) if state.exists)


def _views(replica: Replica, topic_names: dict[str, str]) -> dict[str, dict[str, Any]]:
    return {name: group_view(state, replica.offsets(name), topic_names) for name, state in list(_existing(replica))}
