"""What stays is exempt from collections; garbage is not kept by it."""

import gc
import weakref
from collections.abc import Iterator

import pytest

from streaming.base import gc_tuning


class Cycle:
    """An object that only a collection frees."""

    def __init__(self) -> None:
        self.itself = self


@pytest.fixture(autouse=True)
def _thawed() -> Iterator[None]:
    gc.disable()
    yield
    gc.enable()
    gc.unfreeze()


def test_garbage_is_not_frozen() -> None:
    """A cycle that nothing refers to any more is collected before the rest is exempt."""
    cycle = weakref.ref(Cycle())

    gc_tuning.freeze()

    assert cycle() is None


def test_nothing_is_collected_while_paused() -> None:
    """However much is made meanwhile; afterwards what became garbage is collected as ever."""
    gc.enable()
    before = sum(of["collections"] for of in gc.get_stats())

    with gc_tuning.paused():
        cycle = weakref.ref(Cycle())
        kept = [[] for _ in range(200_000)]  # type: ignore[var-annotated]  # of nothing
        assert before == sum(of["collections"] for of in gc.get_stats())

    assert gc.isenabled()
    kept += [[] for _ in range(200_000)]
    assert cycle() is None


def test_what_is_frozen_is_not_looked_at() -> None:
    """A later collection passes over what stays, and freezing again costs what is new alone."""
    kept = [[] for _ in range(1_000)]  # type: ignore[var-annotated]  # of nothing

    gc_tuning.freeze()

    assert len(gc.get_objects()) < len(kept) < gc.get_freeze_count()


def test_a_frozen_cycle_goes_with_the_next_thaw() -> None:
    """What turned to garbage after it was frozen is collected in a calm moment, and what is left is frozen again."""
    held = Cycle()
    cycle = weakref.ref(held)
    gc_tuning.freeze()
    del held
    gc.collect()
    assert cycle() is not None

    gc_tuning.thaw()

    assert cycle() is None
    assert gc.get_freeze_count() > 0
