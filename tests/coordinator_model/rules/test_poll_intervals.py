"""Members that exceed `max.poll.interval.ms` again and again, and all that leaves and joins for another reason."""

from collections.abc import Iterable

import pytest

from coordinator_model.records.classic_group import MemberMetadata
from coordinator_model.rules.poll_intervals import IN_A_ROW, IN_A_ROW_OF_A_GUESS
from coordinator_model.state.snapshot import dump_group, load_group
from lab.builders import (
    HOST,
    REBALANCE_TIMEOUT_MS,
    group_metadata,
    member,
)
from lab.coordinator_events import consumer_join, consumer_leave, static_goes_away, static_returns
from tests.histories import Moment, Reported, at, history
from tests.moments import overdue

KIND = "poll_interval_exceeded"
T = REBALANCE_TIMEOUT_MS
STAYS = member("stays", {"t": [1]}, client_id="other")


def slow(
    leaves: int,
    *,
    joined_ms: int = T,
    away_ms: int = 20_000,
    stays: bool = True,
    beside: MemberMetadata = STAYS,
    hosts: Iterable[str] = (),
    first: int = 0,
) -> list[Moment]:
    """A classic member that leaves so long after it joined, and joins after a while, so often."""
    hosts = list(hosts) or [HOST]
    others = [beside] if stays else []
    moments, time_ms = [], first
    for turn in range(leaves + 1):
        comes = member(f"slow-{turn}", {"t": [0]}, client_host=hosts[turn % len(hosts)])
        moments.append(at(time_ms, group_metadata("g", generation=2 * turn + 1, members=[*others, comes])))
        time_ms += joined_ms
        if turn < leaves:
            moments.append(at(time_ms, group_metadata("g", generation=2 * turn + 2, members=others)))
            time_ms += away_ms
    return moments


def said(reported: Reported) -> list[tuple[int, str]]:
    """(time, severity) of what was said of the kind."""
    return [(event.time_ms, event.severity) for event in reported.events if event.kind == KIND]


