"""What rules remember of one group from step to step: none of it is in Kafka, all of it follows from the log.

Each field of a group's state that holds one of these is written by the rules whose row in `rules/table.py` says so.
Field names are the keys of the checkpoint (`snapshot.py`): a field may be added, with a default, and never renamed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from coordinator_model.state.membership import Holders, Membership, Partitions

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
    offset_resets: int = 0
    """Offsets that went back while the group had no member: an admin's resets, and syncs of MirrorMaker."""
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
    """A classic member of a consumer group and what it is doing; `classic_protocol_members.py` holds the rules.

    `joined_ms` is when its last JoinGroup left a trace, None if none did since the group is a consumer group.
    """

    situation: str
    since_ms: int
    joined_ms: int | None = None


@dataclass(slots=True, kw_only=True)
class Downgrade:
    """The last downgrade of a group, and what was the same before and after it; `downgrade_check.py` holds the rules.

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Vacancy:
    """A member that left and in whose place none has come yet; `phases.py` holds the rules."""

    classic: bool
    """Whether it used the classic protocol."""
    since_ms: int
    client_id: str = ""
    client_host: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CarriedMember:
    """A classic member as the records of an online upgrade first had it; `upgrade_check.py` holds the rules."""

    instance_id: str | None = None
    described: bool = False
    """Whether there was a record of its metadata."""
    classic: bool = False
    """Whether that says that it uses the classic protocol."""
    claimed_generation: int = -1
    """Newest generation that the subscriptions it sent to join name; -1 where none does."""
    epoch: int | None = None
    """None where no current assignment was written."""
    assigned: Partitions = field(default_factory=dict)
    target: Partitions | None = None


@dataclass(slots=True, kw_only=True)
class Upgrade:
    """The last online upgrade of a group, and what was the same before and after it; `upgrade_check.py` has the rules.

    Members are named by instance id where they have one; `offsets_back` is `topic/partition` → the offset it was at.
    """

    begun_ms: int
    generation: int = -1
    """Of the classic group, as it was last written."""
    epoch: int | None = None
    """That the consumer group began with; None where the log lacks it."""
    assignor_before: str | None = None
    assignor_after: str | None = None
    """The server assignor that members prefer; None for the broker's default."""
    round_under_way: bool = False
    """Classic members had begun to rejoin since the generation was written."""
    missing: tuple[str, ...] = ()
    moved: tuple[str, ...] = ()
    """Whose partitions are others than in the classic group."""
    offsets_back: dict[str, int] = field(default_factory=dict)
    wrong: tuple[str, ...] = ()
    """What was not carried over: of `epoch`, `members`, `assignments`, `offsets`."""
    may_have_left: bool = False
    """Only members without any record are missing: they may have left in the seconds before, which is not written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A member that left in a roll, and in whose place none has come yet; `roll_members.py` holds the rules.

    Or one that came before the member that it replaces went: since when, and who.
    """

    since_ms: int
    offset: int = -1
    """Where it was written."""
    instance_id: str | None = None
    client_id: str = ""
    client_host: str = ""


@dataclass(slots=True, kw_only=True)
class Roll:
    """How many members a roll has to bring back, and whose places are free; `roll_members.py` holds the rules."""

    members_before: int
    session_ms: int = 0
    """The greatest session timeout of its members."""
    places: tuple[Place, ...] = ()
    """Earliest first."""
    ahead: tuple[Place, ...] = ()
    """Members beyond those before; earliest first."""
    since_ms: int | None = None
    offset: int = -1
    """Since when members are missing, and where that was written; None while none is."""
    complete_ms: int | None = None
    """When the group had one protocol and all its members; None while it has not."""


