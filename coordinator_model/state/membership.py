"""What Kafka holds of one group: its *membership*, which is what the live records of types 2 and up say.

It is replaced record by record, the last writer per key winning, because a log that was compacted, or that is read
while the cleaner runs, may lack any of them (KAFKA-19862, KAFKA-21117). Committed offsets live elsewhere
(`offsets.py`): they change a thousand times as often, and a group of ten thousand partitions must not be rewritten for
one of them.

Members are immutable: a copy of a membership is a copy of its dictionaries, which is what makes it cheap to keep
the membership *before* a step beside the one after it (`rules/steps.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

CLASSIC: Final = "classic"
CONSUMER: Final = "consumer"
SHARE: Final = "share"
STREAMS: Final = "streams"

Partitions = Mapping[str, tuple[int, ...]]
"""Topic → partitions, ascending. Topics stand under their name in classic records, under their id in all others."""

Holders = Mapping[str, tuple[str, ...]]
"""`topic/partition` (`subtopology/partition` of a streams group) → ids of members, sorted."""

STATIC_MEMBER_ABSENT_EPOCH: Final = -2
"""Member epoch of a static consumer member that closed and may come back (KIP-848, "Static Membership")."""

FIRST_EPOCH: Final = 1
"""Group and assignment epoch of a modern group without records of them: where a 4.3 broker's memory starts.

Older brokers' starts at 0, which `groups/common.py` recognises by the first epochs they write.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamsClaim:
    """What a member of a Kafka Streams application on the classic protocol said of its tasks when it joined.

    Tasks by subtopology, as far as it ran them; `copies` is task (`0_1`) → sum of the changelogs' offsets that its copy
    of the state has reached, -1 where it did not know.
    """

    process_id: str
    active: Partitions = field(default_factory=dict)
    copies: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """What a classic member said when it joined: its embedded subscription, decoded (ConsumerProtocolSubscription).

    `owned` and `generation` are its claimed ownership: from the owned partitions (version 1 and up) or from the
    sticky assignor's user data (KIP-341); a generation of -1 is a claim without one.
    """

    version: int
    topics: tuple[str, ...] = ()
    owned: Partitions = field(default_factory=dict)
    generation: int = -1
    rack_id: str | None = None
    streams: StreamsClaim | None = None
    user_data_bytes: int | None = None
    """How much user data there is, of a member on `cooperative-sticky`, -1 for null: it tells clients apart
    (`embedded_subscription.py`). None of any other member."""
    malformed: bool = False
    """Whether topics and user data are all that could be read: it is not in the format of the version it names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassicMember:
    """One member of a GroupMetadataValue. Timeouts in milliseconds."""

    member_id: str
    instance_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout_ms: int = -1
    session_timeout_ms: int = -1
    claim: Claim | None = None
    """None where the group is not of protocol type `consumer` or the subscription does not decode at all."""
    assigned: Partitions = field(default_factory=dict)
    assignment_user_data: bool = False
    """A custom assignor's data, which a broker refuses to carry over in an online upgrade."""
    assignment_malformed: bool = False
    """Of protocol type `consumer`, and yet not in its format."""
    streams_active: Partitions = field(default_factory=dict)
    streams_standby: Partitions = field(default_factory=dict)
    """Tasks given to a member of a Kafka Streams application, by subtopology; a warm-up is a standby task, too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassicGroup:
    """The live GroupMetadataValue (type 2) of a group; a `generation` of -1 is not known, as of a polled group."""

    generation: int
    protocol_type: str = ""
    protocol: str | None = None
    leader: str | None = None
    state_timestamp_ms: int = -1
    members: Mapping[str, ClassicMember] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class UserEndpoint:
    """Where a streams member answers interactive queries."""

    host: str
    port: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ModernMember:
    """One member of a consumer, share or streams group, put together from its three records.

    `metadata_live` and `current_live` say which of the member's records (metadata; current assignment) exist: a
    compacted log may show either alone. `epoch` is -1 while no current assignment is known.
    """

    member_id: str
    metadata_live: bool = False
    current_live: bool = False
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    subscribed_topics: tuple[str, ...] = ()
    subscribed_regex: str | None = None
    rebalance_timeout_ms: int = -1
    server_assignor: str | None = None
    uses_classic_protocol: bool = False
    classic_session_timeout_ms: int = -1
    claims: Mapping[str, Claim | None] = field(default_factory=dict)
    """Supported protocol name → decoded subscription, of a member that still uses the classic protocol."""
    epoch: int = -1
    previous_epoch: int = -1
    state: int = 0
    assigned: Partitions = field(default_factory=dict)
    pending_revocation: Partitions = field(default_factory=dict)
    newest_partition_epoch: int = -1
    """Highest epoch in which one of its partitions was assigned; -1 where the record has none (KIP-1251, 4.3)."""
    partition_epochs: Partitions = field(default_factory=dict)
    """Topic → the epochs in which its partitions were assigned, in the order of `assigned`; no topic without epochs."""
    topology_epoch: int = -1
    process_id: str = ""
    standby_tasks: Partitions = field(default_factory=dict)
    warmup_tasks: Partitions = field(default_factory=dict)
    standby_pending_revocation: Partitions = field(default_factory=dict)
    warmup_pending_revocation: Partitions = field(default_factory=dict)
    user_endpoint: UserEndpoint | None = None
    client_tags: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_absent_static(self) -> bool:
        """A static member that closed with "remain": it holds its partitions until it returns or expires."""
        return self.epoch == STATIC_MEMBER_ABSENT_EPOCH


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskTarget:
    """Target of a streams member: subtopology → partitions, per role."""

    active: Partitions = field(default_factory=dict)
    standby: Partitions = field(default_factory=dict)
    warmup: Partitions = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class InternalTopics:
    """Names of the topics that a subtopology makes for itself."""

    repartition_source: tuple[str, ...] = ()
    repartition_sink: tuple[str, ...] = ()
    changelog: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryState:
    """How far the delivery state of a share group's topics is set up or taken down. Topics stand under their name."""

    initializing: Partitions = field(default_factory=dict)
    initialized: Partitions = field(default_factory=dict)
    deleting: tuple[str, ...] = ()


