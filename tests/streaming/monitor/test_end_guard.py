"""How a process ends that waits for something: in time."""

import threading
from functools import partial
from typing import Final

from streaming.monitor.end_guard import ends_in_time

SOON: Final = 0.05
NEVER: Final = 600.0
PATIENCE: Final = 60.0


class Ends:
    """What is done to a process, and may be waited for."""

    def __init__(self) -> None:
        self.killed, self.left = threading.Event(), threading.Event()
        self.status: int | None = None
        self.guarded = partial(ends_in_time, kill=lambda _: self.killed.set(), leave=self.leave)

    def leave(self, status: int) -> None:
        self.status = status
        self.left.set()


def test_an_end_in_time_is_left_alone() -> None:
    """Nothing is killed of a process that ends in time, nor of one that is not to end."""
    ends = Ends()
    with ends.guarded(kill_seconds=NEVER) as is_to_end:
        is_to_end.set()
    with ends.guarded(kill_seconds=0.0):
        assert not ends.killed.wait(SOON)

    assert not ends.killed.is_set()


def test_what_waits_for_the_jvm_goes_on_without_it() -> None:
    """It is killed, and then all is closed in its order: the process is not ended by force."""
    ends = Ends()
    with ends.guarded(kill_seconds=SOON, exit_seconds=NEVER) as is_to_end:
        is_to_end.set()
        assert ends.killed.wait(PATIENCE)

    assert not ends.left.is_set()


def test_what_waits_for_something_else_ends_with_the_process() -> None:
    """With status 1: something was not closed."""
    ends = Ends()
    with ends.guarded(kill_seconds=SOON, exit_seconds=SOON) as is_to_end:
        is_to_end.set()
        assert ends.left.wait(PATIENCE)

    assert 1 == ends.status
