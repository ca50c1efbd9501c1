"""What a clocked rule is asked: a group at a moment, with what is known beside its records.

Nothing is written when a time is over, so somebody has to look, again and again, at a state that does not change. A
clocked rule yields the events of what holds at the moment; one that holds at two moments gives the same event twice, by
its id, because the event belongs to the record that began it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from coordinator_model.clocked.described import Described
from coordinator_model.clocked.unassigned_partitions import Unassigned, Unheld
from coordinator_model.state.events import Event
from coordinator_model.state.group_state import GroupState

UNSETTLED_AFTER_MS: Final = 600_000
"""Twice the default rebalance timeout: what came together at all has by then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """A group at a time. All times in milliseconds, by the brokers' clocks."""

    state: GroupState
    now_ms: int
    read_ms: int | None = None
    """When the group's last step was read, where its records say another time; None where they may be believed."""
    moved_ms: int | None = None
    """When the group's coordinator was last seen to move, which starts its timers again; None for never."""
    unsettled_after_ms: int = UNSETTLED_AFTER_MS
    """How long a group may be restless before it is said that it does not settle."""
    described: Described | None = None
    """What the coordinator answered when it was asked for the group's state; None where it was not asked."""
    unheld: Unheld | None = None
    """Partitions of the group's topics that no member holds; None where that is not known."""
    unassigned: Unassigned | None = None
    """What earlier looks remember of such partitions; None where they are not followed."""
    first_seen_ms: int | None = None
    """Since when a partition counts that no earlier look saw unheld; None for since now."""


ClockedRule = Callable[[Moment], Iterable[Event]]
"""Yields what holds at a moment."""
