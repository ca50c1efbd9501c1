"""The replica of a first reading: of what was there before it makes state alone, as a coordinator that loads its log.

Below the live tail nothing may be alarmed, and rules are more than half of what a replay costs. So what a record does
to the state is done, and no rule is asked; where the live tail begins, or a record that is followed, rule memory begins
with what the state says (`rules/beginning.py`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from coordinator_model.records.serde import DecodedKey, Record, decode_value
from coordinator_model.replica import ENDS, HANDLERS, OFFSET_TYPES, Replica
from coordinator_model.rules import beginning, offset_commits
from coordinator_model.state.events import Event
from coordinator_model.state.findings import Position
from coordinator_model.state.group_state import GroupState
from coordinator_model.state.offsets import OffsetBucket, bucket_number
from coordinator_model.state.packed_offsets import PackedOffsets, load_offsets


class FirstReading(Replica):
    """A replica some of whose records are from below the live tail: those at the offsets `below`.

    Further arguments are those of `Replica`.
    """

    def __init__(self, *args: Any, below: Collection[int] = (), **settings: Any) -> None:  # noqa: ANN401 - the replica's
        super().__init__(*args, **settings)
        self._below = below
        self._seeded: dict[tuple[str, str, int], PackedOffsets] = {}
        """Offset buckets that were made elsewhere, and that no record was about since."""
        self._built: dict[str, None] = {}
        """Groups of which state was built, and whose rules have not begun."""

    def replay_decoded(
        self, position: Position, key: DecodedKey, value: bytes | None, *, commits: int = 1
    ) -> list[Event]:
        """As the replica's; of what is below the live tail state alone is made."""
        if position.offset in self._below:
            return self.build(position, key, value, records=commits)
        return super().replay_decoded(position, key, value, commits=commits)

    def build(self, position: Position, key: DecodedKey, value: bytes | None, *, records: int = 1) -> list[Event]:
        """Make state of one record from below the live tail, without a rule; it stands for so many of its key.

        `begin` is to be called after the last of some. Rules that have followed the group so far are left behind by a
        membership record, as they cannot judge what was left out before it; its commits they follow.
        """
        decoded = decode_value(key, value)
        if not isinstance(decoded, Record) or decoded.newer:
            return super().replay_decoded(position, key, value)
        name = decoded.group_name
        state = self.known(name)
        events: list[Event] = []
        if state is not None and not state.built:
            if decoded.type in OFFSET_TYPES:
                return super().replay_decoded(position, key, value, commits=records)
            events = self._of_live_tail(self._settle(name))
            state = self.known(name)
        if state is None:
            state = self.group(name, position.partition)
        state.built = True
        self.counters.records += records
        self._built.setdefault(name)
        if decoded.type in OFFSET_TYPES:
            self._build_offset(state, decoded, records)
            return events
        HANDLERS[decoded.type](state.membership, decoded.key, decoded.value)
        if position.offset > state.last_step_offset:
            state.last_step_ms, state.last_step_offset = position.timestamp_ms, position.offset
        self._changes.groups.add(name)
        if value is None and decoded.type in ENDS and not state.exists:
            self._forget(state)
        return events

    def seed(
        self,
        name: str,
        partition: int,
        buckets: Mapping[tuple[str, int], tuple[int, PackedOffsets]],
        topic_ids: Mapping[str, str],
        *,
        records: int,
    ) -> None:
        """As `build`, of all commits of a group of which nothing is known yet.

        Args:
            name: of the group.
            partition: of the log.
            buckets: (topic, bucket number) → how many offsets there are, and these.
            topic_ids: topic → its id, where commits name one.
            records: how many the offsets stand for.
        """
        state = self.group(name, partition)
        state.built = True
        self.counters.records += records
        self._built.setdefault(name)
        for (topic, number), (count, packed) in buckets.items():
            offset_commits.count_first(state, topic, number, count)
            self._seeded[name, topic, number] = packed
            self._changes.buckets.add((name, topic, number))
        for topic, id_ in topic_ids.items():
            offset_commits.note_id(state, topic, id_)
        self._changes.groups.add(name)

    def begin(self, name: str | None = None) -> None:
        """Let the rules begin with what was built, of one group or all: from here on they may follow."""
        for built in list(self._built) if name is None else [name]:
            del self._built[built]
            if built not in self._changes.groups:
                continue  # nothing but commits to offsets that it has, or tombstones of what is not there
            state = self.groups[built]
            if state.exists:
                self.groups[built] = beginning.begun(state)
            else:
                self._forget(state)

    def loaded_bucket(self, place: tuple[str, str, int]) -> OffsetBucket | None:
        """As the replica's; one that was seeded is loaded."""
        return self._bucket(*place) if place in self._seeded else super().loaded_bucket(place)

    def packed_bucket(self, place: tuple[str, str, int]) -> PackedOffsets:
        """As the replica's; one that was seeded is as it was made."""
        return self._seeded.get(place) or super().packed_bucket(place)

    def _bucket(self, group: str, topic: str, number: int) -> OffsetBucket:
        place = group, topic, number
        if place in self._seeded:
            self.buckets[place] = load_offsets(*self._seeded.pop(place))
        return super()._bucket(group, topic, number)

    def _forget(self, state: GroupState) -> None:
        for topic, numbers in state.buckets.items():
            for number in numbers:
                self._seeded.pop((state.name, topic, number), None)
        super()._forget(state)

    def _replay_known(self, position: Position, record: Record, commits: int) -> list[Event]:
        if record.group_name in self._built:
            self.begin(record.group_name)
        return super()._replay_known(position, record, commits)

    def _build_offset(self, state: GroupState, record: Record, records: int) -> None:
        name, topic, partition = state.name, record.key.topic, record.key.partition
        number = bucket_number(partition)
        bucket = self._bucket(name, topic, number)
        if record.value is None and partition not in bucket.offsets:
            return
        self._changes.buckets.add((name, topic, number))
        if record.value is None:
            offset_commits.drop(state, bucket, partition)
            if not state.exists:
                state.topic_ids.clear()  # it may have ended: what comes then is of another group
        else:
            taken = offset_commits.take(state, bucket, record, records)
            if taken is None or (taken.former is not None and taken.known_ids is None):
                return
        self._changes.groups.add(name)