@dataclass(slots=True, kw_only=True)
class Migration:
    """How far a group is between the protocols; `phases.py` holds the rules."""

    direction: str | None = None
    """`upgrade` or `downgrade` while members of both protocols are in the group; None also where the log did not show
    yet which way it goes."""
    mixed_since_ms: int | None = None
    mixed_before: bool = False
    """Mixed since before the records that rules have seen: `mixed_since_ms` is None, for it is not known."""
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
    """How many members a group of one protocol had before some left, and when they did."""
    recent_left_ms: int = -1
    """When the last of them did."""
    roll: Roll | None = None
    """The roll under way, or the last one, while members are missing of it."""
    vacancies: tuple[Vacancy, ...] = ()
    """Of the last minutes, earliest first."""
    was_downgraded: bool = False
    downgrade: Downgrade | None = None
    upgrade: Upgrade | None = None
    """The last online one; None since a downgrade."""
    offsets_back: dict[str, int] = field(default_factory=dict)
    offsets_back_ms: int = -1
    """`topic/partition` → where it was, of offsets that went back or went in the latest millisecond that any did."""
    blocked_since_ms: int | None = None
    """When a classic group became one that a broker refuses, while a member was away that may be upgraded."""
    classic_members: dict[str, ClassicProgress] = field(default_factory=dict)
    """Members on the classic protocol in a consumer group, by member id."""

    @property
    def mixed(self) -> bool:
        """Whether members of both protocols are in the group, since when ever."""
        return self.mixed_before or self.mixed_since_ms is not None


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
    """Causes seen so far (`rebalance_causes.py`), each once."""
    assigning_since_ms: int | None = None
    """Since when a target is waited for; None while there is one."""
    unsettled_since_ms: dict[str, int] = field(default_factory=dict)
    """Member that is not at the target → since when nothing was written of it, or it is not there, if that is later."""
    partitions_moved: int = 0
    """So far."""
    clock_jumped: bool = False
    """Whether a step of it was written with an earlier time than the one before (`clocks.py`)."""


@dataclass(slots=True, kw_only=True)
class Handover:
    """Partitions that another owns now, or none, since that time: former owner → partitions (`handovers.py`)."""

    time_ms: int
    former_owners: dict[str, Partitions] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewound:
    """An offset that went back, and the hand-over it came after, if it did (`handovers.py`)."""

    before: int
    to: int
    former_owner: str | None = None
    present_owner: str | None = None
    handover_ms: int | None = None
    unclear_since_ms: int | None = None
    """When the former offset was committed, where nothing says that the topic is the one it was then; else None."""
    highest: int = -1
    """What has to be committed for it to be back: the highest offset before this moment, and before others waited for.
    """
    back_ms: int | None = None
    """After how long it was; None as long as it was not."""
    times: int = 1
    """How often it went back in the moment."""

    @property
    def is_back(self) -> bool:
        """Whether it was committed at or above where it had been."""
        return self.back_ms is not None


@dataclass(slots=True, kw_only=True)
class LostOffsets:
    """Offsets of one topic that its deletion took from a group with members (`offset_commits.py`)."""

    time_ms: int
    offsets: dict[str, int] = field(default_factory=dict)
    """Partition → what was committed of it, of those of which no commit was met since that is of another topic."""
    recreated: bool = False
    """Whether it was reported that there is another topic of that name."""


