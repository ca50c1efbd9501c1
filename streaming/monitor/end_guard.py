"""Sees that the process ends once it is to, whatever it waits for.

    after the signal, or the error that ends it      what is done
    15 s                                             Spark's JVM is killed: what waits for it goes on
    60 s                                             the process ends, with status 1

What is written is made for an end at any moment. Service managers kill after 30 s (`conf/`); where there is none, a
machine that is slow may need longer.
"""

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from streaming.base.logging_setup import get_logger
from streaming.spark import jvm_lifecycle

KILL_SECONDS: Final = 15.0
EXIT_SECONDS: Final = 45.0
"""After that."""

_log = get_logger("application")


@contextmanager
def ends_in_time(
    *,
    kill: Callable[[str], object] = jvm_lifecycle.kill,
    leave: Callable[[int], object] = os._exit,
    kill_seconds: float = KILL_SECONDS,
    exit_seconds: float = EXIT_SECONDS,
) -> Iterator[threading.Event]:
    """An event that says that the process is to end: from then on the block, all that it has open included, has to."""
    is_to_end, has_ended = threading.Event(), threading.Event()

    def watch() -> None:
        is_to_end.wait()
        if has_ended.wait(kill_seconds):
            return
        _log.error("end_hangs", seconds=kill_seconds, reason="Spark's JVM is killed")
        kill("it did not end in time")
        if has_ended.wait(exit_seconds):
            return
        _log.error("end_hangs", seconds=kill_seconds + exit_seconds, reason="the process is ended")
        leave(1)

    threading.Thread(target=watch, name="end-guard", daemon=True).start()
    try:
        yield is_to_end
    finally:
        has_ended.set()
        is_to_end.set()
