"""Records of the new protocols by type: what of them is live, and what a downgrade left behind (KIP-915).

A group that goes from a new protocol to the classic one ends with a tombstone for each record of its family. What has
none is left over: the next broker down meets it, and a later group of the name may.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from coordinator_model.records.record_types import RecordType
from coordinator_model.state.membership import CONSUMER, SHARE, STREAMS, Membership

_T = RecordType
_RECORD_TYPES: Final[Mapping[str, Mapping[str, RecordType]]] = {
    CONSUMER: {
        "epoch": _T.CONSUMER_GROUP_METADATA,
        "assignment_epoch": _T.CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA,
        "partition_metadata": _T.CONSUMER_GROUP_PARTITION_METADATA,
        "member_metadata": _T.CONSUMER_GROUP_MEMBER_METADATA,
        "target": _T.CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER,
        "current_assignment": _T.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT,
        "expression": _T.CONSUMER_GROUP_REGULAR_EXPRESSION,
    },
    SHARE: {
        "epoch": _T.SHARE_GROUP_METADATA,
        "assignment_epoch": _T.SHARE_GROUP_TARGET_ASSIGNMENT_METADATA,
        "partition_metadata": _T.SHARE_GROUP_STATE_PARTITION_METADATA,
        "member_metadata": _T.SHARE_GROUP_MEMBER_METADATA,
        "target": _T.SHARE_GROUP_TARGET_ASSIGNMENT_MEMBER,
        "current_assignment": _T.SHARE_GROUP_CURRENT_MEMBER_ASSIGNMENT,
    },
    STREAMS: {
        "epoch": _T.STREAMS_GROUP_METADATA,
        "assignment_epoch": _T.STREAMS_GROUP_TARGET_ASSIGNMENT_METADATA,
        "topology": _T.STREAMS_GROUP_TOPOLOGY,
        "member_metadata": _T.STREAMS_GROUP_MEMBER_METADATA,
        "target": _T.STREAMS_GROUP_TARGET_ASSIGNMENT_MEMBER,
        "current_assignment": _T.STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT,
    },
}
"""Family → kind of record, as `ModernGroup.live` counts them → type."""

NEW_PROTOCOL_TYPES: Final = tuple(sorted(type_ for types in _RECORD_TYPES.values() for type_ in types.values()))
"""Record types that only brokers with the new group protocols write and read."""


def live_records(membership: Membership) -> dict[RecordType, int]:
    """Live records of the new protocols, by type; types there are none of are absent."""
    modern = membership.modern
    if modern is None:
        return {}
    live = modern.live()
    return {type_: count for kind, type_ in _RECORD_TYPES[modern.family].items() if (count := live[kind])}


def left_over(membership: Membership) -> dict[str, int]:
    """The same of a group that no longer is of a new protocol, types by number as text: what is left of one it had."""
    if membership.modern_group is not None:
        return {}
    return {str(int(type_)): count for type_, count in sorted(live_records(membership).items())}


def named(record_type: str) -> str:
    """`type 16 (consumer group regular expression)` for "16"."""
    return f"type {record_type} ({RecordType(int(record_type)).name.lower().replace('_', ' ')})"
