"""What a roll cost a group, from the coordinator's log alone: a rehearsal and the real roll are measured by this.

    figure              counted from                                     what the log cannot show of it
    rebalances          `rebalance_completed` events                     classic rounds begun and never completed
    partitions moved    a partition's next owner is another member       -
    ownerless time      no member has it, or a classic leader is         the join phase of a classic group: it begins
                        dividing what its former owner has let go of     unwritten, so the figure is a lower bound
    alarms              events of warning and above that open            -

An owner is known by its instance id where it has one. What a member has yet to revoke has an owner; what a static
member holds that said it would be back (KIP-848, epoch -2) has none, as it is not processed. A member that was killed
remains an owner until its session expires: the log knows nothing else. Of a static member that another process stands
for, or that is gone, without having said so before, it is not known for how long it processed nothing: `unsaid` names
them. Times are the log's, in milliseconds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from coordinator_model.groups.embedded_subscription import STICKY
from coordinator_model.rules.members import is_absent, members_of
from coordinator_model.state.events import INFO, Event
from coordinator_model.state.group_state import GroupState
from coordinator_model.state.membership import SHARE, STREAMS, ClassicGroup, Membership, ModernMember, Partitions
from coordinator_model.views.group_view import TopicNames

EXPECTED: Final = frozenset({"downgrade_started", "static_member_absent"})
"""Warnings that are what was asked for, or what every roll of static members shows: no alarms of a roll."""

OwnedPartition = tuple[str, int]
"""Topic name, partition."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """The figures of one roll; `ownerless_ms` has only partitions that were without an owner."""

    since_ms: int
    until_ms: int
    rebalances: int = 0
    partitions_moved: int = 0
    moved_in_rebalances: int = 0
    """As the events of rebalances say: other than `partitions_moved` where one had begun before, was cut off by a
    conversion, or is under way."""
    ownerless_ms: Mapping[OwnedPartition, int] = field(default_factory=dict)
    without_owner: tuple[OwnedPartition, ...] = ()
    """Those that have none at the end."""
    unsaid: tuple[str, ...] = ()
    """Instance ids of members that went, or were taken over, without saying so before."""
    causes: Mapping[str, int] = field(default_factory=dict)
    conversions: Mapping[str, int] = field(default_factory=dict)
    verdicts: tuple[str, ...] = ()
    events: tuple[Event, ...] = ()


class RollCost:
    """Measures one group while its log is replayed.

    Args:
        topic_names: topic id → name; classic records have names, all others ids.
        since_ms: nothing before is counted; who owned what then is known all the same.
    """

    def __init__(self, topic_names: TopicNames, since_ms: int = 0) -> None:
        self._topic_names = topic_names
        self._since_ms = since_ms
        self._generation: ClassicGroup | None = None
        """The last one of a classic group."""
        self._owned: frozenset[OwnedPartition] = frozenset()
        self._seen = (-1, -1)
        self._owner: dict[OwnedPartition, str] = {}
        """Last owner of each partition that ever had one."""
        self._free_since_ms: dict[OwnedPartition, int] = {}
        self._ownerless_ms: Counter[OwnedPartition] = Counter()
        self._moved = 0
        self._statics: dict[str, tuple[str, bool]] = {}
        """Instance id → who stands for it, and whether it said that it would be back."""
        self._unsaid: set[str] = set()
        self._events: list[Event] = []
        self._latest_ms = since_ms

    def begin(self, since_ms: int) -> None:
        """Start to count at this moment: what was counted until now is dropped."""
        self._since_ms = since_ms
        self._ownerless_ms.clear()
        self._unsaid.clear()
        self._moved = 0
        self._events = [event for event in self._events if event.time_ms >= since_ms]

    def follow(self, state: GroupState | None, events: Iterable[Event]) -> None:
        """Look at the group after a record was replayed, or the steps were settled; `events` are those it showed."""
        for event in events:
            if event.time_ms >= self._since_ms:
                self._events.append(event)
                self._latest_ms = max(self._latest_ms, event.time_ms)
        if state is None:
            self._step(Membership(), self._latest_ms)
            return
        closed = (state.last_step_ms, state.last_step_offset)
        if closed == self._seen:
            return
        self._seen = closed
        # With a step open, the membership it began with is the one after the last that was closed.
        self._step(state.membership if state.step is None else state.step.before, state.last_step_ms)

    def cost(self, until_ms: int) -> Cost:
        """The figures up to a moment; a partition without an owner then has been so until then."""
        ownerless = Counter(self._ownerless_ms)
        for place, since_ms in self._free_since_ms.items():
            ownerless[place] += max(0, until_ms - max(since_ms, self._since_ms))
        done = [event for event in self._events if event.kind == "rebalance_completed"]
        moved = sum(event.detail.get("partitions_moved", 0) for event in done)
        return Cost(
            since_ms=self._since_ms,
            until_ms=until_ms,
            rebalances=len(done),
            # Nothing else knows the tasks of a streams group.
            partitions_moved=self._moved if self._owner else moved,
            moved_in_rebalances=moved,
            ownerless_ms={place: ms for place, ms in sorted(ownerless.items()) if ms > 0},
            without_owner=tuple(sorted(self._free_since_ms)),
            unsaid=tuple(sorted(self._unsaid)),
            causes=Counter(cause for event in done for cause in event.detail.get("causes", ())),
            conversions=Counter(
                kind.partition("_")[0]
                for kind in (event.kind for event in self._events)
                if kind in ("upgrade_completed", "downgrade_completed")
            ),
            verdicts=tuple(dict.fromkeys(event.kind for event in self._events if is_alarm(event))),
            events=tuple(self._events),
        )

    @property
    def has_ownerless(self) -> bool:
        """Whether a partition that had an owner has none now."""
        return bool(self._free_since_ms)

    def _follow_statics(self, after: Membership, time_ms: int) -> None:
        was, self._statics = (
            self._statics,
            {
                of.instance_id: (of.member_id, is_absent(of))
                for of in members_of(after).values()
                if of.instance_id is not None
            },
        )
        if time_ms >= self._since_ms:
            self._unsaid.update(
                instance_id
                for instance_id, (member_id, said) in was.items()
                if not said and self._statics.get(instance_id, ("", False))[0] != member_id
            )

    def _step(self, after: Membership, time_ms: int) -> None:
        self._follow_statics(after, time_ms)
        owners = dict(self._owners(after))
        generation = after.classic_group
        if generation is not None and self._generation is not None and generation.state_timestamp_ms >= 0:
            divided_ms = min(generation.state_timestamp_ms, time_ms)
            for place in self._let_go(self._generation, generation):
                self._free_since_ms.setdefault(place, divided_ms)
        self._generation, self._owned = generation, frozenset(owners)
        for place, owner in owners.items():
            since_ms = self._free_since_ms.pop(place, None)
            if since_ms is not None:
                self._ownerless_ms[place] += max(0, time_ms - max(since_ms, self._since_ms))
            if self._owner.get(place, owner) != owner and time_ms >= self._since_ms:
                self._moved += 1
            self._owner[place] = owner
        for place in self._owner.keys() - owners.keys():
            self._free_since_ms.setdefault(place, time_ms)

    def _owners(self, membership: Membership) -> Iterator[tuple[OwnedPartition, str]]:
        if membership.type in (SHARE, STREAMS):
            return
        for member in members_of(membership).values():
            if is_absent(member):
                continue
            owned: tuple[Partitions, ...] = (member.assigned,)
            if isinstance(member, ModernMember):
                owned = (member.pending_revocation, member.assigned)
            for held in owned:
                for topic, partitions in held.items():
                    name = self._topic_names.get(topic, topic)
                    for partition in partitions:
                        yield (name, partition), member.instance_id or member.member_id

    def _let_go(self, was: ClassicGroup, now: ClassicGroup) -> Iterable[OwnedPartition]:
        """Partitions that had an owner before a generation, and that no member claimed when joining it."""
        return () if now.generation == was.generation else self._owned - set(_claimed(now))


def is_alarm(event: Event) -> bool:
    """Whether it opens an alarm that a roll does not ask for.

    A member that is stopped just before another converts the group is inferred to be lost (`upgrade_check.py`): in a
    roll it is the one that was stopped.
    """
    if event.severity == INFO or event.kind in EXPECTED or event.detail.get("cleared"):
        return False
    return not (event.kind == "upgrade_unclean" and event.inferred)


def seconds(ms: float) -> float:
    """Milliseconds as seconds."""
    return round(ms / 1000, 3)


def cost_view(cost: Cost) -> dict[str, Any]:
    """The figures as JSON; times in ms, durations in seconds."""
    return {
        "since": cost.since_ms,
        "until": cost.until_ms,
        "rebalances": cost.rebalances,
        "partitions_moved": cost.partitions_moved,
        "ownerless_seconds": {
            "max": seconds(max(cost.ownerless_ms.values(), default=0)),
            "total": seconds(sum(cost.ownerless_ms.values())),
            "partitions": {f"{topic}/{partition}": seconds(ms) for (topic, partition), ms in cost.ownerless_ms.items()},
        },
        "causes": dict(sorted(cost.causes.items())),
        "conversions": dict(sorted(cost.conversions.items())),
        "verdicts": list(cost.verdicts),
    }


def _claimed(group: ClassicGroup) -> Iterator[OwnedPartition]:
    if group.protocol == STICKY:
        return  # it says what it owned until it joined, and let go of
    for member in group.members.values():
        if member.claim is not None:
            for topic, partitions in member.claim.owned.items():
                for partition in partitions:
                    yield topic, partition
