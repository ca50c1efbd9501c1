"""Layouts that are measured beside the one that stands: what is put out must not tell which one it was."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.layouts import LAYOUTS
from tests.builders import offset_commit, offset_commit_tombstone
from tests.coordinator_events import consumer_group_deleted, consumer_join, consumer_leave
from tests.histories import History, at, history
from tests.history_strategies import simulated
from tests.side_by_side import log_of
from tests.simulator.coordinator import ReferenceCoordinator
from tests.streaming.shard import Shard

OTHERS = [name for name in LAYOUTS if name != "standing"]


def in_batches(log: History, size: int, layout: str) -> Shard:
    shard = Shard(live_from=log.end, shards=LAYOUTS[layout])
    for start in range(0, len(log), size):
        shard.batch(list(log.records[start : start + size]))
    return shard


@pytest.mark.parametrize("layout", OTHERS)
@settings(max_examples=5)
@given(simulated(), st.integers(1, 30))
def test_every_layout_puts_out_the_same(layout: str, coordinator: ReferenceCoordinator, size: int) -> None:
    """Groups, offsets, events and totals of every micro-batch are those of the layout that stands."""
    log = log_of(coordinator)

    assert in_batches(log, size, "standing").rows == in_batches(log, size, layout).rows


@pytest.mark.parametrize("layout", OTHERS)
def test_no_layout_keeps_what_is_gone(layout: str) -> None:
    """A group that ended, and one of its name that came after, are the same in all of them; so are wide topics."""
    gone = history(
        at(1_000, *consumer_join("g", "a", epoch=2, targets={"a": {"t": [0, 1]}})),
        at(2_000, offset_commit("g", "t", 0, 5), offset_commit("g", "t", 200, 6), offset_commit("h", "t", 0, 1)),
        at(3_000, *consumer_leave("g", "a", epoch=3)),
        at(
            4_000,
            offset_commit_tombstone("g", "t", 0),
            offset_commit_tombstone("g", "t", 200),
            *consumer_group_deleted("g"),
        ),
        at(5_000, offset_commit("g", "t", 0, 1)),
        at(6_000, offset_commit("g", "t", 200, 2), offset_commit("h", "t", 64, 1)),
    )

    for size in (1, 3, len(gone)):
        assert in_batches(gone, size, "standing").rows == in_batches(gone, size, layout).rows
