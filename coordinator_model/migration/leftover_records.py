"""Records of the new protocols by type: what of them is live, and what a downgrade left behind (KIP-915).

A group that goes from a new protocol to the classic one ends with a tombstone for each record of its family. What has
none is left over: the next broker down meets it, and a later group of the name may.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from coordinator_model.records.record_types import RecordType
from coordinator_model.state.membership import CONSUMER, SHARE, STREAMS, Membership, ModernGroup

_T = RecordType
_RECORD_TYPES: Final[Mapping[str, tuple[RecordType, ...]]] = {
    # epoch, assignment epoch, third single record, member metadata, target, current assignment, expression: see _counts
    CONSUMER: (
        _T.CONSUMER_GROUP_METADATA,
        _T.CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA,
        _T.CONSUMER_GROUP_PARTITION_METADATA,
        _T.CONSUMER_GROUP_MEMBER_METADATA,
        _T.CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER,
        _T.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT,
        _T.CONSUMER_GROUP_REGULAR_EXPRESSION,
    ),
    SHARE: (
        _T.SHARE_GROUP_METADATA,
        _T.SHARE_GROUP_TARGET_ASSIGNMENT_METADATA,
        _T.SHARE_GROUP_STATE_PARTITION_METADATA,
        _T.SHARE_GROUP_MEMBER_METADATA,
        _T.SHARE_GROUP_TARGET_ASSIGNMENT_MEMBER,
        _T.SHARE_GROUP_CURRENT_MEMBER_ASSIGNMENT,
    ),
    STREAMS: (
        _T.STREAMS_GROUP_METADATA,
        _T.STREAMS_GROUP_TARGET_ASSIGNMENT_METADATA,
        _T.STREAMS_GROUP_TOPOLOGY,
        _T.STREAMS_GROUP_MEMBER_METADATA,
        _T.STREAMS_GROUP_TARGET_ASSIGNMENT_MEMBER,
        _T.STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT,
    ),
}
NEW_PROTOCOL_TYPES: Final = tuple(sorted(type_ for types in _RECORD_TYPES.values() for type_ in types))
"""Record types that only brokers with the new group protocols write and read."""


def live_records(membership: Membership) -> dict[RecordType, int]:
    """Live records of the new protocols, by type; types there are none of are absent."""
    modern = membership.modern
    if modern is None:
        return {}
    counts = zip(_RECORD_TYPES[modern.family], _counts(modern), strict=False)
    return {type_: count for type_, count in counts if count}


def left_over(membership: Membership) -> dict[str, int]:
    """The same of a group that no longer is of a new protocol, types by number as text: what is left of one it had."""
    if membership.modern_group is not None:
        return {}
    return {str(int(type_)): count for type_, count in sorted(live_records(membership).items())}


def named(record_type: str) -> str:
    """`type 16 (consumer group regular expression)` for "16"."""
    return f"type {record_type} ({RecordType(int(record_type)).name.lower().replace('_', ' ')})"


def _counts(group: ModernGroup) -> list[int]:
    members = group.members.values()
    return [
        int(group.epoch_live),
        int(group.assignment_epoch_live),
        int(group.topology_epoch is not None if group.family == STREAMS else group.partition_metadata_live),
        sum(member.metadata_live for member in members),
        len(group.targets) + len(group.task_targets),
        sum(member.current_live for member in members),
        len(group.regexes),
    ]
