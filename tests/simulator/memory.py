"""What a coordinator holds of a group in memory, and what it would answer about it."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from tests.builders import HOST, topic_id

Place: TypeAlias = tuple[str, int]
"""Topic and partition."""

PARTITIONS: Final = {"t": 6, "u": 3}
"""The topics there are, and how many partitions each has."""

FIRST_EPOCH: Final = 1
"""Group and assignment epoch in memory before anything is written."""
AWAY: Final = -2
"""Epoch of a static member that closed and may come back."""

STABLE, UNREVOKED, UNRELEASED = 0, 1, 2
STATE_NAMES: Final = ("Stable", "UnrevokedPartitions", "UnreleasedPartitions")


@dataclass(slots=True, kw_only=True)
class Member:
    """A member, in a classic group or in a consumer group.

    `owned` and `owned_generation` are what the process itself believes, which the classic protocol asks it for.
    """

    member_id: str
    classic: bool = False
    instance_id: str | None = None
    client_id: str = "client"
    client_host: str = HOST
    topics: tuple[str, ...] = ("t",)
    owned: set[Place] = field(default_factory=set)
    owned_generation: int = -1
    embedded: bytes = b""
    """What it sent when it last joined by the classic protocol."""
    epoch: int = 0
    previous_epoch: int = 0
    state: int = STABLE
    assigned: dict[Place, int] = field(default_factory=dict)
    """Place → epoch in which it was assigned."""
    pending: dict[Place, int] = field(default_factory=dict)

    @property
    def away(self) -> bool:
        return self.epoch == AWAY

    @property
    def holds(self) -> set[Place]:
        """What no other member may be given."""
        return {*self.assigned, *self.pending}


@dataclass(slots=True, kw_only=True)
class Group:
    """A group; `kind` None where it only commits, or is not."""

    name: str
    kind: str | None = None
    members: dict[str, Member] = field(default_factory=dict)
    offsets: dict[Place, dict[str, Any]] = field(default_factory=dict)
    # classic
    protocol: str = "range"
    custom_assignor: bool = False
    """Its assignor puts data of its own into the assignment, which blocks an online upgrade."""
    generation: int = 0
    written_generation: int = 0
    written: tuple[Member, ...] = ()
    """Members as the last record has them."""
    assignment: dict[str, set[Place]] = field(default_factory=dict)
    """Member id → places, as the last record has them."""
    # consumer
    epoch: int = FIRST_EPOCH
    assignment_epoch: int = FIRST_EPOCH
    assignment_ms: int = 0
    targets: dict[str, set[Place]] = field(default_factory=dict)
    # on the way
    mixed_since_ms: int | None = None
    was_downgraded: bool = False
    leftovers: int = 0

    @property
    def exists(self) -> bool:
        return self.kind is not None or bool(self.offsets)

    def others(self, member: Member) -> list[Member]:
        return [other for other in self.members.values() if other is not member]

    def of_instance(self, instance_id: str) -> Member | None:
        return next((of for of in self.members.values() if of.instance_id == instance_id), None)

    def count_mixed(self, now_ms: int) -> None:
        """Remember since when members of both protocols are in the group."""
        kinds = {member.classic for member in self.members.values()} if self.kind == "consumer" else set()
        if len(kinds) < 2:
            self.mixed_since_ms = None
        elif self.mixed_since_ms is None:
            self.mixed_since_ms = now_ms


def by_topic(places: Iterable[Place]) -> dict[str, list[int]]:
    """Topic → partitions, ascending."""
    found: dict[str, list[int]] = {}
    for topic, partition in sorted(places):
        found.setdefault(topic, []).append(partition)
    return found


def with_epochs(places: dict[Place, int]) -> dict[str, dict[int, int]]:
    """Topic → partition → epoch it was assigned in."""
    found: dict[str, dict[int, int]] = {}
    for (topic, partition), epoch in places.items():
        found.setdefault(topic, {})[partition] = epoch
    return found


def view(group: Group) -> dict[str, Any]:
    """The contract's GROUP. The phase of a mixed group is `mixed`: its way is an inference, not a fact."""
    consumer = group.kind == "consumer"
    shown = list(group.members.values()) if consumer else list(group.written)
    return {
        "group": group.name,
        "type": "consumer" if consumer else "classic",
        "state": _state(group, shown),
        "epoch": group.epoch if consumer else group.written_generation,
        "assignment_epoch": group.assignment_epoch if consumer else None,
        "protocol": None if consumer or not shown else group.protocol,
        "simple": group.kind is None,
        "members": [_member(group, member) for member in sorted(shown, key=lambda of: of.member_id)],
        "offsets": [group.offsets[place] for place in sorted(group.offsets)],
        "migration": _migration(group, shown),
    }


def committed(place: Place, offset: int, *, leader_epoch: int, metadata: str, time_ms: int) -> dict[str, Any]:
    """The contract's Offset."""
    return {
        "topic": place[0],
        "partition": place[1],
        "offset": offset,
        "leader_epoch": leader_epoch,
        "metadata": metadata,
        "commit_timestamp": time_ms,
        "topic_id": topic_id(place[0]),
    }


def _state(group: Group, shown: list[Member]) -> str:
    if not shown:
        return "Empty"
    if group.kind == "classic":
        return "Stable"
    if group.epoch > group.assignment_epoch:
        return "Assigning"
    settled = all(of.state == STABLE and of.epoch == group.assignment_epoch for of in shown)
    return "Stable" if settled else "Reconciling"


def _member(group: Group, member: Member) -> dict[str, Any]:
    consumer = group.kind == "consumer"
    given = member.assigned if consumer else group.assignment.get(member.member_id, set())
    target = group.targets.get(member.member_id, set()) if consumer else given
    return {
        "member_id": member.member_id,
        "instance_id": member.instance_id,
        "client_id": member.client_id,
        "client_host": member.client_host,
        "protocol": "classic" if member.classic else "consumer",
        "epoch": member.epoch if consumer else group.written_generation,
        "state": STATE_NAMES[member.state] if consumer else "Stable",
        "assigned": by_topic(given),
        "pending_revocation": by_topic(member.pending) if consumer else {},
        "target": by_topic(target),
    }


def _migration(group: Group, shown: list[Member]) -> dict[str, Any]:
    upgraded = sum(not member.classic for member in shown)
    blocked = group.kind == "classic" and group.custom_assignor and bool(shown)
    if group.kind == "consumer":
        phase = "upgraded" if group.mixed_since_ms is None else "mixed"
    else:
        phase = "blocked" if blocked else "downgraded" if group.was_downgraded else "classic"
    return {
        "phase": phase,
        "members": len(shown),
        "upgraded_members": upgraded,
        "mixed_since": group.mixed_since_ms,
        "blockers": ["assignment_user_data"] if blocked else [],
        "leftovers": group.leftovers,
    }
