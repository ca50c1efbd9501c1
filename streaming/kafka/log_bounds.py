"""Where the partitions of the log begin and end, as their leaders say.

A partition is asked of its leader. Leaders move, and a client that has not heard of it asks the former one:

    what is said                                  is done
    the partition has no leader                   it is away; who leads is looked at again after a second
    an error that says "not here" (`AWAY`)        it is away; another client looks at once who leads
    any other error                               raised
    no answer from any broker                     raised

What one partition has does not depend on what another lacks: those that are away are named, and the others have their
ends. Who leads is looked at every half minute, too: a topic may have grown.
"""

import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from confluent_kafka import IsolationLevel, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import OffsetSpec  # type: ignore[attr-defined]  # exported, though not by name

from streaming.kafka.librdkafka import AdminClient
from streaming.kafka.msk_iam import connectable

AWAY: Final = frozenset(
    {
        KafkaError._TRANSPORT,  # noqa: SLF001 - its public name, as those that follow
        KafkaError._ALL_BROKERS_DOWN,  # noqa: SLF001
        KafkaError._TIMED_OUT,  # noqa: SLF001
        KafkaError._RESOLVE,  # noqa: SLF001
        KafkaError._WAIT_COORD,  # noqa: SLF001
        KafkaError.REQUEST_TIMED_OUT,
        KafkaError.BROKER_NOT_AVAILABLE,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.NETWORK_EXCEPTION,
        # Said while a leader goes or comes, and it and its client know of different epochs.
        KafkaError.FENCED_LEADER_EPOCH,
        KafkaError.UNKNOWN_LEADER_EPOCH,
        KafkaError.OFFSET_NOT_AVAILABLE,
        KafkaError.REPLICA_NOT_AVAILABLE,
        KafkaError.KAFKA_STORAGE_ERROR,
    }
)
"""Errors of brokers that are away or not yet what they will be: nothing is wrong but the moment."""

_NOT_OF_THIS_BROKER: Final = AWAY | {
    # Of a partition that was taken from a broker; a topic that is not there is said so by the metadata.
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    # Its brokers have said that they go, and that a partition has no leader any more.
    KafkaError._NOENT,  # noqa: SLF001 - its public name
}

LOOK_AGAIN_SECONDS: Final = 1.0
"""How soon it is looked again who leads, where a partition is away."""

LOOK_EVERY_SECONDS: Final = 30.0

_EARLIEST: Final = OffsetSpec.earliest()  # type: ignore[no-untyped-call]  # has no types
_LATEST: Final = OffsetSpec.latest()  # type: ignore[no-untyped-call]  # has no types

Offsets = dict[int, int]


@dataclass(frozen=True, slots=True)
class Bounds:
    """Where the log ends. Maps are by partition, of those whose leaders answered.

    Attributes:
        stable: last stable offset.
        high: high watermark.
        epochs: leader epoch in which that was said; -1 of brokers that know none (before 2.1).
        leaders: broker that said it.
        away: of the others, why.
        partitions: how many there are.
    """

    stable: Offsets
    high: Offsets
    epochs: dict[int, int] = field(default_factory=dict)
    leaders: dict[int, int] = field(default_factory=dict)
    away: dict[int, str] = field(default_factory=dict)
    partitions: int = 0


class LogBounds:
    """Asks where the log begins and ends; used by one thread.

    Args:
        settings: of librdkafka.
        topic: the coordinator's log.
        timeout_seconds: how long one answer may take.
        clock: seconds that only grow.
    """

    def __init__(
        self,
        settings: Mapping[str, Any],
        topic: str,
        timeout_seconds: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._settings = dict(settings)
        self._topic = topic
        self._timeout_seconds = timeout_seconds
        self._clock = clock
        self._admin: AdminClient | None = None
        self._made_at = self._look_at = 0.0
        self._is_stale = False
        self._leaders: dict[int, int] = {}

    def first(self, partitions: Collection[int] | None = None) -> Offsets:
        """First offset of each partition, or of these, of those whose leaders answer. Raises KafkaException."""
        self._look()
        wanted = self._led() if partitions is None else [of for of in self._led() if of in partitions]
        found, away = self._ask(wanted, _EARLIEST, IsolationLevel.READ_UNCOMMITTED)
        self._is_stale = bool(away)
        return {partition: offset for partition, (offset, _) in found.items()}

    def ends(self) -> Bounds:
        """Where each partition ends. Raises KafkaException where no broker answers, or where they refuse."""
        self._look()
        leaders, led = dict(self._leaders), self._led()
        # In this order: a commit written between the answers would pass for one of an open transaction, and be read
        # after the membership that follows it.
        high, away = self._ask(led, _LATEST, IsolationLevel.READ_UNCOMMITTED)
        stable, later_away = self._ask(list(high), _LATEST, IsolationLevel.READ_COMMITTED)
        away |= later_away
        self._is_stale = bool(away)
        if away:
            self._look_at = 0.0
        away |= {partition: "LEADER_NOT_AVAILABLE" for partition, leader in leaders.items() if leader < 0}
        return Bounds(
            stable={of: min(end, high[of][0]) for of, (end, _) in stable.items()},
            high={of: high[of][0] for of in stable},
            epochs={of: high[of][1] for of in stable},
            leaders={of: leaders[of] for of in stable},
            away=away,
            partitions=len(leaders),
        )

    def _led(self) -> list[int]:
        return [partition for partition, leader in sorted(self._leaders.items()) if leader >= 0]

    def _look(self) -> None:
        """Look who leads, if it is time to."""
        now = self._clock()
        admin = self._admin
        if admin is not None and now < self._look_at:
            return
        if admin is None or (self._is_stale and now - self._made_at >= LOOK_AGAIN_SECONDS):
            # A client asks for minutes whom it took for the leader: another one has to find out.
            admin = AdminClient(connectable(self._settings))
            self._made_at = now
        # Asked for offsets while it is still getting to know who leads, a client now and then waits for 3 s.
        topic = admin.list_topics(self._topic, timeout=self._timeout_seconds).topics[self._topic]
        if topic.error is not None:
            raise KafkaException(topic.error)
        self._leaders = {of.id: of.leader for of in topic.partitions.values()}
        self._admin, self._is_stale = admin, False
        is_led = all(leader >= 0 for leader in self._leaders.values())
        self._look_at = now + (LOOK_EVERY_SECONDS if is_led else LOOK_AGAIN_SECONDS)

    def _ask(
        self, partitions: Collection[int], what: OffsetSpec, isolation: IsolationLevel
    ) -> tuple[dict[int, tuple[int, int]], dict[int, str]]:
        """Partition → offset and leader epoch, and → why not, of those whose broker says that it is not with it."""
        found, away = dict[int, tuple[int, int]](), dict[int, str]()
        if not partitions:
            return found, away
        assert self._admin is not None  # noqa: S101 - made where it is looked who leads
        asked = {TopicPartition(self._topic, partition): what for partition in partitions}
        futures = self._admin.list_offsets(asked, isolation_level=isolation, request_timeout=self._timeout_seconds)
        for of, future in futures.items():
            try:
                answer = future.result()
            except KafkaException as error:
                if error.args[0].code() not in _NOT_OF_THIS_BROKER:
                    raise
                away[of.partition] = error.args[0].name()
                continue
            if answer.offset < 0:
                # Of a partition whose leader is gone a client says that for good.
                away[of.partition] = "LEADER_NOT_AVAILABLE"
            else:
                found[of.partition] = answer.offset, -1 if answer.leader_epoch is None else answer.leader_epoch
        return found, away
