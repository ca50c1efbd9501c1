"""The parts by name, each with its size, and the tiny size that tests run."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from bench import catch_up, replay
from bench.figures import Outcome
from bench.stage import Stage


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A part of the benchmark.

    Attributes:
        run: measures, on a stage and with a size.
        full: the size whose figures are published.
        tiny: one at which it shows that it works.
    """

    run: Callable[[Stage, dict[str, Any]], Outcome]
    full: Mapping[str, float]
    tiny: Mapping[str, float]


# Parts that share a log and a monitor stand together.
PARTS: Final[Mapping[str, Part]] = {
    "catch-up": Part(
        run=catch_up.catch_up,
        full={"groups": 20_200, "rounds": 16, "repeats": 3, "cold": 1},
        tiny={"groups": 30, "rounds": 2, "repeats": 1, "cold": 0},
    ),
    "replay": Part(
        run=replay.replay,
        full={"groups": 2_020, "rounds": 168, "repeats": 3},
        tiny={"groups": 30, "rounds": 2, "repeats": 1},
    ),
}


def named(name: str) -> list[str]:
    """The parts that a name stands for: the one, or all whose names go on after it."""
    return [part for part in PARTS if part == name or part.startswith(f"{name}-")]


def sized(part: Part, *, tiny: bool, given: Mapping[str, float]) -> dict[str, Any]:
    """The size to run at: what is given wins where the part has such a measure."""
    own = part.tiny if tiny else part.full
    return {**own, **{name: value for name, value in given.items() if name in own}}
