"""The signals that end a command: Ctrl-C, a service manager's, and a closed terminal's."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


def end_signals() -> tuple[signal.Signals, ...]:
    """SIGINT, SIGTERM, and SIGHUP unless it was ignored at the start (`nohup`)."""
    hang_up = () if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN else (signal.SIGHUP,)
    return (signal.SIGINT, signal.SIGTERM, *hang_up)


def interrupt_on_end_signals() -> None:
    """Let each of them be what Ctrl-C is, so that what is open is closed. A SIGINT that is ignored stays so."""
    for number in end_signals():
        if number != signal.SIGINT:
            signal.signal(number, _interrupt)


@contextmanager
def handlers_kept() -> Iterator[None]:
    """Keep the handler of SIGINT over a block that sets its own, as the start of Spark does."""
    is_main = threading.current_thread() is threading.main_thread()
    former = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if is_main:
            signal.signal(signal.SIGINT, former)


@contextmanager
def stop_signals(stopped: threading.Event | None = None) -> Iterator[threading.Event]:
    """An event that they set, a new one if none is given."""
    stopped = stopped or threading.Event()

    def stop(_number: int, _frame: FrameType | None) -> None:
        stopped.set()

    former = {number: signal.signal(number, stop) for number in end_signals()}
    try:
        yield stopped
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)


def _interrupt(_signal: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt
