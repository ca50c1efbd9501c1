"""What lag was: bounded, aligned, and gone with what it was of."""

from lab import builders
from streaming.board.board import Board
from streaming.board.lag_columns import Lags
from streaming.board.lag_history import LagHistory
from streaming.watchers.lag_sampler import LagSampler
from tests.streaming.board_rows import Shard
from tests.streaming.boards import NOW_MS, THEN_MS, board_of, log_ends, sample

STEP_MS = 5_000


def committing(*groups: str, partitions: int = 2) -> Board:
    """Groups that committed once, at offset 100 of each partition."""
    shard = Shard()
    sample(ends := log_ends(orders=partitions), NOW_MS, "orders", *[100] * partitions)
    for name in groups:
        for partition in range(partitions):
            shard.pending.append((THEN_MS, *builders.offset_commit(name, "orders", partition, 100)))
    return board_of(shard, ends)


def filled(history: LagHistory, board: Board, moments: int, start: int = 0) -> None:
    """Samples of a log whose first partition grows by one record between any two."""
    for moment in range(start, start + moments):
        now_ms = NOW_MS + moment * STEP_MS
        sample(board.ends, now_ms, "orders", 100 + moment, 100)
        history.sample(board.shown.groups, board.ends, now_ms)


def test_lag_is_remembered_by_group_and_partition() -> None:
    """One axis of time for the group's sum and each of its partitions, the largest first."""
    history, board = LagHistory(), committing("a")
    filled(history, board, 3)
    found = history.group("a")

    assert [NOW_MS, NOW_MS + STEP_MS, NOW_MS + 2 * STEP_MS] == found["times"]
    assert [0, 1, 2] == found["lag"]
    assert [(0, [0, 1, 2]), (1, [0, 0, 0])] == [(each["partition"], each["lag"]) for each in found["partitions"]]
    assert [0.0, 5.0] == found["max_lag_seconds"][:2]


