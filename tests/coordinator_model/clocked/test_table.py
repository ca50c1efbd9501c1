"""The table of clocked rules: each makes the kinds of its row, and a look asks all of them."""

from collections.abc import Iterable
from typing import Final

import pytest

from coordinator_model.clocked import table
from coordinator_model.clocked.moment import ClockedRule, Moment
from coordinator_model.state.events import SEVERITIES, Event
from coordinator_model.state.group_state import GroupState


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
        table.Row(saying("first"), ("first",), table.UNSETTLED),
        table.Row(saying("other"), ("other",), table.UNHELD),
        table.Row(saying("second"), ("second",), table.UNSETTLED),
    )
    monkeypatch.setattr(table, "CLOCKED_RULES", rows)
    moment = Moment(state=GroupState(name="g", partition=0), now_ms=1)

    assert ["first", "second"] == [event.kind for event in table.events(moment, table.UNSETTLED)]
    assert ["other"] == [event.kind for event in table.events(moment, table.UNHELD)]


def test_new_group_is_asked_for_nothing() -> None:
    """Of a state without a record nothing is overdue."""
    moment = Moment(state=GroupState(name="g", partition=0), now_ms=10**12)

    assert [] == table.events(moment, table.UNSETTLED) + table.events(moment, table.UNHELD)
