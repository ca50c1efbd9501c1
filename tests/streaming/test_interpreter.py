"""Long work takes its share of a processor, and no more."""

from streaming.interpreter import Pauses


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
