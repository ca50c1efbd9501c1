"""What the model concludes from the records: one kind of event per sentence an operator would say.

The vocabulary is the table of `kinds/table.py` (`docs/events.md`). An event's time is the log's, its position is the
position of the record that showed it, and its id is made of these alone, so the same log gives the same ids however
often and in whatever batches it is read.
"""

from __future__ import annotations

from binascii import crc32
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from coordinator_model.kinds.table import CRITICAL, INFO, KINDS, WARNING

__all__ = ["CRITICAL", "INFO", "MEANINGS", "OF_NO_GROUP", "SEVERITIES", "WARNING", "Event", "event_view"]

SEVERITIES: Final[Mapping[str, str]] = {kind: row.severity for kind, row in KINDS.items()}
"""Kind of event → its usual severity. An event may carry another one where the rule that makes it says so."""

MEANINGS: Final[Mapping[str, str]] = {kind: row.meaning for kind, row in KINDS.items()}
"""Kind of event → what has happened, and by what cause where there are several."""

OF_NO_GROUP: Final = frozenset(kind for kind, row in KINDS.items() if row.of_no_group)
"""Kinds that are about a partition of the log: their group is empty here, and null where they leave the monitor."""


@dataclass(slots=True, kw_only=True)
class Event:
    """One conclusion, never changed.

    `time_ms` is the record's timestamp, `offset` the record's place in its partition of the log.
    """

    # Not frozen, for the reason that findings are not.

    time_ms: int
    group: str
    kind: str
    severity: str
    partition: int
    offset: int
    detail: Mapping[str, Any] = field(default_factory=dict)
    inferred: bool = False
    """True where the log does not state it and a rule concluded it."""
    ordinal: int = 0
    """Distinguishes events of one kind shown by one record."""
    log: str = ""
    """The log that it was shown by, where that is not the group coordinator's."""

    @property
    def id(self) -> str:
        """Stable name of this event: the same log always gives it again, so consumers can drop repeats.

        Of a polled group no record showed it: when it was first seen stands for the record's place.
        """
        place = f"{self.log}-{self.partition}-{self.offset}" if self.log else f"{self.partition}-{self.offset}"
        if self.partition < 0:
            place = f"polled-{crc32(self.group.encode('utf-8', 'surrogatepass')):08x}-{self.time_ms}"
        return f"{place}-{self.kind}-{self.ordinal}"


def event_view(event: Event) -> dict[str, Any]:
    """The event as JSON (`docs/schemas/event.schema.json`), with its stable `id`."""
    return {
        "id": event.id,
        "time": event.time_ms,
        "group": event.group,
        "kind": event.kind,
        "severity": event.severity,
        "partition": event.partition,
        "offset": event.offset,
        "detail": dict(event.detail),
        "inferred": event.inferred,
        **({"log": event.log} if event.log else {}),
    }
