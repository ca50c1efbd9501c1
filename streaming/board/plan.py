"""The migration plan of the groups in scope: their readiness, in waves."""

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

from coordinator_model.gates.plan import plan_view, planned
from coordinator_model.gates.verdict import BrokerSettings
from streaming.board.board import Board
from streaming.board.lag_columns import UNKNOWN, measure, table_of


class Completed(NamedTuple):
    """Rebalances that were completed: how long they were counted, and how many by group; none of any other group."""

    observed_ms: int
    by_group: Mapping[str, int]


def plan(
    board: Board, settings: BrokerSettings, pattern: str, now_ms: int, completed: Completed | None = None
) -> dict[str, Any]:
    """The plan as JSON (`coordinator_model.gates.plan`), and what is missing where the board has not caught up.

    Groups of partitions of the log that are `unread` may be missing as well.

    Args:
        board: what is shown.
        settings: what brokers allow, as far as they say.
        pattern: shell pattern of the names of groups.
        now_ms: the wall clock, for lag and for groups that are being rolled.
        completed: rebalances of the last day, where a history knows them.
    """
    shown, standing = moment = board.moment()
    doubted = board.doubted(moment)
    held = [held for name, held in shown.groups.items() if board.scope.groups(name) and fnmatchcase(name, pattern)]
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
            unread=of.name in doubted,
        )
        for of, lag in zip(held, records, strict=True)
    )
    return {
        "ready": standing.ready,
        "missing": standing.missing,
        "doubt": standing.doubt,
        "unread": standing.unread.listed(),
        "left_out": board.left_out(shown)["groups"],
        **plan_view(groups),
    }
