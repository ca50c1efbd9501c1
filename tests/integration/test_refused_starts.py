"""Settings with which Spark does not start: one line names them, and the log of Spark has the cause."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from streaming.base.places import ROOT

pytestmark = [pytest.mark.spark, pytest.mark.timeout(180)]

START = """
import json, sys
from pathlib import Path
from streaming.base.errors import MonitorError
from streaming.config.loading import Config
from streaming.spark import session
directory, name, value = sys.argv[1:]
config = {"spark": {"master": "local[1]", "driver_memory": "512m", "conf": {name: value}}, "state": {"dir": directory}}
try:
    session.start(Config.model_validate(config), Path(directory, "spark.log"))
except MonitorError as error:
    print(error)
    sys.exit(error.exit_status)
"""


@pytest.mark.parametrize(
    ("name", "value", "cause"),
    [
        ("spark.extraListeners", "no.such.Listener", "ClassNotFoundException: no.such.Listener"),
        # The JVM ends itself, in the middle of a call.
        ("spark.local.dir", "/proc/nope", "Failed to create local dir in /proc/nope"),
        # Spark would read it with the query, each time it is tried.
        ("spark.sql.session.timeZone", "Nowhere", "[INVALID_CONF_VALUE.TIME_ZONE]"),
    ],
)
def test_a_setting_that_spark_refuses_is_named(name: str, value: str, cause: str, tmp_path: Path) -> None:
    """Exit status 2, in a line that names the log, and leaves no process."""
    done = subprocess.run(  # noqa: S603 - our own words
        [sys.executable, "-P", "-c", START, str(tmp_path), name, value],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
    )

    assert (2, "") == (done.returncode, done.stderr)
    (line,) = done.stdout.splitlines()
    log = tmp_path / "spark.log"
    assert line.startswith(f"spark.conf: found {name}, with which Spark does not start (")
    assert line.endswith(f"; see {log}")
    assert cause in log.read_text("utf-8")
