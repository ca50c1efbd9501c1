"""Everything remembered of one group but its committed offsets: what Kafka holds, and what rules remember."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from coordinator_model.state.alarms import NOTHING_OPEN, Open, Opened
from coordinator_model.state.membership import Membership
from coordinator_model.state.rule_memory import (
    Absences,
    Deletions,
    Ending,
    GroupCounters,
    Handover,
    InstanceHistory,
    LostOffsets,
    Migration,
    PollRun,
    Rebalance,
    Restless,
    Rewinds,
    Scaling,
    Step,
)

NOT_KEPT: Final = {"kept": False}
"""Metadata of a field that is no part of a checkpoint (`snapshot.py`): who loads a state sets it."""


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
    handovers: tuple[Handover, ...] = ()
    """Who last owned partitions that others own now, or none, for minutes; earliest first, each partition once."""
    rewinds: Rewinds | None = None
    """The moment at hand in which offsets went back."""
    awaited_rewinds: tuple[Rewinds, ...] = ()
    """Earlier moments of which is awaited whether the offsets are soon back where they were (`rewinds.py`)."""
    deletions: Deletions | None = None
    """The moment at hand in which offsets went."""
    rounds_lost_ms: int | None = None
    """When a generation was last found to be lost."""
    recent_rebalances_ms: tuple[int, ...] = ()
    """When rebalances of the storm window were completed (`rebalance_storm.py`)."""
    recent_rebalance_members: tuple[int, ...] = ()
    """Most members at a time until each of these, since the one before; of the latest, where fewer are known."""
    members_since_rebalance: int = 0
    """The same since the last of them."""
    last_rebalance_offset: int = -1
    """Where the last of these was written."""
    instances: dict[str, InstanceHistory] = field(default_factory=dict)
    """Static members by instance id (`static_members.py`)."""
    absences: Absences | None = None
    """Static members that went away one soon after another; who of them is not back is in `alarms`."""
    poll_runs: tuple[PollRun, ...] = ()
    """Processes that leave and join, of the last minutes (`poll_intervals.py`)."""
    restless: Restless | None = None
    departed: dict[str, InstanceHistory] = field(default_factory=dict)
    """The same of those that left or expired not long ago."""
    endings: dict[str, Ending] = field(default_factory=dict)
    """Alarms that time has ended, under their kind and name; the clock reports them (`clocked/endings.py`)."""
    counters: GroupCounters = field(default_factory=GroupCounters)
    scaling: Scaling | None = None
    """The last scale-up or scale-down, under way or over."""
    held_ms: int = -1
    held_offset: int = -1
    """When and where it was last written that a member holds other partitions than before (`partition_holders.py`)."""
    alarms: dict[str, dict[str, Opened]] = field(default_factory=dict)
    """Kind → name → what was reported and is not over yet (`alarms.py`); no kind without a name."""
    topic_ids: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Topic → ids its commits named, the latest last: a recreated topic has another (`offset_commits.py`)."""
    lost_offsets: dict[str, LostOffsets] = field(default_factory=dict)
    """Topic → offsets that went with it, where commits name no ids: what is committed next tells of another topic."""
    known_ids: Mapping[str, str] = field(default_factory=dict, compare=False, metadata=NOT_KEPT)
    """Topic → its id, as the caller knows it beside the log; what the log says of a topic goes before it."""
    newer_versions: dict[str, int] = field(default_factory=dict)
    """Record type → newest value version met of it that is above the highest known."""
    whole: bool = False
    """A record followed another of its key: the cleaner has not been there, so nothing is missing since."""
    withheld: bool = False
    """Something was seen while catching up that would be reported live: judged again at the end of the log."""
    built: bool = False
    """Only state was made of its records so far: rules remember what that state says, and count from there on
    (`beginning.py`)."""
    polled_state: str = ""
    """State as the group's coordinator answered it, where groups are polled; empty where they are of the log."""
    step: Step | None = None
    last_step_ms: int = -1
    last_step_offset: int = -1
    """When and where the last concluded step was written: since then nothing about the group was."""

    def open(self, kind: str) -> Open:
        """Alarms of a kind that were reported, and are not over."""
        return self.alarms.get(kind, NOTHING_OPEN)

    @property
    def duplicates(self) -> dict[str, tuple[str, ...]]:
        """Duplicate assignments reported and not cleared: `topic/partition` → member ids."""
        return {place: of.members for place, of in self.open("duplicate_assignment").items()}

    def ids_by_topic(self) -> dict[str, str]:
        """Topic → the latest id known of it."""
        return {**self.known_ids, **{topic: ids[-1] for topic, ids in self.topic_ids.items()}}

    def topics_by_id(self) -> dict[str, str]:
        """Id → topic, former ids too."""
        known = {id_: topic for topic, id_ in self.known_ids.items()}
        return {**known, **{id_: topic for topic, ids in self.topic_ids.items() for id_ in ids}}

    @property
    def exists(self) -> bool:
        """True while a broker would list this group."""
        return self.offset_count > 0 or self.membership.exists

    @property
    def is_kept(self) -> bool:
        """True while there is anything to remember: the group, or what one of its name left in the log."""
        return self.exists or self.step is not None or self.membership.leftovers() > 0

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
