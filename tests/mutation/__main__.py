"""`make mutants`: breaks the rules in one place at a time, and says which breaks no test finds.

Of all mutants (`mutants.py`) a seed chooses some. Each is run by the tests that run its line (`covering.py`), the
quickest first and up to the first that fails; what they let live, by all the others. A process is forked for each: the
mutated module is in its memory alone.
"""

import argparse
import importlib.abc
import importlib.machinery
import os
import re
import resource
import signal
import sys
import time
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from pathlib import Path
from random import Random
from types import CodeType, ModuleType
from typing import Final

import hypothesis  # noqa: F401 - what is loaded here no fork has to load
import pytest

from tests.mutation.covering import Run, covering, runs
from tests.mutation.mutants import ROOT, Mutant, modules, mutants, mutated

CHOSEN: Final = 400
KILLED_SHARE: Final = 0.95
FIRST_SECONDS: Final = 20.0
"""Of tests, as measured, that a mutant meets first; most do not survive one second of them."""
SLOW_SECONDS: Final = 5.0
"""A test that takes longer, as measured, is left out: it is one of many that do the same."""
MEMORY: Final = 2_000_000_000
QUIETLY: Final = (
    "-x",
    "-q",
    "-p",
    "no:cacheprovider",
    "-o",
    "timeout=0",
    "-W",
    "ignore::pytest.PytestAssertRewriteWarning",
)
GIVES_UP: Final = 4
"""What pytest returns where a test of that name is not found: a parameter is made of what was mutated."""


class _Finder(importlib.abc.MetaPathFinder):
    """Finds the mutated module instead of the one on disk."""

    def __init__(self, mutant: Mutant) -> None:
        self._name = mutant.path.removesuffix(".py").replace("/", ".")
        self._mutant = mutant

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != self._name:
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path)
        assert spec is not None
        spec.loader = _Loader(fullname, str(ROOT / self._mutant.path), self._mutant)
        return spec


class _Loader(importlib.machinery.SourceFileLoader):
    def __init__(self, fullname: str, path: str, mutant: Mutant) -> None:
        super().__init__(fullname, path)
        self._mutant = mutant

    def get_code(self, fullname: str) -> CodeType:
        code = compile(mutated(self._mutant), str(self.path), "exec", dont_inherit=True)
        assert isinstance(code, CodeType)
        return code


def main() -> int:
    """Run; returns 1 where fewer are killed than should be."""
    parser = argparse.ArgumentParser(prog="make mutants", description=__doc__)
    parser.add_argument("--seed", type=int, default=16)
    parser.add_argument("--mutants", type=int, default=CHOSEN)
    parser.add_argument("--only", help="of modules whose path has this in it")
    parser.add_argument("--again", type=Path, help="only those that an earlier run printed as survivors")
    options = parser.parse_args()
    os.nice(19)
    # Whatever loads the model before a fork would hide its mutants.
    assert not any(name.startswith("coordinator_model") for name in sys.modules)
    chosen = _chosen(options.seed, options.mutants, options.only)
    if options.again:
        reported = options.again.read_text(encoding="utf-8")
        chosen = [mutant for mutant in chosen if f"survived  {mutant}" in reported]
    of, started = runs(), time.monotonic()
    assert _run(None, [min(of, key=lambda test: of[test].seconds)], 120) is None, "a test fails without a mutant"
    survived: list[Mutant] = []
    for number, mutant in enumerate(chosen, 1):
        verdict = _verdict(mutant, of)
        if verdict == "survived":
            survived.append(mutant)
        if verdict != "killed" or number % 25 == 0:
            sys.stdout.write(f"{number:4} {time.monotonic() - started:6.0f} s  {verdict}  {mutant}\n")
            sys.stdout.flush()
    killed = 1 - len(survived) / max(len(chosen), 1)
    sys.stdout.write(f"\n{len(chosen) - len(survived)} of {len(chosen)} killed: {killed:.1%}\n")
    return int(killed < KILLED_SHARE)


def _chosen(seed: int, count: int, only: str | None) -> list[Mutant]:
    every = [mutant for path in modules() for mutant in mutants(path) if only is None or only in mutant.path]
    return Random(seed).sample(every, min(count, len(every)))


def _verdict(mutant: Mutant, of: dict[str, Run]) -> str:
    tests = [test for test in covering(mutant, of) if of[test].seconds <= SLOW_SECONDS]
    first, seconds = [], 0.0
    for test in tests:
        seconds += of[test].seconds
        if seconds > FIRST_SECONDS:
            break
        first.append(test)
    rest = tests[len(first) :]
    for part in (_few(first), first, rest):
        if part and (ended := _run(mutant, part, 60 + 10 * sum(of[test].seconds for test in part))):
            return ended
    return "survived"


def _few(tests: Sequence[str]) -> list[str]:
    """Of each function the first two, of each module five: the cheapest way to most deaths."""
    functions: dict[str, int] = {}
    found: list[str] = []
    for test in tests:
        names = (re.sub(r"\[.*", "", test), test.partition("::")[0])
        if functions.get(names[0], 0) < 2 and (functions.get(names[1], 0) < 5 or len(found) < 60):
            found.append(test)
            for name in names:
                functions[name] = functions.get(name, 0) + 1
    return found


def _run(mutant: Mutant | None, tests: Sequence[str], seconds: float) -> str | None:
    """What became of the mutant; None where all tests pass."""
    child = os.fork()
    if child == 0:
        _be(mutant, tests)
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            code = os.waitstatus_to_exitcode(status)
            if code == GIVES_UP:
                files = list(dict.fromkeys(test.partition("::")[0] for test in tests))
                return _run(mutant, files, seconds) if files != list(tests) else "killed"
            return None if code == 0 else "killed"
        time.sleep(0.02)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return "killed"


def _be(mutant: Mutant | None, tests: Sequence[str]) -> None:
    """The forked process: it does not return."""
    silence = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(silence, stream)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    if mutant is not None:
        sys.meta_path.insert(0, _Finder(mutant))
    code: int = 1
    try:
        code = pytest.main([*QUIETLY, *tests])
    finally:
        os._exit(code)


if __name__ == "__main__":
    sys.exit(main())
