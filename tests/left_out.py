"""What tests need beside Python, Java and make; and what was left out for want of it, in one line.

Every test that may be left out is marked from here, so that each reason is a row of a table, with the command that
brings what is missing. `make test` ends with `python -m tests.left_out FILE`, where FILE is what its runs of pytest
wrote of tests that they skipped (`--left-out=FILE`, in `tests/conftest.py`).
"""

import json
import os
import shutil
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NoReturn

import pytest

ROOT: Final = Path(__file__).resolve().parent.parent

COMPLETE: Final = "COMPLETE"
"""The variable by which `.ci/run` says that all programs are there: what is left out for another reason is an error."""


@dataclass(frozen=True, slots=True)
class Need:
    """Something that a test needs.

    Attributes:
        name: what is missing, as "without …" has it; of what is asked for, what those tests do.
        brought_by: the command that brings it, or where it is to be had.
        is_optional: tests that need it may be left out by `.ci/run` on Debian, too.
        is_asked: it is asked for by a variable, and not a thing that could be missing.
    """

    name: str
    brought_by: str
    is_optional: bool = False
    is_asked: bool = False

    @property
    def reason(self) -> str:
        """Why a test is skipped."""
        return f"{self._what}: {self.brought_by}"

    def part(self, tests: int) -> str:
        """How many tests were left out, and why."""
        return f"{tests} {self._what}"

    def unless(self, is_there: bool) -> pytest.MarkDecorator:
        """The mark of tests that need it."""
        return pytest.mark.skipif(not is_there, reason=self.reason)

    def skip(self) -> NoReturn:
        """Leave out the test that runs."""
        pytest.skip(self.reason)

    @property
    def _what(self) -> str:
        return self.name if self.is_asked else f"without {self.name}"


def _programs() -> dict[str, tuple[Need, tuple[str, ...]]]:
    """Need and names of each program, by each of its names."""
    found: dict[str, tuple[Need, tuple[str, ...]]] = {}
    for line in (ROOT / "tests" / "programs.txt").read_text("utf-8").splitlines():
        if not line.startswith("#"):
            names, debian, homebrew = (part.strip() for part in line.split("|")[:3])
            brought_by = "sudo .ci/install" if debian else ".ci/install, where Go is"
            if sys.platform == "darwin":
                brought_by = f"brew install {homebrew}" if homebrew else "Linux"
            row = (Need(names.split()[0], brought_by, is_optional=not debian), tuple(names.split()))
            found |= dict.fromkeys(names.split(), row)
    return found


_PROGRAMS: Final = _programs()

_ASKED: Final = {
    "FAULTS": Need("of faults", "make faults", is_optional=True, is_asked=True),
    "CLUSTERS": Need("of clusters", "make cluster", is_optional=True, is_asked=True),
    "INSTALL": Need("of an installation", "make package-test", is_optional=True, is_asked=True),
    "REHEARSAL_SHAPES": Need("of long rehearsals", "REHEARSAL_SHAPES=all make test", is_optional=True, is_asked=True),
}

_KAFKA_JARS: Final = Need("Kafka's jars", "make setup")
_CLASSES: Final = Need("the archive of classes", "make classes")

SMALL_DISK: Final = Need("a small disk", "root that may mount one", is_optional=True)
"""A container may forbid it to root."""
ANOTHER_USER: Final = Need("another user", "root on Linux, with setpriv", is_optional=True)
MAPS: Final = Need("/proc/PID/maps", "Linux")

NEEDS: Final = (
    *(need for need, _ in _PROGRAMS.values()),
    *_ASKED.values(),
    _KAFKA_JARS,
    _CLASSES,
    SMALL_DISK,
    ANOTHER_USER,
    MAPS,
)

needs_kafka_jars: Final = _KAFKA_JARS.unless((ROOT / ".cache" / "jars" / "kafka").exists())


needs_another_user: Final = ANOTHER_USER.unless(
    sys.platform == "linux" and os.geteuid() == 0 and shutil.which("setpriv") is not None
)


def program(name: str) -> str | None:
    """Where a program of `programs.txt` is, under any of its names: on PATH, or where `.ci/install` has built it."""
    path = os.pathsep.join([os.environ.get("PATH", os.defpath), str(ROOT / ".cache" / "bin")])
    return next((found for each in _PROGRAMS[name][1] if (found := shutil.which(each, path=path)) is not None), None)


def needs(name: str) -> pytest.MarkDecorator:
    """The mark of tests that need a program of `programs.txt`."""
    return _PROGRAMS[name][0].unless(program(name) is not None)


def asked_for(variable: str) -> pytest.MarkDecorator:
    """The mark of tests that are run only if this variable is `all`."""
    return _ASKED[variable].unless(bool(os.environ.get(variable)))


def needs_classes(is_whole: bool) -> pytest.MarkDecorator:
    """The mark of tests that need what `make classes` makes."""
    return _CLASSES.unless(is_whole)


def note(file: Path, reasons: Mapping[str, int]) -> None:
    """Add what one run of pytest left out."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a", encoding="utf-8") as out:
        out.write(json.dumps(reasons) + "\n")


def noted(file: Path) -> Counter[str]:
    """Reason → tests that were left out for it, by all runs."""
    found: Counter[str] = Counter()
    for line in file.read_text("utf-8").splitlines() if file.exists() else ():
        found.update(json.loads(line))
    return found


def summary(reasons: Mapping[str, int]) -> str:
    """One line: what was not tested, and which command brings it."""
    known = {need.reason: need for need in NEEDS}
    parts: dict[str, list[str]] = {}
    for need in dict.fromkeys(NEEDS):
        if tests := reasons.get(need.reason, 0):
            parts.setdefault(need.brought_by, []).append(need.part(tests))
    said = [f"{', '.join(each)}: {brought_by}" for brought_by, each in parts.items()]
    said += [f"{tests} for another reason: {reason}" for reason, tests in reasons.items() if reason not in known]
    return f"not tested: {'; '.join(said)}" if said else "not tested: nothing was left out"


def not_allowed(reasons: Iterable[str]) -> list[str]:
    """Reasons for which `.ci/run` leaves nothing out where all programs are there."""
    allowed = {need.reason for need in NEEDS if need.is_optional}
    return sorted(set(reasons) - allowed)


def main() -> int:
    """Print the line; 1 if something was left out that may not be."""
    reasons = noted(Path(sys.argv[1]))
    print(summary(reasons))  # noqa: T201 - what this is for
    wrong = not_allowed(reasons) if os.environ.get(COMPLETE) else []
    if wrong:
        print(f"error: tests: found some left out {'; '.join(wrong)}; accepted: none", file=sys.stderr)  # noqa: T201 - as above
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
