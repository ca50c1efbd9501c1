"""The replica of a whole log, all partitions in one: it separates copies of one group (`copies.py`).

Partitions may come in any order, so which copy is the group is not known while records are replayed. The copy that is
met first has the group's name, each other one a name of its own, which reads the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final, Self

from coordinator_model import copies
from coordinator_model.clocked.table import ALSO_BY_RECORDS
from coordinator_model.copies import CopyEvent
from coordinator_model.records.keys import GroupIdKey, RecordKey
from coordinator_model.records.serde import DecodedKey, KnownKey
from coordinator_model.replica import Replica
from coordinator_model.state.events import Event
from coordinator_model.state.findings import Position
from coordinator_model.state.group_state import GroupState
from coordinator_model.state.offsets import CommittedOffset

_ENDED: Final = -1
"""When a copy that ended was last written, beside those that exist: its expiry does not make it the group."""


class CopyName(str):
    """Name of a copy of a group: the group's as text, and equal to none but the same copy's."""

    __slots__ = ("at",)
    at: int

    def __new__(cls, group: str, partition: int) -> Self:
        """The name of the copy in this partition."""
        made = super().__new__(cls, group)
        made.at = partition
        return made

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CopyName) and self.at == other.at and str.__eq__(self, other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash((str(self), self.at))


class LogReplica(Replica):
    """A replica of all partitions of a log that is read from its beginning.

    Args:
        partitions: how many the offsets topic has; None where that is not known.
        live_from: as a replica's.
        topic_ids: as a replica's.
    """

    def __init__(
        self,
        partitions: int | None,
        *,
        live_from: int | Mapping[int, int] = 0,
        topic_ids: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(live_from=live_from, topic_ids=topic_ids)
        self._partitions = partitions
        self._copies: dict[str, dict[int, CopyName]] = {}
        """Group → partition → name of the copy there, but for the copy that has the group's."""

    def replay_decoded(
        self, position: Position, key: DecodedKey, value: bytes | None, *, commits: int = 1
    ) -> list[Event]:
        """As a replica's; events of a copy bear its own name until `reported` has seen them."""
        return super().replay_decoded(position, self._of_copy(key, position.partition), value, commits=commits)

    def living(self) -> dict[str, GroupState]:
        """Groups by name, each as its living copy has it; also groups that ended and left something."""
        found = {name: state for name, state in self.groups.items() if not isinstance(name, CopyName)}
        for group in self._copies:
            state = self.living_copy(group)
            if state is not None:
                found[group] = state if state.name == group else replace(state, name=group)
        return found

    def others(self) -> list[GroupState]:
        """Copies that are not their groups, by the groups' names: an older broker would meet their records as well."""
        living = {(name, state.partition) for name, state in self.living().items()}
        return [
            replace(state, name=str(name))
            for name, state in self.groups.items()
            if (str(name) in self._copies) and (str(name), state.partition) not in living
        ]

    def living_copy(self, group: str) -> GroupState | None:
        """The state of the copy that is the group, as far as the log was replayed; None where nothing is known of it.

        Of copies that ended, the one that left something counts.
        """
        held = [state for name in self._names(group) if (state := self.groups.get(name)) is not None]
        of = {state.partition: state for state in [state for state in held if state.exists] or held}
        if len(of) < 2:  # noqa: PLR2004 - of one there is no choice
            return next(iter(of.values()), None)
        return of[copies.lives_in(group, {at: self._written_ms(state) for at, state in of.items()}, self._partitions)]

    def offsets(self, name: str) -> Iterator[tuple[str, int, CommittedOffset]]:
        """(topic, partition, committed offset) of the living copy of a group, by topic and partition."""
        state = self.living_copy(name) if name in self._copies else None
        return super().offsets(name if state is None else state.name)

    def reported(self, events: Iterable[Event]) -> list[Event]:
        """What is reported of all events of the log: those of copies that were not the group left out, copies named.

        And each once: what a look found, a record may show again.
        """
        happened = list(_once(events))
        partition_of: dict[str, int] = {}
        # Also of copies that had the group's name one after the other: at their own time both may have been there.
        several: dict[str, list[Event]] = {
            str(of.group): []
            for of in happened
            if partition_of.setdefault(str(of.group), of.partition) != of.partition and of.group
        }
        if not several:
            return happened
        found: list[Event] = []
        for event in happened:
            several.get(str(event.group), found).append(event)
        for group, of_copies in several.items():
            found += self._of_group(group, of_copies)
        return found

    def _of_group(self, group: str, events: list[Event]) -> Iterator[Event]:
        written_ms = dict.fromkeys((of.partition for of in events), _ENDED)
        for name in self._names(group):
            state = self.groups.get(name)
            if state is not None and state.exists:
                written_ms[state.partition] = self._written_ms(state)

        def living(there: Iterable[int]) -> int:
            return copies.lives_in(group, {at: written_ms[at] for at in there}, self._partitions)

        of_copies = [CopyEvent(of.time_ms, of.partition, of.offset, of.kind) for of in events]
        own, doubled = copies.of_the_group(of_copies, (), living)
        yield from (replace(of, group=group) for number, of in enumerate(events) if number in own)
        for each in doubled:
            yield copies.doubled_event(group, of_copies[each.shown_by], each)

    def _of_copy(self, key: DecodedKey, partition: int) -> DecodedKey:
        """The key, of a copy by its own name."""
        if not isinstance(key, KnownKey):
            return key
        group = key.key.group_name
        of_group = self._copies.get(group)
        if of_group is None or partition not in of_group:
            held = self.groups.get(group)
            if held is None or held.partition == partition:
                return key
            of_group = self._copies.setdefault(group, {})
            of_group[partition] = CopyName(group, partition)
        return KnownKey(_named(key.key, of_group[partition]), key.decoder)

    def _names(self, group: str) -> list[str]:
        return [group, *self._copies.get(group, {}).values()]

    def _written_ms(self, state: GroupState) -> int:
        """When something was last written to a copy, in milliseconds."""
        step_ms = state.last_step_ms if state.step is None else max(state.last_step_ms, state.step.timestamp_ms)
        return max([step_ms, *(of.commit_timestamp_ms for _, _, of in super().offsets(state.name))])


def _named(key: RecordKey, name: CopyName) -> RecordKey:
    """The same key of another group."""
    changed: Any = key
    found: RecordKey = replace(changed, **{"group_id" if isinstance(key, GroupIdKey) else "group": name})
    return found


def _once(events: Iterable[Event]) -> Iterator[Event]:
    said = set[str]()
    for event in events:
        if event.kind in ALSO_BY_RECORDS:
            if event.id in said:
                continue
            said.add(event.id)
        yield event
