"""Values of a group that are needed again and again, cached in a few hundred bytes.

A group's state as objects takes ten times the memory of its snapshot, and loading it takes 0.1 ms. Values needed by
metrics, the overview and the background checks are computed once per change and cached. The rest is loaded from the
snapshot when it is needed: for a group that a page shows, or one that is between two states.
"""

import json
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from coordinator_model.clocked import unassigned_partitions
from coordinator_model.clocked.unassigned_partitions import Unheld
from coordinator_model.gates import downgrade, upgrade
from coordinator_model.gates.verdict import BrokerSettings, Reason
from coordinator_model.groups.consumer import preferred_assignor
from coordinator_model.migration import leftover_records, phases, upgrade_blockers
from coordinator_model.records.record_types import RecordType
from coordinator_model.rules import partition_holders, settling, static_members, subscriptions
from coordinator_model.rules.members import is_absent, members_of, speaks
from coordinator_model.state import snapshot
from coordinator_model.state.group_state import GroupState
from coordinator_model.state.membership import STREAMS
from coordinator_model.views import group_view
from streaming.end_offsets.store import Topic

RECENT_STATES: Final = 256
"""Whoever looks at a group asks several things of it one after another."""

Counts = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GroupWords:
    """What there is to say of a group besides numbers and topics: many groups share one object.

    Attributes:
        all_topics_known: whether a topic that is not among the subscribed ones is one that no member reads.
        new_protocol_records: live records of the new protocols, by type.
        steady: whether the state is one that asks for no look: nothing overlaps, is under way, away or left over.
        awaits_static: whether a member is away of which the log does not say how long it may be.
        to_upgrade: whether members could be rolled to the consumer protocol.
        upgrade_reasons: (effect, code) of the upgrade gate's reasons, asked without the brokers; likewise the other.
    """

    type: str
    is_modern: bool
    group_state: str
    simple: bool
    protocol: str | None
    phase: str | None
    blockers: tuple[str, ...]
    out_of_scope: str | None
    in_step: bool
    all_topics_known: bool
    new_protocol_records: tuple[tuple[RecordType, int], ...]
    steady: bool
    contended: bool
    awaits_static: bool
    to_upgrade: bool
    upgrade_reasons: Counts
    downgrade_reasons: Counts


class GroupTopics:
    """The topics of a group, by name and by id: groups of one topic, held alike, share one object.

    Attributes:
        subscribed: names of the topics that members subscribe to, as far as the log tells.
        assigned: topic (name in a classic group, id in any other) → partitions that some member holds; not of streams.
        ids: ids of the topics that stand in assignments and targets.
        by_id: whether `assigned` is by id.
        can_be_told: whether it can be said which partitions members should hold.
    """

    __slots__ = ("_unheld", "assigned", "by_id", "can_be_told", "ids", "subscribed")

    def __init__(
        self,
        subscribed: frozenset[str],
        assigned: tuple[tuple[str, frozenset[int]], ...],
        ids: frozenset[str],
        *,
        by_id: bool,
        can_be_told: bool,
    ) -> None:
        self.subscribed = subscribed
        self.assigned: Mapping[str, frozenset[int]] = dict(assigned) if assigned else _NO_PARTITIONS
        self.ids = ids
        self.by_id = by_id
        self.can_be_told = can_be_told
        self._unheld: tuple[Mapping[str, Topic] | None, Unheld | None] = (None, None)

    @property
    def names(self) -> frozenset[str]:
        """Names of the topics of subscriptions and classic assignments."""
        return self.subscribed if self.by_id else self.subscribed | self.assigned.keys()

    def unheld(self, topics: Mapping[str, Topic]) -> Unheld | None:
        """Partitions of subscribed topics that no member holds; None where not known (`unassigned_partitions.py`)."""
        of_topics, found = self._unheld
        if of_topics is not topics:
            found = None
            if self.can_be_told:
                found = unassigned_partitions.unheld_of(self.subscribed, self.assigned, topics, by_id=self.by_id)
            self._unheld = (topics, found)
        return found


