"""When a record was written, by halving: every log that can be, answered as a broker answers."""

import random

import pytest

from streaming.end_offsets.bisection import MOST_QUESTIONS, PRECISION_MS, Bisection

DAY_MS = 86_400_000
NOW_MS = 400 * DAY_MS


def searched(log: list[tuple[int, int]], offset: int, now_ms: int = NOW_MS) -> Bisection:
    """The search for an offset in a log of (offset, timestamp)."""
    search = Bisection(offset, now_ms)
    while not search.is_over:
        asked = search.question_ms
        search.take(*next(((at, time_ms) for at, time_ms in log if time_ms >= asked), (-1, -1)))
    return search


def some_log(chance: random.Random, *, gaps: bool) -> list[tuple[int, int]]:
    """Records with growing timestamps, close together or days apart; with gaps as the cleaner leaves them."""
    offset, time_ms, log = chance.randint(0, 1_000), chance.randint(1, DAY_MS), []
    for _ in range(chance.randint(2, 80)):
        log.append((offset, time_ms))
        offset += chance.randint(1, 9) if gaps else 1
        time_ms += chance.choice((0, 1, 500, 5_000, 3_600_000, 3 * DAY_MS))
    return log


@pytest.mark.parametrize("seed", range(40))
def test_time_of_every_record_is_found(seed: int) -> None:
    """Of those with one timestamp, too; in far fewer questions than the limit, to within what ends a search."""
    log = some_log(random.Random(seed), gaps=False)
    for offset, time_ms in log:
        search = searched(log, offset)

        assert search.written_ms is not None
        assert abs(search.written_ms - time_ms) <= PRECISION_MS
        assert search.questions <= 42


@pytest.mark.parametrize("seed", range(40))
def test_record_that_the_cleaner_removed_is_between_its_neighbours(seed: int) -> None:
    """No later than the next one there, and no earlier than the one before: nothing is called younger than it is."""
    log = some_log(random.Random(seed), gaps=True)
    for offset in range(log[0][0], log[-1][0]):
        before = max(time_ms for at, time_ms in log if at <= offset)
        after = next(time_ms for at, time_ms in log if at >= offset)
        search = searched(log, offset)

        assert search.written_ms is not None
        assert before - PRECISION_MS <= search.written_ms <= after


def test_records_deleted_since_take_one_question() -> None:
    """The commit is before the first record there is."""
    search = searched([(100, DAY_MS), (101, 2 * DAY_MS)], 5)

    assert (DAY_MS, 1) == (search.written_ms, search.questions)


@pytest.mark.parametrize("seed", range(40))
def test_clocks_that_go_back_make_no_endless_search(seed: int) -> None:
    """Producers stamp as they like: an answer or none, but an end."""
    chance = random.Random(seed)
    log = [(offset, chance.randint(1, NOW_MS)) for offset in range(60)]
    for offset in range(60):
        search = searched(log, offset)

        assert search.questions <= MOST_QUESTIONS
        assert search.written_ms is None or 0 < search.written_ms <= NOW_MS


def test_log_without_timestamps_is_given_up() -> None:
    """As records of brokers before 0.10 have none."""
    search = searched([], 5)

    assert (None, True, 1) == (search.written_ms, search.is_over, search.questions)
