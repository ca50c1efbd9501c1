"""A coordinator that did not load its partition of the log: its leader is there, and answers that it is no coordinator.

A broker that becomes the leader of an offsets partition replays it. If that fails, it says so in its own log, stays the
leader, and answers NOT_COORDINATOR for all groups there until it restarts or another broker takes over
(`CoordinatorRuntime`, state FAILED); while it replays, it answers COORDINATOR_LOAD_IN_PROGRESS. The log tells nothing
of it: it stands still. So four things have to come together:

    the partition has a leader                          one without has a name of its own (`without_leader`)
    that leader answers so for longer than a load of    a load may be long, and waits for those of the other partitions
    this size takes, and with each answer               of its broker (`CoordinatorLoaderImpl` has one thread); a leader
                                                        that moves, or is elected again, loads from the beginning, and
                                                        so does the time
    nothing is written meanwhile                        a coordinator that writes has loaded
    that is against the habit of its groups             silence as long as that may be a habit; where no habit is known,
                                                        it is missed only where groups have members
"""

from __future__ import annotations

from binascii import crc32
from collections.abc import Collection
from typing import Any, Final, NamedTuple

from coordinator_model.clocked.silences import MOST_NAMED
from coordinator_model.state.events import INFO, Event
from coordinator_model.state.findings import Finding, Position, events_of

LOADED: Final = "loaded"
MOVED: Final = "moved"
NO_LEADER: Final = "no_leader"

GRACE_MS: Final = 60_000
"""What any load may take, be it of nothing: a broker that restarts has many partitions to load, and more to do."""

LOADED_A_SECOND: Final = 25_000
"""Records: a third of what a broker was seen to load of its slowest partition, with cold code on two cores, and a
thirteenth of what it was of half of them (docs/before-brokers-restart.md, "What it costs")."""

TIMES_THE_LIVE: Final = 2
NOT_CLEANED: Final = 2_000_000
"""How long a log may be that is cleaned: half of it dirty (`min.cleanable.dirty.ratio`), and a segment that is written
to, which the cleaner leaves alone: 100 MB (`offsets.topic.segment.bytes`) of records of 50 bytes."""


class Elected(NamedTuple):
    """A leader of a partition; the same broker, elected again, is another one. `epoch` is negative where unknown."""

    broker: int
    epoch: int


class Refusals(NamedTuple):
    """What a leader answers with each question since then.

    Attributes:
        since_ms: when it first did.
        last_ms: when it last did.
        said: the error's name, as Kafka spells it.
    """

    since_ms: int
    last_ms: int
    said: str


def records_to_load(end_offset: int, live_records: int) -> int:
    """How many records a partition has at most.

    Args:
        end_offset: of its log.
        live_records: how many of its records are not superseded, about.
    """
    return min(end_offset, TIMES_THE_LIVE * live_records + NOT_CLEANED)


def load_ms(records: int) -> int:
    """How long a coordinator may take at most, with so many records in all partitions that its broker leads."""
    return GRACE_MS + 1_000 * records // LOADED_A_SECOND


def is_against_habit(silent_ms: int, longest_ms: int | None, members: int) -> bool:
    """Whether somebody misses what is not written.

    Args:
        silent_ms: for how long nothing was written.
        longest_ms: for how long that was so at most before (`Rhythm.longest_ms`); None where that is not known.
        members: of groups there.
    """
    return members > 0 if longest_ms is None else silent_ms > longest_ms


def opened(place: Position, leader: Elected, refusals: Refusals, groups: Collection[str]) -> Event:
    """That a coordinator did not load: of no group, because it is of all in the partition.

    Args:
        place: of the last record of the log.
        leader: which.
        refusals: what it answers.
        groups: all that are there.
    """
    detail: dict[str, Any] = {
        "partition": place.partition,
        "since": refusals.since_ms,
        "said": refusals.said,
        "broker": leader.broker,
        "groups": sorted(groups)[:MOST_NAMED],
        "groups_count": len(groups),
    }
    # By place and leader alone: all who look at the same brokers tell of the same.
    place = place._replace(timestamp_ms=refusals.since_ms)
    finding = Finding("coordinator_not_loaded", detail)
    return next(events_of("", place, [finding], first_ordinal=_ordinal(leader)))


def ended(event: Event, until_ms: int, why: str) -> Event:
    """The end of what was `opened`.

    Args:
        event: what was said.
        until_ms: when it was found to be over.
        why: `LOADED`, `MOVED` to another leader, or `NO_LEADER`.
    """
    detail = {name: event.detail[name] for name in ("partition", "since")}
    finding = Finding("coordinator_not_loaded", {**detail, "until": until_ms, "why": why, "cleared": True}, INFO)
    place = Position(event.partition, event.offset, until_ms)
    return next(events_of("", place, [finding], first_ordinal=event.ordinal + 1))


def is_of(event: Event, leader: Elected) -> bool:
    """Whether what was `opened` is of this leader."""
    return event.ordinal == _ordinal(leader)


def _ordinal(leader: Elected) -> int:
    return 2 * crc32(b"%d %d" % leader)
