"""Whether a group comes to rest: epochs that go by, and members that come and go, since it last did.

That a rebalance is completed says little of a group in which the next begins four seconds later, and one that never is
completed says nothing at all. So it is epochs that are looked at:

    a group           when
    becomes restless  its epoch, or generation, moves on
    comes to rest     for a minute none moved, and no rebalance is under way; or no member is left: a job that consumes
                      for some seconds of each minute, and leaves, is as it should be

What is restless for long, with more epochs going by than rolling all its members twice takes, does not settle: the
clock reports it (`clocked/unsettled.py`). Follow-up rounds of a cooperative rebalance belong to the round before and do
not count; generations that were lost do.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from coordinator_model.rules import static_absences
from coordinator_model.rules.members import members_of, named
from coordinator_model.rules.transition import Transition
from coordinator_model.state.clocks import within
from coordinator_model.state.findings import Finding
from coordinator_model.state.group_state import GroupState
from coordinator_model.state.rule_memory import ComingAndGoing, Restless

AT_REST_MS: Final = 60_000
"""Members call in within seconds, and targets are computed within one: what rests for a minute has come to rest."""

EPOCHS: Final = 20
EPOCHS_A_MEMBER: Final = 4
"""A restart is a leave and a join, and a roll may be done twice, or up and down."""

MOST_KEPT: Final = 20
"""So many of those that come and go are remembered by name: the ones that do so most."""

_CAME: Final = frozenset({"member_joined", "static_member_returned", "static_member_replaced"})
_WENT: Final = "member_left"


def epochs_going_by(transition: Transition) -> Iterable[Finding]:
    """Count the epochs and generations that went by, and who came and went; finds nothing."""
    state, time_ms = transition.state, transition.time_ms
    if not members_of(transition.after):
        state.restless = None
        return ()
    completed, moved = transition.earlier("rebalance_completed"), _moved(transition)
    if not is_restless(state, time_ms):
        state.restless = None
        moved = min(moved, 1)  # after a rest, a cleaned log may lack any number of generations between
        if moved:
            offset, epoch = transition.position.offset, transition.before.epoch
            state.restless = Restless(since_ms=time_ms, offset=offset, from_epoch=epoch, last_ms=time_ms)
    restless = state.restless
    if restless is None:
        return ()
    restless.epochs += moved
    restless.counted += moved - (completed is not None and completed.detail["causes"] == ["follow_up"])
    if moved or completed is not None:
        restless.last_ms = time_ms
    restless.under_way = state.rebalance is not None
    restless.members = max(restless.members, len(members_of(transition.after)))
    for finding in transition.found:
        if finding.kind in _CAME or finding.kind == _WENT:
            _count(restless, finding.detail, came=finding.kind in _CAME)
    for member in static_absences.went_away(transition.before, transition.after):
        _count(restless, named(member), came=False)
    return ()


def is_restless(state: GroupState, now_ms: int) -> bool:
    """Whether the group has not come to rest yet."""
    restless = state.restless
    return restless is not None and is_yet(restless.last_ms, now_ms, under_way=restless.under_way)


def is_yet(last_ms: int, now_ms: int, *, under_way: bool) -> bool:
    """Whether a group is restless still, by when an epoch last moved and whether a rebalance is under way."""
    return under_way or within(AT_REST_MS, last_ms, now_ms)


def _moved(transition: Transition) -> int:
    """By how much the generation moved, those that were lost included; of other groups, whether the epoch did."""
    before, after = transition.before, transition.after
    if not before.exists or not after.exists or (before.type == after.type and after.epoch <= before.epoch):
        return 0
    classic = before.classic_group is not None and after.classic_group is not None
    return after.epoch - before.epoch if classic else 1


def too_many_epochs(restless: Restless) -> bool:
    """Whether more went by than rolling all members twice takes."""
    return restless.counted > EPOCHS + EPOCHS_A_MEMBER * restless.members


def _count(restless: Restless, of: Mapping[str, Any], *, came: bool) -> None:
    name = of["instance_id"] or f"{of['client_id']} {of['client_host']}"
    known = restless.comings.get(name)
    if known is None:
        if len(restless.comings) >= MOST_KEPT:
            del restless.comings[min(restless.comings, key=lambda of: _often(restless.comings[of]))]
        known = restless.comings[name] = ComingAndGoing(
            instance_id=of["instance_id"], client_id=of["client_id"], client_host=of["client_host"]
        )
    known.joined += came
    known.left += not came
    restless.joined += came
    restless.left += not came


def _often(of: ComingAndGoing) -> int:
    return of.joined + of.left
