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

The way is the one the group was on when it became mixed, until the roll turns round. Whether it does is shown by who
comes in whose place. A member that leaves is awaited for ten minutes; one that comes takes a place:

    comes      the free places are                        it is
    classic    of a classic member                        that one, started again
    consumer   of a consumer-protocol member              that one, started again
    consumer   of a classic member alone                  a step up
    classic    of a consumer-protocol member alone        a step down; but for one that has client id and host of a
                                                          classic member that is still there: that one, which crashed
    either     none                                       one more

On the way up the group turns round with a step down, or with one more classic member, while fewer consumer-protocol
members are left than there already were; and the mirror image. So an upgraded member that crashes while a classic one
restarts turns nothing. A group that is mixed when it is first seen goes no known way (phase None) until a step or one
more member shows it. A group without members converts too, offline: nothing is mixed then, and the conversion says so.

In a roll an old member goes before the new one in its place comes, so when the last classic one has left, one is
still awaited. `upgrade_completed` says how many: those that were there before the upgrade, less those that are there
now. How many were there is the size of the group that was converted, or the one it had within ten minutes before; but
those that left for good do not count: the group came to rest without them before the next one left, or before one was
replaced in place. Should the awaited member come back as it was, that is the same upgrade going on, no downgrade.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from coordinator_model.migration import downgrade_check, leftover_records, upgrade_check
from coordinator_model.migration.upgrade_blockers import blockers, is_kafka_streams
from coordinator_model.state.clocks import elapsed_ms, within
from coordinator_model.state.findings import Finding
from coordinator_model.state.group_state import GroupState
from coordinator_model.state.membership import CLASSIC, CONSUMER, ClassicMember, Membership, ModernMember
from coordinator_model.state.rule_memory import Downgrade, Migration, Step, Vacancy

UPGRADE: Final = "upgrade"
DOWNGRADE: Final = "downgrade"

MOST_VACANCIES: Final = 100
"""So many free places are remembered; a group that loses more at once is not being rolled."""

REPLACEMENT_MS: Final = 600_000
"""So long a member that restarts is awaited: its session may have to expire, and its process to come up."""

REST_MS: Final = 60_000
"""So long after a member left, a group that goes on without it has come to rest (`rules/settling.py`)."""

WAYS: Final[Mapping[str, str]] = {UPGRADE: "upgrading", DOWNGRADE: "downgrading"}
"""Direction → phase of a mixed group that goes there."""

PHASES: Final = ("classic", "upgrading", "upgraded", "downgrading", "downgraded", "blocked")


def members_by_protocol(membership: Membership) -> tuple[int, int]:
    """(classic, consumer) members; all members of a share or streams group count as new-protocol ones.

    A member known by its assignment alone, as in a compacted log, is of neither until its metadata is known.
    """
    modern = membership.modern_group
    if modern is None:
        return (0 if membership.classic is None else len(membership.classic.members), 0)
    known = [member for member in modern.members.values() if member.metadata_live]
    classic = sum(member.uses_classic_protocol for member in known)
    return classic, len(known) - classic


def phase(state: GroupState) -> str | None:
    """One of `PHASES`; None where the log does not show which way a mixed group goes, and of share and streams groups.

    Those have protocols of their own, and are on no way.
    """
    return phase_of(state, blockers(state.membership))


def phase_of(state: GroupState, blocked_by: Collection[str]) -> str | None:
    """As `phase`, where the group's `upgrade_blockers.blockers` are known."""
    modern = state.membership.modern_group
    if modern is not None and modern.family != CONSUMER:
        return None
    if modern is not None:
        if not state.migration.mixed:
            return "upgraded"
        return WAYS.get(state.migration.direction or "")
    if blocked_by:
        return "blocked"
    return "downgraded" if state.migration.was_downgraded else "classic"


def is_mixed(type_: str, phase: str | None) -> bool:
    """Whether a group of this type and phase has members of both protocols."""
    return type_ in (CLASSIC, CONSUMER) and (phase is None or phase in WAYS.values())


