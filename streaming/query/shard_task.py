"""A bundle of partitions of the offsets topic: what a micro-batch brings to it, replayed on its state.

What some partitions touch is read at once, replayed partition by partition in the order of the log, and written at
once. The state variables are `processor.py`'s; nothing here is a rule about groups: those are the model's.
"""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final
from zlib import crc32

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.streaming.stateful_processor import StatefulProcessorHandle

from coordinator_model.figures import stored
from coordinator_model.records.serde import DecodedKey, KnownKey, decode_key
from coordinator_model.replica import Changes, Counters, NoStore, Replica
from coordinator_model.rules import rereading, static_absences
from coordinator_model.state import snapshot
from coordinator_model.state.events import OF_NO_GROUP, Event, event_view
from coordinator_model.state.findings import Finding, Position, events_of
from coordinator_model.state.group_state import GroupState
from coordinator_model.state.offsets import CommittedOffset, OffsetBucket, bucket_number
from coordinator_model.state.packed_offsets import dump_offsets, load_offsets
from streaming.base import gc_tuning
from streaming.base.batch_rows import Row
from streaming.query.first_reading import door
from streaming.query.former_state import FormerState
from streaming.query.ledger import PartitionLedger, TaskLedger
from streaming.query.log_continuity import Note
from streaming.query.row_codec import LogRow, notes_of, packed_output, partitions_cut, rows_of, unpacked_table
from streaming.query.share_cells import MARK
from streaming.query.share_task import ShareTask
from streaming.query.state_cache import LEDGER, Entry, Key, StateCache, StateStore, entries_of
from streaming.query.state_pipelining import get_many, put_many

if TYPE_CHECKING:
    from streaming.query.first_reading.door import Seeds

SETTLE_AFTER_MS: Final = 2_000
"""How long a step cut off by the end of a rate-limited batch waits for its rest. The rest is in the next batch."""

GIVE_UP_WAITING_MS: Final = 60_000
"""After so long without a record a partition counts as live, though the last micro-batch was cut: the rest may be
transaction markers alone, which are never delivered."""

ORDINALS_OF_A_LOG: Final = 1 << 40
"""More than one log needs: after each cut the ordinals in ids are counted from the next multiple."""

MOST_NAMED: Final = 100
"""Of the groups that a lost tail changed, so many are named."""

ROWS_AT_ONCE: Final = 5_000
"""When partitions have brought so many rows, their groups are written and let go before the next are replayed: what a
worker holds of a catch-up is the groups of a few partitions."""

_ROWS_A_PACK: Final = 10_000
"""Rows that leave in one: what Spark moves at once stays small."""


class _StateStore:
    """The replica's store: entries of one partition."""

    def __init__(self, entries: StateCache, partition: int) -> None:
        self._entries = entries
        self._partition = partition

    def load_group(self, name: str) -> GroupState | None:
        held = self._entries.get(self._partition, (name,))
        return None if held is None else snapshot.load_group(held[1])

    def load_bucket(self, group: str, topic: str, number: int) -> OffsetBucket | None:
        held = self._entries.get(self._partition, (group, topic, number))
        return None if held is None else load_offsets(*held)


@dataclass(frozen=True, slots=True)
class Variables:
    """The state of the bundle at hand, and what keeps its timers."""

    handle: StatefulProcessorHandle
    entries: StateStore
    former: FormerState


@dataclass(frozen=True, slots=True)
class Limits:
    """Offsets of the log, by partition, as `processor.CoordinatorShards` is given them."""

    live_from: Mapping[int, int]
    log_end: Mapping[int, int]
    reported: Mapping[int, int]


