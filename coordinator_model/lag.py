"""Lag: how far a committed offset is behind the end of its partition, in records and in seconds.

In records it is a subtraction, and there are two ends: the high watermark, which lag is to, and the last stable offset,
beyond which readers of committed records cannot get while a transaction is open. In seconds it is the age of the record
at the committed offset, and no log of the coordinator holds that: it is read off the sampled history of the partition's
end, at the moment when the end stood where the commit stands now. Where no samples bracket it the brokers are asked for
the time (`ListOffsets`), and until they have answered the first sample is a lower bound: by then the record was there.

    end offset                        the commit                        records  seconds   method               sums
    unknown                           any                               -        -         no_end_offset        unknown
    none: there is no such topic      any                               -        -         no_such_topic        left out
    known                             none                              -        -         no_committed_offset  left out
    of a topic recreated since        any                               -        -         topic_recreated      unknown
    known                             at the end                        0        0         caught_up            known
    known                             beyond it: fresher than a sample  0        0         ahead_of_end         known
    known                             elsewhere, and no record waits    n        0         no_record            known
    known, and half a minute younger  beyond it                         -        -         beyond_end           unknown
    known                             between two samples               n        t         interpolated         known
    known                             elsewhere, and brokers said when  n        t         list_offsets         known
    known                             elsewhere                         n        at least  at_least             known
    known, cut off since the commit   beyond where it was cut off       n        t         truncated            known

A sum (of a group, of a topic) is known if no part of it is unknown (`SUMS`). Otherwise there is none, but what is known
adds up to a lower bound. Why an end is unknown makes no difference: no leader, not sampled yet, or DESCRIBE on the
topic missing, and then for as long as it is missing. Of a topic that was deleted nothing waits, so its offsets, which
Kafka deletes with it or keeps until they expire, are no part of a sum; brokers must have said so for a while. A commit
of another log than there is now (recreated, or beyond its end) is unknown until the group commits again: how much of
the new log it will read depends on where its consumers begin.

Not every offset holds a record. Each transaction ends with a marker, what was aborted is there and never delivered, and
what lies below the log's start is gone. Lag in records counts them all, as Kafka's tool does; lag in seconds begins
where a record may wait (`waits_from`): beyond the log's start, and beyond what readers of committed records were seen
to be given nothing of (gaps: offset → the one up to which there is none). Where that was not seen, a record waits: what
is not known ends no alarm. Records were lost where a commit is below the log's start, but for such gaps (`is_lost`).

There is always a figure while there is lag: one that went away would end an alert. An idle topic makes no
exception, because the *last* sample at or below the commit counts: a record written after an hour of silence is as old
as the sample that first showed it, not an hour. What is behind a cut counts from there: that is where a consumer of
the former log goes on.
"""

from __future__ import annotations

import struct
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

NO_END_OFFSET: Final = "no_end_offset"
NO_SUCH_TOPIC: Final = "no_such_topic"
NO_COMMITTED_OFFSET: Final = "no_committed_offset"
TOPIC_RECREATED: Final = "topic_recreated"
CAUGHT_UP: Final = "caught_up"
AHEAD_OF_END: Final = "ahead_of_end"
BEYOND_END: Final = "beyond_end"
INTERPOLATED: Final = "interpolated"
LIST_OFFSETS: Final = "list_offsets"
AT_LEAST: Final = "at_least"
TRUNCATED: Final = "truncated"
NO_RECORD: Final = "no_record"

NEVER_COMMITTED: Final = "never_committed"
"""Of a partition that a member holds and nothing was committed of; there is nothing to measure."""

METHODS: Final = (
    NO_END_OFFSET,
    NO_SUCH_TOPIC,
    NO_COMMITTED_OFFSET,
    TOPIC_RECREATED,
    CAUGHT_UP,
    AHEAD_OF_END,
    BEYOND_END,
    INTERPOLATED,
    LIST_OFFSETS,
    AT_LEAST,
    TRUNCATED,
    NO_RECORD,
)

UNKNOWN: Final = "unknown"
LEFT_OUT: Final = "left out"

SUMS: Final[Mapping[str, str]] = {
    NO_END_OFFSET: UNKNOWN,
    NO_SUCH_TOPIC: LEFT_OUT,
    NO_COMMITTED_OFFSET: LEFT_OUT,
    NEVER_COMMITTED: LEFT_OUT,
    TOPIC_RECREATED: UNKNOWN,
    BEYOND_END: UNKNOWN,
}
"""Method of a lag that has no figure → what it is in a sum. All others have one."""

FRESH_MS: Final = 30_000
"""An end sampled so long after a commit is not behind it by chance, however far apart the clocks of both are."""

DEFAULT_POINTS: Final = 600
DEFAULT_SPAN_MS: Final = 3_600_000

_NOTHING_HELD: Final = (1 << 63) - 1
_NONE_FOUND: Final[Mapping[int, int]] = {}


@dataclass(frozen=True, slots=True)
class Lag:
    """One partition's lag. Figures that are not known are None; `method` says how they came about.

    `records` is to the high watermark, `stable_records` to the last stable offset, None where that is not known either.
    `at_least` says that `seconds` is a lower bound.
    """

    records: int | None
    seconds: float | None
    method: str
    stable_records: int | None = None
    at_least: bool = False


