"""What was reported and has not been passed on: on disk, in order, until every reader has taken it.

Between the stream, which must go on, and what stands behind it (a Kafka topic, a history), which may be slow or gone.
It is an SQLite file, whose entries are JSON:

    {"kind":"event","event":EVENT}
    {"kind":"group","group":NAME,"time":ms,"state":GROUP}
    {"kind":"group_deleted","group":NAME,"time":ms}

A batch whose append a crash interrupted is not in it, and is repeated. Readers take entries at least once, so what
they pass on carries a stable id, or is absolute.

**At the bound.** Two rules keep the disk from filling up while a reader is gone, and the stream from waiting for it:

1. From half of the bound on there is no room for states of groups (`has_room_for_states`): their writer keeps
   in mind which it owes, and offers their newest state once there is room. Events still go in.
2. At the bound the oldest sixteenth goes, taken or not. What a reader had not taken is lost to it: counted
   (`Waiting.dropped`) and logged as an error.
"""

import json
import sqlite3
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

from streaming.base import sqlite_file
from streaming.base.errors import MonitorError, UsageError
from streaming.base.logging_setup import get_logger
from streaming.base.times import now_ms
from streaming.sinks import old_queue

FILE: Final = "queue.db"
FORMAT: Final = "spool/2"
DEFAULT_MAX_BYTES: Final = 256 * 1024 * 1024
READ_BYTES: Final = 8 * 1024 * 1024
"""What is read at once at most, as text: the state of one group may be a megabyte."""
REMEMBERED_IDS: Final = 1_000
"""Of events reported outside of batches, so many of the latest are known again."""

_TABLES: Final = """
    CREATE TABLE IF NOT EXISTS entry (position INTEGER PRIMARY KEY AUTOINCREMENT, time INTEGER, text TEXT);
    CREATE TABLE IF NOT EXISTS source (name TEXT PRIMARY KEY, batch INTEGER, time INTEGER);
    CREATE TABLE IF NOT EXISTS reported (number INTEGER PRIMARY KEY, id TEXT UNIQUE);
    CREATE TABLE IF NOT EXISTS reader (name TEXT PRIMARY KEY, taken INTEGER)
"""
_SIZE: Final = """SELECT (page_count - freelist_count) * page_size
    FROM pragma_page_count, pragma_freelist_count, pragma_page_size"""
_ENDS: Final = "SELECT (SELECT min(position) FROM entry), (SELECT max(position) FROM entry)"
_WAITING: Final = """SELECT (SELECT max(position) FROM entry) - position + 1, time
    FROM entry WHERE position > ? ORDER BY position LIMIT 1"""

_log = get_logger("spool")


class SpoolError(MonitorError):
    """The spool cannot be written: what was to be appended is not in it."""


class Spooled(NamedTuple):
    """An entry and its position; positions are counted from 1 and never given again."""

    position: int
    entry: Mapping[str, Any]


class Waiting(NamedTuple):
    """What a reader has yet to take: how many, when the oldest was appended (ms), how many it lost since the start."""

    entries: int
    oldest_ms: int | None
    dropped: int