class ShardTask:
    """One bundle in one call of its stateful task.

    Args:
        state: of the bundle.
        limits: where the log is live.
        processes: how many may replay partitions of which there is no state yet (`first_reading`).
    """

    def __init__(self, state: Variables, limits: Limits, processes: int = 1) -> None:
        self._state = state
        self._limits = limits
        self._processes = processes

    def replay(self, blobs: Iterable[bytes], now_ms: int) -> Iterator[bytes]:
        """Replay packed rows, each partition of a log in the order of the log; yields packed output.

        Of the first log they are `row_codec.py`'s, of the second `share_cells.py`'s.
        """
        cells = list(blobs)
        of_shares = [cell for cell in cells if cell.startswith(MARK)]
        blobs = [cell for cell in cells if not cell.startswith(MARK)]
        if not of_shares:
            yield from self._replay_log(self._load_ledger(), blobs, now_ms)
            return
        book, shares = self._load_ledger(), ShareTask(self._state.entries.packs)
        yield from shares.replay(of_shares)
        waits = {**dict.fromkeys(book.share_waits, True), **shares.waits}
        waiting = sorted(of for of, is_waiting in waits.items() if is_waiting)
        is_other, book.share_waits = waiting != book.share_waits, waiting
        if blobs:
            yield from self._replay_log(book, blobs, now_ms)
        elif is_other:
            self._finish(book, now_ms)

    def _replay_log(self, book: TaskLedger, blobs: Iterable[bytes], now_ms: int) -> Iterator[bytes]:
        rows = unpacked_table(blobs)

        def replay(entries: StateStore, ledger: TaskLedger, share: pa.Table) -> Iterator[bytes]:
            return BundleReplay(entries, self._limits).replay(ledger, share, now_ms)

        # Of the time a first catch-up takes, a tenth was the collector's, which found nothing; children inherit it.
        with gc_tuning.paused():
            # What is said of a partition is said to who has its ledger.
            if self._processes > 1 and not notes_of(rows) and _is_new(rows, book.partitions.keys()):
                yield from door.replayed(replay, self._state.entries, book, rows, self._processes)
            else:
                yield from replay(self._state.entries, book, rows)
        self._finish(book, now_ms)

    def conclude(self, now_ms: int) -> Iterator[bytes]:
        """Close what waits, where the end of the log was reached or nothing has come for long; yields packed output."""
        book = self._load_ledger()
        book.timer_ms = None
        yield from BundleReplay(self._state.entries, self._limits).conclude(book, now_ms)
        if book.share_waits:
            shares = ShareTask(self._state.entries.packs)
            yield from shares.conclude(book.share_waits, now_ms)
            book.share_waits = [of for of in book.share_waits if shares.waits.get(of)]
        self._finish(book, now_ms)

    def _load_ledger(self) -> TaskLedger:
        held = get_many(self._state.entries.packs, [LEDGER]).get(LEDGER)
        return self._state.former.carried_over(self._state.entries) if held is None else TaskLedger.load(*held)

    def _finish(self, book: TaskLedger, now_ms: int) -> None:
        self._set_timer(book, now_ms)
        put_many(self._state.entries.packs, [(LEDGER, (book.dump(),))])

    def _set_timer(self, book: TaskLedger, now_ms: int) -> None:
        """Keep one timer while something waits, and none else."""
        if book.timer_ms is not None:
            self._state.handle.deleteTimer(book.timer_ms)
        waits = bool(book.share_waits) or any(of.waiting for of in book.partitions.values())
        book.timer_ms = now_ms + SETTLE_AFTER_MS if waits else None
        if book.timer_ms is not None:
            self._state.handle.registerTimer(book.timer_ms)


