"""Events and states of groups, from a micro-batch or the overdue check, as entries of the queue.

Events go in with their batch, before Spark counts it as done. States of groups cost a hundred times what an event does,
so they are for those who ask for them (`states`), and thinned out: a group whose membership, epoch or state changed is
written with its batch, one that only committed at most once per interval, by a thread beside the stream. What is owed
so is kept in mind; after a restart it is what committed since shortly before the last entry.
"""

import json
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from coordinator_model.state.group_state import GroupState
from streaming.base.batch_rows import BatchRows, Row
from streaming.base.threads import Repeating
from streaming.board.board import Board
from streaming.board.event_window import Event
from streaming.sinks.queue import Spool, SpoolError

TELL_EVERY_SECONDS: Final = 1.0
STATES_AT_ONCE: Final = 200
"""So many states of groups are written in one go at most: a batch must not wait for twenty thousand."""
_CLOCKS_APART_MS: Final = 60_000

_WATCH: Final = "watch"
_STATES: Final = "states"


class QueueSink:
    """A sink of the stream (`sink.BatchSink`) that writes to a spool.

    Args:
        spool: where to.
        board: holds the groups; a sink that comes before this one.
        source: whose numbers the batch ids are; asked when the first batch is there.
        interval_ms: shortest time between two states of a group that only commits; None for no states at all.
        clock_ms: the wall clock.
    """

    def __init__(
        self,
        spool: Spool,
        board: Board,
        source: Callable[[], str],
        *,
        interval_ms: int | None,
        clock_ms: Callable[[], int],
    ) -> None:
        self._spool = spool
        self._board = board
        self._source = source
        self._interval_ms = interval_ms
        self._clock_ms = clock_ms
        self._owed: dict[str, int] = {}
        """Group → when its state is due."""
        self._written_ms: dict[str, int] = {}
        self._lock = threading.Lock()
        self._thread = Repeating("spool-states", TELL_EVERY_SECONDS, self.write_owed)

    def start(self) -> None:
        """Begin to write what is owed; the board holds what the checkpoint does."""
        if self._interval_ms is not None:
            self.owe_since(self._spool.last_ms)
            self._thread.start()

    def stop(self) -> None:
        """End the thread."""
        self._thread.stop()

    def owe_since(self, last_ms: int | None) -> None:
        """Owe the state of every group that may have changed since then; of all groups if that is not known."""
        since_ms = 0 if last_ms is None else last_ms - (self._interval_ms or 0) - _CLOCKS_APART_MS
        groups = self._board.shown.groups.items()
        self._owe(name for name, held in groups if last_ms is None or (held.newest_commit_ms or 0) >= since_ms)

    def apply(self, batch_id: int, rows: Sequence[Row], now_ms: int) -> None:
        """Write a batch's events and changed groups; raises SpoolError, which has Spark repeat the batch."""
        events = BatchRows.of(rows).events
        entries: list[dict[str, Any]] = [{"kind": "event", "event": event} for event in events]
        changed: Mapping[str, int | None] = {}
        if self._interval_ms is not None:
            gone = (row.group for row in rows if row.kind == "group_deleted")
            entries += [{"kind": "group_deleted", "group": name, "time": now_ms} for name in gone]
            changed = self._take_in(rows, events, now_ms)
        self._write(self._source(), batch_id, entries, changed)

    def add_events(self, events: Iterable[Event]) -> None:
        """Write events that no batch brought; those written before change nothing. Raises SpoolError."""
        self._spool.append(_WATCH, None, [{"kind": "event", "event": event} for event in events])

    def write_owed(self) -> None:
        """Write states that are due; raises SpoolError, and owes them still."""
        if not self._board.health.ready()[0]:
            return
        now_ms = self._clock_ms()
        with self._lock:
            due = [name for name, due_ms in self._owed.items() if due_ms <= now_ms]
        self._write(_STATES, None, [], dict.fromkeys(due))

    def _write(
        self, source: str, batch_id: int | None, entries: list[dict[str, Any]], changed: Mapping[str, int | None]
    ) -> None:
        """Append entries and the first states of changed groups (name → when, if known); the others stay owed."""
        taken = list(changed)[:STATES_AT_ONCE] if self._spool.has_room_for_states else []
        with self._lock:
            # Before their states are read: what changes from here on is owed again.
            for name in taken:
                self._owed.pop(name, None)
        groups, topic_names, now_ms = self._board.shown.groups, self._board.ends.topic_names, self._clock_ms()
        states: dict[str, dict[str, Any]] = {}
        for name in taken:
            held = groups.get(name)
            if held is not None:
                time_ms = max(changed[name] or held.newest_commit_ms or now_ms, _membership_ms(held.state))
                view = held.group_view(topic_names, time_ms)
                states[name] = {"kind": "group", "group": name, "time": time_ms, "state": view}
        try:
            self._spool.append(source, batch_id, [*entries, *states.values()])
        except SpoolError:
            self._owe(taken)
            raise
        self._written_ms.update(dict.fromkeys(states, now_ms))

    def _take_in(self, rows: Iterable[Row], events: Iterable[Event], now_ms: int) -> dict[str, int | None]:
        """Owe what a batch changed; returns what is to be written at once: group → when it changed."""
        changed = {row.group: now_ms for row in rows if row.kind == "group"}
        committed = {row.group for row in rows if row.kind == "offsets"} - changed.keys()
        # The group stands first in what says how far a share partition is.
        of_shares = {json.loads(row.payload)[0] for row in rows if row.kind in ("share", "share_gone")}
        committed |= of_shares - changed.keys()
        with self._lock:
            for name in (row.group for row in rows if row.kind == "group_deleted"):
                self._owed.pop(name, None)
                self._written_ms.pop(name, None)
            for name in committed:
                self._owed.setdefault(name, self._written_ms.get(name, 0) + (self._interval_ms or 0))
        self._owe(changed)
        # While it catches up, a group changes again and again, as it did long ago: its state is written once, after.
        if not self._board.health.ready()[0]:
            return {}
        # The time of a change is its event's, where there is one.
        return {**changed, **{event["group"]: event["time"] for event in events if event["group"] in changed}}

    def _owe(self, names: Iterable[str]) -> None:
        """Owe states, due at once."""
        with self._lock:
            self._owed.update(dict.fromkeys(names, 0))


def _membership_ms(state: GroupState) -> int:
    """When the last record was written that the membership is made of: a state is of no earlier time."""
    return state.last_step_ms if state.step is None else max(state.last_step_ms, state.step.timestamp_ms)
