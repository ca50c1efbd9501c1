"""What the replica remembers of one group.

A group's *membership* is what the live records of types 2 and up say; it is replaced record by record, the last
writer per key winning, because a log that was compacted, or that is read while the cleaner runs, may lack any of
them (KAFKA-19862, KAFKA-21117). Committed offsets live elsewhere (`offsets.py`): they change a thousand times as
often, and a group of ten thousand partitions must not be rewritten for one of them.

Members are immutable: a copy of a membership is a copy of its dictionaries, which is what makes it cheap to keep
the membership *before* a step beside the one after it (`steps.py`).
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

NOTHING: Final[Partitions] = {}

Holders = Mapping[str, tuple[str, ...]]
"""`topic/partition` (`subtopology/partition` of a streams group) → ids of members, sorted."""

STATIC_MEMBER_ABSENT_EPOCH: Final = -2
"""Member epoch of a static consumer member that closed and may come back (KIP-848, "Static Membership")."""

FIRST_EPOCH: Final = 1
"""Group and assignment epoch of a modern group without records of them: where a 4.3 broker's memory starts.

That of older brokers starts at 0, which `groups/modern.py` tells from the first epochs they write.
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
    """None where the group is not of protocol type `consumer` or the subscription does not decode."""
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
    """The live GroupMetadataValue (type 2) of a group."""

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
    """Highest epoch in which one of its partitions was assigned; -1 where none is told (KIP-1251, 4.3)."""
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

    def live_records(self) -> int:
        """How many keys of the group's family hold a value."""
        members = sum(member.metadata_live + member.current_live for member in self.members.values())
        single = (
            self.epoch_live,
            self.assignment_epoch_live,
            self.partition_metadata_live,
            self.topology_epoch is not None,
        )
        return members + len(self.targets) + len(self.task_targets) + len(self.regexes) + sum(single)


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


REBALANCE_DURATION_BUCKETS_MS: Final = (100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000, 60_000, 300_000)
"""Upper bounds of the rebalance duration histogram; a last bucket without bound follows."""


@dataclass(slots=True, kw_only=True)
class GroupCounters:
    """Totals over the group's life as read; they only grow, and live in the checkpoint so that they survive."""

    rebalances: int = 0
    rounds_lost: int = 0
    partitions_moved: int = 0
    partitions_kept: int = 0
    stale_claims: int = 0
    static_replacements: int = 0
    """Static members taken over that had not said they would be back."""
    static_returns: int = 0
    """Static members that were away and came back."""
    rebalances_saved: int = 0
    """How many of both took no rebalance."""
    rebalances_avoidable: int = 0
    """Rebalances of a scale-up or scale-down beyond the one it needed."""
    upgrades: int = 0
    downgrades: int = 0
    duration_buckets: list[int] = field(default_factory=lambda: [0] * (len(REBALANCE_DURATION_BUCKETS_MS) + 1))
    duration_sum_ms: int = 0

    def observe_duration(self, duration_ms: int) -> None:
        """Count one rebalance of known duration."""
        bucket = sum(duration_ms > bound for bound in REBALANCE_DURATION_BUCKETS_MS)
        self.duration_buckets[bucket] += 1
        self.duration_sum_ms += duration_ms


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassicProgress:
    """What a member that uses the classic protocol in a consumer group is doing; `classic_members.py` holds the rules.

    `joined_ms` is when its last JoinGroup left a trace, None if none did since the group is a consumer group.
    """

    situation: str
    since_ms: int
    joined_ms: int | None = None


@dataclass(slots=True, kw_only=True)
class Downgrade:
    """The last downgrade of a group, and what was the same before and after it; `downgrades.py` holds the rules.

    `differing` and `unsettled` name members by instance id where they have one; `offsets_back` is `topic/partition` →
    the offset it was at, of those that went back or went and have not come there again.
    """

    begun_ms: int
    completed_ms: int | None = None
    generation: int = -1
    differing: tuple[str, ...] = ()
    unsettled: tuple[str, ...] = ()
    watching: bool = True
    offsets_back: dict[str, int] = field(default_factory=dict)


@dataclass(slots=True, kw_only=True)
class Migration:
    """How far a group is between the protocols; `migration.py` holds the rules."""

    direction: str | None = None
    """`upgrade` or `downgrade` while members of both protocols are in the group."""
    mixed_since_ms: int | None = None
    peak_classic: int = 0
    peak_consumer: int = 0
    """Most members of either protocol since the group is mixed: a roll that turns round is seen against them."""
    changed_ms: int | None = None
    changed_offset: int = -1
    """When and where members of either protocol last came or went."""
    members_before: int = 0
    """Members there were before the upgrade under way, or the last one."""
    completed_ms: int | None = None
    completed_members: int = 0
    """When an upgrade was completed for which members were still missing, and with how many."""
    recent_members: int = 0
    recent_members_ms: int = -1
    """How many members a classic group had before some left, and when they did."""
    was_downgraded: bool = False
    downgrade: Downgrade | None = None
    leftovers_reported: bool = False
    blockers_reported: tuple[str, ...] = ()
    """Reasons against an online upgrade told and not seen to be gone (`upgrade_blockers.py`)."""
    classic_members: dict[str, ClassicProgress] = field(default_factory=dict)
    """Members on the classic protocol in a consumer group, by member id."""


