"""Figures of a group: what is asked of every group, worked out where its state is at hand.

A group's state as objects takes ten times the memory of its snapshot, and loading it takes 0.1 ms. Figures are a row
of numbers, and words that many groups share. The task that changes a state works them out; they stand in the lines
after the snapshot's, so that who reads it has them without the state.
"""

from __future__ import annotations

import json
import struct
from binascii import a2b_base64, b2a_base64
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any, Final

from coordinator_model.clocked import alarms, unassigned_partitions
from coordinator_model.clocked.unassigned_partitions import SizedTopic, Unheld
from coordinator_model.gates import downgrade, plan, upgrade
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

FORMAT: Final = 5
"""Grows with whatever figures say of a state: those of another number are worked out again."""

Counts = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GroupWords:
    """What there is to say of a group besides numbers and topics: many groups share one object.

    Attributes:
        exists: whether a broker would list it.
        polled: whether it is not of the log: what only that has is not known.
        all_topics_known: whether a topic that is not among the subscribed ones is one that no member reads.
        new_protocol_records: live records of the new protocols, by type.
        steady: whether the state is one that asks for no look: nothing overlaps, is under way, away or left over.
        awaits_static: whether a member is away of which the log does not say how long it may be.
        to_upgrade: whether members could be rolled to the consumer protocol.
        readiness: for that protocol (`gates/plan.py`), as the log alone has it.
        upgrade_reasons: (effect, code) of the upgrade gate's reasons, asked without the brokers; likewise the other.
    """

    type: str
    exists: bool
    is_modern: bool
    group_state: str
    simple: bool
    polled: bool
    protocol: str | None
    phase: str | None
    blockers: tuple[str, ...]
    out_of_scope: str | None
    in_step: bool
    all_topics_known: bool
    new_protocol_records: tuple[tuple[RecordType, int], ...]
    steady: bool
    awaits_static: bool
    to_upgrade: bool
    readiness: str
    upgrade_reasons: Counts
    downgrade_reasons: Counts


class GroupTopics:
    """The topics of a group, by name and by id: groups of one topic, held alike, share one object.

    Attributes:
        subscribed: names of the topics that members subscribe to, as far as the log shows.
        assigned: topic (name in a classic group, id in any other) → partitions that some member holds; not of streams.
        ids: ids of the topics that stand in assignments and targets.
        by_id: whether `assigned` is by id.
        assignments_known: whether it can be said which partitions members should hold.
        names: names of the topics of subscriptions and classic assignments.
    """

    __slots__ = ("_unheld", "assigned", "assignments_known", "by_id", "ids", "names", "subscribed")

    def __init__(
        self,
        subscribed: frozenset[str],
        assigned: tuple[tuple[str, frozenset[int]], ...],
        ids: frozenset[str],
        *,
        by_id: bool,
        assignments_known: bool,
    ) -> None:
        self.subscribed = subscribed
        self.assigned: Mapping[str, frozenset[int]] = dict(assigned) if assigned else _NO_PARTITIONS
        self.ids = ids
        self.by_id = by_id
        self.assignments_known = assignments_known
        self.names = subscribed if by_id else subscribed.union(self.assigned)
        self._unheld: tuple[Mapping[str, SizedTopic] | None, Unheld | None] = (None, None)

    def unheld(self, topics: Mapping[str, SizedTopic]) -> Unheld | None:
        """Partitions of subscribed topics that no member holds; None where not known (`unassigned_partitions.py`)."""
        of_topics, found = self._unheld
        if of_topics is not topics:
            found = None
            if self.assignments_known:
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
NUMBER_BYTES: Final = _STRUCT.size
"""How long `GroupSummary.numbers` is."""
_ONE: Final = struct.Struct("=q")


class _Number:
    """A figure of `GroupSummary.numbers`, by its name."""

    def __set_name__(self, _: type, name: str) -> None:
        self._at = NUMBERS.index(name) * _ONE.size

    def __get__(self, of: GroupSummary, _: type) -> int:
        found: int = _ONE.unpack_from(of.numbers, self._at)[0]
        return found


class _NumberOrNone(_Number):
    """Likewise, of one that may not be there."""

    def __get__(self, of: GroupSummary, owner: type) -> int | None:  # type: ignore[override]  # it may be missing
        found = super().__get__(of, owner)
        return None if found == NONE else found