def places_free(state: GroupState, now_ms: int) -> int:
    """Members that left and in whose place none has come yet, of those that are still awaited."""
    return sum(within(REPLACEMENT_MS, of.since_ms, now_ms) for of in state.migration.vacancies)


def just_converted(state: GroupState, now_ms: int) -> bool:
    """Whether the last member to be rolled, up or down, went so lately that it is still awaited."""
    migration = state.migration
    down = migration.downgrade if state.membership.classic_group is not None else None
    ends = (migration.completed_ms, None if down is None else down.completed_ms)
    return any(of is not None and within(REPLACEMENT_MS, of, now_ms) for of in ends)


def groups_by_type(states: Iterable[GroupState]) -> dict[str, int]:
    """Type → how many of these groups are of it."""
    return dict(sorted(Counter(state.type for state in states if state.exists).items()))


class Moves(NamedTuple):
    """What the members that come in a step show of the way: a step, or one more, up or down."""

    up: bool
    down: bool


AnyMember = ClassicMember | ModernMember


def advance(state: GroupState, step: Step) -> Iterator[Finding]:
    """Advance the group's migration and its counters over one step; yields what the step did to them."""
    migration, before, after = state.migration, step.before, state.membership
    moves = _moves(migration, before, after, step.timestamp_ms)
    if not _is(after, CLASSIC):
        migration.blocked_since_ms = None
    if _is(before, CLASSIC) and _is(after, CONSUMER):
        yield from _upgraded(state, step)
    elif _is(before, CONSUMER) and _is(after, CLASSIC):
        yield from _downgraded(state, step)
    elif _is(after, CONSUMER):
        if not migration.mixed:
            _remember_size(migration, before, after, step.timestamp_ms)
        yield from _rolled(migration, before, after, moves, step.timestamp_ms)
    else:
        _no_longer_mixed(migration)
        _remember_size(migration, before, after, step.timestamp_ms)
        _note_blocked(migration, before, after, step.timestamp_ms)
        if not after.exists:
            migration.was_downgraded = False
    downgrade_check.stop_watching(migration, after)


def go_on(state: GroupState) -> None:
    """Go on with a group of which some records were not seen: it may be mixed since then, or no longer."""
    migration = state.migration
    classic, consumer = members_by_protocol(state.membership)
    if not (classic and consumer and _is(state.membership, CONSUMER)):
        _no_longer_mixed(migration)
        return
    migration.changed_ms, migration.changed_offset = state.last_step_ms, state.last_step_offset
    migration.peak_classic = max(classic, migration.peak_classic)
    migration.peak_consumer = max(consumer, migration.peak_consumer)
    if not migration.mixed:
        migration.mixed_before, migration.members_before = True, classic + consumer


def _is(membership: Membership, type_: str) -> bool:
    return membership.exists and membership.type == type_


def _upgraded(state: GroupState, step: Step) -> Iterator[Finding]:
    migration, before, after, time_ms = state.migration, step.before, state.membership, step.timestamp_ms
    state.counters.upgrades += 1
    former, migration.downgrade, migration.upgrade, migration.was_downgraded = migration.downgrade, None, None, False
    members, _ = members_by_protocol(before)
    classic, consumer = members_by_protocol(after)
    migration.members_before = max(members or classic, lately(migration, before, after, time_ms))
    if not members and not classic:
        yield _completed(migration, consumer, time_ms, {"online": False})
        return
    detail = {"members": classic + consumer, "upgraded_members": consumer, "members_before": migration.members_before}
    yield Finding("upgrade_started", {"online": True, **detail, **upgrade_check.compare(state, step, former)})
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
    migration.upgrade = None
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
    detail["leftover_records"] = leftover_records.left_over(state.membership)
    yield Finding("downgrade_completed", {**detail, **downgrade_check.complete(state, step)})
    _no_longer_mixed(migration)
    migration.was_downgraded = True


