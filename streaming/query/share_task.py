"""Share partitions in the stateful step: what a micro-batch brings of the share coordinator's log, replayed.

They are kept among the packs (`processor.py`), where the key names the log and its partition:

    key                               holds
    SHARE_LOG + partition, slot       share partitions of the slot, a line each: which one it is, a tab, its state
    SHARE_LOG + partition, LEDGER     what is remembered of the partition of the log besides (`ShareLedger`)

All but events leave as absolute rows of no group, so that copies of groups (`board/copies.py`) do not concern them.
"""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final
from zlib import crc32

import numpy as np
import pyarrow as pa
from pyspark.sql.streaming.stateful_processor import MapState

from coordinator_model.records.serde import KnownKey
from coordinator_model.records.share_state_types import decode_share_key
from coordinator_model.replica import Counters
from coordinator_model.rules import share_records
from coordinator_model.rules.share_redelivery import Redeliveries, Window
from coordinator_model.share_replica import ShareReplica
from coordinator_model.state import share_text
from coordinator_model.state.events import Event, event_view
from coordinator_model.state.findings import Position
from coordinator_model.state.share_partition import SharePartition, SharePartitionId
from coordinator_model.views.share_partitions import ShareFigures
from streaming.base import gc_tuning
from streaming.base.batch_rows import Row
from streaming.query.log_continuity import Note
from streaming.query.row_codec import packed_output
from streaming.query.share_cells import NOTHING_SAID, SHARE_LOG, CellNotes, Pruned, share_rows
from streaming.query.share_looks import of_json
from streaming.query.state_pipelining import get_many, put_many

SLOTS: Final = 8
"""Of each partition of the log: two thousand share partitions in fifty partitions are five a slot."""

LEDGER: Final = -1

MOST_NAMED: Final = 10
"""Of records of one partition that do not decode in a micro-batch, so many are logged: of Kafka 4.0 none does."""

_encode: Final = json.JSONEncoder(separators=(",", ":"), check_circular=False).encode

_WINDOWS_KEPT: Final = 6
"""Of five minutes each: a verdict rests on three, and who reads them may be late."""


@dataclass(slots=True)
class ShareLedger:
    """What is remembered of a partition of the log besides its share partitions.

    Attributes:
        next_offset: of what was replayed.
        live_from: where it ended when it was first read; below nothing is an alarm.
        reported_to: events of records below were put out by a former reading.
        owed: the offset from which on records were planned and could not be read.
        pruned: where it began when records to be read were deleted, and the end to be read to before what was not seen
            since is gone.
        counters: of what was read.
        unknown_states: as a `ShareReplica`'s.
        crowds: share partitions of which something is kept to be said, as `share_text.dump_id` has them.
        windows: group → number of a window → done, delivered again, and the last record: offset, time.
    """

    next_offset: int = 0
    live_from: int = 0
    reported_to: int = 0
    owed: int | None = None
    pruned: list[int] | None = None
    counters: Counters = field(default_factory=Counters)
    unknown_states: dict[str, int] = field(default_factory=dict)
    crowds: list[str] = field(default_factory=list)
    windows: dict[str, dict[str, list[int]]] = field(default_factory=dict)

    def dump(self) -> bytes:
        """As it is stored."""
        return _encode(asdict(self)).encode()

    @classmethod
    def load(cls, held: bytes) -> "ShareLedger":
        """Inverse of `dump`."""
        fields = json.loads(held)
        return cls(**{**fields, "counters": Counters(**fields["counters"])})

    def totals(self) -> dict[str, Any]:
        """What is passed on of it."""
        counters = {name: of for name, of in asdict(self.counters).items() if of}
        told = {"next_offset": self.next_offset, "windows": self.windows, **counters}
        if self.unknown_states:
            told["unknown_states"] = self.unknown_states
        if self.owed is not None:
            told["owed"] = self.owed
        return told


