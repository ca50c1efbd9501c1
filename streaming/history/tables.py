"""The tables of the history: their columns, and how rows of the spool become rows of them.

    HISTORY/events/day=2026-01-31/….parquet     what happened, by the log's time
    HISTORY/groups/day=2026-01-31/….parquet     how groups were, each time they had changed
    HISTORY/records/day=2026-01-31/….parquet    records of the log, where they are kept

Days are days of the row's time, in UTC. Within a file rows are sorted by group and time, so one group stands in few row
groups, whose statistics say so; and rows that were written twice stand next to each other.
"""

import functools
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

DAY_MS: Final = 86_400_000
_TIME: Final = pa.timestamp("ms", tz="UTC")
_EPOCH: Final = date(1970, 1, 1)


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """One table.

    Attributes:
        name: of its directory.
        schema: its columns; docs/history.md says what they hold.
        order: columns its files are sorted by; rows that agree in all of them are one row written twice.
        words: columns of few different values, for which files keep a dictionary.
    """

    name: str
    schema: pa.Schema
    order: tuple[str, ...]
    words: tuple[str, ...]


EVENTS: Final = Table(
    name="events",
    schema=pa.schema(
        [
            pa.field("id", pa.string(), nullable=False),
            pa.field("time", _TIME, nullable=False),
            pa.field("group", pa.string(), nullable=False),
            pa.field("kind", pa.string(), nullable=False),
            pa.field("severity", pa.string(), nullable=False),
            pa.field("partition", pa.int32(), nullable=False),
            pa.field("offset", pa.int64(), nullable=False),
            pa.field("detail", pa.string(), nullable=False),
            pa.field("inferred", pa.bool_(), nullable=False),
        ]
    ),
    order=("group", "time", "id"),
    words=("group", "kind", "severity"),
)

GROUPS: Final = Table(
    name="groups",
    schema=pa.schema(
        [
            pa.field("group", pa.string(), nullable=False),
            pa.field("time", _TIME, nullable=False),
            pa.field("sequence", pa.int64(), nullable=False),
            pa.field("state", pa.string()),
        ]
    ),
    order=("group", "time", "sequence"),
    words=("group",),
)

RECORDS: Final = Table(
    name="records",
    schema=pa.schema(
        [
            pa.field("group", pa.string(), nullable=False),
            pa.field("time", _TIME, nullable=False),
            pa.field("partition", pa.int32(), nullable=False),
            pa.field("offset", pa.int64(), nullable=False),
            pa.field("key", pa.binary(), nullable=False),
            pa.field("value", pa.binary()),
        ]
    ),
    order=("group", "partition", "offset"),
    words=("group",),
)

TABLES: Final = (EVENTS, GROUPS, RECORDS)
BASE_DAY: Final = "0001-01-01"
"""Day of the records that are left of days that went: the last one of each key."""


def rows(entries: Iterable[tuple[int, Mapping[str, Any]]]) -> dict[Table, pa.Table]:
    """Entries of the spool with their positions, as tables sorted as files are; a table without rows is left out.

    Kinds of entries that the history does not keep are passed over.
    """
    found: dict[Table, list[dict[str, Any]]] = {EVENTS: [], GROUPS: []}
    for position, entry in entries:
        match entry["kind"]:
            case "event":
                event = entry["event"]
                found[EVENTS].append({**event, "group": event["group"] or "", "detail": _json(event["detail"])})
            case "group" | "group_deleted":
                state = _json(entry["state"]) if entry["kind"] == "group" else None
                row = {"group": entry["group"], "time": entry["time"], "sequence": position, "state": state}
                found[GROUPS].append(row)
            case _:
                pass
    return {table: in_order(table, pa.Table.from_pylist(of, schema=table.schema)) for table, of in found.items() if of}


def in_order(table: Table, written: pa.Table) -> pa.Table:
    """Rows in the order of files, each once."""
    ordered = written.sort_by([(column, "ascending") for column in table.order]).combine_chunks()
    if ordered.num_rows < 2:  # noqa: PLR2004 - nothing to compare
        return ordered
    differs = [
        pc.not_equal(values.slice(1), values.slice(0, ordered.num_rows - 1))
        for values in (ordered.column(column).combine_chunks() for column in table.order)
    ]
    return ordered.filter(pa.concat_arrays([pa.array([True]), functools.reduce(pc.or_, differs)]))


def by_day(ordered: pa.Table) -> dict[str, pa.Table]:
    """Day → the rows of that day."""
    places: dict[str, list[int]] = {}
    for place, time_ms in enumerate(ordered.column("time").cast(pa.int64()).to_pylist()):
        places.setdefault(day_text(time_ms), []).append(place)
    return {day: ordered.take(of) for day, of in sorted(places.items())}


def event_of(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row of events as EVENT with its id; its time in milliseconds."""
    return {**row, "detail": json.loads(row["detail"])}


def day_text(time_ms: int) -> str:
    """The day of a time, as 2026-01-31; what is beyond the calendar stands on its first or last day."""
    days = time_ms // DAY_MS
    lowest, highest = (date.min - _EPOCH).days, (date.max - _EPOCH).days
    return (_EPOCH + timedelta(days=min(max(days, lowest), highest))).isoformat()


def day_end_ms(day: str) -> int:
    """The first millisecond after a day."""
    return (date.fromisoformat(day) - _EPOCH).days * DAY_MS + DAY_MS


def _json(value: object) -> str:
    # In ASCII: whatever a name holds is valid text in a file.
    return json.dumps(value, separators=(",", ":"))
