"""Which test runs which lines of the mutated modules: a pytest plugin that writes it down, and what is made of it.

A line is of a test if it runs in the test's set-up or in its call. What runs while a module is loaded is of none: a
constant is looked for by its name in the lines that use it.
"""

import hashlib
import json
import re
import subprocess
import sys
import time
from collections.abc import Generator, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Final

import pytest

from tests.mutation.mutants import ROOT, Mutant, modules

_MODEL: Final = Path("tests/coordinator_model")
NARROW: Final = tuple(_MODEL / room for room in ("rules", "clocked", "migration", "groups"))
"""Tests of one thing each: they run for seconds, and find most."""
TABLE: Final = _MODEL / "rules" / "test_table.py"
"""Runs every recording for what it finds, and is no narrow one."""
LIMITS: Final = _MODEL / "test_time_limits.py"
"""Has the numbers that are limits of time, which no line of its own runs."""
BUILT: Final = Path("tests/streaming/query/test_built_state.py")
"""How state is made of a reduced log: rules begin with it."""
LEFT_OUT: Final = (_MODEL / "test_kafka_replay.py", _MODEL / "test_share_replica.py")
"""Start a Java runtime, and judge replaying, not rules."""

OPTIONS: Final = ("-p", "no:cacheprovider", "-m", "not spark and not broker", "-o", "timeout=0")

MAP: Final = ROOT / ".cache" / "mutation"
_FILES: Final = {str(path): str(path.relative_to(ROOT)) for path in modules()}


@dataclass(frozen=True, slots=True)
class Run:
    """One test: how much processor time it took, in seconds, and a bit for each line it ran, by module."""

    seconds: float
    lines: dict[str, int]


class Recorder:
    """The plugin."""

    def __init__(self, into: Mapping[str, str]) -> None:
        self._into = into
        self._lines: dict[CodeType, set[int]] = {}
        self._found: dict[str, Any] = {}
        self._shared: dict[tuple[str, str], tuple[float, dict[str, int]]] = {}

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(
        self, item: pytest.Item, nextitem: pytest.Item | None
    ) -> Generator[None, object, object]:
        self._lines.clear()
        started = time.process_time()
        sys.settrace(self._calls)
        try:
            result = yield
        finally:
            sys.settrace(None)
        seconds, lines = time.process_time() - started, self._noted()
        for (place, fixture), (took, shared) in self._shared.items():
            if item.nodeid.startswith(place) and fixture in getattr(item, "fixturenames", ()):
                seconds += took
                for name, bits in shared.items():
                    lines[name] = lines.get(name, 0) | bits
        self._found[item.nodeid] = {
            "seconds": round(seconds, 3),
            "lines": {name: hex(bits) for name, bits in lines.items()},
        }
        if (nextitem is None or nextitem.path != item.path) and not item.session.testsfailed:
            into = Path(self._into[str(item.path.relative_to(ROOT))])
            into.write_text(json.dumps(self._found), encoding="utf-8")
            self._found.clear()
        return result

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[object]) -> Generator[None, object, object]:
        """What a fixture of many tests runs is of each of them, not of the first alone."""
        if fixturedef.scope == "function":
            return (yield)
        before, self._lines = self._lines, {}
        started = time.process_time()
        try:
            return (yield)
        finally:
            self._shared[fixturedef.baseid, fixturedef.argname] = time.process_time() - started, self._noted()
            self._lines = before

    def _noted(self) -> dict[str, int]:
        lines: dict[str, int] = {}
        for code, of in self._lines.items():
            name = _FILES[code.co_filename]
            lines[name] = lines.get(name, 0) | sum(1 << line for line in of)
        return lines

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


def files(*, narrow: bool) -> list[Path]:
    """Test modules that may find a mutant."""
    if narrow:
        bugs = ROOT.glob(f"{_MODEL}/test_bugs_*.py")
        found = [ROOT / LIMITS]
        found += [path for room in NARROW for path in (ROOT / room).glob("test_*.py") if path != ROOT / TABLE] + [*bugs]
    else:
        found = [ROOT / BUILT, *(ROOT / _MODEL).rglob("test_*.py")]
    return list(dict.fromkeys(path.relative_to(ROOT) for path in found if path.relative_to(ROOT) not in LEFT_OUT))


def runs(of: Iterable[Path]) -> dict[str, Run]:
    """Every test of these modules by its node id; run where one, or what it runs, is another than it was."""
    made = hashlib.sha256()
    for path in sorted([*(ROOT / "tests").rglob("*.py"), *(ROOT / "coordinator_model").rglob("*.py")]):
        if not path.name.startswith("test_") and path.parent.name != "mutation":
            made.update(path.read_bytes())
    kept = {path: MAP / f"{_name(path, made.hexdigest())}.json" for path in of}
    missing = [path for path, into in kept.items() if not into.exists()]
    if missing:
        MAP.mkdir(parents=True, exist_ok=True)
        into = json.dumps({str(path): str(kept[path]) for path in missing})
        subprocess.run(  # noqa: S603 - ourselves
            [sys.executable, "-P", "-m", "tests.mutation.covering", into], cwd=ROOT, check=True
        )
    return {
        test: Run(of["seconds"], {name: int(bits, 16) for name, bits in of["lines"].items()})
        for into in kept.values()
        for test, of in json.loads(into.read_text(encoding="utf-8")).items()
    }


def _name(path: Path, made: str) -> str:
    return hashlib.sha256(made.encode() + (ROOT / path).read_bytes()).hexdigest()[:24]


def covering(mutant: Mutant, of: dict[str, Run]) -> list[str]:
    """Tests that run the mutant's line; of one that only loading runs, those that use its name, and its module's."""
    bit = 1 << mutant.line
    if any(run.lines.get(mutant.path, 0) & bit for run in of.values()):
        return [test for test, run in of.items() if run.lines.get(mutant.path, 0) & bit]
    where, own = _users(mutant), own_tests(mutant)
    using = {test for test, run in of.items() if any(run.lines.get(path, 0) & bits for path, bits in where.items())}
    using = using or {test for test, run in of.items() if mutant.path in run.lines}
    return [test for test in of if test in using or own in test or test.startswith(f"{LIMITS}::")]


def own_tests(mutant: Mutant) -> str:
    """What the names of the tests of the mutant's module have in them."""
    room, name = mutant.path.split("/")[-2:]
    return f"/{room}/test_{name}::"


def _users(mutant: Mutant) -> dict[str, int]:
    """By module the lines that use the name that the mutant's line defines; all of its own where it defines none."""
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
    return found


if __name__ == "__main__":
    wanted: dict[str, str] = json.loads(sys.argv[1])
    sys.exit(pytest.main(["-q", "-x", *OPTIONS, *wanted], [Recorder(wanted)]))
