"""Share groups (KIP-932): members share partitions, so targets overlap by design and nothing is revoked.

    Empty    no members
    Stable   all others

(`docs/coordinator-log.md`, "Share groups".) Where a share group's offsets stand is in another topic, not here.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from coordinator_model.groups import common
from coordinator_model.records.share_group import (
    ShareGroupCurrentMemberAssignmentKey,
    ShareGroupCurrentMemberAssignmentValue,
    ShareGroupMemberMetadataKey,
    ShareGroupMemberMetadataValue,
    ShareGroupStatePartitionMetadataKey,
    ShareGroupStatePartitionMetadataValue,
    TopicPartitionsInfo,
)
from coordinator_model.state.membership import SHARE, DeliveryState, Membership, ModernGroup, Partitions
from coordinator_model.state.partitions import merged

MEMBER_STABLE: Final = 0
MEMBER_STATES: Final = {0: "Stable"}

EMPTY: Final = "Empty"
STABLE: Final = "Stable"


def state(group: ModernGroup) -> str:
    """State as `kafka-share-groups --describe --state` prints it."""
    return STABLE if group.members else EMPTY


replay_epoch = common.replays_epoch(SHARE)
"""Type 11: the group epoch."""
replay_assignment_epoch = common.replays_assignment_epoch(SHARE)
"""Type 12: the epoch the target was computed for."""
replay_target = common.replays_target(SHARE)
"""Type 13: what a member is to own."""


def replay_member_metadata(
    membership: Membership, key: ShareGroupMemberMetadataKey, value: ShareGroupMemberMetadataValue | None
) -> None:
    """Type 10: who the member is."""
    if value is None:
        common.drop_metadata(membership, SHARE, key.member_id)
        return
    group = common.of_family(membership, SHARE)
    common.put_member(
        group,
        replace(
            common.member_of(group, key.member_id),
            metadata_live=True,
            rack_id=value.rack_id,
            client_id=value.client_id,
            client_host=value.client_host,
            subscribed_topics=value.subscribed_topic_names,
        ),
    )


def replay_current(
    membership: Membership,
    key: ShareGroupCurrentMemberAssignmentKey,
    value: ShareGroupCurrentMemberAssignmentValue | None,
) -> None:
    """Type 14: the partitions a member reads."""
    if value is None:
        common.drop_current(membership, SHARE, key.member_id)
        return
    group = common.of_family(membership, SHARE)
    common.put_member(
        group,
        replace(
            common.member_of(group, key.member_id),
            current_live=True,
            epoch=value.member_epoch,
            previous_epoch=value.previous_member_epoch,
            state=value.state,
            assigned=common.by_topic_id(value.assigned_partitions),
        ),
    )


def replay_state_partition_metadata(
    membership: Membership,
    _key: ShareGroupStatePartitionMetadataKey,
    value: ShareGroupStatePartitionMetadataValue | None,
) -> None:
    """Type 15: partitions whose share state is (being) set up, and topics whose state is being taken down."""
    if value is not None:
        live = common.of_family(membership, SHARE)
        live.partition_metadata_live = True
        live.delivery_state = DeliveryState(
            initializing=_by_name(value.initializing_topics),
            initialized=_by_name(value.initialized_topics),
            deleting=tuple(sorted(topic.topic_name for topic in value.deleting_topics)),
        )
        return
    group = common.known(membership, SHARE)
    if group is not None:
        group.partition_metadata_live = False
        group.delivery_state = DeliveryState()
        common.forget_if_gone(membership, group)


def _by_name(topics: Iterable[TopicPartitionsInfo]) -> Partitions:
    """Topic name → partitions ascending; a recreated topic may stand beside its former self."""
    return merged((topic.topic_name, topic.partitions) for topic in topics)
