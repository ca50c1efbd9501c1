"""Rows of one micro-batch, handed to every sink in turn: each event is parsed once, for the first sink that asks."""

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

Event = dict[str, Any]


class Row(NamedTuple):
    """One row for the sinks, of a partition of the log. All but events are absolute: a repeated batch changes nothing.

    kind            words                                    payload
    group           snapshot of a group, but for offsets     its figures (`figures.stored`), or nothing
    group_deleted
    offsets         of one bucket (`packed_offsets`)         its numbers
    event           the event's kind                         docs/schemas/event.schema.json, as JSON
    shard                                                    totals of an offsets partition, as JSON
    undecodable                                              where and why a record was passed over, as JSON
    unreadable                                               the same of a batch of records
    share                                                    figures of a share partition (`views.share_partitions`)
    share_gone                                               which share partition has ended, as JSON
    share_log                                                totals of a partition of the share coordinator's log

    The last three are of no group: where they are says nothing of where the group lives.
    """

    partition: int
    kind: str
    group: str
    payload: bytes = b""
    words: str = ""


class BatchRows(list[Row]):
    """The rows in the order they were put out; not changed once a sink has them.

    Args:
        rows: of the batch.
        applied: what becomes of its events before a sink has them (`expectations.py`).
    """

    def __init__(self, rows: Iterable[Row], applied: Callable[[list[Event]], list[Event]] = list) -> None:
        super().__init__(rows)
        self._applied = applied
        self._parsed: list[Event] = []
        """The latest events, as many as were asked for."""

    @classmethod
    def of(cls, rows: Sequence[Row]) -> "BatchRows":
        """The rows, with what is parsed of them already."""
        return rows if isinstance(rows, BatchRows) else cls(rows)

    @property
    def events(self) -> list[Event]:
        """All events, in their order; shared, so not to be changed."""
        return self.latest_events(len(self))

    def latest_events(self, most: int) -> list[Event]:
        """The last `most` of `events`. A catch-up has several events of every group, and no one needs all of them."""
        texts = [row.payload for row in self if row.kind == "event"]
        first = max(0, len(texts) - most)
        if missing := texts[first : len(texts) - len(self._parsed)]:
            # As one text: one by one takes three times as long.
            self._parsed = [*self._applied(json.loads(b"[%b]" % b",".join(missing))), *self._parsed]
        return self._parsed[len(self._parsed) - (len(texts) - first) :]
