"""From the spool into the history: entries are written at once, and the files kept in order.

A second thread looks after the files: it merges small ones, removes old ones, and once a day writes the states of all
groups. So every day can be asked without the days before it, and these can go.
"""

import itertools
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from streaming.base.logging_setup import get_logger
from streaming.base.threads import Repeating
from streaming.board.board import Board
from streaming.config.kafka_sections import KafkaSection
from streaming.config.output_sections import HistorySection
from streaming.history.log_archive import RecordKeeper
from streaming.history.store import HistoryStore, Retention
from streaming.history.tables import day_text, rows
from streaming.sinks.outputs import Sink, SpoolReader
from streaming.sinks.queue import Spooled

READER: Final = "history"
LOOK_EVERY_SECONDS: Final = 5.0
MEASURE_EVERY_SECONDS: Final = 60.0
GROUPS_AT_ONCE: Final = 500
"""Of the daily states; a batch of the stream may come in between."""
_SEQUENCES_A_MS: Final = 1_000

_log = get_logger("history")


class HistoryWriter:
    """Writes one history.

    Args:
        directory: where to.
        settings: how much is kept.
        board: holds the groups.
        clock_ms: the wall clock.
        kafka: where the log is, for its records; without it none are kept.
    """

    def __init__(
        self,
        directory: Path,
        settings: HistorySection,
        board: Board,
        clock_ms: Callable[[], int],
        *,
        kafka: KafkaSection | None = None,
    ) -> None:
        self._store = HistoryStore(directory, clock_ms)
        self._retention = Retention(settings.retain_days, settings.max_bytes)
        self._pause_seconds = settings.interval_ms / 1_000
        self._board = board
        self._clock_ms = clock_ms
        self._lock = threading.Lock()
        self._sequence = 0
        self._complete_day = ""
        self._failure: str | None = None
        self._measured: tuple[float, int] | None = None
        self._keepers = [] if kafka is None else [RecordKeeper(kafka, self._store, clock_ms)]
        self._thread = Repeating("history", LOOK_EVERY_SECONDS, self.keep_in_order)

    def reader(self) -> SpoolReader:
        """Who takes the spool's entries."""
        return SpoolReader(
            name=READER,
            deliver=self.deliver,
            wants_states=True,
            begin=self._begin,
            close=self._end,
            pause_seconds=self._pause_seconds,
        )

    def keepers(self) -> Sequence[Sink]:
        """Who keeps the log's records, if they are to be kept."""
        return self._keepers

    def deliver(self, found: Sequence[Spooled]) -> None:
        """Write entries; they are on the disk when this returns. Raises OSError."""
        self._write(self._named(each.entry) for each in found)

    def keep_in_order(self) -> None:
        """Do what is due: states of all groups, merging, removing. What the disk does not let through waits."""
        try:
            self._write_all_groups()
            self._store.compact()
            gone = self._store.retain(self._retention)
        except OSError as error:
            reason = error.strerror or str(error)
            if self._failure != reason:
                _log.warning("history_not_kept_in_order", directory=str(self._store.directory), reason=reason)
            self._failure = reason
            return
        self._failure = None
        if gone:
            _log.info("history_files_removed", files=len(gone))

    def size_bytes(self) -> int:
        """What the files take on the disk, measured once a minute."""
        now = time.monotonic()
        if self._measured is None or now - self._measured[0] >= MEASURE_EVERY_SECONDS:
            self._measured = (now, self._store.size_bytes())
        return self._measured[1]

    def _begin(self) -> None:
        self._store.clean()
        self._thread.start()

    def _end(self) -> None:
        self._thread.stop()

    def _write_all_groups(self) -> None:
        now_ms = self._clock_ms()
        if not self._board.health.ready()[0] or self._complete_day == day_text(now_ms):
            return
        last_ms = max(self._store.complete_times_ms(), default=None)
        if last_ms is None or day_text(last_ms) != day_text(now_ms):
            names = self._board.ends.topic_names
            held = iter(sorted(self._board.shown.groups.items()))
            while part := list(itertools.islice(held, GROUPS_AT_ONCE)):
                states = ((name, group.group_view(names, now_ms)) for name, group in part)
                self._write({"kind": "group", "group": name, "time": now_ms, "state": of} for name, of in states)
            self._store.set_complete(now_ms)
        self._complete_day = day_text(now_ms)

    def _named(self, entry: Mapping[str, Any]) -> Mapping[str, Any]:
        """With topics by name: who reads the files later has no brokers to ask."""
        return {**entry, "event": self._board.named(entry["event"])} if entry["kind"] == "event" else entry

    def _write(self, entries: Iterable[Any]) -> None:
        with self._lock:
            taken = list(entries)
            first = max(self._sequence + 1, self._clock_ms() * _SEQUENCES_A_MS)
            self._sequence = first + len(taken)
            for table, ordered in rows(enumerate(taken, first)).items():
                self._store.write(table, ordered)
