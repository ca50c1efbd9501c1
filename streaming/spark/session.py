"""The Spark session, and every spark.* setting with its reason.

The driver is our process, wherever the tasks run: in its own JVM (`local[8]`), in executors on this machine
(`local-cluster`), or on a cluster. Executors get our own code from the driver; what they must have is a Python of the
same minor version with the packages of the lock, and a checkpoint that they all reach. Under `spark-submit` master and
memory are those that it was given.
"""

import logging
import os
import secrets
import shlex
import sys
import threading
from collections.abc import Collection, Mapping
from importlib import import_module
from pathlib import Path
from typing import Final

from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

from streaming.base.errors import MonitorError
from streaming.base.logging_setup import get_logger
from streaming.base.places import ROOT
from streaming.base.secret_masking import masked
from streaming.base.signals import handlers_kept
from streaming.config.loading import Config
from streaming.spark import callbacks, cds_archive, deadlines, java, local_files, native_code, start_failure
from streaming.spark.launch_environment import (
    SUBMITTED,
    code_archive,
    environment,
    home_without_archives,
    little_kept,
    names_that_need_not_be_known,
    not_on_the_command_line,
    output_to,
    remove_sockets,
    settings_without_home,
    unix_sockets,
)

_log = get_logger("session")

WITHOUT_CODE: Final = {
    # A micro-batch has a few packed rows, and each time they are planned again: to make code for them took longer
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
    # What was written is in memory, too, until there is so much of it: 64 MB by default, for good where little comes.
    "spark.sql.streaming.stateStore.rocksdb.writeBufferSizeMB": "16",
    # Timers are looked at with every batch; without this, empty batches would follow each other without end.
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    # The first look at a log with nothing new is not reported; the next one is, after so long (ten seconds by default),
    # and only then is a monitor that was started again ready.
    "spark.sql.streaming.noDataProgressEventInterval": "1000",
    # Of a query that does not say how many stateful tasks it has.
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    **WITHOUT_CODE,
    # The number of stateful tasks is ours to set; coalescing it would move shards between them.
    "spark.sql.adaptive.enabled": "false",
    "spark.python.worker.reuse": "true",
    # The monitor supervises the query itself, and a task that failed is a batch that is repeated.
    "spark.task.maxFailures": "2",
    # Spark starts a daemon of Python workers for each environment, and of our two steps only the one that reads would
    # have this in its own: a second daemon with workers of its own, and two thirds of a second of a start.
    "spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled": "false",
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
    # No other machine talks to the driver of a local master.
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    # Other accounts of this machine do: without a secret Spark's RPC and block manager answer anybody.
    "spark.authenticate": "true",
    # A machine that is slow for a while is no error: nothing here is lost without the JVM being lost, too.
    "spark.network.timeout": "600s",
    "spark.python.authenticate.socketTimeout": "600s",
    # What Kafka's client frees in a thread of its own would stay with its worker: 35 MB each after a catch-up.
    "spark.executorEnv.MALLOC_ARENA_MAX": "1",
    # Our code is on the path of every Python here; elsewhere it comes with the first task, which is too late.
    "spark.python.daemon.module": "streaming.spark.worker_daemon",
}

WITHOUT_UI: Final = {
    # Spark writes down for its UI what a micro-batch did, though there is none, and keeps a thousand of them.
    "spark.sql.ui.explainMode": "simple",
    "spark.sql.ui.retainedExecutions": "1",
    "spark.ui.retainedJobs": "1",
    "spark.ui.retainedStages": "1",
}

LOCAL_CHECKPOINT: Final = {
    # On a local disk the default asks for links by a child process for every file it writes, several a batch: on a busy
    # machine a batch's state took 800 ms to commit so and 27 ms without, its two log files 170 and 50 ms.
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
    # Hadoop sets the mode of each file itself: 0644 by default, whatever the process's mask is.
    "spark.hadoop.fs.permissions.umask-mode": "077",
}

JAVA_OPTIONS: Final = (
    # Most code of a micro-batch runs a few times a second: the optimising compiler took a third of all processor time
    # in the first minutes.
    "-XX:TieredStopAtLevel=1",
    # With that one alone Java keeps 48 MB of compiled code, and Spark has more: it threw away, and compiled again,
    # 20,000 of 40,000 methods in the first two minutes. Only what is used is taken.
    "-XX:ReservedCodeCacheSize=192m",
    # A query that is stopped in the middle of a batch has its error searched with an expression that recurses for every
    # character of it.
    "-Xss16m",
    # What lives is a tenth of the heap that a catch-up fills, so a small heap does, and most of it can be given back:
    # of the collectors this one alone does so whenever it collects in full. It was not slower than the parallel one.
    "-XX:+UseSerialGC",
    "-XX:MaxNewSize=256m",
    # Garbage of a micro-batch then is gone before the next collection, of which there are half as many, and none in
    # full, which stopped all threads for 0.2 s every ten seconds.
    "-XX:NewSize=80m",
    # It never gets smaller than it was at first: a sixty-fourth of the machine's memory, if this did not say so.
    "-Xms144m",
    "-XX:MinHeapFreeRatio=15",
    "-XX:MaxHeapFreeRatio=25",
    "-XX:-ShrinkHeapInSteps",
)