class BundleReplay:
    """Replays partitions of a bundle on their entries of the state; what it learns of each is in the ledger."""

    def __init__(self, entries: StateStore, limits: Limits) -> None:
        self._entries = entries
        self.limits = limits

    def replay(self, book: TaskLedger, rows: pa.Table, now_ms: int) -> Iterator[bytes]:
        """Replay rows, by partition and offset; yields packed output."""
        cut, notes = partitions_cut(rows), notes_of(rows)
        rows = self._less_what_is_owed(book, rows, notes)
        former = {partition: self._forget(book, partition) for partition in _read_again(notes)}
        known = book.partitions.keys() - former.keys()
        seeds: Seeds = {}
        if _is_new(rows, known):
            seeds, rows = door.seeds_of(rows, known)
        for part in _parts(rows_of(rows), seeds, notes):
            entries, runs = self._replay(book, part, seeds, notes, former)
            for run in runs:
                run.book.last_rows_ms, run.book.is_cut = now_ms, run.partition in cut
                if run.partition in notes:
                    run.stepped_over = run.book.step_over(notes[run.partition].stepped_over, now_ms)
                if not run.book.is_cut:
                    run.conclude(part[run.partition][-1].timestamp_ms if part[run.partition] else None)
            yield from self._write(entries, runs)

    def conclude(self, book: TaskLedger, now_ms: int) -> Iterator[bytes]:
        """Close what waits; yields packed output."""
        waiting: dict[int, list[LogRow]] = {partition: [] for partition, of in book.partitions.items() if of.waiting}
        entries, runs = self._replay(book, waiting, {}, {}, {})
        for run in runs:
            if not run.book.is_cut or now_ms - run.book.last_rows_ms >= GIVE_UP_WAITING_MS:
                run.conclude()
        yield from self._write(entries, runs)

    def _less_what_is_owed(self, bundle: TaskLedger, rows: pa.Table, notes: Mapping[int, Note]) -> pa.Table:
        """Rows that may be replayed: none of a partition of which earlier ones could not be read."""
        for partition, note in notes.items():
            book = bundle.partitions.get(partition)
            if note.unread:
                book = bundle.partitions.setdefault(partition, PartitionLedger())
                book.owed = book.owed or list(note)
            elif book is not None and book.owed is not None:
                # What is read from its beginning has what is owed in it.
                is_paid = note.again is not None or Note.of(book.owed).begins == note.begins
                book.owed = None if is_paid else book.owed
        owed = [partition for partition, book in bundle.partitions.items() if book.owed is not None]
        return rows.filter(pa.array(~np.isin(rows["partition"].to_numpy(), owed))) if owed else rows

    def _forget(self, bundle: TaskLedger, partition: int) -> "Former":
        """What is known of a partition that is read again from its beginning; its ledger starts empty."""
        book = bundle.partitions.get(partition, PartitionLedger())
        entries = entries_of(self._entries, partition, with_single=book.has_single)
        bundle.partitions[partition] = PartitionLedger(
            counters=book.counters,
            has_single=book.has_single,
            was_live=book.was_live,
            cuts=book.cuts,
            read_before=book.read_before,
            unreadable_batches=book.unreadable_batches,
            void_limits=[limit.get(partition, 0) for limit in (self.limits.live_from, self.limits.log_end)],
        )
        return Former(entries)

    def _replay(
        self,
        bundle: TaskLedger,
        part: Mapping[int, list[LogRow]],
        seeds: "Seeds",
        notes: Mapping[int, Note],
        former: Mapping[int, "Former"],
    ) -> tuple[StateCache, list["PartitionReplay"]]:
        """Partition → its rows, in the order of the log."""
        known = {partition: book for partition, book in bundle.partitions.items() if partition in part}
        keys = {
            partition: {key: decode_key(key) for key in {row.key for row in rows}} for partition, rows in part.items()
        }
        entries = StateCache(
            self._entries,
            {of: _touched(keys[of].values()) | {(name,) for name in book.waiting} for of, book in known.items()},
            with_single={of for of, book in known.items() if book.has_single},
            unknown=part.keys() - known.keys(),
        )
        runs = []
        for partition, rows in part.items():
            book = bundle.partitions.setdefault(partition, PartitionLedger())
            seeded = seeds.pop(partition, {})
            is_without_state = partition not in known or partition in former
            store = NoStore() if is_without_state else _StateStore(entries, partition)
            note = notes.get(partition)
            if partition in former:
                book.live_from = 1 + max(
                    (*(of.last_offset for of in seeded.values()), *(of.offset for of in rows[-1:])), default=-1
                )
            live_from = self._live_from(partition, book, rows, note)
            counters = _counted_again(book.counters) if partition in former else book.counters
            below = {row.offset for row in rows if row.built}
            made = partial(door.replica_of, partition, seeded, below) if seeded or below else Replica
            replica: Replica = made(store, counters, live_from=live_from)
            run = PartitionReplay(partition, book, replica, former=former.get(partition))
            runs.append(run)
            if (
                not is_without_state
                and book.was_live
                and any(book.last_offset < row.offset < live_from for row in rows)
            ):
                run.before = Former.of(entries, partition, _touched(keys[partition].values()))
            run.follow(rows, keys[partition])
            book.last_offset = max(book.last_offset, *(of.last_offset for of in seeded.values()), -1)
            if run.former is not None and note is not None:
                _note_new_types(book.counters, counters)
                run.take_over(note, rows)
            if run.before is not None:
                run.compare(run.before, Position(partition, rows[-1].offset, rows[-1].timestamp_ms))
        return entries, runs

    def _live_from(self, partition: int, book: PartitionLedger, rows: list[LogRow], note: Note | None) -> int:
        """From where on the partition is live, as seen with these rows of it.

        A run that goes on with a former one's live tail (`resume_file.py`) judges what was written meanwhile while no
        offset of it is missing. One that is was cleaned away, and what is left shows states that never were: from
        there on it is live from the log's end as this run found it. Markers and aborted commits of transactions are
        missing likewise, and commits of an open one come later: no reader can say which it is.
        """
        if note is not None and note.gap is not None:
            book.log_end, book.live_from = note.gap[0], max(book.live_from, note.gap[1] or 0)
        limits = [limit.get(partition, 0) for limit in (self.limits.live_from, self.limits.log_end)]
        if limits == book.void_limits:
            limits = [0, 0]
        live_from, log_end = max(limits[0], book.live_from), max(limits[1], book.log_end)
        first = max(book.last_offset + 1, live_from)
        if rows and first < log_end:
            records = sum(row.commits for row in rows if row.offset >= first)
            if records < rows[-1].offset + 1 - first:
                book.live_from = live_from = log_end
        return live_from

    def _write(self, entries: StateCache, runs: list["PartitionReplay"]) -> Iterator[bytes]:
        """Write what changed, and pass it on."""
        rows: list[Row] = []
        for run in runs:
            changes = run.replica.take_changes()
            groups = list(run.changed_groups(changes))
            offsets = {place: run.replica.packed_bucket(place) for place in sorted(changes.buckets)}
            changed = {(state.name,): entry for state, entry in groups} | offsets
            ended = [(name, *place) for name, places in changes.deleted.items() for place in ((), *places)]
            gone = set() if run.former is None else run.former.entries.keys() - changed.keys()
            shown = {state.name for state, _ in groups if state.exists}
            deleted = [*changes.deleted, *sorted({name for name, *_ in gone} - shown - changes.deleted.keys())]
            # Groups that ended come before anything else: one of the same name may have begun.
            rows += [Row(run.partition, "group_deleted", name) for name in deleted]
            run.book.has_single |= entries.change(run.partition, changed, [*ended, *gone])
            rows += [Row(run.partition, "group", at.name, *entry) for at, entry in groups if at.exists]
            rows += [Row(run.partition, "offsets", name, *entry) for (name, _, _), entry in offsets.items()]
            rows += [
                Row(run.partition, "offsets", key[0], *dump_offsets(OffsetBucket(topic=key[1], number=key[2])))
                for key in sorted(gone, key=str)
                if len(key) > 1 and key[0] in shown
            ]
            rows += [*_undecodable(run.replica), *_unreadable(run)]
            new = (
                run.with_own_id(event)
                for event in run.events
                if event.offset >= self.limits.reported.get(run.partition, 0)
            )
            rows += [Row(run.partition, "event", of.group, _json(event_view(of)), of.kind) for of in new]
            rows.append(Row(run.partition, "shard", "", _json(run.book.totals())))
            run.wait(changes)
        entries.write()
        for start in range(0, len(rows), _ROWS_A_PACK):
            yield packed_output(rows[start : start + _ROWS_A_PACK])


