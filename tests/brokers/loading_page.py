"""What `tests.brokers.loading` found (`loading.json`), and the tables of docs/before-brokers-restart.md made of it."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from streaming.loading.faults import FAULTS, numbers

FILE: Final = Path(__file__).with_name("loading.json")
PAGE: Final = Path(__file__).resolve().parents[2] / "docs" / "before-brokers-restart.md"

_MADE: Final = re.compile(
    r"(<!-- Made by `python -m tests\.brokers\.loading`: (?P<part>\w+) -->\n).*?(?=<!-- end -->)", re.DOTALL
)
LOG_OF: Final[Mapping[str, str]] = {
    "KAFKA-14869": "classic",
    "KAFKA-17306": "cleaned",
    "KAFKA-19862": "read_while_cleaned",
    "KAFKA-20254": "early_offsets",
    "KAFKA-21102": "last_tombstone",
    "KAFKA-21117": "no_upgrade",
}
"""Fault → the log that shows it."""
OF_LOGS: Final[Mapping[str, str]] = {
    "well": "all well",
    "share": "share groups of 4.3",
    "early_offsets": "offsets before a streams group",
    "no_upgrade": "upgraded and downgraded, without the tombstone",
    "read_while_cleaned": "read while it was cleaned",
    "last_tombstone": "a member's last tombstone alone",
    "cleaned": "consumer groups of 3.9, cleaned",
    "classic": "classic groups, as 4.1 and later write them",
    "of_3_9": "classic groups of 3.9",
}
_KEYS: Final[Mapping[str, tuple[str, ...]]] = {
    "logs": ("release", "name"),
    "own": ("release", "recordings"),
    "remedies": ("release", "fault"),
    "again": ("release", "fault"),
    "size": ("release",),
}
"""What a row of a part is known by."""

Row = Mapping[str, Any]


def load(file: Path = FILE) -> dict[str, list[Row]]:
    """Part → its rows."""
    held: dict[str, list[Row]] = json.loads(file.read_text("utf-8")) if file.is_file() else {}
    return {part: held.get(part, []) for part in _KEYS}


def save(part: str, rows: Iterable[Row], file: Path = FILE) -> None:
    """Put these in the place of what was found of the same before; what could not be tried is in that of no other."""
    held = load(file)
    found = {_key(part, row): row for row in held[part]}
    found |= {_key(part, row): row for row in rows if "cannot_tell" not in row or _key(part, row) not in found}
    held[part] = [found[key] for key in sorted(found)]
    file.write_text(json.dumps(held, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def _key(part: str, row: Row) -> tuple[Any, ...]:
    release, *others = (row[name] for name in _KEYS[part])
    return (numbers(release), *map(str, others))


def page(current: str) -> str:
    """The page with its tables as they should be."""
    held = load()
    return _MADE.sub(lambda match: f"{match[1]}{_text(match['part'], held)}", current)


def write() -> None:
    """Bring the page up to date."""
    PAGE.write_text(page(PAGE.read_text("utf-8")), encoding="utf-8")


def tables() -> str:
    """All of them."""
    held = load()
    return "\n".join(_text(part, held) for part in _KEYS)


def _text(part: str, held: Mapping[str, Sequence[Row]]) -> str:
    if part == "faults":
        return "\n".join(_faults()) + "\n"
    rows = held[part]
    return "\n".join(_TABLES[part](rows)) + "\n" if rows else "Not tried yet: `make brokers` does.\n"


def _faults() -> Iterator[str]:
    head = ("fault", "what the log holds", "seen on", "mended in", "source")
    yield from _table(
        head,
        (
            (
                of.number,
                of.about,
                ", ".join(of.seen_on),
                ", ".join(of.mended_in) or "open",
                ", ".join(f"[#{pull}](https://github.com/apache/kafka/pull/{pull})" for pull in of.pulls),
            )
            for of in FAULTS
        ),
    )


def _logs(rows: Sequence[Row]) -> Iterator[str]:
    head = ("release", *OF_LOGS.values(), "groups, offsets lost of what loads", "forgotten by design")
    yield from _table(head, (_of_release(row) for row in rows))


def _of_release(row: Row) -> Iterator[str]:
    yield row["release"] + (", consumer protocol turned on" if row["name"] != row["release"] else "")
    if "cannot_tell" in row:
        yield row["cannot_tell"]
        return
    for name in OF_LOGS:
        of = row["logs"][name]
        yield f"**fails**: {of['failed']} of {of['partitions']} ({', '.join(of['known'])})" if of["failed"] else "loads"
    yield f"{row['groups_lost']}, {row['offsets_lost']}"
    yield str(row["groups_forgotten"])


def _own(rows: Sequence[Row]) -> Iterator[str]:
    head = ("loaded by", "recordings", "records", "groups", "different", "offsets", "different")
    yield from _table(
        head,
        (
            (
                row["release"],
                ", ".join(of.removesuffix(".gz").removesuffix(".ndjson") for of in row["recordings"]),
                *(
                    str(row.get(name, "-"))
                    for name in ("records", "groups", "groups_different", "offsets", "offsets_different")
                ),
            )
            for row in rows
        ),
    )


def _remedies(rows: Sequence[Row]) -> Iterator[str]:
    head = ("fault", "release", "as it is", "cleaned", "groups deleted", "groups deleted, cleaned")
    yield from _tried(head, ("kept_as_is", "kept_cleaned", "deleted_as_is", "deleted_cleaned"), rows)


def _again(rows: Sequence[Row]) -> Iterator[str]:
    head = ("fault", "release", "the log before the cleaner went over it", "afterwards")
    yield from _tried(head, ("whole_as_is", "whole_cleaned"), rows)


def _tried(head: Sequence[str], names: Sequence[str], rows: Sequence[Row]) -> Iterator[str]:
    yield from _table(
        head,
        (
            (
                row["fault"],
                row["release"],
                *(row[of] if row[of] == "loads" else f"**fails** ({row[of]})" for of in names),
            )
            for row in sorted(rows, key=lambda row: (row["fault"], numbers(row["release"])))
        ),
    )


def _size(rows: Sequence[Row]) -> Iterator[str]:
    head = (
        "release",
        "records",
        "groups",
        "",
        "seconds",
        "memory at its peak",
        "disk",
        "loaded a second, by partition",
    )
    for row in rows:
        bare, of = row["bare"], (row["release"], f"{row['records']:,}", f"{row['groups']:,}")
        disk = f"{row['log_mib']} MiB"
        rate = f"{bare['records_a_second']:,}, at least {bare['records_a_second_least']:,}"
        memory = f"{row['peak_mib']:,} MiB, of which the broker {row['broker_peak_mib']:,}"
        yield from _table(
            head,
            [
                (*of, "rehearsal", str(row["seconds"]), memory, disk, ""),
                (*of, "bare load", str(bare["seconds"]), f"{bare['peak_mib']:,} MiB", disk, rate),
            ],
        )


def _table(head: Sequence[str], rows: Iterable[Iterable[str]]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield "|" + "---|" * len(head)
    yield from (f"| {' | '.join(row)} |" for row in rows)


_TABLES: Final = {"logs": _logs, "own": _own, "remedies": _remedies, "again": _again, "size": _size}
