"""Why a query ended: what is said of it, and what is left to the retry policy."""

import errno
from pathlib import Path

import pytest
from py4j.protocol import Py4JError, Py4JNetworkError

from streaming.base.errors import CannotTellError, MonitorError
from streaming.monitor.query_supervisor import failure

LOG = Path("state") / "spark.log"


@pytest.mark.parametrize("error", [Py4JNetworkError("gone"), ConnectionRefusedError(), BrokenPipeError()])
def test_a_lost_connection_to_the_jvm_names_it(error: Exception) -> None:
    """It cannot be started again in this process; its own words are in its log."""
    with pytest.raises(MonitorError, match=r"its JVM ended \(see state/spark\.log\)"):
        failure(error, LOG)


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOSPC, "No space left on device"),
        PermissionError(errno.EACCES, "Permission denied", "state/resume.json"),
        FileNotFoundError(errno.ENOENT, "No such file", "state/checkpoint"),
        CannotTellError("brokers are away"),
        Py4JError("of Spark"),
    ],
)
def test_no_other_error_is_blamed_on_the_jvm(error: Exception) -> None:
    """A file that cannot be written keeps its own reason."""
    assert error is failure(error, LOG)
