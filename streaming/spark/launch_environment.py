"""What the JVM finds when it is launched: directories, environment, files that stand in for its command line.

All of it lasts for the launch, but for the directory of sockets, which goes when the session stops.
"""

import os
import pwd
import shlex
import shutil
import signal
import subprocess
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, Final

import pyspark
from pyspark import java_gateway
from pyspark.core import context

from streaming.base import scratch
from streaming.base.errors import UsageError
from streaming.base.places import ROOT
from streaming.spark import java

_context: Any = context
"""PySpark launches the JVM by a name in this module."""

_java_gateway: Any = java_gateway
"""And starts its process by a name in this one."""

_LONGEST_SOCKET_DIRECTORY: Final = 60
"""Bytes: the path of a Unix socket has at most 107, of which Spark takes 43 for names of its own."""

_socket_directories: list[str] = []
"""Of sessions that were started here and are to be stopped."""

_SUBMIT_ARGUMENTS: Final = "PYSPARK_SUBMIT_ARGS"
SUBMITTED: Final = "PYSPARK_GATEWAY_PORT"
"""In the environment of what spark-submit runs: the way to the JVM that it has started."""
_MALLOC: Final = {
    "MALLOC_ARENA_MAX": "2",
    "MALLOC_TRIM_THRESHOLD_": "1048576",
    "MALLOC_MMAP_THRESHOLD_": "1048576",
}
"""Arenas, and bytes that are kept at the end of each, and from which on each piece is returned for itself."""
_SHIPPED: Final = ("coordinator_model", "streaming")
"""Packages that executors run code of."""


@contextmanager
def output_to(log_file: Path) -> Iterator[None]:
    """Let a JVM launched meanwhile, and through it the workers, write to a file instead of our terminal.

    Only the JVM gets the file: what our own threads log in these seconds stays where it belongs. It is in a session of
    its own: signals of the terminal, SIGHUP above all, are for us, and we end it. A launch that is broken off ends it
    too: a JVM that cannot say any more where it listens would stay for ever.

    Raises:
        UsageError: the file cannot be written.
    """
    launch, popen = _context.launch_gateway, _java_gateway.Popen
    launched: list[subprocess.Popen[bytes]] = []

    def remembered(*arguments: Any, **options: Any) -> subprocess.Popen[bytes]:  # noqa: ANN401 - of Popen
        launched.append(popen(*arguments, **options))
        return launched[-1]

    with _opened(log_file) as log:
        options = {"stdout": log, "stderr": log, "start_new_session": True}
        _context.launch_gateway = partial(_launched, launch, popen_kwargs=options)
        _java_gateway.Popen = remembered
        try:
            yield
        except BaseException:
            for process in launched:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            raise
        finally:
            _context.launch_gateway, _java_gateway.Popen = launch, popen


def _opened(log_file: Path) -> BinaryIO:
    try:
        log_file.parent.mkdir(parents=True, exist_ok=True)
        return log_file.open("ab")
    except OSError as error:
        raise UsageError(
            f"state.dir: found {str(log_file)!r} in it ({error.strerror}), accepted: one that this account may write to"
        ) from error


def _launched(launch: Callable[..., Any], *arguments: Any, **options: Any) -> Any:  # noqa: ANN401 - py4j has no types
    """The way to a JVM that is launched, before anything asks it for a user's name."""
    gateway = launch(*arguments, **options)
    named_user(gateway)
    return gateway


def unix_sockets() -> dict[str, str]:
    """Settings by which the JVM and its Python processes talk over Unix sockets, in a directory of this account's own.

    Over TCP each of them now and then waits 40 ms for the other's acknowledgement of what it has: Spark's JVM sends
    answers about state in small pieces and does without TCP_NODELAY. None where the path is too long for sockets. Not
    in the state directory, which a monitor that stands by has in common with the one that runs.
    """
    directory = scratch.directory("group-monitor-")
    _socket_directories.append(directory)
    if len(os.fsencode(directory)) > _LONGEST_SOCKET_DIRECTORY:
        return {}
    return {"spark.python.unix.domain.socket.enabled": "true", "spark.python.unix.domain.socket.dir": directory}


def socket_directories() -> list[str]:
    """Directories of `unix_sockets` that are there."""
    return list(_socket_directories)


def remove_sockets() -> None:
    """Remove the directories of `unix_sockets`."""
    while _socket_directories:
        shutil.rmtree(_socket_directories.pop(), ignore_errors=True)


