"""Static members that are away (KIP-848, epoch -2): one restart of a deployment is one alarm of the group, not fifty.

    a static member     the alarm
    closes              opens, and is reported five seconds later with all that closed by then, as they do at once where
                        all are restarted; sooner where one is back
    closes while        goes on: it joins the others, unless none went or came back for ten minutes. Then it is reported
    another is away     again, with those that are away still
    closes when all     goes on for three minutes, in which a roll goes from one process to the next
    are back
    expires             goes on: it is not back, and is named among those that are away
    is back, replaced   is over of that member

It is over when all are back: at once where every static member of the group was away in it, for none is left to be
restarted; otherwise when no other closed for three minutes, by the group's next record or the clock. It ends with the
group, too, and a day after anyone last went or came back: who is not back by then was stopped for good. Its end has the
time at which the last was back; it lists every instance id that was away, and those that are not back.

A group that is scaled in looks the same, so the page shows who is away as information. Who was away before the live
tail began is not reported.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from coordinator_model.rules import lasting
from coordinator_model.rules.members import Member, is_absent, members_of, named, session_timeout_ms, units
from coordinator_model.rules.transition import Transition
from coordinator_model.state.clocks import within
from coordinator_model.state.events import INFO, Event
from coordinator_model.state.findings import Finding, Position, events_of
from coordinator_model.state.group_state import GroupState
from coordinator_model.state.membership import Membership
from coordinator_model.state.rule_memory import Absences

ABSENT: Final = "static_member_absent"

TOGETHER_MS: Final = 5_000
"""Processes that are stopped at once close within seconds of each other, each when its poll returns."""

NEXT_MS: Final = 180_000
"""From one process of a roll that is back to the next that closes: it gets ready, and the next has time to stop."""

JOINS_MS: Final = 600_000
"""What closes so long after anyone last went or came back is of another restart, though one is away still."""

CLOSED_AFTER_MS: Final = 86_400_000


class AbsenceSaid(NamedTuple):
    """What is to be said of members that are away: of which record, and at what time that was so."""

    offset: int
    time_ms: int
    finding: Finding


def absences(transition: Transition) -> Iterator[Finding]:
    """Advance who is away over one step; yields only that a group ended in which members were away.

    All else is said when it is time to (`take_due`).
    """
    state, members = transition.state, members_of(transition.after)
    there = {of.instance_id: of for of in members.values() if of.instance_id is not None}
    away = {instance_id: of for instance_id, of in there.items() if is_absent(of)}
    if state.absences is None and not away:
        return
    if not transition.after.exists:
        yield from _ended_with_the_group(state)
        return
    for instance_id in [*state.open(ABSENT)]:
        # Below the live tail the log may lack what became of one who is not there.
        if instance_id in there.keys() - away.keys() or not (transition.live or instance_id in there):
            _is_back(state, transition, instance_id)
    went = {of.instance_id: of for of in went_away(transition.before, transition.after)}
    for instance_id, member in away.items():
        if instance_id not in state.open(ABSENT):
            _went(state, transition, instance_id, member, seen=instance_id in went and transition.live)


def went_away(before: Membership, after: Membership) -> Iterator[Member]:
    """Static members that closed in a step."""
    was = members_of(before)
    for member_id, member in members_of(after).items():
        if is_absent(member) and not (member_id in was and is_absent(was[member_id])):
            yield member


def is_awaited(state: GroupState) -> bool:
    """Whether it is to be said soon who closed."""
    return state.absences is not None and not state.absences.reported


def is_away(state: GroupState, _: str, instance_id: str, now_ms: int) -> bool:
    """Whether a member went, and is neither back nor given up."""
    known = state.absences
    return instance_id in state.open(ABSENT) and known is not None and within(CLOSED_AFTER_MS, known.changed_ms, now_ms)


def take_due(state: GroupState, now_ms: int | None, over_ms: int | None = None) -> list[AbsenceSaid]:
    """What is to be said by now, which is remembered.

    Args:
        state: the group.
        now_ms: the log's time; None where it ends for now, so that who closes next is not waited for.
        over_ms: by which minutes and days are over: the time of a record of the group, or of the clock. None where
            neither is at hand: a micro-batch that ends, or a pause of seconds, must not end what another would not.
    """
    known, said = state.absences, list[AbsenceSaid]()
    if known is None:
        return said
    one_is_back = len(state.open(ABSENT)) < len(known.instance_ids)
    if not known.reported and (one_is_back or now_ms is None or not within(TOGETHER_MS, known.since_ms, now_ms)):
        known.reported = True
        said.append(AbsenceSaid(known.offset, known.since_ms, Finding(ABSENT, _beginning(known))))
    said += over(state, over_ms)
    if _ended_ms(state, known, over_ms) is not None:
        _forget(state)
    return said


def over(state: GroupState, over_ms: int | None) -> Iterator[AbsenceSaid]:
    """The end, if the beginning was reported and it is over; arguments as of `take_due`."""
    known = state.absences
    if known is None or known.before_live_tail or not known.reported:
        return
    ended_ms = _ended_ms(state, known, over_ms)
    if ended_ms is not None:
        why = {"why": "one_day"} if state.open(ABSENT) else {}
        yield AbsenceSaid(known.changed_offset, ended_ms, Finding(ABSENT, _end(state, known) | why, severity=INFO))


def events_of_said(state: GroupState, said: AbsenceSaid) -> Iterator[Event]:
    """The event of it, which is the same whether a record or the clock shows that it is time."""
    place = Position(state.partition, said.offset, said.time_ms)
    yield from events_of(state.name, place, [said.finding], first_ordinal=int("cleared" in said.finding.detail))


def _ended_ms(state: GroupState, known: Absences, now_ms: int | None) -> int | None:
    if state.open(ABSENT):
        given_up = now_ms is not None and not within(CLOSED_AFTER_MS, known.changed_ms, now_ms)
        return known.changed_ms + CLOSED_AFTER_MS if given_up else None
    all_were_away = state.instances.keys() <= {*known.instance_ids}
    is_over = all_were_away or (now_ms is not None and not within(NEXT_MS, known.changed_ms, now_ms))
    return known.changed_ms if is_over else None


def _went(state: GroupState, transition: Transition, instance_id: str, member: Member, *, seen: bool) -> None:
    """One is away. `seen` is whether it closed in this step, and on the live tail."""
    known, time_ms = state.absences, transition.time_ms
    if known is None or (seen and not _joins(state, known, time_ms)):
        known = state.absences = Absences(
            since_ms=time_ms,
            offset=transition.position.offset,
            changed_ms=time_ms,
            member_id=member.member_id,
            client_id=member.client_id,
            client_host=member.client_host,
            protocol=named(member)["protocol"],
            session_timeout_ms=session_timeout_ms(member),
            tasks=bool(units(transition.after)),
            instance_ids=(instance_id, *state.open(ABSENT)),
            since_before=tuple(state.open(ABSENT)),
            before_live_tail=not seen,
            reported=not seen,
        )
    if seen:
        known.changed_ms, known.changed_offset = time_ms, transition.position.offset
    known.instance_ids = tuple(dict.fromkeys((*known.instance_ids, instance_id)))
    for topic, partitions in member.assigned.items():
        known.partitions[topic] = tuple(sorted({*known.partitions.get(topic, ()), *partitions}))
    place = Position(state.partition, known.offset, known.since_ms)
    lasting.opened(state, ABSENT, place, instance_id, (member.member_id,))


def _joins(state: GroupState, known: Absences, time_ms: int) -> bool:
    """Whether who closes now is of the restart at hand."""
    window_ms = JOINS_MS if state.open(ABSENT) else NEXT_MS
    return not known.before_live_tail and within(window_ms, known.changed_ms, time_ms)


def _is_back(state: GroupState, transition: Transition, instance_id: str) -> None:
    lasting.closed(state, ABSENT, instance_id)
    if state.absences is not None:
        state.absences.changed_ms = transition.time_ms
        state.absences.changed_offset = transition.position.offset


def _ended_with_the_group(state: GroupState) -> Iterator[Finding]:
    known = state.absences
    if known is not None and not known.before_live_tail:
        if not known.reported:
            yield Finding(ABSENT, _beginning(known))
        yield Finding(ABSENT, _end(state, known) | {"why": "group_deleted"}, severity=INFO)
    _forget(state)


def _forget(state: GroupState) -> None:
    for instance_id in [*state.open(ABSENT)]:
        lasting.closed(state, ABSENT, instance_id)
    state.absences = None


def _beginning(known: Absences) -> dict[str, Any]:
    first = known.instance_ids[0]
    detail: dict[str, Any] = {
        "member_id": known.member_id,
        "instance_id": first,
        "client_id": known.client_id,
        "client_host": known.client_host,
        "protocol": known.protocol,
        "instance_ids": [*known.instance_ids],
        "partitions": {topic: [*partitions] for topic, partitions in sorted(known.partitions.items())},
        "session_timeout_ms": known.session_timeout_ms,
    }
    if known.since_before:
        detail["away_before"] = [*known.since_before]
    return detail | ({"tasks": True} if known.tasks else {})


def _end(state: GroupState, known: Absences) -> dict[str, Any]:
    not_back = [*state.open(ABSENT)]
    return {"instance_ids": [*known.instance_ids], **({"not_back": not_back} if not_back else {}), "cleared": True}