@dataclass(slots=True, kw_only=True)
class Rebalance:
    """A rebalance of a modern group under way. `owners` is who owned what when it began."""

    since_ms: int
    from_epoch: int
    offset: int = -1
    """Of the record that began it."""
    owners: dict[str, Partitions] = field(default_factory=dict)
    partition_counts: dict[str, int] = field(default_factory=dict)
    """Topic → partitions that the group was known to have of it then."""
    causes: tuple[str, ...] = ()
    """Causes seen so far (`causes.py`), each once."""
    assigning_since_ms: int | None = None
    """Since when a target is waited for; None while there is one."""
    unsettled_since_ms: dict[str, int] = field(default_factory=dict)
    """Member that is not at the target → since when nothing was written of it, or it is not there, if that is later."""
    clock_jumped: bool = False
    """Whether a step of it was written with an earlier time than the one before (`clocks.py`)."""


@dataclass(slots=True, kw_only=True)
class Handover:
    """What the last completed rebalance took from one owner and gave to another: former owner → partitions."""

    time_ms: int
    former_owners: dict[str, Partitions] = field(default_factory=dict)


@dataclass(slots=True, kw_only=True)
class Scaling:
    """Members that came, or went, one after another (`scaling.py`)."""

    direction: str
    """`up` or `down`."""
    since_ms: int
    last_ms: int
    """When the last of them came or went."""
    members_before: int
    members_after: int = 0
    changed: int = 0
    rebalances: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class FormerMember:
    """Who stood for an instance id before, and since when; until the next one did."""

    member_id: str
    since_ms: int = -1


@dataclass(slots=True, kw_only=True)
class InstanceHistory:
    """Who stands for an instance id now, who did before, and when it was last taken over from one that had not left."""

    member_id: str
    since_ms: int = -1
    former: tuple[FormerMember, ...] = ()
    """The latest ones, earliest first."""
    bounces: int = 0
    """How often it came under another member id without a rebalance."""
    replaced_ms: tuple[int, ...] = ()
    replaced_offset: int = -1
    """Where the last of these was written."""
    contended: bool = False
    absent_since_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochAnomaly:
    """What no coordinator writes (`invariants.py` and `coherence.py` list the rules).

    `member_id` is None for a group's; `partitions` are those it is about, with the members that have them.
    """

    rule: str
    expected: str
    found: str
    member_id: str | None = None
    partitions: Holders = field(default_factory=dict)

    @property
    def name(self) -> str:
        """What it is called while it lasts: the rule and whom it is about."""
        return f"{self.rule}/{self.member_id or ''}"


@dataclass(slots=True, kw_only=True)
class Step:
    """Records of one coordinator event read so far (`steps.py`), and the membership before the first of them."""

    timestamp_ms: int
    last_offset: int
    before: Membership
    anomalies: tuple[EpochAnomaly, ...] = ()
    """Seen between one record of the step and the next."""
    ended_type: str | None = None
    ended_epoch: int = 0
    """Type and epoch of a group with members that ended within the step: an online conversion goes on from there."""
    targets: dict[str, Partitions] = field(default_factory=dict)
    """Targets of consumer group members written in the step, by member id: a downgrade in it ends them again."""


@dataclass(slots=True, kw_only=True)
class GroupState:
    """Everything remembered of one group but its committed offsets."""

    name: str
    partition: int
    membership: Membership = field(default_factory=Membership)
    offset_count: int = 0
    """Committed offsets the group has; a group that only commits exists by them alone."""
    buckets: dict[str, tuple[int, ...]] = field(default_factory=dict)
    """Topic → numbers of the offset buckets ever written (`offsets.py`), so that they can go with the group."""
    announced: bool = False
    """Whether `group_created` was said and `group_deleted` not yet."""
    migration: Migration = field(default_factory=Migration)
    rebalance: Rebalance | None = None
    handover: Handover | None = None
    rounds_lost_ms: int | None = None
    """When a generation was last found to be lost."""
    recent_rebalances_ms: tuple[int, ...] = ()
    """When rebalances of the storm window were completed (`rebalances.py`)."""
    storm: bool = False
    instances: dict[str, InstanceHistory] = field(default_factory=dict)
    """Static members by instance id (`statics.py`)."""
    counters: GroupCounters = field(default_factory=GroupCounters)
    scaling: Scaling | None = None
    """The last scale-up or scale-down, under way or over."""
    open_claims: dict[str, str] = field(default_factory=dict)
    """Stale or contradicting claims told and still made: whose → what was claimed (`ownership.py`)."""
    held_ms: int = -1
    held_offset: int = -1
    """When and where it was last written that a member holds other partitions than before (`holders.py`)."""
    duplicates: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Duplicate assignments reported and not cleared: `topic/partition` → member ids (`invariants.py`)."""
    anomalies: tuple[str, ...] = ()
    """Names of epoch anomalies reported that still last (`invariants.py`)."""
    topic_ids: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Topic → ids its commits named, the latest last: a topic made anew has another (`commits.py`)."""
    whole: bool = False
    """A record followed another of its key: the cleaner has not been there, so nothing is missing since."""
    withheld: bool = False
    """Something was seen while catching up that would be reported live: judged again at the end of the log."""
    step: Step | None = None
    last_step_ms: int = -1
    last_step_offset: int = -1
    """When and where the last concluded step was written: since then nothing about the group was."""

    @property
    def exists(self) -> bool:
        """True while a broker would list this group."""
        return self.offset_count > 0 or self.membership.exists

    @property
    def simple(self) -> bool:
        """True for a group that only commits: offsets, no membership record."""
        return not self.membership.exists and self.offset_count > 0

    @property
    def type(self) -> str:
        """Group type as `kafka-groups --list` prints it, in lower case."""
        return self.membership.type

    @property
    def epoch(self) -> int:
        """Generation or group epoch; 0 for a group that only commits."""
        return self.membership.epoch