class GroupSummary:
    """The figures of one group's state; named as in GROUP (`coordinator_model/views`) and in `GroupState`.

    Numbers stand packed in a row, so that those of all groups are columns at once.

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
    last_rebalance_ms = _NumberOrNone()
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

    @property
    def mixed(self) -> bool:
        """Whether members of both protocols are in the group, since when ever."""
        return phases.is_mixed(self.words.phase)


def summary(state: GroupState) -> GroupSummary:
    """Work the figures out."""
    membership, moved, counters = state.membership, state.migration, state.counters
    modern, restless = membership.modern_group, state.restless
    members = members_of(membership).values()
    # Of a classic group no member speaks another protocol, nor is known to be away.
    consumers = 0 if modern is None else sum(speaks(member) == "consumer" for member in members)
    absent = 0 if modern is None else sum(map(is_absent, members))
    left = membership.leftovers()
    assigned = partition_holders.held(membership)
    subscribed = subscriptions.subscribed_topics(membership)
    blockers = tuple(upgrade_blockers.blockers(membership))
    words = _words(
        type=state.type,
        exists=state.exists,
        is_modern=modern is not None,
        group_state=group_view.group_state(state),
        simple=state.simple,
        polled=bool(state.polled_state),
        protocol=_protocol(state),
        phase=phases.phase_of(state, blockers),
        blockers=blockers,
        out_of_scope=upgrade_blockers.out_of_scope(membership.classic_group),
        in_step=state.step is not None,
        all_topics_known=subscriptions.all_known(membership),
        new_protocol_records=tuple(leftover_records.live_records(membership).items()),
        steady=not (
            alarms.asks_for_a_look(state)
            or state.rebalance
            or state.endings
            or (restless is not None and settling.too_many_epochs(restless))
            or left
            or absent
            or moved.mixed
            or moved.blocked_since_ms is not None
            or state.newer_versions
        ),
        awaits_static=absent > 0
        and any(history.absent_since_ms is not None for history in state.instances.values())
        and any(is_absent(member) and static_members.session_timeout_ms(member) is None for member in members),
        to_upgrade=upgrade.to_convert(state),
        readiness=plan.readiness_of(state, blockers, {*subscribed, *assigned}),
        upgrade_reasons=_pairs(upgrade.of_group(state, _UNKNOWN_SETTINGS, blockers, asked=False)),
        downgrade_reasons=_pairs(downgrade.of_group(state, None, asked=False)),
    )
    topics = _topics(
        subscribed,
        tuple(assigned.items()),
        _topic_ids(state, assigned),
        by_id=modern is not None,
        assignments_known=unassigned_partitions.assignments_known(membership),
    )
    numbers = _STRUCT.pack(
        state.partition,
        state.epoch,
        NONE if modern is None else modern.assignment_epoch,
        len(members) - consumers,
        consumers,
        sum(member.instance_id is not None for member in members),
        absent,
        len(state.open("duplicate_assignment")),
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


_UNKNOWN_SETTINGS: Final = BrokerSettings()
_NO_PARTITIONS: Final[Mapping[str, frozenset[int]]] = {}

_words = lru_cache(4_096)(GroupWords)
_topics = lru_cache(1_024)(GroupTopics)


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


def dump(state: GroupState) -> str:
    """A group's snapshot (`snapshot.dump_group`), and in the lines after it its figures."""
    of = summary(state)
    lines = (
        str(FORMAT),
        b2a_base64(of.numbers, newline=False).decode("ascii"),
        _text_of_words(of.words),
        _text_of_topics(of.topics),
        _text(of.durations) if of.durations else "[]",
        _text(of.recent_rebalances_ms) if of.recent_rebalances_ms else "[]",
    )
    return "\n".join((snapshot.dump_group(state), *lines))


def load(text: str) -> tuple[str, GroupSummary | None]:
    """The snapshot, and the figures that stand behind it: None where none do, or those of another release."""
    state, *lines = text.split("\n")
    if len(lines) != _LINES or lines[0] != str(FORMAT):
        return state, None
    _, numbers, words, topics, durations, recent = lines
    found = GroupSummary(
        _words_of(words),
        _topics_of(topics),
        a2b_base64(numbers),
        () if recent == "[]" else tuple(map(int, recent[1:-1].split(","))),
        _durations_of(durations),
    )
    return state, found


_LINES: Final = 6


_text: Final = json.JSONEncoder(separators=(",", ":"), check_circular=False).encode


@lru_cache(4_096)
def _text_of_words(words: GroupWords) -> str:
    return _text([getattr(words, name) for name in _WORDS])


@lru_cache(1_024)
def _text_of_topics(of: GroupTopics) -> str:
    assigned = [[topic, sorted(parts)] for topic, parts in of.assigned.items()]
    return _text([sorted(of.subscribed), assigned, sorted(of.ids), of.by_id, of.assignments_known])


_WORDS: Final = tuple(of.name for of in fields(GroupWords))


@lru_cache(4_096)
def _words_of(text: str) -> GroupWords:
    words = dict(zip(_WORDS, map(_tupled, json.loads(text)), strict=True))
    words["new_protocol_records"] = tuple((RecordType(type_), count) for type_, count in words["new_protocol_records"])
    return _words(**words)


@lru_cache(1_024)
def _topics_of(text: str) -> GroupTopics:
    subscribed, assigned, ids, by_id, assignments_known = json.loads(text)
    held = tuple((topic, frozenset(parts)) for topic, parts in assigned)
    return _topics(frozenset(subscribed), held, frozenset(ids), by_id=by_id, assignments_known=assignments_known)


@lru_cache(4_096)
def _durations_of(text: str) -> tuple[int, ...]:
    return _same(tuple(json.loads(text)))


def _tupled(value: Any) -> Any:  # noqa: ANN401 - what JSON holds
    return tuple(map(_tupled, value)) if isinstance(value, list) else value
