"""Where the logs of a cluster end: what the sampler of log ends is answered."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from streaming.end_offsets.store import Topic, TopicPartition
from tests.streaming.boards import described
from tests.streaming.fake_cluster import FakeCluster


@dataclass
class FakeLogEnds(FakeCluster[str]):
    """`OffsetsClient` of topics and their log ends."""

    topics: dict[str, Topic] = field(default_factory=dict)
    high_watermarks: dict[TopicPartition, int] = field(default_factory=dict)
    last_stable: dict[TopicPartition, int] = field(default_factory=dict)
    first: dict[TopicPartition, int] = field(default_factory=dict)
    times: dict[tuple[TopicPartition, int], int] = field(default_factory=dict)
    untold: frozenset[str] = frozenset()
    outdated: bool = False

    def topic(self, name: str, *ends: int) -> None:
        """A topic with these high watermarks, all stable."""
        self.topics[name] = described(name, len(ends))
        for partition, end in enumerate(ends):
            self.high_watermarks[name, partition] = self.last_stable[name, partition] = end

    def describe(self, names: Collection[str], ids: Collection[str]) -> list[Topic]:
        self.note(f"describe {' '.join(sorted([*names, *ids]))}")
        return [topic for topic in self.topics.values() if topic.name in names or topic.id in ids]

    def ends(self, partitions: Mapping[TopicPartition, int], *, committed: bool) -> dict[TopicPartition, int]:
        self.note("read_committed" if committed else "read_uncommitted")
        held = self.last_stable if committed else self.high_watermarks
        leaders = {(topic.name, at): broker for topic in self.topics.values() for at, broker in topic.leaders.items()}
        return {
            place: held[place] for place, broker in partitions.items() if place in held and broker == leaders.get(place)
        }

    def earliest(self, partitions: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        self.note("earliest")
        return {place: self.first.get(place, 0) for place in partitions}

    def written_ms(self, places: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        self.note("record times")
        return {place: self.times[place, at] for place, at in places.items() if (place, at) in self.times}
