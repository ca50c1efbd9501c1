"""Which test runs which lines of the mutated modules: a pytest plugin that writes it down, and what is made of it.

A line is of a test if it runs in the test's set-up or in its call. What runs while a module is loaded is of none: a
constant is looked for by its name in the lines that use it.
"""

import hashlib
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Generator, Iterable
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Final

import pytest

from tests.mutation.mutants import ROOT, Mutant, modules

TESTS: Final = ("tests/coordinator_model",)
LEFT_OUT: Final = ("tests/coordinator_model/test_kafka_replay.py",)
"""Starts a Java runtime, and judges replaying, not rules."""

MAP: Final = ROOT / ".cache" / "mutation"
_FILES: Final = {str(path): str(path.relative_to(ROOT)) for path in modules()}


@dataclass(frozen=True, slots=True)
class Run:
    """One test: how much processor time it took, in seconds, and a bit for each line it ran, by module."""

    seconds: float
    lines: dict[str, int]


class Recorder:
    """The plugin."""

    def __init__(self, into: Path) -> None:
        self._into = into
        self._lines: dict[CodeType, set[int]] = {}
        self._found: dict[str, Any] = {}

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        self._lines.clear()
        started = time.process_time()
        sys.settrace(self._calls)
        try:
            result = yield
        finally:
            sys.settrace(None)
        lines: dict[str, int] = {}
        for code, of in self._lines.items():
            name = _FILES[code.co_filename]
            lines[name] = lines.get(name, 0) | sum(1 << line for line in of)
        self._found[item.nodeid] = {
            "seconds": round(time.process_time() - started, 3),
            "lines": {name: hex(bits) for name, bits in lines.items()},
        }
        return result

    def pytest_sessionfinish(self) -> None:
        self._into.write_text(json.dumps(self._found), encoding="utf-8")

    def _calls(self, frame: FrameType, _event: str, _of: object) -> Any:
        code = frame.f_code
        if code.co_filename not in _FILES:
            return None
        lines = self._lines.setdefault(code, set())

        def line(frame: FrameType, _event: str, _of: object) -> Any:
            lines.add(frame.f_lineno)
            return line

        lines.add(frame.f_lineno)
        return line


def runs() -> dict[str, Run]:
    """Every test of the model by its node id; made again where a test or a module is another than it was."""
    made = hashlib.sha256()
    for path in sorted({*(ROOT / "tests").rglob("*.py"), *(ROOT / "coordinator_model").rglob("*.py")}):
        if path.parent.name != "mutation":
            made.update(path.read_bytes())
    kept = MAP / f"{made.hexdigest()[:16]}.json"
    if not kept.exists():
        MAP.mkdir(parents=True, exist_ok=True)
        new = MAP / f"new-{os.getpid()}.json"
        subprocess.run(  # noqa: S603 - ourselves
            [sys.executable, "-P", "-m", "tests.mutation.covering", str(new)], cwd=ROOT, check=True
        )
        new.rename(kept)
    found = json.loads(kept.read_text(encoding="utf-8"))
    return {
        test: Run(of["seconds"], {name: int(bits, 16) for name, bits in of["lines"].items()})
        for test, of in found.items()
    }


def covering(mutant: Mutant, of: dict[str, Run]) -> list[str]:
    """Tests that run the mutant's line; those of the module that carries its name first, then the quickest."""
    where = _places(mutant, of.values())
    found = [test for test, run in of.items() if any(run.lines.get(path, 0) & bits for path, bits in where.items())]
    own = f"test_{Path(mutant.path).name}::"
    return sorted(found, key=lambda test: (own not in test, of[test].seconds))


def _places(mutant: Mutant, of: Iterable[Run]) -> dict[str, int]:
    bit = 1 << mutant.line
    if any(run.lines.get(mutant.path, 0) & bit for run in of):
        return {mutant.path: bit}
    lines = (ROOT / mutant.path).read_text(encoding="utf-8").splitlines()
    begun = next((number for number in range(mutant.line, 0, -1) if re.match(r"\w", lines[number - 1])), 1)
    name = re.match(r"\w+", lines[begun - 1])
    if name is None:
        return {mutant.path: -1}
    used = re.compile(rf"\b{name[0]}\b")
    found: dict[str, int] = {}
    for path, relative in _FILES.items():
        for number, line in enumerate(Path(path).read_text(encoding="utf-8").splitlines(), 1):
            if used.search(line):
                found[relative] = found.get(relative, 0) | 1 << number
    return found if any(run.lines.get(p, 0) & bits for run in of for p, bits in found.items()) else {mutant.path: -1}


if __name__ == "__main__":
    left_out = [f"--ignore={path}" for path in LEFT_OUT]
    options = ["-q", "-p", "no:cacheprovider", "-m", "not spark and not broker", "-o", "timeout=0", *left_out, *TESTS]
    sys.exit(pytest.main(options, [Recorder(Path(sys.argv[1]))]))
