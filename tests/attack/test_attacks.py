"""The table of attacks, and what counts as come back; the attacks themselves are `make attack`."""

import ast
from pathlib import Path
from typing import Final

import pytest

from tests.attack import attacks, by_tests, results
from tests.attack.attacks import ATTACKS
from tests.attack.by_tests import BY_TESTS
from tests.attack.results import left
from tests.attack.scene import Figures, Scene

ROOT: Final = Path(__file__).resolve().parents[2]
BEFORE: Final = Figures(python_mib=200, jvm_mib=1_000, workers_mib=100, descriptors=60)


@pytest.mark.parametrize("named", sorted({of.test for of in (*ATTACKS, *BY_TESTS)}))
def test_each_has_a_test(named: str) -> None:
    """It stands where the table says."""
    file, _, test = named.partition("::")

    assert test in {
        node.name for node in ast.walk(ast.parse((ROOT / file).read_text("utf-8"))) if hasattr(node, "name")
    }


def test_each_says_what_is_done() -> None:
    """In the docstring of the attack, once; those that are tests have one of their own each."""
    assert all(attack.does.__doc__ for attack in ATTACKS)
    assert len({row.test for row in BY_TESTS}) == len(BY_TESTS)


def test_what_came_of_a_test_is_the_worst_of_its_cases(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that pytest did not find, or that ended it, did not hold; what lacks a program is left out."""
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_them.py").write_text(
        "import pytest\n"
        "from pytest import skip\n"
        "def test_holds(): pass\n"
        "@pytest.mark.parametrize('case', [1, 2, 3])\n"
        "def test_breaks(case): assert case != 2\n"
        "def test_lacks(): skip('a program')\n"
        "def test_of_no_row(): assert False\n"
        "class TestClass:\n"
        "    def test_in_class(self): pass\n"
    )
    monkeypatch.setattr(by_tests, "ROOT", tmp_path)
    names = ("test_holds", "test_breaks", "test_lacks", "TestClass::test_in_class", "test_gone")
    rows = [by_tests.ByTest("", "", f"tests/test_them.py::{name}") for name in names]

    assert ["held", "broken", "left out", "held", "broken"] == [*by_tests.run(rows).values()]


def test_the_page_has_a_row_of_each(tmp_path: Path) -> None:
    """With what was found last; what a run did not try stays."""
    file = tmp_path / "results.json"
    first, second, *_ = BY_TESTS
    results.save([], {first.test: "held", second.test: "held"}, file)
    results.save([], {second.test: "broken"}, file)
    page = results.page("<!-- Made by `x` of what `make attack` found -->\n<!-- end -->", file)
    rows = [line for line in page.splitlines() if line.startswith("| ")]

    assert [" held ", " broken "] == [rows[2 + len(ATTACKS) + at].split("|")[3] for at in (0, 1)]
    assert 2 + len(ATTACKS) + len(BY_TESTS) == len(rows)


def test_no_attack_is_left_out() -> None:
    """Every public function of the room that takes a scene is in the table."""
    asked = {name for name, of in vars(attacks).items() if getattr(of, "__annotations__", {}).get("scene") is Scene}

    assert {attack.does.__name__ for attack in ATTACKS} == {name for name in asked if not name.startswith("_")}


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        (BEFORE, []),
        (Figures(python_mib=219, jvm_mib=1_099, workers_mib=131, descriptors=69), []),
        (Figures(python_mib=100, jvm_mib=500, workers_mib=50, descriptors=30), []),
        (Figures(python_mib=240, jvm_mib=1_000, workers_mib=100, descriptors=60), ["python_mib 200, afterwards 240"]),
        (Figures(python_mib=200, jvm_mib=1_101, workers_mib=100, descriptors=60), ["jvm_mib 1000, afterwards 1101"]),
        (Figures(python_mib=200, jvm_mib=1_000, workers_mib=100, descriptors=71), ["descriptors 60, afterwards 71"]),
    ],
)
def test_what_has_not_come_back_is_named(after: Figures, expected: list[str]) -> None:
    """More than a tenth above what was, and more than a process takes unasked."""
    assert expected == left(BEFORE, after)
