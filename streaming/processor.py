"""The replica inside Spark: one stateful key per partition of the offsets topic.

Keyed by shard, not by group: a call into the state costs about 80 µs and a key costs more, so a batch in which
20,000 groups commit is a few thousand keys' worth of overhead or none (design, decision 1). What a batch touches is
read once, replayed in the order of the log, and written once.

    state variable   key                      holds
    groups           group                    everything of a group but its offsets
    offsets          group, topic, bucket     up to 64 committed offsets
    shard            -                        totals of the partition, and what waits for the next batch

Nothing here is a rule about groups: those are the model's.
"""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any, Final

import pandas as pd
from pyspark.sql.streaming.stateful_processor import (
    ExpiredTimerInfo,
    MapState,
    StatefulProcessor,
    StatefulProcessorHandle,
    TimerValues,
    ValueState,
)

from coordinator_model import snapshot
from coordinator_model.events import Event, event_view
from coordinator_model.group_state import GroupState
from coordinator_model.offsets import OffsetBucket
from coordinator_model.replica import Changes, Counters, Position, Replica
from streaming.reduction import in_log_order
from streaming.schemas import BUCKET_KEY, GROUP_KEY, GROUPS_STATE, OFFSETS_STATE, SHARD_STATE, SNAPSHOT, OutputRow

SETTLE_AFTER_MS: Final = 2_000
"""How long a step cut off by the end of a rate-limited batch waits for its rest. The rest is in the next batch."""

GIVE_UP_WAITING_MS: Final = 60_000
"""After so long without a record a shard counts as live, wherever its last record stands: a transaction marker at
the end of the log is never delivered."""

_ROWS_A_FRAME: Final = 10_000


@dataclass(slots=True)
class ShardBook:
    """What is remembered of a shard besides its groups."""

    counters: Counters = field(default_factory=Counters)
    last_offset: int = -1
    waiting: list[str] = field(default_factory=list)
    """Groups with an open step or a withheld alarm."""
    timer_ms: int | None = None
    last_rows_ms: int = 0

    def dump(self) -> str:
        """As text for the state."""
        return json.dumps(asdict(self), separators=(",", ":"))

    @classmethod
    def load(cls, text: str) -> "ShardBook":
        """Inverse of `dump`."""
        held = json.loads(text)
        return cls(**{**held, "counters": Counters(**held["counters"])})


class _StateStore:
    """The replica's store on Spark's state; a shard never seen before is not asked."""

    def __init__(self, groups: MapState, offsets: MapState, *, is_new: bool) -> None:
        self._groups = groups
        self._offsets = offsets
        self._is_new = is_new
        self.stored_groups: set[str] = set()

    def load_group(self, name: str) -> GroupState | None:
        held = None if self._is_new else self._groups.getValue((name,))
        if held is None:
            return None
        self.stored_groups.add(name)
        return snapshot.load_group(held[0])

    def load_bucket(self, group: str, topic: str, number: int) -> OffsetBucket | None:
        held = None if self._is_new else self._offsets.getValue((group, topic, number))
        return None if held is None else snapshot.load_offsets(held[0])


