"""`results.json`: what was measured last of every part, and on what."""

import json
import os
import platform
import time
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from bench.figures import Outcome
from streaming.spark import java

RESULTS: Final = Path(__file__).resolve().parent / "results.json"


def machine() -> dict[str, Any]:
    """What the figures are of."""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return {
        "cores": os.cpu_count(),
        "memory_gib": round(memory / 2**30),
        "processor": _processor(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "java": java.feature_version(_java_said()) or 0,
        "spark": version("pyspark"),
    }


def load(path: Path = RESULTS) -> dict[str, Any]:
    """All results; without any, there are no parts."""
    if not path.is_file():
        return {"machine": {}, "parts": {}}
    held: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return held


def store(outcomes: Mapping[str, Outcome], path: Path = RESULTS) -> None:
    """Put these parts' results in the place of their former ones."""
    held = load(path)
    for name, outcome in outcomes.items():
        held["parts"][name] = {
            "date": time.strftime("%Y-%m-%d", time.gmtime()),
            "size": outcome.size,
            "figures": {figure: of.as_json() for figure, of in sorted(outcome.figures.items())},
        }
    held = {"machine": machine(), "parts": dict(sorted(held["parts"].items()))}
    path.write_text(json.dumps(held, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def table(outcomes: Mapping[str, Outcome]) -> str:
    """The figures as lines for a terminal."""
    rows = [
        (name, figure, f"{shown['median']:g}", f"{shown['lowest']:g} - {shown['highest']:g}", shown["unit"])
        for name, outcome in outcomes.items()
        for figure, of in sorted(outcome.figures.items())
        for shown in (of.as_json(),)
    ]
    return aligned([("part", "figure", "median", "spread", "unit"), *rows])


def aligned(rows: Sequence[Sequence[str]]) -> str:
    """Rows as lines whose columns stand below each other."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or "unknown"
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "unknown")


def _java_said() -> str:
    import subprocess

    return subprocess.run([str(java.find_java()), "-version"], capture_output=True, text=True, check=True).stderr  # noqa: S603
