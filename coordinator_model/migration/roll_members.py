"""Whether a roll brings back as many members as there were before it, and if not, who is missing for how long.

A roll begins when a group has members of both protocols, or is converted, and is over once it has one protocol and all
its members, for as long as a session lasts: until then a process that was killed may still be counted. How many there
were before says `phases.lately`: a scale-in after which the group came to rest is no part of the roll.

    a member             the free places
    leaves               one more, the latest; none where one like it came ahead, which is in its place now
    comes                one less: that of its instance id; else of its client id and host; else the earliest
    beyond those before  none: it came ahead of the one that it replaces

So in a roll whose restarts overlap each place is free for the time of one restart, although somebody is missing all the
time. A place that is free for longer than a restart takes, five minutes and no less than the greatest session timeout,
is that of a member that is not back. From then on members are missing until as many are there as before, or the group
is gone, even if other members come meanwhile. The next roll begins with those that there are, once a day is over.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from coordinator_model.migration import phases
from coordinator_model.state.findings import Position
from coordinator_model.state.group_state import GroupState
from coordinator_model.state.membership import CLASSIC, CONSUMER, ClassicMember, Membership
from coordinator_model.state.rule_memory import Place, Roll, Step

RESTART_MS: Final = 300_000
"""A restart of four minutes is one."""

SESSION_MS: Final = 60_000
"""The longest session a broker allows consumer-protocol members by default; the log does not say how long theirs is."""

CLOSED_AFTER_MS: Final = 86_400_000
"""Who has not come for a day is not waited for."""

MOST_PLACES: Final = 100
"""So many free places are remembered."""


def follow(state: GroupState, step: Step, position: Position, *, was_mixed: bool) -> None:
    """Advance the group's roll over one step, after `phases.advance`; `was_mixed` is what it was before."""
    migration, before, after = state.migration, step.before, state.membership
    if not after.exists:
        migration.roll = None
        return
    time_ms, members = step.timestamp_ms, sum(phases.members_by_protocol(after))
    roll = migration.roll
    complete_ms = None if roll is None else roll.complete_ms
    if roll is not None and complete_ms is not None and time_ms - complete_ms > roll.session_ms:
        roll = None
    begins = _converts(before, after) or (migration.mixed and not was_mixed)
    if begins and (roll is None or _is_closed(roll, time_ms)):
        size = max(sum(phases.members_by_protocol(before)), phases.lately(migration, before, after, time_ms))
        roll = Roll(members_before=size, session_ms=max(SESSION_MS, *_sessions_ms(before)))
        roll.places = tuple(
            Place(since_ms=of.since_ms, offset=position.offset, client_id=of.client_id, client_host=of.client_host)
            for of in migration.vacancies
        )
        was = phases.by_name(before)
        came = [of for name, of in phases.by_name(after).items() if name not in was]
        roll.ahead = tuple(_place(of, position) for of in came[len(came) - max(0, members - size) :])
    elif roll is not None:
        _advance(roll, before, after, position)
    migration.roll = roll
    if roll is None:
        return
    roll.session_ms = max(roll.session_ms, *_sessions_ms(after))
    missing = max(0, roll.members_before - members)
    free = roll.places[max(0, len(roll.places) - missing - len(roll.ahead)) :]
    unseen = min(missing, MOST_PLACES) - len(free)
    roll.places = (*free, *(Place(since_ms=time_ms, offset=position.offset) for _ in range(unseen)))
    if not missing:
        roll.since_ms, roll.offset = None, -1
        roll.complete_ms = None if migration.mixed else complete_ms or time_ms
        return
    roll.complete_ms = None
    if roll.since_ms is None and not begins:
        # While as many were there as before, none of the places counted.
        roll.places = tuple(replace(place, since_ms=time_ms, offset=position.offset) for place in roll.places)
    if roll.since_ms is None or time_ms - roll.since_ms <= wait_ms(roll):
        first = free_places(roll, missing)[0]
        roll.since_ms, roll.offset = first.since_ms, first.offset


def free_places(roll: Roll, missing: int) -> tuple[Place, ...]:
    """Those of the members that are missing: the latest, because others may be taken by who came ahead."""
    return roll.places[max(0, len(roll.places) - missing) :]


def wait_ms(roll: Roll) -> int:
    """For longer than this a member is away that only restarts."""
    return max(RESTART_MS, roll.session_ms)


def missing(state: GroupState) -> int:
    """How many members fewer than before its roll the group has."""
    roll = state.migration.roll
    return 0 if roll is None else max(0, roll.members_before - sum(phases.members_by_protocol(state.membership)))


def not_back_since_ms(state: GroupState, now_ms: int) -> int | None:
    """Since when members are missing for longer than a restart takes, be it a day or a year; None where none is."""
    roll = state.migration.roll
    if roll is None or roll.since_ms is None or now_ms - roll.since_ms <= wait_ms(roll):
        return None
    return roll.since_ms


def is_awaited(state: GroupState, now_ms: int) -> bool:
    """Whether members of a roll are missing, for no longer yet than a restart takes."""
    roll = state.migration.roll
    return roll is not None and roll.since_ms is not None and not_back_since_ms(state, now_ms) is None


def _is_closed(roll: Roll, time_ms: int) -> bool:
    return roll.since_ms is not None and time_ms - roll.since_ms > CLOSED_AFTER_MS


def _converts(before: Membership, after: Membership) -> bool:
    return before.exists and {before.type, after.type} == {CLASSIC, CONSUMER}


def _advance(roll: Roll, before: Membership, after: Membership, position: Position) -> None:
    was, now = phases.by_name(before), phases.by_name(after)
    places, ahead, size = list(roll.places), list(roll.ahead), len(was)
    for name, of in now.items():
        if name in was:
            continue
        came = _place(of, position)
        taken = _like(places, came)
        if taken is None and places and size < roll.members_before:
            taken = places[max(0, len(places) - (roll.members_before - size))]
        if taken is None:
            ahead.append(came)
        else:
            places.remove(taken)
        size += 1
    for name, of in was.items():
        if name not in now:
            gone = _place(of, position)
            replaced_by = _like(ahead, gone)
            if replaced_by is None:
                places.append(gone)
            else:
                ahead.remove(replaced_by)
    roll.places, roll.ahead = tuple(places), tuple(ahead[-MOST_PLACES:])


def _place(of: phases.AnyMember, position: Position) -> Place:
    return Place(
        since_ms=position.timestamp_ms,
        offset=position.offset,
        instance_id=of.instance_id,
        client_id=of.client_id,
        client_host=of.client_host,
    )


def _like(places: list[Place], member: Place) -> Place | None:
    """The place of a member: by its instance id, else by its client id and host."""
    same = (of for of in places if member.instance_id is not None and of.instance_id == member.instance_id)
    process = (member.client_id, member.client_host)
    return next(same, None) or next((of for of in places if (of.client_id, of.client_host) == process), None)


def _sessions_ms(membership: Membership) -> list[int]:
    return [
        of.session_timeout_ms if isinstance(of, ClassicMember) else of.classic_session_timeout_ms
        for of in phases.by_name(membership).values()
    ] or [0]
