"""A gate on a terminal: no line wider than it, what decides first, groups by name; a pipe gets the table."""

import random
from typing import Any

import pytest

from streaming.cli.render.gate_view import lines, picture, reasons


def reason(effect: str, code: str, group: str | None, text: str = "it is so") -> dict[str, Any]:
    return {"effect": effect, "code": code, "group": group, "text": text}


def answer(*of: dict[str, Any], verdict: str = "closed", **facts: Any) -> dict[str, Any]:
    return {"gate": "downgrade", "verdict": verdict, "reasons": list(of), **facts}


def test_what_decides_stands_first_and_alike_reasons_once() -> None:
    """With the groups they are about, the first five by name."""
    reported = answer(
        reason("note", "mixed", "a"),
        reason("unknown", "features", None),
        *(reason("stop", "group_type", f"g{number}") for number in range(7)),
        reason("stop", "group_type", "other", "another text"),
    )

    assert [
        ("stop", "group_type", "g0, g1, g2, g3, g4 and 2 more"),
        ("stop", "group_type", "other"),
        ("unknown", "features", "the cluster"),
        ("note", "mixed", "a"),
    ] == [(of.effect, of.code, of.about) for of in reasons(reported)]


@pytest.mark.parametrize("width", [40, 60, 80, 120, 200])
@pytest.mark.parametrize("seed", range(5))
def test_no_line_is_wider_than_the_terminal(width: int, seed: int) -> None:
    """Whatever is said, of however many groups."""
    chance = random.Random(seed)
    reported = answer(
        *(
            reason(
                chance.choice(("stop", "note")), "code", "g" * chance.randint(1, 90), "word " * chance.randint(1, 90)
            )
            for _ in range(20)
        ),
        groups={"classic": 3},
        target_version="3.9",
    )

    assert max(len(line) for line, _ in picture(reported, width)) <= width


def test_verdict_has_its_colour_and_its_question() -> None:
    """Brokers are rolled down, consumers up: which is asked stands in the first line."""
    down = list(picture(answer(verdict="open", target_version="3.9"), 80))
    up = list(picture({**answer(verdict="cannot_tell"), "gate": "upgrade"}, 80))

    assert "brokers" in down[0][0]
    assert "3.9" in down[0][0]
    assert ("open", "bold green") == down[1]
    assert "consumers" in up[0][0]
    assert ("cannot tell", "bold yellow") == up[1]


@pytest.mark.parametrize("name", ["\x1b[31mred", "[bold]x[/bold]", "line\nbreak"])
def test_hostile_names_steer_nothing(name: str) -> None:
    """Neither on a terminal nor in a pipe."""
    reported = answer(reason("stop", "group_type", name, f"of {name}"))

    for line in [*lines(reported)[:2], *(line for line, _ in picture(reported, 80))]:
        assert "\x1b" not in line
        assert "\n" not in line


@pytest.mark.parametrize("width", range(40, 90, 7))
def test_name_with_hyphens_stays_whole(width: int) -> None:
    """It can be copied from the terminal."""
    names = [f"orders-of-the-north-{number}" for number in range(5)]
    reported = answer(*(reason("stop", "group_type", name) for name in names))
    words = {word.rstrip(",") for line, _ in picture(reported, width) for word in line.split()}

    assert set(names) <= words
