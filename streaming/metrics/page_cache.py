"""The page of metrics made from what is kept of the one before: what a page costs grows with what changed since.

A cluster of a hundred thousand groups has five million samples, and between two scrapes few are another. So the text
of samples is kept (`shelf.py`), by what it depends on:

    samples                                 are written anew when
    of a group's state                      the state is another
      kafka_group_unassigned_partitions     also: a topic comes, goes, grows or is made anew; of all groups
      kafka_group_assigned_partitions       also: an id of a topic gets a name; of all groups
    of findings in that state               the state is another, time goes by while something is found or under way, a
                                            rebalance comes to be five minutes old, the group is among the stuck or no
                                            longer, an event of it is counted or its counts are forgotten; of all
                                            groups when the clock is set back
    of a group's offsets                    something is committed, the state is another, a topic of them has moved, or
                                            time goes by while records wait that were sampled or offsets are ahead
      kafka_group_commit_age_seconds        with every page: all but the figure is kept
    of topics, all groups, the monitor      with every page

What changed is found by identity: a group that a micro-batch touches is another object (`GroupMap.since`), and log ends
tell which topics moved. Text is never compared.

A page is put together as a whole, at one moment, by one thread at a time; several that wait for their turn get the same
one. It holds pieces that are kept anyway, compressed, and is sent without a lock.

What the first page of many groups needs takes so long that it is prepared ahead, with pauses as long as nobody asks. It
is of the moment at which that began; what has changed since is found by the page that is asked for, as ever.
"""

import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Final
from weakref import ref

from streaming.base.persistent_map import GroupMap
from streaming.base.throttle import Pauses, in_lots, no_pause
from streaming.board.board_group import BoardGroup
from streaming.board.lag_changes import Unrest
from streaming.metrics.catalogue import CATALOGUE
from streaming.metrics.group_metrics import ASSIGNED, DURATION, UNASSIGNED, FindingsRow, Moment, StateRow
from streaming.metrics.monitor_metrics import HISTOGRAMS, MONITOR_SAMPLES, TOPIC_FIGURES
from streaming.metrics.offset_metrics import COMMIT_AGE, OffsetRow
from streaming.metrics.sample_cache import Parts, RowT, Shelf
from streaming.metrics.sample_writers import (
    Write,
    findings_writers,
    kept_ages,
    of_topics,
    offset_writers,
    state_writers,
)
from streaming.metrics.text_format import HistogramText, lines, start

TOPICS_A_PIECE: Final = 20

UNASKED_SECONDS: Final = 600.0
"""After so long without a page nothing is kept: it holds on to groups as they were on the last one."""


@dataclass(frozen=True, slots=True, weakref_slot=True)
class Page:
    """A page before it is sent: (metric, its text) in the order of the catalogue."""

    metrics: list[tuple[str, Parts]]


class _StoppedError(Exception):
    """The preparing of a page is to end unfinished."""


class _Asking:
    """Those who ask for a page, from when they begin to wait until they have it: a context manager, of many at once.

    Attributes:
        anybody: set while there are some.
    """

    def __init__(self) -> None:
        self.anybody = threading.Event()
        self._lock = threading.Lock()
        self._count = 0

    def __enter__(self) -> None:
        with self._lock:
            self._count += 1
            self.anybody.set()

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._count -= 1
            if not self._count:
                self.anybody.clear()