NUMBERS: Final = (
    "partition", "epoch", "assignment_epoch", "classic_members", "consumer_members", "static_members", "absent_members",
    "duplicates", "upgraded_members", "mixed_since_ms", "leftovers", "rebalancing_since_ms", "last_step_ms",
    "rounds_lost_ms", "unsettled_since_ms", "unsettled_last_ms", "unsettled_epochs", "unsettled_under_way",
    "last_rebalance_ms",
    "rebalances", "rounds_lost", "rebalances_avoidable", "partitions_moved", "partitions_kept", "stale_claims",
    "static_replacements", "static_returns", "rebalances_saved", "offset_resets", "upgrades", "downgrades",
)  # fmt: skip
"""What `GroupSummary.numbers` holds, an int64 each; `last_rebalance_ms` is the last of the recent ones."""

NONE: Final = -(1 << 63)
"""A number that is not there."""

_STRUCT: Final = struct.Struct(f"={len(NUMBERS)}q")
_ONE: Final = struct.Struct("=q")


class _Number:
    """A figure of `GroupSummary.numbers`, by its name."""

    def __set_name__(self, _: type, name: str) -> None:
        self._at = NUMBERS.index(name) * _ONE.size

    def __get__(self, of: "GroupSummary", _: type) -> int:
        found: int = _ONE.unpack_from(of.numbers, self._at)[0]
        return found


class _NumberOrNone(_Number):
    """Likewise, of one that may not be there."""

    def __get__(self, of: "GroupSummary", owner: type) -> int | None:  # type: ignore[override]  # it may be missing
        found = super().__get__(of, owner)
        return None if found == NONE else found


class GroupSummary:
    """The figures of one group's state; named as in GROUP (`coordinator_model/views`) and in `GroupState`.

    Numbers stand packed in a row, so that those of all groups are columns at once (`group_columns.py`).

    Attributes:
        words, topics: what it shares with others.
        numbers: the figures named in `NUMBERS`.
        recent_rebalances_ms: as in the state.
        durations: counts by bucket of rebalance durations, then their sum in milliseconds; empty for none.
    """

    __slots__ = ("durations", "numbers", "recent_rebalances_ms", "topics", "words")

    partition = _Number()
    epoch = _Number()
    assignment_epoch = _NumberOrNone()
    classic_members = _Number()
    consumer_members = _Number()
    absent_members = _Number()
    duplicates = _Number()
    mixed_since_ms = _NumberOrNone()
    leftovers = _Number()
    rebalancing_since_ms = _NumberOrNone()
    last_step_ms = _Number()
    rounds_lost_ms = _NumberOrNone()
    unsettled_since_ms = _NumberOrNone()
    rebalances = _Number()
    upgrades = _Number()
    downgrades = _Number()

    def __init__(
        self,
        words: GroupWords,
        topics: GroupTopics,
        numbers: bytes,
        recent_rebalances_ms: tuple[int, ...],
        durations: tuple[int, ...],
    ) -> None:
        self.words = words
        self.topics = topics
        self.numbers = numbers
        self.recent_rebalances_ms = recent_rebalances_ms
        self.durations = durations

    @property
    def members(self) -> int:
        """How many members there are."""
        return self.classic_members + self.consumer_members


@lru_cache(RECENT_STATES)
def state_of(text: str) -> GroupState:
    """The state that a snapshot is of; whoever gets it must not change it."""
    return snapshot.load_group(text)


def exists(text: str) -> bool:
    """Whether a broker would list the group of this snapshot; most have committed offsets, which is quick to see."""
    release, held = json.loads(text)
    if release == snapshot.FORMAT and held.get("offset_count", 0) > 0:
        return True
    return snapshot.load_group(text).exists


