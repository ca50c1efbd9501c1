"""The parts by name, each with its size, and the tiny size that tests run."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from bench import catch_up, large, membership, million, peers, replay, steady
from bench.figures import Outcome
from bench.stage import Stage


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A part of the benchmark.

    Attributes:
        run: measures, on a stage and with a size.
        full: the size whose figures are published.
        tiny: one at which it shows that it works.
        by_default: whether it is measured where no part is named.
    """

    run: Callable[[Stage, dict[str, Any]], Outcome]
    full: Mapping[str, float]
    tiny: Mapping[str, float]
    by_default: bool = True


_STEADY: Final = {"groups": 200, "rate": 1_000, "warm": 25}
_LARGE: Final = {"groups": 100_000, "active": 200, "rate": 1_000}
_TINY_STEADY: Final = {"groups": 30, "rate": 60, "warm": 1}
_TINY_LARGE: Final = {"groups": 30, "active": 10, "rate": 20}


def _batch_cost(groups: int) -> Part:
    size = {"active": 200, "rate": 1_000, "warm": 20, "seconds": 40}
    return Part(
        run=steady.batch_cost,
        full={"groups": groups, **size},
        tiny={"groups": 30, "active": 10, "rate": 20, "warm": 0, "seconds": 2},
    )


# Parts that share a log and a monitor stand together.
PARTS: Final[Mapping[str, Part]] = {
    "catch-up": Part(
        run=catch_up.catch_up,
        full={"groups": 20_200, "rounds": 16, "repeats": 3, "cold": 1, "settle": 30},
        tiny={"groups": 30, "rounds": 2, "repeats": 1, "cold": 0, "settle": 0},
    ),
    "idle": Part(
        run=steady.idle, full={"groups": 200, "warm": 15, "seconds": 60}, tiny={"groups": 30, "warm": 0, "seconds": 1}
    ),
    "latency": Part(run=steady.latency, full={**_STEADY, "seconds": 60}, tiny={**_TINY_STEADY, "seconds": 1}),
    "events": Part(
        run=membership.events,
        full={**_STEADY, "changes": 5, "seconds": 60},
        tiny={**_TINY_STEADY, "changes": 3, "seconds": 2},
    ),
    "wide-group": Part(
        run=steady.wide_group,
        full={"narrow": 10, "wide": 10_000, "rate": 20, "warm": 20, "seconds": 40},
        tiny={"narrow": 10, "wide": 500, "rate": 20, "warm": 1, "seconds": 2},
    ),
    "storm": Part(run=membership.storm, full={"groups": 20_000, "repeats": 3}, tiny={"groups": 30, "repeats": 1}),
    "batch-cost-1000": _batch_cost(1_000),
    "batch-cost-10000": _batch_cost(10_000),
    "batch-cost-100000": _batch_cost(100_000),
    "memory": Part(run=large.memory, full={**_LARGE, "seconds": 20}, tiny={**_TINY_LARGE, "seconds": 1}),
    "metrics": Part(
        run=large.metrics,
        full={**_LARGE, "warm": 30, "seconds": 15, "repeats": 30},
        tiny={**_TINY_LARGE, "warm": 0, "seconds": 1, "repeats": 1},
    ),
    "restart": Part(
        run=large.restart,
        full={"groups": 100_000, "repeats": 3, "pages": 3},
        tiny={"groups": 30, "repeats": 1, "pages": 1},
    ),
    "million-machine": Part(
        run=million.one_machine,
        full={
            "groups": 1_000_000,
            "rounds": 1,
            "active": 200,
            "rate": 1_000,
            "warm": 10,
            "seconds": 600,
            "scrape_seconds": 15,
            "restarts": 1,
        },
        tiny={**_TINY_LARGE, "rounds": 2, "warm": 0, "seconds": 1, "scrape_seconds": 1, "restarts": 0},
        by_default=False,
    ),
    "million-cluster": Part(
        run=million.shares,
        full={"groups": 1_000_000, "rounds": 1, "shares": 10, "active": 200, "batches": 100},
        tiny={"groups": 200, "rounds": 1, "shares": 2, "active": 10, "batches": 3},
        by_default=False,
    ),
    "peers": Part(
        run=peers.peers,
        full={
            "groups": 20_200,
            "rounds": 16,
            "members": 2,
            "settle": 30,
            "pages": 3,
            "active": 200,
            "rate": 1_000,
            "warm": 25,
            "seconds": 60,
        },
        # Burrow shows an offset once it has seen fifteen commits.
        tiny={
            "groups": 10,
            "rounds": 16,
            "members": 0,
            "settle": 0,
            "pages": 1,
            "active": 10,
            "rate": 30,
            "warm": 0,
            "seconds": 2,
        },
        by_default=False,
    ),
    "replay": Part(
        run=replay.replay,
        full={"groups": 2_020, "rounds": 168, "repeats": 3},
        tiny={"groups": 30, "rounds": 2, "repeats": 1},
    ),
}

BY_DEFAULT: Final = tuple(name for name, part in PARTS.items() if part.by_default)


def named(name: str) -> list[str]:
    """The parts that a name stands for: the one, or all whose names go on after it."""
    return [part for part in PARTS if part == name or part.startswith(f"{name}-")]


def sized(part: Part, *, tiny: bool, given: Mapping[str, float]) -> dict[str, Any]:
    """The size to run at: what is given wins where the part has such a measure."""
    own = part.tiny if tiny else part.full
    return {**own, **{name: value for name, value in given.items() if name in own}}
