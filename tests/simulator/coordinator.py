"""The reference coordinator itself: groups, a clock, a log, and one method for each thing that may happen.

A method returns whether it happened; what the present state refuses writes nothing. Time passes only by `lag`, a
millisecond per event besides, and what classic members take to join: so consumers may pause between any two events.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from tests import builders
from tests.builders import RecordBytes
from tests.simulator import classic, consumer, conversions
from tests.simulator.memory import AWAY, PARTITIONS, Group, Member, Place, committed, view

JOIN_MS: Final = 3_000
"""How long members take to join: group.initial.rebalance.delay.ms, as for what comes later."""


@dataclass(frozen=True, slots=True)
class Written:
    """One event of the coordinator as it stands in the log; events of one `batch` share a record batch."""

    time_ms: int
    group: str
    records: tuple[RecordBytes, ...]
    batch: int


@dataclass(slots=True)
class ReferenceCoordinator:
    """Group name → what it holds, and the log it wrote."""

    groups: dict[str, Group] = field(default_factory=dict)
    log: list[Written] = field(default_factory=list)
    rewinds: list[dict[str, Any]] = field(default_factory=list)
    """Offsets that went back, as the details of their events."""
    now_ms: int = 1_000
    batch: int = 0
    _born: int = 0

    def open(self, name: str, *, protocol: str = "range", custom_assignor: bool = False) -> Group:
        """A name that something will happen to; `protocol` is the assignor its classic members agree on."""
        group = self.groups[name] = Group(name=name, protocol=protocol, custom_assignor=custom_assignor)
        return group

    def lag(self, ms: int) -> None:
        """Time passes; the batch is sealed."""
        self.now_ms += ms
        self.batch += 1

    def views(self) -> dict[str, dict[str, Any]]:
        """Name → GROUP of the groups there are."""
        return {name: view(group) for name, group in sorted(self.groups.items()) if group.exists}

    def write(self, group: Group, records: Iterable[RecordBytes]) -> bool:
        """One event. `faults` write by this, too."""
        written = tuple(records)
        if written:
            self.now_ms += 1
            self.log.append(Written(self.now_ms, group.name, written, self.batch))
        group.count_mixed(self.now_ms)
        return bool(written)

    # -- members come -------------------------------------------------------------------------------------------------

    def join_classic(
        self, group: Group, *, static: bool = False, topics: tuple[str, ...] = ("t",), syncs: bool = True
    ) -> bool:
        """A consumer of the classic protocol joins. Not `syncs`: the round it joins is lost with its leader."""
        member = self._member(classic_protocol=True, static=static, topics=topics)
        if group.kind == "consumer" and group.members:
            return self.write(group, consumer.joined(group, member, self.now_ms + 1))
        if group.kind == "consumer":
            self.write(group, conversions.downgraded_offline(group, self.now_ms + 1))
        elif group.kind is None and not group.members:
            self.write(group, classic.begun(group, self.now_ms + 1))
        group.members[member.member_id] = member
        member.embedded = classic.subscription(group, member)
        return self.rebalance(group) if syncs else self.lose_round(group)

    def join_consumer(self, group: Group, *, static: bool = False, topics: tuple[str, ...] = ("t",)) -> bool:
        """A consumer of the consumer protocol joins; the first one converts a classic group, unless it is blocked."""
        member = self._member(classic_protocol=False, static=static, topics=topics)
        converted: list[RecordBytes] = []
        if group.kind != "consumer" and group.members:
            if group.custom_assignor:
                return False
            converted = conversions.upgraded_online(group)
        elif group.kind != "consumer":
            converted = conversions.upgraded_offline(group)
        return self.write(group, [*converted, *consumer.joined(group, member, self.now_ms + 1)])

    # -- members stay -------------------------------------------------------------------------------------------------

    def rebalance(self, group: Group, *, assignor: classic.Assignor | None = None) -> bool:
        """A classic group completes a round: its members join, the leader syncs."""
        if group.kind == "consumer":
            return False
        self.lag(JOIN_MS)
        joined_ms = self.now_ms
        self.lag(50)
        return self.write(group, classic.round_completed(group, joined_ms=joined_ms, assignor=assignor))

    def lose_round(self, group: Group) -> bool:
        """A classic group begins a round and does not complete it."""
        if group.kind == "consumer" or not group.members:
            return False
        classic.round_lost(group)
        self.lag(JOIN_MS)
        return True

    def heartbeat(self, group: Group, member: Member, *, let_go: bool = True) -> bool:
        """A member of a consumer group calls in."""
        if group.kind != "consumer" or member.away:
            return False
        return self.write(group, consumer.beat(group, member, self.now_ms + 1, let_go=let_go))

    def resubscribe(self, group: Group, member: Member, topics: tuple[str, ...]) -> bool:
        """A member changes its mind about topics."""
        if member.topics == topics or member.away:
            return False
        if group.kind != "consumer":
            member.topics = topics
            return self.rebalance(group)
        return self.write(group, consumer.resubscribed(group, member, topics, self.now_ms + 1))

    def move_host(self, group: Group, member: Member, host: str) -> bool:
        """A member calls from another address: of a consumer group's that is written, and moves no epoch."""
        if group.kind != "consumer" or member.away or member.client_host == host:
            return False
        member.client_host = host
        return self.write(group, [consumer.subscribed(group, member)])

    # -- members go ---------------------------------------------------------------------------------------------------

    def leave(self, group: Group, *leavers: Member) -> bool:
        """Members leave, expire or are removed, all at once."""
        if not leavers:
            return False
        if group.kind != "consumer":
            for member in leavers:
                del group.members[member.member_id]
            return self.rebalance(group)
        if conversions.only_classic(group, leavers):
            for member in leavers:
                del group.members[member.member_id]
            gone = [member.member_id for member in leavers]
            return self.write(group, conversions.downgraded_online(group, self.now_ms + 1, gone=gone))
        return self.write(group, consumer.left(group, leavers))

    def settle(self, group: Group) -> None:
        """Members call in until nothing changes any more: the throttle over, everything let go."""
        self.lag(consumer.THROTTLE_MS)
        moving = True
        while moving:
            beats = [self.heartbeat(group, member) for member in list(group.members.values())]
            self.lag(consumer.THROTTLE_MS)
            moving = any(beats)

    # -- static members -----------------------------------------------------------------------------------------------

    def bounce(self, group: Group, member: Member) -> bool:
        """A static classic member restarts within its session."""
        stands = group.kind == "classic" and group.generation == group.written_generation
        if not stands or member.instance_id is None or member.member_id not in group.assignment:
            return False
        self.lag(JOIN_MS)
        joined_ms = builders.NOW_MS
        return self.write(group, classic.bounced(group, member, self._id(member.instance_id), joined_ms=joined_ms))

    def step_away(self, group: Group, member: Member) -> bool:
        """A static consumer-protocol member closes and will be back."""
        if group.kind != "consumer" or member.classic or member.instance_id is None or member.away:
            return False
        return self.write(group, consumer.stepped_away(group, member))

    def come_back(self, group: Group, member: Member, *, as_classic: bool = False) -> bool:
        """A static member's next process comes: in place of one that is away, or was a classic one, or comes as one.

        If it was the only one of the consumer protocol, and is classic now, so is the group.
        """
        free = member.epoch == AWAY or member.classic or as_classic
        if group.kind != "consumer" or member.instance_id is None or not free:
            return False
        comer = self._member(classic_protocol=as_classic, static=False, topics=member.topics)
        others = group.others(member)
        alone = as_classic and not member.classic and all(other.classic for other in others)
        records = consumer.replaced(group, member, comer, self.now_ms + 1)
        if alone:
            records += conversions.downgraded_online(group, self.now_ms + 1)
        return self.write(group, records)

    # -- offsets and ends ---------------------------------------------------------------------------------------------

    def commit(self, group: Group, offsets: dict[Place, int], *, metadata: str = "") -> bool:
        """Offsets are committed, in the order given."""
        time_ms = self.now_ms + 1
        for place, offset in offsets.items():
            self._note_rewind(group, place, offset)
            group.offsets[place] = committed(place, offset, leader_epoch=3, metadata=metadata, time_ms=time_ms)
        return self.write(
            group,
            [
                builders.offset_commit(group.name, *place, offset, leader_epoch=3, metadata=metadata, timestamp=time_ms)
                for place, offset in offsets.items()
            ],
        )

    def delete_offsets(self, group: Group, topic: str) -> bool:
        """Offsets of a topic that no member subscribes to are deleted."""
        if any(topic in member.topics for member in group.members.values()):
            return False
        places = [place for place in group.offsets if place[0] == topic]
        for place in places:
            del group.offsets[place]
        return self.write(group, [builders.offset_commit_tombstone(group.name, *place) for place in places])

    def delete(self, group: Group) -> bool:
        """An empty group is deleted, or expires."""
        if group.members or not group.exists:
            return False
        records = [builders.offset_commit_tombstone(group.name, *place) for place in group.offsets]
        consumers = group.kind == "consumer"
        records += consumer.ended(group) if consumers else [builders.group_metadata_tombstone(group.name)]
        self.open(group.name, protocol=group.protocol, custom_assignor=group.custom_assignor)
        return self.write(group, records)

    # -- parts --------------------------------------------------------------------------------------------------------

    def _note_rewind(self, group: Group, place: Place, offset: int) -> None:
        former = group.offsets[place]["offset"] if place in group.offsets else offset
        if offset >= former:
            return
        detail: dict[str, Any] = {"topic": place[0], "partition": place[1], "from": former, "to": offset}
        if group.kind is not None:  # nobody knows who commits for a group that only commits
            detail["group_empty"] = not (group.members if group.kind == "consumer" else group.written)
        self.rewinds.append(detail)

    def _member(self, *, classic_protocol: bool, static: bool, topics: tuple[str, ...]) -> Member:
        member_id = self._id("c" if classic_protocol else "n")
        instance_id = f"instance-{self._born}" if static else None
        return Member(member_id=member_id, classic=classic_protocol, instance_id=instance_id, topics=topics)

    def _id(self, prefix: str) -> str:
        self._born += 1
        return f"{prefix}-{self._born}"


def places(topics: Iterable[str] = PARTITIONS) -> Iterator[Place]:
    """Every partition of these topics."""
    return ((topic, partition) for topic in topics for partition in range(PARTITIONS[topic]))