class ShareTask:
    """Share partitions of one bundle in one call of its stateful task.

    Attributes:
        waits: partition of the log → whether something is kept to be said once a minute is over, of those replayed.
    """

    def __init__(self, packs: MapState) -> None:
        self._packs = packs
        self.waits: dict[int, bool] = {}

    def replay(self, cells: Iterable[bytes]) -> Iterator[bytes]:
        """Replay cells (`share_cells.py`), each partition in the order of the log; yields packed output."""
        tables, said = [], NOTHING_SAID
        for cell in cells:
            rows, of_cell = share_rows(cell)
            tables.append(rows.replace_schema_metadata(None))
            said = _merged(said, of_cell)
        by_partition = _by_partition(pa.concat_tables(tables))
        partitions = sorted(by_partition.keys() | {int(of) for of in said.ends})
        ledgers = self._ledgers(partitions)
        written: list[tuple[tuple[int, int], tuple[bytes]]] = []
        output: list[Row] = []
        with gc_tuning.paused():
            for partition in partitions:
                run = _Run(self._packs, partition, ledgers.get(partition), said)
                run.replay(by_partition.pop(partition, ()))
                written += run.written()
                output += run.output()
                self.waits[partition] = bool(run.ledger.crowds)
        put_many(self._packs, written)
        if output:
            yield packed_output(output)

    def conclude(self, partitions: Collection[int], now_ms: int) -> Iterator[bytes]:
        """Say what is kept of minutes that are over; yields packed output."""
        written: list[tuple[tuple[int, int], tuple[bytes]]] = []
        output: list[Row] = []
        for partition, ledger in self._ledgers(partitions).items():
            run = _Run(self._packs, partition, ledger, NOTHING_SAID)
            run.settle(now_ms)
            written += run.written()
            output += run.output()
            self.waits[partition] = bool(run.ledger.crowds)
        put_many(self._packs, written)
        if output:
            yield packed_output(output)

    def _ledgers(self, partitions: Iterable[int]) -> dict[int, ShareLedger]:
        held = get_many(self._packs, [(SHARE_LOG + of, LEDGER) for of in partitions])
        return {place - SHARE_LOG: ShareLedger.load(pack) for (place, _), (pack,) in held.items()}


