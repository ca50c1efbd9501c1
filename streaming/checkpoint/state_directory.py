"""The state directory of a running monitor: its owner, its contents, and when it is too old to resume from.

found at start, or when the query is started again        what is done
another cluster's, another topic's, another layout        refused by name (`identity.claim`)
a checkpoint that another monitor writes to               refused, or waited for (`lease`)
damaged, or its checkpoint is gone                        refused, with `run --rebuild` as the way out
another checkpoint than the former run's, or an older     read from the log's beginning again, and logged: what was
                                                          noted of when the log was read is not of this one
unread for longer than tombstones are kept                read from the log's beginning again, and logged
                                                          (`resume_file`)
anything else                                             resumed from
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from coordinator_model.state.packed_offsets import SnapshotFormatError
from streaming.base import descriptors
from streaming.base.batch_rows import Row
from streaming.base.errors import CannotTellError, MonitorError, UsageError, first_line
from streaming.base.logging_setup import get_logger
from streaming.board.readiness import Offsets, Positions
from streaming.checkpoint import contents, resume_file
from streaming.checkpoint.contents import Mark
from streaming.checkpoint.files import CheckpointFiles, HadoopFiles, LocalFiles
from streaming.checkpoint.hidden import Hidden
from streaming.checkpoint.identity import (
    CHECKPOINT_IDENTITY_FILE,
    IDENTITY_FILE,
    REMEDY,
    Identity,
    as_text,
    claim,
    damaged,
    may_be_one_topic,
    refuse_anothers,
)
from streaming.checkpoint.lease import OWNER_BESIDE, Lease, owner_of
from streaming.checkpoint.location import Location, hidden_beside
from streaming.checkpoint.resume_file import Resume, ResumeWriter
from streaming.end_offsets.store import PartitionEnds
from streaming.query.jvm_objects import is_no_answer
from streaming.query.progress import PartitionOffsets

DEFAULT_TOMBSTONE_RETENTION_MS: Final = 86_400_000
"""Kafka's default of delete.retention.ms, for where the brokers do not say."""

_log = get_logger("state")


