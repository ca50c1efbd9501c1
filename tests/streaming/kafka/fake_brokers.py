"""Brokers behind kafka-python's admin client, which remembers where they are until it has to look again."""

from collections import Counter
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, TypeVar

import pytest
from kafka.errors import KafkaConnectionError, KafkaError, NotLeaderForPartitionError, UnknownBrokerIdError

from streaming.kafka import lazy_admin

Place = tuple[str, int]

_Said = TypeVar("_Said")


def driven(under_way: Coroutine[Any, Any, _Said]) -> _Said:
    """What a coroutine returns that waits for no one."""
    try:
        while True:
            under_way.send(None)
    except StopIteration as answered:
        return answered.value  # type: ignore[no-any-return]  # what the coroutine returns


@dataclass
class FakeBrokers:
    """A cluster of two brokers, and the client's view of it.

    Attributes:
        running: brokers that run.
        leaders: place → the broker that leads it.
        ends: place → where its log ends.
        epoch: of every leader.
        refusing: place → what its leader answers instead.
        failing: broker → what asking it ends with.
        down: what making a client ends with.
        known: brokers whose address the client has; all that run, once it looked again.
        looks: how often it looked again.
        clients: how many were made.
        asked: (broker, partitions of each request).
    """

    running: set[int] = field(default_factory=lambda: {1, 2})
    leaders: dict[Place, int] = field(default_factory=dict)
    ends: dict[Place, int] = field(default_factory=dict)
    epoch: int = 3
    refusing: dict[Place, type[KafkaError]] = field(default_factory=dict)
    failing: dict[int, KafkaError] = field(default_factory=dict)
    down: KafkaError | None = None
    known: set[int] = field(default_factory=lambda: {1, 2})
    looks: int = 0
    clients: int = 0
    closed: int = 0
    asked: list[tuple[int, int]] = field(default_factory=list)
    seconds: float = 1_000.0

    def lead(self, topic: str, *brokers: int) -> dict[Place, int]:
        """A topic of these leaders, each log with an end of its own; returns who leads what."""
        for partition, broker in enumerate(brokers):
            self.leaders[topic, partition], self.ends[topic, partition] = broker, 10 * partition
        return {place: broker for place, broker in self.leaders.items() if place[0] == topic}

    def restart(self, broker: int) -> None:
        """One that was away while the client looked is back."""
        self.known.discard(broker)

    # -- what kafka-python's connection manager does ------------------------------------------------------------------

    def run(self, question: Callable[..., Coroutine[Any, Any, _Said]], *args: object) -> _Said:
        return driven(question(*args))

    async def refresh_metadata(self) -> None:
        self.looks += 1
        self.known = set(self.running)

    def send(self, request: Any, node_id: int) -> Coroutine[Any, Any, Any]:
        if node_id not in self.known:
            raise UnknownBrokerIdError(node_id)
        return self._answer(request, node_id)

    async def _answer(self, request: Any, broker: int) -> Any:
        if broker in self.failing:
            raise self.failing[broker]
        if broker not in self.running:
            raise KafkaConnectionError("refused")
        self.asked.append((broker, sum(len(topic.partitions) for topic in request.topics)))
        return SimpleNamespace(
            topics=[
                SimpleNamespace(
                    name=topic.name,
                    partitions=[
                        self._of(broker, topic.name, of.partition_index, of.timestamp) for of in topic.partitions
                    ],
                )
                for topic in request.topics
            ]
        )

    def _of(self, broker: int, topic: str, partition: int, timestamp: int) -> Any:
        error: type[KafkaError] | None = self.refusing.get((topic, partition))
        if self.leaders[topic, partition] != broker:
            error = NotLeaderForPartitionError
        return SimpleNamespace(
            partition_index=partition,
            error_code=0 if error is None else error.errno,
            offset=self.ends[topic, partition],
            timestamp=timestamp,
            leader_epoch=self.epoch,
        )

    # -- topics, as `describe_topics` has them ------------------------------------------------------------------------

    def describe_topics(self, names: list[str]) -> list[dict[str, Any]]:
        counts = Counter(topic for topic, _ in self.leaders)
        return [
            {
                "error_code": 0 if name in counts else 3,
                "name": name,
                "topic_id": "00000000-0000-0000-0000-000000000001",
                "partitions": [
                    {"partition_index": at, "leader_id": self.leaders[name, at], "leader_epoch": self.epoch}
                    for at in range(counts[name])
                ],
            }
            for name in names
        ]


@pytest.fixture
def brokers(monkeypatch: pytest.MonkeyPatch) -> FakeBrokers:
    """What every `LazyAdmin` connects to; its clock stands still but for `seconds`."""
    made = FakeBrokers()

    class FakeAdmin:
        def __init__(self, **_: Mapping[str, object]) -> None:
            made.clients += 1
            if made.down is not None:
                raise made.down
            self._manager = SimpleNamespace(run=made.run, send=made.send, cluster=made)
            self._net = None

        def describe_topics(self, names: list[str]) -> list[dict[str, Any]]:
            return made.describe_topics(names)

        def close(self) -> None:
            made.closed += 1

    monkeypatch.setattr(lazy_admin, "AdminClient", FakeAdmin)
    monkeypatch.setattr(lazy_admin, "monotonic", lambda: made.seconds)
    return made
