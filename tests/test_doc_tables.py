"""The tables in docs/ that are made from code: current, and refused where something stands behind nothing."""

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Final

import pytest

from coordinator_model.state.events import INFO, SEVERITIES
from tests import alarm_cases

SCRIPT: Final = Path(__file__).parents[1] / "docs" / "build_tables.py"


@pytest.fixture(scope="module")
def tables() -> ModuleType:
    spec = importlib.util.spec_from_file_location("build_tables", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_tables_are_current(tables: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    """Else the command that makes them is named."""
    assert (0, "") == (tables.main(["--check"]), capsys.readouterr().err)


def test_every_alarm_has_tests_of_both_kinds() -> None:
    """In which it is reported, and of what only looks like it."""
    beyond_info = {kind for kind, severity in SEVERITIES.items() if severity != INFO}

    assert beyond_info == alarm_cases.CASES.keys()
    assert all(cases.reported and cases.silent for cases in alarm_cases.CASES.values())


def test_alarm_that_no_test_holds_is_named(
    tables: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A new kind of alarm is not documented before it is tested."""
    held = {kind: cases for kind, cases in alarm_cases.CASES.items() if kind != "stale_claim"}
    monkeypatch.setattr(tables, "CASES", held)

    assert 1 == tables.main(["--check"])
    assert "error: tests/alarm_cases.py: found no tests of stale_claim\n" == capsys.readouterr().err


def test_test_that_is_not_there_is_named(tables: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that was renamed leaves its alarm without it."""
    monkeypatch.setattr(tables, "ANY_ALARM", ("replica.renamed",))

    with pytest.raises(SystemExit, match=r"alarm_cases\.py: found replica\.renamed"):
        tables.main(["--check"])
