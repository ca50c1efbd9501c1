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
from streaming.base.errors import UsageError
from streaming.checkpoint import contents, identity
from streaming.checkpoint.state_directory import StateDirectory
from streaming.query.ledger import PartitionLedger, TaskLedger
from streaming.query.schemas import BOOK_STATE, GROUPS_STATE, OFFSETS_STATE, PACKS_STATE, OutputRow
from streaming.query.state_cache import packed_entries

LEDGERS = {3: PartitionLedger(counters=Counters(records=9), last_offset=8), 4: PartitionLedger(last_offset=1)}
PACKS: dict[str, list[Any]] = {
    "partition": [0, -1, 3, -1],
    "slot": [2, 0, 31, 1],
    "pack": [
        packed_entries({("b",): "former", ("c",): "[1,6]", ("a", "t", 0): "former", ("e",): "former"}),
        packed_entries({("a", "u", 1): "[1,5]", ("e",): "[1,9]"}),
        packed_entries({("a", "t", 1): "[1,7]", ("d",): "[1,8]"}),
        packed_entries({("d",): "copy"}),
    ],
}
"""The second is of what changed lately, the last of copies."""
LATER = packed_entries({("a", "u", 1): "[1,5]", ("c",): "[3,{}]"})
PARTS = {
    PACKS_STATE: PACKS,
    GROUPS_STATE: {"group": ["a", "b"], "snapshot": ["[1,1]", "[1,2]"]},
    OFFSETS_STATE: {
        "group": ["b", "a", "a"],
        "topic": ["t", "t", "u"],
        "bucket": [0, 0, 1],
        "snapshot": ["[1,3]", "[1,4]", "[1,0]"],
    },
    BOOK_STATE: {"snapshot": [TaskLedger(LEDGERS).dump()]},
}
ROWS = [
    OutputRow(-1, "offsets", "a", "[1,5]"),
    OutputRow(-1, "group", "e", "[1,9]"),
    OutputRow(-1, "group", "a", "[1,1]"),
    OutputRow(-1, "group", "b", "[1,2]"),
    OutputRow(-1, "offsets", "b", "[1,3]"),
    OutputRow(-1, "offsets", "a", "[1,4]"),
    OutputRow(0, "group", "c", "[1,6]"),
    OutputRow(3, "offsets", "a", "[1,7]"),
    OutputRow(3, "group", "d", "[1,8]"),
    *(OutputRow(partition, "shard", "", json.dumps(of.totals())) for partition, of in LEDGERS.items()),
]
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
    read = reading(monkeypatch, lambda variable: began.set() if variable == OFFSETS_STATE else None)
    rows = contents.stored_rows(SPARK, "here")
    first = next(rows)

    assert began.wait(60)
    assert [first, *rows] == ROWS
    assert list(PARTS) == read


@pytest.mark.parametrize(
    ("broken", "taken"), [(PACKS_STATE, 0), (GROUPS_STATE, 2), (OFFSETS_STATE, 4), (BOOK_STATE, 9)]
)
def test_what_cannot_be_read_is_reported(monkeypatch: pytest.MonkeyPatch, broken: str, taken: int) -> None:
    """Where its rows would have come: those before are there, and none are made up."""

    def fail(variable: str) -> None:
        if variable == broken:
            raise OSError(f"{broken} is damaged")

    reading(monkeypatch, fail)
    found: list[OutputRow] = []
    with pytest.raises(OSError, match=f"^{broken} is damaged$"):
        found.extend(contents.stored_rows(SPARK, "here"))

    # A list that is extended by an iterator that fails keeps what came before.
    assert found == ROWS[:taken]


@pytest.mark.parametrize(
    ("part", "rows", "found", "reads"),
    [
        (GROUPS_STATE, {"group": ["a", "b"], "snapshot": ["[1,1]", "[2,1]"]}, "2", "1"),
        (OFFSETS_STATE, {"group": ["b"], "topic": ["t"], "bucket": [0], "snapshot": ["[10,{}]"]}, "10", "1 or 2"),
        (PACKS_STATE, PACKS | {"pack": [PACKS["pack"][0], LATER, *PACKS["pack"][2:]]}, "3", "1"),
        (PACKS_STATE, PACKS | {"pack": [PACKS["pack"][0], PACKS["pack"][1], LATER, PACKS["pack"][3]]}, "3", "1"),
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
        if variable == OFFSETS_STATE:
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
    assert [PACKS_STATE, GROUPS_STATE, OFFSETS_STATE] == read
