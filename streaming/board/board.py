"""What the page, the metrics and the API read: every group as of the last micro-batch.

One thread writes (a sink's), many read. A batch becomes visible as a whole: it is put together beside what is shown
and takes its place in one assignment, so readers need no lock and never see half a batch. Rows are absolute and
events carry ids, so a batch that Spark repeats changes nothing.

The board holds everything in memory, as few objects as can be (`group_summary.py`, `offset_columns.py`), and what a
batch costs grows with what it changed (`persistent_map.py`); docs/scale.md has the figures.
"""

import json
import threading
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, Final, NamedTuple

from coordinator_model.clocked.table import ALSO_BY_RECORDS
from coordinator_model.records.topics import SHARE_STATE_TOPIC
from coordinator_model.state.events import OF_NO_GROUP
from coordinator_model.views import group_view
from streaming.base import gc_tuning
from streaming.base.batch_rows import BatchRows, Row
from streaming.base.expectations import Expectations
from streaming.base.name_filter import Scope
from streaming.base.persistent_map import GroupMap
from streaming.board.batch_update import BatchUpdate, BoardSnapshot
from streaming.board.board_group import BoardGroup
from streaming.board.copies import Copies
from streaming.board.event_window import Event, EventWindow
from streaming.board.findings import Findings
from streaming.board.health import Health
from streaming.board.lag_history import LagHistory
from streaming.board.moved_coordinators import retimed
from streaming.board.readiness import Standing
from streaming.board.share_partitions import OfGroup, topic_ids
from streaming.board.topics_told_apart import told_apart
from streaming.board.totals import LeftOut, Sums, Totals
from streaming.board.unread import DoubtedGroups
from streaming.end_offsets.store import EndOffsets, Wanted

__all__ = ["Board", "Row"]

DEFAULT_EVENT_WINDOW: Final = 10_000


MANY_ROWS: Final = 10_000
"""A batch of so many brings many groups that are there to stay: the log is being caught up with."""


_BLOCKED: Final = "upgrade_blocked"


class BoardMoment(NamedTuple):
    """What is shown, and whether it may be believed, of one moment."""

    shown: BoardSnapshot
    standing: Standing

    def doubt_of(self, name: str) -> Mapping[str, Any] | None:
        """Why what is shown of a group may not be so; of a name that is not known, why there may be such a group."""
        return self.standing.doubt_of(name, self.shown.groups.get(name))


