"""Snapshots of many groups are compressed together, and each comes back as it was, with its figures."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from coordinator_model import group_figures
from coordinator_model.state import snapshot
from coordinator_model.state.group_state import GroupState
from streaming.board.group_summary import StateText, exists, read
from tests.histories import recorded

STATES = [
    *recorded().replayed().states.values(),
    *(GroupState(name=name, partition=1) for name in ("new\nline", "реклама 🦔", "\ud800", "", '"\\')),
]
WRITTEN = {
    "with figures": group_figures.dump,
    "without, as release 0.1": snapshot.dump_group,
    "with figures of another release": lambda state: group_figures.dump(state).replace("\n2\n", "\n1\n", 1),
}


def summed_up(of: StateText) -> tuple[object, ...]:
    """The figures of one group, as values that can be compared."""
    found = of.summary
    words = [getattr(found.words, name) for name in group_figures.GroupWords.__slots__]
    return (*words, found.topics.names, found.numbers, found.recent_rebalances_ms, found.durations)


@pytest.mark.parametrize("written", WRITTEN.values(), ids=WRITTEN)
@pytest.mark.parametrize("count", [1, 2, 40])
def test_snapshots_come_out_of_a_block_as_they_went_in(written: Callable[[GroupState], str], count: int) -> None:
    """Whatever names are in them, whichever release wrote them, however many are read at once."""
    states = (STATES * count)[: max(count, len(STATES))]
    held = [StateText(written(state)) for state in states]
    alone = [StateText(written(state)) for state in states]
    for start in range(0, len(held), count):
        read(held[start : start + count])

    assert not any(of.is_text for of in held)
    assert all(of.is_text for of in alone)
    assert [snapshot.dump_group(state) for state in states] == [of.text for of in held] == [of.text for of in alone]
    assert list(map(summed_up, alone)) == list(map(summed_up, held))
    assert [state.exists for state in states] == [exists(written(state)) for state in states]


def test_threads_that_read_at_once_find_the_same() -> None:
    """Some ask for one group, others for all of them: none finds a group without text or figures."""
    texts = [group_figures.dump(GroupState(name=f"g-{number}", partition=number)) for number in range(400)]
    held = [StateText(text) for text in texts]

    def one_by_one(_: int) -> list[tuple[str, int]]:
        return [(of.text, of.summary.partition) for of in held]

    with ThreadPoolExecutor(4) as pool:
        found = pool.map(one_by_one, range(3))
        pool.submit(read, held).result()
        pool.submit(read, held).result()

    expected = [(group_figures.snapshot_of(text), number) for number, text in enumerate(texts)]
    assert [expected] * 3 == list(found)
    assert expected == one_by_one(0)
