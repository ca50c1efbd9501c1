"""The replica of the share coordinator: share partitions, which are a function of ``__share_group_state``.

`ShareReplica.replay` takes one record with its place in that log and applies it. It never throws on what a log can
hold. The log is pruned, not compacted: the share coordinator deletes records from its start, behind what snapshots
have made superfluous, so a log may begin anywhere. A replica may hold one of its partitions or all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from itertools import chain, groupby
from typing import Any, Final

from coordinator_model.groups import share_partitions
from coordinator_model.records.serde import UndecodableRecord, UnknownRecord
from coordinator_model.records.share_state_types import (
    ShareStateRecord,
    ShareStateType,
    decode_share_state,
)
from coordinator_model.records.topics import SHARE_STATE_TOPIC
from coordinator_model.replica import Counters
from coordinator_model.rules import share_records
from coordinator_model.rules.share_redelivery import Redeliveries
from coordinator_model.state.events import INFO, Event
from coordinator_model.state.findings import Position, events_of
from coordinator_model.state.share_partition import (
    ARCHIVED,
    DEFAULT_DELIVERY_COUNT_LIMIT,
    LIMIT,
    REJECTED,
    STATES,
    UNCLEAR,
    Batch,
    GivenUp,
    SharePartition,
    SharePartitionId,
)


class ShareReplica:
    """Share partitions by id.

    Args:
        delivery_count_limits: group → after how many deliveries a record is given up; under "" the brokers' own,
            Kafka's default where that is not said.
        gaps: ids of topics in which an offset may have no record, which a client then archives; None for all.
        looked: topic id and partition → offset → whether it holds a record, of those that were looked at.
        live_from: as a `Replica`'s: below it nothing is an alarm; all is live of a partition that it does not name.
        redeliveries: gets what becomes done, of all that is live; for a replica of the whole log.
        counters: of what was read before, to be counted on.

    Attributes:
        partitions: what is there, in the order in which it was first met.
        counters: of what was read.
        unknown_states: delivery state without a name → batches of records that had it.
        undecodable: records passed over since the caller last emptied the list, for its log.
        changed: share partitions that changed, or ended, since the caller last emptied it.
    """

    def __init__(  # noqa: PLR0913 - what bears on a log, all named
        self,
        *,
        delivery_count_limits: Mapping[str, int] | None = None,
        gaps: Collection[str] | None = frozenset(),
        live_from: Mapping[int, int] | None = None,
        redeliveries: Redeliveries | None = None,
        counters: Counters | None = None,
        looked: Mapping[tuple[str, int], Mapping[int, bool]] | None = None,
    ) -> None:
        self._live_from = dict(live_from or {})
        self.redeliveries = redeliveries
        self._limits = {"": DEFAULT_DELIVERY_COUNT_LIMIT, **(delivery_count_limits or {})}
        self._gaps = None if gaps is None else frozenset(gaps)
        self._looked = looked or {}
        self.partitions: dict[SharePartitionId, SharePartition] = {}
        self.counters = Counters() if counters is None else counters
        self.unknown_states: dict[str, int] = {}
        self.undecodable: list[tuple[Position, UndecodableRecord]] = []
        self.changed: set[SharePartitionId] = set()
        self._by_group: dict[str, dict[SharePartitionId, None]] = {}
        self._crowds: dict[int, dict[SharePartitionId, None]] = {}
        """Partition of the log → share partitions of which much was given up within a minute."""

    def replay(self, position: Position, key: bytes | None, value: bytes | None) -> list[Event]:
        """Apply one record; returns what it, and the time that has gone by with it, showed."""
        self.counters.records += 1
        events = self._over(position.partition, position.timestamp_ms)
        match decode_share_state(key, value):
            case ShareStateRecord() as record:
                events += self._replay(position, record)
                if record.newer:
                    found = self.counters.newer(int(record.type), record.value_version or 0)
                    events += events_of(record.group_name, position, found)
            case UnknownRecord() as unknown:
                events += events_of(unknown.group_name or "", position, self.counters.unknown(unknown))
            case UndecodableRecord() as undecodable:
                self.counters.undecodable(undecodable)
                self.undecodable.append((position, undecodable))
                if undecodable.record_type is not None and undecodable.newer_version is not None:
                    found = self.counters.newer(undecodable.record_type, undecodable.newer_version)
                    events += events_of(undecodable.group_name or "", position, found)
        return self._reported(events) if events else events

    def settle(self, *, now_ms: int | None = None) -> list[Event]:
        """What is yet to be said of minutes that are over by this time of the log; of all at its end."""
        events = [of for partition in [*self._crowds] for of in self._over(partition, now_ms)]
        if now_ms is None and self.redeliveries is not None:
            events += self.redeliveries.judged()
        return self._reported(events)

    def hold(self, held: SharePartition) -> None:
        """Go on with a share partition as it was left; it is not held yet."""
        self.partitions[held.id] = held
        self._by_group.setdefault(held.id.group, {})[held.id] = None
        if held.crowd is not None:
            self._crowds.setdefault(held.log_partition, {})[held.id] = None

    def of_group(self, group: str) -> list[SharePartition]:
        """The share partitions of a group, by topic id and partition."""
        return [self.partitions[id_] for id_ in sorted(self._by_group.get(group, ()))]

    def groups(self) -> list[str]:
        """Groups that have any, by name."""
        return sorted(self._by_group)

    def forget_before(self, partition: int, offset: int) -> list[SharePartition]:
        """Forget what was not seen since a reader had to go on at the log's start; returns what is gone.

        Each share partition that lives has a snapshot behind that. To be called once the log is read to where it ended
        when the start was found.

        Args:
            partition: of the log.
            offset: the start, behind the reader's position.
        """
        gone = [of for of in self.partitions.values() if of.log_partition == partition and of.last_offset < offset]
        for of in gone:
            self._forget(of.id)
        return gone

    def _replay(self, position: Position, record: ShareStateRecord) -> list[Event]:
        id_ = SharePartitionId(record.key.group_id, record.key.topic_id, record.key.partition)
        if record.value is None:
            return self._forget(id_) if record.type is ShareStateType.SHARE_SNAPSHOT else []
        for batch in record.value.state_batches:
            if batch.delivery_state not in STATES:
                name = str(batch.delivery_state)
                self.unknown_states[name] = self.unknown_states.get(name, 0) + 1
        held = self.partitions.get(id_)
        if held is None:
            held = self.partitions[id_] = SharePartition(id=id_)
            self._by_group.setdefault(id_.group, {})[id_] = None
        done = share_partitions.newly_done(held, record.value)
        if self.redeliveries is not None and held.last_offset >= 0 and self._is_live(position):
            self.redeliveries.note(id_.group, position, done)
        archived = [batch for batch in done if batch.state == ARCHIVED]
        before = share_partitions.first_not_done(held)
        APPLY[record.type](held, record.value)
        held.log_partition, held.last_offset, held.last_ms = position
        if share_partitions.first_not_done(held) != before:
            held.moved_ms = position.timestamp_ms
        if done:
            held.done_ms = position.timestamp_ms
        self.changed.add(id_)
        if not archived:
            return []
        self._crowds.setdefault(position.partition, {})[id_] = None
        return share_records.archived(held, position, share_records.given_up(self._counted(held, archived)))

    def _counted(self, held: SharePartition, archived: Iterable[Batch]) -> Iterator[tuple[str, GivenUp]]:
        """Cause and offsets of each, counted for good: snapshots and resets leave the count as it is."""
        for batch in chain.from_iterable(self._with_records(held.id, of) for of in archived):
            why, records = self.why_archived(held.id, batch), batch.last + 1 - batch.first
            held.archived = {**held.archived, why: held.archived.get(why, 0) + records}
            yield why, GivenUp(batch.first, batch.last, records, batch.deliveries)

    def _with_records(self, of: SharePartitionId, batch: Batch) -> Iterator[Batch]:
        """The batch in parts of which it is known alike whether they hold records, without those that hold none."""
        looked = self._looked.get((of.topic_id, of.partition))
        if looked is None:
            yield batch
            return
        for holds, part in groupby(range(batch.first, batch.last + 1), looked.get):
            offsets = [*part]
            if holds is not False:
                yield batch._replace(first=offsets[0], last=offsets[-1])

    def why_archived(self, of: SharePartitionId, batch: Batch) -> str:
        """LIMIT, REJECTED or UNCLEAR.

        An offset without a record is archived by the first member that acknowledges anything of its batch: it reaches
        the limit only where all before it died or timed out.
        """
        if batch.deliveries >= self._limits.get(of.group, self._limits[""]):
            return LIMIT
        if self._looked.get((of.topic_id, of.partition), _NOTHING).get(batch.first):
            return REJECTED
        return UNCLEAR if self._gaps is None or of.topic_id in self._gaps else REJECTED

    def _over(self, partition: int, now_ms: int | None) -> list[Event]:
        events: list[Event] = []
        crowds = self._crowds.get(partition)
        if crowds is None:
            return events
        for id_ in [*crowds]:
            held = self.partitions.get(id_)
            events += [] if held is None else share_records.over(held, now_ms)
            if held is None or held.crowd is None:
                del crowds[id_]
                self.changed.add(id_)
        if not crowds:
            del self._crowds[partition]
        return events

    def _forget(self, id_: SharePartitionId) -> list[Event]:
        """Forget a share partition; returns what was kept to be said of it."""
        held = self.partitions.pop(id_, None)
        if held is None:
            return []
        self.changed.add(id_)
        of_group = self._by_group[id_.group]
        del of_group[id_]
        if not of_group:
            del self._by_group[id_.group]
        return share_records.over(held, None)

    def _is_live(self, position: Position) -> bool:
        return position.offset >= self._live_from.get(position.partition, 0)

    def _reported(self, events: Iterable[Event]) -> list[Event]:
        """Events of this log, without alarms of what was there before it was live; what is unknown is information."""
        found: list[Event] = []
        for of in events:
            if of.severity != INFO and of.offset < self._live_from.get(of.partition, 0):
                if of.kind != "unknown_record":
                    continue
                of.severity = INFO
            of.log = SHARE_STATE_TOPIC
            found.append(of)
        return found


_NOTHING: Final[Mapping[int, bool]] = {}

APPLY: Final[dict[ShareStateType, Callable[[SharePartition, Any], None]]] = {
    ShareStateType.SHARE_SNAPSHOT: share_partitions.replay_snapshot,
    ShareStateType.SHARE_UPDATE: share_partitions.replay_update,
}
"""Record type → what a value of it does to a share partition."""
