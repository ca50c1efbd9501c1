"""Every panel, mark and rule has its data on the demo, or a reason why not."""

from itertools import groupby

import pytest
from rich.console import Console
from rich.table import Table

from tests.dashboards.prometheus_tools import needs_prometheus
from tests.demo.conftest import Demo
from tests.demo.queries import BY_CHANCE, UNANSWERED, Asked, questions

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.timeout(600), needs_prometheus]


@pytest.fixture(scope="module")
def asked(demo: Demo) -> Asked:
    assert demo.asking is not None
    asked = demo.asking.result()
    assert demo.process.exit_status is None, demo.process.error_lines()
    return asked


def test_every_query_is_answered(asked: Asked, capsys: pytest.CaptureFixture[str]) -> None:
    """Panels, marks and what rules compare have data; what has none is listed with its reason, and nothing else is."""
    with capsys.disabled():
        show(asked)

    assert set() == asked.open - UNANSWERED.keys() - BY_CHANCE.keys()
    assert set() == asked.answered & UNANSWERED.keys()


def test_every_rule_is_evaluated_without_error(asked: Asked) -> None:
    """Prometheus has judged each of the committed rules against the demo's series."""
    assert [] == asked.rule_errors


def test_what_is_excused_exists() -> None:
    """A reason given for a panel that is gone goes too."""
    assert UNANSWERED.keys() | BY_CHANCE.keys() <= {question.where for question in questions()}


def show(asked: Asked) -> None:
    """The table of panels and how many of their queries were answered, with the reason for each that was not."""
    table = Table("board", "panel", "queries", "answered", "why not")
    for (board, panel), held in groupby(questions(), key=lambda each: (each.board, each.name.rpartition(" ")[0])):
        wheres = [each.where for each in held]
        missing = [where for where in wheres if where in asked.open]
        reasons = dict.fromkeys(UNANSWERED.get(where) or BY_CHANCE.get(where, "NOT KNOWN") for where in missing)
        table.add_row(board, panel or wheres[0], str(len(wheres)), str(len(wheres) - len(missing)), "; ".join(reasons))
    console = Console(width=150)
    console.print()
    console.print(table)
    console.print(f"{len(asked.answered)} of {len(asked.answered) + len(asked.open)} queries answered")