@dataclass(slots=True, kw_only=True)
class Rewinds:
    """Offsets that went back at one moment, of which nothing is reported yet: more may follow (`rewinds.py`)."""

    time_ms: int
    offset: int
    """Of the last of the records."""
    group_empty: bool | None = None
    """None for a group that only commits, and where it is not known."""
    simple: bool = False
    partitions: dict[str, Rewound] = field(default_factory=dict)
    """By `topic/partition`."""

    @property
    def meant(self) -> bool:
        """Whether somebody set the offsets: a broker takes commits of members only while there are any."""
        return self.simple or self.group_empty is True

    @property
    def is_back(self) -> bool:
        """Whether all of them were committed at or above where they had been."""
        return all(of.is_back for of in self.partitions.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Deleted:
    """An offset that went, how long after its commit, and what may have deleted it; empty where that is not known."""

    offset: int
    age_ms: int | None = None
    may_be: tuple[str, ...] = ()


@dataclass(slots=True, kw_only=True)
class Deletions:
    """Offsets that went at one moment, of which nothing is reported yet: more may follow (`deletions.py`)."""

    time_ms: int
    offset: int
    """Of the last of the records."""
    partitions: dict[str, Deleted] = field(default_factory=dict)
    """By `topic/partition`, as they went."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """An alarm that time has ended: its last record, and when it was over.

    Releases before 0.2 had the time of the record.
    """

    kind: str
    name: str
    offset: int
    time_ms: int


@dataclass(slots=True, kw_only=True)
class ComingAndGoing:
    """How often one joined and left: an instance id, or all processes of a client id and host."""

    instance_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    joined: int = 0
    left: int = 0


@dataclass(slots=True, kw_only=True)
class Restless:
    """A group in which epochs go by: since when, and what came and went (`settling.py`)."""

    since_ms: int
    offset: int
    """Of the record with which it began."""
    from_epoch: int
    last_ms: int
    """When an epoch last moved, or a rebalance was completed."""
    under_way: bool = False
    """Whether a rebalance was, when the last step ended."""
    epochs: int = 0
    counted: int = 0
    """Without follow-up rounds of cooperative rebalances."""
    members: int = 0
    """Most members at a time."""
    joined: int = 0
    left: int = 0
    comings: dict[str, ComingAndGoing] = field(default_factory=dict)
    """Those that come and go most, by instance id, or client id and host."""


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
class PollRun:
    """Processes of one client id and host, one in another's place, that leave and join (`poll_intervals.py`)."""

    name: str
    """Client id and host."""
    since_ms: int
    """When the first of them left."""
    left_ms: int
    offset: int = -1
    """When the last of them left, and where that was written."""
    timeout_ms: int
    """Its rebalance timeout."""
    leaves: int = 1
    member_id: str = ""
    """Who joined in its place; empty while no member has."""
    joined_ms: int = -1
    is_guess: bool = False
    """Whether others of the name were members at a leave or join of it, or one left before it could have been late."""


@dataclass(slots=True, kw_only=True)
class Absences:
    """Static members of which one after another went away (`static_absences.py`).

    Of the first there are its ids and what it is; `partitions` are those that all of them held.
    """

    since_ms: int
    offset: int
    """When the first of them closed, and where that was written."""
    changed_ms: int
    changed_offset: int = -1
    """The same of the last that closed or came back."""
    member_id: str = ""
    client_id: str = ""
    client_host: str = ""
    protocol: str = ""
    session_timeout_ms: int | None = None
    tasks: bool = False
    """Whether `partitions` are tasks, by subtopology."""
    instance_ids: tuple[str, ...] = ()
    """All that were away in it, the first first."""
    since_before: tuple[str, ...] = ()
    """Of these, who was away long before the first of them closed."""
    partitions: dict[str, tuple[int, ...]] = field(default_factory=dict)
    reported: bool = False
    before_live_tail: bool = False
    """Whether it is from before the live tail, of which nothing is reported."""


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
    """When the latest take-overs of the run were written, one soon after another (`static_members.py`)."""
    replaced_offset: int = -1
    """Where the last of these was written."""
    takeovers: int = 0
    """How many the run has."""
    restarts: int = 0
    """The same without retries."""
    restarted_ms: int = -1
    """When the last of these was written."""
    process: str = ""
    """Client id and host of who stands for it."""
    displaced: dict[str, int] = field(default_factory=dict)
    """Client id and host of those that it was taken from in the run, while they stood for it → when."""
    taken_back: int = 0
    """How often one of these has it again."""
    absent_since_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochAnomaly:
    """What no coordinator writes (`epochs.py` and `record_consistency.py` list the rules).

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
    whole_before: bool = False
    """Whether the group was whole when the step began: nothing was missing of it."""
    anomalies: tuple[EpochAnomaly, ...] = ()
    """Seen between one record of the step and the next."""
    ended_type: str | None = None
    ended_epoch: int = 0
    """Type and epoch of a group with members that ended within the step: an online conversion goes on from there."""
    targets: dict[str, Partitions] = field(default_factory=dict)
    """Targets of consumer group members written in the step, by member id: a downgrade in it ends them again."""
    carried: dict[str, CarriedMember] = field(default_factory=dict)
    """Members of a classic group that became a consumer group in the step, as they were written first."""
    carried_epoch: int | None = None
    """The first epoch of that consumer group; None before it is written."""
