"""Batches that cannot be read, on their way to the board: noted, remembered, said once."""

import json

import pytest

from lab import builders
from lab.builders import offset_commit
from streaming.kafka.range_reader import LARGEST_VALUE_BYTES, SteppedOver
from streaming.query.log_continuity import Note
from streaming.query.row_codec import packed, unpacked
from streaming.query.source import Lost, Piece
from tests.histories import PARTITION, at, history
from tests.streaming.shard import Shard, log_rows

PIECE = Piece(7, 2, 12, 3, 12)
WHY = "does not unpack"


def over(*batches: tuple[int, int]) -> Note:
    """What a micro-batch says of the partition that has stepped over these."""
    return Note((0, 0), stepped_over=tuple((first, end, WHY) for first, end in batches))


def said(
    shard: Shard, note: Note | None = None, *, commit: int | None = None
) -> tuple[list[dict[str, object]], dict[str, object]]:
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
    assert [(5, 5)] == [(of["first_offset"], of["last_offset"]) for of in logged]
    assert 2 == totals["unreadable_batches"]


def test_they_stay_known() -> None:
    """What groups do later says nothing of them; a few are remembered one by one, all are counted."""
    shard = Shard()
    said(shard, over(*((of, of + 1) for of in range(50))))

    _, totals = said(shard, commit=5)

    ledger = shard.book()
    assert (50, 50, 20) == (totals["unreadable_batches"], ledger.unreadable_batches, len(ledger.unreadable))
    assert [50, 49, 50] == ledger.unreadable[-1][:3]


def test_what_unpacks_to_much_is_small_where_java_has_it() -> None:
    """Many values just below the largest are hundreds of megabytes in one micro-batch; what is usual stays as it is."""
    key = b"\x00\x02\x00\x01g"

    def cell(*values: bytes) -> bytes:
        rows = log_rows([(PARTITION, number, 0, key, value) for number, value in enumerate(values)])
        (packed_rows,) = packed([rows], [1])["rows"].to_pylist()
        return bytes(packed_rows)

    many = [bytes(12_000_000)] * 4
    assert len(cell(*many)) < 1_000_000
    assert many == [row.value for row in unpacked([cell(*many)])]
    assert len(cell(bytes(1_000_000))) > 1_000_000


def test_the_largest_group_there_can_be_is_followed() -> None:
    """5,000 members, each with 4 KB of a custom assignor's own: a third of the largest value that is read."""
    members = [
        builders.member(f"consumer-{number:040}", {"t": [number]}, user_data=bytes(4_096)) for number in range(5_000)
    ]
    key, value = builders.group_metadata("large", generation=1, members=members)
    assert value is not None
    assert LARGEST_VALUE_BYTES / 3.5 < len(value) < LARGEST_VALUE_BYTES / 2.5
    shard = Shard()

    shard.batch(history(at(1_000, (key, value))))

    assert 5_000 == len(shard.groups()["large"].membership.classic.members)  # type: ignore[union-attr]  # it is classic


def test_what_is_read_again_meets_them_anew() -> None:
    """A number that a coordinator agreed with is not used twice."""
    shard = Shard()
    said(shard, over((0, 3)))

    said(shard, Note((0, 0), again={"unread_seconds": 90_000}, stepped_over=((0, 3, WHY),)), commit=5)

    assert [[2, 0, 3]] == [of[:3] for of in shard.book().unreadable]
    assert {"g"} == set(shard.groups())
    assert PARTITION == shard.partition
