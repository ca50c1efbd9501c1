"""Silences of the log in which no coordinator worked, so that no member may be blamed for what did not happen in them.

A coordinator that works is not always heard: heartbeats leave no record, and a quiet partition is silent for hours. But
one that used to write every few seconds, and then wrote nothing of any group for a while, was not at work: its broker
was away, or the clock it writes times by was set ahead. In both cases no timer ran, and none is over.

    of an offsets partition nothing was written                                  and a coordinator
    for a minute at most                                                         worked: time passed
    while the leader of the partition answered for it (a running monitor)        worked: time passed
    for longer, and for a fifth as long within the hour before, too              worked: silence is normal there
    for longer, and little is known of how often it is written to                worked, for all that is known
    for more than five times as long as ever within the hour before              did not work
    while no partition was written to, for as much longer than that is usual     did not work
    for hours in which no partition was written to                               did not work
    while its leader did not answer for it for half a minute (a running monitor) did not work, for all that is known

Two people are to be thought of. Who is woken for a member that did nothing wrong: where no coordinator worked, times
run from the end of the silence, as the coordinator's own do when it has loaded the group, and no alarm opens for what
lies before it. And who is not woken: where silence is normal, or nothing is known of it, a rebalance that hangs is
reported as ever; so is one that was overdue before the silence began, and one that is overdue again after it.
"""

from __future__ import annotations

from binascii import crc32
from collections import deque
from collections.abc import Collection, Iterable, Iterator
from typing import Final

from coordinator_model.state.events import INFO, Event
from coordinator_model.state.findings import Finding, Position, events_of

SHORTEST_MS: Final = 60_000
"""No shorter silence is looked at: one commit that fails, or a busy broker, makes some of it."""

TIMES_AS_LONG: Final = 5

RHYTHM_MS: Final = 3_600_000
"""How far back a silence says what is usual."""

KNOWN_MOMENTS: Final = 20
KNOWN_MS: Final = 120_000
"""So many moments, over so long, have to be known before anything is called usual: two minutes of automatic commits."""

HOURS_MS: Final = 7_200_000

MOST_NAMED: Final = 20


class Rhythm:
    """How long a log is silent as a rule, from the times of its records in their order."""

    def __init__(self) -> None:
        self._first_ms: int | None = None
        self._last_ms = 0
        self._moments: deque[int] = deque(maxlen=KNOWN_MOMENTS)
        # (end, length) of the silences of the last hour that no later one is longer than.
        self._silences: deque[tuple[int, int]] = deque()

    def note(self, time_ms: int) -> None:
        """A record has this time. One of a clock that was set back makes no silence."""
        if self._first_ms is None:
            self._first_ms = self._last_ms = time_ms
            self._moments.append(time_ms)
            return
        silence_ms = time_ms - self._last_ms
        self._last_ms = time_ms
        if silence_ms < 0:
            self._first_ms = min(self._first_ms, time_ms)
        if silence_ms <= 0:
            return
        if time_ms // 1_000 != self._moments[-1] // 1_000:
            self._moments.append(time_ms)
        while self._silences and self._silences[-1][1] <= silence_ms:
            self._silences.pop()
        self._silences.append((time_ms, silence_ms))
        while time_ms - self._silences[0][0] > RHYTHM_MS:
            self._silences.popleft()

    def usual_ms(self, silence_ms: int) -> int | None:
        """How long it is silent at most as a rule, if a silence that begins now is far beyond that; None if not."""
        usual_ms = self.longest_ms()
        return usual_ms if usual_ms is not None and silence_ms > max(SHORTEST_MS, TIMES_AS_LONG * usual_ms) else None

    def longest_ms(self) -> int | None:
        """How long it was silent at most within the hour; None where too little is known to call that usual."""
        if self._first_ms is None or len(self._moments) < KNOWN_MOMENTS:
            return None
        if self._last_ms - self._first_ms < KNOWN_MS or self._last_ms - self._moments[0] > RHYTHM_MS:
            return None
        return self._silences[0][1]


def of_all(times_ms: Iterable[int]) -> Iterator[tuple[int, int]]:
    """(since, until) of the silences of a whole log, given the times of all its records in any order."""
    rhythm, former_ms = Rhythm(), None
    for second in sorted({time_ms // 1_000 for time_ms in times_ms}):
        now_ms = 1_000 * second
        if former_ms is not None:
            silence_ms = now_ms - former_ms
            if silence_ms > HOURS_MS or rhythm.usual_ms(silence_ms) is not None:
                yield former_ms, now_ms
        rhythm.note(now_ms)
        former_ms = now_ms


def no_coordinator(place: Position, since_ms: int, until_ms: int, groups: Collection[str]) -> Event:
    """What is said of a silence: of no group, because nothing happened to any.

    Args:
        place: of the last record before it.
        since_ms: when it began.
        until_ms: when it ended.
        groups: those that were between two states, whose times run from its end.
    """
    detail = {
        "partition": place.partition,
        "since": since_ms,
        "until": until_ms,
        "groups": sorted(groups)[:MOST_NAMED],
    }
    finding = Finding("coordinator_not_loaded", detail, severity=INFO, inferred=True)
    return next(events_of("", place, [finding], first_ordinal=crc32(b"%d" % since_ms)))
