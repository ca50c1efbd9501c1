"""Which steps move a group out of its rest, and by how much."""

import pytest

from coordinator_model.records.classic_group import MemberMetadata
from coordinator_model.rules.settling import AT_REST_MS, too_many_epochs
from coordinator_model.state.rule_memory import Restless
from lab.builders import group_metadata, member
from lab.coordinator_events import converted_to_classic, converted_to_consumer
from tests.histories import Reported, at, history
from tests.moments import overdue

LATER_MS = 2 * AT_REST_MS


def then(generation: int, member_id: str, time_ms: int = LATER_MS) -> Reported:
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


def after_visits(*client_ids: str) -> Restless:
    """What is remembered of a group of one member which these others join and leave, a second each."""
    stays = member("stays", {"t": [0]})
    moments = [at(0, group_metadata("g", generation=1, members=[stays]))]
    for turn, client_id in enumerate(client_ids, 1):
        visits = member(f"visit-{turn}", {"t": [1]}, client_id=client_id)
        moments += [
            at(2_000 * turn, group_metadata("g", generation=2 * turn, members=[stays, visits])),
            at(2_000 * turn + 1_000, group_metadata("g", generation=2 * turn + 1, members=[stays])),
        ]
    restless = history(*moments).replayed().states["g"].restless
    assert restless is not None
    return restless


def test_each_that_comes_and_each_that_goes_is_counted() -> None:
    """Of all members together, and of each by its name."""
    restless = after_visits("x", "y", "x")

    assert (3, 3) == (restless.joined, restless.left)
    assert [("x", 2, 2), ("y", 1, 1)] == [(of.client_id, of.joined, of.left) for of in restless.comings.values()]


@pytest.mark.parametrize(("left", "restless"), [((), False), ((member("stays", {"t": [0]}),), True)])
def test_group_that_is_empty_is_at_rest(left: tuple[MemberMetadata, ...], restless: bool) -> None:
    """A job that consumes for ten seconds of each minute leaves no member; where another stays, epochs go by."""
    moments = [at(0, group_metadata("g", generation=1, members=left))]
    for turn in range(120):
        job = member(f"job-{turn}", {"t": [1]})
        moments += [
            at(60_000 * turn + 5_000, group_metadata("g", generation=2 * turn + 2, members=[*left, job])),
            at(60_000 * turn + 15_000, group_metadata("g", generation=2 * turn + 3, members=left)),
        ]
    state = history(*moments).replayed().states["g"]
    found = [event.kind for event in overdue(state, 60_000 * 119 + 15_001)]

    assert ["group_unsettled"] * restless == found


def test_twenty_that_come_and_go_are_remembered_by_name() -> None:
    """For one more the one that did so least makes room; the totals have all of them."""
    twice = [f"c{number}" for number in range(1, 20)] * 2
    full, one_more = after_visits("c0", *twice), after_visits("c0", *twice, "c20")

    assert {f"c{number}" for number in range(20)} == {of.client_id for of in full.comings.values()}
    assert {f"c{number}" for number in range(1, 21)} == {of.client_id for of in one_more.comings.values()}
    assert (40, 40) == (one_more.joined, one_more.left)


def test_round_that_gives_out_what_the_one_before_took_is_no_epoch_too_many() -> None:
    """A cooperative rebalance takes two generations: both go by, and one counts."""
    both, one = {"t": [0, 1]}, {"t": [0]}
    rounds = [member("a", both, owned=one) if turn % 2 else member("a", one, owned=both) for turn in range(7)]
    moments = [
        at(1_000 * turn, group_metadata("g", generation=turn + 1, members=[of])) for turn, of in enumerate(rounds)
    ]
    restless = history(*moments).replayed().states["g"].restless

    assert restless is not None
    assert (6, 3) == (restless.epochs, restless.counted)


def test_conversion_is_an_epoch_that_went_by() -> None:
    """The consumer group has the epoch that the classic group's generation was, and the other way round."""
    parts = {"a": {"t": [0]}}
    upgraded = at(1_000, *converted_to_consumer("g", generation=2, members=parts))
    back = at(2_000, *converted_to_classic("g", all_members=["a"], generation=2, remaining=parts))
    classic = at(0, group_metadata("g", generation=2, members=[member("a", {"t": [0]})]))
    up = history(classic, upgraded).replayed().states["g"].restless
    down = history(classic, upgraded, back).replayed().states["g"].restless

    assert up is not None
    assert down is not None
    assert ((1, 1_000), (2, 1_000)) == ((up.epochs, up.since_ms), (down.epochs, down.since_ms))


def test_more_epochs_than_rolling_all_members_twice_takes_are_too_many() -> None:
    """Of two members 28: twenty, and four for each."""
    enough, more = after_visits(*["x"] * 14), after_visits(*["x"] * 15)

    assert (28, 2, False) == (enough.counted, enough.members, too_many_epochs(enough))
    assert (30, 2, True) == (more.counted, more.members, too_many_epochs(more))
