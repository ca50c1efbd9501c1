"""How far a group is between the classic and the consumer protocol (KIP-848 "Upgrade", KIP-915).

A group converts online when the first consumer-protocol member joins it, and back when the last one leaves;
between the two it is *mixed*, and the broker translates for those who still speak the classic protocol:

    phase         the group is                                           leaves it when
    classic       classic, never converted                               a consumer-protocol member joins
    blocked       classic, and a broker would refuse to convert it       what blocks it is gone
    upgrading     of both kinds of members, on the way up                the last classic member leaves
    upgraded      of consumer-protocol members only                      a classic member joins
    downgrading   of both kinds of members, on the way down              the last consumer-protocol member leaves
    downgraded    classic again                                          a consumer-protocol member joins

The way is the one the group was on when it became mixed, until the roll turns round: on the way up, a classic
member joins while fewer consumer-protocol members are left than there already were (and the mirror image).
A group without members converts too, offline: nothing is mixed then, and the conversion says so.

In a roll an old member goes before the new one in its place comes, so when the last classic one has left, one is
still awaited. `upgrade_completed` says how many: those that were there before the upgrade, less those that are there
now. How many were there is the size of the classic group that was converted, or the one it had within ten minutes
before. Should the awaited member come back as it was, that is the same upgrade going on, no downgrade.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from coordinator_model import downgrades, leftovers
from coordinator_model.clocks import elapsed_ms, within
from coordinator_model.conclusions import Finding
from coordinator_model.group_state import CLASSIC, CONSUMER, Downgrade, GroupState, Membership, Migration, Step
from coordinator_model.upgrade_blockers import blockers

UPGRADE: Final = "upgrade"
DOWNGRADE: Final = "downgrade"

REPLACEMENT_MS: Final = 600_000
"""So long a member that restarts is awaited: its session may have to expire, and its process to come up."""

PHASES: Final = ("classic", "upgrading", "upgraded", "downgrading", "downgraded", "blocked")


def members_by_protocol(membership: Membership) -> tuple[int, int]:
    """(classic, consumer) members; all members of a share or streams group count as new-protocol ones.

    A member known by its assignment alone, as in a compacted log, is of neither until its metadata tells.
    """
    modern = membership.modern_group
    if modern is None:
        return (0 if membership.classic is None else len(membership.classic.members), 0)
    known = [member for member in modern.members.values() if member.metadata_live]
    classic = sum(member.uses_classic_protocol for member in known)
    return classic, len(known) - classic


def phase(state: GroupState) -> str:
    """One of `PHASES`."""
    membership = state.membership
    if membership.modern_group is not None:
        if state.migration.mixed_since_ms is None:
            return "upgraded"
        return "downgrading" if state.migration.direction == DOWNGRADE else "upgrading"
    if blockers(membership):
        return "blocked"
    return "downgraded" if state.migration.was_downgraded else "classic"


def groups_by_type(states: Iterable[GroupState]) -> dict[str, int]:
    """Type → how many of these groups are of it."""
    return dict(sorted(Counter(state.type for state in states if state.exists).items()))


def follow(state: GroupState, step: Step) -> Iterator[Finding]:
    """Advance the group's migration and its counters over one step; yields what the step did to them."""
    migration, before, after = state.migration, step.before, state.membership
    if _is(before, CLASSIC) and _is(after, CONSUMER):
        yield from _upgraded(state, before, after, step.timestamp_ms)
    elif _is(before, CONSUMER) and _is(after, CLASSIC):
        yield from _downgraded(state, step)
    elif _is(after, CONSUMER):
        yield from _rolled(migration, before, after, step.timestamp_ms)
    else:
        _no_longer_mixed(migration)
        _remember_size(migration, before, after, step.timestamp_ms)
        if not after.exists:
            migration.was_downgraded = False
    downgrades.follow(migration, after)


def _is(membership: Membership, type_: str) -> bool:
    return membership.exists and membership.type == type_


def _upgraded(state: GroupState, before: Membership, after: Membership, time_ms: int) -> Iterator[Finding]:
    migration = state.migration
    state.counters.upgrades += 1
    migration.was_downgraded, migration.downgrade = False, None
    members, _ = members_by_protocol(before)
    classic, consumer = members_by_protocol(after)
    recent = within(REPLACEMENT_MS, migration.recent_members_ms, time_ms)
    migration.members_before = max(members or classic, migration.recent_members if recent else 0)
    if not members and not classic:
        yield _completed(migration, consumer, time_ms, {"online": False})
        return
    detail = {"members": classic + consumer, "upgraded_members": consumer, "members_before": migration.members_before}
    yield Finding("upgrade_started", {"online": True, **detail})
    if classic:
        _mixed(migration, UPGRADE, classic, consumer, time_ms)
    else:
        yield _completed(migration, consumer, time_ms, {"online": True, "mixed_ms": 0})


def _completed(migration: Migration, consumer: int, time_ms: int, detail: Mapping[str, object]) -> Finding:
    """No classic member is left. Whether all that were there have been replaced is another question."""
    awaited = max(0, migration.members_before - consumer)
    migration.completed_ms, migration.completed_members = (time_ms if awaited else None), consumer
    sizes = {"members": consumer, "members_before": migration.members_before, "replacements_awaited": awaited}
    return Finding("upgrade_completed", {**detail, **sizes}, inferred=awaited > 0)