class _Run:
    """One partition of the log in one call."""

    def __init__(self, packs: MapState, partition: int, ledger: ShareLedger | None, said: CellNotes) -> None:
        self._packs = packs
        self._partition = partition
        self._is_new = ledger is None
        self.ledger = ledger or ShareLedger()
        name = str(partition)
        note = said.notes.get(name)
        self._note = None if note is None else Note.of(note)
        self._pruned = Pruned(*said.pruned[name]) if name in said.pruned else None
        self._end = said.ends.get(name)
        self._limits, self._looked = said.limits, of_json(said.looked)
        self._slots: dict[int, dict[str, str]] = {}
        self._events: list[Event] = []
        self._left_out: list[dict[str, Any]] = []
        self._changed: set[SharePartitionId] = set()
        self._replica: ShareReplica | None = None

    def replay(self, rows: Sequence[tuple[int, int, bytes | None, bytes | None]]) -> None:
        """Replay (offset, time, key, value)s, ascending."""
        ledger, note = self.ledger, self._note
        if self._is_new:
            gap = None if note is None else note.gap
            ledger.live_from = gap[1] or 0 if gap is not None else 0
        begins = None if note is None else note.begins[1]
        if note is not None and note.unread:
            ledger.owed = ledger.next_offset if ledger.owed is None else ledger.owed
            return
        if ledger.owed is not None and not (begins is not None and begins <= ledger.owed):
            return  # what comes after what is owed would be replayed on what is not yet so
        ledger.owed = None
        former: dict[str, SharePartition] = {}
        if note is not None and note.again is not None:
            former = self._forget_all(note.again)
        replica = self._with_touched(rows)
        for offset, time_ms, key, value in rows:
            if offset >= ledger.next_offset:
                self._events += replica.replay(Position(self._partition, offset, time_ms), key, value)
        for position, record in replica.undecodable[:MOST_NAMED]:
            self._left_out.append(
                {"log": "share", "offset": position.offset, "record_type": record.record_type, "reason": record.reason}
            )
        replica.undecodable.clear()
        if self._end is not None:
            ledger.next_offset = max(ledger.next_offset, self._end)
        self._take_over(former)
        self._forget_unseen()
        self._keep(replica)

    def settle(self, now_ms: int) -> None:
        """Say what is kept of minutes that are over."""
        replica = self._with_touched(())
        self._events += replica.settle(now_ms=now_ms)
        self._keep(replica)

    def written(self) -> Iterator[tuple[tuple[int, int], tuple[bytes]]]:
        """What is to be put into the state."""
        place = SHARE_LOG + self._partition
        for slot in sorted({_slot(id_) for id_ in self._changed}):
            yield (place, slot), (_dumped(self._slots[slot]),)
        yield (place, LEDGER), (self.ledger.dump(),)

    def output(self) -> Iterator[Row]:
        """What is put out, in this order."""
        place, replica = SHARE_LOG + self._partition, self._replica
        for id_ in sorted(self._changed):
            held = None if replica is None else replica.partitions.get(id_)
            if held is None:
                yield Row(place, "share_gone", "", share_text.dump_id(id_).encode())
            else:
                yield Row(place, "share", "", ShareFigures.of(held).dump().encode())
        for left_out in self._left_out:
            yield Row(place, "undecodable", "", _encode(left_out).encode())
        for event in self._events:
            # What was given up before the monitor came is counted; that some of it is unclear is no news either.
            is_news = event.kind != share_records.KIND or event.offset >= self.ledger.live_from
            if is_news and event.offset >= self.ledger.reported_to:
                yield Row(place, "event", event.group, _encode(event_view(event)).encode(), event.kind)
        yield Row(place, "share_log", "", _encode(self.ledger.totals()).encode())

    def _with_touched(self, rows: Sequence[tuple[int, int, bytes | None, bytes | None]]) -> ShareReplica:
        """A replica with the share partitions that rows are about, and those of which something is kept."""
        ledger = self.ledger
        ids = {id_ for key in {key for _, _, key, _ in rows} if (id_ := _id_of(key)) is not None}
        ids |= {share_text.load_id(text) for text in ledger.crowds}
        replica = self._replica = ShareReplica(
            delivery_count_limits=self._limits,
            gaps=None,
            looked=self._looked,
            live_from={self._partition: ledger.live_from},
            redeliveries=Redeliveries(),
            counters=ledger.counters,
        )
        replica.unknown_states = ledger.unknown_states
        self._fetch({_slot(id_) for id_ in ids})
        for id_ in ids:
            text = self._slots[_slot(id_)].get(share_text.dump_id(id_))
            if text is not None:
                replica.hold(share_text.load(id_, text))
        return replica

    def _keep(self, replica: ShareReplica) -> None:
        """Have the slots and the ledger be as the replica is now."""
        self._changed |= replica.changed
        replica.changed.clear()
        self._fetch({_slot(id_) for id_ in self._changed})
        for id_ in self._changed:
            held, of_slot, name = replica.partitions.get(id_), self._slots[_slot(id_)], share_text.dump_id(id_)
            if held is None:
                of_slot.pop(name, None)
            else:
                of_slot[name] = share_text.dump(held)
        self.ledger.crowds = sorted(
            share_text.dump_id(of.id) for of in replica.partitions.values() if of.crowd is not None
        )
        assert replica.redeliveries is not None  # noqa: S101 - made with them
        _add_windows(self.ledger.windows, replica.redeliveries)

    def _forget_all(self, why: Mapping[str, Any]) -> dict[str, SharePartition]:
        """Forget what is known of a log that is read again from its beginning; returns what it was."""
        ledger = self.ledger
        former = self._every()
        for name in former:
            self._changed.add(share_text.load_id(name))
        for of_slot in self._slots.values():
            of_slot.clear()
        ledger.reported_to = min(ledger.next_offset, why.get("from", ledger.next_offset))
        ledger.live_from = max(ledger.live_from, ledger.reported_to)
        ledger.next_offset, ledger.crowds, ledger.windows, ledger.pruned = 0, [], {}, None
        return former

    def _take_over(self, former: Mapping[str, SharePartition]) -> None:
        """What was counted stays counted, though records that showed it are gone."""
        assert self._replica is not None  # noqa: S101 - made before
        for held in former.values():
            now = self._replica.partitions.get(held.id)
            if now is not None:
                causes = now.archived.keys() | held.archived.keys()
                now.archived = {why: max(now.archived.get(why, 0), held.archived.get(why, 0)) for why in causes}

    def _forget_unseen(self) -> None:
        """Forget what was not seen between the log's start and the end found with it: it is gone."""
        ledger, replica = self.ledger, self._replica
        assert replica is not None  # noqa: S101 - made before
        if self._pruned is not None:
            first, end = self._pruned
            ledger.pruned = (
                [max(first, ledger.pruned[0]), max(end, ledger.pruned[1])] if ledger.pruned else [first, end]
            )
        if ledger.pruned is None or ledger.next_offset < ledger.pruned[1]:
            return
        first = ledger.pruned[0]
        for name, held in self._every().items():
            id_ = share_text.load_id(name)
            if id_ not in replica.partitions and held.last_offset < first:
                replica.hold(held)
        replica.forget_before(self._partition, first)
        ledger.pruned = None

    def _every(self) -> dict[str, SharePartition]:
        """All share partitions of this partition of the log, as they are stored."""
        self._fetch(range(SLOTS))
        texts = [entry for slot in range(SLOTS) for entry in self._slots[slot].items()]
        return {name: share_text.load(share_text.load_id(name), text) for name, text in texts}

    def _fetch(self, slots: Iterable[int]) -> None:
        new = [slot for slot in slots if slot not in self._slots]
        self._slots.update((slot, {}) for slot in new)
        if new and not self._is_new:
            place = SHARE_LOG + self._partition
            found = get_many(self._packs, [(place, slot) for slot in new])
            self._slots.update((slot, _loaded(pack)) for (_, slot), (pack,) in found.items())