_SOURCES: Final = "org.apache.spark.sql.execution.datasources.DataSourceManager$"

_OF_HADOOP: Final = "spark.hadoop."
_OF_SQL: Final = "spark.sql."

_CALLED_SECRET: Final = "(?i)secret|password|token|access[.]?key|account[.]?key|credential"  # noqa: S105 - a pattern


def start(config: Config, log_file: Path, workers: int = 1) -> SparkSession:
    """Start Spark; what its JVM and workers print goes to `log_file`.

    Args:
        config: of the monitor, or of the first of several.
        log_file: made where it is not there.
        workers: Python workers that are kept for the next micro-batch, as many as there are stateful tasks. More come
            with a catch-up, and Spark would take turns with all of them.

    Raises:
        MonitorError: it does not start, and why, in the words of its JVM; a UsageError where an option is at fault.
    """
    master = master_of(config)
    if runs_here(master):
        native_code.refuse_noexec(config.spark.conf)
        # Without this the workers run whatever `python3` is on the path.
        os.environ["PYSPARK_PYTHON"] = sys.executable
    under_submit = SUBMITTED in os.environ
    builder = SparkSession.builder.appName("group-monitor").master(master)
    settings = {
        **SETTINGS,
        **(ON_THIS_MACHINE if runs_here(master) else {}),
        # Executors would keep the paths of all sockets that ever were (`jvm_lifecycle.forget_sockets`).
        **(unix_sockets() if is_one_jvm(master) else {}),
        # Local masters make a secret of their own; the executors of this one are processes that have to be given it.
        **({"spark.authenticate.secret": secrets.token_hex(16)} if master.startswith("local-cluster") else {}),
        **({} if config.spark.ui else WITHOUT_UI),
        **(LOCAL_CHECKPOINT if is_local(config.state.checkpoint_location) else {}),
        "spark.executor.extraJavaOptions": " ".join(JAVA_OPTIONS),
        "spark.python.factory.idleWorkerMaxPoolSize": str(workers),
        "spark.driver.memory": config.spark.driver_memory,
        "spark.ui.enabled": str(config.spark.ui).lower(),
        "spark.ui.port": str(config.spark.ui_port),
        "spark.driver.extraJavaOptions": shlex.join(java_options()),
        **settings_without_home(log_file.parent),
        **config.spark.conf,
        # The JVM of spark-submit runs already, and executors may be elsewhere.
        **(local_files.settings(config.spark.conf) if is_one_jvm(master) and not under_submit else {}),
    }
    with_secrets = {name: value for name, value in settings.items() if masked(value) != value}
    settings["spark.redaction.regex"] = config.spark.conf.get("spark.redaction.regex", redaction(with_secrets))
    for name, value in settings.items():
        if under_submit or name not in with_secrets:
            builder = builder.config(name, value)
    # A sink that fails fails the query, whose error we tell; py4j would print its stack as well, even on a stop.
    logging.getLogger("py4j").setLevel(logging.CRITICAL + 1)
    printed_before = start_failure.size(log_file)
    with (
        output_to(log_file),
        home_without_archives(log_file.parent),
        little_kept(),
        environment(java.names_in_utf8()),
        names_that_need_not_be_known(is_local=runs_here(master) and not under_submit),
        not_on_the_command_line({} if under_submit else with_secrets),
        handlers_kept(),
    ):
        # py4j asks for it with the first call that has arguments; until then Java is waited for.
        threading.Thread(target=import_module, args=("pandas",), name="import-pandas", daemon=True).start()
        try:
            if not under_submit:
                callbacks.choose_mode()
                callbacks.close_when_interrupted()
            spark = builder.getOrCreate()
            _refuse_unreadable(spark, config.spark.conf)
        except BaseException as error:
            remove_sockets()
            if isinstance(error, Exception) and not isinstance(error, MonitorError):
                raise start_failure.of(error, log_file, printed_before, config.spark.conf) from error
            raise
    callbacks.ask_for_secret(spark.sparkContext._gateway)  # noqa: SLF001 - the only way to it
    deadlines.bound(spark.sparkContext._gateway)  # noqa: SLF001 - as above
    callbacks.end_with_the_jvm(spark.sparkContext._accumulatorServer)  # noqa: SLF001 - as above
    _without_code_where_there_is_no_session(spark)
    _without_sources_of_other_packages(spark)
    if is_one_jvm(master) and is_local(config.state.checkpoint_location) and not under_submit:
        _without_hadoop_defaults(spark)
    if not is_one_jvm(master):
        spark.sparkContext.addPyFile(str(code_archive(log_file.parent)))
    return spark


