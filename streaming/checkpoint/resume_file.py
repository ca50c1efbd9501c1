"""What a run leaves for the next one besides the checkpoint: how far the log was read, and when.

A checkpoint does not say four things, or not once it is damaged.

`read_ms`: all that was in the log at this time has been read. A compacted log keeps a tombstone for
`delete.retention.ms` after it was first cleaned, and then it is gone: who comes later does not read that a group ended.
So, with what the state holds of it,

    unread since              within delete.retention.ms    beyond, or the clock ran backwards
    nothing is unread         go on                         go on
    some records are unread   go on                         start over from the log's beginning

which shows no group that is no more. A reader that begins at the log's beginning is safe as long as it reaches the end
within the same time; so before the first end is reached, `read_ms` is when reading began.

`live_from`: by partition, the log's end as it was when reading began. Alarms are drawn beyond it only (`steps.py`), as
what was cleaned shows states that never were. A run that goes on within `SAME_TAIL_MS` of the former one's last look
reads the same live tail that one would have read, and keeps its marks, so that an alarm that came and went between the
two is reported; one that comes later cannot know what was cleaned meanwhile, and takes the log's end as it finds it. So
does one that comes as soon, in a partition where it finds offsets missing (`shard_task.py`): the cleaner was quicker
after all, or these were of transactions.

`built_until`: by partition, where the live tail began for the reading that began at the log's beginning; none of a log
of less than `BUILT_FROM` records. Before it only
state is made of records (docs/decisions/0019), also by a run that goes on before it is reached: a kill changes nothing.
What comes after it is seen by the rules, whenever it is read. A reading that begins once more follows all with rules:
what the former one counted and reported is to be the same.

`told`: by partition, up to where all there is was concluded and reported, at `read_ms`. Who reads the log from its
beginning once more comes to the same conclusions, but of what the cleaner has left of it, and at its end: some events
would have other ids. So a rebuilt reading reports nothing of records that the former one reported (`told_before`).
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Final

from streaming.base import atomic_files
from streaming.board.readiness import Offsets, Positions
from streaming.end_offsets.store import PartitionEnds
from streaming.query.log_continuity import SAME_TAIL_MS

RESUME_FILE: Final = "resume.json"
FORMAT: Final = "resume/1"

BUILT_FROM: Final = 100_000
"""Records of a log from which on a first reading makes only state of them. Rules follow fewer in a second or two, and
what such a log still holds of the time before the start is worth it."""

SAVE_EVERY_MS: Final = 10_000
"""While nothing new is read, after which it is saved at once."""

_OFFSETS: Final = ("live_from", "built_until", "told", "told_before")

CLOCK_SLACK_MS: Final = 60_000
"""A clock that was set back by more than this says nothing of how long a run was away."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resume:
    """What the file holds, in milliseconds of this machine's clock.

    Attributes:
        read_ms: the log as it was then has been read, or its reading had begun then.
        seen_ms: the last time that a micro-batch was finished, or the end of the log reached.
        live_from: offsets partition to the end of the log as it was when reading began.
        built_until: offsets partition to the first offset that rules see: before it only state is made.
        told: offsets partition to the first offset of which not all is known to be reported.
        told_before: the same of a former reading of the same log.
        has_batches: whether a micro-batch was ever finished, so that there is a checkpoint.
        is_to_go: whether the checkpoint is to be forgotten, if it is still there.
        query_id: of which checkpoint all this is (`contents.Mark`); None before its first finished micro-batch.
        batch: the last micro-batch that was known to be finished.
    """

    read_ms: int
    seen_ms: int
    live_from: Offsets = field(default_factory=dict)
    built_until: Offsets = field(default_factory=dict)
    told: Offsets = field(default_factory=dict)
    told_before: Offsets = field(default_factory=dict)
    has_batches: bool = False
    is_to_go: bool = False
    query_id: str | None = None
    batch: int = -1

    @classmethod
    def begun(cls, now_ms: int, log_end: Offsets, told_before: Offsets) -> "Resume":
        """Of a run that reads the log from its beginning."""
        return cls(
            read_ms=now_ms,
            seen_ms=now_ms,
            live_from=dict(log_end),
            built_until={} if told_before or sum(log_end.values()) < BUILT_FROM else dict(log_end),
            told_before=dict(told_before),
        )

    def all_told(self) -> Offsets:
        """By partition, the first offset of which not all was reported by this reading or a former one."""
        partitions = self.told.keys() | self.told_before.keys()
        return {of: max(self.told.get(of, 0), self.told_before.get(of, 0)) for of in partitions}

    def going_on(self, now_ms: int, log_end: Offsets) -> "Resume":
        """Of a run that goes on now."""
        is_same_tail = abs(now_ms - self.seen_ms) <= SAME_TAIL_MS
        return replace(self, live_from={**log_end, **self.live_from} if is_same_tail else dict(log_end))

    def is_of(self, query_id: str | None, batch: int) -> bool:
        """Whether a checkpoint that is as far as this is the one that was left: not another, and not an older one.

        Earlier releases did not say which it was.
        """
        return self.query_id is None or (self.query_id == query_id and self.batch <= batch)

    def unread_too_long(self, now_ms: int, retention_ms: int) -> bool:
        """Whether tombstones that were not read may be gone."""
        away_ms = now_ms - self.read_ms
        return away_ms >= retention_ms or away_ms < -CLOCK_SLACK_MS


