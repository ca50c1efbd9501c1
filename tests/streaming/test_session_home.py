"""What Spark is started from, beside the state of a monitor."""

import os
import stat
import tempfile
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


def test_sockets_are_where_nobody_else_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    """They get a short-lived directory that only its owner enters."""
    with tempfile.TemporaryDirectory(prefix="s") as short:
        monkeypatch.setattr(tempfile, "tempdir", short)

        directory = Path(session._unix_sockets()["spark.python.unix.domain.socket.dir"])

        assert 0o700 == stat.S_IMODE(directory.stat().st_mode)
        session._remove_sockets()
        assert not directory.exists()


def test_sockets_of_a_deep_directory_are_tcp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The path of a Unix socket is short; where that of the machine's temporary directory is not, TCP is spoken."""
    deep = tmp_path / ("d" * 60)
    deep.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(deep))

    assert {} == session._unix_sockets()
    session._remove_sockets()