def summary(state: GroupState) -> GroupSummary:
    """Work the figures out."""
    membership, moved, counters = state.membership, state.migration, state.counters
    modern, restless = membership.modern_group, state.restless
    members = members_of(membership).values()
    consumers = sum(speaks(member) == "consumer" for member in members)
    absent = sum(map(is_absent, members))
    histories = (*state.instances.values(), *state.departed.values())
    contended = any(history.contended or history.restarting for history in histories)
    left = membership.leftovers()
    assigned = partition_holders.held(membership)
    words = _words(
        type=state.type,
        is_modern=modern is not None,
        group_state=group_view.group_state(state),
        simple=state.simple,
        protocol=_protocol(state),
        phase=phases.phase(state),
        blockers=tuple(upgrade_blockers.blockers(membership)),
        out_of_scope=upgrade_blockers.out_of_scope(membership.classic_group),
        in_step=state.step is not None,
        all_topics_known=subscriptions.all_known(membership),
        new_protocol_records=tuple(leftover_records.live_records(membership).items()),
        steady=not (
            state.duplicates
            or state.rebalance
            or contended
            or state.storm
            or state.endings
            or (restless is not None and settling.too_many_epochs(restless))
            or left
            or state.anomalies
            or absent
            or moved.mixed_since_ms is not None
            or state.newer_versions
        ),
        contended=contended,
        awaits_static=any(history.absent_since_ms is not None for history in state.instances.values())
        and any(is_absent(member) and static_members.session_timeout_ms(member) is None for member in members),
        to_upgrade=upgrade.to_convert(state),
        upgrade_reasons=_pairs(upgrade.of_group(state, BrokerSettings(), asked=False)),
        downgrade_reasons=_pairs(downgrade.of_group(state, None)),
    )
    topics = _topics(
        subscriptions.subscribed_topics(membership),
        tuple(assigned.items()),
        _topic_ids(state, assigned),
        by_id=modern is not None,
        can_be_told=unassigned_partitions.can_be_told(membership),
    )
    numbers = _STRUCT.pack(
        state.partition,
        state.epoch,
        NONE if modern is None else modern.assignment_epoch,
        len(members) - consumers,
        consumers,
        sum(member.instance_id is not None for member in members),
        absent,
        len(state.duplicates),
        phases.members_by_protocol(membership)[1],
        _or_none(moved.mixed_since_ms),
        left,
        NONE if state.rebalance is None else state.rebalance.since_ms,
        state.last_step_ms,
        _or_none(state.rounds_lost_ms),
        *(
            (NONE,) * 4
            if restless is None
            else (restless.since_ms, restless.last_ms, restless.counted, restless.under_way)
        ),
        max(state.recent_rebalances_ms, default=NONE),
        counters.rebalances,
        counters.rounds_lost,
        counters.rebalances_avoidable,
        counters.partitions_moved,
        counters.partitions_kept,
        counters.stale_claims,
        counters.static_replacements,
        counters.static_returns,
        counters.rebalances_saved,
        counters.offset_resets,
        counters.upgrades,
        counters.downgrades,
    )
    durations = (*counters.duration_buckets, counters.duration_sum_ms)
    return GroupSummary(words, topics, numbers, state.recent_rebalances_ms, _same(durations) if any(durations) else ())


def _or_none(number: int | None) -> int:
    return NONE if number is None else number


_NO_PARTITIONS: Final[Mapping[str, frozenset[int]]] = {}

_words = lru_cache(4_096)(GroupWords)
_topics = lru_cache(16_384)(GroupTopics)


@lru_cache(4_096)
def _same(numbers: tuple[int, ...]) -> tuple[int, ...]:
    """The same object for the same numbers."""
    return numbers


def _pairs(reasons: Iterable[Reason]) -> Counts:
    return tuple((reason.effect, reason.code) for reason in reasons)


def _protocol(state: GroupState) -> str | None:
    """The assignor: chosen by a classic group, preferred by another; None for the broker's default."""
    modern = state.membership.modern_group
    if modern is not None:
        return preferred_assignor(modern)
    return None if state.membership.classic is None else state.membership.classic.protocol


def _topic_ids(state: GroupState, assigned: Iterable[str]) -> frozenset[str]:
    modern = state.membership.modern_group
    if modern is None or modern.family == STREAMS:
        return frozenset()
    return frozenset([*assigned, *(topic for target in modern.targets.values() for topic in target)])
