"""The tables in docs/ that are made from code: current, and refused where something stands behind nothing."""

import pytest

from coordinator_model.state.events import INFO, SEVERITIES
from tests import alarm_cases
from tests import doc_tables as tables


def test_tables_are_current(capsys: pytest.CaptureFixture[str]) -> None:
    """Else the command that makes them is named."""
    assert (0, "") == (tables.main(["--check"]), capsys.readouterr().err)


def test_every_alarm_has_tests_of_both_kinds() -> None:
    """In which it is reported, and of what only looks like it."""
    beyond_info = {kind for kind, severity in SEVERITIES.items() if severity != INFO}

    assert beyond_info == alarm_cases.CASES.keys()
    assert all(cases.reported and cases.silent for cases in alarm_cases.CASES.values())


def test_alarm_that_no_test_holds_is_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """A new kind of alarm is not documented before it is tested."""
    held = {kind: cases for kind, cases in alarm_cases.CASES.items() if kind != "stale_claim"}
    monkeypatch.setattr(tables, "CASES", held)

    assert 1 == tables.main(["--check"])
    assert "error: tests/alarm_cases.py: found no tests of stale_claim\n" == capsys.readouterr().err


def test_test_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that was renamed leaves its alarm without it."""
    monkeypatch.setattr(tables, "ANY_ALARM", ("replica.renamed",))

    with pytest.raises(SystemExit, match=r"alarm_cases\.py: found replica\.renamed"):
        tables.main(["--check"])
