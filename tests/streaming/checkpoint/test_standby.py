"""Who stands by reads the other's state once, when there is some, and takes its turn whatever came of that."""

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from lab.monitor_process import until
from streaming.base.errors import UsageError
from streaming.checkpoint.lock import StateLock
from streaming.checkpoint.standby import await_turn
from streaming.checkpoint.state_directory import StateDirectory
from tests.streaming.checkpoint.test_state_of_a_run import spark_finishes


class Asked(Exception):
    """To be there when it is asked whether to wait on."""


class Waiting:
    """One that waits, in a thread, for a directory that another one has."""

    def __init__(self, directory: Path, read_back: Callable[[], object]) -> None:
        self.holder, self.looks = StateLock(directory), 0
        self.holder.take()
        self._directory, self._read_back = directory, read_back
        self.thread = threading.Thread(target=self._wait)
        self.thread.start()

    def _wait(self) -> None:
        state = StateDirectory(self._directory, None, reads_uncommitted=True, clock_ms=lambda: 0)
        await_turn(StateLock(self._directory), state, self._read_back, self._looked)
        state.let_go()

    def _looked(self) -> None:
        self.looks += 1

    def goes_on(self) -> None:
        """Return when it has looked twice more."""
        seen = self.looks
        until(lambda: self.looks >= seen + 2, 90, "it does not look")

    def gets_it(self) -> None:
        """The other one ends."""
        self.holder.release()
        self.thread.join(20)
        assert not self.thread.is_alive()


@pytest.mark.parametrize("error", [None, UsageError("state.dir: found it damaged")])
def test_state_is_read_back_once_as_soon_as_there_is_some(tmp_path: Path, error: Exception | None) -> None:
    """Not before, not again, and a state that cannot be read while it is written keeps no one from waiting on."""
    reads = []

    def read_back() -> None:
        reads.append(1)
        if error is not None:
            raise error

    waiting = Waiting(tmp_path, read_back)
    waiting.goes_on()
    assert [] == reads
    spark_finishes(tmp_path, 7)
    waiting.goes_on()
    spark_finishes(tmp_path, 9, batch=1)
    waiting.goes_on()
    waiting.gets_it()

    assert [1] == reads


def test_it_can_be_asked_to_wait_no_more(tmp_path: Path) -> None:
    """By an error of what it asks meanwhile."""
    holder = StateLock(tmp_path)
    holder.take()

    def look() -> None:
        raise Asked

    state = StateDirectory(tmp_path, None, reads_uncommitted=True, clock_ms=lambda: 0)
    with pytest.raises(Asked):
        await_turn(StateLock(tmp_path), state, lambda: None, look)
