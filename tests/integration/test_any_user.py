"""A machine without a name for its user, with another Spark, or hardly writable: Spark starts all the same."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from lab.monitor_process import END_SECONDS, MonitorProcess, until
from streaming.base.places import ROOT
from streaming.demo.embedded_broker import EmbeddedBroker
from streaming.demo.verifiable_consumer import create_topics
from tests.left_out import SMALL_DISK, needs_another_user, needs_kafka_jars
from tests.soak.commits import GROUPS, PARTITIONS, TOPIC, Load

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

# All that is mounted is read-only, but for a /tmp that is new, and a state directory; it may be below the old one, as
# the checkout may be.
READ_ONLY = """
set -e
mount --make-rprivate /
exec 8<"$1" 9<"$3"; config=$(cat "$2")
mount -t tmpfs -o mode=1777 tmpfs /tmp
mkdir -p "$1" "$3"; mount -c --bind /proc/self/fd/8 "$1"; mount -c --bind /proc/self/fd/9 "$3"; exec 8<&- 9<&-
printf %s "$config" >"$2"
while read -r _ _ _ _ at _; do
    case $at in /tmp | "$1" | /proc* | /sys* | /dev*) ;; *) mount -o remount,bind,ro "$at" || true ;; esac
done </proc/self/mountinfo
if touch /written 2>/dev/null; then exit 99; fi
shift 3
exec "$@"
"""


class AsSomebody(MonitorProcess):
    """`group-monitor run` as a user without an entry, where it may write to `state.dir` and /tmp alone."""

    def __init__(self, directory: Path, servers: str, state: Path) -> None:
        confined = (
            "unshare",
            "--mount",
            "bash",
            "-c",
            READ_ONLY,
            "bash",
            str(state),
            str(directory / "monitor.yaml"),
            str(ROOT),
        )
        self.program = (*confined, *AS_SOMEBODY, sys.executable, "-P", "-m", "streaming")
        super().__init__(directory, servers, state=state, cwd=Path("/"), environment={"TMPDIR": "/tmp"})  # noqa: S108 - a new one


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


@pytest.mark.broker
@pytest.mark.timeout(480)
@needs_kafka_jars
@needs_another_user
def test_a_user_without_an_entry_monitors_where_nothing_else_may_be_written(tmp_path: Path) -> None:
    """Only the state directory and the temporary one: it is ready, has every commit, and ends when it is asked to."""
    may_mount = subprocess.run(["unshare", "--mount", "mount", "--make-rprivate", "/"], check=False)  # noqa: S607 - of the system
    if may_mount.returncode != 0:
        SMALL_DISK.skip()
    state = tmp_path / "run" / "state"
    state.mkdir(parents=True)
    state.chmod(0o770)
    with EmbeddedBroker(tmp_path / "broker") as broker:
        create_topics(broker.bootstrap_servers, {TOPIC: PARTITIONS})
        load = Load(broker.bootstrap_servers, 1_000)
        load.commit_once()
        with AsSomebody(tmp_path / "run", broker.bootstrap_servers, state) as monitor:
            monitor.await_ready()
            until(lambda: len(monitor.groups()) == GROUPS, 60, "not all groups are there")
            commits = sum(monitor.samples()["kafka_group_commits_total"].values())
            monitor.terminate()
            assert 0 == monitor.await_end(2 * END_SECONDS)

    assert load.acknowledged == commits
    assert {1_000_650_000} == {path.stat().st_uid for path in state.iterdir()}