class Board:
    """The state of all groups, for readers.

    Args:
        ends: where the logs end; lag is figured out against it whenever it is read.
        offsets_topic: the coordinator's log.
        event_window: how many events are kept.
        expectations: alarms that are none, of which groups.
        scope: what lists and series show. The board holds every group: gates and totals need them.

    Attributes:
        findings: what others found beside the log.
        health: whether what is shown may be believed.
        large_batches: how often so many groups came at once that memory can be returned afterwards.
        copies: groups with records in several offsets partitions.
    """

    def __init__(
        self,
        ends: EndOffsets,
        *,
        offsets_topic: str = "__consumer_offsets",
        event_window: int = DEFAULT_EVENT_WINDOW,
        scope: Scope | None = None,
        expectations: Expectations | None = None,
    ) -> None:
        self.ends = ends
        self.scope = scope or Scope()
        self.expectations = expectations or Expectations()
        self._left_out = LeftOut(self.scope)
        self.offsets_topic = offsets_topic
        self.findings: Final = Findings()
        self.health: Final = Health(ends, offsets_topic)
        self.large_batches = 0
        self.copies = Copies()
        self.events = EventWindow(event_window)
        self.lag_history = LagHistory()
        self._lock = threading.Lock()
        self._shown = BoardSnapshot()
        self._last_batch: int | None = None
        self._tally = Totals()
        self._doubted = DoubtedGroups()
        self._share_topics_of: tuple[GroupMap[OfGroup], frozenset[str]] = (self._shown.shares.groups, frozenset())

    # --- writing ---

    def load(self, rows: Iterable[Row]) -> None:
        """Replace everything by what the state store holds, at start."""
        with self._lock:
            with gc_tuning.paused():
                shown = self.copies.loaded(rows, BatchUpdate(BoardSnapshot()), self.health.offsets_partitions)
                self.health.meet_unreadable(shown.shards)
                self._shown = shown
            gc_tuning.freeze()
            self._last_batch = None
            self.health.set_loaded()
            self.large_batches += 1

    def start_over(self) -> None:
        """Forget all groups, and be ready only when the log has been read to its end again."""
        with self._lock:
            self.health.start_over()
            # Last of all: who asks meanwhile sees groups under doubt, never an empty board that is believed.
            self._shown = BoardSnapshot()
            self.health.meet_unreadable({})
            self.copies.clear()
            self.ends.share_log.start_over()
            self._last_batch = None

    def settled(self, batch_id: int, rows: Sequence[Row]) -> Sequence[Row]:
        """The rows of a micro-batch as all sinks have them: without those of copies that are not their groups.

        And with what brokers say: of topics whose commits do not (`topics_told_apart.py`), of coordinators that moved
        (`moved_coordinators.py`). Without `upgrade_blocked` where no group can be upgraded
        (`watchers/broker_watch.py`), and without what the clock has said before a record showed it.
        """
        rows, of_shares = _by_log(rows)
        own = self.copies.settled(batch_id, rows, self._shown.groups, self.health.offsets_partitions)
        events = [row for row in own if row.kind == "event"]
        if not events:
            return [*own, *of_shares] if of_shares else own
        said = [row for row in events if row.words not in ALSO_BY_RECORDS or not self._is_said(row)]
        if self.findings.converts_no_group:
            # Of brokers that convert none it is no news that they would not convert one.
            said = [row for row in said if row.words != _BLOCKED]
        said = told_apart(retimed(said, self.ends, self.offsets_topic), self.ends)
        settled = own if said == events else [*(row for row in own if row.kind != "event"), *said]
        return [*settled, *of_shares] if of_shares else settled

    def _is_said(self, row: Row) -> bool:
        return self.events.has_reported(json.loads(row.payload)["id"])

    def apply(self, batch_id: int, rows: Sequence[Row], now_ms: int) -> None:
        """Take the rows of one micro-batch; the same batch again changes nothing.

        Args:
            batch_id: Spark's number of the batch.
            rows: its rows; within a partition in the order they were put out.
            now_ms: the wall clock.
        """
        with self._lock:
            draft = BatchUpdate(self._shown)
            draft.take(rows)
            shown = draft.shown()
            # Doubted before it is shown.
            self.health.meet_unreadable(shown.shards)
            self._shown = shown
            if len(rows) >= MANY_ROWS:
                gc_tuning.freeze()
                self.large_batches += 1
            new_events = self.events.add_batch(draft.events, batch_id, BatchRows.of(rows).latest_events)
            for name in draft.deleted:
                self.events.forget(name)
            if batch_id != self._last_batch:
                events_ms = (event["time"] for event in new_events)
                self.health.observe_shown(chain(draft.commit_times_ms(), events_ms), now_ms)
            self._last_batch = batch_id

    def add_events(self, events: Iterable[Event]) -> None:
        """Take events that no micro-batch brought, each with its id; those taken before change nothing."""
        self.events.add(events)

    def owed(self) -> dict[int, list[Any]]:
        """Partitions of which records were planned that could not be read, as the stateful step has it."""
        return {partition: totals["owed"] for partition, totals in self._shown.shards.items() if totals.get("owed")}

    def share_owed(self) -> dict[int, list[Any]]:
        """The same of the share coordinator's log."""
        logs = self._shown.shares.logs
        return {
            place - SHARE_LOG: [[of["owed"]] * 2, None, None, True, []] for place, of in logs.items() if "owed" in of
        }

    # --- reading ---

    @property
    def shown(self) -> BoardSnapshot:
        """All groups and shards as of one moment."""
        return self._shown

    def doubted(self, moment: BoardMoment) -> Mapping[str, int]:
        """Group → the partition that cannot be read and that it may be in, of the groups of a moment."""
        return self._doubted.of(moment.shown.groups, moment.standing.unread)

    def moment(self) -> BoardMoment:
        """What is shown, and `Health.standing`: of one moment, as half a log must not be shown as a whole one.

        A batch is shown before the board is said to have come so far, and may come between two looks.
        """
        while True:
            shown = self._shown
            standing = self.health.standing()
            if self._shown is shown:
                return BoardMoment(shown, standing)

    def wanted(self) -> Wanted:
        """Topics the groups have to do with, for the sampler of log end offsets."""
        sums, names = self.sums(), self.ends.topic_names
        named = frozenset(names[id_] for id_ in sums.topic_ids if id_ in names)
        shares = self._share_topics()
        named |= frozenset(names[id_] for id_ in shares if id_ in names)
        if self.ends.share_log.found == "readable":
            named |= {SHARE_STATE_TOPIC}
        return Wanted(sums.topic_names | named, (sums.topic_ids | shares) - names.keys())

    def _share_topics(self) -> frozenset[str]:
        """Ids of topics that share partitions are of."""
        groups = self._shown.shares.groups
        if groups is not self._share_topics_of[0]:
            self._share_topics_of = groups, topic_ids(groups.values())
        return self._share_topics_of[1]

    def sums(self) -> Sums:
        """Sums over all groups as they are shown."""
        return self.sums_of(self._shown.groups)

    def sums_of(self, groups: GroupMap[BoardGroup]) -> Sums:
        """The same of groups as they were shown a moment ago."""
        return self._tally.of(groups)

    def left_out(self, shown: BoardSnapshot | None = None) -> dict[str, int]:
        """How many groups and topics the scope leaves out, by what they are; now, or as they were shown."""
        groups = self._groups(shown)
        return self._left_out.counts(groups, self.sums_of(groups).topic_names)

    def _groups(self, shown: BoardSnapshot | None) -> GroupMap[BoardGroup]:
        """All groups as they were shown, or now."""
        return (self._shown if shown is None else shown).groups

    def latest_events(self, limit: int, *, group: str | None = None, since_ms: int | None = None) -> list[Event]:
        """The latest events of a group, or of those in scope; oldest first, with topics by name where it is known."""
        found = self.events.latest(limit, group=group, since_ms=since_ms, shown=self.scope.groups)
        return [self.named(event) for event in found]

    def named(self, event: Event) -> Event:
        """The event as it leaves the monitor: with topics by name where it is known, and no group where it has none."""
        named = {**event, "detail": group_view.named(event["detail"], self.ends.topic_names)}
        return {**named, "group": None} if event["kind"] in OF_NO_GROUP else named


SHARE_LOG: Final = 1 << 20
"""Rows of the share coordinator's log are of partitions from here on (`query/share_cells.py`)."""


def _by_log(rows: Sequence[Row]) -> tuple[Sequence[Row], Sequence[Row]]:
    """Rows of the first log, and of the share coordinator's, which say nothing of where a group lives."""
    if all(row[0] < SHARE_LOG for row in rows):
        return rows, ()
    return [row for row in rows if row[0] < SHARE_LOG], [row for row in rows if row[0] >= SHARE_LOG]
