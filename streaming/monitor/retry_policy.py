"""Why a query ended, and what is done about it: most of it passes, and is waited for.

    the query failed, and …                            what is done
    the log was cut off or recreated                   the end, with `run --rebuild` as the way out
    the checkpoint is damaged                          as above
    another monitor writes to the checkpoint           the end, with what helps
    the disk of the checkpoint is full                 tried again without end; reported once, and when it is over
    brokers cannot be reached                          as above; after five seconds at most
    Java may not load program code from where it is    the end, with what helps
    none of these (a slow machine: Spark waits 10 s    as the disk; reported again when the reason is another
    for its Python, and has no option for it)

The board keeps showing what was meanwhile, and how far behind it is.
"""

import re
import shutil
from pathlib import Path
from typing import Final

from streaming.base.errors import CannotTellError, MonitorError, UsageError, first_line
from streaming.base.logging_setup import get_logger
from streaming.checkpoint import identity
from streaming.config.loading import Config
from streaming.kafka import preflight
from streaming.kafka.range_reader import LOG_LOST
from streaming.spark import native_code

RETRY_DELAYS_SECONDS: Final = (1, 2, 5, 10, 30, 60)
"""Waits before the query is started again; the last one repeats. A finished micro-batch starts over with the first."""

LONGEST_FOR_BROKERS_SECONDS: Final = 5
"""The same while brokers cannot be reached: they are asked where the log ends before anything is started, which is
cheap, and once they are back everybody waits for the monitor."""

DISK_FULL: Final = ("No space left on device", "Disk quota exceeded")
"""What the system says when nothing more can be written."""

ROOM_BYTES: Final = 1 << 20
"""A disk with less is full: what fails on it need not say so, such as a start that could not make a socket."""

DAMAGED: Final = (
    "Malformed log file",
    "Incomplete log file",
    "CANNOT_LOAD_STATE_STORE",
    "CHECKPOINT_FILE_CHECKSUM_VERIFICATION_FAILED",
)
"""What Spark says when the checkpoint is not as it wrote it."""

WRITTEN_BY_ANOTHER: Final = "CONCURRENT_STREAM_LOG_UPDATE"
"""What Spark says when the next entry of the checkpoint is there already, and not of this query."""

_NUMBERS: Final = re.compile(r"\d+")

_log = get_logger("job")


class RetryPolicy:
    """The failures of one monitor's query, each reported once as long as it lasts."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._directory = Path(config.state.dir)
        self._brokers_away = self._disk_full = False
        self._in_a_row = self._unknown = 0
        self._reported = ""
        self._why: str | None = None

    def why(self) -> str | None:
        """Why the query ended last; None once a micro-batch was finished after that."""
        return self._why

    def pause_seconds(self, error: Exception, *, got_on: bool) -> int:
        """Take a failure; returns how long to wait before the query is started again.

        Args:
            error: why it ended.
            got_on: whether a micro-batch was finished since the last failure.

        Raises:
            MonitorError: there is no use in that.
        """
        self._in_a_row = 0 if got_on else self._in_a_row + 1
        self._why = first_line(error)
        longest_seconds = self._tell(error)
        return min(RETRY_DELAYS_SECONDS[min(self._in_a_row, len(RETRY_DELAYS_SECONDS) - 1)], longest_seconds)

    def finished_batch(self) -> None:
        """All is well again."""
        self._why = None
        if self._unknown:
            _log.info("query_runs_again", failures=self._unknown)
            self._unknown = 0
        if self._brokers_away:
            self._brokers_away = False
            _log.info("brokers_reachable_again")
        if self._disk_full:
            self._disk_full = False
            _log.info("disk_has_room_again")

    def _checkpoint(self) -> str:
        place = self._config.state.checkpoint_location
        option, found = ("state.dir", str(self._directory)) if place is None else ("state.checkpoint_location", place)
        return f"{option}: found {found!r}"

    def _tell(self, error: Exception) -> int:
        """Log it, unless it was; returns how long to wait at most."""
        text = str(error)
        if LOG_LOST in text:
            raise MonitorError(
                f"state.dir: found {str(self._directory)!r} of a log that was cut off or recreated "
                f"({_lost(text)}), accepted: another state.dir, or {identity.REBUILD}"
            ) from error
        if any(sign in text for sign in DISK_FULL) or _is_full(self._directory):
            if not self._disk_full:
                _log.warning("disk_full", directory=str(self._directory), reason=first_line(error))
            self._disk_full = True
            return RETRY_DELAYS_SECONDS[-1]
        if any(sign in text for sign in DAMAGED):
            raise identity.damaged(self._directory, first_line(error)) from error
        if WRITTEN_BY_ANOTHER in text:
            raise UsageError(
                f"{self._checkpoint()} written to by another monitor as well ({WRITTEN_BY_ANOTHER}), accepted: a "
                "checkpoint of its own for each, or --standby"
            ) from error
        if native_code.is_refused(text):
            raise CannotTellError(native_code.refusal(self._config.spark.conf, native_code.why(text))) from error
        try:
            preflight.preflight(self._config)
        except MonitorError as unreachable:
            self._why = str(unreachable)
            if not self._brokers_away:
                _log.warning("brokers_unreachable", reason=str(unreachable))
            self._brokers_away = True
            return LONGEST_FOR_BROKERS_SECONDS
        # The same one says other numbers each time: of objects of the JVM, of batches.
        reason = _NUMBERS.sub("0", first_line(error))
        if not self._unknown or reason != self._reported:
            _log.warning("query_failed", reason=first_line(error))
        self._unknown, self._reported = self._unknown + 1, reason
        return RETRY_DELAYS_SECONDS[-1]


def _is_full(directory: Path) -> bool:
    try:
        return shutil.disk_usage(directory).free < ROOM_BYTES
    except OSError:
        return False


def _lost(text: str) -> str:
    """Of the traces of two languages, what is lost."""
    line = next(line for line in text.splitlines() if LOG_LOST in line)
    return line[line.index(LOG_LOST) :]
