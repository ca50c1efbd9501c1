"""The lock of a monitor's JVM, which may outlive it by a moment: the next one waits for it, and says so."""

import fcntl
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyspark
import pytest
from py4j.java_gateway import GatewayParameters, JavaGateway
from structlog.testing import capture_logs

from lab.monitor_process import until
from streaming.demo import child_processes
from streaming.spark import java, jvm_lifecycle
from tests.group_tool import _first_line

PATIENCE_SECONDS = 30


@pytest.fixture
def spark(tmp_path: Path) -> Iterator[Any]:
    """What of a session has the lock: its JVM, without Spark in it."""
    jars = Path(pyspark.__file__).parent / "jars"
    command = java.command(jars, "py4j.GatewayServer", ["--die-on-broken-pipe", "0"], heap="32m")
    process = child_processes.start(command, log=tmp_path / "log", piped=True)
    parameters = GatewayParameters(port=int(_first_line(process)), enable_memory_management=False)
    gateway = JavaGateway(gateway_parameters=parameters)
    yield SimpleNamespace(_jvm=gateway.jvm)
    gateway.close()
    child_processes.stop(process)


def test_a_wait_for_the_former_jvm_is_reported(spark: Any, tmp_path: Path) -> None:
    """A lock that is free is taken without a word; one that is held is waited for, with a line that says for what."""
    file = tmp_path / "lock.jvm"
    held: list[Any] = []
    with capture_logs() as lines:
        jvm_lifecycle.release(jvm_lifecycle.hold(spark, file))
        assert [] == lines
        with file.open("r+") as former:
            fcntl.lockf(former, fcntl.LOCK_EX)
            thread = threading.Thread(target=lambda: held.append(jvm_lifecycle.hold(spark, file)), daemon=True)
            thread.start()
            until(lambda: bool(lines), PATIENCE_SECONDS, "no wait is shown")
            assert [] == held
        thread.join(PATIENCE_SECONDS)

    assert [("waits_for_former_jvm", "warning", str(file))] == [
        (line["event"], line["log_level"], line["file"]) for line in lines
    ]
    assert 1 == len(held)
