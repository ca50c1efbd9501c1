"""A board to which anything may happen that may happen to one: its history is a seeded random walk."""

import random
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from lab import builders
from lab.builders import RecordBytes
from lab.coordinator_events import (
    consumer_group_deleted,
    consumer_join,
    consumer_leave,
    retarget,
    speaks_classic,
    static_goes_away,
)
from streaming.board.board import Board
from streaming.end_offsets.store import EndOffsets, Topic
from tests.streaming.board_rows import Shard
from tests.streaming.boards import NOW_MS, OFFSETS_TOPIC

TOPICS: Final = ("orders", "audit", 'odd "\n', "t", "later", "last")
MEMBERS: Final = ("m-0", "m-1", "m-2")
_KINDS: Final = ("member_joined", "rebalance_stuck", "partition_unassigned")


class RandomBoard:
    """A board, and what happens to it step by step.

    Attributes:
        board: the board.
        now_ms: the wall clock.
    """

    def __init__(self, seed: int, groups: int) -> None:
        self._random = random.Random(seed)
        self._names = [f"g-{number}" for number in range(groups - 1)] + ['"\\ 🦔']
        self._shard = Shard(7)
        self._epochs = dict.fromkeys(self._names, 1)
        self._batches = 0
        self._reported = 0
        self._topics = {name: Topic(builders.topic_id(name), name, 2) for name in TOPICS[:2]}
        self._offsets: dict[tuple[str, int], int] = {}
        self._stable: dict[tuple[str, int], int] = {}
        self.now_ms = NOW_MS
        self.board = Board(EndOffsets())
        self.board.load([])
        self._describe()
        for name in self._names[: groups // 2]:
            self._write(self._rebalanced(name), self._committed(name))

    def step(self) -> None:
        """One thing happens, or several of them between two looks."""
        for _ in range(self._random.choice((1, 1, 1, 4))):
            self._random.choice(self._happenings())()

    def _happenings(self) -> Sequence[Callable[[], None]]:
        return (
            *[lambda: self._write(self._committed(self._some()))] * 4,
            *[lambda: self._write(self._rebalanced(self._some()))] * 3,
            *[lambda: self._write(self._consumers(self._some()))] * 4,
            *[lambda: self._write(self._deleted(self._some()))] * 2,
            lambda: self._write(*(self._committed(name) for name in self._names)),
            *[self._pass_time] * 4,
            *[self._sample] * 4,
            *[self._change_topics] * 2,
            self._find,
            self._tell,
            self._contend,
            self._set_clock,
        )

    def _some(self) -> str:
        return self._random.choice(self._names)

    def _write(self, *records: Iterable[RecordBytes]) -> None:
        """One micro-batch."""
        self._batches += 1
        rows = self._shard.write(*(each for of in records for each in of), timestamp_ms=self.now_ms)
        self.board.apply(self._batches, rows, self.now_ms)

    def _committed(self, name: str) -> list[RecordBytes]:
        topic, draw = self._random.choice(TOPICS[:4]), self._random
        places = [draw.randrange(3)] if draw.random() < 0.8 else range(3)
        if draw.random() < 0.1:
            return [builders.offset_commit_tombstone(name, topic, partition) for partition in places]
        timestamp = draw.choice((self.now_ms, self.now_ms, self.now_ms - 60_000, -1))
        found = []
        for partition in places:
            end = self._offsets.get((topic, partition), 10)
            offset = max(0, end + draw.choice((0, 0, 2, 3, -3, -8)))
            found.append(builders.offset_commit(name, topic, partition, offset, timestamp=timestamp))
        return found

    def _rebalanced(self, name: str) -> list[RecordBytes]:
        """A classic group in its next generation; sometimes two members have the same partition."""
        self._epochs[name] += self._random.choice((1, 1, 2))
        topics = self._random.sample(TOPICS, self._random.choice((0, 1, 2)))
        members = [
            builders.member(
                member,
                {topic: [number if self._random.random() < 0.9 else 0] for topic in topics},
                topics=topics,
                instance_id=self._random.choice((None, "i-1")),
            )
            for number, member in enumerate(self._random.sample(MEMBERS, self._random.randrange(4)))
        ]
        return [
            builders.group_metadata(
                name,
                generation=self._epochs[name],
                members=members,
                timestamp=self.now_ms - self._random.randrange(900),
            )
        ]

    def _consumers(self, name: str) -> list[RecordBytes]:
        """A step of a group of the consumer protocol, which may stay unfinished."""
        self._epochs[name] += 1
        epoch, member = self._epochs[name], self._random.choice(MEMBERS)
        parts = {self._random.choice(TOPICS): [self._random.randrange(3)]}
        match self._random.randrange(5):
            case 0:
                return consumer_leave(name, member, epoch=epoch)
            case 1:
                return [builders.consumer_group_epoch(name, epoch), *retarget(name, epoch, {member: parts})]
            case 2:
                return static_goes_away(name, member, assigned=parts, previous_epoch=epoch - 1)
            case _:
                owned: dict[str, list[int]] | None = self._random.choice((None, None, {}))
                instance_id = self._random.choice((None, "i-1"))
                classic = self._random.choice((None, speaks_classic()))
                return consumer_join(
                    name,
                    member,
                    epoch=epoch,
                    targets={member: parts},
                    assigned=owned,
                    instance_id=instance_id,
                    classic=classic,
                )

    def _contend(self) -> None:
        """Two processes take a static member's id from each other."""
        name = self._some()
        for number in range(8):
            self._epochs[name] += 1
            member = builders.member(MEMBERS[number % 2], {"orders": [0]}, topics=["orders"], instance_id="i-1")
            self._write([builders.group_metadata(name, generation=self._epochs[name], members=[member])])
            self.now_ms += 1_000

    def _deleted(self, name: str) -> list[RecordBytes]:
        offsets = [builders.offset_commit_tombstone(name, topic, at) for topic in TOPICS for at in range(3)]
        return [builders.group_metadata_tombstone(name), *consumer_group_deleted(name, MEMBERS), *offsets]

    def _pass_time(self) -> None:
        self.now_ms += self._random.choice((1, 900, 31_000, 200_000, 301_000))

    def _sample(self) -> None:
        """The sampler hears of ends: nothing was written, or something, or a transaction is open; one may be silent."""
        draw = self._random
        written = draw.choice(("nothing", "nothing", "records", "open"))
        for topic in self._topics.values():
            for place in ((topic.name, partition) for partition in range(topic.partitions)):
                self._offsets[place] = self._offsets.get(place, 10) + (
                    draw.choice((0, 0, 1, 4)) if written != "nothing" else 0
                )
                self._stable.setdefault(place, self._offsets[place])
                if written == "records":
                    self._stable[place] = self._offsets[place]
        silent = draw.choice((*self._offsets, None))
        high = {place: end for place, end in self._offsets.items() if place != silent and place[0] in self._topics}
        self.board.ends.record(self.now_ms, high, {place: self._stable[place] for place in high})
        if draw.random() < 0.2:
            self.board.ends.record_earliest(dict.fromkeys(high, draw.randrange(12)))

    def _change_topics(self) -> None:
        """A topic comes, grows, is recreated under its name, or goes."""
        name = self._random.choice(TOPICS)
        topic = self._topics.get(name)
        match self._random.randrange(4):
            case 0 if topic is not None:
                del self._topics[name]
            case 1 if topic is not None:
                made = builders.topic_id(f"{name} {self._batches}")
                self._topics[name] = Topic(made, name, 2)
                for offsets in (self._offsets, self._stable):
                    for partition in range(3):
                        offsets.pop((name, partition), None)
            case _:
                partitions = 1 if topic is None else min(3, topic.partitions + 1)
                self._topics[name] = Topic(builders.topic_id(name) if topic is None else topic.id, name, partitions)
        self._describe()

    def _describe(self) -> None:
        offsets_topic = Topic("o" * 22, OFFSETS_TOPIC, 8, {7: 1}, {7: self._random.randrange(3)})
        self.board.ends.set_topics([offsets_topic, *self._topics.values()], TOPICS, self.now_ms)

    def _find(self) -> None:
        """The threads that look say which groups are stuck, and of which the log's times are not to be believed."""
        chosen = [name for name in self._names if self._random.random() < 0.2]
        self.board.findings.set_overdue({"rebalance_stuck": chosen})
        self.board.findings.set_read_times(dict.fromkeys(chosen[::2], self.now_ms - 5_000))

    def _tell(self) -> None:
        """An event that no record reported."""
        self._reported += 1
        kind, name = self._random.choice(_KINDS), self._some()
        self.board.add_events(
            [{"id": f"told-{self._reported}", "group": name, "kind": kind, "time": self.now_ms, "detail": {}}]
        )

    def _set_clock(self) -> None:
        """A clock is set, back as well."""
        self.now_ms += self._random.choice((-400_000, -40_000, -1_000, 3_000_000))
