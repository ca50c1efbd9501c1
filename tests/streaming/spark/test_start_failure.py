"""A start of Spark that fails says why in its one line."""

from pathlib import Path
from unittest.mock import MagicMock

import pytest
from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession

from streaming.base.errors import CannotTellError
from streaming.config.loading import Config
from streaming.spark import callbacks, session, start_failure

EARLIER = "Caused by: java.lang.IllegalStateException: of the start before\n"
ENDED = PySparkRuntimeError("[JAVA_GATEWAY_EXITED] Java gateway process exited before sending its port number.")


CAUSES = """Exception in thread "main" java.lang.IllegalArgumentException: no
\tat a.b
Caused by: java.io.IOException: not this
\tat c
Caused by: java.io.IOException: full
\tat d
\t... 3 more
"""
NO_HEAP = """WARNING: Using incubator modules
Invalid maximum heap size: -Xmx2x
Error: Could not create the Java Virtual Machine.
"""


SMALL_HEAP = """Error occurred during initialization of VM
Initial heap size set to a larger value than the maximum heap size
"""


NO_DIRECTORY = """timestamp=2026-11-27T08:38:06Z level=WARN logger=SparkConf event="Note that spark.app.id is an error"
timestamp=2026-11-27T08:38:07Z level=ERROR logger=DiskBlockManager event="None in /proc/nope." error="IOException: no "
"""


NO_MODULE = """Error occurred during initialization of boot layer
java.lang.module.FindException: Module jdk.incubator.vector not found
"""


@pytest.mark.parametrize(
    ("printed", "said"),
    [
        (CAUSES, "java.io.IOException: full"),
        ("Error: a b\n", "Error: a b"),
        ("\nit went\n\n", "it went"),
        ("", "[JAVA_GATEWAY_EXITED] Java gateway process exited before sending its port number."),
    ],
)
def test_jvm_that_ended_is_known_by_what_it_printed(tmp_path: Path, printed: str, said: str) -> None:
    """In this start, not in an earlier one; by py4j's line where it printed nothing."""
    log = tmp_path / "spark.log"
    log.write_text(EARLIER, "utf-8")
    before = start_failure.size(log)
    log.write_text(EARLIER + printed, "utf-8")

    raised = start_failure.of(ENDED, log, before)

    assert f"spark: found one that does not start ({said}), accepted: one that does; see {log}" == str(raised)
    assert 3 == raised.exit_status


@pytest.mark.parametrize(
    ("printed", "conf", "option"),
    [
        (NO_HEAP, {}, "spark.driver_memory: found"),
        (
            SMALL_HEAP,
            {},
            "spark.driver_memory: found one with which Spark does not start (Initial heap size set to a larger",
        ),
        ("Error: Could not parse Master URL: 'locl[2]'\n", {}, "spark.master: found"),
        (
            "Caused by: java.lang.IllegalArgumentException: spark.sql.shuffle.partitions should be int, but was ten\n",
            {"spark.sql.shuffle.partitions": "ten"},
            "spark.conf: found spark.sql.shuffle.partitions, with",
        ),
        (
            "Unrecognized VM option 'UseNoGC'\n",
            {"spark.driver.extraJavaOptions": "-XX:+UseNoGC"},
            "spark.conf: found spark.driver.extraJavaOptions, with",
        ),
        (
            "The stack is too small\nError: Could not create the Java Virtual Machine.\n",
            {"spark.driver.extraJavaOptions": "-Xss1k"},
            "spark.conf: found spark.driver.extraJavaOptions, with which Spark does not start (The stack is too small",
        ),
        (
            'Caused by: java.lang.NumberFormatException: For input string: "lots"\n',
            {"spark.memory.fraction": "lots"},
            "spark.conf: found spark.memory.fraction, with",
        ),
        (
            'Exception in thread "main" org.apache.spark.SparkException: Executor memory must be a positive number\n',
            {"spark.ui.enabled": "true", "spark.executor.memory": "abc"},
            "spark.conf: found spark.executor.memory, with",
        ),
        (
            "Error: Not allowed to specify max heap(Xmx) memory settings through java options (was -Xmx4g).\n",
            {"spark.driver.extraJavaOptions": "-Dx=y -Xmx4g"},
            "spark.conf: found spark.driver.extraJavaOptions, with",
        ),
        (
            "Caused by: java.lang.ClassNotFoundException: no.such.Plugin\n",
            {"spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin,no.such.Plugin"},
            "spark.conf: found spark.plugins, with",
        ),
        (
            "Caused by: java.io.FileNotFoundException: File file:/no/such does not exist\n",
            {"spark.eventLog.enabled": "true", "spark.eventLog.dir": "/no/such"},
            "spark.conf: found spark.eventLog.dir, with",
        ),
        (
            NO_DIRECTORY,
            {"spark.app.id": "x", "spark.local.dir": "/proc/nope"},
            "spark.conf: found spark.local.dir, with which Spark does not start (None in /proc/nope. IOException: no);",
        ),
        (
            "org.apache.spark.SparkException: When running with master 'yarn' either HADOOP_CONF_DIR or …\n",
            {},
            "spark.master: found one",
        ),
        (
            NO_MODULE,
            {},
            "JAVA_HOME, PATH: found one with which Spark does not start (java.lang.module.FindException: Module jdk.in",
        ),
    ],
)
def test_an_option_at_fault_is_named(tmp_path: Path, printed: str, conf: dict[str, str], option: str) -> None:
    """It is the user's to change: exit status 2."""
    log = tmp_path / "spark.log"
    log.write_text(printed, "utf-8")
    raised = start_failure.of(ENDED, log, 0, conf)

    assert str(raised).startswith(option)
    assert str(raised).endswith(f"; see {log}")
    assert 2 == raised.exit_status


