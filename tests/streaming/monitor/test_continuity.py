"""A board is ready only with all that the log holds, whatever the query that fills it goes on from."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import MagicMock

import pytest
from structlog.testing import capture_logs

from coordinator_model.state import snapshot
from coordinator_model.state.group_state import GroupState
from streaming.base.batch_rows import Row
from streaming.base.errors import CannotTellError, UsageError
from streaming.board.board import Board
from streaming.board.readiness import Offsets, Positions
from streaming.checkpoint.contents import Mark
from streaming.config.loading import Config
from streaming.end_offsets.store import EndOffsets
from streaming.monitor.continuity import Continuity, OutOfStepError
from streaming.monitor.query_supervisor import QuerySupervisor

NOW_MS = 1_790_000_000_000
QUERY, ANOTHER = "0b5e", "7c1d"


def group(name: str) -> Row:
    return Row(0, "group", name, words=snapshot.dump_group(GroupState(name=name, partition=0, offset_count=1)))


def empty_board() -> Board:
    return Board(EndOffsets(10, 60_000))


@pytest.mark.parametrize(
    ("shown", "found", "expected"),
    [
        (Mark(), Mark(), True),
        (Mark(QUERY), Mark(QUERY), True),
        (Mark(QUERY, 0), Mark(QUERY), True),  # shown, and repeated as Spark has not noted its end
        (Mark(QUERY, 7), Mark(QUERY, 7), True),
        (Mark(QUERY, 7), Mark(QUERY, 6), True),
        (Mark(QUERY, 7), Mark(QUERY, 5), False),  # an older one
        (Mark(QUERY, 7), Mark(QUERY, 8), False),  # somebody went on with it
        (Mark(QUERY, 7), Mark(ANOTHER, 7), False),
        (Mark(QUERY, 7), Mark(), False),
        (Mark(), Mark(QUERY, 7), False),
        (Mark(), Mark(QUERY, 0), False),
    ],
)
def test_query_goes_on_from_what_is_shown(shown: Mark, found: Mark, expected: bool) -> None:
    """Or from one micro-batch before; anything else is another state."""
    continuity = Continuity(MagicMock())
    continuity.filled(shown)

    assert expected == continuity.fits(found)


@pytest.mark.parametrize(
    ("shown", "running", "came", "follows"),
    [
        (Mark(), QUERY, 0, True),
        (Mark(), QUERY, 58, False),
        (Mark(QUERY, 7), QUERY, 7, True),
        (Mark(QUERY, 7), QUERY, 8, True),
        (Mark(QUERY, 7), QUERY, 9, False),
        (Mark(QUERY, 7), QUERY, 6, False),
        (Mark(QUERY, 7), ANOTHER, 8, False),
    ],
)
def test_batch_that_does_not_follow_is_not_shown(shown: Mark, running: str, came: int, follows: bool) -> None:
    """Should the checkpoint be exchanged after it was looked at: the query fails, and starts from what there is."""
    board = MagicMock()
    continuity = Continuity(board)
    continuity.filled(shown)
    continuity.started(running)
    if follows:
        continuity.apply(came, [], NOW_MS)
        assert Mark(running, came) == continuity.shown
    else:
        with pytest.raises(OutOfStepError, match=f"micro-batch {came} of {running} came"):
            continuity.apply(came, [], NOW_MS)
    assert follows == board.apply.called


class State:
    """A state directory whose checkpoint is exchanged at will."""

    def __init__(self) -> None:
        self.found = Mark()
        self.groups: list[str] = []
        self.offset = 0
        self.is_outlived = False
        self.told_before: Offsets = {}
        self.built_until: Offsets = {}
        self.rebuilds = 0
        self.location = SimpleNamespace(name="file:/state", for_spark="file:/state")

    def has(self, mark: Mark, offset: int, *groups: str) -> None:
        self.found, self.offset, self.groups = mark, offset, list(groups)

    def mark(self) -> Mark:
        return self.found

    def positions(self) -> tuple[Offsets, Offsets]:
        return {0: self.offset}, {0: self.offset}

    def rows(self, _spark: object, batch: int) -> Iterator[Row]:
        assert batch == self.found.batch
        return map(group, self.groups)

    @property
    def is_unread_for_long(self) -> bool:
        return self.is_outlived

    def rebuild_if_outlived(self, _end: Offsets, _stable: Offsets, _positions: Positions) -> bool:
        outlived, self.is_outlived = self.is_outlived, False
        if outlived:
            self.found = Mark()
        return outlived

    def begin(self, log_end: Offsets) -> Offsets:
        return log_end

    def settle(self) -> None:
        pass

    def refuse_lost(self) -> None:
        pass

    def gone(self) -> UsageError:
        return UsageError("state.dir: its checkpoint is gone")


class Run:
    """A monitor's supervisor and board, a log that ends at an offset, and Spark's reports."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, log_end: int) -> None:
        self.state = State()
        self.board = empty_board()
        log = MagicMock()
        log.ends.return_value = ({0: log_end}, {0: log_end})
        log.identity.partitions = 1
        self.supervisor = QuerySupervisor(Config(), self.board, cast(Any, self.state), log)
        monkeypatch.setattr(self.supervisor, "_started", MagicMock())
        self.runs = 0
        self._monkeypatch = monkeypatch

    def fill(self) -> None:
        self.supervisor.fill_board(MagicMock())

    def start(self, query_id: str) -> str:
        """Start the query, as Spark does once it has found the checkpoint; returns the run."""
        self.supervisor._start(MagicMock())
        self.runs += 1
        listener = self.supervisor._listener
        assert listener is not None
        listener.onQueryStarted(event(query_id, f"run-{self.runs}"))
        return f"run-{self.runs}"

    def batch(self, number: int, *groups: str) -> None:
        self.supervisor._continuity.apply(number, [group(name) for name in groups], NOW_MS)

    def report(self, run: str, batch: int, offset: int) -> None:
        listener = self.supervisor._listener
        assert listener is not None
        listener.onQueryProgress(progress(run, batch, offset))

    def end(self) -> None:
        listener = self.supervisor._listener
        assert listener is not None
        listener.ended()

    @property
    def has_caught_up(self) -> bool:
        return self.board.health.caught_up

    @property
    def groups(self) -> list[str]:
        return sorted(self.board.shown.groups)


