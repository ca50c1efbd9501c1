"""`make package`: what is in the wheel, and that it works where nothing else of the checkout is."""

import re
import runpy
import subprocess
import sys
import tomllib
import venv
import zipfile
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).resolve().parent.parent
PACKAGES: Final = ("coordinator_model", "streaming", "dashboards")
PROJECT: Final = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
RECORDING: Final = ROOT / "tests" / "recordings" / "scenarios.ndjson"


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the target leaves; nothing is fetched for it."""
    out = tmp_path_factory.mktemp("dist")
    runpy.run_path(str(ROOT / "release" / "build.py"))["build"](out)
    return out


@pytest.fixture(scope="module")
def wheel(dist: Path) -> Path:
    (found,) = dist.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The `bin` of an environment that has the wheel, and of this one the libraries alone."""
    directory = tmp_path_factory.mktemp("installed")
    venv.create(directory, with_pip=False)
    (site,) = directory.glob("lib/python3*/site-packages")
    # A line of a .pth file leads to libraries; the .pth files there, of which one leads to the checkout, are not read.
    libraries = [path for path in sys.path if path.endswith("site-packages")]
    (site / "libraries.pth").write_text("\n".join(libraries) + "\n", "utf-8")
    python = directory / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--no-deps", "--no-index"]
    subprocess.run([*pip, "--force-reinstall", str(wheel)], check=True, timeout=120)  # noqa: S603 - our own words
    return directory / "bin"


def ran(*command: str | Path, cwd: Path) -> str:
    """What a command prints that ends well, run where nothing of the checkout is."""
    done = subprocess.run(  # noqa: S603 - our own words
        [str(word) for word in command], cwd=cwd, capture_output=True, text=True, timeout=120, check=False
    )
    assert 0 == done.returncode, done.stderr
    return done.stdout


def test_everything_is_in_the_wheel(wheel: Path) -> None:
    """Every module and every file of page, dashboards, rules and configuration; nothing of the tests."""
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
    files = {
        str(path.relative_to(ROOT))
        for package in PACKAGES
        for path in (ROOT / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    files |= {
        f"streaming/conf/{path.relative_to(ROOT / 'conf')}" for path in (ROOT / "conf").rglob("*") if path.is_file()
    }

    assert files == names


def test_wheel_asks_for_what_the_project_asks_for(wheel: Path) -> None:
    """Its metadata name the program and the libraries, those for tests only with their extra."""
    with zipfile.ZipFile(wheel) as archive:
        (metadata,) = (archive.read(name).decode() for name in archive.namelist() if name.endswith("/METADATA"))
    asked = [line for line in metadata.splitlines() if line.startswith("Requires-Dist: ") and "extra ==" not in line]

    assert len(PROJECT["dependencies"]) == len(asked)
    assert f"Version: {PROJECT['version']}" in metadata


def test_what_spark_submit_takes_stands_beside_it(dist: Path) -> None:
    """The file that it runs; a class path it needs none."""
    assert "usage" in ran(sys.executable, dist / "submit.py", "--help", cwd=dist).lower()
    assert ["submit.py"] == [path.name for path in dist.iterdir() if path.suffix != ".whl"]


def test_installed_it_works_by_itself(installed: Path, tmp_path: Path) -> None:
    """Its program runs a recording, builds dashboards, finds log configuration and page, all in its own place."""
    assert f"group-monitor {PROJECT['version']}\n" == ran(installed / "group-monitor", "--version", cwd=tmp_path)
    assert "rec-eager" in ran(installed / "group-monitor", "replay", RECORDING, cwd=tmp_path)
    ran(installed / "group-monitor", "dashboards", "build", "--out", tmp_path / "boards", cwd=tmp_path)
    assert {path.name for path in (ROOT / "dashboards" / "generated").iterdir()} <= {
        path.name for path in (tmp_path / "boards").iterdir()
    }
    config = tmp_path / "monitor.yaml"
    config.write_text("kafka: {bootstrap_servers: '127.0.0.1:1'}\nhttp: {port: 0}\n", "utf-8")
    checked = subprocess.run(  # noqa: S603 - our own words
        [str(installed / "group-monitor"), "check", "--config", str(config)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert re.search(r"^java +ok ", checked.stdout, re.MULTILINE), checked.stdout
    asked = "from streaming import pages, session; print(*session.java_options(), *pages.PAGE.iterdir(), sep='\\n')"
    told = ran(installed / "python", "-P", "-c", asked, cwd=tmp_path).splitlines()

    found = [line.rpartition("/")[2] for line in told if str(installed.parent) in line]
    assert {"log4j2.properties", "page.css"} <= {*found}


def test_executors_get_the_code_it_runs(installed: Path, tmp_path: Path) -> None:
    """What is sent to a cluster is the installed release, whole."""
    ask = "import sys; from pathlib import Path; from streaming import session; session.code_archive(Path(sys.argv[1]))"
    ran(installed / "python", "-P", "-c", ask, tmp_path, cwd=tmp_path)
    with zipfile.ZipFile(tmp_path / "code.zip") as archive:
        names = set(archive.namelist())

    expected = {str(path.relative_to(ROOT)) for of in PACKAGES[:2] for path in (ROOT / of).rglob("*.py")}
    assert expected == names
