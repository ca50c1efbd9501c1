"""A monitor that is asked to end says nothing of it, whenever that is, and leaves nothing."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from lab.monitor_process import END_SECONDS, MonitorProcess, until
from streaming.demo.embedded_broker import EmbeddedBroker

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.timeout(300)]

_INTERRUPTED: Final = 130


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedBroker]:
    """A broker."""
    with EmbeddedBroker(tmp_path_factory.mktemp("broker")) as running:
        yield running


@pytest.mark.parametrize(
    ("moment", "number"),
    [
        ("its JVM is launched", signal.SIGINT),
        ("its JVM is launched", signal.SIGTERM),
        ("its JVM answers", signal.SIGINT),
        ("its JVM answers", signal.SIGHUP),
    ],
)
def test_ends_quietly(broker: EmbeddedBroker, tmp_path: Path, moment: str, number: signal.Signals) -> None:
    """While it waits for Spark a call into the JVM is broken off: no line, no traceback, no process is left.

    All three signals go one way, so not every pair is tried; one that is ready is ended by SIGTERM in
    `test_restart.py`, by SIGINT in `tests/demo/test_the_end.py`, and by SIGHUP in `test_checkpoint_places.py`.
    """
    with MonitorProcess(tmp_path, broker.bootstrap_servers, state=tmp_path / "state") as monitor:
        sign = "SparkSubmit" if moment == "its JVM is launched" else "pyspark.daemon"
        until(lambda: any(sign in line for line in monitor.left_over()), 90, f"not so: {moment}")
        os.killpg(monitor.pid, number)
        status = monitor.await_end(2 * END_SECONDS)
        # Python workers see the end of a JVM that was killed by their pipe's.
        until(lambda: not monitor.left_over(), END_SECONDS, lambda: f"left: {monitor.left_over()}")

    assert [] == monitor.error_lines()
    assert "event=starting version=" in monitor.start_lines()[0]
    assert status in (0, _INTERRUPTED)
