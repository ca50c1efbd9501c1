"""Static members over time: who stands for an instance id, who is away, and two that fight over it (KIP-345).

An instance id is one process's identity; the member id under it changes with every restart. What is written of it:

    protocol   a process that                 writes
    classic    stops                          nothing, until its session expires; then it is gone like any other
               is started again in time       the same generation with another member id: no rebalance
               ... while the group moves      the next generation with another member id
    consumer   stops                          epoch -2: away, its partitions kept (nothing if it dies)
               is started again in time       tombstones and the new id's records in one step, no new epoch
               comes while the other lives    nothing: it is refused (UNRELEASED_INSTANCE_ID)

So a member that goes in the step in which another of its instance id comes is told as one and the same:

    the former one was away               static_member_returned
    it was not                            static_member_replaced: a restart, or another process of the same id
    again and again within minutes        static_member_contended: two processes, each throwing the other out

Coming back without a new epoch is a rebalance saved, and is counted. How long a member may be away is its session
timeout. The log has that of a classic member only; of a consumer-protocol one it is configuration (of the group,
`consumer.session.timeout.ms`, or of the broker, `group.consumer.session.timeout.ms`), and told as unknown.
"""

from __future__ import annotations

from binascii import crc32
from collections.abc import Iterator
from typing import Any, Final

from coordinator_model.clocks import elapsed_ms, within
from coordinator_model.conclusions import Finding, Place, events_of
from coordinator_model.events import INFO, Event
from coordinator_model.group_state import (
    ClassicMember,
    FormerMember,
    GroupState,
    InstanceHistory,
    Membership,
)
from coordinator_model.roster import Member, is_absent, members_of, named, replacements

CONTENDED_REPLACEMENTS: Final = 3
CONTENDED_WINDOW_MS: Final = 120_000
"""So many take-overs of one instance id in so short a time are no restarts."""

FORMER_KEPT: Final = 8
"""Former member ids that are remembered of an instance id."""

_SAY_IT_IS_OVER_MS: Final = 60_000
"""How long a look may find that a fight is over: longer than two looks are apart, and not for ever."""


def follow(state: GroupState, before: Membership, after: Membership, place: Place) -> Iterator[Finding]:
    """Advance `state.instances` over one step; yields who is away, is back or was replaced, and contention once."""
    was, now = members_of(before), members_of(after)
    saved = before.type == after.type and before.epoch == after.epoch
    for former, member in replacements(was, now):
        yield _back(state, former, member, place.timestamp_ms, saved=saved)
    for member_id, member in now.items():
        if is_absent(member) and not (member_id in was and is_absent(was[member_id])):
            detail = {**named(member), "partitions": _held(member), "session_timeout_ms": session_timeout_ms(member)}
            yield Finding("static_member_absent", detail)
    standing = {member.instance_id: member for member in now.values() if member.instance_id is not None}
    of_before = {member.instance_id: member for member in was.values() if member.instance_id is not None}
    for instance_id, member in standing.items():
        history = state.instances.get(instance_id)
        if history is None:
            history = InstanceHistory(member_id=member.member_id, since_ms=place.timestamp_ms)
            state.instances[instance_id] = history
        history.absent_since_ms = (history.absent_since_ms or place.timestamp_ms) if is_absent(member) else None
        if history.member_id != member.member_id:
            history.bounces += saved
            yield from _taken_over(instance_id, history, of_before.get(instance_id), member, place)
    for instance_id in state.instances.keys() - standing.keys():
        del state.instances[instance_id]


def over(state: GroupState, now_ms: int) -> list[Event]:
    """Fights that are over by now, nothing being written then: to be asked once a minute or oftener."""
    events: list[Event] = []
    for instance_id, history in state.instances.items():
        quiet_ms = now_ms - max(history.replaced_ms, default=now_ms)
        if history.contended and CONTENDED_WINDOW_MS < quiet_ms <= CONTENDED_WINDOW_MS + _SAY_IT_IS_OVER_MS:
            detail = {"instance_id": instance_id, "member_ids": [history.member_id], "cleared": True}
            finding = Finding("static_member_contended", detail, severity=INFO, inferred=True)
            place = Place(state.partition, history.replaced_offset, history.replaced_ms[-1])
            events += events_of(state.name, place, [finding], first_ordinal=crc32(instance_id.encode()))
    return events


def session_timeout_ms(member: Member) -> int | None:
    """How long the member may be silent; None where the log does not tell."""
    stated = member.session_timeout_ms if isinstance(member, ClassicMember) else member.classic_session_timeout_ms
    return stated if stated > 0 else None


def _back(state: GroupState, former: Member, member: Member, time_ms: int, *, saved: bool) -> Finding:
    counters = state.counters
    counters.rebalances_saved += saved
    detail = {
        **named(member),
        "former_member_id": former.member_id,
        "partitions": _held(member),
        "rebalance_saved": saved,
    }
    if not is_absent(former):
        counters.static_replacements += 1
        return Finding("static_member_replaced", detail)
    counters.static_returns += 1
    history = state.instances.get(member.instance_id or "")
    if history is not None and history.absent_since_ms is not None:
        detail["absent_ms"] = elapsed_ms(history.absent_since_ms, time_ms)
    return Finding("static_member_returned", detail)


def _taken_over(
    instance_id: str, history: InstanceHistory, former: Member | None, member: Member, place: Place
) -> Iterator[Finding]:
    time_ms = place.timestamp_ms
    former_id, former_since_ms = history.member_id, history.since_ms
    history.former = (*history.former, FormerMember(member_id=former_id, since_ms=former_since_ms))[-FORMER_KEPT:]
    history.member_id, history.since_ms = member.member_id, time_ms
    recent = history.replaced_ms
    if former is not None and not is_absent(former):
        recent, history.replaced_offset = (*recent, time_ms), place.offset
    history.replaced_ms = tuple(ms for ms in recent if within(CONTENDED_WINDOW_MS, ms, time_ms))
    fight = len(history.replaced_ms) >= CONTENDED_REPLACEMENTS
    if fight and not history.contended:
        detail = {
            "instance_id": instance_id,
            "member_ids": sorted((former_id, member.member_id)),
            "client_hosts": sorted({member.client_host, *([] if former is None else [former.client_host])}),
            "partitions": _held(member),
            "replacements": len(history.replaced_ms),
            "window_ms": CONTENDED_WINDOW_MS,
        }
        yield Finding("static_member_contended", detail, inferred=True)
    history.contended = fight


def _held(member: Member) -> dict[str, Any]:
    return {topic: list(partitions) for topic, partitions in sorted(member.assigned.items())}
