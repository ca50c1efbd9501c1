"""Share partitions that do not get on, though records wait: what a look with a clock finds.

    of a share partition it is seen that                                    `why`
    for ten minutes no offset became done, a record waits for as long,      `nothing_done`
    and a member is assigned
    one record holds it back while those after it become done, and there    `held_back`
    are as many between them as may be in flight
    it is not initialized for ten minutes in which records came             `not_initialized`

Silent: nothing waits, no member is there, a record that is slow while those after it become done (it and its age are
shown), a lock that times out, a group that was reset a moment ago. In flight is not known: the log has no locks.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

from coordinator_model.state.events import INFO, Event
from coordinator_model.state.findings import Finding, Position, events_of

KIND: Final = "share_partition_stalled"

STALLED_MS: Final = 600_000
MOST_LOCKS: Final = 2_000
"""Kafka's `share.partition.max.record.locks`, by default: beyond so many after the first that is not done, nothing is
delivered."""

NOTHING_DONE: Final = "nothing_done"
HELD_BACK: Final = "held_back"
NOT_INITIALIZED: Final = "not_initialized"


@dataclass(frozen=True, slots=True, kw_only=True)
class SharePlace:
    """One share partition as it is at a moment.

    Attributes:
        group, topic_id, partition: which one.
        log: name of the share coordinator's log.
        written: where its last record is in that log, and when it was written.
        first_not_done: None while it is not initialized.
        done_to: the offset after the last one that is done; None where none is beyond the start offset.
        done_ms: when an offset last became done; negative where none did.
        waits_since_ms: since when the record at the first offset that is not done waits for it; None where none does.
        arrived_ms: since when records have come, where it is not initialized; None where none have.
        assigned: whether a member has it.
    """

    group: str
    topic_id: str
    partition: int
    log: str
    written: Position
    first_not_done: int | None
    done_to: int | None
    done_ms: int
    waits_since_ms: int | None
    arrived_ms: int | None
    assigned: bool


def stalled(of: SharePlace, now_ms: int) -> tuple[str, int] | None:
    """(why, since when) a share partition does not get on; None where it does, or has nothing to do."""
    if not of.assigned:
        return None
    if of.first_not_done is None:
        since_ms = None if of.arrived_ms is None else max(of.arrived_ms, of.written.timestamp_ms)
        return None if since_ms is None or now_ms - since_ms < STALLED_MS else (NOT_INITIALIZED, since_ms)
    if of.waits_since_ms is None:
        return None
    since_ms = max(of.waits_since_ms, of.done_ms)
    if now_ms - since_ms >= STALLED_MS:
        return NOTHING_DONE, since_ms
    if of.done_to is not None and of.done_to - of.first_not_done >= MOST_LOCKS:
        return HELD_BACK, of.waits_since_ms
    return None


class _Name(NamedTuple):
    group: str
    topic_id: str
    partition: int


class ShareStalls:
    """Remembers from look to look what is open."""

    def __init__(self) -> None:
        self._open: dict[_Name, Event] = {}

    @property
    def groups(self) -> set[str]:
        """Groups of which some share partition is stalled."""
        return {name.group for name in self._open}

    def look(self, places: Iterable[SharePlace], now_ms: int, *, known: Collection[str] | None = None) -> list[Event]:
        """What begins, and what is over.

        Args:
            places: share partitions of which all is known.
            now_ms: the time.
            known: groups of which it is known how they are; None for all. What is open of others stays open.
        """
        found = {_Name(of.group, of.topic_id, of.partition): (of, why) for of in places if (why := stalled(of, now_ms))}
        events = [event for name, (of, why) in found.items() if name not in self._open for event in _opened(of, *why)]
        over = [name for name in self._open if name not in found and (known is None or name.group in known)]
        events += [_cleared(self._open.pop(name), now_ms) for name in over]
        self._open.update((_name(event.group, event.detail), event) for event in events if not _is_end(event.detail))
        return events

    def resume(self, reported: Iterable[Event]) -> None:
        """Take up what was reported before a restart: openings and endings, in their order."""
        for event in reported:
            if event.kind != KIND:
                continue
            name = _name(event.group, event.detail)
            if _is_end(event.detail):
                self._open.pop(name, None)
            else:
                self._open[name] = event


def _opened(of: SharePlace, why: str, since_ms: int) -> Iterator[Event]:
    detail: dict[str, Any] = {"topic": of.topic_id, "topic_partition": of.partition, "why": why, "since": since_ms}
    if of.first_not_done is not None:
        detail["first_offset"] = of.first_not_done
    place = of.written._replace(timestamp_ms=since_ms + STALLED_MS if why != HELD_BACK else of.written.timestamp_ms)
    for event in events_of(of.group, place, [Finding(KIND, detail, inferred=True)]):
        event.log = of.log
        yield event


def _cleared(opened: Event, now_ms: int) -> Event:
    detail = {name: opened.detail[name] for name in ("topic", "topic_partition", "why")}
    return replace(
        opened,
        time_ms=max(opened.time_ms, now_ms),
        severity=INFO,
        detail={**detail, "cleared": True},
        ordinal=opened.ordinal + 1,
    )


def _name(group: str, detail: Mapping[str, Any]) -> _Name:
    return _Name(group, detail["topic"], detail["topic_partition"])


def _is_end(detail: Mapping[str, Any]) -> bool:
    return bool(detail.get("cleared"))