def stored_share_rows(packs: Iterable[tuple[tuple[int, int], bytes]]) -> Iterator[Row]:
    """What packs of the state hold of the second log, as the rows that it was put out in."""
    for (place, slot), pack in packs:
        if slot == LEDGER:
            yield Row(place, "share_log", "", _encode(ShareLedger.load(pack).totals()).encode())
            continue
        for name, text in _loaded(pack).items():
            held = share_text.load(share_text.load_id(name), text)
            yield Row(place, "share", "", ShareFigures.of(held).dump().encode())


def _dumped(entries: Mapping[str, str]) -> bytes:
    lines = (f"{name}\t{text}" for name, text in entries.items())
    return "\n".join([str(share_text.FORMAT), *lines]).encode()


def _loaded(pack: bytes) -> dict[str, str]:
    format_, *lines = pack.decode().split("\n")
    if int(format_) != share_text.FORMAT:
        raise ValueError(f"share partitions of format {format_}, accepted: {share_text.FORMAT}")
    return dict(line.split("\t", 1) for line in lines)


def _slot(id_: SharePartitionId) -> int:
    return crc32(f"{id_.group}:{id_.topic_id}:{id_.partition}".encode("utf-8", "surrogatepass")) % SLOTS


def _id_of(key: bytes | None) -> SharePartitionId | None:
    decoded = decode_share_key(key)
    if not isinstance(decoded, KnownKey):
        return None
    of: Any = decoded.key
    return SharePartitionId(of.group_id, of.topic_id, of.partition)


def _merged(one: CellNotes, other: CellNotes) -> CellNotes:
    return CellNotes(
        {**one.notes, **other.notes},
        {**one.pruned, **other.pruned},
        {**one.ends, **other.ends},
        other.limits or one.limits,
        {**one.looked, **other.looked},
    )


def _by_partition(rows: pa.Table) -> dict[int, list[tuple[int, int, bytes | None, bytes | None]]]:
    """Rows of each partition, ascending."""
    if not rows.num_rows:
        return {}
    order = np.lexsort((rows["offset"].to_numpy(), rows["partition"].to_numpy()))
    rows = rows.take(pa.array(order))
    partitions, first = np.unique(rows["partition"].to_numpy(), return_index=True)
    lists = [rows[name].to_pylist() for name in ("offset", "timestamp_ms", "key", "value")]
    bounds = [*first.tolist(), rows.num_rows]
    return {
        partition: list(zip(*(of[begin:end] for of in lists), strict=True))
        for partition, begin, end in zip(partitions.tolist(), bounds, bounds[1:], strict=False)
    }


def _add_windows(known: dict[str, dict[str, list[int]]], found: Redeliveries) -> None:
    """Count what became done into windows that are known, and let go of those long over."""
    for group, windows in found.windows.items():
        of_group = known.setdefault(group, {})
        for number, window in windows.items():
            done, again, offset, time_ms = of_group.get(str(number), (0, 0, -1, -1))
            last = max((time_ms, offset), (window.place.timestamp_ms, window.place.offset))
            of_group[str(number)] = [done + window.done, again + window.again, last[1], last[0]]
    for group, of_group in list(known.items()):
        latest = max(map(int, of_group), default=0)
        known[group] = {name: of for name, of in of_group.items() if int(name) > latest - _WINDOWS_KEPT}


def window_of(held: Sequence[int], partition: int) -> Window:
    """A window as a ledger has it."""
    done, again, offset, time_ms = held
    return Window(done, again, Position(partition, offset, time_ms))
