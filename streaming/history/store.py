"""The history's files: written aside and renamed, merged while they are small, removed when they are old.

A file's name says its level and when it was written: `0-1769860980000-5f3a91c2.parquet`; what is called otherwise is
somebody else's, and neither read nor removed. Eight files of one level and
day become one of the next, so a row is written a few times and a day has a few dozen files however often it is written
to; what is long enough is merged no more. A merge that is cut off leaves rows in two files: they are the same rows, so
readers take them once, and the next merge writes them once. One process writes; any number read meanwhile.
"""

import re
import secrets
from collections import Counter
from collections.abc import Callable, Container, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from streaming.base.atomic_files import sync, sync_directory
from streaming.base.logging_setup import get_logger
from streaming.base.times import now_ms
from streaming.history.tables import (
    BASE_DAY,
    DAY_MS,
    GROUPS,
    RECORDS,
    TABLES,
    Table,
    by_day,
    day_end_ms,
    day_text,
    in_order,
)

FAN_IN: Final = 8
"""So many files of a level become one of the next."""
MERGE_BYTES: Final = 128 * 1024 * 1024
"""Rows that one merge holds in memory, as they are there."""
FULL_LEVEL: Final = 9
"""Level of files that are merged no more."""
_CLOSED_AFTER_MS: Final = 3_600_000
"""So long after its end nothing much is written to a day any more, and what is left of small files becomes one."""
_ROW_GROUP_ROWS: Final = 32_768
_ROW_GROUP_BYTES: Final = 4 * 1024 * 1024
_COMPLETE: Final = "_complete-"
"""Name of an empty file that says since when the states of all groups are known (`set_complete`)."""
_DAMAGED: Final = ".damaged"
_DAY: Final = re.compile(r"day=(\d{4}-\d{2}-\d{2})")
_FILE: Final = re.compile(r"(?P<level>\d)-(?P<written_ms>\d{13,})-[0-9a-f]{8}\.parquet")

_log = get_logger("history")


class Stored(NamedTuple):
    """A file of a table: its day, its level, and when it was written."""

    path: Path
    day: str
    level: int
    written_ms: int


@dataclass(frozen=True, slots=True)
class Retention:
    """How much is kept: days before today, and bytes; the bytes win."""

    days: int
    max_bytes: int