def lent(**answers: Any) -> Any:
    """An object of Java: each name is a method that answers so."""
    return SimpleNamespace(_detach=lambda: None, **{name: lambda of=of: of for name, of in answers.items()})


def event(query_id: str, run: str) -> Any:
    return lent(name="group-monitor default", id=lent(toString=query_id), runId=lent(toString=run))


def progress(run: str, batch: int, offset: int) -> Any:
    end = f'{{"commits":{{"0":{offset}}},"membership":{{"0":{offset}}}}}'
    sources = type("Sources", (list,), {"_detach": lambda _: None})([lent(endOffset=end, numInputRows=1)])
    of = lent(name="group-monitor default", runId=lent(toString=run), batchId=batch, batchDuration=5, sources=sources)
    return lent(progress=of)


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Run:
    return Run(monkeypatch, log_end=100)


def test_report_of_what_was_forgotten_is_not_believed(run: Run) -> None:
    """Spark reports seconds late under load: a board that was emptied meanwhile was ready with nothing on it."""
    run.state.has(Mark(QUERY, 7), 90, "a", "b")
    run.fill()
    former = run.start(QUERY)
    run.batch(8, "c")
    run.end()
    run.state.is_outlived = True
    run.start(ANOTHER)
    run.report(former, 8, 100)

    assert ([], False) == (run.groups, run.has_caught_up)


def test_late_report_of_what_is_still_shown_counts(run: Run) -> None:
    """After a failure that changed nothing it is as true as before."""
    run.fill()
    former = run.start(QUERY)
    run.batch(0, "a")
    run.end()
    run.state.has(Mark(QUERY, 0), 100, "a")
    run.start(QUERY)
    run.report(former, 0, 100)

    assert (["a"], True) == (run.groups, run.has_caught_up)


@pytest.mark.parametrize(
    ("found", "offset", "groups"),
    [
        (Mark(QUERY, 3), 40, ("a",)),  # an older one
        (Mark(ANOTHER, 9), 60, ("a", "z")),  # another one
        (Mark(QUERY, 20), 95, ("a", "b", "y")),  # gone on with by somebody else
    ],
)
def test_board_is_filled_again_where_the_checkpoint_is_another_one(
    run: Run, found: Mark, offset: int, groups: tuple[str, ...]
) -> None:
    """Restarted in the same process: it shows what that holds, and is ready once it has read on to the end."""
    run.state.has(Mark(QUERY, 7), 100, "a", "b", "c")
    run.fill()
    former = run.start(QUERY)
    assert run.has_caught_up
    run.end()
    run.state.has(found, offset, *groups)
    with capture_logs() as lines:
        now = run.start(str(found.query_id))
    run.report(former, 8, 100)

    assert "board_refilled" in [line["event"] for line in lines]
    assert (sorted(groups), False) == (run.groups, run.has_caught_up)
    assert {0: offset} == run.board.health.positions.membership
    run.batch(found.batch + 1, "d")
    run.report(now, found.batch + 1, 100)
    assert run.has_caught_up


def test_query_whose_checkpoint_is_gone_ends(run: Run) -> None:
    """It is not read from its beginning beside a board that shows what was: that is for `--rebuild` to say."""
    run.state.has(Mark(QUERY, 7), 100, "a")
    run.fill()
    run.start(QUERY)
    run.end()
    run.state.has(Mark(), 0)

    with pytest.raises(UsageError, match="its checkpoint is gone"):
        run.start(ANOTHER)


def test_query_that_goes_on_from_a_state_no_one_saw_fails(run: Run) -> None:
    """The board was filled with nothing, as of files that could not be looked at; Spark resumes all the same."""
    run.fill()
    now = run.start(QUERY)

    with pytest.raises(OutOfStepError):
        run.batch(58, "a")
    assert ([], False) == (run.groups, run.has_caught_up)
    run.end()
    run.state.has(Mark(QUERY, 57), 90, "a", "b")
    run.report(now, 57, 90)
    now = run.start(QUERY)
    assert ["a", "b"] == run.groups
    run.batch(58, "c")
    run.report(now, 58, 100)
    assert (["a", "b", "c"], True) == (run.groups, run.has_caught_up)


def test_source_of_batch_numbers_is_the_query(run: Run) -> None:
    """Its checkpoint's place, before there is one."""
    assert "file:/state" == run.supervisor.query_id
    run.fill()
    run.start(QUERY)
    assert QUERY == run.supervisor.query_id


def test_brokers_that_are_away_while_the_board_is_filled_are_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the log ends is asked for when the query is started, which is tried again; before it is not needed."""
    run = Run(monkeypatch, log_end=9)
    run.state.has(Mark(QUERY, 7), 5, "a")
    run.supervisor._log.ends.side_effect = CannotTellError("away")  # type: ignore[attr-defined]  # a mock

    run.fill()

    assert ["a"] == run.groups
    with pytest.raises(CannotTellError):
        run.start(QUERY)
