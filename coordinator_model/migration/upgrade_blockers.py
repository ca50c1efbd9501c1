"""What a broker would refuse an online upgrade for, found before anyone rolls.

A classic group that is not empty is converted by the first consumer-protocol member that joins it, unless one of these
holds; then that member is refused, again and again, and nothing of it is in the log:

    reason                       holds when                                          reported as an event
    assignment_user_data         an assignor of the user's own put data into the     once; as information of Kafka
                                 assignment                                          Streams, whose assignor does so
    malformed_embedded_protocol  a subscription or assignment is not in the          once
                                 consumer protocol's format

(GroupMetadataManager.validateOnlineUpgrade and ConsumerGroup.fromClassicGroup, 4.3.1. A recorded 3.9.1, where the
protocol was a preview, converted a group with such user data.) A broker also refuses for its
migration policy and for the group's size: configuration, about which the upgrade gate knows more. KIP-848 asks for
version 3 of the embedded protocol; brokers do not insist on it.

`upgrade_blocked` is said when a reason is seen first, and not again while it lasts. A group that empties may come back
with it, so an empty one keeps what was said of it; a reason that is seen to be gone goes without a word. Connect
workers, schema registries and others with a protocol type of their own never become consumers: that they could not is
no news. Their phase, the metric of blockers and the gates still tell.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from operator import attrgetter
from typing import Any, Final

from coordinator_model.groups.classic import CONSUMER_PROTOCOL_TYPE
from coordinator_model.groups.embedded_subscription import STREAMS
from coordinator_model.state.events import INFO
from coordinator_model.state.findings import Finding
from coordinator_model.state.membership import ClassicGroup, ClassicMember, Membership

PROTOCOL_TYPE: Final = "protocol_type"
"""Why a group is out of scope: nothing blocks it, there is nothing to convert."""
ASSIGNMENT_USER_DATA: Final = "assignment_user_data"
MALFORMED: Final = "malformed_embedded_protocol"
BLOCKERS: Final = {
    ASSIGNMENT_USER_DATA: "a custom assignor's user data is in the assignment",
    MALFORMED: "a member's subscription or assignment is not in the consumer protocol's format",
}
"""Reason → what it means."""

_IS_ABOUT: Final[Mapping[str, Callable[[ClassicMember], bool]]] = {
    ASSIGNMENT_USER_DATA: attrgetter("assignment_user_data"),
    MALFORMED: lambda member: member.claim is None or member.assignment_malformed,
}


def blockers(membership: Membership) -> list[str]:
    """Reasons, of `BLOCKERS`, for which a broker would refuse the first consumer-protocol member."""
    group = membership.classic_group
    if group is None or out_of_scope(group) is not None:
        return []
    members = group.members.values()
    return [reason for reason, is_about in _IS_ABOUT.items() if any(map(is_about, members))]


def out_of_scope(group: ClassicGroup | None) -> str | None:
    """`protocol_type` for a group whose members are no consumers; None for all others, and for no classic group."""
    if group is None or not group.members or group.protocol_type == CONSUMER_PROTOCOL_TYPE:
        return None
    return PROTOCOL_TYPE


def members_with(group: ClassicGroup, reason: str) -> list[ClassicMember]:
    """Members that a reason is about."""
    is_about = _IS_ABOUT.get(reason)
    return [] if is_about is None else [member for member in group.members.values() if is_about(member)]


def ids_of_members_with(membership: Membership, reason: str) -> tuple[str, ...]:
    """Their ids; none of a group that is not a classic one."""
    group = membership.classic_group
    return () if group is None else tuple(sorted(member.member_id for member in members_with(group, reason)))


def is_kafka_streams(group: ClassicGroup) -> bool:
    """Whether the members are a Kafka Streams application: it moves to the streams protocol instead, while down."""
    return group.protocol_type == CONSUMER_PROTOCOL_TYPE and group.protocol == STREAMS


def worth_telling(membership: Membership, reported: tuple[str, ...]) -> tuple[str, ...]:
    """Reasons that hold and are events; of an empty group those that were reported when it had members."""
    group = membership.classic_group
    if group is not None and not group.members:
        return reported
    return tuple(blockers(membership))


def tell(membership: Membership, reasons: tuple[str, ...]) -> Iterator[Finding]:
    """Say that a broker would refuse the group for these reasons, where there are any."""
    group = membership.classic_group
    if not reasons or group is None:
        return
    detail: Mapping[str, Any] = {
        "reasons": list(reasons),
        "protocol": group.protocol,
        "members": sorted({member.member_id for reason in reasons for member in members_with(group, reason)}),
    }
    expected = is_kafka_streams(group) and reasons == (ASSIGNMENT_USER_DATA,)
    yield Finding("upgrade_blocked", detail, severity=INFO if expected else None)
