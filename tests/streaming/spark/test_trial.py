"""What a trial of Spark takes of the configuration, what is free for it, and what is made of its end."""

import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from streaming.config.sections import SparkSection
from streaming.spark import trial
from streaming.spark.trial import Outcome


def test_it_takes_the_settings_that_a_small_jvm_can_try() -> None:
    """Not where Spark runs, no port, no size, no log of events; what else is set is what is tried."""
    conf = {
        "spark.sql.shuffle.partitions": "ten",
        "spark.driver.port": "7077",
        "spark.blockManager.port": "7078",
        "spark.ui.port": "4040",
        "spark.driver.memory": "64g",
        "spark.eventLog.dir": "hdfs://name/log",
        "spark.driver.extraJavaOptions": "-XX:+UseNoGC",
    }
    tried = trial.settings(SparkSection.model_validate({"master": "spark://elsewhere:7077", "conf": conf}))

    assert ("local[1]", "256m", False) == (tried["master"], tried["driver_memory"], tried["ui"])
    kept = {"spark.sql.shuffle.partitions", "spark.driver.extraJavaOptions"}
    assert kept == {*tried["conf"]} - {"spark.testing.reservedMemory"}


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, None),
        ({"proc/meminfo": "MemTotal: 9 kB\nMemAvailable:    2048 kB\n"}, 2_097_152),
        (
            {
                "proc/meminfo": "MemAvailable: 2048 kB\n",
                "sys/fs/cgroup/memory.max": "1000\n",
                "sys/fs/cgroup/memory.current": "700\n",
                "sys/fs/cgroup/memory.stat": "anon 500\ninactive_file 150\n",
            },
            450,
        ),
        (
            {
                "proc/meminfo": "MemAvailable: 2048 kB\n",
                "sys/fs/cgroup/memory.max": "max\n",
                "sys/fs/cgroup/memory.current": "700\n",
                "sys/fs/cgroup/memory.stat": "",
            },
            2_097_152,
        ),
        (
            {
                "sys/fs/cgroup/memory/memory.limit_in_bytes": "1000\n",
                "sys/fs/cgroup/memory/memory.usage_in_bytes": "900\n",
                "sys/fs/cgroup/memory/memory.stat": "total_inactive_file 50\n",
            },
            150,
        ),
    ],
)
def test_what_is_free_is_of_the_tighter_limit(files: dict[str, str], expected: int | None, tmp_path: Path) -> None:
    """The control group's, of either version, or the machine's; what no one says is not known."""
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, "ascii")

    assert expected == trial.free_bytes(tmp_path)


def child(monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """Have a script run in the place of the trial's process."""
    popen = subprocess.Popen
    monkeypatch.setattr(
        subprocess,
        "Popen",
        lambda command, **options: popen([sys.executable, "-S", "-c", script, command[-1]], **options),
    )


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("""print('a line of our log\\n{"starts": true, "said": "it does"}')""", Outcome(True, "it does")),
        ("""print('{"starts": false, "said": "spark.conf: found"}')""", Outcome(False, "spark.conf: found")),
        ("raise SystemExit(7)", Outcome(None, "the trial ended with status 7: it said nothing")),
        ("raise ValueError('of ours')", Outcome(None, "the trial ended with status 1: ValueError: of ours")),
    ],
)
def test_its_last_line_is_what_came_of_it(
    script: str, expected: Outcome, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Nothing of it stays."""
    child(monkeypatch, script)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    assert expected == trial.run(SparkSection())
    assert [] == [*tmp_path.iterdir()]


def test_one_that_takes_too_long_is_ended_and_nothing_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine is no fault of Spark's."""
    child(monkeypatch, "import time; time.sleep(600)")

    assert trial.run(SparkSection(), seconds=0.1).starts is None