@contextmanager
def home_without_archives(directory: Path) -> Iterator[None]:
    """Let the JVM started meanwhile find Spark's programs and jars, and no archives of its Python code.

    Each of the processes in which Spark runs Python, half a dozen a start, would compile that code out of the archive:
    four fifths of the processor time it takes to start one. So it takes what is installed beside us.

    Another Spark of the machine is none of ours: its jars are of another release, its spark-defaults.conf and
    spark-env.sh are for other programs. Only under spark-submit Spark is that Spark.
    """
    if SUBMITTED in os.environ:
        yield
        return
    installed = Path(pyspark.__file__).parent
    home = directory.resolve() / "spark-home"
    if os.environ.get("SPARK_HOME") == str(installed):
        home = installed  # as an archive of classes is made
    else:
        _link(home, installed)
    with environment({"SPARK_HOME": str(home), "SPARK_CONF_DIR": str(home / "conf")}):
        yield


def _link(home: Path, installed: Path) -> None:
    home.mkdir(parents=True, exist_ok=True)
    for part in ("bin", "jars"):
        link = home / part
        if link.is_dir() and not link.is_symlink():
            shutil.rmtree(link)  # a copy of the directory, a restored one say, may hold what a link led to
        link.unlink(missing_ok=True)
        link.symlink_to(installed / part)


@contextmanager
def names_that_need_not_be_known(*, is_local: bool) -> Iterator[None]:
    """Let a JVM started meanwhile do without what a machine may not know: its own name, and that of its user.

    The driver of a local master is on loopback, whatever the machine's name leads to; else Spark asks what that is, and
    ends where no one can say. A user without an entry in the machine's list (OpenShift gives such ids) has no name:
    Spark takes it from a variable, Hadoop's login from `named_user`.
    """
    found = {"SPARK_LOCAL_IP": "127.0.0.1"} if is_local else {}
    if not _is_user_known():
        found |= {"SPARK_USER": USER, "HADOOP_USER_NAME": USER}
    with environment({name: os.environ.get(name, value) for name, value in found.items()}):
        yield


USER: Final = "group-monitor"
"""The name of a user that has none."""


def settings_without_home(directory: Path) -> dict[str, str]:
    """Settings for a user whose home Java does not know: it is `?` then, which Spark's Ivy refuses as a directory.

    Args:
        directory: of this start, where it may write.
    """
    return {} if _is_user_known() else {"spark.jars.ivy": str(directory.resolve() / "ivy")}


def _is_user_known() -> bool:
    try:
        pwd.getpwuid(os.getuid())
    except KeyError:
        return False
    return True


def named_user(gateway: Any) -> None:  # noqa: ANN401 - py4j has no types
    """Have Hadoop log in by a name, where the machine has none for our user: its login ends with an error there."""
    if not _is_user_known():
        hadoop = gateway.jvm.org.apache.hadoop.security.UserGroupInformation
        hadoop.setLoginUser(hadoop.createRemoteUser(os.environ.get("HADOOP_USER_NAME", USER)))


@contextmanager
def environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Variables that have these values meanwhile."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@contextmanager
def little_kept() -> Iterator[None]:
    """Let the C library of a JVM started meanwhile keep two arenas of memory and little in each, if none of it is set.

    By default each of many threads may have one, and what it frees at the end of any but the first stays there: up to
    64 MB once a large piece was freed.
    """
    with environment({name: os.environ.get(name, value) for name, value in _MALLOC.items()}):
        yield


def code_archive(directory: Path) -> Path:
    """Our own code as executors get it: they need not have this release installed, or any."""
    archive = directory / "code.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as written:
        for package in _SHIPPED:
            for path in sorted((ROOT / package).rglob("*.py")):
                written.write(path, path.relative_to(ROOT))
    return archive


@contextmanager
def not_on_the_command_line(settings: Mapping[str, str]) -> Iterator[None]:
    """Have a JVM that is started meanwhile read settings from a file: everybody sees what is in a process list."""
    if not settings:
        yield
        return
    before = os.environ.get(_SUBMIT_ARGUMENTS)
    with tempfile.NamedTemporaryFile("w", suffix=".properties", encoding="ascii") as file:
        file.write(java.properties(settings))
        file.flush()
        # Without the second word the file would stand in for the machine's own spark-defaults.conf.
        words = ["--properties-file", shlex.quote(file.name), "--load-spark-defaults", before or "pyspark-shell"]
        with environment({_SUBMIT_ARGUMENTS: " ".join(words)}):
            yield
