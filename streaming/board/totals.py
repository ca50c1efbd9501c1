"""Sums over all groups, updated by what changed since they were last read, however many groups there are."""

import threading
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, TypeVar

from coordinator_model.gates.downgrade import FLEXIBLE_OFFSETS
from coordinator_model.records.record_types import RecordType
from streaming.base.persistent_map import GroupMap
from streaming.board.board_group import BoardGroup
from streaming.board.group_summary import GroupSummary

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
        flexible: groups with committed offsets of a version that brokers before 3.4.1 cannot read.
        topic_names: topics that groups have to do with by name, as `BoardGroup.topic_names`.
        topic_ids: those by id.
        unsteady: groups that are not at rest, as `GroupSummary.steady`.
        awaiting: groups of which `GroupSummary.awaits_static`.
    """

    kinds: Mapping[Pair, int]
    new_protocol_records: Mapping[RecordType, int]
    upgrade_reasons: Mapping[Pair, int]
    downgrade_reasons: Mapping[Pair, int]
    to_upgrade: int
    flexible: int
    topic_names: frozenset[str]
    topic_ids: frozenset[str]
    unsteady: frozenset[str]
    awaiting: frozenset[str]


class _Kept:
    """A set that is handed out as a frozen one, made anew only when it changed."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._frozen: frozenset[str] | None = None

    def change(self, names: Iterable[str], by: int) -> None:
        for name in names:
            count = self._counts[name] + by
            if count:
                self._counts[name] = count
            else:
                del self._counts[name]
            if count in (0, by):
                self._frozen = None

    @property
    def names(self) -> frozenset[str]:
        if self._frozen is None:
            self._frozen = frozenset(self._counts)
        return self._frozen


class Totals:
    """Keeps the sums; safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._seen: GroupMap[BoardGroup] = GroupMap()
        self._kinds: Counter[Pair] = Counter()
        self._records: Counter[RecordType] = Counter()
        self._upgrade: Counter[Pair] = Counter()
        self._downgrade: Counter[Pair] = Counter()
        self._to_upgrade = 0
        self._flexible = 0
        self._topic_names: Final = _Kept()
        self._topic_ids: Final = _Kept()
        self._unsteady: Final = _Kept()
        self._awaiting: Final = _Kept()

    def of(self, groups: GroupMap[BoardGroup]) -> Sums:
        """The sums of these groups."""
        with self._lock:
            for name, was, now in groups.since(self._seen):
                # What is of both is counted in before it is counted out, so that it never seems to be gone.
                same = was is not None and now is not None and was.kept is now.kept
                for held, by in ((now, 1), (was, -1)):
                    if held is not None:
                        self._count_offsets(held, by)
                        if not same:
                            self._count_state(name, held.summary, by)
            self._seen = groups
            return Sums(
                kinds=dict(self._kinds),
                new_protocol_records=dict(self._records),
                upgrade_reasons=dict(self._upgrade),
                downgrade_reasons=dict(self._downgrade),
                to_upgrade=self._to_upgrade,
                flexible=self._flexible,
                topic_names=self._topic_names.names,
                topic_ids=self._topic_ids.names,
                unsteady=self._unsteady.names,
                awaiting=self._awaiting.names,
            )

    def _count_state(self, name: str, of: GroupSummary, by: int) -> None:
        _count(self._kinds, (of.type, of.group_state), by)
        for type_, records in of.new_protocol_records.items():
            _count(self._records, type_, by * records)
        for pair in of.upgrade_reasons:
            _count(self._upgrade, pair, by)
        for pair in of.downgrade_reasons:
            _count(self._downgrade, pair, by)
        self._to_upgrade += by * of.to_upgrade
        self._topic_ids.change(of.topic_ids, by)
        if not of.steady:
            self._unsteady.change([name], by)
        if of.awaits_static:
            self._awaiting.change([name], by)

    def _count_offsets(self, held: BoardGroup, by: int) -> None:
        self._topic_names.change(held.topic_names, by)
        self._flexible += by * any(max(bucket.versions, default=0) >= FLEXIBLE_OFFSETS for bucket in held.buckets)


def _count(counts: Counter[Key], key: Key, by: int) -> None:
    counts[key] += by
    if not counts[key]:
        del counts[key]
