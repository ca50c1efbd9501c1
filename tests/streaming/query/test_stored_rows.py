"""State is read back part by part, the next one while the rows of the one before are taken."""

import json
import threading
from collections import deque
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from coordinator_model.replica import Counters
from coordinator_model.state.offsets import OffsetBucket
from coordinator_model.state.packed_offsets import dump_offsets
from coordinator_model.state.snapshot import text_of_offsets
from streaming.base.batch_rows import Row
from streaming.base.errors import UsageError
from streaming.checkpoint import contents, identity
from streaming.checkpoint.state_directory import StateDirectory
from streaming.query.ledger import PartitionLedger, TaskLedger
from streaming.query.schemas import BOOK_STATE, ENTRIES_STATE, GROUPS_STATE, OFFSETS_STATE, PACKS_STATE
from streaming.query.state_cache import Entry, packed_entries, stored

LEDGERS = {3: PartitionLedger(counters=Counters(records=9), last_offset=8), 4: PartitionLedger(last_offset=1)}


def of_group(partition: int, name: str, number: int) -> dict[Any, Entry]:
    return {stored(partition, (name,)): (b"figures", f"[1,{number}]")}


def of_bucket(partition: int, name: str, topic: str, number: int) -> dict[Any, Entry]:
    return {stored(partition, (name, topic, 0)): (b"numbers", f"[2,{number}]")}


FORMER: dict[Any, Entry] = dict.fromkeys(
    (stored(0, ("b",)), stored(0, ("a", "t", 0)), stored(0, ("e",))), (b"", "former")
)
PACKS: dict[str, list[Any]] = {
    "partition": [0, -1, 3, -1, -1],
    "slot": [2, 0, 31, 1, 2],
    "pack": [
        packed_entries(FORMER | of_group(0, "c", 6)),
        packed_entries(of_bucket(0, "a", "u", 5) | of_group(0, "e", 9)),
        packed_entries(of_bucket(3, "a", "t", 7) | of_group(3, "d", 8)),
        packed_entries({stored(3, ("d",)): (b"", "copy")}),
        TaskLedger(LEDGERS).dump(),
    ],
}
"""The second is of what changed lately, the fourth of copies, the last the ledger."""
LATER = packed_entries(of_bucket(0, "a", "u", 5) | {stored(0, ("c",)): (b"", "[3,{}]")})
SINGLE = of_group(0, "a", 1) | of_group(0, "b", 2) | of_bucket(0, "b", "t", 3) | of_bucket(0, "a", "t", 4)
SINGLE |= {stored(0, ("a", "u", 0)): (b"", "former")}


def columns(entries: dict[Any, Entry]) -> dict[str, list[Any]]:
    names = ("partition", "group", "topic", "bucket", "payload", "words")
    return {name: [(*place, *entry)[at] for place, entry in entries.items()] for at, name in enumerate(names)}


PARTS: dict[str, dict[str, Any]] = {
    PACKS_STATE: PACKS,
    ENTRIES_STATE: columns(SINGLE),
    BOOK_STATE: {"snapshot": pa.array([], pa.string())},
}
ROWS = [
    Row(0, "offsets", "a", b"numbers", "[2,5]"),
    Row(0, "group", "e", b"figures", "[1,9]"),
    Row(0, "group", "a", b"figures", "[1,1]"),
    Row(0, "group", "b", b"figures", "[1,2]"),
    Row(0, "offsets", "b", b"numbers", "[2,3]"),
    Row(0, "offsets", "a", b"numbers", "[2,4]"),
    Row(0, "group", "c", b"figures", "[1,6]"),
    Row(3, "offsets", "a", b"numbers", "[2,7]"),
    Row(3, "group", "d", b"figures", "[1,8]"),
    *(Row(partition, "shard", "", json.dumps(of.totals()).encode()) for partition, of in LEDGERS.items()),
]
BUCKET = OffsetBucket(topic="t", number=0, commits=3)
LEFT: dict[str, dict[str, Any]] = {
    PACKS_STATE: {name: [] for name in PACKS},
    ENTRIES_STATE: columns({}),
    BOOK_STATE: {"snapshot": ['{"partitions":{"4":{"counters":{"records":3},"last_offset":12}},"timer_ms":null}']},
    GROUPS_STATE: {"group": ["a"], "snapshot": ["[1,1]\n7\nfigures"]},
    OFFSETS_STATE: {
        "group": ["b", "b"],
        "topic": ["4/", "4/t"],
        "bucket": [2**31 - 1, 2**30],
        "snapshot": ["[1,2]", text_of_offsets(dump_offsets(BUCKET))],
    },
}
"""What a release before left that wrote text: layout 5 in the first variable, layout 6 in the second."""
SPARK: Any = SimpleNamespace(streams=SimpleNamespace(active=[]))
"""Asked for its streams, and no more: what reads with it is replaced here, and runs for real in the restart tests."""


