"""What the page, the metrics and the API read: every group as of the last micro-batch.

One thread writes (a sink's), many read. A batch becomes visible as a whole: it is put together beside what is shown
and takes its place in one assignment, so readers need no lock and never see half a batch. Rows are absolute and
events carry ids, so a batch that Spark repeats changes nothing.

The board holds everything in memory, as little of it as objects as can be (`group_summary.py`, `held_offsets.py`), and
what a batch costs grows with what it changed (`group_map.py`); docs/scale.md has the figures.
"""

import threading
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from coordinator_model import view
from streaming import interpreter
from streaming.attention import Watched, looks
from streaming.draft import Draft, Row, Shown
from streaming.end_offsets import Wanted
from streaming.event_window import Event, EventWindow
from streaming.group_map import GroupMap
from streaming.group_summary import exists
from streaming.held_group import HeldGroup, OffsetLag, TopicLag, total
from streaming.lag_history import LagHistory
from streaming.log_ends import LogEnds
from streaming.metrics import BATCH_SECONDS_BUCKETS, RECORD_TO_METRIC_SECONDS_BUCKETS
from streaming.readiness import Offsets, Positions, Readiness
from streaming.sink_state import SinkState
from streaming.tally import Sums, Tally

__all__ = ["Board", "Row"]

DEFAULT_EVENT_WINDOW: Final = 10_000

MANY_ROWS: Final = 10_000
"""A batch of so many brings many groups that are there to stay: the log is being caught up with."""


class Distribution:
    """A histogram in the making: counts by upper bound, and their sum."""

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = tuple(bounds)
        self._counts = [0] * (len(bounds) + 1)
        self._sum = 0.0

    def observe(self, value: float) -> None:
        """Count one value."""
        self._counts[bisect_left(self.bounds, value)] += 1
        self._sum += value

    def read(self) -> tuple[list[int], float]:
        """Counts by bound, the last one without bound, and the sum of the values."""
        return list(self._counts), self._sum