@pytest.mark.parametrize("stays", [True, False], ids=["beside another", "alone"])
@pytest.mark.parametrize("away_ms", [1, 20_000, T // 3])
def test_member_that_leaves_after_its_poll_interval_again_and_again_is_reported(away_ms: int, stays: bool) -> None:
    """With the join after the third leave in a row, once, whether the group is empty meanwhile or not."""
    reported = history(*slow(8, away_ms=away_ms, stays=stays)).replayed()

    assert [(IN_A_ROW * (T + away_ms), "warning")] == said(reported)
    assert [KIND] == [kind for _, kind in reported.timed_alarms()]
    (detail,) = reported.details(KIND)
    assert ("client", HOST, "slow-3", 3, T, T + away_ms, T) == tuple(
        detail[key]
        for key in ("client_id", "client_host", "member_id", "leaves", "since", "every_ms", "rebalance_timeout_ms")
    )
    assert all(event.inferred for event in reported.events if event.kind == KIND)


def test_member_that_is_gone_and_back_in_one_step_is_reported() -> None:
    """The others were slow to rejoin, so that one generation shows both."""
    moments = [
        at(turn * (T + 9_000), group_metadata("g", generation=turn + 1, members=[STAYS, member(f"slow-{turn}", {})]))
        for turn in range(4)
    ]

    assert [(3 * (T + 9_000), "warning")] == said(history(*moments).replayed())


def _of_consumer_group(turn: int) -> tuple[Moment, Moment]:
    targets = {f"slow-{turn}": {"t": [0]}}
    joins_ms = turn * (T + 20_000)
    return (
        at(joins_ms, *consumer_join("g", f"slow-{turn}", epoch=2 * turn + 2, targets=targets)),
        at(joins_ms + T, *consumer_leave("g", f"slow-{turn}", epoch=2 * turn + 3)),
    )


def test_members_of_consumer_groups_exceed_it_too() -> None:
    """They leave and join under a new member id."""
    moments = [moment for turn in range(4) for moment in _of_consumer_group(turn)]

    assert [(3 * (T + 20_000), "warning")] == said(history(*moments).replayed())


def test_static_member_that_is_away_and_returns_each_time_is_reported() -> None:
    """With the consumer protocol it goes as one that will be back."""
    joined = consumer_join("g", "s-0", epoch=2, targets={"s-0": {"t": [0]}}, instance_id="i")
    moments = [at(0, *joined)]
    for turn in range(3):
        left_ms = turn * (T + 20_000) + T
        old, new = f"s-{turn}", f"s-{turn + 1}"
        moments += [
            at(left_ms, *static_goes_away("g", old, assigned={"t": [0]}, previous_epoch=2)),
            at(left_ms + 20_000, *static_returns("g", old=old, new=new, instance_id="i", epoch=2, assigned={"t": [0]})),
        ]

    assert [(3 * (T + 20_000), "warning")] == said(history(*moments).replayed())


@pytest.mark.parametrize(
    ("joined_ms", "away_ms", "reported"),
    [
        pytest.param(T * 7 // 10, T // 10, True, id="0.8 timeouts apart"),
        pytest.param(T * 7 // 10, T // 10 - 1, False, id="a little less"),
        pytest.param(T, T // 2, True, id="1.5 timeouts apart"),
        pytest.param(T, T // 2 + 1, False, id="a little more"),
        pytest.param(T // 2, T // 2, True, id="a member for half a timeout"),
        pytest.param(T // 2 - 1, T // 2 + 1, False, id="a little less of one"),
    ],
)
def test_spans_between_leaves_are_about_the_rebalance_timeout(joined_ms: int, away_ms: int, reported: bool) -> None:
    """Which is what a client gives as its poll interval; and most of the time it was a member."""
    assert reported == bool(said(history(*slow(5, joined_ms=joined_ms, away_ms=away_ms)).replayed()))


@pytest.mark.parametrize(("leaves", "reported"), [(IN_A_ROW_OF_A_GUESS - 1, False), (IN_A_ROW_OF_A_GUESS, True)])
def test_where_members_are_alike_it_takes_five(leaves: int, reported: bool) -> None:
    """Members of one client id and host that come and go by chance may do so three times at such a pace."""
    twin = member("twin", {"t": [1]})

    assert reported == bool(said(history(*slow(leaves, beside=twin)).replayed()))


@pytest.mark.parametrize(("leaves", "reported"), [(IN_A_ROW_OF_A_GUESS - 1, False), (IN_A_ROW_OF_A_GUESS, True)])
def test_where_members_were_alike_at_the_first_leave_it_takes_five(leaves: int, reported: bool) -> None:
    """The one that joined next may be in the place of either, though the other is gone by then."""
    twin = member("twin", {"t": [1]})
    first, left, *rest = slow(leaves, beside=twin)
    alone = slow(leaves, stays=False)[2:]

    assert len(rest) == len(alone)
    assert reported == bool(said(history(first, left, *alone).replayed()))


@pytest.mark.parametrize(
    ("joined_ms", "leaves", "reported"),
    [(T * 9 // 10, IN_A_ROW, True), (T * 9 // 10 - 1, IN_A_ROW_OF_A_GUESS - 1, False), (T * 9 // 10 - 1, 5, True)],
)
def test_where_a_member_cannot_have_been_late_it_takes_five(joined_ms: int, leaves: int, reported: bool) -> None:
    """It polls as it joins: one that leaves before its poll interval is over left for another reason."""
    assert reported == bool(said(history(*slow(leaves, joined_ms=joined_ms)).replayed()))


def test_two_leaves_in_a_row_are_none_yet() -> None:
    """Nor is the third one, as long as no member comes in its place."""
    assert [] == said(history(*slow(2)).replayed())
    assert [] == said(history(*slow(3)[:-1]).replayed())


def test_rolling_restart_of_many_members_is_none() -> None:
    """One process of one host each five minutes, under one client id: who comes in the place of another stays."""
    ids = [f"m{number}" for number in range(12)]
    moments = [at(0, group_metadata("g", generation=1, members=[member(of, {}) for of in ids]))]
    for turn, old in enumerate(ids):
        there = [of for of in ids if of != old]
        ids = [*there, f"{old}-new"]
        for step, present in enumerate((there, ids)):
            generation, time_ms = 2 * turn + step + 2, (turn + 1) * T + step * 20_000
            members = [member(of, {}) for of in present]
            moments.append(at(time_ms, group_metadata("g", generation=generation, members=members)))

    assert [] == said(history(*moments).replayed())


@pytest.mark.parametrize("every_ms", [60_000, T, 2 * T])
def test_job_that_consumes_for_a_minute_now_and_then_is_none(every_ms: int) -> None:
    """Each five minutes, too: it is no member for most of them."""
    joined_ms = min(every_ms // 3, 60_000)

    assert [] == said(history(*slow(20, joined_ms=joined_ms, away_ms=every_ms - joined_ms, stays=False)).replayed())


def test_crash_loop_is_none() -> None:
    """The process dies soon after it joined, and is gone with its session; the supervisor waits for five minutes."""
    assert [] == said(history(*slow(12, joined_ms=50_000, away_ms=T)).replayed())


def test_who_comes_from_another_host_is_another_process() -> None:
    """A pod that is moved each time is not the one that left."""
    assert [] == said(history(*slow(8, hosts=[f"/10.0.0.{n}" for n in range(9)])).replayed())


def test_run_before_the_live_tail_is_reported_with_its_next_join() -> None:
    """It began before; nothing is an alarm there."""
    log = history(*slow(5))

    assert [(5 * (T + 20_000), "warning")] == said(log.replayed(live_from=len(log) - 1))
    assert [] == said(log.replayed(live_from=len(log)))


def test_it_is_over_when_no_leave_can_be_counted_any_more() -> None:
    """A timeout and a half after the last one: that is the time of the end, however late one looks."""
    reported = history(*slow(4)).replayed()
    state, last_ms = reported.states["g"], 4 * T + 3 * 20_000

    assert [] == overdue(state, last_ms + T + T // 2)
    for now_ms in (last_ms + T + T // 2 + 1, 86_400_000):
        (event,) = overdue(load_group(dump_group(state)), now_ms)
        assert (KIND, "info", last_ms + T + T // 2) == (event.kind, event.severity, event.time_ms)
        assert {"client_id": "client", "client_host": HOST, "cleared": True} == event.detail


def test_end_that_nobody_saw_is_said_after_another_run_began() -> None:
    """The process ran well for an hour, and is slow again."""
    later_ms = 3_000_000
    again = [at(of.time_ms, *of.records) for of in slow(4, first=later_ms)]
    reported = history(*slow(3), *again).replayed()
    ends = overdue(reported.states["g"], again[-1].time_ms)

    assert 2 == len(said(reported))
    assert [(3 * T + 2 * 20_000 + T + T // 2, True)] == [
        (of.time_ms, of.detail["cleared"]) for of in ends if of.kind == KIND
    ]


def test_leave_that_does_not_count_is_the_end() -> None:
    """It crashed a second after it had joined: it is over with that, and not a timeout and a half later."""
    joined_ms = 3 * (T + 20_000)
    reported = history(*slow(3), at(joined_ms + 1_000, group_metadata("g", generation=99))).replayed()

    (event,) = overdue(reported.states["g"], joined_ms + 1_000)
    assert (KIND, joined_ms + 1_000, True) == (event.kind, event.time_ms, event.detail["cleared"])