@dataclass(slots=True, kw_only=True)
class ModernGroup:
    """The live records of a consumer, share or streams group."""

    family: str
    epoch: int = FIRST_EPOCH
    assignment_epoch: int = FIRST_EPOCH
    epoch_live: bool = False
    assignment_epoch_live: bool = False
    metadata_hash: int = 0
    """Hash over the subscribed topics, their partitions and racks (4.1); 0 for none, and where brokers write none."""
    partition_metadata_live: bool = False
    partition_counts: Mapping[str, int] = field(default_factory=dict)
    """Topic name → partitions, as brokers up to 4.0 kept it beside the group."""
    topic_ids: Mapping[str, str] = field(default_factory=dict)
    """Topic name → its id, from the same record."""
    closed: bool = False
    """The epoch's tombstone was the last word: what is still live is left over (`leftovers`)."""
    members: dict[str, ModernMember] = field(default_factory=dict)
    targets: dict[str, Partitions] = field(default_factory=dict)
    task_targets: dict[str, TaskTarget] = field(default_factory=dict)
    regexes: dict[str, tuple[str, ...]] = field(default_factory=dict)
    topology_epoch: int | None = None
    validated_topology_epoch: int = -1
    validation_told: bool = False
    """Whether the broker writes which topology was found valid (4.2)."""
    subtopologies: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Subtopology → the topics its tasks read, of a streams group: those of its sources, and repartition topics."""
    internal_topics: dict[str, InternalTopics] = field(default_factory=dict)
    """The same → the topics it makes for itself."""
    delivery_state: DeliveryState = field(default_factory=DeliveryState)
    """Of a share group."""

    def copy(self) -> ModernGroup:
        """A group that later records of this one do not change."""
        return replace(
            self,
            members=dict(self.members),
            targets=dict(self.targets),
            task_targets=dict(self.task_targets),
            regexes=dict(self.regexes),
            subtopologies=dict(self.subtopologies),
            internal_topics=dict(self.internal_topics),
        )

    def live(self) -> dict[str, int]:
        """Kind of record of the group's family → how many of its keys hold a value."""
        members = self.members.values()
        return {
            **self._live_beside_members(),
            "member_metadata": sum(member.metadata_live for member in members),
            "current_assignment": sum(member.current_live for member in members),
        }

    def live_records(self) -> int:
        """How many keys of the group's family hold a value."""
        return sum(self.live().values())

    def holds_anything(self) -> bool:
        """Whether any does, without counting those of members."""
        return self.epoch_live or bool(self.members) or any(self._live_beside_members().values())

    def _live_beside_members(self) -> dict[str, int]:
        return {
            "epoch": int(self.epoch_live),
            "assignment_epoch": int(self.assignment_epoch_live),
            "partition_metadata": int(self.partition_metadata_live),
            "topology": int(self.topology_epoch is not None),
            "target": len(self.targets) + len(self.task_targets),
            "expression": len(self.regexes),
        }


@dataclass(slots=True, kw_only=True)
class Membership:
    """What the membership records of one group say at one moment."""

    family: str | None = None
    """Family of the last value record: what the group is. None for a group that only commits."""
    classic: ClassicGroup | None = None
    modern: ModernGroup | None = None

    def copy(self) -> Membership:
        """A membership that later records of the group do not change."""
        return Membership(
            family=self.family, classic=self.classic, modern=self.modern.copy() if self.modern is not None else None
        )

    @property
    def exists(self) -> bool:
        """True while the membership records alone would make a broker hold this group."""
        return self.classic is not None or self.modern_group is not None

    @property
    def classic_group(self) -> ClassicGroup | None:
        """The classic group, if that is what this is."""
        return self.classic if self.modern_group is None else None

    @property
    def modern_group(self) -> ModernGroup | None:
        """The consumer, share or streams group, if that is what this is."""
        modern = self.modern
        if modern is None or modern.closed or (self.classic is not None and self.family == CLASSIC):
            return None
        return modern if modern.epoch_live or modern.live_records() else None

    @property
    def type(self) -> str:
        """Group type as `kafka-groups --list` prints it, in lower case."""
        modern = self.modern_group
        return CLASSIC if modern is None else modern.family

    @property
    def epoch(self) -> int:
        """Generation of a classic group, group epoch of any other, 0 for a group that only commits."""
        modern = self.modern_group
        if modern is not None:
            return modern.epoch
        return self.classic.generation if self.classic is not None else 0

    def leftovers(self) -> int:
        """Live records of the new protocols under a group that no longer is of them (KIP-915)."""
        if self.modern is None or self.modern_group is not None:
            return 0
        return self.modern.live_records()
