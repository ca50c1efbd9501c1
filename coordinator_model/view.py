"""A group as the contract's GROUP object: what `replay --json` prints and the API serves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from coordinator_model import migration, roster
from coordinator_model.group_state import (
    CONSUMER,
    SHARE,
    STREAMS,
    ClassicGroup,
    ClassicMember,
    GroupState,
    ModernGroup,
    ModernMember,
    Partitions,
    TaskTarget,
)
from coordinator_model.groups import classic, consumer, share, streams
from coordinator_model.offsets import CommittedOffset

TopicNames = Mapping[str, str]
"""Topic id → name, as far as known."""

STATES = {CONSUMER: consumer.state, SHARE: share.state, STREAMS: streams.state}
MEMBER_STATES: Mapping[str, Mapping[int, str]] = {
    CONSUMER: consumer.MEMBER_STATES,
    SHARE: share.MEMBER_STATES,
    STREAMS: streams.MEMBER_STATES,
}


def group_view(
    state: GroupState, offsets: Iterable[tuple[str, int, CommittedOffset]], topic_names: TopicNames
) -> dict[str, Any]:
    """The contract's GROUP. Offsets come as (topic, partition, committed offset), in the order to show them."""
    modern = state.membership.modern_group
    return {
        "group": state.name,
        "type": state.type,
        "state": group_state(state),
        "epoch": state.epoch,
        "assignment_epoch": None if modern is None else modern.assignment_epoch,
        "protocol": _protocol(state),
        "simple": state.simple,
        "members": members_view(state, topic_names),
        "offsets": [_offset_view(topic, partition, committed) for topic, partition, committed in offsets],
        "migration": migration_view(state),
    }


def group_state(state: GroupState) -> str:
    """State as Kafka's own tools print it, as far as the log tells."""
    modern = state.membership.modern_group
    if modern is not None:
        return STATES[modern.family](modern)
    return classic.EMPTY if state.membership.classic is None else classic.state(state.membership.classic)


def migration_view(state: GroupState) -> dict[str, Any]:
    """The contract's Migration."""
    old, new = migration.members_by_protocol(state.membership)
    return {
        "phase": migration.phase(state),
        "members": old + new,
        "upgraded_members": new,
        "mixed_since": state.migration.mixed_since_ms,
        "blockers": migration.blockers(state.membership),
        "leftovers": state.membership.leftovers(),
    }


def members_view(state: GroupState, topic_names: TopicNames) -> list[dict[str, Any]]:
    """The contract's Members, by member id."""
    modern = state.membership.modern_group
    if modern is not None:
        views = [_modern_member(modern, member, topic_names) for member in modern.members.values()]
    elif state.membership.classic is not None:
        group = state.membership.classic
        views = [_classic_member(group, member) for member in group.members.values()]
    else:
        views = []
    return sorted(views, key=lambda view: str(view["member_id"]))


def named(detail: Any, topic_names: TopicNames) -> Any:
    """An event's detail with topic ids replaced by names where they are known: `id` and `id/partition` alike."""
    if isinstance(detail, str):
        topic, slash, rest = detail.partition("/")
        return topic_names.get(topic, topic) + slash + rest
    if isinstance(detail, Mapping):
        return {named(key, topic_names): named(item, topic_names) for key, item in detail.items()}
    if isinstance(detail, list | tuple):
        return [named(item, topic_names) for item in detail]
    return detail


def _protocol(state: GroupState) -> str | None:
    modern = state.membership.modern_group
    if modern is not None:
        return consumer.preferred_assignor(modern)
    return None if state.membership.classic is None else state.membership.classic.protocol


def _classic_member(group: ClassicGroup, member: ClassicMember) -> dict[str, Any]:
    assigned = _listed(member.assigned)
    return {
        "member_id": member.member_id,
        "instance_id": member.instance_id,
        "client_id": member.client_id,
        "client_host": member.client_host,
        "protocol": "classic",
        "epoch": group.generation,
        "state": classic.STABLE,
        "assigned": assigned,
        "pending_revocation": {},
        "target": dict(assigned),
    }


def _modern_member(group: ModernGroup, member: ModernMember, topic_names: TopicNames) -> dict[str, Any]:
    def shown(parts: Partitions) -> dict[str, list[int]]:
        if group.family == STREAMS:
            return _listed(streams.partitions_of_tasks(group, parts))
        return _listed(parts, topic_names)

    view: dict[str, Any] = {
        "member_id": member.member_id,
        "instance_id": member.instance_id,
        "client_id": member.client_id,
        "client_host": member.client_host,
        "protocol": roster.speaks(member),
        "epoch": member.epoch,
        "state": MEMBER_STATES[group.family].get(member.state, "Unknown"),
        "assigned": shown(member.assigned),
        "pending_revocation": shown(member.pending_revocation),
    }
    if group.family != STREAMS:
        return {**view, "target": shown(group.targets.get(member.member_id, {}))}
    target = group.task_targets.get(member.member_id, TaskTarget())
    tasks = {
        "active": _listed(member.assigned),
        "standby": _listed(member.standby_tasks),
        "warmup": _listed(member.warmup_tasks),
    }
    return {**view, "target": shown(target.active), "tasks": tasks, "process_id": member.process_id}


def _listed(parts: Partitions, topic_names: TopicNames | None = None) -> dict[str, list[int]]:
    names = topic_names or {}
    return dict(sorted((names.get(topic, topic), list(partitions)) for topic, partitions in parts.items()))


def _offset_view(topic: str, partition: int, committed: CommittedOffset) -> dict[str, Any]:
    return {
        "topic": topic,
        "partition": partition,
        "offset": committed.offset,
        "leader_epoch": committed.leader_epoch,
        "metadata": committed.metadata,
        "commit_timestamp": committed.commit_timestamp_ms,
        "topic_id": committed.topic_id,
    }