def _rolled(
    migration: Migration, before: Membership, after: Membership, moves: Moves, time_ms: int
) -> Iterator[Finding]:
    """A consumer group before and after, or one seen for the first time."""
    was_classic, was_consumer = members_by_protocol(before)
    classic, consumer = members_by_protocol(after)
    rolling = {"members": classic + consumer, "upgraded_members": consumer}
    if consumer >= migration.members_before or not classic + consumer:
        migration.completed_ms = None
    if not migration.mixed:
        if classic and consumer:
            yield from _mixes(migration, before, after, moves, time_ms)
        return
    if not classic:
        if consumer:
            since_ms = migration.mixed_since_ms
            mixed = {} if since_ms is None else {"mixed_ms": elapsed_ms(since_ms, time_ms)}
            migration.downgrade = None
            yield _completed(migration, consumer, time_ms, {"online": True, **mixed})
        _no_longer_mixed(migration)
        return
    fewer_consumer, fewer_classic = consumer < migration.peak_consumer, classic < migration.peak_classic
    goes_down = moves.down and classic > was_classic and fewer_consumer
    goes_up = moves.up and consumer > was_consumer and fewer_classic
    turned_down = migration.direction == UPGRADE and goes_down
    turned_up = migration.direction == DOWNGRADE and goes_up
    # Of a group that was mixed before anything was seen of it, one more member does not show which way it goes.
    shows = goes_down != goes_up if migration.mixed_before else moves.down != moves.up
    shown = migration.direction is None and shows and _seen_to_change(before, after)
    if turned_down or turned_up or shown:
        down = moves.down if shown else turned_down
        migration.direction = DOWNGRADE if down else UPGRADE
        migration.peak_classic, migration.peak_consumer = classic, consumer
        migration.downgrade = Downgrade(begun_ms=time_ms) if down else None
        kind = "downgrade_started" if down else "upgrade_started"
        how = {} if shown else {"turned_round": True}
        yield Finding(kind, {"online": True, **how, **rolling}, inferred=True)
    migration.peak_classic = max(migration.peak_classic, classic)
    migration.peak_consumer = max(migration.peak_consumer, consumer)


def _mixes(
    migration: Migration, before: Membership, after: Membership, moves: Moves, time_ms: int
) -> Iterator[Finding]:
    """A consumer group has members of both kinds, and had not before."""
    _, was_consumer = members_by_protocol(before)
    classic, consumer = members_by_protocol(after)
    rolling = {"members": classic + consumer, "upgraded_members": consumer}
    seen = _seen_to_change(before, after) or consumer < was_consumer
    if seen and _is_awaited(migration, classic, consumer, time_ms):
        _mixed(migration, UPGRADE, classic, consumer, time_ms)
        yield Finding("upgrade_started", {"online": True, "resumed": True, **rolling}, inferred=True)
        return
    seen = seen and not _may_have_restarted(migration, moves, time_ms)
    down = seen and was_consumer > 0
    _mixed(migration, (DOWNGRADE if down else UPGRADE) if seen else None, classic, consumer, time_ms)
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


def _may_have_restarted(migration: Migration, moves: Moves, time_ms: int) -> bool:
    """Whether the classic members that come take places of such that left when the upgrade was all but complete.

    An upgraded member left meanwhile, or they would be awaited: it crashed, or a downgrade begins. The next one shows.
    """
    completed_ms = migration.completed_ms
    return not moves.down and completed_ms is not None and within(REPLACEMENT_MS, completed_ms, time_ms)


def _moves(migration: Migration, before: Membership, after: Membership, time_ms: int) -> Moves:
    """Advance the free places over one step, and say what those who came show."""
    was, now = by_name(before), by_name(after)
    free = [of for of in migration.vacancies if within(REPLACEMENT_MS, of.since_ms, time_ms)]
    down = any(not _is_classic(was[name]) and _is_classic(of) for name, of in now.items() if name in was)
    up = any(_is_classic(was[name]) and not _is_classic(of) for name, of in now.items() if name in was)
    free += [
        Vacancy(classic=_is_classic(of), since_ms=time_ms, client_id=of.client_id, client_host=of.client_host)
        for name, of in was.items()
        if name not in now
    ]
    for name, member in now.items():
        if name in was:
            continue
        classic = _is_classic(member)
        place = next((of for of in free if of.classic == classic), None)
        if place is None:
            place = next(iter(free), None)
            up, down = up or not classic, down or (classic and not _is_double(member, was, free))
        if place is not None:
            free.remove(place)
    migration.vacancies = tuple(free[-MOST_VACANCIES:])
    return Moves(up, down)


