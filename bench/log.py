"""A coordinator's log of any size, written fast, with the state it must lead to.

The records are those a 4.3 coordinator writes (`tests.builders`), put on an ordinary topic with the layout of
`__consumer_offsets`: only a coordinator may write that one, and it would need a client for every group. A commit is
made from its group's first one by putting in two numbers, so a million records take seconds, not minutes.
"""

import random
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from confluent_kafka import Producer

from streaming.recording import offsets_partition
from tests import builders, coordinator_events
from tests.builders import RecordBytes

_INT64: Final = struct.Struct(">q")
_OFFSET_AT: Final = 2
"""Where the offset stands in an OffsetCommitValue: after the version (coordinator-records, 1.3)."""


class LogRecord(NamedTuple):
    """One record and where it goes."""

    partition: int
    timestamp_ms: int
    key: bytes
    value: bytes | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What the log is to hold.

    Attributes:
        classic_groups: groups of the classic protocol, with `members` members each.
        consumer_groups: groups of the consumer protocol, likewise.
        simple_groups: groups that only commit.
        members: members a group.
        partitions: partitions of the topic that a group consumes and commits.
        rounds: how often every group commits all its partitions.
        offsets_partitions: partitions of the offsets topic.
        seed: of the order in which groups commit.
    """

    classic_groups: int = 18_000
    consumer_groups: int = 2_000
    simple_groups: int = 200
    members: int = 2
    partitions: int = 3
    rounds: int = 16
    offsets_partitions: int = 50
    seed: int = 1

    @property
    def names(self) -> list[str]:
        """Every group."""
        kinds = (("classic", self.classic_groups), ("consumer", self.consumer_groups), ("simple", self.simple_groups))
        return [f"{kind}-{number:06d}" for kind, count in kinds for number in range(count)]

    def topic(self, name: str) -> str:
        """The topic that a group consumes: one for every hundred groups."""
        return f"orders-{int(name[-6:]) // 100:04d}"


@dataclass(slots=True)
class Expected:
    """What the replica must hold at the end: committed offsets and number of members by group."""

    offsets: dict[str, dict[tuple[str, int], int]] = field(default_factory=dict)
    members: dict[str, int] = field(default_factory=dict)
    records: int = 0


def write(plan: Plan, topic: str, bootstrap_servers: str, end_ms: int) -> Expected:
    """Write the planned log to `topic`, its last record stamped `end_ms`; returns what it leads to."""
    producer = Producer(
        {
            "bootstrap.servers": bootstrap_servers,
            "queue.buffering.max.messages": 500_000,
            "queue.buffering.max.kbytes": 1_000_000,
            "linger.ms": 20,
            "batch.size": 1_000_000,
            "acks": "all",
        }
    )
    expected = Expected()
    for record in records(plan, expected, end_ms):
        while True:
            try:
                producer.produce(
                    topic, record.value, record.key, partition=record.partition, timestamp=record.timestamp_ms
                )
                break
            except BufferError:
                producer.poll(0.05)
        expected.records += 1
    left = producer.flush(120)
    assert left == 0, f"{left} records were not delivered"  # noqa: S101 - a benchmark on half a log is none
    return expected


def records(plan: Plan, expected: Expected, end_ms: int) -> Iterator[LogRecord]:
    """The log in the order it is written: every group comes up, then all commit, round by round."""
    names = plan.names
    shards = {name: offsets_partition(name, plan.offsets_partitions) for name in names}
    start_ms = end_ms - (plan.rounds + 1) * 5_000
    for name in names:
        expected.members[name] = 0 if name.startswith("simple") else plan.members
        for time_ms, (key, value) in _membership(plan, name, start_ms):
            yield LogRecord(shards[name], time_ms, key, value)
    order = random.Random(plan.seed)  # noqa: S311 - an order, not a secret
    commits = {name: [_Commit(plan, name, partition) for partition in range(plan.partitions)] for name in names}
    for round_ in range(1, plan.rounds + 1):
        time_ms = start_ms + 5_000 * (round_ + 1)
        order.shuffle(names)
        for name in names:
            for commit in commits[name]:
                yield LogRecord(shards[name], time_ms, commit.key, commit.value(round_ * 100, time_ms))
    for name, each in commits.items():
        expected.offsets[name] = {(plan.topic(name), commit.partition): plan.rounds * 100 for commit in each}


class _Commit:
    """Commits of one partition by one group, made from a template."""

    def __init__(self, plan: Plan, name: str, partition: int) -> None:
        topic = plan.topic(name)
        mark = 0x0102030405060708
        self.partition = partition
        self.key, value = builders.offset_commit(name, topic, partition, 0, leader_epoch=0, timestamp=mark)
        assert value is not None  # noqa: S101 - for the type checker
        at = value.index(_INT64.pack(mark))
        self._parts = (value[:_OFFSET_AT], value[_OFFSET_AT + 8 : at], value[at + 8 :])

    def value(self, offset: int, time_ms: int) -> bytes:
        """Value bytes of a commit of `offset` at `time_ms`."""
        head, middle, tail = self._parts
        return b"".join((head, _INT64.pack(offset), middle, _INT64.pack(time_ms), tail))


def _membership(plan: Plan, name: str, start_ms: int) -> Iterator[tuple[int, RecordBytes]]:
    if name.startswith("simple"):
        return
    shares = assignments(plan, name)
    if name.startswith("classic"):
        yield start_ms, builders.new_group_metadata(name, timestamp=start_ms)
        topics = (plan.topic(name),)
        members = [
            builders.member(member_id, share, topics=topics, client_id="bench") for member_id, share in shares.items()
        ]
        yield (
            start_ms + 3_000,
            builders.group_metadata(name, generation=1, members=members, timestamp=start_ms + 2_990),
        )
        return
    targets: dict[str, Mapping[str, list[int]]] = {}
    for epoch, (member_id, share) in enumerate(shares.items(), start=2):
        targets[member_id] = share
        for record in coordinator_events.consumer_join(name, member_id, epoch=epoch, targets=targets):
            yield start_ms + epoch, record
        for earlier in list(targets)[:-1]:
            moves = coordinator_events.consumer_moves(
                name, earlier, epoch=epoch, previous_epoch=epoch - 1, assigned=targets[earlier]
            )
            for record in moves:
                yield start_ms + 100 + epoch, record


def assignments(plan: Plan, name: str) -> dict[str, Mapping[str, list[int]]]:
    """Member id → {topic: partitions}: the partitions dealt out in turn."""
    return {
        f"{name}-member-{number}": {plan.topic(name): list(range(number, plan.partitions, plan.members))}
        for number in range(plan.members)
    }
