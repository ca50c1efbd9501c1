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
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from coordinator_model.conclusions import Finding
from coordinator_model.group_state import CLASSIC, CONSUMER, GroupCounters, GroupState, Membership, Migration
from coordinator_model.groups.classic import CONSUMER_PROTOCOL_TYPE

UPGRADE: Final = "upgrade"
DOWNGRADE: Final = "downgrade"

PHASES: Final = ("classic", "upgrading", "upgraded", "downgrading", "downgraded", "blocked")

PROTOCOL_TYPE: Final = "protocol_type"
ASSIGNMENT_USER_DATA: Final = "assignment_user_data"
MALFORMED: Final = "malformed_embedded_protocol"
BLOCKERS: Final = {
    PROTOCOL_TYPE: "the group's protocol type is not `consumer`",
    ASSIGNMENT_USER_DATA: "a custom assignor's user data is in the assignment",
    MALFORMED: "a member's subscription or assignment is not in the consumer protocol's format",
}
"""Reason a broker refuses an online upgrade for → what it means (GroupMetadataManager.validateOnlineUpgrade and
ConsumerGroup.fromClassicGroup, 4.3.1). It also refuses for its migration policy and for the group's size, which are
configuration; KIP-848 asks for embedded protocol version 3, which brokers do not insist on (`gate.py` says so)."""


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


def blockers(membership: Membership) -> list[str]:
    """Reasons, of `BLOCKERS`, for which a broker would refuse the first consumer-protocol member."""
    group = membership.classic_group
    if group is None or not group.members:
        return []
    found = []
    if group.protocol_type != CONSUMER_PROTOCOL_TYPE:
        found.append(PROTOCOL_TYPE)
        return found
    if any(member.assignment_user_data for member in group.members.values()):
        found.append(ASSIGNMENT_USER_DATA)
    if any(member.claim is None or member.assignment_malformed for member in group.members.values()):
        found.append(MALFORMED)
    return found


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


def follow(
    migration: Migration, counters: GroupCounters, before: Membership, after: Membership, time_ms: int
) -> Iterator[Finding]:
    """Advance `migration` and `counters` over one step; yields what the step did to the migration."""
    if _is(before, CLASSIC) and _is(after, CONSUMER):
        yield from _upgraded(migration, counters, before, after, time_ms)
    elif _is(before, CONSUMER) and _is(after, CLASSIC):
        yield from _downgraded(migration, counters, before, after, time_ms)
    elif _is(after, CONSUMER):
        yield from _rolled(migration, before, after, time_ms)
    else:
        _no_longer_mixed(migration)
        if not after.exists:
            migration.was_downgraded = False


def _is(membership: Membership, type_: str) -> bool:
    return membership.exists and membership.type == type_


def _upgraded(
    migration: Migration, counters: GroupCounters, before: Membership, after: Membership, time_ms: int
) -> Iterator[Finding]:
    counters.upgrades += 1
    migration.was_downgraded = False
    members, _ = members_by_protocol(before)
    classic, consumer = members_by_protocol(after)
    if not members and not classic:
        yield Finding("upgrade_completed", {"online": False, "members": consumer})
        return
    yield Finding("upgrade_started", {"online": True, "members": classic + consumer, "upgraded_members": consumer})
    if classic:
        _mixed(migration, UPGRADE, classic, consumer, time_ms)
    else:
        yield Finding("upgrade_completed", {"online": True, "members": consumer, "mixed_ms": 0})


def _downgraded(
    migration: Migration, counters: GroupCounters, before: Membership, after: Membership, time_ms: int
) -> Iterator[Finding]:
    counters.downgrades += 1
    was_classic, was_consumer = members_by_protocol(before)
    members, _ = members_by_protocol(after)
    online = was_classic + was_consumer > 0
    if online and migration.direction != DOWNGRADE:
        yield Finding("downgrade_started", {"online": True, "members": was_classic + was_consumer})
    detail: dict[str, object] = {"online": online, "members": members}
    if migration.mixed_since_ms is not None:
        detail["mixed_ms"] = time_ms - migration.mixed_since_ms
    yield Finding("downgrade_completed", detail)
    _no_longer_mixed(migration)
    migration.was_downgraded = True


def _rolled(migration: Migration, before: Membership, after: Membership, time_ms: int) -> Iterator[Finding]:
    """A consumer group before and after, or one seen for the first time."""
    was_classic, was_consumer = members_by_protocol(before)
    classic, consumer = members_by_protocol(after)
    rolling = {"members": classic + consumer, "upgraded_members": consumer}
    if migration.mixed_since_ms is None:
        if classic and consumer:
            seen = _seen_to_change(before, after) or consumer < was_consumer
            down = seen and was_consumer > 0
            _mixed(migration, DOWNGRADE if down else UPGRADE, classic, consumer, time_ms)
            if seen:
                yield Finding("downgrade_started" if down else "upgrade_started", {"online": True, **rolling})
        return
    if not classic:
        if consumer:
            mixed_ms = time_ms - migration.mixed_since_ms
            yield Finding("upgrade_completed", {"online": True, "members": consumer, "mixed_ms": mixed_ms})
        _no_longer_mixed(migration)
        return
    turned_down = migration.direction == UPGRADE and classic > was_classic and consumer < migration.peak_consumer
    turned_up = migration.direction == DOWNGRADE and consumer > was_consumer and classic < migration.peak_classic
    if turned_down or turned_up:
        migration.direction = DOWNGRADE if turned_down else UPGRADE
        migration.peak_classic, migration.peak_consumer = classic, consumer
        kind = "downgrade_started" if turned_down else "upgrade_started"
        yield Finding(kind, {"online": True, "turned_round": True, **rolling}, inferred=True)
    migration.peak_classic = max(migration.peak_classic, classic)
    migration.peak_consumer = max(migration.peak_consumer, consumer)


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