class Spool:
    """A spool in a directory, which it makes; safe to use from several threads of one process.

    Args:
        directory: where its file is.
        readers: who must take an entry before it goes; one that was not here before begins with the oldest there is.
        max_bytes: the bound.
        clock_ms: the wall clock.

    Raises:
        UsageError: the directory cannot be used, or a file in it is damaged.
    """

    def __init__(
        self,
        directory: Path,
        readers: Sequence[str],
        *,
        max_bytes: int = DEFAULT_MAX_BYTES,
        clock_ms: Callable[[], int] = now_ms,
    ) -> None:
        self._directory = directory
        self._max_bytes = max_bytes
        self._clock_ms = clock_ms
        self._lock = threading.Lock()
        self._dropped = Counter[str]()
        try:
            directory.mkdir(parents=True, exist_ok=True)
            self._database = sqlite_file.opened(directory / FILE, FORMAT, _TABLES, durable=True)
            self._execute = self._database.execute
            self._take_over()
            taken = dict(self._execute("SELECT name, taken FROM reader"))
            self._taken: dict[str, int] = {reader: taken.get(reader, 0) for reader in readers}
            self._discard_taken()
        except (OSError, ValueError, KeyError, sqlite3.Error) as error:
            raise UsageError(
                f"state.dir: found {str(directory)!r}: {error}, accepted: a writable directory, as this release left "
                "it; moved away, what it holds is not passed on"
            ) from error

    def close(self) -> None:
        """Let go of the file, for another process."""
        with self._lock:
            self._database.close()

    # --- writing ---

    @property
    def last_ms(self) -> int | None:
        """When something was last appended; None where it is not known."""
        with self._lock:
            (last_ms,) = self._execute("SELECT max(time) FROM source").fetchone()
        return None if last_ms is None else int(last_ms)

    @property
    def has_room_for_states(self) -> bool:
        """Whether states of groups may be appended (rule 1)."""
        with self._lock:
            return self._size() < self._max_bytes // 2

    def append(self, source: str, batch_id: int | None, entries: Iterable[Mapping[str, Any]]) -> int:
        """Take entries, all or none; they are on the disk when this returns, and says how many were new.

        Args:
            source: whose numbers batch ids are. One not above the source's last is a repeat, and changes nothing.
            batch_id: None for what no batch brought: of it, events whose `id` was appended before are left out.
            entries: what JSON can hold, each with its `kind`.

        Raises:
            SpoolError: the disk is full or cannot be written; nothing was taken, and it may be tried again.
        """
        with self._writing():
            self._make_room()
            return self._insert(source, batch_id, entries, self._clock_ms())

    # --- reading ---

    def read(self, reader: str, limit: int) -> list[Spooled]:
        """The next entries that a reader has not acknowledged, the same again until it does.

        At most `limit`, and no more than `READ_BYTES` unless a single one has more. One that the disk has damaged is
        lost, and counted.
        """
        found: list[Spooled] = []
        size = 0
        with self._lock:
            rows = "SELECT position, CAST(text AS BLOB) FROM entry WHERE position > ? ORDER BY position LIMIT ?"
            for position, text in self._execute(rows, (self._taken[reader], limit)).fetchall():
                size += len(text)
                if found and size > READ_BYTES:
                    break
                try:
                    found.append(Spooled(position, json.loads(text)))
                except ValueError:
                    self._lose(position)
        return found

    def acknowledge(self, reader: str, position: int) -> None:
        """Say that a reader has passed on all up to and including a position. What all have taken goes.

        Raises:
            SpoolError: it cannot be noted; a restart will give the reader the same again.
        """
        with self._writing():
            self._taken[reader] = max(self._taken[reader], position)
            self._discard_taken()

    def waiting(self, reader: str) -> Waiting:
        """What a reader has yet to take."""
        with self._lock:
            row = self._execute(_WAITING, (self._taken[reader],)).fetchone() or (0, None)
            return Waiting(row[0], row[1], self._dropped[reader])

    # --- entries ---

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            with self._lock, self._database:
                yield
        except sqlite3.Error as error:
            raise SpoolError(
                f"state.dir: found {str(self._directory)!r}, which cannot be written ({error}), accepted: a writable "
                "directory on a disk with room"
            ) from error

    def _insert(self, source: str, batch_id: int | None, entries: Iterable[Mapping[str, Any]], time_ms: int) -> int:
        if self._execute("SELECT 1 FROM source WHERE name = ? AND batch >= ?", (source, batch_id)).fetchone():
            return 0
        new = [of for of in entries if batch_id is not None or "event" not in of or self._is_new(of["event"]["id"])]
        if new:
            rows = ((time_ms, json.dumps(entry, separators=(",", ":"))) for entry in new)
            self._database.executemany("INSERT INTO entry (time, text) VALUES (?, ?)", rows)
            self._execute("INSERT OR REPLACE INTO source VALUES (?, ?, ?)", (source, batch_id, time_ms))
        return len(new)

    def _is_new(self, event_id: str) -> bool:
        """Whether it was not appended before; from now on it was. It is kept as JSON: a name may be no UTF-8."""
        self._execute("DELETE FROM reported WHERE number <= (SELECT max(number) FROM reported) - ?", (REMEMBERED_IDS,))
        return self._execute("INSERT OR IGNORE INTO reported (id) VALUES (?)", (json.dumps(event_id),)).rowcount > 0

    def _size(self) -> int:
        return int(self._execute(_SIZE).fetchone()[0])

    def _make_room(self) -> None:
        """Let the oldest go at the bound (rule 2)."""
        while self._size() >= self._max_bytes:
            oldest, last = self._execute(_ENDS).fetchone()
            if oldest is None:
                return
            kept_from = oldest + (last - oldest) // 16 + 1
            with self._database:
                self._execute("DELETE FROM entry WHERE position < ?", (kept_from,))
            for reader, taken in self._taken.items():
                lost = kept_from - max(taken + 1, oldest)
                if lost > 0:
                    self._dropped[reader] += lost
                    _log.error("spool_full", reader=reader, lost=lost, max_bytes=self._max_bytes)

    def _lose(self, position: int) -> None:
        """Let go of an entry that cannot be read: who has yet to take it never will."""
        with self._database:
            self._execute("DELETE FROM entry WHERE position = ?", (position,))
        readers = [reader for reader, taken in self._taken.items() if taken < position]
        self._dropped.update(readers)
        _log.error("spool_damaged", readers=readers, position=position)

    def _discard_taken(self) -> None:
        """Note how far readers are, and let go of what all have taken."""
        with self._database:
            self._database.executemany("INSERT OR REPLACE INTO reader VALUES (?, ?)", self._taken.items())
            self._execute("DELETE FROM entry WHERE position <= ?", (min(self._taken.values(), default=0),))

    def _take_over(self) -> None:
        """Append what files of a former release hold. After a crash it is done again, and its batches are repeats."""
        segments = sorted(self._directory.glob("[0-9]*.ndjson"))
        if not segments:
            return
        readers = sorted(self._directory.glob("*.json"))
        with self._database:
            (end,) = self._execute("SELECT coalesce(max(seq), 0) FROM sqlite_sequence").fetchone()
            for path in segments:
                try:
                    for header, entries in old_queue.frames(path):
                        self._insert_old(header, entries)
                except ValueError as error:
                    # What is not the last of all was on the disk once: its loss must not pass unnoticed.
                    if path != segments[-1]:
                        raise
                    _log.warning("spool_cut_off", file=str(path), reason=str(error))
            for path in readers:
                taken = end + json.loads(path.read_text("utf-8"))["next"] - int(segments[0].stem)
                known = "INSERT OR IGNORE INTO reader SELECT ?, min(?, seq) FROM sqlite_sequence"
                self._execute(known, (path.stem, taken))
        for path in (*segments, *readers):
            path.unlink()

    def _insert_old(self, header: Mapping[str, Any], entries: Iterable[Mapping[str, Any]]) -> None:
        if "format" not in header:
            self._insert(header["source"], header["batch"], entries, header["time"])
            return
        self._database.executemany("INSERT OR IGNORE INTO source VALUES (?, ?, 0)", header["batches"].items())
        for event_id in header["told"]:
            self._is_new(event_id)
