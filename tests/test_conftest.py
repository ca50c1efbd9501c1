"""What tests start hears Ctrl-C and a hang-up, however the tests were started."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, Final, cast

import pytest

from tests import conftest

DEAF: Final = "import signal; print(signal.getsignal({number}) is signal.SIG_IGN)"


@contextmanager
def handled(number: int, by: Any) -> Iterator[None]:
    """With this handler for a signal, and with the one before afterwards."""
    former = signal.signal(number, by)
    try:
        yield
    finally:
        signal.signal(number, former)


def configured() -> None:
    """As pytest begins."""
    conftest.pytest_configure(cast("pytest.Config", SimpleNamespace(option=SimpleNamespace(left_out=None, timeout=0))))


def is_deaf(number: int) -> bool:
    """Whether a process that a test starts ignores the signal."""
    command = [sys.executable, "-S", "-c", DEAF.format(number=int(number))]
    return "True" in subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout  # noqa: S603 - our own words


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_what_was_ignored_at_the_start_is_heard(number: signal.Signals) -> None:
    """A shell's background ignores SIGINT and nohup SIGHUP, and so does whatever is started there."""
    with handled(number, signal.SIG_IGN):
        before = is_deaf(number)
        configured()
        after = is_deaf(number)

    assert (True, False) == (before, after)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_a_handler_that_is_there_stays(number: signal.Signals) -> None:
    """Only what is ignored is set."""
    heard: list[int] = []
    with handled(number, lambda given, _: heard.append(given)):
        configured()
        signal.raise_signal(number)

    assert [number] == heard