def _is_double(member: ClassicMember | ModernMember, there: Mapping[str, AnyMember], free: Iterable[Vacancy]) -> bool:
    """Whether one of those who are there is its former process, and none of those who left can be."""
    process = (member.client_id, member.client_host)
    same = any(_is_classic(of) and (of.client_id, of.client_host) == process for of in there.values())
    others = {(of.client_id, of.client_host) for of in there.values() if not _is_classic(of)}
    return same and process not in others and process not in {(of.client_id, of.client_host) for of in free}


def by_name(membership: Membership) -> dict[str, AnyMember]:
    """Members whose protocol is known, by instance id where they have one."""
    modern = membership.modern_group
    if modern is None:
        classic = {} if membership.classic is None else membership.classic.members
        return {of.instance_id or of.member_id: of for of in classic.values()}
    return {of.instance_id or of.member_id: of for of in modern.members.values() if of.metadata_live}


def _is_classic(member: AnyMember) -> bool:
    return isinstance(member, ClassicMember) or member.uses_classic_protocol


def lately(migration: Migration, before: Membership, after: Membership, time_ms: int) -> int:
    """How many members the group had before those left that a roll may bring back; 0 where none did."""
    was = by_name(before)
    in_place = any(name in was and _is_classic(was[name]) != _is_classic(of) for name, of in by_name(after).items())
    left_for_good = in_place and not within(REST_MS, migration.recent_left_ms, time_ms)
    recent = within(REPLACEMENT_MS, migration.recent_members_ms, time_ms)
    return migration.recent_members if recent and not left_for_good else 0


def _remember_size(migration: Migration, before: Membership, after: Membership, time_ms: int) -> None:
    """How many members a group of one protocol had before they began to leave, as they do in a roll."""
    was, now = sum(members_by_protocol(before)), sum(members_by_protocol(after))
    if now >= was:
        return
    outdated = not within(REPLACEMENT_MS, migration.recent_members_ms, time_ms)
    rested = not within(REST_MS, migration.recent_left_ms, time_ms)
    if was >= migration.recent_members or outdated or rested:
        migration.recent_members, migration.recent_members_ms = was, time_ms
    migration.recent_left_ms = time_ms


def _note_blocked(migration: Migration, before: Membership, after: Membership, time_ms: int) -> None:
    """Note that a classic group became one that a broker refuses while a member is away; until none is missing.

    A roll does so: a member leaves, the others rejoin with what a broker refuses, and the one in its place is refused.
    """
    members, group = members_by_protocol(after)[0], after.classic_group
    if not members or (group is not None and is_kafka_streams(group)) or not blockers(after):
        migration.blocked_since_ms = None
    elif migration.blocked_since_ms is not None:
        if members >= migration.recent_members:
            migration.blocked_since_ms = None
    elif migration.vacancies and members_by_protocol(before)[0] and not blockers(before):
        migration.blocked_since_ms = time_ms


def _seen_to_change(before: Membership, after: Membership) -> bool:
    """Whether the step brought members, rather than a compacted log the records of members there long since.

    A join moves the group epoch on, and the cleaned part of a log holds one record of it.
    """
    was, now = before.modern_group, after.modern_group
    return was is not None and now is not None and was.epoch_live and now.epoch > was.epoch


def _mixed(migration: Migration, direction: str | None, classic: int, consumer: int, time_ms: int) -> None:
    migration.direction = direction
    migration.mixed_since_ms = time_ms
    migration.peak_classic, migration.peak_consumer = classic, consumer


def _no_longer_mixed(migration: Migration) -> None:
    migration.direction = None
    migration.mixed_since_ms, migration.mixed_before = None, False
    migration.peak_classic = migration.peak_consumer = 0