class StateDirectory:
    """One monitor's, while it runs; used by one thread.

    Args:
        directory: the option `state.dir`.
        checkpoint: the option `state.checkpoint_location`.
        reads_uncommitted: whether the reader of membership passes open transactions.
        clock_ms: the wall clock.

    Raises:
        UsageError: no checkpoint can be where the options say.
    """

    def __init__(
        self, directory: Path, checkpoint: str | None, *, reads_uncommitted: bool, clock_ms: Callable[[], int]
    ) -> None:
        self.directory = directory
        self.location = Location.of(directory, checkpoint)
        self.tombstone_retention_ms = DEFAULT_TOMBSTONE_RETENTION_MS
        self.rebuilds = 0
        """How often the log was read again because tombstones may have been missed."""
        self._is_own = checkpoint is None
        self._files: CheckpointFiles | None = None if self.location.local is None else LocalFiles(self.location.local)
        self._reads_uncommitted = reads_uncommitted
        self._clock_ms = clock_ms
        self._identity: Identity | None = None
        self._held: Mapping[str, Any] | None = None
        self._says_whose = False
        self._lease: Lease | None = None
        self._former: Resume | None = None
        self._told_before: Offsets = {}
        self._follower: ResumeWriter | None = None
        self._unread_seconds = 0.0
        self._is_writable = True

    @property
    def is_reached(self) -> bool:
        """Whether the checkpoint's files can be looked at: on another machine they are once there is a JVM."""
        return self._files is not None

    def reach(self, spark: SparkSession) -> None:
        """Have the checkpoint's files at hand, and Spark find them, whatever they are called. Raises UsageError."""
        try:
            if self._files is None:
                self._files = HadoopFiles(spark, self.location)
            self.location.mount(spark)
        except (OSError, PySparkException, Py4JError) as error:
            raise UsageError(
                f"{self._found}, which Hadoop does not know ({first_line(error)}), accepted: a file system Spark knows"
            ) from error

    def claim(self, identity: Identity, *, rebuild: bool) -> None:
        """See that it is this identity's; with `rebuild` note that what is in it is to be forgotten.

        Raises:
            UsageError: it is not, or cannot be written.
        """

        def forget(held: Mapping[str, Any] | None) -> None:
            former = resume_file.load(self.directory)
            is_same_log = held is not None and may_be_one_topic(held.get("topic_id"), identity.topic_id)
            self._note_to_forget(former.all_told() if former is not None and is_same_log else {})

        self._held = claim(self.directory, identity, forget if rebuild else None)
        self._identity = identity

    def hold(self, directory_id: str, *, wait: bool = False, look: Callable[[], object] = lambda: None) -> None:
        """Take the lease on the checkpoint, once its files are reached; see `Lease.take`.

        Raises:
            UsageError: another monitor has it, or it cannot be read or written.
            CannotTellError: the same of a place on another machine, which may be back soon.
        """
        if self._lease is not None:
            return
        owner = OWNER_BESIDE if self._is_own else owner_of(self.directory, directory_id)
        lease = Lease(self._reached, self._found, owner)
        try:
            lease.take(wait=wait, look=look)
        except OSError as error:
            raise self._unusable(str(error)) from error
        self._lease = lease

    def let_go(self) -> None:
        """Give the lease back."""
        if self._lease is not None:
            self._lease.release()

    def refuse_lost(self) -> None:
        """See that no other monitor has taken the checkpoint over. Raises UsageError."""
        if self._lease is not None:
            self._lease.refuse_lost()

    def examine(self) -> None:
        """See that the checkpoint is this identity's, and whole as far as that shows; or forget it, if it is to go.

        Raises:
            UsageError: it is not, or cannot be written.
        """
        self._use_hidden()
        former = resume_file.load(self.directory)
        if former is not None and former.is_to_go:
            self._forget(former.all_told())
            return
        with self._whole():
            mark = self.mark()
        if former is not None and former.has_batches and not mark.has_state:
            raise self.gone()
        if mark.has_state:
            self._refuse_anothers()
            self.positions()  # before Spark starts, which takes seconds
            self.settle()
        if former is not None and not former.is_of(*mark):
            _log.warning(
                "state_rebuilt",
                reason="the checkpoint is not the one that the former run left",
                found=mark._asdict(),
                left={"query_id": former.query_id, "batch": former.batch},
            )
            self._forget(former.all_told())
            self.rebuilds += 1
            return
        self._former = former
        if self._former is None and mark.has_state:
            # What says so is lost, or an earlier release left none.
            with self._whole():
                read_ms = contents.read_to_end_ms(self._reached)
            self._former = Resume(read_ms=read_ms, seen_ms=read_ms, has_batches=True)

    def settle(self) -> None:
        """Have Spark find the checkpoint's own files, should it have been moved. Raises UsageError."""
        with self._whole():
            contents.settle(self._reached, self._root)

    @property
    def _reached(self) -> CheckpointFiles:
        assert self._files is not None  # noqa: S101 - reached first of all
        return self._files

    @property
    def _root(self) -> str:
        """The checkpoint's place as Spark notes it."""
        return self._reached.root if self.location.is_plain else self.location.for_spark

    @property
    def _found(self) -> str:
        place = str(self.directory) if self._is_own else self.location.name
        return f"{self.location.option}: found {place!r}"

    def _unusable(self, reason: str) -> MonitorError:
        """What to say of a checkpoint that cannot be read or written: one on another machine may be back soon."""
        kind = CannotTellError if self.location.local is None else UsageError
        return kind(f"{self._found}, which cannot be used ({reason}), accepted: a place to read and write")

    def gone(self) -> UsageError:
        """What to say where there is no checkpoint, and there was one."""
        return damaged(self.directory, "its checkpoint is gone")

    def _use_hidden(self) -> None:
        hidden = hidden_beside(self.directory) if self._is_own else None
        if hidden is None or self._identity is None or self.location.local is None:
            return
        found = Hidden(self.directory, hidden, self._held, self._identity)
        try:
            former = resume_file.load(self.directory)
            if former is not None and former.is_to_go:
                found.remove()
                return
            is_gone = former is not None and former.has_batches and not self.mark().has_state
            with nullcontext() if self._lease is None else self._lease.aside():
                found.use(self.location.local, own_is_gone=is_gone)
        except OSError as error:
            raise self._unusable(str(error)) from error

    def _refuse_anothers(self) -> None:
        """See that the checkpoint is of what is read: it says so itself, unless an earlier release made it."""
        assert self._identity is not None  # noqa: S101 - claimed first of all
        try:
            text = self._reached.text(CHECKPOINT_IDENTITY_FILE)
        except FileNotFoundError:
            if self._held is None:
                raise damaged(
                    self.directory, f"{IDENTITY_FILE} is gone, and its checkpoint does not say whose it is"
                ) from None
            former = resume_file.load(self.directory)
            if former is not None and former.query_id is not None:
                # Of a run that wrote it.
                raise damaged(self.directory, "its checkpoint does not say whose it is") from None
            return
        except OSError as error:
            raise self._unusable(str(error)) from error
        refuse_anothers(self.location.option, self.location.name, text, self._identity)

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
        return self.mark().has_state

    def mark(self) -> Mark:
        """How far the checkpoint is. Raises UsageError."""
        with self._whole():
            return contents.mark(self._reached)

    def positions(self) -> tuple[PartitionOffsets, ...]:
        """Next offsets of commits and of membership. Raises UsageError."""
        with self._whole():
            return contents.committed_positions(self._reached, contents.mark(self._reached).batch)

    def rows(self, spark: SparkSession, batch: int | None = None) -> Iterator[Row]:
        """What once filled the board, as of a finished micro-batch, by default the last. Raises UsageError."""
        with self._whole():
            yield from contents.stored_rows(spark, self.location.for_spark, batch)

    @property
    def is_unread_for_long(self) -> bool:
        """Whether what was written since the log was last read may lack tombstones."""
        former = self._resumed
        return former is not None and former.unread_too_long(self._clock_ms(), self.tombstone_retention_ms)

    @property
    def _resumed(self) -> Resume | None:
        """How far the log is read, or was by the run before; None where there was none."""
        return self._former if self._follower is None else self._follower.resume

    def rebuild_if_outlived(self, log_end: Offsets, last_stable: Offsets, positions: Positions) -> bool:
        """Forget the state where what is unread may lack tombstones; returns whether it did."""
        former = self._resumed
        now_ms, retention_ms = self._clock_ms(), self.tombstone_retention_ms
        if former is None or not self.is_unread_for_long:
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
        former = self._resumed
        now = Resume.begun(now_ms, log_end, self._told_before) if former is None else former.going_on(now_ms, log_end)
        self._told_before = now.told_before
        self._unread_seconds = 0.0 if former is None else max(0, now_ms - former.seen_ms) / 1_000
        self._follower = ResumeWriter(self.directory, now, reads_uncommitted=self._reads_uncommitted)
        with self._noting_when_full():
            self._follower.save()
            self._say_whose()
        return now.live_from

    def finished_batch(self, query_id: str | None, batch: int) -> None:
        """A micro-batch of a checkpoint is finished."""
        if self._follower is not None:
            with self._noting_when_full():
                self._say_whose()
                self._follower.finished_batch(self._clock_ms(), query_id, batch)

    def follow(self, sampled_ms: int | None, ends: Mapping[int, PartitionEnds], positions: Positions) -> None:
        """Keep in mind up to when the log has been read."""
        if self._follower is not None:
            with self._noting_when_full():
                self._follower.follow(self._clock_ms(), sampled_ms, ends, positions)

    def _say_whose(self) -> None:
        """Have the checkpoint say what it is of. Raises OSError."""
        if self._says_whose or self._identity is None or self._files is None:
            return
        text, found = as_text(self._identity), ""
        with suppress(FileNotFoundError):
            found = self._files.text(CHECKPOINT_IDENTITY_FILE)
        if found != text:
            self._files.write(CHECKPOINT_IDENTITY_FILE, text)
        self._says_whose = True

    def _note_to_forget(self, told: Offsets) -> None:
        resume_file.save(self.directory, replace(Resume.begun(self._clock_ms(), {}, told), is_to_go=True))

    def _forget(self, told: Offsets) -> None:
        # Said before it is done: should this end in between, the next run does it.
        self._note_to_forget(told)
        try:
            self._reached.forget()
        except OSError as error:
            raise self._unusable(str(error)) from error
        if self._lease is not None:
            self._lease.renew()
        self._former = self._follower = None
        self._told_before, self._says_whose = told, False

    @contextmanager
    def _whole(self) -> Iterator[None]:
        try:
            yield
        except MonitorError:
            raise
        except (OSError, PySparkException, Py4JError) as error:
            if descriptors.none_left(error):
                raise CannotTellError(f"{self._found}, which cannot be read now ({first_line(error)})") from error
            if is_no_answer(error):
                raise
            if (
                not isinstance(error, OSError)
                or isinstance(error, FileNotFoundError)
                or self.location.local is not None
            ):
                raise damaged(self.directory, first_line(error)) from error
            raise self._unusable(first_line(error)) from error
        except SnapshotFormatError as error:
            found = f"found {self.location.name!r} with a {error}"
            raise UsageError(f"state.dir: {found}; accepted: {REMEDY['snapshot_format']}") from error
        except (ValueError, LookupError, TypeError, AttributeError) as error:
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