def _refuse_unreadable(spark: SparkSession, conf: Mapping[str, str]) -> None:
    """Have Spark read its SQL's settings now: it would do so with the query, and refuse them each time it is tried.

    Into settings of no session: PySpark asks those of the active one how to show an error, and would meet this error
    again, and so on.
    """
    of_sql = {name: value for name, value in conf.items() if name.startswith(_OF_SQL)}
    if not of_sql:
        return
    jvm = spark._jvm  # noqa: SLF001 - the only way to Spark's own classes
    assert jvm is not None  # noqa: S101 - there is one
    sessions = jvm.org.apache.spark.sql.classic.SparkSession
    sessions.clearActiveSession()
    read = jvm.org.apache.spark.sql.internal.SQLConf()
    for name, value in of_sql.items():
        read.setConfString(name, value)
    sessions.setActiveSession(spark._jsparkSession)  # noqa: SLF001 - as above


def _without_code_where_there_is_no_session(spark: SparkSession) -> None:
    """Have threads without a session do without made code, too.

    Each stateful task is answered by a thread of its own, which no setting reaches: it goes by Spark's defaults, and
    made code for every state variable of every task. Of the JVM's processor time 38 % was these threads', and is 26 %
    without. So the default itself is changed, in this JVM; executors elsewhere keep theirs.
    """
    jvm = spark._jvm  # noqa: SLF001 - the only way to Spark's own classes
    assert jvm is not None  # noqa: S101 - there is one
    setting = jvm.org.apache.spark.sql.internal.SQLConf.CODEGEN_FACTORY_MODE()
    try:
        default = setting.getClass().getDeclaredField("_defaultValue")
        default.setAccessible(True)
        default.set(setting, jvm.org.apache.spark.sql.catalyst.expressions.CodegenObjectFactoryMode.NO_CODEGEN())
    except Py4JError as error:
        # It costs time, nothing else.
        _log.info("state_answers_by_made_code", reason=str(error).partition("\n")[0])


def _without_sources_of_other_packages(spark: SparkSession) -> None:
    """Have Spark not look for data sources among the packages that are installed; ours is registered by name.

    It would start one more daemon of Python workers for that, and wait for it.
    """
    jvm = spark._jvm  # noqa: SLF001 - as above
    assert jvm is not None  # noqa: S101 - there is one
    try:
        manager = getattr(jvm.java.lang.Class.forName(_SOURCES).getField("MODULE$").get(None), "dataSourceBuilders_$eq")
        manager(jvm.scala.Some(jvm.scala.Predef.Map().empty()))
    except Py4JError as error:
        # It costs time, nothing else.
        _log.info("data_sources_of_other_packages", reason=str(error).partition("\n")[0])


def _without_hadoop_defaults(spark: SparkSession) -> None:
    """Have Hadoop hold what it was set to, and none of the 1,100 defaults of its XML files, most of them YARN's.

    Its code has the same defaults for files of a local disk. Every micro-batch copied them twice and wrote them once,
    for tasks that read them in the same JVM: a twentieth of its processor time, and most of what the heap grew by.
    """
    hadoop = spark.sparkContext._jsc.sc().hadoopConfiguration()  # noqa: SLF001 - as above
    hadoop.clear()
    for name, value in spark.sparkContext.getConf().getAll():
        if name.startswith(_OF_HADOOP):
            hadoop.set(name.removeprefix(_OF_HADOOP), value)


def runs_here(master: str) -> bool:
    """Whether all tasks of a master run on this machine."""
    return master.startswith("local")


def is_one_jvm(master: str) -> bool:
    """Whether all tasks of a master run in the driver's own JVM."""
    return runs_here(master) and not master.startswith("local-cluster")


def master_of(config: Config) -> str:
    """The master that spark-submit was given, where it runs us; else that of the configuration."""
    if SUBMITTED not in os.environ:
        return config.spark.master
    SparkContext._ensure_initialized()  # noqa: SLF001 - the JVM knows, and we have to ask before there is a session
    return SparkConf().get("spark.master") or config.spark.master


def is_local(checkpoint: str | None) -> bool:
    """Whether a checkpoint, by default in the state directory, is on a disk of this machine."""
    return checkpoint is None or checkpoint.startswith("file:")


def redaction(with_secrets: Collection[str]) -> str:
    """What Spark must not show the values of, as a regular expression: what is called so, and these settings."""
    # Hadoop's are handed on, and shown a second time, without the beginning that makes them Spark's.
    names = (name.removeprefix("spark.hadoop.") for name in with_secrets)
    return "|".join([_CALLED_SECRET, *(f"^(spark[.]hadoop[.])?\\Q{name}\\E$" for name in names)])


def java_options(*, with_archive: bool = True) -> list[str]:
    """Options of the driver's JVM: what it compiles and collects with, our log configuration, ready-made classes."""
    log4j = f"-Dlog4j2.configurationFile={(ROOT / 'conf' / 'log4j2.properties').as_uri()}"
    archive = cds_archive.options(cds_archive.place()) if with_archive else []
    return [*JAVA_OPTIONS, log4j, *archive]