@dataclass(frozen=True, slots=True)
class Cut:
    """A log that was cut off: where it ended then, when that was noticed, and the leader's epoch since, once known."""

    offset: int
    time_ms: int
    leader_epoch: int | None = None

    def is_behind(self, offset: int, leader_epoch: int, committed_ms: int) -> bool:
        """Whether an offset was committed of the log as it was before, beyond where it was cut off.

        The commit's leader epoch decides, -1 where the client gave none; without one the time of commit decides.
        """
        if offset <= self.offset:
            return False
        if leader_epoch >= 0 and self.leader_epoch is not None:
            return leader_epoch < self.leader_epoch
        return 0 <= committed_ms <= self.time_ms


class EndOffsetHistory:
    """Samples (time, end offset) of one partition: dense lately, sparser the older.

    A run of equal ends is kept as its first and last sample. When there are more than `points`, every second one of
    the older half goes, so the distance between neighbours grows with their age and so does the error of a time read
    between them. What is older than `span_ms` goes, but for the last sample that brackets it, and for what is needed to
    bracket the offset that is held (`hold`).

    Times are milliseconds and only grow; a clock set back takes the samples of the repeated time with it. An end
    that moves backwards is another log (a recreated topic, or a truncated one): history begins again.
    """

    __slots__ = ("_ends", "_held", "_points", "_span_ms", "_times")

    def __init__(self, points: int = DEFAULT_POINTS, span_ms: int = DEFAULT_SPAN_MS) -> None:
        self._points = max(2, points)
        self._span_ms = span_ms
        # Arrays, not tuples: 15,000 partitions of 600 samples are 144 MB this way and five times as much the other.
        self._times = array("q")
        self._ends = array("q")
        self._held = _NOTHING_HELD

    def __len__(self) -> int:
        return len(self._times)

    def add(self, time_ms: int, end: int) -> None:
        """Take one sample."""
        times, ends = self._times, self._ends
        while times and times[-1] >= time_ms:
            times.pop()
            ends.pop()
        if ends and end < ends[-1]:
            del times[:], ends[:]
        if len(ends) > 1 and ends[-1] == ends[-2] == end:
            times[-1] = time_ms
        else:
            times.append(time_ms)
            ends.append(end)
        self._forget(time_ms - self._span_ms)
        if len(times) > self._points:
            self._thin()

    def hold(self, offset: int | None) -> None:
        """Forget nothing that brackets this offset or a later one; None for no offset."""
        self._held = _NOTHING_HELD if offset is None else offset

    def since(self, offset: int) -> int | None:
        """A time in milliseconds by which the end was beyond this offset, if the samples begin beyond it."""
        return self._times[0] if self._ends and offset < self._ends[0] else None

    def stands_since(self) -> int | None:
        """Since when the end is where it is, in milliseconds, as far as was sampled; None without a sample."""
        if not self._times:
            return None
        return self._times[-2 if len(self._ends) > 1 and self._ends[-2] == self._ends[-1] else -1]

    def time_of(self, offset: int) -> float | None:
        """When the end stood at this offset, in milliseconds; None where no two samples bracket it."""
        ends = self._ends
        below = bisect_right(ends, offset) - 1
        if below < 0 or below + 1 == len(ends):
            return None
        start, stop = self._times[below], self._times[below + 1]
        return start + (stop - start) * (offset - ends[below]) / (ends[below + 1] - ends[below])

    def samples(self) -> Sequence[tuple[int, int]]:
        """(time in milliseconds, end offset), oldest first."""
        return list(zip(self._times, self._ends, strict=True))

    def columns(self) -> tuple[array[int], array[int]]:
        """Times in milliseconds and end offsets, oldest first; not to be changed, and read before the next sample."""
        return self._times, self._ends

    def dump(self) -> bytes:
        """For a file: all times, then all ends, as little-endian int64."""
        return struct.pack(f"<{2 * len(self)}q", *self._times, *self._ends)

    @classmethod
    def load(cls, dumped: bytes, points: int = DEFAULT_POINTS, span_ms: int = DEFAULT_SPAN_MS) -> EndOffsetHistory:
        """Inverse of `dump`, under limits that may have changed; raises ValueError on what `dump` does not give."""
        count, rest = divmod(len(dumped), 16)
        if rest:
            raise ValueError(f"an end offset history has 16 bytes a sample, found {len(dumped)}")
        values = struct.unpack(f"<{2 * count}q", dumped)
        times, ends = list(values[:count]), list(values[count:])
        if times != sorted(set(times)) or ends != sorted(ends) or min(ends, default=0) < 0:
            raise ValueError("times of an end offset history grow, and its ends do not shrink")
        history = cls(points, span_ms)
        history._times.extend(times)
        history._ends.extend(ends)
        # Which offsets are to be bracketed is not known yet.
        history._held = 0
        while len(history) > history._points:
            history._thin()
        return history

    def _thin(self) -> None:
        # Never the first: it is what the history reaches back to.
        half = max(2, len(self) // 2)
        del self._times[1:half:2], self._ends[1:half:2]

    def _forget(self, horizon_ms: int) -> None:
        gone = min(bisect_right(self._times, horizon_ms), bisect_right(self._ends, self._held)) - 1
        if gone > 0:
            del self._times[:gone], self._ends[:gone]


def measure(  # noqa: PLR0913 - a commit, both ends, and what is known of the time
    committed: int | None,
    end: int | None,
    history: EndOffsetHistory | None,
    now_ms: int,
    *,
    same_topic: bool = True,
    exists: bool = True,
    stable: int | None = None,
    found: Mapping[int, int] = _NONE_FOUND,
    start: int | None = None,
    gaps: Mapping[int, int] = _NONE_FOUND,
) -> Lag:
    """Lag of one committed offset at `now_ms`.

    Args:
        committed: the committed offset, the next to be read; None or negative for none.
        end: the high watermark; None where it was never sampled.
        history: sampled high watermarks; None for none.
        now_ms: the time of reading, by the clock that timed the samples.
        same_topic: False where the commit names another topic id than the topic has now.
        exists: False where brokers say for good that there is no such topic.
        stable: the last stable offset; None for the end.
        found: offset → when the record there was written, in milliseconds, as brokers said.
        start: the log's first offset; None where that is not known.
        gaps: offset → the one up to which no offset holds a record that was committed.
    """
    if committed is None or committed < 0:
        return Lag(None, None, NO_COMMITTED_OFFSET)
    if not same_topic:
        return Lag(None, None, TOPIC_RECREATED)
    if end is None:
        return Lag(None, None, NO_END_OFFSET if exists else NO_SUCH_TOPIC)
    at = waits_from(committed, end, start, gaps)
    records, seconds, method = behind(committed, end, history, now_ms, found, at)
    return Lag(records, seconds, method, max(0, (end if stable is None else stable) - committed), method == AT_LEAST)


def is_beyond(committed: int, high_watermark: int | None, committed_ms: int, sampled_ms: int) -> bool:
    """Whether a log ends before an offset that was committed long ago: it was cut off, or another topic has its name.

    No consumer will find what it left there, so a lag of 0 would be a false calm.

    Args:
        committed: the committed offset.
        high_watermark: the end of the log, open transactions included, which a consumer may have read; None if unknown.
        committed_ms: when it was committed; negative where that is not known.
        sampled_ms: when the end was sampled.
    """
    if high_watermark is None or committed <= high_watermark:
        return False
    return 0 <= committed_ms <= sampled_ms - FRESH_MS


def waits_from(committed: int, end: int, start: int | None, gaps: Mapping[int, int]) -> int:
    """The first offset, at the commit or after it, at which a record may wait; `end` or more where none does."""
    at = after_gap(committed, gaps)
    # A start beyond the end is of the log as it was before it was cut off.
    return at if start is None or not at < start <= end else after_gap(start, gaps)


def is_lost(committed: int, start: int | None, gaps: Mapping[int, int]) -> bool:
    """Whether records after a commit are deleted: what nothing is known of counts as one."""
    return start is not None and 0 <= committed < start and after_gap(committed, gaps) < start


def after_gap(offset: int, gaps: Mapping[int, int]) -> int:
    """The end of the gap that begins with an offset; the offset itself where none does."""
    while (upto := gaps.get(offset, offset)) > offset:
        offset = upto
    return offset


def behind(  # noqa: PLR0913 - as `measure`
    committed: int,
    end: int,
    history: EndOffsetHistory | None,
    now_ms: int,
    found: Mapping[int, int] = _NONE_FOUND,
    waits_at: int | None = None,
) -> tuple[int, float, str]:
    """(records, seconds, method) of the same, where there is a committed offset and an end of the same topic.

    `waits_at` is where the first record may wait, by default at the commit.
    """
    if committed >= end:
        return 0, 0.0, CAUGHT_UP if committed == end else AHEAD_OF_END
    records, at = end - committed, committed if waits_at is None else waits_at
    if at >= end:
        return records, 0.0, NO_RECORD
    written_ms = history.time_of(at) if history is not None else None
    if written_ms is not None:
        return records, max(0.0, (now_ms - written_ms) / 1000), INTERPOLATED
    by_ms = history.since(at) if history is not None else None
    at_least = 0.0 if by_ms is None else max(0.0, (now_ms - by_ms) / 1000)
    asked_ms = found.get(at)
    # Producers' clocks may be ahead: what was there when it was sampled is no younger than that.
    if asked_ms is not None and (now_ms - asked_ms) / 1000 >= at_least:
        return records, (now_ms - asked_ms) / 1000, LIST_OFFSETS
    return records, at_least, AT_LEAST


def cut_of(cuts: Iterable[Cut], committed: int, leader_epoch: int, committed_ms: int) -> int | None:
    """Where a consumer of a log that was cut off since its commit goes on; None where it was not."""
    found = [cut.offset for cut in cuts if cut.is_behind(committed, leader_epoch, committed_ms)]
    return min(found, default=None)
