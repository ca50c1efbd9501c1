"""Lag: every odd case users of such figures have met is a row here."""

import random
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator_model.lag import (
    FRESH_MS,
    LEFT_OUT,
    METHODS,
    SUMS,
    UNKNOWN,
    Cut,
    EndOffsetHistory,
    Lag,
    cut_of,
    is_beyond,
    is_lost,
    measure,
)

NOW_MS = 100_000


def history_of(*samples: tuple[int, int], points: int = 600, span_ms: int = 3_600_000) -> EndOffsetHistory:
    """A history of (time in ms, end offset) samples."""
    history = EndOffsetHistory(points, span_ms)
    for time_ms, end in samples:
        history.add(time_ms, end)
    return history


STEADY = ((90_000, 1_000), (95_000, 1_500), (100_000, 2_000))
"""A hundred records a second."""

IDLE_THEN_BUSY = ((0, 500), (50_000, 500), (99_000, 500), (100_000, 510))
"""An hour of silence in short, then ten records at once."""

CASES = {
    # what it shows: (committed, end, samples, expected)
    "at the end": (2_000, 2_000, STEADY, Lag(0, 0.0, "caught_up", 0)),
    "at the end, nothing sampled before": (2_000, 2_000, (), Lag(0, 0.0, "caught_up", 0)),
    "fresher than the sample: never negative": (2_040, 2_000, STEADY, Lag(0, 0.0, "ahead_of_end", 0)),
    "between two samples": (1_600, 2_000, STEADY, Lag(400, 4.0, "interpolated", 400)),
    "exactly at a sample": (1_500, 2_000, STEADY, Lag(500, 5.0, "interpolated", 500)),
    "exactly at the first sample": (1_000, 2_000, STEADY, Lag(1_000, 10.0, "interpolated", 1_000)),
    "older than the first sample: it was there by then": (
        999,
        2_000,
        STEADY,
        Lag(1_001, 10.0, "at_least", 1_001, at_least=True),
    ),
    "one sample is a lower bound": (1_999, 2_000, ((90_000, 2_000),), Lag(1, 10.0, "at_least", 1, at_least=True)),
    "no sample at all": (1_999, 2_000, (), Lag(1, 0.0, "at_least", 1, at_least=True)),
    "idle topic: the silence is not lag": (500, 510, IDLE_THEN_BUSY, Lag(10, 1.0, "interpolated", 10)),
    "idle topic, part of the burst read": (505, 510, IDLE_THEN_BUSY, Lag(5, 0.5, "interpolated", 5)),
    "end newer than the history": (2_100, 2_200, STEADY, Lag(100, 0.0, "at_least", 100, at_least=True)),
    "never committed is not committed at 0": (None, 2_000, STEADY, Lag(None, None, "no_committed_offset")),
    "a commit of -1 says there is none": (-1, 2_000, STEADY, Lag(None, None, "no_committed_offset")),
    "end unknown": (1_500, None, (), Lag(None, None, "no_end_offset")),
    "committed at 0 is a commit": (0, 0, ((100_000, 0),), Lag(0, 0.0, "caught_up", 0)),
    "fresher than the sample of a recreated topic": (
        1_500,
        10,
        ((99_000, 5), (100_000, 10)),
        Lag(0, 0.0, "ahead_of_end", 0),
    ),
}


@pytest.mark.parametrize(("committed", "end", "samples", "expected"), CASES.values(), ids=CASES.keys())
def test_lag_of_one_partition(
    committed: int | None, end: int | None, samples: tuple[tuple[int, int], ...], expected: Lag
) -> None:
    """Each row of the table gives the lag it says."""
    assert expected == measure(committed, end, history_of(*samples), NOW_MS)


def test_lag_of_a_topic_recreated_is_unknown() -> None:
    """A commit that names a former topic's id says nothing about the present one, although its offset would fit."""
    assert Lag(None, None, "topic_recreated") == measure(1_500, 2_000, history_of(*STEADY), NOW_MS, same_topic=False)


