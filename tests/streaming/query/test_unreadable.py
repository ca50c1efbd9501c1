"""Batches that cannot be read, on their way to the board: noted, remembered, said once."""

import json

import pytest

from lab.builders import offset_commit
from streaming.kafka.range_reader import SteppedOver
from streaming.query.log_continuity import Note
from streaming.query.source import Lost, Piece
from tests.histories import PARTITION, at, history
from tests.streaming.shard import Shard

PIECE = Piece(7, 2, 12, 3, 12)
WHY = "does not unpack"


def over(*batches: tuple[int, int]) -> Note:
    """What a micro-batch says of the partition that has stepped over these."""
    return Note((0, 0), stepped_over=tuple((first, end, WHY) for first, end in batches))


def said(
    shard: Shard, note: Note | None = None, *, commit: int | None = None
) -> tuple[list[object], dict[str, object]]:
    """(what is logged of batches, totals) of a micro-batch."""
    log = history(*([at(1_000, offset_commit("g", "t", 0, commit))] if commit is not None else []))
    rows = shard.batch(log, note=note)
    logged = [json.loads(row.payload) for row in rows if row.kind == "unreadable"]
    (totals,) = (json.loads(row.payload) for row in rows if row.kind == "shard")
    return logged, {name: totals.get(name) for name in ("unreadable_batches", "last_offset")}


@pytest.mark.parametrize("late", [0.0, 90_000.0])
def test_they_are_noted_with_the_piece_they_are_of(late: float) -> None:
    """Beside whatever else is said of it; not of one that is owed, which is read again."""
    lost = Lost(set(), {7: [SteppedOver(4, 6, WHY)]})

    note = PIECE.noted(lost, late, tombstone_seconds=86_400.0)

    assert note is not None
    assert (((4, 6, WHY),), False) == (note.stepped_over, note.unread) if not late else note.unread
    assert note == Note.of(json.loads(json.dumps(note)))
    owed = PIECE.noted(Lost({7}, {7: [SteppedOver(4, 6, WHY)]}), 0.0, 86_400.0)
    assert PIECE.owed() == owed
    assert None is PIECE.noted(Lost(set(), {}), 0.0, 86_400.0)


def test_what_a_former_release_noted_is_read() -> None:
    """It stepped over nothing."""
    assert Note((1, 2), unread=True) == Note.of([[1, 2], None, None, True])


def test_each_is_said_once_and_counted() -> None:
    """Where the log had nothing else; the other reader may come by the same batch later."""
    shard = Shard()

    logged, totals = said(shard, over((0, 3)))
    assert [{"first_offset": 0, "last_offset": 2, "reason": WHY}] == logged
    assert 1 == totals["unreadable_batches"]

    logged, totals = said(shard, over((0, 3), (5, 6)))
    assert [(5, 5)] == [(of["first_offset"], of["last_offset"]) for of in logged]  # type: ignore[index]  # an object
    assert 2 == totals["unreadable_batches"]


def test_they_stay_known() -> None:
    """What groups do later says nothing of them; a few are remembered one by one, all are counted."""
    shard = Shard()
    said(shard, over(*((of, of + 1) for of in range(50))))

    _, totals = said(shard, commit=5)

    ledger = shard.book()
    assert (50, 50, 20) == (totals["unreadable_batches"], ledger.unreadable_batches, len(ledger.unreadable))
    assert [50, 49, 50] == ledger.unreadable[-1][:3]


def test_what_is_read_again_meets_them_anew() -> None:
    """A number that a coordinator agreed with is not used twice."""
    shard = Shard()
    said(shard, over((0, 3)))

    said(shard, Note((0, 0), again={"unread_seconds": 90_000}, stepped_over=((0, 3, WHY),)), commit=5)

    assert [[2, 0, 3]] == [of[:3] for of in shard.book().unreadable]
    assert {"g"} == set(shard.groups())
    assert PARTITION == shard.partition
