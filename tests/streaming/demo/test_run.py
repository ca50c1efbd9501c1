"""What a demo that had a time must have shown by its end."""

from types import SimpleNamespace
from typing import Any

import pytest

from streaming.base.doubt import said
from streaming.base.errors import CheckFailed
from streaming.demo.run import _missing
from streaming.demo.scenario import GROUPS, ROLLED_GROUP

REASON: dict[str, Any] = {"reason": "the stream stands still", "since": 1_795_246_819_567}


def monitor(*groups: str, reasons: tuple[dict[str, Any], ...] = ()) -> Any:
    """One that shows these groups, and is not ready for these reasons."""
    health = SimpleNamespace(ready=lambda: (not reasons, reasons))
    return SimpleNamespace(
        board=SimpleNamespace(shown=SimpleNamespace(groups=dict.fromkeys(groups)), health=health),
    )


def rolls(upgrades: int, downgrades: int, failure: Exception | None = None) -> Any:
    """How often the scenario has rolled the group, or how often that was seen."""
    return SimpleNamespace(upgrades=upgrades, downgrades=downgrades, failure=failure)


def test_a_demo_that_showed_every_roll_has_shown_all() -> None:
    """There and back once, and up once more: seen as often as done."""
    assert [] == _missing(monitor(*GROUPS), rolls(2, 1), rolls(2, 1))


@pytest.mark.parametrize(
    ("shown", "done", "seen", "missing"),
    [
        (monitor(*GROUPS[1:]), rolls(1, 1), rolls(1, 1), f"group {ROLLED_GROUP}"),
        (monitor(*GROUPS), rolls(2, 1), rolls(1, 1), f"upgrade of {ROLLED_GROUP} (done 2, seen 1)"),
        (monitor(*GROUPS), rolls(1, 0), rolls(1, 0), f"downgrade of {ROLLED_GROUP} (done 0, seen 0)"),
        (
            monitor(*GROUPS),
            rolls(1, 1, CheckFailed("a member is gone")),
            rolls(1, 1),
            "the scenario itself (a member is gone)",
        ),
        (
            monitor(*GROUPS, reasons=(REASON,)),
            rolls(1, 1),
            rolls(1, 1),
            f"readiness ({said(REASON)})",
        ),
    ],
    ids=["a group", "a second upgrade", "a downgrade that never was", "the scenario", "readiness"],
)
def test_what_was_not_shown_is_named(shown: Any, done: Any, seen: Any, missing: str) -> None:
    """Each thing by its name, and nothing else."""
    assert [missing] == _missing(shown, done, seen)
