"""The replica of the group coordinator: a state that is a function of the log, and of nothing else.

`Replica.replay` takes one record with its place in the log and applies it; `settle` says that a record batch ended
there. Neither ever throws on what a log can hold, reads a clock, or asks anyone: the same log gives the same state
and the same events, in one go or in pieces.

    record type                         goes to
    0, 1      offset commit             the group's offset bucket (`offset_commits.py`)
    2 … 23    membership                the handler of its family, within a step (`steps.py`)
    others    unknown to this release   counted by type (KIP-915); the first of a type is an event

A replica may hold one offsets partition or all of them: groups never meet. Where groups come from that it has not
seen yet is its store's business, a checkpoint in the streaming job; a replay of a whole log needs none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from operator import itemgetter, methodcaller
from typing import Any, Final, Protocol

from coordinator_model.groups import classic, consumer, share, streams
from coordinator_model.records.record_types import RecordType
from coordinator_model.records.serde import (
    DecodedKey,
    Record,
    UndecodableRecord,
    UnknownRecord,
    decode_key,
    decode_value,
)
from coordinator_model.rules import deletions, epochs, offset_commits, rewinds, static_absences, steps
from coordinator_model.state.events import INFO, Event
from coordinator_model.state.findings import Finding, Position, events_of
from coordinator_model.state.group_state import GroupState
from coordinator_model.state.membership import Membership
from coordinator_model.state.offsets import ZERO_TOPIC_ID, CommittedOffset, OffsetBucket, bucket_number
from coordinator_model.state.packed_offsets import PackedOffsets, dump_offsets

HANDLERS: Final[dict[RecordType, Callable[[Membership, Any, Any], None]]] = {
    RecordType.GROUP_METADATA: classic.replay_group_metadata,
    RecordType.CONSUMER_GROUP_METADATA: consumer.replay_epoch,
    RecordType.CONSUMER_GROUP_PARTITION_METADATA: consumer.replay_partition_metadata,
    RecordType.CONSUMER_GROUP_MEMBER_METADATA: consumer.replay_member_metadata,
    RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA: consumer.replay_assignment_epoch,
    RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER: consumer.replay_target,
    RecordType.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT: consumer.replay_current,
    RecordType.CONSUMER_GROUP_REGULAR_EXPRESSION: consumer.replay_regex,
    RecordType.SHARE_GROUP_MEMBER_METADATA: share.replay_member_metadata,
    RecordType.SHARE_GROUP_METADATA: share.replay_epoch,
    RecordType.SHARE_GROUP_TARGET_ASSIGNMENT_METADATA: share.replay_assignment_epoch,
    RecordType.SHARE_GROUP_TARGET_ASSIGNMENT_MEMBER: share.replay_target,
    RecordType.SHARE_GROUP_CURRENT_MEMBER_ASSIGNMENT: share.replay_current,
    RecordType.SHARE_GROUP_STATE_PARTITION_METADATA: share.replay_state_partition_metadata,
    RecordType.STREAMS_GROUP_METADATA: streams.replay_epoch,
    RecordType.STREAMS_GROUP_MEMBER_METADATA: streams.replay_member_metadata,
    RecordType.STREAMS_GROUP_TARGET_ASSIGNMENT_METADATA: streams.replay_assignment_epoch,
    RecordType.STREAMS_GROUP_TARGET_ASSIGNMENT_MEMBER: streams.replay_target,
    RecordType.STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT: streams.replay_current,
    RecordType.STREAMS_GROUP_TOPOLOGY: streams.replay_topology,
}
"""Membership record type → what it does to a membership (tested to be every registered type but the commits)."""

ENDS: Final = frozenset(
    {
        RecordType.GROUP_METADATA,
        RecordType.CONSUMER_GROUP_METADATA,
        RecordType.SHARE_GROUP_METADATA,
        RecordType.STREAMS_GROUP_METADATA,
    }
)
"""Membership record types whose tombstone ends a group of their type."""

_PLACE: Final = methodcaller("rpartition", "/")

OFFSET_TYPES: Final = (RecordType.LEGACY_OFFSET_COMMIT, RecordType.OFFSET_COMMIT)


class GroupStore(Protocol):
    """Where a replica finds what earlier records made of a group; None where there is nothing."""

    def load_group(self, name: str) -> GroupState | None:
        """The group as it was left."""
        ...

    def load_bucket(self, group: str, topic: str, number: int) -> OffsetBucket | None:
        """One offset bucket as it was left."""
        ...


class NoStore:
    """The store of a replica that reads a log from its beginning."""

    def load_group(self, name: str) -> GroupState | None:  # noqa: ARG002 - the protocol's signature
        """Nothing is known."""
        return None

    def load_bucket(self, group: str, topic: str, number: int) -> OffsetBucket | None:  # noqa: ARG002 - as above
        """Nothing is known."""
        return None


@dataclass(slots=True)
class Counters:
    """What was read. Unknown types are counted by their number, undecodable records by it or `none`."""

    records: int = 0
    unknown_records: dict[str, int] = field(default_factory=dict)
    undecodable_records: dict[str, int] = field(default_factory=dict)
    newer_value_versions: dict[str, int] = field(default_factory=dict)
    """Known type → its records whose value is of a version above the highest known, read or not."""

    def unknown(self, record: UnknownRecord) -> list[Finding]:
        """Count a record of an unknown type; returns what the first of each shows."""
        if not _count(self.unknown_records, str(record.record_type)):
            return []
        return [Finding("unknown_record", {"record_type": record.record_type})]

    def undecodable(self, record: UndecodableRecord) -> None:
        """Count a record that does not decode."""
        _count(self.undecodable_records, "none" if record.record_type is None else str(record.record_type))

    def newer(self, record_type: int, version: int, records: int = 1) -> list[Finding]:
        """Count records whose value is of a version above the highest known; returns what the first of a type shows."""
        if not _count(self.newer_value_versions, str(record_type), records):
            return []
        return [Finding("unknown_record", {"record_type": record_type, "value_version": version})]


def _count(counts: dict[str, int], name: str, more: int = 1) -> bool:
    """Count so many more; returns whether they are the first."""
    is_first = name not in counts
    counts[name] = counts.get(name, 0) + more
    return is_first


@dataclass(slots=True)
class Changes:
    """What changed since the changes were last taken: what a checkpoint has to write, and a board to show."""

    groups: set[str] = field(default_factory=set)
    buckets: set[tuple[str, str, int]] = field(default_factory=set)
    """(group, topic, bucket number)"""
    deleted: dict[str, set[tuple[str, int]]] = field(default_factory=dict)
    """Group that ended → (topic, bucket number) of its offsets. Applied before the rest: it may have begun again."""


class Replica:
    """Groups by name, their offset buckets by (group, topic, number).

    `live_from` is the end of the log as it was when reading began, for all partitions or by partition: below it nothing
    is an alarm. What is first met there of a type or version unknown is information. `topic_ids` has the ids of topics
    by name, as far as the caller knows them: transactional commits name no id, and assignments nothing else. All zeros
    are no id.
    """

    def __init__(
        self,
        store: GroupStore | None = None,
        counters: Counters | None = None,
        *,
        live_from: int | Mapping[int, int] = 0,
        topic_ids: Mapping[str, str] | None = None,
    ) -> None:
        self.groups: dict[str, GroupState] = {}
        self.buckets: dict[tuple[str, str, int], OffsetBucket] = {}
        self.counters = counters if counters is not None else Counters()
        self.undecodable: list[tuple[Position, UndecodableRecord]] = []
        """Records passed over since the caller last emptied the list, for its log."""
        self._live_from = live_from if isinstance(live_from, int) else dict(live_from)
        self._topic_ids = {topic: id_ for topic, id_ in (topic_ids or {}).items() if id_ and id_ != ZERO_TOPIC_ID}
        self._store: GroupStore = store if store is not None else NoStore()
        self._changes = Changes()
        self._open: dict[str, None] = {}
        self._begun_anew: set[str] = set()
        """Groups that ended while this replica watched: what the store has of them is of a former incarnation."""

    def replay(self, position: Position, key: bytes | None, value: bytes | None, *, commits: int = 1) -> list[Event]:
        """Apply one record; returns what it, and the step it ended, showed.

        An offset commit may stand for several of its key that went forward before it: `commits` says how many.
        """
        return self.replay_decoded(position, decode_key(key), value, commits=commits)

    def replay_decoded(
        self, position: Position, key: DecodedKey, value: bytes | None, *, commits: int = 1
    ) -> list[Event]:
        """As `replay`, for callers that need the key before."""
        events = self._replay(position, key, value, commits)
        return self._of_live_tail(events) if events else events

    def _replay(self, position: Position, key: DecodedKey, value: bytes | None, commits: int) -> list[Event]:
        self.counters.records += commits
        match decode_value(key, value):
            case Record(newer=True) as record:
                events = self._replay_known(position, record, commits)
                version = record.value_version or 0
                return [*events, *self._newer(position, int(record.type), version, record.group_name, commits)]
            case Record() as record:
                return self._replay_known(position, record, commits)
            case UnknownRecord() as unknown:
                found = self.counters.unknown(unknown)
                return list(events_of(unknown.group_name or "", position, found))
            case UndecodableRecord() as undecodable:
                self.counters.undecodable(undecodable)
                self.undecodable.append((position, undecodable))
                type_, newer = undecodable.record_type, undecodable.newer_version
                if type_ is None or newer is None:
                    return []
                return self._newer(position, type_, newer, undecodable.group_name, commits)

    def end_moments(self, now_ms: int) -> list[Event]:
        """End the moments in which offsets went or went back, at this time of the log.

        For callers whose input comes in pieces that are read again as they were, after a kill say: what is reported of
        a piece must not depend on what is known to follow it.
        """
        states = [state for state in map(self.groups.__getitem__, self._open) if _is_awaited(state)]
        events = self._of_live_tail(event for state in states for event in self._tell_moments(state, now_ms))
        return sorted(events, key=lambda event: event.offset)

    def settle(self, partition: int | None = None, *, now_ms: int | None = None) -> list[Event]:
        """Close every open step, of one partition or all: a record batch ended here, or the log, as callers know.

        Given the log's time, what may yet happen by it is awaited (`rewinds.py`); without, nothing is to come.
        """
        names = [name for name in self.open_steps() if partition in (None, self.groups[name].partition)]
        events = self._of_live_tail(event for name in names for event in self._settle(name, now_ms))
        return sorted(events, key=lambda event: (event.partition, event.offset))

    def _live(self, partition: int) -> int:
        """Offset from which on a partition is live."""
        return self._live_from if isinstance(self._live_from, int) else self._live_from.get(partition, 0)

    def _of_live_tail(self, events: Iterable[Event]) -> list[Event]:
        """Without alarms of what was there before: a cleaned log shows what never was, and it is all long past."""
        found = list[Event]()
        for event in events:
            if event.severity == INFO or event.offset >= self._live(event.partition):
                found.append(event)
            elif event.kind == "unknown_record":
                found.append(replace(event, severity=INFO))
        return found

    def judge(self, name: str) -> list[Event]:
        """Report of a group what was withheld while catching up, if it still holds."""
        state = self.known(name)
        if state is None or not state.withheld:
            return []
        self._changes.groups.add(name)
        return steps.judge(state)

    def known(self, name: str) -> GroupState | None:
        """The group's state, here or in the store; None where nothing is known of it."""
        state = self.groups.get(name)
        if state is None and name not in self._begun_anew:
            state = self._store.load_group(name)
            if state is not None:
                state.known_ids = self._topic_ids
                self.groups[name] = state
                if state.step is not None or _is_awaited(state):
                    self._open[name] = None
        return state

    def group(self, name: str, partition: int) -> GroupState:
        """The group's state, new where nothing is known of it."""
        state = self.known(name)
        if state is None:
            state = self.groups[name] = GroupState(name=name, partition=partition, known_ids=self._topic_ids)
        return state

    def offsets(self, name: str) -> Iterator[tuple[str, int, CommittedOffset]]:
        """(topic, partition, committed offset) of a group, by topic and partition."""
        state = self.known(name)
        if state is None:
            return
        for topic, numbers in sorted(state.buckets.items()):
            for number in numbers:
                for partition, committed in sorted(self._bucket(name, topic, number).offsets.items()):
                    yield topic, partition, committed

    def open_steps(self) -> list[str]:
        """Groups whose last step is still open, or of which something is to be said soon (`_is_awaited`)."""
        return list(self._open)

    def take_changes(self) -> Changes:
        """What changed since the last call."""
        changes, self._changes = self._changes, Changes()
        return changes

    def begin(self, name: str | None = None) -> None:
        """Let the rules begin, of one group or all: they have followed all of it."""

    def loaded_bucket(self, place: tuple[str, str, int]) -> OffsetBucket | None:
        """A group's bucket of a topic, by its number, if records of it were replayed here."""
        return self.buckets.get(place)

    def packed_bucket(self, place: tuple[str, str, int]) -> PackedOffsets:
        """The same of one that changed, as it is kept."""
        return dump_offsets(self.buckets[place])

    def _replay_known(self, position: Position, record: Record, commits: int) -> list[Event]:
        if record.type in OFFSET_TYPES:
            return self._replay_offset(position, record, commits)
        return self._replay_membership(position, record)

    def _newer(
        self, position: Position, record_type: int, version: int, group: str | None, records: int
    ) -> list[Event]:
        """Count a value of a version above the highest known, and note it in its group; report the first of a type."""
        name, found = str(record_type), self.counters.newer(record_type, version, records)
        state = None if group is None else self.known(group)
        if state is not None and state.newer_versions.get(name) != version:
            state.newer_versions[name] = version
            self._changes.groups.add(state.name)
        return list(events_of(group or "", position, found))

    def _replay_membership(self, position: Position, record: Record) -> list[Event]:
        name = record.group_name
        state = self.group(name, position.partition)
        state.built = False
        events = self._moments_before(state, position)
        classic = record.type is RecordType.GROUP_METADATA
        if state.step is not None and steps.is_over(
            state.step, state.membership, position.timestamp_ms, of_classic_group=classic
        ):
            events += self._close(state)
            state = self.group(name, position.partition)
        if state.step is None:
            events += self._tell_absences(state, position.timestamp_ms, position.timestamp_ms)
            steps.open_step(state, position)
            self._open[name] = None
        else:
            state.step.last_offset = position.offset
        member_id = getattr(record.key, "member_id", None)
        was = epochs.epochs_of(state.membership, member_id)
        HANDLERS[record.type](state.membership, record.key, record.value)
        steps.note_record(state, was, member_id)
        self._changes.groups.add(name)
        return events

    def _settle(self, name: str, now_ms: int | None = None) -> list[Event]:
        state = self.groups[name]
        events = self._tell_moments(state, now_ms)
        if state.step is None:
            return events
        events += self._close(state)
        # Who closed with that step is reported now where the log ends.
        return [*events, *self._tell_absences(state, now_ms)] if name in self.groups else events

    def _moments_before(self, state: GroupState, position: Position) -> list[Event]:
        """Say which offsets went, or went back, at moments that are over with the record of this position."""
        return self._tell_moments(state, position.timestamp_ms, ended=False)

    def _tell_moments(self, state: GroupState, now_ms: int | None = None, *, ended: bool = True) -> list[Event]:
        """Say which offsets went or went back, and who is away, of what is not awaited any longer at a time of the log.

        Args:
            state: the group.
            now_ms: the time; None where the log ends, or the group does.
            ended: whether a moment of this very time is over.
        """
        if not _is_awaited(state):
            return []
        found: list[tuple[int, int, Finding]] = []
        went, back = state.deletions, state.rewinds
        if went is not None and (ended or went.time_ms != now_ms):
            places = ((topic, int(partition)) for topic, _, partition in map(_PLACE, went.partitions))
            left = {topic for topic, of in places if self._bucket(state.name, topic, bucket_number(of)).offsets}
            found.append((went.offset, went.time_ms, deletions.reported(state, went, left)))
            state.deletions = None
        live = back is None or back.offset >= self._live(state.partition)
        is_over = back is not None and (ended or back.time_ms != now_ms)
        due = rewinds.take_due(state, now_ms, is_over=is_over, live=live)
        found += ((of.offset, of.time_ms, rewinds.reported(of)) for of in due)
        of_moments = [
            event
            for offset, time_ms, finding in sorted(found, key=itemgetter(0))
            for event in events_of(state.name, Position(state.partition, offset, time_ms), [finding])
        ]
        self._changes.groups.add(state.name)
        return [*of_moments, *self._tell_absences(state, now_ms)]

    def _tell_absences(self, state: GroupState, now_ms: int | None, over_ms: int | None = None) -> list[Event]:
        """Say which static members are away, or are back, of what is due; arguments as of `take_due`."""
        # Who went with a step that is open is not known yet.
        due = static_absences.take_due(state, now_ms, over_ms) if state.step is None else []
        self._note_open(state)
        return [event for said in due for event in static_absences.events_of_said(state, said)]

    def _note_open(self, state: GroupState) -> None:
        """Remember whether something has yet to be said of a group."""
        if state.step is None and not _is_awaited(state):
            self._open.pop(state.name, None)
        else:
            self._open[state.name] = None

    def _close(self, state: GroupState) -> list[Event]:
        self._changes.groups.add(state.name)
        events = steps.close_step(state, live_from=self._live(state.partition))
        away = self._tell_absences(state, state.last_step_ms, state.last_step_ms)
        begun = [event for event in away if "cleared" not in event.detail]
        events = [*begun, *events, *(event for event in away if event not in begun)]
        if not state.exists:
            events = [*self._tell_moments(state), *events]
            self._forget(state)
        return events

    def _forget(self, state: GroupState) -> None:
        """A group of the same name that comes later is another one: it inherits neither counters nor offsets.

        Records of a new protocol that have no tombstone stay in the log for it to meet: they are all that is kept.
        """
        name = state.name
        places = {(topic, number) for topic, numbers in state.buckets.items() for number in numbers}
        self._changes.deleted[name] = self._changes.deleted.get(name, set()) | places
        self._changes.groups.discard(name)
        self._changes.buckets -= {(name, topic, number) for topic, number in places}
        for topic, number in places:
            self.buckets.pop((name, topic, number), None)
        del self.groups[name]
        self._begun_anew.add(name)
        if state.membership.leftovers():
            self.groups[name] = GroupState(
                name=name,
                partition=state.partition,
                membership=state.membership,
                known_ids=self._topic_ids,
                built=state.built,
            )
            self._changes.groups.add(name)

    def _replay_offset(self, position: Position, record: Record, commits: int) -> list[Event]:
        name, topic, partition = record.key.group, record.key.topic, record.key.partition
        number = bucket_number(partition)
        state = self.groups.get(name) or self.group(name, position.partition)
        bucket = self.buckets.get((name, topic, number)) or self._bucket(name, topic, number)
        events: list[Event] = []
        if state.rewinds is not None or state.deletions is not None or state.awaited_rewinds:  # asked of every commit
            # First what is over before this record, as it would be had a micro-batch ended here.
            events = self._moments_before(state, position)
            if record.value is not None:
                rewinds.note_commit(state, position.timestamp_ms, topic, partition, record.value.offset)
        if offset_commits.is_plain(state, bucket, record):
            offset_commits.take(state, bucket, record, commits)
            self._changes.buckets.add((name, topic, number))
            return events
        if record.value is None and partition not in bucket.offsets:
            return events
        if state.step is not None and offset_commits.ends_step(state, position, bucket, record):
            events += self._close(state)
            state, bucket = self.group(name, position.partition), self._bucket(name, topic, bucket.number)
        self._changes.buckets.add((name, topic, bucket.number))
        findings: list[Finding] | None
        if record.value is None:
            findings = offset_commits.delete(state, bucket, position, partition)
        else:
            findings = offset_commits.commit(state, bucket, position, record, commits)
        if findings is None:
            return events
        if _is_awaited(state):
            self._open[name] = None
        self._changes.groups.add(name)
        state.built = False
        if state.step is None and not state.exists:
            events += self._tell_moments(state)
            self._forget(state)
        events += events_of(name, position, findings)
        return events

    def _bucket(self, group: str, topic: str, number: int) -> OffsetBucket:
        bucket = self.buckets.get((group, topic, number))
        if bucket is None:
            stored = None if group in self._begun_anew else self._store.load_bucket(group, topic, number)
            bucket = self.buckets[group, topic, number] = stored or OffsetBucket(topic=topic, number=number)
        return bucket


def _is_awaited(state: GroupState) -> bool:
    """Whether something happened to a group of which nothing is reported yet: to offsets, or to static members."""
    return (
        state.rewinds is not None
        or state.deletions is not None
        or bool(state.awaited_rewinds)
        or static_absences.is_awaited(state)
    )