class Board:
    """The state of all groups, for readers.

    Args:
        ends: where the logs end; lag is figured out against it whenever it is read.
        offsets_topic: the coordinator's log.
        event_window: how many events are kept.
    """

    def __init__(
        self, ends: LogEnds, *, offsets_topic: str = "__consumer_offsets", event_window: int = DEFAULT_EVENT_WINDOW
    ) -> None:
        self.ends = ends
        self.offsets_topic = offsets_topic
        self.session_timeouts_ms: Mapping[str, int] = {}
        """Group → session timeout of consumer-protocol members, as brokers said (`session_timeouts`). Replaced, never
        changed."""
        self.sinks: Callable[[], Iterable[SinkState]] = tuple
        """How those are doing that events and groups are passed on to."""
        self.source_age_seconds: Callable[[], float | None] = lambda: None
        """Of a board that shows what another monitor told: how long ago that one last spoke."""
        self.rebuilds = 0
        """How often the log was read anew since this monitor started (`state_directory`)."""
        self.events = EventWindow(event_window)
        self.history_bytes: Callable[[], int | None] = lambda: None
        """Size of what is kept of the past; None where nothing is. Set once, at start."""
        self.large_batches = 0
        """How often so many groups came at once that there is memory to be given back after it."""
        self.lag_history = LagHistory()
        self.record_to_metric = Distribution(RECORD_TO_METRIC_SECONDS_BUCKETS)
        self.batch_seconds = Distribution(BATCH_SECONDS_BUCKETS)
        self._lock = threading.Lock()
        self._shown = Shown()
        self._positions = Positions({}, {})
        self._readiness = Readiness()
        self._last_batch: int | None = None
        self._wanted: tuple[tuple[object, ...] | None, Wanted] = (None, Wanted())
        self._tally = Tally()
        self._stuck: frozenset[str] = frozenset()
        self._unassigned: frozenset[str] = frozenset()
        self.read_ms: Mapping[str, int] = {}
        """Group between two states → when a step of it was read that was written with a time far from that
        (`record_clocks`). Replaced, never changed."""

    # --- writing ---

    def load(self, rows: Iterable[Row]) -> None:
        """Replace everything by what the state store holds, at start."""
        with self._lock:
            draft = Draft(Shown(version=self._shown.version))
            draft.take(row for row in rows if row[1] != "group" or exists(row[3]))
            self._shown = draft.shown()
            interpreter.put_aside()
            self._last_batch = None
            self._readiness.set_loaded()
            self.large_batches += 1

    def begin_anew(self) -> None:
        """Forget all groups, and be ready only when the log has been read to its end again."""
        with self._lock:
            self._shown = Shown(version=self._shown.version + 1)
            self._positions = Positions({}, {})
            self._readiness = Readiness()
            self._readiness.set_loaded()
            self._last_batch = None

    def apply(self, batch_id: int, rows: Sequence[Row], now_ms: int) -> None:
        """Take the rows of one micro-batch; the same batch again changes nothing.

        Args:
            batch_id: Spark's number of the batch.
            rows: its rows; within a partition in the order they were put out.
            now_ms: the wall clock.
        """
        with self._lock:
            draft = Draft(self._shown)
            draft.take(rows)
            self._shown = draft.shown()
            if len(rows) >= MANY_ROWS:
                interpreter.put_aside()
                self.large_batches += 1
            new_events = self.events.add_batch(draft.events, batch_id)
            for name in draft.deleted:
                self.events.forget(name)
            if batch_id != self._last_batch and self._readiness.caught_up:
                for written_ms in (*draft.commit_times_ms(), *(event["time"] for event in new_events)):
                    self.record_to_metric.observe(max(0.0, (now_ms - written_ms) / 1000))
            self._last_batch = batch_id

    def tell(self, events: Iterable[Event]) -> None:
        """Take events that no micro-batch brought, each with its id; those told before change nothing."""
        self.events.add(events)

    def set_stuck(self, groups: Iterable[str]) -> None:
        """Say which groups are in a rebalance that is overdue, all of them."""
        self._stuck = frozenset(groups)

    def observe_batch(self, seconds: float) -> None:
        """Count the duration of a finished micro-batch."""
        self.batch_seconds.observe(seconds)

    def set_log_end_at_start(self, high_watermarks: Offsets, last_stable: Offsets) -> None:
        """Say where the offsets partitions ended when this run began: how far it has to come to be ready."""
        with self._lock:
            self._readiness.set_targets(high_watermarks, last_stable)

    def set_positions(self, membership: Offsets, commits: Offsets, now_ms: int) -> None:
        """Say how far the two readers are: by offsets partition the next offset to read, once its rows are applied.

        With one reader for both, it is given twice.
        """
        with self._lock:
            self._positions = self._positions.merged(membership, commits)
            self._readiness.follow(self._positions, now_ms)

    def set_unassigned(self, groups: Iterable[str]) -> None:
        """Say in which groups nobody has held some partitions for longer than is legal, all of them."""
        self._unassigned = frozenset(groups)

    # --- reading ---

    @property
    def shown(self) -> Shown:
        """All groups and shards as of one moment."""
        return self._shown

    @property
    def positions(self) -> Positions:
        """How far the two readers are."""
        return self._positions

    @property
    def stuck(self) -> frozenset[str]:
        """Groups in a rebalance that is overdue."""
        return self._stuck

    @property
    def unassigned(self) -> frozenset[str]:
        """Groups in which nobody has held some partitions for too long."""
        return self._unassigned

    def ready(self) -> tuple[bool, list[dict[str, Any]]]:
        """Whether all that was in the log at start is shown, with lag; and what is missing."""
        missing = self._readiness.missing(self._positions, self.ends.sampled_ms)
        return not missing, missing

    def wanted(self) -> Wanted:
        """Topics the groups have to do with, for the sampler of log end offsets."""
        sums, names = self.sums(), self.ends.topic_names
        found = (sums.topic_names, sums.topic_ids, names)
        of, wanted = self._wanted
        if of is None or any(now is not was for now, was in zip(found, of, strict=True)):
            named = frozenset(names[id_] for id_ in sums.topic_ids if id_ in names)
            wanted = Wanted(sums.topic_names | named, sums.topic_ids - names.keys())
            self._wanted = (found, wanted)
        return wanted

    def sums(self) -> Sums:
        """Sums over all groups as they are shown."""
        return self.sums_of(self._shown.groups)

    def sums_of(self, groups: GroupMap[HeldGroup]) -> Sums:
        """The same of groups as they were shown a moment ago."""
        return self._tally.of(groups)

    def group_view(self, name: str, now_ms: int) -> dict[str, Any] | None:
        """The contract's GROUP with lag; None for a group there is not."""
        held = self._shown.groups.get(name)
        return None if held is None else self._with_lag(held, now_ms)

    def group_views(self, now_ms: int, *, type_: str | None = None, state: str | None = None) -> list[dict[str, Any]]:
        """All GROUPs with lag, by name; of one type and state where given."""
        return list(self.each_group_view(now_ms, type_=type_, state=state))

    def each_group_view(
        self, now_ms: int, *, type_: str | None = None, state: str | None = None
    ) -> Iterator[dict[str, Any]]:
        """The same one by one, each made when it is asked for, of the groups there are at the beginning."""
        for _, held in sorted(self._shown.groups.items()):
            if type_ in (None, held.summary.type) and state in (None, held.group_state):
                yield self._with_lag(held, now_ms)

    def latest_events(self, limit: int, *, group: str | None = None, since_ms: int | None = None) -> list[Event]:
        """The latest events, oldest first, with topics by name where it is known."""
        return [self.named(event) for event in self.events.latest(limit, group=group, since_ms=since_ms)]

    def named(self, event: Event) -> Event:
        """The event with topics by name where it is known."""
        return {**event, "detail": view.named(event["detail"], self.ends.topic_names)}

    def attention(self, held: HeldGroup, lags: list[TopicLag], now_ms: int) -> list[dict[str, Any]]:
        """Reasons to look at a group now, the worst first, as `Look.as_json`."""
        name = held.name
        unassigned = held.unassigned_partitions(self.ends.sizes) if name in self._unassigned else None
        found = looks(held, lags, now_ms, Watched(name in self._stuck, unassigned, self.read_ms.get(name)))
        return [look.as_json() for look in found]

    def replica_lag(self) -> dict[int, int]:
        """Own distance to the end of each offsets partition, in records, of the reader that is further behind."""
        positions = self._positions
        with self.ends.lock:
            return {
                partition: max(
                    0,
                    ends.high_watermark - positions.membership[partition],
                    (ends.last_stable or 0) - positions.commits.get(partition, 0),
                )
                for partition, ends in self.ends.of_topic(self.offsets_topic).items()
                if ends.high_watermark is not None and partition in positions.membership
            }

    def open_transaction_records(self) -> dict[int, int]:
        """High watermark minus last stable offset of each offsets partition."""
        with self.ends.lock:
            return {
                partition: ends.high_watermark - ends.last_stable
                for partition, ends in self.ends.of_topic(self.offsets_topic).items()
                if ends.high_watermark is not None and ends.last_stable is not None
            }

    def open_transaction_seconds(self, now_ms: int) -> dict[int, float]:
        """Age of the oldest open transaction of each offsets partition; 0 for none."""
        with self.ends.lock:
            return {
                partition: 0.0 if ends.open_since_ms is None else max(0, now_ms - ends.open_since_ms) / 1000
                for partition, ends in self.ends.of_topic(self.offsets_topic).items()
                if ends.high_watermark is not None and ends.last_stable is not None
            }

    def coordinator_moves(self) -> dict[int, int]:
        """How often the coordinator of each offsets partition changed since this run began."""
        topic = self.ends.topic(self.offsets_topic)
        partitions = range(0 if topic is None else topic.partitions)
        return {partition: self.ends.leader_moves(self.offsets_topic, partition).count for partition in partitions}

    def _with_lag(self, held: HeldGroup, now_ms: int) -> dict[str, Any]:
        lags, by_topic = held.lags(self.ends, now_ms), held.topic_lags(self.ends, now_ms)
        group = held.group_view(self.ends.topic_names, now_ms)
        sums = total(by_topic)
        duplicates = view.named(held.state.duplicates, self.ends.topic_names)
        rebalance = held.state.rebalance
        unheld = held.unheld(self.ends.sizes)
        offsets = [{**shown, **_lag_view(figure)} for shown, figure in zip(group["offsets"], lags, strict=True)]
        if "static_members" in group:
            group["static_members"] = [self._with_age(of, held.state.name, now_ms) for of in group["static_members"]]
        return {
            **group,
            "offsets": offsets,
            "lag": sums.records,
            "max_lag": sums.max_records,
            "max_lag_seconds": sums.max_seconds,
            "rebalances": held.state.counters.rebalances,
            "rebalancing_since": None if rebalance is None else rebalance.since_ms,
            "duplicates": {place: list(members) for place, members in duplicates.items()},
            "unassigned": None if unheld is None else {topic: list(parts) for topic, parts in unheld.items() if parts},
            "attention": self.attention(held, by_topic, now_ms),
        }

    def _with_age(self, static_member: dict[str, Any], group: str, now_ms: int) -> dict[str, Any]:
        """With how long it has been away, and how long it may be where only the brokers know."""
        since_ms, timeout_ms = static_member["absent_since"], static_member["session_timeout_ms"]
        return {
            **static_member,
            "absent_ms": None if since_ms is None else max(0, now_ms - since_ms),
            "session_timeout_ms": self.session_timeouts_ms.get(group) if timeout_ms is None else timeout_ms,
        }


def _lag_view(figure: OffsetLag) -> dict[str, Any]:
    return {
        "log_end_offset": figure.log_end,
        "log_start_offset": figure.log_start,
        "lag": figure.lag.records,
        "lag_seconds": figure.lag.seconds,
        "lag_method": figure.lag.method,
    }
