"""The wheel as a user installs it: by pip, with all it asks for, where nothing of the checkout is; against a broker."""

import os
import re
import runpy
import shlex
import subprocess
import venv
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest

from lab.monitor_process import END_SECONDS, READY_SECONDS, ROOT, MonitorProcess, until
from streaming.demo.embedded_broker import EmbeddedBroker
from streaming.demo.verifiable_consumer import create_topics
from tests.left_out import asked_for
from tests.soak.commits import GROUPS, PARTITIONS, TOPIC, Load
from tests.test_docs import commands

pytestmark = [
    pytest.mark.broker,
    pytest.mark.spark,
    pytest.mark.timeout(900),
    asked_for("INSTALL"),
]

_INSTALL_SECONDS: Final = 420.0


class Installed(MonitorProcess):
    """`group-monitor run` of another installation than ours."""

    python_path = ""

    def __init__(self, program: Path, directory: Path, servers: str) -> None:
        self.program = (str(program),)
        super().__init__(directory, servers, state=directory / "state", cwd=directory)


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`group-monitor` in an environment that has the wheel and what pip found for it, and nothing else."""
    directory = tmp_path_factory.mktemp("installed")
    wheel = runpy.run_path(str(ROOT / "release" / "build.py"))["build"](directory / "dist")
    venv.create(directory / "venv", with_pip=True)
    (command,) = (line for file, line in commands() if file == "docs/operate.md" and line.startswith("pip "))
    ours = {
        "pip": [str(directory / "venv" / "bin" / "pip"), "--quiet", "--no-cache-dir"],
        f"dist/{wheel.name}": [str(wheel)],
    }
    words = [each for word in shlex.split(command) for each in ours.pop(word, [word])]
    assert not ours
    subprocess.run(words, check=True, cwd=directory, timeout=_INSTALL_SECONDS)  # noqa: S603 - our own words
    return directory / "venv" / "bin" / "group-monitor"


def ran(
    program: Path, *arguments: str, cwd: Path, seconds: float = 120, environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run(  # noqa: S603 - our own words
        [str(program), *arguments],
        cwd=cwd,
        env={**inherited, **(environment or {})},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )


def test_a_fresh_installation_monitors(program: Path, tmp_path: Path) -> None:
    """It says which release it is, finds all in order, and counts every commit; asked to end, it leaves nothing."""
    assert re.fullmatch(r"group-monitor \d+\.\d+\.\d+\n", ran(program, "--version", cwd=tmp_path).stdout)
    with EmbeddedBroker(tmp_path / "broker") as broker:
        create_topics(broker.bootstrap_servers, {TOPIC: PARTITIONS})
        load = Load(broker.bootstrap_servers, 1_000)
        load.commit_once()
        with Installed(program, tmp_path / "run", broker.bootstrap_servers) as monitor:
            monitor.await_ready(2 * READY_SECONDS)
            checked = ran(program, "check", "--config", str(monitor.config), cwd=tmp_path)
            load.commit_once()
            until(lambda: load.acknowledged == counted(monitor), 60, lambda: f"{counted(monitor)} commits counted")
            groups = monitor.groups()
            monitor.terminate()
            assert 0 == monitor.await_end(2 * END_SECONDS)
            until(lambda: not monitor.left_over(), 90, "processes of a monitor are still there")

    assert 0 == checked.returncode, checked.stdout
    assert re.search(r"^broker +ok ", checked.stdout, re.MULTILINE), checked.stdout
    assert load.committed.keys() == groups.keys()
    assert GROUPS == len(groups)
    assert str(ROOT) not in "".join(monitor.error_lines()) + checked.stdout


def test_a_fresh_installation_shows_the_demo(program: Path, tmp_path: Path) -> None:
    """Not a jar of Kafka is there: with --yes it fetches them, and shows what it is to show."""
    environment = {"XDG_CACHE_HOME": str(tmp_path / "cache"), "XDG_STATE_HOME": str(tmp_path / "state")}
    shown = ran(program, "demo", "--yes", "--seconds", "240", cwd=tmp_path, seconds=600, environment=environment)

    assert 0 == shown.returncode, shown.stderr
    assert "Fetching jars of Kafka" in shown.stderr
    assert "upgrade_completed" in shown.stdout
    assert ["cache"] == sorted(path.name for path in tmp_path.iterdir())


def counted(monitor: MonitorProcess) -> float:
    return sum(monitor.samples().get("kafka_group_commits_total", {}).values())
