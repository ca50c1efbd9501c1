"""The migration plan of the groups in scope: their readiness, in waves."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, cast

from coordinator_model.clocked.alarms import still_open
from coordinator_model.gates.plan import NOT_BACK, plan_view, planned
from coordinator_model.gates.verdict import BrokerSettings
from streaming.base.answers import PlanAnswer
from streaming.base.wanted import each
from streaming.board.board import Board
from streaming.board.board_group import BoardGroup
from streaming.board.lag_columns import UNKNOWN, measure, table_of


class Completed(NamedTuple):
    """Rebalances that were completed: how long they were counted, and how many by group; none of any other group."""

    observed_ms: int
    by_group: Mapping[str, int]


def plan(
    board: Board,
    settings: BrokerSettings,
    chosen: Callable[[str], bool],
    now_ms: int,
    completed: Completed | None = None,
) -> PlanAnswer:
    """The plan as JSON (`coordinator_model.gates.plan`), and what is missing where the board has not caught up.

    What a group is now is not known until then; nor where it may be in a partition of the log that is `unread`, and
    groups of such partitions may be missing as well.

    Args:
        board: what is shown.
        settings: what brokers allow, as far as they say.
        chosen: whether a group of this name is shown; the waves are those of all.
        now_ms: the wall clock, for lag and for groups that are being rolled.
        completed: rebalances of the last day, where a history knows them.
    """
    has_read = board.health.has_read
    shown, standing = moment = board.moment()
    doubted = board.doubted(moment)
    held = [held for name, held in shown.groups.items() if board.scope.groups(name)]
    records = measure(table_of(held), board.ends, now_ms).sum_records.tolist()
    groups = (
        planned(
            of.state,
            settings,
            now_ms=now_ms,
            observed_ms=None if completed is None else completed.observed_ms,
            rebalances=None if completed is None else completed.by_group.get(of.name, 0),
            lag=None if lag == UNKNOWN else lag,
            owner=board.expectations.owner(of.name),
            note=board.expectations.note(of.name),
            caught_up=has_read,
            unread=of.name in doubted,
            alarms=_alarms(board, of, now_ms),
        )
        for of, lag in each(zip(held, records, strict=True))
    )
    view: Any = {
        "ready": standing.ready,
        "missing": standing.missing,
        "doubt": standing.doubt,
        "unread": standing.unread.listed(),
        "left_out": board.left_out(shown)["groups"],
        **plan_view(groups, chosen),
    }
    return cast(PlanAnswer, view)


def _alarms(board: Board, held: BoardGroup, now_ms: int) -> set[str]:
    """Alarms that are open of a group, and that the configuration does not expect of it."""
    name, state = held.name, None if held.words.steady else held.state
    found = set() if state is None else {kind for kind in state.alarms if still_open(state, kind, now_ms)}
    found |= {kind for kind, groups in board.findings.overdue.items() if name in groups}
    # However long ago the roll was: the alarm is closed after a day.
    found |= {NOT_BACK} if name in board.findings.not_back else set()
    return found - board.expectations.kinds(name).keys()
