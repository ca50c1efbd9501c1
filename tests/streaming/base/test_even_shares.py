"""Work of different sizes, shared out evenly."""

import pytest

from streaming.base.even_shares import even_shares


@pytest.mark.parametrize(
    ("sizes", "loads", "shares"),
    [
        ([], [0, 0], [[], []]),
        ([5], [0], [[0]]),
        ([1, 6, 3, 2], [0, 0], [[1], [2, 3, 0]]),
        ([1, 6, 3, 2], [9, 0], [[3], [1, 2, 0]]),
        ([4, 4, 4], [0, 0, 0, 0], [[0], [1], [2], []]),
    ],
)
def test_the_largest_goes_where_there_is_least_to_do(
    sizes: list[int], loads: list[int], shares: list[list[int]]
) -> None:
    """Every position once, as many shares as loads; a share that has enough already gets none, or the smallest."""
    assert shares == even_shares(sizes, loads)