class CoordinatorShard(StatefulProcessor):
    """Replays the rows of one shard; `live_from` is each partition's end as it was when this run began."""

    def __init__(self, live_from: dict[int, int]) -> None:
        self._live_from = live_from
        self._handle: StatefulProcessorHandle
        self._groups: MapState
        self._offsets: MapState
        self._shard: ValueState

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Declare the state variables."""
        self._handle = handle
        self._groups = handle.getMapState(GROUPS_STATE, GROUP_KEY, SNAPSHOT)
        self._offsets = handle.getMapState(OFFSETS_STATE, BUCKET_KEY, SNAPSHOT)
        self._shard = handle.getValueState(SHARD_STATE, SNAPSHOT)

    def handleInputRows(  # type: ignore[override]  # noqa: N802 - Spark's name, and one signature for its two forms
        self,
        key: Any,  # noqa: ANN401 - Spark's
        rows: Iterator[pd.DataFrame],
        timerValues: TimerValues,  # noqa: N803 - Spark's
    ) -> Iterator[pd.DataFrame]:
        """Replay what a micro-batch brings to the shard, in the order of the log."""
        run = self._open(int(key[0]))
        book = run.book
        for row in in_log_order(rows):
            book.last_offset = max(book.last_offset, row.offset)
            place = Position(run.partition, row.offset, row.timestamp_ms)
            run.events += run.replica.replay(place, row.key, row.value, commits=row.commits)
        book.last_rows_ms = timerValues.getCurrentProcessingTimeInMs()
        if self._reached_live(run):
            run.conclude()
        return self._finish(run, book.last_rows_ms)

    def handleExpiredTimer(  # noqa: N802 - Spark's name
        self,
        key: Any,  # noqa: ANN401 - Spark's
        timerValues: TimerValues,  # noqa: N803 - Spark's
        expiredTimerInfo: ExpiredTimerInfo,  # noqa: ARG002, N803 - Spark's
    ) -> Iterator[pd.DataFrame]:
        """Nothing came to finish an open step, or to give a withheld alarm its occasion: do so now."""
        run = self._open(int(key[0]))
        now_ms = timerValues.getCurrentProcessingTimeInMs()
        run.book.timer_ms = None
        if self._reached_live(run) or now_ms - run.book.last_rows_ms >= GIVE_UP_WAITING_MS:
            run.conclude()
        return self._finish(run, now_ms)

    def _open(self, partition: int) -> "_Run":
        held = self._shard.get()
        book = ShardBook() if held is None else ShardBook.load(held[0])
        store = _StateStore(self._groups, self._offsets, is_new=held is None)
        replica = Replica(store, book.counters, live_from=self._live_from.get(partition, 0))
        return _Run(partition, book, store, replica)

    def _reached_live(self, run: "_Run") -> bool:
        return run.book.last_offset >= self._live_from.get(run.partition, 0) - 1

    def _finish(self, run: "_Run", now_ms: int) -> Iterator[pd.DataFrame]:
        """Write what changed, in as few calls as there are changed groups and buckets, and pass it on."""
        changes = run.replica.take_changes()
        rows = [*self._write(run, changes), *_undecodable(run.replica)]
        rows += [OutputRow(run.partition, "event", event.group, _json(event_view(event))) for event in run.events]
        self._wait(run, changes, now_ms)
        self._shard.update((run.book.dump(),))
        totals = {**asdict(run.book.counters), "last_offset": run.book.last_offset}
        rows.append(OutputRow(run.partition, "shard", "", _json(totals)))
        return _frames(rows)

    def _write(self, run: "_Run", changes: Changes) -> Iterator[OutputRow]:
        for name, places in changes.deleted.items():
            if name in run.store.stored_groups:
                self._groups.removeKey((name,))
            for topic, number in places:
                self._offsets.removeKey((name, topic, number))
            yield OutputRow(run.partition, "group_deleted", name, "")
        for name in sorted(changes.groups):
            state = run.replica.groups.get(name)
            if state is not None and (state.exists or state.step is not None):
                text = snapshot.dump_group(state)
                self._groups.updateValue((name,), (text,))
                if state.exists:
                    yield OutputRow(run.partition, "group", name, text)
        for name, topic, number in sorted(changes.buckets):
            text = snapshot.dump_offsets(run.replica.buckets[name, topic, number])
            self._offsets.updateValue((name, topic, number), (text,))
            yield OutputRow(run.partition, "offsets", name, text)

    def _wait(self, run: "_Run", changes: Changes, now_ms: int) -> None:
        """Keep one timer while something waits, and none else."""
        book, groups = run.book, run.replica.groups
        unseen = {name for name in book.waiting if name not in groups and name not in changes.deleted}
        held = {state.name for state in groups.values() if state.step is not None or state.withheld}
        book.waiting = sorted(unseen | held)
        if book.timer_ms is not None:
            self._handle.deleteTimer(book.timer_ms)
        book.timer_ms = now_ms + SETTLE_AFTER_MS if book.waiting else None
        if book.timer_ms is not None:
            self._handle.registerTimer(book.timer_ms)


@dataclass(slots=True)
class _Run:
    """One call into a shard: its book and replica while they are open."""

    partition: int
    book: ShardBook
    store: _StateStore
    replica: Replica
    events: list[Event] = field(default_factory=list)

    def conclude(self) -> None:
        """Close what is open and report what was withheld: the shard is at the end of the log."""
        for name in self.book.waiting:
            self.replica.known(name)
        self.events += self.replica.settle()
        for name in [state.name for state in self.replica.groups.values() if state.withheld]:
            self.events += self.replica.judge(name)


def _json(value: Any) -> str:  # noqa: ANN401 - whatever JSON can hold
    return json.dumps(value, separators=(",", ":"))


def _frames(rows: list[OutputRow]) -> Iterator[pd.DataFrame]:
    for start in range(0, len(rows), _ROWS_A_FRAME):
        yield pd.DataFrame(rows[start : start + _ROWS_A_FRAME], columns=list(OutputRow._fields))


def _undecodable(replica: Replica) -> Iterator[OutputRow]:
    for position, record in replica.undecodable:
        told = {"offset": position.offset, "record_type": record.record_type, "reason": record.reason}
        yield OutputRow(position.partition, "undecodable", "", _json(told))
    replica.undecodable.clear()
