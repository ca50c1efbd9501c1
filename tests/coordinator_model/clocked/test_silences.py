"""Gaps of the log's time: where no coordinator worked none is blamed, and where silence is normal nothing is missed.

A member is to hand a partition over; then comes the gap, and seconds after it the member lets go.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Final

import pytest

from coordinator_model.clocked.silences import KNOWN_MS, TIMES_AS_LONG, Rhythm
from coordinator_model.clocked.stuck import GRACE_MS, STALLED_MS
from coordinator_model.recording_clock import Looks
from coordinator_model.replica import Replica
from coordinator_model.state.events import INFO, Event
from lab.builders import REBALANCE_TIMEOUT_MS, offset_commit
from lab.coordinator_events import consumer_join, consumer_moves, speaks_classic
from tests.histories import PARTITION, History, Moment, at, history

MINUTE_MS: Final = 60_000
BEGUN_MS: Final = 600_000
"""When the rebalance begins: so long the log had been written to."""
GAP_MS: Final = 20 * MINUTE_MS

TWO: Final = {"a": {"t": [0]}, "b": {"t": [1]}}


def played(log: History, written: Sequence[int] | None = None) -> list[Event]:
    """What the replica and the clock of a recording find; `written` are the times of the whole recording."""
    replica, events = Replica(), list[Event]()
    looks = Looks(replica, {}, written=None if written is None else lambda: written)
    for of in log.records:
        events += looks.before(of.place)
        events += replica.replay(of.place, of.key, of.value)
    return [*events, *replica.settle(), *looks.at_end()]


def alarms(events: Iterable[Event]) -> list[str]:
    """Kinds of what wakes somebody."""
    return [of.kind for of in events if of.severity != INFO]


def told(events: Iterable[Event]) -> list[dict[str, object]]:
    """What is said of times in which no coordinator worked."""
    return [dict(of.detail) for of in events if of.kind == "coordinator_not_loaded"]


def commits(since_ms: int, until_ms: int, every_ms: int = 5_000, group: str = "other") -> list[Moment]:
    """What a consumer with automatic commits writes."""
    return [at(ms, offset_commit(group, "u", 0, ms)) for ms in range(since_ms, until_ms, every_ms)]


def hands_over() -> list[Moment]:
    """`a` has both partitions, `b` comes, and `a` is to let go of one."""
    revokes = consumer_moves("g", "a", epoch=2, assigned={"t": [0]}, pending={"t": [1]}, state=1)
    return [
        at(0, *consumer_join("g", "a", epoch=2, targets={"a": {"t": [0, 1]}})),
        at(BEGUN_MS, *consumer_join("g", "b", epoch=3, targets=TWO, assigned={})),
        at(BEGUN_MS + 2_000, *revokes),
    ]


def lets_go(time_ms: int) -> list[Moment]:
    return [
        at(time_ms, *consumer_moves("g", "a", epoch=3, assigned={"t": [0]})),
        at(time_ms + 1_000, *consumer_moves("g", "b", epoch=3, assigned={"t": [1]})),
    ]


def in_order(*parts: Iterable[Moment]) -> History:
    return history(*sorted((moment for part in parts for moment in part), key=lambda moment: moment.time_ms))


RESUMED_MS: Final = BEGUN_MS + 3_000 + GAP_MS


def test_nobody_is_blamed_for_what_did_not_happen_while_no_coordinator_worked() -> None:
    """A log that is written to every five seconds has nothing for twenty minutes, as if its clock had been set ahead.

    The member lets go three seconds after; that no coordinator worked is said once, with the groups that waited.
    """
    log = in_order(
        commits(1_000, BEGUN_MS + 3_000),
        hands_over(),
        lets_go(RESUMED_MS + 3_000),
        commits(RESUMED_MS, RESUMED_MS + 60_000),
    )
    events = played(log)

    assert [] == alarms(events)
    (said,) = told(events)
    assert (PARTITION, ["g"]) == (said["partition"], said["groups"])
    assert GAP_MS // 1_000 == round((int(str(said["until"])) - int(str(said["since"]))) / 1_000, -1)


def test_rebalance_that_hangs_again_after_the_gap_is_reported_by_the_time_after_it() -> None:
    """Who is back and does not let go is late once its timeout has passed since then, not before."""
    busy_until_ms = RESUMED_MS + REBALANCE_TIMEOUT_MS + GRACE_MS + 60_000
    log = in_order(commits(1_000, BEGUN_MS + 3_000), hands_over(), commits(RESUMED_MS, busy_until_ms))

    (stuck,) = (of for of in played(log) if of.kind == "rebalance_stuck")

    assert ["a"] == [of["member_id"] for of in stuck.detail["members"]]
    assert REBALANCE_TIMEOUT_MS < stuck.detail["members"][0]["late_ms"] < REBALANCE_TIMEOUT_MS + GRACE_MS + 30_000


def quiet_before() -> list[Moment]:
    """A log that is written to now and then."""
    return commits(1_000, BEGUN_MS, every_ms=GAP_MS // (TIMES_AS_LONG + 1))


def nothing_before() -> list[Moment]:
    """A log of which too little is known to call anything usual."""
    return commits(BEGUN_MS - 50_000, BEGUN_MS)


def others_meanwhile() -> list[Moment]:
    """Another group commits all the time: the coordinator works."""
    return commits(1_000, RESUMED_MS)


@pytest.mark.parametrize("others", [quiet_before, nothing_before, others_meanwhile])
def test_rebalance_that_hangs_where_silence_is_normal_is_reported(others: Callable[[], list[Moment]]) -> None:
    """Nearest to it: the time did pass, or for all that is known it did, and the member is named."""
    events = played(in_order(others(), hands_over(), lets_go(RESUMED_MS + 3_000)))

    assert ["rebalance_stuck"] == alarms(events)
    assert [] == told(events)
    assert ["a"] == [
        of["member_id"] for of in next(of for of in events if of.kind == "rebalance_stuck").detail["members"]
    ]


def test_what_was_overdue_before_the_gap_is_reported_though_it_follows() -> None:
    """The member was late while others wrote, which showed that the coordinator worked; then that went away."""
    late_ms = BEGUN_MS + 2_000 + REBALANCE_TIMEOUT_MS + GRACE_MS + 60_000
    log = in_order(commits(1_000, late_ms), hands_over(), lets_go(late_ms + GAP_MS))

    assert ["rebalance_stuck"] == alarms(played(log))


def mixed() -> list[Moment]:
    """A group of both protocols, each member where it should be."""
    both = {"a": {"t": [0]}, "b": {"t": [1]}}
    return [
        at(0, *consumer_join("g", "a", epoch=2, targets={"a": both["a"]}, classic=speaks_classic())),
        at(1_000, *consumer_join("g", "b", epoch=3, targets=both)),
        at(2_000, *consumer_moves("g", "a", epoch=3, assigned=both["a"])),
    ]


@pytest.mark.parametrize("is_away", [True, False])
def test_roll_does_not_stall_while_no_coordinator_works(is_away: bool) -> None:
    """No member could come or go; where others wrote meanwhile, none did for half an hour, and that is said."""
    resumed_ms = BEGUN_MS + STALLED_MS
    others = commits(2_000, BEGUN_MS if is_away else resumed_ms)
    events = played(in_order(others, mixed(), commits(resumed_ms, resumed_ms + 60_000)))

    assert ([] if is_away else ["migration_stalled"]) == alarms(events)
    assert (["g"] if is_away else None) == next((of["groups"] for of in told(events)), None)


@pytest.mark.parametrize("is_away", [True, False])
def test_quiet_partition_is_judged_by_all_partitions_together(is_away: bool) -> None:
    """All brokers were away at once: the group's own partition is always quiet, and the cluster's never was."""
    times = [*range(0, BEGUN_MS + 3_000, 5_000), *range(RESUMED_MS, RESUMED_MS + 60_000, 5_000)]
    if not is_away:
        times += range(BEGUN_MS, RESUMED_MS, 5_000)
    events = played(in_order(hands_over(), lets_go(RESUMED_MS + 3_000)), times)

    assert ([] if is_away else ["rebalance_stuck"]) == alarms(events)
    assert is_away == bool(told(events))


def test_quiet_partition_in_which_a_member_was_late_before_all_were_silent_is_reported() -> None:
    """The others wrote for longer than its timeout, and then none did."""
    away_ms = BEGUN_MS + REBALANCE_TIMEOUT_MS + GRACE_MS + 60_000
    times = [*range(0, away_ms, 5_000), *range(away_ms + GAP_MS, away_ms + GAP_MS + 60_000, 5_000)]

    assert ["rebalance_stuck"] == alarms(played(in_order(hands_over(), lets_go(away_ms + GAP_MS + 3_000)), times))


def test_what_is_usual_is_known_after_some_moments_and_minutes() -> None:
    """And forgotten an hour later; a clock that is set back makes nothing of it."""
    rhythm = Rhythm()
    for ms in range(0, KNOWN_MS, 5_000):
        rhythm.note(ms)
        assert rhythm.usual_ms(GAP_MS) is None
    rhythm.note(KNOWN_MS)
    assert 5_000 == rhythm.usual_ms(GAP_MS)
    assert rhythm.usual_ms(MINUTE_MS) is None

    rhythm.note(KNOWN_MS - 3_600_000)
    assert rhythm.usual_ms(GAP_MS) in (None, 5_000)
    rhythm.note(KNOWN_MS - 3_600_000 + GAP_MS)
    assert rhythm.usual_ms(2 * GAP_MS) is None
