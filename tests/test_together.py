"""Two processes run the tests with brokers: which tests run in one of them, and which begin first."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Final

from tests import conftest

ROOT: Final = Path(__file__).resolve().parent.parent
FOLDER: Final = "tests/demo"
"""One whose modules share a story."""

MODULE: Final = """
import pytest
pytestmark = pytest.mark.timeout({seconds})

@pytest.mark.parametrize("number", range(4))
def test_it(number): pass
"""
FILES: Final = {
    f"{FOLDER}/test_files.py": 60,
    f"{FOLDER}/test_every_query.py": 60,
    "test_short.py": 9,
    "test_two.py": 90,
    "test_three.py": 90,
}
"""Module → how long its tests may take."""


def test_modules_of_one_story_run_in_one_process_and_the_longest_begin(tmp_path: Path) -> None:
    """No module is torn apart, and modules that share a story share a process."""
    (tmp_path / "conftest.py").write_text((ROOT / "tests" / "conftest.py").read_text("utf-8"), "utf-8")
    (tmp_path / FOLDER).mkdir(parents=True)
    for name, seconds in FILES.items():
        (tmp_path / name).write_text(MODULE.format(seconds=seconds), "utf-8")

    done = subprocess.run(  # noqa: S603 - our own words
        [
            *(sys.executable, "-m", "pytest", "-v", "-n", "2", "--dist", "loadgroup", "--no-loadscope-reorder"),
            *(f"--rootdir={tmp_path}", str(tmp_path)),
        ],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

    assert 0 == done.returncode, done.stdout
    ran = re.findall(r"\[(gw\d)\].* PASSED (\S+)::", done.stdout)
    workers = {file: {worker for worker, of in ran if of == file} for file in FILES}
    assert 4 * len(FILES) == len(ran)
    assert {1} == {len(of) for of in workers.values()}
    assert workers[f"{FOLDER}/test_files.py"] == workers[f"{FOLDER}/test_every_query.py"]
    first = dict(reversed(ran))
    assert {"test_two.py", "test_three.py"} == {*first.values()}


def test_every_story_that_modules_share_is_in_the_table() -> None:
    """A fixture of a conftest.py that lives longer than a module is of a folder whose modules are kept together.

    The browser is none: each process has one.
    """
    conftests = [path for path in (ROOT / "tests").rglob("conftest.py") if path.parent.name != "page"]
    sharing = {path.parent for path in conftests if re.search(r'scope="(package|session)"', path.read_text("utf-8"))}

    assert {str(folder.relative_to(ROOT)) for folder in sharing} == conftest._SHARED.keys()
