"""Checks the board against the clock for what left no record (`coordinator_model.clocked`).

Not a timer in the stream: Spark checks timers with every batch, and an empty batch a second costs a processor core.
This costs a check of the groups that are between two states, or have partitions without an owner. Each event carries
the id of a record of the group, so that a second monitor, or this one after a restart, finds the very same event.
Suspected classic groups are judged by what their coordinators answer (`hang_sampler.py`).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Final

from coordinator_model.clocked import not_back, table, unsettled
from coordinator_model.clocked.alarms import is_still_open
from coordinator_model.clocked.described import Described
from coordinator_model.clocked.lasting import LastingAlarms
from coordinator_model.clocked.moment import UNSETTLED_AFTER_MS, Moment
from coordinator_model.clocked.unassigned_partitions import Unassigned
from coordinator_model.kinds.table import ALARMS, LOOKED_FOR
from coordinator_model.migration import phases, roll_members
from coordinator_model.state.events import SEVERITIES, Event, event_view
from coordinator_model.state.group_state import GroupState
from streaming.base.expectations import EXPECTED, is_held_back
from streaming.base.persistent_map import GroupMap
from streaming.base.threads import Repeating
from streaming.board.board import Board
from streaming.board.board_group import BoardGroup
from streaming.end_offsets.store import Topic
from streaming.watchers.clock_doubt import AwayCoordinators, RecordClocks

CHECK_EVERY_SECONDS: Final = 1.0

AGAIN: Final = "-again"
"""Ends the id of an alarm that is reported a second time, because it is expected no more."""

Detail = Mapping[str, Any]


LASTS: Final[Mapping[str, Callable[[GroupState, int, Detail], bool]]] = {
    "group_unsettled": lambda state, now_ms, _: unsettled.unsettled_since_ms(state, now_ms) is not None,
    "members_not_back": lambda state, now_ms, _: not_back.not_back(state, now_ms) is not None,
    "downgrade_started": lambda state, _, __: phases.phase(state) == "downgrading",
}
"""Kind that may be expected, and that no rule closes → whether what its detail names lasts."""


def still_lasts(state: GroupState, kind: str, detail: Detail, now_ms: int) -> bool:
    """Whether what was reported still holds; what is of one moment does not."""
    if kind in LASTS:
        return LASTS[kind](state, now_ms, detail)
    return kind in ALARMS and is_still_open(state, kind, detail, now_ms)


Publish = Callable[[Sequence[Mapping[str, Any]]], object]


class OverdueWatch:
    """The thread that looks.

    Args:
        board: what to look at; nothing is found before it is ready.
        publish: takes events, each with its id and once as long as what it reports lasts.
        clock_ms: the wall clock.
        answers: what coordinators last said of groups that were suspected to hang.
        settling: given the time, whether the clock has jumped a short while ago; nothing is reported then.
        unsettled_after_ms: how long a group may not come to rest before it is reported.
    """

    def __init__(  # noqa: PLR0913 - whom it asks, where it reports, and the clock
        self,
        board: Board,
        publish: Publish,
        clock_ms: Callable[[], int],
        answers: Callable[[], Mapping[str, Described]] = dict,
        settling: Callable[[int], bool] = lambda _: False,
        *,
        unsettled_after_ms: int = UNSETTLED_AFTER_MS,
    ) -> None:
        self._unsettled_after_ms = unsettled_after_ms
        self._lasting = LastingAlarms()
        self._resumed = False
        self._settling = settling
        self._board = board
        self._publish = publish
        self._clock_ms = clock_ms
        self._answers = answers
        self._reported: Mapping[str, str] = {}
        self._doubted: AbstractSet[str] = frozenset()
        self._unassigned = Unassigned(self._lasting)
        self._record_clocks = RecordClocks()
        self._coordinators = AwayCoordinators(board.ends, board.offsets_topic)
        self._seen: GroupMap[BoardGroup] = GroupMap()
        self._topics: Mapping[str, Topic] = {}
        thread = Repeating("watch", CHECK_EVERY_SECONDS, self.check)
        self.start, self.stop = thread.start, thread.stop

    def check(self) -> None:
        """Publish what is overdue now, and what no member holds for too long."""
        now_ms = self._clock_ms()
        moment = self._board.moment()
        if self._settling(now_ms) or not moment.standing.ready or moment.standing.stands_still:
            return
        # Nothing that they did meanwhile is read: what is open of them stays open, and nothing opens.
        doubted = self._board.doubted(moment).keys()
        if not self._resumed:
            before = self._board.events.latest(self._board.events.size)
            if again := [*self._no_longer_expected(before, now_ms)]:
                self._publish(again)
            reported = [reported_event(of) for of in before if not of["id"].endswith(AGAIN)]
            self._lasting.resume(reported, now_ms)
            self._unassigned.resume(reported)
            self._resumed = True
        groups, topics = moment.shown.groups, self._board.ends.sizes
        found: list[Event] = []
        unsteady, answers = self._board.sums_of(groups).unsteady, self._answers()
        # Made once for both questions: a storm leaves more of them than are remembered (`group_summary.RECENT_STATES`).
        states = [groups[name].state for name in unsteady | answers.keys() if name in groups]
        unsteady_states = [state for state in states if state.name in unsteady]
        not_loaded = self._board.findings.not_loaded
        waits = doubted | {
            of.name for of in states if of.partition in not_loaded or self._coordinators.is_away(of.partition, now_ms)
        }
        doubtful = self._record_clocks.doubtful(unsteady_states, now_ms)
        self._board.findings.set_read_times({**doubtful, **self._back_times(unsteady_states, doubtful)})
        found += self._coordinators.returned(
            state
            for state in unsteady_states
            if state.rebalance is not None or state.migration.mixed or roll_members.is_awaited(state, now_ms)
        )
        for state in states:
            if state.name not in waits:
                found += self._unsettled(state, answers.get(state.name), now_ms)
        for held in self._to_be_asked(groups, topics, doubted):
            asked = Moment(
                state=held.state, now_ms=now_ms, unheld=held.topics.unheld(topics), unassigned=self._unassigned
            )
            found += table.events(asked, table.UNHELD)
        self._unassigned.forget([name for name in self._unassigned.followed if name not in groups])
        found += self._lasting.ended(
            found, now_ms, looked_at=self._lasting.groups - waits, how=lambda of: self._how_it_ended(groups, of)
        )
        open_ = [event for event in found if not event.detail.get("cleared")]
        self._board.findings.set_overdue(
            {
                kind: self._lasting.of_kind(kind)
                if ALARMS[kind].says_its_end
                else _of_kind(open_, kind) | (self._board.findings.overdue[kind] & waits)
                for kind in LOOKED_FOR
            }
        )
        read_ms = self._board.findings.read_ms
        missing = {of.name: not_back.not_back(of, now_ms, read_ms.get(of.name)) for of in unsteady_states}
        self._board.findings.set_not_back({name: of for name, of in missing.items() if of is not None})
        new = [event_view(event) for event in found if event.id not in self._reported]
        if new:
            self._publish(new)
        # Afterwards: what could not be published is published with the next look.
        kept = {id_: name for id_, name in self._reported.items() if name in waits}
        self._reported = kept | {event.id: event.group for event in found}

    @staticmethod
    def _how_it_ended(groups: GroupMap[BoardGroup], event: Event) -> dict[str, Any]:
        held = groups.get(event.group)
        return not_back.how_it_ended(event, None if held is None else held.state)

    def _no_longer_expected(self, reported: Sequence[Mapping[str, Any]], now_ms: int) -> Iterator[dict[str, Any]]:
        """Alarms that are still open, and were held back by an expectation that the configuration has no more."""
        ids = {of["id"] for of in reported}
        held_back = {_subject(of): of for of in reported if is_held_back(of)}
        groups = self._board.shown.groups
        for of in held_back.values():
            group, kind = of["group"], of["kind"]
            id_ = f"{of['id']}{AGAIN}"
            known = groups.get(group)
            if known is None or id_ in ids or kind in self._board.expectations.kinds(group):
                continue
            if still_lasts(known.state, kind, of["detail"], now_ms):
                detail = {name: value for name, value in of["detail"].items() if name != EXPECTED}
                yield {**of, "id": id_, "severity": SEVERITIES[kind], "detail": detail}

    def _to_be_asked(
        self, groups: GroupMap[BoardGroup], topics: Mapping[str, Topic], doubted: AbstractSet[str]
    ) -> Iterator[BoardGroup]:
        """Groups in which no member holds some partition, or that were followed for it; others have nothing new."""
        changed = {name for name, _, now in groups.since(self._seen) if now is not None} | (self._doubted - doubted)
        self._doubted = frozenset(doubted)
        if topics is not self._topics:
            names = {name for name in topics.keys() | self._topics.keys() if topics.get(name) != self._topics.get(name)}
            changed.update(name for name, held in groups.items() if not names.isdisjoint(held.topics.subscribed))
        self._seen, self._topics = groups, topics
        for name in (changed | self._unassigned.followed) - doubted:
            held = groups.get(name)
            if held is not None and (name in self._unassigned.followed or held.topics.unheld(topics)):
                yield held

    def _unsettled(self, state: GroupState, answer: Described | None, now_ms: int) -> list[Event]:
        read_ms, moved_ms = self._board.findings.read_ms.get(state.name), self._coordinator_moved_ms(state)
        moment = Moment(
            state=state,
            now_ms=now_ms,
            read_ms=read_ms,
            moved_ms=moved_ms,
            described=answer,
            unsettled_after_ms=self._unsettled_after_ms,
        )
        return table.events(moment, table.UNSETTLED)

    def _back_times(self, states: Iterable[GroupState], read_ms: Mapping[str, int]) -> dict[str, int]:
        """Group → when its coordinator was back after it had been away, of those of which nothing was reported.

        A time at which the group's last step was read is kept where it is later.
        """
        loaded_ms = self._board.findings.loaded_ms
        back = {of.name: (self._coordinators.back_ms(of.partition), loaded_ms.get(of.partition)) for of in states}
        return {
            name: max(ms or 0 for ms in (*known, read_ms.get(name)))
            for name, known in back.items()
            if any(ms is not None for ms in known) and name not in self._lasting.groups
        }

    def _coordinator_moved_ms(self, state: GroupState) -> int | None:
        return self._board.ends.leader_moves(self._board.offsets_topic, state.partition).last_ms


def _of_kind(events: Iterable[Event], kind: str) -> set[str]:
    """Groups that events of a kind are of."""
    return {event.group for event in events if event.kind == kind}


def _subject(reported: Mapping[str, Any]) -> tuple[str, str, str, tuple[str, ...]]:
    """What an alarm is about; a later one about the same stands for it."""
    kind, detail = reported["kind"], reported["detail"]
    doubly_held = tuple(sorted(detail["partitions"])) if kind == "duplicate_assignment" else ()
    return reported["group"], kind, detail.get("instance_id") or "", doubly_held


def reported_event(reported: Mapping[str, Any]) -> Event:
    """An event as it was before it was reported; its id ends with its ordinal."""
    return Event(
        time_ms=reported["time"],
        group=reported["group"],
        kind=reported["kind"],
        severity=reported["severity"],
        partition=reported["partition"],
        offset=reported["offset"],
        detail=reported["detail"],
        inferred=reported["inferred"],
        ordinal=int(reported["id"].rpartition("-")[2]),
    )
