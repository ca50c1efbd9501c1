"""The rolls that a span of time holds, by the group's events: a report of two is a report of neither.

A roll begins when the members leave in whose place the first one of the other protocol comes, and goes on until the
next one begins: the last member is back after *The upgrade is complete*.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from coordinator_model.migration.phases import REPLACEMENT_MS

COMPLETED: Final = "completed"
TURNED_ROUND: Final = "turned_round"

_LEAVES: Final = ("member_left", "member_fenced", "static_member_absent")
_MARGIN_MS: Final = 1_000
"""So much before its first event a roll may be asked for, and after its last: where nothing else was then."""


@dataclass(slots=True)
class _Roll:
    """Events by their number: the one it begins with, and the last that is certainly its own."""

    direction: str
    first: int
    last: int
    ended: str | None = None


def rolls(events: Sequence[Mapping[str, Any]], since_ms: int, until_ms: int) -> list[dict[str, Any]]:
    """The rolls among events of one group, the oldest first.

    Args:
        events: EVENTs, oldest first.
        since_ms: when the span began; nothing before is known.
        until_ms: when it ended.

    Returns:
        `direction` (upgrade, downgrade), `since` and `until` (ms) to ask for it alone, and how it `ended`: completed,
        turned_round, or None of one that has not.
    """
    found: list[_Roll] = []
    for number, event in enumerate(events):
        direction, _, step = event["kind"].partition("_")
        if direction not in ("upgrade", "downgrade") or step not in ("started", "completed"):
            continue
        same = bool(found) and found[-1].direction == direction
        if not (same and (found[-1].ended is None or event["detail"].get("resumed"))):
            if found and found[-1].ended is None:
                found[-1].ended = TURNED_ROUND
            found.append(_Roll(direction, _beginning(events, found[-1].last if found else -1, number), number))
        found[-1].last, found[-1].ended = number, COMPLETED if step == "completed" else None
    if not found:
        return []
    times = [since_ms, *(event["time"] for event in events)]
    margins = [min(_MARGIN_MS, max(0, times[roll.first + 1] - times[roll.first]) // 2) for roll in found]
    since = [times[roll.first + 1] - margin_ms for roll, margin_ms in zip(found, margins, strict=True)]
    until = [times[roll.first] + margin_ms for roll, margin_ms in zip(found, margins, strict=True)][1:]
    return [
        {"direction": roll.direction, "since": begun_ms, "until": over_ms, "ended": roll.ended}
        for roll, begun_ms, over_ms in zip(found, since, [*until, until_ms], strict=True)
    ]


def _beginning(events: Sequence[Mapping[str, Any]], after: int, number: int) -> int:
    """The number of the event with which the roll began that an event shows."""
    shown_ms = events[number]["time"]
    lately = [at for at in range(after + 1, number) if shown_ms - events[at]["time"] <= REPLACEMENT_MS]
    came = [at for at in lately if events[at]["kind"] == "member_joined" and events[at]["time"] < shown_ms]
    left = [at for at in lately if _leaves(events[at]) and at > max(came, default=-1)]
    first = min(left, default=number)
    return min(at for at in (*lately, first) if events[at]["time"] == events[first]["time"])


def _leaves(event: Mapping[str, Any]) -> bool:
    """Whether members go with it; that those who were away are back is of the same kind."""
    return event["kind"] in _LEAVES and not event["detail"].get("cleared")