def test_lag_in_seconds_grows_while_nobody_commits() -> None:
    """A dead consumer's lag in seconds grows with the time of reading, without any new sample."""
    history = history_of(*STEADY)

    assert [4.0, 64.0] == [measure(1_600, 2_000, history, now).seconds for now in (NOW_MS, NOW_MS + 60_000)]


GAPS: dict[str, tuple[int, int | None, dict[int, int], float, str]] = {
    # what it shows: (committed of 2,000, start, gaps, seconds, method)
    "a marker is all there is": (1_999, 0, {1_999: 2_000}, 0.0, "no_record"),
    "the log is empty: nothing waits": (1_600, 2_000, {}, 0.0, "no_record"),
    "markers and aborted ones, looked at in two parts": (1_600, 0, {1_600: 1_800, 1_800: 2_000}, 0.0, "no_record"),
    "a marker, and a record after it": (1_600, 0, {1_600: 1_700, 1_700: 1_700}, 3.0, "interpolated"),
    "a marker, and what was appended since": (1_600, 0, {1_600: 1_900}, 1.0, "interpolated"),
    "a record at the commit, whatever its timestamp": (1_600, 0, {1_600: 1_600}, 4.0, "interpolated"),
    "nothing is known": (1_600, 0, {}, 4.0, "interpolated"),
    "where the log begins nothing is known": (1_600, None, {}, 4.0, "interpolated"),
    "below the start nothing waits, beyond it records do": (1_600, 1_800, {}, 2.0, "interpolated"),
    "below the start, and a marker from there on": (1_600, 1_800, {1_800: 2_000}, 0.0, "no_record"),
    "a gap of another commit": (1_600, 0, {1_500: 1_600, 1_700: 2_000}, 4.0, "interpolated"),
    "a start beyond the end is of the log before it was cut": (1_600, 2_001, {}, 4.0, "interpolated"),
}


@pytest.mark.parametrize(("committed", "start", "gaps", "seconds", "method"), GAPS.values(), ids=GAPS.keys())
def test_lag_in_seconds_begins_where_a_record_may_wait(
    committed: int, start: int | None, gaps: dict[int, int], seconds: float, method: str
) -> None:
    """Lag in records stays as Kafka's tool prints it; an offset that nothing is known of holds a record."""
    found = measure(committed, 2_000, history_of(*STEADY), NOW_MS, start=start, gaps=gaps)

    assert Lag(2_000 - committed, seconds, method, 2_000 - committed) == found


def test_what_holds_no_record_makes_no_lag_that_grows() -> None:
    """However long the group has been away; a record there does."""
    history = history_of(*STEADY)

    def seconds(gaps: dict[int, int]) -> list[float | None]:
        return [measure(1_999, 2_000, history, NOW_MS + ms, gaps=gaps).seconds for ms in (0, 3_600_000)]

    assert [0.0, 0.0] == seconds({1_999: 2_000})
    assert [0.01, 3600.01] == seconds({1_999: 1_999})


@pytest.mark.parametrize(
    ("committed", "start", "gaps", "expected"),
    [
        (10, 11, {10: 11}, False),
        (10, 12, {10: 11, 11: 12}, False),
        (10, 20, {10: 30}, False),
        (10, 11, {}, True),
        (10, 11, {10: 10}, True),
        (10, 12, {10: 11, 11: 11}, True),
        (10, 12, {10: 11}, True),
        (10, 10, {}, False),
        (10, None, {}, False),
        (-1, 10, {}, False),
    ],
    ids=[
        *("a marker", "two", "a long transaction, aborted", "nothing is known", "a record", "a marker and a record"),
        *("a marker and more", "at the start", "where the log begins is not known", "no offset"),
    ],
)
def test_only_records_are_lost(committed: int, start: int | None, gaps: dict[int, int], expected: bool) -> None:
    """A commit below the log's start, between which only markers and aborted ones were, has lost nothing."""
    assert expected == is_lost(committed, start, gaps)


def test_the_end_stands_since_its_first_sample() -> None:
    """Of a run of equal ends that is the first; none without a sample."""
    assert [None, 5, 5, 9] == [
        history_of(*samples).stands_since()
        for samples in ((), ((5, 10),), ((5, 10), (7, 10), (9, 10)), ((5, 10), (9, 11)))
    ]


