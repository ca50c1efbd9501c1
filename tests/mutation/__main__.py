"""`make mutants`: breaks the rules in one place at a time, and says which breaks no test finds.

Of all mutants (`mutants.py`) a seed chooses some. Each is run by the tests that run its line (`covering.py`), up to the
first that fails: what found the mutants beside it, then the tests of its module, then of each test function a case at
a time. A process is forked for each, in whose memory alone the mutant is: of one that has collected all tests, where
only functions change (`in_place.py`), otherwise of one that has loaded nothing of the model.
"""

import argparse
import gc
import importlib.abc
import importlib.machinery
import json
import os
import re
import resource
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib.machinery import ModuleSpec
from pathlib import Path
from random import Random
from types import CodeType, ModuleType
from typing import Final

import hypothesis  # noqa: F401 - what is loaded here no fork has to load
import pytest

from tests.mutation.covering import OPTIONS, Run, covering, files, own_tests, runs
from tests.mutation.in_place import Functions, changed
from tests.mutation.mutants import ROOT, Mutant, modules, mutants, mutated

CHOSEN: Final = 400
KILLED_SHARE: Final = 0.95
SECONDS: Final = 60.0
"""Of tests, as measured while their lines were noted, that a mutant has to live through to survive."""
SLOW_SECONDS: Final = 5.0
"""A test that takes longer, as measured, comes last."""
FEW: Final = 40
"""Tests that a mutant meets before it is worth preparing the others."""
MEMORY: Final = 4_000_000_000
QUIETLY: Final = ("-x", "-q", "-W", "ignore::pytest.PytestAssertRewriteWarning")
NOT_FOUND: Final = 4
"""What pytest returns where a test of that name is not found: a parameter is made of what was mutated."""
FAILED: Final = 1
BROKEN: Final = 70
"""What a fork returns that failed itself: of the mutant that says nothing."""


class Finder(importlib.abc.MetaPathFinder):
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


_Tests = Callable[[Sequence[str], int], int]
"""Runs tests by their node ids, and writes the one that fails to a file descriptor; 0 where none does."""


def main() -> int:
    """Run; returns 1 where fewer are killed than should be."""
    parser = argparse.ArgumentParser(prog="make mutants", description=__doc__)
    parser.add_argument("--seed", type=int, default=16)
    parser.add_argument("--mutants", type=int, default=CHOSEN)
    parser.add_argument("--seconds", type=float, default=SECONDS, help="of tests that a mutant has to live through")
    parser.add_argument("--all-tests", action="store_true", help="of the model, also those of long histories")
    parser.add_argument("--only", help="of modules whose path has this in it")
    parser.add_argument("--again", type=Path, help="only those that an earlier run printed as survivors")
    options = parser.parse_args()
    os.nice(19)
    # Whatever loads the model before a fork would hide its mutants.
    assert not any(name.startswith("coordinator_model") for name in sys.modules)
    chosen = chosen_by(options.seed, options.mutants, options.only)
    if options.again:
        reported = options.again.read_text(encoding="utf-8")
        chosen = list(_again(reported))
    hunt = Hunt(runs(files(narrow=not options.all_tests)), options.seconds)
    by_loading = [mutant for mutant in chosen if changed(mutant) is None]
    hunt.in_place([mutant for mutant in chosen if mutant not in by_loading])
    hunt.by_loading(by_loading)
    killed = 1 - len(hunt.survived) / max(hunt.met, 1)
    sys.stdout.write(f"\n{hunt.met - len(hunt.survived)} of {hunt.met} killed: {killed:.1%}\n")
    return int(killed < KILLED_SHARE)


def chosen_by(seed: int, count: int, only: str | None) -> list[Mutant]:
    every = [mutant for path in modules() for mutant in mutants(path) if only is None or only in mutant.path]
    return Random(seed).sample(every, min(count, len(every)))


def _again(report: str) -> Iterator[Mutant]:
    """The survivors of a report, wherever their lines are now; what is no longer there is left out, and said."""
    every = [mutant for path in modules() for mutant in mutants(path)]
    for path, line, change in re.findall(r"survived  (\S+):(\d+)  (.*)", report):
        same = [of for of in every if of.path == path and f"{of.was}  →  {of.now}" == change]
        if same:
            yield min(same, key=lambda of: abs(of.line - int(line)))
        else:
            sys.stdout.write(f"no longer there  {path}:{line}  {change}\n")


