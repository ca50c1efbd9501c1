"""The Spark session, and every spark.* setting with its reason.

The driver is our process, wherever the tasks run: in its own JVM (`local[8]`), in executors on this machine
(`local-cluster`), or on a cluster. Executors get our own code from the driver; what they must have is a Python of the
same minor version with the packages of the lock, and a checkpoint that they all reach. Under `spark-submit` master and
memory are those that it was told.
"""

import logging
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import zipfile
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import pyspark
from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

from streaming import class_archive
from streaming.config import Config
from streaming.logs import get_logger
from streaming.secrecy import masked

WITHOUT_CODE: Final = {
    # A micro-batch has a few packed rows, and each time they are planned for anew: to make code for them took longer
    # than to do without, a seventh of a batch.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}

SETTINGS: Final = {
    # State costs what changed, not what exists; the only provider that transformWithState accepts.
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    # Timers are looked at with every batch; without this, empty batches would follow each other without end.
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    **WITHOUT_CODE,
    # The number of stateful tasks is ours to set; coalescing it would move shards between them.
    "spark.sql.adaptive.enabled": "false",
    "spark.python.worker.reuse": "true",
    # The monitor supervises the query itself, and a task that failed is a batch that is repeated.
    "spark.task.maxFailures": "2",
    # By default a query that waits for brokers that are away is waited for without end.
    "spark.sql.streaming.stopTimeout": "3000",
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.showConsoleProgress": "false",
    # At a restart the state of all groups is read back at once (1 KB a group): no more than is held of it anyway.
    "spark.driver.maxResultSize": "0",
    # The option of the source holds credentials and keys; plans and the UI must not show them.
    "spark.sql.redaction.options.regex": "(?i)url|password|secret|token",
}

ON_THIS_MACHINE: Final = {
    # Nobody elsewhere talks to the driver of a local master.
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    # Our code is on the path of every Python here; elsewhere it comes with the first task, which is too late.
    "spark.python.daemon.module": "streaming.worker_daemon",
}

LOCAL_CHECKPOINT: Final = {
    # On a local disk the default asks for links by a child process for every file it writes, several a batch: on a busy
    # machine a batch's state took 800 ms to commit so and 27 ms without, its two log files 170 and 50 ms.
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
}

JAVA_OPTIONS: Final = (
    # Most code of a micro-batch runs a few times a second: the optimising compiler took a third of all processor time
    # in the first minutes.
    "-XX:TieredStopAtLevel=1",
    # A query that is stopped in the middle of a batch has its error searched with an expression that recurses for every
    # character of it.
    "-Xss16m",
    # What lives is a tenth of the heap that a catch-up fills, so a small heap does, and most of it can be given back:
    # of the collectors this one alone does so whenever it collects in full. It was not slower than the parallel one.
    "-XX:+UseSerialGC",
    "-XX:MaxNewSize=256m",
    "-XX:MinHeapFreeRatio=15",
    "-XX:MaxHeapFreeRatio=40",
    "-XX:-ShrinkHeapInSteps",
)

_LONGEST_SOCKET_DIRECTORY: Final = 60
"""Bytes: the path of a Unix socket has at most 107, of which Spark takes 43 for names of its own."""

_socket_directories: list[str] = []
"""Of sessions that were started here and are to be stopped."""

_CALLED_SECRET: Final = "(?i)secret|password|token|access[.]?key|account[.]?key|credential"  # noqa: S105 - a pattern
_SUBMIT_ARGUMENTS: Final = "PYSPARK_SUBMIT_ARGS"

_log = get_logger("session")

_STOP_SECONDS: Final = 4.0
"""How long Spark, and then its JVM, may take to stop before the JVM is killed."""

_CHECKOUT: Final = Path(__file__).resolve().parent.parent
_PACKAGED: Final = Path(__file__).resolve().parent
"""Where a wheel of `make package` has conf/; a checkout has it elsewhere."""
_SHIPPED: Final = ("coordinator_model", "streaming")
"""Packages that executors run code of."""
_SUBMITTED: Final = "PYSPARK_GATEWAY_PORT"
"""In the environment of what spark-submit runs: the way to the JVM that it has started."""


def start(config: Config, log_file: Path) -> SparkSession:
    """Start Spark; what its JVM and workers print goes to `log_file`."""
    master = submitted_master() or config.spark.master
    if runs_here(master):
        # Without this the workers run whatever `python3` is on the path.
        os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.appName("group-monitor").master(master)
    settings = {
        **SETTINGS,
        **({**ON_THIS_MACHINE, **_unix_sockets()} if runs_here(master) else {}),
        **(LOCAL_CHECKPOINT if is_local(config.state.checkpoint_location) else {}),
        "spark.executor.extraJavaOptions": " ".join(JAVA_OPTIONS),
        "spark.driver.memory": config.spark.driver_memory,
        "spark.sql.shuffle.partitions": str(config.spark.shuffle_partitions),
        "spark.ui.enabled": str(config.spark.ui).lower(),
        "spark.ui.port": str(config.spark.ui_port),
        "spark.driver.extraJavaOptions": " ".join(java_options()),
        **config.spark.conf,
    }
    with_secrets = {name: value for name, value in settings.items() if masked(value) != value}
    settings["spark.redaction.regex"] = config.spark.conf.get("spark.redaction.regex", redaction(with_secrets))
    under_submit = _SUBMITTED in os.environ
    for name, value in settings.items():
        if under_submit or name not in with_secrets:
            builder = builder.config(name, value)
    # A sink that fails fails the query, whose error we tell; py4j would print its stack as well, even on a stop.
    logging.getLogger("py4j").setLevel(logging.CRITICAL + 1)
    with (
        _output_to(log_file),
        _home_without_archives(log_file.parent),
        _not_on_the_command_line({} if under_submit else with_secrets),
    ):
        try:
            spark = builder.getOrCreate()
        except BaseException:
            _remove_sockets()
            raise
    if not master.startswith("local") or master.startswith("local-cluster"):
        spark.sparkContext.addPyFile(str(code_archive(log_file.parent)))
    return spark


def _unix_sockets() -> dict[str, str]:
    """Settings by which the JVM and its Python processes talk over Unix sockets, in a directory of nobody else's.

    Over TCP each of them now and then waits 40 ms for the other's acknowledgement of what it has: Spark's JVM sends
    answers about state in small pieces and does without TCP_NODELAY. None where the path is too long for sockets. Not
    in the state directory, which a monitor that stands by has in common with the one that runs.
    """
    directory = tempfile.mkdtemp(prefix="group-monitor-")
    _socket_directories.append(directory)
    if len(os.fsencode(directory)) > _LONGEST_SOCKET_DIRECTORY:
        return {}
    return {"spark.python.unix.domain.socket.enabled": "true", "spark.python.unix.domain.socket.dir": directory}


def _remove_sockets() -> None:
    while _socket_directories:
        shutil.rmtree(_socket_directories.pop(), ignore_errors=True)


@contextmanager
def _home_without_archives(directory: Path) -> Iterator[None]:
    """Let the JVM started meanwhile find Spark's programs and jars, and no archives of its Python code.

    Each of the processes in which Spark runs Python, half a dozen a start, would compile that code out of the archive:
    four fifths of the processor time it takes to start one. So it takes what is installed beside us.
    """
    if "SPARK_HOME" in os.environ or _SUBMITTED in os.environ:
        yield
        return
    home = directory.resolve() / "spark-home"
    home.mkdir(parents=True, exist_ok=True)
    for part in ("bin", "jars"):
        link = home / part
        if link.is_dir() and not link.is_symlink():
            shutil.rmtree(link)  # a copy of the directory, a restored one say, may hold what a link led to
        link.unlink(missing_ok=True)
        link.symlink_to(Path(pyspark.__file__).parent / part)
    os.environ["SPARK_HOME"] = str(home)
    try:
        yield
    finally:
        del os.environ["SPARK_HOME"]


def runs_here(master: str) -> bool:
    """Whether all tasks of a master run on this machine."""
    return master.startswith("local")


def submitted_master() -> str | None:
    """The master that spark-submit was told, where it runs us."""
    if _SUBMITTED not in os.environ:
        return None
    SparkContext._ensure_initialized()  # noqa: SLF001 - the JVM knows, and we have to ask before there is a session
    return SparkConf().get("spark.master")


def code_archive(directory: Path) -> Path:
    """Our own code as executors get it: they need not have this release installed, or any."""
    archive = directory / "code.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as written:
        for package in _SHIPPED:
            for path in sorted((_CHECKOUT / package).rglob("*.py")):
                written.write(path, path.relative_to(_CHECKOUT))
    return archive


def hold(spark: SparkSession, file: Path) -> Any:  # noqa: ANN401 - an object of Java
    """Have the JVM lock a file, as soon as no other JVM does; it is given back by `release`, or with the JVM's end.

    A wait is told, as the start stands still meanwhile.
    """
    assert spark._jvm is not None  # noqa: S101, SLF001 - there is one
    opened = spark._jvm.java.io.RandomAccessFile(str(file.resolve()), "rw")  # noqa: SLF001 - Java's own classes
    channel = opened.getChannel()
    if channel.tryLock() is None:
        _log.warning("waits_for_former_jvm", file=str(file), reason="it may still write to the checkpoint")
        channel.lock()
    return opened


def release(held: Any) -> None:  # noqa: ANN401 - as above
    """Give back what `hold` took; nothing if the JVM is gone."""
    with suppress(Py4JError, OSError):
        held.close()


def give_back(spark: SparkSession) -> None:
    """Have the JVM collect its garbage, and return to the machine what is free then; some 0.3 s, for all its threads.

    A catch-up fills the heap with what is garbage soon after, and then nothing is in a hurry to look at it again.
    """
    assert spark._jvm is not None  # noqa: S101, SLF001 - there is one
    spark._jvm.System.gc()  # noqa: SLF001 - Java's own class


def is_local(checkpoint: str | None) -> bool:
    """Whether a checkpoint, by default in the state directory, is on a disk of this machine."""
    return checkpoint is None or checkpoint.startswith("file:")


def stop(spark: SparkSession) -> None:
    """Stop Spark and the JVM started for it, and wait for its end: who ended must have left nothing behind.

    Spark itself leaves the JVM to notice, seconds later, that its parent is gone.
    """
    try:
        _stop_spark(spark)
    finally:
        _remove_sockets()


def _stop_spark(spark: SparkSession) -> None:
    gateway = SparkContext._gateway  # noqa: SLF001 - the only way to the process
    # A query that waits for brokers that are away cannot be stopped, and the session waits for the query.
    stopping = threading.Thread(target=_stop_session, args=(spark,), name="stop-spark", daemon=True)
    stopping.start()
    stopping.join(_STOP_SECONDS)
    jvm: subprocess.Popen[bytes] | None = getattr(gateway, "proc", None)
    # Under spark-submit the JVM is the parent, and ends when we do.
    if gateway is None or jvm is None or jvm.stdin is None:
        return
    SparkContext._gateway = SparkContext._jvm = None  # noqa: SLF001 - so that a session may be started again
    if not stopping.is_alive():
        gateway.shutdown()
        jvm.stdin.close()
    try:
        jvm.wait(_STOP_SECONDS if not stopping.is_alive() else 0)
    except subprocess.TimeoutExpired:
        # Whatever it was at, the checkpoint is made for it.
        jvm.kill()
        jvm.wait()


def _stop_session(spark: SparkSession) -> None:
    # A JVM that was killed cannot be asked to stop.
    with suppress(Py4JError, OSError):
        spark.stop()


def redaction(with_secrets: Collection[str]) -> str:
    """What Spark must not show the values of, as a regular expression: what is called so, and these settings."""
    # Hadoop's are handed on, and shown a second time, without the beginning that makes them Spark's.
    names = (name.removeprefix("spark.hadoop.") for name in with_secrets)
    return "|".join([_CALLED_SECRET, *(f"^(spark[.]hadoop[.])?\\Q{name}\\E$" for name in names)])


@contextmanager
def _not_on_the_command_line(settings: Mapping[str, str]) -> Iterator[None]:
    """Have a JVM that is started meanwhile read settings from a file: everybody sees what is in a process list."""
    if not settings:
        yield
        return
    before = os.environ.get(_SUBMIT_ARGUMENTS)
    with tempfile.NamedTemporaryFile("w", suffix=".properties", encoding="utf-8") as file:
        file.writelines(f"{name}={_property(value)}\n" for name, value in settings.items())
        file.flush()
        # Without the second word the file would stand in for the machine's own spark-defaults.conf.
        words = ["--properties-file", file.name, "--load-spark-defaults", before or "pyspark-shell"]
        os.environ[_SUBMIT_ARGUMENTS] = " ".join(words)
        try:
            yield
        finally:
            del os.environ[_SUBMIT_ARGUMENTS]
            if before is not None:
                os.environ[_SUBMIT_ARGUMENTS] = before


def _property(value: str) -> str:
    """A value in a file of Java's properties."""
    text = value.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")
    return f"\\{text}" if text.startswith(" ") else text


@contextmanager
def _output_to(log_file: Path) -> Iterator[None]:
    """Let processes started meanwhile, the JVM and through it the workers, write to a file instead of our terminal."""
    log_file.parent.mkdir(parents=True, exist_ok=True)
    sys.stdout.flush()
    sys.stderr.flush()
    ours = os.dup(1), os.dup(2)
    with log_file.open("ab") as log:
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
        try:
            yield
        finally:
            for saved, standard in zip(ours, (1, 2), strict=True):
                os.dup2(saved, standard)
                os.close(saved)


def java_options(*, with_archive: bool = True) -> list[str]:
    """Options of the driver's JVM: what it compiles and collects with, our log configuration, ready-made classes."""
    places = (root / "conf" / "log4j2.properties" for root in (_CHECKOUT, _PACKAGED))
    log4j = [f"-Dlog4j2.configurationFile={place.as_uri()}" for place in places if place.is_file()]
    archive = class_archive.options(class_archive.place()) if with_archive else []
    return [*JAVA_OPTIONS, *log4j[:1], *archive]
