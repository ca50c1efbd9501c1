"""A coordinator's log of any size, written fast, and what a replica must hold at its end.

The records are those a 4.3 coordinator writes (`lab.builders`), put on an ordinary topic with the layout of
`__consumer_offsets`: only a coordinator may write that one, and it would need a client for every group. Names of groups
and topics are of fixed width, so a group's records are made from those of a model group of its kind by putting its
name, its topic and the topic's id in their places: a million records take seconds.

    classic-000017    a classic group, stable in generation 1
    consumer-000017   a group of the consumer protocol, whose members have come one after the other
    simple-000017     offsets that are committed without members
    wide-000017       a classic group of very many partitions, of a topic of its own that is not there
"""

import random
import struct
from base64 import urlsafe_b64decode
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Final, NamedTuple

from coordinator_model.state.shards import offsets_partition
from lab import builders, coordinator_events
from lab.builders import RecordBytes

OFFSETS_PARTITIONS: Final = 50
"""Partitions of the offsets topic, Kafka's default."""

ROUND_MS: Final = 5_000
"""Time of the log between two rounds of commits: Kafka's default of auto.commit.interval.ms."""

_INT64: Final = struct.Struct(">q")
_OFFSET_AT: Final = 2
"""Where the offset stands in an OffsetCommitValue: behind the version."""
_MARK: Final = 0x0102030405060708
_MODEL_NUMBER: Final = "999999"
_MODEL_TOPIC: Final = "topic-99999-9999"


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
        classic_groups, consumer_groups, simple_groups, wide_groups: how many of each kind.
        members: members of a group that has any.
        partitions: partitions of the topic that a group consumes, all of which it commits.
        wide_partitions: the same of a wide group.
        topics: topics that are consumed; groups are dealt out to them in turn.
        rounds: how often every group commits all its partitions.
        seed: of the order in which groups commit.
    """

    classic_groups: int = 18_000
    consumer_groups: int = 2_000
    simple_groups: int = 200
    wide_groups: int = 0
    members: int = 2
    partitions: int = 3
    wide_partitions: int = 10_000
    topics: int = 100
    rounds: int = 16
    seed: int = 1

    @classmethod
    def of(cls, groups: int, *, rounds: int) -> "Plan":
        """So many groups in all, in usual shares: a tenth speaks the consumer protocol, 1 % only commits."""
        consumer, simple = groups // 10, max(1, groups // 100)
        return cls(
            classic_groups=groups - consumer - simple,
            consumer_groups=consumer,
            simple_groups=simple,
            rounds=rounds,
            topics=cls.topics_for(groups),
        )

    @staticmethod
    def topics_for(groups: int) -> int:
        """How many topics so many groups consume: one for ten of them, up to a hundred."""
        return max(1, min(100, groups // 10))

    @property
    def names(self) -> list[str]:
        """Every group."""
        kinds = {
            "classic": self.classic_groups,
            "consumer": self.consumer_groups,
            "simple": self.simple_groups,
            "wide": self.wide_groups,
        }
        return [f"{kind}-{number:06d}" for kind, count in kinds.items() for number in range(count)]

    @property
    def topic_names(self) -> list[str]:
        """Every topic that is to be there."""
        return [_topic(self.partitions, number) for number in range(self.topics)]

    def topic(self, name: str) -> str:
        """The topic that a group consumes."""
        number, wide = int(name[-6:]), _kind(name) == "wide"
        return _topic(self.partitions_of(name), number if wide else number % self.topics)

    def partitions_of(self, name: str) -> int:
        """How many partitions that topic has."""
        return self.wide_partitions if _kind(name) == "wide" else self.partitions


NONE_OR_0: Final = -1
"""The lag of a group all of whose offsets are beyond the ends of their partitions."""


@dataclass(slots=True)
class GroupTruth:
    """What must be known of one group: generation or group epoch, members, what is committed, and how often.

    `lag` is None where the end of its topic is not known, or not asked for.
    """

    epoch: int
    members: int
    offsets: dict[tuple[str, int], int] = field(default_factory=dict)
    commits: int = 0
    lag: int | None = None


@dataclass(slots=True)
class Expected:
    """What the log leads to, kept up by all that writes to it."""

    groups: dict[str, GroupTruth] = field(default_factory=dict)
    records: int = 0

    @property
    def offsets(self) -> int:
        """How many committed offsets there are."""
        return sum(len(group.offsets) for group in self.groups.values())

    def with_lag(self, ends: Mapping[str, int], *, offsets: bool = True) -> "Expected":
        """The same with lag, by topic name → end of each partition; without what is committed unless `offsets`.

        A trickle commits offsets that its topics do not have: those have no lag, once they are not fresh.
        """
        groups = {}
        for name, group in self.groups.items():
            known = group.offsets and all(topic in ends for topic, _ in group.offsets)
            lag = sum(max(0, ends[topic] - at) for (topic, _), at in group.offsets.items()) if known else None
            if known and all(at > ends[topic] for (topic, _), at in group.offsets.items()):
                lag = NONE_OR_0
            groups[name] = replace(group, lag=lag, offsets=group.offsets if offsets else {})
        return Expected(groups, self.records)


class Commits:
    """Commits of one group to one partition of its topic."""

    def __init__(self, plan: Plan, name: str, partition: int, topic_ids: Mapping[str, str]) -> None:
        topic = plan.topic(name)
        self.name, self.place = name, (topic, partition)
        self.shard = shard(name)
        self.key = _commit_key(_kind(name), topic, partition).replace(_model_name(_kind(name)).encode(), name.encode())
        self._parts = _commit_parts(topic, topic_ids.get(topic))

    def record(self, offset: int, time_ms: int) -> LogRecord:
        """The record of a commit of `offset` at `time_ms`."""
        head, middle, tail = self._parts
        value = b"".join((head, _INT64.pack(offset), middle, _INT64.pack(time_ms), tail))
        return LogRecord(self.shard, time_ms, self.key, value)


def records(plan: Plan, expected: Expected, end_ms: int, topic_ids: Mapping[str, str]) -> Iterator[LogRecord]:
    """The log in the order it is written: every group comes up, then all commit, round by round.

    Args:
        plan: what it holds.
        expected: notes what the records lead to.
        end_ms: time of the last record.
        topic_ids: topic name → id, where the topics are there; others have ids made up from their names.
    """
    names = plan.names
    start_ms = end_ms - (plan.rounds + 1) * ROUND_MS
    for name in names:
        expected.groups[name] = GroupTruth(epoch=_epoch(plan, name), members=_members(plan, name))
        partition = shard(name)
        for after_ms, (key, value) in _membership(plan, name, topic_ids):
            expected.records += 1
            yield LogRecord(partition, start_ms + after_ms, key, value)
    order = random.Random(plan.seed)  # noqa: S311 - an order, not a secret
    commits = {name: [Commits(plan, name, at, topic_ids) for at in range(plan.partitions_of(name))] for name in names}
    for round_ in range(1, plan.rounds + 1):
        time_ms = start_ms + ROUND_MS * (round_ + 1)
        order.shuffle(names)
        for name in names:
            group = expected.groups[name]
            for each in commits[name]:
                group.offsets[each.place] = round_
                group.commits += 1
                expected.records += 1
                yield each.record(round_, time_ms)


@cache
def shard(name: str) -> int:
    """The partition of the offsets topic that a group's records are in; asked for with every record of it."""
    return offsets_partition(name, OFFSETS_PARTITIONS)


