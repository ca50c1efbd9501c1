"""What the page, the metrics and the API read: every group as of the last micro-batch.

One thread writes (a sink's), many read. A batch becomes visible as a whole: it is put together beside what is shown
and takes its place in one assignment, so readers need no lock and never see half a batch. Rows are absolute and
events carry ids, so a batch that Spark repeats changes nothing.

The board holds everything in memory, as few objects as can be (`group_summary.py`, `offset_columns.py`), and what a
batch costs grows with what it changed (`persistent_map.py`); docs/scale.md has the figures.
"""

import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from coordinator_model.gates.broker_abilities import ONLINE_UPGRADE, Broker, lacking
from coordinator_model.state.events import OF_NO_GROUP
from coordinator_model.views import group_view
from streaming.base import gc_tuning
from streaming.base.batch_rows import BatchRows, Row
from streaming.base.doubt import doubt
from streaming.base.expectations import Expectations
from streaming.base.name_filter import Scope
from streaming.base.output_status import SinkState
from streaming.base.persistent_map import GroupMap
from streaming.base.times import now_ms
from streaming.board.batch_update import BatchUpdate, BoardSnapshot
from streaming.board.board_group import BoardGroup
from streaming.board.copies import Copies
from streaming.board.event_window import Event, EventWindow
from streaming.board.histogram import BATCH_SECONDS_BUCKETS, RECORD_TO_METRIC_SECONDS_BUCKETS, Distribution
from streaming.board.lag_history import LagHistory
from streaming.board.polls import PollStatus
from streaming.board.readiness import Offsets, Positions, Readiness, Standing, Standstill
from streaming.board.topics_told_apart import told_apart
from streaming.board.totals import LeftOut, Sums, Totals
from streaming.board.unread import EVERYTHING_IS_READ, Doubt, DoubtedGroups, Unread, unread_of
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

    def doubt_of(self, name: str) -> Doubt | None:
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

    What others find beside the log enters by a method, all of it at once: it is replaced, never changed.

    Attributes:
        session_timeouts_ms: group → session timeout of its consumer-protocol members, where brokers said it.
        brokers: every broker with what it can do; None while they have not said.
        read_ms: group between two states → when its last step was read, where its timestamp is far from that.
        stuck: groups in a rebalance that is overdue.
        unsettled: groups that do not come to rest.
        unassigned: groups in which no member has held some partitions for longer than is legal.
        rebuilds: how often the log was read from its beginning since this monitor started (`state_directory`).
        large_batches: how often so many groups came at once that memory can be returned afterwards.
        sinks: the states of the sinks.
        source_age_seconds: how long ago the monitor whose topics fill this board last wrote; None for one of our own.
        history_bytes: size of the history on disk; None where none is kept.
        polls: how the polling of the groups goes; None where they are of the log (`polls.py`).
        copies: groups with records in several offsets partitions.
        unread: offsets partition → since when (ms) it cannot be read (`unread.py`).
        offsets_partitions: how many partitions the coordinator's log has; None while that is not known.
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
        self.session_timeouts_ms: Mapping[str, int] = {}
        self.brokers: Collection[Broker] | None = None
        self.read_ms: Mapping[str, int] = {}
        self.stuck: frozenset[str] = frozenset()
        self.unsettled: frozenset[str] = frozenset()
        self.unassigned: frozenset[str] = frozenset()
        self.unread: Mapping[int, int] = {}
        self.offsets_partitions: int | None = None
        self.rebuilds = 0
        self.large_batches = 0
        self.sinks: Callable[[], Iterable[SinkState]] = tuple
        self.source_age_seconds: Callable[[], float | None] = lambda: None
        self.history_bytes: Callable[[], int | None] = lambda: None
        self.polls: Callable[[], PollStatus | None] = lambda: None
        self._start: Callable[[], list[dict[str, Any]]] = list
        self.copies = Copies()
        self.events = EventWindow(event_window)
        self.lag_history = LagHistory()
        self.record_to_metric = Distribution(RECORD_TO_METRIC_SECONDS_BUCKETS)
        self.batch_seconds = Distribution(BATCH_SECONDS_BUCKETS)
        self._lock = threading.Lock()
        self._shown = BoardSnapshot()
        self._positions = Positions({}, {})
        self._readiness = Readiness()
        self._since_ms = now_ms()
        self._standstill: Standstill | None = None
        self._one_reader = False
        self._is_looked_at = True
        self._last_batch: int | None = None
        self._tally = Totals()
        self._doubted = DoubtedGroups()

    # --- writing ---

    def load(self, rows: Iterable[Row]) -> None:
        """Replace everything by what the state store holds, at start."""
        with self._lock:
            with gc_tuning.paused():
                self._shown = self.copies.loaded(rows, BatchUpdate(BoardSnapshot()), self.offsets_partitions)
            gc_tuning.freeze()
            self._last_batch = None
            self._readiness.set_loaded()
            self.large_batches += 1

    def start_over(self) -> None:
        """Forget all groups, and be ready only when the log has been read to its end again."""
        with self._lock:
            self._positions = Positions({}, {})
            self._readiness = Readiness(loaded=True)
            self._since_ms = now_ms()
            # Last of all: who asks meanwhile sees groups under doubt, never an empty board that is believed.
            self._shown = BoardSnapshot()
            self.copies.clear()
            self._last_batch = None

    def settled(self, batch_id: int, rows: Sequence[Row]) -> Sequence[Row]:
        """The rows of a micro-batch as all sinks have them: without those of copies that are not their groups.

        And with what brokers say: of topics whose commits do not (`topics_told_apart.py`), and without
        `upgrade_blocked` where no group can be upgraded (`watchers/broker_watch.py`).
        """
        own = self.copies.settled(batch_id, rows, self._shown.groups, self.offsets_partitions)
        if self.converts_no_group and any(row[4] == _BLOCKED for row in own):
            # Of brokers that convert none it is no news that they would not convert one.
            own = [row for row in own if row[4] != _BLOCKED]
        return told_apart(own, self.ends)

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
            self._shown = draft.shown()
            if len(rows) >= MANY_ROWS:
                gc_tuning.freeze()
                self.large_batches += 1
            new_events = self.events.add_batch(draft.events, batch_id, BatchRows.of(rows).latest_events)
            for name in draft.deleted:
                self.events.forget(name)
            if batch_id != self._last_batch and self._readiness.caught_up:
                for written_ms in (*draft.commit_times_ms(), *(event["time"] for event in new_events)):
                    self.record_to_metric.observe(max(0.0, (now_ms - written_ms) / 1000))
            self._last_batch = batch_id

    def add_events(self, events: Iterable[Event]) -> None:
        """Take events that no micro-batch brought, each with its id; those taken before change nothing."""
        self.events.add(events)

    def set_overdue(
        self, stuck: Iterable[str] = (), unsettled: Iterable[str] = (), unassigned: Iterable[str] = ()
    ) -> None:
        """Say which groups the look with a clock in hand found something of, all of them."""
        self.stuck, self.unsettled, self.unassigned = frozenset(stuck), frozenset(unsettled), frozenset(unassigned)

    def set_unread(self, unread: Mapping[int, int], partitions: int) -> None:
        """Say which partitions of the log cannot be read, all of them, each since when (ms); and how many there are."""
        self.unread, self.offsets_partitions = dict(unread), partitions

    def know_unread(self) -> None:
        """Say that groups of partitions that cannot be read are known as they were: the board may be ready so."""
        self._readiness.was_ready = True

    def owed(self) -> dict[int, list[Any]]:
        """Partitions of which records were planned that could not be read, as the stateful step has it."""
        return {partition: totals["owed"] for partition, totals in self._shown.shards.items() if totals.get("owed")}

    def observe_batch(self, seconds: float) -> None:
        """Count the duration of a finished micro-batch."""
        self.batch_seconds.observe(seconds)
        if self._standstill is not None:
            self._standstill.moved()

    def expect_batches(self, *, one_reader: bool, standstill: Standstill | None = None) -> None:
        """Say that a stream fills this board: one that stands still makes it not ready. Once, at start.

        Args:
            one_reader: whether membership as well waits behind open transactions.
            standstill: judges it.
        """
        self._standstill = standstill or Standstill()
        self._one_reader = one_reader
        self._is_looked_at = False

    def looked(self) -> None:
        """Say that the stream has looked at the log: what it lost since it was read is known."""
        self._is_looked_at = True

    def show_start(self, missing: Callable[[], list[dict[str, Any]]]) -> None:
        """Show what else keeps the board from being ready, as `Stages.missing`; once, at start."""
        self._start = missing

    def set_log_end_at_start(
        self, high_watermarks: Offsets, last_stable: Offsets, partitions: int | None = None
    ) -> None:
        """Say where the offsets partitions ended when this run began: how far it has to come to be ready.

        Those of which it was not to be had then are added once it is; without their number there are no such.
        """
        with self._lock:
            self._readiness.set_targets(high_watermarks, last_stable, partitions)

    def add_log_end_at_start(
        self, high_watermarks: Offsets, last_stable: Offsets, sampled_ms: Mapping[int, int] | None = None
    ) -> None:
        """Say the same of partitions whose leaders answer only now, or that lost their tail; of others it stays.

        `sampled_ms` says when those were asked that were since the start.
        """
        with self._lock:
            self._readiness.add_targets(high_watermarks, last_stable, sampled_ms)
            if self._readiness.follow(self._positions, now_ms()):
                self.ends.ask()

    def set_positions(self, membership: Offsets, commits: Offsets, now_ms: int) -> None:
        """Say how far the two readers are: by offsets partition the next offset to read, once its rows are applied.

        With one reader for both, it is given twice.
        """
        with self._lock:
            self._positions = self._positions.merged(membership, commits)
            if self._readiness.follow(self._positions, now_ms):
                # Lag is all that is missing now.
                self.ends.ask()

    def set_session_timeouts(self, timeouts_ms: Mapping[str, int]) -> None:
        """Take the session timeouts of consumer-protocol members by group, as brokers said, all of them."""
        self.session_timeouts_ms = timeouts_ms

    def set_brokers(self, brokers: Collection[Broker]) -> None:
        """Take what every broker can do, as they said."""
        self.brokers = brokers

    @property
    def converts_no_group(self) -> bool:
        """Whether some broker, and so perhaps the one that leads a group, upgrades none that has members."""
        return bool(lacking(self.brokers or (), ONLINE_UPGRADE))

    def set_read_times(self, read_ms: Mapping[str, int]) -> None:
        """Take when the last step of groups between two states was read, of those with a doubtful timestamp, all."""
        self.read_ms = read_ms

    def set_rebuilds(self, rebuilds: int) -> None:
        """Take how often the log was read from its beginning since this monitor started."""
        self.rebuilds = rebuilds

    def show_sinks(self, states: Callable[[], Iterable[SinkState]]) -> None:
        """Show the states of these sinks; once, at start."""
        self.sinks = states

    def show_source_age(self, seconds: Callable[[], float | None]) -> None:
        """Show how long ago the monitor whose topics fill this board last wrote; once, at start."""
        self.source_age_seconds = seconds

    def show_history_size(self, size_bytes: Callable[[], int | None]) -> None:
        """Show the size of the history on disk; once, at start."""
        self.history_bytes = size_bytes

    def show_polls(self, status: Callable[[], PollStatus | None]) -> None:
        """Say that the groups are polled, and show how that goes; once, at start."""
        self.polls = status

    # --- reading ---

    @property
    def shown(self) -> BoardSnapshot:
        """All groups and shards as of one moment."""
        return self._shown

    @property
    def positions(self) -> Positions:
        """How far the two readers are."""
        return self._positions

    def ready(self) -> tuple[bool, list[dict[str, Any]]]:
        """Whether all that was in the log at start is shown, with lag, and the stream moves; and what is missing.

        That is as `base.doubt` has it: each thing with its `reason`, `since` and more.
        """
        standing = self.standing()
        return standing.ready, standing.missing

    def standing(self) -> Standing:
        """`ready` of one moment, and why what is shown may not be so (`base.doubt`): only without may it look good.

        Polled groups are under doubt from the first poll on that is not answered; not ready, only after a while.
        """
        polls = self.polls()
        missing = self._start()
        stale: list[dict[str, Any]] = []
        if polls is not None:
            missing += polls.missing(self.ends.sampled_ms, now_ms())
            stale = polls.stale()
        else:
            reading = self._readiness.missing(self._positions, self.ends.sampled_ms, self.unread)
            missing += reading
            if not reading and not self._is_looked_at:
                # The log may have lost what was read of it by a former run.
                missing.append({"reason": "the log is not compared yet with what was read of it"})
            if self._standstill is not None:
                caught_up = not reading
                stands_still, stale = self._standstill.found(self.waiting(), now_ms(), caught_up=caught_up)
                missing += stands_still
        since = [{"since": self._since_ms, **each} for each in missing]
        doubted = doubt([*stale, *since])
        if polls is not None:
            return Standing(since, doubted)
        unread = self._unread_now()
        if not unread:
            self._readiness.was_ready |= not since
        elif not self._readiness.was_ready:
            # What was in them at start is not known.
            since += unread.missing()
        return Standing(since, doubted, unread)

    def _unread_now(self) -> Unread:
        unread, partitions = self.unread, self.offsets_partitions
        if not unread or partitions is None:
            return EVERYTHING_IS_READ
        topic = self.ends.topic(self.offsets_topic)
        return unread_of(unread, partitions, () if topic is None else topic.leaders)

    def standstill_seconds(self) -> float | None:
        """How long records have waited without a finished micro-batch; None while the stream moves (`Standstill`)."""
        if self._standstill is None:
            return None
        reading = self._readiness.missing(self._positions, self.ends.sampled_ms, self.unread)
        return self._standstill.seconds(self.waiting(), caught_up=not reading)

    def doubted(self, moment: BoardMoment) -> Mapping[str, int]:
        """Group → the partition that cannot be read and that it may be in, of the groups of a moment."""
        return self._doubted.of(moment.shown.groups, moment.standing.unread)

    def moment(self) -> BoardMoment:
        """What is shown, and `standing`: of one moment, as half a log must not be shown as a whole one.

        A batch is shown before the board is said to have come so far, and may come between two looks.
        """
        while True:
            shown = self._shown
            standing = self.standing()
            if self._shown is shown:
                return BoardMoment(shown, standing)

    def wanted(self) -> Wanted:
        """Topics the groups have to do with, for the sampler of log end offsets."""
        sums, names = self.sums(), self.ends.topic_names
        named = frozenset(names[id_] for id_ in sums.topic_ids if id_ in names)
        return Wanted(sums.topic_names | named, sums.topic_ids - names.keys())

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

    def replica_lag(self) -> dict[int, int]:
        """Own distance to the end of each offsets partition, in records, of the reader that is further behind."""
        positions = self._positions
        if not positions.membership:
            return {}
        with self.ends.lock:
            # Of a partition that came when the topic was grown, nothing is read yet.
            return {
                partition: max(
                    0,
                    ends.high_watermark - positions.membership.get(partition, 0),
                    (ends.last_stable or 0) - positions.commits.get(partition, 0),
                )
                for partition, ends in self.ends.of_topic(self.offsets_topic).items()
                if ends.high_watermark is not None
            }

    def waiting(self) -> int:
        """Records that the stream could have read and has not."""
        unread = self.unread
        if not self._one_reader:
            return sum(records for partition, records in self.replica_lag().items() if partition not in unread)
        commits = self._positions.commits
        if not commits:
            return 0
        with self.ends.lock:
            return sum(
                max(0, (ends.last_stable or 0) - commits.get(partition, 0))
                for partition, ends in self.ends.of_topic(self.offsets_topic).items()
                if partition not in unread
            )

    def open_transactions(self) -> dict[int, tuple[int, int | None]]:
        """Offsets partition → high watermark minus last stable offset, and since when a transaction is open."""
        with self.ends.lock:
            return {
                partition: (ends.high_watermark - ends.last_stable, ends.open_since_ms)
                for partition, ends in self.ends.of_topic(self.offsets_topic).items()
                if ends.high_watermark is not None and ends.last_stable is not None
            }

    def coordinator_moves(self) -> dict[int, int]:
        """How often the coordinator of each offsets partition changed since this run began."""
        topic = self.ends.topic(self.offsets_topic)
        partitions = range(0 if topic is None else topic.partitions)
        return {partition: self.ends.leader_moves(self.offsets_topic, partition).count for partition in partitions}
