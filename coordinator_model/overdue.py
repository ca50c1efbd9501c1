"""What nothing is written of: the things that should have happened by now.

A rebalance that hangs leaves no record, so the log alone never shows it; the clock does. These questions take the time
as an argument and are put again and again to a state that does not change. What they find is inferred, and belongs to
the record that began what is overdue: as long as that lasts it is the same finding, whatever else is written meanwhile.

    kind               waits for     holds when
    rebalance_stuck    members       one has yet to revoke, or to hear of the target, beyond its own rebalance timeout
                       partitions    nobody has to, and still one lacks partitions after the longest timeout of all
                       assignor      no target was computed for a minute
    migration_stalled                a group of both kinds of members, and for half an hour none came or went

A member's time runs from the last record of it: with each the coordinator starts its timer anew. It does so, too, when
the group's coordinator moves to another broker, so no time runs from before that (`moved_ms`). Records of a broker
whose clock is wrong have times long before they were written, or yet to come: then it runs from when they were read
(`read_ms`).

Of a classic rebalance neither beginning nor members are in the log; `suspects.py` tells whom to ask the broker about.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from coordinator_model import migration, rebalances
from coordinator_model.conclusions import Finding, Place, events_of
from coordinator_model.events import Event
from coordinator_model.group_state import STREAMS, GroupState, ModernGroup, ModernMember, Partitions, Rebalance
from coordinator_model.groups import consumer, streams

MOST_NAMED: Final = 20
"""So many members that were not upgraded are named."""

GRACE_MS: Final = 10_000
"""Beyond the timeout, before a member is called late: the coordinator removes it, which is written a little after."""

ASSIGNING_MS: Final = 60_000
"""The target is computed with some member's next heartbeat, seconds away; a minute is an assignor that fails."""

STALLED_MS: Final = 1_800_000
"""A roll takes minutes a member; half an hour without one is a roll nobody is at."""

UNRELEASED: Final[Mapping[str, int]] = {STREAMS: streams.MEMBER_UNRELEASED}
"""Family → state of a member that waits for what others hold, where it is not the consumer group's."""


def events(state: GroupState, now_ms: int, moved_ms: int | None = None, read_ms: int | None = None) -> list[Event]:
    """What is overdue in a group at this moment. Most groups are between no two states, and asked nothing.

    Args:
        state: the group.
        now_ms: the time, by the brokers' clocks.
        moved_ms: when the group's coordinator was last seen to move; None for never.
        read_ms: when the last step was read whose time was another one; None where all times may be believed.
    """
    found: list[Event] = []
    if state.rebalance is not None:
        rebalance = state.rebalance
        place = Place(state.partition, rebalance.offset, rebalance.since_ms)
        found += events_of(state.name, place, _stuck(state, rebalance, now_ms, moved_ms or 0, read_ms))
    if state.migration.mixed_since_ms is not None:
        changed_ms = state.migration.changed_ms or state.migration.mixed_since_ms
        since_ms = believed_ms(state.migration.mixed_since_ms, now_ms, read_ms)
        place = Place(state.partition, state.migration.changed_offset, changed_ms)
        found += events_of(
            state.name, place, _stalled(state, since_ms, believed_ms(changed_ms, now_ms, read_ms), now_ms)
        )
    return found


def believed_ms(since_ms: int, now_ms: int, read_ms: int | None) -> int:
    """A time of the log, or that of reading where there is one and the log's is before it, or yet to come."""
    return since_ms if read_ms is None or read_ms <= since_ms <= now_ms else read_ms


def _stuck(
    state: GroupState, rebalance: Rebalance, now_ms: int, moved_ms: int, read_ms: int | None
) -> Iterator[Finding]:
    group = state.membership.modern_group
    if group is None or not rebalances.under_way(group):
        return

    def passed_ms(since_ms: int) -> int:
        return now_ms - max(believed_ms(since_ms, now_ms, read_ms), moved_ms)

    def waited_ms(member: ModernMember) -> int:
        return passed_ms(rebalance.unsettled_since_ms.get(member.member_id, state.last_step_ms))

    waiting = [member for member in rebalances.unsettled(group) if _waits(group, member)]
    moving = [member for member in rebalances.unsettled(group) if not _waits(group, member)]
    late = [member for member in moving if waited_ms(member) > rebalances.timeout_ms(member) + GRACE_MS]
    longest_ms = max(map(rebalances.timeout_ms, group.members.values()))
    in_vain = [member for member in waiting if not moving and waited_ms(member) > longest_ms + GRACE_MS]
    since_ms = rebalance.assigning_since_ms
    assigning = since_ms is not None and passed_ms(since_ms) > ASSIGNING_MS
    if not late and not in_vain and not assigning:
        return
    detail = {
        "epoch": group.epoch,
        "assignment_epoch": group.assignment_epoch,
        "waiting_for": "members" if late else "partitions" if in_vain else "assignor",
        "members": [_shown(group, member, waited_ms(member)) for member in late or in_vain],
        "rebalancing_ms": now_ms - believed_ms(rebalance.since_ms, now_ms, read_ms),
        "silent_ms": now_ms - believed_ms(state.last_step_ms, now_ms, read_ms),
    }
    moved = {"coordinator_moved": True} if moved_ms > rebalance.since_ms else {}
    yield Finding("rebalance_stuck", {**detail, **moved}, inferred=True)


def _stalled(state: GroupState, since_ms: int, changed_ms: int, now_ms: int) -> Iterator[Finding]:
    if now_ms - max(since_ms, changed_ms) <= STALLED_MS:
        return
    classic, upgraded = migration.members_by_protocol(state.membership)
    detail = {
        "direction": state.migration.direction,
        "members": classic + upgraded,
        "upgraded_members": upgraded,
        "mixed_ms": now_ms - since_ms,
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
    return {
        "member_id": member.member_id,
        "instance_id": member.instance_id,
        "epoch": member.epoch,
        "late_ms": waited_ms,
        "will_not_release": {topic: list(partitions) for topic, partitions in member.pending_revocation.items()},
        "awaits": _awaited(group, member) if _waits(group, member) else {},
    }


def _awaited(group: ModernGroup, member: ModernMember) -> dict[str, list[int]]:
    """Partitions of the member's target that it does not hold yet."""
    task_target = group.task_targets.get(member.member_id)
    target: Partitions = group.targets.get(member.member_id, {}) if task_target is None else task_target.active
    lacking = {topic: sorted({*parts} - {*member.assigned.get(topic, ())}) for topic, parts in target.items()}
    return {topic: partitions for topic, partitions in lacking.items() if partitions}
