"""What the log says of a member besides its epochs and partitions, and why it waits, in words.

Of members of classic and consumer groups; what only share and streams members have is in `modern_groups.py`. Topics
stand under their names where they are known. `assignment_epochs` are of brokers from 4.3 on (KIP-1251), empty before.

    situation        of a consumer group's member                      in words
    behind           its epoch is before the target's                  has yet to learn of the target of epoch N
    revoking         it holds what is not its any more                 has yet to revoke t-0
    waiting          others hold part of its target                    waits for t-0, which b has yet to release
    released         no member holds what it waits for                 is to be given t-0 with its next heartbeat
    awaiting_target  the group epoch is beyond the target's            waits for a target of epoch N
    away             static, closed with "remain"                      is away: its partitions are kept for it
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from coordinator_model.migration import classic_protocol_members as situations
from coordinator_model.state.membership import CONSUMER, Claim, ClassicGroup, ClassicMember, ModernGroup, ModernMember
from coordinator_model.state.partitions import merged, without
from coordinator_model.views.modern_groups import listed

_MOST_NAMED: Final = 10


def of_classic(group: ClassicGroup, member: ClassicMember) -> dict[str, Any]:
    """What is known of a member of a classic group: nothing waits in its records. `leader` is None where not known."""
    claim = member.claim
    return {
        "subscription": {"topics": [] if claim is None else sorted(claim.topics), "regex": None, "regex_topics": None},
        "rack_id": None if claim is None else claim.rack_id,
        "assignor": group.protocol,
        "rebalance_timeout_ms": _known(member.rebalance_timeout_ms),
        "session_timeout_ms": _known(member.session_timeout_ms),
        "claims": [] if claim is None else [_claim(group.protocol, claim, {})],
        "leader": None if group.leader is None else group.leader == member.member_id,
        "assignment_epochs": {},
        "waiting": None,
    }


def of_consumer(
    group: ModernGroup, member: ModernMember, held: situations.PartitionHolders, topic_names: Mapping[str, str]
) -> dict[str, Any]:
    """The same of a member of a consumer group. The session timeout is in the log of classic members alone."""
    matches = None if member.subscribed_regex is None else group.regexes.get(member.subscribed_regex)
    return {
        "subscription": {
            "topics": sorted(member.subscribed_topics),
            "regex": member.subscribed_regex,
            "regex_topics": None if matches is None else sorted(matches),
        },
        "rack_id": member.rack_id,
        "assignor": member.server_assignor,
        "rebalance_timeout_ms": _known(member.rebalance_timeout_ms),
        "session_timeout_ms": _known(member.classic_session_timeout_ms),
        "claims": [_claim(name, claim, topic_names) for name, claim in sorted(member.claims.items()) if claim],
        "assignment_epochs": _epochs(member, topic_names),
        "waiting": waiting(group, member, held, topic_names),
    }


def waiting(
    group: ModernGroup, member: ModernMember, held: situations.PartitionHolders, topic_names: Mapping[str, str]
) -> dict[str, Any] | None:
    """`situation`, `text`, and `for`: member id → partitions it has yet to release; None where it waits for nothing."""
    if group.family != CONSUMER:
        return None
    if member.is_absent_static:
        return {"situation": "away", "for": {}, "text": "is away: its partitions are kept for it"}
    situation = situations.situation(group, member, held)
    blocked = situations.waits_for(group, member, held) if situation == situations.WAITING else {}
    others = {who: listed(parts, topic_names) for who, parts in blocked.items()}
    target = group.targets.get(member.member_id, {})
    missing = _places(listed(without(target, member.assigned), topic_names))
    surplus = [*without(member.assigned, target).items(), *member.pending_revocation.items()]
    texts = {
        situations.BEHIND: f"has yet to learn of the target of epoch {group.assignment_epoch}: it is at {member.epoch}",
        situations.REVOKING: f"has yet to revoke {_places(listed(merged(surplus), topic_names))}",
        situations.WAITING: "waits for "
        + "; ".join(f"{_places(parts)}, which {who} has yet to release" for who, parts in others.items()),
        situations.RELEASED: f"is to be given {missing} with its next heartbeat",
        situations.AWAITING_TARGET: f"waits for a target of epoch {group.epoch}",
    }
    if situation not in texts:
        return None
    return {
        "situation": situation,
        "for": others,
        "text": texts[situation],
    }


def _claim(assignor: str | None, claim: Claim, topic_names: Mapping[str, str]) -> dict[str, Any]:
    """What it said it owned when it joined; a generation of None is a claim without one.

    `user_data_bytes` is -1 for null, and None but on `cooperative-sticky`, where it tells clients apart.
    """
    return {
        "assignor": assignor,
        "version": claim.version,
        "generation": None if claim.generation < 0 else claim.generation,
        "owned": listed(claim.owned, topic_names),
        "user_data_bytes": claim.user_data_bytes,
    }


def _epochs(member: ModernMember, topic_names: Mapping[str, str]) -> dict[str, dict[str, int]]:
    """Topic → partition → the epoch it was assigned in."""
    return {
        topic_names.get(topic, topic): {
            str(partition): epoch for partition, epoch in zip(partitions, member.partition_epochs[topic], strict=True)
        }
        for topic, partitions in sorted(member.assigned.items(), key=lambda item: topic_names.get(item[0], item[0]))
        if len(member.partition_epochs.get(topic, ())) == len(partitions)
    }


def _known(timeout_ms: int) -> int | None:
    return timeout_ms if timeout_ms >= 0 else None


def _places(parts: Mapping[str, list[int]]) -> str:
    """`t-0, t-1`, the first few."""
    named = [f"{topic}-{partition}" for topic, partitions in parts.items() for partition in partitions]
    more = len(named) - _MOST_NAMED
    return ", ".join(named[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "") if named else "nothing"
