"""The tables of docs/faults.md, from the matrix of faults and what `make faults` found (`tests/doc_tables.py`)."""

import re
from collections.abc import Iterator
from typing import Final

from tests.faults import results
from tests.faults.matrix import FAULTS
from tests.faults.results import Result
from tests.faults.victim import STAGES

_MADE: Final = re.compile(r"(<!-- Made by `[^`]+` of (.+?) -->\n).*?(?=<!-- end -->)", re.DOTALL)


def page(current: str) -> str:
    """The page with its tables as they should be."""
    made = {"what `make faults` found": _results(), "the stages": _stages()}
    return _MADE.sub(lambda found: found[1] + made[found[2]], current)


def _stages() -> str:
    return "".join(f"- *{name}*: {happened}\n" for name, happened in STAGES.items())


def _results() -> str:
    order = {name: number for number, name in enumerate(FAULTS)}
    rows = sorted(results.load(), key=lambda row: order.get(row.fault, -1))
    found = [f"Measured on {results.machine()}, which other work shared:\n", *_table(rows), ""] if rows else []
    tried = {row.fault for row in rows}
    untried = {name: fault for name, fault in FAULTS.items() if name not in tried}
    if untried:
        reported = (f"- *{name.replace('_', ' ')}*: {(fault.__doc__ or '').strip()}" for name, fault in untried.items())
        found += ["Written down, and not tried yet:\n", *reported, ""]
    return "\n".join(found)


def _table(rows: list[Result]) -> Iterator[str]:
    yield "| fault | what was done | times | records | events | lost | repeated | wrong | measured |"
    yield "|---|---|---|---|---|---|---|---|---|"
    for row in rows:
        figures = "; ".join(f"{name} {value:g}" for name, value in row.figures.items())
        counts = (row.times, row.records, row.events, row.lost, row.repeated, row.wrong)
        yield f"| {row.fault.replace('_', ' ')} | {row.done} | {' | '.join(map(str, counts))} | {figures} |"
