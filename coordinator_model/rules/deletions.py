"""Offsets that went: one event for all partitions of a group that did at one moment, and by what cause.

A tombstone does not say why it was written, and what is deleted at once is as many tombstones of one time. What the
coordinator refuses, and what it writes beside them, leaves these, of which the event names all that may be:

    topic_deleted   takes what the group has of every partition of the topic, and nothing of its membership
    offset_delete   an admin's OffsetDelete: not of a topic that a member subscribes to, and nothing of the membership
    expiry          not of a topic that a member subscribes to, and not within a minute of the commit: the shortest
                    retention there is (offsets.retention.minutes). The group may go with its last offsets
    group_deleted   only in a group without members; all that it has goes, and it with it

So what may be the cause of all of them together is mostly one thing. Where the offsets are younger than a day, expiry
stays among what may be, and is not taken for the cause: brokers keep offsets for a week, and did for a day up to 1.1.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final

from coordinator_model.rules import subscriptions
from coordinator_model.rules.members import members_of
from coordinator_model.state.findings import Finding, Position
from coordinator_model.state.group_state import GroupState
from coordinator_model.state.membership import Membership
from coordinator_model.state.rule_memory import Deleted, Deletions

SHORTEST_RETENTION_MS: Final = 60_000
USUAL_RETENTION_MS: Final = 86_400_000
"""The shortest that brokers have by default, of any release."""

MOST_SHOWN: Final = 100
"""Of so many partitions the event says which offset went; all are named."""

TOPIC_DELETED, OFFSET_DELETE, EXPIRY, GROUP_DELETED = "topic_deleted", "offset_delete", "expiry", "group_deleted"


def may_be(membership: Membership, topic: str, age_ms: int | None) -> list[str]:
    """What may have deleted an offset, of the table above, as far as a tombstone alone shows."""
    found = [TOPIC_DELETED]
    if topic not in subscriptions.subscribed_topics(membership):
        found.append(OFFSET_DELETE)
        if age_ms is None or age_ms >= SHORTEST_RETENTION_MS:
            found.append(EXPIRY)
    if not members_of(membership):
        found.append(GROUP_DELETED)
    return found


def note(state: GroupState, place: Position, at: tuple[str, int], deleted: Deleted) -> None:
    """Remember that the offset of a topic's partition went."""
    if state.deletions is None:
        state.deletions = Deletions(time_ms=place.timestamp_ms, offset=place.offset)
    state.deletions.offset = place.offset
    state.deletions.partitions["{}/{}".format(*at)] = deleted


def reported(state: GroupState, deletions: Deletions, left: Collection[str]) -> Finding:
    """The moment is over: one finding for all of it.

    Args:
        state: the group, as it is then.
        deletions: what went.
        left: topics of them of which offsets of other partitions are there.
    """
    first, *_ = deletions.partitions
    topic, _, partition = first.rpartition("/")
    ages = [of.age_ms for of in deletions.partitions.values() if of.age_ms is not None]
    shown = sorted(deletions.partitions.items())[:MOST_SHOWN]
    by_topic: dict[str, list[int]] = {}
    for name in sorted(deletions.partitions):
        of_topic, _, number = name.rpartition("/")
        by_topic.setdefault(of_topic, []).append(int(number))
    detail: dict[str, Any] = {
        "topic": topic,
        "partition": int(partition),
        "offset": deletions.partitions[first].offset,
        "partitions": {name: sorted(numbers) for name, numbers in by_topic.items()},
        "offsets": {name: of.offset for name, of in shown},
    }
    if ages:
        detail["age_ms"] = min(ages)
    causes = _causes(state, deletions, left)
    if causes:
        likely = causes
        if len(causes) > 1 and detail.get("age_ms", USUAL_RETENTION_MS) < USUAL_RETENTION_MS:
            likely = [cause for cause in causes if cause != EXPIRY]
        detail |= {"cause": likely[0] if len(likely) == 1 else None, "may_be": causes}
    return Finding("offset_deleted", detail)


def _causes(state: GroupState, deletions: Deletions, left: Collection[str]) -> list[str]:
    """What may be of every one of them; nothing where it is not known of some who was in the group."""
    first, *others = (of.may_be for of in deletions.partitions.values())
    found = [cause for cause in first if all(cause in of for of in others)]
    step_ms = state.last_step_ms if state.step is None else state.step.timestamp_ms
    if state.exists:
        found = [cause for cause in found if cause != GROUP_DELETED]
    elif step_ms == deletions.time_ms:
        found = [cause for cause in found if cause in (EXPIRY, GROUP_DELETED)]
    return [cause for cause in found if cause != TOPIC_DELETED] if left else found
