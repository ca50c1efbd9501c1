"""What `make faults` found, and the page that is made of it (`tests/doc_tables.py`).

`results.json` holds a row for each fault: what was done, how often, and what of that was lost, reported twice or shown
otherwise than by a monitor that nothing disturbed. A run replaces the rows of the faults that it ran. With
`FAULTS_WRITE` set in the environment, the tests of faults write down theirs as well.
"""

import json
import os
import platform
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final

FILE: Final = Path(__file__).with_name("results.json")


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One fault, over all its rounds.

    Attributes:
        fault: its name in `matrix.FAULTS`.
        done: what was done.
        times: how often it was.
        records: written to the log meanwhile.
        events: that follow from the log.
        lost: events not reported, and groups, offsets and counters not shown.
        repeated: events reported under two ids, or in two batches.
        wrong: what was reported or shown otherwise.
        figures: what was measured besides, each with its unit in words.
    """

    fault: str
    done: str
    times: int
    records: int
    events: int
    lost: int
    repeated: int
    wrong: int
    figures: dict[str, float] = field(default_factory=dict)


def load(file: Path = FILE) -> list[Result]:
    """What was found so far."""
    return [Result(**row) for row in json.loads(file.read_text("utf-8"))["results"]] if file.is_file() else []


def save(found: Iterable[Result], file: Path = FILE) -> None:
    """Put these in the place of what was found of the same faults before."""
    rows = {row.fault: row for row in (*load(file), *found)}
    machine = f"{os.cpu_count()} cores, Python {platform.python_version()}"
    held = {"machine": machine, "results": [asdict(row) for row in rows.values()]}
    file.write_text(json.dumps(held, indent=1) + "\n", encoding="utf-8")


def save_if_asked(found: Iterable[Result]) -> None:
    """What a test found, where `FAULTS_WRITE` is set."""
    if os.environ.get("FAULTS_WRITE"):
        save(found)


def machine(file: Path = FILE) -> str:
    """What it was found on."""
    return str(json.loads(file.read_text("utf-8"))["machine"]) if file.is_file() else ""
