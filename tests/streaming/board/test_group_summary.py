"""Snapshots of many groups are compressed together, and each comes back as it was, with its figures."""

from collections.abc import Callable

import pytest

from coordinator_model.figures import stored
from coordinator_model.figures.stored import FORMAT
from coordinator_model.figures.summary import GroupSummary, summary
from coordinator_model.figures.table import WORDS
from coordinator_model.state import snapshot
from coordinator_model.state.group_state import GroupState
from streaming.board.group_summary import read
from tests.histories import recorded

STATES = [
    *recorded().replayed().states.values(),
    GroupState(name="several", partition=1, recent_rebalances_ms=(5, 7, 6)),
    GroupState(name="one", partition=1, recent_rebalances_ms=(5,)),
    *(GroupState(name=name, partition=1) for name in ("new\nline", "реклама 🦔", "\ud800", "", '"\\')),
]
WRITTEN = {
    "with figures": stored.dump,
    "without, as release 0.1": lambda _: b"",
    "with figures of another release": lambda state: stored.dump(state).replace(
        b"%d" % FORMAT, b"%d" % (FORMAT - 1), 1
    ),
}


def values_of(found: GroupSummary) -> tuple[object, ...]:
    """The figures of one group, as values that can be compared."""
    words = [getattr(found.words, name) for name in WORDS]
    return (*words, found.topics.names, found.numbers, found.recent_rebalances_ms, found.durations)


@pytest.mark.parametrize("written", WRITTEN.values(), ids=WRITTEN)
@pytest.mark.parametrize("count", [1, 2, 40])
def test_snapshots_come_out_of_a_block_as_they_went_in(written: Callable[[GroupState], bytes], count: int) -> None:
    """Whatever names are in them, whichever release wrote them, however many are read at once."""
    states = (STATES * count)[: max(count, len(STATES))]
    rows = [(written(state), snapshot.dump_group(state)) for state in states]
    held = read(rows)
    alone = [of for row in rows for of in read([row])]

    assert [snapshot.dump_group(state) for state in states] == [of.text for of in held] == [of.text for of in alone]
    expected = [values_of(summary(state)) for state in states]
    assert expected == [values_of(of.summary) for of in held] == [values_of(of.summary) for of in alone]
