"""`make package`: what is in wheel and source archive; the wheel works where nothing else of the checkout is."""

import os
import re
import runpy
import subprocess
import sys
import tarfile
import tomllib
import venv
import zipfile
from pathlib import Path
from typing import Final

import pytest

from tests.left_out import needs

# One of them asks Spark's workers. The others go with it, so that the wheel is built and installed once.
pytestmark = pytest.mark.spark

ROOT: Final = Path(__file__).resolve().parent.parent
PACKAGES: Final = ("coordinator_model", "streaming", "dashboards")
INSIDE: Final = "group_monitor/packages"
FOREIGN: Final = ("streaming", "dashboards", "coordinator_model")
"""Import names that a distribution of somebody else has in the same environment."""
PROJECT: Final = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
USE_PACKAGES: Final = "import group_monitor; group_monitor.use_packages()"
ASK_A_WORKER: Final = """
import group_monitor; group_monitor.use_packages()
from pathlib import Path
from streaming.config.loading import load
from streaming.spark import jvm_lifecycle, session


def places(batches):
    import sys, streaming
    import pyarrow as pa
    for _ in batches:
        daemon = sys.modules["__main__"].__file__
        yield pa.RecordBatch.from_pydict({"package": [streaming.__file__], "daemon": [daemon]})


spark = session.start(load(None), Path("spark.log"))
for row in spark.range(1, numPartitions=1).mapInArrow(places, "package string, daemon string").collect():
    print(*row)
jvm_lifecycle.stop(spark)
"""
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