def test_it_gets_sparser_the_older_it_is() -> None:
    """However long it runs there are no more moments than asked for, and first and last are among them."""
    history, board = LagHistory(points=16), committing("a")
    filled(history, board, 200)
    found = history.group("a")
    gaps = [after - before for before, after in zip(found["times"], found["times"][1:], strict=False)]

    assert 16 >= len(found["times"])
    assert (NOW_MS, NOW_MS + 199 * STEP_MS) == (found["times"][0], found["times"][-1])
    assert STEP_MS == gaps[-1] < gaps[0]
    assert [(moment - NOW_MS) // STEP_MS for moment in found["times"]] == found["lag"]
    assert found["lag"] == found["partitions"][0]["lag"]


def test_series_that_begin_later_stay_aligned_through_every_thinning() -> None:
    """A group seen later has a shorter line, each value still at its own moment."""
    history = LagHistory(points=16)
    board = committing("a")
    filled(history, board, 20)
    later = committing("a", "b")
    filled(history, later, 60, start=20)

    for name in ("a", "b"):
        found = history.group(name)
        assert [(moment - NOW_MS) // STEP_MS for moment in found["times"]] == found["lag"], name


def test_what_is_older_than_the_span_goes() -> None:
    """The axis reaches back as far as asked for, no further."""
    history, board = LagHistory(span_ms=10 * STEP_MS), committing("a")
    filled(history, board, 50)

    assert NOW_MS + 39 * STEP_MS == history.group("a")["times"][0]


def test_a_group_that_is_gone_takes_its_lines_along() -> None:
    """Nothing of it is kept: another of the name begins again."""
    history, board = LagHistory(), committing("a", "b")
    filled(history, board, 3)
    filled(history, committing("b"), 1, start=3)
    filled(history, board, 1, start=4)

    assert ([4], [4]) == (history.group("a")["lag"], history.group("a")["partitions"][0]["lag"])
    assert 5 == len(history.group("b")["lag"])
    assert [] == history.group("nobody")["times"]


def test_partitions_beyond_the_room_there_is_have_no_line() -> None:
    """The sum of the group is kept all the same."""
    history, board = LagHistory(most_partitions=3), committing("a", "b")
    filled(history, board, 2)

    # Which of the two comes first is not said.
    assert [0, 2] == sorted(history.group(name)["partition_count"] for name in ("a", "b"))
    assert [[0, 1], [0, 1]] == [history.group(name)["lag"] for name in ("a", "b")]


def partly(history: LagHistory, board: Board, moment: int, *, known: bool, lag: int = 0) -> None:
    """A moment at which the leader of the first partition answers or not; the second one's group has read all."""
    now_ms = NOW_MS + moment * 60_000
    high = {("orders", partition): end for partition, end in ((0, 100 + lag), (1, 100)) if partition or known}
    board.ends.record(now_ms, high, high)
    history.sample(board.shown.groups, board.ends, now_ms)


def test_lag_of_which_a_part_is_not_known_is_a_gap_and_grew_as_it_was_last_known() -> None:
    """Half an hour without the one leader: no figure, and neither growth nor its end."""
    for lags, grew in (((10, 20), True), ((20, 20), False)):
        history, board = LagHistory(), committing("a")
        for moment, lag in enumerate(lags):
            partly(history, board, moment, known=True, lag=lag)
        for moment in range(2, 30):
            partly(history, board, moment, known=False)

        assert [*lags, *[None] * 28] == history.group("a")["lag"]
        assert lags[-1] == history.last_known("a")
        assert grew is history.grew("a", NOW_MS)
        partly(history, board, 30, known=True, lag=30)
        assert 30 == history.group("a")["lag"][-1] == history.last_known("a")


def test_lag_that_was_never_known_has_no_last_one() -> None:
    """Neither did it grow, nor did it not."""
    history, board = LagHistory(), committing("a")
    board.ends.set_topics([], ["orders"])
    for moment in range(3):
        partly(history, board, moment, known=False)

    assert (None, None) == (history.last_known("a"), history.grew("a", NOW_MS))


def test_what_is_not_known_is_a_gap() -> None:
    """No end offset, no lag: null, not 0; and a trend of nothing but zeros is left out."""
    history = LagHistory()
    unknown = board_of(_pending("a"), log_ends(orders=1))
    history.sample(unknown.shown.groups, unknown.ends, NOW_MS)
    still = committing("still")
    both = unknown.shown.groups.with_changes(still.shown.groups)
    history.sample(both, still.ends, NOW_MS + 1)

    assert [None, 0] == history.group("a")["lag"]
    assert [None, 0.0] == history.group("a")["max_lag_seconds"]
    assert {"a"} == history.trends(10)["groups"].keys()


def test_a_clock_set_back_repeats_no_moment() -> None:
    """Moments only grow: what was sampled of the repeated time goes."""
    history, board = LagHistory(), committing("a")
    filled(history, board, 5)
    history.sample(board.shown.groups, board.ends, NOW_MS + STEP_MS)

    assert [NOW_MS, NOW_MS + STEP_MS] == history.group("a")["times"]
    assert 2 == len(history.group("a")["lag"])


def test_nothing_is_sampled_before_lag_may_be_believed() -> None:
    """While catching up, lag is the past's; and a sampler that was stopped is at its end."""
    board, ready = committing("a"), [False]
    sampler = LagSampler(board.lag_history, lambda: board.shown.groups, board.ends, lambda: ready[0], lambda: NOW_MS)
    sampler.sample()
    assert [] == board.lag_history.group("a")["times"]

    ready[0] = True
    sampler.start()
    sampler.sample()
    sampler.stop()
    assert [NOW_MS] == board.lag_history.group("a")["times"]


def test_what_is_measured_for_charts_is_handed_on() -> None:
    """Who looks for groups that may hang need not measure again; before lag may be believed there is nothing."""
    board, ready, taken = committing("a"), [False], list[tuple[Lags, int]]()
    sampler = LagSampler(
        board.lag_history,
        lambda: board.shown.groups,
        board.ends,
        lambda: ready[0],
        lambda: NOW_MS,
        lambda lags, now_ms: taken.append((lags, now_ms)),
    )
    sampler.sample()
    assert [] == taken

    ready[0] = True
    sampler.sample()
    assert [(["a"], NOW_MS)] == [(lags.table.groups.names, now_ms) for lags, now_ms in taken]


def _pending(group: str) -> Shard:
    shard = Shard()
    shard.pending.append((THEN_MS, *builders.offset_commit(group, "orders", 0, 100)))
    return shard