def test_every_method_of_the_table_is_declared() -> None:
    """What `measure` may answer is what `METHODS` lists."""
    found = {measure(row[0], row[1], history_of(*row[2]), NOW_MS).method for row in CASES.values()}

    elsewhere = {"topic_recreated", "beyond_end", "list_offsets", "truncated", "no_such_topic", "no_record"}
    assert set(METHODS) == found | elsewhere


@pytest.mark.parametrize(("exists", "method"), [(True, "no_end_offset"), (False, "no_such_topic")])
def test_topic_that_was_deleted_is_not_one_of_which_nothing_is_known(exists: bool, method: str) -> None:
    """Of the one nothing waits, so sums go on without it; of the other it is unknown."""
    assert Lag(None, None, method) == measure(7, None, None, NOW_MS, exists=exists)
    assert (UNKNOWN if exists else LEFT_OUT) == SUMS[method]


def test_sums_have_a_rule_for_every_lag_without_a_figure() -> None:
    """What has a figure is added up."""
    without = {row[3].method for row in CASES.values() if row[3].records is None}

    assert without | {"topic_recreated", "beyond_end", "no_such_topic", "never_committed"} == SUMS.keys()


@pytest.mark.parametrize(
    ("high_watermark", "committed_ms", "expected"),
    [
        (10, NOW_MS - FRESH_MS, True),
        (10, NOW_MS - FRESH_MS + 1, False),
        # Read uncommitted, behind an open transaction.
        (1_500, NOW_MS - FRESH_MS, False),
        (10, -1, False),
        (None, NOW_MS - FRESH_MS, False),
    ],
)
def test_commit_beyond_a_log_sampled_long_after_it(
    high_watermark: int | None, committed_ms: int, expected: bool
) -> None:
    """The topic was recreated, or cut off: what it has been given since is behind no one, and no one reads it."""
    assert expected == is_beyond(1_500, high_watermark, committed_ms, NOW_MS)


def test_history_keeps_first_and_last_of_equal_ends() -> None:
    """An idle partition costs two samples, however long it is idle."""
    history = history_of(*((second * 1_000, 500) for second in range(10_000)), span_ms=10**9)

    assert [(0, 500), (9_999_000, 500)] == history.samples()


def test_history_begins_again_when_the_end_goes_backwards() -> None:
    """A smaller end is another log: nothing is read off the former one."""
    history = history_of((1_000, 900), (2_000, 1_000), (3_000, 4), (4_000, 8))

    assert [(3_000, 4), (4_000, 8)] == history.samples()
    assert history.time_of(950) is None


def test_history_follows_a_clock_set_back() -> None:
    """Samples of the time that is lived through again go; the history goes on growing."""
    history = history_of((1_000, 10), (9_000, 20), (10_000, 30), (2_000, 40), (3_000, 50))

    assert [(1_000, 10), (2_000, 40), (3_000, 50)] == history.samples()


def test_history_spans_a_long_time_with_few_points() -> None:
    """An hour of a busy partition, sampled each second, fits 600 points and still answers for its first minute."""
    history = history_of(*((second * 1_000, second * 100) for second in range(3_601)), span_ms=3_600_000)

    assert len(history) <= 600
    assert history.time_of(6_000) == pytest.approx(60_000, abs=1_000)


def test_history_is_dense_where_it_is_young() -> None:
    """The latest five minutes of an hour are kept second by second."""
    history = history_of(*((second * 1_000, second * 100) for second in range(3_601)))

    latest = [time_ms for time_ms, _ in history.samples()][-290:]
    assert {1_000} == {after - before for before, after in pairwise(latest)}


def test_history_forgets_what_is_older_than_its_span() -> None:
    """One sample at or before the horizon stays, so that the span is bracketed to its beginning."""
    history = history_of(*((second * 1_000, second) for second in range(101)), span_ms=10_000)

    assert 90_000 == history.samples()[0][0]


