"""A migration over time, from the history: groups and members by protocol, blocked and stalled groups.

Each point is how all groups were last seen to be until then. A point before the history of all groups is not known.
One state a group and point is read, however many were written between two points.
"""

import json
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from streaming.base.answers import BurnDownAnswer

GROUPS: Final = ("classic", "mixed", "consumer", "blocked", "stalled")
"""Groups are counted as one of the first four; stalled ones are mixed as well."""

MEMBERS: Final = ("classic", "consumer")
STALLED: Final = "migration_stalled"

_BY_PHASE: Final = {
    "classic": "classic",
    "downgraded": "classic",
    "upgrading": "mixed",
    "downgrading": "mixed",
    None: "mixed",
    "upgraded": "consumer",
    "blocked": "blocked",
}


@dataclass(frozen=True, slots=True)
class Counted:
    """What one group counts as at a point; `kind` is one of `GROUPS`, None where there is nothing to migrate."""

    kind: str | None = None
    classic_members: int = 0
    consumer_members: int = 0


NOTHING: Final = Counted()


def counted(state: Mapping[str, Any] | None) -> Counted:
    """A GROUP as the history keeps it, or None for one that was gone."""
    if state is None or state.get("simple") or state.get("type") not in ("classic", "consumer"):
        return NOTHING
    migration = state.get("migration") or {}
    if migration.get("out_of_scope"):
        return NOTHING
    upgraded = int(migration.get("upgraded_members") or 0)
    members = int(migration.get("members") or 0)
    return Counted(_BY_PHASE.get(migration.get("phase"), "mixed"), members - upgraded, upgraded)


@dataclass(slots=True)
class BurnDown:
    """Counts groups at points of time.

    Args:
        times_ms: the points, ascending.
        chosen: whether a group takes part, by its name.
    """

    times_ms: list[int]
    chosen: Callable[[str], bool]
    _last: dict[tuple[str, int], tuple[int, int]] = field(default_factory=dict)
    """(group, point) → the greatest sequence after the point before, and which of `_rows` it has."""
    _rows: list[str | None] = field(default_factory=list)
    _stalled: dict[str, list[tuple[int, bool]]] = field(default_factory=dict)

    def point(self, time_ms: int) -> int | None:
        """Which point a time counts for first; None for one after the last."""
        at = bisect_left(self.times_ms, time_ms)
        return at if at < len(self.times_ms) else None

    def wanted(self, groups: list[str], times_ms: list[int], sequences: list[int]) -> list[int]:
        """Places of the rows that have to be read whole; their states are then for `take`, in this order."""
        rows: dict[tuple[str, int], int] = {}
        for place, (group, time_ms, sequence) in enumerate(zip(groups, times_ms, sequences, strict=True)):
            at = self.point(time_ms)
            if at is None or not self.chosen(group):
                continue
            known = self._last.get((group, at))
            if known is None or sequence > known[0]:
                self._last[group, at] = (sequence, -1)
                rows[group, at] = place
        order = sorted(rows, key=lambda key: rows[key])
        for number, key in enumerate(order):
            self._last[key] = (self._last[key][0], len(self._rows) + number)
        return [rows[key] for key in order]

    def take(self, states: list[str | None]) -> None:
        """The states that were wanted."""
        self._rows += states

    def stalled(self, group: str, time_ms: int, *, cleared: bool) -> None:
        """A roll stalled, or goes on."""
        if self.chosen(group):
            self._stalled.setdefault(group, []).append((time_ms, not cleared))

    def view(self, known_from_ms: int | None) -> BurnDownAnswer:
        """As JSON: `times`, and a figure a point for each of `GROUPS` and `MEMBERS`, None where it is not known."""
        points = [*self._points()]
        known = [known_from_ms is not None and time_ms >= known_from_ms for time_ms in self.times_ms]

        def line(name: str, counts: list[Counter[str]]) -> list[int | None]:
            return [count[name] if sure else None for count, sure in zip(counts, known, strict=True)]

        groups, members = [groups for groups, _ in points], [members for _, members in points]
        return {
            "times": self.times_ms,
            "groups": {name: line(name, groups) for name in GROUPS},
            "members": {name: line(name, members) for name in MEMBERS},
        }

    def _points(self) -> list[tuple[Counter[str], Counter[str]]]:
        seen: dict[int, list[tuple[str, Counted]]] = {}
        for (group, at), (_, row) in self._last.items():
            text = self._rows[row]
            seen.setdefault(at, []).append((group, counted(None if text is None else json.loads(text))))
        now: dict[str, Counted] = {}
        found = []
        for at, time_ms in enumerate(self.times_ms):
            now.update(seen.get(at, ()))
            groups = Counter(of.kind for of in now.values() if of.kind is not None)
            groups["stalled"] = sum(
                now.get(group, NOTHING).kind == "mixed" and self._is_stalled(of, time_ms)
                for group, of in self._stalled.items()
            )
            members = Counter(
                classic=sum(of.classic_members for of in now.values()),
                consumer=sum(of.consumer_members for of in now.values()),
            )
            found.append((groups, members))
        return found

    @staticmethod
    def _is_stalled(changes: list[tuple[int, bool]], time_ms: int) -> bool:
        before = [change for change in changes if change[0] <= time_ms]
        return max(before)[1] if before else False
