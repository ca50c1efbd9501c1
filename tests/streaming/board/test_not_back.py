"""A group that a roll left with fewer members than before: what event, page, plan, gates and metric say of it."""

from functools import partial
from typing import Any, Final

import pytest

from coordinator_model.gates.verdict import BrokerSettings, Cluster
from streaming.base.expectations import Expectations, Expected
from streaming.base.name_filter import one_of
from streaming.board import gates
from streaming.board.board import Board
from streaming.board.plan import plan
from streaming.metrics.exporter import Exporter
from streaming.watchers.overdue_watch import OverdueWatch
from streaming.web.overview import Overview
from tests.coordinator_model.clocked.test_not_back import DAY, HURRIED, LOST_AT, MINUTE
from tests.streaming.board_rows import Shard
from tests.streaming.boards import CLUSTER, board_of, caught_up, classic_group, rendered

OPEN_MS: Final = LOST_AT + 10 * MINUTE
CLOSED_MS: Final = LOST_AT + 2 * DAY
SHRINKS: Final = Expected("g", frozenset({"shrinks"}), "half the load is gone")
OWNED: Final = (
    Expected("g", frozenset(), "", owner="orders"),
    Expected("other", frozenset(), "", owner="payments"),
)


def looked_at(*now_ms: int, expected: tuple[Expected, ...] = ()) -> Board:
    """The group, and another one that nothing happens to, as looks at these times leave the board."""
    shard = Shard()
    classic_group(shard, "other", {"m": {"orders": [0]}}, at_ms=0)
    shard.pending += [(moment.time_ms, *record) for moment in HURRIED for record in moment.records]
    board = caught_up(board_of(shard, expectations=Expectations(expected)))
    times = iter(now_ms)
    watch = OverdueWatch(board, lambda found: board.add_events(board.expectations.applied(found)), lambda: next(times))
    for _ in now_ms:
        watch.check()
    return board


def attention(board: Board, now_ms: int) -> list[tuple[str, str]]:
    """(code, severity) of the reasons to look at the group."""
    (row,) = (row for row in Overview(board, lambda: now_ms).rows()[1] if row["group"] == "g")
    return [(of["code"], of["severity"]) for of in row["attention"]]


def planned(board: Board, now_ms: int) -> tuple[str, list[str], int | None]:
    """Readiness, reasons and wave of the group."""
    (found,) = plan(board, BrokerSettings(), one_of(("g",), None), now_ms)["groups"]
    return found["readiness"], [of["code"] for of in found["reasons"]], found["wave"]


def of_gate(board: Board, now_ms: int, *groups: str) -> list[tuple[str, str]]:
    """(effect, text) of what the upgrade gate says of missing members."""
    answer = gates.upgrade(board, groups, Cluster(now_ms=now_ms), board.moment())
    return [(of["effect"], of["text"]) for of in answer["reasons"] if of["code"] == "members_not_back"]


def told(board: Board) -> list[dict[str, Any]]:
    return [dict(of) for of in board.latest_events(99) if of["kind"] == "members_not_back"]


@pytest.mark.parametrize("now_ms", [OPEN_MS, CLOSED_MS])
def test_plan_and_gate_say_it_for_as_long_as_members_are_missing(now_ms: int) -> None:
    """A group that is converted is not done without them, nor planned again; the next wave waits."""
    board = looked_at(LOST_AT, OPEN_MS, now_ms)

    assert ("care", ["members_not_back"], None) == planned(board, now_ms)
    ((effect, text),) = of_gate(board, now_ms)
    assert "stop" == effect
    assert text.startswith("1 member did not come back after its roll, missing for ")


def test_page_says_it_as_a_warning_for_a_day_and_as_information_then() -> None:
    """The row says how many are missing, so that 1 of 2 is not shown as 1 of 1."""
    assert [("members_not_back", "warning")] == attention(looked_at(OPEN_MS), OPEN_MS)
    board = looked_at(OPEN_MS, CLOSED_MS)
    assert [("members_missing", "info")] == attention(board, CLOSED_MS)
    (row,) = (row for row in Overview(board, lambda: CLOSED_MS).rows()[1] if row["group"] == "g")
    assert (1, 1) == (row["consumer_members"], row["missing_members"])


def test_event_is_reported_once_and_closed_after_a_day_with_that_reason() -> None:
    """However often one looks."""
    board = looked_at(LOST_AT + MINUTE, OPEN_MS, OPEN_MS + 1_000, LOST_AT + DAY, CLOSED_MS, CLOSED_MS + 1_000)

    opened, closed = told(board)
    assert ("warning", 1) == (opened["severity"], opened["detail"]["missing"])
    assert {"cleared": True, "why": "one_day"} == closed["detail"]


def test_metric_is_there_while_the_alarm_is_open() -> None:
    """It is what the alert asks for."""
    line = f'kafka_group_members_not_back{{cluster="{CLUSTER}",group="g"}} 1'.encode()
    pages = [rendered(Exporter(board, CLUSTER, clock_ms=partial(int, at)))[0] for board, at in _at_three_times()]

    assert [False, True, False] == [line in page for page in pages]


def _at_three_times() -> list[tuple[Board, int]]:
    return [(looked_at(LOST_AT), LOST_AT), (looked_at(OPEN_MS), OPEN_MS), (looked_at(OPEN_MS, CLOSED_MS), CLOSED_MS)]


def test_group_that_is_meant_to_shrink_is_no_alarm_anywhere() -> None:
    """The event is information with the reason; plan and gate pass over it, and after a day the page does."""
    board = looked_at(OPEN_MS, expected=(SHRINKS,))
    (event,) = told(board)

    assert ("info", "half the load is gone") == (event["severity"], event["detail"]["expected"]["reason"])
    assert [("members_not_back", "info")] == attention(board, OPEN_MS)
    assert ("done", ["converted"], None) == planned(board, OPEN_MS)
    assert [] == of_gate(board, OPEN_MS)
    assert [] == attention(looked_at(OPEN_MS, CLOSED_MS, expected=(SHRINKS,)), CLOSED_MS)


def test_gate_of_the_next_wave_is_closed_whatever_groups_are_in_it() -> None:
    """But for those of another owner, which are told."""
    assert ["stop"] == [effect for effect, _ in of_gate(looked_at(OPEN_MS), OPEN_MS, "other")]
    owned = looked_at(OPEN_MS, expected=OWNED)
    assert ["note"] == [effect for effect, _ in of_gate(owned, OPEN_MS, "other")]
    assert ["stop"] == [effect for effect, _ in of_gate(owned, OPEN_MS, "g")]


def test_gate_names_a_rebalance_that_is_stuck_instead_of_waiting_for_its_end() -> None:
    """Hours of it are no rebalance under way; of a classic group its coordinator says so, and not the log."""
    board = looked_at(LOST_AT)
    board.findings.set_overdue({"rebalance_stuck": ["other"]})
    answer = gates.upgrade(board, ("other",), Cluster(now_ms=OPEN_MS), board.moment())

    assert ["rebalance_stuck"] == [of["code"] for of in answer["reasons"] if of["effect"] == "stop"]
    assert [] == [of for of in answer["reasons"] if "rebalance_stuck" in of["text"]]