@dataclass(slots=True)
class Former:
    """What was known of a partition, or of some of its groups, before: entries of the state by their keys."""

    entries: dict[Key, Entry]

    @classmethod
    def of(cls, entries: StateCache, partition: int, keys: Iterable[Key]) -> "Former":
        """What is there of some keys, and of their groups' other offsets nothing."""
        held = ((key, entries.get(partition, key)) for key in keys)
        return cls({key: entry for key, entry in held if entry is not None})

    def groups(self) -> dict[str, GroupState]:
        """Groups by name."""
        of_groups = sorted((key[0], words) for key, (_, words) in self.entries.items() if len(key) == 1)
        return {name: snapshot.load_group(words) for name, words in of_groups}

    def buckets(self) -> dict[str, list[OffsetBucket]]:
        """Offset buckets by group; none of a group without."""
        found: dict[str, list[OffsetBucket]] = {}
        for key, entry in self.entries.items():
            if len(key) > 1:
                found.setdefault(key[0], []).append(load_offsets(*entry))
        return found


@dataclass(slots=True)
class PartitionReplay:
    """One partition in one call: its book and replica while they are open."""

    partition: int
    book: PartitionLedger
    replica: Replica
    events: list[Event] = field(default_factory=list)
    former: Former | None = None
    """What was known of a partition that is read again."""
    before: Former | None = None
    """What was known of what is touched, where records may be missing."""
    stepped_over: Sequence[tuple[int, int, str]] = ()
    """Batches that could not be read: first offset, the one after it, and why."""

    def follow(self, rows: Sequence[LogRow], keys: Mapping[bytes | None, DecodedKey]) -> None:
        """Replay rows, by their decoded keys."""
        for row in rows:
            place = Position(self.partition, row.offset, row.timestamp_ms)
            self.events += self.replica.replay_decoded(place, keys[row.key], row.value, commits=row.commits)
        self.replica.begin()
        if rows:
            self.events += self.replica.end_moments(rows[-1].timestamp_ms)
            self.book.last_offset = max(self.book.last_offset, rows[-1].offset)

    def with_own_id(self, event: Event) -> Event:
        """The event under an id of its own, where its offset was another record's before the log was cut off."""
        if event.offset >= self.book.read_before or event.kind in OF_NO_GROUP:
            return event
        return replace(event, ordinal=event.ordinal + self.book.cuts * ORDINALS_OF_A_LOG)

    def take_over(self, note: Note, rows: Sequence[LogRow]) -> None:
        """Go on with what is still so of what was known, and say what is not."""
        former, states, why = self.former, self.replica.groups, note.again or {}
        assert former is not None  # noqa: S101 - asked for where there is one
        place = Position(self.partition, self.book.last_offset, rows[-1].timestamp_ms if rows else -1)
        groups, buckets = former.groups(), former.buckets()
        for name, of_group in buckets.items():
            for held in of_group:
                bucket = self._bucket(name, held)
                if bucket is not None:
                    bucket.commits = max(bucket.commits, held.commits)
                    bucket.rewinds = max(bucket.rewinds, held.rewinds)
        changed = [name for name, was in groups.items() if self._is_other(was, buckets.get(name, ()))]
        changed += sorted(states.keys() - groups.keys())
        if "from" not in why:
            self.compare(former, place)
        else:
            detail = {
                "partition": self.partition,
                "from_offset": why["from"],
                "to_offset": why["to"],
                "groups": changed[:MOST_NAMED],
            }
            self.book.cuts += 1
            self.book.read_before = max(self.book.read_before, why["to"])
            self.events.append(
                next(events_of("", place, [Finding("log_truncated", detail)], first_ordinal=self.book.cuts))
            )
        for name, was in groups.items():
            state = states.get(name)
            if state is not None and state.exists:
                states[name] = rereading.taken_over(was, state)
            else:
                self.events += rereading.cleared(was)

    def compare(self, former: Former, place: Position) -> None:
        """Say what must have happened since, as far as the rules could not follow."""
        reported = {(event.group, event.kind) for event in self.events}
        buckets = former.buckets()
        for name, was in former.groups().items():
            held = buckets.get(name, ())
            found = rereading.differences(
                was, _offsets(held), self.replica.groups.get(name), self._offsets_now(name, held)
            )
            new = [finding for finding in found if (name, finding.kind) not in reported]
            self.events += events_of(name, place, new, first_ordinal=1 + crc32(name.encode()))

    def _is_other(self, was: GroupState, held: Iterable[OffsetBucket]) -> bool:
        """Whether a group has other members or offsets than it had, in these buckets."""
        state = self.replica.groups.get(was.name)
        if state is None or state.membership != was.membership or state.offset_count != was.offset_count:
            return True
        return _offsets(held) != self._offsets_now(was.name, held)

    def _offsets_now(self, name: str, held: Iterable[OffsetBucket]) -> dict[tuple[str, int], CommittedOffset]:
        """Offsets of a group as they are now, of the buckets that it had."""
        now = (self._bucket(name, bucket) for bucket in held)
        return _offsets(bucket for bucket in now if bucket is not None)

    def _bucket(self, name: str, held: OffsetBucket) -> OffsetBucket | None:
        """A bucket that a group had, as it is now."""
        return self.replica.loaded_bucket((name, held.topic, held.number))

    def conclude(self, log_ms: int | None = None) -> None:
        """Close what is open and report what was withheld: the partition is at the end of the log.

        Given the time of its last record, what may be back soon after is awaited; without, nothing has come for long.
        """
        self.book.was_live = True
        for name in self.book.waiting:
            self.replica.known(name)
        self.events += self.replica.settle(now_ms=log_ms)
        for state in self.replica.groups.values():
            state.built = False
        for name in [state.name for state in self.replica.groups.values() if state.withheld]:
            self.events += self.replica.judge(name)

    def changed_groups(self, changes: Changes) -> Iterator[tuple[GroupState, Entry]]:
        """(group, its figures and snapshot) of those to be kept."""
        for name in sorted(changes.groups):
            state = self.replica.groups.get(name)
            if state is not None and state.is_kept:
                yield state, (stored.dump(state), snapshot.dump_group(state))

    def wait(self, changes: Changes) -> None:
        """Remember the groups that something has yet to be said of."""
        groups = self.replica.groups
        unseen = {name for name in self.book.waiting if name not in groups and name not in changes.deleted}
        held = {
            of.name
            for of in groups.values()
            if of.step is not None
            or of.rewinds is not None
            or of.awaited_rewinds
            or of.withheld
            or static_absences.is_awaited(of)
        }
        self.book.waiting = sorted(unseen | held)


