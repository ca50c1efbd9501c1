"""The driver's part of a million groups: rows of shares that other processes made, on one board, and compared."""

import pickle
from pathlib import Path
from typing import Final

import pytest

from bench import log, million_board, truth
from bench.log import Expected, Plan
from coordinator_model.figures import stored
from coordinator_model.replica import Replica
from coordinator_model.state import snapshot
from coordinator_model.state.findings import Position
from coordinator_model.state.packed_offsets import dump_offsets
from lab import builders
from streaming.base.batch_rows import Row
from streaming.query.row_codec import packed_output

PLAN: Final = Plan.of(40, rounds=2)
SHARES: Final = 2


@pytest.fixture
def dealt(tmp_path: Path) -> Path:
    """Rows and truth of each share, as an executor's share leaves them."""
    expected = Expected()
    replicas = [Replica() for _ in range(SHARES)]
    for offset, made in enumerate(log.records(PLAN, expected, builders.NOW_MS, {})):
        place = Position(made.partition, offset, made.timestamp_ms)
        replicas[made.partition % SHARES].replay(place, made.key, made.value)
    for number, replica in enumerate(replicas):
        replica.settle()
        rows = [
            Row(of.partition, "group", of.name, stored.dump(of), snapshot.dump_group(of))
            for of in replica.groups.values()
        ]
        rows += [
            Row(replica.groups[name].partition, "offsets", name, *dump_offsets(held))
            for (name, *_), held in replica.buckets.items()
        ]
        share = Expected({name: of for name, of in expected.groups.items() if log.shard(name) % SHARES == number})
        (tmp_path / f"rows-{number:02d}").write_bytes(pickle.dumps([packed_output(rows[:5]), packed_output(rows[5:])]))
        (tmp_path / f"truth-{number:02d}").write_bytes(pickle.dumps(share))
    return tmp_path


def test_one_board_holds_all_shares(dealt: Path) -> None:
    """Shares, a trickle over some of their groups, and a restart on all rows: each leads to what was written."""
    figures = million_board.main(dealt, PLAN, active=5, batches=3)

    assert SHARES == len(figures["driver_share_seconds"][1])
    assert 3 == len(figures["driver_batch_seconds"][1])
    assert {"board_mib", "driver_sums_seconds", "driver_load_seconds"} <= figures.keys()


def test_a_share_that_is_missing_has_no_figures(dealt: Path) -> None:
    """A board without a share is none of all groups."""
    (dealt / "rows-01").unlink()

    with pytest.raises(truth.WrongResult, match="expected it, found none"):
        million_board.main(dealt, PLAN, active=5, batches=3)


def test_a_group_too_many_has_no_figures(dealt: Path) -> None:
    """A board with groups that no share's truth has is no right one."""
    (dealt / "truth-01").unlink()

    with pytest.raises(truth.WrongResult, match="40 groups, expected"):
        million_board.main(dealt, PLAN, active=5, batches=3)
