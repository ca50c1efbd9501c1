"""What was reported and has not been passed on: on disk, in order, until every reader has taken it.

Between the stream, which must go on, and what stands behind it (a Kafka topic, a history), which may be slow or gone.
Entries are lines of JSON in files that are only ever appended to (`queue_files.py`):

    00000000000000000000.ndjson     a segment, called after the position of its first entry
        {"format":"spool/1","batches":{SOURCE:LAST BATCH},"told":[ID,…]}
        {"first":0,"entries":2,"time":ms,"source":SOURCE,"batch":n or null,"bytes":n,"crc":n}
        {"kind":"event","event":EVENT}
        {"kind":"group","group":NAME,"time":ms,"state":GROUP}
        {"kind":"group_deleted","group":NAME,"time":ms}
    READER.json                     {"next":position}: what comes next for a reader

A batch whose append a crash interrupted is not in it, and is repeated. Readers take entries at least once, so what
they pass on carries a stable id, or is absolute.

**At the bound.** Two rules keep the disk from filling up while a reader is gone, and the stream from waiting for it:

1. From half of the bound on there is no room for states of groups (`has_room_for_states`): their writer keeps
   in mind which it owes, and offers their newest state once there is room. Events still go in.
2. At the bound the oldest segment goes, taken or not. What a reader had not taken is lost to it: counted
   (`Waiting.dropped`) and logged as an error.
"""

import json
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

from streaming.base.atomic_files import replace
from streaming.base.errors import MonitorError, UsageError
from streaming.base.logging_setup import get_logger
from streaming.base.times import now_ms
from streaming.sinks.queue_files import DamagedError, FrameHeader, Segment, line

DEFAULT_MAX_BYTES: Final = 256 * 1024 * 1024
READ_BYTES: Final = 8 * 1024 * 1024
"""What is read at once at most, as text: the state of one group may be a megabyte."""
REMEMBERED_IDS: Final = 1_000
"""Of events reported outside of batches, so many of the latest are known again."""

_SEGMENTS: Final = 16
"""The bound in segments: a sixteenth goes at once when it is reached."""

_log = get_logger("spool")


class SpoolError(MonitorError):
    """The spool cannot be written: what was to be appended is not in it."""


class Spooled(NamedTuple):
    """An entry and its position; positions are counted from 0 and never given again."""

    position: int
    entry: Mapping[str, Any]


class Waiting(NamedTuple):
    """What a reader has yet to take: how many, when the oldest was appended (ms), how many it lost since the start."""

    entries: int
    oldest_ms: int | None
    dropped: int


@dataclass(slots=True)
class _Cursor:
    """Where a reader is: its next position, and the frame it is in."""

    position: int
    segment: int
    """First position of the segment."""
    offset: int = 0
    dropped: int = 0


