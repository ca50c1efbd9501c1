"""The JVM's end, the lock that it holds until then, and its free memory."""

import subprocess
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.sql import SparkSession

from streaming.base.logging_setup import get_logger
from streaming.spark.launch_environment import remove_sockets, socket_directories

_STOP_SECONDS: Final = 4.0
"""How long Spark, and then its JVM, may take to stop before the JVM is killed."""

_LOOK_SECONDS: Final = 0.2

_ENDS_SECONDS: Final = 2.0
"""A process that was killed closes its connections before it has ended."""

_INVOKE: Final = (
    "javax.management.ObjectName",
    "java.lang.String",
    "[Ljava.lang.Object;",
    "[Ljava.lang.String;",
)
"""What invoking takes that the JVM calls a management bean: which one, what, with which arguments of which types."""

_log = get_logger("session")

_killed_because: str | None = None
"""Why `kill` was called."""


def kill(why: str) -> bool:
    """Kill the JVM, which does not do what it is asked: what waits for it then has an error, at once.

    Returns:
        Whether there was one that is ours to kill; under spark-submit it is the parent.
    """
    global _killed_because  # noqa: PLW0603 - a process has one JVM
    jvm = _process_of(SparkContext._gateway)  # noqa: SLF001 - the only way
    if jvm is None:
        return False
    _killed_because = why
    jvm.kill()
    return True


def has_ended() -> bool:
    """Whether the one that was started here is gone: nothing of it writes any more."""
    return SparkContext._gateway is None  # noqa: SLF001 - as above


def killed_because() -> str | None:
    """Why it was killed; None if it was not, by us."""
    return _killed_because


def is_gone() -> bool:
    """Whether its process has ended, or is about to: what waited for an answer notices that first."""
    gateway = SparkContext._gateway  # noqa: SLF001 - the only way to the process
    if gateway is None:
        return True
    jvm = _process_of(gateway)
    try:
        if jvm is not None:
            jvm.wait(_ENDS_SECONDS)
            return True
        gateway.jvm.System.nanoTime()
    except subprocess.TimeoutExpired:
        return False
    except (Py4JError, OSError):
        return True
    return False


def _process_of(gateway: Any) -> "subprocess.Popen[bytes] | None":  # noqa: ANN401 - py4j has no types
    """The JVM's, if it is ours: under spark-submit it is the parent."""
    jvm: subprocess.Popen[bytes] | None = getattr(gateway, "proc", None)
    return jvm


def kill_workers(spark: SparkSession) -> int:
    """Kill all Python processes that the JVM has started: what waits for one that hangs then has an error, at once.

    Spark leaves it to the daemon of the workers to kill one of them; but the daemon may hang, too. The next task has
    new ones.

    Returns:
        How many there were; 0 under spark-submit, whose JVM has started this process as well.
    """
    jvm = spark._jvm  # noqa: SLF001 - the only way to Java's own classes
    if jvm is None or _process_of(SparkContext._gateway) is None:  # noqa: SLF001 - the only way to the process
        return 0
    return sum(handle.destroyForcibly() for handle in jvm.java.lang.ProcessHandle.current().descendants().toArray())


def hold(spark: SparkSession, file: Path) -> Any:  # noqa: ANN401 - an object of Java
    """Have the JVM lock a file, as soon as no other JVM does; it is given back by `release`, or with the JVM's end.

    A wait is shown, as the start stands still meanwhile. It may be long, so it is none within the JVM, whose answers
    have a deadline (`deadlines.py`).
    """
    assert spark._jvm is not None  # noqa: S101, SLF001 - there is one
    opened = spark._jvm.java.io.RandomAccessFile(str(file.resolve()), "rw")  # noqa: SLF001 - Java's own classes
    channel = opened.getChannel()
    if channel.tryLock() is None:
        _log.warning("waits_for_former_jvm", file=str(file), reason="it may still write to the checkpoint")
        while channel.tryLock() is None:
            time.sleep(_LOOK_SECONDS)
    return opened


def release(held: Any) -> None:  # noqa: ANN401 - as above
    """Give back what `hold` took; nothing if the JVM is gone."""
    with suppress(Py4JError, OSError):
        held.close()


def give_back(spark: SparkSession) -> None:
    """Have the JVM collect its garbage, and return to the machine what is free then; some 0.3 s, for all its threads.

    A catch-up fills the heap with what is garbage soon after, and then nothing is in a hurry to look at it again.
    Nor does the C library with what RocksDB and the JVM itself had of it.
    """
    jvm = spark._jvm  # noqa: SLF001 - the only way to Java's own classes
    assert jvm is not None  # noqa: S101 - there is one
    jvm.System.gc()
    gateway = spark.sparkContext._gateway  # noqa: SLF001 - the only way to an array
    # A command that a JVM may lack: 17 and 21 have it since 2023.
    with suppress(Py4JError):
        _command(gateway, jvm, "systemTrimNativeHeap")


def _command(gateway: Any, jvm: Any, name: str) -> str:  # noqa: ANN401 - py4j has no types
    """Give the JVM one of the commands that jcmd gives, and return what it says.

    By reflection: py4j finds no method of a class that Java keeps for its own.
    """
    kinds, given = gateway.new_array(jvm.Class, len(_INVOKE)), gateway.new_array(jvm.Object, len(_INVOKE))
    for at, kind in enumerate(_INVOKE):
        kinds[at] = jvm.Class.forName(kind)
    given[0], given[1] = jvm.javax.management.ObjectName("com.sun.management:type=DiagnosticCommand"), name
    server = jvm.java.lang.management.ManagementFactory.getPlatformMBeanServer()
    invoke = jvm.Class.forName("javax.management.MBeanServer").getMethod("invoke", kinds)
    return str(invoke.invoke(server, given))


def forget_sockets(spark: SparkSession) -> None:
    """Have the JVM forget the Unix sockets that it was to delete at its end; `stop` removes their directory.

    Spark opens two for each micro-batch, removes them, and yet Java keeps their paths to its end: some eighty megabytes
    for each day of three micro-batches a second. A path that another thread adds at this very moment may be lost.
    """
    jvm = spark._jvm  # noqa: SLF001 - the only way to Java's own classes
    assert jvm is not None  # noqa: S101 - there is one
    try:
        files = jvm.java.lang.Class.forName("java.io.DeleteOnExitHook").getDeclaredField("files")
        files.setAccessible(True)
        kept = jvm.java.util.LinkedHashSet(files.get(None))
        for directory in socket_directories():
            kept.removeIf(jvm.java.util.regex.Pattern.compile(f"^\\Q{directory}/\\E").asPredicate())
        files.set(None, kept)
    except Py4JError as error:
        # It costs memory, over weeks.
        _log.info("socket_paths_stay", reason=str(error).partition("\n")[0])


def stop(spark: SparkSession) -> None:
    """Stop Spark and the JVM started for it, and wait for its end: who ended must have left nothing behind.

    Spark itself leaves the JVM to notice, seconds later, that its parent is gone.
    """
    try:
        _stop_spark(spark)
    finally:
        remove_sockets()


def _stop_spark(spark: SparkSession) -> None:
    gateway = SparkContext._gateway  # noqa: SLF001 - the only way to the process
    # A query that waits for brokers that are away cannot be stopped, and the session waits for the query.
    stopping = threading.Thread(target=_stop_session, args=(spark,), name="stop-spark", daemon=True)
    stopping.start()
    stopping.join(_STOP_SECONDS)
    jvm = _process_of(gateway)
    # Under spark-submit the JVM ends when we do.
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