def rebalances(plan: Plan, expected: Expected, time_ms: int, topic_ids: Mapping[str, str]) -> Iterator[LogRecord]:
    """A rebalance of every group that has members, all at the same time: partitions stay where they are."""
    for name in plan.names:
        if not _members(plan, name):
            continue
        group = expected.groups[name]
        group.epoch += 1
        partition = shard(name)
        for key, value in _made_for(_rebalance(plan, _kind(name), group.epoch), plan, name, topic_ids):
            expected.records += 1
            yield LogRecord(partition, time_ms, key, value)


def of_topic(record: RecordBytes, topic: str, topic_ids: Mapping[str, str]) -> RecordBytes:
    """A record made by `builders` with the id of the topic as it is on the broker."""
    key, value = record
    found, instead = _uuid_bytes(builders.topic_id(topic)), _uuid_bytes(topic_ids[topic])
    return key, None if value is None else value.replace(found, instead)


def assignments(plan: Plan, name: str, topic: str) -> dict[str, Mapping[str, list[int]]]:
    """Member id → {topic: partitions}: the partitions dealt out in turn."""
    return {
        f"{name}-member-{number}": {topic: list(range(number, plan.partitions_of(name), plan.members))}
        for number in range(plan.members)
    }


def _topic(partitions: int, number: int) -> str:
    """Topics of plans with other numbers of partitions are others."""
    return f"topic-{partitions:05d}-{number:04d}"


def _kind(name: str) -> str:
    return name.partition("-")[0]


def _members(plan: Plan, name: str) -> int:
    return 0 if _kind(name) == "simple" else plan.members


def _epoch(plan: Plan, name: str) -> int:
    return {"simple": 0, "classic": 1, "wide": 1, "consumer": plan.members + 1}[_kind(name)]


