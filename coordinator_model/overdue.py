"""What nothing is written of: the things that should have happened by now.

A rebalance that hangs leaves no record, so the log alone never shows it; the clock does. These questions take the time
as an argument and are put again and again to a state that does not change. What they find is inferred, and belongs to
the last record written of the group: as long as nothing else is, it is the same finding.

    kind               holds when
    rebalance_stuck    a member has not reached the target within its own rebalance timeout of the last record, or no
                       target was computed for a minute
    migration_stalled  a group of both kinds of members, and for half an hour none came or went

Of a classic rebalance neither beginning nor members are in the log; silence alone is no finding here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from coordinator_model import migration, rebalances
from coordinator_model.conclusions import Finding, Place
from coordinator_model.group_state import STREAMS, GroupState, ModernGroup, ModernMember
from coordinator_model.groups import consumer, modern, streams

DEFAULT_REBALANCE_TIMEOUT_MS: Final = 300_000
"""Where no member says its own: max.poll.interval.ms of Kafka's consumer."""

GRACE_MS: Final = 10_000
"""Beyond the timeout, before a member is called late: the coordinator removes it, which is written a little after."""

ASSIGNING_MS: Final = 60_000
"""The target is computed with some member's next heartbeat, seconds away; a minute is an assignor that fails."""

STALLED_MS: Final = 1_800_000
"""A roll takes minutes a member; half an hour without one is a roll nobody is at."""


def findings(state: GroupState, now_ms: int) -> list[Finding]:
    """What is overdue in a group at this moment. Most groups are between no two states, and asked nothing."""
    if state.rebalance is None and state.migration.mixed_since_ms is None:
        return []
    return [*_stuck(state, now_ms), *_stalled(state, now_ms)]


def place(state: GroupState) -> Place:
    """The record that a finding belongs to: the last one written of the group's membership."""
    return Place(state.partition, state.last_step_offset, state.last_step_ms)


def _stuck(state: GroupState, now_ms: int) -> Iterator[Finding]:
    group = state.membership.modern_group
    if group is None or state.rebalance is None or not rebalances.under_way(group):
        return
    silent_ms = now_ms - state.last_step_ms
    late = [member for member in _unsettled(group) if silent_ms > _allowed_ms(member)]
    assigning = group.epoch > group.assignment_epoch and silent_ms > ASSIGNING_MS
    if not late and not assigning:
        return
    yield Finding(
        "rebalance_stuck",
        {
            "epoch": group.epoch,
            "assignment_epoch": group.assignment_epoch,
            "waiting_for": "members" if late else "assignor",
            "members": [_shown(member) for member in late],
            "silent_ms": silent_ms,
        },
        inferred=True,
    )


def _stalled(state: GroupState, now_ms: int) -> Iterator[Finding]:
    changed_ms, since_ms = state.migration.changed_ms, state.migration.mixed_since_ms
    if since_ms is None or now_ms - max(since_ms, changed_ms or since_ms) <= STALLED_MS:
        return
    classic, upgraded = migration.members_by_protocol(state.membership)
    detail = {
        "direction": state.migration.direction,
        "members": classic + upgraded,
        "upgraded_members": upgraded,
        "mixed_ms": now_ms - since_ms,
    }
    yield Finding("migration_stalled", detail, inferred=True)


def _unsettled(group: ModernGroup) -> list[ModernMember]:
    stable = streams.MEMBER_STABLE if group.family == STREAMS else consumer.MEMBER_STABLE
    return [member for member in modern.unsettled_members(group, stable) if not member.is_absent_static]


def _allowed_ms(member: ModernMember) -> int:
    timeout_ms = member.rebalance_timeout_ms
    return (timeout_ms if timeout_ms > 0 else DEFAULT_REBALANCE_TIMEOUT_MS) + GRACE_MS


def _shown(member: ModernMember) -> dict[str, Any]:
    held = {topic: list(partitions) for topic, partitions in member.pending_revocation.items()}
    return {"member_id": member.member_id, "epoch": member.epoch, "will_not_release": held}
