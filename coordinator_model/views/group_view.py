"""A group as `docs/schemas/group-state.schema.json` has it: what `replay --json` prints and the API serves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from coordinator_model.groups import classic, consumer, share, streams
from coordinator_model.migration import (
    classic_protocol_members,
    downgrade_check,
    leftover_records,
    phases,
    upgrade_blockers,
    upgrade_check,
)
from coordinator_model.rules import scaling, static_members, subscriptions
from coordinator_model.rules.members import members_of, session_timeout_ms
from coordinator_model.rules.members import named as named_member
from coordinator_model.state.group_state import GroupState
from coordinator_model.state.membership import (
    CONSUMER,
    SHARE,
    STREAMS,
    ClassicGroup,
    ClassicMember,
    ModernGroup,
    ModernMember,
    Partitions,
)
from coordinator_model.state.offsets import CommittedOffset
from coordinator_model.views import member_details, modern_groups, streams_tasks
from coordinator_model.views.modern_groups import listed

TopicNames = Mapping[str, str]
"""Topic id → name, as far as known."""

STATES = {CONSUMER: consumer.state, SHARE: share.state, STREAMS: streams.state}
MEMBER_STATES: Mapping[str, Mapping[int, str]] = {
    CONSUMER: consumer.MEMBER_STATES,
    SHARE: share.MEMBER_STATES,
    STREAMS: streams.MEMBER_STATES,
}


def group_view(
    state: GroupState,
    offsets: Iterable[tuple[str, int, CommittedOffset]],
    topic_names: TopicNames,
    now_ms: int | None = None,
) -> dict[str, Any]:
    """The GROUP object. Offsets come as (topic, partition, committed offset), in the order to show them.

    `now_ms` is the moment to show; without it, the time of the group's last record. An offset's `subscribed` is None
    where it is not known whether a member reads its topic, as in a group without members.
    """
    modern = state.membership.modern_group
    reads = subscriptions.reader(state.membership)
    return {
        "group": state.name,
        "type": state.type,
        "state": group_state(state),
        "epoch": state.epoch if state.epoch >= 0 else None,
        "assignment_epoch": None if modern is None else modern.assignment_epoch,
        "protocol": _protocol(state),
        "protocol_type": _protocol_type(state),
        "simple": state.simple,
        "members": members_view(state, topic_names, now_ms),
        "offsets": [{**_offset_view(*each), "subscribed": reads(each[0])} for each in offsets],
        "migration": migration_view(state),
        **_past(state, state.last_step_ms if now_ms is None else now_ms),
        **({} if modern is None else modern_groups.group_keys(modern)),
    }


def group_state(state: GroupState) -> str:
    """State as Kafka's own tools print it: as the coordinator answered, or as far as the log shows."""
    if state.polled_state:
        return state.polled_state
    modern = state.membership.modern_group
    if modern is not None:
        return STATES[modern.family](modern)
    return classic.EMPTY if state.membership.classic is None else classic.state(state.membership.classic)


def _past(state: GroupState, now_ms: int) -> dict[str, Any]:
    """What is remembered of the way the group came: only where there is something."""
    found: dict[str, Any] = {"static_members": static_members_view(state, now_ms)} if state.instances else {}
    if state.newer_versions:
        found["newer_value_versions"] = dict(sorted(state.newer_versions.items(), key=lambda item: int(item[0])))
    if state.scaling is not None and state.scaling.changed > 1:
        found["scaling"] = scaling.view(state.scaling)
    return found


def static_members_view(state: GroupState, now_ms: int) -> list[dict[str, Any]]:
    """Who stands for each instance id, who did before, and who is away; times in ms, None for what is not known."""
    members = members_of(state.membership)
    return [
        {
            "instance_id": instance_id,
            "member_id": history.member_id,
            "since": _known_ms(history.since_ms),
            "former": [{"member_id": of.member_id, "since": _known_ms(of.since_ms)} for of in history.former],
            "rebalances_saved": history.bounces,
            "absent_since": history.absent_since_ms,
            "session_timeout_ms": session_timeout_ms(members[history.member_id]),
            "contended": static_members.is_open(state, static_members.CONTENDED, instance_id, now_ms),
            "restarting": static_members.is_open(state, static_members.RESTARTING, instance_id, now_ms),
        }
        for instance_id, history in sorted(state.instances.items())
        if history.member_id in members
    ]


def _known_ms(time_ms: int) -> int | None:
    return time_ms if time_ms >= 0 else None


def migration_view(state: GroupState) -> dict[str, Any]:
    """Its Migration, and beyond it what is left over by record type, and the conversions.

    `out_of_scope` says why nothing is to be converted, None where something is. `members_before` is None but during an
    upgrade, `downgrade` None where there was none since the last upgrade, and `upgrade` None where there was no online
    one since the last downgrade.
    """
    old, new = phases.members_by_protocol(state.membership)
    return {
        "phase": phases.phase(state),
        "members": old + new,
        "upgraded_members": new,
        "mixed_since": state.migration.mixed_since_ms,
        "blockers": upgrade_blockers.blockers(state.membership),
        "out_of_scope": upgrade_blockers.out_of_scope(state.membership.classic_group),
        "leftovers": state.membership.leftovers(),
        "leftover_types": leftover_records.left_over(state.membership),
        "conversions": {"upgrade": state.counters.upgrades, "downgrade": state.counters.downgrades},
        "members_before": state.migration.members_before if state.migration.direction == phases.UPGRADE else None,
        "downgrade": downgrade_check.view(state.migration.downgrade),
        "upgrade": upgrade_check.view(state.migration.upgrade),
        **(_NOT_POLLED if state.polled_state else {}),
    }


