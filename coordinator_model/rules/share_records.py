"""Records of a share group that were given up for good, each offset once.

    archived at the delivery limit      a record that no member could process: `limit`
    archived below it                   a member rejected it: `rejected`
    the same, in a topic with gaps      perhaps there was no record: `unclear`, information

Adjacent offsets of one record of the log and one cause are one event. Of a share partition ten are reported a minute;
what comes after them in that minute is one event of each cause, when it is over.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, Final

from coordinator_model.state.events import INFO, Event
from coordinator_model.state.findings import Finding, Position, events_of
from coordinator_model.state.share_partition import UNCLEAR, Crowd, GivenUp, SharePartition

KIND: Final = "share_records_archived"

MOST_EVENTS: Final = 10
"""Of one share partition in `CROWD_MS`."""
CROWD_MS: Final = 60_000


def given_up(found: Iterable[tuple[str, GivenUp]]) -> Iterator[tuple[str, GivenUp]]:
    """Causes and offsets that one record archived, ascending, with neighbours of one cause joined."""
    held: tuple[str, GivenUp] | None = None
    for why, of in found:
        if held is not None and held[0] == why and held[1].last + 1 == of.first:
            held = why, _together(held[1], of)
            continue
        if held is not None:
            yield held
        held = why, of
    if held is not None:
        yield held


def archived(held: SharePartition, place: Position, found: Iterable[tuple[str, GivenUp]]) -> list[Event]:
    """What is reported of them now; the rest is kept until the minute is over."""
    events = over(held, place.timestamp_ms)
    crowd = held.crowd or Crowd(since_ms=place.timestamp_ms)
    findings: list[Finding] = []
    kept = dict(crowd.kept)
    for why, of in found:
        if crowd.reported + len(findings) < MOST_EVENTS:
            findings.append(_finding(held, why, of))
        else:
            kept[why] = _together(kept[why], of) if why in kept else of
    if kept != crowd.kept:
        crowd = replace(crowd, kept=kept, offset=place.offset, at_ms=place.timestamp_ms, ordinal=len(findings))
    held.crowd = replace(crowd, reported=crowd.reported + len(findings))
    return [*events, *events_of(held.id.group, place, findings)]


def over(held: SharePartition, now_ms: int | None) -> list[Event]:
    """What was kept of a minute that is over by this time, or at the end of the log (None)."""
    crowd = held.crowd
    if crowd is None or (now_ms is not None and now_ms < crowd.since_ms + CROWD_MS):
        return []
    held.crowd = None
    place = Position(held.log_partition, crowd.offset, crowd.at_ms)
    findings = (_finding(held, why, of, together=True) for why, of in crowd.kept.items())
    return list(events_of(held.id.group, place, findings, first_ordinal=crowd.ordinal))


def _finding(held: SharePartition, why: str, of: GivenUp, *, together: bool = False) -> Finding:
    detail: dict[str, Any] = {
        "topic": held.id.topic_id,
        "topic_partition": held.id.partition,
        "first_offset": of.first,
        "last_offset": of.last,
        "delivery_count": of.delivery_count,
        "why": why,
    }
    if together:
        detail["records"] = of.records
    return Finding(KIND, detail, INFO if why == UNCLEAR else None)


def _together(one: GivenUp, other: GivenUp) -> GivenUp:
    return GivenUp(
        min(one.first, other.first),
        max(one.last, other.last),
        one.records + other.records,
        max(one.delivery_count, other.delivery_count),
    )
