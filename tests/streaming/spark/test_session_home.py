"""What Spark is started from, beside the state of a monitor."""

import os
import stat
import subprocess
import tempfile
from functools import partial
from pathlib import Path
from unittest.mock import MagicMock

import pyspark
import pytest

from streaming.base.errors import UsageError
from streaming.spark import launch_environment, session


@pytest.mark.parametrize("left", ["nothing", "links", "copies"])
def test_spark_is_found_in_whatever_a_directory_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, left: str
) -> None:
    """A state directory that was copied or restored may hold directories in the place of links: they are replaced."""
    for name in ("SPARK_HOME", "SPARK_CONF_DIR"):
        monkeypatch.delenv(name, raising=False)
    for part in ("bin", "jars"):
        place = tmp_path / "spark-home" / part
        if left == "copies":
            place.mkdir(parents=True)
            (place / "copied").touch()
        elif left == "links":
            place.parent.mkdir(exist_ok=True)
            place.symlink_to(tmp_path / "of an earlier release")

    with launch_environment.home_without_archives(tmp_path):
        home = Path(os.environ["SPARK_HOME"])
        for part in ("bin", "jars"):
            assert Path(pyspark.__file__).parent / part == (home / part).readlink()
    assert "SPARK_HOME" not in os.environ


def test_another_spark_of_the_machine_is_none_of_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither its jars nor its defaults; what others are told of it is as before."""
    monkeypatch.setenv("SPARK_HOME", "/opt/spark-3.5")
    monkeypatch.setenv("SPARK_CONF_DIR", "/etc/spark")
    with launch_environment.home_without_archives(tmp_path):
        assert str(tmp_path / "spark-home") == os.environ["SPARK_HOME"]
        assert not Path(os.environ["SPARK_CONF_DIR"]).exists()
    assert ("/opt/spark-3.5", "/etc/spark") == (os.environ["SPARK_HOME"], os.environ["SPARK_CONF_DIR"])

    installed = str(Path(pyspark.__file__).parent)
    with monkeypatch.context() as training:
        # What makes the archive of classes starts from there: such a JVM looks for jars where they were.
        training.setenv("SPARK_HOME", installed)
        with launch_environment.home_without_archives(tmp_path):
            assert installed == os.environ["SPARK_HOME"]

    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")
    with launch_environment.home_without_archives(tmp_path):
        assert ("/opt/spark-3.5", "/etc/spark") == (os.environ["SPARK_HOME"], os.environ["SPARK_CONF_DIR"])


def test_a_machine_need_not_know_its_name_nor_its_user(monkeypatch: pytest.MonkeyPatch) -> None:
    """A local driver is on loopback; a user without an entry gets a name, in variables and in Hadoop's login."""
    for name in ("SPARK_LOCAL_IP", "SPARK_USER", "HADOOP_USER_NAME"):
        monkeypatch.delenv(name, raising=False)
    gateway = MagicMock()
    login = gateway.jvm.org.apache.hadoop.security.UserGroupInformation
    with launch_environment.names_that_need_not_be_known(is_local=True):
        assert ("127.0.0.1", None) == (os.environ["SPARK_LOCAL_IP"], os.environ.get("SPARK_USER"))
    launch_environment.named_user(gateway)
    assert not login.setLoginUser.called
    assert {} == launch_environment.settings_without_home(Path("/state"))

    monkeypatch.setattr(os, "getuid", lambda: 1_000_650_000)
    with launch_environment.names_that_need_not_be_known(is_local=False):
        assert (None, "group-monitor") == (os.environ.get("SPARK_LOCAL_IP"), os.environ["SPARK_USER"])
    launch_environment.named_user(gateway)
    assert {"spark.jars.ivy": "/state/ivy"} == launch_environment.settings_without_home(Path("/state"))
    login.createRemoteUser.assert_called_once_with("group-monitor")
    login.setLoginUser.assert_called_once_with(login.createRemoteUser.return_value)
    assert "SPARK_USER" not in os.environ


def test_that_there_is_nothing_new_is_said_within_a_second() -> None:
    """Only then is the log compared with what was read of it, and a monitor that was started again ready."""
    assert 1_000 >= int(session.SETTINGS["spark.sql.streaming.noDataProgressEventInterval"])


def test_only_the_jvm_writes_to_its_log(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """What we say while it is launched stays on our terminal; what it says is appended to the file."""
    log = tmp_path / "state" / "spark.log"
    before = launch_environment._context.launch_gateway
    with launch_environment.output_to(log):
        os.write(2, b"ours")
        launch = launch_environment._context.launch_gateway
        assert isinstance(launch, partial)
        subprocess.run(["sh", "-c", "echo its; echo own >&2"], **launch.keywords["popen_kwargs"], check=True)  # noqa: S607 - any

    assert ("", "ours") == capfd.readouterr()
    assert "its\nown\n" == log.read_text("utf-8")
    assert launch_environment._context.launch_gateway is before


def test_a_log_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    """With the option: the state directory may be one that another account has used."""
    (tmp_path / "spark.log").mkdir()

    with (
        pytest.raises(UsageError, match=r"^state\.dir: found '.*/spark\.log' in it \(Is a directory\), accepted: "),
        launch_environment.output_to(tmp_path / "spark.log"),
    ):
        pytest.fail("it went on")


def test_sockets_are_where_nobody_else_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    """They get a short-lived directory that only its owner enters."""
    with tempfile.TemporaryDirectory(prefix="s") as short:
        monkeypatch.setattr(tempfile, "tempdir", short)

        directory = Path(launch_environment.unix_sockets()["spark.python.unix.domain.socket.dir"])

        assert 0o700 == stat.S_IMODE(directory.stat().st_mode)
        launch_environment.remove_sockets()
        assert not directory.exists()


def test_sockets_of_a_deep_directory_are_tcp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The path of a Unix socket is short; where the machine's temporary directory has a long one, TCP is spoken."""
    deep = tmp_path / ("d" * 60)
    deep.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(deep))

    assert {} == launch_environment.unix_sockets()
    launch_environment.remove_sockets()


@pytest.mark.parametrize(
    ("name", "ours"), [("ARENA_MAX", "2"), ("TRIM_THRESHOLD_", "1048576"), ("MMAP_THRESHOLD_", "1048576")]
)
def test_the_jvm_keeps_little_memory_unless_the_machine_says_how_much(
    name: str, ours: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And nothing of it stays in our own environment."""
    variable = f"MALLOC_{name}"
    monkeypatch.delenv(variable, raising=False)
    with launch_environment.little_kept():
        assert ours == os.environ[variable]
    assert variable not in os.environ

    monkeypatch.setenv(variable, "8")
    with launch_environment.little_kept():
        assert "8" == os.environ[variable]
    assert "8" == os.environ[variable]
