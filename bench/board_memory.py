"""What a board takes in memory, and its sums in processor time: `python -m bench.board_memory GROUPS`.

A process of its own, so that nothing else is in it. Rows as a micro-batch brings them are made by another process, from
the generator's log. Then a board takes them: first all groups without their offsets, then the offsets; what the process
has more of the machine's memory each time, as the kernel counts it, is what they take. Last come sums and lag, which
nothing has asked for before.
"""

import gc
import json
import os
import pickle
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from multiprocessing import get_context
from pathlib import Path
from typing import Final

from bench import log
from bench.log import Expected, Plan
from coordinator_model.figures import stored
from coordinator_model.replica import Replica
from coordinator_model.state import snapshot
from coordinator_model.state.findings import Position
from coordinator_model.state.packed_offsets import dump_offsets
from lab.builders import topic_id
from streaming.base import gc_tuning
from streaming.board.board import Board, Row
from streaming.board.lag_columns import measure, table_of
from streaming.end_offsets.store import EndOffsets, Topic

_ROUNDS: Final = 2
_ROWS_A_BATCH: Final = 5_000
_TIME_MS: Final = 1_795_236_417_050
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")


def main(groups: int) -> None:
    """Print figures as JSON: name → unit and value."""
    gc_tuning.share_fairly()
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "rows"
        made = get_context("spawn").Process(target=_make, args=(groups, file))
        made.start()
        made.join()
        board = Board(EndOffsets(2, 1_000))
        sizes = [resident()]
        groups_or_buckets = []
        for kind in ("group", "offsets"):
            groups_or_buckets.append(_take(board, _rows(file, kind)))
            # As the sampler of lag leaves them a second later: offsets in order, worked out once.
            offsets = sum(len(held.offsets) for held in board.shown.groups.values())
            gc.collect()
            sizes.append(resident())
    reported = {
        "board_bytes_a_group": ("B", (sizes[1] - sizes[0]) / groups_or_buckets[0]),
        "board_bytes_an_offset": ("B", (sizes[2] - sizes[1]) / offsets),
        **_seconds(board, Plan.of(groups, rounds=_ROUNDS)),
    }
    sys.stdout.write(json.dumps(reported) + "\n")


def _take(board: Board, rows: Iterator[Row]) -> int:
    """Apply rows some thousands at a time, so that what is held meanwhile is little; returns how many there were."""
    count = 0
    while held := list(islice(rows, _ROWS_A_BATCH)):
        count += len(held)
        board.apply(count, held, _TIME_MS)
    return count


def _seconds(board: Board, plan: Plan) -> dict[str, tuple[str, float]]:
    """Processor time of sums over all groups, and then of lag of all their offsets, each for the first time."""
    ends = {(topic, partition): _ROUNDS + 1 for topic in plan.topic_names for partition in range(plan.partitions)}
    board.ends.set_topics([Topic(topic_id(name), name, plan.partitions) for name in plan.topic_names], plan.topic_names)
    board.ends.record(_TIME_MS, ends, ends)
    begun = time.thread_time()
    board.sums()
    summed = time.thread_time()
    lags = measure(table_of(board.shown.groups.values()), board.ends, _TIME_MS)
    most = [of.max() for of in (lags.sum_records, lags.max_records, lags.max_seconds)]
    measured = time.thread_time()
    if min(most) < 0:
        raise AssertionError(f"lag to sum up: found {most}")
    return {"sums_seconds": ("s", summed - begun), "lag_seconds": ("s", measured - summed)}


def _make(groups: int, file: Path) -> None:
    """Write the rows of a log of so many groups."""
    replica = Replica()
    for offset, record in enumerate(log.records(Plan.of(groups, rounds=_ROUNDS), Expected(), _TIME_MS, {})):
        replica.replay(Position(record.partition, offset, record.timestamp_ms), record.key, record.value)
    replica.settle()
    with file.open("wb") as out:
        for state in replica.groups.values():
            row = Row(state.partition, "group", state.name, stored.dump(state), snapshot.dump_group(state))
            pickle.dump(row, out)
        for (name, _, _), bucket in replica.buckets.items():
            pickle.dump(Row(0, "offsets", name, *dump_offsets(bucket)), out)


def _rows(file: Path, kind: str) -> Iterator[Row]:
    with file.open("rb") as rows, suppress(EOFError):
        while True:
            row: Row = pickle.load(rows)  # noqa: S301 - of the process that started us
            if row.kind == kind:
                yield row


def resident() -> int:
    """Bytes that this process has in memory."""
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * _PAGE


if __name__ == "__main__":
    main(int(sys.argv[1]))
