"""What the model concludes from the records: one kind of event per sentence an operator would say.

The table below is the whole vocabulary (contract, "EVENT"). An event's time is the log's, its position that of
the record that showed it, and its id is made of these alone, so the same log gives the same ids however often
and in whatever batches it is read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

INFO: Final = "info"
WARNING: Final = "warning"
CRITICAL: Final = "critical"

SEVERITIES: Final[Mapping[str, str]] = {
    "group_created": INFO,
    "group_deleted": INFO,
    "group_emptied": INFO,
    "member_joined": INFO,
    "member_left": INFO,
    "member_fenced": WARNING,
    "rebalance_started": INFO,
    "rebalance_completed": INFO,
    "rebalance_stuck": CRITICAL,
    "rebalance_storm": WARNING,
    "rebalance_rounds_lost": WARNING,
    "duplicate_assignment": CRITICAL,
    "duplicate_assignment_cleared": INFO,
    "partition_unassigned": WARNING,
    "handover_without_revocation": WARNING,
    "stale_claim": WARNING,
    "static_member_absent": WARNING,
    "static_member_returned": INFO,
    "static_member_replaced": INFO,
    "static_member_contended": CRITICAL,
    "upgrade_started": INFO,
    "upgrade_completed": INFO,
    "upgrade_blocked": WARNING,
    "downgrade_started": WARNING,
    "downgrade_completed": INFO,
    "downgrade_unclean": WARNING,
    "migration_stalled": WARNING,
    "offset_rewound": WARNING,
    "offset_deleted": INFO,
    "topic_recreated": WARNING,
    "epoch_anomaly": WARNING,
    "unknown_record": WARNING,
}
"""Kind of event → its usual severity. An event may carry another one where the rule that makes it says so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One conclusion. `time_ms` is the record's timestamp, `offset` the record's place in its offsets partition."""

    time_ms: int
    group: str
    kind: str
    severity: str
    partition: int
    offset: int
    detail: Mapping[str, Any] = field(default_factory=dict)
    inferred: bool = False
    """True where the log does not state it and a rule concluded it (coordinator-records: what is not visible)."""
    ordinal: int = 0
    """Tells apart events of one kind shown by one record."""

    @property
    def id(self) -> str:
        """Stable name of this event: the same log always gives it again, so consumers can drop repeats."""
        return f"{self.partition}-{self.offset}-{self.kind}-{self.ordinal}"


def event_view(event: Event) -> dict[str, Any]:
    """The event as the contract's EVENT object, with its stable `id`."""
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
    }
