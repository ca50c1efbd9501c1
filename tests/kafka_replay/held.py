"""What a replica holds, in the words that `KafkaReplay.java` has for what Kafka holds."""

from collections.abc import Mapping
from typing import Any, Final

from coordinator_model.groups import consumer
from coordinator_model.replica import Replica
from coordinator_model.state.group_state import GroupState
from coordinator_model.state.membership import (
    CONSUMER,
    SHARE,
    STREAMS,
    ClassicGroup,
    ClassicMember,
    InternalTopics,
    ModernGroup,
    ModernMember,
    Partitions,
)
from coordinator_model.views.group_view import group_state
from tests.kafka_replay.judge import Held

CONSUMER_PROTOCOL_TYPE: Final = "consumer"


def held_by(replica: Replica) -> Held:
    """Groups and committed offsets, as far as they exist."""
    there = {name: state for name, state in sorted(replica.groups.items()) if state.exists}
    offsets = {
        name: [
            [topic, partition, of.offset, of.leader_epoch, of.metadata, of.commit_timestamp_ms, of.topic_id]
            for topic, partition, of in replica.offsets(name)
        ]
        for name in there
    }
    return {
        "groups": {
            name: {"type": state.type, "state": group_state(state), **_group(state)} for name, state in there.items()
        },
        "offsets": {name: of for name, of in offsets.items() if of},
    }


def _group(state: GroupState) -> dict[str, Any]:
    modern = state.membership.modern_group
    if modern is None:
        return _classic(state.membership.classic or ClassicGroup(generation=0))
    return {
        "epoch": modern.epoch,
        "assignment_epoch": modern.assignment_epoch,
        "metadata_hash": modern.metadata_hash,
        **OF_FAMILY[modern.family](modern),
    }


def _classic(group: ClassicGroup) -> dict[str, Any]:
    return {
        "simple": not group.protocol_type and not group.members,
        "epoch": group.generation,
        "protocol_type": group.protocol_type,
        "protocol": group.protocol,
        "leader": group.leader,
        "state_timestamp_ms": group.state_timestamp_ms,
        "subscribed_topics": _subscribed(group),
        "members": {member.member_id: _classic_member(member) for member in group.members.values()},
    }


def _subscribed(group: ClassicGroup) -> list[str] | None:
    """Of all members, and None where one's cannot be read."""
    claims = [member.claim for member in group.members.values()]
    if group.protocol_type != CONSUMER_PROTOCOL_TYPE or None in claims:
        return None
    return sorted({topic for claim in claims if claim is not None for topic in claim.topics})


def _classic_member(member: ClassicMember) -> dict[str, Any]:
    return {
        "instance_id": member.instance_id,
        "client_id": member.client_id,
        "client_host": member.client_host,
        "rebalance_timeout_ms": member.rebalance_timeout_ms,
        "session_timeout_ms": member.session_timeout_ms,
        "assigned": _listed(member.assigned),
    }


def _consumer(group: ModernGroup) -> dict[str, Any]:
    return {
        "protocol": consumer.preferred_assignor(group),
        "partition_metadata": group.partition_metadata_live,
        "regexes": {regex: sorted(topics) for regex, topics in group.regexes.items()},
        "targets": {member_id: _listed(parts) for member_id, parts in group.targets.items()},
        "members": {
            member.member_id: {
                **_member(member),
                "subscribed_topics": sorted(set(member.subscribed_topics)),
                "subscribed_regex": member.subscribed_regex,
                "rebalance_timeout_ms": member.rebalance_timeout_ms,
                "server_assignor": member.server_assignor,
                "classic_session_timeout_ms": member.classic_session_timeout_ms,
                "classic_protocols": list(member.claims),
                "uses_classic_protocol": member.uses_classic_protocol,
                "assigned": _listed(member.assigned),
                "pending_revocation": _listed(member.pending_revocation),
                "newest_partition_epoch": member.newest_partition_epoch,
            }
            for member in group.members.values()
        },
    }


def _share(group: ModernGroup) -> dict[str, Any]:
    state = group.delivery_state
    return {
        "delivery_state": {
            "initializing": _listed(state.initializing),
            "initialized": _listed(state.initialized),
            "deleting": len(state.deleting),
        },
        "targets": {member_id: _listed(parts) for member_id, parts in group.targets.items()},
        "members": {
            member.member_id: {
                **_member(member),
                "subscribed_topics": sorted(set(member.subscribed_topics)),
                "assigned": _listed(member.assigned),
            }
            for member in group.members.values()
        },
    }


def _streams(group: ModernGroup) -> dict[str, Any]:
    return {
        "validated_topology_epoch": group.validated_topology_epoch,
        "topology_epoch": group.topology_epoch,
        "subtopologies": {name: _subtopology(group, name) for name in group.subtopologies},
        "targets": {
            member_id: _by_role(target.active, target.standby, target.warmup)
            for member_id, target in group.task_targets.items()
        },
        "members": {member.member_id: _streams_member(member) for member in group.members.values()},
    }


def _subtopology(group: ModernGroup, name: str) -> dict[str, list[str]]:
    internal = group.internal_topics.get(name, InternalTopics())
    return {
        "source_topics": [topic for topic in group.subtopologies[name] if topic not in internal.repartition_source],
        "repartition_source_topics": list(internal.repartition_source),
        "repartition_sink_topics": list(internal.repartition_sink),
        "state_changelog_topics": list(internal.changelog),
    }


def _streams_member(member: ModernMember) -> dict[str, Any]:
    endpoint = member.user_endpoint
    return {
        **_member(member),
        "rebalance_timeout_ms": member.rebalance_timeout_ms,
        "topology_epoch": member.topology_epoch,
        "process_id": member.process_id,
        "user_endpoint": None if endpoint is None else f"{endpoint.host}:{endpoint.port}",
        "client_tags": dict(member.client_tags),
        "assigned": _by_role(member.assigned, member.standby_tasks, member.warmup_tasks),
        "pending_revocation": _by_role(
            member.pending_revocation, member.standby_pending_revocation, member.warmup_pending_revocation
        ),
        "newest_partition_epoch": member.newest_partition_epoch,
    }


def _member(member: ModernMember) -> dict[str, Any]:
    return {
        "epoch": member.epoch,
        "previous_epoch": member.previous_epoch,
        "state": member.state,
        "instance_id": member.instance_id,
        "rack_id": member.rack_id,
        "client_id": member.client_id,
        "client_host": member.client_host,
    }


OF_FAMILY: Final = {CONSUMER: _consumer, SHARE: _share, STREAMS: _streams}


def _by_role(active: Partitions, standby: Partitions, warmup: Partitions) -> dict[str, dict[str, list[int]]]:
    return {"active": _listed(active), "standby": _listed(standby), "warmup": _listed(warmup)}


def _listed(parts: Mapping[str, tuple[int, ...]]) -> dict[str, list[int]]:
    return {topic: list(partitions) for topic, partitions in parts.items()}
