"""Rows for a board under test, made as the shards make them: records through a replica, changes as snapshots."""

import json
from collections.abc import Iterable
from dataclasses import asdict

from coordinator_model.figures import stored
from coordinator_model.replica import Replica
from coordinator_model.share_replica import ShareReplica
from coordinator_model.state import share_text, snapshot
from coordinator_model.state.events import Event, event_view
from coordinator_model.state.findings import Position
from coordinator_model.state.group_state import GroupState
from coordinator_model.state.packed_offsets import dump_offsets
from coordinator_model.views.share_partitions import ShareFigures
from streaming.base.batch_rows import Row
from streaming.board.board import SHARE_LOG

KeyValue = tuple[bytes | None, bytes | None]


class ShareShard:
    """One partition of the share coordinator's log that is written to in the coordinator's words."""

    def __init__(self, partition: int = 0) -> None:
        self.partition = partition
        self.replica = ShareReplica()
        self.next_offset = 0

    def write(self, *records: KeyValue, timestamp_ms: int) -> list[Row]:
        """Rows of a micro-batch that holds these records, written at once."""
        events: list[Event] = []
        for key, value in records:
            events += self.replica.replay(Position(self.partition, self.next_offset, timestamp_ms), key, value)
            self.next_offset += 1
        changed, self.replica.changed = sorted(self.replica.changed), set()
        held = [self.replica.partitions.get(id_) for id_ in changed]
        place = SHARE_LOG + self.partition
        return [
            *(
                Row(place, "share_gone", "", share_text.dump_id(id_).encode())
                if of is None
                else Row(place, "share", "", ShareFigures.of(of).dump().encode())
                for id_, of in zip(changed, held, strict=True)
            ),
            *(Row(place, "event", of.group, json.dumps(event_view(of)).encode(), of.kind) for of in events),
            Row(place, "share_log", "", json.dumps({"next_offset": self.next_offset, "windows": {}}).encode()),
        ]


class Shard:
    """One offsets partition that is written to in the coordinator's words."""

    def __init__(self, partition: int = 0) -> None:
        self.partition = partition
        self.replica = Replica()
        self.next_offset = 0
        self.pending: list[tuple[int, bytes | None, bytes | None]] = []

    def flush(self) -> list[Row]:
        """Rows of a micro-batch of what is pending."""
        pending, self.pending = self.pending, []
        return self.batch(pending)

    def write(self, *records: KeyValue, timestamp_ms: int) -> list[Row]:
        """Rows of a micro-batch that holds these records, written at once."""
        return self.batch((timestamp_ms, key, value) for key, value in records)

    def batch(self, records: Iterable[tuple[int, bytes | None, bytes | None]]) -> list[Row]:
        """Rows of a micro-batch of (timestamp, key, value) at consecutive offsets."""
        events: list[Event] = []
        for timestamp_ms, key, value in records:
            events += self.replica.replay(Position(self.partition, self.next_offset, timestamp_ms), key, value)
            self.next_offset += 1
        events += self.replica.settle()
        return [*self._changes(), *self._reported(events)]

    def rows(self) -> list[Row]:
        """Everything, as a state store holds it."""
        groups = [self._group(name, state) for name, state in self.replica.groups.items()]
        buckets = [
            self._row("offsets", name, *dump_offsets(bucket)) for (name, _, _), bucket in self.replica.buckets.items()
        ]
        return [*groups, *buckets, self._totals()]

    def _changes(self) -> list[Row]:
        changes = self.replica.take_changes()
        rows = [self._row("group_deleted", name) for name in changes.deleted]
        for name in sorted(changes.groups):
            state = self.replica.groups.get(name)
            if state is not None and state.exists:
                rows.append(self._group(name, state))
        buckets = ((place[0], self.replica.buckets[place]) for place in sorted(changes.buckets))
        return [*rows, *(self._row("offsets", name, *dump_offsets(bucket)) for name, bucket in buckets)]

    def _reported(self, events: list[Event]) -> list[Row]:
        return [
            *(self._row("event", of.group, json.dumps(event_view(of)).encode(), of.kind) for of in events),
            self._totals(),
        ]

    def _totals(self) -> Row:
        totals = {**asdict(self.replica.counters), "last_offset": self.next_offset - 1}
        return self._row("shard", "", json.dumps(totals).encode())

    def _group(self, name: str, state: GroupState) -> Row:
        return self._row("group", name, stored.dump(state), snapshot.dump_group(state))

    def _row(self, kind: str, group: str, payload: bytes = b"", words: str = "") -> Row:
        return Row(self.partition, kind, group, payload, words)
