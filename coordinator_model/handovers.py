"""Who had a partition before who has it now: what makes a commit suspect of coming from the wrong one.

A coordinator refuses commits of a former owner (KIP-447, KIP-848), but not all of them: until a member has acknowledged
that it lost a partition its commits are accepted, transactional ones without a member always, and what the former owner
committed after the new one had asked where to begin is processed twice. In the log all this looks alike: soon after a
hand-over the committed offset goes back.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from coordinator_model.clocks import within
from coordinator_model.group_state import STREAMS, GroupState, Partitions
from coordinator_model.rebalances import owners_of

HANDOVER_WINDOW_MS: Final = 300_000
"""How long after a hand-over a rewind is put down to it: Kafka's default for the time between two polls."""


def of_partition(state: GroupState, topic: str, partition: int, time_ms: int) -> dict[str, Any] | None:
    """The hand-over of a partition that lately was, or is under way; None for none, and where nobody can tell.

    As an event's detail: `former_owner` and `present_owner` (None while nobody owns it), instance ids of static members
    and member ids of others, and `handover_time` in milliseconds.
    """
    name = _name_in_assignments(state, topic)
    if name is None:
        return None
    present = _owner(_owners(state), name, partition)
    if state.rebalance is not None:
        former, handover_ms = _owner(state.rebalance.owners, name, partition), state.rebalance.since_ms
    elif state.handover is not None and within(HANDOVER_WINDOW_MS, state.handover.time_ms, time_ms):
        former, handover_ms = _owner(state.handover.former_owners, name, partition), state.handover.time_ms
    else:
        return None
    if former is None or former == present:
        return None
    return {"former_owner": former, "present_owner": present, "handover_time": handover_ms}


def _name_in_assignments(state: GroupState, topic: str) -> str | None:
    """What the topic is called in assignments: its name, its id, or the subtopology that reads it."""
    modern = state.membership.modern_group
    if modern is None:
        return topic
    if modern.family == STREAMS:
        reading = (name for name, topics in modern.subtopologies.items() if topic in topics)
        return next(reading, None)
    return next(reversed(state.topic_ids.get(topic, ())), None)


def _owners(state: GroupState) -> Mapping[str, Partitions]:
    modern, classic = state.membership.modern_group, state.membership.classic
    if modern is not None:
        return owners_of(modern.members)
    return {} if classic is None else owners_of(classic.members)


def _owner(owners: Mapping[str, Partitions], name: str, partition: int) -> str | None:
    return next((owner for owner, parts in owners.items() if partition in parts.get(name, ())), None)
