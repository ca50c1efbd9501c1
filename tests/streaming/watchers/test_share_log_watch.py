"""The thread that looks for the share coordinator's log."""

import json
from collections.abc import Iterator
from typing import Final

import pytest

from lab.share_state import share_snapshot
from streaming.board.board import Board
from streaming.watchers.share_log_watch import LOOK_EVERY_SECONDS, ShareLogWatch
from tests.streaming.board_rows import ShareShard
from tests.streaming.boards import NOW_MS, THEN_MS, described, log_ends, sample

LOG: Final = "__share_group_state"


class Looks:
    """Answers one after the other, at a time that is set."""

    def __init__(self, *answers: tuple[bool, bool] | Exception) -> None:
        self._answers: Iterator[tuple[bool, bool] | Exception] = iter(answers)
        self.asked = 0
        self.seconds = 0.0

    def look(self) -> tuple[bool, bool]:
        """The next answer."""
        self.asked += 1
        answer = next(self._answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def clock(self) -> float:
        """The time."""
        return self.seconds


def is_known(board: Board) -> bool:
    return board.ends.share_log.why_unknown is None


def watched(looks: Looks) -> tuple[Board, ShareLogWatch]:
    board = Board(log_ends())
    board.load([])
    return board, ShareLogWatch(board, looks.look, lambda: NOW_MS, looks.clock)


@pytest.mark.parametrize(
    ("answer", "found"), [((False, False), "absent"), ((True, False), "unreadable"), ((True, True), "readable")]
)
def test_what_is_seen_is_said(answer: tuple[bool, bool], found: str) -> None:
    """Where the topic is, and may be read."""
    board, watch = watched(Looks(answer))
    watch.check()

    assert found == board.ends.share_log.found


def test_it_is_looked_for_once_a_minute() -> None:
    """A share group may come, or a permission."""
    looks = Looks((False, False), (True, False), (True, True))
    board, watch = watched(looks)
    for second in range(int(2 * LOOK_EVERY_SECONDS) + 1):
        looks.seconds = second
        watch.check()

    assert 3 == looks.asked
    assert "readable" == board.ends.share_log.found


def test_brokers_that_do_not_answer_change_nothing() -> None:
    """What was seen before stands."""
    looks = Looks((True, True), OSError("away"))
    board, watch = watched(looks)
    watch.check()
    looks.seconds = LOOK_EVERY_SECONDS
    watch.check()

    assert "readable" == board.ends.share_log.found


def test_share_lag_is_known_when_the_log_is_read() -> None:
    """As far as it went when its ends were sampled for the first time; also what is owed is passed on."""
    board, watch = watched(Looks((True, True)))
    watch.check()
    assert not is_known(board)
    board.ends.set_topics([described(LOG, 1)], [LOG])
    sample(board.ends, NOW_MS, LOG, 1)
    board.ends.record_earliest({(LOG, 0): 0})
    watch.check()
    assert not is_known(board)
    board.apply(1, ShareShard().write(share_snapshot("s", "t", 0), timestamp_ms=THEN_MS), NOW_MS)
    watch.check()

    assert is_known(board)
    assert {0: 1} == board.ends.share_log.positions


def test_records_of_an_early_access_are_said_to_be_such() -> None:
    """None of them decodes; as soon as one does, the log is what it should be."""
    board, watch = watched(Looks((True, True)))
    key, value = share_snapshot("s", "t", 0)
    assert value is not None
    shares = ShareShard()
    rows = shares.write((key, value[:9]), timestamp_ms=THEN_MS)
    totals = {**json.loads(rows[-1][3]), "undecodable_records": {"0": 1}}
    board.apply(1, [*rows[:-1], rows[-1]._replace(payload=json.dumps(totals).encode())], NOW_MS)
    watch.check()
    assert "brokers of 4.0, an early access" in str(board.ends.share_log.why_unknown)

    board.apply(2, shares.write((key, value), timestamp_ms=THEN_MS), NOW_MS)
    watch.check()
    assert "early access" not in str(board.ends.share_log.why_unknown)