def load(directory: Path) -> Resume | None:
    """What the former run left; None where there was none, or one of an earlier release, or the file is damaged.

    That is no reason to stop: without it a checkpoint is as old as its files say.
    """
    try:
        held = json.loads((directory / RESUME_FILE).read_text(encoding="utf-8"))
        if held.pop("format") != FORMAT:
            return None
        for name in _OFFSETS:
            held[name] = {int(partition): int(offset) for partition, offset in held.get(name, {}).items()}
        return Resume(**held)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def save(directory: Path, resume: Resume) -> None:
    """Write it; raises OSError."""
    atomic_files.replace(directory / RESUME_FILE, json.dumps({"format": FORMAT, **asdict(resume)}) + "\n")


@dataclass(frozen=True, slots=True)
class _Target:
    """The ends of all partitions at one time."""

    sampled_ms: int
    high_watermarks: Offsets
    last_stable: Offsets


class ResumeWriter:
    """Keeps a run's `Resume` up to date; used by one thread.

    Args:
        directory: where it is saved.
        resume: what it begins with.
        reads_uncommitted: whether the reader of membership passes open transactions.
    """

    def __init__(self, directory: Path, resume: Resume, *, reads_uncommitted: bool) -> None:
        self._directory = directory
        self._reads_uncommitted = reads_uncommitted
        self._target: _Target | None = None
        self.resume = resume
        self._saved: Resume | None = None

    def finished_batch(self, now_ms: int, query_id: str | None, batch: int) -> None:
        """A micro-batch of a checkpoint is finished."""
        first = not self.resume.has_batches
        self.resume = replace(self.resume, seen_ms=now_ms, has_batches=True, query_id=query_id, batch=batch)
        if first:
            self.save()

    def follow(
        self, now_ms: int, sampled_ms: int | None, ends: Mapping[int, PartitionEnds], positions: Positions
    ) -> None:
        """Look how far the readers are. `ends` are of all partitions as they were at `sampled_ms`."""
        if self._target is None and sampled_ms is not None:
            self._target = self._target_of(sampled_ms, ends)
        target = self._target
        if target is not None and _reached(target, positions):
            self._target = None
            told = {of: min(end, target.high_watermarks[of]) for of, end in target.last_stable.items()}
            has_more = told != self.resume.told
            seen_ms = max(self.resume.seen_ms, target.sampled_ms)
            self.resume = replace(self.resume, read_ms=target.sampled_ms, seen_ms=seen_ms, told=told)
            if has_more:
                self.save()
        saved = self._saved
        if saved is None or (abs(now_ms - saved.seen_ms) >= SAVE_EVERY_MS and self.resume != saved):
            self.save()

    def _target_of(self, sampled_ms: int, ends: Mapping[int, PartitionEnds]) -> _Target | None:
        high_watermarks, last_stable = {}, {}
        # A topic that is grown has others than when reading began.
        for partition in self.resume.live_from.keys() | ends.keys():
            of = ends.get(partition)
            if of is None or of.high_watermark is None or of.last_stable is None or of.sampled_ms != sampled_ms:
                return None  # a partition that does not answer may hold more
            high_watermarks[partition] = of.high_watermark if self._reads_uncommitted else of.last_stable
            last_stable[partition] = of.last_stable
        return _Target(sampled_ms, high_watermarks, last_stable)

    def save(self) -> None:
        """Write it; raises OSError."""
        save(self._directory, self.resume)
        self._saved = self.resume


def unread(log_end: Offsets, last_stable: Offsets, positions: Positions) -> bool:
    """Whether there are records that the readers have yet to read."""
    return not _reached(_Target(0, log_end, last_stable), positions)


def _reached(target: _Target, positions: Positions) -> bool:
    return all(positions.membership.get(of, 0) >= end for of, end in target.high_watermarks.items()) and all(
        positions.commits.get(of, 0) >= end for of, end in target.last_stable.items()
    )