def _model_name(kind: str) -> str:
    return f"{kind}-{_MODEL_NUMBER}"


@cache
def _commit_key(kind: str, topic: str, partition: int) -> bytes:
    """The key of a commit of the model group."""
    key, _ = builders.offset_commit(_model_name(kind), topic, partition, 0)
    return key


@cache
def _commit_parts(topic: str, topic_id: str | None) -> tuple[bytes, bytes, bytes]:
    """A commit's value without its offset and its time."""
    _, value = builders.offset_commit("", topic, 0, 0, leader_epoch=0, timestamp=_MARK, id_of_topic=topic_id)
    assert value is not None  # noqa: S101 - for the type checker
    at = value.index(_INT64.pack(_MARK))
    return value[:_OFFSET_AT], value[_OFFSET_AT + 8 : at], value[at + 8 :]


def _membership(plan: Plan, name: str, topic_ids: Mapping[str, str]) -> Iterator[tuple[int, RecordBytes]]:
    """(milliseconds after the start, record) of how the group comes up."""
    model = _model_membership(plan, _kind(name))
    made = _made_for(tuple(record for _, record in model), plan, name, topic_ids)
    return zip((after_ms for after_ms, _ in model), made, strict=True)


def _made_for(
    model: tuple[RecordBytes, ...], plan: Plan, name: str, topic_ids: Mapping[str, str]
) -> Iterator[RecordBytes]:
    """The model group's records as those of the group of this name."""
    topic = plan.topic(name)
    changes = [(_model_name(_kind(name)).encode(), name.encode()), (_MODEL_TOPIC.encode(), topic.encode())]
    id_ = topic_ids.get(topic) or builders.topic_id(topic)
    changes.append((_uuid_bytes(builders.topic_id(_MODEL_TOPIC)), _uuid_bytes(id_)))
    for key, value in model:
        made_key, made_value = key, value or b""
        for found, instead in changes:
            made_key, made_value = made_key.replace(found, instead), made_value.replace(found, instead)
        yield made_key, None if value is None else made_value


def _uuid_bytes(text: str) -> bytes:
    """A uuid from Kafka's text form, 22 characters of base64."""
    return urlsafe_b64decode(text + "==")


@cache
def _model_membership(plan: Plan, kind: str) -> tuple[tuple[int, RecordBytes], ...]:
    name = _model_name(kind)
    shares = assignments(plan, name, _MODEL_TOPIC)
    match kind:
        case "classic" | "wide":
            return ((0, builders.new_group_metadata(name)), (3_000, _generation(name, shares, 1)))
        case "consumer":
            return tuple(_arrivals(name, shares))
        case _:
            return ()


def _generation(name: str, shares: Mapping[str, Mapping[str, list[int]]], generation: int) -> RecordBytes:
    members = [
        builders.member(member_id, share, topics=(_MODEL_TOPIC,), client_id="bench")
        for member_id, share in shares.items()
    ]
    return builders.group_metadata(name, generation=generation, members=members)


def _arrivals(name: str, shares: Mapping[str, Mapping[str, list[int]]]) -> Iterator[tuple[int, RecordBytes]]:
    """Members of a consumer group come one after the other."""
    targets: dict[str, Mapping[str, list[int]]] = {}
    for epoch, (member_id, share) in enumerate(shares.items(), start=2):
        targets[member_id] = share
        yield epoch, builders.consumer_group_member_subscription(name, member_id, topics=(_MODEL_TOPIC,))
        for record in coordinator_events.consumer_join(name, member_id, epoch=epoch, targets=targets)[1:]:
            yield epoch, record
        for earlier in list(targets)[:-1]:
            moves = coordinator_events.consumer_moves(
                name, earlier, epoch=epoch, previous_epoch=epoch - 1, assigned=targets[earlier]
            )
            for record in moves:
                yield 100 + epoch, record


@cache
def _rebalance(plan: Plan, kind: str, epoch: int) -> tuple[RecordBytes, ...]:
    """The model group is given its partitions again in this generation or epoch."""
    name = _model_name(kind)
    shares = assignments(plan, name, _MODEL_TOPIC)
    if kind == "classic":
        return (_generation(name, shares, epoch),)
    moves = [
        record
        for member_id, share in shares.items()
        for record in coordinator_events.consumer_moves(
            name, member_id, epoch=epoch, previous_epoch=epoch - 1, assigned=share
        )
    ]
    return (
        builders.consumer_group_epoch(name, epoch),
        *coordinator_events.retarget(name, epoch, shares),
        *moves,
    )
