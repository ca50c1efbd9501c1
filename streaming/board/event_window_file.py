"""The event window on the disk, so that it is there again after a restart: an SQLite file of lines of JSON.

    {"last":n,"batch":n|null,"counts":{GROUP:{KIND:n}},"told":[ID,…],"events":[[n,EVENT],…],"silenced":{GROUP:{KIND:n}}}
    [n,EVENT]               an event that came in after that, by its number
    {"told":ID}             one of those, that no batch brought
    {"batch":n}             the end of a batch
    {"forget":GROUP}        a group that went

When as many events were appended as the window holds, one line takes the place of all. It is a view, not a record:
where it cannot be written the window goes on in memory, and where it cannot be read the window begins empty; both are
logged. A release before 0.2 had the lines in a file of text, which is read once.
"""

import json
import sqlite3
import time
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, cast

from coordinator_model.state.events import INFO
from streaming.base import sqlite_file
from streaming.base.expectations import is_held_back
from streaming.base.logging_setup import get_logger

FORMAT: Final = "event-window/2"
RETRY_SECONDS: Final = 30.0
"""Time between two attempts to write a file that could not be written."""

_TABLES: Final = "CREATE TABLE IF NOT EXISTS line (number INTEGER PRIMARY KEY, text TEXT NOT NULL)"

Event = Mapping[str, Any]
"""EVENT with its `id`."""

_log = get_logger("event_file")


@dataclass(slots=True)
class Remembered:
    """What a window is.

    Attributes:
        events: id → (number, event), the oldest first.
        characters: of their groups' names.
        last: number of the newest event there ever was; they are counted from 1.
        batch: id of the last micro-batch that was taken.
        counts: group → kind → how many events were taken.
        reported: ids of the latest events that no batch brought; `told` in the file.
    """

    events: OrderedDict[str, tuple[int, Event]] = field(default_factory=OrderedDict)
    last: int = 0
    batch: int | None = None
    counts: dict[str, Counter[str]] = field(default_factory=dict)
    reported: OrderedDict[str, None] = field(default_factory=OrderedDict)
    silenced: dict[str, Counter[str]] = field(default_factory=dict)
    """Group → kind → alarms that were held back, because they were expected."""
    characters: int = 0

    @classmethod
    def of(cls, head: Mapping[str, Any]) -> "Remembered":
        """Inverse of `as_json`. Raises ValueError and the like where it is none."""
        counts = {group: Counter(of) for group, of in head["counts"].items()}
        events = OrderedDict((event["id"], (int(number), event)) for number, event in head["events"])
        silenced = {group: Counter(of) for group, of in head.get("silenced", {}).items()}
        reported = OrderedDict.fromkeys(head["told"])
        return cls(events, int(head["last"]), head["batch"], counts, reported, silenced, _characters(events.values()))

    def as_json(self) -> dict[str, Any]:
        """All of it, as the first line of a file."""
        rest = {"last": self.last, "batch": self.batch, "counts": self.counts, "told": list(self.reported)}
        return {**rest, "silenced": self.silenced, "events": list(self.events.values())}

    def add(self, events: Iterable[Event]) -> None:
        """Take events that are new, numbered in their order."""
        new = list(events)
        taken = {event["id"]: (number, event) for number, event in enumerate(new, self.last + 1)}
        self.characters += _characters(of for id_, of in taken.items() if id_ not in self.events)
        self.events.update(taken)
        self.count((event["group"], None if _is_presumed(event) else event["kind"]) for event in new)
        for (group, kind), number in Counter((of["group"], of["kind"]) for of in new if is_held_back(of)).items():
            self.silenced[group] = self.silenced.get(group, Counter()) + Counter({kind: number})

    def drop_oldest(self) -> None:
        """Keep the oldest event no longer."""
        _, dropped = self.events.popitem(last=False)
        self.characters -= _characters([dropped])

    def count(self, reported: Iterable[tuple[str, str | None]]) -> None:
        """Number and count events that are new, and keep no more of them: (group, kind) of each; no kind, no count."""
        kinds: defaultdict[str, Counter[str]] = defaultdict(Counter)
        for (group, kind), number in Counter(reported).items():
            self.last += number
            if kind is not None:
                kinds[group][kind] = number
        for group, counts in kinds.items():
            # Replaced, never changed: a scrape goes on with the counts it found.
            self.counts[group] = counts + self.counts[group] if group in self.counts else counts

    def take(self, line: object) -> None:
        """Do what a line of the file says. Raises ValueError where it is none."""
        match line:
            case [int(number), {"id": str(), "group": str(), "kind": str(), "time": int()}]:
                self.last = number - 1
                self.add([cast("list[Event]", line)[1]])
            case {"told": str(id_)}:
                self.reported[id_] = None
            case {"batch": int(batch)}:
                self.batch = batch
            case {"forget": str(group)}:
                self.counts.pop(group, None)
                self.silenced.pop(group, None)
            case _:
                raise ValueError(f"found a line {line!r:.80}")