def _counted_again(known: Counters) -> Counters:
    """Counters for what is read again: types that were reported are no news."""
    return Counters(
        unknown_records=dict.fromkeys(known.unknown_records, 0),
        newer_value_versions=dict.fromkeys(known.newer_value_versions, 0),
    )


def _note_new_types(known: Counters, again: Counters) -> None:
    """Add the types that were met only now; what was known was counted when it was read first."""
    for name, count in again.unknown_records.items():
        known.unknown_records.setdefault(name, count)
    for name, count in again.newer_value_versions.items():
        known.newer_value_versions.setdefault(name, count)


def _is_new(rows: pa.Table, known: AbstractSet[int]) -> bool:
    """Whether there are rows of partitions of which nothing is known yet."""
    return not known >= set(pc.unique(rows["partition"]).to_pylist())


def _read_again(notes: Mapping[int, Note]) -> list[int]:
    return [partition for partition, note in notes.items() if note.again is not None and not note.unread]


def _offsets(buckets: Iterable[OffsetBucket]) -> dict[tuple[str, int], CommittedOffset]:
    return {(bucket.topic, partition): of for bucket in buckets for partition, of in bucket.offsets.items()}


def _parts(
    log: list[LogRow], seeds: Mapping[int, Collection[str]], also: Collection[int] = ()
) -> Iterator[dict[int, list[LogRow]]]:
    """Rows by partition: as many partitions at once as have `ROWS_AT_ONCE`, or the last of them has more.

    Each group that is seeded counts as a row; partitions that are named come also without any.
    """
    by_partition = {partition: list(rows) for partition, rows in groupby(log, attrgetter("partition"))}
    part: dict[int, list[LogRow]] = {}
    count = 0
    for partition in sorted(by_partition.keys() | seeds.keys() | set(also)):
        part[partition] = by_partition.get(partition, [])
        count += len(part[partition]) + len(seeds.get(partition, ()))
        if count >= ROWS_AT_ONCE:
            yield part
            part, count = {}, 0
    if part:
        yield part


def _touched(keys: Iterable[DecodedKey]) -> set[Key]:
    """Keys of the entries, groups and offset buckets, that records with these keys are about."""
    touched: set[Key] = set()
    for key in keys:
        if isinstance(key, KnownKey):  # others are counted when they are replayed
            of: Any = key.key
            touched.add((of.group_name,))
            topic = getattr(of, "topic", None)
            if topic is not None:
                touched.add((of.group_name, topic, bucket_number(of.partition)))
    return touched


_text: Final = json.JSONEncoder(separators=(",", ":"), check_circular=False).encode


def _json(value: object) -> bytes:
    return _text(value).encode()


def _undecodable(replica: Replica) -> Iterator[Row]:
    for position, record in replica.undecodable:
        reported = {"offset": position.offset, "record_type": record.record_type, "reason": record.reason}
        yield Row(position.partition, "undecodable", "", _json(reported))
    replica.undecodable.clear()


def _unreadable(run: PartitionReplay) -> Iterator[Row]:
    for first, end, reason in run.stepped_over:
        reported = {"first_offset": first, "last_offset": end - 1, "reason": reason}
        yield Row(run.partition, "unreadable", "", _json(reported))
