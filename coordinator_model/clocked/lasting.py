"""Alarms that only looks find: each is reported once when it opens, and once when looks no longer find it.

What is found lasts as long as it is found again. One that is missing for less than `GONE_FOR_MS` was not over: an
answer of a coordinator may be late. The end carries the record of the beginning, so that it is the same event after a
restart, and the time of the last look that found it; what was open before a restart is given to the first look.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from coordinator_model.clocked import table
from coordinator_model.kinds.table import ALARMS, LOOK
from coordinator_model.state.events import INFO, Event

GONE_FOR_MS: Final = 60_000

LASTING: Final = frozenset(
    kind
    for row in table.CLOCKED_RULES
    if row.groups == table.UNSETTLED
    for kind in row.kinds
    if ALARMS[kind].ends == LOOK
)
"""Kinds that only looks find, and whose end no rule finds."""


@dataclass(slots=True)
class _Open:
    event: Event
    seen_ms: int


class LastingAlarms:
    """Remembers from look to look what is open."""

    def __init__(self) -> None:
        self._open: dict[str, _Open] = {}

    @property
    def groups(self) -> set[str]:
        """Groups that something is open of."""
        return {of.event.group for of in self._open.values()}

    def kinds(self, group: str) -> set[str]:
        """Kinds of what is open of a group."""
        return {of.event.kind for of in self._open.values() if of.event.group == group}

    def resume(self, reported: Iterable[Event], now_ms: int) -> None:
        """Take up what was reported before a restart: openings and endings, in their order."""
        for event in reported:
            if event.kind in LASTING:
                if event.detail.get("cleared"):
                    self._open.pop(_opening(event), None)
                else:
                    self._open[event.id] = _Open(event, now_ms)

    def ended(self, found: Iterable[Event], now_ms: int, *, looked_at: Iterable[str] | None = None) -> list[Event]:
        """What is over, of what was found before and is not found now.

        Args:
            found: by this look.
            now_ms: the time.
            looked_at: groups that this look asked; None for all.
        """
        for event in found:
            if event.kind in LASTING:
                self._open[event.id] = _Open(event, now_ms)
        asked = None if looked_at is None else set(looked_at)
        over = [
            id_
            for id_, of in self._open.items()
            if now_ms - of.seen_ms > GONE_FOR_MS and (asked is None or of.event.group in asked)
        ]
        return [_cleared(self._open.pop(id_)) for id_ in over]


def _cleared(of: _Open) -> Event:
    time_ms = max(of.event.time_ms, of.seen_ms)
    return replace(of.event, time_ms=time_ms, severity=INFO, detail={"cleared": True}, ordinal=of.event.ordinal + 1)


def _opening(cleared: Event) -> str:
    return replace(cleared, ordinal=cleared.ordinal - 1).id
