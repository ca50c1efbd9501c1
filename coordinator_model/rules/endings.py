"""Alarms that time has ended, which the clock reports (`clocked/endings.py`), and how long they are remembered."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from coordinator_model.rules.transition import Transition
from coordinator_model.state.clocks import within
from coordinator_model.state.findings import Finding
from coordinator_model.state.group_state import GroupState
from coordinator_model.state.rule_memory import Ending

TELLABLE_MS: Final = 3_600_000
"""A monitor that was away while an alarm ended, and another began, reports the end if it is back within the hour."""


def remember(state: GroupState, ending: Ending) -> None:
    """The alarm is over, and nothing else in the state will say so."""
    state.endings[f"{ending.kind}/{ending.name}"] = ending


def forget(transition: Transition) -> Iterable[Finding]:
    """Those that were to be reported long ago; finds nothing."""
    endings = transition.state.endings
    for name in [name for name, of in endings.items() if not within(TELLABLE_MS, of.time_ms, transition.time_ms)]:
        del endings[name]
    return ()