def _characters(events: Iterable[tuple[int, Event]]) -> int:
    return sum(len(event["group"]) for _, event in events)


def _is_presumed(event: Event) -> bool:
    """Whether an alarm's kind is only presumed, as information: the counter of it is what its alert asks."""
    return event["kind"] == "upgrade_unclean" and event["severity"] == INFO and bool(event.get("inferred"))


class EventWindowFile:
    """The file.

    Args:
        path: where it is.
        clock: seconds that never go back.
    """

    def __init__(self, path: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._path = path
        self._former = path.with_suffix(".ndjson")
        self._clock = clock
        self._database: sqlite3.Connection | None = None
        self._failed_at = -RETRY_SECONDS
        self._appended = 0

    def load(self) -> Remembered:
        """What the file holds; nothing where there is none, or none that can be read."""
        try:
            with closing(self._opened()) as database:
                lines = [text for (text,) in database.execute("SELECT text FROM line ORDER BY number")]
            if not lines and self._former.exists():
                *lines, _cut_off = self._former.read_text("ascii").split("\n")
            remembered = Remembered.of(json.loads(lines[0])) if lines else Remembered()
            for line in lines[1:]:
                remembered.take(json.loads(line))
        except (sqlite3.Error, OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            _log.warning("event_window_lost", file=str(self._path), reason=str(error)[:200])
            if type(error) is sqlite3.DatabaseError:
                # It is damaged: nothing could be written to it either.
                with suppress(OSError):
                    for suffix in ("", "-wal"):
                        Path(f"{self._path}{suffix}").unlink(missing_ok=True)
            return Remembered()
        return remembered

    def append(self, lines: Sequence[object], remembered: Remembered, size: int, unkept: int = 0) -> None:
        """Keep what was just taken.

        Args:
            lines: what was taken, as `Remembered.take` reads it.
            remembered: everything, these lines included.
            size: of the window; after as many lines the file is rewritten.
            unkept: how many more were taken that no line has, if the window is full of these.
        """
        self._appended += len(lines) + unkept
        if self._database is None and self._clock() - self._failed_at < RETRY_SECONDS:
            return
        try:
            whole = self._database is None or self._appended > size
            self._database = self._database or self._opened()
            texts = (json.dumps(line, separators=(",", ":")) for line in ([remembered.as_json()] if whole else lines))
            with self._database:
                if whole:
                    self._appended = 0
                    self._database.execute("DELETE FROM line")
                self._database.executemany("INSERT INTO line (text) VALUES (?)", ((text,) for text in texts))
            if whole:
                self._former.unlink(missing_ok=True)
        except (sqlite3.Error, OSError) as error:
            # It lacks what came in meanwhile: the file is rewritten when it can be.
            self.close()
            self._failed_at = self._clock()
            _log.warning("event_window_not_kept", file=str(self._path), reason=str(error))

    def close(self) -> None:
        """Let go of the file; what is appended later rewrites it."""
        database, self._database = self._database, None
        if database is not None:
            database.close()

    def _opened(self) -> sqlite3.Connection:
        return sqlite_file.opened(self._path, FORMAT, _TABLES, durable=False)
