"""What a classic member says when it joins, and what its leader gives it: bytes that only clients wrote.

What it claims to own is the only client-side ownership evidence in the log. Where that stands depends on the assignor
(KIP-341, KIP-429, KIP-792):

    assignor             owned partitions                  generation
    sticky               user data                         user data, version 1 (-1 in version 0)
    cooperative-sticky   owned partitions, version 1 up    subscription version 2 up, else 4 bytes of user data
    any other            owned partitions, version 1 up    subscription version 2 up

On `cooperative-sticky` the user data tells which client joined, and so what its leader will do (recorded of Java 4.3.1
and librdkafka 2.16):

    client       user data of its subscription                 as leader, in each assignment
    Java         4 bytes; null before 2.8.1                    version 3, 1 in older ones; user data null
    librdkafka   none (zero bytes) at first; from the second   version 0; the user data that the member joined with,
                 generation on partitions and a generation     of any client

Each generation writes all members again, and groups of one topic say much the same: members whose bytes are alike share
what was made of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, Protocol

from coordinator_model.records.consumer_protocol import (
    ConsumerProtocolSubscription,
    cooperative_sticky_generation,
    decode_assignment,
    decode_first_fields,
    decode_sticky_user_data,
    decode_subscription,
)
from coordinator_model.records.kafka_streams import StreamsTask, decode_assignment_info, decode_subscription_info
from coordinator_model.state.membership import Claim, Partitions, StreamsClaim
from coordinator_model.state.partitions import merged

STICKY: Final = "sticky"
COOPERATIVE_STICKY: Final = "cooperative-sticky"
STREAMS: Final = "stream"
"""Assignor of Kafka Streams before KIP-1071."""

_LONGEST_REMEMBERED: Final = 1_024
"""Bytes of a subscription or assignment: those of many topics are many times as long, and differ."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """What a leader gave one member.

    Attributes:
        assigned: partitions by topic name.
        user_data: whether the assignor put data of its own beside them.
        streams_active, streams_standby: tasks by subtopology, of a member of a Kafka Streams application.
    """

    assigned: Partitions = field(default_factory=dict)
    user_data: bool = False
    streams_active: Partitions = field(default_factory=dict)
    streams_standby: Partitions = field(default_factory=dict)


class _OfTopic(Protocol):
    @property
    def topic(self) -> str: ...
    @property
    def partitions(self) -> tuple[int, ...]: ...


def by_topic(parts: Iterable[_OfTopic]) -> Partitions:
    """Topic name → partitions ascending, from a list that may name a topic more than once."""
    return merged((part.topic, part.partitions) for part in parts)


def claim_of(protocol: str | None, metadata: bytes) -> Claim | None:
    """Decode one embedded subscription, or its fields of version 0; None where it is opaque, and Kafka ignores it."""
    return (_remembered_claim if len(metadata) <= _LONGEST_REMEMBERED else _claim)(protocol, metadata)


def assignment_of(protocol: str | None, blob: bytes) -> Assignment | None:
    """Decode one embedded assignment; None where it is opaque."""
    return (_remembered_assignment if len(blob) <= _LONGEST_REMEMBERED else _assignment)(protocol, blob)


def _claim(protocol: str | None, metadata: bytes) -> Claim | None:
    subscription = decode_subscription(metadata)
    malformed = subscription is None
    if subscription is None:
        subscription = decode_first_fields(metadata)
    if subscription is None:
        return None
    owned, generation = _ownership(protocol, subscription)
    return Claim(
        version=subscription.version,
        topics=tuple(sorted(set(subscription.topics))),
        owned=owned,
        generation=generation,
        rack_id=subscription.rack_id,
        streams=_streams_claim(subscription.user_data or b"") if protocol == STREAMS else None,
        user_data_bytes=_size(subscription.user_data) if protocol == COOPERATIVE_STICKY else None,
        malformed=malformed,
    )


def _size(user_data: bytes | None) -> int:
    return -1 if user_data is None else len(user_data)


def _assignment(protocol: str | None, blob: bytes) -> Assignment | None:
    assignment = decode_assignment(blob)
    if assignment is None:
        return None
    user_data = assignment.user_data
    tasks = decode_assignment_info(user_data) if user_data and protocol == STREAMS else None
    return Assignment(
        assigned=by_topic(assignment.assigned_partitions),
        user_data=bool(user_data),
        streams_active={} if tasks is None else by_subtopology(tasks.active),
        streams_standby={} if tasks is None else by_subtopology(tasks.standby),
    )


_remembered_claim: Final = lru_cache(4_096)(_claim)
_remembered_assignment: Final = lru_cache(4_096)(_assignment)


def by_subtopology(tasks: Iterable[StreamsTask]) -> Partitions:
    """Subtopology → partitions ascending."""
    return merged((task.subtopology, (task.partition,)) for task in tasks)


def _streams_claim(user_data: bytes) -> StreamsClaim | None:
    reported = decode_subscription_info(user_data)
    if reported is None:
        return None
    copies = {f"{task.subtopology}_{task.partition}": -1 if of is None else of for task, of in reported.copies}
    return StreamsClaim(process_id=reported.process_id, active=by_subtopology(reported.active), copies=copies)


def claims_of(protocols: Iterable[tuple[str, bytes]]) -> Mapping[str, Claim | None]:
    """Protocol name → claim, for every protocol a member supports; None where a broker cannot read it."""
    claims = {name: claim_of(name, metadata) for name, metadata in protocols}
    return {name: None if claim is not None and claim.malformed else claim for name, claim in claims.items()}


def _ownership(protocol: str | None, subscription: ConsumerProtocolSubscription) -> tuple[Partitions, int]:
    user_data = subscription.user_data or b""
    if protocol == STICKY:
        sticky = decode_sticky_user_data(user_data)
        return ({}, -1) if sticky is None else (by_topic(sticky.previous_assignment), sticky.generation)
    generation = subscription.generation_id
    if protocol == COOPERATIVE_STICKY and generation < 0:
        reported = cooperative_sticky_generation(user_data)
        generation = -1 if reported is None else reported
    return by_topic(subscription.owned_partitions), generation
