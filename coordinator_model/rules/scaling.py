"""Scale-up and scale-down as one episode, with the rebalances it cost and the one it needed (KIP-345, "Scale up").

Instances that are started together join one by one; if each join finds the last rebalance over, each costs one, where
one for all of them would have done: that is what `group.initial.rebalance.delay.ms` and static membership are about.

    an episode   begins            when members come and none goes (up), or go and none comes (down)
                 goes on           as long as more do the same within five minutes, the time that KIP-345 meant to wait
                 needs             one rebalance
                 costs             those completed in it that joins caused (down: leaves, expiries); follow-up rounds of
                      a cooperative rebalance belong to the round before

A static member that is back, or that another process took over, neither came nor went. Members that come while others
go are a roll or a restart and no episode. Nothing here is an alarm: it stands in the detail of `rebalance_completed`
(`scaling`, once more than one member came or went), in the group's view and in a counter.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from coordinator_model.rules.members import members_of, replacements
from coordinator_model.rules.transition import Transition
from coordinator_model.state.clocks import within
from coordinator_model.state.findings import Finding
from coordinator_model.state.group_state import GroupState
from coordinator_model.state.membership import FIRST_EPOCH, Membership
from coordinator_model.state.rule_memory import Scaling

EPISODE_GAP_MS: Final = 300_000
"""Members that come or go so long after the last ones are a matter of their own (KIP-345's expansion timeout)."""

UP: Final = "up"
DOWN: Final = "down"
NEEDED: Final = 1

_CAME: Final = frozenset({"join"})
_WENT: Final = frozenset({"leave", "expiry"})
"""Causes of rebalances (`rebalance_causes.py`). An episode pays for those of its own direction alone."""


def episode(transition: Transition) -> Iterable[Finding]:
    """Advance the group's episode over one step. It is shown in the detail of a rebalance, and finds nothing alone."""
    state, time_ms = transition.state, transition.time_ms
    was, now = members_of(transition.before), members_of(transition.after)
    same = len(replacements(was, now))
    came, gone = len(now.keys() - was.keys()) - same, len(was.keys() - now.keys()) - same
    if bool(came) == bool(gone) or not _happened(transition.before, transition.after):
        return ()
    direction, scaling = UP if came else DOWN, state.scaling
    if scaling is None or scaling.direction != direction or not within(EPISODE_GAP_MS, scaling.last_ms, time_ms):
        scaling = Scaling(direction=direction, since_ms=time_ms, last_ms=time_ms, members_before=len(was))
        state.scaling = scaling
    scaling.last_ms, scaling.members_after = time_ms, len(now)
    scaling.changed += came or gone
    return ()


def _happened(before: Membership, after: Membership) -> bool:
    """Whether members came or went in this step, rather than a cleaned log named those who were there long since.

    Both move the epoch on, and the cleaned part of a log holds one record of it. A classic group's is one record.
    """
    was, now = before.modern_group, after.modern_group
    if now is None or was is None:
        return now is None or before.exists or (now.epoch_live and now.epoch <= FIRST_EPOCH + 1)
    return was.epoch_live and now.epoch > was.epoch


def count_rebalance(state: GroupState, causes: Iterable[str], time_ms: int) -> dict[str, Any]:
    """Count a completed rebalance as the episode's; returns the episode as a part of its detail, where there is one."""
    scaling = state.scaling
    if scaling is None or not within(EPISODE_GAP_MS, scaling.last_ms, time_ms):
        return {}
    own, other = (_CAME, _WENT) if scaling.direction == UP else (_WENT, _CAME)
    if own.intersection(causes) and not other.intersection(causes):
        scaling.rebalances += 1
        state.counters.rebalances_avoidable += scaling.rebalances > NEEDED
    return {"scaling": view(scaling)} if scaling.changed > 1 else {}


def view(scaling: Scaling) -> dict[str, Any]:
    """An episode as events and views show it. Times in milliseconds."""
    return {
        "direction": scaling.direction,
        "since": scaling.since_ms,
        "last_change": scaling.last_ms,
        "members_before": scaling.members_before,
        "members_after": scaling.members_after,
        "rebalances": scaling.rebalances,
        "rebalances_needed": NEEDED,
    }
