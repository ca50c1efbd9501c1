"""Whether what a board shows may be believed: how far the log is read, what is in doubt, and how the monitor fares.

Lag of the monitor itself is figured out against the ends of the coordinator's log whenever it is asked for.
"""

import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Final

from streaming.base.doubt import doubt
from streaming.base.output_status import SinkState
from streaming.base.times import now_ms
from streaming.board.histogram import BATCH_SECONDS_BUCKETS, RECORD_TO_METRIC_SECONDS_BUCKETS, Distribution
from streaming.board.polls import PollStatus
from streaming.board.readiness import Offsets, Positions, Readiness, Standing, Standstill
from streaming.board.unread import EVERYTHING_IS_READ, Unread, UnreadableBatch, unread_of
from streaming.end_offsets.store import STALE_AFTER_MS, EndOffsets


class Health:
    """How the reading of a board goes.

    Args:
        ends: where the logs end.
        offsets_topic: the coordinator's log.

    Attributes:
        rebuilds: how often the log was read from its beginning since this monitor started (`state_directory`).
        sinks: the states of the sinks.
        source_age_seconds: how long ago the monitor whose topics fill this board last wrote; None for one of our own.
        history_bytes: size of the history on disk; None where none is kept.
        polls: how the polling of the groups goes; None where they are of the log (`polls.py`).
        unread: offsets partition → since when (ms) it cannot be read (`unread.py`).
        met: offsets partition → its last batches that cannot be read, in their order.
        agreed: offsets partition → up to the how manieth of them its coordinator has said since what its groups are.
        offsets_partitions: how many partitions the coordinator's log has; None while that is not known.
        stuck: why the stream cannot be helped any more by this process; None while it may be.
        record_to_metric, batch_seconds: how long it took until a record was shown; how long micro-batches took.
    """

    def __init__(self, ends: EndOffsets, offsets_topic: str) -> None:
        self.ends: Final = ends
        self.offsets_topic: Final = offsets_topic
        self.unread: Mapping[int, int] = {}
        self.met: Mapping[int, Sequence[UnreadableBatch]] = {}
        self.agreed: Mapping[int, int] = {}
        self.offsets_partitions: int | None = None
        self.rebuilds = 0
        self.sinks: Callable[[], Iterable[SinkState]] = tuple
        self.source_age_seconds: Callable[[], float | None] = lambda: None
        self.history_bytes: Callable[[], int | None] = lambda: None
        self.polls: Callable[[], PollStatus | None] = lambda: None
        self.stuck: Callable[[], str | None] = lambda: None
        self.failure: Callable[[], str | None] = lambda: None
        self.record_to_metric = Distribution(RECORD_TO_METRIC_SECONDS_BUCKETS)
        self.batch_seconds = Distribution(BATCH_SECONDS_BUCKETS)
        self._start: Callable[[], list[dict[str, Any]]] = list
        self._lock = threading.Lock()
        self._positions = Positions({}, {})
        self._readiness = Readiness()
        self._since_ms = now_ms()
        self._standstill: Standstill | None = None
        self._one_reader = False
        self._is_looked_at = True

    # --- said by who reads the log ---

    def set_loaded(self) -> None:
        """Say that the state of the former run is shown, or that there was none."""
        with self._lock:
            self._readiness.set_loaded()

    def start_over(self) -> None:
        """Be ready only when the log has been read to its end again."""
        with self._lock:
            self._positions = Positions({}, {})
            self.agreed = {}
            self._readiness = Readiness(loaded=True)
            self._since_ms = now_ms()

    def set_agreed(self, agreed: Mapping[int, int]) -> None:
        """Show up to which batch that cannot be read the coordinators have confirmed what is shown, by partition."""
        self.agreed = agreed

    def observe_shown(self, written_ms: Iterable[int], now_ms: int) -> None:
        """Count how long it took until records of these times were shown; not of what is caught up with."""
        if self.caught_up:
            for of_record in written_ms:
                self.record_to_metric.observe(max(0.0, (now_ms - of_record) / 1000))

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
            self._follow(now_ms())

    def set_positions(self, membership: Offsets, commits: Offsets, now_ms: int) -> None:
        """Say how far the two readers are: by offsets partition the next offset to read, once its rows are applied.

        With one reader for both, it is given twice.
        """
        with self._lock:
            self._positions = self._positions.merged(membership, commits)
            self._follow(now_ms)

    def set_unread(self, unread: Mapping[int, int], partitions: int) -> None:
        """Say which partitions of the log cannot be read, all of them, each since when (ms); and how many there are."""
        self.unread, self.offsets_partitions = dict(unread), partitions

    def meet_unreadable(self, shards: Mapping[int, Mapping[str, Any]]) -> None:
        """Take the batches that cannot be read from the totals of all offsets partitions."""
        held = {of: totals.get("unreadable") or () for of, totals in shards.items()}
        self.met = {of: [UnreadableBatch(*batch) for batch in batches] for of, batches in held.items() if batches}

    def know_unread(self) -> None:
        """Say that groups of partitions that cannot be read are known as they were: the board may be ready so."""
        self._readiness.was_ready = True

    def set_rebuilds(self, rebuilds: int) -> None:
        """Take how often the log was read from its beginning since this monitor started."""
        self.rebuilds = rebuilds

    # --- shown of others, each once, at start ---

    def show_start(self, missing: Callable[[], list[dict[str, Any]]]) -> None:
        """Show what else keeps the board from being ready, as `Stages.missing`; once, at start."""
        self._start = missing

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

    def show_stuck(self, why: Callable[[], str | None]) -> None:
        """Show why only another process can help the stream; once, at start."""
        self.stuck = why

    def show_failure(self, why: Callable[[], str | None]) -> None:
        """Show why the stream ended last, where it is tried again; once, at start."""
        self.failure = why

    # --- reading ---

    @property
    def positions(self) -> Positions:
        """How far the two readers are."""
        return self._positions

    @property
    def caught_up(self) -> bool:
        """Whether the readers have passed the end of the log as it was at start."""
        return self._readiness.caught_up

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
            if missing and (why := self.failure()) is not None:
                missing.append({"reason": "reading ended, and is tried again", "failure": why})
        since = [{"since": self._since_ms, **each} for each in missing]
        doubted = doubt([*stale, *since])
        unread = self._unread_now()
        missing_of_some = unread.missing()
        if not missing_of_some:
            self._readiness.was_ready |= not since
        elif not self._readiness.was_ready:
            # What was in them at start is not known.
            since += missing_of_some
        return Standing(since, doubted, unread)

    def unreadable(self) -> dict[int, list[UnreadableBatch]]:
        """Offsets partition → its batches that cannot be read, of which its coordinator has not spoken since."""
        agreed = self.agreed
        pending = {of: [each for each in met if each.number > agreed.get(of, 0)] for of, met in self.met.items()}
        return {of: batches for of, batches in pending.items() if batches}

    def _unread_now(self) -> Unread:
        unread, unreadable, partitions = self.unread, self.unreadable(), self.offsets_partitions
        if partitions is None or not (unread or unreadable):
            return EVERYTHING_IS_READ
        topic = self.ends.topic(self.offsets_topic)
        return unread_of(unread, partitions, () if topic is None else topic.leaders, unreadable)

    def standstill_seconds(self) -> float | None:
        """How long records have waited without a finished micro-batch; None while the stream moves (`Standstill`)."""
        return None if self._standstill is None else self._standstill.seconds(self.waiting(), caught_up=self.has_read)

    @property
    def has_read(self) -> bool:
        """Whether the end of the log as it was at start is reached, of what can be read of it."""
        return not self._readiness.missing(self._positions, self.ends.sampled_ms, self.unread)

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

    def waiting_where_answered(self, now_ms: int) -> int:
        """The same, of partitions alone that have a leader which answered just now."""
        topic = self.ends.topic(self.offsets_topic)
        if topic is None:
            return 0
        with self.ends.lock:
            answered = {
                partition
                for partition, ends in self.ends.of_topic(self.offsets_topic).items()
                if partition in topic.leaders and now_ms - ends.sampled_ms < STALE_AFTER_MS
            }
        return self.waiting(answered)

    def waiting(self, among: Collection[int] | None = None) -> int:
        """Records that the stream could have read and has not; of all partitions, or of some."""
        unread = self.unread

        def counts(partition: int) -> bool:
            return partition not in unread and (among is None or partition in among)

        if not self._one_reader:
            return sum(records for partition, records in self.replica_lag().items() if counts(partition))
        commits = self._positions.commits
        if not commits:
            return 0
        with self.ends.lock:
            return sum(
                max(0, (ends.last_stable or 0) - commits.get(partition, 0))
                for partition, ends in self.ends.of_topic(self.offsets_topic).items()
                if counts(partition)
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

    def _follow(self, now_ms: int) -> None:
        """Take how far the readers are, under the lock; where lag is all that is missing now, it is asked for."""
        if self._readiness.follow(self._positions, now_ms):
            self.ends.ask()
