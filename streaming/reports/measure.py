"""A group's log replayed and measured as it is read: the one way for a rehearsal and for the real roll."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from coordinator_model.log_replica import LogReplica
from coordinator_model.migration import roll_members
from coordinator_model.migration.phases import members_by_protocol
from coordinator_model.recording_clock import Looks
from coordinator_model.rules.members import members_of
from coordinator_model.rules.rebalances import under_way
from coordinator_model.state.events import Event
from coordinator_model.state.findings import Position
from coordinator_model.state.group_state import GroupState
from coordinator_model.state.membership import CONSUMER
from coordinator_model.views.roll_cost import Cost, RollCost
from streaming.recording.file_format import RecordedRecord, RecordedTopic

REHEARSAL_FORMAT: Final = "group-rehearsal/1"
ROLL_FORMAT: Final = "group-roll/1"

NOT_IN_THE_LOG: Final = (
    "the join phase of a classic group is not in the log: ownerless seconds there are a lower bound",
)
"""Said in every report."""

NO_OWNERS: Final = "seconds without an owner: tasks of streams groups and partitions of share groups are not followed"
"""Said of a streams or share group."""

STATIC_MEMBERS: Final = (
    "a static member that is back in time causes no rebalance; that it was away is in the log of the consumer protocol "
    "alone: only there its partitions count as without an owner"
)
"""Said of a group that has some."""


class MeasuredGroup:
    """One group of a log.

    Args:
        group: its name; records of others are passed over by who feeds this.
        topics: the topics that ids in the records stand for.
        since_ms: nothing before is counted.
        partitions: how many the offsets topic has; None where that is not known.
    """

    def __init__(
        self, group: str, topics: Iterable[RecordedTopic], since_ms: int = 0, *, partitions: int | None = None
    ) -> None:
        topics = list(topics)
        names = {topic.id: topic.name for topic in topics if topic.id is not None}
        self.group = group
        self.latest_ms = since_ms
        self.offsets_partition = -1
        # In a downgrade they say which topic of the classic group is which of the consumer group before.
        self._replica = LogReplica(partitions, topic_ids={name: id_ for id_, name in names.items()})
        self._looks = Looks(self._replica, {topic.name: topic for topic in topics}, is_whole=False)
        self._cost = RollCost(names, since_ms)

    @property
    def state(self) -> GroupState | None:
        """The group as it is now."""
        return self._replica.living_copy(self.group)

    def notes(self, cost: Cost) -> list[str]:
        """What is to be said of these figures."""
        found = list(NOT_IN_THE_LOG)
        if cost.moved_in_rebalances != cost.partitions_moved:
            found.append(
                f"of partitions moved, {cost.moved_in_rebalances} are those of the timeline's rebalances: one had "
                "begun before, was cut off by a conversion, or is under way"
            )
        if self.state is not None and any(of.instance_id for of in members_of(self.state.membership).values()):
            found.append(STATIC_MEMBERS)
        return found

    @property
    def has_owners(self) -> bool:
        """Whether one member owns a partition, as in classic and consumer groups."""
        modern = None if self.state is None else self.state.membership.modern_group
        return modern is None or modern.family == CONSUMER

    @property
    def has_ownerless(self) -> bool:
        """Whether a partition that had an owner has none at the end."""
        return self.has_owners and self._cost.has_ownerless

    @property
    def lacks_members(self) -> bool:
        """Whether a roll has left it with fewer members than before."""
        return self.state is not None and roll_members.missing(self.state) > 0

    def at_end(self, until_ms: int) -> list[str]:
        """Look what only time shows until then; returns the kinds of the alarms that are open at the end."""
        before = self.state
        if before is None:
            return []
        self._followed(self._looks.at_end(until_ms))
        # Another look may have taken a state away: what was deleted has no alarm.
        state = self.state
        return [] if state is None else sorted(self._looks.open_alarms(state, until_ms))

    @property
    def is_between(self) -> bool:
        """Whether it has members of both protocols, or is being rebalanced."""
        if self.state is None:
            return False
        membership = self.state.membership
        modern = membership.modern_group
        return all(members_by_protocol(membership)) or (modern is not None and under_way(modern))

    def take(self, record: RecordedRecord) -> list[Event]:
        """Replay a record of the log; returns what it showed of the group."""
        position = Position(record.partition, record.offset, record.timestamp_ms)
        events = self._looks.before(position)
        events += self._replica.replay(position, record.key, record.value)
        state = self.state
        if state is not None:
            self.offsets_partition = state.partition
            if record.partition == state.partition:
                self.latest_ms = max(self.latest_ms, record.timestamp_ms)
        return self._followed(events)

    def settle(self) -> list[Event]:
        """A record batch ended here."""
        return self._followed(self._replica.settle())

    def look(self, now_ms: int) -> list[Event]:
        """Look what only time shows, though nothing was written."""
        return self._followed(self._looks.before(Position(self.offsets_partition, -1, now_ms)))

    def begin(self, since_ms: int) -> None:
        """Start to count."""
        self._cost.begin(since_ms)

    def cost(self, until_ms: int | None = None) -> Cost:
        """The figures up to a moment, or to the group's last record."""
        return self._cost.cost(self.latest_ms if until_ms is None else until_ms)

    def _followed(self, events: list[Event]) -> list[Event]:
        state = self.state
        ours = [event for event in events if str(event.group) == self.group]
        if state is not None:
            ours = [event for event in ours if event.partition == state.partition]
        self._cost.follow(state, ours)
        return ours
