"""Consumer groups (KIP-848): the coordinator assigns, members follow, each at its own pace.

Three epochs tell how far that is. The *group epoch* grows when a new assignment is due; the *assignment epoch* is
the group epoch the present target was computed for; each *member epoch* is the assignment epoch the member has
reached. A member on its way gives up first and receives after:

    member state           code  it
    Stable                 0     owns what its target says, at its epoch
    UnrevokedPartitions    1     keeps its old epoch until it has revoked what is pending
    UnreleasedPartitions   2     is at its target's epoch and waits for partitions others still own
    Unknown                127   is of a newer broker

and so the group's state, first match:

    Empty         no members
    Assigning     group epoch > assignment epoch: the target is yet to be computed
    Reconciling   some member is not Stable or not at the assignment epoch
    Stable        all others

(`docs/coordinator-log.md`, "Consumer groups"; ConsumerGroup, CurrentAssignmentBuilder.) A static member that closed
with "remain" stands at epoch -2 and keeps the group Reconciling until it returns or expires.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Final

from coordinator_model.groups import common
from coordinator_model.groups.embedded_subscription import claims_of
from coordinator_model.records.consumer_group import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupPartitionMetadataValue,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
)
from coordinator_model.state.membership import CONSUMER, Membership, ModernGroup

MEMBER_STABLE: Final = 0
MEMBER_UNREVOKED: Final = 1
MEMBER_UNRELEASED: Final = 2
MEMBER_STATES: Final = {0: "Stable", 1: "UnrevokedPartitions", 2: "UnreleasedPartitions"}

EMPTY: Final = "Empty"
ASSIGNING: Final = "Assigning"
RECONCILING: Final = "Reconciling"
STABLE: Final = "Stable"


def state(group: ModernGroup) -> str:
    """State as `kafka-consumer-groups --describe --state` prints it."""
    if not group.members:
        return EMPTY
    if group.epoch > group.assignment_epoch:
        return ASSIGNING
    return RECONCILING if common.unsettled_members(group, MEMBER_STABLE) else STABLE


def preferred_assignor(group: ModernGroup) -> str | None:
    """The assignor most members ask for; None where none does and the broker's default decides."""
    asked = Counter(member.server_assignor for member in group.members.values() if member.server_assignor)
    return max(asked, key=lambda name: (asked[name], name)) if asked else None


replay_epoch = common.replays_epoch(CONSUMER)
"""Type 3: the group epoch."""
replay_assignment_epoch = common.replays_assignment_epoch(CONSUMER)
"""Type 6: the epoch the target was computed for."""
replay_target = common.replays_target(CONSUMER)
"""Type 7: what a member is to own."""


def replay_partition_metadata(
    membership: Membership,
    _key: ConsumerGroupPartitionMetadataKey,
    value: ConsumerGroupPartitionMetadataValue | None,
) -> None:
    """Type 4: partition counts as brokers up to 4.0 kept them; since then only its tombstone is written."""
    group = common.known(membership, CONSUMER) if value is None else common.of_family(membership, CONSUMER)
    if group is not None:
        group.partition_metadata_live = value is not None
        group.partition_counts = {} if value is None else {of.topic_name: of.num_partitions for of in value.topics}
        group.topic_ids = {} if value is None else {of.topic_name: of.topic_id for of in value.topics}
        common.forget_if_gone(membership, group)


def replay_member_metadata(
    membership: Membership, key: ConsumerGroupMemberMetadataKey, value: ConsumerGroupMemberMetadataValue | None
) -> None:
    """Type 5: who the member is and what it subscribes to. Classic metadata means it uses the classic protocol."""
    if value is None:
        common.drop_metadata(membership, CONSUMER, key.member_id)
        return
    group = common.of_family(membership, CONSUMER)
    classic = value.classic_member_metadata
    common.put_member(
        group,
        replace(
            common.member_of(group, key.member_id),
            metadata_live=True,
            instance_id=value.instance_id,
            rack_id=value.rack_id,
            client_id=value.client_id,
            client_host=value.client_host,
            subscribed_topics=value.subscribed_topic_names,
            subscribed_regex=value.subscribed_topic_regex or None,
            rebalance_timeout_ms=value.rebalance_timeout_ms,
            server_assignor=value.server_assignor,
            uses_classic_protocol=classic is not None,
            classic_session_timeout_ms=classic.session_timeout_ms if classic is not None else -1,
            claims=claims_of((p.name, p.metadata) for p in classic.supported_protocols) if classic is not None else {},
        ),
    )


def replay_current(
    membership: Membership,
    key: ConsumerGroupCurrentMemberAssignmentKey,
    value: ConsumerGroupCurrentMemberAssignmentValue | None,
) -> None:
    """Type 8: what a member owns, and what of it it has yet to revoke."""
    if value is None:
        common.drop_current(membership, CONSUMER, key.member_id)
        return
    group = common.of_family(membership, CONSUMER)
    common.put_member(
        group,
        replace(
            common.member_of(group, key.member_id),
            current_live=True,
            epoch=value.member_epoch,
            previous_epoch=value.previous_member_epoch,
            state=value.state,
            assigned=common.by_topic_id(value.assigned_partitions),
            pending_revocation=common.by_topic_id(value.partitions_pending_revocation),
            partition_epochs=common.epochs_by_topic_id(value.assigned_partitions),
            newest_partition_epoch=common.newest_epoch(
                (*value.assigned_partitions, *value.partitions_pending_revocation)
            ),
        ),
    )


def replay_regex(
    membership: Membership,
    key: ConsumerGroupRegularExpressionKey,
    value: ConsumerGroupRegularExpressionValue | None,
) -> None:
    """Type 16: the topics a subscribed expression matched."""
    if value is None:
        group = common.known(membership, CONSUMER)
        if group is not None:
            group.regexes.pop(key.regular_expression, None)
            common.forget_if_gone(membership, group)
        return
    common.of_family(membership, CONSUMER).regexes[key.regular_expression] = tuple(value.topics)
