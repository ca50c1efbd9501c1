"""Rows of one micro-batch, handed to every sink in turn: their events are parsed once, for the first that asks."""

import json
from collections.abc import Sequence
from functools import cached_property
from typing import Any, TypeVar

Row = tuple[int, str, str, str]
"""(offsets partition, kind, group, payload)"""

RowType = TypeVar("RowType", bound=Row)


class BatchRows(list[RowType]):
    """The rows in the order they were put out; not changed once a sink has them."""

    @cached_property
    def events(self) -> list[dict[str, Any]]:
        """The events of the rows, in their order; shared, so not to be changed. Read as one text, which is quicker."""
        found: list[dict[str, Any]] = json.loads(f"[{','.join([row[3] for row in self if row[1] == 'event'])}]")
        return found


def events_of(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """The events of some rows."""
    return rows.events if isinstance(rows, BatchRows) else BatchRows(rows).events
