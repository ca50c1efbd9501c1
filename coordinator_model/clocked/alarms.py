"""What is open of a group, by what was reported of it and by the clock; what is said of it: `kinds/table.py`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from coordinator_model.clocked import endings
from coordinator_model.kinds.table import ALARMS
from coordinator_model.state.alarms import Opened
from coordinator_model.state.group_state import GroupState

Detail = Mapping[str, Any]

_ASK_FOR_NO_LOOK: Final = frozenset(kind for kind, row in ALARMS.items() if row.code is None)


def asks_for_a_look(state: GroupState) -> bool:
    """Whether the page has a reason to look at the group in what was reported of it, and is not over."""
    return not state.alarms.keys() <= _ASK_FOR_NO_LOOK


def still_open(state: GroupState, kind: str, now_ms: int) -> dict[str, Opened]:
    """Alarms of a kind, by name, that were reported, and that neither a record nor time has ended."""
    lasts = endings.ENDED_BY_TIME.get(kind)
    return {name: of for name, of in state.open(kind).items() if lasts is None or lasts(state, kind, name, now_ms)}


def is_still_open(state: GroupState, kind: str, detail: Detail, now_ms: int) -> bool:
    """Whether a reported one is."""
    return not still_open(state, kind, now_ms).keys().isdisjoint(ALARMS[kind].names(detail))
