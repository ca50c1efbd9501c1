"""What a group's members ask to read, as far as the log shows.

    member                  asks for                                                  unknown where
    classic                 the topics of its embedded subscription (a pattern is     that does not decode, not even
                            resolved by the client: only its matches are sent)        the fields of version 0
    consumer, share         topics by name, and what its expression matched           the expression is not resolved yet
    streams                 the source topics of the group's topology                 there is no topology

A group without members subscribes to nothing, and one that only commits never says.
"""

from __future__ import annotations

from collections.abc import Callable

from coordinator_model.rules.members import members_of
from coordinator_model.state.membership import STREAMS, Membership


def subscribed_topics(membership: Membership) -> frozenset[str]:
    """Names of all topics that members are known to subscribe to."""
    modern = membership.modern_group
    if modern is None:
        members = () if membership.classic is None else membership.classic.members.values()
        return frozenset[str]().union(*[member.claim.topics for member in members if member.claim is not None])
    if modern.family == STREAMS:
        return frozenset(topic for topics in modern.subtopologies.values() for topic in topics)
    named = (topic for member in modern.members.values() for topic in member.subscribed_topics)
    return frozenset([*named, *(topic for topics in modern.regexes.values() for topic in topics)])


def reader(membership: Membership) -> Callable[[str], bool | None]:
    """Answers for a topic whether some member reads it; None where that is not known."""
    subscribed, known = subscribed_topics(membership), all_known(membership)
    return lambda topic: True if topic in subscribed else (False if known else None)


def all_known(membership: Membership) -> bool:
    """Whether a topic that is not among `subscribed_topics` is one that no member reads."""
    members = members_of(membership).values()
    modern = membership.modern_group
    if modern is None:
        classic = membership.classic
        return classic is not None and bool(members) and all(of.claim is not None for of in classic.members.values())
    if modern.family == STREAMS:
        return bool(members) and bool(modern.subtopologies)
    resolved = {None, *modern.regexes}
    asking = modern.members.values()
    return bool(asking) and all(of.metadata_live and of.subscribed_regex in resolved for of in asking)
