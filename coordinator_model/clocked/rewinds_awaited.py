"""Offsets that went back, and of whose group nothing has been written since.

A member's rewind is reported once the log's time says that it is not back (`rules/rewinds.py`). Where the log stands
still, no record says so: then the clock does, later by as much as a monitor may be late. It is the same event.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from coordinator_model.clocked.moment import Moment
from coordinator_model.rules import rewinds
from coordinator_model.state.events import Event
from coordinator_model.state.findings import Position, events_of

LATE_MS: Final = 30_000
"""Beyond `rewinds.BACK_MS`: a monitor that is further behind the log has stopped, and reports nothing by the clock."""


def not_back(moment: Moment) -> Iterator[Event]:
    """Offsets of which nothing says by now that they are back."""
    state = moment.state
    for of in state.awaited_rewinds:
        if moment.now_ms - of.time_ms > rewinds.BACK_MS + LATE_MS:
            yield from events_of(state.name, Position(state.partition, of.offset, of.time_ms), [rewinds.reported(of)])
