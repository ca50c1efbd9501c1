"""What a broker would refuse an online upgrade for, found before anyone rolls.

A classic group that is not empty is converted by the first consumer-protocol member that joins it, unless one of these
holds; then that member is refused, again and again, and nothing of it is in the log:

    reason                       holds when                                          reported as an event
    assignment_user_data         an assignor of the user's own put data into the     once; as information of Kafka
                                 assignment                                          Streams, whose assignor does so
    malformed_embedded_protocol  a subscription or assignment is not in the          once
                                 consumer protocol's format
    librdkafka_cooperative_      the leader is librdkafka's, on cooperative-sticky:  once
    sticky                       it puts into the assignment what members join
                                 with, and those that rejoin join with user data

The last is seen before it comes true: in the first generation of such a group no member has user data yet, but when one
leaves to be upgraded, the others rejoin. A member alone has no others, and a static one that is back in time makes no
one rejoin. A group that Java leads becomes such a group when its leader leaves and a member of librdkafka leads: those
are `may_lead`, about which plan and gate say more.

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
from coordinator_model.kinds import sentences
from coordinator_model.state.events import INFO
from coordinator_model.state.findings import Finding
from coordinator_model.state.membership import ClassicGroup, ClassicMember, Membership

PROTOCOL_TYPE: Final = "protocol_type"
"""Why a group is out of scope: nothing blocks it, there is nothing to convert."""
ASSIGNMENT_USER_DATA: Final = "assignment_user_data"
MALFORMED: Final = "malformed_embedded_protocol"
LIBRDKAFKA: Final = "librdkafka_cooperative_sticky"
MAY_LEAD: Final = "librdkafka_members"
"""What plan and gate say of a group with members that `may_lead`: nothing blocks it yet."""
BLOCKERS: Final = sentences.BLOCKERS
"""Reason → what it means."""

_OF_JAVA: Final = (None, -1, 4)
"""`Claim.user_data_bytes` of Java's members: of older ones null."""

_IS_ABOUT: Final[Mapping[str, Callable[[ClassicMember], bool]]] = {
    ASSIGNMENT_USER_DATA: attrgetter("assignment_user_data"),
    MALFORMED: lambda member: member.claim is None or member.claim.malformed or member.assignment_malformed,
    LIBRDKAFKA: lambda member: _user_data_bytes(member) not in _OF_JAVA,
}


def blockers(membership: Membership) -> list[str]:
    """Reasons, of `BLOCKERS`, for which a broker would refuse the first consumer-protocol member."""
    group = membership.classic_group
    if group is None or out_of_scope(group) is not None:
        return []
    members = group.members.values()
    found = [of for of in (ASSIGNMENT_USER_DATA, MALFORMED) if any(map(_IS_ABOUT[of], members))]
    return [*found, LIBRDKAFKA] if _is_led_by_librdkafka(group) and (found or _rejoins(group)) else found


def may_lead(group: ClassicGroup) -> list[ClassicMember]:
    """Members of librdkafka on cooperative-sticky in a group that brokers would convert now, and not if one led it."""
    led = _is_led_by_librdkafka(group)
    if any(member.assignment_user_data for member in group.members.values()) or (led and _rejoins(group)):
        return []
    found = members_with(group, LIBRDKAFKA) if len(group.members) > 1 else []
    # A leader that joined with user data and hands none on is not librdkafka's: other clients join with such data, too.
    leader = group.members.get(group.leader or "")
    if leader is not None and not led and _user_data_bytes(leader) not in _OF_JAVA:
        return [member for member in found if _user_data_bytes(member) == 0]
    return found


def of_librdkafka(group: ClassicGroup) -> list[ClassicMember]:
    """Members on cooperative-sticky that are librdkafka's, as far as the log tells."""
    return members_with(group, LIBRDKAFKA) if _is_led_by_librdkafka(group) else may_lead(group)


def _is_led_by_librdkafka(group: ClassicGroup) -> bool:
    """Whether the leader is one of librdkafka on cooperative-sticky; where it is not known, whether all members are."""
    leader = group.members.get(group.leader or "")
    leads = group.members.values() if leader is None else (leader,)
    given = any(member.assignment_user_data for member in group.members.values())
    return bool(leads) and all(
        _user_data_bytes(member) == 0 or (given and _user_data_bytes(member) not in _OF_JAVA) for member in leads
    )


def _rejoins(group: ClassicGroup) -> bool:
    """Whether members are there that rejoin when one leaves to be upgraded."""
    return len(group.members) > 1 and any(member.instance_id is None for member in group.members.values())


def _user_data_bytes(member: ClassicMember) -> int | None:
    return None if member.claim is None else member.claim.user_data_bytes


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


def embedded_versions(group: ClassicGroup) -> dict[str, int]:
    """Member id → version of the embedded consumer protocol that it joined with, of those whose subscription has it."""
    claims = {member.member_id: member.claim for member in group.members.values()}
    return {member_id: of.version for member_id, of in claims.items() if of is not None and not of.malformed}


def is_kafka_streams(group: ClassicGroup) -> bool:
    """Whether the members are a Kafka Streams application: it moves to the streams protocol instead, while down."""
    return group.protocol_type == CONSUMER_PROTOCOL_TYPE and group.protocol == STREAMS


def worth_telling(membership: Membership, reported: tuple[str, ...]) -> tuple[str, ...]:
    """Reasons that hold and are events; of an empty group those that were reported when it had members."""
    group = membership.classic_group
    if group is not None and not group.members:
        return reported
    found = blockers(membership)
    if LIBRDKAFKA in reported and LIBRDKAFKA in found:
        # What was said to come has come.
        found = [of for of in found if of != ASSIGNMENT_USER_DATA or of in reported]
    return tuple(found)


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