class HistoryStore:
    """The files below one directory, which it makes when it writes.

    Args:
        directory: where they are.
        clock_ms: the wall clock.
    """

    def __init__(self, directory: Path, clock_ms: Callable[[], int] = now_ms) -> None:
        self.directory = directory
        self._clock_ms = clock_ms

    # --- what there is ---

    def days(self, table: Table) -> list[str]:
        """Days that a table has files of, ascending."""
        found = (_DAY.fullmatch(entry.name) for entry in self._entries(self.directory / table.name))
        return sorted(day[1] for day in found if day is not None)

    def files(self, table: Table, day: str) -> list[Stored]:
        """Files of a day, the oldest first."""
        found = []
        for path in self._entries(self._place(table, day)):
            named = _FILE.fullmatch(path.name)
            if named is not None:
                found.append(Stored(path, day, int(named["level"]), int(named["written_ms"])))
        return sorted(found, key=lambda file: (file.written_ms, file.path.name))

    def all_files(self) -> Iterator[Stored]:
        """Files of all tables and days."""
        for table in TABLES:
            for day in self.days(table):
                yield from self.files(table, day)

    def size_bytes(self) -> int:
        """What all files take on the disk."""
        return sum(_size(file.path) for file in self.all_files())

    def complete_times_ms(self) -> list[int]:
        """Moments at which the states of all groups were written, ascending: what was then or later is known."""
        found = []
        for day in self.days(GROUPS):
            names = (entry.name for entry in self._entries(self._place(GROUPS, day)))
            times = (name.removeprefix(_COMPLETE) for name in names if name.startswith(_COMPLETE))
            found += [int(time_ms) for time_ms in times if time_ms.isdecimal()]
        return sorted(found)

    # --- writing ---

    def write(self, table: Table, ordered: pa.Table) -> None:
        """Keep rows, given as `tables.rows` makes them; they are on the disk when this returns.

        Raises:
            OSError: the disk is full, or cannot be written.
        """
        for day, of_day in by_day(ordered).items():
            self._write_file(table, day, 0, of_day)

    def set_complete(self, time_ms: int) -> None:
        """Say that the states of all groups at that moment are written. Raises OSError."""
        place = self._place(GROUPS, day_text(time_ms))
        place.mkdir(parents=True, exist_ok=True)
        (place / f"{_COMPLETE}{time_ms}").touch()

    def clean(self) -> None:
        """Remove what a former run began to write and did not finish; for the one process that writes."""
        for scratch in self.directory.glob("*/day=*/.*.new"):
            scratch.unlink(missing_ok=True)

    def compact(self) -> int:
        """Merge small files where there are enough of them; returns how many went. Raises OSError."""
        merged = 0
        for table in TABLES:
            for day in self.days(table):
                if day_end_ms(day) + _CLOSED_AFTER_MS < self._clock_ms():
                    merged += self._merge(table, day, range(FULL_LEVEL), 2)
                else:
                    merged += sum(self._merge(table, day, [level], FAN_IN) for level in range(FULL_LEVEL))
        return merged

    def retain(self, retention: Retention) -> list[str]:
        """Remove what is older or more than is kept; returns the names of the files that went.

        Days go whole, but for the last one: there the files that were written first go. What records are left of a day
        that goes, those that are the last of their key, is kept, and counts for the bytes as little as it can.
        """
        now_ms = self._clock_ms()
        oldest, today = day_text(now_ms - retention.days * DAY_MS), day_text(now_ms)
        sizes: Counter[str] = Counter()
        for file in self.all_files():
            sizes[file.day] += _size(file.path)
        left = sizes.total()
        gone = []
        for day in sorted(sizes):
            if day < oldest or (left > retention.max_bytes and day < today):
                left -= sizes[day]
                gone += self._remove_day(day)
        held = sorted((file for file in self.all_files() if file.day != BASE_DAY), key=lambda file: file.written_ms)
        left = sum(_size(file.path) for file in held)
        for file in held:
            if left <= retention.max_bytes:
                break
            left -= _size(file.path)
            file.path.unlink()
            gone.append(file.path.name)
        return gone

    # --- files ---

    def _remove_day(self, day: str) -> list[str]:
        gone = []
        if day in self.days(RECORDS) and day != BASE_DAY:
            self._fold(day)
        for table in TABLES:
            if table is RECORDS and day == BASE_DAY:
                continue
            place = self._place(table, day)
            for path in self._entries(place):
                if _is_ours(path.name):
                    gone += [path.name] if path.suffix == ".parquet" else []
                    path.unlink()
            with suppress(OSError):
                place.rmdir()  # unless somebody has put something else there
        return gone

    def _fold(self, day: str) -> None:
        """Take the last record of each key over from a day into the base; what was deleted last is left out."""
        former = self.files(RECORDS, BASE_DAY)
        files = [*former, *self.files(RECORDS, day)]
        tables = [
            pq.read_table(file.path, schema=RECORDS.schema, partitioning=None, use_threads=False) for file in files
        ]
        held = pa.concat_tables(tables).sort_by([(name, "ascending") for name in ("partition", "key", "offset")])
        keys = list(zip(*(held.column(name).to_pylist() for name in ("partition", "key")), strict=True))
        last = [place for place, key in enumerate(keys) if place + 1 == len(keys) or keys[place + 1] != key]
        base = held.take(last)
        base = base.filter(pc.is_valid(base.column("value")))
        self._write_file(RECORDS, BASE_DAY, 0, in_order(RECORDS, base))
        for file in former:
            file.path.unlink()

    def _merge(self, table: Table, day: str, levels: Container[int], least: int) -> int:
        """Put a day's files of some levels together where there are enough, as many at a time as memory is to hold.

        Those that cannot be read are set aside.
        """
        files = [file for file in self.files(table, day) if file.level in levels]
        if len(files) < least:
            return 0
        part: list[Stored] = []
        part_bytes = merged = 0
        for file in files:
            try:
                size = _bytes_in_memory(file.path)
            except pa.ArrowInvalid as error:
                self._set_aside(file, error)
                continue
            if part and part_bytes + size > MERGE_BYTES:
                merged += self._merge_part(table, day, part, part_bytes)
                part, part_bytes = [], 0
            part.append(file)
            part_bytes += size
        return merged + self._merge_part(table, day, part, part_bytes)

    def _merge_part(self, table: Table, day: str, files: list[Stored], held_bytes: int) -> int:
        is_full = held_bytes >= MERGE_BYTES // 2
        if len(files) < 2:  # noqa: PLR2004 - nothing to put together
            for file in files if is_full else ():
                file.path.rename(file.path.with_name(f"{FULL_LEVEL}{file.path.name[1:]}"))
            return 0
        tables = []
        for file in files:
            try:
                tables.append(pq.read_table(file.path, schema=table.schema, partitioning=None, use_threads=False))
            except (pa.ArrowInvalid, OSError) as error:
                if isinstance(error, FileNotFoundError):
                    raise
                self._set_aside(file, error)
                return 0
        level = FULL_LEVEL if is_full else min(FULL_LEVEL - 1, max(file.level for file in files) + 1)
        self._write_file(table, day, level, in_order(table, pa.concat_tables(tables)), files[0].written_ms)
        for file in files:
            file.path.unlink()
        return len(files)

    def _set_aside(self, file: Stored, error: Exception) -> None:
        file.path.rename(file.path.with_name(file.path.name + _DAMAGED))
        _log.error("history_file_damaged", file=str(file.path), reason=str(error).splitlines()[0])

    def _write_file(self, table: Table, day: str, level: int, ordered: pa.Table, written_ms: int | None = None) -> None:
        """Write a file aside and rename it: it is there whole or not at all."""
        place = self._place(table, day)
        place.mkdir(parents=True, exist_ok=True)
        stamp = self._clock_ms() if written_ms is None else written_ms
        path = place / f"{level}-{stamp:013d}-{secrets.token_hex(4)}.parquet"
        scratch = place / f".{path.name}.new"
        in_group = ordered.num_rows * _ROW_GROUP_BYTES // max(1, ordered.nbytes)
        try:
            with scratch.open("wb") as file:
                pq.write_table(
                    ordered,
                    file,
                    row_group_size=max(1, min(_ROW_GROUP_ROWS, in_group)),
                    compression="zstd",
                    use_dictionary=list(table.words),
                    write_statistics=[column for column in table.schema.names if column not in ("detail", "state")],
                )
                sync(file)
            scratch.rename(path)
        except BaseException:
            scratch.unlink(missing_ok=True)
            raise
        sync_directory(place)

    def _place(self, table: Table, day: str) -> Path:
        return self.directory / table.name / f"day={day}"

    @staticmethod
    def _entries(directory: Path) -> list[Path]:
        try:
            return list(directory.iterdir())
        except (FileNotFoundError, NotADirectoryError):
            return []


def _is_ours(name: str) -> bool:
    """Whether a file of a day's directory is one that this module writes, whole or not."""
    plain = name.removeprefix(".").removesuffix(".new").removesuffix(_DAMAGED)
    return _FILE.fullmatch(plain) is not None or name.removeprefix(_COMPLETE).isdecimal()


def _bytes_in_memory(path: Path) -> int:
    """About what the rows of a file take once they are read."""
    metadata = pq.read_metadata(path)
    return sum(metadata.row_group(number).total_byte_size for number in range(metadata.num_row_groups))


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