@pytest.mark.parametrize("points", [1, 2, 3, 5])
def test_history_keeps_within_its_points(points: int) -> None:
    """However few points are allowed, there are never more, and never fewer than bracket something."""
    history = history_of(*((second * 1_000, second) for second in range(50)), points=points)

    assert 2 <= len(history) <= max(2, points)


@pytest.mark.parametrize("samples", [STEADY, IDLE_THEN_BUSY, (), ((5, 0),)])
def test_history_survives_a_restart(samples: tuple[tuple[int, int], ...]) -> None:
    """What is dumped and loaded again answers alike."""
    history = history_of(*samples)

    assert history.samples() == EndOffsetHistory.load(history.dump()).samples()


def test_history_is_loaded_under_limits_that_have_changed() -> None:
    """Fewer points at once, a shorter span once it is known which commits are to be bracketed."""
    dumped = history_of(*((second * 1_000, second) for second in range(500))).dump()
    history = EndOffsetHistory.load(dumped, points=50, span_ms=100_000)

    assert 25 < len(history) <= 50
    assert (0, 499_000) == (history.samples()[0][0], history.samples()[-1][0])
    history.hold(None)
    history.add(500_000, 500)
    assert 0 < history.samples()[0][0] <= 400_000


def packed(*values: int) -> bytes:
    return b"".join(value.to_bytes(8, "little", signed=True) for value in values)


@pytest.mark.parametrize(
    "dumped",
    [packed(1), packed(1, 2)[:-1], packed(1, 1, 5, 6), packed(2, 1, 5, 6), packed(1, 2, 6, 5), packed(1, -5)],
    ids=["no end", "a byte short", "time stands still", "time goes back", "end shrinks", "end below 0"],
)
def test_history_refuses_what_is_no_history(dumped: bytes) -> None:
    """A damaged file is an error to be reported, not a history that answers wrongly."""
    with pytest.raises(ValueError, match="end offset history"):
        EndOffsetHistory.load(dumped)


@given(
    steps=st.lists(st.tuples(st.integers(1, 5_000), st.integers(-20, 500)), min_size=1, max_size=200),
    committed=st.integers(0, 20_000),
    points=st.integers(2, 40),
)
def test_lag_is_a_figure_or_none(steps: list[tuple[int, int]], committed: int, points: int) -> None:
    """Whatever was sampled, lag is not negative, and a time lies within what was sampled or is not there."""
    history = EndOffsetHistory(points)
    now_ms, end = 0, 0
    for elapsed_ms, grown in steps:
        now_ms, end = now_ms + elapsed_ms, max(0, end + grown)
        history.add(now_ms, end)

    lag = measure(committed, end, history, now_ms)

    assert lag.records == max(0, end - committed)
    samples = history.samples()
    assert list(samples) == sorted(samples)
    assert lag.seconds is None or 0 <= lag.seconds <= (now_ms - samples[0][0]) / 1000


# -- lag in seconds is there while there is lag -----------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(24))
def test_lag_of_a_dead_group_is_reported_for_days(seed: int) -> None:
    """However long it has been dead: its bracket is kept, to within what is thinned out, and its age grows."""
    chance = random.Random(seed)
    history = EndOffsetHistory(points=chance.choice([30, 600]), span_ms=60_000)
    ends, now_ms, committed, died_ms = 0, 0, None, 0
    for step in range(3_000):
        now_ms += chance.randint(500, 60_000)
        ends += chance.randint(1, 50)
        history.hold(committed)
        history.add(now_ms, ends)
        if step == 100:
            committed, died_ms = ends, now_ms

    lag = measure(committed, ends, history, now_ms)

    assert "interpolated" == lag.method
    assert lag.seconds == pytest.approx((now_ms - died_ms) / 1000, rel=0.2)


@pytest.mark.parametrize("seed", range(24))
def test_lag_from_before_the_first_sample_is_a_lower_bound_that_grows(seed: int) -> None:
    """A group that had stopped before the monitor began: never absent, never more than it is, marked as what it is."""
    chance = random.Random(seed)
    history, now_ms, ends = EndOffsetHistory(), 1_000_000, 10_000
    committed = chance.randint(0, ends - 1)
    before = -1.0
    for _ in range(50):
        history.hold(committed)
        history.add(now_ms, ends)
        lag = measure(committed, ends, history, now_ms)

        assert ("at_least", True) == (lag.method, lag.at_least)
        assert lag.seconds is not None
        assert before < lag.seconds == (now_ms - 1_000_000) / 1000
        before = lag.seconds
        now_ms += chance.randint(1, 600_000)
        ends += chance.randint(0, 9)


