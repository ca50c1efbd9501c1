"""What runs of `make soak` came to, kept in `results.json`, and the part of docs/lab.md that is made of it.

A run is written down if it is asked for (`make soak WRITE=1`), in the place of the one of the same minutes and rate.
"""

import json
import os
import platform
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from tests.soak.samples import MOST_GROWTH, Sample, growth

FILE: Final = Path(__file__).with_name("results.json")
BEGIN: Final = "<!-- Made by `python -m tests.doc_tables` of tests/soak/results.json -->"
END: Final = "<!-- end -->"

REPORTED: Final[dict[str, Callable[[Sample], float]]] = {
    "driver MiB": lambda of: of.driver_mib,
    "JVM MiB": lambda of: of.jvm_mib,
    "workers MiB": lambda of: of.workers_mib,
    "latency p50 s": lambda of: of.latency_p50,
    "latency p95 s": lambda of: of.latency_p95,
    "batch s": lambda of: of.batch_seconds,
    "lag records": lambda of: of.lag_records,
}
"""What is reported of a run over its time."""
JUDGED: Final = tuple(REPORTED)[:5]
"""What of it must not grow."""
PARTS: Final = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """How something went over the time that is judged: mean, growth a minute, growth in all as a share of the mean."""

    what: str
    mean: float
    a_minute: float
    share: float

    @property
    def is_too_much(self) -> bool:
        """Whether it counts as growth."""
        return self.share > MOST_GROWTH


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """Commits acknowledged to producers, in the broker's own log, and counted by the monitor."""

    acknowledged: int
    in_log: int
    counted: int

    @property
    def agree(self) -> bool:
        """Whether nothing was lost or counted twice."""
        return self.acknowledged == self.in_log == self.counted


def grown(samples: Sequence[Sample]) -> list[Growth]:
    """What is judged, over the samples after the warm-up."""
    found = []
    for what in JUDGED:
        slope, share = growth(samples, REPORTED[what])
        mean = statistics.fmean(map(REPORTED[what], samples))
        found.append(Growth(what=what, mean=mean, a_minute=slope, share=share))
    return found


def parts(samples: Sequence[Sample]) -> list[dict[str, float]]:
    """A run in ten parts or fewer: the minute at which each ends, and the mean of what is reported of it."""
    found = []
    count = min(PARTS, len(samples))
    for number in range(count):
        of = samples[number * len(samples) // count : (number + 1) * len(samples) // count]
        means = {what: round(statistics.fmean(map(value, of)), 3) for what, value in REPORTED.items()}
        found.append({"minute": round(of[-1].minute, 1), **means})
    return found


def save(samples: Sequence[Sample], asked: float, counts: Counts, problems: Sequence[str], file: Path = FILE) -> None:
    """Keep a run."""
    minutes = samples[-1].minute
    run = {
        "date": time.strftime("%Y-%m-%d"),
        "machine": f"{os.cpu_count()} cores, Python {platform.python_version()}",
        "load_average": round(os.getloadavg()[0], 1),
        "minutes": round(minutes),
        "asked_a_second": round(asked),
        "reached_a_second": round(
            (samples[-1].acknowledged - samples[0].acknowledged) / 60 / (minutes - samples[0].minute)
        ),
        **asdict(counts),
        "problems": list(problems),
        "growth": [asdict(of) for of in grown(samples)],
        "parts": parts(samples),
    }
    kept = [of for of in load(file) if (of["minutes"], of["asked_a_second"]) != (run["minutes"], run["asked_a_second"])]
    held = sorted([*kept, run], key=lambda of: (of["minutes"], of["asked_a_second"]))
    file.write_text(json.dumps(held, indent=1) + "\n", encoding="utf-8")


def load(file: Path = FILE) -> list[dict[str, Any]]:
    """Runs so far, the shortest first."""
    return list(json.loads(file.read_text("utf-8"))) if file.is_file() else []


def page(current: str, file: Path = FILE) -> str:
    """The page with the part between its marks written again."""
    before, begin, rest = current.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise SystemExit(f"error: docs/lab.md: found no {BEGIN} and {END}")
    return before + "\n".join((BEGIN, *_part(load(file)), END)) + after


def _part(runs: Sequence[dict[str, Any]]) -> Iterator[str]:
    if not runs:
        yield "\nNo run was written down yet.\n"
        return
    yield "\n| run | commits/s | acknowledged | in the log | counted | lost or wrong | load average |"
    yield "|---|---|---|---|---|---|---|"
    for run in runs:
        name = f"{run['minutes']} min, {run['date']}, {run['machine']}"
        rate = f"{run['reached_a_second']:,} of {run['asked_a_second']:,} asked for"
        counts = " | ".join(f"{run[name]:,}" for name in ("acknowledged", "in_log", "counted"))
        yield f"| {name} | {rate} | {counts} | {'; '.join(run['problems']) or 'nothing'} | {run['load_average']} |"
    longest = runs[-1]
    yield f"\nOf the run of {longest['minutes']} minutes, in parts:\n"
    yield f"| to minute | {' | '.join(REPORTED)} |"
    yield "|" + "---|" * (1 + len(REPORTED))
    for part in longest["parts"]:
        yield f"| {part['minute']} | {' | '.join(_figure(what, part[what]) for what in REPORTED)} |"
    yield "\nAnd by a straight line through all but its first quarter:\n"
    yield "| | a minute | over that time |"
    yield "|---|---|---|"
    for of in longest["growth"]:
        grows = Growth(**of)
        yield f"| {grows.what} | {grows.a_minute:+.3f} | {grows.share:+.1%}{', grows' * grows.is_too_much} |"
    yield ""


def _figure(what: str, value: float) -> str:
    return f"{value:.2f}" if what.endswith(" s") else f"{value:,.0f}"
