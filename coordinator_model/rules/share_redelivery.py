"""A share group that delivers again and again: its consumers take records and do not get done with them.

    window of five minutes       of the records that became done in it, 20 or more, and a tenth or more, had been
                                 delivered to someone before, in vain
    three of these in a row      `share_redelivering`
    one that is none of these    it is over

A rolling restart, a member that is killed, or one lock that times out gives many of them once, and not for so long.
What became done is counted by the time of its record, so partitions of the log may be read in any order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from coordinator_model.state.events import Event
from coordinator_model.state.findings import Finding, Position, events_of
from coordinator_model.state.share_partition import REDELIVERED, Batch

KIND: Final = "share_redelivering"

WINDOW_MS: Final = 300_000
WINDOWS: Final = 3
"""In a row."""
FEWEST: Final = 20
SHARE: Final = 0.1

_NOWHERE: Final = Position(-1, -1, -1)


@dataclass(slots=True)
class Window:
    """What became done of a group within five minutes, how much of it not at once, and the last record that says so."""

    done: int = 0
    again: int = 0
    place: Position = _NOWHERE

    @property
    def is_bad(self) -> bool:
        """Whether it counts."""
        return self.again >= FEWEST and self.again >= SHARE * self.done


@dataclass(slots=True)
class Redeliveries:
    """Windows of groups, by name and number; `latest_ms` is the time of the latest record of the log."""

    windows: dict[str, dict[int, Window]] = field(default_factory=dict)
    latest_ms: int = 0

    def note(self, group: str, place: Position, done: Iterable[Batch]) -> None:
        """Count what a record made done."""
        self.latest_ms = max(self.latest_ms, place.timestamp_ms)
        window = None
        for batch in done:
            if window is None:
                window = self.windows.setdefault(group, {}).setdefault(place.timestamp_ms // WINDOW_MS, Window())
                window.place = max(window.place, place, key=_by_time)
            records = batch.last + 1 - batch.first
            window.done += records
            window.again += records if batch.deliveries >= REDELIVERED else 0

    def judged(self) -> list[Event]:
        """What windows that are over show, all of the log being read."""
        over = self.latest_ms // WINDOW_MS
        return [event for group in sorted(self.windows) for event in _of_group(group, self.windows[group], over)]


def _of_group(group: str, windows: dict[int, Window], over: int) -> Iterator[Event]:
    """Events of one group; windows from number `over` on may yet grow."""
    row: list[Window] = []
    for number in sorted({of for each in windows for of in (each, each + 1) if of < over}):
        window = windows.get(number, Window())
        if window.is_bad:
            row.append(window)
            if len(row) == WINDOWS:
                yield from _event(group, row, number + 1, {})
        else:
            if len(row) >= WINDOWS:
                yield from _event(group, row, number + 1, {"cleared": True})
            row = []


def _event(group: str, row: list[Window], end: int, more: dict[str, Any]) -> Iterator[Event]:
    """At the end of a window, by the last record of the row."""
    last = row[-1].place
    detail = {"done": sum(of.done for of in row), "redelivered": sum(of.again for of in row), **more}
    place = Position(last.partition, last.offset, end * WINDOW_MS)
    return events_of(group, place, [Finding(KIND, detail)], first_ordinal=1 if more else 0)


def _by_time(place: Position) -> tuple[int, int, int]:
    return place.timestamp_ms, place.partition, place.offset