def _downgraded(state: GroupState, step: Step) -> Iterator[Finding]:
    migration, before = state.migration, step.before
    state.counters.downgrades += 1
    was_classic, was_consumer = members_by_protocol(before)
    members, _ = members_by_protocol(state.membership)
    online = was_classic + was_consumer > 0
    if online and migration.direction != DOWNGRADE:
        yield Finding("downgrade_started", {"online": True, "members": was_classic + was_consumer})
    detail: dict[str, object] = {"online": online, "members": members}
    if migration.mixed_since_ms is not None:
        detail["mixed_ms"] = elapsed_ms(migration.mixed_since_ms, step.timestamp_ms)
    group = before.modern_group
    upgraded = [] if group is None else [of for of in group.members.values() if not of.uses_classic_protocol]
    detail["last_upgraded_members"] = sorted(member.member_id for member in upgraded)
    detail["leftover_records"] = leftovers.left_over(state.membership)
    yield Finding("downgrade_completed", {**detail, **downgrades.complete(state, step)})
    _no_longer_mixed(migration)
    migration.was_downgraded = True


def _rolled(migration: Migration, before: Membership, after: Membership, time_ms: int) -> Iterator[Finding]:
    """A consumer group before and after, or one seen for the first time."""
    was_classic, was_consumer = members_by_protocol(before)
    classic, consumer = members_by_protocol(after)
    rolling = {"members": classic + consumer, "upgraded_members": consumer}
    if consumer >= migration.members_before or not classic + consumer:
        migration.completed_ms = None
    if migration.mixed_since_ms is None:
        if classic and consumer:
            yield from _mixes(migration, before, after, time_ms)
        return
    if not classic:
        if consumer:
            mixed_ms = elapsed_ms(migration.mixed_since_ms, time_ms)
            migration.downgrade = None
            yield _completed(migration, consumer, time_ms, {"online": True, "mixed_ms": mixed_ms})
        _no_longer_mixed(migration)
        return
    turned_down = migration.direction == UPGRADE and classic > was_classic and consumer < migration.peak_consumer
    turned_up = migration.direction == DOWNGRADE and consumer > was_consumer and classic < migration.peak_classic
    if turned_down or turned_up:
        migration.direction = DOWNGRADE if turned_down else UPGRADE
        migration.peak_classic, migration.peak_consumer = classic, consumer
        migration.downgrade = Downgrade(begun_ms=time_ms) if turned_down else None
        kind = "downgrade_started" if turned_down else "upgrade_started"
        yield Finding(kind, {"online": True, "turned_round": True, **rolling}, inferred=True)
    migration.peak_classic = max(migration.peak_classic, classic)
    migration.peak_consumer = max(migration.peak_consumer, consumer)


def _mixes(migration: Migration, before: Membership, after: Membership, time_ms: int) -> Iterator[Finding]:
    """A consumer group has members of both kinds, and had not before."""
    _, was_consumer = members_by_protocol(before)
    classic, consumer = members_by_protocol(after)
    rolling = {"members": classic + consumer, "upgraded_members": consumer}
    seen = _seen_to_change(before, after) or consumer < was_consumer
    if seen and _is_awaited(migration, classic, consumer, time_ms):
        _mixed(migration, UPGRADE, classic, consumer, time_ms)
        yield Finding("upgrade_started", {"online": True, "resumed": True, **rolling}, inferred=True)
        return
    down = seen and was_consumer > 0
    _mixed(migration, DOWNGRADE if down else UPGRADE, classic, consumer, time_ms)
    migration.downgrade = Downgrade(begun_ms=time_ms) if down else None
    migration.members_before = classic + consumer
    if seen:
        yield Finding("downgrade_started" if down else "upgrade_started", {"online": True, **rolling})


def _is_awaited(migration: Migration, classic: int, consumer: int, time_ms: int) -> bool:
    """Whether a classic member that comes may be one that an upgrade was completed without: it restarted as it was."""
    completed_ms = migration.completed_ms
    if completed_ms is None or not within(REPLACEMENT_MS, completed_ms, time_ms):
        return False
    return consumer >= migration.completed_members and classic + consumer <= migration.members_before


def _remember_size(migration: Migration, before: Membership, after: Membership, time_ms: int) -> None:
    """How many members a classic group had before they began to leave, as they do in a roll."""
    was, _ = members_by_protocol(before)
    now, _ = members_by_protocol(after)
    outdated = not within(REPLACEMENT_MS, migration.recent_members_ms, time_ms)
    if now < was and (was >= migration.recent_members or outdated):
        migration.recent_members, migration.recent_members_ms = was, time_ms


def _seen_to_change(before: Membership, after: Membership) -> bool:
    """Whether the step brought members, rather than a compacted log the records of members there long since.

    A join moves the group epoch on, and the cleaned part of a log holds one record of it.
    """
    was, now = before.modern_group, after.modern_group
    return was is not None and now is not None and was.epoch_live and now.epoch > was.epoch


def _mixed(migration: Migration, direction: str, classic: int, consumer: int, time_ms: int) -> None:
    migration.direction = direction
    migration.mixed_since_ms = time_ms
    migration.peak_classic, migration.peak_consumer = classic, consumer


def _no_longer_mixed(migration: Migration) -> None:
    migration.direction = None
    migration.mixed_since_ms = None
    migration.peak_classic = migration.peak_consumer = 0
