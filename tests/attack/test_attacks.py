"""The table of attacks, and what counts as come back; the attacks themselves are `make attack`."""

import ast
from pathlib import Path
from typing import Final

import pytest

from tests.attack import attacks
from tests.attack.attacks import ATTACKS
from tests.attack.results import left
from tests.attack.scene import Figures, Scene

ROOT: Final = Path(__file__).resolve().parents[2]
BEFORE: Final = Figures(python_mib=200, jvm_mib=1_000, workers_mib=100, descriptors=60)


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.does.__name__)
def test_each_part_has_a_light_test(attack: attacks.Attack) -> None:
    """It stands where the table says, and the attack says what is done."""
    file, _, test = attack.test.partition("::")

    assert test in {
        node.name for node in ast.walk(ast.parse((ROOT / file).read_text("utf-8"))) if hasattr(node, "name")
    }
    assert attack.does.__doc__


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
