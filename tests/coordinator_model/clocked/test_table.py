"""The table of clocked rules: each makes the kinds of its row, and a look asks all of them."""

from collections.abc import Iterable
from typing import Final

import pytest

from coordinator_model.clocked import table
from coordinator_model.clocked.moment import ClockedRule, Moment
from coordinator_model.state.events import SEVERITIES, Event
from coordinator_model.state.group_state import GroupState
from lab.builders import group_metadata, member
from lab.coordinator_events import consumer_join, speaks_classic
from tests.histories import Moment as LogMoment
from tests.histories import at, history


def test_kinds_are_events() -> None:
    """A kind that is no event would have no severity."""
    kinds: Final = {kind for row in table.CLOCKED_RULES for kind in row.kinds}

    assert kinds <= SEVERITIES.keys()


def test_rules_are_asked_in_order_and_of_their_groups_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """A new row is asked by every look at its groups, with nothing else to change."""

    def saying(kind: str) -> ClockedRule:
        def rule(moment: Moment) -> Iterable[Event]:
            yield Event(
                time_ms=moment.now_ms, group=moment.state.name, kind=kind, severity="info", partition=0, offset=0
            )

        return rule

    rows = (
        table.ClockedRow(saying("first"), ("first",), table.UNSETTLED),
        table.ClockedRow(saying("other"), ("other",), table.UNHELD),
        table.ClockedRow(saying("second"), ("second",), table.UNSETTLED),
    )
    monkeypatch.setattr(table, "CLOCKED_RULES", rows)
    moment = Moment(state=GroupState(name="g", partition=0), now_ms=1)

    assert ["first", "second"] == [event.kind for event in table.events(moment, table.UNSETTLED)]
    assert ["other"] == [event.kind for event in table.events(moment, table.UNHELD)]


def test_new_group_is_asked_for_nothing() -> None:
    """Of a state without a record nothing is overdue."""
    moment = Moment(state=GroupState(name="g", partition=0), now_ms=10**12)

    assert [] == table.events(moment, table.UNSETTLED) + table.events(moment, table.UNHELD)


def static(*hosts: int) -> list[LogMoment]:
    """One instance id, taken by a member of each of these hosts in turn."""
    return [
        at(
            60_000 * turn,
            group_metadata(
                "g",
                generation=4,
                members=[member(f"i-{turn}", {}, instance_id="i", client_host=f"/10.0.0.{host}")],
            ),
        )
        for turn, host in enumerate(hosts)
    ]


JOINED: Final = at(0, *consumer_join("g", "a", epoch=2, targets={"a": {"t": [0, 1]}}))
UNSTEADY: Final[dict[str, tuple[list[LogMoment], bool]]] = {
    "at rest": ([JOINED], False),
    "a rebalance under way": (
        [JOINED, at(1, *consumer_join("g", "b", epoch=3, targets={"b": {"t": [1]}, "a": {"t": [0]}}, assigned={}))],
        True,
    ),
    "mixed": ([JOINED, at(1, *consumer_join("g", "b", epoch=3, targets={"b": {}}, classic=speaks_classic()))], True),
    "an instance id taken once": (static(1, 2), False),
    "an instance id that two fight for": (static(1, 2, 1), True),
    "an instance id that restarts": (static(1, 2, 3, 4, 5, 6), True),
    "an instance id that restarted and is gone": (
        [*static(1, 2, 3, 4, 5, 6), at(360_000, group_metadata("g", generation=5))],
        True,
    ),
    "many generations": (
        [at(1_000 * turn, group_metadata("g", generation=turn, members=[member("a", {})])) for turn in range(1, 99)],
        True,
    ),
}


@pytest.mark.parametrize(("moments", "unsteady"), UNSTEADY.values(), ids=UNSTEADY)
def test_group_of_which_time_alone_may_show_something_is_looked_at(moments: list[LogMoment], unsteady: bool) -> None:
    """A group at rest costs a look nothing."""
    assert unsteady == table.is_unsteady(history(*moments).replayed().states["g"])
