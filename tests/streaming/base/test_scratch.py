"""Temporary directories of a run that was killed go with the next start, and no others."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from streaming.base import scratch


def test_what_a_killed_run_left_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A directory whose process is gone; not a running one's, nor another's, nor a link."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        ended.wait()
    kept = [f"monitor-{os.getppid()}-abc", f"other-{ended.pid}-abc", "monitor-abcdef"]
    for name in [*kept, f"monitor-{ended.pid}-abc"]:
        (tmp_path / name / "in").mkdir(parents=True)
    (tmp_path / f"monitor-{ended.pid}-link").symlink_to(tmp_path / kept[0])

    made = Path(scratch.directory("monitor-"))

    assert made.name.startswith(f"monitor-{os.getpid()}-")
    assert sorted([*kept, made.name, f"monitor-{ended.pid}-link"]) == sorted(path.name for path in tmp_path.iterdir())
