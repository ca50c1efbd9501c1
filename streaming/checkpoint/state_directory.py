"""The state directory of a running monitor: its owner, its contents, and when it is too old to resume from.

found at start, or when the query is started again        what is done
another cluster's, another topic's, another layout        refused by name (`identity.claim`)
damaged, or its checkpoint is gone                        refused, with `run --rebuild` as the way out
unread for longer than tombstones are kept                read from the log's beginning again, and logged
                                                          (`resume_file`)
anything else                                             resumed from
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from coordinator_model.state.snapshot import SnapshotFormatError
from streaming.base.errors import MonitorError, UsageError, first_line
from streaming.base.logging_setup import get_logger
from streaming.board.readiness import Offsets, Positions
from streaming.checkpoint import contents, resume_file
from streaming.checkpoint.identity import REMEDY, Identity, claim, damaged
from streaming.checkpoint.resume_file import Resume, ResumeWriter
from streaming.end_offsets.store import PartitionEnds
from streaming.query.progress import PartitionOffsets
from streaming.query.schemas import OutputRow

CHECKPOINT: Final = "checkpoint"

DEFAULT_TOMBSTONE_RETENTION_MS: Final = 86_400_000
"""Kafka's default of delete.retention.ms, for where the brokers do not say."""

_log = get_logger("state")


class StateDirectory:
    """One monitor's, while it runs; used by one thread.

    Args:
        directory: the option `state.dir`.
        checkpoint: where Spark keeps the checkpoint, if not below it.
        reads_uncommitted: whether the reader of membership passes open transactions.
        clock_ms: the wall clock.
    """

    def __init__(
        self, directory: Path, checkpoint: str | None, *, reads_uncommitted: bool, clock_ms: Callable[[], int]
    ) -> None:
        self.directory = directory
        # Spark reads a bare path as the file system's it is configured for, which is not always this machine's.
        self.checkpoint = checkpoint or (directory / CHECKPOINT).resolve().as_uri()
        self.tombstone_retention_ms = DEFAULT_TOMBSTONE_RETENTION_MS
        self.rebuilds = 0
        """How often the log was read again because tombstones may have been missed."""
        self._reads_uncommitted = reads_uncommitted
        self._clock_ms = clock_ms
        self._former: Resume | None = None
        self._told_before: Offsets = {}
        self._follower: ResumeWriter | None = None
        self._unread_seconds = 0.0
        self._is_writable = True

    def claim(self, identity: Identity, *, rebuild: bool) -> None:
        """See that it is this identity's, and whole as far as that shows; with `rebuild` forget what is in it.

        Raises:
            UsageError: it is not, or cannot be written.
        """
        former = resume_file.load(self.directory)

        def forget(held: Mapping[str, Any] | None) -> None:
            is_same_log = held is not None and held.get("topic_id") == identity.topic_id
            self._forget(former.all_told() if former is not None and is_same_log else {})

        claim(self.directory, identity, forget if rebuild else None)
        if rebuild:
            return
        if former is not None and former.is_to_go:
            self._forget(former.all_told())
            return
        if former is not None and former.has_batches and contents.is_gone(self.checkpoint):
            raise damaged(self.directory, "its checkpoint is gone")
        if self.holds_state():
            self.positions()  # before Spark starts, which takes seconds
            with self._whole():
                contents.settle(self.checkpoint)
        self._former = former
        if self._former is None and contents.has_committed_batch(self.checkpoint):
            # An earlier release left none.
            written_ms = contents.last_written_ms(self.checkpoint) or self._clock_ms()
            self._former = Resume(read_ms=written_ms, seen_ms=written_ms, has_batches=True)

    @property
    def told_before(self) -> Offsets:
        """By partition, the first offset whose events were not reported by a former reading of the same log."""
        return self._told_before

    @property
    def built_until(self) -> Offsets:
        """By partition, up to where only state is made of the log's records; known once it is read."""
        return {} if self._follower is None else self._follower.resume.built_until

    @property
    def unread_seconds(self) -> float:
        """How long the log had not been read when it began to be read on."""
        return self._unread_seconds

    def holds_state(self) -> bool:
        """Whether there is something to go on from."""
        return contents.has_committed_batch(self.checkpoint)

    def positions(self) -> tuple[PartitionOffsets, ...]:
        """Next offsets of commits and of membership. Raises UsageError."""
        with self._whole():
            return contents.committed_positions(self.checkpoint)

    def rows(self, spark: SparkSession) -> Iterator[OutputRow]:
        """What once filled the board. Raises UsageError."""
        with self._whole():
            yield from contents.stored_rows(spark, self.checkpoint)

    def rebuild_if_outlived(self, log_end: Offsets, last_stable: Offsets, positions: Positions) -> bool:
        """Forget the state where what is unread may lack tombstones; returns whether it did."""
        former = self._follower.resume if self._follower is not None else self._former
        now_ms, retention_ms = self._clock_ms(), self.tombstone_retention_ms
        if former is None or not former.unread_too_long(now_ms, retention_ms):
            return False
        if not resume_file.unread(log_end, last_stable, positions):
            return False
        _log.warning(
            "state_rebuilt",
            reason="the log was unread for longer than it keeps tombstones",
            unread_seconds=(now_ms - former.read_ms) // 1_000,
            delete_retention_seconds=retention_ms // 1_000,
        )
        self._forget(former.all_told())
        self.rebuilds += 1
        return True

    def begin(self, log_end: Offsets) -> Offsets:
        """Say that the log is being read on, or from its beginning; returns from where on it is live."""
        now_ms = self._clock_ms()
        former = self._follower.resume if self._follower is not None else self._former
        now = Resume.begun(now_ms, log_end, self._told_before) if former is None else former.going_on(now_ms, log_end)
        self._told_before = now.told_before
        self._unread_seconds = 0.0 if former is None else max(0, now_ms - former.seen_ms) / 1_000
        self._follower = ResumeWriter(self.directory, now, reads_uncommitted=self._reads_uncommitted)
        with self._noting_when_full():
            self._follower.save()
        return now.live_from

    def finished_batch(self) -> None:
        """A micro-batch is finished."""
        if self._follower is not None:
            with self._noting_when_full():
                self._follower.finished_batch(self._clock_ms())

    def follow(self, sampled_ms: int | None, ends: Mapping[int, PartitionEnds], positions: Positions) -> None:
        """Keep in mind up to when the log has been read."""
        if self._follower is not None:
            with self._noting_when_full():
                self._follower.follow(self._clock_ms(), sampled_ms, ends, positions)

    def _forget(self, told: Offsets) -> None:
        # Said before it is done: should this end in between, the next run does it.
        resume_file.save(self.directory, replace(Resume.begun(self._clock_ms(), {}, told), is_to_go=True))
        contents.forget(self.checkpoint)
        self._former = self._follower = None
        self._told_before = told

    @contextmanager
    def _whole(self) -> Iterator[None]:
        try:
            yield
        except MonitorError:
            raise
        except SnapshotFormatError as error:
            found = f"found {self.checkpoint!r} with a {error}"
            raise UsageError(f"state.dir: {found}; accepted: {REMEDY['snapshot_format']}") from error
        except (OSError, ValueError, LookupError, TypeError, AttributeError, PySparkException, Py4JError) as error:
            raise damaged(self.directory, first_line(error)) from error

    @contextmanager
    def _noting_when_full(self) -> Iterator[None]:
        """A disk that is full or gone is reported once; the stream reports it in its own way, and waits."""
        try:
            yield
            self._is_writable = True
        except OSError as error:
            if self._is_writable:
                _log.warning("state_not_saved", reason=str(error))
            self._is_writable = False
