"""What only looks with a clock find: remembered as what rules find (`GroupState.alarms`), with who saw it when.

    what ends it                   kinds
    no look finds it any more      those of rules for unsettled groups (`table.py`): `LASTING`
    the rule that found it says    `partition_unassigned`

What is found lasts as long as it is found again. One that is missing for less than `GONE_FOR_MS` was not over: an
answer of a coordinator may be late. The end carries the record of the beginning, so that it is the same event after a
restart, and the time of the last look that found it; what was open before a restart is given to the first look.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import Any, Final

from coordinator_model.kinds.table import ALARMS, LOOK
from coordinator_model.state.alarms import Opened
from coordinator_model.state.events import INFO, Event

GONE_FOR_MS: Final = 60_000

LASTING: Final = frozenset(row.name for row in ALARMS.values() if row.ends == LOOK and not row.says_its_end)
"""Kinds that only looks find, and whose end no rule finds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen(Opened):
    """An alarm that a look found.

    Attributes:
        event: that reported it.
        seen_ms: when a look found it last.
    """

    event: Event
    seen_ms: int


class LastingAlarms:
    """Remembers from look to look what is open of all groups."""

    def __init__(self) -> None:
        self._open: dict[str, dict[str, dict[str, Seen]]] = {}
        """Kind → group → name: of a kind whose end no rule finds the id of its event."""

    @property
    def groups(self) -> set[str]:
        """Groups that something is open of whose end no rule finds."""
        return {group for kind in LASTING for group in self._open.get(kind, ())}

    def kinds(self, group: str) -> set[str]:
        """Kinds of what is open of a group."""
        return {kind for kind, groups in self._open.items() if group in groups}

    def of_kind(self, kind: str) -> AbstractSet[str]:
        """Groups that one of a kind is open of."""
        return self._open.get(kind, {}).keys()

    def open(self, group: str, kind: str) -> Mapping[str, Seen]:
        """What is open of a group and a kind, by name."""
        return self._open.get(kind, {}).get(group, {})

    def opened(self, event: Event, names: Iterable[str], seen_ms: int) -> None:
        """Remember what an event reports, under these names: it is open, or was seen again."""
        seen = Seen(since_ms=event.time_ms, offset=event.offset, event=event, seen_ms=seen_ms)
        of_group = self._open.setdefault(event.kind, {}).setdefault(event.group, {})
        of_group.update(dict.fromkeys(names, seen))

    def closed(self, group: str, kind: str, names: Iterable[str]) -> None:
        """Forget what is over."""
        groups = self._open.get(kind, {})
        of_group = groups.get(group, {})
        for name in names:
            of_group.pop(name, None)
        if not of_group:
            groups.pop(group, None)

    def resume(self, reported: Iterable[Event], now_ms: int) -> None:
        """Take up what was reported before a restart: openings and endings, in their order."""
        for event in reported:
            if event.kind in LASTING:
                if event.detail.get("cleared"):
                    self.closed(event.group, event.kind, [_opening(event)])
                else:
                    self.opened(event, [event.id], now_ms)

    def gone(self, partition: int, is_known: Callable[[str], bool]) -> set[str]:
        """Groups of a partition that something is open of, and that are not known any more."""
        return {
            group
            for kind in LASTING
            for group, names in self._open.get(kind, {}).items()
            if any(of.event.partition == partition for of in names.values()) and not is_known(group)
        }

    def ended(
        self,
        found: Iterable[Event],
        now_ms: int,
        *,
        looked_at: Iterable[str] | None = None,
        how: Callable[[Event], Mapping[str, Any]] = lambda _: {},
    ) -> list[Event]:
        """What is over, of what was found before and is not found now.

        Args:
            found: by this look.
            now_ms: the time.
            looked_at: groups that this look asked; None for all.
            how: what the end of an alarm says of it, of the event that opened it.
        """
        for event in found:
            if event.kind in LASTING:
                self.opened(event, [event.id], now_ms)
        over = [*self._missing(now_ms, None if looked_at is None else set(looked_at))]
        for of in over:
            self.closed(of.event.group, of.event.kind, [of.event.id])
        return [_cleared(of, how(of.event)) for of in over]

    def _missing(self, now_ms: int, asked: Collection[str] | None) -> Iterator[Seen]:
        for kind, groups in self._open.items():
            for group, names in groups.items():
                if kind in LASTING and (asked is None or group in asked):
                    yield from (of for of in names.values() if now_ms - of.seen_ms > GONE_FOR_MS)


def _cleared(of: Seen, how: Mapping[str, Any]) -> Event:
    time_ms = max(of.event.time_ms, of.seen_ms)
    detail = {**how, "cleared": True}
    return replace(of.event, time_ms=time_ms, severity=INFO, detail=detail, ordinal=of.event.ordinal + 1)


def _opening(cleared: Event) -> str:
    return replace(cleared, ordinal=cleared.ordinal - 1).id
