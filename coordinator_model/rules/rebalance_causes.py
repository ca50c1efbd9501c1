"""Why a group rebalanced, as far as the memberships before and after a step tell.

    cause            seen as
    conversion       the group's type changed
    join             a member came
    leave            a member went: of its own will, expired or removed, for the records are the same
    expiry           a static member went, which says no goodbye, or one that was overdue (`rebalances.py`)
    static_return    a static member is back under another member id
    subscription     a member subscribes to other topics, or by another expression, than before
    wildcard         an expression was resolved, or matches other topics than before
    partition_count  a topic has partitions that the group did not know
    follow_up        the second round of a cooperative rebalance, which gives out what the first one took
    metadata         a new group epoch for none of these: topics came, went or were recreated, or racks changed
    rejoin           a new generation for none of these: the leader rejoined, or topic metadata changed

The broker writes no reason down, so each is an inference; several may hold at once. A classic member resolves its
pattern itself and sends the topics that match, so what would be a wildcard there is a subscription here. Partition
counts stand in the log of brokers up to 4.0 only; elsewhere a topic has grown when partitions are given out beyond
all that anyone held, claimed or was to have before.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final

from coordinator_model.rules.members import Member, members_of
from coordinator_model.rules.subscriptions import subscribed_topics
from coordinator_model.state.membership import STREAMS, ClassicGroup, ClassicMember, Membership, ModernGroup, Partitions

CAUSES: Final = (
    "conversion",
    "join",
    "leave",
    "expiry",
    "static_return",
    "subscription",
    "wildcard",
    "partition_count",
    "follow_up",
    "metadata",
    "rejoin",
)

METADATA: Final = "metadata"
PARTITION_COUNT: Final = "partition_count"

Growth = Mapping[str, tuple[int, int]]
"""Topic → partitions it had and has."""


def causes(
    before: Membership,
    after: Membership,
    overdue: Collection[str] = (),
    *,
    whole: bool = True,
    known: Iterable[Partitions] = (),
) -> list[str]:
    """Causes of a rebalance between two memberships, of `CAUSES`.

    `overdue` are members whose time had run out. Of a group that is not `whole` a cleaned log may not have shown all
    partitions before, so that no topic is said to have grown. `known` are partitions that members had before that.
    """
    was, now = members_of(before), members_of(after)
    came = [member for member_id, member in now.items() if member_id not in was]
    gone = [member for member_id, member in was.items() if member_id not in now]
    returned = {member.instance_id for member in came} & {member.instance_id for member in gone} - {None}
    left = [member for member in gone if member.instance_id not in returned]
    expired = [member for member in left if member.instance_id is not None or member.member_id in overdue]
    found = {
        "conversion": before.exists and before.type != after.type,
        "join": any(member.instance_id not in returned for member in came),
        "leave": len(left) > len(expired),
        "expiry": bool(expired),
        "static_return": bool(returned),
        "subscription": any(_asks_for_others(was[i], now[i]) for i in was.keys() & now.keys()),
        "wildcard": _matches_changed(before.modern_group, after.modern_group),
        PARTITION_COUNT: (whole or _counted(before)) and bool(growth(before, after, known)),
    }
    reported = [cause for cause in CAUSES if found.get(cause)]
    return reported or _unexplained(before.classic_group, after.classic_group)


def _counted(before: Membership) -> bool:
    """Whether one record had all partitions: up to 4.0."""
    was = before.modern_group
    return was is not None and bool(was.partition_counts)


def triggers(
    before: Membership, after: Membership, why: Collection[str], known: Iterable[Partitions] = ()
) -> dict[str, Any]:
    """Which topics it was about, where topics are the cause."""
    reported: dict[str, Any] = {}
    if "subscription" in why or "wildcard" in why:
        was, now = subscribed_topics(before), subscribed_topics(after)
        reported = {"topics_added": sorted(now - was), "topics_removed": sorted(was - now)}
    if PARTITION_COUNT in why:
        reported.update(growth_detail(growth(before, after, known)))
    return reported


def growth_detail(grown: Growth) -> dict[str, Any]:
    """Growth as it stands in an event's detail; nothing where there is none."""
    if not grown:
        return {}
    return {PARTITION_COUNT: {topic: {"from": was, "to": now} for topic, (was, now) in sorted(grown.items())}}


def growth(before: Membership, after: Membership, known: Iterable[Partitions] = ()) -> Growth:
    """Topics that have other numbers of partitions than before."""
    was, now = before.modern_group, after.modern_group
    if was is not None and now is not None:
        if now.family == STREAMS:  # its assignments name tasks, not topics
            return {}
        if was.partition_counts and now.partition_counts:
            held = was.partition_counts
            return {t: (held[t], n) for t, n in now.partition_counts.items() if held.get(t, n) != n}
        return grown(known_partitions(was), known_partitions(now)) if was.metadata_hash != now.metadata_hash else {}
    old, new = before.classic_group, after.classic_group
    if old is None or new is None:
        return {}
    claimed = [member.claim.owned for group in (old, new) for member in group.members.values() if member.claim]
    return grown(
        highest([*(member.assigned for member in old.members.values()), *claimed, *known]),
        highest(member.assigned for member in new.members.values()),
    )


def grown(was: Mapping[str, int], now: Mapping[str, int]) -> Growth:
    """Topics of both with more partitions than before."""
    return {topic: (was[topic], count) for topic, count in now.items() if count > was.get(topic, count)}


def known_partitions(group: ModernGroup) -> dict[str, int]:
    """Topic → one more than the highest partition that a member holds or is to have."""
    held = [parts for member in group.members.values() for parts in (member.assigned, member.pending_revocation)]
    return highest([*held, *group.targets.values()])


def highest(parts: Iterable[Partitions]) -> dict[str, int]:
    """Topic → one more than the highest partition named."""
    counts: dict[str, int] = {}
    for part in parts:
        for topic, partitions in part.items():
            counts[topic] = max(counts.get(topic, 0), 1 + max(partitions, default=-1))
    return counts


def _unexplained(before: ClassicGroup | None, after: ClassicGroup | None) -> list[str]:
    if before is None or after is None:
        return [METADATA]
    return ["follow_up"] if _gives_out(before, after) else ["rejoin"]


def _gives_out(before: ClassicGroup, after: ClassicGroup) -> bool:
    """Whether the generation before took partitions from members that claimed them, to be given out now."""
    assigned = _places(member.assigned for member in before.members.values())
    claimed = _places(member.claim.owned for member in before.members.values() if member.claim is not None)
    now = _places(member.assigned for member in after.members.values())
    return bool(now & claimed - assigned)


def _places(parts: Iterable[Partitions]) -> set[tuple[str, int]]:
    return {(topic, partition) for part in parts for topic, partitions in part.items() for partition in partitions}


def _matches_changed(before: ModernGroup | None, after: ModernGroup | None) -> bool:
    """Whether an expression that a member asked for before matches other topics now, or is resolved only now."""
    if before is None or after is None:
        return False
    asked = {member.subscribed_regex for member in before.members.values()}
    return any(before.regexes.get(regex) != topics for regex, topics in after.regexes.items() if regex in asked)


def _asks_for_others(before: Member, after: Member) -> bool:
    was, now = _asks_for(before), _asks_for(after)
    return None not in (was, now) and was != now


def _asks_for(member: Member) -> tuple[tuple[str, ...], str | None] | None:
    """What a member subscribes to; None where it is not known."""
    if isinstance(member, ClassicMember):
        return None if member.claim is None else (member.claim.topics, None)
    return (member.subscribed_topics, member.subscribed_regex) if member.metadata_live else None
