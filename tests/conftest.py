"""What every test module shares: how hard Hypothesis looks, signals, what runs together, a note of what was skipped.

Deterministic and quick unless ``HYPOTHESIS_PROFILE=exhaustive`` asks for many, random examples. An example that fails
is shown as it was found; ``HYPOTHESIS_PROFILE=smallest`` finds the same one and makes it as small as it can.
"""

import os
import signal

# pytest looks up in it where an ignored exception comes from. Imported by that, it failed a test in which a second one
# came meanwhile.
import tracemalloc  # noqa: F401 - as above
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, Phase, settings
from xdist.scheduler.loadscope import LoadScopeScheduling

from tests import left_out

settings.register_profile("smallest", max_examples=25, derandomize=True, deadline=None, database=None)
# Of a large history, examples are made smaller for up to five minutes: the time-out would come first, and then it, and
# not what failed, is reported.
settings.register_profile("quick", settings.get_profile("smallest"), phases=set(Phase) - {Phase.shrink, Phase.explain})
settings.register_profile(
    "exhaustive",
    max_examples=2000,
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],  # large structs of the streams topology take their time
)
PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "quick")
settings.load_profile(PROFILE)


def pytest_addoption(parser: pytest.Parser) -> None:
    """``--left-out=FILE``, by which `make test` learns what was skipped in each of its runs."""
    parser.addoption("--left-out", type=Path, metavar="FILE", help="add to FILE what was skipped, and why")


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Let what tests start hear Ctrl-C and a hang-up: tests in a shell's background, or under nohup, hear neither."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
    if PROFILE != "quick":  # before the time-outs are set: these look for as long as it takes
        config.option.timeout = 0
    # Workers report to the process that started them.
    if config.option.left_out is not None and not hasattr(config, "workerinput"):
        config.pluginmanager.register(_LeftOut(config.option.left_out))


# Where modules share a broker or a story, in a fixture of a conftest.py: folder → what tells those that do.
_SHARED: Final = {"tests/demo": "", "tests/faults": "", "tests/integration": "east_and_west"}


@cache
def _story_of(file: str) -> str:
    """What runs in one process: a module, with those that share a story with it."""
    folder, _, name = file.rpartition("/")
    shares = folder in _SHARED and _SHARED[folder] in (left_out.ROOT / folder / name).read_text("utf-8")
    return folder if shares else file


class _Stories(LoadScopeScheduling):  # type: ignore[misc]  # pytest-xdist has no types
    """Deals out modules; those of one story go to one process."""

    def _split_scope(self, nodeid: str) -> str:
        return _story_of(nodeid.partition("::")[0])


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> _Stories | None:
    """With `--dist loadgroup`, modules of one story are a group; marks of groups do not reach a pytest of 9.2."""
    return _Stories(config, log) if config.getoption("dist") == "loadgroup" else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Then begin with what may take longest: no process is left with it while the others have nothing to do."""
    if getattr(config.option, "loadgroup", False):
        longest: dict[str, float] = {}
        for item in items:
            story = _story_of(item.nodeid.partition("::")[0])
            limits = [float(mark.args[0]) for mark in item.iter_markers("timeout")]
            longest[story] = max(longest.get(story, 0.0), *limits, 0.0)
        items.sort(key=lambda item: -longest[_story_of(item.nodeid.partition("::")[0])])


class _LeftOut:
    """Counts the reasons of skipped tests, and of skipped modules, for `tests/left_out.py`."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._reasons: Counter[str] = Counter()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if not hasattr(report, "wasxfail"):
            self._count(report)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        self._count(report)

    def pytest_sessionfinish(self) -> None:
        left_out.note(self._file, self._reasons)

    def _count(self, report: pytest.TestReport | pytest.CollectReport) -> None:
        if report.skipped:
            assert isinstance(report.longrepr, tuple)
            self._reasons[report.longrepr[2].removeprefix("Skipped: ")] += 1
