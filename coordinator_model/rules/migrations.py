"""What a step shows of a migration between the protocols (KIP-848, KIP-915). The machines are in the room of that name.

rule                  the machine                          alarm lasts
phase_changes         migration/phases.py, roll_members.py
upgrade_unclean       migration/upgrade_check.py           it happened: there is no end
classic_members       migration/classic_protocol_members.py
UPGRADE_BLOCKED       migration/upgrade_blockers.py        while a reason holds, and in an empty group
DOWNGRADE_UNCLEAN     migration/leftover_records.py        while a record of the former protocol is live
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from coordinator_model.kinds.table import ONLY
from coordinator_model.migration import classic_protocol_members, phases, roll_members, upgrade_blockers, upgrade_check
from coordinator_model.migration.leftover_records import left_over
from coordinator_model.rules.lasting import About, Lasting
from coordinator_model.rules.members import members_of, named, speaks
from coordinator_model.rules.transition import Transition
from coordinator_model.state.events import INFO
from coordinator_model.state.findings import Finding

MOST_NAMED: Final = 5
"""Of those with whom a downgrade begins."""


def phase_changes(transition: Transition) -> Iterator[Finding]:
    """Upgrades and downgrades that begin, turn round and complete."""
    state, step = transition.state, transition.step
    if step is None:
        return
    was_mixed = state.migration.mixed
    for finding in phases.advance(state, step):
        begins = finding.kind == "downgrade_started"
        yield replace(finding, detail={**finding.detail, **_begun_by(transition)}) if begins else finding
    roll_members.follow(state, step, transition.position, was_mixed=was_mixed)
    if phases.members_by_protocol(step.before) != phases.members_by_protocol(transition.after):
        state.migration.changed_ms, state.migration.changed_offset = transition.time_ms, transition.position.offset


def _begun_by(transition: Transition) -> dict[str, list[dict[str, Any]]]:
    """Members that use the classic protocol with the step, and did not, or were not there, before it."""
    was, now = members_of(transition.before), members_of(transition.after)
    new = [
        of for id_, of in now.items() if speaks(of) == "classic" and (id_ not in was or speaks(was[id_]) != "classic")
    ]
    return {"begun_by": [named(of) for of in new[:MOST_NAMED]]} if new else {}


def upgrade_unclean(transition: Transition) -> Iterable[Finding]:
    """An online upgrade that did not carry over what there was; of the past nothing is said."""
    if transition.step is None or not transition.live:
        return ()
    return upgrade_check.unclean(transition.state, transition.step)


def classic_members(transition: Transition) -> Iterable[Finding]:
    """Advance what is remembered of each classic member of a mixed group. It is shown in views, and finds nothing."""
    progress = transition.state.migration.classic_members
    classic_protocol_members.track(progress, transition.before, transition.after, transition.time_ms)
    return ()


def _leftovers(transition: Transition) -> dict[str, int]:
    # The tombstones of a group that ends may span record batches: only a classic group in its place is a downgrade.
    leftovers = transition.after.leftovers() if transition.after.classic is not None else 0
    return {ONLY: leftovers} if leftovers else {}


def _unclean(transition: Transition, leftovers: Mapping[str, int]) -> Iterator[Finding]:
    by_type = left_over(transition.after)
    yield Finding("downgrade_unclean", {"leftover_records": leftovers[ONLY], "record_types": by_type})


def _cleaned(_: Transition, __: list[str]) -> Iterator[Finding]:
    yield Finding("downgrade_unclean", {"cleared": True}, severity=INFO)


DOWNGRADE_UNCLEAN: Final = Lasting(
    kind="downgrade_unclean",
    holds=_leftovers,
    opened=_unclean,
    cleared=_cleaned,
)


def _blockers(transition: Transition) -> dict[str, tuple[str, ...]]:
    reported = transition.state.open("upgrade_blocked")
    return {
        reason: upgrade_blockers.ids_of_members_with(transition.after, reason)
        for reason in upgrade_blockers.worth_telling(transition.after, tuple(reported))
    }


def _blocked(transition: Transition, reasons: Mapping[str, tuple[str, ...]]) -> Iterable[Finding]:
    return upgrade_blockers.tell(transition.after, tuple(reasons))


def _unblocked(_: Transition, reasons: list[str]) -> Iterator[Finding]:
    yield Finding("upgrade_blocked", {"reasons": reasons, "cleared": True}, severity=INFO)


UPGRADE_BLOCKED: Final = Lasting(
    kind="upgrade_blocked",
    holds=_blockers,
    opened=_blocked,
    cleared=_unblocked,
    about=lambda _, members: About(members=members),
)
