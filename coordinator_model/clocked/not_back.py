"""Members that a roll did not bring back: fewer than before for longer than a restart takes (`roll_members.py`).

It is one finding from the time at which the first of them went, found for a day at most: who has not come by then is
not waited for, and the end says so. As long as the members are missing the plan, the gate and the page go on to say it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from coordinator_model.clocked.moment import Moment
from coordinator_model.clocked.stuck import effective_start_ms
from coordinator_model.migration import roll_members
from coordinator_model.state.events import Event
from coordinator_model.state.findings import Finding, Position, events_of
from coordinator_model.state.group_state import GroupState

KIND: Final = "members_not_back"

MOST_NAMED: Final = 20
"""So many of those that are missing are named."""


class NotBack(NamedTuple):
    """Members that are missing since a roll: how many, since when (ms), and whether the alarm is open still."""

    missing: int
    since_ms: int
    is_open: bool


def not_back(state: GroupState, now_ms: int, read_ms: int | None = None) -> NotBack | None:
    """What is missing since a roll for longer than a restart takes, be it a day or a year; None for nothing."""
    roll = state.migration.roll
    if roll is None or roll.since_ms is None:
        return None
    away_ms = now_ms - effective_start_ms(roll.since_ms, now_ms, read_ms)
    if away_ms <= roll_members.wait_ms(roll):
        return None
    return NotBack(roll_members.missing(state), roll.since_ms, away_ms <= roll_members.CLOSED_AFTER_MS)


def members_not_back(moment: Moment) -> Iterator[Event]:
    """A group that has fewer members than before its roll, for longer than a restart and no longer than a day."""
    state, roll = moment.state, moment.state.migration.roll
    found = not_back(state, moment.now_ms, moment.read_ms)
    if roll is None or found is None or not found.is_open:
        return
    detail = {
        "members_before": roll.members_before,
        "members": roll.members_before - found.missing,
        "missing": found.missing,
        "missing_ms": moment.now_ms - effective_start_ms(found.since_ms, moment.now_ms, moment.read_ms),
        # One of which nothing is known was away before anything was seen of the group.
        "missing_members": [
            {"instance_id": of.instance_id, "client_id": of.client_id, "client_host": of.client_host}
            for of in roll_members.free_places(roll, found.missing)
            if of.instance_id or of.client_id or of.client_host
        ][:MOST_NAMED],
    }
    position = Position(state.partition, roll.offset, found.since_ms)
    yield from events_of(state.name, position, [Finding(KIND, detail)])


def how_it_ended(event: Event, state: GroupState | None) -> dict[str, Any]:
    """By what the alarm of an event ended, as its end says it: `members_back`, `group_deleted` or `one_day`."""
    if event.kind != KIND:
        return {}
    if state is None or not state.membership.exists:
        return {"why": "group_deleted"}
    roll = state.migration.roll
    return {"why": "one_day" if roll is not None and roll.since_ms == event.time_ms else "members_back"}
