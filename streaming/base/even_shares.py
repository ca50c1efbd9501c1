"""Work of different sizes, shared out evenly."""

from collections.abc import Sequence


def even_shares(sizes: Sequence[int], loads: Sequence[int]) -> list[list[int]]:
    """Positions in `sizes` by share: as many shares as `loads`, which is what each has to do already.

    The largest first, each to the share that has least.
    """
    totals = list(loads)
    shares: list[list[int]] = [[] for _ in totals]
    for position in sorted(range(len(sizes)), key=sizes.__getitem__, reverse=True):
        least = totals.index(min(totals))
        shares[least].append(position)
        totals[least] += sizes[position]
    return shares
