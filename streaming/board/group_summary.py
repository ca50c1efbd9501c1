"""Values of a group that are needed again and again, cached in a few hundred bytes.

A group's state as objects takes ten times the memory of its snapshot, and loading it takes 0.1 ms. Values needed by
metrics, the overview and the background checks are computed once per change and cached. The rest is loaded from the
snapshot when it is needed: for a group that a page shows, or one that is between two states.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NamedTuple

from coordinator_model.clocked import unassigned_partitions
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
from coordinator_model.state.rule_memory import GroupCounters
from coordinator_model.views import group_view

RECENT_STATES: Final = 256
"""Whoever looks at a group asks several things of it one after another."""

Counts = tuple[tuple[str, str], ...]


class Unsettled(NamedTuple):
    """A group that is restless, or was when it last changed (`coordinator_model/rules/settling.py`)."""

    since_ms: int
    last_ms: int
    epochs: int
    under_way: bool

    def lasts(self, now_ms: int) -> bool:
        """Whether it has not come to rest."""
        return settling.is_yet(self.last_ms, now_ms, under_way=self.under_way)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSummary:
    """The figures of one group's state; named as in GROUP (`coordinator_model/views`) and in `GroupState`.

    Attributes:
        subscribed_topics: names of the topics that members subscribe to, as far as the log tells.
        all_topics_known: whether a topic that is not among those is one that no member reads.
        assigned: topic (name in a classic group, id in any other) → partitions that some member holds; not of streams.
        topic_ids: ids of the topics that stand in assignments and targets.
        assignment_can_be_told: whether it can be said which partitions members should hold.
        new_protocol_records: live records of the new protocols, by type.
        steady: whether the state is one that asks for no look: nothing overlaps, is under way, away or left over.
        awaits_static: whether a member is away of which the log does not say how long it may be.
        upgrade_reasons: (effect, code) of the upgrade gate's reasons, asked without the brokers; likewise the other.
        to_upgrade: whether members could be rolled to the consumer protocol.
    """

    partition: int
    type: str
    is_modern: bool
    group_state: str
    simple: bool
    epoch: int
    assignment_epoch: int | None
    protocol: str | None
    classic_members: int
    consumer_members: int
    static_members: int
    absent_members: int
    counters: GroupCounters
    duplicates: int
    phase: str | None
    upgraded_members: int
    mixed_since_ms: int | None
    blockers: tuple[str, ...]
    out_of_scope: str | None
    leftovers: int
    rebalancing_since_ms: int | None
    recent_rebalances_ms: tuple[int, ...]
    last_step_ms: int
    rounds_lost_ms: int | None
    in_step: bool
    subscribed_topics: frozenset[str]
    all_topics_known: bool
    assigned: Mapping[str, frozenset[int]]
    topic_ids: frozenset[str]
    assignment_can_be_told: bool
    new_protocol_records: Mapping[RecordType, int]
    steady: bool
    contended: bool
    unsettled: Unsettled | None
    awaits_static: bool
    to_upgrade: bool
    upgrade_reasons: Counts
    downgrade_reasons: Counts

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
    membership, moved = state.membership, state.migration
    modern = membership.modern_group
    members = members_of(membership).values()
    consumers = sum(speaks(member) == "consumer" for member in members)
    absent = sum(map(is_absent, members))
    histories = (*state.instances.values(), *state.departed.values())
    contended = any(history.contended or history.restarting for history in histories)
    left = membership.leftovers()
    assigned = partition_holders.held(membership)
    return GroupSummary(
        partition=state.partition,
        type=state.type,
        is_modern=modern is not None,
        group_state=group_view.group_state(state),
        simple=state.simple,
        epoch=state.epoch,
        assignment_epoch=None if modern is None else modern.assignment_epoch,
        protocol=_protocol(state),
        classic_members=len(members) - consumers,
        consumer_members=consumers,
        static_members=sum(member.instance_id is not None for member in members),
        absent_members=absent,
        counters=_UNTOUCHED if state.counters == _UNTOUCHED else state.counters,
        duplicates=len(state.duplicates),
        phase=phases.phase(state),
        upgraded_members=phases.members_by_protocol(membership)[1],
        mixed_since_ms=moved.mixed_since_ms,
        blockers=tuple(upgrade_blockers.blockers(membership)),
        out_of_scope=upgrade_blockers.out_of_scope(membership.classic_group),
        leftovers=left,
        rebalancing_since_ms=None if state.rebalance is None else state.rebalance.since_ms,
        recent_rebalances_ms=state.recent_rebalances_ms,
        last_step_ms=state.last_step_ms,
        rounds_lost_ms=state.rounds_lost_ms,
        in_step=state.step is not None,
        subscribed_topics=_shared(subscriptions.subscribed_topics(membership)),
        all_topics_known=subscriptions.all_known(membership),
        assigned=assigned or _NO_PARTITIONS,
        topic_ids=_shared(_topic_ids(state, assigned)),
        assignment_can_be_told=unassigned_partitions.can_be_told(membership),
        new_protocol_records=_counted(tuple(leftover_records.live_records(membership).items())),
        steady=not (
            state.duplicates
            or state.rebalance
            or contended
            or state.storm
            or state.endings
            or (state.restless is not None and settling.too_many_epochs(state.restless))
            or left
            or state.anomalies
            or absent
            or moved.mixed_since_ms is not None
            or state.newer_versions
        ),
        contended=contended,
        unsettled=_unsettled(state),
        awaits_static=any(history.absent_since_ms is not None for history in state.instances.values())
        and any(is_absent(member) and static_members.session_timeout_ms(member) is None for member in members),
        to_upgrade=upgrade.to_convert(state),
        upgrade_reasons=_pairs(upgrade.of_group(state, BrokerSettings(), asked=False)),
        downgrade_reasons=_pairs(downgrade.of_group(state, None)),
    )


def _unsettled(state: GroupState) -> Unsettled | None:
    of = state.restless
    return None if of is None else Unsettled(of.since_ms, of.last_ms, of.counted, of.under_way)


_UNTOUCHED: Final = GroupCounters()
"""Most groups have counted nothing: they share one object that says so."""

_NO_PARTITIONS: Final[Mapping[str, frozenset[int]]] = {}


@lru_cache(16_384)
def _shared(names: frozenset[str]) -> frozenset[str]:
    """The same object for the same names: groups of one topic are many."""
    return names


@lru_cache(1_024)
def _counted(counts: tuple[tuple[RecordType, int], ...]) -> Mapping[RecordType, int]:
    """The same object for the same counts."""
    return dict(counts)


@lru_cache(1_024)
def _same(pairs: Counts) -> Counts:
    return pairs


def _pairs(reasons: Iterable[Reason]) -> Counts:
    return _same(tuple((reason.effect, reason.code) for reason in reasons))


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
