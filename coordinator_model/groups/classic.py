"""Classic groups: one record, written when a rebalance has ended.

A classic group is a state machine in the coordinator's memory, of which only rests reach the log:

    state                 reaches the log
    Empty                 yes: a record with no members, or nothing but offsets ("simple" group)
    PreparingRebalance    no: members are (re)joining
    CompletingRebalance   no: the leader is computing the assignment
    Stable                yes: the leader's SyncGroup writes the record with every member and its assignment
    Dead                  yes: the tombstone

So from the records alone a group with members is Stable and one without is Empty; the record's
`currentStateTimestamp` is the moment the join phase ended, and generations that never completed are gaps in the
sequence (`docs/coordinator-log.md`, "Classic groups", "Group states").
"""

from __future__ import annotations

from typing import Final

from coordinator_model.groups.embedded_subscription import Assignment, assignment_of, claim_of
from coordinator_model.records.classic_group import GroupMetadataKey, GroupMetadataValue, MemberMetadata
from coordinator_model.state.membership import CLASSIC, ClassicGroup, ClassicMember, Membership

CONSUMER_PROTOCOL_TYPE: Final = "consumer"

EMPTY: Final = "Empty"
STABLE: Final = "Stable"

_NOTHING: Final = Assignment()


def state(group: ClassicGroup) -> str:
    """State as far as the log shows it."""
    return STABLE if group.members else EMPTY


def replay_group_metadata(membership: Membership, _key: GroupMetadataKey, value: GroupMetadataValue | None) -> None:
    """Type 2: the whole group, or its end. Either ends a group of another type, as in a coordinator's memory."""
    if membership.modern is not None:
        membership.modern.closed = True
    if value is None:
        membership.classic = None
        return
    membership.family = CLASSIC
    membership.classic = ClassicGroup(
        generation=value.generation,
        protocol_type=value.protocol_type,
        protocol=value.protocol,
        leader=value.leader,
        state_timestamp_ms=value.current_state_timestamp,
        members={member.member_id: _member(member, value) for member in value.members},
    )


def _member(member: MemberMetadata, group: GroupMetadataValue) -> ClassicMember:
    embedded = group.protocol_type == CONSUMER_PROTOCOL_TYPE
    assignment = assignment_of(group.protocol, member.assignment) if embedded else None
    given = assignment or _NOTHING
    return ClassicMember(
        member_id=member.member_id,
        instance_id=member.group_instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout_ms=member.rebalance_timeout if member.rebalance_timeout >= 0 else member.session_timeout,
        session_timeout_ms=member.session_timeout,
        claim=claim_of(group.protocol, member.subscription) if embedded else None,
        assigned=given.assigned,
        assignment_user_data=given.user_data,
        assignment_malformed=embedded and assignment is None,
        streams_active=given.streams_active,
        streams_standby=given.streams_standby,
    )
