"""What nothing is written of: the things that should have happened by now.

A rebalance that hangs leaves no record, so the log alone never shows it; the clock does. These questions take the time
as an argument and are put again and again to a state that does not change. What they find is inferred, and belongs to
the record that began what is overdue: as long as that lasts it is the same finding, whatever else is written meanwhile.

    kind               waits for     holds when
    rebalance_stuck    members       one has yet to revoke, or to hear of the target, beyond its own rebalance timeout
                       partitions    no member has to, and still one lacks partitions after the longest timeout of all
                       assignor      no target was computed for a minute, though a member calls in that asks for it;
                                     longer by a while where a streams group has its first members
    migration_stalled                a group of both kinds of members, and for half an hour none came or went

A member's time runs from the last record of it: with each the coordinator restarts its timer. It does so, too, when
the group's coordinator moves to another broker, so no time runs from before that (`moved_ms`). Records of a broker
whose clock is wrong have times long before they were written, or yet to come: then it runs from when they were read
(`read_ms`). Nor does it run from before the end of a time in which no coordinator worked (`silences.py`).

Of a classic rebalance neither beginning nor members are in the log; `hang_suspicion.py` says of whom to ask the broker.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

from coordinator_model.clocked.moment import Moment
from coordinator_model.groups import consumer, streams
from coordinator_model.migration import phases
from coordinator_model.rules import rebalances
from coordinator_model.rules.fencing import not_released
from coordinator_model.rules.members import units
from coordinator_model.state.events import Event
from coordinator_model.state.findings import Finding, Position, events_of
from coordinator_model.state.group_state import GroupState
from coordinator_model.state.membership import STREAMS, ModernGroup, ModernMember, Partitions
from coordinator_model.state.rule_memory import Rebalance

MOST_NAMED: Final = 20
"""So many members that were not upgraded are named."""

GRACE_MS: Final = 10_000
"""Beyond the timeout, before a member is called late: the coordinator removes it, which is written a little after."""

ASSIGNING_MS: Final = 60_000
"""The target is computed with some member's next heartbeat, seconds away; a minute is an assignor that fails."""

STREAMS_DELAY_MS: Final = 300_000
"""A streams group whose first members come waits for more of them: `group.streams.initial.rebalance.delay.ms`, three
seconds by default, and not in the log. More than five minutes is no delay but a hang."""

STALLED_MS: Final = 1_800_000
"""A roll takes minutes a member; half an hour without one is a roll that was abandoned."""

UNRELEASED: Final[Mapping[str, int]] = {STREAMS: streams.MEMBER_UNRELEASED}
"""Family → state of a member that waits for what others hold, where it is not the consumer group's."""


def rebalance_stuck(moment: Moment) -> Iterator[Event]:
    """The rebalance of a consumer, share or streams group that waits beyond its timeouts."""
    state, rebalance = moment.state, moment.state.rebalance
    if rebalance is not None and state.membership.classic_group is None:
        position = Position(state.partition, rebalance.offset, rebalance.since_ms)
        found = _stuck(state, rebalance, moment.now_ms, moment.moved_ms or 0, moment.read_ms)
        yield from events_of(state.name, position, found)


def migration_stalled(moment: Moment) -> Iterator[Event]:
    """The migration of a group of both kinds of members in which none came or went for half an hour."""
    state, migration, now_ms = moment.state, moment.state.migration, moment.now_ms
    if not migration.mixed:
        return
    mixed_ms = migration.mixed_since_ms
    written_ms = migration.changed_ms or mixed_ms or state.last_step_ms
    since_ms = None if mixed_ms is None else effective_start_ms(mixed_ms, now_ms, moment.read_ms)
    changed_ms = effective_start_ms(written_ms, now_ms, moment.read_ms)
    position = Position(state.partition, migration.changed_offset, written_ms)
    yield from events_of(state.name, position, _stalled(state, since_ms, changed_ms, now_ms))


def effective_start_ms(since_ms: int, now_ms: int, read_ms: int | None) -> int:
    """A time of the log, or the time of reading where the log's is before it or yet to come."""
    return since_ms if read_ms is None or read_ms <= since_ms <= now_ms else read_ms


