"""What `make attack` found, and the page that is made of it (`tests/doc_tables.py`).

`results.json` holds a row for each attack, and what came of each of those that are tests; a run replaces the rows of
the attacks that it tried.
"""

import json
import os
import platform
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from tests.attack.attacks import ATTACKS
from tests.attack.by_tests import BY_TESTS
from tests.attack.scene import Figures

FILE: Final = Path(__file__).with_name("results.json")

MOST_LEFT: Final = 1.1
"""How much of what was held before may be held afterwards."""
SLACK_MIB: Final = 32.0
SLACK_DESCRIPTORS: Final = 10
"""What a process takes and gives back in that time without an attack."""

_MADE: Final = re.compile(r"(<!-- Made by `[^`]+` of what `make attack` found -->\n).*?(?=<!-- end -->)", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One attack.

    Attributes:
        attack: its name.
        before, during, after: what was held; of during the most.
        asked: how often each probe was asked meanwhile.
        unanswered: how often a probe got no answer.
        unhealthy, unready: how often `/healthz` and `/ready` did not answer 200 meanwhile.
        slowest_seconds: the longest wait of a probe.
        shown: whether a commit of meanwhile was shown afterwards.
        seconds: how long it took.
        broken: what did not hold; empty if all did.
    """

    attack: str
    before: Figures
    during: Figures
    after: Figures
    asked: int
    unanswered: int
    unhealthy: int
    unready: int
    slowest_seconds: float
    shown: bool
    seconds: float
    broken: list[str] = field(default_factory=list)

    def cells(self) -> Iterator[str]:
        """What a table shows of it."""
        yield self.attack
        for name in ("python_mib", "jvm_mib", "workers_mib", "descriptors"):
            yield " / ".join(f"{getattr(of, name):.0f}" for of in (self.before, self.during, self.after))
        yield f"{self.unanswered} + {self.unhealthy} + {self.unready} of {self.asked}, {self.slowest_seconds:.1f} s"
        yield "yes" if self.shown else "no"
        yield f"{self.seconds:.0f}"
        yield "; ".join(self.broken) or "held"


HEADERS: Final = (
    "attack",
    "Python, MiB",
    "JVM, MiB",
    "workers, MiB",
    "descriptors",
    "probes: no answer + unhealthy + unready, slowest",
    "commit shown",
    "s",
    "outcome",
)
"""Figures are before, the most during, and after."""


def left(before: Figures, after: Figures) -> list[str]:
    """What has not come back."""
    found = []
    for name in ("python_mib", "jvm_mib", "workers_mib", "descriptors"):
        was, now = getattr(before, name), getattr(after, name)
        slack = SLACK_DESCRIPTORS if name == "descriptors" else SLACK_MIB
        if now > max(was * MOST_LEFT, was + slack):
            found.append(f"{name} {was:.0f}, afterwards {now:.0f}")
    return found


def load(file: Path = FILE) -> list[Result]:
    """What was found so far."""
    rows = _held(file).get("results", ())
    return [Result(**{**row, **{of: Figures(**row[of]) for of in ("before", "during", "after")}}) for row in rows]


def save(found: Iterable[Result], by_tests: Mapping[str, str], file: Path = FILE) -> None:
    """Put these in the place of what was found of the same attacks before."""
    rows = {row.attack: row for row in (*load(file), *found)}
    machine = f"{os.cpu_count()} cores, Python {platform.python_version()}"
    of_tests = {**_held(file).get("by_tests", {}), **by_tests}
    held = {"machine": machine, "results": [asdict(row) for row in rows.values()], "by_tests": of_tests}
    file.write_text(json.dumps(held, indent=1) + "\n", encoding="utf-8")


def _held(file: Path) -> dict[str, Any]:
    return json.loads(file.read_text("utf-8")) if file.is_file() else {}


def page(current: str, file: Path = FILE) -> str:
    """The page with its table as it should be."""
    return _MADE.sub(lambda found: found[1] + "".join(f"{line}\n" for line in _table(file)), current)


def _table(file: Path) -> Iterator[str]:
    rows, held = {row.attack: row for row in load(file)}, _held(file)
    yield "| attack | once | now | in `make test` |"
    yield "|---|---|---|---|"
    for attack in ATTACKS:
        done, now = _done(attack.does.__doc__ or ""), _now(rows.get(attack.name))
        yield f"| {done} | {attack.before} | {now} | `{attack.test}` |"
    if held:
        yield ""
        yield f"Measured on {held['machine']}, which other work shared."
    yield ""
    yield "These take nothing from a monitor that runs, so a test is all of it; `make attack` runs them last:"
    yield ""
    yield "| attack | once | now | test |"
    yield "|---|---|---|---|"
    for row in BY_TESTS:
        now = held.get("by_tests", {}).get(row.test, "not tried yet")
        yield f"| {row.does} | {row.before} | {now} | `{row.test}` |"


def _done(docstring: str) -> str:
    return " ".join(docstring.split()).removesuffix(".").replace("|", "\\|")


def _now(row: Result | None) -> str:
    if row is None:
        return "not tried yet"
    memory = [sum((of.python_mib, of.jvm_mib, of.workers_mib)) for of in (row.before, row.during, row.after)]
    descriptors = [of.descriptors for of in (row.before, row.during, row.after)]
    return "; ".join(
        [
            " → ".join(f"{of:.0f}" for of in memory) + " MiB",
            " → ".join(map(str, descriptors)) + " descriptors",
            f"of {2 * row.asked} probes {row.unanswered + row.unhealthy} failed",
            *row.broken,
        ]
    )
