"""A storm: many completed rebalances in a few minutes, more than restarting every member would take.

a completed rebalance                                           counts
of a conversion                                                 no: somebody rolls the group
that only gives out what the round before it took (follow_up)   no: it belongs to that round (KIP-429)
any other                                                       for five minutes

in five minutes                          the storm
more than 20 + 4 a member were counted   opens: a rolling restart costs every member a leave and a join, and may be
                                         done twice
half as many                             is over, by the clock (`clocked/endings.py`)

Members are the most that the group had in the five minutes: one that is scaled in from forty members to two makes a
rebalance for each that goes.

A storm that began before the live tail is reported with its next rebalance.

A group of both protocols is judged like any other: a roll replaces its members one by one, which is no storm, and that
it is rolled is when a storm is feared most.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from coordinator_model.rules import endings, lasting
from coordinator_model.rules.members import members_of
from coordinator_model.rules.transition import Transition
from coordinator_model.state.clocks import within
from coordinator_model.state.findings import Finding
from coordinator_model.state.group_state import GroupState
from coordinator_model.state.rule_memory import Ending

STORM: Final = "rebalance_storm"
STORM_WINDOW_MS: Final = 300_000
STORM_REBALANCES: Final = 20
STORM_REBALANCES_A_MEMBER: Final = 4


def storm(transition: Transition) -> Iterator[Finding]:
    """Remember the rebalance that the step completed, if any; yields a storm once, when it begins."""
    state, completed, time_ms = transition.state, transition.earlier("rebalance_completed"), transition.time_ms
    sizes = len(members_of(transition.before)), len(members_of(transition.after))
    state.members_since_rebalance = max(state.members_since_rebalance, *sizes)
    if completed is None:
        return
    causes = completed.detail["causes"]
    if "conversion" in causes or causes == ["follow_up"]:
        return
    if is_reported(state) and not is_storm(state, time_ms):
        endings.remember(state, ending(state))
        lasting.closed(state, STORM)
    recent = [*_recent(state), (time_ms, state.members_since_rebalance)]
    recent = [(ms, members) for ms, members in recent if within(STORM_WINDOW_MS, ms, time_ms)]
    state.recent_rebalances_ms = tuple(ms for ms, _ in recent)
    state.recent_rebalance_members = tuple(members for _, members in recent)
    state.members_since_rebalance = sizes[1]
    state.last_rebalance_offset = transition.position.offset
    if is_reported(state) or not transition.live or not is_storm(state, time_ms):
        return
    lasting.opened(state, STORM, transition.position)
    detail = {
        "rebalances": len(state.recent_rebalances_ms),
        "window_ms": STORM_WINDOW_MS,
        "members": _most_members(state, time_ms),
    }
    yield Finding(STORM, detail, inferred=True)


def is_storm(state: GroupState, now_ms: int) -> bool:
    """Whether so many rebalances were completed lately, of as many members as there were.

    A reported storm lasts until there are half as many: an alarm shall not come and go with each of them.
    """
    return storm_rebalances(state.recent_rebalances_ms, now_ms) > _allowed(state, now_ms)


def _allowed(state: GroupState, now_ms: int) -> int:
    allowed = STORM_REBALANCES + STORM_REBALANCES_A_MEMBER * _most_members(state, now_ms)
    return allowed // 2 if is_reported(state) else allowed


def _most_members(state: GroupState, now_ms: int) -> int:
    """The most members that the group had at a time within `STORM_WINDOW_MS`, as far as its rebalances tell."""
    lately = [members for ms, members in _recent(state) if within(STORM_WINDOW_MS, ms, now_ms)]
    return max(len(members_of(state.membership)), *lately, 0)


def _recent(state: GroupState) -> list[tuple[int, int]]:
    """(when, most members meanwhile) of the latest rebalances; an earlier release did not remember the members."""
    times_ms, members = state.recent_rebalances_ms, state.recent_rebalance_members
    return list(zip(times_ms, (*(0,) * (len(times_ms) - len(members)), *members), strict=True))


def is_reported(state: GroupState) -> bool:
    """Whether a storm was reported, whose end a rule has not seen."""
    return STORM in state.alarms


def ending(state: GroupState) -> Ending:
    """The end of a reported storm: its last rebalance, and when one too few of them was in the window."""
    recent = state.recent_rebalances_ms
    last_ms = recent[-1] if recent else state.last_step_ms
    # It changes when a rebalance is out of the window, and with it perhaps the members of that time.
    later = (ms for ms in (last_ms, *(of + STORM_WINDOW_MS for of in recent)) if ms >= last_ms)
    over_ms = next(ms for ms in later if not is_storm(state, ms + 1))
    return Ending(kind=STORM, name="", offset=state.last_rebalance_offset, time_ms=over_ms)


def storm_rebalances(recent_rebalances_ms: Iterable[int], now_ms: int) -> int:
    """How many were completed within `STORM_WINDOW_MS`, of a state's `recent_rebalances_ms`."""
    return sum(within(STORM_WINDOW_MS, ms, now_ms) for ms in recent_rebalances_ms)