def _stuck(
    state: GroupState, rebalance: Rebalance, now_ms: int, moved_ms: int, read_ms: int | None
) -> Iterator[Finding]:
    group = state.membership.modern_group
    if group is None or not rebalances.under_way(group):
        return

    def passed_ms(since_ms: int) -> int:
        return now_ms - max(effective_start_ms(since_ms, now_ms, read_ms), moved_ms)

    def waited_ms(member: ModernMember) -> int:
        return passed_ms(rebalance.unsettled_since_ms.get(member.member_id, state.last_step_ms))

    waiting = [member for member in rebalances.unsettled(group) if _waits(group, member)]
    moving = [member for member in rebalances.unsettled(group) if not _waits(group, member)]
    late = [member for member in moving if waited_ms(member) > rebalances.timeout_ms(member) + GRACE_MS]
    longest_ms = max(map(rebalances.timeout_ms, group.members.values()))
    in_vain = [member for member in waiting if not moving and waited_ms(member) > longest_ms + GRACE_MS]
    since_ms = rebalance.assigning_since_ms
    new = group.family == STREAMS and not rebalance.owners
    allowed_ms = ASSIGNING_MS + (STREAMS_DELAY_MS if new else 0)
    calls_in = any(not member.is_absent_static for member in group.members.values())
    assigning = calls_in and since_ms is not None and passed_ms(since_ms) > allowed_ms
    if not late and not in_vain and not assigning:
        return
    detail = {
        "epoch": group.epoch,
        "assignment_epoch": group.assignment_epoch,
        "waiting_for": "members" if late else "partitions" if in_vain else "assignor",
        "members": [_shown(group, member, waited_ms(member)) for member in late or in_vain],
        "rebalancing_ms": now_ms - effective_start_ms(rebalance.since_ms, now_ms, read_ms),
        "silent_ms": now_ms - effective_start_ms(state.last_step_ms, now_ms, read_ms),
    }
    moved = {"coordinator_moved": True} if moved_ms > rebalance.since_ms else {}
    yield Finding("rebalance_stuck", {**detail, **moved, **units(state.membership)}, inferred=True)


def _stalled(state: GroupState, since_ms: int | None, changed_ms: int, now_ms: int) -> Iterator[Finding]:
    if now_ms - max(since_ms or changed_ms, changed_ms) <= STALLED_MS:
        return
    classic, upgraded = phases.members_by_protocol(state.membership)
    detail = {
        "direction": state.migration.direction,
        "members": classic + upgraded,
        "upgraded_members": upgraded,
        "mixed_ms": None if since_ms is None else now_ms - since_ms,
        "classic_members": {
            member_id: progress.situation
            for member_id, progress in sorted(state.migration.classic_members.items())[:MOST_NAMED]
        },
    }
    yield Finding("migration_stalled", detail, inferred=True)


def _waits(group: ModernGroup, member: ModernMember) -> bool:
    """Whether the member has done its part and waits for partitions of others."""
    unreleased = UNRELEASED.get(group.family, consumer.MEMBER_UNRELEASED)
    return member.state == unreleased and member.epoch == group.assignment_epoch


def _shown(group: ModernGroup, member: ModernMember, waited_ms: int) -> dict[str, Any]:
    awaits = _awaited(group, member) if _waits(group, member) else {}
    return {
        "member_id": member.member_id,
        "instance_id": member.instance_id,
        "client_id": member.client_id,
        "client_host": member.client_host,
        "epoch": member.epoch,
        "late_ms": waited_ms,
        "will_not_release": _all_of(not_released(group, member), *_tasks_to_revoke(member)),
        "awaits": awaits,
        "held_by": _holders(group, member, awaits),
    }


def _all_of(*held: Mapping[str, Collection[int]]) -> dict[str, list[int]]:
    topics = sorted({topic for of in held for topic, partitions in of.items() if partitions})
    return {topic: sorted({each for of in held for each in of.get(topic, ())}) for topic in topics}


def _tasks_to_revoke(member: ModernMember) -> tuple[Partitions, Partitions]:
    """Of a streams group, beside active ones: a member may be held up by a standby task as well."""
    return member.standby_pending_revocation, member.warmup_pending_revocation


def _holders(group: ModernGroup, waits: ModernMember, awaited: Mapping[str, list[int]]) -> list[dict[str, Any]]:
    """Who still holds what a member waits for, and as what; of all but streams groups as its owner."""
    found = []
    for member_id, member in sorted(group.members.items()):
        roles: tuple[tuple[str, tuple[Partitions, ...]], ...] = (
            ("active", (member.assigned, member.pending_revocation)),
            ("standby", (member.standby_tasks, member.standby_pending_revocation)),
            ("warmup", (member.warmup_tasks, member.warmup_pending_revocation)),
        )
        for role, held in roles:
            both = {topic: sorted({*parts} & {*_all_of(*held).get(topic, ())}) for topic, parts in awaited.items()}
            partitions = {topic: parts for topic, parts in both.items() if parts}
            if partitions and member_id != waits.member_id:
                who = {name: getattr(member, name) for name in ("member_id", "instance_id", "client_id", "client_host")}
                found.append({**who, "partitions": partitions, **({"as": role} if group.family == STREAMS else {})})
    return found[:MOST_NAMED]


def _awaited(group: ModernGroup, member: ModernMember) -> dict[str, list[int]]:
    """Partitions of the member's target that it does not hold yet."""
    task_target = group.task_targets.get(member.member_id)
    if task_target is None:
        return _lacking(group.targets.get(member.member_id, {}), member.assigned)
    roles = (
        (task_target.active, member.assigned),
        (task_target.standby, member.standby_tasks),
        (task_target.warmup, member.warmup_tasks),
    )
    return _all_of(*(_lacking(target, held) for target, held in roles))


def _lacking(target: Partitions, held: Partitions) -> dict[str, list[int]]:
    lacking = {topic: sorted({*parts} - {*held.get(topic, ())}) for topic, parts in target.items()}
    return {topic: partitions for topic, partitions in lacking.items() if partitions}
