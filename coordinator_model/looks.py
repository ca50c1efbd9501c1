"""A recording's clock: looks at the groups as time passes in the log, where a running monitor has a clock of its own.

What nothing is written of is found by looking (`unassigned.py`). In a recording the time is that of the records, of
each offsets partition for itself, because partitions stand in a file in any order; at the end it is the latest of all.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from coordinator_model.conclusions import Place
from coordinator_model.events import Event
from coordinator_model.group_state import GroupState
from coordinator_model.replica import Replica
from coordinator_model.unassigned import SizedTopic, Unassigned, Unheld, unheld

LOOK_EVERY_MS: Final = 1_000


class Looks:
    """Looks at the groups of a replica that nobody else takes the changes of.

    Args:
        replica: what to look at.
        topics: topics by name, with the partitions they have in the recording.
    """

    def __init__(self, replica: Replica, topics: Mapping[str, SizedTopic]) -> None:
        self._replica = replica
        self._topics = topics
        self._unassigned = Unassigned()
        self._unheld: dict[str, Unheld | None] = {}
        """Of the groups that are followed, as long as they do not change."""
        self._changed: dict[int, set[str]] = {}
        self._next_ms: dict[int, int] = {}
        self._latest_ms = 0

    def before(self, place: Place) -> list[Event]:
        """Look before the record of this place is replayed, if it is time to."""
        partition, _, now_ms = place
        self._latest_ms = max(self._latest_ms, now_ms)
        if now_ms < self._next_ms.get(partition, 0):
            return []
        self._next_ms[partition] = now_ms + LOOK_EVERY_MS
        return self._look((partition,), now_ms)

    def at_end(self, until_ms: int | None = None) -> list[Event]:
        """Look once more, at the time of the latest record or at a given one: no later record is to come."""
        now_ms = self._latest_ms if until_ms is None else until_ms
        self._take_changes()
        return self._look((*self._changed, *self._next_ms), now_ms)

    def _look(self, partitions: Iterable[int], now_ms: int) -> list[Event]:
        self._take_changes()
        events: list[Event] = []
        for partition in dict.fromkeys(partitions):
            changed = self._changed.pop(partition, set())
            for name in changed:
                self._unheld.pop(name, None)
            followed = {name for name in self._unassigned.followed if self._partition(name) == partition}
            for name in sorted(changed | followed):
                state = self._replica.known(name)
                if state is not None:
                    events += self._look_at(state, now_ms)
        return events

    def _look_at(self, state: GroupState, now_ms: int) -> list[Event]:
        if state.name not in self._unheld:
            self._unheld[state.name] = unheld(state.membership, self._topics)
        written_ms = state.last_step_ms if state.step is None else state.step.timestamp_ms
        events = self._unassigned.look(state, self._unheld[state.name], now_ms, first_seen_ms=written_ms)
        if state.name not in self._unassigned.followed:
            del self._unheld[state.name]
        return events

    def _take_changes(self) -> None:
        changes = self._replica.take_changes()
        self._unassigned.forget(changes.deleted)
        for name in changes.groups:
            self._changed.setdefault(self._partition(name), set()).add(name)

    def _partition(self, name: str) -> int:
        state = self._replica.known(name)
        return -1 if state is None else state.partition
