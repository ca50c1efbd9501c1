"""The latest events, each once, however often a batch is repeated and a monitor started again."""

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import takewhile
from typing import Final

from coordinator_model.state.events import OF_NO_GROUP
from streaming.board.event_window_file import Event, EventWindowFile, Remembered

__all__ = ["Event", "EventWindow", "is_of"]

REMEMBERED_IDS: Final = 1_000
"""Ids of the latest events that no batch brought are remembered longer than the events: after a restart, conditions
that last are found again and must not be reported again."""

MOST_CHARACTERS: Final = 2_560_000
"""Of the names of the groups of all events, each of up to 32 KB: ten thousand of 256, which are long names."""


def is_of(event: Event, group: str) -> bool:
    """Whether an event is of this group; one of no group has the empty name here, and so may a group have."""
    return bool(event["group"] == group) and event["kind"] not in OF_NO_GROUP


class EventWindow:
    """A bounded run of events in the order they came in; safe to use from several threads.

    Args:
        size: how many are kept at most; fewer where names are longer than any that people give.
    """

    def __init__(self, size: int) -> None:
        self._lock = threading.Lock()
        self.size: Final = size
        self._held = Remembered()
        self._file: EventWindowFile | None = None

    def keep(self, file: EventWindowFile) -> None:
        """Begin with what a file holds, and write down there what comes in from now on; before anything is added."""
        with self._lock:
            self._file = file
            self._held = file.load()
            self._trim()
            file.append([], self._held, self.size)

    def close(self) -> None:
        """Let go of the file."""
        with self._lock:
            if self._file is not None:
                self._file.close()
                self._file = None

    @property
    def last(self) -> int:
        """Number of the newest event; they are counted from 1, and 0 is none."""
        return self._held.last

    def add(self, events: Iterable[Event]) -> list[Event]:
        """Take events that no micro-batch brought, each with its id; returns those that were not here yet."""
        with self._lock:
            return self._add(events, None)

    def add_batch(
        self, kinds: Sequence[tuple[str, str]], batch_id: int, latest: Callable[[int], Sequence[Event]]
    ) -> list[Event]:
        """Take the events of a micro-batch; returns those that were not here yet, of as many as the window keeps.

        The first of more than that are only counted: a catch-up has several events of every group.

        Args:
            kinds: (group, kind) of each event.
            batch_id: of the batch. One with more events than the window is recognised by it when it is repeated.
            latest: gives so many of the last of these events.
        """
        unkept = kinds[: max(0, len(kinds) - self.size)]
        with self._lock:
            if unkept and batch_id == self._held.batch:
                return []
            self._held.count(unkept)
            return self._add(latest(self.size), batch_id, len(unkept))

    def has_reported(self, event_id: str) -> bool:
        """Whether this event is here, or was lately, without a micro-batch that brought it."""
        return event_id in self._held.reported

    def latest(
        self,
        limit: int,
        *,
        group: str | None = None,
        since_ms: int | None = None,
        shown: Callable[[str], bool] = lambda _: True,
    ) -> list[Event]:
        """The latest `limit` events, of one group or of those `shown`, not before `since_ms`; oldest first, by time."""
        with self._lock:
            held = [event for _, event in self._held.events.values()]
        found = [
            event
            for event in held
            if (shown(event["group"]) if group is None else is_of(event, group))
            and (since_ms is None or event["time"] >= since_ms)
        ]
        found.sort(key=lambda event: int(event["time"]))
        return found[-limit:]

    def counts_by_group(self) -> dict[str, Counter[str]]:
        """Group → kind → how many were taken since the file began or the group did; they outlive the window."""
        with self._lock:
            return dict(self._held.counts)

    def silenced_by_group(self) -> dict[str, Counter[str]]:
        """Kind → how many alarms were held back because they were expected, of all groups, as of one moment."""
        with self._lock:
            return dict(self._held.silenced)

    def forget(self, group: str) -> None:
        """Count a group from zero: the next one of this name is another."""
        with self._lock:
            if group in self._held.counts:
                line = {"forget": group}
                self._held.take(line)
                self._write([line])

    def after(self, number: int) -> list[tuple[int, Event]]:
        """(number, event) of those that came in after the one of that number, in that order."""
        if number >= self._held.last:
            return []
        with self._lock:
            newer = list(takewhile(lambda item: item[0] > number, reversed(self._held.events.values())))
        return newer[::-1]

    def number_of(self, event_id: str) -> int | None:
        """Number of an event that is still here."""
        number, _ = self._held.events.get(event_id, (None, None))
        return number

    def _add(self, events: Iterable[Event], batch_id: int | None, unkept: int = 0) -> list[Event]:
        """Take events; `unkept` more, before them, were counted."""
        held = self._held
        new: dict[str, Event] = {}
        for event in events:
            id_ = event["id"]
            if not (id_ in held.events or id_ in new or (batch_id is None and id_ in held.reported)):
                new[id_] = event
        first = held.last + 1
        held.add(new.values())
        lines: list[object] = [[number, event] for number, event in enumerate(new.values(), first)]
        more: list[object] = []
        if batch_id is None:
            more += [{"told": id_} for id_ in new]
        elif new or unkept:
            more.append({"batch": batch_id})
        for line in more:
            held.take(line)
        self._trim()
        self._write(lines + more, unkept)
        return list(new.values())

    def _trim(self) -> None:
        held = self._held
        while len(held.events) > self.size or held.characters > MOST_CHARACTERS:
            held.drop_oldest()
        while len(held.reported) > REMEMBERED_IDS:
            held.reported.popitem(last=False)

    def _write(self, lines: list[object], unkept: int = 0) -> None:
        if self._file is not None and lines:
            self._file.append(lines, self._held, self.size, unkept)
