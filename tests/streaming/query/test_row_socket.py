"""How a micro-batch's rows are come by when there is no descriptor for a connection."""

import errno
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest
from pyspark.errors import PySparkRuntimeError

from streaming.query import foreach_batch, row_socket
from streaming.query.row_socket import OPEN_SECONDS, opened

FULL = PySparkRuntimeError(
    errorClass="CANNOT_OPEN_SOCKET", messageParameters={"errors": "[Errno 24] Too many open files"}
)


class Hour:
    """A clock that a wait moves."""

    def __init__(self) -> None:
        self.now = 0.0

    def clock(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def test_it_is_tried_again_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody may let go of descriptors: the micro-batch goes on then."""
    hour, connection = Hour(), (object(), object())
    monkeypatch.setattr(
        row_socket, "_create_local_socket", MagicMock(side_effect=[FULL, OSError(errno.EMFILE, "full"), connection])
    )

    assert connection == opened(("path", None), hour.clock, hour.sleep)
    assert 1.0 == hour.now


def test_then_the_micro_batch_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """And is repeated by a query that is started again."""
    hour = Hour()
    monkeypatch.setattr(row_socket, "_create_local_socket", MagicMock(side_effect=FULL))

    with pytest.raises(PySparkRuntimeError, match="Too many open files"):
        opened(("path", None), hour.clock, hour.sleep)
    assert OPEN_SECONDS == hour.now


def test_another_error_is_told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The JVM does not serve them."""
    gone = FileNotFoundError(errno.ENOENT, "No such file or directory")
    monkeypatch.setattr(row_socket, "_create_local_socket", MagicMock(side_effect=gone))

    with pytest.raises(FileNotFoundError):
        opened(("path", None), lambda: 0.0, MagicMock(side_effect=AssertionError))


def test_a_server_to_which_nobody_connects_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """`getResult` returns when the rows were fetched: it never did, and no micro-batch finished any more."""
    server: Any = MagicMock()
    dataset: Any = MagicMock()
    dataset.collectAsArrowToPython.return_value = served = MagicMock()
    served.__iter__.return_value = iter(("path", None, server))
    monkeypatch.setattr(foreach_batch, "opened", MagicMock(side_effect=FULL))

    with pytest.raises(PySparkRuntimeError):
        foreach_batch._packs(dataset)
    server.getResult.assert_not_called()
    server._detach.assert_called_once()


def test_a_server_that_failed_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where rows were to come and did not, Spark's own error is what is raised."""
    server: Any = MagicMock(**{"getResult.side_effect": ValueError("the task failed")})
    dataset: Any = MagicMock()
    dataset.collectAsArrowToPython.return_value = served = MagicMock()
    served.__iter__.return_value = iter(("path", None, server))
    monkeypatch.setattr(
        foreach_batch, "opened", lambda _: (SimpleNamespace(close=lambda: None, read=lambda *_: b""), MagicMock())
    )

    monkeypatch.setattr(foreach_batch, "unwrap_spark_exception", nullcontext)

    with pytest.raises(ValueError, match="the task failed"):
        foreach_batch._packs(dataset)
