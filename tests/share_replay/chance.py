"""What brokers ask of a share coordinator in a lawful history, by chance.

Each share partition has a leader, who reads the state when it begins, and writes what members did with the offsets that
they acquired. Not all of what it does is new: a write is tried again where the answer was lost, also by one whose state
epoch or leadership is over, which the coordinator refuses.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Final

from coordinator_model.state.share_partition import ACKNOWLEDGED, ARCHIVED, AVAILABLE
from lab.builders import topic_id
from tests.share_replay.judge import LOAD, SHOW, Entry

START_MS: Final = 1_795_000_000_000
LIMIT: Final = 5
"""Delivery attempts, Kafka's default."""
_WIDTH: Final = 40
"""Offsets in flight at most."""
_STEPS: Final = 120


@dataclass(slots=True)
class _Partition:
    """A share partition as its leader knows it."""

    group: str
    topic: str
    number: int
    state_epoch: int = 0
    leader_epoch: int = 0
    start: int = 0
    states: dict[int, tuple[int, int]] = field(default_factory=dict)
    """Offset → delivery state and count."""
    written: Entry | None = None
    """The last write, to be tried again."""

    @property
    def key(self) -> list[str | int]:
        return [self.group, topic_id(self.topic), self.number]


def history(seed: int, *, steps: int = _STEPS) -> Iterator[Entry]:
    """Entries for the judge: several groups, topics and partitions."""
    scene = _Scene(Random(seed))
    clock_ms = START_MS
    for _ in range(steps):
        clock_ms += scene.chance.choice((5, 200, 2_000, 40_000))
        yield ["time", clock_ms]
        yield from scene.next()
        if scene.chance.random() < 0.15:
            yield SHOW
    yield SHOW


class _Scene:
    """The share partitions there are, and what may happen to them."""

    def __init__(self, chance: Random) -> None:
        self.chance = chance
        self.there: dict[tuple[str, str, int], _Partition] = {}
        self._may_happen: dict[Callable[[], Iterator[Entry]], int] = {
            self._initialize: 6,
            self._lead: 6,
            self._write: 50,
            self._try_again: 5,
            self._reset: 2,
            self._delete: 2,
            self._delete_topic: 1,
            self._of_the_coordinator: 8,
            self._lose: 1,
        }

    def next(self) -> Iterator[Entry]:
        """What happens next; nothing, where it takes a share partition and there is none."""
        happens = self.chance.choices([*self._may_happen], [*self._may_happen.values()])[0]
        if self.there or happens == self._initialize:
            yield from happens()

    def _one(self) -> _Partition:
        return self.chance.choice([*self.there.values()])

    def _initialize(self) -> Iterator[Entry]:
        """A group begins to read a partition."""
        of = _Partition(self.chance.choice("gh"), self.chance.choice(("t", "t~2", "u")), self.chance.randrange(3))
        if self.there.setdefault((of.group, of.topic, of.number), of) is of:
            of.state_epoch = self.chance.randrange(1, 4)
            yield ["initialize", *of.key, of.state_epoch, -1]

    def _lead(self) -> Iterator[Entry]:
        """A broker begins to lead it, or the same one reads again."""
        of = self._one()
        of.leader_epoch += self.chance.randrange(2)
        yield ["read", *of.key, of.leader_epoch]

    def _write(self) -> Iterator[Entry]:
        """Members acknowledge, release or reject offsets, or their locks time out; several such in one write."""
        of, chance = self._one(), self.chance
        batches = []
        for _ in range(chance.randrange(1, 4)):
            first = of.start + chance.randrange(_WIDTH)
            last = first + chance.choice((0, 0, 1, 3, 10))
            state, count = chance.choice((ACKNOWLEDGED, ACKNOWLEDGED, AVAILABLE, ARCHIVED)), chance.randint(1, LIMIT)
            if state == AVAILABLE and count == LIMIT:
                state = ARCHIVED
            batches.append([first, last, state, count])
            for offset in range(first, last + 1):
                held = of.states.get(offset, (AVAILABLE, 0))
                of.states[offset] = max(held, (state, count), key=lambda kind: kind[::-1])
        start = of.start if chance.random() < 0.8 else -1
        done = sum(state in (ACKNOWLEDGED, ARCHIVED) for offset, (state, _) in of.states.items() if offset >= of.start)
        count = chance.choice((done, done, -1))
        of.written = ["write", *of.key, of.state_epoch, of.leader_epoch, start, count, batches]
        while of.states.pop(of.start, (AVAILABLE, 0))[0] in (ACKNOWLEDGED, ARCHIVED):
            of.start += 1
        yield of.written

    def _try_again(self) -> Iterator[Entry]:
        written = self._one().written
        if written is not None:
            yield written

    def _reset(self) -> Iterator[Entry]:
        """An operator resets offsets; a write that was sent before may still come."""
        of = self._one()
        of.state_epoch += 1
        of.start, of.states = self.chance.randrange(500), {}
        yield ["initialize", *of.key, of.state_epoch, of.start]

    def _delete(self) -> Iterator[Entry]:
        of = self.there.pop(self.chance.choice([*self.there]))
        yield ["delete", *of.key]

    def _delete_topic(self) -> Iterator[Entry]:
        topic = self.chance.choice([*self.there])[1]
        self.there = {id_: of for id_, of in self.there.items() if of.topic != topic}
        yield ["gone", [topic_id(topic)]]

    def _of_the_coordinator(self) -> Iterator[Entry]:
        """Its timers, and another one who loads the log."""
        yield self.chance.choice((["cold"], ["prune"], ["prune"], LOAD))

    def _lose(self) -> Iterator[Entry]:
        """The log's leader fails with what it had not replicated."""
        yield ["lose", self.chance.randrange(1, 6)]
