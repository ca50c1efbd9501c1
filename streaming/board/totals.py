"""Sums over all groups, and how many a scope leaves out: updated by what changed since they were last read."""

import threading
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final, TypeVar

from coordinator_model.figures.table import GroupWords
from coordinator_model.gates.downgrade import FLEXIBLE_OFFSETS
from coordinator_model.records.record_types import RecordType
from streaming.base.name_filter import Scope
from streaming.base.persistent_map import GroupMap
from streaming.board.board_group import BoardGroup

Pair = tuple[str, str]
Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sums:
    """What there is of something in all groups together, as of one moment.

    Attributes:
        kinds: (type, state) → groups.
        new_protocol_records: live records of the new protocols by type.
        upgrade_reasons: (effect, code) → reasons of groups, as the upgrade gate gives them; likewise the other.
        to_upgrade: groups with members that could be rolled.
        readiness: `GroupWords.readiness` → groups.
        flexible: offset buckets with some of a version that brokers before 3.4.1 cannot read.
        topic_names: topics that groups have to do with by name, as `BoardGroup.topic_names`.
        topic_ids: those by id.
        unsteady: groups that are not at rest, as `GroupWords.steady` says.
        awaiting: groups of which `GroupWords.awaits_static` holds.
    """

    kinds: Mapping[Pair, int]
    new_protocol_records: Mapping[RecordType, int]
    upgrade_reasons: Mapping[Pair, int]
    downgrade_reasons: Mapping[Pair, int]
    to_upgrade: int
    readiness: Mapping[str, int]
    flexible: int
    topic_names: frozenset[str]
    topic_ids: frozenset[str]
    unsteady: frozenset[str]
    awaiting: frozenset[str]


class _Kept:
    """The names in all of some sets, handed out as a frozen set, which is made again only when it changed.

    Most groups have a set that others have too: each is counted as a whole.
    """

    def __init__(self) -> None:
        self._sets: Counter[frozenset[str]] = Counter()
        self._names: Counter[str] = Counter()
        self._frozen: frozenset[str] | None = None

    def change(self, names: frozenset[str], by: int) -> None:
        """Count a set in or out."""
        was = self._sets[names]
        _count(self._sets, names, by)
        if not was or not was + by:
            for name in names:
                known = self._names[name]
                _count(self._names, name, by)
                if not known or not known + by:
                    self._frozen = None

    @property
    def names(self) -> frozenset[str]:
        """The names in all sets there are."""
        if self._frozen is None:
            self._frozen = frozenset(self._names)
        return self._frozen


class Totals:
    """Keeps the sums; safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._seen: GroupMap[BoardGroup] = GroupMap()
        # Groups that say the same share one object: there are few, however many groups.
        self._words: Counter[GroupWords] = Counter()
        self._flexible = 0
        self._topic_names: Final = _Kept()
        self._topic_ids: Final = _Kept()
        self._unsteady: Final = _Kept()
        self._awaiting: Final = _Kept()

    def of(self, groups: GroupMap[BoardGroup]) -> Sums:
        """The sums of these groups."""
        with self._lock:
            changed = [(was, now) for _, was, now in groups.since(self._seen)]
            # A state that stays counts for nothing.
            states = [(was, now) for was, now in changed if was is None or now is None or not now.is_same(was)]
            # What is of both is counted in before it is counted out, so that it never seems to be gone.
            for side, by in ((1, 1), (0, -1)):
                self._count_offsets([of for pair in changed if (of := pair[side]) is not None], by)
                self._count_states([of for pair in states if (of := pair[side]) is not None], by)
            self._seen = groups
            kinds: Counter[Pair] = Counter()
            records: Counter[RecordType] = Counter()
            readiness: Counter[str] = Counter()
            reasons: tuple[Counter[Pair], Counter[Pair]] = (Counter(), Counter())
            for words, count in self._words.items():
                kinds[words.type, words.group_state] += count
                readiness[words.readiness] += count
                for type_, live in words.new_protocol_records:
                    records[type_] += count * live
                for counted, pairs in zip(reasons, (words.upgrade_reasons, words.downgrade_reasons), strict=True):
                    for pair in pairs:
                        counted[pair] += count
            return Sums(
                kinds=kinds,
                new_protocol_records=records,
                upgrade_reasons=reasons[0],
                downgrade_reasons=reasons[1],
                to_upgrade=sum(count for words, count in self._words.items() if words.to_upgrade),
                readiness=readiness,
                flexible=self._flexible,
                topic_names=self._topic_names.names,
                topic_ids=self._topic_ids.names,
                unsteady=self._unsteady.names,
                awaiting=self._awaiting.names,
            )

    def _count_states(self, groups: Sequence[BoardGroup], by: int) -> None:
        words = Counter([of.block.words[of.at] for of in groups])
        for of_words, groups_of in words.items():
            _count(self._words, of_words, by * groups_of)
        for of_topics, groups_of in Counter([of.block.topics[of.at] for of in groups]).items():
            self._topic_names.change(of_topics.names, by * groups_of)
            self._topic_ids.change(of_topics.ids, by * groups_of)
        for kept, chosen in (
            (self._unsteady, {of for of in words if not of.steady}),
            (self._awaiting, {of for of in words if of.awaits_static}),
        ):
            for held in groups if chosen else ():
                if held.words in chosen:
                    kept.change(frozenset((held.name,)), by)

    def _count_offsets(self, groups: Sequence[BoardGroup], by: int) -> None:
        buckets = chain.from_iterable([of.buckets for of in groups])
        for words, count in Counter([bucket.words for bucket in buckets]).items():
            if words.said:
                self._topic_names.change(frozenset((words.topic,)), by * count)
            if max(words.versions, default=0) >= FLEXIBLE_OFFSETS:
                self._flexible += by * count


class LeftOut:
    """How many groups and topics a scope leaves out; safe to use from several threads."""

    def __init__(self, scope: Scope) -> None:
        self.scope: Final = scope
        self._lock = threading.Lock()
        self._seen: GroupMap[BoardGroup] = GroupMap()
        self._groups = 0
        self._topics: tuple[frozenset[str], int] = (frozenset(), 0)

    def counts(self, groups: GroupMap[BoardGroup], topics: frozenset[str]) -> dict[str, int]:
        """How many of these are left out: `groups` and `topics`."""
        with self._lock:
            if not self.scope.groups.takes_all:
                for name, was, now in groups.since(self._seen):
                    if (was is None) != (now is None) and not self.scope.groups(name):
                        self._groups += 1 if was is None else -1
                self._seen = groups
            if self._topics[0] is not topics:
                self._topics = topics, sum(not self.scope.topics(topic) for topic in topics)
            return {"groups": self._groups, "topics": self._topics[1]}


def _count(counts: Counter[Key], key: Key, by: int) -> None:
    counts[key] += by
    if not counts[key]:
        del counts[key]
