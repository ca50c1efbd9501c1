"""A machine that knows neither its user nor its own name, and has another Spark on it: Spark starts all the same."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from streaming.base.places import ROOT
from tests.left_out import needs_another_user

pytestmark = [pytest.mark.spark, pytest.mark.timeout(180)]

# As OpenShift gives it: of the group 0, and without an entry in the list of users. What it may read besides is where
# this Python is installed, which is root's own home in some places.
AS_SOMEBODY = (
    *("setpriv", "--reuid", "1000650000", "--regid", "0", "--clear-groups"),
    *("--inh-caps", "-all,+dac_read_search", "--ambient-caps", "+dac_read_search"),
)
TRY = """
import json, sys
from pathlib import Path
from streaming.config.sections import SparkSection
from streaming.spark import trial
outcome = trial.run(SparkSection(), seconds=120)
Path(sys.argv[1], "written").touch()
print(json.dumps([outcome.starts, outcome.said]))
"""


@needs_another_user
def test_a_user_without_an_entry_starts_spark_and_writes_where_it_should(tmp_path: Path) -> None:
    """Nothing of the trial stays; another Spark's home and defaults change nothing."""
    defaults, state, scratch = (tmp_path / name for name in ("conf", "state", "scratch"))
    for directory in (defaults, state, scratch):
        directory.mkdir()
        directory.chmod(0o770)
    (defaults / "spark-defaults.conf").write_text("spark.master yarn\n", "ascii")
    (defaults / "spark-env.sh").write_text("exit 9\n", "ascii")
    for above in (tmp_path, *tmp_path.parents):
        if above.owner() == "root" and len(above.parts) > 2:
            above.chmod(0o755)
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(ROOT),
        "SPARK_HOME": "/opt/another-spark",
        "SPARK_CONF_DIR": str(defaults),
        "TMPDIR": str(scratch),
    }
    done = subprocess.run(  # noqa: S603 - our own words
        [*AS_SOMEBODY, sys.executable, "-P", "-c", TRY, str(state)],
        cwd="/",
        env=environment,
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
    )

    assert "" == done.stderr
    starts, said = json.loads(done.stdout.splitlines()[-1])
    assert starts, said
    assert 1_000_650_000 == (state / "written").stat().st_uid
    assert [] == [path.name for path in scratch.iterdir()]
