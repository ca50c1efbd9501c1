"""A cluster that answers the sampler from memory, and fails when it is to."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from streaming.end_offsets.store import Topic, TopicPartition
from tests.streaming.boards import described


@dataclass
class FakeCluster:
    """Topics, their log ends, and what was asked; `down` is what every question ends with while it is set."""

    topics: dict[str, Topic] = field(default_factory=dict)
    high_watermarks: dict[TopicPartition, int] = field(default_factory=dict)
    last_stable: dict[TopicPartition, int] = field(default_factory=dict)
    first: dict[TopicPartition, int] = field(default_factory=dict)
    times: dict[tuple[TopicPartition, int], int] = field(default_factory=dict)
    down: Exception | None = None
    untold: frozenset[str] = frozenset()
    outdated: bool = False
    asked: list[str] = field(default_factory=list)
    connections: int = 0
    closed: int = 0

    def topic(self, name: str, *ends: int) -> None:
        """A topic with these high watermarks, all stable."""
        self.topics[name] = described(name, len(ends))
        for partition, end in enumerate(ends):
            self.high_watermarks[name, partition] = self.last_stable[name, partition] = end

    def connect(self) -> "FakeClient":
        """A client, as the sampler makes them."""
        if self.down is not None:
            raise self.down
        self.connections += 1
        return FakeClient(self)


@dataclass
class FakeClient:
    """`OffsetsClient` of a fake cluster."""

    cluster: FakeCluster

    @property
    def untold(self) -> frozenset[str]:
        return self.cluster.untold

    @property
    def outdated(self) -> bool:
        return self.cluster.outdated

    def describe(self, names: Collection[str], ids: Collection[str]) -> list[Topic]:
        self._ask(f"describe {' '.join(sorted([*names, *ids]))}")
        return [topic for topic in self.cluster.topics.values() if topic.name in names or topic.id in ids]

    def ends(self, partitions: Mapping[TopicPartition, int], *, committed: bool) -> dict[TopicPartition, int]:
        self._ask("read_committed" if committed else "read_uncommitted")
        held = self.cluster.last_stable if committed else self.cluster.high_watermarks
        leaders = {
            (topic.name, at): broker for topic in self.cluster.topics.values() for at, broker in topic.leaders.items()
        }
        return {
            place: held[place] for place, broker in partitions.items() if place in held and broker == leaders.get(place)
        }

    def earliest(self, partitions: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        self._ask("earliest")
        return {place: self.cluster.first.get(place, 0) for place in partitions}

    def written_ms(self, places: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        self._ask("record times")
        times = self.cluster.times
        return {place: times[place, offset] for place, offset in places.items() if (place, offset) in times}

    def close(self) -> None:
        self.cluster.closed += 1

    def _ask(self, question: str) -> None:
        if self.cluster.down is not None:
            raise self.cluster.down
        self.cluster.asked.append(question)
