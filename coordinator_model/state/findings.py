"""How rules speak: a rule yields findings, a step turns them into events at the place in the log that showed them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from coordinator_model.state.events import SEVERITIES, Event


@dataclass(slots=True)
class Finding:
    """One thing a rule found, never changed. The severity is the kind's own where none is given."""

    # Not frozen: a log shows hundreds of thousands, and a frozen dataclass takes three times as long to make.

    kind: str
    detail: Mapping[str, Any] = field(default_factory=dict)
    severity: str | None = None
    inferred: bool = False


class Position(NamedTuple):
    """Where in the log something was shown, and when."""

    partition: int
    offset: int
    timestamp_ms: int


def events_of(group: str, place: Position, findings: Iterable[Finding], *, first_ordinal: int = 0) -> Iterator[Event]:
    """Findings as events, numbered within their kind from `first_ordinal` so that each has an id of its own."""
    said: dict[str, int] = {}
    for finding in findings:
        before = said.get(finding.kind, 0)
        yield Event(
            time_ms=place.timestamp_ms,
            group=group,
            kind=finding.kind,
            severity=finding.severity or SEVERITIES[finding.kind],
            partition=place.partition,
            offset=place.offset,
            detail=finding.detail,
            inferred=finding.inferred,
            ordinal=first_ordinal + before,
        )
        said[finding.kind] = before + 1