_NOT_POLLED: Final[Mapping[str, None]] = dict.fromkeys(("leftovers", "leftover_types", "conversions"))
"""What only the log has of a migration."""


def members_view(state: GroupState, topic_names: TopicNames, now_ms: int | None = None) -> list[dict[str, Any]]:
    """Its Members, by member id. Those on the classic protocol in a consumer group say how far they are."""
    modern = state.membership.modern_group
    if modern is not None:
        translated = _classic_protocol_views(state, modern, topic_names, now_ms)
        held = classic_protocol_members.holders(modern) if modern.family == CONSUMER else {}
        views = [
            {**_modern_member(modern, member, topic_names, held), **translated.get(member.member_id, {})}
            for member in modern.members.values()
        ]
    elif state.membership.classic is not None:
        group = state.membership.classic
        tasks = streams_tasks.task_views(group)
        views = [
            {**_classic_member(group, member), **tasks.get(member.member_id, {})} for member in group.members.values()
        ]
    else:
        views = []
    return sorted(views, key=lambda view: str(view["member_id"]))


_IDS: Final = frozenset({"topic_id", "former_topic_id"})
"""Fields of an event's detail that hold topic ids."""


def named(detail: Any, topic_names: TopicNames) -> Any:
    """An event's detail with topic ids replaced by names where they are known: `id` and `id/partition` alike.

    What a field says to be an id stays one.
    """
    if isinstance(detail, str):
        topic, slash, rest = detail.partition("/")
        return topic_names.get(topic, topic) + slash + rest
    if isinstance(detail, Mapping):
        return {
            named(key, topic_names): item if key in _IDS else named(item, topic_names) for key, item in detail.items()
        }
    if isinstance(detail, list | tuple):
        return [named(item, topic_names) for item in detail]
    return detail


def _protocol(state: GroupState) -> str | None:
    modern = state.membership.modern_group
    if modern is not None:
        return consumer.preferred_assignor(modern)
    return None if state.membership.classic is None else state.membership.classic.protocol


def _protocol_type(state: GroupState) -> str | None:
    """Of a classic group: `consumer`, `connect` and whatever else joins; None where no member said, and of others."""
    group = state.membership.classic_group
    return None if group is None else group.protocol_type or None


def _classic_member(group: ClassicGroup, member: ClassicMember) -> dict[str, Any]:
    assigned = listed(member.assigned)
    return {
        **named_member(member),
        "epoch": group.generation if group.generation >= 0 else None,
        "state": classic.STABLE,
        "assigned": assigned,
        "pending_revocation": {},
        "target": dict(assigned),
        **member_details.of_classic(group, member),
    }


def _classic_protocol_views(
    state: GroupState, group: ModernGroup, topic_names: TopicNames, now_ms: int | None
) -> dict[str, dict[str, Any]]:
    """Member id → what `classic_protocol_members.py` says of it; nothing of members on the group's own protocol."""
    classic = [member for member in group.members.values() if member.uses_classic_protocol]
    held = classic_protocol_members.holders(group) if classic else {}
    now_ms = max(state.last_step_ms, -1 if now_ms is None else now_ms)
    return {
        member.member_id: {"classic_protocol": _classic_protocol_view(state, group, member, held, topic_names, now_ms)}
        for member in classic
    }


def _classic_protocol_view(  # noqa: PLR0913 - a member, whom it waits for, and the moment
    state: GroupState,
    group: ModernGroup,
    member: ModernMember,
    held: classic_protocol_members.PartitionHolders,
    topic_names: TopicNames,
    now_ms: int,
) -> dict[str, Any]:
    progress = state.migration.classic_members.get(member.member_id)
    now = classic_protocol_members.state_of(group, member, held, progress, now_ms)
    return {
        "state": now.state,
        "inferred": now.inferred,
        "situation": now.situation,
        "since": now.since_ms,
        "rebalance_protocol": now.rebalance_protocol,
        "rebalance_protocol_inferred": now.rebalance_protocol_inferred,
        "assignors": list(member.claims),
        "embedded_version": classic_protocol_members.embedded_version(member),
        "keeps": listed(now.keeps, topic_names),
        "revokes": listed(now.revokes, topic_names),
        "waits_for": {of: listed(parts, topic_names) for of, parts in now.waits_for.items()},
    }


def _modern_member(
    group: ModernGroup, member: ModernMember, topic_names: TopicNames, held: classic_protocol_members.PartitionHolders
) -> dict[str, Any]:
    def shown(parts: Partitions) -> dict[str, list[int]]:
        if group.family == STREAMS:
            return listed(streams.partitions_of_tasks(group, parts))
        return listed(parts, topic_names)

    tasks = group.task_targets.get(member.member_id)
    return {
        **named_member(member),
        "epoch": member.epoch,
        "state": MEMBER_STATES[group.family].get(member.state, "Unknown"),
        "assigned": shown(member.assigned),
        "pending_revocation": shown(member.pending_revocation),
        "target": shown(group.targets.get(member.member_id, {}) if tasks is None else tasks.active),
        **(member_details.of_consumer(group, member, held, topic_names) if group.family == CONSUMER else {}),
        **modern_groups.member_keys(group, member),
    }


def _offset_view(topic: str, partition: int, committed: CommittedOffset) -> dict[str, Any]:
    return {
        "topic": topic,
        "partition": partition,
        # Clients that have read nothing yet commit -1 or -2; Kafka's tool prints `-`.
        "offset": committed.offset if committed.offset >= 0 else None,
        "leader_epoch": committed.leader_epoch,
        "metadata": committed.metadata,
        "commit_timestamp": committed.commit_timestamp_ms if committed.commit_timestamp_ms >= 0 else None,
        "topic_id": committed.topic_id,
    }