def test_a_setting_that_is_not_spoken_of_is_not_blamed(tmp_path: Path) -> None:
    """Nor one whose name is the beginning of another's."""
    log = tmp_path / "spark.log"
    log.write_text("Caused by: java.io.IOException: spark.ui.port.max is not known, 10 false /data/other\n", "utf-8")
    raised = start_failure.of(
        ENDED,
        log,
        0,
        {
            "spark.ui.port": "1",
            "spark.app.id": "x",
            "spark.cores.max": "10",
            "spark.speculation": "false",
            "spark.local.dir": "/data/oth",
        },
    )

    assert 3 == raised.exit_status


def test_a_jvm_that_ends_in_the_middle_of_a_call_is_known_by_its_log(tmp_path: Path) -> None:
    """It ends itself where it has no directory for its blocks, say; what py4j says is that it does not answer."""
    log = tmp_path / "spark.log"
    log.write_text(
        "WARNING: Using incubator modules: jdk.incubator.vector\n"
        'timestamp=2026-11-27T08:38:06Z level=ERROR logger=DiskBlockManager event="Failed to create any local dir."\n',
        "utf-8",
    )
    gone = Py4JNetworkError("An error occurred while trying to connect to the Java server (127.0.0.1:1)")

    assert "(Failed to create any local dir.)" in str(start_failure.of(gone, log, 0))
    log.write_text("WARNING: Using incubator modules: jdk.incubator.vector\n", "utf-8")
    assert f"({gone})" in str(start_failure.of(gone, log, 0))


def test_the_log_has_what_java_answered(tmp_path: Path) -> None:
    """With its stack, which stands nowhere else; what it printed itself is not repeated."""
    log = tmp_path / "spark.log"
    log.write_text("before\n", "utf-8")
    start_failure.of(ValueError("no such thing\n\tat a.b"), log, 7)
    start_failure.of(ENDED, log, 7)

    assert "before\nno such thing\n\tat a.b\n" == log.read_text("utf-8")


def test_a_log_that_is_not_there_is_no_second_failure(tmp_path: Path) -> None:
    """The JVM may not have come so far."""
    log = tmp_path / "spark.log"

    assert 0 == start_failure.size(log)
    assert "JAVA_GATEWAY_EXITED" in str(start_failure.of(ENDED, log, 0))


def test_words_are_asked_for_while_the_jvm_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A launch that is broken off ends the JVM, and an error of Java's that is asked later has nothing to say."""
    is_there = [True]

    class OfJava(Py4JError):  # type: ignore[misc]  # py4j has no types
        def __str__(self) -> str:
            if not is_there:
                raise ConnectionError
            return "An error occurred while calling None.JavaSparkContext.\n: java.lang.NoSuchMethodError: 'void y()'"

    def launch(_: Path) -> MagicMock:
        launched = MagicMock()
        launched.__exit__.side_effect = lambda *_: is_there.clear()
        return launched

    builder = MagicMock()
    builder.appName.return_value = builder.master.return_value = builder.config.return_value = builder
    builder.getOrCreate.side_effect = OfJava
    monkeypatch.setattr("streaming.spark.session.output_to", launch)
    monkeypatch.setattr(SparkSession, "builder", builder)
    monkeypatch.setattr(callbacks, "choose_mode", lambda: None)
    monkeypatch.setattr(callbacks, "close_when_interrupted", lambda: None)

    with pytest.raises(
        CannotTellError, match=r"does not start \(java.lang.NoSuchMethodError: 'void y\(\)'\), accepted"
    ):
        session.start(Config.model_validate({"state": {"dir": str(tmp_path)}}), tmp_path / "spark.log")
