"""What Spark is started from, beside the state of a monitor."""

import os
from pathlib import Path

import pyspark
import pytest

from streaming import session


@pytest.mark.parametrize("left", ["nothing", "links", "copies"])
def test_spark_is_found_in_whatever_a_directory_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, left: str
) -> None:
    """A state directory that was copied or restored may hold directories in the place of links: they are replaced."""
    monkeypatch.delenv("SPARK_HOME", raising=False)
    for part in ("bin", "jars"):
        place = tmp_path / "spark-home" / part
        if left == "copies":
            place.mkdir(parents=True)
            (place / "copied").touch()
        elif left == "links":
            place.parent.mkdir(exist_ok=True)
            place.symlink_to(tmp_path / "of an earlier release")

    with session._home_without_archives(tmp_path):
        home = Path(os.environ["SPARK_HOME"])
        for part in ("bin", "jars"):
            assert Path(pyspark.__file__).parent / part == (home / part).readlink()
    assert "SPARK_HOME" not in os.environ