class Hunt:
    """Meets mutants with tests, and writes those that survive as they do."""

    def __init__(self, of: dict[str, Run], seconds: float) -> None:
        self._of, self._seconds = of, seconds
        self._killers: dict[str, Counter[str]] = {}
        self._started = time.monotonic()
        self.met = 0
        self.survived: list[Mutant] = []

    def by_loading(self, chosen: Iterable[Mutant]) -> None:
        """Those that need a process without the model."""
        for mutant in chosen:

            def run(tests: Sequence[str], _failed: int, mutant: Mutant = mutant) -> int:
                sys.meta_path.insert(0, Finder(mutant))
                code = pytest.main([*QUIETLY, *OPTIONS, *tests])
                return pytest.main([*QUIETLY, *OPTIONS, *_files(tests)]) if code == NOT_FOUND else code

            self.meet(mutant, run)

    def in_place(self, chosen: Sequence[Mutant]) -> None:
        """Those whose functions get other code: the tests are collected once, in a process apart."""
        reads, writes = os.pipe()
        if chosen and os.fork() == 0:
            pytest.main([*QUIETLY, *OPTIONS, *_files(self._of)], [_Collected(self, chosen)])
            with os.fdopen(writes, "w", encoding="utf-8") as out:
                json.dump([chosen.index(mutant) for mutant in self.survived], out)
            os._exit(0)
        os.close(writes)
        with os.fdopen(reads, encoding="utf-8") as found:
            self.survived += [chosen[number] for number in json.loads(found.read() or "[]")]
        os.waitpid(-1, 0)
        self.met += len(chosen)

    def meet(self, mutant: Mutant, run: _Tests) -> None:
        """Run what may kill the mutant."""
        tests = self._in_order(mutant)
        killed = any(part and not self.lives(part, run, mutant) for part in (tests[:FEW], tests[FEW:]))
        self.met += 1
        if not killed:
            self.survived.append(mutant)
        if not killed or self.met % 25 == 0:
            verdict = "killed" if killed else "survived"
            sys.stdout.write(f"{self.met:4} {time.monotonic() - self._started:6.0f} s  {verdict}  {mutant}\n")
            sys.stdout.flush()

    def by_seconds(self) -> list[str]:
        """All tests, the slowest first."""
        return sorted(self._of, key=lambda test: -self._of[test].seconds)

    def _in_order(self, mutant: Mutant) -> list[str]:
        """Tests that run the mutant's line, the likeliest to fail first, as long as they may take."""
        beside = self._killers.get(mutant.path, Counter())
        own = own_tests(mutant)
        cases: Counter[str] = Counter()
        places: dict[str, tuple[bool, int, bool, int, float]] = {}
        for test in covering(mutant, self._of):
            function = re.sub(r"\[.*", "", test)
            cases[function] += 1
            seconds = self._of[test].seconds
            places[test] = (seconds > SLOW_SECONDS, -beside[test], own not in test, cases[function] // 3, seconds)
        found, spent = [], 0.0
        for test in sorted(places, key=places.__getitem__):
            seconds = self._of[test].seconds
            if seconds > SLOW_SECONDS or spent + seconds <= self._seconds:
                found.append(test)
                spent += seconds if seconds <= SLOW_SECONDS else 0
        return found

    def lives(self, tests: Sequence[str], run: _Tests, mutant: Mutant | None) -> bool:
        """Whether all tests pass, and end."""
        reads, writes = os.pipe()
        child = os.fork()
        if child == 0:
            _be(lambda: run(tests, writes), round(60 + 5 * sum(self._of[test].seconds for test in tests)))
        os.close(writes)
        with os.fdopen(reads, encoding="utf-8") as failed:
            killer = failed.read()
        _, status = os.waitpid(child, 0)
        if mutant and killer:
            self._killers.setdefault(mutant.path, Counter())[killer] += 1
        assert status != BROKEN << 8, f"a fork failed with {mutant}"
        return status == 0


class _Collected:
    """A pytest plugin: instead of all that was collected, runs some of it for each mutant."""

    def __init__(self, hunt: Hunt, chosen: Sequence[Mutant]) -> None:
        self._hunt, self._chosen = hunt, chosen

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        items = {item.nodeid: item for item in session.items}

        def run(tests: Sequence[str], failed: int) -> int:
            session.config.pluginmanager.unregister(name="terminalreporter")  # it writes past what `_be` silences
            found = [items[test] for test in tests]
            for item, following in zip(found, [*found[1:], None], strict=True):
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
                if session.testsfailed:
                    os.write(failed, item.nodeid.encode())
                    return FAILED
            return 0

        quick = list({_files([test])[0]: test for test in self._hunt.by_seconds()}.values())
        assert self._hunt.lives(quick, run, None), "a test fails without a mutant"
        functions = Functions()
        gc.collect()
        gc.freeze()  # what a fork does not write to, it shares
        for mutant in self._chosen:
            codes = changed(mutant) or []

            def broken(tests: Sequence[str], failed: int, codes: list[tuple[CodeType, CodeType]] = codes) -> int:
                functions.put_in(codes)
                return run(tests, failed)

            self._hunt.meet(mutant, broken)
        return True


def _files(tests: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(test.partition("::")[0] for test in tests))


def _be(run: Callable[[], int], seconds: int) -> None:
    """The forked process: it does not return."""
    code = BROKEN
    try:
        silence = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(silence, stream)
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))  # its own: a busy machine kills no mutant
        code = run()
    finally:
        os._exit(code)


if __name__ == "__main__":
    sys.exit(main())