def foreign_wheel(directory: Path) -> Path:
    """A small distribution whose packages are called like ours."""
    made = directory / "foreign-1.0-py3-none-any.whl"
    info = "foreign-1.0.dist-info"
    texts = {f"{name}/__init__.py": "OWNER = 'foreign'\n" for name in FOREIGN} | {
        f"{info}/METADATA": "Metadata-Version: 2.1\nName: foreign\nVersion: 1.0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    texts[f"{info}/RECORD"] = "".join(f"{name},,\n" for name in (*texts, f"{info}/RECORD"))
    with zipfile.ZipFile(made, "w") as archive:
        for name, text in texts.items():
            archive.writestr(name, text)
    return made


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The `bin` of an environment that has the wheel, a foreign one, and of this environment the libraries alone."""
    directory = tmp_path_factory.mktemp("installed")
    venv.create(directory, with_pip=False)
    (site,) = directory.glob("lib/python3*/site-packages")
    # A line of a .pth file leads to libraries; the .pth files there, of which one leads to the checkout, are not read.
    libraries = [path for path in sys.path if path.endswith("site-packages")]
    (site / "libraries.pth").write_text("\n".join(libraries) + "\n", "utf-8")
    python = directory / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--no-deps", "--no-index"]
    wheels = [str(wheel), str(foreign_wheel(directory))]
    subprocess.run([*pip, "--force-reinstall", *wheels], check=True, timeout=120)  # noqa: S603 - our own words
    return directory / "bin"


def elsewhere() -> dict[str, str]:
    """Our environment, but for a way to the checkout."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}


def ran(*command: str | Path, cwd: Path) -> str:
    """What a command prints that ends well, run where nothing of the checkout is."""
    done = subprocess.run(  # noqa: S603 - our own words
        [str(word) for word in command],
        cwd=cwd,
        env=elsewhere(),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert 0 == done.returncode, done.stderr
    return done.stdout


def files_of_git(scratch: Path) -> list[str]:
    """What git has of the checkout, whoever owns it; where the checkout is none of git's, what git would take."""
    tracked = git("-c", f"safe.directory={ROOT}", "ls-files")
    if tracked is not None:
        return tracked
    here = (f"--git-dir={scratch / 'empty'}", f"--work-tree={ROOT}")
    git(*here, "init")
    taken = git(*here, "ls-files", "--others", "--exclude-standard")
    assert taken is not None
    return taken


def git(*arguments: str) -> list[str] | None:
    """The lines that git prints in the checkout; None if it fails."""
    done = subprocess.run(  # noqa: S603 - our own words
        ["git", *arguments],  # noqa: S607 - git of the path
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    return done.stdout.splitlines() if done.returncode == 0 else None


def test_everything_is_in_the_wheel(wheel: Path) -> None:
    """Every module and every file of page, dashboards, rules and configuration; nothing of the tests."""
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
    files = {
        f"{INSIDE}/{path.relative_to(ROOT)}"
        for package in (*PACKAGES, "conf")
        for path in (ROOT / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    files |= {f"group_monitor/{path.name}" for path in (ROOT / "release" / "group_monitor").glob("*.py")}

    assert files == names


@needs("git")
def test_source_archive_is_the_checkout(dist: Path, tmp_path: Path) -> None:
    """It has every file that git has: wheel, tests, docs and image are made from it as from a checkout."""
    (found,) = dist.glob("*.tar.gz")
    with tarfile.open(found) as archive:
        names = {name.partition("/")[2] for name in archive.getnames() if archive.getmember(name).isfile()}

    assert {name for name in files_of_git(tmp_path) if (ROOT / name).is_file()} <= names
    assert not [name for name in names if name.startswith((".venv", ".cache", "dist")) or "__pycache__" in name]


def test_wheel_asks_for_what_the_project_asks_for(wheel: Path) -> None:
    """Its metadata name the program and the libraries, those for tests only with their extra."""
    with zipfile.ZipFile(wheel) as archive:
        (metadata,) = (archive.read(name).decode() for name in archive.namelist() if name.endswith("/METADATA"))
    asked = [line for line in metadata.splitlines() if line.startswith("Requires-Dist: ") and "extra ==" not in line]

    assert len(PROJECT["dependencies"]) == len(asked)
    assert f"Version: {PROJECT['version']}" in metadata


def test_wheel_says_its_licence(wheel: Path) -> None:
    """As an SPDX expression with the text beside it, and by no classifier, which installers refuse beside one."""
    with zipfile.ZipFile(wheel) as archive:
        of_name = {name.partition(".dist-info/")[2]: name for name in archive.namelist()}
        metadata = archive.read(of_name["METADATA"]).decode()
        licence = archive.read(of_name["licenses/LICENSE"]).decode()

    assert "License-Expression: Apache-2.0 AND MIT\n" in metadata
    assert "Classifier: License" not in metadata
    assert ("Apache License", "END OF TERMS AND CONDITIONS") == tuple(
        line
        for each in licence.splitlines()
        if (line := each.strip()) in ("Apache License", "END OF TERMS AND CONDITIONS")
    )


def test_import_names_of_others_stay_theirs(wheel: Path, installed: Path, tmp_path: Path) -> None:
    """One name in site-packages is the wheel's; `import streaming` means the other distribution, before and after."""
    with zipfile.ZipFile(wheel) as archive:
        tops = {name.partition("/")[0] for name in archive.namelist() if ".dist-info/" not in name}
    ask = f"import {', '.join(FOREIGN)}; print({', '.join(f'{name}.OWNER' for name in FOREIGN)})"
    with_ours = f"import group_monitor; {ask}"

    assert {"group_monitor"} == tops
    assert "foreign foreign foreign\n" == ran(installed / "python", "-P", "-c", ask, cwd=tmp_path)
    assert "foreign foreign foreign\n" == ran(installed / "python", "-P", "-c", with_ours, cwd=tmp_path)


def test_what_it_makes_is_put_where_the_user_has_such(installed: Path, tmp_path: Path) -> None:
    """State and jars go into the directories of the user, as named by the environment, never where one stands."""
    ask = (
        f"import os; os.environ.update(HOME={str(tmp_path)!r}, XDG_STATE_HOME='/var/state', XDG_CACHE_HOME='cache'); "
        f"{USE_PACKAGES}; from streaming.config.loading import load; from streaming.spark import kafka_jars; "
        "print(load(None, {}).state.dir, kafka_jars.DIRECTORY.parent, kafka_jars.must_be_fetched())"
    )
    found = ran(installed / "python", "-P", "-c", ask, cwd=tmp_path)

    # A relative path is no directory of the specification, and counts as none.
    assert f"/var/state/group-monitor {tmp_path}/.cache/group-monitor/jars True\n" == found


def test_jars_may_be_brought_along(installed: Path, tmp_path: Path) -> None:
    """As an image does: copied to where the demo looks for them, once, and the place is printed."""
    source = tmp_path / "jars"
    source.mkdir()
    (source / "kafka.jar").write_bytes(b"jar")
    command: list[str | Path] = [
        *("env", f"XDG_CACHE_HOME={tmp_path / 'cache'}", installed / "python", "-P", "-m", "group_monitor.jars"),
        *("--from", source),
    ]
    (first, second) = (Path(ran(*command, cwd=tmp_path).strip()) for _ in range(2))

    assert first == second
    assert first.is_relative_to(tmp_path / "cache" / "group-monitor")
    assert ["kafka.jar"] == [path.name for path in first.iterdir()]


def test_spark_submit_finds_its_file(installed: Path, tmp_path: Path) -> None:
    """The file that it runs stands among the packages, and needs no search path to begin."""
    where = ran(installed / "python", "-P", "-c", "import group_monitor as g; print(g.PACKAGES)", cwd=tmp_path).strip()

    assert "usage" in ran(installed / "python", Path(where) / "streaming" / "submit.py", "--help", cwd=tmp_path).lower()


def test_sparks_workers_find_ours(installed: Path, tmp_path: Path) -> None:
    """Spark's Python workers import our packages beside foreign ones, wherever the program is started."""
    (tmp_path / "streaming").mkdir()
    (tmp_path / "streaming" / "__init__.py").write_text("raise ImportError('of the current directory')\n", "utf-8")
    program = tmp_path / "program.py"
    program.write_text(ASK_A_WORKER, "utf-8")
    found = ran(installed / "python", "-P", program, cwd=tmp_path).split()

    (site,) = installed.parent.glob("lib/python3*/site-packages")
    assert [f"{site}/{INSIDE}/streaming/__init__.py", f"{site}/{INSIDE}/streaming/spark/worker_daemon.py"] == found


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
        [str(installed / "group-monitor"), "check", "--no-spark", "--config", str(config)],
        cwd=tmp_path,
        env=elsewhere(),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert re.search(r"^java +ok ", checked.stdout, re.MULTILINE), checked.stdout
    asked = (
        f"{USE_PACKAGES}; from streaming.spark import session; from streaming.web import routes; "
        "print(*session.java_options(), *routes.PAGE.iterdir(), sep='\\n')"
    )
    reported = ran(installed / "python", "-P", "-c", asked, cwd=tmp_path).splitlines()

    found = [line.rpartition("/")[2] for line in reported if str(installed.parent) in line]
    assert {"log4j2.properties", "page.css"} <= {*found}


def test_executors_get_the_code_it_runs(installed: Path, tmp_path: Path) -> None:
    """What is sent to a cluster is the installed release, whole."""
    ask = (
        "import sys, pathlib; from streaming.spark.launch_environment import code_archive; "
        "code_archive(pathlib.Path(sys.argv[1]))"
    )
    ran(installed / "python", "-P", "-c", f"{USE_PACKAGES}; {ask}", tmp_path, cwd=tmp_path)
    with zipfile.ZipFile(tmp_path / "code.zip") as archive:
        names = set(archive.namelist())

    expected = {str(path.relative_to(ROOT)) for of in PACKAGES[:2] for path in (ROOT / of).rglob("*.py")}
    assert expected == names
