"""What a start is at: logged as it begins and ends, and shown by `/ready` meanwhile."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from streaming.base.logging_setup import get_logger
from streaming.base.times import now_ms

_log = get_logger("start")


class Stages:
    """The stages of one start, one at a time; read from any thread.

    Args:
        say: gets a sentence for each beginning and end; by default they are logged.
        clock: seconds that only grow.
    """

    def __init__(self, say: Callable[[str], object] | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._say = say
        self._clock = clock
        self._now: tuple[str, float, int] | None = None

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """What is done in the block; how long it took is said unless it fails."""
        begun = self._clock()
        self._now = (name, begun, now_ms())
        self.note("stage_begun", f"{name} …", stage=name)
        try:
            yield
        finally:
            self._now = None
        seconds = round(self._clock() - begun, 1)
        self.note("stage_done", f"{name}: {seconds:g} s", stage=name, seconds=seconds)

    def missing(self) -> list[dict[str, Any]]:
        """The stage that is under way, as `base.doubt` has it; none between two of them."""
        if self._now is None:
            return []
        name, begun, since_ms = self._now
        seconds = round(self._clock() - begun, 1)
        return [{"reason": f"the monitor is starting: {name}", "stage": name, "seconds": seconds, "since": since_ms}]

    def note(self, event: str, sentence: str, **fields: object) -> None:
        """Say something else of the start: logged as an event with fields, or said as a sentence."""
        if self._say is None:
            _log.info(event, **fields)
        else:
            self._say(sentence)
