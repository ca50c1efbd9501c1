"""The driver of a cluster, with what its executors put out: `python -m bench.million_board DIR GROUPS ROUNDS …`.

A process of its own, so that nothing else is in it. It takes the rows of one share after the other as a micro-batch
brings them; another board takes all rows as a restart reads them back; then the first one takes micro-batches of a
steady trickle over a few groups. All of it is compared with what was written.
"""

import json
import pickle
import sys
import time
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final

from bench import log, truth
from bench.board_memory import resident
from bench.log import Commits, Expected, Plan
from coordinator_model.replica import Replica
from coordinator_model.state.findings import Position
from coordinator_model.state.packed_offsets import dump_offsets
from streaming.base import gc_tuning
from streaming.board.board import Board, Row
from streaming.board.board_group import BoardGroup
from streaming.end_offsets.store import EndOffsets
from streaming.query.row_codec import unpacked_output

_MIB: Final = 2**20
_TIME_MS: Final = 1_795_236_417_050
_WHERE: Final = "the board of all shares"

Groups = Mapping[str, BoardGroup]
Figures = dict[str, tuple[str, list[float]]]
"""Name → unit and values."""


def main(directory: Path, plan: Plan, active: int, batches: int) -> Figures:
    """What the driver's work takes, in processor time of the one thread that does it: nothing else is waited for.

    Args:
        directory: with `rows-NN`, packs of each share, and `truth-NN`, what they lead to.
        plan: of all groups.
        active: groups that commit in every micro-batch of the trickle.
        batches: how many of those there are.

    Raises:
        WrongResult: a board shows something else.
    """
    gc_tuning.share_fairly()
    found: Figures = defaultdict(lambda: ("s", []))

    @contextmanager
    def timed(name: str) -> Iterator[None]:
        begun = time.thread_time()
        yield
        found[name][1].append(time.thread_time() - begun)

    before = resident()
    board = Board(EndOffsets(2, 1_000))
    number = 0
    for file in sorted(directory.glob("rows-*")):
        with timed("driver_share_seconds"):
            for pack in _packs(file):
                board.apply(number, unpacked_output([pack]), _TIME_MS)
                number += 1
    gc_tuning.give_back()
    found["board_mib"] = ("MiB", [(resident() - before) / _MIB])
    with timed("driver_sums_seconds"):
        board.sums()
    found["board_and_sums_mib"] = ("MiB", [(resident() - before) / _MIB])
    caught_up = board.shown.groups
    again = Board(EndOffsets(2, 1_000))
    with timed("driver_load_seconds"):
        again.load(_stored(directory))
    for rows in _trickle(plan, active, batches):
        with timed("driver_batch_seconds"):
            board.apply(number, rows, _TIME_MS)
            board.sums()
        number += 1
    _require(directory, again)
    _require_same(again.shown.groups, caught_up)
    _require_moved(directory, board, plan.names[:active], batches)
    return dict(found)


def _packs(file: Path) -> list[bytes]:
    packs: list[bytes] = pickle.loads(file.read_bytes())  # noqa: S301 - of the process that started us
    return packs


def _stored(directory: Path) -> Iterator[Row]:
    """Rows as they are read back at a restart: all groups, all offsets, all partitions; without events."""
    for kind in ("group", "offsets", "shard"):
        for file in sorted(directory.glob("rows-*")):
            for pack in _packs(file):
                yield from (row for row in unpacked_output([pack]) if row.kind == kind)


def _trickle(plan: Plan, active: int, batches: int) -> Iterator[list[Row]]:
    """Micro-batches in which each of the first so many groups has committed all its partitions once more."""
    few = replace(plan, classic_groups=active, consumer_groups=0, simple_groups=0)
    replica = Replica()
    offset = 0
    for made in log.records(few, Expected(), _TIME_MS, {}):
        replica.replay(Position(made.partition, offset, made.timestamp_ms), made.key, made.value)
        offset += 1
    commits = [Commits(few, name, at, {}) for name in few.names for at in range(few.partitions_of(name))]
    for round_ in range(1, batches + 1):
        for each in commits:
            made = each.record(plan.rounds + round_, _TIME_MS)
            replica.replay(Position(made.partition, offset, made.timestamp_ms), made.key, made.value)
            offset += 1
        replica.settle()
        yield [Row(0, "offsets", name, *dump_offsets(of)) for (name, _, _), of in replica.buckets.items()]


def _require(directory: Path, board: Board) -> None:
    """Compare a board share by share with what was written."""
    compared = 0
    for expected in _truths(directory):
        compared += len(expected.groups)
        truth.require(expected, truth.of_board(board, expected.groups), _WHERE)
    if compared != len(board.shown.groups):
        raise truth.WrongResult(f"{_WHERE}: {len(board.shown.groups)} groups, expected {compared}")


def _require_same(right: Groups, groups: Groups) -> None:
    """Compare groups with those that are right: of each the same state and the same offsets."""
    wrong = [name for name in right.keys() | groups.keys() if _held(right.get(name)) != _held(groups.get(name))]
    if wrong:
        raise truth.WrongResult(f"{_WHERE}: {len(wrong)} groups differ, {sorted(wrong)[:3]} among them")


def _held(held: BoardGroup | None) -> tuple[object, ...] | None:
    if held is None:
        return None
    return held.text, [of.packed for of in held.buckets]


def _require_moved(directory: Path, board: Board, names: Collection[str], rounds: int) -> None:
    """See that every partition of these groups has moved on by so many commits."""
    moved = Expected()
    for expected in _truths(directory):
        for name in expected.groups.keys() & set(names):
            group = moved.groups[name] = expected.groups[name]
            group.offsets = {place: offset + rounds for place, offset in group.offsets.items()}
            group.commits += rounds * len(group.offsets)
    truth.require(moved, truth.of_board(board, names), _WHERE)


def _truths(directory: Path) -> Iterator[Expected]:
    for file in sorted(directory.glob("truth-*")):
        expected: Expected = pickle.loads(file.read_bytes())  # noqa: S301 - as above
        yield expected


if __name__ == "__main__":
    groups, rounds_, active_, batches_ = map(int, sys.argv[2:])
    sys.stdout.write(json.dumps(main(Path(sys.argv[1]), Plan.of(groups, rounds=rounds_), active_, batches_)) + "\n")
