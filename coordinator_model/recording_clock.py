"""A recording's clock: looks at the groups as time passes in the log, where a running monitor has a clock of its own.

Conditions without a record are found by looking (`clocked/table.py`). A recording's time is its records' time, of
each offsets partition for itself, because partitions stand in a file in any order; at the end it is the latest of all.

    looked at                              when
    all groups worth asking                before a record, at most once a second, and every half minute of a longer
                                           silence, so that what begins and ends within it is found
    a group of which a cleaned log may     at the end of the recording only: no record of it followed another of its
    lack records                           key yet, so members may stand further on
    partitions below the live tail         never; they are history

A clock that was set back does not say how long anything took. Of what a record began that is more than a minute behind
an earlier one, the time runs from the first record that no longer is (`read_ms`), and a recording ends earlier by as
much as any clock in it went back.

Nor does one that was set forward, or a coordinator that was away: where a group is between two states, or of both
kinds of members, and `clocked/silences.py` says of a silence that no coordinator worked in it, its times run from the
end of the silence. That is said once (`coordinator_not_loaded`), in place of an alarm that blames a member.

An event belongs to the record that began what it says, and is yielded once as long as that lasts, as by a monitor.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Final

from coordinator_model.clocked import not_back, silences, table
from coordinator_model.clocked.alarms import still_open
from coordinator_model.clocked.lasting import LastingAlarms
from coordinator_model.clocked.moment import Moment
from coordinator_model.clocked.stuck import effective_start_ms
from coordinator_model.clocked.unassigned_partitions import SizedTopic, Unassigned, Unheld, unheld
from coordinator_model.migration import roll_members
from coordinator_model.replica import Replica
from coordinator_model.state.clocks import went_back
from coordinator_model.state.events import Event
from coordinator_model.state.findings import Position
from coordinator_model.state.group_state import GroupState

LOOK_EVERY_MS: Final = 1_000
SILENT_LOOK_MS: Final = 30_000
"""Between two looks at a partition of which nothing is written: shorter than any finding is given up again."""

LONG_SILENCE_MS: Final = 7_200_000
"""Beyond it a look an hour is enough: no time that a rule waits for is longer."""


class Looks:
    """Looks at the groups of a replica whose changes no other caller takes.

    Args:
        replica: what to look at.
        topics: topics by name, with the partitions they have in the recording.
        live_from: by partition, from which offset on it is the live tail; from the beginning where it is not said.
        written: gives the times of all records, of every partition; called once at most, and only where a group was
            between two states in a long silence. Without it each partition is judged separately.
        appeared: gives since when partitions are there, by topic and partition (`topic_growth.py`); called once at
            most, and only where one was about to be found unassigned. Without it all were there from the beginning.
        is_whole: whether the records of all groups come; without them no silence of the log is known.
    """

    def __init__(  # noqa: PLR0913 - what a recording has beside its records, each by its name
        self,
        replica: Replica,
        topics: Mapping[str, SizedTopic],
        live_from: Mapping[int, int] | None = None,
        *,
        written: Callable[[], Iterable[int]] | None = None,
        appeared: Callable[[], Mapping[tuple[str, int], int]] | None = None,
        is_whole: bool = True,
    ) -> None:
        self._replica = replica
        self._topics = topics
        self._behind = dict(live_from or {})
        """Partitions that were not looked at since their live tail began."""
        self._appeared = appeared
        self._appeared_ms: Mapping[tuple[str, int], int] | None = None
        self._lasting = LastingAlarms()
        self._unassigned = Unassigned(self._lasting, self._since_ms)
        self._unheld: dict[str, Unheld | None] = {}
        """Of the groups that are followed, as long as they do not change."""
        self._changed: dict[int, set[str]] = {}
        self._unsteady: dict[int, set[str]] = {}
        """Groups that are worth asking although they do not change, by partition."""
        self._reported: dict[str, set[str]] = {}
        """Group → ids of the events that looks at it gave while it was worth asking."""
        self._next_ms: dict[int, int] = {}
        self._last_ms: dict[int, int] = {}
        self._last_offset: dict[int, int] = {}
        self._rhythms: dict[int, silences.Rhythm] = {}
        self._peak_ms: dict[int, int] = {}
        """Time of the latest record of each partition, which need not be the last one."""
        self._back_ms = 0
        """By how much the clock of any partition went back."""
        self._read_ms: dict[str, int] = {}
        """Group between two states → what its times run from, where a clock was set back or forward meanwhile."""
        self._written = written
        self._is_whole = is_whole
        self._silences: list[tuple[int, int]] | None = None
        """When no coordinator worked, by all partitions together; None where nothing had to be known of it."""

    def _since_ms(self, topic: str, partition: int) -> int | None:
        if self._appeared_ms is None:
            self._appeared_ms = {} if self._appeared is None else self._appeared()
        return self._appeared_ms.get((topic, partition))

    def before(self, place: Position) -> list[Event]:
        """Look before the record of this place is replayed, if it is time to."""
        partition, offset, now_ms = place
        known, former_ms = partition in self._last_ms, self._last_ms.get(partition, now_ms)
        if not known or now_ms != former_ms:
            self._advance(partition, former_ms, now_ms)
        before = Position(partition, self._last_offset.get(partition, offset), former_ms)
        self._last_ms[partition], self._last_offset[partition] = now_ms, offset
        if partition in self._behind:
            if offset < self._behind[partition]:
                return []
            if known and former_ms == now_ms:  # perhaps within an event
                self._behind[partition] = 0
                return []
            return self._becomes_live(partition, now_ms)
        if now_ms < self._next_ms.get(partition, 0):
            return []
        # The coordinator writes an event at one time, so what was open before a later one is over.
        ended = self._replica.settle(partition, now_ms=now_ms) if former_ms < now_ms else []
        return [*ended, *self._pass_silence(before, now_ms), *self._look_until(partition, now_ms)]

    def end_ms(self, partition: int, until_ms: int | None = None) -> int:
        """The time of the latest record of all, or a given one, as far as the partition's clock may be believed."""
        latest_ms = max(self._peak_ms.values(), default=0) if until_ms is None else until_ms
        return max(latest_ms - self._back_ms, self._last_ms.get(partition, 0))

    def at_end(self, until_ms: int | None = None) -> list[Event]:
        """Look once more, at the time of the latest record or at a given one: no later record is to come."""
        events: list[Event] = []
        for partition in [of for of, offset in self._behind.items() if offset == 0 and of in self._last_ms]:
            events += self._becomes_live(partition, self._last_ms[partition])
        self._take_changes()
        for partition in sorted({*self._changed, *self._unsteady, *self._next_ms} - self._behind.keys()):
            end_ms = self.end_ms(partition, until_ms)
            if until_ms is None and partition in self._last_ms:
                place = Position(partition, self._last_offset[partition], self._last_ms[partition])
                events += self._pass_silence(place, end_ms)
            events += self._look_until(partition, end_ms, all_groups=True)
        return events

    def open_alarms(self, state: GroupState, until_ms: int | None = None) -> set[str]:
        """Kinds of the alarms that are open of a group at the end, once `at_end` has looked, by the same time."""
        name, end_ms = state.name, self.end_ms(state.partition, until_ms)
        found = {kind for kind in state.alarms if still_open(state, kind, end_ms)} | self._lasting.kinds(name)
        is_short = not_back.not_back(state, end_ms, self._read_ms.get(name)) is not None
        return found | ({not_back.KIND} if is_short else set())

    def _pass_silence(self, place: Position, now_ms: int) -> list[Event]:
        """Let the time pass from a partition's last record until now: of groups that wait, none without a coordinator.

        What was overdue before such a time began is found first.
        """
        partition, _, former_ms = place
        if not self._is_whole or now_ms - former_ms <= silences.SHORTEST_MS:
            return []
        self._take_changes()
        if not self._waiting(partition):
            return []
        events: list[Event] = []
        for since_ms, until_ms in self._idle(partition, former_ms, now_ms):
            if since_ms > former_ms:
                events += self._look_until(partition, since_ms)
            waiting = self._waiting(partition)
            if waiting:
                self._read_ms.update(dict.fromkeys(waiting, until_ms))
                self._unassigned.forget({*waiting} - self._unassigned.overdue)
                events.append(silences.no_coordinator(place, since_ms, until_ms, waiting))
        return events

    def _idle(self, partition: int, former_ms: int, now_ms: int) -> list[tuple[int, int]]:
        """(since, until) of the times in a silence of a partition in which no coordinator worked (`silences.py`)."""
        if self._rhythms[partition].usual_ms(now_ms - former_ms) is not None:
            return [(former_ms, now_ms)]
        if self._written is None:
            return []
        if self._silences is None:
            self._silences = list(silences.of_all(self._written()))
        return [
            (max(since_ms, former_ms), min(until_ms, now_ms))
            for since_ms, until_ms in self._silences
            if former_ms < until_ms and since_ms < now_ms
        ]

    def _waiting(self, partition: int) -> list[str]:
        """Groups that are between two states, or of both kinds of members, and of which nothing was reported."""
        return [name for name in self._asked(partition) if self._is_waiting(name)]

    def _is_waiting(self, name: str) -> bool:
        state = self._replica.known(name)
        if state is None or state.membership.classic_group is not None or name in self._lasting.groups:
            return False
        awaited = roll_members.is_awaited(state, self._last_ms.get(state.partition, state.last_step_ms))
        return state.rebalance is not None or state.migration.mixed or awaited

    def _advance(self, partition: int, former_ms: int, now_ms: int) -> None:
        """Let a partition's clock go from the time of one record to the next one's, forward or back."""
        peak_ms = self._peak_ms.setdefault(partition, former_ms)
        self._rhythms.setdefault(partition, silences.Rhythm()).note(former_ms)
        if went_back(peak_ms, now_ms) or went_back(peak_ms, former_ms):
            self._take_changes()  # now: each by the clock of its own record
        if now_ms < former_ms:
            self._back_ms = max(self._back_ms, peak_ms - now_ms)
            self._next_ms[partition] = min(self._next_ms.get(partition, now_ms), now_ms + LOOK_EVERY_MS)
        if went_back(peak_ms, former_ms) and not went_back(peak_ms, now_ms):
            of_partition = {name for name in self._read_ms if self._partition(name) == partition}
            self._read_ms.update(dict.fromkeys(of_partition, now_ms))
        self._peak_ms[partition] = max(peak_ms, now_ms)

    def _becomes_live(self, partition: int, now_ms: int) -> list[Event]:
        del self._behind[partition]
        events = self._replica.settle(partition, now_ms=now_ms)
        for name in [name for name, state in self._replica.groups.items() if state.partition == partition]:
            events += self._replica.judge(name)
        return [*events, *self._look_until(partition, now_ms, all_groups=True)]

    def _look_until(self, partition: int, now_ms: int, *, all_groups: bool = False) -> list[Event]:
        """Look at each moment of the silence before this one, and now."""
        self._take_changes()
        due_ms, self._next_ms[partition] = self._next_ms.get(partition), now_ms + LOOK_EVERY_MS
        events: list[Event] = []
        if due_ms is not None and self._asked(partition):
            for moment_ms in _moments(due_ms, now_ms):
                events += self._look(partition, moment_ms, all_groups=False)
        return [*events, *self._look(partition, now_ms, all_groups=all_groups)]

    def _look(self, partition: int, now_ms: int, *, all_groups: bool) -> list[Event]:
        events: list[Event] = []
        changed = self._changed.get(partition, set())
        for name in changed:
            self._unheld.pop(name, None)
        asked = self._asked(partition)
        self._changed[partition] = set()
        gone = self._lasting.gone(partition, lambda name: self._replica.known(name) is not None)
        ends = self._lasting.ended((), now_ms, looked_at=gone, how=lambda event: not_back.how_it_ended(event, None))
        # Of a group that is gone only that is said which says how it ended.
        events += [event for event in ends if "why" in event.detail]
        for name in sorted(asked):
            state = self._replica.known(name)
            if state is None:
                continue
            if not (all_groups or state.whole or state.membership.classic_group is not None):
                self._changed[partition].add(name)  # asked again when it is whole, or at the end
                if name in self._unassigned.followed:  # since the live tail began; it may have an owner by now
                    events += self._unowned(self._moment(state, now_ms))
                continue
            events += self._look_at(state, now_ms)
        return events

    def _asked(self, partition: int) -> Collection[str]:
        followed = {name for name in self._unassigned.followed if self._partition(name) == partition}
        return self._changed.get(partition, set()) | self._unsteady.get(partition, set()) | followed

    def _moment(self, state: GroupState, now_ms: int) -> Moment:
        name = state.name
        if name not in self._unheld:
            self._unheld[name] = unheld(state.membership, self._topics)
        written_ms = state.last_step_ms if state.step is None else state.step.timestamp_ms
        read_ms = self._read_ms.get(name)
        return Moment(
            state=state,
            now_ms=now_ms,
            read_ms=read_ms,
            unheld=self._unheld[name],
            unassigned=self._unassigned,
            first_seen_ms=effective_start_ms(written_ms, now_ms, read_ms),
        )

    def _look_at(self, state: GroupState, now_ms: int) -> list[Event]:
        name, moment = state.name, self._moment(state, now_ms)
        found = table.events(moment, table.UNSETTLED) if table.is_unsteady(state) and state.step is None else []
        found += self._lasting.ended(
            found, now_ms, looked_at=(name,), how=lambda event: not_back.how_it_ended(event, state)
        )
        reported = self._reported.setdefault(name, set())
        new = [event for event in found if event.id not in reported]
        reported.update(event.id for event in new)
        of_partition = self._unsteady.setdefault(state.partition, set())
        if table.is_unsteady(state) or name in self._lasting.groups:
            of_partition.add(name)
        else:
            of_partition.discard(name)
            del self._reported[name]
            if state.step is None:
                self._read_ms.pop(name, None)
        return [*new, *self._unowned(moment)]

    def _unowned(self, moment: Moment) -> list[Event]:
        found = table.events(moment, table.UNHELD)
        if moment.state.name not in self._unassigned.followed:
            del self._unheld[moment.state.name]
        return found

    def _take_changes(self) -> None:
        changes = self._replica.take_changes()
        self._forget(changes.deleted)
        for name in changes.groups:
            partition = self._partition(name)
            self._changed.setdefault(partition, set()).add(name)
            peak_ms = self._peak_ms.get(partition, 0)
            if went_back(peak_ms, self._last_ms.get(partition, peak_ms)):
                self._read_ms[name] = peak_ms

    def _forget(self, names: Iterable[str]) -> None:
        gone = set(names)
        self._unassigned.forget(gone)
        for name in gone:
            self._reported.pop(name, None)
            self._read_ms.pop(name, None)
        for unsteady in self._unsteady.values():
            unsteady.difference_update(gone)

    def _partition(self, name: str) -> int:
        state = self._replica.known(name)
        return -1 if state is None else state.partition


def _moments(from_ms: int, until_ms: int) -> Iterator[int]:
    """When to look from one moment until another, which is left out."""
    moment_ms = from_ms + SILENT_LOOK_MS
    while moment_ms < until_ms:
        yield moment_ms
        moment_ms += SILENT_LOOK_MS if moment_ms - from_ms < LONG_SILENCE_MS else 3_600_000
