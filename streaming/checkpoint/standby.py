"""Standing by: to wait for a state directory, warm, and to be quick when it becomes free.

What takes a takeover's time is what the JVM does for the first time. Spark is started before; and as soon as the other
monitor has finished a micro-batch, its state is read back once, for nothing but that it was done before.
"""

from collections.abc import Callable
from contextlib import suppress

from streaming.base.errors import MonitorError
from streaming.base.logging_setup import get_logger
from streaming.checkpoint.lock import StateLock
from streaming.checkpoint.state_directory import StateDirectory

_log = get_logger("standby")


def await_turn(
    lock: StateLock, state: StateDirectory, read_back: Callable[[], object], while_waiting: Callable[[], object]
) -> None:
    """Return once the state directory, and the checkpoint, are ours.

    Args:
        lock: on the directory.
        state: what is in it.
        read_back: reads the state, and keeps nothing of it.
        while_waiting: called now and then; may raise.
    """
    is_rehearsed = False

    def look() -> None:
        nonlocal is_rehearsed
        while_waiting()
        if is_rehearsed:
            return
        # It is being written meanwhile, so it may be anything.
        with suppress(MonitorError):
            if state.holds_state():
                is_rehearsed = True
                read_back()

    _log.info("standing_by", state_dir=str(state.directory), holder=lock.holder())
    lock.wait(look)
    state.hold(lock.directory_id(), wait=True, look=look)
    _log.info("taking_over", state_dir=str(state.directory))