class KeptPages:
    """Makes pages, and keeps of each what the next one needs.

    Args:
        cluster: value of the labels `cluster` and `cluster_name`.
        partition_series: whether there are series per partition.
        rebalance_histogram: whether rebalance durations are a histogram per group.
    """

    def __init__(self, cluster: str, *, partition_series: bool, rebalance_histogram: bool) -> None:
        self._cluster = cluster
        self._names = [
            name
            for name, metric in CATALOGUE.items()
            if (partition_series or not metric.per_partition) and (rebalance_histogram or name != DURATION)
        ]
        self._lock = threading.Lock()
        self._asking = _Asking()
        self._stopped = False
        self._begun = 0
        self._asked = time.monotonic()
        self._made: Callable[[], Page | None] = lambda: None
        self._forget()

    def page(self, moment: Callable[[], Moment]) -> Page:
        """A page of a moment that is taken in here; whoever waits for another one gets one begun since it waits."""
        begun = self._begun
        with self._asking, self._lock:
            self._asked = time.monotonic()
            made = self._made()
            if made is not None and self._begun > begun:
                return made
            self._begun += 1
            page = self._make(moment(), no_pause)
            self._made = ref(page)
            return page

    def prepare(self, moment: Callable[[], Moment], pause: Callable[[], object] | None = None) -> None:
        """Make what a page needs, with pauses: without as soon as somebody asks for one, and unfinished if stopped.

        Args:
            moment: as for a page.
            pause: called between two parts of it; by default waits as `Pauses` does, unless somebody comes.
        """
        take_turns = pause or Pauses(self._asking.anybody.wait)

        def between() -> None:
            if self._stopped:
                raise _StoppedError
            if not self._asking.anybody.is_set():
                take_turns()

        with suppress(_StoppedError), self._lock:
            self._make(moment(), between)

    def stop(self) -> None:
        """End the preparing, for good."""
        self._stopped = True
        self._asking.anybody.set()

    def let_go(self) -> None:
        """Keep nothing where nobody has asked for a page lately."""
        with self._lock:
            if time.monotonic() - self._asked > UNASKED_SECONDS:
                self._forget()

    def _make(self, moment: Moment, between: Callable[[], object]) -> Page:
        try:
            self._follow(moment, between)
            parts: dict[str, Parts] = {}
            for shelf in (self._states, self._findings, self._offsets):
                parts |= shelf.parts(moment, between)
            return Page([(name, parts[name] if name in parts else self._others(name, moment)) for name in self._names])
        except BaseException:
            # Of a page that was not made to its end it is not known what it kept.
            self._forget()
            self._made = lambda: None
            raise

    def _forget(self) -> None:
        """Keep nothing."""
        self._states: Shelf[StateRow] = Shelf(StateRow, self._chosen(state_writers(self._cluster)), {})
        self._findings: Shelf[FindingsRow] = Shelf(FindingsRow, self._chosen(findings_writers(self._cluster)), {})
        self._offsets: Shelf[OffsetRow] = Shelf(
            OffsetRow,
            self._chosen(offset_writers(self._cluster)),
            {COMMIT_AGE: partial(kept_ages, start(COMMIT_AGE, self._cluster))},
        )
        self._unrest = Unrest()
        self._groups: GroupMap[BoardGroup] = GroupMap()
        self._was: Moment | None = None

    def _chosen(self, writers: Mapping[str, Write[RowT]]) -> Mapping[str, Write[RowT]]:
        return {name: write for name, write in writers.items() if name in self._names}

    def _follow(self, moment: Moment, between: Callable[[], object]) -> None:
        """Say to the shelves what may be another than it was on the last page: the table above."""
        was, self._was = self._was, moment
        self._follow_groups(moment, between)
        touched, _ = self._unrest.look(moment.shown.groups, moment.board.ends, between)
        self._unrest.rest(touched)
        if was is None:
            return
        if moment.now_ms < was.now_ms:
            self._findings.rewrite()
        self._offsets.rouse(touched)
        self._findings.rouse(moment.stuck ^ was.stuck)
        self._findings.rouse(_others_than(was.event_counts, moment.event_counts))
        if moment.sizes is not was.sizes:
            self._states.rewrite(UNASSIGNED)
        if any(moment.topic_names.get(id_) != was.topic_names.get(id_) for id_ in moment.sums.topic_ids):
            self._states.rewrite(ASSIGNED)

    def _follow_groups(self, moment: Moment, between: Callable[[], object]) -> None:
        groups = moment.shown.groups
        shelves = (self._states, self._findings, self._offsets)
        for name, before, now in in_lots(groups.since(self._groups), between):
            if not moment.groups(name):
                continue
            if now is None:
                for shelf in shelves:
                    shelf.remove(name)
            elif before is None:
                for shelf in shelves:
                    shelf.add(name)
            elif before.kept is not now.kept:
                self._states.rouse([name])
                self._findings.rouse([name])
        self._groups = groups

    def _others(self, name: str, moment: Moment) -> Parts:
        """The text of a metric that is not of groups."""
        begin = start(name, self._cluster)
        if name in TOPIC_FIGURES:
            topics = iter(sorted(filter(moment.topics, moment.sums.topic_names)))
            ends, figure = moment.board.ends, TOPIC_FIGURES[name]
            found: Parts = []
            while lump := list(islice(topics, TOPICS_A_PIECE)):
                found.append(partial(of_topics, begin, lump, figure, ends))
            return found
        if name in HISTOGRAMS:
            distribution = HISTOGRAMS[name](moment.board)
            text = HistogramText(name, self._cluster, distribution.bounds).text("", *distribution.read())
        else:
            text = lines(begin, MONITOR_SAMPLES[name](moment))
        return [text.encode()]


def _others_than(was: Mapping[str, object], now: Mapping[str, object]) -> list[str]:
    """Names that have another object now than they had."""
    return [name for name, of in now.items() if was.get(name) is not of] + [name for name in was if name not in now]
