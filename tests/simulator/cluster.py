"""What a coordinator finds around it: the release it is of, and the topics there are."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias
from zlib import crc32

from lab.builders import topic_id, topic_name

Place: TypeAlias = tuple[str, int]
"""Topic and partition; subtopology and partition of a task."""
Metadata: TypeAlias = dict[str, tuple[str, int]]
"""Topic name → which of that name it is (`Cluster.of_name`), and its partitions."""

PARTITIONS: Final = {"t": 6, "u": 3, "v": 2}
"""The topics that there are from the beginning, and how many partitions each has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """In what the log of one Kafka release differs from another's (docs/coordinator-log.md, "Layouts by release")."""

    name: str
    first_epoch: int = 0
    """Group and assignment epoch in memory before anything is written."""
    first_streams_epoch: int = 1
    """The same of a streams group; since 4.2 as in 4.3."""
    commit_version: int = 4
    """Of an OffsetCommitValue: 4 names the topic's id."""
    partition_metadata: bool = False
    """Partition counts are a record of type 4; later ones write a hash with the epoch."""
    converts_metadata: bool = True
    """An online upgrade writes them at once, not with the first member that joins."""
    new_groups: bool = True
    """Share groups of today's layout, and streams groups."""
    expressions: bool = True
    """Consumers may subscribe by an expression that the broker matches."""
    gives_up_topics: bool = True
    """A member that subscribes to less gives up the rest before there is a target without it."""
    validates_topology: bool = True
    """The epoch of a streams group says which topology was found valid."""
    partition_epochs: bool = False
    """Each partition carries the epoch it was assigned in (KIP-1251), a target when it was computed."""
    throttle_ms: int = 0
    """group.consumer.assignment.interval.ms: no two targets in a shorter time (KIP-1263)."""


_BEFORE_4_1: Final[dict[str, Any]] = {
    "commit_version": 3,
    "partition_metadata": True,
    "new_groups": False,
    "gives_up_topics": False,
    "validates_topology": False,
}
RELEASES: Final = {
    release.name: release
    for release in (
        Release(name="3.9", expressions=False, converts_metadata=False, **_BEFORE_4_1),
        Release(name="4.0", **_BEFORE_4_1),
        Release(name="4.1", first_streams_epoch=0, gives_up_topics=False, validates_topology=False),
        Release(name="4.2"),
        Release(name="4.3", first_epoch=1, partition_epochs=True, throttle_ms=1_000),
    )
}
NEWEST: Final = RELEASES["4.3"]


@dataclass(slots=True)
class Cluster:
    """Topics by name. One that is recreated has another id, and stands in assignments as `name~2`."""

    release: Release = NEWEST
    partitions: dict[str, int] = field(default_factory=lambda: dict(PARTITIONS))
    changes: int = 0
    """How often a topic was made or grew."""
    _made: dict[str, int] = field(default_factory=dict)

    def make(self, name: str, partitions: int) -> None:
        """A topic of a name that there is, or was, is another topic."""
        self._made[name] = self._made.get(name, int(name in self.partitions)) + 1
        self.grow(name, partitions)

    def grow(self, name: str, partitions: int) -> None:
        """A topic has so many partitions from here on."""
        self.partitions[name] = partitions
        self.changes += 1

    def of_name(self, name: str) -> str:
        """What the topic of this name is called in assignments by id."""
        made = self._made.get(name, 1)
        return name if made == 1 else f"{name}~{made}"

    def places(self, names: Iterable[str]) -> list[Place]:
        """Every partition of these topics as assignments by id have it."""
        return [(self.of_name(name), partition) for name, partition in self.named_places(names)]

    def named_places(self, names: Iterable[str]) -> list[Place]:
        """Every partition of these topics by name; of one that there is not, none."""
        return [(name, partition) for name in sorted(set(names)) for partition in range(self.partitions.get(name, 0))]

    def named(self, places: Iterable[Place]) -> set[Place]:
        """Places by the name of their topic."""
        return {(topic_name(topic), partition) for topic, partition in places}

    def shown(self, places: Iterable[Place]) -> dict[str, list[int]]:
        """Topic → partitions as a monitor shows them that knows the topics of today: a former one by its id."""
        found: dict[str, list[int]] = {}
        for topic, partition in sorted(places):
            name = topic_name(topic)
            found.setdefault(name if topic == self.of_name(name) else topic_id(topic), []).append(partition)
        return found

    def metadata(self, names: Iterable[str]) -> Metadata:
        """What a coordinator knows of these topics; nothing of one that there is not."""
        return {name: (self.of_name(name), self.partitions[name]) for name in names if self.partitions.get(name)}

    def topic_names(self) -> dict[str, str]:
        """Topic id → name of the topics that there are."""
        return {topic_id(self.of_name(name)): name for name in self.partitions}


def metadata_hash(metadata: Metadata) -> int:
    """Some number that two sets of topics rarely share, 0 for none."""
    return crc32(repr(sorted(metadata.items())).encode()) if metadata else 0
