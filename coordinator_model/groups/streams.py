"""Streams groups (KIP-1071): members run tasks of a topology, active, standby and warm-up.

    Empty         no members
    NotReady      no topology yet, or its epoch is not the validated one
    Assigning     group epoch > assignment epoch
    Reconciling   some member is not Stable or not at the assignment epoch
    Stable        all others

A member's codes are not those of consumer groups: 1 Stable, 2 UnrevokedTasks, 3 UnreleasedTasks.
(`docs/coordinator-log.md`, "Streams groups"; StreamsGroup.) A task is a subtopology and a partition number; the
partitions it reads are those of the subtopology's source topics.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final, Protocol

from coordinator_model.groups import common
from coordinator_model.records.streams_group import (
    StreamsGroupCurrentMemberAssignmentKey,
    StreamsGroupCurrentMemberAssignmentValue,
    StreamsGroupMemberMetadataKey,
    StreamsGroupMemberMetadataValue,
    StreamsGroupMetadataKey,
    StreamsGroupMetadataValue,
    StreamsGroupTargetAssignmentMemberKey,
    StreamsGroupTargetAssignmentMemberValue,
    StreamsGroupTopologyKey,
    StreamsGroupTopologyValue,
)
from coordinator_model.state.membership import (
    STREAMS,
    InternalTopics,
    Membership,
    ModernGroup,
    Partitions,
    TaskTarget,
    UserEndpoint,
)
from coordinator_model.state.partitions import merged

MEMBER_STABLE: Final = 1
MEMBER_UNREVOKED: Final = 2
MEMBER_UNRELEASED: Final = 3
MEMBER_STATES: Final = {1: "Stable", 2: "UnrevokedTasks", 3: "UnreleasedTasks"}

EMPTY: Final = "Empty"
NOT_READY: Final = "NotReady"
ASSIGNING: Final = "Assigning"
RECONCILING: Final = "Reconciling"
STABLE: Final = "Stable"


class _Tasks(Protocol):
    @property
    def subtopology_id(self) -> str: ...
    @property
    def partitions(self) -> tuple[int, ...]: ...


def state(group: ModernGroup) -> str:
    """State as `kafka-streams-groups --describe --state` prints it."""
    if not group.members:
        return EMPTY
    if not topology_ready(group):
        return NOT_READY
    if group.epoch > group.assignment_epoch:
        return ASSIGNING
    return RECONCILING if common.unsettled_members(group, MEMBER_STABLE) else STABLE


def topology_ready(group: ModernGroup) -> bool:
    """Whether the topics of the topology are there, as far as the log shows.

    A 4.1 broker does not write it down, but gives tasks for a topology that is ready only.
    """
    if group.topology_epoch is None:
        return False
    if group.validation_told:
        return group.topology_epoch == group.validated_topology_epoch
    return any(target.active for target in group.task_targets.values())


def partitions_of_tasks(group: ModernGroup, tasks: Partitions) -> Partitions:
    """Source topic → partitions that tasks (subtopology → partitions) read; nothing of an unknown subtopology."""
    return merged(
        (topic, partitions)
        for subtopology, partitions in tasks.items()
        for topic in group.subtopologies.get(subtopology, ())
    )


def by_subtopology(tasks: Iterable[_Tasks]) -> Partitions:
    """Subtopology → partitions ascending."""
    return merged((part.subtopology_id, part.partitions) for part in tasks)


replay_assignment_epoch = common.replays_assignment_epoch(STREAMS)
"""Type 20: the epoch the target was computed for."""


def replay_epoch(
    membership: Membership, _key: StreamsGroupMetadataKey, value: StreamsGroupMetadataValue | None
) -> None:
    """Type 17: the group epoch and the topology epoch found valid."""
    common.replay_epoch(membership, STREAMS, value)
    if value is not None:
        group, validated = common.of_family(membership, STREAMS), value.validated_topology_epoch
        group.validated_topology_epoch = validated
        # What targets were computed with came in the same release.
        group.validation_told = validated >= 0 or bool(value.last_assignment_configs)


def replay_member_metadata(
    membership: Membership, key: StreamsGroupMemberMetadataKey, value: StreamsGroupMemberMetadataValue | None
) -> None:
    """Type 19: who the member is and which topology it runs."""
    if value is None:
        common.drop_metadata(membership, STREAMS, key.member_id)
        return
    group, endpoint = common.of_family(membership, STREAMS), value.user_endpoint
    common.put_member(
        group,
        replace(
            common.member_of(group, key.member_id),
            metadata_live=True,
            instance_id=value.instance_id,
            rack_id=value.rack_id,
            client_id=value.client_id,
            client_host=value.client_host,
            rebalance_timeout_ms=value.rebalance_timeout_ms,
            topology_epoch=value.topology_epoch,
            process_id=value.process_id,
            user_endpoint=None if endpoint is None else UserEndpoint(host=endpoint.host, port=endpoint.port),
            client_tags={tag.key: tag.value for tag in value.client_tags},
        ),
    )


def replay_target(
    membership: Membership,
    key: StreamsGroupTargetAssignmentMemberKey,
    value: StreamsGroupTargetAssignmentMemberValue | None,
) -> None:
    """Type 21: the tasks a member is to run."""
    if value is None:
        common.drop_target(membership, STREAMS, key.member_id)
        return
    common.of_family(membership, STREAMS).task_targets[key.member_id] = TaskTarget(
        active=by_subtopology(value.active_tasks),
        standby=by_subtopology(value.standby_tasks),
        warmup=by_subtopology(value.warmup_tasks),
    )


def replay_current(
    membership: Membership,
    key: StreamsGroupCurrentMemberAssignmentKey,
    value: StreamsGroupCurrentMemberAssignmentValue | None,
) -> None:
    """Type 22: the tasks a member runs, and those it has yet to give up."""
    if value is None:
        common.drop_current(membership, STREAMS, key.member_id)
        return
    group = common.of_family(membership, STREAMS)
    common.put_member(
        group,
        replace(
            common.member_of(group, key.member_id),
            current_live=True,
            epoch=value.member_epoch,
            previous_epoch=value.previous_member_epoch,
            state=value.state,
            assigned=by_subtopology(value.active_tasks),
            pending_revocation=by_subtopology(value.active_tasks_pending_revocation),
            newest_partition_epoch=common.newest_epoch((*value.active_tasks, *value.active_tasks_pending_revocation)),
            standby_tasks=by_subtopology(value.standby_tasks),
            warmup_tasks=by_subtopology(value.warmup_tasks),
            standby_pending_revocation=by_subtopology(value.standby_tasks_pending_revocation),
            warmup_pending_revocation=by_subtopology(value.warmup_tasks_pending_revocation),
        ),
    )


def replay_topology(
    membership: Membership, _key: StreamsGroupTopologyKey, value: StreamsGroupTopologyValue | None
) -> None:
    """Type 23: the topology; when a group is deleted its tombstone comes last, after the epoch's."""
    if value is None:
        group = common.known(membership, STREAMS)
        if group is not None:
            group.topology_epoch = None
            group.subtopologies, group.internal_topics = {}, {}
            common.forget_if_gone(membership, group)
        return
    group = common.of_family(membership, STREAMS)
    group.topology_epoch = value.epoch
    group.subtopologies = {
        part.subtopology_id: (*part.source_topics, *(topic.name for topic in part.repartition_source_topics))
        for part in value.subtopologies
    }
    group.internal_topics = {
        part.subtopology_id: InternalTopics(
            repartition_source=tuple(topic.name for topic in part.repartition_source_topics),
            repartition_sink=part.repartition_sink_topics,
            changelog=tuple(topic.name for topic in part.state_changelog_topics),
        )
        for part in value.subtopologies
    }
