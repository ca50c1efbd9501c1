"""The reference coordinator itself: groups, a clock, a log, and one method for each thing that may happen.

A method returns whether it happened; what the present state refuses writes nothing. Time passes only by `lag`, a
millisecond per event besides, and what classic members take to join: so consumers may pause between any two events.
"""

from dataclasses import dataclass, field
from typing import Final

from lab import builders
from lab.builders import RecordBytes
from tests.simulator import classic, consumer, conversions, share, streams
from tests.simulator.cluster import Release
from tests.simulator.memory import AWAY, Group, Member
from tests.simulator.offsets import OffsetCoordinator

JOIN_MS: Final = 3_000
"""How long members take to join: group.initial.rebalance.delay.ms, as for what comes later."""


@dataclass(slots=True)
class ReferenceCoordinator(OffsetCoordinator):
    """Group name → what it holds, and the log it wrote."""

    ids: list[str] = field(default_factory=list)
    """Ids that the next members are to have, where that is known."""
    _born: int = 0

    # -- members come -------------------------------------------------------------------------------------------------

    def join_classic(
        self, group: Group, *, static: bool = False, topics: tuple[str, ...] = ("t",), syncs: bool = True
    ) -> bool:
        """A consumer of the classic protocol joins. Not `syncs`: the round it joins is lost with its leader."""
        if group.kind == "share" or (group.kind == "streams" and group.members):
            return False
        member = self._member(classic_protocol=True, static=static, topics=topics)
        if group.kind == "consumer" and group.members:
            return self.write(group, consumer.joined(group, member, self.now_ms + 1))
        if group.kind in ("consumer", "streams"):
            self.write(group, conversions.downgraded_offline(group, self.now_ms + 1))
        elif group.kind is None and not group.members:
            self.write(group, classic.begun(group, self.now_ms + 1))
        group.members[member.member_id] = member
        member.embedded = classic.subscription(group, member)
        return self.rebalance(group) if syncs else self.lose_round(group)

    def join_consumer(
        self,
        group: Group,
        *,
        static: bool = False,
        topics: tuple[str, ...] = ("t",),
        regex: str | None = None,
        server_assignor: str | None = None,
    ) -> bool:
        """A consumer of the consumer protocol joins; the first one converts a classic group, unless it is blocked."""
        if group.kind in ("share", "streams") or group.family != "consumer":
            return False
        if regex is not None and not self.cluster.release.expressions:
            return False
        member = self._member(classic_protocol=False, static=static, topics=topics)
        member.regex, member.server_assignor = regex, server_assignor
        converted: list[RecordBytes] = []
        if group.kind != "consumer" and group.members:
            if group.custom_assignor:
                return False
            converted = conversions.upgraded_online(group)
        elif group.kind != "consumer":
            converted = conversions.upgraded_offline(group)
        return self.write(group, [*converted, *consumer.joined(group, member, self.now_ms + 1)])

    def join_share(self, group: Group, *, topics: tuple[str, ...] = ("t",)) -> bool:
        """A share consumer joins."""
        if not self.cluster.release.new_groups or group.family != "share" or (group.exists and group.kind != "share"):
            return False
        if group.kind is None:
            conversions.begin(group, "share")
        member = self._member(classic_protocol=False, static=False, topics=topics)
        return self.write(group, share.joined(group, member, self.now_ms + 1))

    def join_streams(self, group: Group, *, process_id: str = "") -> bool:
        """A streams client joins, alone or as another of a process; an empty classic group becomes a streams one."""
        if (
            not self.cluster.release.new_groups
            or group.family != "streams"
            or (group.kind != "streams" and group.members)
        ):
            return False
        converted = []
        if group.kind != "streams":
            converted = [builders.group_metadata_tombstone(group.name)] if group.exists else []
            conversions.begin(group, "streams")
        member = self._member(classic_protocol=False, static=False, topics=())
        member.process_id = process_id or f"process-{member.member_id}"
        return self.write(group, [*converted, *streams.joined(group, member, self.now_ms + 1)])

    # -- members stay -------------------------------------------------------------------------------------------------

    def rebalance(self, group: Group, *, assignor: classic.Assignor | None = None) -> bool:
        """A classic group completes a round: its members join, the leader syncs."""
        if group.kind not in (None, "classic"):
            return False
        self.lag(JOIN_MS)
        joined_ms = self.now_ms
        self.lag(50)
        return self.write(group, classic.round_completed(group, joined_ms=joined_ms, assignor=assignor))

    def lose_round(self, group: Group) -> bool:
        """A classic group begins a round and does not complete it."""
        if group.kind not in (None, "classic") or not group.members:
            return False
        classic.round_lost(group)
        self.lag(JOIN_MS)
        return True

    def heartbeat(self, group: Group, member: Member, *, let_go: bool = True) -> bool:
        """A member of a consumer, share or streams group calls in."""
        if group.kind in (None, "classic") or member.away:
            return False
        if group.kind == "share":
            return self.write(group, share.beat(group, member, self.now_ms + 1))
        beat = consumer.beat if group.kind == "consumer" else streams.beat
        return self.write(group, beat(group, member, self.now_ms + 1, let_go=let_go))

    def resubscribe(self, group: Group, member: Member, topics: tuple[str, ...], *, regex: str | None = None) -> bool:
        """A member changes its mind about topics, or (not of a classic one) about the expression for them."""
        if (member.topics, member.regex) == (topics, regex) or member.away or group.kind == "streams":
            return False
        if regex is not None and not self.cluster.release.expressions:
            return False
        if group.kind == "consumer" and not (member.classic and regex):
            return self.write(group, consumer.resubscribed(group, member, topics, regex, self.now_ms + 1))
        if regex is not None:
            return False
        member.topics = topics
        if group.kind == "share":
            return self.write(group, share.changed(group, member, self.now_ms + 1))
        return self.rebalance(group)

    def move_host(self, group: Group, member: Member, host: str) -> bool:
        """A member calls from another address: of any but a classic group's that is written."""
        if group.kind in (None, "classic") or member.away or member.client_host == host:
            return False
        member.client_host = host
        if group.kind == "streams":
            return self.write(group, streams.changed(group, member, self.now_ms + 1))
        described = share.described(group, member) if group.kind == "share" else [consumer.subscribed(group, member)]
        return self.write(group, described)

    def match_regexes(self, group: Group) -> bool:
        """Topics that members' expressions match are looked up."""
        return group.kind == "consumer" and self.write(group, consumer.matched(group))

    def end_delay(self, group: Group) -> bool:
        """The timer of a streams group's initial delay."""
        return group.kind == "streams" and self.write(group, streams.delay_over(group, self.now_ms + 1))

    def initialize(self, group: Group) -> bool:
        """The share coordinator has set up a share group's delivery state."""
        return group.kind == "share" and self.write(group, share.initialized(group))

    # -- members go ---------------------------------------------------------------------------------------------------

    def leave(self, group: Group, *leavers: Member) -> bool:
        """Members leave, expire or are removed, all at once."""
        if not leavers:
            return False
        if group.kind in ("share", "streams"):
            return self.write(group, (share if group.kind == "share" else streams).left(group, leavers))
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
        self.lag(streams.INITIAL_DELAY_MS)
        moving = True
        while moving:
            beats = [
                self.end_delay(group),
                self.initialize(group),
                self._unmatched(group) and self.match_regexes(group),
            ]
            beats += [self.heartbeat(group, member) for member in list(group.members.values())]
            self.lag(JOIN_MS)
            moving = any(beats)

    def _unmatched(self, group: Group) -> bool:
        return any(of.regex is not None and of.regex not in group.regexes for of in group.members.values())

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

    def come_back(self, group: Group, member: Member, *, as_classic: bool = False, host: str | None = None) -> bool:
        """A static member's next process comes: in place of one that is away, that was a classic one, or to be one.

        The first one of the consumer protocol converts a classic group; if it was the only one, and is classic now, so
        is the group.
        """
        free = member.epoch == AWAY or member.classic or as_classic
        converts = group.kind == "classic" and group.family == "consumer" and not (as_classic or group.custom_assignor)
        if not (converts or group.kind == "consumer") or member.instance_id is None or not free:
            return False
        converted = conversions.upgraded_online(group) if converts else []
        comer = self._member(classic_protocol=as_classic, static=False, topics=member.topics)
        comer.client_host = host or comer.client_host
        others = group.others(member)
        alone = as_classic and not member.classic and all(other.classic for other in others)
        records = [*converted, *consumer.replaced(group, member, comer, self.now_ms + 1)]
        if alone:
            records += conversions.downgraded_online(group, self.now_ms + 1)
        return self.write(group, records)

    # -- topics and brokers -------------------------------------------------------------------------------------------

    def grow(self, topic: str, partitions: int) -> bool:
        """A topic is created, or gets more partitions. Groups learn of it by and by."""
        if partitions <= self.cluster.partitions.get(topic, 0):
            return False
        if topic in self.cluster.partitions:
            self.cluster.grow(topic, partitions)
        else:
            self.cluster.make(topic, partitions)
        return True

    def recreate(self, topic: str, partitions: int) -> bool:
        """A topic is deleted, its offsets with it, and recreated."""
        if topic not in self.cluster.partitions:
            return False
        former = self.cluster.of_name(topic)
        for group in list(self.groups.values()):
            self.forget_offsets(group, self.places_of(group, topic))
            if group.kind == "share":
                self.write(group, share.without_topic(group, former))
        self.cluster.make(topic, partitions)
        return True

    def upgrade_brokers(self, release: Release) -> None:
        """From here on another release writes the log."""
        self.cluster.release = release

    # -- parts --------------------------------------------------------------------------------------------------------

    def _member(self, *, classic_protocol: bool, static: bool, topics: tuple[str, ...]) -> Member:
        member_id = self._id("c" if classic_protocol else "n")
        instance_id = f"instance-{self._born}" if static else None
        return Member(member_id=member_id, classic=classic_protocol, instance_id=instance_id, topics=topics)

    def _id(self, prefix: str) -> str:
        self._born += 1
        return self.ids.pop(0) if self.ids else f"{prefix}-{self._born}"
