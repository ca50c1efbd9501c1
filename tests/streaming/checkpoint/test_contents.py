"""What a checkpoint says of the state, without Spark."""

import json
from typing import Any

from coordinator_model.replica import Counters
from streaming.base.batch_rows import Row
from streaming.board.board import Board
from streaming.checkpoint import contents
from streaming.end_offsets.store import EndOffsets
from streaming.query.former_state import ledger_of
from streaming.query.ledger import PartitionLedger, TaskLedger
from streaming.query.log_continuity import Note

OWED = list(Note(begins=(7, 9), unread=True))


def rows(ledger: TaskLedger) -> list[Row]:
    """Of a task's ledger, as they fill a board."""
    return list(contents.rows_of(ledger))


def test_what_is_owed_of_a_partition_is_owed_after_a_restart() -> None:
    """Else it is never read: later rows of it are not replayed before, and all looks as if it had been read."""
    ledger = TaskLedger(
        {0: PartitionLedger(last_offset=6, owed=OWED), 1: PartitionLedger(counters=Counters(records=3), last_offset=12)}
    )
    board = Board(EndOffsets())

    board.load(rows(TaskLedger.load(ledger.dump())))

    assert {0: json.loads(json.dumps(OWED))} == board.owed()


def test_a_batch_and_a_restart_say_the_same_of_a_partition() -> None:
    """All that a micro-batch passes on of it is in the ledger, and comes from there, too."""
    ledger = PartitionLedger(counters=Counters(records=3, unknown_records={"99": 1}), last_offset=12, owed=OWED)

    ((_, _, _, payload, _),) = rows(TaskLedger.load(TaskLedger({1: ledger}).dump()))

    assert json.loads(json.dumps(ledger.totals())) == json.loads(payload)


def test_a_ledger_of_the_release_before_is_read() -> None:
    """It knows nothing of what is owed."""
    book: dict[str, Any] = {"counters": {"records": 3}, "last_offset": 12}

    ((partition, kind, _, payload, _),) = rows(ledger_of(json.dumps({"partitions": {"4": book}, "timer_ms": None})))

    assert (4, "shard", 12) == (partition, kind, json.loads(payload)["last_offset"])
    assert "owed" not in json.loads(payload)
