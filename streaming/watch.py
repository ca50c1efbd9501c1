"""Looks at the board with a clock in hand, for what nothing is written of (`coordinator_model.overdue`, `.unassigned`).

Not a timer in the stream: Spark looks at timers with every batch, and an empty batch a second costs a processor core,
where this costs a look at the groups that are between two states, or in which nobody holds some partition. What is
found carries the id of a record of the group, so that a second monitor, or this one after a restart, finds the very
same event. Of classic groups it is what their coordinators answer when they are suspected (`suspect_sampler.py`).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from coordinator_model import overdue, statics, suspects
from coordinator_model.events import Event, event_view
from coordinator_model.group_state import GroupState
from coordinator_model.suspects import Described
from coordinator_model.unassigned import Unassigned
from streaming.board import Board
from streaming.group_map import GroupMap
from streaming.held_group import HeldGroup
from streaming.log_ends import Topic
from streaming.record_clocks import RecordClocks
from streaming.repeating import Repeating

LOOK_EVERY_SECONDS: Final = 1.0

Publish = Callable[[Sequence[Mapping[str, Any]]], object]


class Watch:
    """The thread that looks.

    Args:
        board: what to look at; nothing is found before it is ready.
        publish: takes events, each with its id and once as long as what it tells lasts.
        clock_ms: the wall clock.
        answers: what coordinators last said of groups that were suspected to hang.
        settling: given the time, whether the clock has jumped a short while ago; nothing is told then.
    """

    def __init__(
        self,
        board: Board,
        publish: Publish,
        clock_ms: Callable[[], int],
        answers: Callable[[], Mapping[str, Described]] = dict,
        settling: Callable[[int], bool] = lambda _: False,
    ) -> None:
        self._settling = settling
        self._board = board
        self._publish = publish
        self._clock_ms = clock_ms
        self._answers = answers
        self._told: frozenset[str] = frozenset()
        self._unassigned = Unassigned()
        self._record_clocks = RecordClocks()
        self._seen: GroupMap[HeldGroup] = GroupMap()
        self._topics: Mapping[str, Topic] = {}
        thread = Repeating("watch", LOOK_EVERY_SECONDS, self.look)
        self.start, self.stop = thread.start, thread.stop

    def look(self) -> None:
        """Publish what is overdue now, and what nobody holds for too long."""
        now_ms = self._clock_ms()
        if self._settling(now_ms) or not self._board.ready()[0]:
            return
        groups, topics = self._board.shown.groups, self._board.ends.sizes
        found: list[Event] = []
        unsteady, answers = self._board.sums_of(groups).unsteady, self._answers()
        # Made once for both questions: a storm leaves more of them than are remembered (`group_summary.RECENT_STATES`).
        states = [groups[name].state for name in unsteady | answers.keys() if name in groups]
        self._board.read_ms = self._record_clocks.look((of for of in states if of.name in unsteady), now_ms)
        for state in states:
            found += self._overdue(state, answers.get(state.name), now_ms)
            found += statics.over(state, now_ms)
        for held in self._to_be_asked(groups, topics):
            found += self._unassigned.look(held.state, held.unheld(topics), now_ms)
        self._unassigned.forget([name for name in self._unassigned.followed if name not in groups])
        self._board.set_stuck(event.group for event in found if event.kind == "rebalance_stuck")
        self._board.set_unassigned(self._unassigned.overdue)
        new = [event_view(event) for event in found if event.id not in self._told]
        if new:
            self._publish(new)
        # Afterwards: what could not be published is published with the next look.
        self._told = frozenset(event.id for event in found)

    def _to_be_asked(self, groups: GroupMap[HeldGroup], topics: Mapping[str, Topic]) -> Iterator[HeldGroup]:
        """Groups in which nobody holds some partition, or that were followed for it: of the others nothing is new."""
        changed = {name for name, _, now in groups.since(self._seen) if now is not None}
        if topics is not self._topics:
            names = {name for name in topics.keys() | self._topics.keys() if topics.get(name) != self._topics.get(name)}
            changed.update(
                name for name, held in groups.items() if not names.isdisjoint(held.summary.subscribed_topics)
            )
        self._seen, self._topics = groups, topics
        for name in changed | self._unassigned.followed:
            held = groups.get(name)
            if held is not None and (name in self._unassigned.followed or held.unheld(topics)):
                yield held

    def _overdue(self, state: GroupState, answer: Described | None, now_ms: int) -> list[Event]:
        if state.membership.classic_group is None:
            return overdue.events(state, now_ms, self._coordinator_moved_ms(state), self._board.read_ms.get(state.name))
        return [] if answer is None else suspects.events(state, answer, now_ms, self._coordinator_moved_ms(state))

    def _coordinator_moved_ms(self, state: GroupState) -> int | None:
        return self._board.ends.leader_moves(self._board.offsets_topic, state.partition).last_ms
