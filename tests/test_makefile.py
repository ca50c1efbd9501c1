"""What `make test` runs is all there is, and it installs nothing; what set-up makes runs wherever the checkout is."""

import os
import re
import shutil
import subprocess
import venv
from pathlib import Path
from typing import Final

from tests.make_runs import SET_UP, run_make

ROOT: Final = Path(__file__).resolve().parent.parent


def test_no_test_with_a_broker_stands_where_make_test_does_not_look() -> None:
    """The second run of `make test` loads the modules that have one, and no others."""
    (words,) = re.findall(r"^test: WITH_BROKERS = (.*)$", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
    places = [ROOT / word for word in words.split()]
    marked = [
        path
        for path in (ROOT / "tests").rglob("test_*.py")
        if re.search(r"mark\.(spark|broker)\b", path.read_text("utf-8"))
    ]

    assert [] == [path for path in marked if not any(path.is_relative_to(place) for place in places)]
    assert all(any(path.is_relative_to(place) for path in marked) for place in places)


def test_a_program_that_is_missing_is_not_installed_by_make_test() -> None:
    """Once packages and jars are there it runs tests, and says which command brings what was left out."""
    done = run_make("--dry-run", SET_UP, "test")

    assert 0 == done.returncode, done.stderr
    assert "-m pytest " in done.stdout
    assert "-m tests.left_out " in done.stdout
    assert not re.search(r"\b(apt|apt-get|dpkg|pip|npm|curl|wget|playwright install|sudo|\.ci/install)\b", done.stdout)


def test_checkout_may_be_called_anything(tmp_path: Path) -> None:
    """With blanks and letters beyond ASCII, in a locale that has none of these."""
    checkout = tmp_path / "wörk x"
    venv.create(checkout / ".venv", with_pip=False)
    shutil.copy(ROOT / "Makefile", checkout)
    (checkout / "packages").touch()
    (checkout / "streaming").mkdir()
    (checkout / "streaming" / "__main__.py").write_text("print('runs')\n", "utf-8")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "PYTHON"))}

    def said(*command: str) -> str:
        return subprocess.run(  # noqa: S603 - our own words
            command,
            cwd=checkout,
            env={**environment, "LC_ALL": "C"},
            stdout=subprocess.PIPE,
            text=True,
            timeout=60,
            check=True,
        ).stdout

    said("make", "PACKAGES=packages", ".venv/bin/group-monitor")
    assert "runs\n" == said(str(checkout / ".venv" / "bin" / "group-monitor"))
