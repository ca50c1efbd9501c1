"""Names of clients as they are shown."""

import pytest

from streaming.base.text import LONGEST, SURELY_SHORT, cut


@pytest.mark.parametrize("letter", ["a", "é", "…", "🦔"])
def test_a_name_of_256_bytes_is_shown_byte_for_byte(letter: str) -> None:
    """With one more it is cut at a whole character, with a hash behind."""
    size = len(letter.encode())
    whole = letter * (LONGEST // size) + "a" * (LONGEST % size)
    begins, _, hashed = cut(f"b{whole}").rpartition("~")

    assert whole == cut(whole)
    assert f"b{letter * ((LONGEST - 1) // size)}" == begins
    assert 32 == len(hashed)


def test_two_names_never_look_alike() -> None:
    """Not two long ones that begin alike, and none that is spelt as another one is shown."""
    long = "x" * 40_000
    names = [long, f"{long}y", long[:-1], cut(long), "\ud800" * 300, "\ud801" * 300]

    assert len(names) == len({cut(name) for name in names})
    assert all(len(cut(name).encode()) > LONGEST for name in names)


def test_a_short_name_is_not_looked_at() -> None:
    """Nor is one that has half a character in it, which is the writer's business."""
    assert ["a" * SURELY_SHORT, "\ud800"] == [cut(name) for name in ("a" * SURELY_SHORT, "\ud800")]