@pytest.mark.parametrize("behind_seconds", [10, 60, 86_400])
def test_time_that_brokers_said_takes_the_place_of_a_lower_bound(behind_seconds: int) -> None:
    """It is no less than what was sampled: a producer's clock that is ahead makes no young record."""
    written_ms = NOW_MS - behind_seconds * 1_000

    asked = measure(999, 2_000, history_of(*STEADY), NOW_MS, found={999: written_ms})
    ahead = measure(999, 2_000, history_of(*STEADY), NOW_MS, found={999: NOW_MS + 5_000})
    other = measure(998, 2_000, history_of(*STEADY), NOW_MS, found={999: written_ms})

    assert Lag(1_001, float(behind_seconds), "list_offsets", 1_001) == asked
    assert Lag(1_001, 10.0, "at_least", 1_001, at_least=True) == ahead
    assert "at_least" == other.method


def test_what_nobody_is_behind_on_is_forgotten() -> None:
    """A partition that everybody reads keeps its span, and no more."""
    history = EndOffsetHistory(span_ms=10_000)
    for second in range(101):
        history.hold(second)
        history.add(second * 1_000, second)

    assert 90_000 == history.samples()[0][0]


# -- both ends --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("committed", "stable", "expected"),
    [(2_000, 2_000, (0, 0)), (1_600, 1_600, (400, 0)), (1_500, 1_600, (500, 100)), (1_700, 1_600, (300, 0))],
)
def test_lag_is_to_the_high_watermark_and_stable_lag_to_the_last_stable_offset(
    committed: int, stable: int, expected: tuple[int, int]
) -> None:
    """A reader of committed records that got as far as it can is not caught up while a transaction is open."""
    lag = measure(committed, 2_000, history_of(*STEADY), NOW_MS, stable=stable)

    assert expected == (lag.records, lag.stable_records)
    assert (lag.method == "caught_up") == (lag.records == 0)


# -- logs that were cut off -------------------------------------------------------------------------------------------

CUT = Cut(offset=50, time_ms=10_000, leader_epoch=7)


@pytest.mark.parametrize(
    ("offset", "leader_epoch", "committed_ms", "expected"),
    [
        (80, 6, 9_000, 50),
        (80, 6, 12_000, 50),  # by a consumer that had not noticed yet
        (80, 7, 12_000, None),
        (80, 8, 12_000, None),
        (50, 6, 9_000, None),
        (20, 6, 9_000, None),
        (80, -1, 9_000, 50),
        (80, -1, 12_000, None),
        (80, -1, -1, None),
    ],
)
def test_commit_of_a_log_that_was_cut_off_below_it_counts_from_the_cut(
    offset: int, leader_epoch: int, committed_ms: int, expected: int | None
) -> None:
    """Reported by the leader epoch of the commit, or by its time where the client gave none."""
    assert expected == cut_of([CUT], offset, leader_epoch, committed_ms)


def test_lowest_of_several_cuts_counts() -> None:
    """Each cut is of the commits before it alone."""
    cuts = [Cut(50, 10_000, 7), Cut(70, 20_000, 9)]

    assert 50 == cut_of(cuts, 80, 6, 9_000)
    assert 70 == cut_of(cuts, 80, 7, 15_000)
    assert None is cut_of(cuts, 80, 9, 25_000)
    assert None is cut_of(cuts, 60, 7, 15_000)
    assert None is cut_of([], 80, 6, 9_000)


def test_cut_whose_leader_is_not_known_yet_goes_by_time() -> None:
    """Until the topic is described again."""
    assert 50 == cut_of([Cut(50, 10_000)], 80, 6, 9_000)
    assert None is cut_of([Cut(50, 10_000)], 80, 6, 11_000)