def reading(monkeypatch: pytest.MonkeyPatch, before: Callable[[str], object]) -> list[str]:
    """State is read from memory, after `before` has been called with what is to be read; returns what was."""
    read: list[str] = []

    def fetched(spark: object, checkpoint: str, variable: str, columns: object, batch: int | None) -> pa.Table:
        before(variable)
        read.append(variable)
        return pa.table(PARTS[variable])

    monkeypatch.setattr(contents, "_fetched", fetched)
    return read


def test_the_next_part_is_read_while_the_rows_of_one_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing twice: what changed lately is newer than a single entry, and that than one in a pack; books come last."""
    began = threading.Event()
    read = reading(monkeypatch, lambda variable: began.set() if variable == ENTRIES_STATE else None)
    rows = contents.stored_rows(SPARK, "here")
    first = next(rows)

    assert began.wait(60)
    assert [first, *rows] == ROWS
    assert list(PARTS) == read


@pytest.mark.parametrize(("broken", "taken"), [(PACKS_STATE, 0), (ENTRIES_STATE, 2), (BOOK_STATE, 6)])
def test_what_cannot_be_read_is_reported(monkeypatch: pytest.MonkeyPatch, broken: str, taken: int) -> None:
    """Where its rows would have come: those before are there, and none are made up."""

    def fail(variable: str) -> None:
        if variable == broken:
            raise OSError(f"{broken} is damaged")

    reading(monkeypatch, fail)
    found: list[Row] = []
    with pytest.raises(OSError, match=f"^{broken} is damaged$"):
        found.extend(contents.stored_rows(SPARK, "here"))

    # A list that is extended by an iterator that fails keeps what came before.
    assert found == ROWS[:taken]


@pytest.mark.parametrize(
    ("part", "rows", "found", "reads"),
    [
        (ENTRIES_STATE, columns({stored(0, ("b",)): (b"", "[2,1]")}), "2", "1"),
        (ENTRIES_STATE, columns({stored(0, ("b", "t", 0)): (b"", "[10,{}]")}), "10", "2"),
        (PACKS_STATE, PACKS | {"pack": [PACKS["pack"][0], LATER, *PACKS["pack"][2:]]}, "3", "1"),
        (PACKS_STATE, PACKS | {"pack": [*PACKS["pack"][:2], LATER, *PACKS["pack"][3:]]}, "3", "1"),
    ],
)
def test_snapshots_of_a_later_release_are_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, part: str, rows: dict[str, Any], found: str, reads: str
) -> None:
    """Wherever in the state one is: by its number, with the one accepted and the checkpoint it is in."""
    reading(monkeypatch, lambda _: None)
    monkeypatch.setitem(PARTS, part, rows)
    state = StateDirectory(tmp_path, None, reads_uncommitted=True, clock_ms=lambda: 0)

    with pytest.raises(UsageError) as refused:
        deque(state.rows(SPARK))

    checkpoint = f"file://{tmp_path}/checkpoint"
    assert (
        f"state.dir: found {checkpoint!r} with a snapshot format: found {found}, this release reads {reads}; accepted: "
        f"the release that wrote it, or {identity.REBUILD}"
    ) == str(refused.value)


def test_who_stops_early_leaves_no_thread_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is being read is read to its end, while they go on; the rest is not begun."""
    before = set(threading.enumerate())
    began, go_on = threading.Event(), threading.Event()

    def wait(variable: str) -> None:
        if variable == ENTRIES_STATE:
            began.set()
            assert go_on.wait(60)

    read = reading(monkeypatch, wait)
    rows = contents.stored_rows(SPARK, "here")
    next(rows)

    assert began.wait(60)

    rows.close()  # type: ignore[attr-defined]  # it is a generator
    (thread,) = set(threading.enumerate()) - before

    assert thread.name.startswith("state")

    go_on.set()
    thread.join(60)

    assert not thread.is_alive()
    assert [PACKS_STATE, ENTRIES_STATE] == read


def test_what_a_release_left_that_wrote_text_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its variables are read where it left a ledger; of which partition a row is it may not say."""
    for variable, part in LEFT.items():
        monkeypatch.setitem(PARTS, variable, part)
    read = reading(monkeypatch, lambda _: None)

    *rows, ledger = contents.stored_rows(SPARK, "here")

    assert [
        Row(-1, "group", "a", b"", "[1,1]"),
        Row(4, "group", "b", b"", "[1,2]"),
        Row(4, "offsets", "b", *dump_offsets(BUCKET)),
    ] == rows
    assert (4, "shard", 12) == (ledger.partition, ledger.kind, json.loads(ledger.payload)["last_offset"])
    assert list(LEFT) == read
