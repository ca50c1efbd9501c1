"""What a coordinator holds of a group in memory."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from lab.builders import HOST
from tests.simulator.cluster import Cluster, Metadata, Place

AWAY: Final = -2
"""Epoch of a static member that closed and may come back."""

STABLE, UNREVOKED, UNRELEASED = 0, 1, 2

COOPERATIVE: Final = ("cooperative-sticky", "stream")
"""Assignors whose members keep what they have while they join."""

SUBTOPOLOGIES: Final = {"0": ("t",), "1": ("u", "v")}
"""What streams applications read."""


@dataclass(slots=True, kw_only=True)
class Member:
    """A member of any group.

    `assigned` and `pending` are partitions, of a streams member active tasks. `owned` and `owned_generation` are what
    the process itself believes, which the classic protocol asks it for.
    """

    member_id: str
    classic: bool = False
    instance_id: str | None = None
    client_id: str = "client"
    client_host: str = HOST
    topics: tuple[str, ...] = ("t",)
    regex: str | None = None
    server_assignor: str | None = None
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
    # of a streams group
    process_id: str = ""
    standby: set[Place] = field(default_factory=set)
    warmup: set[Place] = field(default_factory=set)
    pending_standby: set[Place] = field(default_factory=set)
    pending_warmup: set[Place] = field(default_factory=set)

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
    cluster: Cluster = field(default_factory=Cluster)
    family: str = "consumer"
    """What it may become besides classic: `consumer`, `share` or `streams`."""
    kind: str | None = None
    members: dict[str, Member] = field(default_factory=dict)
    offsets: dict[Place, dict[str, Any]] = field(default_factory=dict)
    opened: bool = False
    """In memory for the sake of transactions, of which nothing may ever be committed."""
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
    epoch: int = 0
    assignment_epoch: int = 0
    assignment_ms: int = 0
    targets: dict[str, set[Place]] = field(default_factory=dict)
    answer: dict[str, set[Place]] | None = None
    answer_standby: dict[str, set[Place]] | None = None
    answer_warmup: dict[str, set[Place]] | None = None
    """What the assignor answers when it is asked next, where that is known."""
    metadata: Metadata = field(default_factory=dict)
    """What the last epoch was written for."""
    noticed: int = 0
    """Up to which change of the cluster's topics."""
    partition_metadata: bool = False
    """There is a record of the partition counts."""
    regexes: dict[str, tuple[str, ...]] = field(default_factory=dict)
    matches: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """What an expression will be found to match, where that is known."""
    # share
    initializing: set[Place] = field(default_factory=set)
    initialized: set[Place] = field(default_factory=set)
    newly_initialized: bool = False
    # streams
    topology: bool = False
    validated: int = -1
    validation_reported: bool = True
    """Whether the last epoch said which topology is valid."""
    delayed_until_ms: int | None = None
    standbys: int = 0
    standby_targets: dict[str, set[Place]] = field(default_factory=dict)
    warmup_targets: dict[str, set[Place]] = field(default_factory=dict)
    # on the way
    mixed_since_ms: int | None = None
    was_downgraded: bool = False
    leftovers: int = 0

    @property
    def exists(self) -> bool:
        return self.kind is not None or bool(self.offsets) or self.opened

    def subscribed(self, member: Member) -> tuple[str, ...]:
        """Topics that a member names, and those that its expression was found to match."""
        matched = self.regexes.get(member.regex, ()) if member.regex is not None else ()
        return tuple(sorted({*member.topics, *matched}))

    def wanted(self) -> dict[str, list[Place]]:
        """Member id → every partition of what it subscribes to."""
        return {of.member_id: self.cluster.places(self.subscribed(of)) for of in self.members.values()}

    def topics_changed(self) -> bool:
        """Whether those subscribed to are not what they were when the last epoch was written, asked once a change."""
        unnoticed, self.noticed = self.cluster.changes != self.noticed, self.cluster.changes
        return unnoticed and self.known_metadata() != self.metadata

    def known_metadata(self) -> Metadata:
        """Of all topics subscribed to, as they are now."""
        if self.kind == "streams":
            topics = [topic for sources in SUBTOPOLOGIES.values() for topic in sources if self.topology]
        else:
            topics = [topic for member in self.members.values() for topic in self.subscribed(member)]
        return self.cluster.metadata(sorted(set(topics)))

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