class Spool:
    """A spool in a directory, which it makes; safe to use from several threads of one process.

    Args:
        directory: where its files are.
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
        self._segments: list[Segment] = []
        self._batches: dict[str, int] = {}
        self._reported: OrderedDict[str, None] = OrderedDict()
        self._last_ms: int | None = None
        try:
            directory.mkdir(parents=True, exist_ok=True)
            self._recover()
            self._cursors = {reader: self._cursor(reader) for reader in readers}
            self._discard_taken()
        except (OSError, ValueError, KeyError) as error:
            raise UsageError(
                f"state.dir: found {str(directory)!r}: {error}, accepted: a writable directory, as this release left "
                "it; moved away, what it holds is not passed on"
            ) from error

    # --- writing ---

    @property
    def last_ms(self) -> int | None:
        """When something was last appended; None where it is not known."""
        return self._last_ms

    @property
    def has_room_for_states(self) -> bool:
        """Whether states of groups may be appended (rule 1)."""
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
        with self._lock:
            if batch_id is not None and batch_id <= self._batches.get(source, -1):
                return 0
            taken = [entry for entry in entries if batch_id is not None or not self._is_reported(entry)]
            if not taken:
                return 0
            now_ms = self._clock_ms()
            try:
                self._make_room()
                header = {
                    "first": self._segments[-1].end,
                    "entries": len(taken),
                    "time": now_ms,
                    "source": source,
                    "batch": batch_id,
                }
                self._segments[-1].append(header, b"".join(map(line, taken)))
            except OSError as error:
                raise SpoolError(self._unwritable(error)) from error
            self._note(header, taken)
            return len(taken)

    # --- reading ---

    def read(self, reader: str, limit: int) -> list[Spooled]:
        """The next entries that a reader has not acknowledged, the same again until it does.

        At most `limit`, and no more than `READ_BYTES` unless a single one has more.
        """
        with self._lock:
            cursor = self._cursors[reader]
            found: list[Spooled] = []
            size = 0
            for segment in self._from(cursor):
                for _, header, file in segment.frames(cursor.offset if segment.first == cursor.segment else 0):
                    for position in range(header["first"], header["first"] + header["entries"]):
                        text = file.readline()
                        if position < cursor.position:
                            continue
                        size += len(text)
                        if len(found) == limit or (found and size > READ_BYTES):
                            return found
                        found.append(Spooled(position, json.loads(text)))
            return found

    def acknowledge(self, reader: str, position: int) -> None:
        """Say that a reader has passed on all up to and including a position. What all have taken goes.

        Raises:
            SpoolError: it cannot be noted; a restart will give the reader the same again.
        """
        with self._lock:
            cursor = self._cursors[reader]
            if position < cursor.position:
                return
            self._move(cursor, position + 1)
            try:
                noted = line({"next": cursor.position}).decode("ascii")
                replace(self._directory / f"{reader}.json", noted, durable=True)
                self._discard_taken()
            except OSError as error:
                raise SpoolError(self._unwritable(error)) from error

    def waiting(self, reader: str) -> Waiting:
        """What a reader has yet to take."""
        with self._lock:
            cursor = self._cursors[reader]
            count = self._segments[-1].end - cursor.position
            return Waiting(count, self._oldest_ms(cursor) if count else None, cursor.dropped)

    # --- segments ---

    def _recover(self) -> None:
        paths = sorted(self._directory.glob("[0-9]*.ndjson"))
        for path in paths:
            try:
                segment, head = Segment.read_head(path)
                self._batches.update(head["batches"])
                self._reported.update(dict.fromkeys(head["told"]))
                self._segments.append(segment)
                for header, body in segment.recovered():
                    self._note(header, () if header["batch"] is not None else map(json.loads, body.splitlines()))
            except DamagedError as error:
                # What is not the last of all was on the disk once: its loss must not pass unnoticed.
                if path != paths[-1]:
                    raise
                _log.warning("spool_cut_off", reason=str(error))
        if not self._segments or self._segments[-1].path != paths[-1]:
            self._begin(int(paths[-1].stem) if paths else 0)

    def _begin(self, first: int) -> None:
        head = {"batches": self._batches, "told": list(self._reported)}
        self._segments.append(Segment.begin(self._directory, first, head))

    def _size(self) -> int:
        return sum(segment.size for segment in self._segments)

    def _make_room(self) -> None:
        """Begin another segment where this one is long enough; let the oldest go at the bound (rule 2)."""
        last = self._segments[-1]
        if last.size >= self._max_bytes // _SEGMENTS and last.end > last.first:
            self._begin(last.end)
        while len(self._segments) > 1 and self._size() >= self._max_bytes:
            kept_from = self._segments[1].first
            for reader, cursor in self._cursors.items():
                lost = kept_from - cursor.position
                if lost > 0:
                    cursor.dropped += lost
                    self._move(cursor, kept_from)
                    _log.error("spool_full", reader=reader, lost=lost, max_bytes=self._max_bytes)
            self._segments.pop(0).path.unlink()

    def _discard_taken(self) -> None:
        """Let go of the segments that everybody has taken; the last one stays, for what it remembers."""
        taken = min((cursor.position for cursor in self._cursors.values()), default=0)
        while len(self._segments) > 1 and self._segments[1].first <= taken:
            self._segments.pop(0).path.unlink()

    # --- readers ---

    def _from(self, cursor: _Cursor) -> Iterable[Segment]:
        return [segment for segment in self._segments if segment.first >= cursor.segment]

    def _cursor(self, reader: str) -> _Cursor:
        path = self._directory / f"{reader}.json"
        first = self._segments[0].first
        cursor = _Cursor(first, first)
        if path.exists():
            self._move(cursor, max(int(json.loads(path.read_text("utf-8"))["next"]), first))
        return cursor

    def _move(self, cursor: _Cursor, position: int) -> None:
        """Find the frame of a position not before the cursor's, and not after the end."""
        cursor.position = min(position, self._segments[-1].end)
        segment = next(each for each in reversed(self._segments) if each.first <= cursor.position)
        start = cursor.offset if segment.first == cursor.segment else 0
        cursor.segment, cursor.offset = segment.first, segment.size
        for offset, header, _ in segment.frames(start):
            if header["first"] + header["entries"] > cursor.position:
                cursor.offset = offset
                return

    def _oldest_ms(self, cursor: _Cursor) -> int | None:
        for segment in self._from(cursor):
            for _, header, _ in segment.frames(cursor.offset if segment.first == cursor.segment else 0):
                return int(header["time"])
        return None

    # --- repeats ---

    def _note(self, header: FrameHeader, entries: Iterable[Mapping[str, Any]]) -> None:
        """Remember what would be a repeat of this frame."""
        self._last_ms = header["time"]
        if header["batch"] is not None:
            self._batches[header["source"]] = header["batch"]
            return
        self._reported.update((entry["event"]["id"], None) for entry in entries if "event" in entry)
        while len(self._reported) > REMEMBERED_IDS:
            self._reported.popitem(last=False)

    def _is_reported(self, entry: Mapping[str, Any]) -> bool:
        return "event" in entry and entry["event"]["id"] in self._reported

    def _unwritable(self, error: OSError) -> str:
        found = f"found {str(self._directory)!r}, which cannot be written ({error.strerror or error})"
        return f"state.dir: {found}, accepted: a writable directory on a disk with room"
