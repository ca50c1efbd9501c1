"""What is left out of `make test` is counted and said, and `.ci/run` on Debian leaves out nothing that can be had."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests import left_out
from tests.make_runs import SET_UP, run_make

ROOT: Final = left_out.ROOT

CHROMIUM: Final = left_out.needs("chromium").kwargs["reason"]
PROMTOOL: Final = left_out.needs("promtool").kwargs["reason"]
HELM: Final = left_out.needs("helm").kwargs["reason"]
FAULTS: Final = left_out.asked_for("FAULTS").kwargs["reason"]

# A module whose tests are skipped in every way there is, and one that is skipped as a whole.
SKIPPED: Final = """
import pytest
from tests.left_out import SMALL_DISK, asked_for
pytestmark = asked_for("FAULTS")
@pytest.mark.parametrize("number", range(3))
def test_asked(number): pass
"""
RUN: Final = """
import pytest
from tests.left_out import SMALL_DISK
def test_runs(): pass
def test_skips(): SMALL_DISK.skip()
@pytest.mark.xfail(reason="is no skip", strict=True)
def test_fails(): assert False
"""
ANOTHER: Final = """
import pytest
pytest.skip("another reason", allow_module_level=True)
"""


class TestEveryReason:
    """Each is a row of the table, with a command."""

    def test_nothing_is_skipped_but_by_the_table(self) -> None:
        """A test that may be left out is marked from `tests/left_out.py`: with `needs`, `asked_for`, or a `Need`."""
        ways = re.compile(r"skipif|pytest\.skip\b|mark\.skip\b|importorskip|unittest\.skip")
        ours = {Path(__file__), ROOT / "tests" / "left_out.py"}
        files = [path for path in (ROOT / "tests").rglob("*.py") if path not in ours]

        assert [] == [str(path.relative_to(ROOT)) for path in files if ways.search(path.read_text("utf-8"))]

    def test_only_what_is_asked_for_and_helm_may_be_left_out(self) -> None:
        """Where all of Debian's programs are there. A container may forbid root a disk of its own."""
        optional = {need.name for need in left_out.NEEDS if need.is_optional}

        assert {
            "of faults",
            "of clusters",
            "of an installation",
            "of long rehearsals",
            "helm",
            "a small disk",
            "another user",
        } == optional

    @pytest.mark.parametrize("target", ["faults", "cluster", "package-test"])
    def test_the_command_brings_it(self, target: str) -> None:
        """The target of the Makefile sets the variable."""
        recipe = (ROOT / "Makefile").read_text("utf-8").partition(f"\n{target}: ")[2].partition("\n\n")[0]
        (variable,) = (name for name, need in left_out._ASKED.items() if need.brought_by == f"make {target}")

        assert re.search(rf"@{variable}=\w+ ", recipe)


class TestLine:
    """The last line of `make test`."""

    def test_says_how_many_for_want_of_what_and_which_command_brings_it(self) -> None:
        """Commands in the table's order, each once; a reason that no row has is shown as it is."""
        reasons = {FAULTS: 12, PROMTOOL: 14, CHROMIUM: 98, "no idea": 1}
        bring = CHROMIUM.partition(": ")[2]

        assert (
            f"not tested: 98 without chromium, 14 without promtool: {bring}; 12 of faults: make faults; "
            "1 for another reason: no idea"
        ) == left_out.summary(reasons)

    def test_of_nothing(self) -> None:
        """It is there all the same."""
        assert "not tested: nothing was left out" == left_out.summary({})

    @pytest.mark.parametrize(
        ("reasons", "is_complete", "status"),
        [
            ({FAULTS: 12, HELM: 8, left_out.SMALL_DISK.reason: 1}, True, 0),
            ({FAULTS: 12, CHROMIUM: 98}, False, 0),
            ({FAULTS: 12, CHROMIUM: 98}, True, 1),
            ({"no idea": 1}, True, 1),
        ],
    )
    def test_where_all_programs_are_there_more_is_an_error(
        self,
        reasons: dict[str, int],
        is_complete: bool,
        status: int,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        """Under `.ci/run` on Debian a test that is missing fails the run as one that fails does."""
        left_out.note(tmp_path / "of-two-runs", {})
        left_out.note(tmp_path / "of-two-runs", reasons)
        monkeypatch.setattr(sys, "argv", ["left_out", str(tmp_path / "of-two-runs")])
        monkeypatch.setenv(left_out.COMPLETE, "yes" if is_complete else "")

        assert status == left_out.main()
        said = capsys.readouterr()
        assert f"{left_out.summary(reasons)}\n" == said.out
        assert bool(status) == said.err.startswith("error: tests: found some left out ")

    @pytest.mark.parametrize(
        "options",
        [[], ["-n", "2", "--dist", "loadfile"]],
        ids=["in one process", "in workers"],
    )
    def test_counts_what_pytest_skips(self, tmp_path: Path, options: list[str]) -> None:
        """Tests by mark, of a whole module, and amid their run, also where workers run them; no expected failure."""
        (tmp_path / "conftest.py").write_text((ROOT / "tests" / "conftest.py").read_text("utf-8"), "utf-8")
        for name, text in (("asked", SKIPPED), ("run", RUN), ("another", ANOTHER)):
            (tmp_path / f"test_{name}.py").write_text(text, "utf-8")
        file = tmp_path / "made" / "left-out"
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "FAULTS": ""}
        done = subprocess.run(  # noqa: S603 - our own words
            [
                sys.executable,
                "-m",
                "pytest",
                "-q",
                f"--left-out={file}",
                f"--rootdir={tmp_path}",
                *options,
                str(tmp_path),
            ],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

        assert 0 == done.returncode, done.stdout
        assert {FAULTS: 3, left_out.SMALL_DISK.reason: 1, "another reason": 1} == left_out.noted(file)

    @pytest.mark.parametrize("arguments", [None, "-k name"])
    @pytest.mark.parametrize(("statuses", "expected"), [("0 0", 0), ("1 0", 1), ("0 1", 1), ("2 0", 2)])
    def test_is_the_last_thing_that_make_test_does(
        self, tmp_path: Path, statuses: str, expected: int, arguments: str | None
    ) -> None:
        """After one run of pytest or two, whose status it keeps."""
        given = statuses.split()[: 1 if arguments else 2]
        python = tmp_path / "python"
        python.write_text(
            f'#!/bin/sh\necho "$@" >>\'{tmp_path}/ran\'\ncase "$2" in pytest) ;; *) exit 0 ;; esac\n'
            f'case "$*" in *"not spark"*) exit {given[-1]} ;; *) exit {given[0]} ;; esac\n',
            "utf-8",
        )
        python.chmod(0o755)
        words = [f"PYTEST_ARGS={arguments}"] if arguments else []
        made = run_make(SET_UP, "test", f"BIN={tmp_path}", f"CACHE={tmp_path}", *words)

        ran = (tmp_path / "ran").read_text("utf-8").splitlines()
        assert [f"-m pytest --left-out={tmp_path}/left-out"] * len(given) == [
            " ".join(line.split()[:3]) for line in ran[:-1]
        ]
        assert f"-m tests.left_out {tmp_path}/left-out" == ran[-1]
        expected = expected if given != ["0"] else 0
        assert (f"Error {expected}" in made.stderr) == bool(expected), made.stderr
