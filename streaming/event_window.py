"""The latest events, each once, however often a batch is repeated."""

import threading
from collections import Counter, deque
from collections.abc import Iterable, Mapping
from itertools import takewhile
from typing import Any

Event = Mapping[str, Any]
"""The contract's EVENT with its `id`."""


class EventWindow:
    """A bounded run of events in the order they came in; safe to use from several threads.

    Args:
        size: how many are kept.
    """

    def __init__(self, size: int) -> None:
        self._lock = threading.Lock()
        self._size = size
        self._events: deque[tuple[int, Event]] = deque()
        self._numbers: dict[str, int] = {}
        self._counts: dict[str, Counter[str]] = {}
        self._last = 0

    @property
    def last(self) -> int:
        """Number of the newest event; they are counted from 1, and 0 is none."""
        return self._last

    @property
    def size(self) -> int:
        """How many events are kept at most."""
        return self._size

    def add(self, events: Iterable[Event]) -> list[Event]:
        """Take events; returns those that were not here yet."""
        with self._lock:
            new = []
            for event in events:
                if event["id"] in self._numbers:
                    continue
                self._last += 1
                self._numbers[event["id"]] = self._last
                self._events.append((self._last, event))
                self._counts.setdefault(event["group"], Counter())[event["kind"]] += 1
                new.append(event)
            while len(self._events) > self._size:
                _, oldest = self._events.popleft()
                del self._numbers[oldest["id"]]
            return new

    def latest(self, limit: int, *, group: str | None = None, since_ms: int | None = None) -> list[Event]:
        """The latest `limit` events, of one group or all, not before `since_ms`; oldest first, by the log's time."""
        with self._lock:
            held = [event for _, event in self._events]
        found = [
            event
            for event in held
            if (group is None or event["group"] == group) and (since_ms is None or event["time"] >= since_ms)
        ]
        found.sort(key=lambda event: int(event["time"]))
        return found[-limit:]

    def counts(self, group: str) -> dict[str, int]:
        """Kind → how many of a group were taken since this run began or the group did; they outlive the window."""
        with self._lock:
            return dict(self._counts.get(group, ()))

    def counts_by_group(self) -> dict[str, Counter[str]]:
        """The same of all groups; the counts go on growing."""
        with self._lock:
            return dict(self._counts)

    def forget(self, group: str) -> None:
        """Count a group anew: one that comes under this name is another."""
        with self._lock:
            self._counts.pop(group, None)

    def after(self, number: int) -> list[tuple[int, Event]]:
        """(number, event) of those that came in after the one of that number, in that order."""
        if number >= self._last:
            return []
        with self._lock:
            newer = list(takewhile(lambda item: item[0] > number, reversed(self._events)))
        return newer[::-1]

    def number_of(self, event_id: str) -> int | None:
        """Number of an event that is still here."""
        return self._numbers.get(event_id)
