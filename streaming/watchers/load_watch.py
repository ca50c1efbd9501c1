"""Asks leaders of offsets partitions whether they coordinate: one that did not load its partition is found by it.

Of every partition with groups one group is asked about, with a DescribeGroups for each broker, once nothing was written
to the partition for half a minute, and then once a minute; every few seconds as long as the answer is that there is no
coordinator. So it is a question a minute to each broker of a cluster at rest, and none where all partitions are written
to. What is concluded of the answers is `coordinator_model/clocked/not_loaded.py`.

It needs the permission DESCRIBE on that group; a partition whose group is refused is not asked about for an hour, and
that is logged once. Where that is so nothing is known of it, and nothing reported.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import numpy as np
from kafka.errors import KafkaError

from coordinator_model.clocked import not_loaded
from coordinator_model.clocked.not_loaded import Elected, Refusals
from coordinator_model.clocked.silences import Rhythm
from coordinator_model.state.events import Event, event_view
from coordinator_model.state.findings import Position
from coordinator_model.state.shards import offsets_partition
from streaming.base.logging_setup import get_logger
from streaming.base.outage import Outage
from streaming.base.threads import Connection, Repeating
from streaming.board.board import Board
from streaming.board.group_columns import GroupColumns, Integers
from streaming.board.lag_columns import Lags
from streaming.end_offsets.store import Topic
from streaming.kafka.cluster_client import ReportedGroup
from streaming.watchers.hang_sampler import CALM_MS, MOST_ASKED, REFUSED_MS, GroupsClient
from streaming.watchers.overdue_watch import reported_event

CHECK_EVERY_SECONDS: Final = 5.0

SILENT_MS: Final = 30_000
"""A coordinator that wrote within this time has loaded, and is not asked."""

IN_A_ROW_MS: Final = 60_000
"""Answers that are further apart do not say what was between them."""

_KIND: Final = "coordinator_not_loaded"
_TRIED: Final = 8
"""Groups of a partition of which one should have its coordinator there."""

_log = get_logger("load_watch")


class _Asked(NamedTuple):
    """Whom to ask about in a partition, and who is there.

    Attributes:
        group: of those there; empty where none has its coordinator there.
        members: of all groups there.
        live: how many records are not superseded, about.
        written_ms: the time of the latest of them that the groups know.
    """

    group: str = ""
    members: int = 0
    live: int = 0
    written_ms: int = 0


@dataclass(slots=True)
class _Partition:
    """What is known of one; used by one thread.

    Attributes:
        groups: as they were last measured.
        rhythm, written_ms, end: how long it is silent as a rule, when it was last written to, and where it ended then.
        leader: as last described.
        refusals: what that has answered since it was last written to, if that was an error.
        not_before_ms: when to ask next.
        alarm: what was reported, and is not over.
        loaded_ms: when one of those was found to be over.
    """

    groups: _Asked = field(default_factory=_Asked)
    rhythm: Rhythm = field(default_factory=Rhythm)
    written_ms: int = 0
    end: int | None = None
    leader: Elected | None = None
    refusals: Refusals | None = None
    not_before_ms: int = 0
    alarm: Event | None = None
    loaded_ms: int | None = None

    def note(self, now_ms: int, end: int) -> bool:
        """Take where the log ends; returns whether it was written to since it was last looked at."""
        former, self.end = self.end, end
        if former == end:
            return False
        if former is None:
            # Of a silence that was over before, or goes on, nothing is known to be the rule.
            self.written_ms = min(now_ms, self.groups.written_ms)
            return False
        self.written_ms = now_ms
        self.rhythm.note(now_ms)
        return True

    def refused(self, now_ms: int, said: str) -> None:
        """Take an answer that there is no coordinator."""
        former = self.refusals
        goes_on = former is not None and now_ms - former.last_ms <= IN_A_ROW_MS
        self.refusals = Refusals(former.since_ms if former is not None and goes_on else now_ms, now_ms, said)

    def is_not_loaded(self, now_ms: int, load_ms: int) -> bool:
        """Whether the last answer shows that the coordinator did not load, which may take so long at most."""
        of = self.refusals
        if of is None or of.last_ms != now_ms or self.end is None:
            return False
        is_late = now_ms - of.since_ms > load_ms
        return is_late and not_loaded.is_against_habit(
            now_ms - self.written_ms, self.rhythm.longest_ms(), self.groups.members
        )


class LoadWatch:
    """The thread that asks.

    Args:
        board: where the groups are, and the answers go; no broker is asked before it is ready.
        connect: makes a client; called again after a failure.
        publish: takes events, each with its id.
        clock_ms: the wall clock, in milliseconds.
    """

    def __init__(
        self,
        board: Board,
        connect: Callable[[], GroupsClient],
        publish: Callable[[Sequence[Mapping[str, Any]]], object],
        clock_ms: Callable[[], int],
    ) -> None:
        self._board = board
        self._publish = publish
        self._clock_ms = clock_ms
        self._connection = Connection(connect)
        self._outage = Outage(_log, "coordinators", clock_ms)
        self._partitions: dict[int, _Partition] = {}
        self._measured: tuple[GroupColumns, Mapping[int, _Asked]] = GroupColumns(()), {}
        self._logged_refusal = False
        self._resumed = False
        self._untold: list[Event] = []
        thread = Repeating("load-watch", CHECK_EVERY_SECONDS, self.check, self._connection.drop)
        self.start, self.stop, self._stopping = thread.start, thread.stop, thread.stopping

    def look(self, lags: Lags, _: int) -> None:
        """Take all groups as their lag is measured: whom to ask about in each partition."""
        groups, owners = lags.table.groups, lags.table.owners
        topic = self._board.ends.topic(self._board.offsets_topic)
        if topic is None:
            return
        partitions, members = groups["partition"], groups["classic_members"] + groups["consumer_members"]
        if partitions.min(initial=0) < 0:
            return  # polled groups are of no partition
        size = max(topic.partitions, int(partitions.max(initial=0)) + 1)
        written_ms = np.zeros(size, np.int64)
        np.maximum.at(written_ms, partitions, np.maximum(groups["last_step_ms"], lags.read[1]))
        live = np.bincount(partitions, minlength=size) + np.bincount(partitions[owners], minlength=size)
        of_members = np.bincount(partitions, members, minlength=size)
        asked: dict[int, _Asked] = {}
        for number, places in _places(partitions, members):
            # A group that was left behind when the topic grew has its coordinator elsewhere.
            names = [groups.names[at] for at in places]
            here = (name for name in names if offsets_partition(name, topic.partitions) == number)
            asked[number] = _Asked(next(here, ""), int(of_members[number]), int(live[number]), int(written_ms[number]))
        self._measured = groups, asked

    def check(self) -> None:
        """Ask about those whose turn it is, and report what they show. Never raises for what brokers answer."""
        topic = self._board.ends.topic(self._board.offsets_topic)
        if not self._board.health.ready()[0] or topic is None:
            return
        now_ms = self._clock_ms()
        if not self._resumed:
            self._resume()
            self._resumed = True
        self._follow(topic, now_ms)
        due = sorted(self._due(topic, now_ms), key=lambda number: self._partitions[number].not_before_ms)[:MOST_ASKED]
        if due:
            try:
                self._ask(due, topic)
                self._outage.succeeded()
            except Exception as error:  # noqa: BLE001 - whatever a client throws must not end the looking
                if not self._stopping.is_set():
                    self._outage.failed(error)
                self._connection.drop()
        open_ = {number: of.alarm for number, of in sorted(self._partitions.items()) if of.alarm is not None}
        self._board.findings.set_not_loaded(
            {number: int(of.detail["since"]) for number, of in open_.items()},
            {number: of.loaded_ms for number, of in self._partitions.items() if of.loaded_ms is not None},
        )
        if self._untold:
            self._publish([event_view(event) for event in self._untold])
            # Afterwards: what could not be published is published with the next look.
            self._untold = []

    def _resume(self) -> None:
        """Go on with what was reported before a restart and is not over."""
        events = self._board.events.latest(self._board.events.size)
        said = [
            of for of in events if of["kind"] == _KIND and ("cleared" in of["detail"] or "until" not in of["detail"])
        ]
        for of in said:
            partition = self._partitions.setdefault(of["partition"], _Partition())
            partition.alarm = None if of["detail"].get("cleared") else reported_event(of)

    def _follow(self, topic: Topic, now_ms: int) -> None:
        """Take what brokers said of the partitions since the last look: some alarms are over with it."""
        with self._board.ends.lock:
            ends = {of: each.high_watermark for of, each in self._board.ends.of_topic(topic.name).items()}
        measured = self._measured[1]
        for number in measured.keys() | ends.keys():
            self._partitions.setdefault(number, _Partition())
        for number, of in self._partitions.items():
            of.groups = measured.get(number, _Asked())
            end = ends.get(number)
            was_written = end is not None and of.note(now_ms, end)
            former, broker = of.leader, topic.leaders.get(number)
            of.leader = None if broker is None else Elected(broker, topic.leader_epochs.get(number, -1))
            if was_written or end is None or of.leader is None or of.leader != former:
                of.refusals = None
            if of.alarm is None:
                continue
            if of.leader is None:
                self._end(of, now_ms, not_loaded.NO_LEADER)
            elif not not_loaded.is_of(of.alarm, of.leader):
                self._end(of, now_ms, not_loaded.MOVED)
            elif was_written:
                self._end(of, now_ms, not_loaded.LOADED)

    def _due(self, topic: Topic, now_ms: int) -> Iterator[int]:
        for number, of in self._partitions.items():
            suspect = of.alarm is not None or of.refusals is not None or now_ms - of.written_ms >= SILENT_MS
            if suspect and of.groups.group and number in topic.leaders and of.not_before_ms <= now_ms:
                yield number

    def _ask(self, due: Iterable[int], topic: Topic) -> None:
        by_broker: dict[int, list[int]] = {}
        for number in due:
            by_broker.setdefault(topic.leaders[number], []).append(number)
        failed: Exception | None = None
        for broker, numbers in by_broker.items():
            asked = {number: self._partitions[number].groups.group for number in numbers}
            try:
                answers = self._connection.client.describe([*asked.values()], broker)
            except (KafkaError, OSError, RuntimeError) as error:
                failed = failed or error
                continue
            for number, group in asked.items():
                self._take(number, answers.get(group, ReportedGroup()), self._clock_ms())
        if failed is not None:
            raise failed

    def _take(self, number: int, answer: ReportedGroup, now_ms: int) -> None:
        of = self._partitions[number]
        if answer.refused:
            of.not_before_ms = now_ms + REFUSED_MS
            if not self._logged_refusal:
                self._logged_refusal = True
                _log.info("coordinator_not_asked", group=of.groups.group, needs="the permission DESCRIBE on groups")
        elif answer.not_loaded:
            # By the next answer the topic is described again: another broker may lead it by now.
            self._board.ends.doubt_leaders()
            of.refused(now_ms, answer.not_loaded)
            if of.alarm is not None or of.leader is None or of.refusals is None:
                return
            if of.is_not_loaded(now_ms, not_loaded.load_ms(self._to_load(of.leader.broker))):
                place = Position(number, max(0, (of.end or 0) - 1), of.refusals.since_ms)
                of.alarm = not_loaded.opened(place, of.leader, of.refusals, self._names(number))
                self._untold.append(of.alarm)
        elif not answer.away:
            of.refusals, of.not_before_ms = None, now_ms + CALM_MS
            self._end(of, now_ms, not_loaded.LOADED)

    def _to_load(self, broker: int) -> int:
        """Records of all partitions that a broker leads: those of one wait for those of the others."""
        return sum(
            not_loaded.records_to_load(of.end or 0, of.groups.live)
            for of in self._partitions.values()
            if of.leader is not None and of.leader.broker == broker
        )

    def _end(self, of: _Partition, now_ms: int, why: str) -> None:
        if of.alarm is not None:
            self._untold.append(not_loaded.ended(of.alarm, now_ms, why))
            of.alarm, of.refusals, of.loaded_ms = None, None, now_ms

    def _names(self, number: int) -> list[str]:
        groups = self._measured[0]
        return [groups.names[at] for at in np.flatnonzero(groups["partition"] == number).tolist()]


def _places(partitions: Integers, members: Integers) -> Iterator[tuple[int, list[int]]]:
    """Partition → places of some of its groups, those with most members first."""
    order = np.lexsort((-members, partitions))
    found, starts, counts = np.unique(partitions[order], return_index=True, return_counts=True)
    for partition, start, count in zip(found.tolist(), starts.tolist(), counts.tolist(), strict=True):
        yield partition, order[start : start + min(count, _TRIED)].tolist()
