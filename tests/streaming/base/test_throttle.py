"""Long work takes its share of a processor, and no more."""

import threading
import time
from collections.abc import Iterator

import pytest

from streaming.base.throttle import Pauses, unhurried


def test_pauses_are_as_long_as_the_share_asks() -> None:
    """A quarter of a processor: three times the work that was done, and work beside it does not count."""
    used = [0.0]
    waited: list[float] = []
    pauses = Pauses(waited.append, used_seconds=lambda: used[0], share=0.25)
    for work in (0.01, 0.0, 0.05):
        used[0] += work
        pauses()

    assert [0.03, 0.15] == [round(pause, 6) for pause in waited]


def test_short_pauses_are_saved_up() -> None:
    """A tenth of a millisecond is not worth one; many of them are."""
    used = [0.0]
    waited: list[float] = []
    pauses = Pauses(waited.append, used_seconds=lambda: used[0], share=0.5)
    for _ in range(100):
        used[0] += 0.0001
        pauses()

    assert 1 <= len(waited) <= 2
    assert all(0.005 <= pause < 0.006 for pause in waited)


def test_parts_come_with_pauses_between_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """As long as it took to make them, whichever thread asks; what waits for the next question does not count."""
    used = {"a": 0.0, "b": 100.0}
    asking = "a"
    waited: list[float] = []
    monkeypatch.setattr("streaming.base.throttle.time.thread_time", lambda: used[asking])

    def made() -> Iterator[int]:
        for number in range(5):
            used[asking] += 0.004
            yield number

    parts = unhurried(made(), waited.append)
    for number, asking in enumerate("abbab"):
        assert number == next(parts)
        used[asking] += 50

    assert [] == list(parts)
    assert [0.008, 0.008] == [round(pause, 6) for pause in waited]


def test_a_single_part_comes_at_once() -> None:
    """A page of few groups has no more."""

    def made() -> Iterator[int]:
        until = time.thread_time() + 0.02
        while time.thread_time() < until:
            pass
        yield 1

    waited = threading.Event()

    assert 1 == next(unhurried(made(), lambda _: waited.set()))
    assert not waited.is_set()
