"""Clocks of brokers that are set, or wrong for a while: what they write makes no absurd duration and no false alarm."""

from collections.abc import Sequence

import pytest

from coordinator_model.rules.static_members import RESTARTS
from coordinator_model.state import clocks
from lab.builders import consumer_group_member_subscription
from lab.coordinator_events import consumer_join, consumer_moves, static_returns
from tests.histories import Moment, Reported, at, history

DAY_MS = 86_400_000
TWO = {"a": {"t": [0]}, "b": {"t": [1]}}


def rebalanced(begun_ms: int, done_ms: int) -> Reported:
    """A group that is well at first; a second member comes at one time, and has its partitions at another."""
    return history(
        at(10 * DAY_MS, *consumer_join("g", "a", epoch=1, targets={"a": {"t": [0, 1]}})),
        at(begun_ms, *consumer_join("g", "b", epoch=2, targets=TWO, assigned={})),
        at(done_ms, *consumer_moves("g", "a", epoch=2, assigned={"t": [0]})),
        at(done_ms + 1, *consumer_moves("g", "b", epoch=2, assigned={"t": [1]})),
        at(done_ms + 2, *consumer_moves("g", "b", epoch=2, assigned={"t": [1]})),
    ).replayed()


@pytest.mark.parametrize(
    ("begun_ms", "done_ms", "expected"),
    [
        (10 * DAY_MS + 1_000, 10 * DAY_MS + 3_000, 2_001),
        # Brokers whose clocks are a little apart.
        (10 * DAY_MS - clocks.SLACK_MS, 10 * DAY_MS + 3_000, clocks.SLACK_MS + 3_001),
        (9 * DAY_MS, 10 * DAY_MS + 3_000, None),
        (10 * DAY_MS + 1_000, 9 * DAY_MS, None),
        (10 * DAY_MS + 1_000, 375 * DAY_MS, None),
    ],
)
def test_rebalance_that_a_clock_jumped_in_has_no_duration(begun_ms: int, done_ms: int, expected: int | None) -> None:
    """Back by a day at its beginning or its end, or ahead by a year: it is counted, and reported without one."""
    reported = rebalanced(begun_ms, done_ms)
    counters = reported.states["g"].counters

    assert [0, expected] == [of["duration_ms"] for of in reported.details("rebalance_completed")]
    assert 2 == counters.rebalances
    assert (1 if expected is None else 2) == sum(counters.duration_buckets)
    assert (expected or 0) == counters.duration_sum_ms


def returns(times_ms: Sequence[int]) -> list[Moment]:
    """A static member that is started again at these times, each time under another member id."""
    joins = consumer_join("g", "m-0", epoch=1, targets={"m-0": {"t": [0]}}, instance_id="i")
    again = (
        at(
            time_ms,
            *static_returns("g", old=f"m-{n}", new=f"m-{n + 1}", instance_id="i", epoch=1, assigned={"t": [0]}),
        )
        for n, time_ms in enumerate(times_ms)
    )
    return [at(0, *joins), *again, at(times_ms[-1] + 1, consumer_group_member_subscription("g", "m-new"))]


def test_take_overs_of_a_clock_that_was_ahead_are_none_of_the_latest() -> None:
    """A member started again now and then is in no loop, whenever its last starts say they were."""
    ahead = [DAY_MS * 365 + 3_000 * n for n in range(RESTARTS - 1)]

    assert ("g", "static_member_restarting") not in history(*returns([*ahead, DAY_MS])).replayed().alarms()
    assert ("g", "static_member_restarting") in history(*returns([*ahead, ahead[-1] + 3_000])).replayed().alarms()


def test_no_time_that_passed_is_negative() -> None:
    """Nor is a window open to what is yet to come."""
    assert 0 == clocks.elapsed_ms(5, 3)
    assert clocks.within(10, 15, 5)
    assert not clocks.within(10, 16, 5)
    assert not clocks.within(10, 5, 16)
    assert not clocks.went_back(-1, -DAY_MS)
