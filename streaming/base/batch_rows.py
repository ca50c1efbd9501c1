"""Rows of one micro-batch, handed to every sink in turn: each event is parsed once, for the first sink that asks."""

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

Row = tuple[int, str, str, str, str]
"""(offsets partition, kind, group, payload, kind of the event); the last is empty where the row is no event."""

RowType = TypeVar("RowType", bound=Row)

Event = dict[str, Any]


class BatchRows(list[RowType]):
    """The rows in the order they were put out; not changed once a sink has them.

    Args:
        rows: of the batch.
        applied: what becomes of its events before a sink has them (`expectations.py`).
    """

    def __init__(self, rows: Iterable[RowType], applied: Callable[[list[Event]], list[Event]] = list) -> None:
        super().__init__(rows)
        self._applied = applied
        self._parsed: list[Event] = []
        """The latest events, as many as were asked for."""

    @classmethod
    def of(cls, rows: Sequence[RowType]) -> "BatchRows[RowType]":
        """The rows, with what is parsed of them already."""
        return rows if isinstance(rows, BatchRows) else cls(rows)

    @property
    def events(self) -> list[Event]:
        """All events, in their order; shared, so not to be changed."""
        return self.latest_events(len(self))

    def latest_events(self, most: int) -> list[Event]:
        """The last `most` of `events`. A catch-up has several events of every group, and no one needs all of them."""
        texts = [row[3] for row in self if row[1] == "event"]
        first = max(0, len(texts) - most)
        if missing := texts[first : len(texts) - len(self._parsed)]:
            # As one text: one by one takes three times as long.
            self._parsed = [*self._applied(json.loads(f"[{','.join(missing)}]")), *self._parsed]
        return self._parsed[len(self._parsed) - (len(texts) - first) :]
