"""The doubt that a batch that cannot be read leaves behind, and the coordinator whose answer ends it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from lab import builders
from streaming.board.board import Board
from streaming.monitor.coordinator_check import AGREED_FILE, CoordinatorCheck
from streaming.polling import answers
from streaming.polling.client import Answered, Round
from tests.streaming.board.test_unread import MISPLACED, PARTITIONS, READ, UNREAD, a_name, some_board
from tests.streaming.board.test_unreadable import met
from tests.streaming.boards import NOW_MS, caught_up
from tests.streaming.fake_cluster import FakeCluster
from tests.streaming.polling import replies


def of(member: str = "m-1") -> Answered:
    """What a coordinator says of the groups that are shown, where they have this member."""
    made = builders.member(member, {"orders": [0, 1]})
    return Answered(answers.classic_group(replies.classic("g", made)), {})


def said(**more: Answered) -> dict[str, Answered]:
    return {UNREAD: of(), MISPLACED: of(), **more}


@dataclass
class Coordinators(FakeCluster[frozenset[str]]):
    """They say this of their groups; `asked` is whom they were asked about by name."""

    said: Mapping[str, Answered] = field(default_factory=said)
    failure: str | None = None

    def ask(self, shown: Mapping[str, str], wanted: Callable[[str], bool]) -> Round:
        self.note(frozenset(shown))
        listed = frozenset(name for name in self.said if wanted(name))
        answered = {name: answer for name, answer in self.said.items() if name in shown or name in listed}
        return Round(listed=listed, answered=answered, failure=self.failure)


class Checked:
    """A board whose partition 7 has a batch that cannot be read, and the check of it."""

    def __init__(self, directory: Path, query: str = "q-1") -> None:
        board, _ = some_board()
        board.health.set_unread({}, PARTITIONS)
        board.apply(9, met(1), NOW_MS)
        self.board: Board = caught_up(board)
        self.coordinators = Coordinators()
        self.check = CoordinatorCheck(board, self.coordinators.connect, directory, lambda: query, settle_seconds=0)

    @property
    def doubted(self) -> bool:
        return bool(self.board.health.unreadable())


@pytest.fixture
def of_7(tmp_path: Path) -> Checked:
    return Checked(tmp_path)


def test_what_all_coordinators_confirm_is_in_doubt_no_more(of_7: Checked, tmp_path: Path) -> None:
    """They are asked about the groups of the partition alone; the next run knows, and asks no one."""
    of_7.check.check()

    assert not of_7.doubted
    assert [{UNREAD, MISPLACED}] == of_7.coordinators.asked
    assert (7,) == tuple(of_7.board.health.agreed)

    later = Checked(tmp_path)
    later.check.start()
    later.check.stop()
    assert not later.doubted


def test_a_rebuild_begins_anew(of_7: Checked, tmp_path: Path) -> None:
    """Its query counts batches from one."""
    of_7.check.check()

    later = Checked(tmp_path, "q-2")
    later.check.start()
    later.check.stop()

    assert later.doubted


@pytest.mark.parametrize(
    "differs",
    [
        pytest.param(said(**{UNREAD: of("m-2")}), id="another member"),
        pytest.param({MISPLACED: of()}, id="a group that its coordinator does not have"),
        pytest.param(said(**{a_name(7, but=UNREAD): of()}), id="a group that is not shown"),
    ],
)
def test_a_group_that_differs_leaves_it_in_doubt(of_7: Checked, differs: Mapping[str, Answered]) -> None:
    """Until it does not."""
    of_7.coordinators.said = differs
    of_7.check.check()
    assert of_7.doubted

    of_7.coordinators.said = said()
    of_7.check.check()
    assert not of_7.doubted


def test_groups_may_be_confirmed_one_after_the_other(of_7: Checked) -> None:
    """Of many some rebalance at any moment. Another batch that cannot be read begins it again."""
    of_7.coordinators.said = said(**{UNREAD: of("m-2")})
    of_7.check.check()
    of_7.board.apply(10, met(1, 2), NOW_MS)
    of_7.coordinators.said = said(**{MISPLACED: of("m-2")})
    of_7.check.check()
    assert of_7.doubted

    of_7.coordinators.said = said(**{UNREAD: of("m-2")})
    of_7.check.check()

    assert not of_7.doubted


def test_where_a_broker_does_not_answer_nothing_is_confirmed(of_7: Checked) -> None:
    """It may have a group that is not shown; one that cannot be reached is asked again."""
    of_7.coordinators.failure = "broker 2 is away"
    of_7.check.check()
    assert of_7.doubted

    of_7.coordinators.failure, of_7.coordinators.down = None, ConnectionError("refused")
    of_7.check.check()
    assert of_7.doubted

    of_7.coordinators.down = None
    of_7.check.check()
    assert (False, 2) == (of_7.doubted, of_7.coordinators.connections)


def test_nobody_is_asked_without_a_doubt(tmp_path: Path) -> None:
    """Nor while the log is still being read; groups of other partitions do not matter."""
    of_7 = Checked(tmp_path)
    of_7.coordinators.said = said(**{READ: of("m-2")})
    of_7.check.check()
    of_7.check.check()

    assert (1, False) == (len(of_7.coordinators.asked), of_7.doubted)
    assert (tmp_path / AGREED_FILE).exists()
