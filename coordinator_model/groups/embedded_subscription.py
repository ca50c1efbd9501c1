"""What a classic member claims to own when it joins: the only client-side ownership evidence in the log.

Where it stands depends on the assignor (KIP-341, KIP-429, KIP-792):

    assignor             owned partitions                  generation
    sticky               user data                         user data, version 1 (-1 in version 0)
    cooperative-sticky   owned partitions, version 1 up    subscription version 2 up, else 4 bytes of user data
    any other            owned partitions, version 1 up    subscription version 2 up
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, Protocol

from coordinator_model.records.consumer_protocol import (
    ConsumerProtocolSubscription,
    cooperative_sticky_generation,
    decode_sticky_user_data,
    decode_subscription,
)
from coordinator_model.records.kafka_streams import StreamsTask, decode_subscription_info
from coordinator_model.state.membership import Claim, Partitions, StreamsClaim
from coordinator_model.state.partitions import merged

STICKY: Final = "sticky"
COOPERATIVE_STICKY: Final = "cooperative-sticky"
STREAMS: Final = "stream"
"""Assignor of Kafka Streams before KIP-1071."""


class _OfTopic(Protocol):
    @property
    def topic(self) -> str: ...
    @property
    def partitions(self) -> tuple[int, ...]: ...


def by_topic(parts: Iterable[_OfTopic]) -> Partitions:
    """Topic name → partitions ascending, from a list that may name a topic more than once."""
    return merged((part.topic, part.partitions) for part in parts)


def claim_of(protocol: str | None, metadata: bytes) -> Claim | None:
    """Decode one embedded subscription; None where it is opaque (Kafka ignores such too)."""
    subscription = decode_subscription(metadata)
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
    )


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
    """Protocol name → claim, for every protocol a member supports."""
    return {name: claim_of(name, metadata) for name, metadata in protocols}


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
