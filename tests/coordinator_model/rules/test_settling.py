"""Which steps move a group out of its rest, and by how much."""

import pytest

from coordinator_model.rules.settling import AT_REST_MS
from tests.builders import group_metadata, member
from tests.histories import Told, at, history

LATER_MS = 2 * AT_REST_MS


def then(generation: int, member_id: str, time_ms: int = LATER_MS) -> Told:
    """A group of one static member at generation 4, and a record of it."""
    return history(
        at(0, group_metadata("g", generation=4, members=[member("i-1", {"t": [0]}, instance_id="i")])),
        at(
            time_ms,
            group_metadata("g", generation=generation, members=[member(member_id, {"t": [0]}, instance_id="i")]),
        ),
    ).replayed()


def test_step_that_moves_no_epoch_leaves_a_group_at_rest() -> None:
    """A static member is back under another member id, in the same generation."""
    assert then(4, "i-2").states["g"].restless is None


@pytest.mark.parametrize(("generation", "epochs"), [(5, 1), (9, 1)])
def test_first_epoch_after_a_rest_is_one(generation: int, epochs: int) -> None:
    """A cleaned log may lack any number of generations between."""
    restless = then(generation, "i-1").states["g"].restless

    assert restless is not None
    assert (epochs, epochs, LATER_MS, 4) == (restless.epochs, restless.counted, restless.since_ms, restless.from_epoch)
